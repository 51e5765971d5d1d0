"""Operators without operands: arrays that are known from their attributes alone."""

from typing import Any

import numpy as np

from ..operator import declare
from ..spec import Spec

full = declare(
    "full",
    "creation",
    "",
    infer=lambda shape, value, dtype: Spec(shape, dtype),
    evaluate=lambda shape, value, dtype: np.full(shape, value, dtype),
    doc="one value everywhere",
)
iota = declare(
    "iota",
    "creation",
    "",
    infer=lambda size, dtype: Spec((size,), dtype),
    evaluate=lambda size, dtype: np.arange(size, dtype=dtype),
    doc="0, 1, 2 ... size - 1",
)


def _no_value(**attributes: Any) -> np.ndarray:
    raise TypeError("an input has a value only in a call")


parameter = declare(
    "parameter", "creation", "", infer=lambda spec: spec, evaluate=_no_value, doc="an input of the graph"
)
