"""What stands for NumPy, for `math` and for functions of them in a function that is differentiated or traced.

They take plain numbers and make plain arrays, which keep neither gradients nor traced values. The stand-ins
do what they do where no Tensor is concerned, and else the like of it on Tensors.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Hashable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ...tracer.dims import OF_FLOATS
from ...tracer.forks import kept
from ...tracer.trace import innermost
from ...tracer.tracebacks import calling_for_users
from ..captures import randomness
from ..captures.objects import StandingFunction
from ..captures.reached import WITHOUT_CODE
from ..functions import PUBLIC
from ..functions.stopping import stop_gradient
from ..methods.python_numbers import is_of_numbers
from ..numpy_api.applying import JOINERS, Vectorized, enumerated
from ..numpy_api.array_creation import (
    CREATION,
    FILLED,
    JOINING,
    OF_SEVERAL,
    SEQUENCES,
    of_elements,
)
from ..numpy_api.indices import as_strided
from ..numpy_api.iteration import Iteration
from ..numpy_api.polynomials import SERIES
from ..numpy_api.protocols import DIRECT_FUNCTIONS, FUNCTIONS, OF_OTHERS
from ..numpy_api.values import as_python_number
from ..tape.direct import unsupported
from ..tensors.conversion import given_array, holds_tensor, joined
from ..tensors.growing import GrowingList
from ..values.foreign import is_of_scipy
from ..values.late_rules import rules_for
from ..values.lost_gradients import PULLBACK_NAMES, RENAMED
from ..values.saved import saved_values
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor, PythonNumber
from .asked_sizes import of_sizes
from .asked_types import ASKED, class_called, iterator_called
from .counted_loops import counted_from

Function = Callable[..., Any]
MODULES = (
    np, math, itertools, np.lib, np.lib.stride_tricks, np.linalg, np.fft, np.polynomial,
    np.polynomial.polynomial, np.polynomial.chebyshev, np.polynomial.legendre,
    np.polynomial.hermite, np.polynomial.hermite_e, np.polynomial.laguerre,
    *randomness.MODULES,
)  # fmt: skip


class StandIns:
    """What stands for modules and functions, where code reaches them."""

    def __init__(self, functions: Mapping[Any, Any]) -> None:
        self._functions = {
            id(real): Called(real, function) if isinstance(function, FunctionType) else function
            for real, function in functions.items()
        }

    @kept
    def _modules(self) -> dict[int, tuple[frozenset[str], ModuleType | None]]:
        """By the id of a module what else its attributes are, and what stands for it."""
        made: dict[int, tuple[frozenset[str], ModuleType | None]] = {}
        parts = dict(self._functions)
        for module in reversed(MODULES):  # modules after those that have them
            own = {name: found for name, value in vars(module).items() if (found := parts.get(id(value)))}
            changed = parts[id(module)] = ChangedModule(module, own) if own else None
            made[id(module)] = frozenset(own), changed
        return made

    def of(self, value: Any, names: frozenset[str], anywhere: frozenset[str] = frozenset()) -> Any:
        """What stands for `value` where code reads the attributes `names`; None if it stays itself.

        Modules of SciPy are handed on to other code, too: `anywhere` are the attributes that any code reads,
        if these are known.
        """
        if type(value) is np.vectorize:
            return Vectorized.of(value)
        if type(value) is not ModuleType:
            return self._functions.get(id(value)) or _of_scipy(value)
        if value.__name__.startswith("scipy"):
            stand_in = rules_for("scipy").module_stand_in(value)
            is_read = stand_in is None or not anywhere or not anywhere.isdisjoint(vars(stand_in))
            return stand_in if is_read else None
        changed, stand_in = self._modules.get(id(value), (frozenset(), None))
        return None if changed.isdisjoint(names) else stand_in

    def of_plain_run(self, value: Any, names: frozenset[str], anywhere: frozenset[str] = frozenset()) -> Any:
        """The same for code that runs without a trace, which draws from streams as it comes upon them."""
        if isinstance(value, randomness.RANDOM):
            return randomness.TracedStream.of(value)
        return self.of(value, names, anywhere)

    def whole(self, value: Any) -> Any:
        """What stands for `value` wherever it is read; None if it stays itself."""
        return (self._modules.get(id(value)) or (None, None))[1] or self.of(value, frozenset())

    def built_in_names(self) -> dict[str, Any]:
        """Python's built-in names, for code that imports modules when it runs: it gets stand-ins."""

        def imported(*arguments: Any, **options: Any) -> Any:
            module = builtins.__import__(*arguments, **options)
            return self.whole(module) or module

        return {**vars(builtins), "__import__": imported}


