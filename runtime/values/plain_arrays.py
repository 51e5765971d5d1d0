"""Arrays whose operators mean something else: masked ones, and `np.matrix`. They are refused wherever met."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ...tracer.origin import at_caller

FORBIDDEN = (np.ma.MaskedArray, np.matrix)
_REMEDIES = {
    np.ma.MaskedArray: (
        "a masked array; masks are not supported",
        ".filled(...), or the data and the mask as two arrays",
    ),
    np.matrix: (
        "an np.matrix, whose * is a product of matrices",
        "numpy.asarray(...) of it, and write @ for the product",
    ),
}


def require_plain_array(value: Any, what: str) -> None:
    """Raise where an array is masked, or an `np.matrix`.

    Raises:
        ArgumentError: it is.
    """
    if not isinstance(value, FORBIDDEN):
        return
    found, remedy = next(texts for kind, texts in _REMEDIES.items() if isinstance(value, kind))
    raise ArgumentError(f"{what} is {found}{at_caller()}. Pass {remedy}.")
