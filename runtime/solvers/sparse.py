"""Equations with sparse matrices, solved by SuperLU: differentiable by the values and the right-hand side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, LinearAlgebraError, ShapeError
from ...tracer.trace import is_tracing
from ..autograd.custom_rules import custom_vjp
from ..autograd.foreign_calls import call_python
from ..functions.common import fail
from ..functions.structures import spec_of_tensor
from ..tape.apply import of_kind, standing_for
from ..values.tensor import make
from ..values.value_kinds import Auxiliary, plain


class Pattern:
    """Where the values of a square matrix stand that is stored by rows (CSR).

    Args:
        indices: the columns of the values; indptr: where each row begins among them, and the last ends.
    """

    def __init__(self, indices: Any, indptr: Any) -> None:
        self.columns = np.asarray(indices)
        self.starts = np.asarray(indptr)
        self.size = len(self.starts) - 1
        self.rows = np.repeat(np.arange(self.size), np.diff(self.starts))

    def factors(self, data: np.ndarray, function: str) -> Any:
        """SuperLU's factors.

        Raises:
            LinearAlgebraError: the matrix is singular.
        """
        from scipy.sparse import csc_matrix, csr_matrix  # not at start
        from scipy.sparse.linalg import splu as factorised

        shape = (self.size, self.size)
        try:
            return factorised(csc_matrix(csr_matrix((data, self.columns, self.starts), shape)))
        except RuntimeError as error:
            raise LinearAlgebraError(
                f"{function}: the sparse matrix of shape {shape} is singular, so the equations have no "
                "single solution. Look for rows or columns of zeros, or add what makes it regular."
            ) from error


def spsolve(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """The x with A x = b for a sparse square matrix A, stored by rows (CSR).

    Args:
        data: the values of the matrix, of shape (count,); they have gradients.
        indices, indptr: their columns, and where each row begins and the last ends, as in SciPy's csr_matrix:
            arrays of integers that are the same in all calls.
        b: the right-hand side, of shape (n,), or (n, k) for several.

    Raises:
        LinearAlgebraError: the matrix is singular. ShapeError: the arrays do not fit.

    Example:
        >>> spsolve(np.array([2.0, 4.0]), [0, 1], [0, 1, 2], np.array([2.0, 2.0]))
        array([1. , 0.5])
    """
    pattern = Pattern(indices, indptr)
    _require_rows("spsolve", pattern.size, b)
    if np.shape(data) != pattern.columns.shape:
        fail(
            ShapeError,
            f"spsolve: data has shape {tuple(np.shape(data))} and indices {pattern.columns.shape}; there "
            "must be a column for each value.",
        )
    return _solved(pattern, False, data, b)


def _require_rows(function: str, size: int, b: Any) -> None:
    shape = tuple(np.shape(b))
    if len(shape) not in (1, 2) or shape[0] != size:
        fail(
            ShapeError,
            f"{function}: b has shape {shape} for {size} equations; expected ({size},) or ({size}, k).",
        )


def _spsolve(pattern: Pattern, transposed: bool, data: Any, b: Any) -> Any:
    def run(data: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        return [pattern.factors(data, "spsolve").solve(b, "T" if transposed else "N")]

    return _by_python(run, pattern, transposed, data, b)


def _by_python(run: Any, owner: Any, key: Any, *values: Any) -> Any:
    """What a function of arrays gives that is like the last of them."""
    given = [standing_for(one) for one in values]
    if is_tracing():
        (found,) = call_python(owner, key, "spsolve", run, given, [spec_of_tensor(given[-1])])
    else:
        found = make(np.asarray(run(*(one.payload for one in given))[0]), Auxiliary)
    return plain(of_kind(found, type(given[-1])))


_solved = custom_vjp(_spsolve, nondiff_argnums=(0, 1))


def _pulled(pattern: Pattern, transposed: bool, residuals: Any, cotangent: Any) -> tuple[Any, Any]:
    data, solution = residuals
    adjoint = _solved(pattern, not transposed, data, cotangent)
    left, right = (solution, adjoint) if transposed else (adjoint, solution)
    products = left[pattern.rows] * right[pattern.columns]
    return -(products if products.ndim == 1 else products.sum(-1)), adjoint


def _with_residuals(pattern: Pattern, transposed: bool, data: Any, b: Any) -> tuple[Any, Any]:
    solution = _solved(pattern, transposed, data, b)
    return solution, (data, solution)


_solved.defvjp(_with_residuals, _pulled)


class SparseFactor:
    """A sparse matrix, factorised once: see `splu`."""

    def __init__(self, matrix: Any) -> None:
        csr = matrix.tocsr()
        self.shape: tuple[int, int] = csr.shape
        if self.shape[0] != self.shape[1]:
            fail(ShapeError, f"splu: the matrix has shape {self.shape}; expected a square one.")
        self._factors = Pattern(csr.indices, csr.indptr).factors(csr.data, "splu")

    def solve(self, b: Any, trans: str = "N") -> Any:
        """The x with A x = b, or with the transposed matrix for "T" and "H"; b has a gradient.

        Raises:
            ShapeError: b has another number of rows. ArgumentError: another `trans`.
        """
        _require_rows("splu", self.shape[0], b)
        if trans not in ("N", "T", "H"):
            fail(ArgumentError, f"splu: trans={trans!r} is not known. Give 'N', 'T' or 'H'.")
        return _factored(self, trans != "N", b)

    def run(self, transposed: bool, b: np.ndarray) -> list[np.ndarray]:
        return [self._factors.solve(b, "T" if transposed else "N")]


def splu(A: Any) -> SparseFactor:
    """The factors of a sparse matrix that is the same in all calls, for many right-hand sides.

    Args:
        A: SciPy's sparse matrix or array.

    Returns:
        What has `solve(b, trans)`, whose `b` has gradients of all orders: the factors serve them as well.

    Raises:
        LinearAlgebraError: the matrix is singular. ShapeError: it is not square.

    Example:
        >>> import scipy.sparse
        >>> splu(scipy.sparse.eye_array(2)).solve(np.array([1.0, 2.0]))
        array([1., 2.])
    """
    return SparseFactor(A)


_factored = custom_vjp(
    lambda factor, transposed, b: _by_python(lambda b: factor.run(transposed, b), factor, transposed, b),
    nondiff_argnums=(0, 1),
)
_factored.defvjp(
    lambda factor, transposed, b: (_factored(factor, transposed, b), None),
    lambda factor, transposed, residuals, g: (_factored(factor, not transposed, g),),
)
