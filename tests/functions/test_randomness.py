"""A compiled function draws random numbers in each call, from the user's streams, as plain Python does."""

# ruff: noqa: NPY002

import random
import secrets
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from uncompiled import counts

import pullback as pb
from pullback.errors import TraceError
from pullback.runtime.captures.randomness import ONE_BY_ONE
from pullback.runtime.captures.stream_states import are_equal, set_state, state_of

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.arange(1.0, 4.0)


class Noise:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, x: Any) -> Any:
        return (x * self.rng.normal(size=3)).sum()


def global_functions() -> Callable[[Any], Any]:
    np.random.seed(0)
    return lambda x: (x * np.random.rand(3)).sum()


def generator_in_closure() -> Callable[[Any], Any]:
    rng = np.random.default_rng(0)
    return lambda x: (x * rng.normal(size=3)).sum()


def bound_method() -> Callable[[Any], Any]:
    normal = np.random.default_rng(0).normal
    return lambda x: (x * normal(size=3)).sum()


def legacy_state() -> Callable[[Any], Any]:
    state = np.random.RandomState(0)
    return lambda x: (x * state.rand(3)).sum()


def default_argument() -> Callable[[Any], Any]:
    def noisy(x: Any, rng: Any = np.random.default_rng(0)) -> Any:  # noqa: B008
        return (x * rng.normal(size=3)).sum()

    return noisy


def default_of_a_helper() -> Callable[[Any], Any]:
    def noise(rng: Any = np.random.default_rng(0)) -> Any:  # noqa: B008
        return rng.normal(size=3)

    return lambda x: (x * noise()).sum()


def attribute() -> Callable[[Any], Any]:
    noise = Noise(0)
    return lambda x: noise(x)


def of_python() -> Callable[[Any], Any]:
    random.seed(0)
    return lambda x: (x * random.random()).sum()


def of_python_in_closure() -> Callable[[Any], Any]:
    rng = random.Random(0)
    return lambda x: (x * rng.gauss(0.0, 1.0)).sum()


def by_a_computed_name() -> Callable[[Any], Any]:
    noise, parts = Noise(0), ["r", "ng"]
    return lambda x: (x * getattr(noise, parts[0] + str(parts[1])).normal(size=3)).sum()


def of_a_distribution() -> Callable[[Any], Any]:
    normal = scipy.stats.norm()
    normal.random_state = np.random.default_rng(0)
    return lambda x: (x * normal.rvs(3)).sum()


def in_a_list() -> Callable[[Any], Any]:
    rngs = {"noise": [np.random.default_rng(0)]}
    return lambda x: (x * rngs["noise"][0].normal(size=3)).sum()


def of_scipy() -> Callable[[Any], Any]:
    np.random.seed(0)
    return lambda x: (x * scipy.stats.norm.rvs(size=3)).sum()


DRAWING = [
    global_functions, generator_in_closure, bound_method, legacy_state, default_argument,
    by_a_computed_name, default_of_a_helper, attribute, of_python, of_python_in_closure, in_a_list,
    of_a_distribution, of_scipy,
]  # fmt: skip


@pytest.mark.parametrize("make", DRAWING)
def test_the_stream_is_plain_pythons(make: Callable[[], Callable[[Any], Any]]) -> None:
    plain = make()
    expected = [plain(X) for _ in range(3)]
    compiled = pb.compile(make())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose([compiled(X) for _ in range(3)], expected)


def in_each_step(x: Any, rng: Any) -> Any:
    for _ in range(20):
        x = 0.9 * x + 0.1 * rng.standard_normal(3)
    return x * rng.random()


