"""Scratch in the memory of arrays that are not in use yet, or any more: less memory, the same results."""

import itertools

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.nests import lending
from pullback.codegen.program import Program


@pytest.fixture(autouse=True)
def everything_is_lent(monkeypatch):
    monkeypatch.setattr(lending, "SMALLEST_LENT", 1)


@pytest.fixture
def plans(monkeypatch):
    """The plans of the programs that are run while a test runs."""
    found = {}
    run = Program.__call__

    def watched(program, arrays):
        found[id(program)] = program._plan
        return run(program, arrays)

    monkeypatch.setattr(Program, "__call__", watched)
    return found


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


@pytest.mark.parametrize("function", [descended, slopes_of_products])
def test_what_is_lent_changes_no_result(function, plans):
    found, expected = pb.compile(function, parallel=True)(*arrays()), function(*arrays())
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert any(plan.loans for plan in plans.values())
    for plan in plans.values():
        require_disjoint(plan)


def require_disjoint(plan):
    """No two arrays of one function share bytes, and none changes before its last reader has read it."""
    places = {}
    for node in plan.filled:
        loan = plan.loans.get(node)
        owner, start = (loan.owner, loan.offset) if loan else (node, 0)
        used = [place for place, stage in enumerate(plan.stages) if node in stage.arrays]
        is_output = any(output.node is node for output in plan.outputs)
        places[node] = (owner, start, plan.storage_spec(node).nbytes, used, is_output)
        assert start + places[node][2] <= plan.storage_spec(owner).nbytes
    for one, other in itertools.combinations(places.values(), 2):
        overlap = one[0] is other[0] and one[1] < other[1] + other[2] and other[1] < one[1] + one[2]
        if overlap and one[3] and other[3]:
            first, then = sorted((one, other), key=lambda place: place[3][0])
            assert first[3][-1] < then[3][0] and not first[4]


def test_the_gradient_of_weights_lends_its_memory_to_activations():
    text = pb.compile(descended, parallel=True).explain(*arrays())
    assert " lies in " in text and "while that is not in use" in text


def test_small_scratch_has_memory_of_its_own(monkeypatch):
    monkeypatch.setattr(lending, "SMALLEST_LENT", 1 << 30)
    assert " lies in " not in pb.compile(descended, parallel=True).explain(*arrays())
