"""Jacobians and Hessians in traces: products for all directions at once, or a loop over directions."""

import re

import numpy as np

import pullback as pb

RNG = np.random.default_rng(0)


def logistic(w, x, y):
    z = x @ w
    return (np.logaddexp(0.0, z) - y * z).mean()


def test_the_hessian_of_a_linear_model_is_one_product():
    w, x, y = RNG.standard_normal(20), RNG.standard_normal((90, 20)), RNG.integers(0, 2, 90) * 1.0
    hessian = pb.compile(pb.hessian(logistic))
    (program,) = hessian.programs(w, x, y)
    assert program.source.count("gemm(") == 1 and "if i == j" not in program.source
    p = 1.0 / (1.0 + np.exp(-x @ w))
    np.testing.assert_allclose(hessian(w, x, y), (x.T * (p * (1.0 - p))) @ x / 90, rtol=1e-11, atol=1e-15)


def test_directions_of_a_matrix_in_batches_of_products():
    def loss(u, a, b):
        return np.exp(np.sin(a @ u) * 0.1).sum() + (b @ u[:12]).sum() ** 2 + u.reshape(4, 5).sum(0).prod()

    u, a, b = RNG.standard_normal(20), RNG.standard_normal((30, 20)), RNG.standard_normal((7, 12))
    found = pb.compile(pb.hessian(loss))(u, a, b)
    np.testing.assert_allclose(found, pb.hessian(loss)(u, a, b), rtol=1e-10, atol=1e-10)


def test_where_steps_multiply_matrices_there_is_a_loop_over_directions():
    def loss(weights, x, v):
        return (np.tanh(x @ weights.reshape(5, 4)) @ v).sum()

    weights, x, v = RNG.standard_normal(20), RNG.standard_normal((60, 5)), RNG.standard_normal(4)
    hessian = pb.compile(pb.hessian(loss))
    (program,) = hessian.programs(weights, x, v)
    assert re.search(r"^ {8,}gemm", program.source, re.MULTILINE)
    wanted = pb.hessian(loss)(weights, x, v)
    np.testing.assert_allclose(hessian(weights, x, v), wanted, rtol=1e-10, atol=1e-12)
