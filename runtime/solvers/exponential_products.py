"""`scipy.sparse.linalg.expm_multiply`: the exponential of a matrix, times vectors, by products alone.

A. H. Al-Mohy and N. J. Higham, Computing the action of the matrix exponential, SIAM J. Sci. Comput. 33
(2011): the matrix, less a multiple of the identity, is divided into steps of a norm for which Taylor's series
has few terms. Of a matrix whose norm is a traced value code counts the steps. Derivatives are those of the
series.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ...tracer.trace import is_tracing
from ..autograd.custom_rules import custom_vjp
from ..functions import PUBLIC, declared
from ..functions.common import array_dtype, as_dtype, fail, filled
from ..functions.loops.control_flow import fori_loop, scan
from ..functions.stopping import stop_gradient
from ..numpy_api.values import at_hand, averaged, floats, of_arrays
from ..scipy_api.sparse_products import Sparse, Valued, parts_of
from ..tensors.conversion import holds_tensor, joined, tensor_of
from ..values.foreign import is_sparse
from ..values.tensor import Tensor

Product = Callable[[Tensor], Tensor]
Propagate = Callable[..., Tensor]
"""(x, t) -> exp(t A) x; of A itself without t."""
DOUBLE = np.dtype("float64")
where = PUBLIC["where"]
LONGEST_STEP = 5.0
"""The norm of a step: what cancels in the series is less than exp(10) times the rounding of its result."""
NEGLIGIBLE = 2.0**-60
"""The first term that is left out, relative to exp(-norm), which bounds the result from below."""


def expm_multiply(
    real: Callable[..., Any], A: Any, B: Any, start: Any = None, stop: Any = None, num: Any = None,
    endpoint: Any = None, traceA: Any = None,
) -> Any:  # fmt: skip
    """exp(A) B, or exp(t A) B for each t from `start` to `stop`, of plain arrays by SciPy itself.

    Args:
        A: a matrix of numbers or Tensors, or a sparse one, be it times a Tensor or of values that are traced.
    """
    A, B = joined(A), joined(B)
    matrix, factor = parts_of(A)
    if factor is None and not isinstance(A, Valued) and not any(map(holds_tensor, (A, B, start, stop))):
        return real(matrix, B, start, stop, num, endpoint, traceA)
    is_matrix = isinstance(A, Valued) or is_sparse(matrix) or isinstance(A, Tensor | np.ndarray)
    if not is_matrix:
        fail(
            UnsupportedError,
            f"scipy.sparse.linalg.expm_multiply: A is a {type(matrix).__name__}; beside Tensors an array or "
            "a sparse matrix is expected, whose norm is known.",
        )
    shape, vectors = tuple(matrix.shape), averaged(B)
    if len(shape) != 2 or shape[0] != shape[1] or vectors.ndim not in (1, 2) or vectors.shape[0] != shape[0]:
        fail(
            ShapeError,
            "scipy.sparse.linalg.expm_multiply: expected a square matrix, and a vector or columns with as "
            f"many rows; found the shapes {shape} and {tuple(vectors.shape)}.",
        )
    is_constant = not isinstance(matrix, Valued | Tensor)
    propagate, dtype = (_by_scipy if is_constant and not is_tracing() else _by_steps)(A)
    if all(one is None for one in (start, stop, num, endpoint)):
        return of_arrays(propagate(as_dtype(vectors, np.result_type(dtype, array_dtype(vectors)))))
    first, last, vectors = floats(start, stop, as_dtype(vectors, np.result_type(dtype, array_dtype(vectors))))
    return of_arrays(_along(propagate, vectors, first, last, 50 if num is None else int(num), endpoint))


def _by_steps(A: Any) -> tuple[Propagate, np.dtype]:
    """By a loop, on the tape or in code."""
    without, shift, norm, dtype = _shifted(A)

    def propagate(x: Tensor, t: Any = 1.0) -> Tensor:
        return _of_steps(lambda x: (without @ x) * t, x, abs(stop_gradient(t)) * norm, shift * t)

    return propagate, dtype


def _by_scipy(A: Any) -> tuple[Propagate, np.dtype]:
    """By calls of SciPy, of a constant matrix that may be multiplied with a Tensor."""
    matrix, factor = parts_of(A)
    if factor is None:
        return lambda x, t=1.0: tensor_of(_acted(matrix, False, t, x)), matrix.dtype
    dtype = np.result_type(matrix.dtype, array_dtype(tensor_of(factor)))
    return lambda x, t=1.0: tensor_of(_acted(matrix, False, factor * t, x)), dtype


def _action(matrix: Any, transposed: bool, t: Any, x: Any) -> Any:
    """exp(t A) x, whose derivatives are of the same form."""
    real = sys.modules["scipy.sparse.linalg"].expm_multiply
    return real(t * (matrix.T if transposed else matrix), x)


_acted = custom_vjp(_action, nondiff_argnums=(0, 1))


def _found(matrix: Any, transposed: bool, t: Any, x: Any) -> tuple[Any, Any]:
    found = _acted(matrix, transposed, t, x)
    return found, (t, found)


def _pulled(matrix: Any, transposed: bool, residuals: tuple[Any, Any], g: Any) -> tuple[Any, Any]:
    t, found = residuals
    at = matrix.T if transposed else matrix
    slope = (np.conj((Sparse(at) if is_sparse(at) else at) @ found) * g).sum()
    is_real = not np.iscomplexobj(t)
    return slope.real if is_real else slope, np.conj(_acted(matrix, not transposed, t, np.conj(g)))


_acted.defvjp(_found, _pulled)


def _shifted(A: Any) -> tuple[Any, Any, Any, np.dtype]:
    """A less a multiple of the identity, its diagonal's mean: with that, the norm of the rest, the dtype."""
    if isinstance(A, Valued):
        values, columns, _ = A.by_rows()
        sums = filled((A.shape[1],), 0.0, DOUBLE)
        sums = PUBLIC["index_add"](sums, 0, tensor_of(columns), as_dtype(_size(values), DOUBLE))
        return A, 0.0, sums.max(), array_dtype(values)
    matrix, factor = parts_of(A)
    if not is_sparse(matrix):
        dense = averaged(A)
        shift = stop_gradient(declared.sum(PUBLIC["diagonal"](dense))) / dense.shape[0]
        dense = dense - shift * tensor_of(np.eye(dense.shape[0], dtype=array_dtype(dense)))
        return dense, shift, declared.sum(_size(dense), 0).max(), array_dtype(dense)
    size = matrix.shape[0]
    shift = matrix.diagonal().sum() / size
    rest = matrix.tocsr() - shift * sys.modules["scipy.sparse"].eye_array(size, format="csr")
    norm = float(abs(rest).sum(axis=0).max()) if size else 0.0
    if factor is None:
        return Sparse(rest), shift, norm, rest.dtype
    times = tensor_of(factor)
    return Sparse(rest, factor), shift * times, norm * _size(times), np.result_type(rest, array_dtype(times))


