"""From a call to the program that runs it: one table, whose rows machine code reads.

A call goes one way. `CompiledFunction.__call__` hands its positional arguments to `Table.run`, which is
machine code (`codegen/machine/small_calls.py`). It compares them with the rows, newest first: arrays and
Tensors by dtype and shape, Tensors also by whether a gradient is asked of them, Python's numbers by type,
tuples by what they hold, and what is static by identity. The first row that fits runs: its variant reads what
the function reaches, makes new arrays and calls the kernel.

Where no row fits, where there are keywords or defaults, or where what the function reaches has changed
(STALE), `Dispatcher.call` binds the arguments and takes them apart: `Signature.call` gives the key. The entry
of this key runs the call; where that is new, or stale as well, the call is traced, and there is one more row.
In a trace a compiled function is its Python function. Which program a call runs may depend on

- captures: the variant's runner reads them; arrays become inputs, other values are guards. Where a guard does
  not hold, the next variant of the entry is asked;
- values: the entry holds `Paths`, which finds the path of a call by running it;
- static arguments: they count with their value, in the key, and in the row by identity;
- gradients: the variant puts one node on the tape, whose backward is the other program of a pair.

Nothing rewrites itself on the way: rows are made when the table changes, and a program is compiled when its
`runner` is asked for the first time. All that a call leaves for the next one is which path to try first.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..captures.tables import is_table
from ..tracing.signature import EXACT, LARGEST, VARYING, Call, Conformed, Description, Identity, Key
from ..values import modes
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar

if TYPE_CHECKING:
    from ...codegen.machine.small_calls import Argument, Surroundings

STALE: Any = object()
"""What runs a call returns it where it does not serve the call: what the function reaches has changed."""
Runner = Callable[[Sequence[Any]], Any]
MOST_TABLES = 16
"""Calls that are told apart by a table among their arguments, and keep it alive."""


class Runs:
    """What an entry holds: a variant, paths, or what runs uncompiled."""

    @property
    def size(self) -> int:
        """How many paths this is."""
        return 1

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call with these array leaves; STALE where what the function reaches is other."""
        raise NotImplementedError

    @property
    def direct(self) -> Runner:
        """`run`, or all that it calls."""
        return self.run

    @property
    def inner(self) -> list[Any]:
        """The compiled functions that it has made, which run calls for it."""
        return []


class Entry:
    """What is held for one key: several variants where values that the function reaches have differed."""

    __slots__ = ("arguments", "calls", "description", "former", "variants")
    SIBLINGS = 8

    def __init__(self, call: Call) -> None:
        self.variants: tuple[Runs, ...] = ()
        self.calls = ctypes.c_int64()
        """How many calls it has run, which machine code counts."""
        self.former = 0
        """The calls at the last eviction round, to tell whether it has been used since."""
        form = call.form
        if form is None:
            self.arguments = _arguments(call)
        else:
            form.row = form.row or (_arguments(call),)
            (self.arguments,) = form.row
        self.description = Description(call)

    def add(self, made: Runs) -> None:
        self.variants = (made, *self.variants[: self.SIBLINGS - 1])

    def run(self, leaves: Any) -> Any:
        for variant in self.variants:
            result = variant.run(leaves)
            if result is not STALE:
                return result
        return STALE

    @property
    def direct(self) -> Runner:
        return self.variants[0].direct if len(self.variants) == 1 else self.run


