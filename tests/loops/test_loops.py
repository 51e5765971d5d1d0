"""The loop as an operator: its value, its code, its reverse, and what passes do to it."""

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from uncompiled import run_uncompiled

import pullback as pb
from pullback.codegen.derivatives.differentiate import active_nodes, differentiate
from pullback.codegen.pipeline import build_forward, build_pair
from pullback.codegen.rewriting.simplify import REWRITES, simplify
from pullback.codegen.rolling.bodies import prune_loops, share_loops, tidy_loops
from pullback.tracer.errors import ShapeError
from pullback.tracer.graph import Graph, Node, constant, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.loop import LoopNode, loops_of, make_loop
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.contraction import contract
from pullback.tracer.spec import Spec
from pullback.tracer.verify import verify

pytestmark = pytest.mark.usefixtures("partly_compiled")

FLOAT = np.dtype("float64")
STEPS, WIDTH = 6, 4


def parameter(name: str, *shape: int) -> Node:
    return make_input(Spec(shape, FLOAT), name)


def zero(*shape: int) -> Node:
    return constant(0.0, Spec(shape, FLOAT))


def total(x: Node) -> Node:
    return r.sum_(x, dims=tuple(range(x.spec.ndim)), keepdim=False)


def values(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=node.shape) for node in graph.inputs]


def recurrent_network(backwards: bool = False) -> Graph:
    """Hidden values, their stack, the stack of those before each step, and a running total."""
    hidden, row, weight, running = (
        parameter("h", WIDTH), parameter("row", WIDTH), parameter("w", WIDTH, WIDTH), parameter("running"),
    )  # fmt: skip
    after = e.tanh(contract(weight, hidden, subscripts="ij,j->i") + row).named("h")
    body = Graph(
        "step", (hidden, running, row, weight), (after, running + total(after * after), after, hidden)
    )
    x, start, w = parameter("x", STEPS, WIDTH), parameter("start", WIDTH), parameter("w", WIDTH, WIDTH)
    loop = make_loop(body, [start, zero()], [x], [w], STEPS, backwards=backwards)
    last, summed, stack, before = loop.results
    return verify(Graph("network", (x, start, w), (last, summed, e.exp(stack), total(before * stack))))


def fibonacci() -> Graph:
    """Two carries, one of which is the other one step before; nothing is stacked."""
    now, before = parameter("now", WIDTH), parameter("before", WIDTH)
    body = Graph("step", (now, before), (now + before * 0.5, now))
    a, b = parameter("a", WIDTH), parameter("b", WIDTH)
    return verify(Graph("fibonacci", (a, b), tuple(make_loop(body, [a, b], [], [], STEPS).results)))


def stencil() -> Graph:
    """A carry whose neighbours are read: it may not be written in place."""
    u = parameter("u", WIDTH)
    inner = m.slice_(u, starts=(2,), stops=(WIDTH,), steps=(1,)) - m.slice_(
        u, starts=(0,), stops=(WIDTH - 2,), steps=(1,)
    )
    body = Graph("step", (u,), (u + m.pad(inner, widths=((1, 1),), value=0.0),))
    start = parameter("start", WIDTH)
    return verify(Graph("stencil", (start,), tuple(make_loop(body, [start], [], [], STEPS).results)))


def nested() -> Graph:
    """A loop in a loop: each outer step runs an inner loop over the columns of its row."""
    carry, element, scale = parameter("c"), parameter("element"), parameter("scale")
    inner = Graph("inner", (carry, element, scale), (e.sin(carry * scale) + element, carry * element))
    start, row, factor = parameter("start"), parameter("row", WIDTH), parameter("factor")
    after, products = make_loop(inner, [start], [row], [factor], WIDTH).results
    outer = Graph("outer", (start, row, factor), (after, products))
    x, first, w = parameter("x", STEPS, WIDTH), parameter("first"), parameter("w")
    last, stack = make_loop(outer, [first], [x], [w], STEPS).results
    return verify(Graph("nested", (x, first, w), (last, total(stack * stack))))


def swapped() -> Graph:
    """Carries that change places: what one becomes is the other as it was."""
    a, b, row = parameter("a", WIDTH), parameter("b", WIDTH), parameter("row", WIDTH)
    body = Graph("step", (a, b, row), (b * 2.0, a + row, b))
    x, first, second = parameter("x", STEPS, WIDTH), parameter("first", WIDTH), parameter("second", WIDTH)
    return verify(
        Graph("swapped", (x, first, second), tuple(make_loop(body, [first, second], [x], [], STEPS).results))
    )


GRAPHS: dict[str, Callable[[], Graph]] = {
    "network": recurrent_network,
    "backwards": lambda: recurrent_network(backwards=True),
    "fibonacci": fibonacci,
    "stencil": stencil,
    "nested": nested,
    "swapped": swapped,
}
graphs = pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS.keys())


