"""The function as it is traced: what it reaches copied, with a traced Tensor in the place of each array.

So `weights[0] * x`, `np.exp(weights)` and `float(weights.sum())` on an array of the closure behave as on an
argument: they become part of the graph, or raise where they need a value, and never bake a value into code.
Only what leads to arrays is copied, or to NumPy's functions that make arrays for the function to fill: these
make traced Tensors. A function that reaches neither is traced itself. What it changes of the user's objects
meanwhile is put back, or refused.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections import defaultdict, deque
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from ...tracer.dims import python_type
from ...tracer.errors import LeakedTraceError, MutationError
from ...tracer.graph import Node
from ...tracer.records import record
from ..bytecode.code_names import names_of
from ..captures.asked_tables import AskedTable
from ..captures.classes import copy_class, with_code
from ..captures.containers import Written
from ..captures.memoised import Memoised
from ..captures.objects import CONTAINERS, attributes_of, is_opaque
from ..captures.places import (
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
from ..captures.state import Counted
from ..values.tensor import Tensor
from .asked_types import BUILT_IN

originals: WeakKeyDictionary[FunctionType, FunctionType] = WeakKeyDictionary()
"""Of the copies of functions what they are copies of."""
OF_CLASS = ("class", "")
"""The key of an object's class."""
STATE = (bool, int, float, str, type(None), Counted)
"""What a compiled function may change where it is reached: each call reads it, and writes it anew."""


@record(frozen=True, eq=False, slots=True)
class _Watched:
    """An object that the function may change, or the copy of one, with its content before the trace."""

    label: str
    original: Any
    current: Any
    before: dict[Any, Any]
    kind: str = ""
    """`items` of a container, which nothing may be added to; `instance` where new plain values count."""

    def changed(self) -> list[Any]:
        """The keys whose values are others now; an attribute that is new only if it is a plain value."""
        now = _content(self.current)
        found = [key for key in self.before if now.get(key, ABSENT) is not self.before[key]]
        new = [key for key in now if key not in self.before] if self.kind else []
        return [*found, *(key for key in new if self.kind == "items" or python_type(now[key]) in STATE)]


class ChangesFound(Exception):
    """A trace whose function has changed plain values or containers that it reaches, which was not known."""

    def __init__(self, found: Changed) -> None:
        super().__init__()
        self.found = found


class CachedFound(ChangesFound):
    """A trace that was the first to ask for properties which objects keep (`functools.cached_property`)."""

    def __init__(self, properties: list[tuple[Any, str]]) -> None:
        super().__init__(NOTHING)
        self.properties = properties

    def keep(self) -> None:
        """Have the objects compute and keep them, as a plain call would."""
        for owner, name in self.properties:
            vars(owner).pop(name, None)
            getattr(owner, name)


