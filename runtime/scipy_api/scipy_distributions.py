"""SciPy's probability distributions on Tensors: `scipy.stats.norm.logpdf(x, loc, scale)` and its kin.

Densities have gradients by all arguments. What a distribution does not have here is SciPy's, on plain arrays.
Formulas: Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions (1995).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions import PUBLIC, linalg, parts
from ..numpy_api.ufuncs import OF_OTHERS
from ..numpy_api.values import averaged, of_arrays, promoted
from ..tensors.conversion import holds_tensor, tensor_of
from ..values.tensor import Tensor

Density = Callable[..., Tensor]
LOG_2_PI = math.log(2 * math.pi)


def _lgamma(x: Any) -> Tensor:
    return PUBLIC["lgamma"](averaged(x))


def _inside(holds: Tensor, value: Callable[[], Tensor]) -> Tensor:
    """The logarithm of a density, minus infinity where the density is 0."""
    return PUBLIC["where"](holds, value(), -np.inf)


def _at(holds: Tensor, x: Tensor) -> Tensor:
    """x, and 1 where it is outside, so that nothing undefined reaches a gradient."""
    return PUBLIC["where"](holds, x, 0.5)


def _exponential(z: Tensor) -> Tensor:
    holds = PUBLIC["ge"](z, 0)
    return _inside(holds, lambda: -z)


def _gamma(z: Tensor, a: Tensor) -> Tensor:
    holds = PUBLIC["gt"](z, 0)
    x = _at(holds, z)
    return _inside(holds, lambda: PUBLIC["xlogy"](a - 1, x) - x - _lgamma(a))


def _beta(z: Tensor, a: Tensor, b: Tensor) -> Tensor:
    holds = PUBLIC["gt"](z, 0) & PUBLIC["lt"](z, 1)
    x = _at(holds, z)
    shares = PUBLIC["xlogy"](a - 1, x) + OF_OTHERS["xlog1py"](b - 1, -x)
    return _inside(holds, lambda: shares - OF_OTHERS["betaln"](a, b))


def _student(z: Tensor, df: Tensor) -> Tensor:
    constant = _lgamma((df + 1) / 2) - _lgamma(df / 2) - 0.5 * PUBLIC["log"](df * math.pi)
    return constant - (df + 1) / 2 * PUBLIC["log1p"](z * z / df)


def _log_normal(z: Tensor, s: Tensor) -> Tensor:
    holds = PUBLIC["gt"](z, 0)
    x = PUBLIC["log"](_at(holds, z))
    return _inside(holds, lambda: -0.5 * (x / s) ** 2 - x - PUBLIC["log"](s) - 0.5 * LOG_2_PI)


def _uniform(z: Tensor) -> Tensor:
    return _inside(PUBLIC["ge"](z, 0) & PUBLIC["le"](z, 1), lambda: z * 0)


def _poisson(k: Tensor, mu: Tensor) -> Tensor:
    return _inside(PUBLIC["ge"](k, 0), lambda: PUBLIC["xlogy"](k, mu) - mu - _lgamma(k + 1))


def _binomial(k: Tensor, n: Tensor, p: Tensor) -> Tensor:
    ways = _lgamma(n + 1) - _lgamma(k + 1) - _lgamma(n - k + 1)
    return ways + PUBLIC["xlogy"](k, p) + OF_OTHERS["xlog1py"](n - k, -p)


LOGARITHMS: dict[str, Density] = {
    "norm": lambda z: -0.5 * z * z - 0.5 * LOG_2_PI,
    "expon": _exponential, "gamma": _gamma, "beta": _beta, "t": _student, "lognorm": _log_normal,
    "uniform": _uniform, "laplace": lambda z: -PUBLIC["abs"](z) - math.log(2.0),
    "logistic": lambda z: -PUBLIC["abs"](z) - 2.0 * PUBLIC["log1p"](PUBLIC["exp"](-PUBLIC["abs"](z))),
    "cauchy": lambda z: -math.log(math.pi) - PUBLIC["log1p"](z * z),
    "poisson": _poisson, "binom": _binomial, "bernoulli": lambda k, p: _binomial(k, k * 0 + 1, p),
}  # fmt: skip
"""The logarithm of the density, or of the probability, of standardised values and the parameters of shape."""
CUMULATIVE: dict[str, Density] = {
    "norm": OF_OTHERS["ndtr"], "logistic": PUBLIC["sigmoid"],
    "expon": lambda z: -PUBLIC["expm1"](-PUBLIC["clamp"](z, 0.0)),
    "uniform": lambda z: PUBLIC["clamp"](z, 0.0, 1.0),
    "cauchy": lambda z: 0.5 + PUBLIC["atan"](z) / math.pi,
}  # fmt: skip


def _for_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method where a Tensor is among its arguments, with results of NumPy's kind; else SciPy's own."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        if any(map(holds_tensor, (*arguments, *options.values()))):
            return of_arrays(method(self, *arguments, **options))
        return getattr(self._real, method.__name__)(*arguments, **options)

    return call


class Distribution:
    """One of SciPy's distributions, for Tensors as well."""

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real = name, real
        shapes = real.shapes
        self._count = len(shapes.split(",")) if shapes else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._real(*arguments, **options)

    def _standardised(self, x: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> list[Tensor]:
        """The standardised values, the scale and the parameters of shape."""
        names = [*(self._real.shapes or "").replace(" ", "").split(","), "loc", "scale"]
        given = dict(zip([one for one in names if one], arguments)) | options
        shapes = [given[one] for one in names[:-2] if one]
        values = [
            averaged(one) for one in promoted([x, given.get("loc", 0.0), given.get("scale", 1.0), *shapes])
        ]
        return [(values[0] - values[1]) / values[2], *values[2:]]

    @_for_tensors
    def logpdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The logarithm of the density."""
        z, scale, *shapes = self._standardised(x, arguments, options)
        return LOGARITHMS[self._name](z, *shapes) - PUBLIC["log"](scale)

    @_for_tensors
    def pdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The density."""
        return PUBLIC["exp"](self.logpdf(x, *arguments, **options))

    @_for_tensors
    def logpmf(self, k: Any, *arguments: Any, **options: Any) -> Any:
        """The logarithm of the probability."""
        z, _, *shapes = self._standardised(k, arguments, options)
        return LOGARITHMS[self._name](z, *shapes)

    @_for_tensors
    def pmf(self, k: Any, *arguments: Any, **options: Any) -> Any:
        """The probability."""
        return PUBLIC["exp"](self.logpmf(k, *arguments, **options))

    @_for_tensors
    def cdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The probability of values up to x."""
        if self._name not in CUMULATIVE:
            return self._real.cdf(x, *arguments, **options)
        return CUMULATIVE[self._name](self._standardised(x, arguments, options)[0])

    @_for_tensors
    def sf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The probability of values above x."""
        if self._name not in ("norm", "logistic"):
            return self._real.sf(x, *arguments, **options)
        return CUMULATIVE[self._name](-self._standardised(x, arguments, options)[0])

    @_for_tensors
    def logcdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The logarithm of the probability of values up to x."""
        if self._name not in CUMULATIVE:
            return self._real.logcdf(x, *arguments, **options)
        z = self._standardised(x, arguments, options)[0]
        logarithms = {"norm": OF_OTHERS["log_ndtr"], "logistic": PUBLIC["logsigmoid"]}
        if self._name in logarithms:
            return logarithms[self._name](z)
        return PUBLIC["log"](CUMULATIVE[self._name](z))


class MultivariateNormal:
    """`scipy.stats.multivariate_normal`, for Tensors as well."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._real(*arguments, **options)

    @_for_tensors
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, **options: Any) -> Any:
        """The logarithm of the density, of vectors along the last dimension."""
        values, middle = (averaged(one) for one in promoted([x, 0.0 if mean is None else mean]))
        matrix = averaged(tensor_of(cov))
        size = matrix.shape[0] if matrix.ndim else values.shape[-1] if values.ndim else 1
        identity = tensor_of(np.eye(size))
        matrix = identity * matrix if matrix.ndim < 2 else matrix
        factor = linalg.cholesky(matrix)
        distance = PUBLIC["atleast_1d"](values - middle).reshape(-1, size)
        solved = linalg.solve_triangular(factor, distance.T, upper=False)
        logarithm = PUBLIC["sum"](PUBLIC["log"](parts.diagonal(factor, 0, -2, -1)))
        found = -0.5 * PUBLIC["sum"](solved * solved, 0) - logarithm - 0.5 * size * LOG_2_PI
        return found.reshape(tuple((values - middle).shape[:-1]))

    @_for_tensors
    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, **options: Any) -> Any:
        """The density."""
        return PUBLIC["exp"](self.logpdf(x, mean, cov))


NAMES = (*LOGARITHMS, "multivariate_normal")


def stand_in(name: str, real: Any) -> Any:
    """What stands for the distribution of this name."""
    return MultivariateNormal(real) if name == "multivariate_normal" else Distribution(name, real)