IMPORTED = frozenset(("math", "numpy", "scipy"))
"""The packages with modules for which there are stand-ins."""


class Called(StandingFunction):
    """What is called in the place of a function, to which it is equal: also as the key of a dict."""

    __slots__ = ("__call__", "_real")  # what the first holds is called, without a frame in between

    def __init__(self, real: Any, function: Function) -> None:
        self._real = real
        self.__call__ = function

    def __eq__(self, other: object) -> bool:
        return self._real is (other._real if isinstance(other, Called) else other)

    def __hash__(self) -> int:
        return hash(self._real)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._real)  # `inspect` takes the slot for no function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class ChangedModule(ModuleType):
    """A module with other functions."""

    def __init__(self, module: ModuleType, functions: Mapping[str, Any]) -> None:
        super().__init__(module.__name__)
        vars(self).update(functions, __getattr__=module.__getattribute__)


def while_wanted(real: Function, function: Function) -> Function:
    """`function` while something is traced or differentiated; what outlives that calls `real`."""

    def call(*arguments: Any, like: Any = None, **options: Any) -> Any:
        if innermost() is not None or saved_values() is not None or issubclass(type(like), Tensor):
            return function(*arguments, **options)
        return real(*arguments, **options)

    return class_called(real, call) if isinstance(real, type) else call


def _of_scipy(value: Any) -> Any:
    """What stands for a function or an object of SciPy, which is imported by those who use it alone."""
    return rules_for("scipy").stand_in(value) if is_of_scipy(value) else None


class _UfuncStandIn(Called):
    """A ufunc whose inputs may be lists that hold Tensors."""

    __slots__ = ()

    def __init__(self, real: np.ufunc) -> None:
        super().__init__(real, _of_lists(real))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return _of_lists(found) if name in ("reduce", "accumulate", "outer", "reduceat") else found


def _of_lists(real: Any) -> Function:
    """NumPy's function, which is given arrays in the place of lists with Tensors."""

    @calling_for_users
    def call(*arguments: Any, **options: Any) -> Any:
        if not WITHOUT_CODE.issuperset(map(type, arguments)):  # which hold no elements
            arguments = tuple(map(joined, arguments))
        if not options:
            return real(*arguments)
        given = {name: one if name == "out" else joined(one) for name, one in options.items()}
        return real(*arguments, **given)

    return call


def _of_lists_of_lists(real: Any) -> Function:
    """The same for a function whose first argument is a list of arrays, each of which may be a list."""

    def each(arrays: Any) -> Any:
        return [joined(one) for one in arrays] if isinstance(arrays, list | tuple) else arrays

    short = DIRECT_FUNCTIONS.get(real, unsupported)

    @calling_for_users
    def call(*arguments: Any, **options: Any) -> Any:
        if arguments and not options and type(arguments[0]) in (list, tuple):
            result = short(*arguments)
            if type(result) is NumpyTensor:
                return result
        if real is np.stack and len(arguments) == 1 and type(arguments[0]) is GrowingList and not options:
            return arguments[0].array
        named = {name: each(one) if name in ("arrays", "tup") else one for name, one in options.items()}
        return real(*map(each, arguments[:1]), *arguments[1:], **named)

    return call


