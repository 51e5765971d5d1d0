"""`debug.print`, `debug.callback`, `debug.breakpoint`: Python, called where a compiled function has got to.

In a trace each is a call in the order of the program (`tracer/draw_order.py`): no pass drops, repeats or
moves it. Where a run may turn out not to count (the guards of its path do not hold, there was no room for
what a loop keeps), its calls are held back until it does (`tracer/effects.py`).
"""

from __future__ import annotations

import builtins
import os
import pdb
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from ...tracer.draw_order import NOTHING, DrawOrder
from ...tracer.effects import perform
from ...tracer.errors import ArgumentError
from ...tracer.graph import Node
from ...tracer.ops.foreign import ForeignFunction
from ...tracer.ops.movement import pairs_of
from ...tracer.origin import fail, file_name, user_frame
from ...tracer.trace import current_trace, is_tracing
from ..autograd.foreign_calls import reader_of
from ..captures.containers import Written
from ..tape.apply import apply, unwrap
from ..tracing.substitution import originals
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor

_called: dict[Any, ForeignFunction] = {}
"""By what tells effects apart, so that a later trace makes the same program."""


def debug_print(text: str, /, *args: Any, ordered: bool = True, **kwargs: Any) -> None:
    """Print values whenever a function runs, compiled or not.

    In a compiled function it prints at run time: in loops in each step, under `vmap` for each example, in the
    order in which plain Python would, and of a function whose gradient is taken in the forward pass only.

    Args:
        text: as of `str.format`: `"{x} {y.shape} {0:.3f}"`.
        args, kwargs: what its fields name: Tensors, arrays, numbers, containers of them, or anything else,
            which is that of the trace.
        ordered: there for programs written for JAX; it is always ordered.

    Raises:
        ArgumentError: a field names no value, or cannot be formatted so; raised while tracing.

    Example:
        >>> print("{x} has {x.shape}", x=np.arange(3))
        [0 1 2] has (3,)
    """
    names = ", ".join([*map(str, range(len(args))), *kwargs])

    def show(args: Any, kwargs: Any) -> str:
        return text.format(*args, **kwargs)

    _call(
        ("print", text),
        "print",
        lambda *given: builtins.print(show(*given)),
        (args, kwargs),
        partial(_require_format, text, names, show),
    )


def _require_format(text: str, names: str, show: Callable[..., str], example: Any) -> None:
    """ArgumentError if values like these cannot be formatted so."""
    try:
        show(*example)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        what = f"it names {error}" if isinstance(error, LookupError) else str(error)
        fail(
            ArgumentError,
            f"debug.print: the text {text!r} does not fit its values ({names or 'none'}): {what}. Write "
            "fields as for str.format, and give a value for each of them.",
        )


