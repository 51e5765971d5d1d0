"""What a walk over a function's code has read (`reached.py`), so that later calls need not walk again.

What the walk finds has two parts. Objects of a call, which lead from the function and its arguments to code
without a variable of a module or a class between them, are compared by a fingerprint: closures, bound
methods, models, which are other objects in each fit. All others, modules and classes and what these hold,
are remembered, and have to hold the same objects under the names that code reads.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import accumulate, chain
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..bytecode.code_names import names_of
from .contents import content_of_cell
from .objects import (
    HasParts,
    attributes_of,
    dictionary_of,
    has_dict,
    is_opaque,
    is_own_container,
    is_users,
    wrapped_by,
)
from .reached import (
    WITHOUT_CODE,
    Reached,
    elements_of,
    first_elements,
    names_imported_by,
    parts_of,
    way_from,
)
from .standing_names import real_of, stands_for_built_in
from .versions import Versions

Names = frozenset[str] | None
"""Those that code reads; None for all."""


class Trail:
    """What a walk has read.

    Args:
        roots: the function and its arguments.
        reached: what the walk has found.

    Attributes:
        names: those that code reads of the objects of a call; None for all.
    """

    def __init__(self, roots: Sequence[Any], reached: Reached) -> None:
        self.names = reached.names
        self._outline = _outline(roots)
        self._is_bare = _are_bare(roots)
        walk = Walk(roots, self.names)
        self._marks = walk.marks
        self._mappings: dict[int, tuple[Mapping[str, Any], Set[str] | None]] = {}
        self._functions: list[FunctionType] = []
        self._classes: list[type] = []
        self._special: dict[type, tuple[Mapping[str, Any], set[str]]] = {}
        """The special methods of classes, which code runs without naming them."""
        self._of_functions = frozenset[str]()
        """The names that code reads of functions."""
        self._instances: list[Any] = []
        self._without_code: list[Any] = []
        """Containers none of whose first elements has code."""
        self._others: list[Any] = []
        for value in reached.seen:
            if id(value) not in walk.places:
                self._add(value, reached.names_in)
            elif type(value) is FunctionType:
                self._add_variables(value)
        self._special_names = list(self._special.values())
        self._cells = [cell for one in self._functions for cell in one.__closure__ or ()]
        self._without_attributes = [one for one in self._functions if not one.__dict__]
        mappings = [one for one, _ in (*self._mappings.values(), *self._special.values())]
        mappings += map(ATTRIBUTES, self._functions)
        mappings += (one for one in (*self._without_code, *self._others) if type(one) is dict)
        in_dicts = [one for one in self._others if type(one) is dict or _has_parts_in_dict(one)]
        mappings += (ATTRIBUTES(one) for one in in_dicts if type(one) is not dict)
        self.versions = Versions(mappings, self._functions, self._cells)
        """Those of the dicts, functions and cells."""
        self._state = self.versions.read()
        self._known = [(one, names, self._present(one, names)) for one, names in self._mappings.values()]
        self._named = [(one, names, found) for one, names, found in self._known if names is not None]
        self._whole = [(one, found) for one, names, found in self._known if names is None]
        self._listed = [one for one, _ in (*self._whole, *self._special.values())]
        self._keys = self._all_keys()
        read = [(mapping, name) for mapping, _, found in self._known for name in found]
        self._entries = list(zip(*read)) or [(), ()]
        self._first_entries = [0, *accumulate(len(found) for _, _, found in self._known)]
        self._lists_without_code = [one for one in self._without_code if type(one) is not dict]
        self._others_in_dicts = in_dicts
        numbered = set(map(id, in_dicts))
        self._others_in_no_dict = [one for one in self._others if id(one) not in numbered]
        self._held = list(map(real_of, self._objects()))
        self._unnumbered_count = len(self._unnumbered())

    def fits(self, roots: Sequence[Any]) -> bool:
        """Whether a walk from these roots would find the same code."""
        return self.walk_from(roots) is not None

    def walk_from(self, roots: Sequence[Any]) -> Walk | None:
        """The objects of a call with these roots, if they lead to the same code."""
        if _outline(roots) != self._outline:
            return None
        is_bare = self._is_bare and _are_bare(roots)
        walk = Walk(() if is_bare else roots, self.names)
        return walk if (is_bare or walk.marks == self._marks) and self.holds() else None

    def holds(self) -> bool:
        """Whether all that has been read is as it was, or as good."""
        changed = self.versions.changed(self._state)
        if changed is not None and len(changed) <= MOST_CHANGED and all(map(self._mapping_holds, changed)):
            if changed:
                self._state = self.versions.read()
            return self.holds_besides_versions()
        state = self.versions.read()
        is_same = (
            all(map(_holds_no_code, self._without_code))
            and not any(map(ATTRIBUTES, self._without_attributes))
            and self._has_same_names()
            and _are_same(self._objects(), self._held)
        )
        if is_same:
            self._state = state
        return is_same

    def holds_besides_versions(self) -> bool:
        """Whether that is so of what no version tells."""
        lists = self._lists_without_code
        are_plain = not lists or WITHOUT_CODE.issuperset(map(type, chain.from_iterable(lists)))
        if not (are_plain or all(map(_holds_no_code, lists))):
            return False
        count = self._unnumbered_count
        return not count or _are_same(self._unnumbered(), self._held[:count])

    def _mapping_holds(self, place: int) -> bool:
        """Whether a dict, which has been changed, holds what was read of it; False of other objects."""
        if place >= len(self._known):
            special = place - len(self._known)
            return special < len(self._special) and self._has_same_special_names(special)
        mapping, names, found = self._known[place]
        if self._present(mapping, names) != found:
            return False
        first = self._unnumbered_count + self._first_entries[place]
        held = self._held[first : first + len(found)]
        return _are_same([mapping[name] for name in found], held)

    def _all_keys(self) -> list[list[str]]:
        """The names in each mapping of which all count, or all of special methods, in order."""
        return list(map(list, self._listed))

    def _has_same_names(self) -> bool:
        """Whether names that were missing still are; one that is missing now, `_objects` comes upon."""
        for mapping, names, found in self._named:
            others = mapping.keys() - found
            if not names.isdisjoint(others) and self._present(mapping, names & others):
                return False
        if self._all_keys() == self._keys:
            return True
        return all(self._present(mapping, None) == found for mapping, found in self._whole) and all(
            map(self._has_same_special_names, range(len(self._special)))
        )

    def _has_same_special_names(self, place: int) -> bool:
        mapping, found = self._special_names[place]
        return _special_names(mapping) == found

    def _objects(self) -> list[Any]:
        """What has been read, as it is now; nothing if a name is missing.

        What may hold more or fewer objects than before stands in front of these, to tell whose they are.
        """
        mappings, names = self._entries
        try:
            found: list[Any] = list(map(operator.getitem, mappings, names))
        except KeyError:
            return []
        for slot in SLOTS:
            found += map(slot, self._functions)
        found.append(self._cells)
        found += _with_parts(self._others_in_dicts)
        return [*self._unnumbered(), *found, *_contents(self._cells)]

    def _unnumbered(self) -> list[Any]:
        """What of it is in no dict, function or cell."""
        found = [*map(BASES, self._classes), *map(type, self._instances)]
        found += map(dictionary_of, self._instances)
        return found + _with_parts(self._others_in_no_dict)

    def _add(self, value: Any, names_in: Callable[[Any], Names]) -> None:
        kind: Any = type(value)
        way = way_from(kind)
        if way == "_from_function":
            self._functions.append(value)
            if value.__dict__:
                names = names_in(value)
                if names is not None and not self._of_functions.issuperset(names):
                    self._of_functions = names | {"__wrapped__"}  # one for all
                self._add_mapping(value.__dict__, names and self._of_functions)
            self._add_variables(value)
        elif way == "_from_class":
            self._classes.append(value)
            for base in value.__mro__:
                if base not in self._special and not is_opaque(base.__module__):
                    own, names = vars(base), names_in(base)
                    special = _special_names(own)
                    self._special[base] = own, special
                    self._add_mapping(own, None if names is None else names | special)
        elif way == "_from_module":
            self._add_mapping(vars(value), names_in(value))
        elif way == "_from_instance":
            self._instances.append(value)
            self._add_mapping(dictionary_of(value), names_in(value))
        elif way == "_from_container" and kind not in FROZEN and _holds_no_code(value):
            self._without_code.append(value)
        elif kind not in FROZEN and any(one is not None for one in _parts_of(value)):
            self._others.append(value)

    def _add_variables(self, function: FunctionType) -> None:
        """What a function reads of its module, and the modules that it imports."""
        if is_users(function):
            self._add_mapping(function.__globals__, names_of(function.__code__).loaded)
            self._add_mapping(sys.modules, names_imported_by(function))

    def _add_mapping(self, mapping: Mapping[str, Any], names: Iterable[str] | None) -> None:
        known: Any = self._mappings.get(id(mapping), (mapping, frozenset()))[1]
        if names is None or known is None:
            self._mappings[id(mapping)] = mapping, None
        elif not known:  # which many mappings have in common
            self._mappings[id(mapping)] = mapping, frozenset(names)
        elif not known.issuperset(names):
            changed = known if isinstance(known, set) else set(known)
            changed.update(names)
            self._mappings[id(mapping)] = mapping, changed

    def _present(self, mapping: Mapping[str, Any], names: Set[str] | None) -> set[str]:
        found = set(mapping) if names is None else mapping.keys() & names
        return {name for name in found if not stands_for_built_in(name, mapping[name])}


def _has_parts_in_dict(value: Any) -> bool:
    """Whether it is an object of ours whose parts its attributes' dict holds."""
    return isinstance(value, HasParts) and has_dict(value) and ATTRIBUTES(value).keys() >= {*value.parts}


