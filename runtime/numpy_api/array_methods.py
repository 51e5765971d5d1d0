"""What methods and operators of NumPy's kinds of tensors mean: what they mean for ndarrays.

`x.std()` divides by n in NumPy and by n - 1 in PyTorch, `x.max(0)` is an array or a pair, integers divide to
float64 or float32. A method that NumPy has is NumPy's where the tensor stands for an ndarray, and PyTorch's
where it is a Tensor; options with the other's names (`dim`, `unbiased`; `ddof`, `initial`) ask for the
other's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...tracer.dims import python_type
from ...tracer.errors import ArgumentError
from ...tracer.operator import operators
from ...tracer.ops.elementwise import identity
from ..functions import METHODS
from ..functions.common import NUMBERS, array_dtype, fail
from ..functions.selections.assignment import copy_
from ..functions.shapes.movement import reshape_directly
from ..tape.apply import apply
from ..tape.direct import direct
from ..tape.inplace import require_assignable, update
from ..values.asked import Asked
from ..values.nodes import next_sequence
from ..values.plain_arrays import MATRIX_REMEDY
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, as_kind, settled
from .protocols import (
    AXIS_OPTIONS,
    DIRECT_FUNCTIONS,
    FUNCTIONS,
    OF_TRUTH,
    called,
    is_operand,
    put_into,
    with_numbers_of_numpy,
    without_lists,
)

Method = Callable[..., Any]

# --- methods ------------------------------------------------------------------------------------------------

TORCH_OPTIONS = frozenset(
    ("dim", "dim0", "dim1", "dim2", "keepdim", "unbiased", "correction", "descending", "as_tuple")
)
NUMPY_OPTIONS = frozenset(("initial", "where", "order", "kind", "axis1", "axis2", "ddof", "mode"))
OWN_AXIS = frozenset(("repeat", "take"))
"""Methods that have no `dim` in PyTorch, so that `axis` means NumPy's."""


def of_torch(name: str, torch: Method | None, numpy: Method) -> Method:
    """PyTorch's method of this name; NumPy's where an option has NumPy's name."""
    if torch is None:
        return of_numpy(None, numpy)
    options = NUMPY_OPTIONS | {"axis"} if name in OWN_AXIS else NUMPY_OPTIONS
    return _chosen(torch, numpy, options)


def of_numpy(torch: Method | None, numpy: Method) -> Method:
    """NumPy's method; PyTorch's where an option has PyTorch's name.

    What it gives is of the kind of its object, whatever it is given, but for `clip`, which is a ufunc.
    """
    by_ufunc = numpy.__name__ == "clip"

    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Any:
        result = numpy(self, *arguments, **keywords)
        is_settled = issubclass(type(self), NumpyTensor) and issubclass(type(result), NumpyTensor)
        if (is_settled and not by_ufunc) or keywords.get("out") is not None:
            return result
        return settled(result, (self, *arguments) if by_ufunc else (self,))

    functools.update_wrapper(method, numpy)
    return method if torch is None else _chosen(method, torch, TORCH_OPTIONS)


def _chosen(usual: Method, other: Method, options: frozenset[str]) -> Method:
    """`other` where one of the options is given."""

    @functools.wraps(usual)
    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Any:
        chosen = other if keywords and not options.isdisjoint(keywords) else usual
        return chosen(self, *arguments, **keywords)

    return method


