"""NumPy programs as functions that `grad`, `vjp` and their kin differentiate without compiling.

Where such a function, or a helper that it calls by name, fills arrays that it makes with `np.zeros` and the
like, it is run as a copy whose variables give another NumPy: one that makes Tensors. The copy sees all other
variables of its module as they are at any time. Arrays that it is given to write into are passed as Tensors
that share their memory. Functions of `math` and NumPy in containers, defaults and partial functions are
replaced in copies of these; what the program writes into such a copy, the container holds afterwards.

Where such code calls `a.dot(x)`, which does not ask what x is, all arrays that it reaches by name or is given
are Tensors: a may be an array, and x a Tensor.

Methods of objects, and what else objects lead to, are not copied: their variables hold stand-ins meanwhile
(`captures/standing_names.py`). What these do not reach is an error (`Tensor.__float__`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.spec import SUPPORTED
from ..captures.reached import WITHOUT_CODE
from ..captures.standing_names import Variables, standing
from ..tape.inplace import may_overlap
from ..values.refusals import explaining_errors
from ..values.saved import saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyTensor
from .explored_programs import Explored, Memory, explored, given, hold_no_code, remembering
from .program_containers import ContainerCopies
from .program_copies import Copies

Function = Callable[..., Any]


_runners: set[CodeType] = set()
"""The code of transforms' results: see `running_programs`."""


def running_programs(function: Function) -> Function:
    """Say of a function of ours that it calls the user's by `run_program` alone, which looks at its code."""
    assert isinstance(function, FunctionType)
    _runners.add(function.__code__)
    return function


def run_program(
    function: Function, arguments: Sequence[Any], keywords: Mapping[str, Any], memory: Memory | None = None
) -> Any:
    """The result of a function, in the form in which it can be differentiated.

    Args:
        memory: what was found in former calls of the transform's result, if that is there for longer.
    """
    token = remembering.set(memory) if memory is not None and remembering.get() is None else None
    try:
        is_runner = type(function) is not FunctionType or function.__code__ in _runners
        if not (is_runner and _is_as_it_is(function, arguments, keywords)):
            found = explored(function, arguments, keywords)
            if not found.runs_as_it_is:
                return _Changed(function).run(found, arguments, keywords)
        with explaining_errors():
            return function(*arguments, **keywords)
    finally:
        if token is not None:
            remembering.reset(token)


class _Changed:
    """A function of which something is exchanged while it runs."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._given: ContainerCopies | None = None
        self._copies: Copies | None = None

    def run(self, found: Explored, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        if not (found.is_fixed or found.is_given_as_it_is):
            self._given = copies = ContainerCopies()
            self._function = given(self._function, copies)
            arguments = [given(one, copies) for one in arguments]
            keywords = {name: given(one, copies) for name, one in keywords.items()}
        if found.is_writing and (noted := saved_values()) is not None:
            noted.copies_arrays = True
        if found.plain in found.concerned:
            self._copies = Copies(found)
            self._function = _rebuilt(self._function, self._copies.of(found.plain))
        if found.written is None or found.written:
            arguments, keywords = self._writable(found.written, arguments, keywords)
        try:
            with explaining_errors():
                of_objects = tuple(found.objects.variables((*arguments, *keywords.values())))
                variables = [found.variables, Variables(of_objects)] if of_objects else [found.variables]
                if not any(variables):
                    return self._function(*arguments, **keywords)
                with standing(*variables):
                    return self._function(*arguments, **keywords)
        finally:
            if self._given is not None:
                self._given.store()
            if self._copies is not None:
                self._copies.store()

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


def _is_as_it_is(function: Function, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a call reaches no code of the user's but through another program, and needs no stand-in."""
    if type(function) is np.ufunc:  # which has one for lists
        return WITHOUT_CODE.issuperset(map(type, (*arguments, *keywords.values())))
    return getattr(function, "__code__", None) in _runners and hold_no_code(arguments, keywords)
