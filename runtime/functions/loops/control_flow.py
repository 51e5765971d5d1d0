"""Loops as functions: `scan`, `map`, `fori_loop`, `while_loop`.

Outside of compiled functions they are Python's own loops, on the tape. In a compiled function the body is
traced once, whatever the number of steps, and becomes a real loop in the generated code, as does its
reverse. JAX's names and signatures (jax.lax); but a `while_loop` has a gradient, and needs no bound for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....tracer.dims import Dim
from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.graph import Node, constant
from ....tracer.loop import attributes_of_loop
from ....tracer.ops import creation
from ....tracer.ops import elementwise as e
from ....tracer.ops.control import GIVEN, UNKNOWN_LENGTH, WHILE
from ....tracer.origin import current_origin
from ....tracer.spec import BOOL, INT64, Spec
from ....tracer.trace import Trace, current_trace, is_tracing, tracing
from ...captures.randomness import note_draws, undrawn_if
from ...captures.stream_states import state_of
from ...tape.apply import apply, of_kind, standing_for, wrap
from ...tape.bodies import BodyInput, TracedBody, trace_body
from ...tape.loops import apply_loop
from ...tracing.rows import with_drawn, with_rows
from ...tracing.ways import require_known
from ...values.modes import no_grad
from ...values.tensor import Tensor, make
from ...values.value_kinds import Auxiliary, NumpyTensor, PythonNumber, as_kind
from ..common import fail
from ..decisions import integer_of, truth_of
from ..shapes.joining import cat, stack
from ..structures import Structured, common_of, require_same, structured
from .binomial import block_sizes, run_binomially
from .checkpointing import checkpoint
from .draws_in_bodies import counted, counting_draws

__all__ = ["fori_loop", "map", "scan", "while_loop"]

Function = Callable[..., Any]
COUNT = Spec((), INT64)
BEFORE = "the carry before the step"


# --- scan and its kin -------------------------------------------------------------------------------------


def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    checkpoint: bool = False,
    checkpoint_every: int | Sequence[int] | None = None,
    checkpoints: int | None = None,
) -> tuple[Any, Any]:
    """The last carry, and the stacked `y`, of `carry, y = f(carry, x)` for each row `x` of `xs`.

    Args:
        f: the step; what it takes from outside is differentiated as well.
        init: the first carry: tensors, arrays and numbers, in any nested structure.
        xs: a structure of tensors with one leading extent, over which the loop runs; None for none.
        length: the number of steps, where `xs` does not tell it.
        reverse: from the last row to the first; `y` lies where `x` did.
        checkpoint: backward is given the carries only, and computes each step again.
        checkpoint_every: backward is given every k-th carry only, and computes k steps at a time again. Of
            several numbers, the largest first, each divides what the one before it leaves: `(64, 8)` keeps
            n / 64 + 8 + 8 carries, and computes each step three times (A. Griewank and A. Walther,
            Evaluating Derivatives, SIAM 2008, chapter 12).
        checkpoints: backward holds at most so many carries at a time, and computes steps again as seldom as
            that allows: the binomial schedule (A. Griewank and A. Walther, revolve, 2000). In compiled
            functions, which lay out their memory beforehand, it is a `checkpoint_every` that keeps as many.

    Raises:
        ShapeError, DTypeError, ArgumentError: the carry changes from step to step, extents differ, or `f`
            returns no pair; the message names the leaf.

    Example:
        >>> scan(lambda total, x: (total + x, total * x), 0.0, tensor([1.0, 2.0, 3.0]))
        (tensor(6.), tensor([0., 2., 9.]))
    """
    carry, rows = structured(init, "scan", "init"), structured(xs, "scan", "xs")
    length = _length("scan", rows, length)
    if checkpoints is not None:
        if type(checkpoints) is not int or checkpoints < 1 or checkpoint_every is not None:
            found = f"{checkpoints!r}{' beside checkpoint_every' if checkpoint_every is not None else ''}"
            fail(ArgumentError, f"scan: checkpoints must be a positive integer, and alone, found {found}.")
        if not is_tracing():
            return run_binomially(
                lambda values, xs, count: scan(f, values, xs, count, reverse, checkpoint=True),
                carry.restored(carry.tensors),
                rows,
                length,
                checkpoints,
                reverse,
            )
        checkpoint_every, checkpoint = block_sizes(length, checkpoints), True
    if checkpoint_every is not None and checkpoint_every != ():
        return _scan_in_blocks(f, carry, rows, length, reverse, checkpoint_every)

    @functools.wraps(f)
    def step(values: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[Structured, Structured]:
        after, y = _pair(f(carry.restored(values), rows.restored(inputs)))
        return structured(after, "scan", "carry"), structured(y, "scan", "y")

    if is_tracing() and length:
        return counting_draws(
            lambda: _traced_scan("scan", step, carry, rows, length, reverse, checkpoint),
            lambda count: _scan_that_draws(f, count, init, xs, length, reverse, checkpoint),
        )
    chosen = _checkpointed(step) if checkpoint else step
    return _run_scan("scan", chosen, carry, rows, length, reverse)


def _pair(found: Any) -> Sequence[Any]:
    if not isinstance(found, tuple | list) or len(found) != 2:
        fail(
            ArgumentError,
            f"scan: f returned {type(found).__name__} {found!r}; expected a pair (carry, y). "
            "Return y as None where nothing is to be stacked.",
        )
    return found


def _scan_that_draws(f: Function, count: Tensor, init: Any, xs: Any, *options: Any) -> Any:
    """The result of `scan`, and the count of draws, which it carries."""

    def step(before: tuple[Any, Tensor], row: Any) -> Any:
        found, drawn = counted(f)(before[1], before[0], row)
        carry, y = _pair(found)
        return (carry, drawn), y

    length, reverse, checkpoint = options
    (last, drawn), rows = scan(step, (init, count), xs, length, reverse, checkpoint=checkpoint)
    return (last, rows), drawn


def map(f: Function, xs: Any) -> Any:
    """`f` of each row of `xs`, stacked: a loop over the leading extent.

    Raises:
        ArgumentError: `xs` holds no tensor. ShapeError: its leading extents differ.

    Example:
        >>> map(lambda x: x * x, tensor([1.0, 2.0, 3.0]))
        tensor([1., 4., 9.])
    """
    return scan(lambda carry, x: (None, f(x)), None, xs)[1]


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Function,
    init: Any,
    *,
    checkpoint: bool = False,
    checkpoint_every: int | Sequence[int] | None = None,
    checkpoints: int | None = None,
) -> Any:
    """The last `value = body_fun(i, value)` for `i` from `lower` to `upper - 1`; `i` is an integer.

    Args:
        lower, upper: integers, or 0-d integer tensors, whose values are then those of each call.
        checkpoint, checkpoint_every, checkpoints: as in `scan`; the last two need bounds that are integers.

    Raises:
        ShapeError, DTypeError, ArgumentError: the value changes from step to step; bounds are no integers.

    Example:
        >>> fori_loop(0, 5, lambda i, total: total + i, 0)
        10
    """
    bounds = [integer_of("fori_loop", one, name) for one, name in ((lower, "lower"), (upper, "upper"))]
    carry = structured(init, "fori_loop", "init")
    if not any(isinstance(one, Tensor) for one in bounds):  # which may stand for an int
        first, last = bounds

        def body(value: Any, row: Any) -> tuple[Any, None]:
            return body_fun(row["i"] + first if first else row["i"], value), None

        options: dict[str, Any] = {
            "checkpoint": checkpoint,
            "checkpoint_every": checkpoint_every,
            "checkpoints": checkpoints,
        }
        return scan(body, init, {"i": _positions(max(last - first, 0))}, **options)[0]
    if checkpoint_every is not None or checkpoints is not None:
        asked = "checkpoint_every" if checkpoints is None else "checkpoints"
        fail(ArgumentError, f"fori_loop: {asked} needs bounds that are Python integers.")

    def body_that_draws(i: Any, value: Any) -> Any:
        return counted(body_fun)(value[1], i, value[0])

    return counting_draws(
        lambda: _loop_between(bounds[0], bounds[1], body_fun, carry, checkpoint),
        lambda count: _loop_between(
            bounds[0],
            bounds[1],
            body_that_draws,
            structured((carry.restored(carry.tensors), count), "fori_loop", "init"),
            checkpoint,
        ),
    )


def while_loop(cond_fun: Function, body_fun: Function, init: Any) -> Any:
    """The first `value = body_fun(value)`, beginning with `init`, of which `cond_fun(value)` is false.

    It has a gradient, and no bound is asked for: the compiled loop counts its steps and its tape grows.

    Raises:
        ShapeError, DTypeError, ArgumentError: the value changes from step to step, or the condition is not
            one truth value.

    Example:
        >>> while_loop(lambda x: x < 100, lambda x: x * x, tensor(2.0))
        tensor(256.)
    """
    carry = structured(init, "while_loop", "init")

    def goes_on(values: Sequence[Tensor]) -> Tensor:
        return truth_of(cond_fun(carry.restored(values)), "while_loop", "the result of cond_fun")

    def step(values: Sequence[Tensor]) -> Structured:
        return structured(body_fun(carry.restored(values)), "while_loop", "value")

    if is_tracing():
        return counting_draws(
            lambda: _traced_while(goes_on, step, carry),
            lambda count: _while_that_draws(cond_fun, body_fun, count, carry.restored(carry.tensors)),
        )
    values: Sequence[Tensor] = carry.tensors
    while bool(goes_on(values)):
        result = step(values)
        if carry.differs(result):
            carry = carry.converted(result)
        require_same("while_loop", result, carry, BEFORE)
        values = result.tensors
    return carry.restored(values)


Step = Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[Structured, Structured]]


def _length(name: str, rows: Structured, length: int | None) -> int:
    """The number of steps: the leading extent of all rows.

    Raises:
        ShapeError: they have none, or different ones. ArgumentError: nothing tells.
    """
    if length is not None and (isinstance(length, bool) or not isinstance(length, int | np.integer)):
        fail(ArgumentError, f"{name}: length must be an integer, found {type(length).__name__} {length!r}.")
    if length is not None and length < 0:
        fail(ArgumentError, f"{name}: length must not be negative, found {length}.")
    found, source = length, "length"
    for spec, label in zip(rows.specs, rows.labels):
        if not spec.shape:
            fail(ShapeError, f"{name}: {label} is {spec}, and has no leading dimension to run over.")
        if found is not None and spec.shape[0] != found:
            fail(
                ShapeError,
                f"{name}: {label} is {spec}, of {spec.shape[0]} rows, but {source} says {found}. "
                "All must have the same number of rows.",
            )
        found, source = spec.shape[0], label
    if found is None:
        fail(ArgumentError, f"{name}: neither xs nor length tells the number of steps. Give length=...")
    return found if isinstance(found, Dim) else int(found)


def _run_scan(
    name: str, step: Step, carry: Structured, rows: Structured, length: int, reverse: bool
) -> tuple[Any, Any]:
    """The loop as Python's own; numbers of the first steps become what those of later ones are."""
    collected: list[Structured] = []
    kinds = [one.kind for one in rows.inputs(_specs_of_rows(rows))]
    values: Sequence[Tensor] = carry.tensors
    changes = True
    for position in reversed(range(length)) if reverse else range(length):
        inputs = [of_kind(row[position], kind) for row, kind in zip(rows.tensors, kinds)]
        after, y = step(values, inputs)
        if changes:
            collected = _like(y, collected)
        changes = changes and carry.differs(after)
        if changes:
            carry = carry.converted(after)
        require_same(name, after, carry, BEFORE)
        if collected:
            require_same(name, y, collected[0], "the first step")
        values = after.tensors
        collected.append(y)
    if not collected:
        y = _traced_rows(name, step, carry, rows)
        empty = [wrap(np.zeros((0, *spec.shape), spec.dtype)) for spec in y.specs]
        return carry.restored(carry.tensors), y.restored(empty)
    if changes and any(isinstance(one, PythonNumber | NumpyTensor) for one in y.tensors):
        collected = _like(_traced_rows(name, step, carry, rows), collected)
    if reverse:
        collected.reverse()
    stacks = [stack(every) for every in zip(*(one.tensors for one in collected))]
    return carry.restored(values), collected[0].restored(stacks)


