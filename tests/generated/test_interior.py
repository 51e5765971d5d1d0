"""Stencils: their interior without questions, their borders, in all sizes."""

import numpy as np
import pytest

import pullback as pb


def smoothed(u):
    inner = u[1:-1] + 0.1 * np.tanh(u[2:] - 2 * u[1:-1] + u[:-2])
    return np.pad(inner, 1)


def diffused(u, rate):
    for _ in range(3):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        u = np.pad(u[1:-1, 1:-1] + rate * around, 1)
    return np.sum(u * u)


def agrees(function, *arrays, **options):
    positions = tuple(range(len(arrays)))
    value, gradients = pb.value_and_grad(pb.compile(function, **options), argnums=positions)(*arrays)
    expected, wanted = pb.value_and_grad(function, argnums=positions)(*arrays)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, one in zip(gradients, wanted):
        np.testing.assert_allclose(found, one, rtol=1e-10, atol=1e-12)


def normals(*shape):
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize("size", [3, 4, 15, 16, 17, 50])
def test_a_stencil_of_a_stencil(size):
    agrees(lambda u: np.sum(smoothed(smoothed(u)) ** 2), normals(size))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("shape", [(5, 40), (40, 5), (33, 34)])
@pytest.mark.parametrize("parallel", [False, True])
def test_two_dimensions(shape, parallel):
    agrees(diffused, normals(*shape), np.array(0.1), parallel=parallel)


def test_the_interior_asks_nothing():
    compiled = pb.compile(smoothed)
    u = normals(50)
    np.testing.assert_allclose(compiled(u), smoothed(u))
    source = compiled.forward_source(u)
    assert " if " not in source and "for i in range(1, n - 1):" in source


def test_the_border_asks_only_what_is_open_there():
    """One or two iterations stand by themselves, more are a loop of their own."""

    def neighbours(u, v):
        wide = np.pad(u, 3)
        return wide[6:] + wide[:-6] + v

    def stencil(u):
        padded = np.pad(u, 1)
        return padded[2:] - padded[:-2]

    u = normals(50)
    source = pb.compile(stencil).forward_source(u)
    assert "value[0] = u[1]" in source and "value[n - 1] = 0.0 - u[n - 2]" in source
    source = pb.compile(neighbours).forward_source(u, u)
    assert "for i in range(3):" in source and "for i in range(n - 3, n):" in source and " if " not in source
    agrees(lambda u, v: np.sum(neighbours(u, v) ** 2), u, normals(50))


@pytest.mark.parametrize("shift", [1, -3])
def test_what_is_rolled(shift):
    agrees(lambda u: np.sum(np.roll(u, shift) * np.sin(u) * np.roll(u, -shift) ** 2), normals(40))


def test_what_is_rolled_back_and_forth():
    """A place that one roll comes to is asked for by another, where the first begins before the array."""

    def wave(u, v):
        return np.sum(np.sin(u**2 + np.roll(v, 1) * v) * (np.roll(np.abs(np.roll(v, -1)), 2) + u))

    u, v = normals(40), normals(40)[::-1].copy()
    agrees(wave, u, v)
    assert "[-1]" not in pb.value_and_grad(pb.compile(wave), argnums=(0, 1)).source(u, v)


def test_parts_read_where_they_lie():
    """Of a concatenation that is sliced where its parts begin, each slice is known to be one part."""

    def gates(x):
        both = np.concatenate([np.tanh(x), np.exp(x)])
        return np.sum(both[: x.shape[0]] * both[x.shape[0] :])

    x = normals(40)
    agrees(gates, x)
    compiled = pb.compile(gates)
    compiled(x)
    assert " if " not in compiled.forward_source(x)


@pytest.mark.drawn(4)
def test_long_sides_of_a_choice_are_statements():
    def padded(x):
        long = np.sin(x) * np.cos(x) + np.exp(-x * x) * np.tanh(x) + x / (1 + x * x)
        return np.sum(np.pad(long, 2) * np.pad(x, 2))

    agrees(padded, normals(10))


def test_other_sizes_compile_nothing():
    compiled = pb.compile(smoothed)
    compiled(normals(50))
    before = compiled.cache_info()
    compiled(normals(71))
    after = compiled.cache_info()
    assert (after.compilations, after.disk_hits) == (before.compilations, before.disk_hits)


def test_what_is_one_number_for_all_elements_costs_a_stencil_nothing():
    def neighbours(x, rate):
        scaled = x * np.exp(rate)
        return scaled[:-2] + scaled[1:-1] + scaled[2:]

    x, rate = np.arange(40.0), np.float64(0.1)
    compiled = pb.compile(neighbours)
    np.testing.assert_allclose(compiled(x, rate), neighbours(x, rate), rtol=1e-14)
    source = compiled.forward_source(x, rate)
    assert "scaled[i" not in source and source.index("exp(rate") < source.index("for i")


def test_the_interior_leaves_the_border_no_names_of_sums_with_padding():
    """Where all elements are the same, sums leave the interior's loop; at the border padding differs."""

    def widened(a):
        same = np.broadcast_to(np.exp(a), (98,))
        return np.pad(same, (1, 1)) * (np.pad(same, (0, 2)) + a)

    agrees(lambda a: np.sum(widened(a) ** 2), np.float64(0.3))
    compiled = pb.compile(widened)
    np.testing.assert_allclose(compiled(np.float64(0.3)), widened(np.float64(0.3)), rtol=1e-14)


def test_roots_that_several_neighbours_read_are_computed_once():
    def variation(u):
        right, down = u[:-1, 1:] - u[:-1, :-1], u[1:, :-1] - u[:-1, :-1]
        return np.sqrt(right * right + down * down + 1e-6).sum()

    u = np.random.default_rng(0).standard_normal((130, 130))
    both = pb.compile(pb.value_and_grad(variation))
    (program,) = both.programs(u)
    assert program.source.count(" sqrt(") == 1
    np.testing.assert_allclose(both(u)[1], pb.grad(variation)(u), rtol=1e-11, atol=1e-13)
