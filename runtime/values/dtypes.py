"""Dtypes under PyTorch's names, the default float, and PyTorch's rules of promotion.

A `DType` stands wherever NumPy takes a dtype (`np.zeros(3, pb.float32)`) and equals NumPy's own. Promotion
follows torch.Tensor's documented categories: bool < integer < floating < complex; a 0-d tensor decides the
category only, beside tensors with dimensions, and a Python number only beside nothing of its category.
"""

from __future__ import annotations

import builtins
from typing import Any, cast

import numpy as np

from ...tracer.errors import DTypeError
from ...tracer.spec import BOOL, INT64, SUPPORTED, complex_dtype, real_dtype

FLOAT32, FLOAT64 = np.dtype("float32"), np.dtype("float64")
Number = builtins.bool | builtins.int | builtins.float | builtins.complex
NUMBERS = (builtins.bool, builtins.int, builtins.float, builtins.complex)


class DType:
    """One dtype, e.g. `pullback.float32`; prints as PyTorch's, so that printed forms are the same.

    Example:
        >>> float32, float32.itemsize, float32 == np.float32
        (torch.float32, 4, True)
    """

    __slots__ = ("char", "dtype", "is_complex", "is_floating_point", "itemsize", "kind", "name", "numpy")

    def __init__(self, numpy: np.dtype) -> None:
        self.numpy = self.dtype = numpy  # NumPy reads the attribute `dtype`
        self.name, self.kind, self.char = numpy.name, numpy.kind, numpy.char
        self.itemsize = numpy.itemsize
        self.is_floating_point = numpy.kind == "f"
        self.is_complex = numpy.kind == "c"

    @property
    def is_signed(self) -> builtins.bool:
        return self.numpy.kind in "ifc"

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this one.

        Example:
            >>> float64.to_complex()
            torch.complex128
        """
        return of(complex_dtype(self.numpy))

    def to_real(self) -> DType:
        """The dtype of the parts of complex numbers; a real one itself.

        Example:
            >>> complex64.to_real()
            torch.float32
        """
        return of(real_dtype(self.numpy))

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, DType):
            return self.numpy == other.numpy
        if other is None:
            return False
        try:
            return self.numpy == np.dtype(cast(Any, other))
        except TypeError:
            return False

    def __hash__(self) -> builtins.int:
        return hash(self.numpy)

    def __reduce__(self) -> tuple[Any, ...]:
        return of, (self.numpy,)


_OF: dict[np.dtype, DType] = {dtype: DType(dtype) for dtype in SUPPORTED}


def of(dtype: np.dtype) -> DType:
    """The DType of a NumPy dtype; DTypeError if there is none."""
    found = _OF.get(dtype)
    return found if found is not None else _OF[as_numpy_dtype(dtype)]


float16 = half = of(np.dtype("float16"))
float32 = float = of(FLOAT32)
float64 = double = of(FLOAT64)
int8 = of(np.dtype("int8"))
int16 = short = of(np.dtype("int16"))
int32 = int = of(np.dtype("int32"))
int64 = long = of(INT64)
uint8 = of(np.dtype("uint8"))
uint16 = of(np.dtype("uint16"))
uint32 = of(np.dtype("uint32"))
uint64 = of(np.dtype("uint64"))
bool = of(BOOL)
complex64 = cfloat = of(np.dtype("complex64"))
complex128 = cdouble = of(np.dtype("complex128"))

_default = FLOAT32


def default_float() -> np.dtype:
    """What Python floats become; NumPy's form of `get_default_dtype`."""
    return _default


def get_default_dtype() -> DType:
    """The dtype of tensors made from Python floats: float32 unless changed.

    Example:
        >>> get_default_dtype()
        torch.float32
    """
    return of(_default)


def set_default_dtype(dtype: Any) -> None:
    """Let Python floats become `dtype`, a floating one, from now on.

    Raises:
        DTypeError: `dtype` is no floating dtype.

    Example:
        >>> set_default_dtype(float64)
        >>> set_default_dtype(float32)
    """
    global _default
    numpy = as_numpy_dtype(dtype)
    if numpy.kind != "f":
        raise DTypeError(f"only floating-point types are supported as the default type, found {numpy}")
    _default = numpy


def as_numpy_dtype(dtype: Any, function: str = "dtype") -> np.dtype:
    """The NumPy dtype that a DType, NumPy dtype, name or Python type means.

    The Python type `float` means float64, as in PyTorch (`dtype=float`).

    Raises:
        DTypeError: it means none, or one that tensors cannot have (object, string, structured).
    """
    if isinstance(dtype, DType):
        return dtype.numpy
    if isinstance(dtype, str) and dtype.startswith("torch."):
        dtype = dtype.removeprefix("torch.")
    try:
        if dtype is None:
            raise TypeError("None is no dtype")
        numpy = np.dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{function}: {dtype!r} is no dtype: {error}") from None
    numpy = numpy.newbyteorder("=")
    if numpy not in SUPPORTED:
        raise DTypeError(
            f"{function}: dtype {numpy} is not supported; expected a bool, integer, floating or complex "
            f"dtype. Convert it first, e.g. with .astype(float)."
        )
    return numpy


def is_floating_point(tensor: Any) -> builtins.bool:
    """Whether the elements are floating numbers.

    Example:
        >>> is_floating_point(tensor([1, 2]))
        False
    """
    return tensor.dtype.is_floating_point


