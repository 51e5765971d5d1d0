"""SciPy's modules, imported when first used: importing pullback stays quick."""

import functools
from types import ModuleType
from typing import Any

import numpy as np


@functools.cache
def scipy_special() -> ModuleType:
    import scipy.special

    return scipy.special


def special_value(name: str, *operands: Any) -> Any:
    """What a function of `scipy.special` gives: of float16, which that does not have, by way of float32."""
    function = getattr(scipy_special(), name)
    if HALF not in [getattr(one, "dtype", None) for one in operands]:
        return function(*operands)
    wider = [one.astype(np.float32) if hasattr(one, "dtype") else one for one in operands]
    return np.asarray(function(*wider)).astype(HALF)


HALF = np.dtype("float16")


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
