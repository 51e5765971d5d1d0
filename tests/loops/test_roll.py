"""Python loops in traces become loops again, and compute and differentiate as before."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pullback as pb
from pullback.codegen.rolling.roll import roll
from pullback.runtime.tracing.signature import Signature
from pullback.runtime.tracing.tracing import trace_call
from pullback.tracer.graph import Graph
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.loop import loops_of
from pullback.tracer.verify import verify

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

Function = Callable[..., Any]
STEPS = 40


def traced(function: Function, *arguments: np.ndarray) -> Graph:
    call = Signature(function, function.__name__).call(arguments, {})
    found = trace_call(function, call, function.__name__)
    assert not found.constants
    return found.graph


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) * 0.5 for shape in shapes]


# --- programs -----------------------------------------------------------------------------------------------


def network(x, w, h):
    total = 0.0
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
        total = total + (h * x[t]).sum()
    return total / len(x)


def predictor(x, w, h):
    """Reads the next row as well, and gives back the last state."""
    total = 0.0
    for t in range(len(x) - 1):
        h = np.tanh(w @ h + x[t])
        total = total + ((h - x[t + 1]) ** 2).sum()
    return total + h.sum()


def collected(x, w, h):
    """A list of values of all steps, stacked after the loop."""
    found = []
    for t in range(len(x)):
        h = np.sin(w @ h) + x[t]
        found.append(h)
    return (np.exp(-np.stack(found)) * x).sum()


def reversed_rows(x, w, h):
    for t in reversed(range(len(x))):
        h = np.tanh(w @ h + x[t]) * 0.9
    return (h * h).sum()


def columns(x, w, h):
    rows = x.T
    for t in range(len(x)):
        w = w * 0.9 + np.tanh(w @ w) * rows[:, t].sum()
    return w.sum() + h.sum()


def leapfrog(x, w, h):
    """Each step reads the two before it."""
    before, now = h, h * 0.9
    for t in range(len(x)):
        before, now = now, 2.0 * now - before + 0.01 * (w @ np.sin(now)) * x[t]
    return (now * before).sum()


def growing_numbers(x, w, h):
    """A Python number that advances with the steps."""
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t]) * (1.0 + 0.5 * t)
    return (h * h).sum()


def stencil(x, w, h):
    u = x
    for _ in range(STEPS):
        inner = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = np.concatenate([u[:1], inner, u[-1:]])
    return (u * u).sum() + (w.sum() * h).sum()


def widening(x, w, h):
    """The first step makes a matrix of a vector."""
    for t in range(len(x)):
        h = np.tanh(w * h + x[t])
    return h.sum()


def two_loops(x, w, h):
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
    for t in range(len(x)):
        h = np.sin(w.T @ h) * x[t]
    return h.sum()


def nested(x, w, h):
    """Inner loops of as many steps as outer ones."""
    for t in range(len(x)):
        row = x[t]
        for _ in range(12):
            row = 0.3 * np.tanh(w @ row) + 0.1 * np.sin(w.T @ row) + 0.1 * h
        h = h * 0.5 + row
    return (h * h).sum()


def peeled(x, w, h):
    """The first step differs."""
    state = None
    for t in range(len(x)):
        state = np.tanh(w @ h) if state is None else np.tanh(w @ state + x[t]) * x[0]
    return state.sum()


def pendulum(x, w, h):
    """Python computes the first sine."""
    angle, speed, total = 0.5, 0.0, 0.0
    for t in range(len(x)):
        speed = speed + 0.1 * (x[t, 0] - w[0, 0] * np.sin(angle))
        angle = angle + 0.1 * speed
        total = total + angle * angle
    return total + speed * h.sum()


def excited(x, w, h):
    """Python adds 1 and 0, and multiplying by this is no operation."""
    level = 0.0
    found = np.zeros(len(x))
    for t in range(len(x)):
        level = np.exp(-np.abs(x[t, 1])) * (1 + level)
        found[t] = level
    return (found * x[:, 0]).sum() * w.sum() * h.sum()


def decaying(x, w, h):
    """Plain arrays of one number, and a counter whose first number needs no operation."""
    state = np.zeros(4)
    for t in range(len(x)):
        state = w @ np.cos(state) + x[t] * t
    return (state * h).sum()


def lagged(x, w, h):
    """Two numbers, of the step before and of the one before that."""
    now, before, found = 0.25, 0.75, []
    for t in range(len(x)):
        now, before = x[t, 0] + w[0, 0] * now - w[1, 1] * before * np.abs(before), now
        found.append(now)
    return np.array(found).sum() + (h * before).sum()


def backwards(x, w, h):
    """From the last row to the first, some of them read already."""
    value = 0.5
    for t in reversed(range(len(x))):
        value = x[t, 0] * value * (1.0 - value) * w[0, 0]
    return value * x[0, 0] * h.sum()


def with_another_first_step(x, w, h):
    """As if it were a step, of a number that is 0.5 here and 0.75 there."""
    value = x[0, 0] * 0.5 * 0.25 * w[0, 0]
    for t in range(1, len(x)):
        value = x[t, 0] * value * (1.0 - value) * w[0, 0]
    return value * h.sum()


def filtered(x, w, h):
    """What the last step computes for a next one is not used."""
    total, mean, spread = 0.0, h, w
    for t in range(len(x)):
        spread = w @ spread @ w.T + np.eye(4)
        gain = spread / (1.0 + np.trace(spread))
        error = x[t] - mean
        total = total + (error * (gain @ error)).sum()
        mean, spread = w @ (mean + gain @ error), spread - gain @ spread
    return total


def handed_over(x, w, h):
    """Both results of an inner loop are what the next step of the outer one goes on with."""
    total, left = (x[0] * h).sum(), w * w
    for _ in range(12):
        left = np.sin(left) @ w * left
        for _ in range(20):
            left[1] = w[0] @ w[2]
            total = total - (w @ w[1]).sum()
    return left.sum() + total


PROGRAMS = [
    network, predictor, collected, reversed_rows, columns, leapfrog, growing_numbers, stencil, widening,
    two_loops, nested, peeled, pendulum, excited, decaying, lagged, backwards, with_another_first_step,
]  # fmt: skip
programs = pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
SHAPES = ((STEPS, 4), (4, 4), (4,))


@programs
def test_values_of_the_rolled_graph(function: Function) -> None:
    inputs = arrays(*SHAPES)
    graph = traced(function, *inputs)
    rolled = roll(graph)
    assert loops_of(rolled.graph.nodes), rolled.notes
    assert len(rolled.graph.nodes) < len(graph.nodes) / 3
    verify(rolled.graph)
    np.testing.assert_allclose(evaluate_graph(rolled.graph, inputs)[0], function(*inputs), rtol=1e-12)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [*PROGRAMS, filtered, handed_over], ids=lambda one: one.__name__)
def test_compiled_value_and_gradient_are_the_eager_ones(function: Function) -> None:
    inputs = arrays(*SHAPES)
    value, gradients = pb.value_and_grad(pb.compile(function), argnums=(0, 1, 2))(*inputs)
    expected, slopes = pb.value_and_grad(function, argnums=(0, 1, 2))(*inputs)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    for one, other in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [network, collected, leapfrog, stencil], ids=lambda one: one.__name__)
def test_backward_on_tensors(function: Function) -> None:
    """The pair of a forward and a backward function, with a tape that crosses from one to the other."""
    leaves = [pb.tensor(one, requires_grad=True) for one in arrays(*SHAPES)]
    same = [pb.tensor(one, requires_grad=True) for one in arrays(*SHAPES)]

    def on_tensors(*tensors: Any) -> Any:
        return function(*tensors)

    pb.compile(on_tensors)(*leaves).backward()
    on_tensors(*same).backward()
    for one, other in zip(leaves, same, strict=True):
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-9, atol=1e-11)


def test_second_derivative() -> None:
    def slope(h, x, w):
        return pb.grad(network, argnums=2)(x, w, h).sum()

    x, w, h = arrays((20, 3), (3, 3), (3,))
    actual = pb.grad(pb.compile(slope))(h, x, w)
    np.testing.assert_allclose(actual, pb.grad(slope)(h, x, w), rtol=1e-8, atol=1e-10)


# --- what is rolled -----------------------------------------------------------------------------------------


@pytest.mark.drawn(6)
def test_the_number_of_steps_is_no_part_of_the_source() -> None:
    @pb.compile
    def loss(x, w, h):
        return network(x, w, h)

    slope = pb.value_and_grad(loss, argnums=(1, 2))
    sources = [slope.source(*arrays((steps, 4), (4, 4), (4,))) for steps in (30, 300)]
    assert sources[0] == sources[1]
    for steps in (30, 300):
        slope(*arrays((steps, 4), (4, 4), (4,)))
    assert slope.cache_info().compilations + slope.cache_info().disk_hits <= 2


def test_the_last_step_is_in_the_loop() -> None:
    graph = traced_without_constants(filtered)
    (loop,) = loops_of(roll(graph).graph.nodes)
    assert loop.length == STEPS  # also where each step makes the same array anew

@pytest.mark.parametrize(
    "function", [pendulum, excited, decaying, lagged, backwards], ids=lambda one: one.__name__
)
def test_the_first_step_is_in_the_loop(function: Function) -> None:
    """What Python computes of plain numbers is no operation of the first step."""
    (loop,) = loops_of(roll(traced_without_constants(function)).graph.nodes)
    assert loop.length == STEPS


def test_what_only_resembles_a_first_step_is_not() -> None:
    (loop,) = loops_of(roll(traced_without_constants(with_another_first_step)).graph.nodes)
    assert loop.length == STEPS - 1


def traced_without_constants(function: Function) -> Graph:
    call = Signature(function, function.__name__).call(arrays(*SHAPES), {})
    return trace_call(function, call, function.__name__).graph


def test_a_gradient_in_a_trace_has_one_loop_forward_and_one_back() -> None:
    slope = pb.value_and_grad(pb.compile(network), argnums=(0, 1, 2))
    program = slope.programs(*arrays(*SHAPES))[0]
    assert [loop.backwards for loop in loops_of(program.graph.nodes)] == [False, True]


@pytest.mark.drawn(6)
def test_what_a_differentiated_function_leaves_behind_is_of_the_same_loop() -> None:
    """A value that it notes, and an answer that it asks for, run no second loop."""

    def slope(x, w, h):
        noted = []

        def loss(w):
            state, total = h, 0.0
            for t in range(len(x)):
                state = np.tanh(w @ state + x[t])
                noted.append(pb.stop_gradient(state))
                if state.max() < 2.0:
                    total = total + (state * x[t]).sum()
            return total

        value, gradient = pb.value_and_grad(loss)(w)
        return value, gradient, np.stack(noted), noted[-1] * 2

    compiled = pb.compile(slope)
    inputs = arrays(*SHAPES)
    for actual, expected in zip(compiled(*inputs), slope(*inputs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-10)
    program = compiled.programs(*inputs)[0]
    assert [loop.backwards for loop in loops_of(program.graph.nodes)] == [False, True]
    assert not [node for node in program.graph.nodes if len(node.operands) >= STEPS]


@pytest.mark.drawn(6)
def test_gradient_steps_of_a_function_with_a_loop_are_a_loop_of_loops() -> None:
    def loss(w, x, h):
        for t in range(len(x)):
            h = np.tanh(w @ h + x[t])
        return (h * h).sum()

    def descended(w, x, h):
        values = []
        for _ in range(30):
            value, slope = pb.value_and_grad(loss)(w, x, h)
            values.append(value)
            w = w - 0.1 * slope
        return w, np.stack(values)

    inputs = arrays((4, 4), (100, 4), (4,))
    compiled = pb.compile(descended)
    for actual, expected in zip(compiled(*inputs), descended(*inputs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9)
    (outer, *_) = loops_of(compiled.programs(*inputs)[0].graph.nodes)
    assert outer.length >= 29
    assert sorted(loop.backwards for loop in loops_of(outer.body.nodes)) == [False, True]


@pytest.mark.drawn(4)
def test_loops_in_loops() -> None:
    (outer,) = loops_of(roll(traced(nested, *arrays(*SHAPES))).graph.nodes)
    assert len(loops_of(outer.body.nodes)) == 1
    assert outer.length >= STEPS - 1


def test_a_stack_of_all_steps_is_no_concatenation() -> None:
    nodes = roll(traced(collected, *arrays(*SHAPES))).graph.nodes
    assert not any(node.operator.name == "concatenate" for node in nodes)


def test_explain_counts_the_products_of_a_reverse_loop() -> None:
    text = pb.compile(network).explain(*arrays(*SHAPES))
    assert "gemm into array d_w" in text and "operations" in text


def test_explain_says_what_was_rolled() -> None:
    text = pb.value_and_grad(pb.compile(network)).explain(*arrays(*SHAPES))
    assert f"rolled: {STEPS} steps" in text or f"rolled: {STEPS - 1} steps" in text
    assert "test_roll.py" in text


# --- what is not --------------------------------------------------------------------------------------------


def test_a_chain_over_elements_stays_one_loop() -> None:
    def chain(x):
        for _ in range(30):
            x = x * 0.5 + np.sin(x)
        return x

    graph = traced(chain, *arrays((1_000,)))
    assert not loops_of(roll(graph).graph.nodes)


@pytest.mark.drawn(4)
def test_totals_of_a_chain_over_elements_leave_it_one_loop() -> None:
    """The gradient by a number is one total in each step, for which no element waits."""

    def misfit(e, x):
        y = x
        for _ in range(12):
            y = y - (y - e * np.sin(y) - x) / (1.0 - e * np.cos(y))
        return (y * y).sum()

    slope = pb.value_and_grad(pb.compile(misfit))
    (x,) = arrays((1_000,))
    assert not loops_of(slope.programs(0.3, x)[0].graph.nodes)
    for actual, expected in zip(slope(0.3, x), pb.value_and_grad(misfit)(0.3, x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_a_chain_whose_elements_wait_for_a_total_is_a_loop() -> None:
    def normalised(x):
        for _ in range(30):
            x = np.exp(np.sin(x) / x.sum())
        return x

    (loop,) = loops_of(roll(traced(normalised, *arrays((1_000,)))).graph.nodes)
    assert loop.length == 30


def test_why_a_loop_is_not_rolled() -> None:
    def jumping(x, w, h):
        for t in range(len(x)):
            h = np.tanh(w @ h + x[t * t % len(x)]) * 0.9
        return h.sum()

    graph = traced(jumping, *arrays(*SHAPES))
    rolled = roll(graph)
    assert rolled.graph is graph
    assert any("places that do not advance by a constant" in note for note in rolled.notes)


def weighted(x, w, h):
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t]) * (1.0 / (1 + t))
    return h.sum()


@pytest.mark.parametrize("steps", [STEPS, 65])
def test_irregular_numbers_are_rows_of_a_table(steps: int) -> None:
    inputs = arrays((steps, 4), (4, 4), (4,))
    found = trace_call(weighted, Signature(weighted, "weighted").call(inputs, {}), "weighted")
    rolled = roll(found.graph)
    assert loops_of(rolled.graph.nodes), rolled.notes
    (value,) = evaluate_graph(rolled.graph, [*inputs, *found.constants])
    np.testing.assert_allclose(value, weighted(*inputs), rtol=1e-12)


def test_rows_of_which_some_are_constants() -> None:
    def driven(x, w, h):
        for t in range(24):
            h = np.tanh(w @ h + np.full(4, np.sin(t)) * x[0])  # full of zeros first, then arrays of the trace
        return h.sum()

    inputs = arrays(*SHAPES)
    slope = pb.value_and_grad(pb.compile(driven), argnums=(0, 1, 2))
    assert loops_of(slope.programs(*inputs)[0].graph.nodes)
    for found, wanted in zip(slope(*inputs)[1], pb.grad(driven, argnums=(0, 1, 2))(*inputs)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_few_steps_are_left_alone() -> None:
    graph = traced(network, *arrays((5, 4), (4, 4), (4,)))
    rolled = roll(graph)
    assert rolled.graph is graph and not rolled.notes


def _products_of_windows(x, w):
    width = len(x) - len(w) + 1
    return (sum(x[t : t + width] @ w[t] for t in range(len(w))) ** 2).sum()


@pytest.mark.parametrize("steps", [9, 16])
def test_sums_of_products_that_become_one_product_are_left_alone(steps: int) -> None:
    """Neither they nor their gradients are loops: each is one product."""
    inputs = arrays((40, 3), (steps, 3, 5))
    slope = pb.value_and_grad(pb.compile(_products_of_windows), argnums=(0, 1))
    for found, wanted in zip(slope(*inputs)[1], pb.grad(_products_of_windows, argnums=(0, 1))(*inputs)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    (program,) = slope.programs(*inputs)
    assert not loops_of(program.graph.nodes)
    assert program.source.count("gemm(") == 3


def test_products_of_vectors_become_a_loop() -> None:
    """BLAS has no single call for them."""

    def total(x, w):
        return sum(w[t] @ x[t] for t in range(len(x))).sum()

    assert loops_of(roll(traced(total, *arrays((30, 4), (30, 5, 4)))).graph.nodes)


def test_a_custom_function_in_a_loop_keeps_its_backward() -> None:
    class Doubled(pb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

    def loss(x, w):
        for _ in range(STEPS):
            x = np.tanh(w @ x)
        return Doubled.apply(x).sum()

    x, w = (pb.tensor(one) for one in arrays((4,), (4, 4)))
    plain = pb.grad(loss)(x, w)
    np.testing.assert_allclose(pb.grad(pb.compile(loss))(x, w).numpy(), plain.numpy(), rtol=1e-10)


def test_a_detached_value_stays_without_gradient() -> None:
    def loss(w, x):
        h = x[0]
        for t in range(len(x)):
            h = np.tanh(w @ h + x[t])
            with pb.no_grad():
                scale = (h * h).sum()
            h = h / (1.0 + scale)
        return h.sum()

    w, x = arrays((4, 4), (STEPS, 4))
    np.testing.assert_allclose(pb.grad(pb.compile(loss))(w, x), pb.grad(loss)(w, x), rtol=1e-10)


def test_a_derivative_inside_sees_its_own_argument_alone() -> None:
    """The inner gradient is of y, although the inner function reads x, of which y is made, as well."""

    def outer(x):
        def inner(y):
            for _ in range(STEPS):
                y = np.tanh(y * x) + x
            return y.sum()

        return (pb.grad(inner)(x) * x).sum()

    (x,) = arrays((4,))
    np.testing.assert_allclose(pb.compile(outer)(x), outer(x), rtol=1e-10)


def test_arrays_that_each_step_takes_are_not_copied_for_little_work():
    """A penalty over the parameters of a model."""
    arrays = [np.full(3, float(k)) for k in range(20)]
    function = pb.compile(lambda *parameters: sum(np.sum(one * one) for one in parameters))
    assert function(*arrays) == sum(np.sum(one * one) for one in arrays)
    source = pb.value_and_grad(function, argnums=tuple(range(20))).source(*arrays)
    assert "concatenate" not in source


@pytest.mark.parametrize("derive", [lambda f: f, pb.grad])
def test_arrays_that_each_step_makes_anew_are_one_constant(derive: Any) -> None:
    def steps(a: Any) -> Any:
        x = a[0]
        for _ in range(40):
            x = np.tanh((np.eye(3) - 0.1 * a) @ x) + np.array([1.0, 2.0, 3.0])
        return x.sum()

    a = np.cos(np.arange(9.0)).reshape(3, 3)
    compiled = pb.compile(derive(steps))
    np.testing.assert_allclose(compiled(a), derive(steps)(a), rtol=1e-12)
    assert "captured_2" not in compiled.source()
    assert "rolled: 40 steps" in compiled.explain()


def test_sizes_of_arrays_that_each_step_makes_anew_are_one() -> None:
    """Else loops inside, whose bodies know these sizes, would differ from step to step."""

    def steps(a: Any) -> Any:
        def grown(bound: Any) -> Any:
            weights = np.array([1.0, 2.0, 3.0])

            def twice(x: Any) -> Any:
                return pb.fori_loop(0, 2, lambda _, x: x + weights * np.ones(len(weights)), x)

            return pb.while_loop(lambda x: x.sum() < bound, twice, weights)

        return np.stack([grown(bound)[0] for bound in a]).sum()

    a = np.linspace(5.0, 90.0, 8)
    compiled = pb.compile(steps)
    np.testing.assert_allclose(compiled(a), steps(a), rtol=1e-12)
    assert "not rolled" not in compiled.explain()
    assert "rolled: 8 steps" in compiled.explain()


@pytest.mark.drawn(4)
def test_equal_values_that_each_step_makes_of_nothing_are_one() -> None:
    """The triangles that `eigh` reads take positions; passes leave those in front of what they make anew."""

    def steps(a: Any) -> Any:
        x = a + 0.0
        total = 0.0
        for _ in range(12):
            values, vectors = np.linalg.eigh(0.5 * (x + x.T))
            x = 0.5 * (vectors / (1.0 + values**2)) @ vectors.T @ a
            total = total + values.sum()
        return total + np.abs(np.linalg.eigvals(x)).sum()

    a = np.cos(np.arange(9.0)).reshape(3, 3) + np.diag([1.0, 2.0, 3.0])
    compiled = pb.compile(pb.value_and_grad(steps))
    value, gradient = compiled(a)
    expected, expected_gradient = pb.value_and_grad(steps)(a)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8)
    assert "rolled: 12 steps" in compiled.explain()


def test_inputs_of_one_shape_are_not_one_value() -> None:
    def steps(x: Any, *matrices: Any) -> Any:
        for matrix in matrices:
            for _ in range(2):
                x = np.tanh(matrix @ x) + np.sin(matrix @ x) * np.cos(x) - 0.1 * x * np.exp(-x * x)
        return x.sum()

    matrices = [np.cos(np.arange(9.0) + k).reshape(3, 3) for k in range(12)]
    x = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(pb.compile(steps)(x, *matrices), steps(x, *matrices), rtol=1e-12)


def long_steps(x: Any, angles: Any) -> Any:
    """Four layers of many operations each."""
    for layer in range(len(angles)):
        for k in range(20):
            left, right = x[: k + 1], x[k + 1 :]
            x = np.concatenate([np.cos(angles[layer, k]) * right, left * right.sum() / (2 + k)])
    return (x * x).sum()


@pytest.mark.drawn(6)
def test_few_steps_are_a_loop_where_they_are_long() -> None:
    x, angles = arrays((24,), (4, 20))
    graph = traced(long_steps, x, angles)
    assert any("4 steps" in note or "3 steps" in note for note in roll(graph).notes)
    derive = pb.value_and_grad(long_steps, argnums=(0, 1))
    value, gradients = pb.compile(derive)(x, angles)
    expected, expected_gradients = derive(x, angles)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for one, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.drawn(3)
def test_few_long_steps_with_arrays_of_their_own_are_left_alone() -> None:
    """To stack the arrays would be a copy in every call."""

    def layers(x, *weights):
        for w in weights:
            for k in range(20):
                x = np.tanh(w @ x) * np.exp(-x * x) + x[k % 3]
        return x.sum()

    x, *weights = arrays((3,), *((3, 3),) * 4)
    graph = traced(layers, x, *weights)
    assert not any(note.startswith("rolled: 4 steps") for note in roll(graph).notes)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("scales", [[1] * 3 + [2] * 2 + [3] * 9, [1] * 3 + [2] * 2 + [3] * 12], ids=len)
def test_loops_right_behind_each_other_whose_last_steps_are_shorter(scales: list[int]) -> None:
    def scaled(x):
        total = 0 * x
        for scale in scales:
            if x > 1:
                x = x / 2
                if x > 20:
                    total = total + scale * x
            x = x * 3
        return total

    for x in (np.array(1000.0), np.array(2500.0)):
        assert pb.compile(scaled)(x) == pytest.approx(scaled(x), rel=1e-12)
        value, slope = pb.compile(pb.value_and_grad(scaled))(x)
        assert value == pytest.approx(scaled(x), rel=1e-12) and slope == pytest.approx(scaled(x) / x)


def test_the_reverse_reads_what_a_carry_becomes() -> None:
    """It lies in the row behind the one that the carry was, and is neither computed again nor kept twice."""

    def fitted(rate, y, observed):
        loss = 0.0
        for t in range(len(observed)):
            y = y + rate * (y * y - y)
            loss = loss + np.sum((y - observed[t]) ** 2)
        return loss

    inputs = arrays((), (5,), (30, 5))
    slope = pb.value_and_grad(pb.compile(fitted), argnums=(0, 1))
    for found, wanted in zip(slope(*inputs)[1], pb.grad(fitted, argnums=(0, 1))(*inputs)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    (program,) = slope.programs(*inputs)
    assert "(y_1[m - i, j] - observed[m - i - 1, j]) * 2.0" in program.source
    scratch = [one.dims for one in program.lowered.filled if one.role == "scratch"]
    assert scratch == [(31, 5), (2, 5)]


@pytest.mark.drawn(4)
def test_results_of_inner_loops_stay_with_them() -> None:
    """Where some results of a solver's loop are read at once and others at the end of all steps."""

    def ends(x: Any, rates: np.ndarray) -> Any:
        found = []
        for rate in rates:
            run = solve_ivp(lambda t, y, rate=rate: -x * rate * y, (0.0, 1.0), np.ones(2), rtol=1e-6)
            found.append(run.y[0, -1])
        return np.sum(np.array(found) ** 2)

    compiled, rates = pb.value_and_grad(pb.compile(ends)), np.linspace(1.0, 2.0, 10)
    for got, expected in zip(compiled(1.3, rates), pb.value_and_grad(ends)(1.3, rates)):
        np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert compiled.source().count("while ") <= 2
