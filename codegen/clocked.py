"""A program that reads a clock behind each of its loop nests: how long they take, and what each of them does.

It is compiled by itself: the program that calls run knows nothing of it. Its loops are those of the plan, and
so is what they read, write and compute. A function that threads share is timed as a whole. What it takes is
divided among its nests, and what a nest takes among the user's lines in it, as the machine model says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.ops.foreign import ForeignFunction
from pullback.tracer.origin import Origin
from pullback.tracer.spec import INT64

from ..tracer.forks import kept
from ..tracer.records import record
from . import ir
from .account import LoopNest, Statement, Step
from .cost.machine import this_machine
from .host import ForeignCall
from .nests.expression import Compute, parts
from .nests.tree import Item, Root, roots_in
from .program import Kernel, Program, make_runner
from .targets.python.spelling import width
from .writing.functions import write_program
from .writing.indices import Scope
from .writing.write import Writer

FEWEST, MOST = 3, 1000
"""Runs that are timed, of which the shortest count."""
_ticks: list[int] = []


def _tick() -> None:
    _ticks.append(perf_counter_ns())


def _tick_into(out: np.ndarray) -> None:
    _tick()
    out[...] = 0


_CLOCK = ForeignFunction("clock", _tick_into)


@record(frozen=True)
class Nest:
    """A loop nest, or a call of a library: what one call of the program spends there."""

    function: str
    """The generated function that it is in."""
    title: str
    seconds: float
    nbytes: int
    """Read from and written to arrays, each array once."""
    operations: float
    """Multiplications and additions; an elementary function counts as its cost."""
    is_shared: bool
    """Whether threads share its iterations; then its part of the time of its function is the model's."""
    shares: tuple[Share, ...]
    """Of the lines in it."""


@record(frozen=True)
class Share:
    """What a line has of a nest: parts of the whole."""

    origin: Origin
    of_time: float
    of_operations: float