def _like(y: Structured, collected: Sequence[Structured]) -> list[Structured]:
    """What was collected, of the kinds and dtypes of a later step's."""
    return [one.converted(y) if one.differs(y) else one for one in collected]


def _specs_of_rows(rows: Structured) -> list[Spec]:
    """What one row of each is."""
    return [Spec(spec.shape[1:], spec.dtype) for spec in rows.specs]


def _traced_rows(name: str, step: Step, carry: Structured, rows: Structured) -> Structured:
    """What a step gives beside the carry, where no step had its kinds: it is traced, and does not run."""
    found: list[Structured] = []

    def run(tensors: list[Tensor]) -> list[Tensor]:
        found.append(step(tensors[: len(carry.tensors)], tensors[len(carry.tensors) :])[1])
        return found[0].tensors

    inputs = [*carry.inputs(), *rows.inputs(_specs_of_rows(rows))]
    trace = Trace(name)
    trace.stood = state_of
    with tracing(trace), no_grad():  # whose tape knows no graph
        trace_body(name, run, inputs, may_draw=True)
    for stream, before in trace.streams.items():
        stream.set_state(before)
    return found[0]


def _traced_scan(
    name: str, step: Step, carry: Structured, rows: Structured, length: int, reverse: bool, recompute: bool
) -> tuple[Any, Any]:
    """The loop as a node of the graph."""
    stacked: list[Structured] = []
    count = len(carry.tensors)

    def run(tensors: list[Tensor], before: Structured) -> list[Tensor]:
        after, y = step(tensors[:count], tensors[count:])
        stacked[:] = [*(stacked if not count else ()), y]
        return _settled(name, after, before) + y.tensors

    trace = current_trace()
    before = len(trace.drawn)
    inputs = rows.inputs(_specs_of_rows(rows))
    asks = False
    if count or trace.follows_rows is None:
        body, carry = _carrying(name, run, carry, last=inputs, may_draw=True)
    else:
        body, asks = trace.follows_rows(
            name, partial(run, before=carry), inputs, rows.tensors, partial(_alike, name, stacked)
        )
    drawn = trace.repeat_drawn(before, length, reverse)
    note_draws(trace.streams)
    body, given = with_drawn(body, rows.tensors, count, drawn)
    body, stacks = with_rows(body, given, count, length)
    graph = body.graph(name, current_origin())
    attributes = attributes_of_loop(graph, length, count, len(stacks), backwards=reverse, recompute=recompute)
    results = apply_loop([*carry.tensors, *stacks, *body.constants], attributes).tensors
    if asks:
        *results, known = results
        require_known(known, attributes["body"])
    return carry.restored(results[:count]), stacked[0].restored(results[count:])


