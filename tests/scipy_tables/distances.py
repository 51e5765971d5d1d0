"""Distances of vectors: `scipy.spatial`."""

from __future__ import annotations

import numpy as np
import scipy.spatial as spatial
import scipy.spatial.distance as distance
from scipy_programs import Program, drawn

RNG = drawn("distances")
ROWS, OTHERS = RNG.standard_normal((5, 3)), RNG.standard_normal((4, 3))
SHARES, FURTHER = RNG.uniform(0.2, 1.0, (4, 3)), RNG.uniform(0.2, 1.0, (2, 3))
U, V = ROWS[0], OTHERS[0]
W = np.array([0.3, 1.2, 0.8])
MATRIX = np.linalg.inv(np.cov(ROWS.T))
WEIGHED = (
    "euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "canberra", "braycurtis",
    "minkowski",
)  # fmt: skip
MEASURES = (*WEIGHED, "mahalanobis", "seuclidean", "jensenshannon")


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    return (SHARES, FURTHER) if name == "jensenshannon" else (ROWS, OTHERS)


PROGRAMS: dict[str, Program] = {
    **{
        name: (lambda u, v, name=name: getattr(distance, name)(u, v), (U, V))
        for name in WEIGHED
    },
    **{
        f"{name} with weights": (lambda u, v, w, name=name: getattr(distance, name)(u, v, w=w), (U, V, W))
        for name in WEIGHED
    },
    **{
        f"minkowski of order {p}": (lambda u, v, p=p: distance.minkowski(u, v, p, W), (U, V))
        for p in (0.7, 1, np.inf)
    },
    "minkowski by its order": (lambda u, v, p: distance.minkowski(u, v, p, W), (U, V, np.array(2.4))),
    "correlation that is not centered": (lambda u, v: distance.correlation(u, v, centered=False), (U, V)),
    "seuclidean": (distance.seuclidean, (U, V, W)),
    "mahalanobis": (distance.mahalanobis, (U, V, MATRIX)),
    "jensenshannon": (lambda p, q: distance.jensenshannon(p, q, 2.0), (SHARES[0], SHARES[1])),
    "jensenshannon along an axis": (
        lambda p, q: distance.jensenshannon(p, q, axis=1, keepdims=True), (SHARES, SHARES[::-1].copy()),
    ),
    **{
        f"cdist of {name}": (lambda a, b, name=name: distance.cdist(a, b, name), rows_of(name))
        for name in MEASURES
    },
    **{
        f"cdist of {name} with weights": (
            lambda a, b, w, name=name: distance.cdist(a, b, name, w=w), (ROWS, OTHERS, W),
        )
        for name in ("euclidean", "chebyshev", "correlation")
    },
    **{
        f"pdist of {name}": (lambda x, name=name: distance.pdist(x, name), rows_of(name)[:1])
        for name in ("euclidean", "mahalanobis", "seuclidean")
    },
    "cdist of an order": (lambda a, b: distance.cdist(a, b, "minkowski", p=3.5), (ROWS, OTHERS)),
    "cdist of an infinite order": (
        lambda a, b: distance.cdist(a, b, "Minkowski", p=np.inf), (ROWS, OTHERS),
    ),
    "cdist by variances": (lambda a, b, V: distance.cdist(a, b, "seuclidean", V=V), (ROWS, OTHERS, W)),
    "cdist by a matrix": (
        lambda a, b, VI: distance.cdist(a, b, "mahalanobis", VI=VI), (ROWS, OTHERS, MATRIX),
    ),
    "cdist of SciPy's function": (lambda a, b: distance.cdist(a, b, distance.cosine), (ROWS, OTHERS)),
    "cdist of a function": (
        lambda a, b: distance.cdist(a, b, lambda u, v: (u * v**2).sum()), (ROWS[:2], OTHERS[:3]),
    ),
    "pdist of a function": (lambda x: distance.pdist(x, lambda u, v: (u - v * u).sum()), (OTHERS,)),
    "pdist of one row": (lambda x: distance.pdist(x) + x.sum(), (ROWS[:1],)),
    "squareform": (lambda x: distance.squareform(distance.pdist(x, "sqeuclidean")), (OTHERS,)),
    "squareform of a matrix": (
        lambda x: distance.squareform(distance.cdist(x, x, "sqeuclidean")), (OTHERS,),
    ),
    "squareform, unchecked": (lambda x: distance.squareform(x * x, "tovector", False), (ROWS[:3],)),
    "squareform of one distance": (lambda x: distance.squareform(x, "tomatrix"), (U[:1],)),
    "minkowski_distance": (
        lambda x, y: spatial.minkowski_distance(x[:, None], y), (ROWS, OTHERS),
    ),
    **{
        f"minkowski_distance of order {p}": (lambda x, y, p=p: spatial.minkowski_distance(x, y, p), (ROWS, V))
        for p in (1, 3.5)
    },
    **{
        f"minkowski_distance_p of order {p}": (
            lambda x, y, p=p: spatial.minkowski_distance_p(x, y, p), (ROWS, V),
        )
        for p in (2, 3.5, np.inf)
    },
    "distance_matrix": (lambda x, y: spatial.distance_matrix(x, y, 1.5, 3), (ROWS, OTHERS)),
}  # fmt: skip
