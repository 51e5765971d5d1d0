"""Bundle adjustment: the residual of each observation and the blocks of its sparse Jacobian, as in ADBench.

F. Srajer, Z. Kukelova, A. Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some
problems in computer vision and machine learning, Optimization Methods and Software 33 (2018), section 3.3.
The sizes are those of its first problem (Ladybug, 49 cameras).

An observation depends on one camera, one point and one weight. These are gathered first; then the sum over
all observations of a component of the residual has as its gradient this component's row of every block.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

CAMERAS, POINTS, OBSERVATIONS = 49, 7_776, 31_843
CAMERA_PARAMETERS = 11
"""Rotation vector (3), centre (3), focal length, principal point (2), radial distortion (2)."""


def reprojection_error(xp, cameras, points, weights, features):
    """For each of n observations, of its camera (n x 11) and point (n x 3): n x 2."""
    rotation, centre = cameras[:, 0:3], cameras[:, 3:6]
    focal_length, principal_point, distortion = cameras[:, 6:7], cameras[:, 7:9], cameras[:, 9:11]
    seen = rotate(xp, rotation, points - centre)
    projected = distort(xp, distortion, seen[:, :2] / seen[:, 2:])
    return weights[:, None] * (projected * focal_length + principal_point - features)


def rotate(xp, rotation, x):
    """Rodrigues' formula. No rotation is exactly zero here, so its limit there is left out."""
    angle = xp.sqrt(xp.sum(rotation**2, axis=1))[:, None]
    axis = rotation / angle
    along = xp.sum(axis * x, axis=1)[:, None]
    cosine = xp.cos(angle)
    return x * cosine + cross(xp, axis, x) * xp.sin(angle) + axis * along * (1.0 - cosine)


def cross(xp, a, b):
    components = [
        a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
        a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
        a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
    ]
    return xp.stack(components, axis=1)


def distort(xp, distortion, x):
    square = xp.sum(x**2, axis=1)[:, None]
    return x * (1.0 + distortion[:, 0:1] * square + distortion[:, 1:2] * square**2)


def weight_error(weights):
    return 1.0 - weights**2


def residuals_and_jacobian(library):
    """A function of the inputs that gives both residuals, and for each component the rows of the blocks."""
    xp = library.xp

    def component_sum(component, *observations):
        return xp.sum(reprojection_error(xp, *observations)[:, component])

    rows_of = [library.grad(partial(component_sum, component), argnums=(0, 1, 2)) for component in (0, 1)]
    weight_rows_of = library.grad(lambda weights: xp.sum(weight_error(weights)))

    def function(cameras, points, weights, camera_of, point_of, features):
        observations = (cameras[camera_of], points[point_of], weights, features)
        residuals = reprojection_error(xp, *observations), weight_error(weights)
        return *residuals, *(rows(*observations) for rows in rows_of), weight_rows_of(weights)

    return library.compile(function)


def _make(rng: np.random.Generator, n: int = OBSERVATIONS) -> Inputs:
    """Cameras that look along z at a cloud of points; each observation is a projection with noise."""
    cameras = np.empty((CAMERAS, CAMERA_PARAMETERS))
    cameras[:, 0:3] = rng.normal(0.0, 0.2, (CAMERAS, 3))
    cameras[:, 3:6] = rng.normal(0.0, 1.0, (CAMERAS, 3))
    cameras[:, 6] = rng.normal(400.0, 10.0, CAMERAS)
    cameras[:, 7:9] = rng.normal(0.0, 2.0, (CAMERAS, 2))
    cameras[:, 9:11] = rng.normal(0.0, [1e-2, 1e-3], (CAMERAS, 2))
    points = rng.normal([0.0, 0.0, 12.0], [2.0, 2.0, 1.0], (POINTS, 3))
    camera_of, point_of = rng.integers(0, CAMERAS, n), rng.integers(0, POINTS, n)
    weights = rng.uniform(0.5, 1.5, n)
    exact = reprojection_error(np, cameras[camera_of], points[point_of], np.ones(n), np.zeros(2))
    return cameras, points, weights, camera_of, point_of, exact + rng.normal(0.0, 1.0, (n, 2))


WORKLOADS = (
    Workload(
        f"bundle-jacobian-{OBSERVATIONS}",
        _make,
        program=residuals_and_jacobian,
        # Read: two indices, weight and feature. Written: residuals, rows of the blocks, weights' derivatives.
        bytes=8.0 * OBSERVATIONS * (2 + 1 + 2 + 3 + 2 * 15 + 1),
        make_small=partial(_make, n=100),
    ),
)
