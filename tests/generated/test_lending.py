"""Scratch in the memory of arrays that are not in use yet, or any more: less memory, the same results."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.cost.machine import REFERENCE, assuming


@pytest.fixture(autouse=True)
def everything_is_lent():
    with assuming(replace(REFERENCE, first_level=1)):
        yield


def descended(w1, w2, x):
    def loss(w1, w2):
        return np.sum((np.tanh(x @ w1) @ w2) ** 2)

    value, slopes = pb.value_and_grad(loss, argnums=(0, 1))(w1, w2)
    return value, *[one - 0.1 * slope for one, slope in zip((w1, w2), slopes)]


def slopes_of_products(w1, w2, x):
    """Products of products, of several sizes."""

    def total(w1, w2, x):
        first = np.tanh(x @ w1)
        second = np.tanh(first @ w1.T)
        third = np.tanh(second.T @ first)
        return np.sum((third @ w2) ** 2) + np.sum(x @ third)

    return pb.grad(total, argnums=(0, 1, 2))(w1, w2, x)


def arrays():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) / 8 for shape in ((70, 64), (64, 70), (50, 70))]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("function", [descended, slopes_of_products])
def test_what_is_lent_changes_no_result(function):
    compiled = pb.compile(function, parallel=True)
    for found, expected in zip(compiled(*arrays()), function(*arrays())):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    accounts = compiled.explain(*arrays(), as_data=True).forward
    assert any(array.lies_in for account in accounts for array in account.arrays)
    for account in accounts:
        require_disjoint(account)


def require_disjoint(account):
    """No two arrays of one function share bytes, and none changes before its last reader has read it."""
    sizes = {array.name: array.nbytes for array in account.arrays}
    places = []
    for array in account.arrays:
        owner = array.lies_in or array.name
        used = [number for number, function in enumerate(account.functions) if array.name in function.arrays]
        stop = array.offset + array.nbytes
        places.append((owner, array.offset, stop, used, array.is_output))
        assert stop <= sizes[owner]
    for one, other in itertools.combinations(places, 2):
        overlap = one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
        if overlap and one[3] and other[3]:
            first, then = sorted((one, other), key=lambda place: place[3][0])
            assert first[3][-1] < then[3][0] and not first[4]


def test_the_gradient_of_weights_lends_its_memory_to_activations():
    text = pb.compile(descended, parallel=True).explain(*arrays())
    assert " lies in " in text and "while that is not in use" in text


def test_small_scratch_has_memory_of_its_own():
    with assuming(replace(REFERENCE, first_level=1 << 31)):
        assert " lies in " not in pb.compile(descended, parallel=True).explain(*arrays())


def test_exponentials_that_the_gradient_scales_lie_in_its_memory():
    def loss(x):
        return pb.logsumexp(x, 0).sum()

    x = np.random.default_rng(0).standard_normal((300, 40))
    both = pb.compile(pb.value_and_grad(loss))
    (program,) = both.programs(x)
    assert program.source.count(" exp(") == 1 and "d_x[i, j] = exp(" in program.source
    np.testing.assert_allclose(both(x)[1], np.exp(x) / np.exp(x).sum(0), rtol=1e-13)
