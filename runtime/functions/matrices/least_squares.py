"""Pseudo-inverses, least squares, ranks and condition numbers: by singular values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.lapack import SMALL
from ....tracer.ops import decompositions as d
from ....tracer.ops import elementwise as e
from ....tracer.ops import matrix_equations as equations
from ....tracer.ops import matrix_functions
from ....tracer.spec import real_dtype
from ....tracer.trace import is_tracing
from ...tape.apply import apply, wrap
from ...values.modes import is_recording
from ...values.tensor import Tensor
from ..common import (
    array_dtype,
    as_dtype,
    fail,
    filled,
    floating,
    matrix_named_either_way,
    promoted,
)
from ..declared import amax, amin
from ..declared import sum as sum_of
from ..elements.complex_numbers import real
from ..reductions.statistics import ORDERS, matrix_norm
from ..shapes.joining import stack
from ..shapes.movement import adjoint, expand_to, reshape_to
from ..shapes.parts import part, selected
from .contraction import matmul
from .decompositions import eigvalsh, linalg_svd, matrices, svdvals
from .elimination import regular_inverse
from .linalg import square, symmetric

__all__ = ["pinverse"]

LEAST_ROUNDINGS = 10
"""Errors of rounding that a singular value of 0 may have in small matrices, too; NumPy's `pinv` allows 5."""