class Substitution:
    """Copies of the places of a `Reading`, made once each; `replacement` says what stands for an array.

    If it draws, what is drawn from streams of random numbers is an input of the trace under way, and so is
    what tables are asked.
    """

    def __init__(
        self, reading: Reading, replacement: Callable[[Source], Any], function: str, draws: bool = False
    ) -> None:
        self._reading = reading
        self._function = function
        self._replacement = replacement
        self._draws = draws
        self._copies: dict[int, Any] = {}
        self._tensors: dict[Source, Any] = {}
        self._variables: dict[int, dict[str, Any]] = {}
        self._cells: dict[int, CellType] = {}
        self._counted: dict[Number, Any] = {}
        self._written: list[Written] = []
        self._watched: list[_Watched] = []
        self._originals = [
            (holder.value, _content(holder.value), holder.kind == "items")
            for holder in reading.holders
            if holder.kind in ("items", "instance", "module", "class", "function")
        ]
        """What the user's objects hold, to put it back."""
        self._absent = [(space, name) for space, name in reading.stored_globals if name not in space]
        for namespace, name in reading.stored_globals:
            self._watch_global(name, namespace, namespace)
        for holder in reading.holders:
            if not holder.is_copied():
                self._watch(holder, holder.value)

    def root(self, position: int, value: Any) -> Any:
        """What to call or to pass in the place of the root."""
        place = self._reading.roots[position]
        return value if place is None else self._rebuild(place)

    def check(self) -> None:
        """Raise where the traced function wrote to what it reaches, or stored a traced value there.

        Raises:
            ChangesFound: what it changed are plain values, which a call can read and write, and containers.
            MutationError: an attribute or a global variable was changed, or a container was read as well.
            LeakedTraceError: a traced value was stored in one.
        """
        function = self._function
        self._check_new_attributes()
        for written in self._written:
            written.check()
        numbers: set[tuple[int, Any]] = set()
        containers: dict[int, Any] = {}
        for one in self._watched:
            for key in one.changed():
                if not self._is_number(one, key):
                    if type(one.original) in (*CONTAINERS, set) and one.kind == "items":
                        containers[id(one.original)] = one.original
                        break
                    raise MutationError(
                        f"{function} changes {one.label} while it is traced. A compiled function runs its "
                        "Python code only when it is traced, so the change would not happen in later calls. "
                        "Return the new value instead."
                    )
                numbers.add((id(one.original), key))
        if containers:
            raise ChangesFound(Changed(frozenset(numbers), containers))
        for namespace, name in self._reading.stored_globals:
            _refuse_traced(function, f"the global variable {name}", namespace.get(name))
        for holder in self._reading.holders:
            if holder.kind in ("items", "instance"):
                for key, value in _content(holder.value).items():
                    _refuse_traced(function, f"{holder.label}, at {key!r},", value)
            elif holder.kind == "function":
                for name, cell in zip(holder.value.__code__.co_freevars, holder.value.__closure__ or ()):
                    where = f"the variable {name} of an enclosing function"
                    _refuse_traced(function, where, _content(cell).get(0))
        unknown = numbers - {(id(one.owner), one.key) for one in self._reading.numbers}
        if unknown:
            raise ChangesFound(Changed(frozenset(numbers)))

    def _check_new_attributes(self) -> None:
        """Raise where the function has stored traced values in new attributes of objects.

        Raises:
            CachedFound: they are cached properties. LeakedTraceError: they are others.
        """
        properties = []
        for one in self._watched:
            if one.kind != "instance" or isinstance(one.original, FunctionType):
                continue
            for key, value in _content(one.current).items():
                if key in one.before or not _is_traced(value):
                    continue
                kept = inspect.getattr_static(type(one.original), key, None)
                if not isinstance(kept, functools.cached_property):
                    _refuse_traced(self._function, f"{one.label}, at {key!r},", value)
                properties.append((one.original, key))
        if properties:
            raise CachedFound(properties)

    def commit(self) -> dict[int, Any]:
        """Write into the user's containers what the trace has written; those containers, by identity."""
        return {id(one.container): one.container for one in self._written if one.commit()}

    def _is_number(self, one: _Watched, key: Any) -> bool:
        now, before = _content(one.current).get(key, ABSENT), one.before.get(key, ABSENT)
        may_be_new = one.kind == "instance" or isinstance(one.current, dict)
        was_plain = type(before) in STATE or (before is ABSENT and may_be_new)
        return was_plain and python_type(now) in STATE

    def numbers(self) -> list[tuple[str, Any, Any]]:
        """Of each number of the reading its suffix, what stood for it, and what has become of it."""
        current = {id(one.original): one.current for one in self._watched}
        return [
            (
                one.suffix,
                self._counted.get(one, one.value),
                _content(current.get(id(one.owner), one.owner)).get(one.key, one.value),
            )
            for one in self._reading.numbers
        ]

    def write_back(self, replaced: Callable[[Any], Any]) -> None:
        """Make the changes of the copies in the user's objects, each value as `replaced` has it."""
        originals = {
            id(self._copies[id(holder)]): holder.value
            for holder in self._reading.holders
            if id(holder) in self._copies
        }
        for one in self._watched:
            now = _content(one.current)
            new = now.keys() - one.before.keys() if one.kind else set()
            keys = {*one.changed(), *new} & now.keys()
            gone = one.kind == "items" and len(now) < len(one.before)
            if not keys and not gone:
                continue
            found = {key: replaced(originals.get(id(value), value)) for key, value in now.items()}
            if one.kind == "items":
                _refill(one.original, found, is_container=True)
                continue
            for key in keys:
                _store(one.original, key, found[key])

    def put_back(self) -> None:
        """Let the user's objects hold again what they held before the trace."""
        for namespace, name in self._absent:
            namespace.pop(name, None)
        for original, before, is_container in self._originals:
            if _content(original) != before or any(
                now is not before[key] for key, now in _content(original).items()
            ):
                _refill(original, before, is_container)
        for one in self._watched:
            if one.current is one.original and not isinstance(one.current, type | ModuleType):
                for key in one.changed():
                    if key in one.before:
                        _store(one.current, key, one.before[key])
                if isinstance(one.current, CellType) and not one.before and _content(one.current):
                    del one.current.cell_contents

    def _rebuild(self, place: Place) -> Any:
        if isinstance(place, Source):
            if place not in self._tensors:
                self._tensors[place] = self._replacement(place)
            return self._tensors[place]
        if isinstance(place, Drawing) and not self._draws:
            return place.real
        if isinstance(place, Table):
            return place.queries.stand_in(place.place) if self._draws else place.value
        if isinstance(place, StandIn):
            return place.value
        if isinstance(place, Number):
            counts = type(place.value) in (int, float)
            return self._counted.setdefault(place, Counted.of(place.value) if counts else place.value)
        if not place.is_copied():
            return place.value
        if id(place) not in self._copies:
            getattr(self, f"_copy_{place.kind.replace(' ', '_')}")(place)
        return self._copies[id(place)]

    def _children(self, place: Holder) -> list[tuple[Any, Any]]:
        return [(key, self._rebuild(child)) for key, child in place.children]

    def _enter(self, place: Holder, copied: Any) -> Any:
        """Known before its children are copied, so that cycles close."""
        self._copies[id(place)] = copied
        return copied

    def _watch_global(self, name: str, namespace: dict[str, Any], current: dict[str, Any]) -> None:
        if name in namespace:
            label, before = f"the global variable {name}", {name: current[name]}
            self._watched.append(_Watched(label, namespace, current, before))

    def _watch(self, place: Holder, value: Any) -> None:
        """Notice changes to a holder or its copy. Instances may get new attributes: caches do that."""
        if place.kind in ("items", "instance", "module", "class"):
            kind = "" if place.kind in ("module", "class") else place.kind
            self._watched.append(_Watched(place.label, place.value, value, _content(value), kind))
        elif place.kind == "function":
            self._watched.append(_Watched(place.label, place.value, value, _content(value), "instance"))
            originals = place.value.__closure__ or ()
            for name, original, cell in zip(value.__code__.co_freevars, originals, value.__closure__ or ()):
                label = f"the variable {name} of an enclosing function"
                self._watched.append(_Watched(label, original, cell, _content(cell)))

    # --- one for each kind of holder --------------------------------------------------------------------

    def _copy_function(self, place: Holder) -> None:
        original: FunctionType = place.value
        closure = original.__closure__ or ()
        cells = {
            name: self._cells.setdefault(id(cell), CellType())
            for name, cell in zip(original.__code__.co_freevars, closure)
        }
        namespace = original.__globals__
        variables = self._variables.setdefault(id(namespace), dict(namespace))
        for key, child in place.children:
            if key == ("global", "__builtins__"):  # which a function looks up when it is made
                variables["__builtins__"] = self._rebuild(child)
        copied = self._enter(
            place,
            FunctionType(
                original.__code__, variables, original.__name__, original.__defaults__, tuple(cells.values())
            ),
        )
        originals[copied] = original
        keywords = dict(original.__kwdefaults__ or {})
        copied.__dict__.update(original.__dict__)
        for name, cell in zip(cells, closure):
            content = _content(cell)
            if content and not _content(cells[name]):
                cells[name].cell_contents = content[0]
        defaults = list(original.__defaults__ or ())
        for (kind, key), value in self._children(place):
            if kind == "cell":
                cells[key].cell_contents = value
            elif kind == "global":
                variables[key] = value
            elif kind == "keyword":
                keywords[key] = value
            elif kind == "attribute":
                if value is not ABSENT:
                    setattr(copied, key, value)
            else:
                defaults[key] = value
        copied.__defaults__, copied.__kwdefaults__ = tuple(defaults) or None, keywords or None
        for name in names_of(original.__code__).stored:
            self._watch_global(name, original.__globals__, variables)
        self._watch(place, copied)

    def _copy_method(self, place: Holder) -> None:
        parts = dict(self._children(place))
        function = parts.get("__func__", place.value.__func__)
        self._enter(place, MethodType(function, parts.get("__self__", place.value.__self__)))

    def _copy_partial(self, place: Holder) -> None:
        original = place.value
        parts = {"func": original.func, "args": original.args, "keywords": original.keywords}
        parts.update(self._children(place))
        self._enter(place, functools.partial(parts["func"], *parts["args"], **parts["keywords"]))

    def _copy_parts(self, place: Holder) -> None:
        copied = self._enter(place, copy.copy(place.value))
        for name, value in self._children(place):
            setattr(copied, name, value)

    def _copy_wrapper(self, place: Holder) -> None:
        """A compiled function inside a trace is its Python function."""
        self._enter(place, dict(self._children(place))["__wrapped__"])

    def _copy_cached(self, place: Holder) -> None:
        copied = self._enter(place, Memoised(place.value))
        copied.function = dict(self._children(place)).get("__wrapped__", place.value.__wrapped__)

    def _copy_dispatcher(self, place: Holder) -> None:
        known = dict(place.value.registry)
        copied: Any = self._enter(place, functools.singledispatch(known[object]))
        for (_, kind), code in self._children(place):
            copied.register(kind, code)
        for kind in known.keys() - {kind for (_, kind), _ in place.children}:
            copied.register(kind, known[kind])

    def _copy_module(self, place: Holder) -> None:
        copied: Any = self._enter(place, ModuleType(place.value.__name__))
        vars(copied).update(vars(place.value))
        for name, value in self._children(place):
            setattr(copied, name, value)
        self._watch(place, copied)

    def _copy_class(self, place: Holder) -> None:
        bases = [self._rebuild(child) for key, child in place.children if key[0] == "base"]
        if id(place) in self._copies:  # made on the way
            return
        copied = self._enter(place, copy_class(place.value, bases))
        code: dict[str, dict[str, Any]] = {}
        for key, child in place.children:
            if not isinstance(key, tuple):
                type.__setattr__(copied, key, self._rebuild(child))
            elif key[0] == "code":
                code.setdefault(key[1], {})[key[2]] = self._rebuild(child)
        for name, parts in code.items():
            type.__setattr__(copied, name, with_code(vars(place.value)[name], name, parts))
        self._watch(place, copied)

    def _copy_items(self, place: Holder) -> None:
        original = place.value
        if isinstance(original, tuple):
            kind: Any = self._class_of(place)
            items = list(original)
            for index, value in self._children(place):
                if index != OF_CLASS:
                    items[index] = value
            self._enter(place, kind._make(items) if hasattr(kind, "_make") else tuple(items))
            return
        keys = self._copied_keys(place)
        if isinstance(original, set | frozenset):
            self._enter(place, type(original)(keys.get(id(one), one) for one in original))
            return
        copied = self._enter(place, copy.copy(original))
        if keys:
            copied.clear()
            copied.update((keys.get(id(key), key), value) for key, value in original.items())
        for key, value in self._children(place):
            if not isinstance(key, Key) and value is not ABSENT:
                copied[keys.get(id(key), key)] = value
        self._watch(place, copied)

    def _copy_written(self, place: Holder) -> None:
        written = self._enter(place, Written(place.value, self._function, place.label))
        self._written.append(written)

    def _copied_keys(self, place: Holder) -> dict[int, Any]:
        """By the id of each key of a dict, or element of a set, its copy."""
        found = [(key.value, child) for key, child in place.children if isinstance(key, Key)]
        return {id(key): self._rebuild(child) for key, child in found}

    def _class_of(self, place: Holder) -> Any:
        classes = (self._rebuild(child) for key, child in place.children if key == OF_CLASS)
        return next(classes, type(place.value))

    def _copy_instance(self, place: Holder) -> None:
        original = place.value
        kind = self._class_of(place)
        if id(place) in self._copies:  # made on the way
            return
        own: Any = kind if is_opaque(kind.__module__) else _written_in_c(kind)
        copied = self._enter(place, own.__new__(kind))
        for name, value in _content(original).items():
            object.__setattr__(copied, name, value)
        for key, value in self._children(place):
            if value is not ABSENT and key != OF_CLASS:
                object.__setattr__(copied, key, value)
        self._watch(place, copied)

    def _copy_member(self, place: Holder) -> None:
        self._class_of(place)

    def _copy_own_container(self, place: Holder) -> None:
        original, kind = place.value, self._class_of(place)
        if id(place) in self._copies:
            return
        own = _written_in_c(kind)
        copied = self._enter(place, own.__new__(kind, *([original] if own in (tuple, frozenset) else [])))
        if own not in (tuple, frozenset):
            own.__init__(copied, *([original.default_factory] if own is defaultdict else []))
            fill = next(getattr(own, name) for name in ("extend", "update") if hasattr(own, name))
            fill(copied, original)
        for name, value in attributes_of(original).items():
            object.__setattr__(copied, name, value)


