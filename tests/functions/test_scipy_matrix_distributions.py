"""Distributions of matrices in `scipy.stats`: densities as SciPy's, derivatives by all their parameters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats as stats
from scipy_programs import Program, assert_derivatives, drawn

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

RNG = drawn("matrices")
ROOT, OTHER, DF = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3)), np.array([4.3])
MIDDLE, X = RNG.standard_normal((3, 2)), RNG.standard_normal((4, 3, 2))
WIDE = RNG.standard_normal((2, 2))


def definite(root: Any) -> Any:
    return root @ root.T + np.eye(root.shape[0])


def of_several(x: Any, scale: Any, df: Any, name: str) -> Any:
    both = np.stack([definite(x), definite(x * 2)], axis=-1)
    return getattr(stats, name).logpdf(both, df[0], definite(scale))


PROGRAMS: dict[str, Program] = {
    **{
        name: (
            lambda x, s, df, name=name: getattr(stats, name).logpdf(definite(x), df[0], definite(s)),
            (ROOT, OTHER, DF),
        )
        for name in ("wishart", "invwishart")
    },
    **{
        f"{name} of several": (lambda x, s, df, name=name: of_several(x, s, df, name), (ROOT, OTHER, DF))
        for name in ("wishart", "invwishart")
    },
    "density": (lambda x, df: stats.wishart(df[0], np.ones(3)).pdf(definite(x)) * 1e4, (ROOT, DF)),
    "matrix_normal": (
        lambda x, m, r, c: stats.matrix_normal.logpdf(x, m, definite(r), definite(c)),
        (X, MIDDLE, ROOT, WIDE),
    ),
    "matrix_normal without a mean": (
        lambda x, r: stats.matrix_normal.logpdf(x, rowcov=definite(r), colcov=[1.0, 2.0]), (X, ROOT),
    ),
    "density of matrix_normal": (lambda x, m: stats.matrix_normal(m, 2.0, 0.5).pdf(x) * 1e3, (X, MIDDLE)),
}  # fmt: skip


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives(name: str) -> None:
    function, arrays = PROGRAMS[name]
    for one in (function, pb.compile(function)):
        np.testing.assert_allclose(pb.vjp(one, *arrays)[0], function(*arrays), rtol=1e-12)
    assert_derivatives(name, PROGRAMS[name])


@pytest.mark.drawn(4)
def test_frozen_before() -> None:
    frozen = stats.invwishart(5.0, definite(OTHER))
    found = pb.compile(lambda x: frozen.logpdf(definite(x)))(ROOT)
    np.testing.assert_allclose(found, frozen.logpdf(definite(ROOT)))


WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: stats.wishart.logpdf(x, 1.5, np.eye(3)), ArgumentError, "wishart: df must be greater than 2"),
    (lambda x: stats.wishart.logpdf(x, 4.0, np.eye(2)), ShapeError, "matrices of 2 rows and columns"),
    (lambda x: stats.wishart.logpdf(x, [4.0, 5.0], np.eye(3)), ShapeError, "df must be a number"),
    (lambda x: stats.invwishart.logpdf(x, 4.0, np.ones((3, 2))), ShapeError, "scale must be a square matrix"),
    (lambda x: stats.matrix_normal.logpdf(x, np.zeros(3)), ShapeError, "mean must be a matrix"),
    (lambda x: stats.matrix_normal.logpdf(x, rowcov=np.eye(2)), ShapeError, r"of the shape \(2, 1\)"),
]


@pytest.mark.parametrize(("wrong", "error", "text"), WRONG)
def test_wrong_uses(wrong: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    for transform in (lambda one: one, pb.compile):
        with pytest.raises(error, match=text):
            pb.grad(transform(lambda x: wrong(x).sum()))(definite(ROOT))
