"""Methods, and what else objects lead to, in functions that transforms run without compiling."""

import math
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from scipy.interpolate import CubicSpline

import pullback as pb
from pullback.errors import GradientError

pytestmark = pytest.mark.usefixtures("partly_compiled")
X = np.array([0.3, 0.7, -0.4])


def slope(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """By differences."""
    steps = 1e-6 * np.eye(len(x))
    return np.array([(function(x + step) - function(x - step)) / 2e-6 for step in steps])


class Base:
    def vector(self, x: Any) -> Any:
        return np.array([x[0], x[1] * 2])

    def __call__(self, x: Any) -> Any:
        return np.sum(self.vector(x) ** 2)


class Derived(Base):
    def vector(self, x: Any) -> Any:
        return np.concatenate([super().vector(x), [math.exp(x[2])]])


@dataclass
class Normal:
    mean: Any
    scale: Any = 1.5

    @classmethod
    def of(cls, v: Any) -> "Normal":
        return cls(*cls.doubled(v))

    @staticmethod
    def doubled(v: Any) -> Any:
        return np.asarray([v[0] * 2, v[1]])

    @property
    def precision(self) -> Any:
        return 1 / np.array([self.scale, 1.0]) ** 2

    def loss(self, x: Any) -> Any:
        return sum((one - self.mean) ** 2 * self.precision[0] for one in x)


class Walk:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __iter__(self) -> Any:
        place = np.zeros(2)
        for one in self.x:
            place[0] += one
            place[1] = place[0] * one
            yield place.copy()


class Linear:
    """With arrays that it asks for products, and one that it fills."""

    def __init__(self) -> None:
        self.data = np.arange(6.0).reshape(2, 3)
        self.found = np.zeros(2)
        self.functions = {"tanh": math.tanh}
        self.smooth = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])

    def loss(self, w: Any) -> Any:
        for i, one in enumerate(self.data.dot(w)):
            self.found[i] = self.functions["tanh"](one) + self.smooth(one)
        return np.sum(self.found**2)


REGISTERED: dict[str, Any] = {}


def registered(function: Any) -> Any:
    return REGISTERED.setdefault(function.__name__, function)


@registered
def squares(x: Any) -> Any:
    return np.array([x[0] ** 2, x[1]])


class Drawing:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def loss(self, x: Any) -> Any:
        inside, python = np.random.default_rng(1), random.Random(2)
        total = inside.normal(x[0], np.exp(x[1]), 3).sum() + python.gauss(x[2], 1.0)
        return total * self.rng.normal(x[0]) + np.random.RandomState(4).lognormal(x[1])


def nested(x: Any) -> Any:
    base = Derived()
    return np.sum(np.array([*pb.grad(lambda y: base(y))(x)]) ** 2) + base(x)


PROGRAMS: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "callable": Derived,
    "partial": lambda: partial(lambda model, factor, x: factor * model(x), Derived(), 2.0),
    "dataclass": lambda: lambda x: Normal.of(x).loss(x),
    "iterable": lambda: lambda x: sum(np.sum(one**2) for one in Walk(x)),
    "attributes": lambda: Linear().loss,
    "registry": lambda: lambda x: np.sum(REGISTERED["squares"](x)),
    "computed name": lambda: lambda x: np.sum(getattr(Derived(), "vec" + "tor")(x)),
    "draws": lambda: lambda x: Drawing().loss(x),
    "nested": lambda: nested,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_that_objects_lead_to(name: str) -> None:
    value, gradient = pb.value_and_grad(PROGRAMS[name]())(X)
    np.testing.assert_allclose(value, PROGRAMS[name]()(X), rtol=1e-12)
    np.testing.assert_allclose(gradient, slope(PROGRAMS[name](), X), rtol=1e-5, atol=1e-7)
    assert vars(sys.modules[__name__])["np"] is np and type(np) is type(math)


def test_streams_stand_where_plain_python_leaves_them() -> None:
    drawing, plain = Drawing(), Drawing()
    pb.grad(drawing.loss)(X), plain.loss(X)
    assert type(drawing.rng) is np.random.Generator
    assert drawing.rng.random() == plain.rng.random()


