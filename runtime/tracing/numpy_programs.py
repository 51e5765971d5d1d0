"""NumPy programs as functions that `grad`, `vjp` and their kin differentiate without compiling.

Where such a function, or a helper that it calls by name, fills arrays that it makes with `np.zeros` and the
like, it is run as a copy whose variables give another NumPy: one that makes Tensors. The copy sees all other
variables of its module as they are at any time. Arrays that it is given to write into are passed as Tensors
that share their memory. Functions of `math` and NumPy in containers, defaults and partial functions are
replaced in copies of these; what the program writes into such a copy, the container holds afterwards.

Where such code calls `a.dot(x)`, which does not ask what x is, all arrays that it reaches by name or is given
are Tensors: a may be an array, and x a Tensor.

Methods of objects are not copied; there a lost gradient is an error (`Tensor.__float__`). But `type` is
another one in all modules whose code the function can run (`asked_types.py`).
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.records import record
from ...tracer.spec import SUPPORTED
from ..bytecode.code_names import names_of
from ..bytecode.write_instructions import (
    calls_taking_methods,
    defines_classes,
    imports,
    makes_lists,
    writes_of,
)
from ..captures.objects import is_opaque, is_users
from ..captures.reached import WITHOUT_CODE, Reached, holds_numbers, is_without_code
from ..captures.trails import Trail
from ..tape.inplace import may_overlap
from ..values.refusals import explaining_errors
from ..values.saved import saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyTensor, plain
from .asked_types import ASKED, types_of_plain_call
from .stand_ins import IMPORTED, JOINED_ALONE, MODULES, WRITABLE, StandIns, stand_ins_for

Function = Callable[..., Any]


_runners: set[CodeType] = set()
"""The code of transforms' results: see `running_programs`."""


def running_programs(function: Function) -> Function:
    """Say of a function of ours that it calls the user's as `NumpyProgram` alone, which looks at its code."""
    assert isinstance(function, FunctionType)
    _runners.add(function.__code__)
    return function


