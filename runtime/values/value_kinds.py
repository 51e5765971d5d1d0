"""The kinds of values: whose methods, operators and promotion a tensor has, NumPy's or PyTorch's.

A function that is differentiated or traced gets tensors in the place of its arrays. What they mean must not
change by that: `x.std()` divides by n where x is an ndarray, by n - 1 where it is a Tensor; `x[0]` is a
number or a view; a Python float leaves float32 what it is. So the class of a tensor is its kind, and goes
with the data:

| class | stands for |
|---|---|
| `TorchTensor` | a Tensor: an argument, a global, what `pb.tensor` and its kin make |
| `NumpyTensor` | an ndarray |
| `NumpyScalar` | one of NumPy's numbers: an element, a sum |
| `PythonNumber` | a Python float, weak in promotion: what `math` computes, a differentiated float |
| `Auxiliary` | what pullback makes on its own account; it takes the kind of what it meets |

What an operator gives is PyTorch's if an operand is, else NumPy's if one is. What is computed belongs to the
name of the function: `pb.std(x)` divides by n - 1 for every x, and gives an ndarray for an ndarray.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...tracer.lost_numbers import note_size_asked
from .differentiated import is_differentiated
from .lost_gradients import refusal
from .tensor import Tensor, TorchTensor

ndarray = np.ndarray
PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_set_class = object.__dict__["__class__"].__set__


class Auxiliary(TorchTensor):
    """A tensor that pullback makes on its own account: positions, weights, zeros."""

    __slots__ = ()
    _precedence = 0


class TextOfDifferentiated(str):
    """The text of what depends on a differentiated argument: `float` of it would lose the gradient."""

    __slots__ = ()

    def __float__(self) -> float:
        raise refusal("float()", sys._getframe(1))


class NumpyTensor(Tensor):
    """What stands for an ndarray: its methods and operators are NumPy's."""

    __slots__ = ()
    _precedence = 2

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(x, np.ndarray) holds, as without us
        return ndarray

    def __repr__(self) -> str:
        known = self._shown_if_known()
        return super().__repr__() if known is None else self._text(repr(self._as_plain(known)))

    def __str__(self) -> str:
        return self._text(str(self._as_plain(self._shown())))

    def __format__(self, format_spec: str) -> str:
        return self._text(format(self._as_plain(self._shown()), format_spec))

    def _text(self, text: str) -> str:
        return TextOfDifferentiated(text) if is_differentiated(self) else text

    def __reduce__(self) -> tuple[Any, ...]:
        """What is pickled is what it stands for."""
        elements = super().__reduce__()[1][0]
        return self._as_plain(elements).__reduce_ex__(2)

    def _as_plain(self, array: ndarray) -> Any:
        """What the tensor stands for, given its elements."""
        return array

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        note_size_asked()
        return tuple(self._value.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """How many bytes lie between neighbours, of each dimension."""
        return tuple(step * self.itemsize for step in self.stride())

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self._value.dtype


class NumpyScalar(NumpyTensor):
    """What stands for one of NumPy's numbers: `+=` gives another number, and changes none."""

    __slots__ = ()
    _is_number = True
    __iter__ = None  # type: ignore[assignment]
    __len__ = None  # type: ignore[assignment]
    __contains__ = None  # type: ignore[assignment]

    def _as_plain(self, array: ndarray) -> Any:
        return array[()]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._value.dtype.type


class PythonNumber(NumpyScalar):
    """What stands for a Python number: beside an array it takes the array's dtype."""

    __slots__ = ()
    _precedence = 1

    def _as_plain(self, array: ndarray) -> Any:
        return array.item()

    def _shown_if_known(self) -> ndarray | None:
        """As of other tensors; but what is computed with the text of a number depends on it: a guard."""
        known = super()._shown_if_known()
        return known if known is None else self._concrete("its text")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return PYTHON_TYPES[self._value.dtype.kind]


HOLDING_NONE = frozenset((bool, int, float, complex, str, type(None), ndarray, slice, np.dtype))
"""The commonest classes of arguments that neither are tensors nor hold any."""


def kind_of_result(kind: type[Tensor], shape: tuple[int, ...], is_view: bool) -> type[Tensor]:
    """The kind of what an operator gives, where the first of its operands' kinds is `kind`."""
    if not issubclass(kind, NumpyTensor):
        return kind
    if shape:
        return NumpyTensor
    if kind in (PythonNumber, NumpyScalar):
        return kind
    return NumpyTensor if is_view else NumpyScalar


def kind_of_value(value: Any) -> type[Tensor]:
    """The kind of the tensor that stands for a value."""
    if isinstance(value, Tensor):
        return type(value)
    if isinstance(value, ndarray):
        return NumpyTensor
    return NumpyScalar if isinstance(value, np.generic) else PythonNumber


def as_kind(tensor: Tensor, kind: type[Tensor]) -> Tensor:
    """The same tensor, new from an operator and held by nobody else, as one of a kind."""
    if type(tensor) is not kind:
        _set_class(tensor, kind)
    return tensor


def settled(result: Any, arguments: Iterable[Any]) -> Any:
    """What a function has computed for arguments: of PyTorch's kind if one of them is, else of NumPy's."""
    given = tensors_among(arguments)
    torch = [one for one in given if issubclass(type(one), TorchTensor)]
    return _of_kind(result, bool(torch), set(map(id, given)))


def tensors_among(values: Iterable[Any]) -> list[Tensor]:
    """The tensors with a kind of their own among arguments, also in lists and dicts among them."""
    found: list[Tensor] = []
    for value in values:
        kind = type(value)  # `isinstance` asks `__class__` as well, a property
        if issubclass(kind, Tensor):
            if kind is not Auxiliary:
                found.append(value)
        elif kind in HOLDING_NONE:
            continue
        elif issubclass(kind, (list, tuple)):
            found += tensors_among(value)
        elif issubclass(kind, Mapping):
            found += tensors_among(value.values())
    return found


def _of_kind(result: Any, torch: bool, given: set[int]) -> Any:
    """The result as it is, with the tensors in it of PyTorch's or of NumPy's kind, but for those `given`."""
    if issubclass(type(result), Tensor):
        is_so = type(result) is TorchTensor if torch else issubclass(type(result), NumpyTensor)
        if is_so or id(result) in given:
            return result
        kind = TorchTensor if torch else NumpyTensor
        return as_kind(result, kind_of_result(kind, result._value.shape, result._view is not None))
    if type(result) in (list, tuple):
        return type(result)(_of_kind(one, torch, given) for one in result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(_of_kind(one, torch, given) for one in result))
    return result


def as_array(tensor: Tensor) -> Tensor:
    """A result, new from an operator, of a function of NumPy's that gives 0-d arrays, and no numbers."""
    return as_kind(tensor, NumpyTensor) if isinstance(tensor, NumpyScalar) else tensor


def as_number(tensor: Tensor) -> Tensor:
    """The same of a function that gives numbers, also where ours takes them from an array as views."""
    is_number = isinstance(tensor, NumpyTensor) and not tensor.ndim
    return as_kind(tensor, NumpyScalar) if is_number else tensor


def number_reader(kind: type[Tensor], dtype: np.dtype) -> Callable[[ndarray], Any]:
    """What makes of an array of one element the number that such a tensor stands for."""
    number = dtype.type
    item: Callable[[ndarray], Any] = ndarray.item
    return item if kind is PythonNumber else lambda array: number(array.item())


def plain(value: Any) -> Any:
    """What stands for a known value of NumPy's or Python's kind, and needs no gradient, as that value."""
    if not isinstance(value, NumpyTensor) or value.requires_grad:
        return value
    array = value._value
    return value._as_plain(array) if type(array) is ndarray else value
