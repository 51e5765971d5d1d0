"""What code of the user's a function can run: found by the names in code, from objects to what they hold.

A walk over functions, their variables, and the classes, attributes and elements of the objects on the way.
It follows only names that occur in the code found so far. Where code computes names (`getattr(x, name)`), it
follows all that the objects have which such code has at hand: those of the call, those of the class whose
method it is, and what its variables hold, but for modules, which may lead to anything.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..bytecode.code_names import names_of
from ..bytecode.write_instructions import imports
from ..values.tensor import TorchTensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber
from .asked_tables import AskedTable
from .contents import content_of_cell
from .objects import HasParts, attributes_of, dictionary_of, is_opaque, is_own_container, is_users, wrapped_by
from .randomness import RANDOM
from .standing_names import real_of

LARGEST = 1000
"""Elements of a container that are looked at."""
WITHOUT_CODE = frozenset((
    bool, int, float, complex, str, bytes, type(None), np.ndarray, np.float64, np.ufunc, np.dtype,
    TorchTensor, NumpyTensor, NumpyScalar, PythonNumber, AskedTable,
))  # fmt: skip
NUMBERS = frozenset((bool, int, float, complex, str, bytes, type(None)))
MOST_NUMBERS = 100
"""Elements of a container that is looked at in every call."""
PARTS: dict[type, tuple[str, ...]] = {
    MethodType: ("__func__", "__self__"),
    BuiltinFunctionType: ("__self__",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools.partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.singledispatchmethod: ("dispatcher",),
    np.vectorize: ("pyfunc",),
}
"""Of objects that call functions the attributes that hold these."""
MAPPINGS = (dict, OrderedDict, defaultdict, Counter, MappingProxyType)
NAMESPACES = ("types.SimpleNamespace", "argparse.Namespace", "_thread._local")
"""By name: to import argparse takes long."""
SEQUENCES = (list, tuple, set, frozenset, deque)
NOT_COMPUTING = frozenset((
    "__dir__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs__",
    "__getnewargs_ex__", "__sizeof__", "__set_name__", "__init_subclass__", "__class_getitem__",
))  # fmt: skip
"""Special methods that are called to look at an object, to pickle it or to make a class."""


class Reached:
    """What the `roots` reach.

    Attributes:
        functions: those of the user's.
        namespaces: the global variables of these functions, and of the modules of classes on the way, by
            identity.
        is_fixed: whether it is the same as long as the variables of these functions are, and `of_numbers`.
        of_numbers: containers on the way that hold numbers and text alone.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self.functions: dict[FunctionType, None] = {}
        self.namespaces: dict[int, dict[str, Any]] = {}
        self.is_fixed = True
        self.of_numbers: list[Any] = []
        self._names: set[str] = set()
        self._reads_all = False
        self._holders: list[tuple[Mapping[str, Any], Any]] = []
        """What holds objects by name, and whose it is."""
        self._roots = list(roots)
        self._at_hand: dict[int, Any] = {}
        """What code that computes names has at hand; of a class all its objects."""
        self._looked_for: set[str] = set()
        """The names under which `_looked_at`, the first of the holders, have been looked at."""
        self._looked_at = 0
        self._exhausted: set[int] = set()
        """The places of the holders of which all has been looked at."""
        self._seen: dict[int, Any] = {}
        pending = list(self._roots)
        while pending:
            while pending:
                value = pending.pop()
                kind: Any = type(value)
                if kind not in WITHOUT_CODE and id(value) not in self._seen:
                    self._seen[id(value)] = value
                    if holds_numbers(value):
                        self.of_numbers.append(value)
                    else:
                        self.is_fixed = self.is_fixed and _is_fixed(value)
                    pending += getattr(self, way_from(kind))(value)
            pending = self._by_name()
        self._all_names = frozenset(self._names)

    @property
    def names(self) -> frozenset[str] | None:
        """The attributes that code reads of the objects of the call; None for all."""
        return None if self._reads_all else self._all_names

    @property
    def reads_all(self) -> bool:
        """Whether code reads attributes whose names it computes."""
        return self._reads_all

    def names_in(self, value: Any) -> frozenset[str] | None:
        """The names that code reads of an object, a class or a module; None for all."""
        return None if self._is_at_hand(value) else self._all_names

    def names_in_any(self) -> Callable[[Any], frozenset[str] | None]:
        """The same of objects of other calls that lead to the same code; it keeps those of this one not."""
        names, all_names = self.names, self._all_names
        classes = {key: one for key, one in self._at_hand.items() if isinstance(one, type)}

        def names_in(value: Any) -> frozenset[str] | None:
            is_at_hand = bool(classes) and any(id(base) in classes for base in type(value).__mro__)
            return None if names is None or is_at_hand else all_names

        return names_in

    def _is_at_hand(self, value: Any) -> bool:
        known = self._at_hand
        if not known or id(value) in known:
            return bool(known)
        return any(id(base) in known for base in type(value).__mro__)

    @property
    def seen(self) -> Iterable[Any]:
        """All objects on the way."""
        return self._seen.values()

    @property
    def streams(self) -> list[Any]:
        """The streams of random numbers."""
        return [one for one in self._seen.values() if isinstance(one, RANDOM)]

    def _by_name(self) -> list[Any]:
        """What objects, classes and modules hold under the names that code reads, where it is new."""
        found: list[Any] = []
        new = self._names - self._looked_for
        for position, (holder, owner) in enumerate(self._holders):
            if position in self._exhausted:
                continue
            if self._is_at_hand(owner):
                self._exhausted.add(position)
                chosen = list(holder.values())
            else:
                names = new if position < self._looked_at else self._names
                chosen = [holder[name] for name in holder.keys() & names]
            if isinstance(owner, type) and any(map(_computes_names, chosen)):
                self._open([owner])
            found += chosen
        self._looked_at, self._looked_for = len(self._holders), set(self._names)
        return [one for one in found if type(one) not in WITHOUT_CODE and id(one) not in self._seen]

    def _from_function(self, function: FunctionType) -> list[Any]:
        found = [real_of(one) for cell in function.__closure__ or () for one in content_of_cell(cell)]
        if function.__dict__:
            self._holders.append((function.__dict__, function))
            found.append(function.__dict__.get("__wrapped__"))
        if not is_users(function):
            return found
        self.functions[function] = None
        variables = function.__globals__
        if type(variables) is dict:  # and no view of one
            self.namespaces[id(variables)] = variables
        names = names_of(function.__code__)
        self._names |= names.attributes
        self.is_fixed &= not names.reads_all
        for name in names.loaded:
            try:
                found.append(real_of(variables[name]))
            except KeyError:  # a built-in name, or one that is assigned only later
                continue
        found += function.__defaults__ or ()
        found += (function.__kwdefaults__ or {}).values()
        found += self._imported_by(function)
        if names.reads_all:
            if not self._reads_all:
                self._open(objects_from(self._roots))
            self._reads_all = True
            self._open(found)
        return found

    def _open(self, values: Iterable[Any]) -> None:
        """Follow all names of these objects, and of the classes of the user's that they are of.

        What else a module has may ask for types, but is not followed.
        """
        for value in values:
            if isinstance(value, ModuleType):
                if not is_opaque(value.__name__):
                    self.namespaces[id(vars(value))] = vars(value)
            elif type(value) not in WITHOUT_CODE:
                self._at_hand[id(value)] = value
                for base in () if isinstance(value, FunctionType) else type(value).__mro__:
                    if not is_opaque(base.__module__):
                        self._at_hand[id(base)] = base

    def _imported_by(self, function: FunctionType) -> list[ModuleType]:
        """The user's modules that a function imports when it runs, as far as they are there."""
        names = names_imported_by(function)
        found = [sys.modules[name] for name in names if name in sys.modules and not is_opaque(name)]
        self.is_fixed &= not names
        for module in found:
            self._names.update(function.__code__.co_names)
            self.namespaces[id(vars(module))] = vars(module)
        return found

    def _from_class(self, kind: type) -> list[Any]:
        """The special methods of a class and its metaclass, which code runs without naming them."""
        found: list[Any] = [] if type(kind) is type else [type(kind)]
        for base in kind.__mro__:
            if is_opaque(base.__module__):
                continue
            own = vars(base)
            self._holders.append((own, base))
            if base.__module__ in sys.modules:
                variables = vars(sys.modules[base.__module__])
                self.namespaces[id(variables)] = variables
            found += [
                one
                for name, one in own.items()
                if name[:2] == "__" and type(one) is FunctionType and name not in NOT_COMPUTING
            ]
        return found

    def _from_module(self, module: ModuleType) -> tuple[()]:
        if not is_opaque(module.__name__):
            self._holders.append((vars(module), module))
        return ()

    def _from_instance(self, value: Any) -> tuple[type]:
        self._holders.append((dictionary_of(value), value))
        return (type(value),)

    def _from_slotted(self, value: Any) -> list[Any]:
        """Of an object of the user's with elements, or with slots."""
        self._holders.append((attributes_of(value), value))
        return [type(value), *(elements_of(value) if is_own_container(value) else ())]

    def _from_container(self, value: Any) -> list[Any]:
        return elements_of(value)

    def _from_parts(self, value: Any) -> list[Any]:
        return parts_of(value)

    def _from_wrapper(self, value: Any) -> list[Any]:
        return [wrapped_by(value)]