def _alike(name: str, found: list[Structured], count: int) -> list[Sequence[Tensor]]:
    """What the last so many rows gave, the Python numbers of some as what others give."""
    common = common_of(found[-count:])
    found[:] = [one.converted(common, only_numbers=True) for one in found[-count:]]
    for one in found:
        require_same(name, one, found[0], "the result of another row")
    return [one.tensors for one in found]


def _scan_in_blocks(
    f: Function,
    carry: Structured,
    rows: Structured,
    length: int,
    reverse: bool,
    every: int | Sequence[int],
) -> tuple[Any, Any]:
    """Loops of `size` steps inside of a loop of which backward is given the carries only; then the rest."""
    size, *inner = [every] if isinstance(every, int | np.integer) else list(every)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        fail(ArgumentError, f"scan: checkpoint_every must be positive integers, found {every!r}.")
    within: dict[str, Any] = {"checkpoint_every": inner} if inner else {}
    size = int(size)
    blocks, rest = divmod(length, size)
    if not blocks:
        return scan(f, carry.restored(carry.tensors), rows.restored(rows.tensors), length, reverse, **within)
    start = rest if reverse else 0
    stop = start + blocks * size

    def part(first: int, last: int) -> Any:
        return rows.restored([row[first:last] for row in rows.tensors])

    def in_blocks(values: Any) -> tuple[Any, Any]:
        whole = [row[start:stop].reshape(blocks, size, *row.shape[1:]) for row in rows.tensors]
        return scan(
            lambda value, block: scan(f, value, block, size, reverse, **within),
            values,
            rows.restored(whole),
            blocks,
            reverse,
            checkpoint=True,
        )

    def flat(ys: Any) -> Structured:
        found = structured(ys, "scan", "y")
        tensors = [one.reshape(blocks * size, *one.shape[2:]) for one in found.tensors]
        return found.with_tensors(tensors)

    value, ys = in_blocks(carry.restored(carry.tensors))
    of_blocks = flat(ys)
    if not rest:
        return value, of_blocks.restored(of_blocks.tensors)
    others = part(0, rest) if reverse else part(stop, length)
    value, ys = scan(f, value, others, rest, reverse, **within)
    of_rest = structured(ys, "scan", "y")
    pairs = zip(of_rest.tensors, of_blocks.tensors) if reverse else zip(of_blocks.tensors, of_rest.tensors)
    return value, of_blocks.restored([cat(pair) for pair in pairs])


