"""What a function reaches besides its arguments, and how to read it anew in each call.

A compiled function must see a changed closure. So before a trace the function is explored: closure cells,
the globals that its code names, helper functions, and from these on attributes, items and modules, by the
names that occur in the code. Each array on the way is a `Source`, an input of the graph. What is no array
(a number, a string, the identity of a helper function, the content of a set or of a library's object) is a
guard: when it differs, the function is traced anew. Both are read by one generated function (`reader.py`).

Not explored: NumPy, SciPy, the standard library and pullback itself. But where NumPy, or a function of it, is
reached that makes arrays which a traced function could not fill, there is a `StandIn`. A number that the
function changes is a `Number`, see `state.py`.
"""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import math
import operator
import os
from collections.abc import Iterator, Sequence, Set
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...tracer.errors import TraceError
from ...tracer.spec import SUPPORTED
from ..bytecode.code_names import names_of, place_of_name
from ..bytecode.write_instructions import calls_taking_methods, imports, writes_of
from ..tracing.asked_types import ASKED, BUILT_IN, REAL, is_as_in_python
from ..tracing.stand_ins import IMPORTED, INDEXED, JOINED, WRITABLE, StandIns
from ..values.dtypes import DType
from ..values.foreign import module_of
from ..values.modes import is_grad_enabled
from ..values.plain_arrays import require_plain_array
from ..values.tensor import Tensor
from .asked_libraries import AskedModule, asking
from .classes import code_of, is_descriptor, is_made_anew, makers, names_in_namespace, special_methods
from .contents import PLAIN_TYPES, Content, Unreadable
from .memoised import CACHED, is_dispatcher
from .objects import (
    CONTAINERS,
    HasParts,
    Unread,
    attributes_of,
    is_instance,
    is_opaque,
    is_opaque_instance,
    is_own_container,
    is_users,
    names_in,
    wrapped_by,
)
from .places import (
    ABSENT,
    NOTHING,
    Changed,
    Drawing,
    Holder,
    Key,
    Number,
    Place,
    Reading,
    Source,
    StandIn,
    Table,
)
from .queries import Queries
from .randomness import RANDOM, TracedStream, drawing
from .reader import Reader
from .standing_names import real_of
from .tables import is_table, library_of_code

OF_DISTRIBUTIONS = ("args", "kwds", "dataset", "weights", "factor")
"""The attributes of frozen distributions, and of kernel densities, that hold parameters."""
MOST_COMPARED = 32
"""Arrays that a new one is told apart from, where another function object may reach the same one twice."""
LIMIT = 2000
"""Places that are explored at most; what lies beyond is guarded by identity."""


def explore(
    roots: Sequence[tuple[Any, str]],
    changed: Changed = NOTHING,
    indexes_arrays: bool = False,
    follows_tables: bool = False,
) -> Reading:
    """Explore a function and the objects among its static arguments, each with what to call it.

    Args:
        changed: what the function changes.
        indexes_arrays: whether arrays that it makes are Tensors, since it reads them at traced positions.
        follows_tables: whether what it asks of tables is followed; else their content is a guard.

    Raises:
        TraceError: it reaches what can't be read without using it up.
        ArgumentError: it reaches a masked array, or an `np.matrix`.
    """
    names: frozenset[str] = frozenset()
    stand_ins, reads_all, may_miss = JOINED, False, False
    asked_code: frozenset[type] = frozenset()
    while True:
        explorer = _Explorer(
            names, stand_ins, reads_all, may_miss, changed, follows_tables, asked_code
        )
        reached = tuple(explorer.root(root, label) for root, label in roots)
        wanted = INDEXED if indexes_arrays else WRITABLE if explorer.is_writing else JOINED
        found = wanted, explorer.reads_all, explorer.may_miss, explorer.code_to_ask
        if explorer.attribute_names <= names and found == (stand_ins, reads_all, may_miss, asked_code):
            return explorer.reading(reached)
        names |= explorer.attribute_names
        stand_ins, reads_all, may_miss, asked_code = found


