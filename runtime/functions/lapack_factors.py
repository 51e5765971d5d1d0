"""Factors as LAPACK leaves them, of general matrices by reflections, of symmetric ones by L D L'.

They have no derivatives, in PyTorch neither. SciPy calls LAPACK, so compiled functions run uncompiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...tracer.errors import GradientError, LinearAlgebraError
from ...tracer.ops.lazy import scipy_linalg
from ..tape.apply import wrap
from ..values.modes import is_recording
from ..values.tensor import Tensor
from .common import fail, matrix_named_either_way, promoted
from .decompositions import matrices
from .linalg import square
from .selection import values_of

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


def _values(x: Tensor, function: str, instead: str) -> np.ndarray:
    """The numbers of what has no gradient."""
    if x.requires_grad and is_recording():
        fail(GradientError, f"{function}() has no derivative; {instead}, or detach() its argument.")
    return values_of(x, function)


def _routine(name: str, a: np.ndarray) -> Any:
    return scipy_linalg().get_lapack_funcs(name, (a,))


def geqrf(input: Tensor) -> Geqrf:
    """R above the diagonal of a matrix, the vectors of reflections below, and their factors: see `ormqr`.

    Raises:
        GradientError: the input requires grad; `linalg.qr` has a derivative.

    Example:
        >>> geqrf(tensor([[1.0], [0.0]])).tau
        tensor([0.])
    """
    a = _values(matrices(input, "geqrf"), "geqrf", "use linalg.qr")
    factors, taus = np.array(a), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    for place in np.ndindex(a.shape[:-2]) if a.size else ():
        factors[place], taus[place], *_ = _routine("geqrf", a)(a[place])
    return Geqrf(wrap(factors), wrap(taus))


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
    a = _values(square(A, "ldl_factor"), "linalg.ldl_factor", "use linalg.cholesky or linalg.lu")
    both, pivots = np.tril(a), np.zeros(a.shape[:-1], np.int32)
    info = np.zeros(a.shape[:-2], np.int32)
    for place in np.ndindex(a.shape[:-2]) if a.size else ():
        found, pivots[place], info[place] = _routine(_of_symmetric("trf", a, hermitian), a)(a[place], lower=1)
        both[place] = np.tril(found)
    if check_errors and info.any():
        fail(LinearAlgebraError, f"linalg.ldl_factor: D is singular: its diagonal has 0 at {info.max()}.")
    return LdlEx(wrap(both), wrap(pivots), wrap(info))


def _of_symmetric(name: str, a: np.ndarray, hermitian: bool) -> str:
    return f"{'he' if hermitian and a.dtype.kind == 'c' else 'sy'}{name}"


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
    a, b = _values(both, name, instead), _values(sides, name, instead)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, exchanges, b = (
        np.broadcast_to(one, (*batch, *one.shape[rank:]))
        for one, rank in ((a, -2), (values_of(pivots, name), -1), (b, -2))
    )
    found = np.zeros(b.shape, b.dtype)
    for place in np.ndindex(batch) if b.size else ():
        solve = _routine(_of_symmetric("trs", a, hermitian), a)
        found[place], _ = solve(a[place], exchanges[place], b[place], lower=1)
    return wrap(found)
