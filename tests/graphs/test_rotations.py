"""Arrays whose end is put in front of their start: one movement, in graphs and in code."""

import numpy as np
import pytest
from uncompiled import run_uncompiled

import pullback as pb
from pullback.codegen.pipeline import build_forward
from pullback.codegen.rewriting import rotations  # noqa: F401  enters its rewrites
from pullback.codegen.rewriting.simplify import simplify
from pullback.tracer.graph import Graph, Node, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.spec import Spec

SIZE = 40
x = make_input(Spec((3, SIZE), np.dtype("float64")), "x")


def part(node: Node, start: int, stop: int, step: int = 1) -> Node:
    return m.slice_(node, starts=(0, start), stops=(3, stop), steps=(1, step))


def rolled(node: Node, shift: int) -> Node:
    cut = -shift % SIZE
    return m.concatenate(part(node, cut, SIZE), part(node, 0, cut), dim=1)


def simple(node: Node) -> Node:
    """Simplified, and checked to have the same value, in code as well."""
    graph, array = Graph("f", (x,), (node,)), np.random.default_rng(0).normal(size=x.shape)
    (expected,) = evaluate_graph(graph, [array])
    result = simplify(graph)
    np.testing.assert_array_equal(evaluate_graph(result, [array])[0], expected)
    if result.outputs[0] is not x:
        program = build_forward(graph)
        np.testing.assert_allclose(program([array])[0], expected, rtol=1e-14)
        np.testing.assert_allclose(run_uncompiled(program, [array])[0], expected, rtol=1e-14)
    return result.outputs[0]


@pytest.mark.parametrize("shift", [1, -1, 7, 20, -19])
def test_two_parts_in_the_other_order_are_a_rotation(shift: int) -> None:
    found = simple(rolled(x, shift))
    assert found.operator is m.rotate and found.attributes == {"dim": 1, "shift": shift}
    assert simple(rolled(rolled(x, shift), -shift)) is x
    assert simple(rolled(e.sin(rolled(x, shift)), 3)).attributes["shift"] == 3


def test_other_concatenations_are_none() -> None:
    for end, start in (
        (part(x, 20, SIZE), part(x, 1, 21)),  # another part of the same shape
        (part(x, 20, SIZE), part(e.sin(x), 0, 20)),
        (part(x, 20, SIZE, 2), part(x, 0, SIZE - 10)),
    ):
        assert simple(m.concatenate(end, start, dim=1)).operator is m.concatenate
    assert simple(m.concatenate(part(x, 0, 20), part(x, 20, SIZE), dim=1)) is x


def test_a_part_on_one_side_of_the_seam_asks_nothing() -> None:
    for found in (part(rolled(x, 3), 3, SIZE, 2), part(rolled(x, 3), 0, 3), part(rolled(x, -3), 1, SIZE - 3)):
        simple(found)
        assert build_forward(Graph("f", (x,), (found,))).source.count("value[") == 1
    across = build_forward(Graph("f", (x,), (part(rolled(x, 3), 2, SIZE),))).source
    assert "value[i, 0] = x[i, n - 1]" in across or "value[i, 0] = x[i, m - 1]" in across, across


def agrees(function, *arrays):
    positions = tuple(range(len(arrays)))
    value, gradients = pb.value_and_grad(pb.compile(function), argnums=positions)(*arrays)
    expected, wanted = pb.value_and_grad(function, argnums=positions)(*arrays)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, one in zip(gradients, wanted):
        np.testing.assert_allclose(found, one, rtol=1e-10, atol=1e-12)


def ring(position, velocity, stiffness, steps=12):
    for _ in range(steps):
        stretch = position - np.roll(position, 1)
        force = stiffness * (stretch + 0.1 * stretch**3)
        velocity = velocity + 0.1 * (np.roll(force, -1) - force)
        position = position + 0.1 * velocity
    return (position**2).sum() + (velocity**2).sum()


def torus(u):
    for _ in range(8):
        around = sum(np.roll(u, shift, axis) for shift in (1, -1) for axis in (0, 1))
        u = u + 0.1 * np.tanh(around - 4.0 * u)
    return (u**3).sum()


@pytest.mark.parametrize("size", [2, 3, 16, 17, 18, 50])
def test_a_ring(size):
    agrees(ring, *np.random.default_rng(0).normal(size=(3, size)))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("shape", [(4, 20), (20, 5), (18, 33)])
def test_a_torus(shape):
    agrees(torus, np.random.default_rng(0).normal(size=shape))


@pytest.mark.drawn(4)
def test_shifts_that_differ_from_step_to_step_are_rolled_up():
    def correlation(u):
        total = 0.0
        for lag in range(12):
            total = total + (u * np.roll(u, lag)).sum() * 0.5**lag
        return total

    agrees(correlation, np.random.default_rng(0).normal(size=30))


def test_a_choice_of_place_is_no_choice_of_value():
    """At the border an element asks where it is read; what is computed from it is written out once."""

    def products(u):
        stretch = u - np.roll(u, 1)
        return np.roll(stretch, -1) * stretch

    source = pb.compile(products).forward_source(np.ones(50))
    assert "u[i + 1] - u[i]" in source and " if " not in source
    assert "u[0] - u[n - 1]" in source


def test_what_stays_in_the_cache_from_step_to_step_is_stored_sooner():
    """The force of a spring is read at both its ends."""
    arrays = np.random.default_rng(0).normal(size=(3, 50))
    forces = pb.compile(ring).forward_source(*arrays)
    assert "force[j] = " in forces and forces.count("stiffness[") == 2  # inside, and at the border
    once = pb.compile(lambda *state: ring(*state, steps=1)).forward_source(*arrays)
    assert "force[i] = " not in once


def test_small_dimensions_beside_it_are_unrolled():
    def length(points):
        unit = points / np.sqrt((points * points).sum(axis=1, keepdims=True))
        around = np.roll(unit, 1, axis=0) - unit
        return np.sqrt((around * around).sum(axis=1)).sum()

    points = np.random.default_rng(0).normal(size=(200, 3))
    agrees(length, points)
    source = pb.compile(length).forward_source(points)
    assert "concatenate" not in source and "for j" not in source
