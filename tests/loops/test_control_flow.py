"""Loops and choices as functions: values, first and second derivatives, eager and compiled; errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from extent import examples, machine_code
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uncompiled import run_uncompiled, uncompiled

import pullback as pb

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

Program = Callable[..., Any]
PROGRAMS: dict[str, tuple[Program, tuple[tuple[int, ...], ...]]] = {}


def program(*shapes: tuple[int, ...]) -> Callable[[Program], Program]:
    """Enter a scalar function of arrays of these shapes."""

    def enter(function: Program) -> Program:
        PROGRAMS[function.__name__] = function, shapes
        return function

    return enter


def drawn(shapes: tuple[tuple[int, ...], ...], seed: int = 0, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(0.3, 1.2, shape) * rng.choice([-1, 1], shape), dtype) for shape in shapes]


# --- programs -----------------------------------------------------------------------------------------------


@program((5, 3), (3, 3), (3,))
def recurrent(x: Any, w: Any, h: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = pb.tanh(w @ h + row)
        return h, h * row

    h, ys = pb.scan(step, h, x)
    return (h * h).sum() + (ys * ys * ys).sum()


@program((5, 3), (3,))
def reversed_with_nested_carry(x: Any, h: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        a, rest = carry["a"], carry["rest"]
        a = pb.sin(a) * row["x"] + rest[0]
        return {"a": a, "rest": (rest[1], a * 0.5)}, (a, {"sum": a.sum(), "none": None})

    last, (rows, more) = pb.scan(step, {"a": h, "rest": (h * 2, h)}, {"x": x}, reverse=True)
    weights = pb.arange(5, dtype=x.dtype)
    return last["a"].sum() + (rows[0] * rows[1]).sum() + (more["sum"] * weights).sum()


@program((3,))
def without_rows(x: Any) -> Any:
    last, ys = pb.scan(lambda c, _: (c * 0.9 + pb.sin(c), c.sum()), x, None, length=7)
    return last.sum() + (ys * ys).sum()


@program((3,))
def one_step(x: Any) -> Any:
    last, ys = pb.scan(lambda c, _: (c * c, c * 3), x, None, length=1)
    return (last * ys[0]).sum()


@program((3,))
def no_steps(x: Any) -> Any:
    last, ys = pb.scan(lambda c, _: (c * c, c * 3), x, None, length=0)
    return (last * last).sum() + ys.sum()


@program((4, 3))
def mapped(x: Any) -> Any:
    return (pb.map(lambda row: pb.exp(row) * row.sum(), x) ** 2).sum()


@program((6,), ())
def counted(x: Any, scale: Any) -> Any:
    return pb.fori_loop(0, 6, lambda i, total: pb.tanh(total + scale * x[i] * i), 0.0)


@program((6,))
def counted_from_two(x: Any) -> Any:
    return pb.fori_loop(2, 5, lambda i, total: total * x[i] + i, 1.0)


@program((6,), (3,))
def counted_by_data(x: Any, h: Any) -> Any:
    last = (x > 0).sum() - 1
    return (pb.fori_loop(0, last, lambda i, h: pb.sin(h) * x[i] + h, h) ** 2).sum()


@program((3,), (3,))
def chosen(x: Any, w: Any) -> Any:
    y = pb.cond(x.sum() > 0, lambda a: pb.log(abs(a)) * w, lambda a: a * a * a, x)
    return (y * y).sum()


@program((3,), (3,))
def chosen_with_structure(x: Any, w: Any) -> Any:
    found = pb.cond(
        w[0] > 0,
        lambda a, b: {"a": a["x"] * b, "n": 1, "more": [b]},
        lambda a, b: {"a": pb.exp(b), "n": 2, "more": [a["x"]]},
        {"x": x},
        w,
    )
    return (found["a"] * found["more"][0]).sum() * found["n"]


@program((3,), ())
def switched(x: Any, p: Any) -> Any:
    index = pb.asarray(p * 3).floor().long()
    branches = [lambda a: a * 2, lambda a: a * a, lambda a: pb.sin(a) * p, lambda a: (a * p).sum() + a]
    return (pb.switch(index, branches, x) ** 2).sum()


@program((3,), (3,))
def iterated(x: Any, w: Any) -> Any:
    def step(state: Any) -> Any:
        return {"x": state["x"] * (1.3 + 0.1 * w) + 0.1 * pb.sin(state["x"]), "n": state["n"] + 1}

    found = pb.while_loop(lambda state: (state["x"] ** 2).sum() < 100, step, {"x": x, "n": 0})
    return (found["x"] ** 2).sum() + found["n"]


@program((3,))
def never_iterated(x: Any) -> Any:
    return (pb.while_loop(lambda v: (v * v).sum() < 0, lambda v: pb.log(v - v), x) ** 2).sum()


@program(())
def newton(a: Any) -> Any:
    a = a * a + 1

    def step(state: Any) -> Any:
        root, _ = state
        return 0.5 * (root + a / root), root

    return pb.while_loop(lambda s: abs(s[0] - s[1]) > 1e-12, step, (a, a * 0))[0]


@program((4, 3), (3,))
def choice_in_a_loop(x: Any, h: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = pb.cond(row[0] > 0, lambda h: pb.tanh(h + row), lambda h: h * row, h)
        return h, h.sum()

    h, ys = pb.scan(step, h, x)
    return h.sum() + (ys * ys).sum()


@program((4, 3), (3,))
def loop_in_a_choice(x: Any, h: Any) -> Any:
    def long(h: Any) -> Any:
        return pb.scan(lambda h, row: (pb.sin(h * row), None), h, x)[0]

    def data(h: Any) -> Any:
        return pb.while_loop(lambda h: (h * h).sum() < 50, lambda h: h * 1.5 + 0.1 * x[0], h)

    return (pb.cond(h[0] > 0, long, data, h) ** 2).sum() + (pb.cond(h[0] > 0, data, long, h) ** 2).sum()


@program((4, 3), (3,))
def while_in_a_scan(x: Any, h: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        grown = pb.while_loop(lambda v: (v * v).sum() < 9, lambda v: v * (1.2 + 0.1 * row * row), row)
        h = pb.tanh(h + grown)
        return h, (h * grown).sum()

    h, ys = pb.scan(step, h, x)
    return h.sum() + (ys * ys).sum()


@program((3, 4, 2), (2,))
def scan_in_a_scan(x: Any, h: Any) -> Any:
    def outer(h: Any, block: Any) -> Any:
        h, ys = pb.scan(lambda h, row: (pb.sin(h + row), h * row), h, block, reverse=True)
        return h * 0.9, ys.sum()

    h, ys = pb.scan(outer, h, x)
    return h.sum() + (ys * ys).sum()


@program((3,), (3,))
def while_in_a_while(x: Any, w: Any) -> Any:
    def inner(v: Any) -> Any:
        return pb.while_loop(lambda u: (u * u).sum() < 4, lambda u: u * (1.1 + 0.1 * w * w), v * 0.5)

    return (pb.while_loop(lambda v: (v * v).sum() < 30, lambda v: v * 1.4 + 0.1 * inner(v), x) ** 2).sum()


@program((3,), (3,))
def choice_in_a_while(x: Any, w: Any) -> Any:
    def step(v: Any) -> Any:
        return pb.cond(
            (v * v).sum() > 5, lambda v: v * (1.1 + 0.1 * w * w), lambda v: v * 1.5 + 0.1 * pb.sin(w), v
        )

    return (pb.while_loop(lambda v: (v * v).sum() < 30, step, x) ** 2).sum()


@program((3,), (3, 3))
def choice_in_a_choice(x: Any, w: Any) -> Any:
    def inner(v: Any) -> Any:
        return pb.cond(v[1] > 0, lambda u: w @ u, lambda u: u * w[0], v)

    return (pb.cond(x[0] > 0, inner, lambda v: inner(v * 2) - v, x) ** 2).sum()


@program((3,), (3, 3))
def gradient_in_a_loop(x: Any, w: Any) -> Any:
    def loss(x: Any) -> Any:
        return (pb.tanh(w @ x) ** 2).sum()

    return (pb.fori_loop(0, 4, lambda i, x: x - 0.1 * pb.grad(loss)(x), x) ** 2).sum()


@program((3,), (3, 3))
def checkpointed(x: Any, w: Any) -> Any:
    layer = pb.checkpoint(lambda v, scale=1.0: pb.tanh(w @ v) * scale)
    return (layer(layer(x), scale=2.0) ** 2).sum()


@program((7, 3), (3,), (3, 3))
def checkpointed_scan(x: Any, h: Any, w: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = pb.tanh(w @ pb.sin(h) + row)
        return h, h * h

    h, ys = pb.scan(step, h, x, checkpoint=True)
    return h.sum() + (ys * ys).sum()


@program((7, 3), (3,), (3, 3))
def checkpointed_in_blocks(x: Any, h: Any, w: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = pb.tanh(w @ pb.sin(h) + row)
        return h, h * h

    h, ys = pb.scan(step, h, x, checkpoint_every=3)
    back, zs = pb.scan(step, h, x, reverse=True, checkpoint_every=2)
    return h.sum() + (ys * zs).sum() + back.sum()


@program((23, 3), (3,))
def checkpointed_in_blocks_of_blocks(x: Any, h: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = pb.tanh(pb.sin(h) + row)
        return h, h * h

    h, ys = pb.scan(step, h, x, checkpoint_every=(9, 4))
    return (
        h.sum()
        + (ys * ys).sum()
        + pb.fori_loop(0, 9, lambda i, v: pb.sin(v) * x[i], h, checkpoint_every=4).sum()
    )


@program((4, 3), (3, 3))
def python_loop_in_a_body(x: Any, w: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        for _ in range(30):
            h = pb.tanh(w @ h + row)
        return h, None

    return pb.scan(step, x[0], x)[0].sum()


@program((4, 3), (3,))
def loops_in_a_python_loop(x: Any, h: Any) -> Any:
    for _ in range(20):
        h = pb.scan(lambda h, row: (pb.sin(h + row) * row, None), h, x)[0] + 0.1
    return h.sum()


@program((4, 3), (3,))
def compiled_body(x: Any, h: Any) -> Any:
    inner = pb.compile(lambda h, row: pb.sin(h) * row)
    return pb.scan(lambda h, row: (inner(h, row) + h, None), h, x)[0].sum()


programs = pytest.mark.parametrize("name", PROGRAMS)
seeds = pytest.mark.parametrize("seed", [0, 1, 3])


def agree(actual: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol, atol=atol)


def slope(function: Program, arrays: list[np.ndarray], directions: list[np.ndarray]) -> float:
    """The derivative along a direction, by a difference of five points."""
    weights = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
    step = 1e-4
    return sum(
        weight * float(function(*(pb.tensor(a + k * step * d) for a, d in zip(arrays, directions)))) / step
        for k, weight in weights
    )


# --- derivatives --------------------------------------------------------------------------------------------


@programs
@seeds
def test_eager_gradient_is_the_difference_quotient(name: str, seed: int) -> None:
    function, shapes = PROGRAMS[name]
    arrays, directions = drawn(shapes, seed), drawn(shapes, seed + 50)
    found = pb.grad(function, tuple(range(len(shapes))))(*arrays)
    along = sum(float((one * direction).sum()) for one, direction in zip(found, directions))
    agree(along, slope(function, arrays, directions), rtol=1e-6, atol=1e-7)


@pytest.mark.drawn(4)
@programs
@seeds
@pytest.mark.part(8)
def test_compiled_values_and_gradients_are_the_eager_ones(name: str, seed: int) -> None:
    function, shapes = PROGRAMS[name]
    compiled = pb.compile(function)
    tensors = [pb.tensor(array, requires_grad=True) for array in drawn(shapes, seed)]
    expected = function(*tensors)
    slopes = pb.autograd.grad(expected, tensors, allow_unused=True, materialize_grads=True)
    arrays = [tensor.detach().numpy() for tensor in tensors]
    with machine_code(name, one_in=3):
        value = compiled(*tensors)
        found = pb.autograd.grad(value, tensors, allow_unused=True, materialize_grads=True)
        agree(value.detach(), expected.detach())
        agree(compiled(*arrays), expected.detach())
        both = pb.compile(pb.value_and_grad(function, tuple(range(len(shapes)))))
        value, gradients = both(*arrays)
    for one, other in zip(found, slopes):
        agree(one, other)
    agree(value, expected.detach())
    for one, other in zip(gradients, slopes):
        agree(one, other)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if "blocks" not in name])  # which are long
def test_second_derivatives(name: str) -> None:
    function, shapes = PROGRAMS[name]
    everything = tuple(range(len(shapes)))

    def norm(*arguments: Any) -> Any:
        return sum((one * one).sum() for one in pb.grad(function, everything)(*arguments))

    arrays = drawn(shapes, 1)
    eager = pb.grad(norm, everything)(*arrays)
    with machine_code(name, one_in=3):
        compiled = pb.compile(pb.grad(norm, everything))(*arrays)
    for one, other in zip(compiled, eager):
        agree(one, other, rtol=1e-7, atol=1e-8)


@programs
def test_source_runs_uncompiled(name: str) -> None:
    function, shapes = PROGRAMS[name]
    arrays = drawn(shapes, 1)
    both = pb.value_and_grad(function, tuple(range(len(shapes))))
    value, gradients = both(*arrays)
    program = pb.compile(both).programs(*arrays)[0]
    for one, other in zip(run_uncompiled(program, arrays), [value, *gradients]):
        agree(one, other)


@pytest.mark.parametrize(
    "name",
    [
        "recurrent",
        "counted",
        "counted_by_data",
        "switched",
        "iterated",
        "while_in_a_scan",
        "checkpointed_scan",
    ],
)
def test_float32(name: str) -> None:
    function, shapes = PROGRAMS[name]
    arrays = drawn(shapes, 1, "float32")
    everything = tuple(range(len(shapes)))
    value, gradients = pb.compile(pb.value_and_grad(function, everything))(*arrays)
    expected, slopes = pb.value_and_grad(function, everything)(*arrays)
    assert value.dtype == np.float32
    agree(value, expected, rtol=1e-4)
    for one, other in zip(gradients, slopes):
        assert one.dtype == np.float32
        agree(one, other, rtol=2e-3, atol=1e-4)


# --- nests drawn at random ----------------------------------------------------------------------------------

Block = Callable[[Any, Any, Any], Any]
"""From a vector, and rows and weights from outside, to a vector."""


def straight(number: int) -> Block:
    return [
        lambda v, x, w: pb.sin(v) + w,
        lambda v, x, w: v * w + x[1],
        lambda v, x, w: pb.tanh(v * x[0]) * 2.0,
        lambda v, x, w: v - 0.3 * (v * w).sum(),
    ][number]


def choice(first: Block, second: Block) -> Block:
    return lambda v, x, w: pb.cond(v.sum() > 0.2, lambda u: first(u, x, w), lambda u: second(u, x * 2, w), v)


def three_ways(first: Block, second: Block) -> Block:
    def run(v: Any, x: Any, w: Any) -> Any:
        branches = [lambda u: first(u, x, w), lambda u: u * w, lambda u: second(u, x, u)]
        return pb.switch((v[0] * 2).floor().long() + 1, branches, v)

    return run


def over_rows(first: Block, second: Block) -> Block:
    def run(v: Any, x: Any, w: Any) -> Any:
        last, ys = pb.scan(lambda u, row: (first(u, x, row), second(u * row, x, w)), v, x)
        return last + ys.sum(0)

    return run


def backwards_over_rows(first: Block, second: Block) -> Block:
    def run(v: Any, x: Any, w: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            u, t = carry
            return (first(u, x, w) + 0.1 * t, u * row), None

        (last, before), _ = pb.scan(step, (v, w), x, reverse=True)
        return second(last - before, x, w)

    return run


def grown(first: Block, second: Block) -> Block:
    def run(v: Any, x: Any, w: Any) -> Any:
        def step(state: Any) -> Any:
            size, u = state
            return size * 1.7 + 0.2, first(u, x, w)

        _, found = pb.while_loop(lambda s: s[0] < 3.0, step, ((v * v).sum(), v))
        return second(found, x, w)

    return run


def twice(first: Block, second: Block) -> Block:
    return lambda v, x, w: pb.fori_loop(0, 2, lambda i, u: second(first(u, x, w) + x[i], x, w), v)


def recomputed(first: Block, second: Block) -> Block:
    return lambda v, x, w: second(pb.checkpoint(lambda u: first(u, x, w))(v), x, w)


leaf = st.builds(straight, st.integers(0, 3))
nests = st.recursive(
    leaf,
    lambda inner: st.builds(
        lambda kind, first, second: kind(first, second),
        st.sampled_from([choice, three_ways, over_rows, backwards_over_rows, grown, twice, recomputed]),
        inner,
        inner,
    ),
    max_leaves=5,
)


@pytest.mark.drawn(6)
@settings(max_examples=examples(16), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(nests, st.integers(0, 3))
def test_a_nest_agrees_with_its_eager_self(block: Block, seed: int) -> None:
    require_agreement(block, seed)


@pytest.mark.drawn(6)
@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(nests, st.integers(0, 3))
def test_many_nests_agree_with_their_eager_selves(block: Block, seed: int) -> None:
    with uncompiled():
        require_agreement(block, seed)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("seed", range(3))
def test_choices_three_deep_have_source_that_runs(seed: int) -> None:
    """What an inner choice tapes is read on the side that does not make it, too."""
    inner = choice(straight(3), choice(straight(3), straight(0)))
    with uncompiled():
        require_agreement(choice(straight(0), inner), seed)


def require_agreement(block: Block, seed: int) -> None:
    def function(v: Any, x: Any, w: Any) -> Any:
        return (pb.tanh(block(v, x, w)) ** 2).sum()

    arrays = drawn(((3,), (3, 3), (3,)), seed)
    expected, slopes = pb.value_and_grad(function, (0, 1, 2))(*arrays)
    value, gradients = pb.compile(pb.value_and_grad(function, (0, 1, 2)))(*arrays)
    agree(value, expected)
    for one, other in zip(gradients, slopes):
        agree(one, other, rtol=1e-7, atol=1e-9)
    tensors = [pb.tensor(array, requires_grad=True) for array in arrays]
    pb.compile(function)(*tensors).backward()
    for tensor, other in zip(tensors, slopes):
        agree(0 * other if tensor.grad is None else tensor.grad, other, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("init", [0.0, 1, np.float32(2.0)])
@pytest.mark.parametrize("xs", [pb.arange(4, dtype=pb.float32), np.arange(4, dtype=np.float32)])
def test_each_step_runs_once_where_the_carry_becomes_of_another_kind(init, xs):
    calls = []

    def step(carry, x):
        calls.append(1)
        return carry * 0.5 + x, carry

    last, before = pb.scan(step, init, xs)
    assert len(calls) == len(xs)
    compiled = pb.compile(lambda xs: pb.scan(lambda carry, x: (carry * 0.5 + x, carry), init, xs))
    for one, other in zip((last, before), compiled(xs)):
        assert type(one) is type(other) and one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_step_that_draws_draws_once_where_the_carry_becomes_of_another_kind():
    rng, plain = np.random.default_rng(0), np.random.default_rng(0)
    noise = plain.normal(size=3)
    last, _ = pb.scan(lambda carry, x: (carry + x * rng.normal(), None), 0.0, np.ones(3))
    np.testing.assert_allclose(last, noise.sum())
    assert rng.normal() == plain.normal()


# --- loops that are run again -------------------------------------------------------------------------------


class Lengths:
    """Other lengths of steps each time that a loop is run, as if rounding had led to them."""

    def __init__(self) -> None:
        self._calls = np.zeros(1)

    def next(self, time: Any) -> Any:
        self._calls += 1.0
        return 0.1 + 0.1 * ((0.618 * self._calls[0]) % 1.0)


LENGTHS = Lengths()
length_of_step = pb.primitive(lambda time: np.asarray(LENGTHS.next(time)))


def area(slope: Any) -> Any:
    """The integral of a linear function, by midpoints; the last step of each part follows its loop."""

    def part(value: Any, ends: Any) -> Any:
        def step(state: Any) -> Any:
            time, value, _, _ = state
            length = np.minimum(length_of_step(time), ends[1] - time)
            return time + length, value + length * slope * (time + 0.5 * length), value, length

        state = (ends[0], value, value, ends[0])
        time, _, before, length = pb.while_loop(lambda state: state[0] < ends[1] - 1e-12, step, state)
        return before + length * slope * (time - 0.5 * length), None

    ends = np.linspace(0.0, 3.0, 4)
    return pb.scan(part, slope * 0.0, (ends[:-1], ends[1:]))[0]


def test_gradients_fit_the_steps_of_a_loop_that_is_run_again() -> None:
    np.testing.assert_allclose(pb.compile(pb.grad(area))(0.7), 4.5)


def test_backward_fits_the_steps_of_a_loop_that_it_runs_again() -> None:
    slope = pb.tensor(0.7, dtype=pb.float64, requires_grad=True)
    pb.compile(area)(slope).backward()
    np.testing.assert_allclose(slope.grad.numpy(), 4.5)


def test_a_bound_that_is_made_of_a_number_among_the_arguments() -> None:
    """What stands for a number of Python's counts as a value, and not as an integer that is known."""
    function = pb.compile(lambda t, x: pb.fori_loop(0, pb.ceil(2.0 * t).long(), lambda i, c: c * t, x))
    for t in (2.5, 0.7):
        np.testing.assert_allclose(function(t, np.ones(2)), np.full(2, t ** np.ceil(2 * t)))
