"""What HIPS autograd's transforms do otherwise than pullback's: arguments, complex numbers, names."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

import pullback
from pullback.errors import ArgumentError
from pullback.runtime.dispatch.compiled import CompiledFunction, CompiledMethod
from pullback.runtime.tracing.explored_programs import Memory, remembered_by
from pullback.runtime.tracing.numpy_programs import run_program, running_programs
from pullback.runtime.transforms.derived import showing
from pullback.runtime.values.flatten import flatten, is_container, unflatten
from pullback.runtime.values.saved import saved_values
from pullback.runtime.values.tensor import Tensor
from pullback.tracer.trace import is_tracing

from .installation import options

Function = Callable[..., Any]
Argnum = int | Sequence[int]
LEAVES = (Tensor, np.ndarray, np.generic, bool, int, float, complex)


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The elements of x, some exchanged.

    Example:
        >>> subvals((1, 2, 3), [(0, 5)])
        (5, 2, 3)
    """
    found = list(x)
    for place, value in ivs:
        found[place] = value
    return tuple(found)


def taken_apart(value: Any) -> tuple[list[Any], Any]:
    """The leaves of a value, and its structure: None of one leaf, for which nothing has to be imported."""
    return ([value], None) if isinstance(value, LEAVES) else flatten(value)


def put_together(structure: Any, leaves: Sequence[Any]) -> Any:
    """A value of this structure with other leaves."""
    return leaves[0] if structure is None else unflatten(structure, leaves)


def of_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """The value with each of its arrays and numbers changed."""
    if not is_container(value):
        return change(value)
    leaves, structure = flatten(value)
    return unflatten(structure, list(map(change, leaves)))


def conjugated(value: Any) -> Any:
    """The conjugate of what is complex: HIPS autograd's gradients are pullback's conjugates."""
    if type(value) in (np.ndarray, np.float64) and value.dtype.kind != "c":  # nearly all
        return value
    return of_leaves(lambda leaf: np.conj(leaf) if np.iscomplexobj(leaf) else leaf, value)


def floating(value: Any) -> Any:
    """An array of integers as one of floats, of which HIPS autograd takes gradients as well."""
    is_counts = type(value) is np.ndarray and value.dtype.kind in "iub"
    return value.astype(float) if is_counts else value


def require_argnum(argnum: Any) -> None:
    """Raise for positions that HIPS autograd does not take.

    Raises:
        ArgumentError: it is neither an integer nor a tuple or list.
    """
    if type(argnum) not in (int, tuple, list):
        raise ArgumentError(f"argnum: an integer, or a tuple of integers, expected; found {argnum!r}.")


def selected(args: Sequence[Any], argnum: Argnum) -> Any:
    """The arguments that are differentiated: one, or a tuple.

    Raises:
        ArgumentError: the call has no such positional argument.
    """
    try:
        if isinstance(argnum, int):
            return floating(args[argnum])
        return tuple(floating(args[one]) for one in argnum)
    except IndexError:
        raise ArgumentError(
            f"argnum has {argnum!r}, and the call has {len(args)} positional arguments. Pass the argument by "
            "position, or choose another argnum."
        ) from None


def exchanged(args: Sequence[Any], argnum: Argnum, x: Any) -> tuple[Any, ...]:
    """The arguments with others in the places of those that are differentiated."""
    return subvals(args, [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x))


def holds_complex(value: Any) -> bool:
    """Whether an array or a number in the value is complex."""
    kind = type(value)
    if kind is np.ndarray or kind is np.float64:
        return bool(value.dtype.kind == "c")
    if issubclass(kind, Tensor):
        return bool(value._value.dtype.kind == "c")
    return kind is not float and any(map(np.iscomplexobj, taken_apart(value)[0]))


def is_real(value: Any) -> bool:
    """Whether it is a floating array, or a number, which is taken as it is."""
    kind = type(value)
    if issubclass(kind, Tensor):
        return bool(value._value.dtype.kind == "f")
    return kind is float or ((kind is np.ndarray or kind is np.float64) and value.dtype.kind == "f")


def compiled(fun: Function) -> Function:
    """The function, compiled where `install(compiled=True)` says so."""
    if not options.compiled or is_tracing() or isinstance(fun, CompiledFunction | CompiledMethod):
        return fun
    return pullback.compile(fun)


def called(fun: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a function of the user's in one of ours that is marked by `running_programs`."""
    if saved_values() is None:  # no transform has called it
        return fun(*args, **kwargs)
    return run_program(fun, args, kwargs)


def named(operator: Function, fun: Function, argnum: Argnum, derived: Function) -> Function:
    """`derived`, with the function's code behind it, and a name as HIPS autograd gives it."""
    with contextlib.suppress(AttributeError):  # a partial function has no name
        derived = showing(derived, fun)
    own, name = operator.__name__, getattr(fun, "__name__", "[unknown name]")
    derived.__name__ = f"{own}_of_{name}_wrt_argnum_{argnum}"
    derived.__doc__ = (
        f"    {own} of function {name} with respect to argument number {argnum}. Takes the\n"
        f"    same arguments as {name} but returns the {own}.\n    "
    )
    return derived


NARY = inspect.signature(lambda fun, argnum=0: None)
"""What people see of the operators that `unary_to_nary` makes."""


def unary_to_nary(unary_operator: Function) -> Function:
    """The operator of functions of any arguments, of one of functions of one: `operator(fun, argnum=0)`.

    Args:
        unary_operator: `unary_operator(f, x, ...)` gets the function of the differentiated argument alone,
            or of the tuple of them, and its value.
    """

    @functools.wraps(unary_operator)
    def nary_operator(fun: Function, argnum: Argnum = 0, *given: Any, **named_ones: Any) -> Function:
        require_argnum(argnum)
        memory = Memory()

        def derived(*args: Any, **kwargs: Any) -> Any:
            with remembered_by(memory):
                return derived_of(args, kwargs)

        def derived_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if len(args) == 1 and argnum == 0 and not kwargs and type(fun) is FunctionType:
                return unary_operator(fun, floating(args[0]), *given, **named_ones)

            @functools.wraps(fun, assigned=())
            @running_programs
            def unary(x: Any) -> Any:
                return called(fun, exchanged(args, argnum, x), kwargs)

            unary.__name__ = getattr(fun, "__name__", "[unknown name]")
            return unary_operator(unary, selected(args, argnum), *given, **named_ones)

        return named(unary_operator, fun, argnum, derived)

    nary_operator.__signature__ = NARY  # type: ignore[attr-defined]
    return nary_operator
