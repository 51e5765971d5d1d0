"""`scipy.sparse` matrices beside Tensors: constants in products, with gradients by the transposed matrix.

A product reads of each row as many elements as two average rows have, in a table of their columns, so that
rows are loops like any others; what long rows have besides is added where it belongs (Bell and Garland, SC
2009: the hybrid format).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tracer.errors import ShapeError, UnsupportedError
from ..autograd.custom_rules import custom_vjp
from ..functions import PUBLIC, declared
from ..functions.common import as_dtype, fail, filled
from ..numpy_api.values import of_arrays
from ..tape.apply import of_kind
from ..tensors.conversion import array_dtype, holds_tensor, tensor_of
from ..values.foreign import is_sparse
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor

ELEMENTS_READ = 2
"""How many elements of each row the table has, in average rows."""


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of a matrix: a table of rows, and what is left over.

    Attributes:
        columns, values, present: of shape (rows, elements): where they are, what, and whether there is any.
        rest: the rows, columns and values of others.
    """

    columns: np.ndarray
    values: np.ndarray
    present: np.ndarray
    rest: tuple[np.ndarray, np.ndarray, np.ndarray]

    @staticmethod
    def of(matrix: Any) -> Elements:
        """Those of SciPy's matrix stored by rows."""
        counts, size = np.diff(matrix.indptr), matrix.shape[0]
        rows = np.repeat(np.arange(size), counts)
        places = np.arange(len(rows)) - np.repeat(matrix.indptr[:-1], counts)
        width = min(int(counts.max(initial=0)), -(-ELEMENTS_READ * len(rows) // max(size, 1)))
        is_read = places < width
        at = rows[is_read], places[is_read]
        columns = np.zeros((size, width), np.int64)
        values = np.zeros((size, width), matrix.dtype)
        present = np.zeros((size, width), bool)
        columns[at], values[at], present[at] = matrix.indices[is_read], matrix.data[is_read], True
        left = ~is_read
        rest = rows[left], matrix.indices[left].astype(np.int64), matrix.data[left]
        return Elements(columns, values, present, rest)

    def product(self, x: Tensor) -> Tensor:
        """The sum over columns of values times rows of x, in the dtype of both."""
        if not self.columns.size:
            return filled((len(self.columns), *x.shape[1:]), 0, array_dtype(x))
        values, present = (one[..., None] if x.ndim == 2 else one for one in (self.values, self.present))
        terms = self._cast(values, x) * x[self.columns]
        if not self.present.all():
            terms = PUBLIC["where"](tensor_of(present), terms, 0.0)
        total = declared.sum(terms, 1)
        rows, columns, others = self.rest
        if not len(rows):
            return total
        further = self._cast(others[:, None] if x.ndim == 2 else others, x) * x[columns]
        return PUBLIC["index_add"](total, 0, tensor_of(rows), further)

    def _cast(self, values: np.ndarray, x: Tensor) -> Tensor:
        return tensor_of(values.astype(array_dtype(x)))


class Sparse:
    """What stands for a sparse matrix of SciPy's, times a factor that may be a Tensor.

    What is no product with a Tensor is SciPy's; sparse results are stood for in turn.
    """

    def __init__(self, real: Any, factor: Any = None) -> None:
        self._real, self._factor = real, factor

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._real)

    @functools.cached_property
    def _by_rows(self) -> Elements:
        return Elements.of(self._real.tocsr())

    @functools.cached_property
    def _by_columns(self) -> Elements:
        return Elements.of(self._real.T.tocsr())

    def _elements(self, transposed: bool) -> Elements:
        return self._by_columns if transposed else self._by_rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._factor is not None:
            self._refuse(name)
        return self._delegated(name, getattr(self._real, name))

    def _delegated(self, name: str, found: Any) -> Any:
        if not callable(found) or name[0] == "_":
            return _stood_for(found)

        def call(*arguments: Any, **options: Any) -> Any:
            if any(map(holds_tensor, (*arguments, *options.values()))):
                self._refuse(name)
            return _stood_for(found(*map(_plain, arguments), **options))

        return call

    def _refuse(self, name: str) -> Any:
        kind = type(self._real)
        fail(
            UnsupportedError,
            f"scipy.sparse.{kind.__name__}.{name}: a sparse matrix beside a Tensor is a constant in products "
            "(A @ x, x @ A, A.dot(x), A.T @ x), which may be multiplied with a number. Use its .toarray().",
        )

    # --- products -----------------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        if not holds_tensor(other) and self._factor is None:
            return _stood_for(self._real @ _plain(other))
        return self._product(other, False)

    dot = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        if not holds_tensor(other) and self._factor is None:
            return _stood_for(_plain(other) @ self._real)
        x = tensor_of(other)
        return self._product(x.T if x.ndim == 2 else x, True).T

    def _product(self, other: Any, transposed: bool) -> Any:
        x = tensor_of(other)
        rows, columns = self._real.shape[::-1] if transposed else self._real.shape
        if x.ndim not in (1, 2) or x.shape[0] != columns:
            shapes = f"{(rows, columns)} and {tuple(x.shape)}"
            fail(ShapeError, f"a product with a scipy.sparse matrix: the shapes {shapes} do not fit.")
        dtype = np.result_type(self._real.dtype, array_dtype(x))
        found = _multiplied(self, transposed, of_kind(as_dtype(x, dtype), NumpyTensor))
        return of_arrays(found if self._factor is None else found * self._factor)

    # --- arithmetic ---------------------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        return Sparse(self._real.T, self._factor)

    def transpose(self, *arguments: Any, **options: Any) -> Any:
        return Sparse(self._real.transpose(*arguments, **options), self._factor)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Tensor) and not other.ndim:
            return Sparse(self._real, other if self._factor is None else self._factor * other)
        if self._factor is None and not holds_tensor(other):
            return _stood_for(self._real * _plain(other))
        if isinstance(other, int | float | complex):
            return Sparse(self._real * other, self._factor)
        is_matrix = hasattr(type(self._real), "getrow")  # of which * is a product of matrices
        return self @ other if is_matrix else self._refuse("__mul__")

    def __rmul__(self, other: Any) -> Any:
        if np.ndim(other) == 0:
            return self * other
        return other @ self if hasattr(type(self._real), "getrow") else self._refuse("__rmul__")

    def __truediv__(self, other: Any) -> Any:
        return self * (1.0 / other) if np.ndim(other) == 0 else self._refuse("__truediv__")

    def __neg__(self) -> Any:
        return Sparse(-self._real, self._factor)


