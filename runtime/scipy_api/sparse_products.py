"""`scipy.sparse` matrices beside Tensors: constants in products, with gradients by the transposed matrix, and
those whose values are Tensors.

A product reads of each row as many elements as two average rows have, in a table of their columns, so that
rows are loops like any others; what long rows have besides is added where it belongs (Bell and Garland, SC
2009: the hybrid format).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ShapeError, UnsupportedError
from ...tracer.forks import kept
from ...tracer.records import record
from ...tracer.trace import is_tracing
from ..autograd.custom_rules import custom_vjp
from ..functions import PUBLIC, declared
from ..functions.common import as_dtype, fail, filled
from ..numpy_api.values import known, of_arrays
from ..tape.apply import of_kind
from ..tensors.conversion import array_dtype, holds_tensor, joined, tensor_of
from ..values.foreign import is_sparse
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor
from .scipy_functions import SOLVERS

ELEMENTS_READ = 2
"""How many elements of each row the table has, in average rows."""


@record(frozen=True, eq=False)
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

    @kept
    def _by_rows(self) -> Elements:
        return Elements.of(self._real.tocsr())

    @kept
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
            return stood_for(found)

        def call(*arguments: Any, **options: Any) -> Any:
            if any(map(holds_tensor, (*arguments, *options.values()))):
                self._refuse(name)
            return stood_for(found(*map(plain_matrix, arguments), **options))

        return call

    def _refuse(self, name: str) -> Any:
        kind = type(self._real)
        fail(
            UnsupportedError,
            f"scipy.sparse.{kind.__name__}.{name}: a sparse matrix beside a Tensor is a constant in products "
            "(A @ x, x @ A, A.dot(x), A.T @ x), which may be multiplied with a number. Use its .toarray().",
        )

    def _valued(self) -> Valued:
        """The same as a matrix whose values are traced."""
        real = self._real.tocoo()
        values = tensor_of(real.data)
        values = values if self._factor is None else values * self._factor
        return Valued(values, real.row, real.col, real.shape)

    # --- products -----------------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        if not holds_tensor(other) and self._factor is None:
            return stood_for(self._real @ plain_matrix(other))
        return self._product(other, False)

    dot = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        if not holds_tensor(other) and self._factor is None:
            return stood_for(plain_matrix(other) @ self._real)
        x = tensor_of(other)
        return self._product(x.T if x.ndim == 2 else x, True).T

    def _product(self, other: Any, transposed: bool) -> Any:
        x = tensor_of(other)
        rows, columns = self._real.shape[::-1] if transposed else self._real.shape
        if x.ndim not in (1, 2) or x.shape[0] != columns:
            shapes = f"{(rows, columns)} and {tuple(x.shape)}"
            fail(ShapeError, f"a product with a scipy.sparse matrix: the shapes {shapes} do not fit.")
        dtype = np.result_type(self._real.dtype, array_dtype(x))
        x = of_kind(as_dtype(x, dtype), NumpyTensor)
        # In a trace sums at positions serve: a rule of its own does not survive in closures of solvers.
        found = self._elements(transposed).product(x) if is_tracing() else _multiplied(self, transposed, x)
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
            return stood_for(self._real * plain_matrix(other))
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

    def __abs__(self) -> Any:
        return Sparse(abs(self._real), None if self._factor is None else abs(self._factor))

    __hash__ = object.__hash__


class Valued:
    """What stands for a sparse matrix whose values are traced: their places are plain numbers.

    Places may come more than once; their values add up.
    """

    def __init__(self, values: Tensor, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> None:
        self._values, self.shape, self.ndim = values, shape, 2
        self._rows, self._columns = rows.astype(np.int64), columns.astype(np.int64)

    @property
    def T(self) -> Valued:
        return Valued(self._values, self._columns, self._rows, self.shape[::-1])

    def transpose(self) -> Valued:
        return self.T

    @property
    def data(self) -> Any:
        return of_arrays(self._values)

    @data.setter
    def data(self, values: Any) -> None:
        self._refuse("setting data")

    def _same(self) -> Valued:
        return self

    tocsr = tocsc = tocoo = _same

    def __matmul__(self, other: Any) -> Any:
        x = tensor_of(other)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            shapes = f"{self.shape} and {tuple(x.shape)}"
            fail(ShapeError, f"a product with a scipy.sparse matrix: the shapes {shapes} do not fit.")
        values = self._values if x.ndim == 1 else self._values[:, None]
        return of_arrays(_summed(values * x[self._columns], self._rows, self.shape[0]))

    dot = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        x = tensor_of(other)
        return (self.T @ (x.T if x.ndim == 2 else x)).T

    def __mul__(self, other: Any) -> Any:
        if np.ndim(other):
            self._refuse("__mul__")
        return Valued(self._values * tensor_of(other), self._rows, self._columns, self.shape)

    __rmul__ = __mul__

    def __neg__(self) -> Valued:
        return self * -1.0

    def sum(self, axis: Any = None) -> Any:
        if axis is not None:
            self._refuse("a sum along an axis")
        return of_arrays(self._values.sum())

    def _plus(self, other: Any, sign: float) -> Valued:
        other = other._valued() if type(other) is Sparse else other
        if not isinstance(other, Valued):
            if not is_sparse(plain_matrix(other)):
                self._refuse("a sum with what is not sparse")
            real = plain_matrix(other).tocoo()
            other = Valued(tensor_of(real.data), real.row, real.col, real.shape)
        if other.shape != self.shape:
            fail(ShapeError, f"a sum of sparse matrices: the shapes {self.shape} and {other.shape} differ.")
        values = PUBLIC["cat"]([self._values, other._values * sign])
        rows, columns = np.append(self._rows, other._rows), np.append(self._columns, other._columns)
        return Valued(values, rows, columns, self.shape)

    def __add__(self, other: Any) -> Valued:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Valued:
        return self._plus(other, -1.0)

    def __rsub__(self, other: Any) -> Valued:
        return (-self)._plus(other, 1.0)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        self._refuse("an array")

    def toarray(self) -> Any:
        """The dense matrix."""
        places = self._rows * self.shape[1] + self._columns
        return of_arrays(_summed(self._values, places, self.shape[0] * self.shape[1]).reshape(*self.shape))

    def by_rows(self) -> tuple[Tensor, np.ndarray, np.ndarray]:
        """Values, columns and starts of rows (CSR), each place once."""
        keys = self._rows * self.shape[1] + self._columns
        kept, inverse = np.unique(keys, return_inverse=True)
        starts = np.searchsorted(kept, np.arange(self.shape[0] + 1) * self.shape[1])
        return _summed(self._values, inverse, len(kept)), kept % self.shape[1], starts

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_" or not hasattr(sys.modules["scipy.sparse"].csr_array, name):
            raise AttributeError(name)
        self._refuse(name)

    def _refuse(self, name: str) -> Any:
        fail(
            UnsupportedError,
            f"scipy.sparse: {name} of a sparse matrix whose values are traced is not supported; products "
            "(A @ x, x @ A, A.T), multiples, sums, toarray() and scipy.sparse.linalg.spsolve(A, b) are.",
        )


def _summed(terms: Tensor, places: np.ndarray, size: int) -> Tensor:
    """Terms added up where they belong."""
    nothing = filled((size, *terms.shape[1:]), 0, array_dtype(terms))
    return PUBLIC["index_add"](nothing, 0, tensor_of(places), terms)


def _of_values(real: type, arg1: Any, *given: Any, shape: Any = None, **options: Any) -> Any:
    """A sparse matrix as SciPy makes it: `Valued`, if its values are Tensors beside their places."""
    shape = given[0] if given else shape
    if not (isinstance(arg1, tuple) and len(arg1) > 1 and holds_tensor(arg1[0])) or given[1:] or options:
        arg1 = plain_matrix(arg1)
        return stood_for(real(arg1, *given, **options) if given else real(arg1, shape=shape, **options))
    values = tensor_of(arg1[0])
    places = known("places of a sparse matrix", *(arg1[1] if len(arg1) == 2 else arg1[1:]))
    ones = np.ones(tuple(values.shape))
    counted = real((ones, tuple(places)) if len(arg1) == 2 else (ones, *places), shape=shape)  # which checks
    if len(arg1) == 3:
        inner, starts = places
        outer = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        places = [outer, inner] if counted.format == "csr" else [inner, outer]
    rows, columns = places
    return Valued(values, rows, columns, counted.shape)


def _operator(
    real: type, shape: Any, matvec: Any = None, *given: Any, dtype: Any = None, **options: Any
) -> Any:  # fmt: skip
    """An operator as SciPy makes it, whose dtype is that of a product, which may be a Tensor."""
    if len(given) > 2:
        return real(shape, matvec, *given, **options)
    if dtype is None and matvec is not None:
        dtype = array_dtype(tensor_of(joined(matvec(np.ones(shape[-1])))))
    return real(shape, matvec, *given, dtype=dtype, **options)


CLASSES = {
    **{f"{name}_{kind}": _of_values for name in ("csr", "csc", "coo") for kind in ("array", "matrix")},
    "LinearOperator": _operator,
}
"""By SciPy's name of a class (real class, *arguments) -> what stands for its object."""