class _Explorer:
    """One walk over what the roots reach.

    Args:
        names: the attributes that the code found so far reads.
        stand_ins: for the parts of NumPy that are reached.
        reads_all: whether it reads attributes of objects by names that it computes.
        may_miss: whether it goes on where an object lacks an attribute.
        changed: what the function changes.
        follows_tables: whether what is asked of tables is followed.
        asked_code: the kinds of code of a library that it may give tables to: functions, classes.
    """

    def __init__(
        self,
        names: frozenset[str],
        stand_ins: StandIns,
        reads_all: bool,
        may_miss: bool,
        changed: Changed,
        follows_tables: bool,
        asked_code: frozenset[type],
    ) -> None:
        self.names = names
        self.stand_ins = stand_ins
        self.all_attributes = self.reads_all = reads_all
        self.guards_missing = self.may_miss = may_miss
        self.changed = changed.numbers
        self.written = changed.containers
        self.is_writing = self.asks_identity = False
        self.attribute_names: set[str] = set()
        self.reader = Reader()
        self.sources: list[Source] = []
        self.numbers: list[tuple[Number, str, str]] = []
        self.holders: dict[int, Holder] = {}
        self.stored_globals: list[tuple[dict[str, Any], str]] = []
        self.streams: list[tuple[Any, str]] = []
        self.compared: list[np.ndarray] = []
        self.follows_tables = follows_tables
        self.asked_code = asked_code
        self.reaches_library = self.compares_classes = False
        self.queries = Queries()
        self.tables: list[tuple[Table, str]] = []
        """Each with the variable that holds it."""
        self._codes: list[CodeType] = []
        self._guarded_members: set[tuple[type, str]] = set()
        self._passed_classes: set[type] = set()

    def root(self, value: Any, label: str) -> Place | None:
        """A root is given, not read: its identity needs no guard."""
        stand_in = None if isinstance(value, ModuleType) else self.stand_ins.of(value, self.names)
        if stand_in is not None:
            if is_opaque_instance(value):
                self._guard_taken(value, self.reader.root(value), label)
            return StandIn(stand_in)
        variable = self.reader.root(value)
        if self.follows_tables and is_table(value):
            return self._table(value, variable, label)
        if is_opaque_instance(value):
            return self._guard_content(value, variable, label)
        self._guard_kind(value, variable)
        if id(value) in self.holders:
            self.reader.guard_binding(f"{variable} is not {self.holders[id(value)].variable}")
        return self._object(value, variable, label)

    def reading(self, roots: tuple[Place | None, ...]) -> Reading:
        if self.tables:
            given = ", ".join(variable for _, variable in self.tables)
            answers = self.reader.assign(f"{self.reader.constant(self.queries)}({given})")
            self.reader.guard(f"{answers} is None")
            self.reader.captured.append(f"*{answers}")
        for _, owner, variable in self.numbers:
            self.reader.captured += (owner, variable)
        return Reading(
            roots,
            tuple(self.sources),
            tuple(number for number, _, _ in self.numbers),
            tuple(self.holders.values()),
            tuple(self.stored_globals),
            tuple(self.streams),
            self.reader,
            self.reader.read(),
            self.asks_identity,
            tuple(self.compared),
            self.queries if self.tables else None,
        )

    # --- one place ------------------------------------------------------------------------------------

    def visit(self, value: Any, expression: str, label: str) -> Place | None:
        """Read the place `expression`, guard what is not an array, and go on to what it holds."""
        reader, value = self.reader, real_of(value)
        stand_in = self.stand_ins.of(value, self.names) or self._library_stand_in(value)
        if isinstance(value, ModuleType):
            return self._module(value, expression, label, stand_in)
        variable = reader.assign(expression)
        if stand_in is not None:
            reader.guard(self._is_other(variable, value))
            if is_opaque_instance(value):
                self._guard_taken(value, variable, label)
            return StandIn(stand_in)
        if self.follows_tables and is_table(value):
            return self._table(value, variable, label)
        if isinstance(value, np.ndarray):
            require_plain_array(value, f"{label}, which {self._code_name()} reaches,")
            if type(value) in (np.ndarray, np.memmap) and _is_supported(value.dtype):
                return self._array(value, variable, label)
            self._guard_content(value, variable, label)
            return None
        if isinstance(value, Tensor):
            return self._array(value, variable, label)
        if isinstance(value, (*PLAIN_TYPES, np.generic, enum.Enum, np.dtype, DType)):
            self._guard_equal(value, variable)
            return self._member(value, variable, label) if isinstance(value, enum.Enum) else None
        known = self.holders.get(id(value))
        if known is not None:
            reader.guard(f"{variable} is not {known.variable}")
            return self._object(value, known.variable, label)
        if id(value) in self.written:
            return self._written(value, variable, label)
        if type(value) in CONTAINERS or (isinstance(value, tuple) and hasattr(value, "_fields")):
            return self._container(value, variable, label)
        if type(value) in (set, frozenset) and not all(map(_is_plain, tuple(value))):
            return self._set(value, variable, label)
        if type(value) is set:
            self._holder("items", value, variable, label)
        if is_own_container(value) and not is_opaque(type(value).__module__):
            return self._own_container(value, variable, label)
        if is_opaque_instance(value) or is_own_container(value):
            return self._guard_content(value, variable, label)
        owner = value.__self__ if isinstance(value, MethodType | BuiltinFunctionType) else None
        if isinstance(owner, RANDOM):
            reader.guard(f"{variable} != {reader.constant(value)}")
            self._guard_content(owner, f"{variable}.__self__", label)
            return Drawing(drawing(value), value)
        if is_instance(value) or isinstance(value, MethodType):  # a method is made anew by each look at it
            self._guard_kind(value, variable, always=True)
            return self._object(value, variable, label)
        if isinstance(value, FunctionType | functools.partial) or wrapped_by(value) is not None:
            variable = self._guard_identity(value, variable)
            self._guard_kind(value, variable)
        else:
            reader.guard(f"{variable} is not {reader.constant(value)}")
            self._note_kept(value)
        return self._object(value, variable, label)

    def _module(self, value: ModuleType, expression: str, label: str, stand_in: Any) -> Place | None:
        reader = self.reader
        if not is_opaque(value.__name__) and stand_in is None:
            return self._object(value, reader.assign(expression), label)
        reader.guard_binding(self._is_other(expression, value))
        if value is os and not self.names.isdisjoint(("environ", "environb", "getenv", "getenvb")):
            self._guard_content(os.environ, reader.constant(os.environ), "os.environ")
        return None if stand_in is None else StandIn(stand_in)

    def _array(self, value: np.ndarray | Tensor, variable: str, label: str) -> Source:
        reader = self.reader
        for source, known in zip(self.sources, reader.captured):
            if source.value is value:
                reader.guard(f"{variable} is not {known}")
                return source
        for known in reader.captured[:MOST_COMPARED]:
            reader.guard_binding(f"{variable} is {known}")
        payload = value
        conditions = [f"type({variable}) is not {reader.constant(type(value))}"]
        if isinstance(value, Tensor):
            payload = value._value
            conditions.append(f"{variable}.requires_grad is not {value.requires_grad}")
            conditions.append(f"{variable}._value.shape != {tuple(payload.shape)!r}")
            conditions.append(f"{variable}._value.dtype != {reader.constant(payload.dtype)}")
            if value.requires_grad:
                conditions.append(f"{reader.constant(is_grad_enabled)}() is not {is_grad_enabled()}")
        else:
            conditions.append(f"{variable}.shape != {tuple(payload.shape)!r}")
            conditions.append(f"{variable}.dtype != {reader.constant(payload.dtype)}")
        reader.guard(" or ".join(conditions))
        source = Source(value, label, payload.dtype.kind == "c")
        self.sources.append(source)
        reader.captured.append(variable)
        return source

    def _library_stand_in(self, value: Any) -> Any:
        """What stands for a module, function or class of a library whose tables are in reach."""
        is_code = isinstance(value, ModuleType | FunctionType | type)
        if not is_code or not self.follows_tables or library_of_code(value) is None:
            return None
        self.reaches_library = True
        if isinstance(value, ModuleType):
            return AskedModule(value, self.queries, self.asked_code) if self.asked_code else None
        is_asked = isinstance(value, tuple(self.asked_code))
        return asking(value, self.queries) if is_asked else None

    @property
    def code_to_ask(self) -> frozenset[type]:
        """The kinds of code that have stand-ins: of a class none that is compared by identity."""
        if not self.tables or not self.reaches_library:
            return frozenset()
        return frozenset([FunctionType] if self.compares_classes else [FunctionType, type])

    def _table(self, value: Any, variable: str, label: str) -> Table:
        for known, its_variable in self.tables:
            if known.value is value:
                self.reader.guard(f"{variable} is not {its_variable}")
                return known
        table = Table(value, self.queries, self.queries.add(value, label))
        self.tables.append((table, variable))
        return table

    # --- guards -----------------------------------------------------------------------------------------

    def _is_other(self, expression: str, value: Any) -> str:
        """Whether a variable holds something else, and no stand-in of a transform under way."""
        constant = self.reader.constant
        real, name = constant(real_of), constant(value)
        return f"{expression} is not {name} and {real}({expression}) is not {name}"

    def _guard_equal(self, value: Any, variable: str) -> None:
        expected = self.reader.constant(value)
        kind = self.reader.constant(type(value))
        differs = f"type({variable}) is not {kind} or {variable} != {expected}"
        if isinstance(value, float | np.floating) and value != value:
            differs = f"type({variable}) is not {kind} or {variable} == {variable}"
        elif isinstance(value, float) and value == 0.0:
            differs += (
                f" or {self.reader.constant(math.copysign)}(1.0, {variable}) != {math.copysign(1.0, value)}"
            )
        self.reader.guard(f"{variable} is not {expected} and ({differs})")

    def _guard_identity(self, value: Any, variable: str) -> str:
        """The same object as long as the function object is the same; its name."""
        name = self.reader.bound(value, variable)
        self.reader.guard(f"{variable} is not {name}")
        return name

    def _guard_kind(self, value: Any, variable: str, always: bool = False) -> None:
        """What makes two objects alike, as far as their parts are; `always` if another may take its place."""
        guard = self.reader.guard if always else self.reader.guard_binding
        guard(f"type({variable}) is not {self.reader.constant(type(value))}")
        if isinstance(value, FunctionType):
            guard(f"{variable}.__code__ != {self.reader.constant(value.__code__)}")
        self._note_kept(type(value))

    def _guard_content(self, value: Any, variable: str, label: str, is_taken: bool = False) -> Place | None:
        """A guard on all that an object holds, and on its identity where arrays may be taken from it.

        Of a stream of random numbers on its identity alone; returns what stands for it. `is_taken`: whether a
        stand-in has taken arrays from it, which programs then keep.
        """
        if isinstance(value, RANDOM):
            self.streams.append((value, label))
            self.reader.is_shareable = False
            if variable[0] != "r":
                self._guard_identity(value, variable)
            stand_in = TracedStream.of(value)
            return None if stand_in is None else Drawing(stand_in, value)
        self.reads_all |= isinstance(value, operator.attrgetter | operator.methodcaller)
        try:
            content = Content(value, self.compared)
        except Unreadable as error:
            raise self._unreadable(error.value, label, error.__cause__) from None
        self.streams += [(stream, label) for stream in content.streams]
        if not content.is_plain:
            self.reader.is_shareable &= content.is_copied and not is_taken
            if variable[0] == "v":
                self._guard_identity(value, variable)
        self.reader.guard(f"not {self.reader.constant(content)}.is_of({variable})")
        return None

    def _guard_taken(self, value: Any, variable: str, label: str) -> None:
        """A guard on what a stand-in has taken from an object; of a distribution that is its parameters."""
        variable = f"{self.reader.constant(real_of)}({variable})"
        if module_of(type(value)).startswith("scipy.stats."):
            self.streams += [(stream, label) for stream in Content(value).streams]
            names = [name for name in OF_DISTRIBUTIONS if hasattr(value, name)]
            if not names:
                return
            variable = f"[{', '.join(f'{variable}.{name}' for name in names)}]"
            value = [getattr(value, name) for name in names]
        self._guard_content(value, variable, label, is_taken=True)

    def _unreadable(self, value: Any, label: str, refusal: BaseException | None = None) -> TraceError:
        name = label.rpartition(".")[2].partition("[")[0]
        places = [place_of_name(code, name) for code in self._codes if name in names_in(code)]
        place = f", at {places[0]}" if places else ""
        if refusal is None:
            reason = "be read in each call without being used up, and code would repeat what its trace got"
        else:
            reason = f"be read as arrays: {refusal}"
        return TraceError(
            f"{self._code_name()} reaches {label}{place}: objects of type {type(value).__name__} can't "
            f"{reason}. Make a list or an array of what it gives, and pass or keep that."
        )

    def _code_name(self) -> str:
        return self._codes[0].co_name if self._codes else "the function"

    def _note_kept(self, value: Any) -> None:
        """Where a guard keeps an object alive, other function objects get no share of the program."""
        lasts = isinstance(value, BuiltinFunctionType | np.ufunc | FunctionType | HasParts | type)
        if not lasts or "<locals>" in getattr(value, "__qualname__", ""):
            self.reader.is_shareable = False

    # --- what holds others --------------------------------------------------------------------------------

    def _holder(self, kind: str, value: Any, variable: str, label: str) -> Holder:
        """Enter a holder; others like it are others, which code may find out by `is`."""
        guard = self.reader.guard if kind == "instance" else self.reader.guard_binding
        for other in self.holders.values() if kind in ("instance", "function") else ():
            if type(other.value) is type(value) and not _are_code_of_others(other.value, value):
                guard(f"{variable} is {other.variable}")
        holder = self.holders[id(value)] = Holder(kind, value, label, variable)
        return holder

    def _child(
        self, holder: Holder, key: Any, value: Any, variable: str, suffix: str, label: str, at: Any = None
    ) -> None:
        """Visit what a holder has at `key`; `at`: what else holds it, and at which key."""
        owner, place = (holder.value, key) if at is None else at
        if (id(owner), place) in self.changed:
            child: Place | None = self._number(owner, place, value, variable, suffix, label)
        else:
            child = self.visit(value, variable + suffix, label)
        if child is not None:
            holder.children.append((key, child))

    def _number(self, owner: Any, key: Any, value: Any, variable: str, suffix: str, label: str) -> Number:
        for known, _, _ in self.numbers:
            if known.owner is owner and known.key == key:
                return known
        if value is ABSENT:
            if not isinstance(owner, dict):  # whose keys are guarded
                self.reader.guard(f"{self.reader.constant(hasattr)}({variable}, {key!r})")
            number = Number(value, label, owner, key, suffix)
            self.numbers.append((number, variable, "None"))
            return number
        found = self.reader.assign(variable + suffix)
        if type(value) in (int, float):
            self.reader.guard(f"type({found}) is not {self.reader.constant(type(value))}")
        else:
            self._guard_equal(value, found)
        number = Number(value, label, owner, key, suffix)
        self.numbers.append((number, variable, found))
        return number

    def _container(self, value: Any, variable: str, label: str) -> Holder:
        reader = self.reader
        holder = self._holder("items", value, variable, label)
        self._class_of(holder)
        kind = reader.constant(type(value))
        if isinstance(value, dict):
            reader.guard(f"type({variable}) is not {kind} or [*{variable}] != {reader.constant([*value])}")
            reader.is_shareable &= all(isinstance(key, PLAIN_TYPES) for key in value)
        else:
            reader.guard(f"type({variable}) is not {kind} or len({variable}) != {len(value)}")
        is_long = len(value) > 16 and not any(owner == id(value) for owner, _ in self.changed)
        if is_long and all(isinstance(one, PLAIN_TYPES) for _, one in _items(value)):
            self._guard_plain(value, variable, label)
            return holder
        for key in value if isinstance(value, dict) else ():
            self._key(holder, key, label)
        for key, item in [*_items(value)]:
            index = repr(key) if isinstance(key, int | str) else reader.constant(key)
            self._child(holder, key, item, variable, f"[{index}]", f"{label}[{key!r}]")
        for _, key in [place for place in self.changed if place[0] == id(value)]:
            if isinstance(value, dict) and key not in value:
                index = repr(key) if isinstance(key, int | str) else reader.constant(key)
                self._child(holder, key, ABSENT, variable, f"[{index}]", f"{label}[{key!r}]")
        return holder

    def _member(self, value: Any, variable: str, label: str) -> Holder:
        """A member of an enumeration, whose methods may reach arrays."""
        holder = self.holders.get(id(value))
        if holder is None:
            holder = self._holder("member", value, variable, label)
            self._class_of(holder)
        return holder

    def _own_container(self, value: Any, variable: str, label: str) -> Holder:
        """An object of the user's that is a list or the like: its content, and what its methods reach."""
        self._guard_content(value, variable, label)
        holder = self._holder("own container", value, variable, label)
        kind: Any = type(value)
        for name in sorted(self.names | special_methods(kind)):
            if code_of(inspect.getattr_static(kind, name, None)):
                self._guard_member(kind, name)
        self._class_of(holder)
        return holder

    def _written(self, value: Any, variable: str, label: str) -> Holder:
        """A container that is written and not read: what it holds is no matter of guards."""
        self.reader.is_shareable = False  # another function object writes into its own
        self.reader.guard(f"type({variable}) is not {self.reader.constant(type(value))}")
        return self._holder("written", value, variable, label)

    def _guard_plain(self, value: Any, variable: str, label: str) -> None:
        """A guard on many plain values at once."""
        found = [item for _, item in _items(value)]
        if 0.0 in found:  # which equals -0.0
            self._guard_content(value, variable, label)
            return
        shown, constant = variable + ".values()" * isinstance(value, dict), self.reader.constant
        kinds = constant([*map(type, found)])
        self.reader.guard(f"[*{shown}] != {constant(found)} or [*{constant(map)}(type, {shown})] != {kinds}")

    def _set(self, value: Any, variable: str, label: str) -> Holder:
        """A set with elements that may be copied."""
        holder = self._holder("items", value, variable, label)
        self.reader.is_shareable = False
        self.reader.guard(f"{variable} != {self.reader.constant(type(value)(value))}")
        for one in value:
            self._key(holder, one, label)
        return holder

    def _key(self, holder: Holder, key: Any, label: str) -> None:
        """What a key, or an element of a set, that may be copied holds; whether it is reached elsewhere."""
        if _is_plain(key):
            return
        name, known = self.reader.constant(key), self.holders.get(id(key))
        if known is not None:
            self.reader.guard(f"{known.variable} is not {name}")
        child = known or self.visit(key, name, f"a key of {label}")
        if isinstance(child, Holder):
            holder.children.append((Key(key), child))

    def _object(self, value: Any, variable: str, label: str) -> Holder | None:
        """What is neither an array nor a plain value nor a container."""
        known = self.holders.get(id(value))
        if (known is not None and known.kind != "class") or self.reader.size > LIMIT:
            return known
        if is_dispatcher(value):
            return self._dispatcher(value, variable, label)
        if isinstance(value, FunctionType):
            return self._function(value, variable, label)
        if isinstance(value, MethodType):
            holder = self._holder("method", value, variable, label)
            self._child(holder, "__func__", value.__func__, variable, ".__func__", label)
            self._child(holder, "__self__", value.__self__, variable, ".__self__", "self")
            return holder
        if isinstance(value, functools.partial):
            holder = self._holder("partial", value, variable, label)
            for key in ("func", "args", "keywords"):
                self._child(holder, key, getattr(value, key), variable, f".{key}", label)
            return holder
        if isinstance(value, HasParts):
            holder = self._holder("parts", value, variable, label)
            for key in value.parts:
                self._child(holder, key, getattr(value, key), variable, f".{key}", label)
            return holder
        wrapped = wrapped_by(value)
        if wrapped is not None:
            kind = "cached" if isinstance(value, CACHED) else "wrapper"
            holder = self._holder(kind, value, variable, label)
            self._child(holder, "__wrapped__", wrapped, variable, ".__wrapped__", label)
            return holder
        if isinstance(value, ModuleType):
            holder = self._holder("module", value, variable, label)
            for name in sorted(self.names & vars(value).keys()):
                self._child(holder, name, getattr(value, name), variable, f".{name}", f"{label}.{name}")
            return holder
        if isinstance(value, type) and not is_opaque(value.__module__):
            return self._class(value, variable, label, is_passed=True)
        if is_instance(value):
            return self._instance(value, variable, label)
        owner = getattr(value, "__self__", None)  # of a method that was written in C
        if owner is not None and not isinstance(owner, ModuleType | type):
            self._guard_content(owner, f"{variable}.__self__", label)
        return None

    def _function(self, function: FunctionType, variable: str, label: str) -> Holder | None:
        own = not is_users(function)
        if own and not hasattr(function, "__wrapped__"):
            self.reader.is_shareable &= not function.__closure__  # nobody looks at what it holds
            return None
        holder = self._holder("function", function, variable, label)
        if not own:
            self._codes.append(function.__code__)
        for index, (name, cell) in enumerate(zip(function.__code__.co_freevars, function.__closure__ or ())):
            self._cell(holder, name, cell, f"{variable}.__closure__[{index}]", own)
        if own:
            return holder
        names = names_of(function.__code__)
        self.attribute_names |= names.attributes
        if "type" in names.loaded:
            self.attribute_names.add("__class__")
        self.reads_all |= names.reads_all
        self.may_miss |= names.may_miss
        self.asks_identity |= names.asks_identity or not all(
            _is_code(_read(function.__globals__, path)) for path in names.compared
        )
        compared = [_read(function.__globals__, path) for path in names.compared]
        self.compares_classes |= names.asks_identity or any(isinstance(one, type) for one in compared)
        self.is_writing |= writes_of(function.__code__).any or calls_taking_methods(function)
        self.stored_globals += [(function.__globals__, name) for name in names.stored]
        if not IMPORTED.isdisjoint(imports(function.__code__)):
            holder.children.append((("global", "__builtins__"), StandIn(self.stand_ins.built_in_names())))
        self._globals(holder, function, variable)
        for index, value in enumerate(function.__defaults__ or ()):
            self._child(
                holder, ("default", index), value, variable, f".__defaults__[{index}]", f"{label}'s default"
            )
        for name, value in (function.__kwdefaults__ or {}).items():
            place = f".__kwdefaults__[{name!r}]"
            self._child(holder, ("keyword", name), value, variable, place, f"{label}'s default")
        attributes = vars(function)
        missing = self.names - attributes.keys()
        written = {name for name in missing if (id(function), name) in self.changed}
        for name in sorted(self.names - (missing - written) - {"__wrapped__", "differentiated"}):
            value, at = attributes.get(name, ABSENT), (function, name)
            self._child(holder, ("attribute", name), value, variable, f".{name}", f"{label}.{name}", at)
        if self.guards_missing:
            self._guard_missing(missing - written, variable)
        return holder

    def _dispatcher(self, value: Any, variable: str, label: str) -> Holder:
        """A function of `singledispatch`: those that it chooses from, by class."""
        holder, known = self._holder("dispatcher", value, variable, label), dict(value.registry)
        self.reader.guard(f"{variable}.registry != {self.reader.constant(known)}")
        self.reader.is_shareable = False
        for kind, code in known.items():
            child = self._object(code, self.reader.constant(code), label)
            if child is not None:
                holder.children.append((("registered", kind), child))
        return holder

    def _guard_missing(self, names: Set[str], variable: str) -> None:
        """A guard on what an object with a `__dict__` lacks, where code goes on without it."""
        if names:
            lacking = self.reader.constant(frozenset(names))
            self.reader.guard(f"not {variable}.__dict__.keys().isdisjoint({lacking})")

    def _globals(self, holder: Holder, function: FunctionType, variable: str) -> None:
        namespace = function.__globals__
        names = names_of(function.__code__)
        loaded = dict.fromkeys((*names.loaded, *names.stored))
        if "globals" in loaded:
            loaded.update(dict.fromkeys(sorted(names.attributes & namespace.keys())))
        if not loaded:
            return
        variables = self.reader.bound(namespace, f"{variable}.__globals__")
        for name in loaded:
            is_compared = names.asks_identity or (name,) in names.compared
            keeps_sizes = name in BUILT_IN and not is_compared  # `is` tells a stand-in from Python's function
            if (name in ASKED or keeps_sizes) and is_as_in_python(namespace, name):
                known, stand_in = self.reader.constant(REAL[name]), self.reader.constant(BUILT_IN[name])
                is_other = f"{variables}.get({name!r}, {known}) is not {known}"
                self.reader.guard(f"{is_other} and {variables}[{name!r}] is not {stand_in}")
                holder.children.append((("global", name), StandIn(BUILT_IN[name])))
                continue
            if name in namespace:
                at = namespace, name
                self._child(holder, ("global", name), namespace[name], variables, f"[{name!r}]", name, at)
                continue
            is_made = name in names.stored  # perhaps by the first call
            (self.reader.guard_binding if is_made else self.reader.guard)(f"{name!r} in {variables}")

    def _cell(self, holder: Holder, name: str, cell: CellType, expression: str, own: bool) -> None:
        variable = self.reader.bound(cell, expression)
        try:
            value = cell.cell_contents
        except ValueError:  # assigned only later, or never
            return
        if isinstance(value, Unread):
            return
        if not own:
            key = ("cell", name)
            self._child(holder, key, value, variable, ".cell_contents", name, at=(cell, 0))
        elif callable(value):  # a wrapper's function: never rebound, so its identity needs no guard
            inner = self.reader.bound(value, f"{variable}.cell_contents")
            self._guard_kind(value, inner)
            stand_in = self.stand_ins.of(value, self.names)
            child: Place | None = None if stand_in is None else StandIn(stand_in)
            child = child or self._object(value, inner, getattr(value, "__name__", name))
            if child is not None:
                holder.children.append((("cell", name), child))
        else:
            content = Content(value)
            self.reader.is_shareable &= content.is_plain
            self.reader.guard_binding(f"not {self.reader.constant(content)}.is_of({variable}.cell_contents)")

    def _instance(self, value: Any, variable: str, label: str) -> Holder:
        holder = self._holder("instance", value, variable, label)
        own = attributes_of(value)
        kind: Any = type(value)
        special, is_passed = special_methods(kind), "__class__" in self.names
        names = self.names | special
        missing: set[str] = set()
        of_class: set[str] = set()
        for name in sorted(names | own.keys() if self.all_attributes else names):
            if name in own or (id(value), name) in self.changed:
                found = own[name] if name in own else getattr(value, name, ABSENT)
                self._child(holder, name, found, variable, f".{name}", f"{label}.{name}")
                continue
            static = inspect.getattr_static(kind, name, None)
            if static is None:
                missing.add(name)
            elif code_of(static) or is_descriptor(static):
                is_passed = is_passed or isinstance(static, classmethod)
                is_hidden = name in special or isinstance(static, property)  # from what an object has
                if self._guard_member(kind, name) and not is_hidden:
                    of_class.add(name)
            elif (id(kind), name) in self.changed:  # by the class, which is visited below
                continue
            elif not hasattr(type(static), "__get__"):
                self._child(holder, name, static, variable, f".{name}", f"{label}.{name}")
        self._class_of(holder, is_passed)
        if self.all_attributes and hasattr(value, "__dict__"):
            self.reader.guard(f"[*{variable}.__dict__] != {self.reader.constant([*vars(value)])}")
        elif hasattr(value, "__dict__"):
            self._guard_missing(of_class | missing if self.guards_missing else of_class, variable)
        return holder

    def _class_of(self, holder: Holder, is_passed: bool = False) -> None:
        """Go on to the class of an object, which is copied with it; `is_passed` if code may get at it."""
        kind: Any = type(holder.value)
        if not is_opaque(kind.__module__):
            variable = self.reader.bound(kind, f"type({holder.variable})")
            owner = self._class(kind, variable, f"type({holder.label})", is_passed)
            if owner is not None:
                holder.children.append((("class", ""), owner))

    def _class(self, kind: Any, variable: str, label: str, is_passed: bool) -> Holder | None:
        """A class of the user's: the code in it and its bases, and where code gets at it all else."""
        holder = self.holders.get(id(kind))
        if holder is None:
            if self.reader.size > LIMIT:
                return None
            holder = self._holder("class", kind, variable, label)
            for index, base in enumerate(kind.__bases__):
                if not is_opaque(base.__module__):
                    name = self.reader.bound(base, f"{variable}.__bases__[{index}]")
                    inherited = self._class(base, name, f"{label}'s base {base.__name__}", False)
                    if inherited is not None:  # a copy of a class is made of copies of its bases
                        holder.children.append((("base", index), inherited))
                        inherited.children.append((("derived", kind), holder))
            self._members(holder, self.names | special_methods(kind))
        if is_passed and kind not in self._passed_classes:
            self._passed_classes.add(kind)
            self._members(holder, makers(kind) - self.names)
            for name in sorted(self.names & names_in_namespace(kind)):
                static = inspect.getattr_static(kind, name)
                if code_of(static) or is_descriptor(static):
                    self._guard_member(kind, name)
                else:
                    found = getattr(kind, name)
                    self._child(holder, name, found, holder.variable, f".{name}", f"{label}.{name}")
        return holder

    def _members(self, holder: Holder, names: Set[str]) -> None:
        """The code of a class itself that runs where these attributes are read."""
        kind: Any = holder.value
        for name in sorted(names & vars(kind).keys()):
            static = vars(kind)[name]
            is_object = is_descriptor(static) and is_instance(static)
            for part, code in [("", static)] if is_object else code_of(static):
                self._guard_member(kind, name)
                child = self._object(code, self.reader.constant(code), f"{holder.label}.{name}")
                if child is not None:
                    holder.children.append((("code", name, part), child))

    def _guard_member(self, kind: type, name: str) -> bool:
        """A guard on what a class of the user's has for a method or the like; whether there is one."""
        static = inspect.getattr_static(kind, name)
        if not all(is_users(inspect.unwrap(code)) for _, code in code_of(static)):
            return False
        if (kind, name) in self._guarded_members:
            return True
        self._guarded_members.add((kind, name))
        if is_made_anew(static):
            owner = next(base for base in kind.__mro__ if name in vars(base))
            found, expression = static, f"{self.reader.constant(owner)}.__dict__.get({name!r})"
        else:
            found, expression = getattr(kind, name), f"{self.reader.constant(kind)}.{name}"
        if isinstance(found, MethodType):
            found, expression = found.__func__, f"{expression}.__func__"
        self.reader.guard(f"{expression} is not {self.reader.constant(found)}")
        return True


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _is_plain(key: Any) -> bool:
    """Whether a key is nothing that a trace would copy."""
    if isinstance(key, tuple | frozenset):
        return all(map(_is_plain, key))
    return isinstance(key, (*PLAIN_TYPES, np.generic, enum.Enum))


def _read(variables: dict[str, Any], path: Sequence[str]) -> Any:
    """What a dotted name stands for, a variable or what is built in; None if there is no such thing."""
    name, *attributes = path
    value = variables.get(name, vars(builtins).get(name))
    for attribute in attributes:
        value = inspect.getattr_static(value, attribute, None)
    return value


def _is_code(value: Any) -> bool:
    """Whether a value is a function, a class or the like, which no array can be."""
    if _is_plain(value) or isinstance(value, ModuleType | type | FunctionType | MethodType):
        return True
    return callable(value) and is_opaque(type(value).__module__)


def _are_code_of_others(one: Any, other: Any) -> bool:
    return isinstance(one, FunctionType) and one.__code__ is not other.__code__


def _is_supported(dtype: np.dtype) -> bool:
    return dtype in SUPPORTED or dtype.newbyteorder("=") in SUPPORTED
