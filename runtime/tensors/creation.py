"""Tensors from data, constants and ranges, with PyTorch's rules for dtypes.

Python floats get the default dtype (float32), Python integers int64, NumPy's arrays and scalars keep theirs.
In a traced function constants and ranges are operators of the graph, data become captured inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, GradientError, PullbackError, ShapeError
from ...tracer.graph import make_node
from ...tracer.operator import Operator
from ...tracer.ops import creation as operators
from ...tracer.ops.elementwise import convert, equal, identity
from ...tracer.ops.movement import expand, reshape
from ...tracer.origin import fail
from ...tracer.spec import CONTINUOUS, INT64, require_supported
from ...tracer.trace import current_trace, is_tracing
from ..tape.apply import apply, of_kind, wrap
from ..values import dtypes
from ..values.dtypes import as_numpy_dtype
from ..values.lost_gradients import refuse_constant
from ..values.plain_arrays import require_plain_array
from ..values.tensor import Device, Tensor, TorchTensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber
from .conversion import joined

Scalar = bool | int | float | complex
INTEGER_GRADIENT = "Only Tensors of floating point and complex dtype can require gradients"


# --- what the functions share ---------------------------------------------------------------------------


def finished(tensor: Tensor, requires_grad: bool, device: Any = None) -> Tensor:
    """The tensor with the options that every function of creation takes."""
    tensor = of_kind(tensor, TorchTensor)
    if device is not None:
        Device(device)
    if requires_grad:
        if tensor._value.dtype.kind not in CONTINUOUS:
            raise GradientError(f"{INTEGER_GRADIENT}; this one has dtype {tensor.dtype}. Give dtype=float32.")
        tensor._requires_grad = True
    return tensor


def size_of(size: Sequence[Any], function: str) -> tuple[int, ...]:
    """A shape given as integers or as one sequence of them."""
    extents: Any = size[0] if len(size) == 1 and isinstance(size[0], tuple | list | np.ndarray) else size
    try:
        shape = tuple(one.__index__() for one in extents)
    except (AttributeError, TypeError):
        raise ArgumentError(f"{function}(): a size of integers expected, found {tuple(extents)!r}.") from None
    if any(extent < 0 for extent in shape):
        raise ShapeError(
            f"{function}: Dimension size must be non-negative. "
            f"Trying to create tensor with negative dimension: {list(shape)}"
        )
    return shape


def dtype_or(dtype: Any, otherwise: np.dtype, function: str) -> np.dtype:
    return otherwise if dtype is None else as_numpy_dtype(dtype, function)


def created(operator: Operator, **attributes: Any) -> Tensor:
    """The result of an operator without operands: in a trace a graph node, else an array."""
    if is_tracing():
        return make(make_node(operator, (), attributes))
    return make(operator.evaluate(**attributes))


def held(array: np.ndarray) -> Tensor:
    """A tensor around new data; in a trace a captured input, so that it can be written to."""
    return make(current_trace().capture(array) if is_tracing() else array)


# --- from data ------------------------------------------------------------------------------------------


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested lists of them, an ndarray or a Tensor.

    Args:
        dtype: of the result; by default bool, int64, the default float or complex numbers of such parts for
            Python's numbers, else that of the data.
        requires_grad: record what is done with it.

    Raises:
        DTypeError: strings, objects, structures. ShapeError: ragged lists.
        GradientError: `requires_grad` for integers or bools.

    Example:
        >>> tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        tensor([[1., 2.],
                [3., 4.]], requires_grad=True)
    """
    if isinstance(data, Tensor):
        copied = apply(identity, _constant(data, "tensor"))
        if type(data) is PythonNumber and dtype is None:
            dtype = _default_of(data.dtype)
        return finished(_converted(copied, dtype, "tensor"), requires_grad, device)
    if _holds_numpy(data):
        return finished(_stacked(data, dtype), requires_grad, device)
    if isinstance(data, dtypes.NUMBERS) and not isinstance(data, np.generic):
        numpy = dtype_or(dtype, dtypes.dtype_of_number(data), "tensor")
        return finished(_full((), data, numpy, "tensor"), requires_grad, device)
    array = array_from(data, dtype, "tensor")
    if array is data and not is_tracing():
        array = np.array(array)
    return finished(held(array), requires_grad, device)


