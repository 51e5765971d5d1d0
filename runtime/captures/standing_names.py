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
from collections.abc import Sequence
from contextvars import ContextVar, Token
from types import CellType
from typing import Any, NamedTuple

import numpy as np

from ...tracer.records import record
from .places import ABSENT
from .versions import Versions

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


class Variables:
    """Variables that hold stand-ins together, in one run of a program or in all.

    Where they are as the last run has left them, they are exchanged without looking at each.
    """

    def __init__(self, variables: Sequence[Standing]) -> None:
        self._variables = variables
        holders = {id(one.holder): one.holder for one in variables if type(one.holder) is dict}
        self._versions = Versions(holders.values())
        self._plan: _Plan | None = None
        self._state: np.ndarray | None = None
        """Of their holders when they had the values that `_plan` takes them to have."""
        self._within: np.ndarray | None = None
        """Of these after it had exchanged them."""

    def __bool__(self) -> bool:
        return bool(self._variables)

    def are_held_by(self, under_way: Sequence[Standing]) -> bool:
        """Whether all of them hold these stand-ins already, by a run around this one."""
        held = {(id(one.holder), one.name): one.stand_in for one in under_way}
        for one in self._variables:
            entry = _entered.get(key := (id(one.holder), one.name))
            if entry is None or not (held.get(key) is entry.stand_in is one.stand_in):
                return False
        return True

    def enter(self, exchange: _Exchange) -> None:
        """Exchange them, and note what has been."""
        if self._plan is not None and self._versions.are(self._state):
            exchange.plan, exchange.before, exchange.exchanged = self._plan, self._state, self._plan.exchanged
            exchange.plan.enter()
            if self._within is not None:  # what they held in the last run, as runs inside of it ask
                self._versions.note_restored(self._within)
        else:
            exchange.before = self._versions.read()
            exchanged: list[Standing] = []
            try:
                exchanged += (one for one in self._variables if _enter(one))
            finally:
                exchange.exchanged = tuple(exchanged)
            exchange.plan = _Plan(exchange.exchanged)
        exchange.within = self._versions.read()

    def leave(self, exchange: _Exchange) -> None:
        """Put the former values back."""
        plan, before = exchange.plan, exchange.before
        is_as_left = plan is not None and plan.is_alone() and self._versions.are(exchange.within)
        if is_as_left and plan is not None and before is not None and plan.is_of_dicts:
            plan.leave()
            self._versions.note_restored(before)
            self._plan, self._state, self._within = plan, before, exchange.within
            return
        for one in exchange.exchanged:
            _leave(one)


@record(slots=True)
class _Exchange:
    """Variables that have been exchanged, how, and the states of their holders before and after it."""

    exchanged: tuple[Standing, ...]
    plan: _Plan | None = None
    before: np.ndarray | None = None
    within: np.ndarray | None = None


class _Plan:
    """How variables are exchanged that have certain values now.

    Args:
        exchanged: variables that hold stand-ins already.
    """

    def __init__(self, exchanged: tuple[Standing, ...]) -> None:
        self.exchanged = exchanged
        self._entries = {key: _entered[key] for key in ((id(one.holder), one.name) for one in exchanged)}
        self._reals = {id(one.stand_in): one.real for one in exchanged if one.for_all is not None}
        self._steps: dict[int, tuple[Any, dict[Any, Any], dict[Any, Any], list[Any]]] = {}
        """Of each dict what stands in it, the former values, and the names that were missing."""
        self.is_of_dicts = self.is_alone() and all(type(one.holder) is dict for one in exchanged)
        for one in exchanged if self.is_of_dicts else ():
            _, stand_ins, former, missing = self._steps.setdefault(id(one.holder), (one.holder, {}, {}, []))
            entry = self._entries[id(one.holder), one.name]
            stand_ins[one.name] = entry.stand_in
            if entry.former is ABSENT:
                missing.append(one.name)
            else:
                former[one.name] = entry.former

    def is_alone(self) -> bool:
        """Whether no other run has exchanged them, too."""
        return all(entry.count == 1 for entry in self._entries.values())

    def enter(self) -> None:
        _entered.update(self._entries)  # first, as an interrupted run puts back what is entered
        _real.update(self._reals)
        for holder, stand_ins, _, _ in self._steps.values():
            holder.update(stand_ins)

    def leave(self) -> None:
        for holder, _, former, missing in self._steps.values():
            holder.update(former)
            for name in missing:
                del holder[name]
        for key in self._entries:
            del _entered[key]


class standing:
    """Inside, these variables hold stand-ins, but where the program has given them other values."""

    __slots__ = ("_exchanges", "_token", "_variables")

    def __init__(self, *variables: Variables) -> None:
        self._variables = variables
        self._exchanges: list[tuple[Variables, _Exchange]] = []
        self._token: Token[tuple[Standing, ...]] | None = None

    def __enter__(self) -> None:
        under_way = _under_way.get()
        if under_way and all(one.are_held_by(under_way) for one in self._variables):
            return
        try:
            with _lock:
                for one in self._variables:
                    self._exchanges.append((one, exchange := _Exchange(())))
                    one.enter(exchange)
            for _, exchange in self._exchanges:
                under_way += exchange.exchanged
            self._token = _under_way.set(under_way)
        except BaseException:  # as of who interrupts
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _under_way.reset(self._token)
        with _lock:
            for variables, exchange in reversed(self._exchanges):
                variables.leave(exchange)
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
    entry = _entered.get(key := (id(one.holder), one.name))
    if entry is None:  # as of a run that was interrupted before it began
        return
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