def _of_two(name: str) -> Callable[[Sparse, Any], Any]:
    def method(self: Sparse, other: Any) -> Any:
        if self._factor is not None or holds_tensor(other):
            self._refuse(name)
        return _stood_for(getattr(self._real, name)(_plain(other)))

    return method


for _name in ("__add__", "__radd__", "__sub__", "__rsub__", "__pow__", "__getitem__"):
    setattr(Sparse, _name, _of_two(_name))


def _stood_for(value: Any) -> Any:
    return Sparse(value) if is_sparse(value) else value


def _plain(value: Any) -> Any:
    return value._real if type(value) is Sparse and value._factor is None else value


def _product_of(matrix: Sparse, transposed: bool, x: Any) -> Any:
    return of_arrays(matrix._elements(transposed).product(tensor_of(x)))


_multiplied = custom_vjp(_product_of, nondiff_argnums=(0, 1))
_multiplied.defvjp(
    lambda matrix, transposed, x: (_multiplied(matrix, transposed, x), None),
    lambda matrix, transposed, residuals, g: (_adjoint(matrix, transposed, g),),
)


def _adjoint(matrix: Sparse, transposed: bool, g: Any) -> Any:
    """The product of a cotangent with the conjugate of the transposed."""
    if matrix._real.dtype.kind != "c":
        return _multiplied(matrix, not transposed, g)
    return np.conj(_multiplied(matrix, not transposed, np.conj(g)))
