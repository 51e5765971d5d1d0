"""SciPy's names of sparse and iterative linear solvers, in code that is traced or differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError
from ..functions import PUBLIC
from ..functions.common import fail
from ..functions.stopping import stop_gradient
from ..scipy_api.scipy_functions import SOLVERS
from ..tape.apply import of_kind, standing_for
from ..tensors.conversion import joined
from ..tensors.creation import zeros
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary
from .linear import linear_solve
from .scipy_calls import refuse
from .sparse import SparseFactor, splu

Function = Callable[..., Any]


def _is_sparse(matrix: Any) -> bool:
    return type(matrix).__module__.startswith("scipy.sparse.") and hasattr(matrix, "tocsr")


def product_with(matrix: Any) -> Function:
    """The product of a matrix with a vector: of an array, a sparse matrix, or SciPy's `LinearOperator`."""
    if hasattr(matrix, "_matvec"):
        return lambda x: matrix._matvec(x)
    if not _is_sparse(matrix):
        return lambda x: matrix @ x
    entries = matrix.tocoo()
    rows, columns, values = (
        of_kind(standing_for(np.asarray(one)), Auxiliary)
        for one in (entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data)
    )

    def product(x: Any) -> Any:
        vector = of_kind(standing_for(x), Auxiliary)
        found = zeros(matrix.shape[0], dtype=vector.dtype)
        return PUBLIC["index_add"](found, 0, rows, values * vector[columns])

    return product


def _iterative(name: str) -> Function:
    def solve(
        real: Function, A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0,
        maxiter: int | None = None, M: Any = None, **options: Any,
    ) -> tuple[Any, int]:  # fmt: skip
        refuse(f"scipy.sparse.linalg.{name}", options)
        shape = tuple(np.shape(A))
        if len(shape) != 2 or shape != (np.size(b),) * 2:
            fail(
                ShapeError,
                f"scipy.sparse.linalg.{name}: A has shape {shape} and b {tuple(np.shape(b))}; expected a "
                "square matrix with a row for each element of b.",
            )
        product, right = product_with(A), joined(b)
        right = right.reshape(-1) if np.ndim(right) > 1 else right
        start = None if x0 is None else stop_gradient(x0).reshape(-1)
        right = right if start is None else right - product(start)
        inverse = None if M is None else product_with(M)
        x = linear_solve(product, right, name, tol=rtol, atol=atol, maxiter=maxiter, M=inverse)
        return (x if start is None else start + x), 0

    return solve


def spsolve(real: Function, A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """The factors are made once, where this is traced."""
    return _factors("spsolve", A).solve(b)


def factorized(real: Function, A: Any) -> Function:
    return _factors("factorized", A).solve


def _splu(real: Function, A: Any, *given: Any, **options: Any) -> SparseFactor:
    return _factors("splu", A)


def _factors(name: str, matrix: Any) -> SparseFactor:
    if not _is_sparse(matrix) or isinstance(matrix.tocsr().data, Tensor):
        fail(
            ArgumentError,
            f"scipy.sparse.linalg.{name}: A is a {type(matrix).__name__}; expected a sparse matrix of plain "
            "numbers. Where its values are traced, give them to pullback.spsolve(data, indices, indptr, b).",
        )
    return splu(matrix)


SOLVERS["scipy.sparse.linalg"] = {
    **{name: _iterative(name) for name in ("cg", "bicgstab", "gmres")},
    "spsolve": spsolve, "splu": _splu, "factorized": factorized,
}  # fmt: skip