def _constant(data: Tensor, function: str) -> Tensor:
    """Data without gradient, as in PyTorch; what stands for an array or a number keeps it.

    Raises GradientError where a derivative is taken by it.
    """
    if isinstance(data, NumpyTensor):
        return data
    refuse_constant(data, function)
    return data._detached()


def _holds_numpy(data: Any) -> bool:
    """Whether nested lists hold what stands for arrays or numbers, which may have gradients."""
    return isinstance(data, NumpyTensor) or (isinstance(data, list | tuple) and any(map(_holds_numpy, data)))


def _stacked(data: Any, dtype: Any) -> Tensor:
    """Nested lists with such values as one tensor."""
    found = joined(data)
    if dtype is None and type(_first_leaf(data)) in (float, complex, PythonNumber):
        dtype = _default_of(found._value.dtype)
    return _converted(found, dtype, "tensor")


def _default_of(dtype: np.dtype) -> np.dtype:
    """What Python's numbers become that NumPy would hold in a dtype."""
    if dtype.kind == "c":
        return dtypes.default_complex()
    return dtypes.default_float() if dtype.kind == "f" else dtype


def array_from(data: Any, dtype: Any, function: str) -> np.ndarray:
    """An ndarray with the data; one that is an ndarray of the dtype already is not copied."""
    if isinstance(data, np.ndarray | np.generic):
        require_plain_array(data, f"{function}(): the data")
        native = data.dtype.newbyteorder("=")
        require_supported(native, function, "data")
        wanted = dtype_or(dtype, native, function)
        return data if type(data) is np.ndarray and data.dtype == wanted else np.asarray(data, wanted)
    first = _first_leaf(data)
    if isinstance(first, Tensor):
        data, first = _values(data), np.zeros((), first.dtype.numpy)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ShapeError(f"{function}(): expected sequences of one length at each depth: {error}.") from None
    found = array.dtype
    if isinstance(first, np.ndarray) and array.size and found.kind in "cfiub":
        found = first.dtype if found.kind == first.dtype.kind else found
    elif found.kind in CONTINUOUS and not isinstance(first, np.generic):
        found = _default_of(found)
    elif found.kind in "US":
        fail(DTypeError, f"{function}(): invalid data type 'str'; numbers expected.")
    if found.kind not in "cfiub":
        require_supported(found, function, "data")
    return array.astype(dtype_or(dtype, found, function), copy=False)


def _first_leaf(data: Any) -> Any:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data


def _values(data: Any) -> Any:
    """Nested lists with tensors in them as nested lists of numbers."""
    if isinstance(data, list | tuple):
        return [_values(one) for one in data]
    return data.tolist() if isinstance(data, Tensor) else data


def _converted(x: Tensor, dtype: Any, function: str) -> Tensor:
    numpy = dtype_or(dtype, x._value.dtype, function)
    return x if x._value.dtype == numpy else apply(convert, x, dtype=numpy)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of `data` that shares its memory where it is an ndarray or a Tensor of the dtype already.

    Example:
        >>> array = np.zeros(2); x = as_tensor(array); array[0] = 1; x
        tensor([1., 0.], dtype=torch.float64)
    """
    if isinstance(data, Tensor):
        return of_kind(_converted(data, dtype, "as_tensor"), TorchTensor)
    if isinstance(data, np.ndarray):
        return finished(wrap(array_from(data, dtype, "as_tensor")), False, device)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """`as_tensor`, or `tensor` where `copy` is True.

    Example:
        >>> asarray([1, 2])
        tensor([1, 2])
    """
    found = tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype, device)
    return finished(found, requires_grad) if requires_grad else found


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares the memory of an ndarray.

    Raises:
        ArgumentError: no ndarray. DTypeError: a dtype that tensors do not have.

    Example:
        >>> from_numpy(np.arange(3))
        tensor([0, 1, 2])
    """
    if isinstance(ndarray, NumpyTensor):
        return as_tensor(ndarray)
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return finished(wrap(array_from(ndarray, None, "from_numpy")), False)


