"""The names of `autograd.numpy`, which HIPS autograd makes here."""

from typing import Any

import pullback.compat.autograd.numpy as _numpy
from pullback.compat.autograd.insides import missing_of as _missing_of

globals().update({name: value for name, value in vars(_numpy).items() if not name.startswith("__")})


def _astype(
    A: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """The method of an array."""
    return A.astype(dtype, order, casting, subok, copy)


_missing = _missing_of(__name__)


def __getattr__(name: str) -> Any:
    return _missing(name)