def _function(name: str) -> Method:
    """NumPy's function as a method."""
    real = getattr(np, name)
    short = DIRECT_FUNCTIONS.get(real)

    def method(self: Tensor, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        if short is not None and out is None and len(arguments) < 2 and keywords.keys() <= AXIS_OPTIONS:
            result = short(self, *arguments, **keywords)
            if result is not NotImplemented:
                return result
        if out is not None:
            return put_into(out, real, (self, *arguments), keywords)
        return FUNCTIONS[real](self, *arguments, **keywords)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`numpy.{name}` of the tensor."
    return method


def reshape(self: Tensor, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
    """The elements in another shape, given as integers or as a tuple."""
    if order == "C" and copy is None and (result := reshape_directly(self, *shape)) is not NotImplemented:
        return result
    return FUNCTIONS[np.reshape](self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def ravel(self: Tensor, order: str = "C") -> Tensor:
    """All elements in one dimension."""
    return FUNCTIONS[np.ravel](self, order)


def flatten(self: Tensor, order: Any = "C", *dims: int) -> Tensor:
    """A copy of all elements in one dimension; with dimensions PyTorch's."""
    return ravel(self, order).copy() if isinstance(order, str) else METHODS["flatten"](self, order, *dims)


def view(self: Tensor, dtype: Any = None) -> Tensor:
    """The tensor itself in another object, which shows the same memory.

    Raises:
        ArgumentError: the object is of another class than ndarray, whose operators may mean something else.
    """
    if dtype is None or dtype is np.ndarray:
        return reshape(self, tuple(self.shape))
    if isinstance(dtype, type) and issubclass(dtype, np.ndarray):
        remedy = MATRIX_REMEDY if issubclass(dtype, np.matrix) else "numpy.asarray(...)"
        fail(ArgumentError, f"a tensor cannot be {dtype.__module__}.{dtype.__name__}. Use {remedy}.")
    return METHODS["view"](self, dtype)


def item(self: Tensor, *place: Any) -> Any:
    """An element as a Python number: the only one, that at a flat position, or at one for each dimension."""
    if not place:
        return Asked.item(self)
    return (self.reshape(-1)[place[0]] if len(place) == 1 else self[place]).item()


def searchsorted(self: Tensor, v: Any, side: str = "left") -> Tensor:
    """Where each of v belongs in the tensor, which is sorted."""
    return FUNCTIONS[np.searchsorted](self, v, side)


def sort(self: Tensor, axis: int = -1, kind: Any = None, *, stable: Any = None) -> None:
    """Bring the elements in order, in place."""
    copy_(self, FUNCTIONS[np.sort](self, axis))


def partition(self: Tensor, kth: Any, axis: int = -1, kind: Any = None) -> None:
    """Bring the elements in order, as `kth` of them must be, in place."""
    sort(self, axis)


def put(self: Tensor, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write at flat positions."""
    FUNCTIONS[np.put](self, indices, values, mode)


def compress(self: Tensor, condition: Any, axis: int | None = None) -> Tensor:
    """The slices of a dimension where a condition holds."""
    return FUNCTIONS[np.compress](condition, self, axis)


class Flat:
    """`x.flat`: the elements in order, whatever the shape is; to be read, written and walked through."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, index: Any) -> Tensor:
        found = self._tensor.reshape(-1)[index]
        return as_kind(apply(identity, found), type(found)) if found.ndim else found  # a copy, in NumPy too

    def __setitem__(self, index: Any, value: Any) -> None:
        changed = apply(identity, self._tensor.reshape(-1))
        changed[index] = value
        copy_(self._tensor, changed.reshape(tuple(self._tensor.shape)))

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._tensor.reshape(-1))

    def __len__(self) -> int:
        return self._tensor.numel()


_OF_FUNCTIONS = """
    mean std var ptp clip argsort take repeat nonzero trace diagonal swapaxes squeeze round choose
    argpartition dot
"""
_OF_OPERATORS = [
    name
    for one in (*operators("reduction"), *operators("scan"))
    for name in one.numpy
    if hasattr(np.ndarray, name)
]
NUMPY_METHODS: dict[str, Method] = {
    **{name: _function(name) for name in (*_OF_FUNCTIONS.split(), *_OF_OPERATORS)},
    **{
        method.__name__: method
        for method in (reshape, ravel, flatten, view, item, sort, partition, put, compress)
    },
    "searchsorted": searchsorted,
}

# --- operators ----------------------------------------------------------------------------------------------

UFUNCS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift, "divmod": np.divmod,
}  # fmt: skip
OF_TRUTHS = {f"bitwise_{name}": direct(one, kinds="b") for name, one in OF_TRUTH.items()}
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def _is_same_in_both(self: Tensor, other: Any) -> bool:
    """Whether NumPy and PyTorch promote alike: floats of one dtype, or an array and a Python number."""
    dtype = array_dtype(self)
    if isinstance(other, Tensor):
        return dtype.kind == "f" and array_dtype(other) == dtype
    return dtype.kind == "f" and python_type(other) in NUMBERS


def numpy_operator(ufunc: np.ufunc, torch: Method | None, reflected: bool = False) -> Method:
    """`x + other`, or `other + x`, of NumPy's kinds."""
    short = OF_TRUTHS.get(ufunc.__name__)

    def method(self: Tensor, other: Any) -> Any:
        if short is not None:
            result = short(other, self) if reflected else short(self, other)
            if result is not NotImplemented:
                return result
        if torch is not None and _is_same_in_both(self, other):
            return torch(self, other)
        is_sequence = isinstance(other, list | tuple)
        if not is_operand(other) or (is_sequence and type(self) is PythonNumber):
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        if ufunc is np.power and not reflected and _is_square_of_truths(self, other):
            return settled(called(np.square, (self,)), [self])
        found = settled(called(ufunc, operands), without_lists(operands))
        is_strong = type(self) is PythonNumber and isinstance(other, np.generic)
        return with_numbers_of_numpy(ufunc, found) if is_strong else found

    return functools.wraps(torch)(method) if torch is not None else method


def _is_square_of_truths(array: Tensor, exponent: Any) -> bool:
    """Whether `array ** exponent` is NumPy's square: int8 of bools, where its power gives int64."""
    is_array = type(array) is NumpyTensor and array_dtype(array).kind == "b"
    return is_array and python_type(exponent) is int and bool(exponent == 2)


def numpy_operators(methods: dict[str, Method]) -> dict[str, Method]:
    """The methods of Python's operators, by name."""
    found = {}
    for name, ufunc in (UFUNCS | COMPARISONS).items():
        found[f"__{name}__"] = numpy_operator(ufunc, methods.get(f"__{name}__"))
    for name, ufunc in UFUNCS.items():
        found[f"__r{name}__"] = numpy_operator(ufunc, methods.get(f"__r{name}__"), reflected=True)
    return found


def in_place_operator(name: str, ufunc: np.ufunc) -> Method:
    """`x += other` of NumPy's kinds: an array is written into, a number is replaced by another."""

    def method(self: Tensor, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        if isinstance(self, NumpyScalar):
            return called_operator(self, other)
        require_assignable(self)
        began = next_sequence()
        return update(self, called(ufunc, (self, other)), began)

    called_operator = getattr(NumpyTensor, f"__{name}__")
    method.__name__ = method.__qualname__ = f"__i{name}__"
    return method