def _taking_lists(real: Any, function: Function) -> Function:
    """The function, which stands for one of NumPy's, given arrays in the place of lists with Tensors."""
    return (_of_lists_of_lists if real in JOINING_LISTS else _of_lists)(function)


def _stand_in_for_lists(real: Any) -> Any:
    if isinstance(real, np.ufunc):
        return _UfuncStandIn(real)
    return _taking_lists(real, real)


def for_tensors(real: Function, function: Function) -> Function:
    """`function` where a Tensor is among the arguments, or in a list among them, else `real`."""

    def call(*arguments: Any, **options: Any) -> Any:
        arguments = tuple(map(given_array, arguments))
        given = (*arguments, *options.values())
        return (function if any(map(holds_tensor, given)) else real)(*arguments, **options)

    return call


def _of_elements(iter: Any, dtype: Any, count: int = -1) -> Any:
    """`np.fromiter`: an array of numbers, and a Tensor of Tensors."""
    elements = list(iter if count < 0 else itertools.islice(iter, count))
    return (of_elements if holds_tensor(elements) else np.fromiter)(elements, dtype, count)


def _logarithm(x: Any, base: Any = math.e) -> Any:
    return np.log(x) if base is math.e else np.log(x) / np.log(base)


def _of_numbers(real: Function, function: Function) -> Function:
    """A function of `math`: it computes with Python floats, and gives one.

    Where the result is known, or that of numbers among the arguments of a compiled function, it raises what
    `math` does for arguments out of its domain, and for results that overflow.
    """

    def call(*arguments: Any, **options: Any) -> Any:
        numbers = arguments if real in (math.fsum, math.dist) else list(map(as_python_number, arguments))
        result = as_python_number(function(*numbers, **options))
        if isinstance(result, PythonNumber) and is_of_numbers(result) and not np.isfinite(result):
            real(*(one._concrete("math") if isinstance(one, Tensor) else one for one in numbers))
        return result

    return call


def _gamma(x: Any) -> Any:
    rules_for("scipy")  # of which it is a function
    return OF_OTHERS["gamma"](x)


def _total(numbers: Any) -> Any:
    return np.sum(joined(numbers), dtype=np.float64)


def _product(numbers: Any, *, start: Any = 1) -> Any:
    """It multiplies as Python does; of an array of floats that is NumPy's product."""
    if isinstance(numbers, Tensor) and numbers.is_floating_point():
        return np.prod(numbers) * start
    return functools.reduce(operator.mul, numbers, start)


def _hypotenuse(*sides: Any) -> Any:
    return np.hypot(*sides) if len(sides) == 2 else np.linalg.norm(joined(list(sides)))


def _distance(p: Any, q: Any) -> Any:
    return np.linalg.norm(np.subtract(joined(p), joined(q), dtype=np.float64))


def _truth_of(function: Function) -> Function:
    """A function that says something of one number."""
    return lambda x: bool(function(x))


