"""scipy.interpolate on tensors: SciPy's values, and gradients of them by knots, values and points."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as interpolate
from scipy.interpolate import CubicSpline, interp1d
from scipy_tables.interpolants import AT, OUTSIDE, ROWS, X, Y

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.part(8)


@pytest.mark.drawn(6)
def test_points_that_are_nan_have_no_value() -> None:
    at = np.array([0.5, np.nan, 2.0])
    for make in (
        lambda y: CubicSpline(X, y), lambda y: interpolate.make_interp_spline(X, y), lambda y: interp1d(X, y),
        lambda y: interpolate.PchipInterpolator(X, y),
    ):  # fmt: skip
        np.testing.assert_allclose(pb.compile(lambda y, make=make: make(y)(at))(Y), make(Y)(at), rtol=1e-12)


@pytest.mark.drawn(4)
def test_batches() -> None:
    batched = pb.compile(pb.vmap(pb.grad(lambda y, at: CubicSpline(X, y)(at).sum()), in_dims=(0, None)))
    wanted = [pb.grad(lambda y: CubicSpline(X, y)(AT).sum())(y) for y in ROWS[..., 0]]
    np.testing.assert_allclose(batched(ROWS[..., 0].copy(), AT), wanted, rtol=1e-10)


@pytest.mark.drawn(6)
def test_private_methods_of_an_interpolant_of_plain_data_are_scipys() -> None:
    def share(x: Any) -> Any:
        grid = interpolate.RegularGridInterpolator((np.arange(3.0),), np.zeros(3))
        return x * grid._find_indices(np.array([[1.25]]))[1][0][0]

    assert pb.grad(share)(2.0) == 0.25


def test_wrong_uses() -> None:
    for transform in (lambda one: one, pb.compile):
        for call, error, match in (
            (lambda y: CubicSpline(X[:4], y)(AT), ShapeError, "CubicSpline: x must be a vector"),
            (lambda y: CubicSpline(X[::-1], y)(AT), ArgumentError, "x must be strictly increasing"),
            (lambda y: CubicSpline(X, y, bc_type="free")(AT), ArgumentError, "bc_type must be"),
            (lambda y: CubicSpline(X, y, bc_type="periodic")(AT), ArgumentError, "must be the same where"),
            (lambda y: CubicSpline(X, y).roots(), UnsupportedError, "CubicSpline.roots is not supported"),
            (lambda y: interp1d(X, y)(OUTSIDE), ArgumentError, "x must lie between the first and the last"),
            (lambda y: interp1d(X, y, "curved")(AT), ArgumentError, "kind must be one of"),
            (
                lambda y: interpolate.make_interp_spline(X, y, bc_type="natural")(AT), UnsupportedError,
                "bc_type='natural' is not supported on a Tensor. Leave it out, or use CubicSpline",
            ),
            (lambda y: interpolate.splrep(X, y, s=1.0)[1], UnsupportedError, "splrep: s is not supported"),
            (lambda y: interpolate.UnivariateSpline(X, y)(AT), UnsupportedError, "no smoothing splines"),
            (
                lambda y: interpolate.RegularGridInterpolator((X,), y, "cubic")(AT), UnsupportedError,
                "only 'linear' and 'nearest'",
            ),
            (lambda y: interpolate.BarycentricInterpolator(X, y)(AT), pb.errors.PullbackError, "Barycentric"),
        ):  # fmt: skip
            with pytest.raises(error, match=match):
                pb.grad(transform(lambda y, call=call: call(y).sum()))(Y)