def in_a_scan(x: Any, rng: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = carry + row * rng.normal() + rng.standard_normal(3)
        return carry, carry.sum() * rng.integers(5)

    carry, ys = pb.scan(step, pb.tensor(x), pb.arange(4, dtype=pb.float64), reverse=True)
    return (carry * ys.sum()).sum() + rng.random()


def in_nested_scans(x: Any, rng: Any) -> Any:
    def inner(carry: Any, _: Any) -> Any:
        return carry * rng.random(), rng.normal() + 0 * carry

    def outer(carry: Any, row: Any) -> Any:
        carry, ys = pb.scan(inner, carry + rng.random(), None, 3)
        return carry, ys.sum() * row

    carry, ys = pb.scan(outer, pb.tensor(x).sum(), pb.tensor(x))
    return carry + ys.sum()


def in_a_checkpointed_scan(x: Any, rng: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return pb.sin(carry) * rng.random() + row, None

    return pb.scan(step, pb.tensor(1.0, dtype=pb.float64), pb.tensor(x), checkpoint=True)[0]


def by_value(x: Any, rng: Any) -> Any:
    return x.sum() * rng.normal() if rng.random() < 0.5 else x.sum()


def written_into(x: Any, rng: Any) -> Any:
    noise = rng.normal(size=3)
    noise[0] = 0.0
    return x * noise, noise


def of_many_kinds(x: Any, rng: Any) -> Any:
    chosen = rng.choice([0.5, 1.5], size=3)
    return x[rng.permutation(3)] * chosen + rng.integers(0, 9, 3) + rng.exponential(2.0) + x[rng.integers(3)]


def of_a_distribution_with_the_stream(x: Any, rng: Any) -> Any:
    return x * scipy.stats.norm.rvs(1.0, 2.0, size=3, random_state=rng) + scipy.stats.gamma.rvs(
        2.0, random_state=rng
    )


def of_traced_arguments(x: Any, rng: Any) -> Any:
    return x * rng.normal(scale=2.0, size=x.shape[0]) + rng.standard_normal(len(x), dtype=np.float32)


@pytest.mark.parametrize(
    "function",
    [
        in_each_step, in_a_scan, in_nested_scans, in_a_checkpointed_scan, by_value, written_into,
        of_many_kinds, of_traced_arguments, of_a_distribution_with_the_stream,
    ],
)  # fmt: skip
def test_what_is_drawn_where(function: Callable[[Any, Any], Any]) -> None:
    plain, rng = np.random.default_rng(0), np.random.default_rng(0)
    compiled = pb.compile(lambda x: function(x, rng))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in range(8):
            found, wanted = compiled(X), function(X, plain)
            for one, other in zip(*(one if isinstance(one, tuple) else (one,) for one in (found, wanted))):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6)
            if call == 3:
                compiled.source(X), compiled.explain(X)  # which draw nothing
    assert rng.random() == plain.random()


@pytest.mark.parametrize("function", [in_each_step, in_a_scan, in_a_checkpointed_scan])
def test_gradients_of_what_is_drawn(function: Callable[[Any, Any], Any]) -> None:
    plain, rng, other = (np.random.default_rng(0) for _ in range(3))
    gradient = pb.compile(pb.grad(lambda x: function(x, rng).sum()))
    outside = pb.grad(pb.compile(lambda x: function(x, other).sum()))
    for _ in range(3):
        wanted = pb.grad(lambda x: function(x, plain).sum())(X)
        np.testing.assert_allclose(gradient(X), wanted, rtol=1e-9)
        np.testing.assert_allclose(outside(X), wanted, rtol=1e-9)


def test_a_loop_that_draws_in_each_step_is_rolled() -> None:
    rng = np.random.default_rng(0)
    compiled = pb.compile(lambda x: in_each_step(x, rng))
    compiled(X)
    assert compiled.source(X).count("0.9 *") == 1 or compiled.source(X).count("* 0.9") == 1


PARAMETERS = {"beta": (2.0, 3.0), "hypergeometric": (5, 6, 7), "binomial": (100, 0.3), "geometric": (0.3,),
              "integers": (0, 10), "randint": (0, 10), "logseries": (0.4,), "noncentral_f": (2.0, 3.0, 1.0),
              "negative_binomial": (3.0, 0.4), "triangular": (0.0, 0.5, 1.0), "zipf": (2.5,)}  # fmt: skip


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("name", sorted(ONE_BY_ONE))
def test_many_numbers_that_are_drawn_at_once_are_those_of_so_many_calls(name: str, make: Any) -> None:
    many, single = make(3), make(3)
    if not hasattr(many, name):
        return
    parameters = PARAMETERS.get(name, (1.5, 2.5, 3.5)[: ONE_BY_ONE[name]])
    drawn = getattr(many, name)(*parameters, size=300)
    np.testing.assert_array_equal(drawn, [getattr(single, name)(*parameters) for _ in range(300)])
    assert many.uniform() == single.uniform()


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.standard_normal(),
        lambda rng: rng.normal(1.0),
        lambda rng: rng.randn(),
        lambda rng: rng.uniform(0.0, 2.0, size=3).sum(),
        lambda rng: rng.uniform() * rng.normal(),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_loops_leave_the_stream_where_plain_code_does(draw: Callable[[Any], Any], reverse: bool) -> None:
    traced, plain = np.random.RandomState(1), np.random.RandomState(1)

    def walk(x: Any, rng: Any) -> Any:
        return pb.scan(lambda c, row: (0.5 * c + row * draw(rng), None), 0.0, x, reverse=reverse)[0]

    compiled = pb.compile(lambda x: walk(x, traced))
    for _ in range(3):
        np.testing.assert_allclose(compiled(X), walk(X, plain), rtol=1e-12)
        assert traced.uniform() == plain.uniform()


def test_other_objects_with_the_same_code_draw_from_their_own_streams() -> None:
    plain = [np.random.default_rng(seed) for seed in (1, 2)]

    def noisy(seed: int) -> Callable[[Any], Any]:
        rng = np.random.default_rng(seed)
        return pb.compile(lambda x: x * rng.normal())

    made = [noisy(1), noisy(2)]
    for one, other in zip(made, plain):
        np.testing.assert_allclose([one(X) for _ in range(2)], [X * other.normal() for _ in range(2)])
    first, second = Noise(3), Noise(4)
    compiled = pb.compile(lambda noise, x: noise(x))
    found = [compiled(one, X) for one in (first, second, first)]
    plain_first, plain_second = Noise(3), Noise(4)
    np.testing.assert_allclose(found, [one(X) for one in (plain_first, plain_second, plain_first)])


def test_a_stream_that_takes_the_place_of_another() -> None:
    noise = Noise(0)
    compiled = pb.compile(lambda x: noise(x))
    assert compiled(X) == Noise(0)(X)
    noise.rng = np.random.default_rng(5)
    assert compiled(X) == Noise(5)(X)


def test_what_is_drawn_in_part_unnoticed_runs_uncompiled() -> None:
    def shuffled(x: Any, rng: Any) -> Any:
        order = [0, 1, 2]
        rng.shuffle(order)
        return x * rng.normal() + order[0]

    plain, rng = np.random.default_rng(0), np.random.default_rng(0)
    compiled = pb.compile(lambda x: shuffled(x, rng))
    with pytest.warns(UserWarning, match="runs uncompiled"):
        np.testing.assert_allclose([compiled(X) for _ in range(3)], [shuffled(X, plain) for _ in range(3)])


def test_functions_of_the_class_take_the_stream() -> None:
    plain, rng = np.random.default_rng(0), np.random.default_rng(0)
    compiled = pb.compile(lambda x: x * np.random.Generator.normal(rng))
    with pytest.warns(UserWarning, match="runs uncompiled"):
        np.testing.assert_allclose([compiled(X) for _ in range(3)], [X * plain.normal() for _ in range(3)])


def test_a_stream_is_what_it_is() -> None:
    rng = np.random.default_rng(0)

    def function(x: Any) -> Any:
        assert isinstance(rng, np.random.Generator) and not isinstance(rng, np.random.RandomState)
        assert type(rng) is np.random.Generator and rng.bit_generator.lock is not None
        return x * rng.normal()

    np.testing.assert_allclose(pb.compile(function)(X), X * np.random.default_rng(0).normal())


@pytest.mark.parametrize(
    "transform", [lambda f: pb.grad(pb.compile(f)), lambda f: pb.compile(pb.grad(f)), pb.grad]
)
def test_gradients_draw_as_often(transform: Any) -> None:
    plain = np.random.default_rng(0)
    expected = [plain.normal(size=3) for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradient = transform(generator_in_closure())
        np.testing.assert_allclose([gradient(X) for _ in range(3)], expected)


def test_a_generator_as_an_argument() -> None:
    compiled = pb.compile(lambda x, rng: (x * rng.normal(size=3)).sum())
    plain, rng = np.random.default_rng(0), np.random.default_rng(0)
    found = [compiled(X, rng) for _ in range(3)]
    np.testing.assert_allclose(found, [(X * plain.normal(size=3)).sum() for _ in range(3)])


def test_one_of_several_paths_draws() -> None:
    def noisy(rng: Any, x: Any) -> Any:
        if x.sum() > 0:
            return (x * 2).sum()
        noise = rng.normal(size=3)
        return (x * noise).sum() if noise[0] > x[0] else x.sum()

    plain, rng = np.random.default_rng(0), np.random.default_rng(0)
    signs = [1, -1, -1, 1, -1]
    compiled = pb.compile(lambda x: noisy(rng, x))
    found = [compiled(X * sign) for sign in signs]
    np.testing.assert_allclose(found, [noisy(plain, X * sign) for sign in signs])


def test_a_generator_in_reach_that_is_not_drawn_from() -> None:
    noise = Noise(0)

    @pb.compile
    def scaled(x: Any, training: bool) -> Any:
        return noise(x) if training else x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(scaled(X, False), 2 * X)


def test_generators_that_are_spawned_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(TraceError, match="spawns generators of rng"):
        pb.compile(lambda x: (x * rng.spawn(1)[0].random(3)).sum())(X)


def test_errors_of_the_user_leave_the_stream_where_python_does() -> None:
    rng, plain = np.random.default_rng(0), np.random.default_rng(0)

    def fails(x: Any) -> Any:
        rng.normal()
        raise KeyError("mine")

    with pytest.raises(KeyError):
        pb.compile(fails)(X)
    plain.normal()
    assert rng.normal() == plain.normal()


def test_own_numbers_are_not_used_up_by_a_trace_that_is_dropped() -> None:
    def noisy(x: Any) -> Any:
        noise = pb.rand(3, dtype=pb.float64)
        return (x * noise).sum() * counts(x)[1]  # which is not compiled

    compiled = pb.compile(noisy)
    pb.manual_seed(3)
    expected = [noisy(pb.tensor(X)).item() for _ in range(3)]
    pb.manual_seed(3)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        np.testing.assert_allclose([compiled(X) for _ in range(3)], expected)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.default_rng().normal(),
        lambda: np.random.RandomState().rand(),
        lambda: random.SystemRandom().random(),
        lambda: random.Random().random(),
        lambda: secrets.randbelow(1000) + 0.5,
        lambda: time.perf_counter(),
        lambda: time.time_ns() * 1e-9,
    ],
)
def test_what_no_seed_repeats_is_never_frozen(draw: Callable[[], float]) -> None:
    compiled = pb.compile(lambda x: (x * draw()).sum())
    with pytest.warns(UserWarning, match="gives another value in every call"):
        assert len({compiled(X) for _ in range(4)}) > 1


