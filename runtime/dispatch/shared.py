"""Programs that function objects share which are made of the same code: lambdas in a loop, a fit made again.

What was traced for one function object serves another one where that reaches the like of it: the same code,
the same plain values, arrays of the same shapes. `Reader.bind` finds that out. The other one's arrays are
read by a reader of its own, so what is kept here holds none of anybody's arrays, and a function that goes
frees what it has reached.
"""

from __future__ import annotations

import enum
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from ...codegen.cost.machine import assumed_machine
from ...tracer.origin import note_same_code
from ...tracer.records import duplicate, replaced
from ..captures.objects import is_instance, wrapped_by
from ..captures.places import Reading, Source
from ..captures.tables import is_table
from ..tensors.sampling import default_generator
from ..tracing.call_roots import explored_leaves, roots_of
from ..tracing.signature import Call, Identity
from ..tracing.traced import Traced
from .paths import Paths
from .prefixes import Prefix
from .siblings import Path, Sibling, Siblings
from .traced_function import TracedFunction
from .variant import Variant

MOST_KEYS = 256
MOST_ALIKE = 8
"""Programs of one code and one kind of arguments, for functions that reach other things."""


class SharedPrograms:
    """Variants and paths by what their function is made of; those that were used longest ago go first."""

    def __init__(self) -> None:
        self._shelves: OrderedDict[Any, tuple[Variant | Paths, ...]] = OrderedDict()
        self._constants: OrderedDict[Any, frozenset[str]] = OrderedDict()
        """Of which numbers functions of a kind have turned out to need the value."""
        self._files: dict[Any, str] = {}
        """Where the functions are for whom the programs were made."""
        self._lock = threading.Lock()

    def constants_of(self, function: TracedFunction) -> frozenset[str]:
        """The numbers that were constants in programs of functions that are made of the same code."""
        with self._lock:
            return self._constants.get(kind_of(function.function), frozenset())

    def find(self, function: TracedFunction, call: Call) -> Variant | Paths | None:
        """What another function object has left for a call like this one, for this function object."""
        key = _key(function, call)
        with self._lock:
            found = self._shelves.get(key, ())
            if found:
                self._shelves.move_to_end(key)
        roots = _roots(function, call)
        for made in found:
            bound = _bound_reading(_traced(made), roots)
            if bound is not None:
                note_same_code(self._files.get(key, ""), _file_of(function))
                return _rebuilt(made, function, call, functools.partial(_with_reading, reading=bound))
        return None

    def keep(self, function: TracedFunction, call: Call, made: Variant | Paths) -> None:
        """Leave for others what was made for a call, if nothing in it is this function object's own."""
        if not all(map(_is_shareable, _all_traced(made))):
            return
        key = _key(function, call)
        bare = _rebuilt(made, None, call, _bare)
        form = _form_of(bare)
        with self._lock:
            if function.signature.constants:
                self._constants[key[0]] = self._constants.get(key[0], frozenset()) | frozenset(
                    function.signature.constants
                )
            others = [
                one
                for one in self._shelves.get(key, ())
                if _form_of(one) != form
            ]
            self._shelves[key] = (bare, *others[: MOST_ALIKE - 1])
            self._shelves.move_to_end(key)
            self._files[key] = _file_of(function)
            for one in (self._shelves, self._constants):
                while len(one) > MOST_KEYS:
                    self._files.pop(one.popitem(last=False)[0], None)

    def forget(self, function: TracedFunction) -> None:
        """Drop what functions like this one have left."""
        kind = kind_of(function.function)
        with self._lock:
            for key in [key for key in self._shelves if key[0] == kind]:
                del self._shelves[key]
                self._files.pop(key, None)
            self._constants.pop(kind, None)

    def clear(self) -> None:
        with self._lock:
            self._shelves.clear()
            self._files.clear()
            self._constants.clear()


shared_programs = SharedPrograms()


def _file_of(function: TracedFunction) -> str:
    code = getattr(function.function, "__code__", None)
    return code.co_filename if code is not None else ""


# --- which functions are alike ------------------------------------------------------------------------


def _key(function: TracedFunction, call: Call) -> Any:
    explored = {id(call.leaves[index]) for index in explored_leaves(call)}
    parts = [one.value if type(one) is Identity else one for one in call.key]
    places = tuple(kind_of(one) if id(one) in explored else one for one in parts)
    what = kind_of(function.function), function.name, function.options, function.max_paths, places
    return (*what, assumed_machine())