class _ClockedWriter(Writer):
    """Writes two readings of the clock before the first item of a function, and one behind each.

    Between the first two is the time that a reading takes.
    """

    def __init__(self, *arguments: Any, clock: ir.Host, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._clock: tuple[ir.Host, ...] = (clock,)

    def write(self, items: list[Item], shared: bool = False) -> ir.Body:
        if shared:
            self._clock = ()
        return (*self._clock, *self._clock, *super().write(items, shared))

    def _write_item(self, item: Item, scope: Scope) -> None:
        super()._write_item(item, scope)
        if scope.parent is None:
            scope.statements.extend(self._clock)


class ClockedProgram(Program):
    """The same program as another one, with readings of the clock."""

    @classmethod
    def of(cls, program: Program) -> ClockedProgram:
        graph, residuals = program.graph, tuple(program.residuals)
        return cls(graph, program.options, program.title, program.stem, residuals, program.notes)

    def _written(self) -> ir.Program:
        names, clock = self._plan.names, ForeignCall(_CLOCK.name)
        ticks = ir.Buffer(names.take("ticks"), INT64, (1,))
        read = ir.Host(names.take("clock"), clock, (ir.Section(ticks),))
        return write_program(self._plan, width, partial(_ClockedWriter, clock=read), (ticks,))

    @kept
    def _timed(self) -> Callable[[Sequence[np.ndarray]], Any]:
        pairs = zip(self._kernels, self.lowered.kernels)
        kernels = [_between_ticks(run) if one.sharing else run for run, one in pairs]
        return self._explaining(make_runner(self.lowered, self._plan, kernels))

    def measure(
        self, arrays: Sequence[np.ndarray], plain_program: Program, seconds: float
    ) -> tuple[float, list[Nest]]:
        """What a call of the program without clocks takes, and the nests; in turn, for about so long."""
        self._timed(arrays)
        plain, run = [], plain_program.runner
        runs: list[list[int]] = []
        until = perf_counter() + seconds
        while len(runs) < FEWEST or (perf_counter() < until and len(runs) < MOST):
            begin = perf_counter_ns()
            run(arrays)
            plain.append(perf_counter_ns() - begin)
            _ticks.clear()
            self._timed(arrays)
            runs.append(_ticks.copy())
        return 1e-9 * min(plain), list(self._nests(runs))

    def _nests(self, runs: Sequence[list[int]]) -> Iterator[Nest]:
        steps, fastest = iter(self.account.steps), self._fastest(runs)
        for name, stage in zip(self.lowered.names(self.name), self._plan.stages):
            is_shared = stage.shared is not None
            weights = [sum(map(_weight, roots_in([item]))) for item in stage.items]
            whole = next(fastest) if is_shared else 0.0
            for item, weight in zip(stage.items, weights):
                seconds = whole * weight / (sum(weights) or 1.0) if is_shared else next(fastest)
                yield _nest(name, item, next(steps), seconds, is_shared)

    def _fastest(self, runs: Sequence[list[int]]) -> Iterator[float]:
        """Of each function that is shared, and of each nest of the others, the shortest time in seconds."""
        sizes = [0 if stage.shared is not None else len(stage.items) for stage in self._plan.stages]
        count = sum(2 + size for size in sizes)
        shortest = np.min([np.diff(one[-count:]) for one in runs], axis=0).tolist()
        place = 0
        for size in sizes:
            reading, *others = shortest[place : place + size + 1]
            yield from (1e-9 * max(one - reading, 0) for one in others) if size else [1e-9 * reading]
            place += size + 2


def _between_ticks(kernel: Kernel) -> Kernel:
    def run(*arguments: Any) -> None:
        _ticks.append(perf_counter_ns())
        kernel(*arguments)
        _ticks.append(perf_counter_ns())

    return run


# --- what the plan says of a nest -------------------------------------------------------------------------


def _nest(function: str, item: Item, step: Step, seconds: float, is_shared: bool) -> Nest:
    return Nest(
        function,
        _title(step.work),
        seconds,
        step.bytes_read + step.bytes_written,
        step.operations,
        is_shared,
        tuple(_shares(item)),
    )


def _title(work: LoopNest | Statement) -> str:
    """`loop over 1000: store, sum`"""
    loops = []
    while isinstance(work, LoopNest):
        loops.append(str(work.trip_count))
        if len(work.body) != 1:
            break
        (work,) = work.body
    operators = dict.fromkeys(_operators(work))
    what = ", ".join([*operators][:4]) + (", ..." if len(operators) > 4 else "")
    return f"loop over {' x '.join(loops)}: {what}" if loops else what


def _operators(work: LoopNest | Statement) -> Iterator[str]:
    if isinstance(work, Statement):
        yield work.operator
        return
    for one in work.body:
        yield from _operators(one)


def _weight(root: Root) -> float:
    """Nanoseconds of a piece of work, as the machine model says."""
    machine, itemsize = this_machine(), root.node.dtype.itemsize
    if root.value is None:
        return machine.nanoseconds_of_arithmetic(root.operations)
    return machine.nanoseconds_of_loop(root.points, len(root.reads) + 1, root.effort, itemsize)


def _shares(item: Item) -> Iterator[Share]:
    """What each line has of an item: its arithmetic by its operators, the rest where a result is stored."""
    times: dict[Origin, float] = defaultdict(float)
    operations: dict[Origin, float] = defaultdict(float)
    machine = this_machine()
    for root in roots_in([item]):
        nodes = dict.fromkeys(_computed(root))
        costs = {node: root.points * node.operator.cost for node in nodes}
        for node, cost in costs.items():
            operations[node.origin] += cost
            spent = machine.nanoseconds_of_loop(root.points, 0, node.operator.cost, root.node.dtype.itemsize)
            times[node.origin] += spent
            times[root.origin] -= spent
        times[root.origin] += _weight(root)
        operations[root.origin] += root.operations - sum(costs.values())
    whole = sum(times.values()) or 1.0, sum(operations.values()) or 1.0
    for origin in times.keys() | operations.keys():
        yield Share(origin, times[origin] / whole[0], operations[origin] / whole[1])


def _computed(root: Root) -> Iterator[Node]:
    """The operators of an element."""
    return (one.node for one in parts(root.value) if isinstance(one, Compute)) if root.value else iter(())
