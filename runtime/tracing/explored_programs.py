"""What code a NumPy program can run, what that reaches by name, and so which stand-ins it needs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field, replace
from itertools import repeat
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...tracer.collection import paused_collection
from ...tracer.records import record
from ...tracer.spec import SUPPORTED
from ..bytecode.code_names import names_of
from ..bytecode.write_instructions import (
    calls_taking_methods,
    imports,
    makes_lists,
    writes_of,
)
from ..captures.objects import Unread, is_opaque, is_users
from ..captures.reached import WITHOUT_CODE, Reached, holds_numbers, is_without_code
from ..captures.same_calls import SameCall
from ..captures.standing_names import Standing, Variables, real_of
from ..captures.trails import Trail, Walk
from .asked_types import ASKED, REAL
from .object_stand_ins import Holdings, ObjectStandIns, Survey
from .program_containers import CONTAINERS, ContainerCopies, parts_within
from .stand_ins import IMPORTED, JOINED_ALONE, MODULES, WRITABLE, StandIns, stand_ins_for

Function = Callable[..., Any]
Pairs = frozenset[tuple[int, int]]
"""Of ids of functions."""


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
        function = inspect.getattr_static(type(function), "__call__", None)
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

    def places(self) -> Iterator[tuple[Any, Any]]:
        """Where its variables and its defaults are: what holds each, and its name there."""
        function = self.function
        yield from ((function.__globals__, name) for name in self.variables)
        cells = zip(function.__closure__ or (), function.__code__.co_freevars)
        yield from cells
        yield from ((function.__defaults__, place) for place in range(len(function.__defaults__ or ())))
        yield from ((function.__kwdefaults__, name) for name in function.__kwdefaults__ or ())

    def imports(self) -> bool:
        """Whether it imports a module for which there are stand-ins when it runs."""
        return not IMPORTED.isdisjoint(imports(self.function.__code__))


def _reached(functions: Iterable[FunctionType]) -> dict[FunctionType, ReachedByName]:
    """What each of some functions reaches by name; what they hold is looked at once."""
    known: dict[int, bool] = {}

    def concerns(value: Any) -> bool:
        found = known.get(key := id(value))
        if found is None:
            found = known[key] = _concerns(value)
        return found

    reached = {}
    for function in functions:
        names = names_of(function.__code__)
        one = reached[function] = ReachedByName(function, names.attributes, _contents(function))
        for name in names.loaded:
            if concerns(value := real_of(function.__globals__.get(name))):
                one.variables[name] = value
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if concerns(value := _content(cell)):
                one.cells[name] = value
    return reached


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
            WRITABLE.of_plain_run(value, frozenset()) is not None
            or value in MODULES
            or not is_opaque(value.__name__)
        )
    if kind in (FunctionType, np.ndarray) or WRITABLE.of_plain_run(value, frozenset()) is not None:
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
        return real_of(cell.cell_contents)
    except ValueError:  # assigned only later, or never
        return None


@record(frozen=True, eq=False, slots=True)
class Explored:
    """What code a function can run, with certain arguments, and what becomes of it.

    Attributes:
        plain: the Python function that is run; None for what was not written in Python, and pullback's own.
        standing: variables that hold stand-ins while it runs.
        is_fixed: whether all this is the same as long as variables of the functions hold the same.
        written: the parameters that it writes into; None for perhaps all.
        is_writing: whether any code writes into arrays.
        replaces_arrays: whether arrays are replaced, too, since their methods take others.
        concerned: the functions that reach a stand-in by name, themselves or through others, where they are
            run as copies.
    """

    plain: FunctionType | None
    functions: dict[FunctionType, ReachedByName]
    standing: tuple[Standing, ...]
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
    objects: ObjectStandIns = ObjectStandIns()
    """What of its objects has stand-ins."""
    holding: tuple[FunctionType, ...] = ()
    """The functions with cells or defaults, which may hold something else later."""
    runs_as_it_is: bool = False
    """Whether nothing is exchanged while it runs with arguments that hold no code."""
    variables: Variables = Variables(())
    """Those in `standing`, together."""
    is_given_as_it_is: bool = False
    """Whether it is known that nothing that a call gives, the function among it, has stand-ins."""

    @property
    def exchanges(self) -> bool:
        """Whether something is exchanged while it runs, or arrays that are written into are noted."""
        is_changed = self.concerned or self.variables or self.is_writing or self.objects.is_any
        return bool(is_changed) or self.written != frozenset()

    def holds_for(self, function: FunctionType) -> bool:
        """Whether it is what would be found for a function of the same code."""
        if self.concerned and function is not self.plain:
            return False
        if self.of_numbers and not all(map(holds_numbers, self.of_numbers)):
            return False
        for variables, name, value in self.reads:
            found = variables.get(name, MISSING)
            if found is not value and not self._is_same(real_of(found), value):
                return False
        for one in self.holding:
            if one is not self.plain and not self._is_same(one, one):
                return False
        is_bare = self.plain not in self.holding
        return (is_bare and function is self.plain) or self._is_same(function, self.plain)

    def _is_same(self, found: Any, value: Any, around: Pairs = frozenset()) -> bool:
        """Whether a variable holds what it did; one number, or array, is as good as another.

        `around` are the functions that are compared and hold it: one that calls itself is the same if all
        else is.
        """
        kind = type(value)
        if kind is FunctionType and type(found) is FunctionType and value in self.functions:
            pair = id(found), id(value)
            return pair in around or (
                (found is value or (found.__code__ is value.__code__ and not found.__dict__))
                and found.__globals__ is value.__globals__
                and self._are_same(_contents(found), self.functions[value].contents, around | {pair})
            )
        if found is value:
            return True
        if self.concerned:  # whose copies hold the values
            return False
        if kind is tuple and type(found) is tuple:
            return self._are_same(found, value, around)
        return kind is not np.ufunc and {kind, type(found)} <= WITHOUT_CODE

    def _are_same(self, found: Sequence[Any], values: Sequence[Any], around: Pairs) -> bool:
        return len(found) == len(values) and all(map(self._is_same, found, values, repeat(around)))


MISSING = object()


MOST_KNOWN = 256


_known: dict[int, Explored] = {}
"""What was found for functions, by the id of their code, where that is fixed."""


MOST_TRAILS = 8


@record(frozen=True, eq=False, slots=True)
class Known:
    """What was found for a function, and what it depends on.

    Attributes:
        found: all of it, for the objects of `walk`.
        survey: what finds the stand-ins of other objects that lead to the same code.
        remembered: what the objects hold that are the same in all calls.
        has_objects: whether objects have stand-ins.
        walk: the objects of a call that have them now; None where they are not kept.
    """

    trail: Trail
    found: Explored
    survey: Survey
    remembered: Holdings
    has_objects: bool
    walk: Walk | None

    def of_objects(self, walk: Walk) -> Known:
        """The same for the objects of a call."""
        if not self.has_objects:
            return self
        if self.walk is not None and walk.leads_to_those_of(self.walk) and self.found.objects.are_current():
            return self
        holdings = self.remembered + self.survey.holdings(walk.objects, _places_of(walk.objects, {}))
        found = replace(self.found, objects=self.survey.object_stand_ins(holdings))
        return replace(self, found=found, walk=walk)

    def without_objects(self) -> Known:
        """The same without the objects of any call, which it shall not keep alive."""
        if self.walk is None:
            return self
        return replace(self, found=replace(self.found, objects=ObjectStandIns()), walk=None)


_trails: dict[int, Sequence[Known]] = {}
"""What was found for others by the id of their code, the latest first; one of them keeps a call's objects."""