def _loop_between(lower: Any, upper: Any, body_fun: Function, carry: Structured, recompute: bool) -> Any:
    """A loop in a trace between bounds that are values."""
    first, last = (
        one if isinstance(one, Tensor) else make(constant(one, COUNT), Auxiliary) for one in (lower, upper)
    )

    def run(tensors: list[Tensor], before: Structured) -> list[Tensor]:
        after = structured(body_fun(tensors[0], before.restored(tensors[1:])), "fori_loop", "value")
        return [_next(tensors[0], "i"), *_settled("fori_loop", after, before)]

    body, carry = _carrying("fori_loop", run, carry, [BodyInput(COUNT, "i", PythonNumber)])
    graph = body.graph("fori_loop", current_origin())
    count = 1 + len(carry.tensors)
    attributes = attributes_of_loop(graph, UNKNOWN_LENGTH, count, trips=GIVEN, recompute=recompute)
    steps = apply(e.subtract, last, first)
    trips = _named(apply(e.where, apply(e.greater, steps, 0), steps, 0), "steps")
    results = apply_loop([first, *carry.tensors, *body.constants, trips], attributes).tensors
    return carry.restored(results[1:])


def _while_that_draws(cond_fun: Function, body_fun: Function, count: Tensor, init: Any) -> Any:
    """The result of `while_loop`, and the count of draws, which it carries with the next condition."""

    def asked(value: Any) -> Tensor:
        return truth_of(cond_fun(value), "while_loop", "the result of cond_fun")

    def step(before: Any) -> Any:
        def run(value: Any) -> Any:
            after = body_fun(value)
            return after, asked(after)

        (after, goes_on), drawn = counted(run)(before[2], before[0])
        return after, goes_on, drawn

    goes_on, drawn = counted(asked)(count, init)
    value, _, drawn = while_loop(lambda value: value[1], step, (init, goes_on, drawn))
    return value, drawn


