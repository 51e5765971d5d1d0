"""Loops whose steps read, write and run over parts that grow or shrink: rolled up, and differentiated."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.rolling.roll import roll
from pullback.tracer.graph import Graph
from pullback.tracer.loop import LoopNode, is_loop

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]


def cholesky(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
    return a


def lu(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def back_substitution(a):
    x = np.zeros(a.shape[0])
    for i in range(a.shape[0] - 1, -1, -1):
        x[i] = (a[i, 0] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def levinson(a):
    r = a[0] / 4.0
    y = np.zeros(r.shape[0])
    y[0] = -r[0]
    alpha, beta = -r[0], 1.0
    for k in range(1, r.shape[0]):
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + np.flip(r[:k]) @ y[:k]) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def orthonormal(a):
    for k in range(a.shape[1]):
        a[:, k] = a[:, k] / np.sqrt(a[:, k] @ a[:, k])
        for j in range(k + 1, a.shape[1]):
            a[:, j] -= (a[:, k] @ a[:, j]) * a[:, k]
    return a


def covariance(a):
    result = np.zeros((a.shape[1], a.shape[1]))
    for i in range(a.shape[1]):
        result[i:, i] = result[i, i:] = a[:, i] @ a[:, i:] / (a.shape[0] - 1.0)
    return result


def rank_one_updates(a):
    c = np.zeros(a.shape)
    for i in range(a.shape[0]):
        c[i, : i + 1] += 0.5
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[i, k] * a[: i + 1, k]
    return c


def row_reductions(a):
    result = np.zeros((a.shape[0], 4))
    for i in range(a.shape[0]):
        part = a[i, : i + 1]
        result[i, 0] = np.exp(part).sum()
        result[i, 1] = np.prod(1.0 + 0.1 * part)
        result[i, 2] = np.max(part * part)
        result[i, 3] = np.log(np.sum(part * part))
    return result


def quotients(a):
    """Beyond a part lies 1, where the derivative of log(1 - x) is infinite."""
    result = np.zeros(a.shape[0])
    b = np.where(np.arange(a.shape[0]) < 11, a[0] * 0.01, 1.0)
    for i in range(1, 11):
        result[i] = np.sum(np.log(1.0 - b[:i]) / (1.0 - b[:i])) * a[0, 0]
    return result


def scaled_by_a_scalar(a):
    """The gradient of a scalar sums over what it was broadcast to."""
    total = np.zeros(a.shape[0])
    factor = a[0, 0]
    for i in range(1, a.shape[0]):
        total[i] = np.sum(factor + np.zeros(i)) + np.sum(a[i, :i] - factor)
    return total


def outer_products(a):
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k + 1 :] -= 0.1 * np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def two_sizes(a):
    for i in range(1, a.shape[0]):
        a[i, :i] = a[i, :i] * a[i - 1, i - 1] + a[:i, i].sum()
        a[i:, i] = a[i:, i] + np.tanh(a[i, i:]).mean()
    return a


def places_that_only_the_outer_loop_moves(a):
    n = a.shape[0]
    c, zeros = a[0] * 0.5, np.zeros(n)
    for i in range(1, n - 1):
        a[i, i] = 0.3 * np.tanh(a[i - 1, i])
        a[:i, i] = 0.4 * a[:i, i] + 0.1 * ((c[:i] @ np.flip(zeros[:i])) * c[i])
        for _ in range(i, n):
            a[i, 1:-1] = 0.3 * (a[i - 1, :-2] + a[i, 2:] + a[i - 1, 1:-1])
    return a


PROGRAMS = [
    cholesky, lu, back_substitution, levinson, orthonormal, covariance, rank_one_updates, row_reductions,
    quotients, outer_products,
]  # fmt: skip
NOT_ROLLED = [scaled_by_a_scalar, two_sizes, places_that_only_the_outer_loop_moves]


def matrix(size: int) -> np.ndarray:
    a = np.random.default_rng(5).standard_normal((size, size)) * 0.2
    return a @ a.T / size + np.eye(size)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("program", PROGRAMS + NOT_ROLLED)
def test_values_and_gradients_are_those_of_the_tape(program):
    a = matrix(13)

    def loss(x):
        result = program(x * 1.0)
        return (result.reshape(-1) * np.cos(np.arange(result.size))).sum()

    np.testing.assert_allclose(pb.compile(program)(a.copy()), program(a.copy()), rtol=1e-12, atol=1e-14)
    value, gradient = pb.value_and_grad(loss)(a)
    compiled_value, compiled_gradient = pb.value_and_grad(pb.compile(loss))(a)
    np.testing.assert_allclose(compiled_value, value, rtol=1e-11)
    np.testing.assert_allclose(compiled_gradient, gradient, rtol=1e-9, atol=1e-12)
    direction = np.random.default_rng(4).standard_normal(a.shape)
    ahead, behind = (loss(a + step * direction) for step in (1e-6, -1e-6))
    assert (gradient * direction).sum() == pytest.approx((ahead - behind) / 2e-6, rel=1e-5, abs=1e-7)


def nodes_of(graph: Graph) -> int:
    """How many nodes a graph has, those of its loops' bodies included."""
    return sum(nodes_of(LoopNode(node).body) if is_loop(node) else 1 for node in graph.nodes)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_graph_does_not_grow_with_the_steps(program):
    graphs = [roll(pb.compile(program).graph(matrix(size))).graph for size in (14, 19)]
    assert nodes_of(graphs[0]) == nodes_of(graphs[1])


def test_loops_end_where_the_part_ends():
    def program(a):
        x = np.zeros(a.shape[0])
        for i in range(a.shape[0]):
            x[i] = np.exp(a[i, : i + 1]) @ a[: i + 1, i]
        return x.sum()

    source = pb.compile(program).source(matrix(20)).split("# Generated")[1].split("for i in")[-2]
    assert "for j in range(i + 2)" in source and " if " not in source


@pytest.mark.drawn(6)
def test_second_derivatives():
    def loss(x):
        return (cholesky(x[0] * np.eye(10) + 0.1 * np.ones((10, 10)) * x[1]) ** 3).sum()

    x = np.array([1.5, 0.8])
    hessian = pb.hessian(pb.compile(loss))(x)
    step, gradient = 1e-5, pb.grad(loss)
    columns = [(gradient(x + step * e) - gradient(x - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(hessian, np.stack(columns), rtol=1e-6)