MOST_MISSED = 4
"""Calls in a row with other objects, after which those of a code are no longer compared."""


@record(slots=True)
class _Remembered:
    """The last call of some code, and how many with other objects there have been in a row."""

    call: SameCall | None
    found: Explored
    missed: int = 0


class Memory(Unread):
    """What was found for the last calls of what a transform has made, and of programs that ran inside of it.

    It lives as long as that, and so do the objects of the calls, of each code those of the last one.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Remembered] = {}
        """By the id of the code."""

    def find(self, key: int, roots: Sequence[Any]) -> Explored | None:
        """What was found for the last call of this code, if this one has the same objects."""
        known = self._known.get(key)
        if known is None or known.call is None:
            return None
        if known.call.holds_for(roots) and known.found.objects.are_current():
            known.missed = 0
            return known.found
        known.missed += 1
        return None

    def note(self, key: int, roots: Sequence[Any], known: Known) -> None:
        """What was found for a call."""
        former = self._known.get(key)
        missed = former.missed if former is not None else 0
        call = SameCall(roots, known.trail) if missed < MOST_MISSED else None
        copies = ContainerCopies()
        is_as_it_is = all(given(one, copies) is one for one in roots)
        found = replace(
            known.found,
            is_given_as_it_is=is_as_it_is,
            runs_as_it_is=is_as_it_is and not known.found.exchanges,
        )
        self._known[key] = _Remembered(call, found, missed)


remembering: ContextVar[Memory | None] = ContextVar("remembering", default=None)
"""That of the outermost transform whose function runs."""


class remembered_by:
    """Inside, transforms that keep no memory themselves use this one, if there is one."""

    __slots__ = ("_memory", "_token")

    def __init__(self, memory: Memory | None) -> None:
        self._memory = memory

    def __enter__(self) -> None:
        is_new = self._memory is not None and remembering.get() is None
        self._token = remembering.set(self._memory) if is_new else None

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            remembering.reset(self._token)


def given(value: Any, copies: ContainerCopies) -> Any:
    """What is given to a program, with stand-ins for functions of NumPy and `math`."""
    if type(value) in WITHOUT_CODE and type(value) is not np.ufunc:
        return value
    if type(value) in CONTAINERS:
        return copies.of(value, lambda one: given(one, copies))
    if isinstance(value, ModuleType):
        return value
    return JOINED_ALONE.of_plain_run(value, frozenset()) or value


def explored(function: Function, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Explored:
    """What code a function can run with these arguments."""
    if type(function) is not FunctionType or not (
        (not keywords and WITHOUT_CODE.issuperset(map(type, arguments))) or hold_no_code(arguments, keywords)
    ):
        return _remembered(id(_code_of(function)), (function, *arguments, *keywords.values()))
    key = id(function.__code__)
    found = _known.get(key)
    if found is not None and found.holds_for(function):
        return found
    found = _remembered(key, (function,))
    if found.is_fixed:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = found
    return found


def hold_no_code(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether the arguments of a call are numbers and arrays alone, perhaps in containers."""
    given = (*arguments, *keywords.values()) if keywords else arguments
    return WITHOUT_CODE.issuperset(map(type, given)) or all(map(is_without_code, given))


