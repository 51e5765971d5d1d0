"""`scipy.spatial.distance` on Tensors and in compiled code: SciPy's values, derivatives, refusals."""

from typing import Any

import numpy as np
import pytest
import scipy.spatial as spatial
import scipy.spatial.distance as distance
from scipy_tables.distances import MEASURES, OTHERS, ROWS, V, W, rows_of

import pullback as pb
from pullback.errors import ArgumentError, DTypeError, GradientError, ShapeError, UnsupportedError

pytestmark = pytest.mark.part(8)


@pytest.mark.drawn(2)
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


@pytest.mark.drawn(4)
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
