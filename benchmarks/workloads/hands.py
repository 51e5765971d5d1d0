"""Hand tracking: how far a posed hand is from the points that a depth camera saw, as in ADBench ("simple").

J. Taylor et al., User-specific hand modeling from monocular depth sequences, CVPR 2014; F. Srajer,
Z. Kukelova, A. Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some problems in
computer vision and machine learning, Optimization Methods and Software 33 (2018), section 3.4. Twenty-six
angles and offsets move 22 bones, each vertex follows several bones (linear blend skinning), and each point
has the vertex that is nearest.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

PARAMETERS, BONES, VERTICES, FINGERS = 26, 22, 544, 5
PARENTS = (-1, 0, *(parent for base in range(2, BONES, 4) for parent in (1, base, base + 1, base + 2)))
"""Of each bone: forearm, palm, then for each finger three that bend and a tip."""


def residual(
    xp, parameters, relatives, inverse_absolutes, weights, positions, bend_of, spread_of, vertex_of, points
):
    """3 x N: each of N points minus its vertex.

    Args:
        parameters: rotation vector and offset of the hand, then for each finger bend and spread at its base
            and two further bends.
        relatives: bones x 4 x 4, each bone's transformation relative to its parent, at rest.
        inverse_absolutes: bones x 4 x 4, the inverse of each bone's absolute transformation at rest.
        weights: bones x vertices, how much a vertex follows a bone.
        positions: 4 x vertices, homogeneous, at rest.
        bend_of, spread_of: of each bone the index of its parameter, PARAMETERS where it has none.
        vertex_of: of each point the index of its vertex.
        points: 3 x N.
    """
    angles = xp.pad(parameters, [(0, 1)], "constant")
    rotations = bone_rotations(xp, angles[bend_of], angles[spread_of])
    posed = xp.concatenate([relatives[:, :, :3] @ rotations, relatives[:, :, 3:]], axis=2)
    absolutes = []
    for bone, parent in enumerate(PARENTS):
        absolutes.append(posed[bone] if parent < 0 else absolutes[parent] @ posed[bone])
    transforms = xp.stack(absolutes) @ inverse_absolutes
    by_bone = transforms[:, :3] @ positions
    skinned = xp.sum(by_bone * weights[:, None, :], axis=0)
    vertices = rotation_by_vector(xp, parameters[:3]) @ skinned + parameters[3:6][:, None]
    return points - vertices[:, vertex_of]


def bone_rotations(xp, bends, spreads):
    """Bones x 3 x 3: by the bend about x, then by the spread about z."""
    c, s, cos_spread, sin_spread = xp.cos(bends), xp.sin(bends), xp.cos(spreads), xp.sin(spreads)
    elements = [
        *(cos_spread, -sin_spread * c, sin_spread * s),
        *(sin_spread, cos_spread * c, -cos_spread * s),
        *(xp.zeros_like(c), s, c),
    ]
    return xp.reshape(xp.stack(elements, axis=1), (-1, 3, 3))


def rotation_by_vector(xp, vector):
    """Rodrigues' formula: 3 x 3. The vector is not zero here, so its limit there is left out."""
    angle = xp.sqrt(xp.sum(vector**2))
    x, y, z = (vector[i] / angle for i in range(3))
    s, c = xp.sin(angle), xp.cos(angle)
    elements = [
        *(x * x + (1.0 - x * x) * c, x * y * (1.0 - c) - z * s, x * z * (1.0 - c) + y * s),
        *(x * y * (1.0 - c) + z * s, y * y + (1.0 - y * y) * c, y * z * (1.0 - c) - x * s),
        *(x * z * (1.0 - c) - y * s, y * z * (1.0 - c) + x * s, z * z + (1.0 - z * z) * c),
    ]
    return xp.reshape(xp.stack(elements), (3, 3))


def squared_distance(xp, *inputs):
    return xp.sum(residual(xp, *inputs) ** 2)


def _make(rng: np.random.Generator, n: int) -> Inputs:
    """A random hand of that skeleton, and points near its vertices in a pose that differs a little."""
    relatives = np.tile(np.eye(4), (BONES, 1, 1))
    relatives[:, :3, 3] = rng.normal([0.0, 0.3, 0.0], 0.05, (BONES, 3))
    absolutes = []
    for bone, parent in enumerate(PARENTS):
        absolutes.append(relatives[bone] if parent < 0 else absolutes[parent] @ relatives[bone])
    bone_of = rng.integers(0, BONES, VERTICES)
    weights = np.zeros((BONES, VERTICES))
    weights[bone_of, np.arange(VERTICES)] = rng.uniform(0.5, 1.0, VERTICES)
    weights[np.maximum(np.array(PARENTS)[bone_of], 0), np.arange(VERTICES)] += 1.0 - weights.sum(axis=0)
    positions = np.array(absolutes)[bone_of, :, 3].T + rng.normal(0.0, [[0.05]] * 3 + [[0.0]], (4, VERTICES))
    parameters = rng.normal(0.3, 0.2, PARAMETERS)
    vertex_of = rng.integers(0, VERTICES, n)
    skeleton = (relatives, np.linalg.inv(np.array(absolutes)), weights, positions, *_parameter_of_bones())
    seen = parameters + rng.normal(0.0, 0.05, PARAMETERS)
    exact = -residual(np, seen, *skeleton, vertex_of, np.zeros((3, n)))
    return parameters, *skeleton, vertex_of, exact + rng.normal(0.0, 0.01, (3, n))


def _parameter_of_bones() -> tuple[np.ndarray, np.ndarray]:
    """Of each bone the index of its bend and of its spread."""
    bend_of, spread_of = np.full((2, BONES), PARAMETERS)
    for finger in range(FINGERS):
        bone, base = 2 + 4 * finger, 6 + 4 * finger
        bend_of[bone : bone + 3] = base, base + 2, base + 3
        spread_of[bone] = base + 1
    return bend_of, spread_of


def hand_workload(n: int) -> Workload:
    return Workload(
        f"hand-{PARAMETERS}x{n}",
        partial(_make, n=n),
        squared_distance,
        (0,),
        make_small=partial(_make, n=10),
    )


WORKLOADS = (hand_workload(1_000),)
ON_REQUEST = (hand_workload(10_000), hand_workload(100_000))