def _remembered(key: int, roots: Sequence[Any]) -> Explored:
    """What code a function can run with these arguments, remembered for calls with the same objects.

    Args:
        key: the id of the code.
    """
    memory = remembering.get()
    if memory is None:
        return _explored_from(key, roots)[0]
    if (found := memory.find(key, roots)) is not None:
        return found
    found, known = _explored_from(key, roots)
    if known is not None:
        memory.note(key, roots, known)
    return found


def _explored_from(key: int, roots: Sequence[Any]) -> tuple[Explored, Known | None]:
    """What code a function can run with these arguments: what was found before, where a trail fits.

    No trail is kept of a function that is run as a copy, which holds what its variables did, nor where
    variables of enclosing functions hold stand-ins, as others with that code have others.

    Args:
        key: the id of the code.

    Returns:
        That, and what was known of former calls, where something was.
    """
    known = _trails.get(key, ())
    for place, former in enumerate(known):
        walk = former.trail.walk_from(roots)
        if walk is None:
            continue
        one = former.of_objects(walk)
        if place or one is not former:
            others = [*known[:place], *known[place + 1 :]]
            _trails[key] = [one, *(other.without_objects() for other in others)]
        return one.found, one
    with paused_collection:  # what it makes lives on
        return _explored_anew(key, roots, known), None