def _size(x: Any) -> Any:
    return abs(stop_gradient(x))


def _of_steps(product: Product, x: Tensor, norm: Any, shift: Any) -> Tensor:
    """exp(A + shift) x by so many equal steps that the norm of each is at most LONGEST_STEP."""
    known_norm = norm if not isinstance(norm, Tensor) else at_hand(norm)
    if known_norm is None:
        steps, terms = PUBLIC["clamp"](PUBLIC["ceil"](norm / LONGEST_STEP), 1.0), _terms(LONGEST_STEP)
        steps = where(PUBLIC["isfinite"](norm), steps, 1.0)
        count: Any = as_dtype(steps, np.dtype("int64"))
        steps = as_dtype(steps, np.zeros((), array_dtype(x)).real.dtype)
    else:
        number = float(known_norm) if np.isfinite(known_norm) else 0.0
        count = max(1, math.ceil(number / LONGEST_STEP))
        steps, terms = float(count), _terms(number / count)
    whole, dtype = PUBLIC["exp"](tensor_of(shift / steps)), array_dtype(x)

    def add(place: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        total, term = carry
        term = product(term) / (steps * (place + 1.0))
        return total + term, term

    def step(_: Any, x: Any) -> Any:
        return as_dtype(whole * fori_loop(0, terms, add, (x, x))[0], dtype)

    return fori_loop(0, count, step, x)


def _terms(norm: float) -> int:
    """How many terms of the exponential series are not negligible."""
    term, count = 1.0, 0
    while term > NEGLIGIBLE * math.exp(-norm):
        count += 1
        term *= norm / count
    return count + 1  # of derivatives each term has a power less


def _along(propagate: Propagate, x: Tensor, start: Any, stop: Any, num: int, endpoint: Any) -> Tensor:
    """exp(t A) x at `num` equal distances, each from the one before."""
    if num < 2:
        fail(ArgumentError, "scipy.sparse.linalg.expm_multiply: at least two points of time are required.")
    length = (stop - start) / (num - (endpoint is not False))

    def step(x: Any, _: Any) -> tuple[Any, Any]:
        after = propagate(x, length)
        return after, after

    first = propagate(x, start)
    return PUBLIC["cat"]([first[None], scan(step, first, length=num - 1)[1]])