# --- promotion ----------------------------------------------------------------------------------------

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def _promote_pair(a: np.dtype, b: np.dtype) -> np.dtype:
    if a == b:
        return a
    rank_a, rank_b = _CATEGORY[a.kind], _CATEGORY[b.kind]
    if rank_a != rank_b and rank_a + rank_b < 5:  # else complex numbers beside real ones with as many digits
        return a if rank_a > rank_b else b
    promoted = np.promote_types(a, b)
    if promoted.kind == "f" and rank_a == 1:
        raise DTypeError(f"Promotion for uint64 and signed integers is not supported: found {a} and {b}.")
    return promoted


_PROMOTED = {}
for _a in SUPPORTED:
    for _b in SUPPORTED:
        try:
            _PROMOTED[_a, _b] = _promote_pair(_a, _b)
        except DTypeError:  # uint64 beside a signed integer: told to whoever asks
            continue


def promote_dtypes(a: np.dtype, b: np.dtype) -> np.dtype:
    """`promote_types` on NumPy dtypes."""
    found = _PROMOTED.get((a, b))
    return found if found is not None else _promote_pair(a, b)


def promote_types(a: Any, b: Any) -> DType:
    """The smallest dtype of the higher category that holds both.

    Example:
        >>> promote_types(int64, float16), promote_types(uint8, int8)
        (torch.float16, torch.int16)
    """
    return of(promote_dtypes(as_numpy_dtype(a), as_numpy_dtype(b)))


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether an operation may write results of one dtype into another: not a higher category into a lower.

    Example:
        >>> can_cast(float64, float32), can_cast(float32, int64)
        (True, False)
    """
    kinds = "biufc"
    first, second = as_numpy_dtype(from_).kind, as_numpy_dtype(to).kind
    both_integers = first in "iu" and second in "iu"
    return both_integers or kinds.index(first) <= kinds.index(second)


def result_type(*operands: Any) -> DType:
    """The dtype in which an operator on these tensors and Python numbers computes.

    Example:
        >>> result_type(np.zeros(3, np.int32), 1.5)
        torch.float32
        >>> result_type(np.zeros(3, np.float32), np.zeros((), np.float64))
        torch.float32
    """
    return of(common_dtype(*operands))


def common_dtype(*operands: Any) -> np.dtype:
    """`result_type` as a NumPy dtype. Operands are Tensors, arrays, graph nodes and Python numbers."""
    by_priority: list[np.dtype | None] = [None, None, None]  # with dimensions, 0-d, Python numbers
    numbers = [operand for operand in operands if is_number(operand)]
    if len(numbers) == len(operands) and any(hasattr(one, "_value") for one in numbers):  # NumPy's alone
        return np.result_type(*(one._value.dtype if hasattr(one, "_value") else one for one in numbers))
    for operand in operands:
        value = getattr(operand, "_value", operand)
        if isinstance(value, NUMBERS):
            priority, dtype = 2, dtype_of_number(value)
        elif is_number(operand):
            priority, dtype = 2, dtype_of_number(value.dtype.type(0).item())
        else:
            priority, dtype = (0 if value.ndim else 1), value.dtype
        known = by_priority[priority]
        by_priority[priority] = dtype if known is None else promote_dtypes(known, dtype)
    result: np.dtype | None = None
    for candidate in by_priority:
        if candidate is None:
            continue
        if result is None or _CATEGORY[candidate.kind] > _CATEGORY[result.kind]:
            result = candidate if result is None else _raised(result, candidate)
    if result is None:
        raise DTypeError("result_type: at least one tensor or number expected")
    return result


def is_number(operand: Any) -> builtins.bool:
    """Whether PyTorch's promotion takes an operand for a Python number."""
    known = getattr(operand, "_is_number", None)
    return isinstance(operand, NUMBERS) if known is None else known


def _raised(dtype: np.dtype, to: np.dtype) -> np.dtype:
    """A dtype raised to a higher category, by numbers or what has no dimensions: floats keep their digits."""
    return complex_dtype(dtype) if to.kind == "c" and dtype.kind == "f" else to


def default_complex() -> np.dtype:
    """What Python's complex numbers become: their parts have the default dtype."""
    return complex_dtype(_default)


def dtype_of_number(value: Number) -> np.dtype:
    """bool, int64, the default float, or complex numbers of such."""
    if isinstance(value, builtins.bool):
        return BOOL
    if isinstance(value, builtins.complex):
        return default_complex()
    return INT64 if isinstance(value, builtins.int) else _default


class FInfo:
    """What `finfo` returns: the limits of a floating dtype.

    Example:
        >>> finfo(float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, dtype: Any = None) -> None:
        found = np.finfo(_default if dtype is None else as_numpy_dtype(dtype))
        self.dtype = found.dtype.name
        self.bits = found.bits
        self.eps = builtins.float(found.eps)
        self.max = builtins.float(found.max)
        self.min = builtins.float(found.min)
        self.tiny = self.smallest_normal = builtins.float(found.tiny)
        self.resolution = builtins.float(found.resolution)


finfo = FInfo


class IInfo:
    """What `iinfo` returns: the limits of an integer dtype.

    Example:
        >>> iinfo(int8).max
        127
    """

    def __init__(self, dtype: Any) -> None:
        found = np.iinfo(as_numpy_dtype(dtype))
        self.dtype = found.dtype.name
        self.bits, self.max, self.min = found.bits, builtins.int(found.max), builtins.int(found.min)


iinfo = IInfo