class NumpyProgram:
    """A function in the form in which it can be differentiated; `run` calls it."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._given: _ContainerCopies | None = None
        self._copies: _Copies | None = None

    def run(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The result of the function."""
        if _is_as_it_is(self._function, arguments, keywords):
            with explaining_errors():
                return self._function(*arguments, **keywords)
        found = explored(self._function, arguments, keywords)
        if not found.is_fixed:
            self._given = _ContainerCopies()
            self._function = self._with_stand_ins(self._function)
            arguments = [self._with_stand_ins(one) for one in arguments]
            keywords = {name: self._with_stand_ins(one) for name, one in keywords.items()}
        if found.is_writing and (noted := saved_values()) is not None:
            noted.copies_arrays = True
        if found.plain in found.concerned:
            self._copies = _Copies(found)
            self._function = _rebuilt(self._function, self._copies.of(found.plain))
        if found.written is None or found.written:
            arguments, keywords = self._writable(found.written, arguments, keywords)
        try:
            with explaining_errors():
                if not found.namespaces:
                    return self._function(*arguments, **keywords)
                with types_of_plain_call(found.namespaces):
                    return self._function(*arguments, **keywords)
        finally:
            if self._given is not None:
                self._given.store()
            if self._copies is not None:
                self._copies.store()

    def _with_stand_ins(self, value: Any) -> Any:
        """What is given to the program, with stand-ins for functions of NumPy and `math`."""
        if type(value) in CONTAINERS:
            assert self._given is not None
            return self._given.of(value, self._with_stand_ins)
        return value if isinstance(value, ModuleType) else JOINED_ALONE.of(value, frozenset()) or value

    def _writable(
        self, written: frozenset[str] | None, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments with Tensors in the place of arrays that are written into."""
        names = _parameters(self._function)
        shared = _Shared([*arguments, *keywords.values()], written is not None)
        changed = [
            shared(one) if written is None or position >= len(names) or names[position] in written else one
            for position, one in enumerate(arguments)
        ]
        return changed, {
            name: shared(one) if written is None or name in written else one for name, one in keywords.items()
        }


class _Shared:
    """Gives Tensors in the memory of the ndarrays among the arguments of a call."""

    def __init__(self, arguments: Sequence[Any], is_certain: bool) -> None:
        arrays = [one._value if isinstance(one, Tensor) else one for one in arguments]
        self._arrays = {id(one): one for one in arrays if isinstance(one, np.ndarray)}
        self._differentiated = {id(one._value) for one in arguments if isinstance(one, Tensor)}
        self._is_certain = is_certain
        self._tensors: dict[int, Tensor] = {}

    def __call__(self, value: Any) -> Any:
        """A Tensor for an ndarray, the same for the same one; anything else as it is.

        Where another argument shows the same memory, which would change unnoticed, the array is read-only.

        Raises:
            GradientError: that is so, and the function is known to write into the array.
        """
        if type(value) is not np.ndarray or value.dtype not in SUPPORTED:
            return value
        others = [one for key, one in self._arrays.items() if key != id(value)]
        if id(value) not in self._differentiated and not any(may_overlap(one, value) for one in others):
            return self._tensors.setdefault(id(value), make(value, NumpyTensor))
        if self._is_certain:
            raise GradientError(
                "an array that the function writes into shares its memory with another argument, of which "
                "the gradient would be wrong. Pass a copy() of one of them."
            )
        shown = value.view()
        shown.flags.writeable = False
        return shown


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


def _rebuilt(function: Function, plain: FunctionType) -> Function:
    """`function` with another Python function to run."""
    if isinstance(function, functools.partial):
        return functools.partial(_rebuilt(function.func, plain), *function.args, **function.keywords)
    if isinstance(function, MethodType):
        return MethodType(plain, function.__self__)
    return plain if isinstance(function, FunctionType) else MethodType(plain, function)


def _parameters(function: Function) -> tuple[str, ...]:
    """The names of the positional parameters; none for what hides them, which means all are concerned."""
    if isinstance(function, MethodType):
        return _parameters(function.__func__)[1:]
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount]


# --- what a function reaches by name --------------------------------------------------------------------


@record(frozen=True, eq=False, slots=True)
class _Reached:
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
            yield from _parts(value)

    def imports(self) -> bool:
        """Whether it imports a module for which there are stand-ins when it runs."""
        return not IMPORTED.isdisjoint(imports(self.function.__code__))


def _reached(function: FunctionType) -> _Reached:
    names = names_of(function.__code__)
    one = _Reached(function, names.attributes, _contents(function))
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
        return any(_concerns(one) for one in _parts(value) if type(one) not in CONTAINERS)
    if kind is ModuleType:
        return (
            WRITABLE.of(value, frozenset()) is not None or value in MODULES or not is_opaque(value.__name__)
        )
    if kind in (FunctionType, np.ndarray) or WRITABLE.of(value, frozenset()) is not None:
        return True
    return not is_opaque((value if isinstance(value, type) else kind).__module__)


CONTAINERS = (tuple, list, dict, set, frozenset, functools.partial)
LARGEST = 100
"""Elements of a container that is looked into."""
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _parts(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """A value, and what it consists of if it is a container or a partial function."""
    yield value
    if type(value) not in CONTAINERS:
        return
    seen = set() if seen is None else seen
    if id(value) not in seen:
        seen.add(id(value))
        for one in _elements(value):
            if type(one) not in PLAIN:
                yield from _parts(one, seen)


def _elements(value: Any) -> list[Any]:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if len(value) > LARGEST:
        return []
    return [*value, *value.values()] if isinstance(value, dict) else [*value]


def _rebuilt_container(value: Any, change: Callable[[Any], Any]) -> Any:
    """A container, or a partial function, with changed elements; itself if none has changed."""
    elements = _elements(value)
    changed = [change(one) for one in elements]
    if all(one is other for one, other in zip(elements, changed)):
        return value
    if isinstance(value, functools.partial):
        count = 1 + len(value.args)
        keywords = dict(zip(value.keywords, changed[count:]))
        return functools.partial(changed[0], *changed[1:count], **keywords)
    if isinstance(value, dict):
        return dict(zip(changed[: len(value)], changed[len(value) :]))
    return type(value)(changed)


class _ContainerCopies:
    """Copies of containers with other elements; `store` gives the containers what was written into these."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any, Any]] = {}
        """By id: the container, its copy, and a copy of that as it was at first."""
        self._originals: dict[int, Any] = {}
        """What elements of the copies stand for, by the id of these."""

    def of(self, value: Any, replace: Callable[[Any], Any]) -> Any:
        """The copy, one for each container; itself where no element is replaced."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        self._made[id(value)] = (value, value, None)  # what leads back to it finds the original

        def noted(element: Any) -> Any:
            replacement = replace(element)
            self._originals[id(replacement)] = element
            return replacement

        copied = _rebuilt_container(value, noted)
        before = copied.copy() if isinstance(copied, list | dict | set) else None
        self._made[id(value)] = (value, copied, before)
        return copied

    def store(self) -> None:
        for original, copied, before in self._made.values():
            if copied is original or before is None or _same(copied, before):
                continue
            restored = [self._originals.get(id(element), element) for element in _elements(copied)]
            original.clear()
            if isinstance(original, dict):
                original.update(zip(restored[: len(copied)], restored[len(copied) :]))
            elif isinstance(original, list):
                original.extend(restored)
            else:
                original.update(restored)


def _same(one: Any, other: Any) -> bool:
    mine, others = _elements(one), _elements(other)
    return len(mine) == len(others) and all(a is b for a, b in zip(mine, others))


def _functions_of(value: Any, attributes: frozenset[str]) -> list[FunctionType]:
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


# --- what is found out about a function ------------------------------------------------------------------


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
    functions: dict[FunctionType, _Reached]
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
    if type(function) is not FunctionType or not _hold_no_code(arguments, keywords):
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


def _is_as_it_is(function: Function, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a call reaches no code of the user's but through another program, and needs no stand-in."""
    if type(function) is np.ufunc:  # which has one for lists
        return WITHOUT_CODE.issuperset(map(type, (*arguments, *keywords.values())))
    return getattr(function, "__code__", None) in _runners and _hold_no_code(arguments, keywords)


def _hold_no_code(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
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
        return Explored(None, {}, tuple(code.namespaces.values()), False)
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
    asking = [variables for variables, name, _ in reads if name in ASKED]
    return Explored(
        plain,
        functions,
        tuple({id(one): one for one in asking}.values()) if is_fixed else tuple(code.namespaces.values()),
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


def _concerned(
    functions: Mapping[FunctionType, _Reached],
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
            for helper in _functions_of(value, one.attributes):
                callers.setdefault(helper, []).append(one.function)
    found = set(leading)
    while leading:
        more = {*callers.get(leading.pop(), ())} - found
        found |= more
        leading += more
    return frozenset(found)


# --- copies with other variables ----------------------------------------------------------------------------


class _Variables(dict[str, Any]):
    """The variables of a module as they are at any time, but for those that are set here.

    Python looks up global variables in a subclass of dict by way of `__missing__`.
    """

    def __init__(self, variables: dict[str, Any]) -> None:
        super().__init__(__builtins__=variables.get("__builtins__", __builtins__))
        self._variables = variables
        self._replaced: dict[str, Any] = {"__builtins__": self["__builtins__"]}

    def __missing__(self, name: str) -> Any:
        return self._variables[name]

    def replace(self, name: str, value: Any) -> None:
        self._replaced[name] = self[name] = value

    def store(self) -> None:
        """Give the module what the function has assigned to its global variables."""
        for name, value in list(self.items()):
            former = self._replaced.get(name, self)
            if value is not former:
                self._variables[name] = plain(self.pop(name))


class _BuiltInNames(dict[str, Any]):
    """Built-in names, and before them those of a module: class bodies ask no `__missing__`."""

    def __init__(self, names: Mapping[str, Any], variables: _Variables) -> None:
        super().__init__(names)
        self._variables = variables

    def __getitem__(self, name: str) -> Any:
        try:
            return self._variables[name]
        except KeyError:
            return super().__getitem__(name)


class _ModuleView(ModuleType):
    """A module with some of its functions replaced; whatever else is read or set is the module's."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        vars(self)["_module"] = module

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_module"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_module"], name, value)


class _Copies:
    """Copies of the functions that lead to what has a stand-in, made once each."""

    def __init__(self, found: Explored) -> None:
        self._reached = found.functions
        self._stand_ins = found.stand_ins
        self._replaces_arrays = found.replaces_arrays
        self._attributes = found.attributes
        self._arrays: dict[int, Tensor] = {}
        self.concerned = found.concerned
        self.variables: dict[int, _Variables] = {}
        self._copies: dict[FunctionType, FunctionType] = {}
        self._views: dict[int, _ModuleView] = {}
        self._containers = _ContainerCopies()

    def of(self, function: FunctionType) -> FunctionType:
        """The copy of a function that is concerned."""
        if function in self._copies:
            return self._copies[function]
        one = self._reached[function]
        variables = self.variables.setdefault(id(function.__globals__), _Variables(function.__globals__))
        if one.imports():
            variables.replace("__builtins__", self._stand_ins.built_in_names())
        if defines_classes(function.__code__):
            names = self._stand_ins.built_in_names() if one.imports() else vars(builtins)
            variables.replace("__builtins__", _BuiltInNames(names, variables))
        cells = {
            name: CellType() if name in one.cells else cell
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())
        }
        copied = self._copies[function] = FunctionType(
            function.__code__, variables, function.__name__, function.__defaults__, tuple(cells.values())
        )
        copied.__defaults__ = self._replacement(function.__defaults__, one)
        copied.__kwdefaults__ = self._replacement(function.__kwdefaults__, one)
        copied.__dict__.update(function.__dict__)
        for name, value in one.variables.items():
            replacement = self._replacement(value, one)
            if replacement is not value:
                variables.replace(name, replacement)
        for name, value in one.cells.items():
            cells[name].cell_contents = self._replacement(value, one)
        return copied

    def _stand_in(self, value: Any, attributes: frozenset[str]) -> Any:
        if type(value) is np.ndarray:
            if not self._replaces_arrays or value.dtype not in SUPPORTED:
                return None
            return self._arrays.setdefault(id(value), make(value, NumpyTensor))
        return self._stand_ins.of(value, attributes, self._attributes)

    def _replacement(self, value: Any, one: _Reached) -> Any:
        stand_in = self._stand_in(value, one.attributes)
        if stand_in is not None:
            return stand_in
        if type(value) is FunctionType:
            return self.of(value) if value in self.concerned else value
        if type(value) in CONTAINERS:
            return self._containers.of(value, lambda element: self._replacement(element, one))
        functions = self.concerned.intersection(_functions_of(value, one.attributes))
        if not functions:
            return value
        view = self._views.setdefault(id(value), _ModuleView(value))
        for name in one.attributes:
            found = vars(value).get(name)
            if type(found) is FunctionType and found in functions:
                vars(view)[name] = self.of(found)
        return view

    def store(self) -> None:
        """Give modules and containers what the function has written into their copies."""
        for variables in self.variables.values():
            variables.store()
        self._containers.store()
