"""SciPy's modules, imported when first used: importing pullback stays quick."""

import functools
from types import ModuleType
from typing import Any


@functools.cache
def scipy_special() -> ModuleType:
    import scipy.special

    return scipy.special


@functools.cache
def scipy_stats() -> ModuleType:
    import scipy.stats

    return scipy.stats


@functools.cache
def scipy_linalg() -> ModuleType:
    import scipy.linalg

    return scipy.linalg


@functools.cache
def scipy_fft() -> ModuleType:
    import scipy.fft

    return scipy.fft


@functools.cache
def pocketfft() -> Any:
    """What `scipy.fft` calls: transforms that write into a given array. None if this SciPy has no such."""
    try:
        from scipy.fft._pocketfft import pypocketfft
    except ImportError:
        return None
    return pypocketfft
