"""SciPy's modules, imported when first used: importing pullback stays quick."""

from types import ModuleType


def scipy_special() -> ModuleType:
    import scipy.special

    return scipy.special


def scipy_linalg() -> ModuleType:
    import scipy.linalg

    return scipy.linalg


def scipy_fft() -> ModuleType:
    import scipy.fft

    return scipy.fft
