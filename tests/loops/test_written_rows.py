"""Arrays that loops only write, each step another part, are stacks of what the steps have made."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.rolling.roll import roll
from pullback.codegen.rolling.rows import counter
from pullback.codegen.rolling.written_rows import stack_what_is_written
from pullback.tracer.graph import Graph, constant, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.loop import is_loop, make_loop
from pullback.tracer.ops import windows as w
from pullback.tracer.ops.windows import PLACE
from pullback.tracer.spec import Spec
from pullback.tracer.verify import verify

pytestmark = pytest.mark.usefixtures("partly_compiled")

Function = Callable[[Any], Any]


def forwards(x):
    out, v = np.zeros((12, 3)), np.zeros(3)
    for t in range(12):
        v = v * 0.5 + np.tanh(x[t])
        out[t] = v
    return out


def backwards(x):
    out, v = np.zeros((12, 3)), x[0] * 0
    for t in range(11, -1, -1):
        v = v * 0.5 + np.tanh(x[t])
        out[t] = v
    return out


def columns(x):
    out, v = np.ones((3, 14)), x[0] * 0
    for t in range(12):
        v = v * 0.5 + np.tanh(x[t])
        out[:, t + 1] = v
    return out


def every_other(x):
    out, v = np.repeat(x, 2, axis=0) * 1.0, x[0] * 0
    for t in range(12):
        v = v * 0.5 + np.sin(x[t])
        out[2 * t + 1] = v * x[t]
    return out


def every_other_from_behind(x):
    out, v = np.full((30, 3), 0.5), x[0] * 0
    for t in range(12):
        v = v * 0.5 + np.sin(x[t])
        out[26 - 2 * t, :] = v * x[t]
    return out


def elements_in_rows(x):
    out = np.zeros((12, 9))
    for i in range(12):
        total = 0.0
        for j in range(9):
            total = total * 0.9 + np.sin(x[i, 1] * x[j, 2])
            out[i, j] = total
    return out


def parts_of_rows(x):
    out, v = np.zeros((12, 7)), x[0] * 0
    for t in range(12):
        v = v * 0.5 + np.tanh(x[t])
        out[t, 2:5] = v
    return out


def two(x):
    first, second, v = np.zeros((12, 3)), np.zeros(12), x[0] * 0
    for t in range(12):
        v = v * 0.5 + np.tanh(x[t])
        first[t] = v
        second[t] = v.sum()
    return first * second[:, None]


PROGRAMS = [
    forwards, backwards, columns, every_other, every_other_from_behind, elements_in_rows, parts_of_rows, two,
]  # fmt: skip


def loops_in(nodes: Any) -> list[Any]:
    loops = [node for node in nodes if is_loop(node)]
    return loops + [one for loop in loops for one in loops_in(loop.attributes["body"].graph.nodes)]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_no_loop_carries_the_array(program: Function) -> None:
    x = np.random.default_rng(0).normal(size=(12, 3))
    compiled = pb.compile(program)
    np.testing.assert_allclose(compiled(x), program(x), rtol=1e-12)
    loops = loops_in(roll(compiled.graph(x)).graph.nodes)
    inside = [node.operator for loop in loops for node in loop.attributes["body"].graph.nodes]
    assert loops and w.update_at not in inside[: -1 if program is elements_in_rows else None]

    def loss(x):
        out = program(x)
        return (out * out).sum() + out[2].sum()

    value, slope = pb.value_and_grad(loss)(x)
    both = pb.compile(pb.value_and_grad(loss))
    found, found_slope = both(x)
    np.testing.assert_allclose(found, value, rtol=1e-12)
    np.testing.assert_allclose(found_slope, slope, rtol=1e-10, atol=1e-13)


def test_what_is_read_while_it_is_written_is_carried() -> None:
    def running(x):
        out = np.zeros((12, 3))
        for t in range(1, 12):
            out[t] = out[t - 1] * 0.5 + np.tanh(x[t])
        return out

    x = np.random.default_rng(0).normal(size=(12, 3))
    compiled = pb.compile(running)
    np.testing.assert_allclose(compiled(x), running(x), rtol=1e-12)


def test_what_another_carry_was_a_step_ago_is_carried() -> None:
    """The array as it was before the last write is the value of another carry."""
    number, flat = np.dtype(float), Spec((8,), np.dtype(float))
    out, before, step = make_input(flat, "out"), make_input(flat, "before"), make_input(PLACE, "step")
    row, rows = (make_input(Spec(shape, number), "rows") for shape in ((1,), (8, 1)))
    body = Graph("step", (out, before, step, row), (w.update_at(out, row, step, steps=(1,), ragged=()), out))
    loop = make_loop(body, [constant(0.0, flat)] * 2, [counter(8), rows], [], 8)
    graph = verify(Graph("f", (rows,), tuple(loop.results)))
    given = [np.arange(8.0).reshape(8, 1)]
    changed = verify(stack_what_is_written(graph))
    for found, wanted in zip(evaluate_graph(changed, given), evaluate_graph(graph, given), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_reverse_reads_rows_of_the_cotangent() -> None:
    x = np.random.default_rng(0).normal(size=(12, 3))
    source = pb.compile(lambda x: (forwards(x) ** 2).sum()).backward_source(x)
    assert "saved_out" not in source, "rows of what was stacked, twice"
