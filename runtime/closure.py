"""What a function reaches besides its arguments, and how to read it anew in each call.

A compiled function must see a changed closure. So before a trace the function is explored: closure cells,
the globals that its code names, helper functions, and from these on attributes, items and modules, by the
names that occur in the code. Each array on the way is a `Source`, an input of the graph. What is no array
(a number, a string, the identity of a helper function) is a guard: when it differs, the function is traced
anew. Both are read by one generated function, `Reading.read`.

Not explored: NumPy, SciPy, the standard library and pullback itself. But where NumPy, or a function of it, is
reached that makes arrays which a traced function could not fill, there is a `StandIn`.
"""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .dtypes import DType
from .modes import is_grad_enabled
from .stand_ins import IMPORTED, JOINED, WRITABLE, StandIns
from .tensor import Tensor
from .writes import calls_taking_methods, imports, writes_of

OPAQUE_PACKAGES = sys.stdlib_module_names - {"__main__"} | {"numpy", "scipy", "numba", "pullback", "_pytest"}
PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None), range, slice, type(...))
READER_END = (
    "  except (LookupError, AttributeError, TypeError, ValueError):  # a place is gone\n    return None"
)
LIMIT = 2000
"""Places that are explored at most; what lies beyond is guarded by identity."""


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """An array or Tensor that the function reaches, with the path to it as the user would write it."""

    value: np.ndarray | Tensor
    label: str


@dataclass(frozen=True, eq=False, slots=True)
class StandIn:
    """NumPy, or a function of it, with what takes its place in a trace."""

    value: Any


@dataclass(eq=False, slots=True)
class Holder:
    """An object on the way to others. `kind` says what, and how a child is put in its place."""

    kind: str
    value: Any
    label: str
    variable: str
    children: list[tuple[Any, Place]] = field(default_factory=list)

    def is_copied(self, seen: set[int] | None = None) -> bool:
        """Whether an array or a stand-in is reached through this object; cycles end the search."""
        seen = set() if seen is None else seen
        if id(self) in seen:
            return False
        seen.add(id(self))
        return any(not isinstance(child, Holder) or child.is_copied(seen) for _, child in self.children)


@dataclass(frozen=True, eq=False, slots=True)
class Key:
    """Where a child is the key of a dict, or an element of a set."""

    value: Any


Place = Holder | Source | StandIn


@dataclass(frozen=True, eq=False)
class Reading:
    """The result of an exploration: the places, the arrays, and a function that reads them again.

    `read()` gives the values of `sources` in order, or None where a guard does not hold. It is None itself if
    there is nothing to read or to guard.
    """

    roots: tuple[Place | None, ...]
    sources: tuple[Source, ...]
    holders: tuple[Holder, ...]
    stored_globals: tuple[tuple[dict[str, Any], str], ...]
    read: Callable[[], tuple[Any, ...] | None] | None
    text: str


def explore(roots: Sequence[tuple[Any, str]]) -> Reading:
    """Explore a function and the objects among its static arguments, each with what to call it."""
    names: frozenset[str] = frozenset()
    stand_ins = JOINED
    while True:
        explorer = _Explorer(names, stand_ins)
        reached = tuple(explorer.root(root, label) for root, label in roots)
        wanted = WRITABLE if explorer.is_writing else JOINED
        if explorer.attribute_names <= names and wanted is stand_ins:
            return explorer.reading(reached)
        names |= explorer.attribute_names
        stand_ins = wanted


@functools.cache
def is_opaque(module: str | None) -> bool:
    """Whether a module is not the user's; pullback's examples are users."""
    if module is None or module.startswith("pullback.examples"):
        return module is None
    return module.partition(".")[0] in OPAQUE_PACKAGES


def is_users(function: FunctionType) -> bool:
    """Whether a function is the user's; so is one of a namespace without a name, which `exec` was given."""
    module = function.__globals__.get("__name__")
    return module is None or not is_opaque(module)


