"""Square matrices: linear equations, inverses, determinants, Cholesky's factor.

What has no solution raises LinearAlgebraError, compiled as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError, LinearAlgebraError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import linalg as la
from ....tracer.ops.matrices import eliminated
from ....tracer.ops.movement import reshape
from ....tracer.spec import CONTINUOUS
from ....tracer.trace import innermost, itself
from ...tape.apply import apart_from, apply, unwrap
from ...tape.direct import direct, direct_view, unrecorded
from ...values.tensor import Tensor, make
from ..common import (
    array_dtype,
    as_dtype,
    common_dtype,
    fail,
    floating,
    matrix_named_either_way,
    tensor,
    with_short_way,
)
from ..shapes.movement import adjoint, expand_to, reshape_to, transpose
from ..shapes.parts import tril, triu
from .caught_errors import checked
from .contraction import matmul

__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "matrix_power", "slogdet",
    "solve_triangular",
]  # fmt: skip


class SignAndLog(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


def square(input: Tensor, function: str) -> Tensor:
    """Floating square matrices; ShapeError for others."""
    x = floating(input, function)
    _require_square(x, function)
    return x


def _require_square(x: Tensor, function: str) -> None:
    shape = x._value.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        fail(
            ShapeError,
            f"linalg.{function}: A must be batches of square matrices, but they are {tuple(x.shape)}.",
        )


def require_pivots(pivots: Tensor, both: Tensor, function: str, argument: str = "pivots") -> None:
    """DTypeError or ShapeError unless these are the rows that were exchanged for each of the matrices."""
    shape = tuple(both._value.shape)
    if array_dtype(pivots).kind not in "iu":
        fail(DTypeError, f"{function}(): '{argument}' must be integers, found {pivots.dtype}.")
    if tuple(pivots._value.shape) != (*shape[:-2], min(shape[-2:])):
        fail(
            ShapeError,
            f"{function}(): '{argument}' must have shape {(*shape[:-2], min(shape[-2:]))} beside matrices of "
            f"shape {shape}; found {tuple(pivots.shape)}.",
        )


def _is_square_outside_of_traces(input: Any) -> bool:
    """Whether it is a Tensor of square matrices, floating or complex and not empty, in eager code."""
    if not isinstance(input, Tensor) or innermost() is not None:
        return False
    a = unwrap(input)
    return bool(a.size and a.dtype.kind in CONTINUOUS and a.ndim > 1 and a.shape[-1] == a.shape[-2])


@matrix_named_either_way
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The X with A X = B, or X A = B without `left`; B is a matrix, or a vector, or a batch of them.

    Raises:
        ShapeError: A is not square, or B does not fit. LinearAlgebraError: A is singular.

    Example:
        >>> solve(tensor([[2.0, 0.0], [0.0, 4.0]]), tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    a, b = square(A, "solve"), floating(B, "solve", "B")
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and tuple(b.shape) == tuple(a.shape[:-1]))
    return solved(a, b, is_vector, left)


def solved_directly(A: Any = None, B: Any = None, *more: Any) -> Any:
    """The solution for one matrix by its short way; NotImplemented for what takes a closer look.

    The matrix is factored once, for its gradient as well.
    """
    if more or innermost() is not None:
        return NotImplemented
    a, b = (unwrap(one) if isinstance(one, Tensor) else one for one in (A, B))
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.dtype != b.dtype:
        return NotImplemented
    sizes, sides = a.shape, b.shape
    fits = len(sizes) == 2 and sizes[0] == sizes[1] and sizes[:1] == sides[:1] and len(sides) <= 2
    if not fits or not b.size or a.dtype.kind not in CONTINUOUS:
        return NotImplemented
    table = B
    if len(sides) == 1:
        table = _shaped(B, (*sides, 1)) if B is not b else b[:, None]
    if len(a) <= FACTORED_TWICE:
        found = _solved_at_once(A, table)
    else:
        try:
            factors = eliminated.evaluate(a)
            found = apply(la.solve_factored, A, factors, table, transposed=False, grad_name=SOLVED)
        except LinearAlgebraError:
            return NotImplemented
    return found if len(sides) == 2 or found is NotImplemented else _shaped(found, sides)


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    found = _shown(x, shape=shape)
    return reshape_to(x, shape) if found is NotImplemented else found


_shown = direct_view(reshape)


SOLVED, INVERTED = "LinalgSolveExBackward0", "LinalgInvExBackward0"
FACTORED_TWICE = 32
"""Rows up to which eager code factors a matrix for its gradient anew: NumPy does so in less time than it
takes to call LAPACK in steps."""
_solved_at_once = direct(la.solve, grad_name=SOLVED)
with_short_way(solve, solved_directly)


def solved(a: Tensor, b: Tensor, is_vector: bool, left: bool = True, lower: bool | None = None) -> Tensor:
    """`solve`, told whether b holds vectors; `lower`: with the lower or the upper triangle of a alone."""
    dtype = common_dtype(a, b)
    a, b = as_dtype(a, dtype), as_dtype(b, dtype)
    if is_vector:
        return reshape_to(found := solved(a, b.unsqueeze(-1), False), tuple(found.shape[:-1]))
    if not left and lower is None:
        return transpose(solved(transpose(a, -2, -1), transpose(b, -2, -1), False), -2, -1)
    if b.ndim < 2 or b._value.shape[-2 if left else -1] != a._value.shape[-1]:
        fail(
            ShapeError,
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B: "
            f"{tuple(a.shape)} and {tuple(b.shape)}",
        )
    sizes, sides = a._value.shape, b._value.shape
    if sizes[:-2] != sides[:-2]:
        batch = np.broadcast_shapes(tuple(sizes[:-2]), tuple(sides[:-2]))
        a, b = expand_to(a, (*batch, *sizes[-2:])), expand_to(b, (*batch, *sides[-2:]))
    if lower is not None:
        return apply(la.triangular_solve, a, b, lower=lower, transposed=False, right=not left)
    return apply(la.solve, checked(a, "solve"), b)


@matrix_named_either_way
def inverse(input: Tensor) -> Tensor:
    """The inverse of a matrix, or of each in a batch.

    Raises:
        ShapeError: they are not square. LinearAlgebraError: one is singular.

    Example:
        >>> inverse(tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    a = checked(square(input, "inv"), "inv")
    return apply(la.solve, a, apply(la.unit_like, a._detached()), grad_name=INVERTED)


_inverse_unrecorded = unrecorded(lambda a: (np.linalg.inv(a),), itself)
_inverse_recorded = direct(la.solve, grad_name=INVERTED)


def inverse_directly(input: Any = None, *more: Any) -> Any:
    found = _inverse_unrecorded(input, *more)
    if found is not NotImplemented or more or not _is_square_outside_of_traces(input):
        return found
    return _inverse_recorded(input, make(la.unit_like.evaluate(unwrap(input)), type(input)))


with_short_way(inverse, inverse_directly)


@matrix_named_either_way
def det(input: Tensor) -> Tensor:
    """The determinant. Its gradient, the cofactors, exists without an inverse as well.

    Raises:
        ShapeError: the matrix is not square. LinearAlgebraError: the second derivative without an inverse.

    Example:
        >>> det(tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(8.)
    """
    return apply(la.det, square(input, "det"))


det_directly = direct(la.det)
with_short_way(det, det_directly)


@matrix_named_either_way
def slogdet(input: Tensor) -> SignAndLog:
    """The sign of the determinant, and the logarithm of its size.

    Example:
        >>> slogdet(tensor([[2.0, 0.0], [0.0, 4.0]])).logabsdet
        tensor(2.0794)
    """
    a = square(input, "slogdet")
    return SignAndLog(apply(la.sign_of_det, a), apply(la.logabsdet, a))


def _sign_and_log(a: np.ndarray) -> list[np.ndarray]:
    """As where it is recorded."""
    if a.shape[-1] <= FACTORED_TWICE:
        return [*np.linalg.slogdet(a)]
    factors = eliminated.evaluate(a)
    return [one.evaluate(a, factors) for one in (la.sign_of_det_factored, la.logabsdet_factored)]


_slogdet_unrecorded = unrecorded(_sign_and_log, SignAndLog)


_sign_at_once, _logarithm_at_once = (
    direct(one, grad_name="LinalgSlogdetBackward0") for one in (la.sign_of_det, la.logabsdet)
)


def slogdet_directly(input: Any = None, *more: Any) -> Any:
    """Where a gradient follows, the matrices are factored once, for all of it."""
    found = _slogdet_unrecorded(input, *more)
    if found is not NotImplemented or more or not _is_square_outside_of_traces(input):
        return found
    a = unwrap(input)
    if a.shape[-1] <= FACTORED_TWICE:
        both = _sign_at_once(input), _logarithm_at_once(input)
        return NotImplemented if any(one is NotImplemented for one in both) else SignAndLog(*both)
    factors = eliminated.evaluate(a)
    parts = (la.sign_of_det_factored, la.logabsdet_factored)
    return SignAndLog(*(apply(one, input, factors, grad_name="LinalgSlogdetBackward0") for one in parts))


with_short_way(slogdet, slogdet_directly)


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan where that is negative, unless the matrix is complex.

    Example:
        >>> logdet(tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(2.0794)
    """
    sign, size = slogdet(input)
    if sign.is_complex():
        return apply(e.add, as_dtype(size, array_dtype(sign)), apply(e.log, sign))
    return apply(e.where, apply(e.less, sign, 0.0), np.nan, size)


@matrix_named_either_way
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular L with L L' = input, or with `upper` its transpose U, of complex ones conjugated.

    Of a symmetric or Hermitian matrix; its lower triangle is read (its upper one with `upper`), and its
    gradient is symmetric or Hermitian.

    Raises:
        ShapeError: the matrix is not square. LinearAlgebraError: it is not positive definite.

    Example:
        >>> cholesky(tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    a = square(input, "cholesky")
    factor = apply(la.cholesky, checked(adjoint(a) if upper else a, "cholesky"))
    return adjoint(factor) if upper else factor


_factor = direct(la.cholesky)


def cholesky_directly(input: Any = None, upper: bool = False) -> Any:
    return NotImplemented if upper else _factor(input)


def cholesky_of_triangle(a: Any = None, *more: Any) -> Any:
    """The same of the lower triangle alone, which is all that NumPy's function reads."""
    mirrored = NotImplemented if more else mirrored_directly(a)
    return mirrored if mirrored is NotImplemented else _factor(mirrored)


_mirrored = direct(la.symmetric)


def mirrored_directly(a: Any) -> Any:
    """The short way of `symmetric`."""
    return _mirrored(a, sign=1.0)


with_short_way(cholesky, cholesky_directly)


def symmetric(a: Tensor, lower: bool = True) -> Tensor:
    """One triangle of every matrix and its mirror image: all that NumPy and SciPy read of a symmetric one.

    Of complex numbers the image is conjugated, and the diagonal real.
    """
    return apply(la.symmetric, a if lower else adjoint(a), sign=1.0)


@matrix_named_either_way
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """`solve` with one triangle of A, and ones on its diagonal if `unitriangular`.

    With a 0 on the diagonal the solution has inf or nan.

    Raises:
        ShapeError: A is not square, or B does not fit.

    Example:
        >>> solve_triangular(tensor([[2.0, 9.0], [1.0, 1.0]]), tensor([[2.0], [3.0]]), upper=False)
        tensor([[1.],
                [2.]])
    """
    a = square(A, "solve_triangular")
    b = floating(B, "solve_triangular", "B")
    if unitriangular:
        kept = (triu if upper else tril)(a, 1 if upper else -1)
        a = apply(e.add, kept, apply(la.unit_like, a._detached()))
    return solved(a, b, False, left, lower=not upper)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The X with L L' X = B, for a triangular factor L.

    Example:
        >>> cholesky_solve(tensor([[4.0]]), tensor([[2.0]]))
        tensor([[1.]])
    """
    lower = square(adjoint(L) if upper else L, "cholesky_solve")
    factor = apply(e.subtract, lower, triu(lower._detached(), 1))  # PyTorch's gradient is of all
    sides = floating(B, "cholesky_solve", "B")
    return solved(adjoint(factor), solved(factor, sides, False), False)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of L L', for a triangular factor L.

    Example:
        >>> cholesky_inverse(tensor([[2.0]]))
        tensor([[0.2500]])
    """
    return cholesky_solve(apply(la.unit_like, square(L, "cholesky_inverse")._detached()), L, upper)


@matrix_named_either_way
def _integers_or(input: Tensor) -> Tensor:
    """Square matrices, of integers and bools as they are."""
    x = tensor(input, "matrix_power")
    if array_dtype(x).kind not in "biu":
        return square(x, "matrix_power")
    _require_square(x, "matrix_power")
    return x


def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of n such matrices; of the inverse for a negative n.

    Example:
        >>> matrix_power(tensor([[2.0, 0.0], [0.0, 1.0]]), 3)
        tensor([[8., 0.],
                [0., 1.]])
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        fail(ArgumentError, f"linalg.matrix_power: n must be int, not {type(n).__name__}")
    x = given = _integers_or(inverse(input) if n < 0 else input)
    left, power = abs(int(n)), None
    while left:
        if left & 1:
            power = x if power is None else matmul(power, x)
        left >>= 1
        x = matmul(x, x) if left else x
    return apply(la.unit_like, x) if power is None else apart_from(given, power)