def _special_names(own: Mapping[str, Any]) -> set[str]:
    return {name for name in own if name[:2] == "__"}


MOST_CHANGED = 64
"""Of the dicts that are looked at one by one, to tell whether they hold what was read of them."""
SLOTS = tuple(map(operator.attrgetter, ("__code__", "__defaults__", "__kwdefaults__")))
ATTRIBUTES = operator.attrgetter("__dict__")
BASES = operator.attrgetter("__mro__")
CONTENTS = operator.attrgetter("cell_contents")
FROZEN = (tuple, frozenset, BuiltinFunctionType, MethodType, staticmethod, classmethod, property)
"""Classes of objects that hold the same as long as they live."""


def _outline(roots: Sequence[Any]) -> list[Any]:
    """Of each root that is a function its code and its module: what a fingerprint says too, found sooner."""
    return [(one.__code__, id(one.__globals__)) if type(one) is FunctionType else None for one in roots]


def _are_bare(roots: Sequence[Any]) -> bool:
    """Whether they are functions that hold nothing of their own, of which an outline says all."""
    return all(
        type(one) is FunctionType
        and not (one.__closure__ or one.__defaults__ or one.__kwdefaults__ or one.__dict__)
        for one in roots
    )


class Walk:
    """The objects of a call, and what they are apart from their identity.

    Attributes:
        marks: what is compared, in the order of a walk.
        objects: those that may lead to code.
    """

    def __init__(self, roots: Sequence[Any], names: Names) -> None:
        self.marks: list[Any] = []
        self.objects: list[Any] = []
        self.places: dict[int, int] = {}
        """By the id of an object its place in the walk."""
        self._names = names
        self._kept: list[Any] = []
        """Whose ids are marks."""
        marks, places, pending = self.marks, self.places, list(roots)
        while pending:
            value = pending.pop()
            kind: Any = type(value)
            if kind in WITHOUT_CODE:
                marks.append(plain_mark(value) if kind in MARKED else None)
            elif (key := id(value)) in places:
                marks.append(places[key])
            elif (way := way_from(kind)) in OPAQUE_WAYS or kind is BuiltinFunctionType:
                marks.append(("object", key))
                self._kept.append(value)
            else:
                places[key] = len(places)
                self.objects.append(value)
                found = self._from_function(value) if way == "_from_function" else self.parts(value, way)
                marks.append((id(kind), len(found)))
                self._kept.append(kind)
                pending += found

    def leads_to_those_of(self, other: Walk) -> bool:
        """Whether these are the very objects of another walk."""
        return self.places.keys() == other.places.keys()

    def _from_function(self, function: FunctionType) -> list[Any]:
        code, variables, attributes = function.__code__, function.__globals__, function.__dict__
        held = function.__defaults__, function.__kwdefaults__, attributes.get("__wrapped__")
        self._kept += (code, variables)
        self.marks.append((id(code), id(variables), *[one is None for one in held]))
        found = [one for one in held if one is not None]
        if function.__closure__:
            found += _contents(function.__closure__)
        return found + self._by_name(attributes) if attributes else found

    def parts(self, value: Any, way: str) -> list[Any]:
        """What an object that is no function holds; what is compared of it is another of the marks."""
        if way == "_from_instance":
            return self._by_name(dictionary_of(value))
        if way == "_from_container":
            return self._elements(value)
        if way == "_from_slotted":
            elements = self._elements(value) if is_own_container(value) else []
            return elements + self._by_name(attributes_of(value))
        return parts_of(value) if way == "_from_parts" else [wrapped_by(value)]

    def _by_name(self, holder: Mapping[str, Any]) -> list[Any]:
        names = sorted(holder if self._names is None else holder.keys() & self._names)
        self.marks.append(tuple(names))
        return [holder[name] for name in names]

    def _elements(self, container: Any) -> list[Any]:
        """The elements with code; of the others, which kinds there are."""
        kind = type(container)
        if kind in (list, tuple) and PLAIN.issuperset(map(type, container)):
            self.marks.append(ONE_KIND if container else frozenset())
            return []
        plain, found = set(), []
        for one in first_elements(container):
            kind = type(one)
            if kind in WITHOUT_CODE:
                plain.add(plain_mark(one) if kind in MARKED else None)
            else:
                found.append(one)
        self.marks.append(frozenset(plain))
        return found