class _Explorer:
    """One walk over what the roots reach.

    Args:
        names: the attributes that the code found so far reads.
        stand_ins: for the parts of NumPy that are reached.
    """

    def __init__(self, names: frozenset[str], stand_ins: StandIns) -> None:
        self.names = names
        self.stand_ins = stand_ins
        self.is_writing = False
        self.attribute_names: set[str] = set()
        self.namespace: dict[str, Any] = {"type": type, "len": len}
        self.lines: list[str] = []
        self.sources: list[Source] = []
        self.captured: list[str] = []
        self.holders: dict[int, Holder] = {}
        self.stored_globals: list[tuple[dict[str, Any], str]] = []
        self.has_guards = False

    def root(self, value: Any, label: str) -> Place | None:
        """A root is given, not read: its identity needs no guard."""
        stand_in = None if isinstance(value, ModuleType) else self.stand_ins.of(value, self.names)
        if stand_in is not None:
            return StandIn(stand_in)
        return self._object(value, self.constant(value), label)

    # --- the generated reader -------------------------------------------------------------------------

    def constant(self, value: Any) -> str:
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def guard(self, failure: str) -> None:
        """Leave the reader where `failure` holds."""
        self.has_guards = True
        self.lines.append(f"    if {failure}: return None")

    def assign(self, expression: str) -> str:
        variable = f"v{len(self.lines)}"
        self.lines.append(f"    {variable} = {expression}")
        return variable

    def reading(self, roots: tuple[Place | None, ...]) -> Reading:
        captured = "".join(f"{one}, " for one in self.captured)
        text = "\n".join(["def read():", "  try:", *self.lines, f"    return ({captured})", READER_END])
        read = None
        if self.has_guards or self.captured:
            namespace = dict(self.namespace)
            exec(compile(text, "<what a compiled function reaches>", "exec"), namespace)
            read = namespace["read"]
        return Reading(
            roots, tuple(self.sources), tuple(self.holders.values()), tuple(self.stored_globals), read, text
        )

    # --- the walk -------------------------------------------------------------------------------------

    def visit(self, value: Any, expression: str, label: str) -> Place | None:
        """Read the place `expression`, guard what is not an array, and go on to what it holds."""
        stand_in = self.stand_ins.of(value, self.names)
        if stand_in is not None:
            if not isinstance(value, ModuleType):
                self.guard(f"{self.assign(expression)} is not {self.constant(value)}")
            return StandIn(stand_in)
        if isinstance(value, ModuleType):
            return None if is_opaque(value.__name__) else self._object(value, self.assign(expression), label)
        variable = self.assign(expression)
        if type(value) in (np.ndarray, np.memmap) or isinstance(value, Tensor):
            return self._array(value, variable, label)
        if isinstance(value, (*PLAIN_TYPES, np.generic, enum.Enum, np.dtype, DType)):
            self._guard_equal(value, variable)
            return None
        known = self.holders.get(id(value))
        if known is not None:
            self.guard(f"{variable} is not {known.variable}")
            return known
        if isinstance(value, tuple | list | dict) and not _is_special(value):
            return self._container(value, variable, label)
        if _is_instance(value):
            self.guard(f"type({variable}) is not {self.constant(type(value))}")
        else:
            self.guard(f"{variable} is not {self.constant(value)}")
        return self._object(value, variable, label)

    def _array(self, value: np.ndarray | Tensor, variable: str, label: str) -> Source:
        payload = value
        conditions = [f"type({variable}) is not {self.constant(type(value))}"]
        if isinstance(value, Tensor):
            payload = value._value
            conditions.append(f"{variable}.requires_grad is not {value.requires_grad}")
            conditions.append(f"{variable}._value.shape != {tuple(payload.shape)!r}")
            conditions.append(f"{variable}._value.dtype != {self.constant(payload.dtype)}")
            if value.requires_grad:
                conditions.append(f"{self.constant(is_grad_enabled)}() is not {is_grad_enabled()}")
        else:
            conditions.append(f"{variable}.shape != {tuple(payload.shape)!r}")
            conditions.append(f"{variable}.dtype != {self.constant(payload.dtype)}")
        self.guard(" or ".join(conditions))
        source = Source(value, label)
        self.sources.append(source)
        self.captured.append(variable)
        return source

    def _guard_equal(self, value: Any, variable: str) -> None:
        expected = self.constant(value)
        differs = f"type({variable}) is not {self.constant(type(value))} or {variable} != {expected}"
        if isinstance(value, float) and value == 0.0:
            differs += f" or {self.constant(math.copysign)}(1.0, {variable}) != {math.copysign(1.0, value)}"
        self.guard(f"{variable} is not {expected} and ({differs})")

    def _holder(self, kind: str, value: Any, variable: str, label: str) -> Holder:
        holder = self.holders[id(value)] = Holder(kind, value, label, variable)
        return holder

    def _container(self, value: Any, variable: str, label: str) -> Holder:
        holder = self._holder("items", value, variable, label)
        kind = self.constant(type(value))
        if isinstance(value, dict):
            self.guard(f"type({variable}) is not {kind} or [*{variable}] != {self.constant([*value])}")
            items: Iterator[tuple[Any, Any]] = iter(value.items())
        else:
            self.guard(f"type({variable}) is not {kind} or len({variable}) != {len(value)}")
            items = iter(enumerate(value))
        self._keys(holder, value if isinstance(value, dict) else ())
        if len(value) > 16 and all(isinstance(one, PLAIN_TYPES) for _, one in [*_items(value)]):
            self.guard(f"{variable} != {self.constant(type(value)(value))}")
            return holder
        for key, item in items:
            index = repr(key) if isinstance(key, int | str) else self.constant(key)
            self._child(holder, key, item, f"{variable}[{index}]", f"{label}[{key!r}]")
        return holder

    def _keys(self, holder: Holder, keys: Iterable[Any]) -> None:
        """Keys that may be copied: functions, objects, tuples with these."""
        for key in keys:
            if not _is_plain(key):
                child = self.visit(key, self.constant(key), f"a key of {holder.label}")
                if isinstance(child, Holder):
                    holder.children.append((Key(key), child))

    def _child(self, holder: Holder, key: Any, value: Any, expression: str, label: str) -> None:
        child = self.visit(value, expression, label)
        if child is not None:
            holder.children.append((key, child))

    def _object(self, value: Any, variable: str, label: str) -> Holder | None:
        """What is neither an array nor a plain value nor a container."""
        known = self.holders.get(id(value))
        if known is not None or len(self.lines) > LIMIT:
            return known
        if isinstance(value, FunctionType):
            return self._function(value, variable, label)
        if type(value) in (set, frozenset) and not all(map(_is_plain, value)):
            holder = self._holder("items", value, variable, label)
            self._keys(holder, value)
            return holder
        if isinstance(value, MethodType):
            holder = self._holder("method", value, variable, label)
            self._child(holder, "__func__", value.__func__, f"{variable}.__func__", label)
            self._child(holder, "__self__", value.__self__, f"{variable}.__self__", "self")
            return holder
        if isinstance(value, functools.partial):
            holder = self._holder("partial", value, variable, label)
            for key in ("func", "args", "keywords"):
                self._child(holder, key, getattr(value, key), f"{variable}.{key}", label)
            return holder
        wrapped = vars(value).get("__wrapped__") if _has_dict(value) else None
        if wrapped is not None and is_opaque(type(value).__module__):
            holder = self._holder("wrapper", value, variable, label)
            self._child(holder, "__wrapped__", wrapped, f"{variable}.__wrapped__", label)
            return holder
        if isinstance(value, ModuleType) or (isinstance(value, type) and not is_opaque(value.__module__)):
            holder = self._holder("namespace", value, variable, label)
            for name in sorted(self.names & vars(value).keys()):
                self._child(holder, name, getattr(value, name), f"{variable}.{name}", f"{label}.{name}")
            return holder
        return self._instance(value, variable, label) if _is_instance(value) else None

    def _function(self, function: FunctionType, variable: str, label: str) -> Holder | None:
        own = not is_users(function)
        if own and not hasattr(function, "__wrapped__"):
            return None
        holder = self._holder("function", function, variable, label)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._cell(holder, name, cell, own)
        if own:
            return holder
        loaded, attributes, stored = code_names(function.__code__)
        self.attribute_names |= attributes
        self.is_writing |= writes_of(function.__code__).any or calls_taking_methods(function)
        self.stored_globals += [(function.__globals__, name) for name in stored]
        if not IMPORTED.isdisjoint(imports(function.__code__)):
            holder.children.append((("global", "__builtins__"), StandIn(self.stand_ins.built_in_names())))
        globals_name = self.constant(function.__globals__)
        for name in loaded:
            if name in function.__globals__:
                value = function.__globals__[name]
                self._child(holder, ("global", name), value, f"{globals_name}[{name!r}]", name)
        for index, value in enumerate(function.__defaults__ or ()):
            self._child(
                holder, ("default", index), value, f"{variable}.__defaults__[{index}]", f"{label}'s default"
            )
        for key, value in (function.__kwdefaults__ or {}).items():
            place = f"{variable}.__kwdefaults__[{key!r}]"
            self._child(holder, ("keyword", key), value, place, f"{label}'s default")
        return holder

    def _cell(self, holder: Holder, name: str, cell: CellType, own: bool) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # assigned only later, or never
            return
        if not own:
            self._child(holder, ("cell", name), value, f"{self.constant(cell)}.cell_contents", name)
        elif callable(value):  # a wrapper's function: never rebound, so its identity needs no guard
            child = self.root(value, getattr(value, "__name__", name))
            if child is not None:
                holder.children.append((("cell", name), child))

    def _instance(self, value: Any, variable: str, label: str) -> Holder:
        holder = self._holder("instance", value, variable, label)
        own = attributes_of(value)
        for name in sorted(self.names | {"__call__"}):
            if name in own:
                self._child(holder, name, own[name], f"{variable}.{name}", f"{label}.{name}")
                continue
            static = inspect.getattr_static(type(value), name, None)
            static = getattr(static, "fget", getattr(static, "__func__", static))
            if isinstance(static, FunctionType):
                method = self._object(static, self.constant(static), f"{label}.{name}")
                if method is not None and name != "__call__":
                    holder.children.append((("method", name), method))
            elif static is not None and not hasattr(type(static), "__get__"):
                self._child(holder, name, static, f"{variable}.{name}", f"{label}.{name}")
        return holder


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _is_plain(key: Any) -> bool:
    """Whether a key is nothing that a trace would copy."""
    if isinstance(key, tuple | frozenset):
        return all(map(_is_plain, key))
    return isinstance(key, (*PLAIN_TYPES, np.generic, enum.Enum))


