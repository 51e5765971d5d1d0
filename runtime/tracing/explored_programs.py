"""What code a NumPy program can run, what that reaches by name, and so which stand-ins it needs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...tracer.records import record
from ...tracer.spec import SUPPORTED
from ..bytecode.code_names import names_of
from ..bytecode.write_instructions import (
    calls_taking_methods,
    imports,
    makes_lists,
    writes_of,
)
from ..captures.objects import is_opaque, is_users
from ..captures.reached import WITHOUT_CODE, Reached, holds_numbers, is_without_code
from ..captures.trails import Trail
from .asked_types import ASKED
from .program_containers import CONTAINERS, parts_within
from .stand_ins import IMPORTED, JOINED_ALONE, MODULES, WRITABLE, StandIns, stand_ins_for

Function = Callable[..., Any]


def _writes_arguments(function: FunctionType) -> bool:
    writes = writes_of(function.__code__)
    return writes.perhaps_more or bool(writes.parameters - {"self"})


def plain_function(function: Function) -> FunctionType | None:
    """The Python function that is run; None for what was not written in Python, and for pullback's own."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        function = vars(type(function)).get("__call__", None)
    return function if isinstance(function, FunctionType) and is_users(function) else None


@record(frozen=True, eq=False, slots=True)
class ReachedByName:
    """A function, and the modules, functions and parts of NumPy that its variables hold."""

    function: FunctionType
    attributes: frozenset[str]
    contents: tuple[Any, ...]
    """What its cells and its defaults hold."""
    variables: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, Any] = field(default_factory=dict)

    def held(self) -> Iterator[Any]:
        """The values, with the parts of containers and of partial functions."""
        function = self.function
        defaults = (function.__defaults__ or (), function.__kwdefaults__ or {})
        for value in (*self.variables.values(), *self.cells.values(), *defaults):
            yield from parts_within(value)

    def imports(self) -> bool:
        """Whether it imports a module for which there are stand-ins when it runs."""
        return not IMPORTED.isdisjoint(imports(self.function.__code__))


def _reached(function: FunctionType) -> ReachedByName:
    names = names_of(function.__code__)
    one = ReachedByName(function, names.attributes, _contents(function))
    for name in names.loaded:
        if _concerns(value := function.__globals__.get(name)):
            one.variables[name] = value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if _concerns(value := _content(cell)):
            one.cells[name] = value
    return one


def _contents(function: FunctionType) -> tuple[Any, ...]:
    keywords = function.__kwdefaults__
    return (
        *map(_content, function.__closure__ or ()),
        *(function.__defaults__ or ()),
        *(keywords.values() if keywords else ()),
    )


def _concerns(value: Any) -> bool:
    kind = type(value)
    if kind in CONTAINERS:
        return any(_concerns(one) for one in parts_within(value) if type(one) not in CONTAINERS)
    if kind is ModuleType:
        return (
            WRITABLE.of(value, frozenset()) is not None or value in MODULES or not is_opaque(value.__name__)
        )
    if kind in (FunctionType, np.ndarray) or WRITABLE.of(value, frozenset()) is not None:
        return True
    return not is_opaque((value if isinstance(value, type) else kind).__module__)


def functions_of(value: Any, attributes: frozenset[str]) -> list[FunctionType]:
    if type(value) is FunctionType:
        return [value]
    if type(value) is not ModuleType or value in MODULES:
        return []
    return [one for name in attributes if type(one := vars(value).get(name)) is FunctionType]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # assigned only later, or never
        return None


@record(frozen=True, eq=False, slots=True)
class Explored:
    """What code a function can run, with certain arguments, and what becomes of it.

    Attributes:
        plain: the Python function that is run; None for what was not written in Python, and pullback's own.
        namespaces: the variables of modules whose code it can run, where that asks for types.
        is_fixed: whether all this is the same as long as variables of the functions hold the same.
        written: the parameters that it writes into; None for perhaps all.
        is_writing: whether any code writes into arrays.
        replaces_arrays: whether arrays are replaced, too, since their methods take others.
        concerned: the functions that reach a stand-in, themselves or through others.
    """

    plain: FunctionType | None
    functions: dict[FunctionType, ReachedByName]
    namespaces: tuple[dict[str, Any], ...]
    is_fixed: bool
    written: frozenset[str] | None = frozenset()
    is_writing: bool = False
    replaces_arrays: bool = False
    stand_ins: StandIns = JOINED_ALONE
    concerned: frozenset[FunctionType] = frozenset()
    reads: tuple[tuple[dict[str, Any], str, Any], ...] = ()
    """Global variables of the functions, by namespace and name, with what they held."""
    attributes: frozenset[str] = frozenset()
    """Those that the functions read; none where their names are computed."""
    of_numbers: tuple[Any, ...] = ()
    """Containers that are reached, and hold numbers and text alone."""

    def holds_for(self, function: FunctionType) -> bool:
        """Whether it is what would be found for a function of the same code."""
        if (self.concerned and function is not self.plain) or not all(map(holds_numbers, self.of_numbers)):
            return False
        for variables, name, value in self.reads:
            found = variables.get(name, MISSING)
            if found is not value and not self._is_same(found, value):
                return False
        for one in self.functions.values():
            found = function if one.function is self.plain else one.function
            if (one.contents or found is not one.function) and not self._is_same(found, one.function):
                return False
        return True

    def _is_same(self, found: Any, value: Any) -> bool:
        """Whether a variable holds what it did; one number, or array, is as good as another."""
        kind = type(value)
        if kind is FunctionType and type(found) is FunctionType and value in self.functions:
            return (
                (found is value or (found.__code__ is value.__code__ and not found.__dict__))
                and found.__globals__ is value.__globals__
                and self._are_same(_contents(found), self.functions[value].contents)
            )
        if found is value:
            return True
        if self.concerned:  # whose copies hold the values
            return False
        if kind is tuple and type(found) is tuple:
            return self._are_same(found, value)
        return kind is not np.ufunc and {kind, type(found)} <= WITHOUT_CODE

    def _are_same(self, found: Sequence[Any], values: Sequence[Any]) -> bool:
        return len(found) == len(values) and all(map(self._is_same, found, values))


