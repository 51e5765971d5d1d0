"""What SciPy's functions give is of SciPy's kind and dtype: an array, a number of NumPy's or of Python's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import interpolate, optimize, special, stats
from scipy.spatial import distance
from uncompiled import uncompiled

import pullback as pb

A, SINGLE = 1.3, np.array([0.3, 1.2], np.float32)
KNOTS, VALUES = np.arange(4.0), np.array([0.0, 1.0, 3.0, 2.0])
LINE = interpolate.splrep(KNOTS, VALUES)
PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "density": (lambda x: stats.norm.logpdf(x, loc=x, scale=2.0), SINGLE),
    "quantile": (lambda x: stats.gamma.ppf(0.5 * x, 2.0), SINGLE),
    "mean": (lambda x: stats.gamma(x).mean(), SINGLE),
    "beta": (lambda x: special.beta(x, 2.0), SINGLE),
    "xlog1py": (lambda x: special.xlog1py(2.0, x), SINGLE),
    "betaln of singles": (lambda x: special.betaln(x, x), SINGLE),
    "polygamma": (lambda a: special.polygamma(1, a), A),
    "newton": (lambda a: optimize.newton(lambda x: x**2 - a, 1.0), A),
    "brentq": (lambda a: optimize.brentq(lambda x: x**2 - a, 0.0, 2.0), A),
    "toms748": (lambda a: optimize.toms748(lambda x: x**2 - a, 0.0, 2.0), A),
    "fixed_point": (lambda a: optimize.fixed_point(lambda x: np.cos(a * x), 1.0), A),
    "spline": (lambda a: interpolate.CubicSpline(KNOTS, VALUES)(a), A),
    "integral of a spline": (lambda a: interpolate.CubicSpline(KNOTS, VALUES).integrate(0.0, a), A),
    "splev": (lambda a: interpolate.splev(a, LINE), A),
    "interp1d": (lambda a: interpolate.interp1d(KNOTS, VALUES)(a), A),
    "euclidean": (lambda x: distance.euclidean(x, 2.0 * x), SINGLE),
    "euclidean, then singles": (lambda x: x * distance.euclidean(x, 2.0 * x), SINGLE),
    "seuclidean": (lambda x: distance.seuclidean(x, 2.0 * x, np.ones(2)), SINGLE),
    "cosine": (lambda x: distance.cosine(x, x[::-1]), SINGLE),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_of_scipys_kind(name: str) -> None:
    function, x = PROGRAMS[name]
    expected = function(x)
    with uncompiled():
        found = {"compiled": pb.compile(function)(x), "differentiated": pb.vjp(function, x)[0]}
    for how, value in found.items():
        assert type(value) is type(expected), how
        assert np.asarray(value).dtype == np.asarray(expected).dtype, how
        np.testing.assert_allclose(value, expected, rtol=1e-6)