def _explored_anew(key: int, roots: Sequence[Any], known: Sequence[Known]) -> Explored:
    """The same by a walk, of which a trail is kept in front of those that are `known`."""
    reached = Reached(roots)
    functions = _reached(reached.functions)
    found, survey = _explored(roots[0], reached, functions, len(roots) == 1 and reached.is_fixed)
    holds_cells = any(isinstance(one.holder, CellType) for one in found.standing)
    if found.is_fixed or found.plain in found.concerned or holds_cells:
        return found
    found = replace(found, plain=None, functions={}, concerned=frozenset(), reads=(), holding=())
    if len(_trails) >= MOST_KNOWN:
        _trails.clear()
    walk = Walk(roots, reached.names)
    others_seen = [one for one in reached.seen if id(one) not in walk.places]
    remembered = survey.holdings(others_seen, _places_of(others_seen, functions))
    has_objects = found.objects.is_any
    made = Known(
        Trail(roots, reached), found, survey, remembered, has_objects, walk if has_objects else None
    )
    _trails[key] = [made, *(one.without_objects() for one in known[: MOST_TRAILS - 1])]
    return found


def _places_of(
    objects: Iterable[Any], known: Mapping[FunctionType, ReachedByName]
) -> Iterator[tuple[Any, Any]]:
    """The variables and defaults of the user's functions among objects, of which some are known."""
    functions = [one for one in objects if type(one) is FunctionType and is_users(one)]
    new = _reached(one for one in functions if one not in known)
    for one in functions:
        yield from (known.get(one) or new[one]).places()


