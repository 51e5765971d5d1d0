"""Factors as LAPACK leaves them, of general matrices by reflections, of symmetric ones by L D L'.

They have no derivatives, in PyTorch neither. SciPy calls LAPACK, compiled by a call of Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....tracer.errors import GradientError, LinearAlgebraError
from ....tracer.ops import lapack_factors as factors
from ....tracer.trace import is_tracing
from ...solvers.requirements import Failure, require
from ...tape.apply import apply
from ...values.modes import is_recording
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, fail, filled, matrix_named_either_way, promoted
from ..elements.complex_numbers import real
from ..shapes.joining import cat
from ..shapes.movement import expand_to
from ..shapes.parts import part, selected
from .decompositions import matrices
from .elimination import INT32
from .linalg import require_pivots, square

__all__ = ["geqrf"]


class Geqrf(NamedTuple):
    """What `geqrf` returns."""

    a: Tensor
    tau: Tensor


class Ldl(NamedTuple):
    """What `ldl_factor` returns."""

    LD: Tensor
    pivots: Tensor


class LdlEx(NamedTuple):
    """What `ldl_factor_ex` returns."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _undifferentiated(x: Tensor, function: str, instead: str) -> Tensor:
    """What has no gradient."""
    if x.requires_grad and is_recording():
        fail(GradientError, f"{function}() has no derivative; {instead}, or detach() its argument.")
    return x._detached()


def geqrf(input: Tensor) -> Geqrf:
    """R above the diagonal of a matrix, the vectors of reflections below, and their factors: see `ormqr`.

    Raises:
        GradientError: the input requires grad; `linalg.qr` has a derivative.

    Example:
        >>> geqrf(tensor([[1.0], [0.0]])).tau
        tensor([0.])
    """
    a = _undifferentiated(matrices(input, "geqrf"), "geqrf", "use linalg.qr")
    rows, columns = a.shape[-2:]
    found = apply(factors.reflections, a)
    taus = selected(found, a.ndim - 2, rows)
    return Geqrf(part(found, a.ndim - 2, 0, rows), part(taus, a.ndim - 2, 0, min(rows, columns)))


@matrix_named_either_way
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LdlEx:
    """L and D of a symmetric or, with `hermitian`, Hermitian matrix in one, the rows that were exchanged, and
    for each matrix the first place of D's diagonal with a 0, counted from 1, or 0.

    Of each matrix the lower triangle is read.

    Raises:
        GradientError: the input requires grad. LinearAlgebraError: with `check_errors` there is one.

    Example:
        >>> ldl_factor_ex(tensor([[2.0, 0.0], [0.0, 4.0]])).info
        tensor(0, dtype=torch.int32)
    """
    name, instead = "linalg.ldl_factor", "use linalg.cholesky or linalg.lu"
    a = _undifferentiated(square(A, "ldl_factor"), name, instead)
    size, rows = a.shape[-1], a.ndim - 2
    found = apply(factors.symmetric_factors, a, hermitian=bool(hermitian))
    both = part(found, rows, 0, size)
    pivots = as_dtype(real(selected(found, rows, size)), INT32)
    last = selected(found, rows, size + 1)
    info = as_dtype(real(selected(last, rows, 0)), INT32) if size else filled(tuple(a.shape[:-2]), 0, INT32)
    if check_errors and info.numel():
        failure = Failure("linalg.ldl_factor: D is singular: its diagonal has 0 at {0}.", LinearAlgebraError)
        nothing = require(filled((), 0, array_dtype(both)), info.eq(0).all(), failure, info.max())
        both = both + nothing if is_tracing() else both
    return LdlEx(both, pivots, info)


@matrix_named_either_way
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> Ldl:
    """`ldl_factor_ex` without the last.

    Example:
        >>> ldl_factor(tensor([[2.0, 0.0], [0.0, 4.0]])).LD
        tensor([[2., 0.],
                [0., 4.]])
    """
    both, pivots, _ = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return Ldl(both, pivots)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The X with A X = B for what `ldl_factor` returns for A.

    Raises:
        GradientError: LD or B requires grad; `linalg.solve` has a derivative.

    Example:
        >>> ldl_solve(*ldl_factor(tensor([[2.0]])), tensor([[4.0]]))
        tensor([[2.]])
    """
    name, instead = "linalg.ldl_solve", "use linalg.solve"
    both, sides = promoted(name, square(LD, "ldl_solve"), matrices(B, "ldl_solve"), broadcast=False)
    require_pivots(pivots, both, name)
    both, sides = (_undifferentiated(one, name, instead) for one in (both, sides))
    batch = np.broadcast_shapes(tuple(both.shape[:-2]), tuple(sides.shape[:-2]))
    exchanges = as_dtype(pivots, array_dtype(both)).unsqueeze(-2)
    given = cat([both, expand_to(exchanges, (*both.shape[:-2], *exchanges.shape[-2:]))], -2)
    given, sides = (expand_to(one, (*batch, *one.shape[-2:])) for one in (given, sides))
    return apply(factors.symmetric_solution, given, sides, hermitian=bool(hermitian))