@functools.lru_cache(maxsize=1024)
def way_from(kind: Any) -> str:
    """The method that goes on from objects of a class."""
    if issubclass(kind, FunctionType):
        return "_from_function"
    if issubclass(kind, type):
        return "_from_class"
    if issubclass(kind, ModuleType):
        return "_from_module"
    if kind in MAPPINGS or kind in SEQUENCES:
        return "_from_container"
    if kind in PARTS or issubclass(kind, HasParts):
        return "_from_parts"
    if is_opaque(kind.__module__) and f"{kind.__module__}.{kind.__qualname__}" not in NAMESPACES:
        return "_from_wrapper"
    has_slots = kind.__dictoffset__ == 0 or any("__slots__" in vars(base) for base in kind.__mro__)
    return "_from_slotted" if has_slots or issubclass(kind, (dict, *SEQUENCES)) else "_from_instance"


def objects_from(roots: Iterable[Any]) -> list[Any]:
    """The objects of a call: what leads from the roots without a variable of a module or a class between."""
    seen: dict[int, Any] = {}
    pending = list(roots)
    while pending:
        value = pending.pop()
        kind: Any = type(value)
        if kind in WITHOUT_CODE or id(value) in seen or isinstance(value, type | ModuleType):
            continue
        seen[id(value)] = value
        way = way_from(kind)
        if way == "_from_function":
            pending += [one for cell in value.__closure__ or () for one in content_of_cell(cell)]
            pending += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            pending += value.__dict__.values()
        elif way == "_from_instance":
            pending += dictionary_of(value).values()
        elif way == "_from_slotted":
            pending += attributes_of(value).values()
            pending += elements_of(value) if is_own_container(value) else ()
        elif way == "_from_container":
            pending += elements_of(value)
        else:
            pending += parts_of(value) if way == "_from_parts" else [wrapped_by(value)]
    return list(seen.values())


