"""Singular values and principal components of matrices of low rank, by random projections.

Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from ....tracer.errors import ArgumentError
from ...tensors.sampling import randn
from ...values.tensor import Tensor
from ..common import fail
from ..reductions.reduction import mean
from ..shapes.movement import adjoint, expand_to
from .contraction import matmul
from .decompositions import SvdOld, linalg_qr, linalg_svd, matrices

__all__ = ["pca_lowrank", "svd_lowrank"]


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> SvdOld:
    """U, S and V of a matrix of a rank of at most q, which U diag(S) V' nearly is.

    Args:
        niter: how often the projection is refined, for singular values that fall slowly.
        M: what is subtracted from A.

    Example:
        >>> svd_lowrank(tensor([[2.0, 0.0], [0.0, 0.0]]), q=1).S
        tensor([2.])
    """
    a, count = matrices(A, "svd_lowrank"), 6 if q is None else int(q)
    x = a if M is None else a - expand_to(M, tuple(a.shape))
    wide = a.shape[-2] < a.shape[-1]
    x = adjoint(x) if wide else x
    basis = linalg_qr(matmul(x, randn(x.shape[-1], count, dtype=x.dtype))).Q
    for _ in range(2 if niter is None else niter):
        basis = linalg_qr(matmul(x, linalg_qr(matmul(adjoint(x), basis)).Q)).Q
    left, values, right = linalg_svd(matmul(adjoint(basis), x), full_matrices=False)
    left, right = matmul(basis, left), adjoint(right)
    return SvdOld(right, values, left) if wide else SvdOld(left, values, right)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SvdOld:
    """`svd_lowrank` of q components, at most 6 unless given, of the columns less their means with `center`.

    Raises:
        ArgumentError: q is not between 0 and the smaller extent.

    Example:
        >>> pca_lowrank(tensor([[2.0, 0.0], [0.0, 0.0]]), q=1, center=False).S
        tensor([2.])
    """
    a = matrices(A, "pca_lowrank")
    most = min(a.shape[-2:])
    count = min(6, most) if q is None else q
    if not 0 <= count <= most:
        fail(ArgumentError, f"pca_lowrank: q(={count}) must be between 0 and min(m, n)={most}.")
    return svd_lowrank(a, count, niter, mean(a, -2, True) if center else None)