class Table:
    """Entries by the key of a call, and the machine code that finds one by the arguments.

    Whoever changes it holds the lock of the function whose calls these are.
    """

    maxsize = 256
    """Keys held at most; then one that has not been used lately goes."""
    run: Callable[[tuple[Any, ...], np.dtype], Any]
    """The results of a call with these positional arguments and default dtype; STALE where no row fits."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all entries and counts."""
        self.entries: dict[Key, Entry] = {}
        self._evicted_calls = 0
        self.run = _no_row

    @property
    def calls(self) -> int:
        """How many calls entries have run."""
        return self._evicted_calls + sum(entry.calls.value for entry in self.entries.values())

    @property
    def size(self) -> int:
        return sum(one.size for entry in self.entries.values() for one in entry.variants)

    def run_call(self, call: Call) -> Any:
        """The results of a call by the entry of its key; STALE where that has none."""
        entry = self.entries.get(call.key)
        if entry is None:
            return STALE
        entry.calls.value += 1  # before it, as machine code does: a call that fails is one
        result = entry.run(call.arrays)
        if result is STALE:
            entry.calls.value -= 1
        return result

    def holds(self, call: Call, made: Runs) -> bool:
        """Whether calls like this one still find it."""
        entry = self.entries.get(call.key)
        return entry is not None and made in entry.variants

    def enter(self, call: Call, made: Runs) -> Entry:
        """Let calls like this one find what was made for it, before what they have found."""
        entry = self.entries.get(call.key)
        if entry is None:
            if _is_of_table(call.key):
                self._forget_tables()
            while len(self.entries) >= self.maxsize:
                self._evict()
            entry = self.entries[call.key] = Entry(call)
        entry.add(made)
        self.settle()
        return entry

    def forget_variants(self) -> None:
        """Let all be traced anew; the counts stay."""
        for entry in self.entries.values():
            entry.variants = ()
        self.settle()

    def forget_numbers(self) -> None:
        """Drop the rows that take numbers as operands: some of these are constants from now on."""
        for entry in self.entries.values():
            if entry.arguments is not None and any(one.is_number for one in entry.arguments):
                entry.arguments = None
        self.settle()

    def settle(self) -> None:
        """Make the rows anew."""
        from ...codegen.machine.small_calls import Row, dispatcher  # not at start

        rows = [
            Row(key[0], entry.arguments, entry.direct, entry.calls)
            for key, entry in reversed(self.entries.items())
            if entry.arguments is not None and entry.variants
        ]
        self.run = dispatcher(rows, _surroundings()) if rows else _no_row

    def _forget_tables(self) -> None:
        """Let the oldest of the calls go that keep a table alive; it may come again (`shared.py`)."""
        keys = [*filter(_is_of_table, self.entries)]
        for key in keys[: 1 - MOST_TABLES]:
            self._evicted_calls += self.entries.pop(key).calls.value

    def _evict(self) -> None:
        """The clock algorithm: the oldest goes, unless it was used since it was last looked at."""
        while True:
            key = next(iter(self.entries))
            entry = self.entries.pop(key)
            if entry.calls.value == entry.former:
                self._evicted_calls += entry.calls.value
                return
            entry.former = entry.calls.value
            self.entries[key] = entry


def _is_of_table(key: Key) -> bool:
    """Whether calls with this key have a certain table of another library among their arguments."""
    return any(type(one) is Identity and is_table(one.value) for one in key)


def _no_row(arguments: tuple[Any, ...], default: np.dtype) -> Any:
    return STALE


@functools.cache
def _surroundings() -> Surroundings:
    from ...codegen.machine.small_calls import Surroundings  # not at start

    return Surroundings(
        unknown=STALE,
        conform=Conformed.of,
        refresh=Tensor.refresh,
        recording=modes.recording,
        value=vars(Tensor)["_value"],
        view=vars(Tensor)["_view"],
        requires_grad=vars(Tensor)["_requires_grad"],
        largest=LARGEST,
    )


def _arguments(call: Call) -> tuple[Argument, ...] | None:
    """What the arguments of a call with this key have to be, one by one; None where a row cannot say it."""
    if call.keywords:
        return None
    is_whole = all(one is None for one in call.structures)
    is_plain = is_whole and call.positional == call.signature.plain_count
    key = iter(call.key[1 if is_plain else 2 :])
    kinds = iter(call.kinds)
    leaves = (
        _operand(next(kinds), key) if flag else _static(leaf, key)
        for leaf, flag in zip(call.leaves, call.is_array)
    )
    found = [one for structure in call.structures for one in _structured(structure, leaves)]
    return None if None in found else tuple(one for one in found if one is not None)


def _structured(structure: Any, leaves: Iterator[Argument | None]) -> Iterator[Argument | None]:
    """What an argument is made of: tuples, each in front of its items, and the next leaves."""
    from ...codegen.machine.small_calls import Argument  # not at start

    if structure is None or structure.is_leaf():
        yield next(leaves)
        return
    yield Argument.tuple_of(structure.num_children) if structure.type is tuple else None
    for child in structure.children():
        yield from _structured(child, leaves)


def _static(leaf: Any, key: Iterator[Any]) -> Argument | None:
    """The same of a leaf that counts with its value; `key` yields its part of the key."""
    from ...codegen.machine.small_calls import Argument  # not at start

    kind, _ = next(key), next(key)
    is_itself = kind in EXACT or kind is float or kind.__eq__ is object.__eq__ or is_table(leaf)
    return Argument.same(leaf) if is_itself else None


def _operand(kind: type[Tensor], key: Iterator[Any]) -> Argument | None:
    """The same of an array, Tensor or number; in a trace one of this kind stands for it."""
    from ...codegen.machine.small_calls import Argument  # not at start

    first = next(key)
    if isinstance(first, str):
        return Argument.number(next(number for number, name in VARYING.items() if name == first))
    second = next(key)
    if isinstance(first, np.dtype):
        return Argument.array(first, second)
    shape = next(key)
    if first is NumpyScalar:
        return None
    return Argument.tensor(kind, first[1] if isinstance(first, tuple) else first, second, shape)
