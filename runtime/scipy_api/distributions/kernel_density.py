"""`scipy.stats.gaussian_kde` of data or at points that are Tensors.

Formulas: D. W. Scott, Multivariate Density Estimation (1992).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ...functions import PUBLIC
from ...functions.common import fail
from ...functions.matrices import linalg
from ...functions.shapes import parts
from ...numpy_api.values import averaged, of_arrays
from ...tensors.conversion import tensor_of
from ..refusing import Refusing, any_tensor
from .elements import LOG_2_PI, exp, log

NAME = "scipy.stats.gaussian_kde"
sum_ = PUBLIC["sum"]


class KernelDensity(Refusing):
    """The mean of normal densities around the columns of `dataset`, of shape (d, n), or (n,) for numbers."""

    _name = NAME

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None, real: Any = None) -> None:
        data = averaged(dataset)
        data = data[None] if data.ndim == 1 else data
        if data.ndim != 2 or data.shape[1] < 2:
            fail(
                ShapeError,
                f"{NAME}: data of shape (n,) or (d, n) with more than one element are expected; found the "
                f"shape {tuple(data.shape)}.",
            )
        self._data, self._real = data, real
        self.d, self.n = data.shape
        shares = averaged(np.full(self.n, 1.0) if weights is None else weights)
        self._shares = shares / sum_(shares)
        self._effective = 1.0 / sum_(self._shares * self._shares)
        self._factor = self._bandwidth(bw_method)

    def _bandwidth(self, method: Any) -> Any:
        if method is None or method == "scott":
            return self._effective ** (-1.0 / (self.d + 4))
        if method == "silverman":
            return (self._effective * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))
        if isinstance(method, str):
            fail(ArgumentError, f"{NAME}: bw_method={method!r} is not known. Give 'scott' or 'silverman'.")
        return tensor_of(method(self) if callable(method) else method)

    @property
    def factor(self) -> Any:
        """What standard deviations are multiplied with."""
        return of_arrays(self._factor)

    @property
    def covariance(self) -> Any:
        """Of the normal densities, of shape (d, d)."""
        return of_arrays(self._covariance())

    def _covariance(self) -> Any:
        apart = self._data - sum_(self._data * self._shares, 1)[:, None]
        unbiased = 1.0 - sum_(self._shares * self._shares)
        return (apart * self._shares) @ apart.T / unbiased * self._factor**2

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at the columns of `x`, of shape (d, m), or (m,) for numbers."""
        points = averaged(x)
        points = points.reshape(1, -1) if points.ndim < 2 else points
        if self.d > 1 and points.shape == (1, self.d):
            points = points.T
        if points.shape[0] != self.d:
            fail(
                ShapeError,
                f"{NAME}: points of {self.d} dimensions are expected along the first one; found the shape "
                f"{tuple(points.shape)}.",
            )
        factor = linalg.cholesky(self._covariance())
        data, points = (linalg.solve_triangular(factor, one, upper=False) for one in (self._data, points))
        squares = sum_((points[:, :, None] - data[:, None, :]) ** 2, 0)
        logarithm = sum_(log(parts.diagonal(factor, 0, -2, -1))) + 0.5 * self.d * LOG_2_PI
        found = PUBLIC["logsumexp"](log(self._shares) - 0.5 * squares, (1,), False) - logarithm
        return of_arrays(found)

    def evaluate(self, points: Any) -> Any:
        """The density at the columns of `points`: see `logpdf`."""
        return of_arrays(exp(tensor_of(self.logpdf(points))))

    pdf = __call__ = evaluate

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability of numbers between two."""
        if self.d != 1:
            fail(ArgumentError, f"{NAME}.integrate_box_1d: the data have {self.d} dimensions, not one.")
        scale = math.sqrt(0.5) / PUBLIC["sqrt"](self._covariance()[0, 0])
        above, below = (PUBLIC["erf"]((tensor_of(end) - self._data[0]) * scale) for end in (high, low))
        return of_arrays(0.5 * sum_(self._shares * (above - below)))

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Refused: give `bw_method` where the density is made."""
        self._refuse("set_bandwidth")

    def __getattr__(self, name: str) -> Any:
        if name[0] != "_" and self._real is None:
            self._refuse(name)
        return super().__getattr__(name)


def kernel_density(real: type, dataset: Any, *given: Any, **options: Any) -> KernelDensity:
    """What stands for one that code makes."""
    made = KernelDensity(dataset, *given, **options)
    made._real = None if any_tensor((dataset, *given), options) else real(dataset, *given, **options)
    return made


def kernel_density_of(value: Any) -> KernelDensity:
    """What stands for one that was made before."""
    return KernelDensity(value.dataset, value.factor, value.weights, value)