def test_a_stream_that_is_seeded_inside() -> None:
    def noisy(x: Any) -> Any:
        np.random.seed(7)
        return (x * np.random.rand(3)).sum()

    compiled = pb.compile(noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [(compiled(X), np.random.rand()) for _ in range(3)]
    assert found == [(noisy(X), np.random.rand()) for _ in range(3)]


def test_seeded_generators_that_are_made_inside_are_compiled() -> None:
    def noisy(x: Any) -> Any:
        return (x * np.random.default_rng(7).normal(size=3)).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pb.compile(noisy)(X) == pytest.approx(noisy(X))


@pytest.mark.parametrize("make", [generator_in_closure, global_functions, attribute, of_python])
def test_checkpoints_draw_once_and_repeat_it(make: Callable[[], Callable[[Any], Any]]) -> None:
    plain, drawing = make(), make()
    layer = pb.checkpoint(drawing)
    values, gradients = [], []
    if make in (global_functions, of_python):
        make()
    for _ in range(2):
        x = pb.tensor(X, requires_grad=True)
        value = layer(x * 1.0)
        value.backward()
        values.append(value.item())
        gradients.append((x.grad.numpy() * X).sum())
    if make in (global_functions, of_python):
        make()
    np.testing.assert_allclose(values, [plain(X) for _ in range(2)])
    np.testing.assert_allclose(gradients, values)


LOCATION = np.array([0.5, -1.0, 2.0])
WITH_TRACED: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda rng, x: rng.normal(x, x**2),
    "normal of a number": lambda rng, x: rng.normal(x.sum()) * x,
    "normal of a size": lambda rng, x: rng.normal(x, 2.0, size=(2, 3)).sum(0),
    "normal of rows": lambda rng, x: rng.normal(x[:, None], abs(x), (3, 3)),
    "laplace": lambda rng, x: rng.laplace(x, abs(x)),
    "logistic": lambda rng, x: rng.logistic(scale=abs(x), loc=x),
    "gumbel": lambda rng, x: rng.gumbel(x, 2.0),
    "exponential": lambda rng, x: rng.exponential(abs(x)),
    "rayleigh": lambda rng, x: rng.rayleigh(abs(x), 3),
    "lognormal": lambda rng, x: rng.lognormal(x, 0.5),
    "uniform": lambda rng, x: rng.uniform(x - 1.0, x + x**2),
    "gamma": lambda rng, x: rng.gamma(2.5, abs(x)),
    "permutation": lambda rng, x: rng.permutation(x),
    "permutation of rows": lambda rng, x: rng.permutation(np.stack([x, 2 * x, 3 * x, x])),
    "choice": lambda rng, x: rng.choice(x, (2, 3)).sum(0),
    "choice without replacement": lambda rng, x: rng.choice(x, 2, replace=False, p=[0.2, 0.3, 0.5]).sum() * x,
}