def test_a_generator_made_outside_of_a_body_draws_anew_in_each_step() -> None:
    def drawn(x: Any) -> Any:
        rng = np.random.default_rng(0)
        return pb.fori_loop(0, 3, lambda i, total: total + rng.normal() * x, 0.0 * x)

    with pytest.warns(UserWarning, match="in the body of a loop"):
        assert pb.compile(drawn)(1.0) == drawn(1.0)


def test_arrays_of_objects_are_arrays_again_and_hold_what_was_written() -> None:
    model, plain = Linear(), Linear()
    plain.loss(X)
    for _ in range(2):
        pb.grad(model.loss)(X)
        assert type(model.found) is type(model.data) is np.ndarray
        np.testing.assert_allclose(model.found, plain.found)
    model.found = np.ones(2)
    assert pb.value_and_grad(model.loss)(X)[0] == plain.loss(X)


class Shown:
    def __init__(self) -> None:
        self.values = np.zeros(2)

    def by_view(self, x: Any) -> Any:
        self.values[0] = x[0]
        return np.sum(self.part)  # type: ignore[attr-defined]

    def by_tuple(self, x: Any) -> Any:
        self.values[0] = x[0]
        return np.sum(self.pair[0])  # type: ignore[attr-defined]

    def by_argument(self, x: Any, values: Any) -> Any:
        self.values[0] = x[0]
        return np.sum(values)


def test_a_write_that_another_array_shows_is_an_error() -> None:
    shown = Shown()
    for _ in range(2):
        np.testing.assert_array_equal(pb.grad(shown.by_argument)(X, np.ones(2)), np.zeros(3))
    with pytest.raises(GradientError, match="can't hold that"):
        pb.grad(shown.by_argument)(X, shown.values)
    vars(shown).update(part=shown.values[:1], pair=(shown.values,))
    for function in (shown.by_view, shown.by_tuple):
        with pytest.raises(GradientError, match="can't hold that"):
            pb.grad(function)(X)


def test_an_inner_transform_finds_the_arrays_of_the_outer_one() -> None:
    class Twice:
        def __init__(self) -> None:
            self.values = np.zeros(2)

        def inner(self, y: Any) -> Any:
            self.values[1] = y
            return np.sum(self.values**2)

        def outer(self, x: Any) -> Any:
            self.values[0] = x
            return pb.grad(self.inner)(2 * x) + np.sum(self.values**3)

    value, gradient = pb.value_and_grad(Twice().outer)(1.5)
    assert (value, gradient) == (6.0 + 1.5**3 + 27.0, 4.0 + 3 * 1.5**2 + 24 * 1.5**2)


def test_other_threads_find_numpys_functions() -> None:
    base = Derived()
    expected = slope(base, X)

    def worked(_: int) -> Any:
        plain = base(X)
        return type(plain), pb.grad(base)(X), type(base.vector(X))

    with ThreadPoolExecutor(4) as pool:
        for kind, gradient, made in pool.map(worked, range(40)):
            assert kind is np.float64 and made is np.ndarray
            np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_a_compiled_function_is_traced_once_whoever_calls_it() -> None:
    helper = pb.compile(lambda x: np.sum(np.array([x[0], math.exp(x[1])])))
    base = Derived()
    helper(X), pb.grad(lambda x: base(x) + helper(x))(X)
    known = helper.cache_info().traces
    helper(X), pb.grad(lambda x: base(x) + helper(x))(X)
    assert helper.cache_info().traces == known == 2


class Decay:
    def last(self, rate: Any, method: str) -> Any:
        rates = lambda t, y: np.array([-rate * y[0]])  # noqa: E731
        return scipy.integrate.solve_ivp(rates, (0.0, 0.5), [1.0], method=method).y[0, -1]


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_what_a_method_gives_a_solver_is_called_on_the_way_back(method: str) -> None:
    decay = Decay()
    slope = pb.grad(lambda rate: decay.last(rate, method))(1.3)
    np.testing.assert_allclose(slope, -0.5 * np.exp(-0.65), rtol=1e-3)
