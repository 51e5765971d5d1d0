"""`scipy.spatial.distance` on Tensors and in compiled code: SciPy's values, derivatives, refusals."""

from typing import Any

import numpy as np
import pytest
import scipy.spatial as spatial
import scipy.spatial.distance as distance
from scipy_programs import Program, assert_derivatives, assert_values, drawn

import pullback as pb
from pullback.errors import ArgumentError, DTypeError, GradientError, ShapeError, UnsupportedError

pytestmark = pytest.mark.part(4)

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
programs = pytest.mark.parametrize("name", PROGRAMS)


@programs
def test_values_are_scipys(name: str) -> None:
    assert_values(name, PROGRAMS[name], 1e-12)


@programs
def test_derivatives_are_those_of_differences(name: str) -> None:
    assert_derivatives(name, PROGRAMS[name])


@pytest.mark.parametrize("name", [*MEASURES, "minkowski of order 3"])
def test_vectors_that_coincide(name: str) -> None:
    """Their distance is 0, and its slope as PyTorch's of cdist; zeros are as SciPy has them."""
    kind, order = (name.split()[0], {"p": 3.0}) if " " in name else (name, {})
    x = rows_of(kind)[0]
    matrix = {"VI": np.eye(3)} if kind == "mahalanobis" else {}
    for measured in (lambda x, y: distance.cdist(x, y, kind, **order, **matrix), pb.compile):
        if measured is pb.compile:
            measured = pb.compile(lambda x, y: distance.cdist(x, y, kind, **order, **matrix))
        found = pb.grad(lambda x, measured=measured: measured(x, x[:1])[0, 0])(x)
        np.testing.assert_allclose(found, np.zeros_like(x), atol=1e-7)
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.3, 1.0, 0.1]])
    x = x[[1, 2, 4]] if kind == "jensenshannon" else x  # shares of nothing are infinite or nan there
    with np.errstate(all="ignore"):
        wanted = distance.cdist(x, x, kind, **order, **matrix)
        found = pb.vjp(lambda x: distance.cdist(x, x, kind, **order, **matrix), x)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-15)


def test_the_second_derivative_where_squares_vanish() -> None:
    for name in ("sqeuclidean", "cosine"):
        found = pb.hessian(lambda u, name=name: getattr(distance, name)(u, V))(V)
        moved = pb.hessian(lambda u, name=name: getattr(distance, name)(u, V))(V + 1e-6)
        np.testing.assert_allclose(found, moved, atol=1e-4)
        assert np.abs(found).max() > 0.1


@pytest.mark.parametrize("name", ["hamming", "jaccard", "dice", "yule", "rogerstanimoto", "russellrao"])
def test_measures_of_truth_values_take_arrays_alone(name: str) -> None:
    for function in (lambda x: distance.cdist(x, x, name).sum(), lambda x: distance.pdist(x, name)[0]):
        with pytest.raises(GradientError, match=r"scipy.spatial.distance.[cp]dist .*have no derivative"):
            pb.grad(function)(ROWS)
    found = pb.grad(lambda x: (x * distance.cdist(ROWS > 0, ROWS > 0, name)[0, 1]).sum())(ROWS)
    assert (found == distance.cdist(ROWS > 0, ROWS > 0, name)[0, 1]).all()


@pytest.mark.parametrize("made", [
    "KDTree", "cKDTree", "ConvexHull", "Delaunay", "Voronoi",
])  # fmt: skip
def test_geometry_says_how_to_go_on(made: str) -> None:
    """What searches takes arrays: with what it has found, tensors are computed with."""
    kind = getattr(spatial, made)
    with pytest.raises(GradientError, match=f"scipy.spatial.{made} .*stop_gradient"):
        pb.grad(lambda x: kind(x).min_bound.sum())(ROWS)


def test_a_tree_of_plain_points_refuses_traced_ones() -> None:
    tree = spatial.KDTree(OTHERS)
    with pytest.raises(GradientError, match="scipy.spatial.KDTree.query .*that query\\(\\) of pullback.stop"):
        pb.grad(lambda x: tree.query(x)[0].sum())(ROWS)

    def nearest(x: Any) -> Any:
        _, places = tree.query(np.asarray(pb.stop_gradient(x)))
        return (((x - OTHERS[places]) ** 2).sum(axis=1) ** 0.5).sum()

    step = 1e-6 * ROWS
    wanted = (nearest(ROWS + step) - nearest(ROWS - step)) / 2
    np.testing.assert_allclose((pb.grad(nearest)(ROWS) * step).sum(), wanted, rtol=1e-6)


def test_wrong_uses() -> None:
    for wrong, error, text in (
        (lambda x: distance.cdist(x, x[:, :2]), ShapeError, "cdist: rows of one size"),
        (lambda x: distance.cdist(x[0], x), ShapeError, "cdist: XA must be a matrix"),
        (lambda x: distance.pdist(x[0]), ShapeError, "pdist: X must be a matrix"),
        (lambda x: distance.euclidean(x[0], x[0, :2]), ShapeError, "euclidean: two vectors of one size"),
        (lambda x: distance.cosine(x, x), ShapeError, "cosine: two vectors"),
        (lambda x: distance.cityblock(x[0], x[1], W[:2]), ShapeError, "cityblock: w must be a vector"),
        (lambda x: distance.cityblock(x[0], x[1], -W), ArgumentError, "cityblock: w, the weights, must not"),
        (lambda x: distance.minkowski(x[0], x[1], 0), ArgumentError, "minkowski: p must be greater than 0"),
        (lambda x: distance.minkowski(x[0], x[1], -abs(x[0, 0])), ArgumentError, "p must be greater than 0"),
        (lambda x: distance.cdist(x, x, "cosine", p=2), ArgumentError, "metric cosine takes no p"),
        (lambda x: distance.cdist(x, x, "jensenshannon", w=W), ArgumentError, "takes no w"),
        (lambda x: distance.cdist(x, x, out=np.empty((5, 5))), UnsupportedError, "out= takes no"),
        (lambda x: distance.pdist(x[:3], "mahalanobis"), ShapeError, "covariance of 3 vectors"),
        (lambda x: distance.mahalanobis(x[0], x[1], np.eye(2)), ShapeError, "VI must be a matrix"),
        (lambda x: distance.cdist(x * 1j, x), DTypeError, "cdist: real numbers expected"),
        (lambda x: distance.squareform(x[:3]) ** 2, ArgumentError, "must be symmetric"),
        (lambda x: distance.squareform(x), ShapeError, "must be square"),
        (lambda x: distance.squareform(x[:2, 0]), ShapeError, r"n \(n - 1\) / 2 distances"),
        (lambda x: distance.squareform(x, "tomatrix"), ShapeError, "1 dimensions expected"),
    ):  # fmt: skip
        for transform in (pb.grad, lambda function: pb.grad(pb.compile(function))):
            with pytest.raises(error, match=text):
                transform(lambda x, wrong=wrong: wrong(x).sum())(ROWS)
