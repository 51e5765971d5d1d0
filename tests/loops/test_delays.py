"""Carries that are what another was some steps ago: they have no array of their own."""

from collections.abc import Callable

import numpy as np
import pytest
from uncompiled import run_uncompiled

import pullback as pb
from pullback.codegen.pipeline import build_forward
from pullback.codegen.rolling.delayed_carries import move_when_read
from pullback.codegen.rolling.derived_carries import compute_when_read
from pullback.tracer.graph import Graph, Node, constant, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.loop import loops_of, make_loop
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.spec import Spec
from pullback.tracer.verify import verify

FLOAT = np.dtype("float64")
STEPS, WIDTH = 7, 5


def parameter(name: str, *shape: int) -> Node:
    return make_input(Spec(shape, FLOAT), name)


def inside(x: Node, start: int = 1) -> Node:
    return m.slice_(x, starts=(start,), stops=(start + WIDTH - 2,), steps=(1,))


def with_rim(part: Node, around: Node) -> Node:
    return m.slice_update(around, part, starts=(1,), stops=(WIDTH - 1,), steps=(1,))


def loop_of(step: Callable[..., list[Node]], carries: int, stacked: bool = False) -> Graph:
    inside = [parameter(f"c{index}", WIDTH) for index in range(carries)]
    starts = [parameter(f"start{index}", WIDTH) for index in range(carries)]
    body = Graph("step", tuple(inside), tuple(step(*inside)))
    outputs = make_loop(body, starts, [], [], STEPS).results
    outputs = [*outputs[:carries], *(e.exp(one) for one in outputs[carries:])]
    return verify(Graph("f", tuple(starts), tuple(outputs)))


def recurrence() -> Graph:
    """What is written over is read in its place alone."""
    return loop_of(lambda now, before: [now * 0.5 - before, now], 2)


def wave() -> Graph:
    """What is written over is read by neighbours."""

    def step(now: Node, before: Node) -> list[Node]:
        return [with_rim(inside(before, 0) + inside(before, 2) - inside(now), now), now]

    return loop_of(step, 2)


def sweep() -> Graph:
    """The inside is written, the rim stays what it was."""
    return loop_of(lambda now, then: [with_rim(inside(now, 0) * 0.5 + inside(now, 2), then), now], 2)


def long_memory() -> Graph:
    return loop_of(lambda b, a, d, c: [a, a * 0.5 - e.sin(d), c, b], 4)


def followed_twice() -> Graph:
    return loop_of(lambda first, now, second: [now, now - first * second * 0.1, now], 3)


def taking_turns() -> Graph:
    return loop_of(lambda a, b, c: [b, a, c * 0.5 + a - b * 2.0], 3)


def all_rows_read() -> Graph:
    return loop_of(lambda now, before: [now * 0.5 - before, now, before, now], 2)


GRAPHS = {
    recurrence: [2],
    wave: [3],
    sweep: [2],
    long_memory: [4],
    followed_twice: [2, 2],
    taking_turns: [2, 2],  # a third lies in the output that it ends as
    all_rows_read: [STEPS + 2],
}