def _made(real: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a function that makes sparse matrices gives, of plain numbers and matrices."""
    if any(map(_holds_traced, (*arguments, *options.values()))):
        fail(
            UnsupportedError,
            f"scipy.sparse.{real.__name__} of traced values is not supported. Give values and their places "
            "to csr_array, csc_array or coo_array, or diagonals to diags_array; these may be added.",
        )
    return stood_for(real(*map(_plain, arguments), **{name: _plain(one) for name, one in options.items()}))


def _plain(value: Any) -> Any:
    """The same with SciPy's matrices, in lists as well."""
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else plain_matrix(value)


def _holds_traced(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds_traced, value))
    if type(value) is Sparse:
        return value._factor is not None
    return holds_tensor(value) or type(value) is Valued


def _of_diagonals(real: Callable[..., Any], diagonals: Any, *given: Any, **options: Any) -> Any:
    """A matrix by its diagonals: `Valued`, if there are Tensors among them."""
    if not _holds_traced(diagonals):
        return _made(real, diagonals, *given, **options)
    rows = list(diagonals) if isinstance(diagonals, list | tuple) else [diagonals]
    values = [tensor_of(joined(one)) for one in rows]
    ends = np.cumsum([0, *(one.numel() for one in values)])
    counted = [  # from 1 on, so that none of them is a zero
        np.arange(start + 1.0, start + 1.0 + one.numel()).reshape(tuple(one.shape))
        for start, one in zip(ends, values)
    ]
    is_several = isinstance(diagonals, list | tuple) and any(one.ndim for one in values)
    counts = counted if is_several else np.array(counted).reshape(-1) if len(rows) > 1 else counted[0]
    made = real(counts, *given, **options).tocoo()
    common = PUBLIC["cat"]([one.reshape(-1) for one in values])
    return Valued(common[made.data.astype(np.int64) - 1], made.row, made.col, made.shape)


