"""SciPy's distributions of vectors on Tensors: `scipy.stats.multivariate_normal.logpdf(x, mean, cov)`.

Vectors lie along the last dimension, those of `dirichlet` along the first, as SciPy has them. Formulas: Kotz,
Balakrishnan, Johnson, Continuous Multivariate Distributions (2000).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tracer.errors import ShapeError
from ...functions import PUBLIC, linalg, parts
from ...functions.common import fail
from ...numpy_api.values import averaged, floats
from ...tensors.conversion import tensor_of
from ..refusing import for_tensors
from .elements import LOG_2_PI, exp, lgamma, log, log1p, where, xlogy
from .sampled import Distributed
from .univariate import Frozen

sum_, cat, atleast_1d = PUBLIC["sum"], PUBLIC["cat"], PUBLIC["atleast_1d"]


class Multivariate(Distributed):
    """One of SciPy's distributions of vectors, for Tensors as well; called, it is frozen."""

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real = f"scipy.stats.{name}", real

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return Frozen(self, arguments, options)


def _distances(x: Any, middle: Any, matrix: Any, method: str) -> tuple[Any, Any, int, tuple[int, ...]]:
    """Squares of Mahalanobis' distances, half the log-determinant, the vectors' size, the batch's shape."""
    values, middle = floats(x, middle)
    matrix = averaged(tensor_of(matrix))
    if matrix.ndim:
        size = matrix.shape[-1]
    else:
        size = max(one.shape[-1] if one.ndim else 1 for one in (values, middle))
    if matrix.ndim < 2:
        matrix = tensor_of(np.eye(size)) * matrix
    if matrix.ndim != 2 or matrix.shape[0] != size:
        fail(ShapeError, f"{method}: a square matrix is expected, found the shape {tuple(matrix.shape)}.")
    apart = values - middle
    apart = apart[..., None] if size == 1 and (not apart.ndim or apart.shape[-1] != 1) else apart
    if apart.shape[-1] != size:
        fail(
            ShapeError,
            f"{method}: vectors of {size} elements, as the matrix says, are expected last; "
            f"found the shape {tuple(apart.shape)}.",
        )
    factor = linalg.cholesky(matrix)
    solved = linalg.solve_triangular(factor, apart.reshape(-1, size).T, upper=False)
    logarithm = sum_(log(parts.diagonal(factor, 0, -2, -1)))
    return sum_(solved * solved, 0), logarithm, size, tuple(apart.shape[:-1])


class MultivariateNormal(Multivariate):
    """`scipy.stats.multivariate_normal`; the covariance must be positive definite."""

    @for_tensors
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density."""
        if allow_singular:
            self._refuse("logpdf with allow_singular")
        middle = 0.0 if mean is None else mean
        squares, logarithm, size, shape = _distances(x, middle, cov, "scipy.stats.multivariate_normal")
        return (-0.5 * squares - logarithm - 0.5 * size * LOG_2_PI).reshape(shape)

    @for_tensors
    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return exp(self.logpdf(x, mean, cov, allow_singular))


class MultivariateStudent(Multivariate):
    """`scipy.stats.multivariate_t`; the matrix must be positive definite."""

    @for_tensors
    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The logarithm of the density."""
        middle, df = 0.0 if loc is None else loc, averaged(df)
        squares, logarithm, size, batch = _distances(x, middle, shape, "scipy.stats.multivariate_t")
        constant = lgamma(0.5 * (df + size)) - lgamma(0.5 * df) - 0.5 * size * log(df * math.pi)
        return (constant - logarithm - 0.5 * (df + size) * log1p(squares / df)).reshape(batch)

    @for_tensors
    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The density."""
        return exp(self.logpdf(x, loc, shape, df))


class Dirichlet(Multivariate):
    """`scipy.stats.dirichlet`; that shares sum up to 1 is the caller's care."""

    @for_tensors
    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density; the last share may be left out."""
        shares, powers = floats(x, alpha)
        left_out = powers.shape[0] - shares.shape[0] if powers.ndim == 1 and shares.ndim else None
        if left_out not in (0, 1):
            fail(
                ShapeError,
                "scipy.stats.dirichlet: a vector alpha and as many shares along the first dimension, or one "
                f"less, are expected; found the shapes {tuple(powers.shape)} and {tuple(shares.shape)}.",
            )
        if left_out:
            shares = cat([shares, (1.0 - sum_(shares, 0))[None]], 0)
        constant = lgamma(sum_(powers)) - sum_(lgamma(powers))
        powers = powers.reshape(-1, *(1,) * (shares.ndim - 1))
        return constant + sum_(xlogy(powers - 1.0, shares), 0)

    @for_tensors
    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return exp(self.logpdf(x, alpha))


class Multinomial(Multivariate):
    """`scipy.stats.multinomial`; that probabilities sum up to 1 is the caller's care."""

    @for_tensors
    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """The logarithm of the probability."""
        counts, trials, p = floats(x, n, p)
        terms = sum_(xlogy(counts, p) - lgamma(counts + 1.0), -1)
        return where(sum_(counts, -1) == trials, lgamma(trials + 1.0) + terms, -math.inf)

    @for_tensors
    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """The probability."""
        return exp(self.logpmf(x, n, p))


MULTIVARIATE: dict[str, tuple[type[Multivariate], tuple[str, ...]]] = {
    "multivariate_normal": (MultivariateNormal, ("mean", "cov")),
    "multivariate_t": (MultivariateStudent, ("loc", "shape", "df")),
    "dirichlet": (Dirichlet, ("alpha",)),
    "multinomial": (Multinomial, ("n", "p")),
}
"""By SciPy's name what stands for it, and the attributes of a frozen one that are its parameters."""
