"""Order: which positions sort the rows of an array."""

import numpy as np

from ..errors import ShapeError
from ..operator import WholeCall, declare
from ..spec import INT64, Spec


def _infer(x: Spec) -> Spec:
    if not x.ndim:
        raise ShapeError(f"sorted_positions: a row of elements expected, found {x}.")
    return Spec((*x.shape[:-1], 2, x.shape[-1]), INT64)


def _evaluate(x: np.ndarray) -> np.ndarray:
    order = np.argsort(x, axis=-1, kind="stable")
    return np.stack([order, np.argsort(order, axis=-1)], axis=-2)


sorted_positions = declare(
    "sorted_positions", "ordering", "x",
    infer=_infer,
    evaluate=_evaluate,
    call=WholeCall(("sort_positions",), dims=1, steps=lambda extent: max(extent, 2).bit_length()),
    noun="order",
    doc="for each row the positions that sort it, equal elements in order and nan last, and all ranks",
)  # fmt: skip
