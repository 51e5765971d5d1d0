"""Sizes have names: code that computes with them serves every shape, and none is taken for another."""

import copy
import math
import pickle
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.tracer.dims import Dim, Source, canonical, equated, formula_of, named
from pullback.tracer.graph import Graph, constant, make_input
from pullback.tracer.ops.control import Body
from pullback.tracer.ops.elementwise import add
from pullback.tracer.ops.reduction import sum_
from pullback.tracer.spec import Spec, broadcast_shapes

pytestmark = pytest.mark.part(8)

SHAPES = ((40, 40), (40, 30), (33, 50), (64, 31))
"""First a coincidence of two sizes, which must change nothing."""


def average(x: Any) -> Any:
    return (x * x).sum() / len(x)


def scaled_products(x: Any) -> Any:
    return pb.tanh(x / math.sqrt(x.shape[1])).sum()


def over_all(x: Any) -> Any:
    return (x**3).sum() / np.prod(x.shape)


def variance(x: Any) -> Any:
    n = x.shape[0]
    centred = x - x.sum(axis=0) / n
    return ((centred * centred).sum(axis=0) * (1 / (n - 1))).sum()


def shares(x: Any) -> Any:
    return np.sin(x / x.size).sum()


def on_a_grid(x: Any) -> Any:
    t = np.linspace(0.0, 1.0, x.shape[0])
    return (np.cos(x) * t[:, None]).sum()


def likelihood(x: Any) -> Any:
    n, m = x.shape
    squares = (x * x).sum()
    return -0.5 * float(n) * np.log(squares / m) - 0.5 * m * np.log(2 * math.pi)


def differences(x: Any) -> Any:
    h = 1.0 / (len(x) - 1)
    slope = (x[1:] - x[:-1]) / h
    return 0.5 * h * (slope * slope).sum()


def relaxed(x: Any) -> Any:
    rate = 0.3 / len(x)
    y = x
    for _ in range(20):
        y = y - rate * np.sin(y)
    return (y * y).sum()


def running(x: Any) -> Any:
    n = len(x)
    total = x[0] * 0.0
    for i in range(n):
        total = total * (1.0 - 1.0 / n) + x[i] / math.log(n)
    return total.sum()


def both_ways(x: Any) -> Any:
    n, m = x.shape
    return (np.exp(-x / n).sum(axis=0) * (1.0 / m)).sum() + (x.mean(axis=1) * math.sqrt(m)).sum()


def weights(x: Any) -> Any:
    k = np.arange(x.shape[1])
    return (x * (k + 0.5) / x.shape[1]).sum() * x.shape[0] ** -0.5