def close(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


# --- values -------------------------------------------------------------------------------------------------


def test_value_is_that_of_the_python_loop() -> None:
    x, start, w = (np.random.default_rng(1).normal(size=shape) for shape in ((6, 4), (4,), (4, 4)))
    last, summed, stack, product = evaluate_graph(recurrent_network(), [x, start, w])
    hidden, before, after = start, [], []
    for row in x:
        before.append(hidden)
        hidden = np.tanh(w @ hidden + row)
        after.append(hidden)
    expected = (hidden, np.sum(np.square(after)), np.exp(after), np.sum(np.array(before) * after))
    close((last, summed, stack, product), expected)


@graphs
def test_code_agrees_with_the_interpreter(make: Callable[[], Graph]) -> None:
    graph = make()
    arrays = values(graph)
    program = build_forward(graph)
    expected = evaluate_graph(graph, arrays)
    close(program(arrays), expected)
    close(run_uncompiled(program, arrays), expected)


def test_an_operand_of_another_shape_is_refused() -> None:
    carry = parameter("c", WIDTH)
    body = Graph("step", (carry,), (total(carry),))
    with pytest.raises(ShapeError, match="carry 0"):
        make_loop(body, [parameter("start", WIDTH)], [], [], STEPS)
    with pytest.raises(ShapeError, match="operand 0"):
        make_loop(Graph("step", (carry,), (carry,)), [parameter("start")], [], [], STEPS)


# --- gradients ----------------------------------------------------------------------------------------------


def scalar_loss(graph: Graph) -> Graph:
    loss = sum((total(e.sin(output)) for output in graph.outputs), start=zero())
    return graph.with_outputs([loss])


def differences(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    found = []
    for position, array in enumerate(arrays):
        gradient = np.zeros(array.shape)
        for place in np.ndindex(*array.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [one.copy() for one in arrays]
                moved[position][place] += step
                sides.append(evaluate_graph(graph, moved)[0])
            gradient[place] = (sides[0] - sides[1]) / 2e-5
        found.append(gradient)
    return found


def pair_gradients(graph: Graph, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    pair = build_pair(graph, tuple(range(len(arrays))))
    produced = pair.forward(arrays)
    places = {"input": arrays, "output": produced, "residual": produced[len(graph.outputs) :]}
    saved = [places[kind][index] for kind, index in pair.backward_inputs]
    return pair.backward([*saved, np.ones(())])


@graphs
def test_gradient_against_differences(make: Callable[[], Graph]) -> None:
    graph = scalar_loss(make())
    arrays = values(graph)
    for actual, expected in zip(pair_gradients(graph, arrays), differences(graph, arrays), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.drawn(4)
@graphs
def test_second_derivative_against_differences(make: Callable[[], Graph]) -> None:
    """The reverse of a loop is a loop, which has a reverse again."""
    graph = scalar_loss(make())
    slopes = differentiate(graph.inputs, {graph.outputs[0]: constant(1.0, Spec((), FLOAT))})
    first = graph.with_outputs([sum((total(e.sin(one)) for one in slopes if one is not None), start=zero())])
    arrays = values(first)
    for actual, expected in zip(pair_gradients(first, arrays), differences(first, arrays), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


def test_gradients_of_weights_are_one_product_of_stacks() -> None:
    """The sum over steps of outer products is one product of matrices: no matrix is added to in each step."""
    graph = recurrent_network()
    graph = graph.with_outputs([total(graph.outputs[0])])
    (slope,) = differentiate([graph.inputs[2]], {graph.outputs[0]: constant(1.0, Spec((), FLOAT))})
    assert slope is not None and slope.operator is contract
    assert slope.operands[0].shape == slope.operands[1].shape == (STEPS, WIDTH)


def test_what_is_cheap_is_computed_again() -> None:
    """The derivative of a square needs what is squared: that is cheap, so what it is made of is taped."""
    carry, row = parameter("c", WIDTH), parameter("row", WIDTH)
    body = Graph("step", (carry, row), (e.square(carry * row + 1.0),))
    x, start = parameter("x", STEPS, WIDTH), parameter("start", WIDTH)
    (last,) = make_loop(body, [start], [x], [], STEPS).results
    graph = Graph("f", (x, start), (total(last),))
    (slope,) = differentiate([start], {graph.outputs[0]: constant(1.0, Spec((), FLOAT))})
    assert slope is not None
    joint = share_loops(graph.with_outputs([*graph.outputs, slope]))
    forward, reverse = sorted(loops_of(joint.nodes), key=lambda one: one.backwards)
    assert len(forward.body.outputs) == 2 and forward.body.outputs[1] is forward.body.inputs[0]
    assert reverse.backwards


# --- code ---------------------------------------------------------------------------------------------------


def test_source_does_not_grow_with_the_steps() -> None:
    def source(steps: int) -> str:
        carry, row = parameter("c", WIDTH), parameter("row", WIDTH)
        body = Graph("step", (carry, row), (e.sin(carry) + row, carry))
        x, start = parameter("x", steps, WIDTH), parameter("start", WIDTH)
        return build_forward(
            Graph("f", (x, start), tuple(make_loop(body, [start], [x], [], steps).results))
        ).source

    assert source(10) == source(1_000)


@pytest.mark.drawn(4)
def test_the_slopes_of_a_step_are_computed_once() -> None:
    """Of a method for differential equations: each is read by the loops over all later ones."""

    def slope(y: Any) -> Any:
        prey, predators = y
        eaten = prey * predators
        return pb.stack([prey - eaten, eaten - predators])

    def step(carry: Any, _: Any) -> Any:
        slopes = [slope(carry)]
        for stage in range(1, 6):
            slopes.append(slope(carry + sum(one * (0.1 + stage + k) for k, one in enumerate(slopes))))
        return carry + 0.01 * sum(slopes), None

    function = pb.compile(lambda y: pb.scan(step, y, None, 5)[0])
    products = re.findall(r"^ +eaten\w* = ", function.source(np.ones(2)), re.MULTILINE)
    assert len(products) <= 2 * 2 * 6  # forward and backward, where one of two parts is chosen twice


def test_a_carry_is_stored_as_small_as_its_readers_allow() -> None:
    """In place, in two rows that take turns, or whole."""

    def rows(graph: Graph) -> list[int]:
        return [one.rows for one in build_forward(graph).account.arrays if one.rows]

    assert rows(stencil()) == [2]
    carry, row = parameter("c", WIDTH), parameter("row", WIDTH)
    body = Graph("step", (carry, row), (carry + row, carry))
    x, start = parameter("x", STEPS, WIDTH), parameter("start", WIDTH)
    last, stack = make_loop(body, [start], [x], [], STEPS).results
    assert rows(Graph("f", (x, start), (e.exp(last),))) == [1]
    assert rows(Graph("f", (x, start), (last,))) == []  # the output is that row
    assert rows(Graph("f", (x, start), (last, total(e.exp(stack))))) == [STEPS + 1]


def test_what_no_step_changes_is_computed_before_the_loop() -> None:
    carry, factor = parameter("c", WIDTH), parameter("factor", 2 * WIDTH)
    first = m.slice_(factor, starts=(0,), stops=(WIDTH,), steps=(1,))
    body = Graph("step", (carry, factor), (carry * e.exp(first),))
    start, given = parameter("start", WIDTH), parameter("given", 2 * WIDTH)
    loop = make_loop(body, [start], [], [given], STEPS)
    graph = Graph("f", (start, given), (loop.result(0),))
    tidy = tidy_loops(graph)
    (left,) = loops_of(tidy.nodes)
    assert [node.operator.name for node in left.body.nodes if node.operands] == ["multiply"]
    close(evaluate_graph(tidy, values(graph)), evaluate_graph(graph, values(graph)))


def test_rows_are_stacked_in_the_shape_in_which_steps_read_them() -> None:
    carry, row = parameter("c", WIDTH), parameter("row", 1, WIDTH, 2)
    pairs = m.reshape(row, shape=(WIDTH, 2))
    merged = m.reshape(row, shape=(2 * WIDTH,))  # of which each step needs an array of its own
    sums = r.sum_(pairs, dims=(1,), keepdim=False)
    body = Graph("step", (carry, row), (e.sin(sums) + e.cos(carry) * total(merged), row))
    x, start = parameter("x", STEPS, 1, WIDTH, 2), parameter("start", WIDTH)
    graph = Graph("f", (x, start), tuple(make_loop(body, [start], [x], [], STEPS).results))
    tidy = tidy_loops(graph)
    (loop,) = loops_of(tidy.nodes)
    shapes = [node.shape for node in loop.body.nodes if node.operator is m.reshape]
    assert shapes == [(2 * WIDTH,)] and len(loop.split(loop.node.operands)[1]) == 2
    order = [node.operator.name for node in loop.body.nodes if node.operator in (e.sin, e.cos)]
    assert order == ["sin", "cos"]  # what depends on the row is not moved behind the rest
    close(evaluate_graph(tidy, values(graph)), evaluate_graph(graph, values(graph)))
    close(build_forward(graph)(values(graph)), evaluate_graph(graph, values(graph)))


def test_slices_of_a_concatenation_that_lie_in_one_piece_read_that() -> None:
    a, b, c = parameter("a", 3), parameter("b", 4), parameter("c", 0)
    whole = m.concatenate(a, c, b, dim=0)
    bounds = ((0, 3, 1), (3, 7, 2), (1, 2, 1), (2, 5, 1))
    parts = [m.slice_(whole, starts=(start,), stops=(stop,), steps=(step,)) for start, stop, step in bounds]
    graph = Graph("f", (a, b, c), tuple(parts))
    simple = simplify(graph)
    made_of = [{node.operator.name for node in Graph("", (), (output,)).nodes} for output in simple.outputs]
    assert ["concatenate" in names for names in made_of] == [False, False, False, True]
    close(evaluate_graph(simple, values(graph)), evaluate_graph(graph, values(graph)))


def test_vectors_made_of_elements_again_and_again_stay_small() -> None:
    """The ways from the last elements to the first double with every step."""

    def descended(start: Any) -> Any:
        def cost(a: Any, b: Any) -> Any:
            return a @ a - 0.5 * (b[0] ** 2 + b[1] ** 2) + a @ b

        a, b = start, start * 0.5
        for _ in range(3):
            for _ in range(3):
                a = a - 0.1 * pb.grad(lambda u: cost(u, b))(a)  # noqa: B023
            b = b + 0.1 * pb.grad(lambda v: cost(a, v))(b)  # noqa: B023
        return cost(a, b)

    assert len(pb.compile(pb.value_and_grad(descended)).source(np.ones(2)).splitlines()) < 1_000


def test_what_each_step_reads_is_not_written_over() -> None:
    """An array from before the loop is read in the last step as in the first."""
    carry, given = parameter("c", WIDTH), parameter("given", WIDTH)
    inside = (given * 2.0).named("inside")
    body = Graph(
        "step",
        (carry, given),
        (carry * r.sum_(inside, dims=(0,), keepdim=False) + m.flip(inside, dims=(0,)),),
    )
    start, x = parameter("start", WIDTH), parameter("x", WIDTH)
    before = e.tanh(m.flip(x, dims=(0,))) * 0.1
    graph = Graph("f", (start, x), (make_loop(body, [start], [], [before], STEPS).result(0),))
    arrays = values(graph)
    close(build_forward(graph)(arrays), evaluate_graph(graph, arrays))


def test_pruning_takes_out_what_nobody_reads() -> None:
    graph = recurrent_network()
    (loop,) = loops_of(prune_loops(graph.with_outputs(graph.outputs[:1])).nodes)
    assert loop.carries == 1 and len(loop.body.outputs) == 1
    assert len(loop.node.operands) == 3


def test_a_carry_that_never_changes_is_a_constant() -> None:
    carry, same = parameter("c", WIDTH), parameter("same", WIDTH)
    body = Graph("step", (carry, same), (carry * same, same))
    start, factor = parameter("start", WIDTH), parameter("factor", WIDTH)
    loop = make_loop(body, [start, factor], [], [], STEPS)
    graph = prune_loops(Graph("f", (start, factor), (loop.result(0), loop.result(1) * 2.0)))
    (left,) = loops_of(graph.nodes)
    assert left.carries == 1 and left.node.operands == (start, factor)
    assert graph.outputs[1].operands[0] is factor


def test_equal_structures_of_bodies() -> None:
    bodies = [
        LoopNode(make().outputs[0].operands[0]).node.attributes["body"]
        for make in (fibonacci, fibonacci, stencil)
    ]
    assert bodies[0].structure == bodies[1].structure != bodies[2].structure


def test_rewrites_of_single_operators_are_tried_first() -> None:
    """What others are asked about is simple then: the reverse of a stencil had a carry of zeros more."""
    assert all(
        found[0].__module__.endswith("identities") for found in map(REWRITES.get, ("add", "multiply", "sum"))
    )


@pytest.mark.drawn(4)
@pytest.mark.parametrize("depth", [2, 4])
def test_more_carries_of_a_nest_of_loops_are_no_more_searches_for_what_depends(depth: int) -> None:
    def nest(values: tuple[Any, ...], levels: int) -> tuple[Any, ...]:
        if levels == 0:
            return tuple(map(pb.sin, values))
        return pb.fori_loop(0, 3, lambda _, inner: nest(inner, levels - 1), values)

    def searches(carries: int) -> int:
        found = 0

        def count(frame: Any, event: str, _: Any) -> None:
            nonlocal found
            found += event == "call" and frame.f_code is active_nodes.__code__

        function = pb.compile(lambda x: sum(nest(tuple(x * (k + 1.0) for k in range(carries)), depth)))
        sys.setprofile(count)
        try:
            pb.value_and_grad(function).programs(1.0)
        finally:
            sys.setprofile(None)
        return found

    assert searches(4) == searches(2) > depth