def callback(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call a Python function for its effect whenever a function runs, compiled or not.

    Args:
        function: gets the values, arrays of its own to keep; what it returns is dropped, what it raises ends
            the call. It sees global variables as they are when it runs, and variables of functions around it
            as they were in the trace.
        args, kwargs: as of `debug.print`.

    Raises:
        ArgumentError: it is no function, or, in a compiled function, a method of a container.

    Example:
        >>> seen = []
        >>> callback(seen.append, np.float64(2.0)); seen
        [np.float64(2.0)]
    """
    if not callable(function):
        fail(ArgumentError, f"debug.callback: a function expected, found {type(function).__name__}.")
    name = getattr(function, "__name__", "callback")
    function = _outside(function) if is_tracing() else function
    _call(("callback", function), name, lambda args, kwargs: function(*args, **kwargs), (args, kwargs))


def _outside(function: Any) -> Any:
    """The function of the program, of which the trace may have a copy, that sees others."""
    if isinstance(getattr(function, "__self__", None), Written | list | dict | set | deque):
        fail(
            ArgumentError,
            "debug.callback: a method of a list or another container, which in a compiled function is that "
            "of the trace. Write a function: def note(x): seen.append(x).",
        )
    if not isinstance(function, FunctionType):
        return function
    module = sys.modules.get(function.__module__)
    if function in originals or module is None or function.__globals__ is vars(module):
        return originals.get(function, function)
    return FunctionType(
        function.__code__, vars(module), function.__name__, function.__defaults__, function.__closure__
    )


def debug_breakpoint() -> None:
    """Stop in the debugger: of a compiled function in its generated source, which Python then runs.

    There the arrays have the names of the function's variables: those that it has computed up to this line.
    In plain Python it is `breakpoint()`. As there, the environment variable PYTHONBREAKPOINT=0 turns it off,
    and another debugger that `sys.breakpointhook` is set to is called in place of `pdb`.

    Example:
        >>> def loss(w):
        ...     residual = w * 2
        ...     debug_breakpoint()
        ...     return (residual ** 2).sum()
    """
    if not is_tracing():
        stop()
        return
    frame = user_frame()
    assert frame is not None
    values = {name: one for name, one in frame.f_locals.items() if isinstance(unwrap(one), Node)}
    place = f"{file_name(frame.f_code.co_filename)}:{frame.f_lineno}"

    def stop_here(args: Any, kwargs: Any) -> None:
        builtins.print(f"> {place}, in generated code; computed: {', '.join(values) or 'nothing'}")
        stop()

    _call(("breakpoint", place, *values), "breakpoint", stop_here, ((), values), stops=True)


def stop() -> None:
    """The debugger, in the innermost code that is not pullback's."""
    if os.environ.get("PYTHONBREAKPOINT") or sys.breakpointhook is not sys.__breakpointhook__:
        sys.breakpointhook()
    else:
        pdb.Pdb().set_trace(user_frame())


def _call(
    key: tuple[Any, ...],
    label: str,
    function: Callable[[Any, Any], Any],
    given: tuple[Any, Any],
    require: Callable[[Any], None] = lambda example: None,
    stops: bool = False,
) -> None:
    """Call `function(args, kwargs)`, now or, in a trace, wherever its program runs.

    Args:
        key: what says which function it is.
        require: raises where it cannot take values like these.
    """
    leaves, structure = flatten(given)
    if not is_tracing():
        shown = unflatten(structure, list(map(_shown, leaves)))
        require(shown)
        function(*shown)
        return
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    tensors = [leaves[place] for place in places]
    readers = list(map(reader_of, tensors))
    others = [_kept(leaf) for leaf in leaves]

    def values(arrays: Sequence[np.ndarray]) -> Any:
        filled = others.copy()
        for place, read, array in zip(places, readers, arrays):
            filled[place] = read(array)
        return unflatten(structure, filled)

    def fill(count: np.ndarray, *memory: np.ndarray) -> None:
        *arrays, out = memory
        effect = partial(function, *values(arrays))
        effect() if stops else perform(effect)
        out[...] = NOTHING

    operands = [unwrap(apply(pairs_of, one) if one.is_complex() else one) for one in tensors]
    require(values([np.zeros(tuple(map(int, one.shape)), one.dtype) for one in operands]))
    constants = [None if place in places else leaf for place, leaf in enumerate(leaves)]
    identity = (*key, structure, *map(type, tensors), *constants)
    trace = current_trace()
    DrawOrder(trace).call(
        _function_of(identity, label, fill, stops),
        [one if isinstance(one, Node) else trace.capture(one) for one in operands],
    )


def _shown(leaf: Any) -> Any:
    """What a value that is known stands for."""
    return reader_of(leaf)(unwrap(leaf)) if isinstance(leaf, NumpyTensor) else leaf


def _kept(leaf: Any) -> Any:
    """A value of the trace, as it is now."""
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _function_of(
    identity: tuple[Any, ...], label: str, fill: Callable[..., None], stops: bool
) -> ForeignFunction:
    """What a program calls: the same in later traces of the same line."""
    try:
        if identity not in _called:
            _called[identity] = ForeignFunction(label, fill, stops=stops)
        return _called[identity]
    except TypeError:  # something in it is not hashable
        return ForeignFunction(label, fill, stops=stops)