def remainders(x: Any) -> Any:
    n, m = x.shape
    return (x * (n % 7 + 1)).sum() + (x[0] * (m // 2)).sum() * n**2


def at_least(x: Any) -> Any:
    return (x * max(len(x), 3)).sum() / min(x.shape[1], 1000, len(x))


def halves(x: Any) -> Any:
    n = len(x)
    h = 0.5 * n
    return (x * h).sum() + (x / (1.0 / n)).sum() * (2.0 - 1.0 / n)


def powers_of_two(x: Any) -> Any:
    k = len(x) // 10
    return (x * 2**k).sum() / 2.0**-k


def roots(x: Any) -> Any:
    return (x * math.sqrt(0.5 * len(x))).sum() + np.sqrt(x / math.sqrt(x.size)).sum()


def information(x: Any) -> Any:
    n, m = x.shape
    return n * np.log((x * x).sum() / n) + m * math.log(n)


def smoothed(x: Any) -> Any:
    n = x.shape[0]
    h = 1.06 * n ** (-1 / 5)
    return np.exp(-0.5 * (x / h) ** 2).sum() / (n * h)


def first_and_rest(x: Any) -> Any:
    k = int(0.3 * x.shape[0])
    return (x[:k] ** 2).sum() + x[k:].mean()


def begun(x: Any) -> Any:
    return (x[: math.ceil(len(x) / 2)] ** 2).mean() * (round(0.1 * len(x)) + 0.5)


def counted(x: Any) -> Any:
    return (x * x).sum() / np.size(x) + np.tanh(x).sum() * math.lgamma(x.shape[0])


def turning(x: Any) -> Any:
    angle = 2 * math.pi / x.shape[0]
    return (x * math.cos(angle)).sum() * 0.999**x.size / (1 - 0.999 ** x.shape[1])


def filtered(x: Any) -> Any:
    spectrum = np.fft.rfft(np.concatenate([x, 2 * x], axis=1))
    return (np.fft.irfft(spectrum * np.conj(spectrum), n=2 * x.shape[1]) ** 2).sum()


def joined(x: Any) -> Any:
    whole = np.concatenate([x[:, 0], x.sum(axis=0), x[0]])
    return (whole[: x.shape[0]] * x[:, 1]).sum() + (whole[x.shape[0] :] ** 2).sum()


PROGRAMS = [
    information,
    smoothed,
    first_and_rest,
    begun,
    counted,
    turning,
    remainders,
    at_least,
    halves,
    powers_of_two,
    roots,
    average,
    scaled_products,
    over_all,
    variance,
    shares,
    on_a_grid,
    likelihood,
    differences,
    relaxed,
    running,
    both_ways,
    weights,
    filtered,
    joined,
]


def argument(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(math.prod(shape)).uniform(0.5, 1.5, shape)


def made(function: Any) -> int:
    """How many pieces of machine code a function has had made, or read from the disk."""
    info = function.cache_info()
    return info.compilations + info.disk_hits


@pytest.mark.drawn(4)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_computes_with_sizes_is_compiled_once(program: Callable[[Any], Any]) -> None:
    # In one thread: how large work must be for threads to share it is measured.
    value = pb.compile(program, parallel=False)
    gradient = pb.grad(pb.compile(program, parallel=False))
    counts = set()
    for shape in SHAPES:
        x = argument(shape)
        np.testing.assert_allclose(value(x), program(x), rtol=1e-12)
        np.testing.assert_allclose(gradient(x), pb.grad(program)(x), rtol=1e-10, atol=1e-12)
        counts.add((made(value), made(gradient)))
        assert value.explain(x).count("guard") == 0
    assert len(counts) == 1


def test_what_python_computes_and_demands_is_asked_for_in_every_shape() -> None:
    def raised(x):
        return np.spacing(x) + 2 ** np.full(x.shape[1], 3)

    value, counts = pb.compile(raised, parallel=False), set()
    for shape in SHAPES:
        x = argument(shape)
        np.testing.assert_array_equal(value(x), raised(x))
        counts.add(made(value))
    assert len(counts) == 1


@pytest.mark.parametrize("program", [remainders, at_least, halves, information, smoothed, turning])
def test_code_computes_what_it_can_of_sizes(program: Callable[[Any], Any]) -> None:
    """Numbers are arguments only where nobody sees what Python computes."""
    source = pb.compile(program).forward_source(argument(SHAPES[1]))
    assert re.search(r"def \w+\(x, value\):", source), source


def test_a_number_of_sizes_that_code_is_given_has_the_users_name() -> None:
    @pb.compile
    def scaled(x):
        share = math.lgamma(len(x))
        return x * share

    assert "value, share):" in scaled.forward_source(np.ones(5))


def test_numbers_of_sizes_read_as_the_user_wrote_them() -> None:
    @pb.compile
    def smoothed(x):
        n = x.shape[0]
        h = 1.06 * n ** (-1 / 5)
        return np.exp(-0.5 * (x / h) ** 2) / (n * h) + math.log(n)

    source = smoothed.forward_source(np.ones(5))
    for line in "h = 1.06 * power(float64(n), -0.2)", "scale = float64(n) * h", "scale_1 = log(float64(n))":
        assert f"    {line}\n" in source


def test_a_power_of_two_and_a_quotient_are_one_quotient() -> None:
    def loss(x):
        return 0.5 * (x**2).mean()

    source = pb.compile(pb.grad(loss)).source(np.ones(50))
    assert "    scale = 1.0 / n\n" in source and source.count("scale") == 2


def test_an_extent_that_follows_from_others_is_computed() -> None:
    @pb.compile
    def halves(x):
        half = len(x) // 2
        return x[:half].sum() * x[half:].prod()

    source = halves.forward_source(np.ones(50))
    assert "(x, value):" in source and "    m = n // 2\n    p = n - m\n" in source and "x[i + m]" in source


def test_the_gradient_of_a_part_has_the_extent_of_the_whole() -> None:
    @pb.compile
    def loss(x):
        k = int(0.3 * len(x))
        return (x[:k] ** 2).sum() + x[k:].sum()

    assert "-> d_x: float64[n]\n" in loss.backward_source(np.ones(64))

    @pb.compile
    def inner(x):
        edge = round(0.1 * len(x)) + 1
        return (x[edge : math.ceil(len(x) / 2), 1:-1] ** 2).mean()

    assert "-> d_x: float64[n, m]\n" in inner.backward_source(np.ones((40, 30)))


def test_powers_of_sizes_that_exceed_64_bits_are_right() -> None:
    @pb.compile
    def scaled(x):
        return x * len(x) ** 7 + x * float(len(x)) ** 8 * (len(x) * len(x)) ** 4

    x = np.ones(1000)
    np.testing.assert_allclose(scaled(x), 1e21 + 1e48)


def test_a_size_to_a_fractional_power_may_be_complex_as_pythons() -> None:
    def power(x):
        return abs((3 - len(x)) ** 0.5) * x

    np.testing.assert_allclose(pb.compile(power)(np.ones(7)), np.full(7, 2.0))


def test_a_literal_is_none_of_the_sizes_that_have_its_value() -> None:
    @pb.compile
    def shifted(x):
        half = 0.5 * len(x)
        return x * 10.0 + half

    for size in (20, 21, 30):
        np.testing.assert_array_equal(shifted(np.ones(size)), np.full(size, 10.0 + 0.5 * size))
    assert made(shifted) <= 1 and "* 10.0 + half" in shifted.source(np.ones(20))


def later_half(x: Any) -> Any:
    return x[len(x) // 2 :] * 2.0


def thirds(x: Any) -> Any:
    n = x.shape[0]
    return pb.sin(x[n - n // 3 :]) + x[: n // 3]


def last_elements(x: Any) -> Any:
    return x[-12:] * x[:12] + x[-1]


@pytest.mark.parametrize("program", [later_half, thirds, last_elements])
def test_where_a_part_begins_follows_from_sizes(program: Callable[[Any], Any]) -> None:
    value, gradient = pb.compile(program), pb.compile(pb.grad(lambda x: (program(x) ** 2).sum()))
    for size in (65, 80, 101):
        x = argument((size,))
        np.testing.assert_allclose(value(x), program(x), rtol=1e-12)
        np.testing.assert_allclose(gradient(x), pb.grad(lambda x: (program(x) ** 2).sum())(x), rtol=1e-12)
    assert made(value) == made(gradient) == 1


def test_where_the_user_says_that_a_part_begins_is_a_constant() -> None:
    compiled = pb.compile(lambda x: x[20:] * x[:-20])
    x = argument((50,))
    np.testing.assert_array_equal(compiled(x), x[20:] * x[:-20])
    assert "x[i + 20] * x[i]" in compiled.forward_source(x)


# --- sizes that agree by chance -----------------------------------------------------------------------------


def outer(x: Any, y: Any) -> Any:
    """Two sizes that no operator demands to be equal."""
    return (pb.sin(x).sum() / len(x)) * y.sum() + (y * y).sum() / len(y) + (x * len(y)).sum() * y.mean()


def rows_and_columns(x: Any, y: Any) -> Any:
    table = pb.tanh(x[:, None] * y[None, :])
    return (table.sum(axis=0) / x.shape[0]).sum() + (table.sum(axis=1) / y.shape[0]).sum()


def in_a_loop(x: Any, y: Any) -> Any:
    a, b = 1.0 / len(x), 1.0 / len(y)
    state, other = x * 0.5, y * 0.5
    for _ in range(12):
        state = pb.sin(state) * (1.0 - a) + state.mean() * b
        other = pb.cos(other) * (1.0 - b) + state.mean() * a
    return state.sum() * a + other.sum() * b


def in_a_scan(x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return carry * (1.0 - 1.0 / len(y)) + row / len(x), carry.sum() / len(y)

    last, sums = pb.scan(step, y, x)
    return (last * last).sum() + (sums * sums).mean()


def ragged(x: Any, y: Any) -> Any:
    """A loop whose parts grow, with both sizes in its steps."""
    n, m = len(x), len(y)
    total = x[0] * 0.0
    for i in range(1, 14):
        total = total + (x[:i] * x[:i]).sum() / n + pb.sin(y[:i]).sum() / m
    return total / (n + m)


PAIRS = [outer, rows_and_columns, in_a_loop, in_a_scan, ragged]
LENGTHS = ((40, 40), (40, 41), (52, 41), (41, 41))


def two(lengths: tuple[int, int]) -> list[np.ndarray]:
    return [np.random.default_rng(size).uniform(0.5, 1.5, size) for size in lengths]


def summed_hessian(function: Callable[..., Any], x: Any, y: Any) -> Any:
    def slope(x: Any) -> Any:
        dx, dy = pb.grad(function, argnums=(0, 1))(x, y)
        return (dx * dx).sum() + (dy * dy).sum()

    return pb.grad(slope)(x)


TAKEN: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "value": lambda f: f,
    "gradient": lambda f: pb.grad(f),
    "gradient of both": lambda f: lambda x, y: pb.concatenate(pb.grad(f, argnums=(0, 1))(x, y)),
    "second derivative": lambda f: lambda x, y: summed_hessian(f, x, y),
    "mapped": lambda f: lambda x, y: pb.vmap(f, in_dims=(0, None))(pb.stack([x, x * 2, x + 1]), y),
    "gradient mapped": lambda f: lambda x, y: pb.vmap(pb.grad(f), in_dims=(0, None))(pb.stack([x, x * 2]), y),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("program", PAIRS)
def test_sizes_that_agree_by_chance_are_two(program: Callable[..., Any], taken: str) -> None:
    function = TAKEN[taken](program)
    compiled = pb.compile(function)
    sources = set()
    for lengths in LENGTHS:
        x, y = two(lengths)
        np.testing.assert_allclose(compiled(x, y), function(x, y), rtol=1e-9, atol=1e-12)
        sources.add(made(compiled))
        assert "guard" not in compiled.explain(x, y)
    assert len(sources) == 1


# --- names --------------------------------------------------------------------------------------------------


def test_forward_and_backward_call_a_size_alike() -> None:
    @pb.compile
    def loss(w, b, x, words):
        return (pb.tanh(x[words] @ w + b).mean(dim=0) ** 2).sum()

    arrays = [argument(shape) for shape in ((40, 50), (50,), (60, 40))]
    tensors = [pb.tensor(array, requires_grad=True) for array in arrays]
    words = np.arange(33)
    forward, backward = loss.forward_source(*tensors, words), loss.backward_source(*tensors, words)
    for header in ("w: float64[n, m]", "b: float64[m]", "x: float64[p, n]", "words: int64[q]"):
        assert header in forward
    for header in ("w: float64[n, m]", "d_w: float64[n, m]", "d_b: float64[m]", "d_x: float64[p, n]"):
        assert header in backward


def test_arithmetic_on_sizes_keeps_their_names() -> None:
    n, m = Dim(5, Source("n")), Dim(7, Source("m"))
    for found, value in ((n + m, 12), (2 * n - 3, 7), (n * m // 2, 17), (-n, -5), (n / m, 5 / 7), (1 + n, 6)):
        assert found == value and hash(found) == hash(value) and formula_of(found) is not None
    assert formula_of(n - 2 + 1) == formula_of(n - 1) and formula_of((n - 1) + 1) is n.formula
    assert formula_of(n * 1) is n.formula and formula_of(n + m) != formula_of(m + n)
    assert formula_of(n - 5) is None, "nothing is made of nothing"
    width = 3 * n - 2 * n
    assert width == 5 and formula_of(width) is n.formula and formula_of(n + n - 1) == formula_of(2 * n - 1)
    assert formula_of(4 * n - (n - 1)) == formula_of(3 * n + 1) and formula_of(3 * m + 2 - m * 3) is None
    assert type(pickle.loads(pickle.dumps(n))) is int and type(copy.deepcopy(n / m)) is float
    long = n
    for _ in range(3000):
        long = long + m
    assert hash(formula_of(long)) is not None


def test_what_is_computed_of_sizes_again_is_the_same() -> None:
    n, m, large = (Dim(size, Source(name)) for size, name in ((40, "n"), (40, "m"), (2**40, "large")))
    assert (2 * n).formula is (2 * n).formula and (n + m).formula is (n + m).formula
    assert (2 * n).formula != (2 * m).formula and formula_of(2 * n - 2 * n) is None
    assert 2 * n - n is 2 * n - n
    assert (large * large).formula is not (large * large).formula  # each with an origin of its own


def test_sizes_that_an_operator_demands_to_be_equal_have_one_name() -> None:
    first, second, third = (Dim(5, Source(name)) for name in "abc")
    assert broadcast_shapes((first, 1), (second, 3)) == (5, 3)
    assert canonical(second.formula) is first.formula is not canonical(third.formula)
    equated(third - 1, Dim(4, Source("d")))
    assert canonical(third.formula) is third.formula


def test_a_number_of_sizes_is_not_taken_for_another_function_of_them() -> None:
    @pb.compile
    def powers(x):
        scale = pb.tensor(1.5 * len(x))
        return scale**2 + scale**3 + x.sum()

    for size in (5, 6):
        scale = 1.5 * size
        np.testing.assert_allclose(powers(np.ones(size)).numpy(), scale**2 + scale**3 + size)


# --- they are Python's numbers ------------------------------------------------------------------------------


OF_SIZES: list[Callable[[Any], Any]] = [
    lambda x: x / x.shape[1],
    lambda x: np.divide(x, x.size),
    lambda x: x * (np.ones(3, np.float32) * x.shape[0]),
    lambda x: x * (np.ones(3, np.float32) * (x.shape[0] / 3)),
    lambda x: x * (np.float64(2) * x.shape[0]) + x.shape[0] * np.float64(2),
    lambda x: x + np.full(3, x.shape[1]) + np.array((*x.shape, 1)),
    lambda x: np.where(x > 2, x.shape[0], x) + np.clip(x, 0, x.shape[0]),
    lambda x: (x // x.shape[0]) + x ** x.shape[0] + x.shape[0] ** x,
    lambda x: x * (1 if type(x.shape[0]) is int and type(x.shape[0] / 2) == float else 2),  # noqa: E721
    lambda x: [x.shape[0], x.shape, len(x), x.size / 4, {"n": x.shape[1] - 1}, x.sum()],
]


@pytest.mark.parametrize("place", range(len(OF_SIZES)))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8"])
def test_sizes_compute_as_pythons_numbers(place: int, dtype: str) -> None:
    x = np.arange(1, 7).reshape(2, 3).astype(dtype)
    expected, actual = OF_SIZES[place](x), pb.compile(OF_SIZES[place])(x)
    if isinstance(expected, list):
        np.testing.assert_array_equal(actual.pop(), expected.pop())
        assert repr(actual) == repr(expected)
        assert [type(one) for one in actual] == [type(one) for one in expected]
        assert type(actual[1][0]) is type(actual[4]["n"]) is int
        return
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_sizes_that_a_function_keeps_are_plain_numbers() -> None:
    class Model:
        seen = 0

    model, log = Model(), []

    @pb.compile
    def step(x):
        model.seen += len(x) + x.shape[1]
        model.last, model.share = x.shape[0], 1 / x.shape[0]
        log.append(x.shape[0])
        return x * 2

    for _ in range(2):
        step(np.ones((2, 3)))
    kept = (model.seen, model.last, model.share, log[0])
    assert kept == (10, 2, 0.5, 2)
    assert [type(one) for one in kept] == [int, int, float, int]


KEYED = {len: 1.0, max: -0.29, min: 3.0, hasattr: 2.0, type: 4.0}


@pytest.mark.parametrize("function", [
    lambda y: KEYED[max] * y + KEYED[len] + KEYED[min] * y + KEYED[hasattr] + KEYED[type],
    lambda y, other=max: y * (1.0 if other is max else 2.0),
    lambda y, other=max: y * (1.0 if max is other else 2.0) * (3.0 if other is min else 5.0),
    lambda y, other=min: y * (1.0 if other == min else 2.0),
    lambda y: y * (1.0 if isinstance(max, types.BuiltinFunctionType) else 2.0) * len(max.__name__),
    lambda y: sorted([[1], [2, 3]], key=len)[-1][0] * y + max(1, 2, key=lambda one: -one) + max([1, 2]),
])  # fmt: skip
def test_functions_that_keep_sizes_are_pythons_own_otherwise(function: Any) -> None:
    y = np.array([1.0, 2.0])
    np.testing.assert_allclose(pb.compile(function)(y), function(y))
    np.testing.assert_allclose(
        pb.compile(pb.grad(lambda y: function(y).sum()))(y), pb.grad(lambda y: function(y).sum())(y)
    )


def test_bodies_whose_sizes_agree_by_chance_are_two() -> None:
    def body(size: int) -> Body:
        carry = make_input(Spec((), np.dtype("float64")), "carry")
        ones = constant(1.0, Spec((size,), np.dtype("float64")))
        return Body(Graph("body", (carry,), (add(carry, sum_(ones, dims=(0,), keepdim=False)),)))

    (n,), (m,) = named((5,), "x"), named((5,), "y")
    assert body(n).structure == body(n).structure != body(m).structure


@pytest.mark.drawn(4)
def test_a_size_that_follows_from_others_stands_behind_them() -> None:
    """Here that of an argument of which nothing else is read follows from those of two parts."""

    random = np.random.default_rng(0)
    shapes = (2, 2, 4), (2, 2, 4), (4,), (2, 2, 4), (2, 2, 4), (2, 4, 22)
    x, w, b, *weights = (pb.tensor(random.normal(size=shape)) for shape in shapes)

    def loss(x: Any, w: Any, b: Any) -> Any:
        found = pb.nn.functional.conv_transpose1d(x, w, b, 3, 1, 2, groups=2, dilation=4)
        return (found * weights[2]).sum()

    def product(x: Any, w: Any, b: Any) -> Any:
        pulled = pb.grad(loss, argnums=(0, 1))(x, w, b)
        return sum((one * weight).sum() for one, weight in zip(pulled, weights))

    gradients = pb.grad(product, argnums=(0, 1, 2))
    for found, wanted in zip(pb.compile(gradients)(x, w, b), gradients(x, w, b)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