@pytest.mark.parametrize("make, rows", GRAPHS.items(), ids=[one.__name__ for one in GRAPHS])
def test_one_history_holds_what_was_before(make: Callable[[], Graph], rows: list[int]) -> None:
    graph = make()
    program = build_forward(graph)
    assert sorted(one.rows for one in program.account.arrays if one.rows) == sorted(rows)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=node.shape) for node in graph.inputs]
    for found in (program(arrays), run_uncompiled(program, arrays)):
        for one, other in zip(found, evaluate_graph(graph, arrays), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_is_moved_from_a_carry_is_moved_when_it_is_read() -> None:
    """The reverse of a sweep: the rim of a cotangent is added a step later."""
    now, rim = parameter("now", WIDTH), parameter("rim", WIDTH)
    nothing = constant(0.0, Spec((WIDTH - 2,), FLOAT))
    body = Graph("step", (now, rim), (m.flip(now, dims=(0,)) * 0.5 + rim, with_rim(nothing, now)))
    start = parameter("start", WIDTH)

    def graph(first: float) -> Graph:
        loop = make_loop(body, [start, constant(first, start.spec)], [], [], STEPS)
        return verify(Graph("f", (start,), tuple(loop.results)))

    moved = verify(move_when_read(graph(0.0)))
    (loop,) = loops_of(moved.nodes)
    assert loop.body.outputs[1] is loop.body.inputs[0]
    given = [np.arange(WIDTH) + 1.0]
    for one, other in zip(evaluate_graph(moved, given), evaluate_graph(graph(0.0), given), strict=True):
        np.testing.assert_array_equal(one, other)
    (loop,) = loops_of(move_when_read(graph(1.0)).nodes)  # no row in front has ones inside, once it is moved
    assert loop.body.outputs[1].operator is m.slice_update


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_of_carries_moved_from_each_other_one_is_moved_when_it_is_read(order: tuple[int, ...]) -> None:
    now, first, second = (parameter(name, WIDTH) for name in ("now", "first", "second"))
    after = e.sin(now) + first * 2.0 - second, m.flip(now, dims=(0,)), m.flip(first, dims=(0,))
    start = parameter("start", WIDTH)
    inits = start, constant(0.0, start.spec), constant(0.0, start.spec)
    inside, outputs, before = (
        [one[place] for place in order] for one in ((now, first, second), after, inits)
    )
    body = Graph("step", tuple(inside), tuple(outputs))
    graph = verify(Graph("f", (start,), tuple(make_loop(body, before, [], [], STEPS).results)))
    moved = verify(move_when_read(graph))
    (loop,) = loops_of(moved.nodes)
    verify(loop.body)
    assert sum(one in loop.body.inputs for one in loop.body.outputs) == 1
    given = [np.arange(WIDTH) + 1.0]
    for one, other in zip(evaluate_graph(moved, given), evaluate_graph(graph, given), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.drawn(4)
def test_sweeps_over_two_grids_copy_none() -> None:
    def relaxed(grid):
        now, then = grid * 1.0, grid * 1.0
        for _ in range(8):
            then[1:-1, 1:-1] = 0.25 * (now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1])
            now[1:-1, 1:-1] = 0.25 * (then[1:-1, :-2] + then[1:-1, 2:] + then[:-2, 1:-1] + then[2:, 1:-1])
        return (now**2).sum()

    grid = np.random.default_rng(0).normal(size=(20, 18))
    both = pb.compile(pb.value_and_grad(relaxed))
    value, slope = both(grid)
    expected, expected_slope = pb.value_and_grad(relaxed)(grid)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-12, atol=1e-14)
    parameters = both.source(grid).split("(", 1)[1].split(")", 1)[0]
    arrays = {one.strip() for one in parameters.replace("\n", " ").split(",")} - {"p", "q", "r", "s", ""}
    assert arrays == {"grid", "value", "d_grid", "now", "d_now"}


def test_a_loop_of_as_many_steps_as_data_tells() -> None:
    @pb.compile
    def sequence(x):
        def step(state):
            now, before = state
            return now + 0.5 * before, now

        now, before = pb.while_loop(lambda state: state[0].sum() < 100.0, step, (x, x * 0.0))
        return (now * before).sum()

    for size in (0.5, 3.0, 200.0):
        x = pb.tensor(np.full(4, size), requires_grad=True)
        result = sequence(x)
        result.backward()
        now, before = np.full(4, size), np.zeros(4)
        slopes = np.ones(4), np.zeros(4)
        while now.sum() < 100.0:
            now, before = now + 0.5 * before, now
            slopes = slopes[0] + 0.5 * slopes[1], slopes[0]
        np.testing.assert_allclose(result.detach().numpy(), (now * before).sum())
        np.testing.assert_allclose(x.grad.numpy(), slopes[0] * before + now * slopes[1])


# --- carries that are computed of others --------------------------------------------------------------------


def averages(now: float, scaled: float) -> Graph:
    """`scaled` is a multiple of `now`, but perhaps for where it begins."""
    rows = parameter("rows", STEPS, WIDTH)
    first, second, row = (parameter(name, WIDTH) for name in ("now", "scaled", "row"))
    new = second + row
    body = Graph("step", (first, second, row), (new, new * 0.9))
    starts = [constant(one, Spec((WIDTH,), FLOAT)) for one in (now, scaled)]
    made = make_loop(body, starts, [rows], [], STEPS)
    return verify(Graph("f", (rows,), tuple(made.results)))


@pytest.mark.parametrize(
    "starts, carries", [((0.0, 0.0), 1), ((2.0, 1.8), 1), ((0.0, 1.0), 2), ((0.0, -0.0), 2)]
)
def test_a_carry_that_is_computed_of_another(starts, carries):
    graph = averages(*starts)
    changed = verify(compute_when_read(graph))
    assert [one.carries for one in loops_of(changed.nodes)] == [carries]
    rows = np.random.default_rng(0).normal(size=(STEPS, WIDTH))
    for mine, theirs in zip(evaluate_graph(changed, [rows]), evaluate_graph(graph, [rows])):
        np.testing.assert_array_equal(mine, theirs)


def test_an_exponential_moving_average_is_a_recurrence():
    def average(x):
        mean = 0.0
        for t in range(40):
            mean = 0.9 * mean + 0.1 * x[t]
        return mean

    x = np.random.default_rng(0).normal(size=40)
    compiled = pb.compile(average)
    assert "mean_1 = mean_1 * 0.9 + x[i] * 0.1" in compiled.source(x)
    np.testing.assert_allclose(compiled(x), average(x), rtol=1e-14)
