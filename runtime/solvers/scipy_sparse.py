"""SciPy's names of sparse and iterative linear solvers, in code that is traced or differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError
from ..functions.common import fail
from ..functions.stopping import stop_gradient
from ..numpy_api.values import of_arrays
from ..scipy_api.scipy_functions import SOLVERS
from ..scipy_api.sparse_products import Elements, Valued, parts_of
from ..tensors.conversion import joined, tensor_of
from ..values.foreign import is_sparse
from .exponential_products import expm_multiply
from .linear import linear_solve
from .scipy_calls import refuse
from .sparse import SparseFactor, splu
from .sparse import spsolve as solved

Function = Callable[..., Any]


def product_with(matrix: Any) -> Function:
    """The product of a matrix with a vector: of an array, a sparse matrix, or SciPy's `LinearOperator`."""
    real, factor = parts_of(matrix)
    if isinstance(matrix, Valued):
        return lambda x: matrix @ x
    if hasattr(real, "_matvec"):
        return lambda x: real._matvec(x)
    if not is_sparse(real):
        return lambda x: matrix @ x
    elements = Elements.of(real.tocsr())
    return lambda x: of_arrays(elements.product(tensor_of(x))) * (1.0 if factor is None else factor)


def _iterative(name: str) -> Function:
    def solve(
        real: Function, A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0,
        maxiter: int | None = None, M: Any = None, **options: Any,
    ) -> tuple[Any, int]:  # fmt: skip
        refuse(f"scipy.sparse.linalg.{name}", options)
        shape, b = A.shape if isinstance(A, Valued) else tuple(np.shape(parts_of(A)[0])), joined(b)
        if len(shape) != 2 or shape != (np.size(b),) * 2:
            fail(
                ShapeError,
                f"scipy.sparse.linalg.{name}: A has shape {shape} and b {tuple(np.shape(b))}; expected a "
                "square matrix with a row for each element of b.",
            )
        product = product_with(A)
        right = b.reshape(-1) if np.ndim(b) > 1 else b
        start = None if x0 is None else stop_gradient(x0).reshape(-1)
        right = right if start is None else right - product(start)
        inverse = None if M is None else product_with(M)
        x = linear_solve(product, right, name, tol=rtol, atol=atol, maxiter=maxiter, M=inverse)
        return (x if start is None else start + x), 0

    return solve


def spsolve(real: Function, A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """The factors are made once, where this is traced, unless the matrix holds traced values."""
    if isinstance(A, Valued):
        return solved(*A.by_rows(), b)
    matrix, factor = parts_of(A)
    return _factors("spsolve", matrix).solve(b if factor is None else b / factor)


def norm(real: Function, x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Of the dense matrix, but for Frobenius's, where the values of a matrix are traced."""
    matrix, factor = parts_of(x)
    if isinstance(x, Valued):
        is_frobenius = ord in (None, "fro", "f") and (axis is None or isinstance(axis, tuple))
        values = of_arrays(x.by_rows()[0]) if is_frobenius else x.toarray()
        return np.linalg.norm(values) if is_frobenius else np.linalg.norm(values, ord, axis)
    return real(matrix, ord, axis) * (1.0 if factor is None else abs(factor))


def factorized(real: Function, A: Any) -> Function:
    return _factors("factorized", A).solve


def _splu(real: Function, A: Any, *given: Any, **options: Any) -> SparseFactor:
    return _factors("splu", A)


def _factors(name: str, matrix: Any) -> SparseFactor:
    plain, factor = parts_of(matrix)
    if not is_sparse(plain) or factor is not None:
        fail(
            ArgumentError,
            f"scipy.sparse.linalg.{name}: A is a {type(plain).__name__}; expected a sparse matrix of plain "
            "numbers. Where its values are traced, give them to pullback.spsolve(data, indices, indptr, b).",
        )
    return splu(plain)


SOLVERS["scipy.sparse.linalg"] = {
    **{name: _iterative(name) for name in ("cg", "bicgstab", "gmres")},
    "spsolve": spsolve, "splu": _splu, "factorized": factorized, "norm": norm,
    "expm_multiply": expm_multiply,
}  # fmt: skip