class Lstsq(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _tolerance(x: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """PyTorch's defaults: none absolute, relative the larger extent times epsilon unless there is an absolute
    one."""
    if rtol is None:
        usual = max(x.shape[-2:]) * float(np.finfo(array_dtype(x)).eps)
        if isinstance(atol, Tensor):
            rtol = apply(e.where, atol._detached() > 0, 0.0, apply(e.zeros_like, atol._detached()) + usual)
        else:
            rtol = np.where(np.asarray(atol) > 0, 0.0, usual)[()] if atol is not None else usual
    return 0.0 if atol is None else atol, rtol


@matrix_named_either_way
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above max(atol, rtol * largest). It has no gradient.

    Example:
        >>> matrix_rank(tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    a = matrices(A, "matrix_rank")._detached()
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = _tolerance(a, atol, rtol)
    return _count_above(abs(eigvalsh(a)) if hermitian else svdvals(a), atol, rtol)


def _count_above(values: Tensor, atol: Any, rtol: Any) -> Tensor:
    """How many singular values of each matrix are above max(atol, rtol * largest)."""
    if not values.shape[-1]:
        return filled(tuple(values.shape[:-1]), 0, np.dtype("int64"))
    given = (as_dtype(one, array_dtype(values)) if isinstance(one, Tensor) else one for one in (atol, rtol))
    least, share = given
    bound = apply(e.maximum, share * amax(values, -1), least if isinstance(least, Tensor) else float(least))
    return sum_of(values > bound.unsqueeze(-1), -1)


@matrix_named_either_way
def linalg_cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number: the largest over the smallest singular value, or norm(A, p) norm(inv(A), p).

    Of empty matrices it is 0, of singular ones inf.

    Raises:
        ArgumentError: another p. ShapeError: no matrices; none that are square, for a p other than 2 and -2.
        LinearAlgebraError: for a p of 2, -2 or "nuc" nan or inf, as for `linalg.svd`.

    Example:
        >>> cond(tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor(2.)
    """
    a = matrices(A, "cond")
    if p is not None and p not in (*ORDERS, "fro", "nuc"):
        fail(
            ArgumentError,
            f"linalg.cond: p={p!r} is no order of matrices' norms; expected 1, -1, 2, -2, inf, -inf, 'fro' "
            "or 'nuc'.",
        )
    if isinstance(p, str):
        square(a, "cond")
    if not a.numel():
        return filled(tuple(a.shape[:-2]), 0, real_dtype(array_dtype(a)))
    if p in (None, 2, -2):
        values = svdvals(a)
        largest, smallest = amax(values, -1), amin(values, -1)
        return smallest / largest if p == -2 else largest / smallest
    inverses, info = regular_inverse(square(a, "cond"))
    norms = matrix_norm(a, p)
    return apply(e.where, info.ne(0), norms * math.inf, norms * matrix_norm(inverses, p))


@matrix_named_either_way
def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol * largest) count as 0.

    Its gradient is that of matrices of the same rank, if nothing but rounding counts as 0; else it is that of
    the pseudo-inverse of the part of the matrix which has the larger singular values.

    Raises:
        LinearAlgebraError: the matrix holds nan or inf, as for `linalg.svd`.

    Example:
        >>> pinv(tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    a = matrices(A, "pinv")
    atol, rtol = _tolerance(a, atol, rcond if rtol is None else rtol)
    if _is_rounding(a, atol, rtol) or not a.numel():
        return apply(matrix_functions.pinv, a, tolerance=float(rtol), hermitian=hermitian)
    bounds = stack([_of_each_matrix(one, a) for one in (atol, rtol)], -1).unsqueeze(-2)
    whole = symmetric(a) if hermitian else a
    if d.is_number(a) and not a.is_complex():
        size = apply(e.absolute, whole._detached())
        kept = size > apply(e.maximum, part(bounds, a.ndim - 1, 0, 1), part(bounds, a.ndim - 1, 1, 2) * size)
        return apply(e.where, kept, 1.0 / apply(e.where, kept, whole, 1.0), 0.0)
    is_wide = a.shape[-2] < a.shape[-1]
    tall, given = (adjoint(one) if is_wide else one for one in (a, whole._detached()))
    found = apply(matrix_functions.pinv_of_parts, tall, apply(d.svd, given, adjoint=is_wide), bounds)
    return adjoint(found) if is_wide else found


def _is_rounding(a: Tensor, atol: Any, rtol: Any) -> bool:
    """Whether no more than what rounding makes of a singular value of 0 counts as such, of any matrix."""
    if isinstance(atol, Tensor) or isinstance(rtol, Tensor) or np.ndim(rtol) or np.any(np.asarray(atol) > 0):
        return False
    return bool(rtol <= max(*a.shape[-2:], LEAST_ROUNDINGS) * np.finfo(array_dtype(a)).eps)


def _of_each_matrix(tolerance: Any, a: Tensor) -> Tensor:
    """A number for each matrix of a batch."""
    given = tolerance if isinstance(tolerance, Tensor) else wrap(np.asarray(tolerance))
    return expand_to(as_dtype(given._detached(), real_dtype(array_dtype(a))), tuple(a.shape[:-2]))


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`.

    Example:
        >>> pinverse(tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return pinv(input, rtol=rcond)


@matrix_named_either_way
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The X that makes the norm of A X - B smallest, and of several the smallest X.

    Example:
        >>> lstsq(tensor([[1.0], [1.0]]), tensor([[1.0], [3.0]])).solution
        tensor([[2.]])
    """
    a, b = promoted("lstsq", matrices(A, "lstsq"), floating(B, "lstsq", "B"), broadcast=False)
    is_vector = b.ndim == a.ndim - 1 and tuple(b.shape) == tuple(a.shape[:-1])
    sides = b.unsqueeze(-1) if is_vector else b
    if sides.ndim < 2 or sides.shape[-2] != a.shape[-2]:
        fail(
            ShapeError,
            f"linalg.lstsq: input.size(-2) should match other.size(-2), found {tuple(a.shape)} and "
            f"{tuple(b.shape)}",
        )
    found, values, rank = least_squares(a, sides, rcond)
    rows, columns = a.shape[-2:]
    nothing = filled((0,), 0, real_dtype(array_dtype(a)))
    residuals = nothing
    if rows > columns and driver not in (None, "gelsy") and bool((rank == columns).all()):
        residuals = sum_of(abs(matmul(a, found) - sides) ** 2, -2)
    return Lstsq(
        reshape_to(found, tuple(found.shape[:-1])) if is_vector else found,
        residuals,
        filled((0,), 0, np.dtype("int64")) if driver == "gels" else rank,
        values._detached() if driver in ("gelsd", "gelss") else nothing,
    )


def least_squares(a: Tensor, b: Tensor, rcond: float | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The least X among those that make the norm of a X - b smallest, the singular values of a, and its rank.

    By the pseudo-inverse where a gradient is coming, which needs it, and in code for few columns; else by
    LAPACK's gelsd.
    """
    cut = _tolerance(a, None, rcond)[1]
    rows, columns = a.shape[-2:]
    batch, sides = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2])), b.shape[-1]
    b = expand_to(b, (*batch, *b.shape[-2:]))
    is_differentiated = is_recording() and (a.requires_grad or b.requires_grad)
    is_small = min(rows, columns) <= (SMALL if is_tracing() and not a.is_complex() else 0)
    if is_differentiated or is_small:
        values = linalg_svd(a, False).S if a.numel() else svdvals(a)  # of the same decomposition as pinv
        if not _is_rounding(a, 0.0, cut):
            return matmul(pinv(a, rtol=cut), b), values, _count_above(values._detached(), 0.0, cut)
        inverse = expand_to(pinv(a._detached(), rtol=cut), (*batch, columns, rows))
        found = apply(matrix_functions.pinv_product, expand_to(a, (*batch, rows, columns)), inverse, b)
        return found, values, _count_above(values._detached(), 0.0, cut)
    both = apply(equations.least_squares, expand_to(a, (*batch, rows, columns)), b, rcond=float(cut))
    first, last = columns * sides, both.shape[-1] - 1
    solution = reshape_to(part(both, both.ndim - 1, 0, first), (*batch, columns, sides))
    values, rank = real(part(both, both.ndim - 1, first, last)), real(selected(both, both.ndim - 1, last))
    return solution, values, as_dtype(rank, np.dtype("int64"))