MISSING = object()


MOST_KNOWN = 256


_known: dict[int, Explored] = {}
"""What was found for functions, by the id of their code, where that is fixed."""


MOST_TRAILS = 8


_trails: dict[int, Sequence[tuple[Trail, Explored]]] = {}
"""What was found for others by the id of their code, the latest first, with what it depends on."""


def explored(function: Function, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Explored:
    """What code a function can run with these arguments."""
    if type(function) is not FunctionType or not hold_no_code(arguments, keywords):
        return _explored_from((function, *arguments, *keywords.values()))
    key = id(function.__code__)
    found = _known.get(key)
    if found is None or not found.holds_for(function):
        found = _explored_from((function,))
        if found.is_fixed:
            if len(_known) >= MOST_KNOWN:
                _known.clear()
            _known[key] = found
    return found


def hold_no_code(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether the arguments of a call are numbers and arrays alone, perhaps in containers."""
    given = (*arguments, *keywords.values())
    return WITHOUT_CODE.issuperset(map(type, given)) or all(map(is_without_code, given))


def _explored_from(roots: Sequence[Any]) -> Explored:
    """What code a function can run with these arguments: what was found before, where a trail fits.

    No trail is kept of a function that is run as a copy, which holds what its variables did.
    """
    key = id(_code_of(roots[0]))
    trails = _trails.get(key, ())
    for place, (trail, found) in enumerate(trails):
        if trail.fits(roots):
            if place:
                _trails[key] = [trails[place], *trails[:place], *trails[place + 1 :]]
            return found
    reached = Reached(roots)
    found = _explored(roots[0], reached, len(roots) == 1 and reached.is_fixed)
    if found.is_fixed or found.plain in found.concerned:
        return found
    found = replace(found, plain=None, functions={}, concerned=frozenset(), reads=())
    if len(_trails) >= MOST_KNOWN:
        _trails.clear()
    _trails[key] = [(Trail(roots, reached, ASKED), found), *trails[: MOST_TRAILS - 1]]
    return found


def _code_of(function: Function) -> Any:
    """The code of a function that roots lead from; the class of another callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(getattr(function, "__func__", function), "__code__", type(function))


def _explored(function: Function, code: Reached, is_fixed: bool) -> Explored:
    plain = plain_function(function)
    if plain is None:
        return Explored(None, {}, _asking(code), False)
    functions = {one: _reached(one) for one in code.functions}
    helpers = [one for one in functions if one is not plain]
    writes = writes_of(plain.__code__)
    is_writing = code.reads_all or writes.any or any(writes_of(one.__code__).any for one in helpers)
    lists = any(makes_lists(one.__code__) for one in functions)
    has_methods = any(map(calls_taking_methods, functions))
    perhaps_all = writes.perhaps_more or has_methods or any(map(_writes_arguments, helpers))
    stand_ins = stand_ins_for(is_writing or has_methods, lists)
    reads = [
        (one.__globals__, name, one.__globals__.get(name, MISSING))
        for one in functions
        for name in names_of(one.__code__).loaded
    ]
    names = [names_of(one.__code__) for one in functions]
    read = () if any(one.reads_all for one in names) else [one.attributes for one in names]
    attributes = frozenset[str]().union(*read)
    return Explored(
        plain,
        functions,
        _asking(code),
        is_fixed,
        None if perhaps_all else writes.parameters,
        is_writing,
        has_methods,
        stand_ins,
        _concerned(functions, stand_ins, has_methods, attributes),
        tuple(reads),
        attributes,
        tuple(code.of_numbers),
    )


def _asking(code: Reached) -> tuple[dict[str, Any], ...]:
    """The variables of modules whose code asks for types; of all modules where code computes names."""
    if code.reads_all:
        return tuple(code.namespaces.values())
    asking = [one for one in code.functions if not ASKED.keys().isdisjoint(names_of(one.__code__).loaded)]
    return tuple({id(one.__globals__): one.__globals__ for one in asking}.values())


def _concerned(
    functions: Mapping[FunctionType, ReachedByName],
    stand_ins: StandIns,
    replaces_arrays: bool,
    anywhere: frozenset[str],
) -> frozenset[FunctionType]:
    def is_replaced(value: Any, attributes: frozenset[str]) -> bool:
        if type(value) is np.ndarray:
            return replaces_arrays and value.dtype in SUPPORTED
        return stand_ins.of(value, attributes, anywhere) is not None

    leading: list[FunctionType] = []
    callers: dict[FunctionType, list[FunctionType]] = {}
    for one in functions.values():
        held = list(one.held())
        if one.imports() or any(is_replaced(value, one.attributes) for value in held):
            leading.append(one.function)
        for value in held:
            for helper in functions_of(value, one.attributes):
                callers.setdefault(helper, []).append(one.function)
    found = set(leading)
    while leading:
        more = {*callers.get(leading.pop(), ())} - found
        found |= more
        leading += more
    return frozenset(found)