def _traced_while(goes_on: Function, step: Function, carry: Structured) -> Any:
    def run(tensors: list[Tensor], before: Structured) -> list[Tensor]:
        values = _settled("while_loop", step(tensors[2:]), before)
        return [_named(goes_on(values), "goes_on"), _next(tensors[1], "steps"), *values]

    first = [BodyInput(Spec((), BOOL), "goes_on"), BodyInput(COUNT, "steps")]
    body, carry = _carrying("while_loop", run, carry, first)
    graph = body.graph("while_loop", current_origin())
    attributes = attributes_of_loop(graph, UNKNOWN_LENGTH, 2 + len(carry.tensors), trips=WHILE)
    inits = [goes_on(carry.tensors), make(constant(0, COUNT), Auxiliary), *carry.tensors]
    return carry.restored(apply_loop([*inits, *body.constants], attributes).tensors[2:])


Inputs = Sequence[BodyInput]


def _carrying(
    name: str,
    run: Callable[..., Sequence[Any]],
    carry: Structured,
    first: Inputs = (),
    last: Inputs = (),
    may_draw: bool = False,
) -> tuple[TracedBody, Structured]:
    """The body that `run` is, and what is carried, its Python numbers in the dtypes that the body gives them.

    Args:
        run: from the inputs, and what is carried in the right dtypes, to the results.
        first, last: further inputs of the body, around the carry.
    """
    while True:
        inputs = [*first, *carry.inputs(), *last]
        try:
            with undrawn_if(_OtherKinds):
                return trace_body(name, partial(run, before=carry), inputs, may_draw), carry
        except _OtherKinds as other:
            carry = carry.converted(other.after)


class _OtherKinds(Exception):
    """What a loop begins with has other dtypes, or is of other kinds, than what it goes on with."""

    def __init__(self, after: Structured) -> None:
        super().__init__()
        self.after = after


def _settled(name: str, after: Structured, before: Structured) -> list[Tensor]:
    if before.differs(after):
        raise _OtherKinds(after)
    require_same(name, after, before, BEFORE)
    return after.tensors


def _checkpointed(step: Step) -> Step:
    """The step as a function of which backward is given the arguments only."""

    def again(values: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[Structured, Structured]:
        found: list[tuple[Structured, Structured]] = []

        @functools.wraps(step)  # by which its streams of random numbers are found
        def run(values: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
            found[:] = [step(values, inputs)]
            return [*found[0][0].tensors, *found[0][1].tensors]

        tensors = [standing_for(one) for one in checkpoint(run)(list(values), list(inputs))]
        carry, y = found[0]
        count = len(carry.tensors)
        return carry.with_tensors(tensors[:count]), y.with_tensors(tensors[count:])

    return again


def _next(count: Tensor, name: str) -> Tensor:
    return _named(apply(e.add, count, 1), name)


def _named(one: Tensor, name: str) -> Tensor:
    """The same under a name of its own in generated code, not that of the user's result."""
    value = one.payload
    return make(value.named(name), type(one)) if isinstance(value, Node) and value.operands else one


def _positions(count: int) -> Tensor:
    """0, 1, ..., as many as asked for, as Python's numbers."""
    found = apply(creation.iota, size=count, dtype=INT64) if is_tracing() else wrap(np.arange(count))
    return as_kind(found, PythonNumber)
