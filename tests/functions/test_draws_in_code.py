"""Draws that code makes itself, as data tells which and how many, leave streams as plain Python does."""


import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
import scipy.stats

import pullback as pb

Draws = Callable[[Any, Any], Any]


def between_others(x: Any, rng: Any) -> Any:
    first = rng.normal()
    counts = rng.poisson(x)
    return first, counts, rng.normal(size=2), rng.integers(100), rng.binomial(10, x / 10)


def in_a_branch(x: Any, rng: Any) -> Any:
    return pb.cond(x.sum() > 8, lambda: x * rng.normal(), lambda: x), rng.random()


def in_one_of_several_branches(x: Any, rng: Any) -> Any:
    branches = [lambda: 0.0, lambda: rng.random(), lambda: rng.gamma(2.0), lambda: rng.normal()]
    return pb.switch(x.astype(int)[2] - 2, branches), rng.random()


def as_many_as_a_value(x: Any, rng: Any) -> Any:
    return pb.fori_loop(0, x.astype(int)[1], lambda i, v: v + i * rng.normal(), 0.0), rng.random()


def as_long_as_something_is_true(x: Any, rng: Any) -> Any:
    return pb.while_loop(lambda v: v < x[2], lambda v: v + rng.random(), 0.0), rng.random()


def in_a_condition(x: Any, rng: Any) -> Any:
    return pb.while_loop(lambda v: v < x[2] + rng.random(), lambda v: v + rng.random(), 0.0), rng.random()


def of_carries(x: Any, rng: Any) -> Any:
    return pb.scan(lambda c, row: (c + rng.poisson(row), rng.poisson(c * 0 + 1.0)), 0.0, x), rng.random()


def in_a_branch_of_a_step(x: Any, rng: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return pb.cond(row > 1.5, lambda: carry + rng.normal(), lambda: carry), None

    return pb.scan(step, 0.0, x), rng.random()


def in_pythons_loop(x: Any, rng: Any) -> Any:
    total = 0.0
    for _ in range(40):
        total = total * 0.5 + rng.poisson(x[1] + total)
    return total, rng.random()


def before_a_question(x: Any, rng: Any) -> Any:
    count = rng.poisson(x[2])
    return count if count > 3 else -rng.random()


def of_probabilities(x: Any, rng: Any) -> Any:
    return rng.multinomial(10, x / x.sum()), rng.choice(5, p=np.full(5, 0.2)), rng.dirichlet(x)


def in_a_batch(x: Any, rng: Any) -> Any:
    return pb.vmap(lambda row: rng.poisson(row) + rng.normal())(x), rng.random()


def of_nested_arguments(x: Any, rng: Any) -> Any:
    return rng.poisson(x[0], ()), rng.poisson([x[1], x[2]], (2,)), rng.multivariate_normal(x[:2], np.eye(2))


def of_pythons(x: Any, rng: Any) -> Any:
    return random.betavariate(x[0], x[1]), random.gauss(0, 1), random.gammavariate(x[1], x[2])


def of_the_library(x: Any, rng: Any) -> Any:
    rates = pb.tensor(x)
    either = pb.cond(rates.sum() > 8, lambda: pb.rand(2), lambda: pb.zeros(2))
    return pb.poisson(rates), either, pb.multinomial(rates, 2), pb.binomial(rates.round(), rates / 10)


def of_scipys_distributions(x: Any, rng: Any) -> Any:
    located = scipy.stats.norm.rvs(loc=x, size=3, random_state=rng)
    frozen = scipy.stats.gamma(2.0).rvs(4, random_state=rng), scipy.stats.poisson(x).rvs(random_state=rng)
    vectors = scipy.stats.multivariate_normal.rvs(np.zeros(2), np.eye(2), random_state=rng)
    return located, frozen, vectors, scipy.stats.weibull_max.rvs(x[1], random_state=rng)


DRAWS = [
    between_others, in_a_branch, in_one_of_several_branches, as_many_as_a_value, as_long_as_something_is_true,
    in_a_condition, of_carries, in_a_branch_of_a_step, in_pythons_loop, before_a_question, of_probabilities,
    of_pythons, of_the_library, of_scipys_distributions, in_a_batch, of_nested_arguments,
]  # fmt: skip


TRANSFORMS = [lambda f: pb.grad(pb.compile(f)), lambda f: pb.compile(pb.grad(f))]


def results(function: Callable[[Any], Any]) -> list[Any]:
    """Of several calls, and where the streams stand then."""
    random.seed(0)
    pb.manual_seed(0)
    found = [function(np.arange(1.0, 4.0) + number) for number in range(3)]
    return [*optree.tree_leaves(found), pb.rand(1), random.random()]


def check(draw: Draws) -> None:
    plain, rng = np.random.default_rng(0), np.random.default_rng(0)
    expected = results(lambda x: draw(x, plain))
    found = results(pb.compile(lambda x: draw(x, rng)))
    assert list(map(type, found)) == list(map(type, expected))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-14)
    assert rng.bit_generator.state == plain.bit_generator.state


@pytest.mark.parametrize("draw", DRAWS)
def test_the_stream_is_plain_pythons(draw: Draws) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(draw)


def test_a_question_about_draws_in_a_loop_runs_uncompiled() -> None:
    def asks(x: Any, rng: Any) -> Any:
        (total, _), _ = in_a_branch_of_a_step(x, rng)
        return total if total > 0 else -rng.random()

    with pytest.warns(UserWarning, match="runs uncompiled: A value is asked for"):
        check(asks)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_gradients_of_what_is_drawn_in_loops(transform: Any) -> None:
    def loss(x: Any, rng: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            return pb.cond(row > 1.5, lambda: carry * row * rng.normal(), lambda: carry), None

        return pb.scan(step, 1.0, x)[0] * rng.random()

    def ended(x: Any, rng: Any) -> Any:
        return pb.while_loop(lambda v: v < 900.0, lambda v: v + x.sum() * rng.random(), 0.0)

    x = np.arange(1.0, 4.0)
    for function in (loss, ended):
        plain, rng = np.random.default_rng(0), np.random.default_rng(0)
        expected = [pb.grad(lambda x: function(x, plain))(x) for _ in range(3)]  # noqa: B023
        gradient = transform(lambda x: function(x, rng))  # noqa: B023
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what would be drawn again in backward runs uncompiled
            np.testing.assert_allclose([gradient(x) for _ in range(3)], expected, rtol=1e-13)
        assert rng.bit_generator.state == plain.bit_generator.state


@pytest.mark.parametrize("transform", [*TRANSFORMS, pb.grad])
def test_what_has_no_derivative_by_its_parameters_is_refused(transform: Any) -> None:
    rng = np.random.default_rng(0)

    def in_a_step(x: Any) -> Any:
        return pb.scan(lambda c, row: (c + row * rng.poisson(row), None), 0.0, x)[0]

    for function in (lambda x: (x * rng.poisson(x)).sum(), in_a_step):
        with pytest.raises(pb.errors.GradientError, match="no gradient"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transform(function)(np.arange(1.0, 4.0))


def test_errors_of_parameters_are_numpys() -> None:
    rng = np.random.default_rng(0)
    compiled = pb.compile(lambda x: x * rng.poisson(x))
    compiled(np.ones(3))
    with pytest.raises(ValueError, match="lam < 0"):
        compiled(-np.ones(3))


def test_a_long_loop_of_draws_is_one_loop() -> None:
    rng = np.random.default_rng(0)
    compiled = pb.compile(lambda x: in_pythons_loop(x, rng))
    assert compiled.source(np.arange(1.0, 4.0)).count(" poisson(") <= 3
