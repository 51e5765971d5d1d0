"""A program: the generated functions for a graph, their source, and how to call them with arrays."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from pullback.tracer import settings
from pullback.tracer.effects import held_back
from pullback.tracer.errors import DimensionError, LinearAlgebraError, UnsupportedError
from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import loops_of
from pullback.tracer.origin import with_latest_cells
from pullback.tracer.spec import Spec
from pullback.tracer.version import __version__

from ..tracer.forks import kept
from . import ir
from .account import Account
from .blas import OneThread
from .drawn_once import has_effects, stops, streams_of
from .host import HostCall, Raised
from .ir.verify import verify
from .machine import compile as machine
from .machine import store
from .machine.memory import POISONED, Scratch, allocator, is_large
from .machine.signatures import argument_types, sharing_of
from .machine.small_calls import caller
from .machine.threads import get_num_threads
from .machine.workers import have_workers
from .nests.accounting import account_of
from .nests.loops import bodies
from .nests.plan import Output, Plan
from .nests.tree import Host
from .options import Options
from .outside import position_outside
from .targets.comments import LINE_LENGTH, in_lines
from .targets.python.imports import import_lines
from .targets.python.spelling import width
from .whole_calls import call_of, calls_blas
from .writing.brief import brief_loops
from .writing.explain import explain
from .writing.functions import write_program

RECURSION_LIMIT = 100_000
"""Python frames for the descent into expressions: some for each operator of the longest chain."""
FLOAT16 = np.dtype("float16")
Kernel = Callable[..., Any]
Runner = Callable[[Sequence[np.ndarray]], tuple[np.ndarray, ...]]


class Program:
    """The generated functions for the outputs of an optimised graph."""

    def __init__(
        self,
        graph: Graph,
        options: Options,
        title: str,
        stem: str = "",
        residuals: Sequence[Node] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.graph = graph
        self.residuals = frozenset(residuals)
        self.options = options
        self.title = title
        self.notes = tuple(notes)
        self.stem = stem or graph.name
        _require_compilable(graph)

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs for C-contiguous arrays with exactly the shapes and dtypes of the graph's inputs.

        Raises DimensionError for an index array with a position outside of what it indexes,
        LinearAlgebraError where a matrix is singular, or not positive definite.
        """
        return self.runner(arrays)

    # --- generation ---------------------------------------------------------------------------------------

    @kept
    def _plan(self) -> Plan:
        with deep_recursion():
            return Plan(self.graph, self.stem, self.residuals, self.options.parallel)

    @kept
    def lowered(self) -> ir.Program:
        """The program in the loop IR: what is printed, interpreted and compiled."""
        with deep_recursion():
            program = self._written()
            if settings.CHECKING:
                verify(program)
        return program

    def _written(self) -> ir.Program:
        return write_program(self._plan, width)

    @property
    def name(self) -> str:
        """The name of the generated function: the user's, and a hash of what it does."""
        return f"{self.stem}_{hashlib.sha256(self._bare_source.encode()).hexdigest()[:6]}"

    @kept
    def _bare_source(self) -> str:
        """The source without its comments and the user's names, which is all that machine code depends on."""
        return self._emitted("kernel", comments=False)

    @property
    def source(self) -> str:
        """The generated Python of this program."""
        return with_latest_cells(self._source)

    @kept
    def _source(self) -> str:
        return self._emitted(self.name, _header(self.title, self.graph, self._plan))

    @property
    def located_source(self) -> list[tuple[str, ir.Origins]]:
        """The lines of `source`, each with the places in the user's program that it comes from."""
        return [(with_latest_cells(line), origins) for line, origins in self._located_source]

    @kept
    def _located_source(self) -> list[tuple[str, ir.Origins]]:
        from .targets.python.emit import emit_located  # which takes Jinja2

        header = _header(self.title, self.graph, self._plan)
        return emit_located(self.lowered.functions(self.name), self._imports, header)

    def _emitted(self, stem: str, header: Sequence[str] = (), comments: bool = True) -> str:
        from .targets.python.emit import emit  # which takes Jinja2

        return emit(self.lowered.functions(stem), self._imports, header, comments)

    @kept
    def _imports(self) -> list[str]:
        return import_lines(self.lowered.functions(self.stem))

    @kept
    def path(self) -> Path:
        """The file that holds `source`."""
        return store.write_source(self.source, self.stem)

    @property
    def account(self) -> Account:
        """The loops, what is stored and why, what calls a library."""
        return account_of(self.title, self._plan, self.lowered, self.name, self.notes)

    def explain(self) -> str:
        """The account in words."""
        return explain(self.account)

    # --- execution ----------------------------------------------------------------------------------------

    @property
    def runner(self) -> Runner:
        """What a call runs: machine code, unless `run_by` or the environment says otherwise."""
        way = _ways[-1] if _ways else WAYS[settings.way_to_run()]
        if way is None and self._stops:
            return self.run_uncompiled
        return self.compiled if way is None else partial(way, self)

    @property
    def is_compiled(self) -> bool:
        """Whether it has its machine code."""
        return "compiled" in self.__dict__

    @kept
    def _stops(self) -> bool:
        return stops(self.graph)

    @kept
    def compiled(self) -> Runner:
        """A call of machine code; asked for the first time, it is made."""
        kernels = self._kernels
        if kernels:
            self.path  # noqa: B018  the file is there for whoever looks for it
        return self._explaining(make_runner(self.lowered, self._plan, kernels))

    @property
    def entries(self) -> list[str]:
        """The names of its machine code in the cache, once it is compiled."""
        return [machine.entry_of(one) for one in self.__dict__.get("_kernels", ())]

    @kept
    def _kernels(self) -> list[Kernel]:
        program = self.lowered
        if not program.kernels:
            return []
        module = store.load_module(store.write_module(self._bare_source, "kernel"))
        is_fast = self.options.fastmath and not any(one.goes_on for one in loops_of(self.graph.nodes))
        flags = machine.DEFAULT_OPTIONS if is_fast else machine.CompileOptions(fastmath=frozenset())
        wanted = [
            machine.Wanted(
                name,
                argument_types(one),
                replace(flags, brief_loops=brief_loops(one.function.body), sharing=sharing_of(one)),
            )
            for name, one in zip(program.names("kernel"), program.kernels)
        ]
        return machine.compile_functions(module, wanted)

    def _explaining(self, run: Runner) -> Runner:
        """The runner, with an error of the kernel in words."""
        if not any(ir.may_raise(one.function.body) for one in self.lowered.kernels):
            return run

        def run_explaining(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
            try:
                return run(arrays)
            except Raised as raised:
                raise self._located(raised) from None
            except IndexError as error:
                raise DimensionError(
                    f"{self.graph.name}: an index array holds a position that is out of range of {error}. "
                    f"Indices count from 0 to the size of the dimension less one, or back from -1."
                    f"{position_outside(self.graph, arrays)}"
                ) from None
            except ArithmeticError as error:
                raise self._without_result(*error.args) from None

        return run_explaining

    def _located(self, raised: Raised) -> BaseException:
        """What Python has raised, with the lines that it may have been called for."""
        error = raised.__cause__
        assert error is not None
        called = (one for one in self._plan.tree.roots if isinstance(one, Host))
        nodes = (one.called for one in called if HostCall.of(one.called).symbol == raised.symbol)
        places = dict.fromkeys(f"{node.origin.place}  {node.origin.text}" for node in nodes)
        error.add_note(f"{self.graph.name}: in a call of Python, at {', or '.join(places)}")
        return error

    def _without_result(self, number: int) -> LinearAlgebraError:
        """What is wrong where a call in the code has no result."""
        node = next(one for one, place in self._plan.tree.may_fail.items() if place == number)
        call = call_of(node)
        assert call.refusal is not None
        name, wanted = call.refusal
        batch = node.operands[0].shape[: -call.dims]
        which = f"A matrix of the batch of shape {batch}" if batch else "The matrix"
        return LinearAlgebraError(
            f"{name}: {which} is not {wanted}.\n  at {node.origin.place}  {node.origin.text}"
        )

    def run_interpreted(
        self, arrays: Sequence[np.ndarray], seed: int = 0, most: float = math.inf
    ) -> tuple[np.ndarray, ...]:
        """What a call computes, statement by statement, with every access checked: very slow.

        Parts that threads would run are run in an order that `seed` decides. Raises ProgramError where the
        program is wrong, TooLong where it has not ended after the `most` statements.
        """
        from .ir.interpret import interpret  # which machine code does without

        plan, program = self._plan, self.lowered
        room = Room(program.counts)

        def run(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
            given = [arrays[place] for place in plan.used_inputs]
            while True:
                filled = list(interpret(program, given, seed, room.rows, most))
                if not program.counts or not filled[-1].any():
                    break
                room.enlarge(filled[-1])
            handed_out: set[int] = set()
            return tuple(_output(one, arrays, filled, plan, handed_out) for one in plan.outputs)

        return self._explaining(run)(arrays)

    def run_uncompiled(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """What a call computes, with the source run by the interpreter: slow, and open to a debugger."""
        module = store.load_module(store.write_module(self.source, self.stem))
        program = self.lowered
        functions = [getattr(module, name) for name in program.names(self.name)]
        kernels = [_in_one_part(run) if one.sharing else run for run, one in zip(functions, program.kernels)]
        with np.errstate(all="ignore"):
            return self._explaining(make_runner(program, self._plan, kernels))(arrays)


# --- ways to run ------------------------------------------------------------------------------------------


Way = Callable[[Program, Sequence[np.ndarray]], tuple[np.ndarray, ...]]
WAYS: dict[str, Way | None] = {
    "compiled": None, "uncompiled": Program.run_uncompiled, "checked": Program.run_interpreted
}  # fmt: skip
"""By what the environment variable PULLBACK_RUN asks for."""
_ways: list[Way] = []


@contextmanager
def run_by(way: Way) -> Iterator[None]:
    """Inside, programs that are called for the first time are run so from then on, in all threads."""
    _ways.append(way)
    try:
        yield
    finally:
        _ways.pop()


def c_source(programs: Sequence[Program]) -> str:
    """Programs in C11: one serial file, which needs libm, and a CBLAS where matrices are multiplied."""
    from .targets.c.c_file import Entry, emit  # which takes Jinja2

    return emit([Entry(one.lowered, one.name, _header(one.title, one.graph, one._plan)) for one in programs])


def _in_one_part(function: Kernel) -> Kernel:
    """A function over `range(start, stop)`, called as its machine code is: with extent, parts, threads."""
    return lambda *arguments: function(*arguments[:-3], 0, arguments[-3])


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for the descent into long chains of operators, a few Python frames each."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


# --- running ----------------------------------------------------------------------------------------------


def make_runner(program: ir.Program, plan: Plan, kernels: Sequence[Kernel]) -> Runner:
    """A closure that allocates what the kernels fill, calls them, and hands out the outputs."""
    runner = _with_room if program.counts else _runner
    statements = (one for kernel in program.kernels for one in ir.walk(kernel.function.body))
    if any(calls_blas(one) for one in statements if isinstance(one, ir.Library)):
        return _with_blas_in_one_thread(runner(program, plan, kernels))
    return runner(program, plan, kernels)


_one_thread = OneThread()


def _with_blas_in_one_thread(runner: Runner) -> Runner:
    def run(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        with _one_thread:
            return runner(arrays)

    return run


def _allocated(program: ir.Program, rows: Sequence[int] = ()) -> list[Spec]:
    """The specs of the arrays that a program fills, with so many rows in each group of those that grow."""
    shapes = (
        (rows[program.growing[one]], *one.dims[1:]) if one in program.growing else one.dims
        for one in program.filled
    )
    return [Spec(shape, one.dtype) for shape, one in zip(shapes, program.filled)]


def _runner(program: ir.Program, plan: Plan, kernels: Sequence[Kernel]) -> Runner:
    specs = _allocated(program)
    plain = all(one.position == place for place, one in enumerate(plan.outputs))
    everything = plan.used_inputs == list(range(len(plan.graph.inputs)))
    if plain and everything and len(kernels) == 1:
        (one,) = program.kernels
        is_serial = one.sharing is None and not one.shares_bodies
        if is_serial and one.buffers == (*program.inputs, *program.filled):
            run = _plain_runner(kernels[0], specs, one.numbers, len(plan.outputs))
            shapes = [one.shape for one in plan.outputs]
            return run if shapes == [one.shape for one in specs[: len(shapes)]] else _with_shapes(run, shapes)
    return _staged_runner(program, plan, kernels, specs)


def _plain_runner(kernel: Kernel, specs: list[Spec], numbers: tuple[int | float, ...], count: int) -> Runner:
    """One serial function that takes all inputs and fills the outputs as they are."""
    is_small = not any(map(is_large, specs))
    if is_small and isinstance(kernel, BuiltinFunctionType) and not POISONED:
        return caller(kernel, specs, numbers, count)
    allocators = [allocator(spec) for spec in specs]

    def run(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        filled = [allocate() for allocate in allocators]
        kernel(*arrays, *filled, *numbers)
        return tuple(filled[:count])

    return run


def _with_shapes(runner: Runner, shapes: Sequence[tuple[int, ...]]) -> Runner:
    """The same with outputs of other shapes than those that it fills."""

    def run(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        produced = runner(arrays)
        for one, shape in zip(produced, shapes):
            one.resize(shape)
        return produced

    return run


FIRST_ROOM = 64
"""Rows of a tape that a first call has, where data says how many it needs."""


class Room:
    """How many rows there is room for: of each count of steps, as many as a call has needed."""

    def __init__(self, count: int) -> None:
        self.rows = [FIRST_ROOM] * count

    def enlarge(self, needed: np.ndarray) -> None:
        """Make room for what a call has asked for, and for more to come."""
        self.rows = [max(now, int(rows + rows // 2)) for now, rows in zip(self.rows, needed)]


def _with_room(program: ir.Program, plan: Plan, kernels: Sequence[Kernel]) -> Runner:
    """As `_staged_runner`, with as many rows in the tapes of loops as the kernels find that they need."""
    room, streams = Room(program.counts), streams_of(plan.graph)
    attempt = held_back if has_effects(plan.graph) else nullcontext

    def with_rows() -> Runner:
        return _staged_runner(program, plan, kernels, _allocated(program, room.rows))

    current = [with_rows()]

    def run(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        before = [(one, one.get_state()) for one in streams]
        while True:
            try:
                with attempt(_TooSmall):
                    return current[0](arrays)
            except _TooSmall as error:
                room.enlarge(error.needed)
                current[0] = with_rows()
                for stream, state in before:
                    stream.set_state(state)

    return run


class _TooSmall(Exception):
    """There is not enough room for the tape of a loop."""

    def __init__(self, needed: np.ndarray) -> None:
        super().__init__(needed)
        self.needed = needed


def _staged_runner(program: ir.Program, plan: Plan, kernels: Sequence[Kernel], specs: list[Spec]) -> Runner:
    """Several functions, or shared loops: the stages in order, on a list of arrays by position."""
    borrowers = {loan.buffer for loan in program.loans}
    allocators: list[Callable[[], Any]] = [
        _no_memory if one in borrowers else allocator(spec) for one, spec in zip(program.filled, specs)
    ]
    counts = program.counts
    if counts:
        allocators[-1] = lambda: np.zeros(counts, np.int64)
    nothing = bytes(8 * counts)
    position = {buffer: place for place, buffer in enumerate([*program.inputs, *program.filled])}
    lent = [
        (position[one.buffer], position[one.owner], one.offset, one.buffer.dims, one.buffer.dtype)
        for one in program.loans
    ]
    stages = [_kernel_runner(one, kernel, position) for one, kernel in zip(program.kernels, kernels)]
    used = plan.used_inputs
    distinct = [one.position for one in plan.outputs]
    simple = min(distinct, default=0) >= 0 and len(set(distinct)) == len(distinct)
    handed = [(len(used) + one.position, one.shape) for one in plan.outputs]
    as_they_are = simple and all(one.shape == specs[one.position].shape for one in plan.outputs)
    places = [place for place, _ in handed]
    scratch = Scratch(specs, allocators, {*distinct, *([len(specs) - 1] if counts else ())})

    def run(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        filled = scratch.take()
        values = [arrays[place] for place in used]
        values += filled
        for place, owner, offset, shape, dtype in lent:
            values[place] = np.ndarray(shape, dtype, values[owner], offset)
        for run_stage in stages:
            run_stage(values)
            if counts and values[-1].tobytes() != nothing:
                raise _TooSmall(values[-1])
        scratch.give_back(filled)
        if as_they_are:
            return tuple([values[place] for place in places])
        if simple:
            return tuple([_shaped(values[place], shape) for place, shape in handed])
        handed_out: set[int] = set()
        return tuple(_output(one, arrays, values[len(used) :], plan, handed_out) for one in plan.outputs)

    return run


def _no_memory() -> None:
    """In place of an allocator, for scratch that lies in another array."""


def _kernel_runner(
    call: ir.Kernel, kernel: Kernel, position: dict[ir.Buffer, int]
) -> Callable[[list[np.ndarray]], None]:
    """A closure that calls one function with its arrays, or in threads with a part of the loop each."""
    places, numbers = [position[buffer] for buffer in call.buffers], call.numbers

    def run_sharing(values: list[np.ndarray]) -> None:
        threads = get_num_threads()
        have_workers(threads - 1)
        kernel(*[values[place] for place in places], *numbers, threads)

    if call.shares_bodies:
        return run_sharing
    if call.sharing is None:
        return lambda values: kernel(*[values[place] for place in places], *numbers)
    extent, per_thread = call.sharing.extent, call.sharing.parts_per_thread

    def run(values: list[np.ndarray]) -> None:
        threads = max(1, min(get_num_threads(), extent))
        have_workers(threads - 1)
        parts = min(threads * per_thread, extent) if threads > 1 else 1
        kernel(*[values[place] for place in places], *numbers, extent, parts, threads)

    return run


def _output(
    output: Output, arrays: Sequence[np.ndarray], filled: list[np.ndarray], plan: Plan, handed_out: set[int]
) -> np.ndarray:
    """An output as an array of its own: two outputs with one value do not share memory."""
    if output.position >= 0:
        array = filled[output.position]
        if output.position in handed_out:
            array = array.copy()
        handed_out.add(output.position)
        return _shaped(array, output.shape)
    if output.node.is_constant:
        return np.full(output.shape, output.node.attributes["value"], output.node.dtype)
    return _shaped(np.array(arrays[plan.graph.inputs.index(output.node)]), output.shape)


def _shaped(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A new array with another shape of the same size: itself, and no view, so that it owns its data."""
    array.resize(shape)
    return array


def _require_compilable(graph: Graph) -> None:
    for node in (node for one in bodies(graph) for node in (*one.inputs, *one.nodes)):
        if node.dtype == FLOAT16:
            raise UnsupportedError(
                f"{graph.name}: {node.name or node.operator.name} is {node.spec}; "
                f"compiled code has no float16. "
                f"Convert to float32 before the call, or call the undecorated function."
            )


def _header(title: str, graph: Graph, plan: Plan) -> tuple[str, ...]:
    """What the function is, where the user's function stands, and the signature with named extents."""
    place = f", {graph.origin.place}" if graph.origin.line else ""
    known = plan.extent_names if plan.stages else {}

    written_out = plan.written_out

    def described(name: str, node: Node) -> str:
        names = [
            str(symbol.value) if symbol in written_out else known.get(symbol, str(symbol.value))
            for symbol in plan.tree.extents[node]
        ]
        return f"{name}: {node.dtype}[{', '.join(names)}]"

    inputs = [described(plan.name_of(node, node.name), node) for node in graph.inputs]
    names = [plan.name_of(one.node, "value") for one in plan.outputs]
    outputs = [described(name, node) for name, node in zip(names, graph.outputs)]
    title = f"Generated by pullback {__version__}: {title}{place}"
    return (title, *_listed("  ", inputs), *_listed("  -> ", outputs))


def _listed(lead: str, parts: Sequence[str]) -> list[str]:
    """Parts behind a lead, in lines of a header."""
    first, *others = ",\n".join(in_lines(parts, LINE_LENGTH - len("# ,") - len(lead))).split("\n")
    return [lead + first, *(" " * len(lead) + line for line in others)]