def _is_close(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> bool:
    return math.isclose(*(float(stop_gradient(one)) for one in (a, b)), rel_tol=rel_tol, abs_tol=abs_tol)


SAME_NAME = (
    "cbrt copysign cos cosh degrees exp exp2 expm1 fabs fmod hypot ldexp log10 log1p log2 radians sin sinh "
    "sqrt tan tanh"
)
MATH: dict[Any, Function] = {
    **{getattr(math, name): getattr(np, name) for name in SAME_NAME.split()},
    **{getattr(math, name): getattr(np, other) for name, other in RENAMED.items()},
    **{getattr(math, name): PUBLIC[other] for name, other in PULLBACK_NAMES.items()},
    **{getattr(math, name): _truth_of(getattr(np, name)) for name in ("isfinite", "isinf", "isnan")},
    math.isclose: _is_close,
    math.gamma: _gamma, math.hypot: _hypotenuse, math.log: _logarithm,
    math.fsum: _total, math.dist: _distance,
}  # fmt: skip
MATH = {real: _of_numbers(real, function) for real, function in MATH.items()} | {math.prod: _product}
"""Functions of `math` -> what has the gradient."""

JOINING_LISTS = frozenset((
    np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.linalg.multi_dot,
    np.histogramdd,
))  # fmt: skip
"""Functions whose first argument is a list of arrays."""
LISTS_OF_ARRAYS = frozenset((
    np.block, np.meshgrid, np.broadcast_arrays, np.select, np.choose, np.lexsort, np.array_equal,
    np.piecewise,
))  # fmt: skip
"""Functions that take lists of arrays in other ways."""
_taking_arrays = FUNCTIONS.keys() - CREATION.keys() - LISTS_OF_ARRAYS
LISTED: dict[Any, Any] = {
    real: _stand_in_for_lists(real)
    for module in (np, np.linalg, np.fft)
    for real in vars(module).values()
    if isinstance(real, np.ufunc) or (isinstance(real, Hashable) and real in _taking_arrays)
}
"""Functions of an array that people call with a list of numbers."""
OBJECTS: dict[Any, Any] = {
    type: ASKED["type"],
    hasattr: ASKED["hasattr"],
    itertools.count: class_called(itertools.count, iterator_called(itertools.count, counted_from)),
    np.r_: JOINERS["r_"],
    np.c_: JOINERS["c_"],
    np.vectorize: class_called(np.vectorize, Vectorized),
    np.lib.stride_tricks.as_strided: for_tensors(np.lib.stride_tricks.as_strided, as_strided),
    np.ndenumerate: class_called(np.ndenumerate, for_tensors(np.ndenumerate, enumerated)),
    np.nditer: class_called(np.nditer, for_tensors(np.nditer, Iteration)),
}
_few = OBJECTS | {
    real: while_wanted(real, for_tensors(real, function))
    for real, function in (JOINING | MATH | SERIES | FILLED).items()
}
_few[np.fromiter] = while_wanted(np.fromiter, _of_elements)
_few |= {
    real: of_sizes(real, name, _few.get(real, real))
    for name in (*OF_FLOATS, "ceil", "floor", "trunc")
    for real in [getattr(math, name)]
}
_unpredictable = {
    real: class_called(real, call) if isinstance(real, type) else call
    for real, call in randomness.UNPREDICTABLE.items()
}
_few |= {real: _unpredictable[real] for real in randomness.DRAWING}
_of_tensors = LISTED | _few | _unpredictable
_of_several = {real: _taking_lists(real, function) for real, function in OF_SEVERAL.items()}
_made = {real: while_wanted(real, function) for real, function in (CREATION | _of_several).items()}
JOINED = StandIns(_of_tensors)
"""For functions that do not write into arrays."""
WRITABLE = StandIns(_of_tensors | _made)
"""For those that do: the arrays that they make are Tensors."""
INDEXED = StandIns(_of_tensors | _made | {real: while_wanted(real, one) for real, one in SEQUENCES.items()})
"""For those that read such arrays at positions which are Tensors: an ndarray would ask for the positions."""
JOINED_ALONE, WRITABLE_ALONE = StandIns(_few), StandIns(_few | _made)
"""The same for functions that make no lists, most of which need no stand-in."""


def stand_ins_for(writes: bool, lists: bool) -> StandIns:
    """For functions that write into arrays, or make lists."""
    if writes:
        return WRITABLE if lists else WRITABLE_ALONE
    return JOINED if lists else JOINED_ALONE


def namespace(module: ModuleType) -> dict[str, Any]:
    """A module's functions for code that differentiates: what does not ask what it is given takes Tensors.

    Ufuncs, which do ask, stay as they are, and take no lists with Tensors.
    """
    own = {
        name: one
        for name, one in vars(module).items()
        if not (name.startswith("__") or isinstance(one, ModuleType))
    }
    if module.__name__.startswith("scipy"):
        changed = vars(rules_for("scipy").module_stand_in(module) or module)
        return {name: changed.get(name, one) for name, one in own.items()}
    return {
        name: one if isinstance(one, np.ufunc) else JOINED.of(one, frozenset()) or one
        for name, one in own.items()
    }