def _has_dict(value: Any) -> bool:
    return hasattr(type(value), "__dictoffset__") and type(value).__dictoffset__ != 0


def _is_special(value: Any) -> bool:
    """A subclass of a container with a constructor of its own that is no namedtuple: not taken apart."""
    return type(value) not in (tuple, list, dict) and not hasattr(value, "_fields")


def _is_instance(value: Any) -> bool:
    """An object of a class that the user wrote."""
    kind = type(value)
    return (
        not isinstance(value, type | ModuleType | FunctionType)
        and not is_opaque(kind.__module__)
        and (_has_dict(value) or hasattr(kind, "__slots__"))
    )


def attributes_of(value: Any) -> dict[str, Any]:
    found = dict(vars(value)) if _has_dict(value) else {}
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


@functools.lru_cache(maxsize=1024)
def code_names(code: CodeType) -> tuple[tuple[str, ...], frozenset[str], tuple[str, ...]]:
    """(globals read, attributes read, globals written) by a code object and those nested in it.

    String constants count as attributes, for `getattr(self, "weight")`.
    """
    loaded: dict[str, None] = {}
    attributes: set[str] = set()
    stored: dict[str, None] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded[instruction.argval] = None
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            stored[instruction.argval] = None
        elif "ATTR" in instruction.opname or "METHOD" in instruction.opname:
            attributes.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner_loaded, inner_attributes, inner_stored = code_names(constant)
            loaded.update(dict.fromkeys(inner_loaded))
            stored.update(dict.fromkeys(inner_stored))
            attributes |= inner_attributes
        elif isinstance(constant, str) and constant.isidentifier():
            attributes.add(constant)
    return tuple(loaded), frozenset(attributes), tuple(stored)
