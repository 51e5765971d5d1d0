"""What NumPy makes of a list that grows in a trace: an array of which the length is a value.

Its rows lie in an array with room for more. Before anything is computed of the elements, copies of the first
one are put behind them, so that what is computed there is as finite, and so is its gradient. What combines
rows leaves those out. Sums, means, extremes, what is computed element by element, and parts from a number of
rows on, or up to as many before the end, need no more. For all else the length is asked: each is a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...tracer.ops.creation import iota
from ...tracer.spec import INT64
from ...tracer.trace import ConstantNeeded
from ..tape.apply import apply
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor, TorchTensor


class Held:
    """Arrays that are elements of growing lists as well, or that arrays of such lists have given.

    Rows are copies: what is written into one of these would have to be written there, too.
    """

    def __init__(self) -> None:
        self._held: list[tuple[Any, Any, Any]] = []
        """With the version of a Tensor, or the content of an array."""

    def note(self, counter: Any, value: Any) -> None:
        if type(value) in (NumpyTensor, TorchTensor):
            self._held.append((counter, value, value._cell[0]))
        elif type(value) is np.ndarray:
            self._held.append((counter, value, value.tobytes()))

    def require_unwritten(self) -> None:
        """Raises ConstantNeeded where one has been written into."""
        for counter, value, before in self._held:
            now = value.tobytes() if type(value) is np.ndarray else value._cell[0]
            if now != before:
                raise ConstantNeeded({counter})


class GrownArray(NDArrayOperatorsMixin):
    """An array of traced rows, of which there are as many as a value says.

    Args:
        rows: all that there is room for.
        count: how many there are.
        least: how many there are at least.
        counter: which list it is made of.
        held: notes what shares memory with it in the plain call.
        is_finite: whether what lies behind is no worse than a row.
    """

    __slots__ = ("_counter", "_finite", "_held", "_known", "_least", "count", "rows")
    __array_priority__ = 6000  # before that of Tensors

    def __init__(
        self, rows: Any, count: Any, least: int, counter: Any, held: Held, is_finite: bool = False
    ) -> None:
        self.rows = rows
        self.count = count
        self._least = least
        self._counter = counter
        self._held = held
        self._finite: Any = rows if is_finite else None
        self._known: Any = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(x, np.ndarray) holds, as without us
        return np.ndarray

    @property
    def known(self) -> Any:
        """The array as it is in the call that is traced: its length is a guard."""
        if self._known is None:
            self._known = self._given(self.rows[: int(self.count)])
        return self._known

    def _given(self, part: Any) -> Any:
        """A part that code may write into, which is found out."""
        part = np.copy(part) if part.ndim else part
        self._held.note(self._counter, part)
        return part

    def _of_rows(self, rows: Any, least: int, count: Any = None) -> GrownArray:
        """An array of other rows, behind which lies nothing worse."""
        count = self.count if count is None else count
        return GrownArray(rows, count, least, self._counter, self._held, is_finite=True)

    # --- parts --------------------------------------------------------------------------------------------

    def element(self, index: Any) -> Any:
        """A row by its place, which may be a value; IndexError if there is none."""
        if type(index) is int:
            self._require(-index if index < 0 else index + 1)
            return self._given(self.rows[self.count + index if index < 0 else index])
        if not issubclass(type(index), Tensor) or index._value.shape or index._value.dtype.kind not in "iu":
            return self.known[index]
        place = index if index >= 0 else self.count + index
        if not (place >= 0 and place < self.count):
            raise IndexError("list index out of range")
        return self._given(self.rows[place])

    def has(self, count: int) -> bool:
        """Whether there are so many rows: a question, if some calls may have fewer."""
        return count <= self._least or bool(self.count >= count)

    def _require(self, count: int) -> None:
        if not self.has(count):
            raise IndexError("list index out of range")

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int or issubclass(type(index), Tensor):
            return self.element(index)
        part, *others = index if type(index) is tuple and index else (index,)
        if any(type(one) not in (int, slice) for one in others):
            return self.known[index]
        if type(part) is int:
            return self._given(self.element(part)[tuple(others)])
        if type(part) is not slice:
            return self.known[index]
        ends = _ends(part)
        if ends is None or not self.has(sum(ends)):
            return self.known[index]
        start, lost = ends
        rows = self.finite[start : int(self.rows.shape[0]) - lost] if start or lost else self.finite
        count = self.count - (start + lost) if start or lost else self.count
        rows = rows[(slice(None), *others)] if others else rows
        return self._of_rows(rows, max(self._least - start - lost, 0), count)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise ConstantNeeded({self._counter})

    def __iter__(self) -> Iterator[Any]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def __bool__(self) -> bool:
        return bool(self.known)

    def __float__(self) -> float:
        return float(self.known)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise ConstantNeeded({self._counter})

    def __matmul__(self, other: Any) -> Any:
        return np.matmul(self, other)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")
        if name in COMBINED:
            return lambda axis=None, **options: combined(name, self, axis, **options)
        return getattr(self.known, name)

    # --- elements -----------------------------------------------------------------------------------------

    @property
    def _is_row(self) -> Any:
        """Of all that there is room for whether it is a row."""
        places = apply(iota, size=int(self.rows.shape[0]), dtype=INT64)
        return np.less(places.reshape(-1, *(1,) * (self.rows.ndim - 1)), self.count)

    @property
    def finite(self) -> Any:
        """The rows, with copies of the first one behind them."""
        if self._finite is None:
            self._finite = np.where(self._is_row, self.rows, self.rows[:1])
        return self._finite

    def filled(self, value: Any) -> Any:
        """The rows, with a number behind them."""
        return np.where(self._is_row, self.rows, value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        grown = [one for one in inputs if type(one) is GrownArray]
        if method == "__call__" and not options and ufunc.signature is None and self._go_together(inputs):
            given = [one.finite if type(one) is GrownArray else one for one in inputs]
            least = max(one._least for one in grown)
            found = ufunc(*given)
            every = tuple(self._of_rows(one, least) for one in (found if ufunc.nout > 1 else (found,)))
            return every if ufunc.nout > 1 else every[0]
        if ufunc is np.matmul and not options and all(_is_vector(one) for one in inputs):
            return np.sum(np.multiply(*inputs))
        if method == "reduce" and ufunc in OF_REDUCING and inputs == (self,):
            return combined(OF_REDUCING[ufunc], self, options.pop("axis", 0), **options)
        named = {key: plain(one) for key, one in options.items()}
        return getattr(ufunc, method)(*map(plain, inputs), **named)

    def _go_together(self, inputs: tuple[Any, ...]) -> bool:
        """Whether elements of the first dimension meet elements at the same place, or all the same one."""
        for one in inputs:
            if type(one) is GrownArray:
                if one.rows.ndim != self.rows.ndim:
                    return False
                if one.count is not self.count and not bool(one.count == self.count):
                    return False
            elif np.ndim(one) >= self.rows.ndim:
                return False
        return True

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        name = getattr(function, "__name__", "")
        name = {"amax": "max", "amin": "min"}.get(name, name)
        if name in COMBINED and arguments[:1] == (self,) and len(arguments) <= 2:
            axis = arguments[1] if len(arguments) == 2 else options.get("axis")
            others = {key: one for key, one in options.items() if key != "axis"}
            return combined(name, self, axis, **others)
        if name in ELEMENTWISE:
            found = ELEMENTWISE[name](*arguments, **options)
            if found is not NotImplemented:
                return found
        return function(*_plain_in(arguments), **{key: _plain_in(one) for key, one in options.items()})


def _ends(part: slice) -> tuple[int, int] | None:
    """How many rows a slice leaves out at both ends, if no other ones."""
    start, stop = part.start or 0, part.stop
    if part.step not in (None, 1) or type(start) is not int or start < 0:
        return None
    if stop is not None and (type(stop) is not int or stop >= 0):
        return None
    return start, -(stop or 0)


def _is_vector(value: Any) -> bool:
    return type(value) is GrownArray and value.rows.ndim == 1


def length_of(value: Any) -> tuple[Any, Any] | None:
    """The rows of an array of which the length is a value, and that; None for others."""
    return (value.rows, value.count) if type(value) is GrownArray else None


def plain(value: Any) -> Any:
    """A value with the length that it has in the call that is traced."""
    return value.known if type(value) is GrownArray else value


def _plain_in(value: Any) -> Any:
    """The same for what may hold such values."""
    return type(value)(map(_plain_in, value)) if type(value) in (list, tuple) else plain(value)


# --- what combines rows -----------------------------------------------------------------------------------


COMBINED = frozenset(("sum", "mean", "prod", "max", "min"))
OF_REDUCING = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}


def combined(name: str, array: GrownArray, axis: Any = None, **options: Any) -> Any:
    """What a function of that name makes of the elements, or of those along a dimension."""
    dtype, function, dimensions = array.rows.dtype, getattr(np, name), array.rows.ndim
    if type(axis) is int and -dimensions <= axis < 0:
        axis += dimensions
    is_one = axis is None or (type(axis) is int and 0 <= axis < dimensions)
    if options or dtype.kind != "f" or not is_one or not array.has(1):
        return function(array.known, axis=axis, **options)
    if axis:
        rows = function(array.finite, axis=axis)
        return array._of_rows(rows, 1)
    if name == "mean":
        size = 1 if axis == 0 else int(np.prod(array.rows.shape[1:]))
        return np.sum(array.filled(0.0), axis=axis) / (array.count * size)
    neutral = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[name]
    return function(array.filled(neutral), axis=axis)


def _differences(a: Any, n: int = 1, axis: int = -1) -> Any:
    """`np.diff`."""
    if type(a) is not GrownArray or n != 1 or axis not in (0, -a.rows.ndim):
        return NotImplemented
    return a[1:] - a[:-1]


def _chosen(condition: Any, *values: Any) -> Any:
    """`np.where`."""
    inputs = (condition, *values)
    first = next((one for one in inputs if type(one) is GrownArray), None)
    if first is None or len(values) != 2 or not first._go_together(inputs):
        return NotImplemented
    given = [one.finite if type(one) is GrownArray else one for one in inputs]
    least = max(one._least for one in inputs if type(one) is GrownArray)
    return first._of_rows(np.where(*given), least)


def _area(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """`np.trapezoid`."""
    if not _is_vector(y) or not (x is None or _is_vector(x)):
        return NotImplemented
    widths = dx if x is None else _differences(x)
    return np.sum(widths * (y[1:] + y[:-1]) / 2.0)


def _product(a: Any, b: Any) -> Any:
    """`np.dot`."""
    return np.matmul(a, b) if _is_vector(a) and _is_vector(b) else NotImplemented


def _copy(a: Any, *_: Any, **options: Any) -> Any:
    return a if type(a) is GrownArray and not options else NotImplemented


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "diff": _differences, "where": _chosen, "trapz": _area, "trapezoid": _area, "dot": _product,
    "copy": _copy,
}  # fmt: skip
"""By NumPy's names what need not know the length, or gives NotImplemented."""


__all__ = ["GrownArray", "Held", "combined", "length_of", "plain"]