def shuffled(rng: Any, x: Any) -> Any:
    y = np.stack([x, 2 * x, 3 * x])
    rng.shuffle(y)
    return y


@pytest.mark.parametrize("stream", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("name", [*WITH_TRACED, "shuffle"])
def test_draws_with_traced_arguments_are_those_of_plain_code(name: str, stream: Callable[[int], Any]) -> None:
    draw = shuffled if name == "shuffle" else WITH_TRACED[name]
    rng, plain = stream(3), stream(3)
    compiled = pb.compile(lambda x: draw(rng, x) + rng.normal())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (LOCATION, 2 * LOCATION, LOCATION):
            np.testing.assert_allclose(compiled(x), draw(plain, x) + plain.normal(), rtol=1e-12)
    assert rng.random() == plain.random()


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: random.gauss(x, 2.0), lambda x: random.normalvariate(0.5, x),
        lambda x: random.lognormvariate(0.1, x), lambda x: random.uniform(x, 3.0),
        lambda x: random.expovariate(x), lambda x: random.choice([x, 2.0 * x, 3.0 * x]),
    ],
)  # fmt: skip
def test_draws_of_pythons_with_traced_arguments(draw: Callable[[Any], Any]) -> None:
    compiled = pb.compile(lambda x: draw(x) * 1.5)
    found, wanted = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for results, function in ((found, compiled), (wanted, lambda x: draw(x) * 1.5)):
            random.seed(5)
            results += [function(x) for x in (0.5, 1.5, 0.5)] + [random.random()]
    np.testing.assert_allclose(found, wanted)