MARKED = (np.ufunc, np.ndarray)
"""Of what has no code the classes whose objects `plain_mark` tells apart."""
PLAIN = WITHOUT_CODE.difference(MARKED)
"""The others, whose objects are one kind."""
ONE_KIND = frozenset({None})
OPAQUE_WAYS = ("_from_class", "_from_module")
"""Those from objects which are what they are: of the call's alone what they hold counts."""


def plain_mark(value: Any) -> Any:
    """What stand-ins depend on: which function it is, or of which dtype an array."""
    if type(value) is np.ndarray:
        dtype = value.dtype
        return dtype.char, dtype.isnative  # found sooner than `str`
    return value if type(value) is np.ufunc else None


def _contents(cells: Sequence[CellType]) -> list[Any]:
    try:
        return list(map(CONTENTS, cells))
    except ValueError:  # one that is assigned only later, or never
        return [one for cell in cells for one in content_of_cell(cell)]


def _holds_no_code(container: Any) -> bool:
    """Whether none of the first elements of a container has code."""
    if not WITHOUT_CODE.issuperset(map(type, container)):
        return not elements_of(container)
    return not isinstance(container, Mapping) or (
        WITHOUT_CODE.issuperset(map(type, container.values())) or not elements_of(container)
    )


def _parts_of(value: Any) -> list[Any]:
    """What an object holds besides what is in mappings."""
    kind: Any = type(value)
    way = way_from(kind)
    if way == "_from_slotted":
        elements = elements_of(value) if is_own_container(value) else []
        return [kind, *attributes_of(value).values(), *elements]
    if way == "_from_container":
        return elements_of(value)
    return parts_of(value) if way == "_from_parts" else [wrapped_by(value)]


def _with_parts(objects: Iterable[Any]) -> list[Any]:
    return [part for one in objects for part in (one, *_parts_of(one))]


def _are_same(found: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether these are the same objects; one number, or array, is as good as another."""
    if len(found) != len(values):
        return False
    return all(map(operator.is_, found, values)) or all(
        real_of(one) is other
        or (
            type(one) in WITHOUT_CODE
            and type(other) in WITHOUT_CODE
            and plain_mark(one) == plain_mark(other)
        )
        for one, other in zip(found, values)
    )
