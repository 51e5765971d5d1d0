"""Padded terms of sums joined: what gradients of parts become."""

import re

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.rewriting.simplify import simplify
from pullback.codegen.rewriting.sums import join_padded_terms
from pullback.tracer.graph import Graph, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.elementwise import zeros_like
from pullback.tracer.origin import Origin, located_at
from pullback.tracer.spec import Spec
from pullback.tracer.verify import verify

FLOAT = np.dtype("float64")


def padded_sum(widths, shape=(6, 5)):
    """A graph that adds up inputs padded to one shape, and arrays for it."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(tuple(n - before - after for n, (before, after) in zip(shape, one)))
        for one in widths
    ]
    inputs = [make_input(Spec(array.shape, FLOAT), f"x_{place}") for place, array in enumerate(arrays)]
    total = m.pad(inputs[0], widths=widths[0], value=0)
    for node, one in zip(inputs[1:], widths[1:]):
        total = total + m.pad(node, widths=one, value=0)
    return Graph("padded_sum", tuple(inputs), (total,)), arrays


def joined(widths):
    graph, arrays = padded_sum(widths)
    result = verify(simplify(join_padded_terms(graph)))
    np.testing.assert_allclose(
        evaluate_graph(result, arrays)[0], evaluate_graph(graph, arrays)[0], atol=1e-15
    )
    return [node.operator.name for node in result.nodes if not node.is_input and not node.is_constant]


def test_rows_become_a_concatenation():
    assert joined([((row, 5 - row), (0, 0)) for row in (2, 0, 4)]) == ["concatenate"]


def test_terms_of_one_part_are_added_first():
    names = joined([((1, 4), (0, 0)), ((3, 2), (0, 0)), ((1, 4), (0, 0))])
    assert sorted(names) == ["add", "concatenate"]


def test_single_elements_are_laid_out_in_two_dimensions():
    places = [(0, 0), (0, 3), (5, 1), (2, 2)]
    names = joined([((i, 5 - i), (j, 4 - j)) for i, j in places])
    assert "add" not in names


def test_overlapping_parts_stay_sums():
    assert joined([((0, 1), (0, 0)), ((1, 0), (0, 0))]).count("pad") == 2


@pytest.mark.parametrize("steps", [3, 12])
def test_gradient_of_rows_used_one_after_another(steps):
    def loss(rows):
        total = 0.0
        for step in range(steps):
            total = total + np.sum(np.sin(rows[step]) * rows[(step + 1) % steps])
        return total

    rows = np.random.default_rng(1).standard_normal((steps, 40))
    expected = pb.grad(loss)(rows)
    np.testing.assert_allclose(pb.grad(pb.compile(loss))(rows), expected, rtol=1e-12)


def test_totals_of_a_gradient_are_added_before_they_are_summed() -> None:
    """A complex factor that is broadcast: each part of its gradient is one array of totals."""

    def size(re, im, masks):
        z = (re + 1j * im) * masks
        return np.sum(np.abs(z * z + z) ** 2)

    rng = np.random.default_rng(0)
    re, im = rng.normal(size=(2, 5, 7))
    masks = rng.normal(size=(4, 5, 7)) + 1j * rng.normal(size=(4, 5, 7))
    derive = pb.value_and_grad(size, argnums=(0, 1))
    compiled = pb.compile(derive)
    value, gradients = compiled(re, im, masks)
    expected, expected_gradients = derive(re, im, masks)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(gradients, expected_gradients, rtol=1e-12, atol=1e-12)
    assert "totals" not in compiled.source()


def five_points(u, weights):
    for _ in range(9):
        around = -4.0 * u
        around[1:] += u[:-1]
        around[:-1] += u[1:]
        around[:, 1:] += u[:, :-1]
        around[:, :-1] += u[:, 1:]
        u = u + 0.1 * np.sin(around)
    return np.sum(u * weights)


@pytest.mark.drawn(4)
def test_the_cotangent_of_an_array_to_which_parts_are_added_is_that_of_the_sum():
    rng = np.random.default_rng(0)
    u, weights, direction = rng.normal(size=(3, 6, 5))
    compiled = pb.compile(pb.grad(five_points))
    gradient = compiled(u, weights)
    step = 1e-6
    ends = (five_points(u + sign * step * direction, weights) for sign in (1, -1))
    assert np.sum(gradient * direction) == pytest.approx(np.subtract(*ends) / (2 * step), rel=1e-7)
    np.testing.assert_allclose(gradient, pb.grad(five_points)(u, weights), rtol=1e-12)
    d_around = make_input(Spec((6, 5), FLOAT), "d_around")
    bounds = {"starts": (1, 0), "stops": (6, 5), "steps": (1, 1)}
    part = m.slice_(d_around, **bounds)
    with located_at(Origin("", 0, "", rule="slice_update")):
        without = m.slice_update(d_around, zeros_like(part), **bounds)
        total = without + m.dilate(part, shape=(6, 5), **bounds)
    assert simplify(Graph("cotangent", (d_around,), (total,))).outputs == (d_around,)


@pytest.mark.drawn(4)
def test_parts_that_are_added_to_are_one_pass():
    rng = np.random.default_rng(0)
    u, weights = rng.normal(size=(2, 6, 5))
    compiled = pb.compile(five_points)
    assert compiled(u, weights) == pytest.approx(five_points(u, weights), rel=1e-12)
    stored = re.findall(r"^ +(\w+)\[.+\] = ", compiled.source(u, weights), re.MULTILINE)
    assert not {"around", "states", "totals"} & set(stored), stored


@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_not_added_to_keeps_the_sign_of_zero(sign):
    def added(x, y):
        x = 1.0 * x
        if sign > 0:
            x[1:] += y[1:]
        else:
            x[1:] -= y[1:]
        return x

    x = y = np.array([-0.0, -0.0, 0.0, 1.0])
    np.testing.assert_array_equal(np.signbit(pb.compile(added)(x, y)), np.signbit(added(x, y)))
