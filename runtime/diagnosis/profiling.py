"""`profile`: a function, called again and again, with and without clocks between its loop nests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tracer.draw_order import drawing_nothing
from ...tracer.effects import held_back
from ..dispatch.compiled import compile
from ..dispatch.inspection import Inspection
from ..dispatch.variant import Variant, inputs_of
from .profiles import Line, Nest, Profile, Program, Roofs

if TYPE_CHECKING:
    from ...codegen import clocked, program

SECONDS = 0.4
"""For which a program is called again and again, with clocks and without."""


class _Done(BaseException):
    """All is measured: what calls had to print or to note is dropped."""


def profile(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Profile:
    """Where a call of a compiled function, and its gradient, spends its time.

    Loop nests are timed, in programs that read a clock behind each of them, compiled besides those that calls
    run. A nest that has several lines in it is divided among these as the machine model says. What the sum
    leaves of the time of a whole call, without clocks, is given too.

    Args:
        function: a compiled function; any other is compiled. Its backward pass is measured with respect to
            the Tensors that require grad, else to all floating arrays.
        args, kwargs: of a call. Nothing is written into them, nothing stays drawn, printed or noted.

    Returns:
        A Profile: `str()` and rich show tables of lines, nests and programs, `as_data()` gives plain data,
        `plot()` a flame or a roofline picture.

    Raises:
        EagerOnlyError: the function cannot be compiled.

    Example:
        >>> print(profile(energy, x, w))  # doctest: +SKIP
        energy, by line (nests are divided among lines as the machine model says)
        line         time      backward  share  GFLOP/s  GB/s
        model.py:7   3.1 us    1.2 us    41 %   5.11     2.58
    """
    compiled = function if isinstance(function, Inspection) else compile(function)
    variant, leaves = compiled.variant_for(args, kwargs)
    measured: list[tuple[program.Program, float, list[clocked.Nest]]] = []
    with drawing_nothing(variant.traced.streams), suppress(_Done), held_back(_Done):
        measured += _measured(variant, leaves)
        raise _Done
    return _profile(variant.traced.name, measured)


def _measured(
    variant: Variant, leaves: Sequence[Any]
) -> Iterator[tuple[program.Program, float, list[clocked.Nest]]]:
    """The programs of a variant, how long they take, and their nests."""
    from ...codegen.clocked import ClockedProgram  # not at start

    arrays = inputs_of(variant.traced, leaves)
    given = [(variant.forward, arrays)]
    if variant.differentiable:
        produced = variant.forward.runner(arrays)
        given.append((variant.pair.backward, variant.backward_arrays(arrays, produced)))
    for one, inputs in given:
        yield one, *ClockedProgram.of(one).measure(inputs, one, SECONDS)


def _profile(name: str, measured: Sequence[tuple[program.Program, float, list[clocked.Nest]]]) -> Profile:
    from ...codegen.cost.machine import this_machine  # not at start
    from ...codegen.machine.threads import get_num_threads

    machine = this_machine()
    nests = [
        Nest(
            nest.seconds, nest.nbytes, nest.operations, one.title, nest.function, nest.title, nest.is_shared,
            tuple((share.origin.place, share.of_time) for share in nest.shares if share.of_time > 0),
        )
        for one, _, found in measured
        for nest in found
    ]  # fmt: skip
    programs = [
        Program(one.title, seconds, sum(nest.seconds for nest in found)) for one, seconds, found in measured
    ]
    threads = get_num_threads()
    operations, caches = 2 * machine.multiplications * threads, 8 / machine.access * threads
    roofs = Roofs(operations, caches, machine.memory_bandwidth)
    return Profile(name, tuple(programs), tuple(nests), tuple(_lines(measured)), roofs)


def _lines(measured: Sequence[tuple[program.Program, float, list[clocked.Nest]]]) -> list[Line]:
    """The user's lines with their parts of all nests."""
    spent: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(4))
    for place, (_, _, nests) in enumerate(measured):
        for nest in nests:
            for share in nest.shares:
                origin = share.origin
                key = (origin.place, origin.text) if origin.line else ("", "")
                seconds = share.of_time * nest.seconds
                is_backward = origin.is_backward or place > 0
                spent[key] += (
                    seconds, share.of_time * nest.nbytes, share.of_operations * nest.operations,
                    seconds if is_backward else 0.0,
                )  # fmt: skip
    lines = [
        Line(seconds, nbytes, operations, place, text, backward)
        for (place, text), (seconds, nbytes, operations, backward) in (
            (key, numbers.tolist()) for key, numbers in spent.items()
        )
    ]
    return sorted(lines, key=lambda one: -one.seconds)