def _computes_names(value: Any) -> bool:
    """Whether it is a function, or what wraps one in a class, that reads attributes by names it computes."""
    parts = parts_of(value) if type(value) in PARTS else [value]
    return any(type(one) is FunctionType and names_of(one.__code__).reads_all for one in parts)


def names_imported_by(function: FunctionType) -> list[str]:
    """The full names of modules that a function may import when it runs."""
    package = function.__globals__.get("__package__")
    return [full for name in imports(function.__code__) for full in (name, f"{package}.{name}")]


def parts_of(value: Any) -> list[Any]:
    """What an object that calls functions holds of them."""
    names = value.parts if isinstance(value, HasParts) else PARTS[type(value)]
    return [getattr(value, name) for name in names]


def elements_of(value: Any) -> list[Any]:
    """The first elements of a container, those without code left out."""
    return [one for one in first_elements(value) if type(one) not in WITHOUT_CODE]


def first_elements(value: Any) -> Iterable[Any]:
    """The first elements of a container, of a mapping its keys and its values."""
    values = value.values() if type(value) not in SEQUENCES and isinstance(value, Mapping) else ()
    elements = tuple(value) if isinstance(value, set) else value  # which may lose some on the way
    return chain(islice(elements, LARGEST), islice(values, LARGEST))


def _is_fixed(value: Any) -> bool:
    """Whether what an object leads to stays the same, but for a function's variables."""
    kind: Any = type(value)
    way = way_from(kind)
    if way == "_from_function":
        return not value.__dict__
    if way in ("_from_class", "_from_module"):
        return is_opaque(value.__name__ if isinstance(value, ModuleType) else value.__module__)
    if type(value) is BuiltinFunctionType:
        return value.__self__ is None or type(value.__self__) is ModuleType
    return type(value) is tuple or (way == "_from_wrapper" and wrapped_by(value) is None)


def holds_numbers(value: Any) -> bool:
    """Whether it is a short list, set or dict of numbers and text alone."""
    kind = type(value)
    if kind not in (list, set, dict) or len(value) > MOST_NUMBERS:
        return False
    return NUMBERS.issuperset(map(type, value)) and (kind is not dict or holds_numbers([*value.values()]))


def is_without_code(value: Any) -> bool:
    """Whether a value holds numbers and arrays alone, perhaps in lists, tuples and dicts."""
    kind = type(value)
    if kind in WITHOUT_CODE:
        return True
    if kind is dict:
        return all(map(is_without_code, value.values()))
    return kind in (list, tuple) and len(value) <= LARGEST and all(map(is_without_code, value))
