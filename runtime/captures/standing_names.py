"""Variables that hold stand-ins while a transform runs: of modules, closures and objects.

What a transform can name it runs as copies (`tracing/program_copies.py`). Methods, and whatever else
objects lead to, it runs as they are, and meanwhile their variables hold stand-ins for parts of NumPy, `math`
and SciPy, for `type` and `hasattr`, and attributes of objects hold Tensors for arrays. Where nothing is
differentiated, as in another thread, these do what they stand for; to whoever looks at the variables
`real_of` says what that is.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterable, Sequence
from contextvars import ContextVar, Token
from types import CellType
from typing import Any, NamedTuple

from ...tracer.records import record
from .places import ABSENT

Holder = dict[Any, Any] | list[Any] | CellType
"""What holds variables: a module, a cell of a closure, the attributes of an object, a container."""


class Standing(NamedTuple):
    """A variable, as what holds it and its name; its value, which may be built in, and what stands for that.

    `for_all` stands for it where programs want different stand-ins at a time; None: the first of these does.
    """

    holder: Holder
    name: Any
    real: Any
    stand_in: Any
    for_all: Any


@record(slots=True)
class _Entry:
    """A variable that holds a stand-in for some transforms under way."""

    count: int
    former: Any
    stand_in: Any


_under_way: ContextVar[tuple[Standing, ...]] = ContextVar("standing", default=())
_lock = threading.Lock()
_entered: dict[tuple[int, Any], _Entry] = {}
"""By the identity of what holds a variable, and its name."""
_real: dict[int, Any] = {}
"""By the id of a stand-in that a variable holds, or has held, what it stands for."""


def real_of(value: Any) -> Any:
    """What a variable with this value holds when no transform is under way."""
    return _real.get(id(value), value) if _entered else value


def stands_for_built_in(name: str, value: Any) -> bool:
    """Whether a variable of a module is there only while a transform is under way."""
    return bool(_entered) and (real := _real.get(id(value))) is not None and vars(builtins).get(name) is real


class standing:
    """Inside, these variables hold stand-ins, but where the program has given them other values."""

    __slots__ = ("_entered", "_token", "_variables")

    def __init__(self, variables: Iterable[Standing]) -> None:
        self._variables = variables
        self._entered: list[Standing] = []
        self._token: Token[tuple[Standing, ...]] | None = None

    def __enter__(self) -> None:
        try:
            with _lock:
                for one in self._variables:
                    if _enter(one):
                        self._entered.append(one)
            self._token = _under_way.set((*_under_way.get(), *self._entered))
        except BaseException:  # as of who interrupts
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _under_way.reset(self._token)
        with _lock:
            for one in self._entered:
                _leave(one)
            if not _entered:
                _real.clear()


def standing_now() -> tuple[Standing, ...]:
    """The variables that hold stand-ins here, for code that runs once more when the transform has ended."""
    return _under_way.get()


def _enter(one: Standing) -> bool:
    found, entry = read(one), _entered.get(key := (id(one.holder), one.name))
    if entry is None:
        is_real = found is one.real or (found is ABSENT and vars(builtins).get(one.name) is one.real)
        if not is_real:
            return False
        entry = _entered[key] = _Entry(0, found, one.stand_in)
    elif found is not entry.stand_in:
        return False
    elif entry.stand_in is not one.stand_in and one.for_all is not None:
        entry.stand_in = one.for_all
    entry.count += 1
    if one.for_all is not None:  # a Tensor has what an array has not, its place on the tape
        _real[id(entry.stand_in)] = one.real
    _store(one, entry.stand_in)
    return True


def _leave(one: Standing) -> None:
    entry = _entered[key := (id(one.holder), one.name)]
    entry.count -= 1
    if entry.count:
        return
    del _entered[key]
    if read(one) is not entry.stand_in:  # the program has given it another value
        return
    _store(one, entry.former)


def read(place: Sequence[Any]) -> Any:
    """What a variable, given as its holder and its name, holds now."""
    holder, name = place[:2]
    try:
        return holder.cell_contents if isinstance(holder, CellType) else holder[name]
    except (ValueError, KeyError, IndexError):  # deleted
        return ABSENT


def _store(one: Standing, value: Any) -> None:
    if isinstance(one.holder, CellType):
        one.holder.cell_contents = value
    elif value is ABSENT:
        del one.holder[one.name]
    else:
        one.holder[one.name] = value