def _in_rows(x: Any, stream: Any) -> Any:
    noise = np.zeros((2, 5))
    stream.standard_exponential(out=noise[1])
    return (x * noise).sum()


def _over_a_value(x: Any, stream: Any) -> Any:
    y = x * 2.0
    square = y * y
    drawn = stream.standard_normal(out=y)
    return (y * x).sum() + square.sum() + drawn[0]


def _in_float32(x: Any, stream: Any) -> Any:
    noise = np.empty(5, np.float32)
    stream.random(out=noise, dtype=np.float32)
    return (x * noise).sum()


def _in_another_order(x: Any, stream: Any) -> Any:
    y = np.empty((2, 5))
    stream.permuted(np.stack([x, x * x]), axis=1, out=y)
    return (y * np.arange(5.0)).sum()


@pytest.mark.parametrize("function", [_in_rows, _over_a_value, _in_float32, _in_another_order])
def test_draws_that_fill_an_array(function: Callable[[Any, Any], Any]) -> None:
    x, expected = np.arange(1.0, 6.0), function(np.arange(1.0, 6.0), np.random.default_rng(0))
    value, gradient = pb.value_and_grad(function)(x, np.random.default_rng(0))
    assert value == expected
    both = pb.value_and_grad(pb.compile(function))
    compiled, compiled_gradient = both(x, np.random.default_rng(0))
    assert compiled == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(compiled_gradient, gradient, rtol=1e-13)
    step = np.eye(5)[2] * 1e-6
    ends = [function(x + sign * step, np.random.default_rng(0)) for sign in (1, -1)]
    assert gradient[2] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