def kind_of(value: Any) -> Any:
    """What functions and objects are the like of each other by, as far as it can be told from outside."""
    if isinstance(value, FunctionType):
        inner = vars(value).get("__wrapped__")
        return value.__code__ if inner is None else (value.__code__, kind_of(inner))
    if isinstance(value, MethodType):
        return MethodType, kind_of(value.__func__), type(value.__self__)
    if isinstance(value, functools.partial):
        return functools.partial, kind_of(value.func), len(value.args), tuple(value.keywords)
    inner = wrapped_by(value)
    if inner is not None:
        return type(value), kind_of(inner)
    if is_table(value):
        return type(value)
    return type(value) if is_instance(value) and not isinstance(value, enum.Enum) else value


def _roots(function: TracedFunction, call: Call) -> list[Any]:
    return [root for root, _ in roots_of(function.function, call, "")]


# --- readings -----------------------------------------------------------------------------------------


def _is_shareable(traced: Traced) -> bool:
    return (
        traced.owns_constants
        and traced.reading.reader.is_shareable
        and traced.gradient is None
        and all(stream is default_generator for stream in traced.streams)
    )


def _bare_reading(reading: Reading) -> Reading:
    sources = tuple(Source(None, source.label, source.is_complex) for source in reading.sources)  # type: ignore[arg-type]
    reader = reading.reader.without_values()
    return Reading((), sources, (), (), (), (), reader, None, reading.asks_identity, (), reading.queries)


def _bare(traced: Traced) -> Traced:
    """What was traced, without anything that belongs to a function object, or to the trace."""
    bare = _with_reading(traced, _bare_reading(traced.reading))
    return replaced(bare, results=traced.results.without_leaves())


def _bound_reading(traced: Traced, roots: Sequence[Any]) -> Reading | None:
    """The reading of a function object with these roots; None if it reaches something else."""
    bare = traced.reading
    bound = bare.reader.bind(roots)
    if bound is None:
        return None
    read, values = bound
    sources = tuple(replaced(source, value=value) for source, value in zip(bare.sources, values))
    return replaced(bare, sources=sources, read=read)


def _with_reading(traced: Traced, reading: Reading) -> Traced:
    return replaced(traced, reading=reading, guards=duplicate(traced.guards))


# --- programs -----------------------------------------------------------------------------------------


def _traced(made: Variant | Paths) -> Traced:
    return made.traced if isinstance(made, Variant) else made.paths[-1].traced


def _form_of(made: Variant | Paths) -> Any:
    """What tells programs apart, of which the newest is kept."""
    reading = _traced(made).reading
    return reading.reader.text(), None if reading.queries is None else reading.queries.form


def _all_traced(made: Variant | Paths) -> list[Traced]:
    return [made.traced] if isinstance(made, Variant) else [path.traced for path in made.paths]


def _rebuilt(
    made: Variant | Paths, function: TracedFunction | None, call: Call, change: Callable[[Traced], Traced]
) -> Variant | Paths:
    """The same programs for a function object, or for none; `change` gives its form of what was traced."""
    copies = _Copies(function, change)
    return copies.of_variant(made) if isinstance(made, Variant) else copies.of_paths(made, call)


class _Copies:
    """Copies of variants and of what leads to them, made once each."""

    def __init__(self, function: TracedFunction | None, change: Callable[[Traced], Traced]) -> None:
        self.function: Any = function
        self.change = change
        self._variants: dict[int, Variant] = {}
        self._traced: dict[int, Traced] = {}
        self._paths: dict[int, Path] = {}

    def of_traced(self, traced: Traced) -> Traced:
        if id(traced) not in self._traced:
            self._traced[id(traced)] = self.change(traced)
        return self._traced[id(traced)]

    def of_variant(self, variant: Variant) -> Variant:
        if id(variant) not in self._variants:
            counters = None if self.function is None else self.function.counters
            self._variants[id(variant)] = variant.copied(self.of_traced(variant.traced), counters)
        return self._variants[id(variant)]

    def of_path(self, path: Path) -> Path:
        if id(path) not in self._paths:
            make_variant = None if self.function is None else self.function.variant
            copied = self._paths[id(path)] = path.copied(self.of_traced(path.traced), make_variant)
            if "variant" in path.__dict__:
                copied.__dict__["variant"] = self.of_variant(path.variant)
        return self._paths[id(path)]

    def of_paths(self, paths: Paths, call: Call) -> Paths:
        copied = paths.copied(self.function, call, [self.of_path(path) for path in paths.paths])
        copied.start = self.of_plan(paths.start)
        return copied

    def of_plan(self, plan: Prefix | Siblings) -> Prefix | Siblings:
        if isinstance(plan, Prefix):
            branches = {answer: self.of_plan(after) for answer, after in plan.branches.items()}
            return Prefix(self.of_variant(plan.variant), plan.question, branches)
        members = [Sibling(self.of_path(one.path), self.of_variant(one.variant)) for one in plan.members]
        return Siblings(members, plan.streams)
