"""What is known of an array before it has a value: its shape and its dtype."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from .dims import equated, equated_shapes
from .errors import DimensionError, DTypeError, ShapeError
from .records import record

FLOATS = tuple(np.dtype(name) for name in ("float16", "float32", "float64"))
COMPLEX = tuple(np.dtype(name) for name in ("complex64", "complex128"))
SIGNED = tuple(np.dtype(name) for name in ("int8", "int16", "int32", "int64"))
UNSIGNED = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
BOOL = np.dtype("bool")
INT64 = np.dtype("int64")
COMPILED = frozenset((*FLOATS, *SIGNED, *UNSIGNED, BOOL))
"""What compiled code computes with."""
SUPPORTED = COMPILED | {*COMPLEX}
CONTINUOUS = "fc"
"""The kinds of dtypes whose values have derivatives."""
_PARTS: dict[np.dtype, np.dtype] = dict(zip(COMPLEX, FLOATS[1:]))
_WHOLES: dict[np.dtype, np.dtype] = dict(zip(FLOATS, (COMPLEX[0], *COMPLEX)))


def real_dtype(dtype: np.dtype) -> np.dtype:
    """That of the real and the imaginary part; a real one itself."""
    return _PARTS.get(dtype, dtype)


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """That of numbers with such parts; a complex one itself, complex128 for integers."""
    return dtype if dtype.kind == "c" else _WHOLES.get(dtype, np.dtype("complex128"))


@record(frozen=True, slots=True)
class Spec:
    """Shape and dtype of an array; prints as `float32[3, 4]`."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is Spec and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(map(int, self.shape))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_continuous(self) -> bool:
        """Whether values have derivatives."""
        return self.dtype.kind in CONTINUOUS

    def with_shape(self, shape: tuple[int, ...]) -> Spec:
        return Spec(shape, self.dtype)

    def with_dtype(self, dtype: np.dtype) -> Spec:
        return Spec(self.shape, dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def spec_of(array: np.ndarray) -> Spec:
    return Spec(array.shape, array.dtype)


def require_supported(dtype: np.dtype, function: str, argument: str = "input") -> None:
    """Raise DTypeError for objects, strings, structures and dates."""
    if dtype not in SUPPORTED:
        raise DTypeError(
            f"{function}: {argument} has dtype {dtype}; expected a bool, integer, floating or complex "
            f"dtype. Convert it first, e.g. with .astype(float)."
        )


def broadcast_shapes(*shapes: tuple[int, ...], function: str = "broadcast") -> tuple[int, ...]:
    """The common shape under NumPy's rules; ShapeError where there is none."""
    if len(set(shapes)) == 1:
        return reduce(equated_shapes, shapes)
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for position, extent in enumerate(shape, rank - len(shape)):
            if extent != 1:
                if result[position] not in (1, extent):
                    raise ShapeError(
                        f"{function}: shapes {', '.join(map(str, shapes))} do not broadcast: dimension "
                        f"{position} has sizes {result[position]} and {extent}. Sizes must be equal or 1; "
                        f"give one operand a dimension of size 1, as x[:, None], or reshape it."
                    )
                result[position] = equated(extent, result[position])
    return tuple(result)


def normalised_dim(dim: int, ndim: int, function: str) -> int:
    """`dim` counted from the front; DimensionError if out of range. 0-d counts as 1-d, as in PyTorch."""
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise DimensionError(
            f"{function}: Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
            f"but got {dim})"
        )
    return dim % bound


def normalised_dims(
    dim: int | tuple[int, ...] | list[int] | None, ndim: int, function: str
) -> tuple[int, ...]:
    """All dims for None, else a sorted tuple of distinct non-negative dims."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int | np.integer):
        return (normalised_dim(int(dim), ndim, function),) if ndim else ()
    dims = tuple(normalised_dim(int(one), ndim, function) for one in dim)
    if len(set(dims)) < len(dims):
        raise DimensionError(f"{function}: dim {tuple(dim)} names a dimension more than once.")
    return tuple(sorted(dims)) if ndim else ()


def reduced_shape(shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    if len(dims) == len(shape):
        return (1,) * len(shape) if keepdim else ()
    if keepdim:
        return tuple([1 if axis in dims else extent for axis, extent in enumerate(shape)])
    return tuple([extent for axis, extent in enumerate(shape) if axis not in dims])


def reshape_groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Runs of old and new dimensions (without those of size 1) that hold the same elements, in order."""
    old, new = tuple(map(int, old)), tuple(map(int, new))
    old_dims = [dim for dim, extent in enumerate(old) if extent != 1]
    new_dims = [dim for dim, extent in enumerate(new) if extent != 1]
    if [old[dim] for dim in old_dims] == [new[dim] for dim in new_dims]:
        return [([a], [b]) for a, b in zip(old_dims, new_dims)]
    if math.prod(old) == 0:
        return [(old_dims, new_dims)]
    groups: list[tuple[list[int], list[int]]] = []
    while old_dims or new_dims:
        left, right = [old_dims.pop(0)], [new_dims.pop(0)]
        left_size, right_size = old[left[0]], new[right[0]]
        while left_size != right_size:
            if left_size < right_size:
                left.append(old_dims.pop(0))
                left_size *= old[left[-1]]
            else:
                right.append(new_dims.pop(0))
                right_size *= new[right[-1]]
        groups.append((left, right))
    return groups