def test_arrays_that_draws_do_not_fit_or_that_a_trace_does_not_see() -> None:
    def of(x: Any, stream: Any, out: Any, **options: Any) -> Any:
        stream.random(out=out, **options)
        return (x * out).sum()

    x, stream = np.ones(5), np.random.default_rng(0)
    for gradient in (pb.grad(of), pb.grad(pb.compile(of))):
        with pytest.raises(TypeError, match="wrong type. Expected float64, got float32"):
            gradient(x, stream, pb.zeros(5))
        with pytest.raises(ValueError, match="size must match"):
            gradient(x, stream, pb.zeros(5, dtype=pb.float64), size=4)

    @pb.compile
    def by_place(x: Any, stream: Any) -> Any:
        noise = np.zeros(5)
        stream.random(5, np.float64, noise)
        return (x * noise).sum()

    with pytest.warns(UserWarning, match="Write out="):
        found = by_place(x, np.random.default_rng(0))
    assert found == pytest.approx(np.random.default_rng(0).random(5).sum())


def test_what_is_drawn_has_derivatives_by_traced_arguments() -> None:
    rng, plain = np.random.default_rng(0), np.random.default_rng(0)
    gradient = pb.compile(pb.grad(lambda x: (rng.normal(x, x**2) ** 2).sum()))
    for x in (LOCATION, 2 * LOCATION):
        z = plain.standard_normal(3)
        np.testing.assert_allclose(gradient(x), 2 * (x + x**2 * z) * (1 + 2 * x * z))


def test_a_negative_scale_is_refused_as_numpy_does() -> None:
    rng = np.random.default_rng(0)
    compiled = pb.compile(lambda x: rng.normal(0.0, x))
    compiled(np.ones(3))
    with pytest.raises(ValueError, match="scale < 0"):
        compiled(np.array([1.0, -1.0, 1.0]))
    assert np.isfinite(compiled(np.ones(3))).all()


@pytest.mark.parametrize(
    ("stream", "draw"),
    [
        (np.random.RandomState(3), lambda stream: stream.standard_normal()),  # which makes two at once
        (random.Random(3), lambda stream: stream.gauss()),
        (np.random.RandomState(np.random.PCG64(3)), lambda stream: stream.standard_normal()),
    ],
)
def test_a_stream_is_put_back_where_it_stood(stream: Any, draw: Any) -> None:
    for _ in range(3):
        before, drawn = state_of(stream), draw(stream)
        behind, after = state_of(stream), draw(stream)
        assert are_equal(before, before) and not are_equal(before, behind)
        set_state(stream, before)
        assert are_equal(state_of(stream), before)
        assert (draw(stream), draw(stream)) == (drawn, after)
        set_state(stream, behind)
