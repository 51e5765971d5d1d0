"""pymanopt's manifolds and optimisers with pullback as their backend."""

from typing import Any

import numpy as np
import pytest

pymanopt = pytest.importorskip("pymanopt")

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 1.0]])


def test_the_eigenvector_of_the_largest_eigenvalue_is_found() -> None:
    from pullback.compat.pymanopt import pullback

    manifold = pymanopt.manifolds.Sphere(3)

    @pullback(manifold)
    def cost(point: Any) -> Any:
        return -point @ A @ point

    optimizer = pymanopt.optimizers.TrustRegions(verbosity=0)
    start = np.array([0.0, 0.6, 0.8])
    found = optimizer.run(pymanopt.Problem(manifold, cost), initial_point=start).point
    values, vectors = np.linalg.eigh(A)
    assert abs(found @ vectors[:, -1]) == pytest.approx(1.0)
    assert -cost(found) == pytest.approx(values[-1])


def test_gradients_and_products_with_hessians_of_several_arguments() -> None:
    from pullback.compat.pymanopt import pullback

    manifold = pymanopt.manifolds.Product([pymanopt.manifolds.Euclidean(3)] * 2)

    @pullback(manifold)
    def cost(x: Any, y: Any) -> Any:
        return x @ A @ y

    x, y = point = np.eye(3)[:2]
    u, v = tangent = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, 1.0]])
    for found, expected in zip(cost.get_gradient_operator()(*point), (A @ y, A.T @ x)):
        np.testing.assert_allclose(found, expected)
    for found, expected in zip(cost.get_hessian_operator()(*point, *tangent), (A @ v, A.T @ u)):
        np.testing.assert_allclose(found, expected)
