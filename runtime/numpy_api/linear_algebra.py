"""numpy.linalg on Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.spec import CONTINUOUS
from ..functions.common import array_dtype, as_dtype
from ..functions.matrices import linalg
from ..functions.reductions import statistics
from ..functions.shapes import parts
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from ..values.value_kinds import as_number
from .functions import FUNCTIONS, implements
from .protocols import DIRECT_FUNCTIONS, OF_OTHERS
from .values import averaged, axes_of, floats, require_vector


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Tensor:
    x, y = floats(a, b)
    return linalg.solved(linalg.square(x, "solve"), y, y.ndim == 1)


implements(np.linalg.inv)(lambda a: linalg.inverse(averaged(a)))
implements(np.linalg.det)(lambda a: linalg.det(averaged(a)))
implements(np.linalg.slogdet)(lambda a: linalg.slogdet(averaged(a)))
implements(np.linalg.cholesky)(
    lambda a, /, *, upper=False: linalg.cholesky(linalg.symmetric(averaged(a), not upper), upper)
)


@implements(np.linalg.matrix_power, shares=True)
def matrix_power(a: Any, n: Any) -> Tensor:
    x = tensor_of(a) if n > 0 else averaged(a)
    if n == 1 and array_dtype(x).kind in CONTINUOUS:
        return linalg.square(x, "matrix_power")
    power = linalg.matrix_power(x, n)
    return as_dtype(power, array_dtype(tensor_of(a))) if n == 0 else power


implements(np.linalg.matmul)(lambda x1, x2, /: np.matmul(x1, x2))
implements(np.linalg.outer)(
    lambda x1, x2, /: FUNCTIONS[np.outer](
        *(require_vector(tensor_of(one), "linalg.outer", "an argument") for one in (x1, x2))
    )
)
implements(np.linalg.tensordot)(lambda x1, x2, /, *, axes=2: FUNCTIONS[np.tensordot](x1, x2, axes))
implements(np.linalg.cross)(lambda x1, x2, /, *, axis=-1: FUNCTIONS[np.cross](x1, x2, axis=axis))
implements(np.linalg.vecdot)(lambda x1, x2, /, *, axis=-1: OF_OTHERS["vecdot"](x1, x2, axis))
implements(np.linalg.matrix_transpose, shares=True)(lambda x, /: FUNCTIONS[np.matrix_transpose](x))
implements(np.linalg.diagonal, shares=True)(
    lambda x, /, *, offset=0: parts.diagonal(averaged(x), offset, -2, -1)
)
implements(np.linalg.trace)(
    lambda x, /, *, offset=0: FUNCTIONS[np.sum](parts.diagonal(averaged(x), offset, -2, -1), -1)
)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    matrices = averaged(x)
    rows_and_columns = axes_of((-2, -1), matrices, "linalg.matrix_norm")
    return as_number(statistics.matrix_norm(matrices, ord, rows_and_columns, keepdims))


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse for `tensordot(a, x, ind)`."""
    x = averaged(a)
    front, back = tuple(x.shape[:ind]), tuple(x.shape[ind:])
    return linalg.inverse(x.reshape((int(np.prod(front)), -1))).reshape((*back, *front))


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The x with `tensordot(a, x, x.ndim) = b`."""
    x, y = floats(a, b)
    if axes is not None:
        rest = [dim for dim in range(x.ndim) if dim not in axes]
        x = FUNCTIONS[np.transpose](x, (*rest, *axes))
    shape = tuple(x.shape[y.ndim :])
    return linalg.solved(x.reshape((y.numel(), -1)), y.reshape(-1), True).reshape(shape)


DIRECT_FUNCTIONS |= {
    np.linalg.inv: linalg.inverse_directly, np.linalg.det: linalg.det_directly,
    np.linalg.solve: linalg.solved_directly, np.linalg.slogdet: linalg.slogdet_directly,
    np.linalg.cholesky: linalg.cholesky_of_triangle,
}  # fmt: skip