SOLVERS["scipy.sparse"] = {
    **dict.fromkeys(("diags", "diags_array", "spdiags"), _of_diagonals),
    **dict.fromkeys((
        "eye", "eye_array", "identity", "kron", "kronsum", "block_diag", "bmat", "block_array", "hstack",
        "vstack", "tril", "triu",
    ), _made),
}  # fmt: skip
"""Of functions that make matrices, which take SciPy's function first, too."""


SUMS = ("__add__", "__radd__", "__sub__", "__rsub__")


def _of_two(name: str) -> Callable[[Sparse, Any], Any]:
    def method(self: Sparse, other: Any) -> Any:
        if name in SUMS and (_holds_traced(self) or _holds_traced(other)) and not holds_tensor(other):
            return getattr(self._valued(), name)(other)
        if self._factor is not None or holds_tensor(other):
            self._refuse(name)
        return stood_for(getattr(self._real, name)(plain_matrix(other)))

    return method


for _name in (
    "__add__", "__radd__", "__sub__", "__rsub__", "__pow__", "__getitem__",
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
):  # fmt: skip
    setattr(Sparse, _name, _of_two(_name))


def stood_for(value: Any) -> Any:
    """What stands for a sparse matrix of SciPy's; anything else as it is."""
    return Sparse(value) if is_sparse(value) else value


def plain_matrix(value: Any) -> Any:
    """SciPy's matrix, for what stands for it; anything else as it is."""
    return value._real if type(value) is Sparse and value._factor is None else value


def parts_of(matrix: Any) -> tuple[Any, Any]:
    """SciPy's matrix, and the factor that it is multiplied with or None, of what may stand for one."""
    return (matrix._real, matrix._factor) if type(matrix) is Sparse else (matrix, None)


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