def scalar_tensor(s: Scalar, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor, of the default floating dtype unless another is given.

    Example:
        >>> scalar_tensor(2)
        tensor(2.)
    """
    numpy = dtype_or(dtype, dtypes.default_float(), "scalar_tensor")
    return finished(_full((), s, numpy, "scalar_tensor"), requires_grad, device)


# --- constants ------------------------------------------------------------------------------------------


def _full(shape: tuple[int, ...], value: Scalar, dtype: np.dtype, function: str) -> Tensor:
    try:
        number = dtype.type(value).item()
    except PullbackError:  # the number is not known
        raise
    except (OverflowError, ValueError, TypeError) as error:
        raise DTypeError(f"{function}(): {value!r} is no {dtype}: {error}.") from None
    return created(operators.full, shape=shape, value=number, dtype=dtype)


def zeros(
    *extents: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of a shape: `zeros(2, 3)` or `zeros((2, 3))`.

    Example:
        >>> zeros(2, 3, dtype=int64)
        tensor([[0, 0, 0],
                [0, 0, 0]])
    """
    numpy = dtype_or(dtype, dtypes.default_float(), "zeros")
    return finished(
        _full(size_of(extents if size is None else (size,), "zeros"), 0, numpy, "zeros"),
        requires_grad,
        device,
    )


def ones(
    *extents: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Ones of a shape: `ones(2, 3)` or `ones((2, 3))`.

    Example:
        >>> ones(2, requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """
    numpy = dtype_or(dtype, dtypes.default_float(), "ones")
    return finished(
        _full(size_of(extents if size is None else (size,), "ones"), 1, numpy, "ones"), requires_grad, device
    )


def empty(
    *extents: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of a shape, to be filled; what it holds before is unspecified.

    Example:
        >>> empty(2, 3).shape
        torch.Size([2, 3])
    """
    shape = size_of(extents if size is None else (size,), "empty")
    numpy = dtype_or(dtype, dtypes.default_float(), "empty")
    made = _full(shape, 0, numpy, "empty") if is_tracing() else make(np.empty(shape, numpy))
    return finished(made, requires_grad, device)


def full(
    size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """One value everywhere; the dtype is that of the value unless given.

    Example:
        >>> full((2,), 3)
        tensor([3, 3])
    """
    shape = size_of((size,) if isinstance(size, int | np.integer) else size, "full")
    if isinstance(fill_value, Tensor):
        filler = _constant(fill_value, "full")
        if dtype is None and isinstance(filler, NumpyScalar):
            dtype = dtypes.dtype_of_number(filler._value.dtype.type(0).item())
        filled = apply(expand, _converted(reshaped(filler, ()), dtype, "full"), shape=shape)
        return finished(apply(identity, filled), requires_grad, device)
    numpy = dtype_or(dtype, dtypes.dtype_of_number(fill_value), "full")
    return finished(_full(shape, fill_value, numpy, "full"), requires_grad, device)


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x._value.shape == shape else apply(reshape, x, shape=shape)


def eye(
    n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The identity matrix, n x n or n x m.

    Example:
        >>> eye(2)
        tensor([[1., 0.],
                [0., 1.]])
    """
    n, m = size_of((n, n if m is None else m), "eye")
    numpy = dtype_or(dtype, dtypes.default_float(), "eye")
    if not is_tracing():
        return finished(make(np.eye(n, m, dtype=numpy)), requires_grad, device)
    rows = reshaped(created(operators.iota, size=n, dtype=INT64), (n, 1))
    columns = reshaped(created(operators.iota, size=m, dtype=INT64), (1, m))
    return finished(apply(convert, apply(equal, rows, columns), dtype=numpy), requires_grad, device)


# --- ranges ---------------------------------------------------------------------------------------------


def arange(
    start: Scalar, end: Scalar | None = None, step: Scalar = 1, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ... up to but without end; `arange(end)` starts at 0.

    Returns:
        int64 if all arguments are integers, else the default float, unless `dtype` says otherwise.

    Raises:
        ShapeError: a step of 0, or one that leads away from `end`.

    Example:
        >>> arange(1, 2.5, 0.5)
        tensor([1.0000, 1.5000, 2.0000])
    """
    bounds: Any = (0, start, step) if end is None else (start, end, step)
    first, last, by = (one.item() if isinstance(one, Tensor | np.generic) else one for one in bounds)
    if by == 0:
        raise ShapeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ArgumentError(f"arange(): unsupported range: {first} -> {last}")
    integral = all(isinstance(one, int) for one in (first, last, by))
    numpy = dtype_or(dtype, INT64 if integral else dtypes.default_float(), "arange")
    if numpy == INT64 and not integral:
        first, last, by, integral = int(first), int(last), int(by), True
        if by == 0:
            raise ShapeError("step must be nonzero, also as an integer of dtype int64")
    if (last - first) * by < 0:
        raise ShapeError(
            f"upper bound and lower bound inconsistent with step sign: {first} to {last} by {by}"
        )
    count = len(range(first, last, by)) if integral else math.ceil((last - first) / by)
    if numpy.kind in "iu" and not integral:  # of other integers than int64, which are counted before
        first, by = int(first), int(by)
    return finished(_progression(first, by, count, numpy), requires_grad, device)


def range_(
    start: Any, end: Any = None, step: Scalar = 1, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ... up to and with end; PyTorch's older form of `arange`.

    Example:
        >>> range(1, 3)
        tensor([1., 2., 3.])
    """
    first, last = (0, start) if end is None else (start, end)
    count = math.floor((last - first) / step) + 1
    kind = dtype_or(dtype, dtypes.default_float(), "range")
    return finished(_progression(first, step, count, kind), requires_grad, device)


def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of a shape whose elements are not set; the strides are those of its shape.

    Example:
        >>> empty_strided((2, 3), (1, 2)).shape
        torch.Size([2, 3])
    """
    return empty(tuple(size), dtype=dtype, device=device, requires_grad=requires_grad)


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """`empty_strided`, told in which order PyTorch would lay out the dimensions; options as of `zeros`.

    Raises:
        ArgumentError: the layout is no order of the dimensions.

    Example:
        >>> empty_permuted((2, 3), (1, 0)).shape
        torch.Size([2, 3])
    """
    if sorted(physical_layout) != list(range(len(size))):
        raise ArgumentError(
            f"empty_permuted(): physical_layout must be an order of {len(size)} dimensions, found "
            f"{list(physical_layout)}"
        )
    return empty(tuple(size), **options)


def _progression(first: Scalar, step: Scalar, count: int, dtype: np.dtype) -> Tensor:
    """first + i * step for i < count."""
    if is_tracing():
        counted = created(operators.iota, size=count, dtype=dtype)
        scaled = counted if step == 1 else counted * step
        return scaled if first == 0 else scaled + first
    return make((first + step * np.arange(count)).astype(dtype, copy=False))


def linspace(
    start: Scalar,
    end: Scalar,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from start to end, both included, at equal distances.

    Of an integer dtype they lie between the ends without their fractions, as PyTorch's.

    Raises:
        ArgumentError: the dtype is of integers, and an end is not finite.

    Example:
        >>> linspace(0, 1, 3)
        tensor([0.0000, 0.5000, 1.0000])
    """
    numpy = dtype_or(dtype, dtypes.default_float(), "linspace")
    return finished(held(_spaced(start, end, steps, numpy, "linspace").astype(numpy)), requires_grad, device)


def _spaced(start: Any, end: Any, steps: int, dtype: np.dtype, function: str) -> np.ndarray:
    """Floats from both ends to the middle, in the result's own precision, so that it is symmetric."""
    (count,) = size_of((steps,), function)
    kind = dtype if dtype.kind == "f" else np.dtype("float64")
    ends = [one.item() if isinstance(one, Tensor) else one for one in (start, end)]
    if dtype.kind in "iu":
        if not all(map(math.isfinite, ends)):
            fail(ArgumentError, f"{function}(): integers from {ends[0]} to {ends[1]} are not finite.")
        ends = list(map(math.trunc, ends))
    first, last = map(kind.type, ends)
    distance = (last - first) / kind.type(max(count - 1, 1))
    counted = np.arange(count)
    forth = first + distance * counted.astype(kind)
    back = last - distance * (count - 1 - counted).astype(kind)
    return np.where(counted < count / 2 if count > 1 else counted == 0, forth, back)


def logspace(
    start: Scalar, end: Scalar, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """base ** start to base ** end in `steps` numbers, their exponents at equal distances.

    Of an integer dtype the exponents lie between start and end without their fractions, as PyTorch's.

    Example:
        >>> logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    numpy = dtype_or(dtype, dtypes.default_float(), "logspace")
    exponents = _spaced(start, end, steps, numpy if numpy.kind in "iu" else np.dtype("float64"), "logspace")
    return finished(held(np.power(base, exponents).astype(numpy)), requires_grad, device)


# --- after the pattern of another -------------------------------------------------------------------------


def _like(
    input: Tensor, value: Scalar, dtype: Any, requires_grad: bool, device: Any, function: str
) -> Tensor:
    numpy = dtype_or(dtype, input._value.dtype, function)
    return finished(_full(tuple(input._value.shape), value, numpy, function), requires_grad, device)


def zeros_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of the shape and dtype of another tensor.

    Example:
        >>> zeros_like(ones(2))
        tensor([0., 0.])
    """
    return _like(input, 0, dtype, requires_grad, device, "zeros_like")


def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape and dtype of another tensor.

    Example:
        >>> ones_like(zeros(2))
        tensor([1., 1.])
    """
    return _like(input, 1, dtype, requires_grad, device, "ones_like")


def full_like(
    input: Tensor, fill_value: Scalar, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """One value everywhere, in the shape and dtype of another tensor.

    Example:
        >>> full_like(zeros(2), 7)
        tensor([7., 7.])
    """
    return _like(input, fill_value, dtype, requires_grad, device, "full_like")


def empty_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of the shape and dtype of another, to be filled.

    Example:
        >>> empty_like(zeros(2)).shape
        torch.Size([2])
    """
    return empty(
        tuple(input._value.shape), dtype=dtype or input.dtype, device=device, requires_grad=requires_grad
    )


# --- PyTorch's older constructors -------------------------------------------------------------------------


class TensorType:
    """`FloatTensor` and its kin: called with data, or with the sizes of an empty tensor.

    Example:
        >>> FloatTensor([1, 2]), LongTensor(2).shape
        (tensor([1., 2.]), torch.Size([2]))
    """

    def __init__(self, name: str) -> None:
        self.dtype = dtypes.of(np.dtype(name))

    def __call__(self, *arguments: Any) -> Tensor:
        return legacy_tensor(*arguments, dtype=self.dtype)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype == self.dtype


def legacy_tensor(
    *arguments: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """What calling `Tensor` does: from data, or empty with the given sizes."""
    numpy = dtype_or(dtype, dtypes.default_float(), "Tensor")
    if len(arguments) == 1 and not isinstance(arguments[0], int):
        data = arguments[0]
        if isinstance(data, Tensor):
            return finished(_converted(_constant(data, "Tensor"), numpy, "Tensor"), requires_grad, device)
        return finished(held(array_from(data, numpy, "Tensor")), requires_grad, device)
    return empty(*(arguments or (0,)), dtype=numpy, device=device, requires_grad=requires_grad)


FloatTensor, DoubleTensor, HalfTensor = TensorType("float32"), TensorType("float64"), TensorType("float16")
LongTensor, IntTensor, ShortTensor = TensorType("int64"), TensorType("int32"), TensorType("int16")
CharTensor, ByteTensor, BoolTensor = TensorType("int8"), TensorType("uint8"), TensorType("bool")
