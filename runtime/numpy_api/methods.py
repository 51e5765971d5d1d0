"""What methods and operators of Tensors mean in NumPy's programs: what they mean there.

`x.std()` divides by n in NumPy and by n - 1 in PyTorch, `x.max(0)` is an array or a pair, integers divide to
float64 or float32. A function that was given ndarrays to differentiate or trace, and that calls none of
pullback's functions, is a NumPy program, and must compute what it computes without pullback. So there, and
where an option has NumPy's name, a method is NumPy's; options with PyTorch's names (`dim`, `unbiased`) ask
for PyTorch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...tracer.ops.elementwise import identity
from ..asked import Asked
from ..functions import METHODS
from ..functions.common import NUMBERS, array_dtype
from ..inplace import copy_
from ..tape import apply
from ..tensor import Tensor
from .front import FUNCTIONS, OPERANDS, called, written
from .scalars import has_numpy_methods
from .values import tensor_of

Method = Callable[..., Any]

# --- methods ------------------------------------------------------------------------------------------------

TORCH_OPTIONS = frozenset(
    ("dim", "dim0", "dim1", "dim2", "keepdim", "unbiased", "correction", "descending", "as_tuple")
)
NUMPY_OPTIONS = frozenset(("initial", "where", "order", "kind", "axis1", "axis2", "ddof", "mode"))
OWN_AXIS = frozenset(("repeat", "take"))
"""Methods that have no `dim` in PyTorch, so that `axis` means NumPy's."""


def either(name: str, torch: Method | None, numpy: Method) -> Method:
    """The method of this name, PyTorch's or NumPy's."""
    if torch is None:
        return numpy
    options = NUMPY_OPTIONS | {"axis"} if name in OWN_AXIS else NUMPY_OPTIONS

    @functools.wraps(torch)
    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Any:
        if has_numpy_methods():
            chosen = torch if keywords and not TORCH_OPTIONS.isdisjoint(keywords) else numpy
        else:
            chosen = numpy if keywords and not options.isdisjoint(keywords) else torch
        return chosen(self, *arguments, **keywords)

    return method


def _function(name: str) -> Method:
    """NumPy's function as a method."""
    real = getattr(np, name)

    def method(self: Tensor, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        return written(FUNCTIONS[real](self, *arguments, **keywords), out, name)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`numpy.{name}` of the tensor."
    return method


def reshape(self: Tensor, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
    """The elements in another shape, given as integers or as a tuple."""
    return FUNCTIONS[np.reshape](self, shape[0] if len(shape) == 1 else shape, order)


def ravel(self: Tensor, order: str = "C") -> Tensor:
    """All elements in one dimension."""
    return FUNCTIONS[np.ravel](self, order)


def flatten(self: Tensor, order: Any = "C", *dims: int) -> Tensor:
    """A copy of all elements in one dimension; with dimensions PyTorch's."""
    return ravel(self, order).copy() if isinstance(order, str) else METHODS["flatten"](self, order, *dims)


def view(self: Tensor, dtype: Any = None) -> Tensor:
    """The tensor itself in another object, which shows the same memory."""
    if dtype is None or (isinstance(dtype, type) and issubclass(dtype, np.ndarray)):
        return reshape(self, tuple(self.shape))
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
        return self._tensor.reshape(-1)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        changed = apply(identity, self._tensor.reshape(-1))
        changed[index] = value
        copy_(self._tensor, changed.reshape(tuple(self._tensor.shape)))

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._tensor.reshape(-1))

    def __len__(self) -> int:
        return self._tensor.numel()


_OF_FUNCTIONS = """
    sum prod mean std var max min argmax argmin all any cumsum cumprod ptp clip argsort take repeat nonzero
    trace diagonal swapaxes squeeze round choose argpartition dot
"""
NUMPY_METHODS: dict[str, Method] = {
    **{name: _function(name) for name in _OF_FUNCTIONS.split()},
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
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def _is_same_in_both(self: Tensor, other: Any) -> bool:
    """Whether NumPy and PyTorch promote alike: floats of one dtype, or a float and a Python number."""
    dtype = array_dtype(self)
    if type(other) is Tensor:
        return dtype.kind == "f" and array_dtype(other) == dtype
    return dtype.kind == "f" and type(other) in NUMBERS


def operator(ufunc: np.ufunc, torch: Method | None, reflected: bool = False) -> Method:
    """`x + other`, or `other + x`: PyTorch's where it is the same, or no NumPy program asks."""

    def method(self: Tensor, other: Any) -> Any:
        if torch is not None and (not has_numpy_methods() or _is_same_in_both(self, other)):
            return torch(self, other)
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return called(ufunc, (other, self) if reflected else (self, other))

    return functools.wraps(torch)(method) if torch is not None else method


def written_operand(other: Any) -> Any:
    """What `x += other` adds: lists are arrays in NumPy's programs."""
    return tensor_of(other) if has_numpy_methods() and isinstance(other, list | tuple) else other


def operators(methods: dict[str, Method]) -> dict[str, Method]:
    """The methods of Python's operators, by name."""
    found = {}
    for name, ufunc in (UFUNCS | COMPARISONS).items():
        found[f"__{name}__"] = operator(ufunc, methods.get(f"__{name}__"))
    for name, ufunc in UFUNCS.items():
        found[f"__r{name}__"] = operator(ufunc, methods.get(f"__r{name}__"), reflected=True)
    return found
