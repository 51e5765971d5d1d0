"""What stands for a table of another library, or an object made of one, in a trace: it asks `Queries`.

Operators with Tensors that depend on more than tables give Tensors, as those of the library's own objects do
(`values/foreign.py`): labels end there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tracer.lost_numbers import note_size_asked
from ..values.foreign import TracedObject
from ..values.tensor import Tensor
from ..values.value_kinds import PythonNumber, as_kind
from .objects import attributes_of

if TYPE_CHECKING:
    from .queries import Queries

LONGEST_TEXT = 60
COUNTED = (np.dtype("f8"), np.dtype("i8"))
"""The dtypes of columns whose elements are numbers of Python's when they are iterated over."""


class AskedTable(TracedObject):
    """A stand-in for an object of another library.

    Args:
        queries: what it asks ...
        place: ... and where it is there.
        real: the object in the call that is traced.
        text: how the user would write it.
    """

    __slots__ = ("_place", "_queries", "_real", "_text")
    __pandas_priority__ = 6000  # above that of Tensors: it knows which of them follow from tables

    def __init__(self, queries: Queries, place: int, real: Any, text: str) -> None:
        for name, value in (("_queries", queries), ("_place", place), ("_real", real), ("_text", text)):
            object.__setattr__(self, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._real)

    def as_array(self) -> Any:
        """The Tensor that it counts as with Tensors; an array where it holds what Tensors do not."""
        return self._queries.ask(self._queries.library.array, self._text, self)

    # --- attributes and elements ------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name == "__dict__":
            raise AttributeError(name)
        if name[0] == "_" and (hasattr(type(self._real), name) or name in attributes_of(self._real)):
            self._queries.refuse(f"other code looks into {self._text}, at {name}")
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(type(self._real), name, None)
        if callable(found) and not isinstance(found, type):  # a class makes what is got by its name
            return Method(self, name)
        if name in ("shape", "size"):
            note_size_asked()
        text = self._text if name == "values" else f"{self._text}.{name}"
        return self._queries.ask(getattr, text, self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._queries.ask(setattr, f"{self._text}.{name}", self, name, value)

    def __getitem__(self, item: Any) -> Any:
        return self._queries.ask(operator.getitem, f"{self._text}[{shown(item)}]", self, item)

    def __setitem__(self, item: Any, value: Any) -> None:
        self._queries.ask(operator.setitem, self._text, self, item, value)

    def __delitem__(self, item: Any) -> None:
        self._queries.ask(operator.delitem, self._text, self, item)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._queries.ask("__call__", f"{self._text}(...)", self, *arguments, **options)

    def __iter__(self) -> Iterator[Any]:
        array = self._queries.library.array(self._real) if hasattr(self._real, "to_numpy") else None
        if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype in COUNTED:
            elements = self.as_array()
            return iter([as_kind(elements[index], PythonNumber) for index in range(array.size)])
        found: Iterator[Any] = self._queries.ask(iter, self._text, self)
        return found

    def __len__(self) -> int:
        found: int = self._queries.ask(len, f"len({self._text})", self)
        return found

    def __contains__(self, item: Any) -> bool:
        found: bool = self._queries.ask(operator.contains, self._text, self, item)
        return found

    def __bool__(self) -> bool:
        found: bool = self._queries.ask(bool, f"bool({self._text})", self)
        return found

    def __hash__(self) -> int:
        return hash(self._real)

    def __copy__(self) -> Any:
        return self.copy(deep=False)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    # --- texts, which are no matter of guards -----------------------------------------------------------

    def __repr__(self) -> str:
        return repr(self._real)

    def __str__(self) -> str:
        return str(self._real)

    def __format__(self, form: str) -> str:
        return format(self._real, form)

    def __dir__(self) -> list[str]:
        return dir(self._real)

    # --- NumPy ------------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.as_array()
        if isinstance(found, Tensor):
            return found.__array__(dtype, copy)
        return np.array(found, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, form: str, *inputs: Any, **options: Any) -> Any:
        call = ufunc if form == "__call__" else getattr(ufunc, form)
        if self._meets_tensor([inputs, options]):
            return call(*self._as_arrays(inputs), **options)
        return self._queries.ask(call, f"{ufunc.__name__}({self._text})", *inputs, **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if self._meets_tensor([arguments, options]):
            return function(*self._as_arrays(arguments), **self._as_arrays(options))
        return self._queries.ask(function, f"{function.__name__}({self._text})", *arguments, **options)

    def _meets_tensor(self, value: Any) -> bool:
        """Whether there is a Tensor among values that depends on more than tables."""
        if isinstance(value, Tensor):
            return not self._queries.follows(value)
        if type(value) in (list, tuple):
            return any(map(self._meets_tensor, value))
        return type(value) is dict and any(map(self._meets_tensor, value.values()))

    def _as_arrays(self, value: Any) -> Any:
        """Values with arrays in the place of what stands for tables."""
        if type(value) is AskedTable:
            return value.as_array()
        if type(value) in (list, tuple):
            return type(value)(map(self._as_arrays, value))
        return {key: self._as_arrays(one) for key, one in value.items()} if type(value) is dict else value


class Method:
    """A method of an object that a table has a stand-in for."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: AskedTable, name: str) -> None:
        self._owner, self._name = owner, name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        owner = self._owner
        if self._name == "to_numpy":  # what its array is called for
            return owner._queries.ask(self._name, owner._text, owner, *arguments, **options)
        given = ", ".join([*map(shown, arguments), *(f"{key}={shown(one)}" for key, one in options.items())])
        return owner._queries.ask(
            self._name, f"{owner._text}.{self._name}({given})", owner, *arguments, **options
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(self._owner._real, self._name), name)


def shown(value: Any) -> str:
    """A short text for an argument."""
    if isinstance(value, Tensor | np.ndarray):
        return "..."
    text = value._text if type(value) is AskedTable else repr(value)
    return text if len(text) <= LONGEST_TEXT else "..."


def _operator(function: Callable[..., Any], symbol: str, reflected: bool) -> Callable[..., Any]:
    def method(self: AskedTable, other: Any) -> Any:
        operands = (other, self) if reflected else (self, other)
        if isinstance(other, Tensor) and not self._queries.follows(other):
            return function(*self._as_arrays(operands))
        text = f"({shown(operands[0])} {symbol} {shown(operands[1])})"
        return self._queries.ask(function, text, *operands)

    return method


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: AskedTable, other: Any) -> Any:
        if isinstance(other, Tensor) and not self._queries.follows(other):
            return NotImplemented
        return self._queries.ask(function, self._text, self, other)

    return method


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    text = function.__name__
    return lambda self, *digits: self._queries.ask(function, f"{text}({self._text})", self, *digits)


SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and_": "&", "or_": "|", "xor": "^",
}  # fmt: skip
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
for _name, _symbol in SYMBOLS.items():
    _function, _plain = getattr(operator, _name), _name.strip("_")
    setattr(AskedTable, f"__{_plain}__", _operator(_function, _symbol, reflected=False))
    setattr(AskedTable, f"__r{_plain}__", _operator(_function, _symbol, reflected=True))
    setattr(AskedTable, f"__i{_plain}__", _in_place(getattr(operator, f"i{_plain}")))
for _name, _symbol in COMPARISONS.items():
    setattr(AskedTable, f"__{_name}__", _operator(getattr(operator, _name), _symbol, reflected=False))
for _name in ("neg", "pos", "abs", "invert", "round"):
    setattr(AskedTable, f"__{_name}__", _unary(getattr(operator, _name, round)))
for _name, _function in (("float", float), ("int", int)):
    setattr(AskedTable, f"__{_name}__", _unary(_function))
