"""k-means: cost, its gradient, and the diagonal of its Hessian, which is all of it.

L. Bottou, Y. Bengio, Convergence properties of the k-means algorithms, NIPS 1994: with these two, Newton's
method is the algorithm. Each coordinate of a centroid meets no other one, so the Hessian times ones is its
diagonal.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

POINTS, CENTROIDS, DIMENSIONS = 10_000, 32, 16


def cost(xp, points, centroids):
    """The sum over points of the squared distance from the nearest centroid."""
    squares = (points[:, None, :] - centroids) ** 2
    return xp.sum(xp.min(xp.sum(squares, axis=2), axis=1))


def cost_gradient_and_curvature(library):
    return library.value_grad_and_hvp(partial(cost, library.xp), argnum=1)


def _make(rng: np.random.Generator, n: int = POINTS, centroids: int = CENTROIDS) -> Inputs:
    """Points in clusters, centroids near some of them, and the vector of ones."""
    centres = 3.0 * rng.standard_normal((centroids, DIMENSIONS))
    points = centres[rng.integers(0, centroids, n)] + rng.standard_normal((n, DIMENSIONS))
    start = centres + 0.5 * rng.standard_normal(centres.shape)
    return points, start, np.ones(centres.shape)


WORKLOADS = (
    Workload(
        f"k-means-{POINTS}x{DIMENSIONS}x{CENTROIDS}",
        _make,
        program=cost_gradient_and_curvature,
        flops=3.0 * POINTS * DIMENSIONS * CENTROIDS,
        make_small=partial(_make, n=50, centroids=3),
    ),
)
