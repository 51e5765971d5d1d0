"""What gradients and sums are spared: divisions by one value, factors of all terms, strided reads."""

import numpy as np
import pytest

import pullback as pb


def normals(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def source_and_results(function, *arrays, argnums=(0,)):
    """The source of value and gradient; both agree with the eager ones."""
    compiled = pb.compile(pb.value_and_grad(function, argnums=argnums))
    value, gradients = compiled(*arrays)
    expected, wanted = pb.value_and_grad(function, argnums=argnums)(*arrays)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, one in zip(gradients, wanted):
        np.testing.assert_allclose(found, one, rtol=1e-10, atol=1e-12)
    return compiled.source(*arrays)


def test_quotients_of_a_gradient_share_a_reciprocal():
    def ratio(x, y):
        return np.sum(x / np.sqrt(y))

    source = source_and_results(ratio, normals(50), normals(50) ** 2 + 0.1, argnums=(0, 1))
    assert source.count(" = 1.0 / ") == 1
    code = [line.split("#")[0] for line in source.splitlines()]
    assert (
        sum(" / " in line for line in code) == 2
    )  # the function's own quotient is rounded as NumPy rounds it


def test_a_denominator_of_a_row_is_inverted_once_for_a_row():
    source = source_and_results(lambda x: np.sum(pb.logsumexp(x, dim=1)), normals(20, 30))
    inner = source[source.index("1.0 / ") :]
    assert inner.count(" / ") == 1 and "for j" in inner


@pytest.mark.parametrize("denominator", [0.0, -0.0, np.inf, -np.inf, np.nan])
def test_infinities_and_nan_of_shared_reciprocals(denominator):
    def ratio(x, y):
        return np.sum(x / y)

    x, y = np.array([0.0, 1.0, -2.0, np.inf, np.nan]), np.full(5, denominator)
    with np.errstate(all="ignore"):
        found = pb.grad(pb.compile(ratio), argnums=(0, 1))(x, y)
        wanted = pb.grad(ratio, argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(found, wanted)


def test_factors_that_no_term_changes_are_multiplied_once():
    """The gradient of w is a sum over rows of what has `scale` as a factor, and -3."""

    def loss(w, scale, x):
        return np.sum(-3.0 * scale * np.tanh(x * w))

    source = source_and_results(loss, normals(40), normals(40), normals(100, 40))
    loops = source[source.index("for i in range(n):") :]
    total = next(line for line in loops.splitlines() if "] += " in line)
    assert "scale" not in total and "3.0" not in total


def test_sums_that_the_user_writes_keep_their_terms():
    """A product of infinity and zero is nan, also where another order would not make it."""
    x, scale = np.array([[0.0], [1.0]]), np.array([np.inf, 2.0])
    np.testing.assert_array_equal(pb.compile(lambda x, s: np.sum(x * s, axis=0))(x, scale), [np.nan, 2.0])


def squared_distances(points, centres):
    return np.sum(np.min(np.sum((points[:, None, :] - centres) ** 2, axis=2), axis=1))


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("dimensions", [2, 10, 16, 33])
def test_distances_from_a_table(dimensions, count):
    points, centres = normals(80, dimensions), normals(count, dimensions) + 1.0
    source = source_and_results(squared_distances, points, centres, argnums=(0, 1))
    is_transposed = count == 20 and dimensions in (10, 16)
    assert (f"for k in range({dimensions}):" in source) == is_transposed


def test_equal_distances_share_the_gradient():
    points, centres = np.zeros((100, 10)), np.ones((16, 10))
    found = pb.grad(pb.compile(squared_distances), argnums=1)(points, centres)
    np.testing.assert_allclose(found, np.full((16, 10), 2 * 100 / 16))


def test_another_number_of_points_compiles_nothing():
    compiled = pb.compile(pb.grad(squared_distances, argnums=1))
    compiled(normals(100, 12), normals(16, 12))
    before = compiled.cache_info()
    compiled(normals(90, 12), normals(17, 12))
    after = compiled.cache_info()
    assert (after.compilations, after.disk_hits) == (before.compilations, before.disk_hits)