def _code_of(function: Function) -> Any:
    """The code of a function that roots lead from; the class of another callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(getattr(function, "__func__", function), "__code__", type(function))


def _explored(
    function: Function, code: Reached, functions: dict[FunctionType, ReachedByName], is_fixed: bool
) -> tuple[Explored, Survey]:
    plain = plain_function(function)
    all_names = [names_of(one.__code__) for one in functions]
    read = () if any(one.reads_all for one in all_names) else [one.attributes for one in all_names]
    attributes = frozenset[str]().union(*read)
    is_writing = code.reads_all or any(writes_of(one.__code__).any for one in functions)
    has_methods = any(map(calls_taking_methods, functions))
    lists = any(makes_lists(one.__code__) for one in functions)
    stand_ins = stand_ins_for(is_writing or has_methods, lists)
    replaced = _Replaced(functions, stand_ins, has_methods, attributes)
    concerned = replaced.concerned()
    makes_functions = any(map(_makes_functions, concerned))  # which a solver calls once more in its pass back
    if plain in concerned and not (is_fixed or makes_functions) and replaced.are_in_variables():
        concerned = frozenset()  # rather than copies in each call
    standing = _asking(code)
    if plain not in concerned or not functions.keys() <= _named_by(plain, functions):
        standing += replaced.variables()
    variables = tuple({(id(one.holder), one.name): one for one in standing}.values())
    written = frozenset[str]().union(*(writes_of(one.__code__).names for one in functions))
    survey = Survey(stand_ins, code.names_in_any(), attributes, written, has_methods, is_writing)
    objects = ObjectStandIns()
    if not is_fixed:
        elsewhere = [place for one in functions.values() for place in one.places()]
        holdings = replace(survey, names_in=code.names_in).holdings([*code.seen], elsewhere)
        objects = survey.object_stand_ins(holdings)
    if plain is None:
        found = Explored(None, {}, variables, False, is_writing=is_writing, objects=objects)
        return replace(found, variables=Variables(variables)), survey
    writes = writes_of(plain.__code__)
    helpers = [one for one in functions if one is not plain]
    perhaps_all = writes.perhaps_more or has_methods or any(map(_writes_arguments, helpers))
    reads = [
        (one.__globals__, name, real_of(one.__globals__.get(name, MISSING)))
        for one in functions
        for name in names_of(one.__code__).loaded
    ]
    parameters = None if perhaps_all else writes.parameters
    found = Explored(
        plain,
        functions,
        variables,
        is_fixed,
        parameters,
        is_writing,
        has_methods,
        stand_ins,
        concerned,
        tuple(reads),
        attributes,
        tuple(code.of_numbers),
        objects,
        tuple([one for one, found in functions.items() if found.contents]),
        variables=Variables(variables),
    )
    return replace(found, runs_as_it_is=is_fixed and not found.exchanges), survey


def _makes_functions(function: FunctionType) -> bool:
    """Whether code makes functions, which may run when the call has ended."""
    inner = (one for one in function.__code__.co_consts if isinstance(one, CodeType))
    return any(not one.co_name.startswith("<") or one.co_name == "<lambda>" for one in inner)


def _asking(code: Reached) -> list[Standing]:
    """The variables of modules by which their code asks for types; of all modules where it computes names."""
    if code.reads_all:
        found = code.namespaces.values()
    else:
        asking = [one for one in code.functions if not ASKED.keys().isdisjoint(names_of(one.__code__).loaded)]
        found = {id(one.__globals__): one.__globals__ for one in asking}.values()
    return [Standing(one, name, REAL[name], asked, asked) for one in found for name, asked in ASKED.items()]


def _named_by(plain: FunctionType, functions: Mapping[FunctionType, ReachedByName]) -> set[FunctionType]:
    """The functions that `plain` leads to by variables: these run as copies where they need stand-ins."""
    found, pending = {plain}, [plain]
    while pending:
        one = functions[pending.pop()]
        named = {helper for value in one.held() for helper in functions_of(value, one.attributes)}
        more = (named & functions.keys()) - found
        found |= more
        pending += more
    return found


class _Replaced:
    """Which values have stand-ins, and the functions that hold these.

    Args:
        functions: those that a program can run.
        replaces_arrays: whether arrays are replaced, too.
        anywhere: the attributes that they all read, if these are known.
    """

    def __init__(
        self,
        functions: Mapping[FunctionType, ReachedByName],
        stand_ins: StandIns,
        replaces_arrays: bool,
        anywhere: frozenset[str],
    ) -> None:
        self._functions = functions
        self._stand_ins = stand_ins
        self._replaces_arrays = replaces_arrays
        self._anywhere = anywhere

    def _is_replaced(self, value: Any, one: ReachedByName) -> bool:
        if type(value) is np.ndarray:
            return self._replaces_arrays and value.dtype in SUPPORTED
        return self._stand_ins.of_plain_run(value, one.attributes, self._anywhere) is not None

    def variables(self) -> Iterator[Standing]:
        """The variables of functions that hold what has a stand-in."""
        for function, one in self._functions.items():
            cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
            held: list[tuple[Any, str, Any]] = [
                (function.__globals__, *pair) for pair in one.variables.items()
            ]
            held += ((cells[name], name, value) for name, value in one.cells.items())
            for holder, name, real in held:
                stand_in = self._stand_ins.of_plain_run(real, one.attributes, self._anywhere)
                if stand_in is not None:
                    yield Standing(holder, name, real, stand_in, WRITABLE.whole(real) or stand_in)

    def are_in_variables(self) -> bool:
        """Whether they are variables' values alone: no elements of containers, no defaults, no arrays."""
        for one in self._functions.values():
            in_variables = {*map(id, one.variables.values()), *map(id, one.cells.values())}
            others = (
                value for value in one.held() if type(value) is np.ndarray or id(value) not in in_variables
            )
            if one.imports() or any(self._is_replaced(value, one) for value in others):
                return False
        return True

    def concerned(self) -> frozenset[FunctionType]:
        """The functions that reach them by name, themselves or through others."""
        leading: list[FunctionType] = []
        callers: dict[FunctionType, list[FunctionType]] = {}
        for one in self._functions.values():
            held = list(one.held())
            if one.imports() or any(self._is_replaced(value, one) for value in held):
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
