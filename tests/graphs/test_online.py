"""Sums of exponentials and squares in blocks: one pass over memory, the same results."""

from dataclasses import replace

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.cost.machine import REFERENCE, assuming

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

RNG = np.random.default_rng(7)
SHAPES = {
    (23,): [(0,)],
    (24,): [(0,)],
    (13, 3): [(0,), (1,), (0, 1)],
    (2, 11, 3): [(1,), (0, 1), (1, 2), (0, 2), (0, 1, 2)],
}
CASES = [(shape, dims) for shape, every in SHAPES.items() for dims in every]


@pytest.fixture(autouse=True)
def everything_is_long():
    with assuming(replace(REFERENCE, last_level=0, second_level=8 * 64)):
        yield


def logsumexp(x, dims):
    return pb.logsumexp(x, dims)


def variance(x, dims):
    return x.var(dims)


def written_out(x, dims):
    largest = np.max(x, axis=dims, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), axis=dims)) + np.sum(largest, axis=dims)


def standardised(x, dims):
    return ((x - np.mean(x, axis=dims, keepdims=True)) / np.std(x, axis=dims, keepdims=True)) ** 3


FUNCTIONS = [logsumexp, variance, written_out, standardised]


@pytest.mark.parametrize("shape, dims", CASES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_gradients_agree_with_those_of_eager_code(function, shape, dims):
    x, w = RNG.standard_normal(shape), RNG.standard_normal(shape)

    def weighted(x):
        result = function(x * w, dims)
        return np.sum(result * np.cos(np.arange(result.size).reshape(result.shape)))

    found, expected = (
        one(x) for one in (pb.value_and_grad(pb.compile(weighted)), pb.value_and_grad(weighted))
    )
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("function", [logsumexp, variance])
def test_second_derivatives(function):
    x = RNG.standard_normal(19)
    compiled = pb.compile(pb.hessian(lambda x: function(x, (0,))))
    np.testing.assert_allclose(
        compiled(x), pb.hessian(lambda x: function(x, (0,)))(x), rtol=1e-10, atol=1e-12
    )


def test_the_loop_over_blocks_has_both_passes():
    source = pb.compile(lambda x: pb.logsumexp(x, 0)).forward_source(RNG.standard_normal(24))
    first, _, rest = source.partition("for i in")
    assert "maximum(largest" in rest.partition("for i in")[0] and "exp(" in rest.partition("for i in")[0]
    assert "for" not in first


@pytest.mark.parametrize("special", [-np.inf, np.inf, np.nan])
@pytest.mark.parametrize("where", [slice(0, 1), slice(8, 16), slice(None)], ids=str)
def test_infinities_and_nan(special, where):
    x = 800.0 + RNG.standard_normal(23)
    x[where] = special
    both = pb.value_and_grad(pb.compile(lambda x: pb.logsumexp(x, 0)))
    with np.errstate(all="ignore"):
        expected = pb.value_and_grad(lambda x: pb.logsumexp(x, 0))(x)
    for found, one in zip(both(x), expected):
        np.testing.assert_allclose(found, one, rtol=1e-12)


@pytest.mark.parametrize("offset", [-800.0, 800.0])
def test_blocks_apart_neither_overflow_nor_vanish(offset):
    x = np.concatenate([RNG.standard_normal(16), offset + RNG.standard_normal(16)])
    found = pb.compile(lambda x: pb.logsumexp(x, 0))(x)
    np.testing.assert_allclose(found, pb.logsumexp(pb.tensor(x), 0).item(), rtol=1e-14)


def test_a_variance_far_from_zero_stays_exact():
    x = (1e4 + RNG.standard_normal(4_000)).astype("float32")
    found = pb.compile(lambda x: x.var(0))(x)
    # Means of blocks are rounded to 5e-4; by the difference of squares the error would be 6.
    np.testing.assert_allclose(found, x.astype("float64").var(ddof=1), rtol=3e-4)


def has_blocks(function, size):
    source = pb.compile(function).forward_source(RNG.standard_normal(size))
    return any(line.lstrip().startswith("for j in") for line in source.splitlines())


def test_exponentials_that_others_read_are_computed_once():
    def several(x):
        e = np.exp(x - np.max(x))
        return np.sum(e) + np.sum(e**2) + np.sum(np.sqrt(e))

    assert not has_blocks(several, 24)
    assert has_blocks(lambda x: np.sum(np.exp(x - np.max(x))), 24)


def test_what_fits_the_cache_is_read_twice():
    with assuming(replace(REFERENCE, last_level=2 * 24 * 8, second_level=8 * 64)):
        assert not has_blocks(lambda x: pb.logsumexp(x, 0), 24)
        assert has_blocks(lambda x: pb.logsumexp(x, 0), 25)
