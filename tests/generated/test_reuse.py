"""Scratch arrays used again: fewer of them, the same results."""

from dataclasses import replace

import numpy as np
from uncompiled import uncompiled

import pullback as pb
from pullback.codegen.cost.machine import REFERENCE, assuming


def layers(x, w1, w2, w3):
    hidden = np.tanh(x @ w1)
    deeper = np.tanh(hidden @ w2)
    return np.sum((deeper @ w3) ** 2)


def arrays():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) / 8 for shape in ((40, 50), (50, 64), (64, 64), (64, 64))]


def test_activations_take_the_place_of_products():
    both = pb.compile(pb.value_and_grad(layers, argnums=(1, 2, 3)))
    value, gradients = both(*arrays())
    expected, wanted = pb.value_and_grad(layers, argnums=(1, 2, 3))(*arrays())
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, one in zip(gradients, wanted):
        np.testing.assert_allclose(found, one, rtol=1e-10, atol=1e-12)
    source = both.source(*arrays())
    assert "hidden[i, j] = tanh(hidden[i, j])" in source
    assert "deeper[i, j] = tanh(deeper[i, j])" in source


def test_what_is_read_later_keeps_its_memory():
    def used_twice(x, w):
        product = x @ w
        return np.sum(np.tanh(product) @ w.T) + np.sum(product**3)

    x, w, _, _ = arrays()
    value, gradient = pb.value_and_grad(pb.compile(used_twice), argnums=1)(x, w)
    expected, wanted = pb.value_and_grad(used_twice, argnums=1)(x, w)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-10)


def test_what_is_read_in_another_shape_keeps_its_memory():
    """The view of an array reads other elements than the one that is made."""

    def scaled_columns(x):
        doubled = x * 2.0
        firsts = doubled.reshape(4, 3)[:, 0]
        return (doubled + doubled.sum(axis=0) * firsts).reshape(-1)[2:6]

    x = np.arange(12.0).reshape(3, 4)
    with uncompiled():
        np.testing.assert_allclose(pb.compile(scaled_columns)(x), scaled_columns(x))


def test_in_threads_as_well():
    compiled = pb.compile(pb.value_and_grad(layers, argnums=(1, 2, 3)), parallel=True)
    value, gradients = compiled(*arrays())
    expected, wanted = pb.value_and_grad(layers, argnums=(1, 2, 3))(*arrays())
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, one in zip(gradients, wanted):
        np.testing.assert_allclose(found, one, rtol=1e-10, atol=1e-12)


def weighted_softmax(x, w):
    return pb.softmax(x, dim=1) * w


def shifted_softmax(x, w):
    """Neighbours are read when an element is made: the row cannot be made in place."""
    e = pb.exp(x - x.amax(dim=1, keepdim=True))
    e = e / e.sum(dim=1, keepdim=True)
    return e + pb.exp(e).flip(1) * w


def shares_rows(function, *arrays):
    """Whether rows of scratch lie in the result; which agrees with the eager one."""
    compiled = pb.compile(function)
    compiled.cache_clear()  # the machine may be another now
    np.testing.assert_allclose(compiled(*arrays), function(*map(pb.tensor, arrays)).numpy(), rtol=1e-12)
    parameters = compiled.forward_source(*arrays).split("def ")[1].split(")")[0]
    return "exp_values" not in parameters


def test_rows_of_scratch_lie_in_a_large_output():
    x, w = np.random.default_rng(0).standard_normal((2, 30, 20))
    assert not shares_rows(weighted_softmax, x, w)
    with assuming(replace(REFERENCE, last_level=8 * x.nbytes)):
        assert shares_rows(weighted_softmax, x, w)
        assert not shares_rows(shifted_softmax, x, w)


def momentum(w, velocity, x, y):
    slope = x.T @ (x @ w - y)
    velocity = 0.9 * velocity - 0.1 * slope
    return w + velocity, velocity


def test_a_gradient_becomes_the_output_that_is_made_of_it():
    rng = np.random.default_rng(0)
    shapes = (80, 60), (80, 60), (70, 80), (70, 60)
    w, velocity, x, y = (rng.standard_normal(shape) for shape in shapes)
    compiled = pb.compile(momentum)
    for found, wanted in zip(compiled(w, velocity, x, y), momentum(w, velocity, x, y)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    assert "holds the results of gemm, then of subtract" in compiled.explain(w, velocity, x, y)


def test_an_output_is_not_made_in_place_of_what_is_read_again():
    """The product is a view's memory, or read in another order, or twice."""

    def seen_again(a, b):
        product = a @ b
        flat = product.reshape(-1)
        return np.tanh(product), np.cumsum(flat), product + product.T

    a, b = np.random.default_rng(0).standard_normal((2, 70, 70))
    for found, wanted in zip(pb.compile(seen_again)(a, b), seen_again(a, b)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-11)
