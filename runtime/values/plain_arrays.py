"""Arrays whose operators mean something else: masked ones, and `np.matrix`. They are refused wherever met."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ...tracer.origin import at_caller

_MASKED = "a masked array; masks are not supported", ".filled(...), or the data and the mask as two arrays"
MATRIX_REMEDY = "numpy.asarray(...) of it, and write @ for the product"
_MATRIX = "an np.matrix, whose * is a product of matrices", MATRIX_REMEDY


def require_plain_array(value: Any, what: str) -> None:
    """Raise where an array is masked, or an `np.matrix`.

    Raises:
        ArgumentError: it is.
    """
    if type(value) is np.ndarray or not isinstance(value, np.ndarray):
        return
    masked = sys.modules.get("numpy.ma")  # to import it takes longer than to compile a small function
    if isinstance(value, np.matrix):
        found, remedy = _MATRIX
    elif masked is not None and isinstance(value, masked.MaskedArray):
        found, remedy = _MASKED
    else:
        return
    raise ArgumentError(f"{what} is {found}{at_caller()}. Pass {remedy}.")