def _written_in_c(kind: type) -> Any:
    """The class with which Python makes objects of a user's class: `object`, or that of a container."""
    return next(base for base in kind.__mro__ if not base.__flags__ & (1 << 9))  # Py_TPFLAGS_HEAPTYPE


def _content(value: Any) -> dict[Any, Any]:
    """What is stored in a list, dict, cell, module or instance, by key."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list | tuple | deque):
        return dict(enumerate(value))
    if isinstance(value, set):
        return {id(one): one for one in value}
    if isinstance(value, CellType):
        try:
            return {0: value.cell_contents}
        except ValueError:  # assigned only later, or never
            return {}
    if isinstance(value, ModuleType):
        return {name: one for name, one in vars(value).items() if one is not BUILT_IN.get(name, ABSENT)}
    return dict(vars(value)) if isinstance(value, type) else attributes_of(value)


def _store(holder: Any, key: Any, value: Any) -> None:
    """Put a value where `_content` says that it is."""
    if isinstance(holder, CellType):
        holder.cell_contents = value
    elif isinstance(holder, dict | list | deque):
        holder[key] = value
    elif isinstance(holder, type):
        setattr(holder, key, value)
    elif not isinstance(holder, tuple):
        object.__setattr__(holder, key, value)


def _refill(holder: Any, before: dict[Any, Any], is_container: bool) -> None:
    if is_container:
        if isinstance(holder, dict):
            holder.clear()
            holder.update(before)
        elif isinstance(holder, set):
            holder.clear()
            holder.update(before.values())
        elif not isinstance(holder, tuple):
            holder.clear()
            holder.extend(before.values())
        return
    now = _content(holder)
    for key in now.keys() - before.keys():
        delattr(holder, key)
    for key, value in before.items():
        if now.get(key, ABSENT) is not value:
            _store(holder, key, value)


def _is_traced(value: Any) -> bool:
    return (isinstance(value, Tensor) and isinstance(value._value, Node)) or type(value) is AskedTable


def _refuse_traced(function: str, where: str, value: Any) -> None:
    if _is_traced(value):
        raise LeakedTraceError(
            f"{function} stores a traced value in {where} while it is traced. The value has no numbers, and "
            f"later calls do not run the Python code that stores it. Return it instead."
        )
