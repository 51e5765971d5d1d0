"""B-splines on Tensors: `BSpline`, `make_interp_spline`, `splrep` and `splev`.

Values are those of de Boor's recurrence (A Practical Guide to Splines, 2001, chapter X); knots, coefficients
and points have derivatives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ....tracer.ops import matrix_equations as equations
from ...functions import PUBLIC
from ...functions.common import as_dtype, fail
from ...numpy_api.values import as_array
from ...tape.apply import apply
from ...tensors.conversion import array_dtype, tensor_of
from ...values.tensor import Tensor
from .points import (
    DOUBLE,
    Interpolant,
    along_first,
    demanded,
    doubles,
    evaluated,
    interval,
    knots,
    like_rows,
    made,
    outside,
    placed,
    spread,
    where,
)

cat = PUBLIC["cat"]


class Spline(Interpolant):
    """A sum of B-splines of degree k over the knots t, with coefficients c along the first dimension."""

    def __init__(
        self, name: str, plain: Any, t: Tensor, c: Tensor, k: int, extrapolate: Any, axis: int
    ) -> None:
        super().__init__(name, plain)
        self.t, self.c, self.k, self.extrapolate, self.axis = t, c, k, extrapolate, axis

    @property
    def tck(self) -> tuple[Tensor, Tensor, int]:
        return self.t, self.c, self.k

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """Of the interval between whose ends there is a spline."""
        return self.t[self.k], self.t[self.t.shape[0] - self.k - 1]

    def _evaluate(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Tensor:
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        spline = self.derivative(nu)
        return evaluated(x, *self.ends, extrapolate, self.axis, spline._at)

    def _at(self, at: Tensor) -> Tensor:
        """Along the points, by the polynomials of the intervals that they are in."""
        k, t = self.k, self.t
        place = interval(t, at, k, t.shape[0] - k - 2)
        found = [self.c[place - k + one] for one in range(k + 1)]
        for level in range(1, k + 1):
            for one in range(k, level - 1, -1):
                first, last = t[place + one - k], t[place + one + 1 - level]
                share = spread((at - first) / (last - first), found[0])
                found[one] = (1.0 - share) * found[one - 1] + share * found[one]
        return found[k] + 0.0 * spread(at, found[k])  # nan where the point is

    def derivative(self, nu: int = 1) -> Any:
        """The spline that is the derivative."""
        if not nu:
            return self
        count = self.t.shape[0] - self.k - 1
        if not self.k:
            return self._like(self.t, 0.0 * self.c, 0)
        widths = self.t[self.k + 1 : count + self.k] - self.t[1:count]
        is_empty = PUBLIC["eq"](widths, 0)
        factors = like_rows(where(is_empty, 0.0, self.k / where(is_empty, 1.0, widths)), self.c)
        steps = factors * (self.c[1:count] - self.c[: count - 1])
        return self._like(self.t[1:-1], steps, self.k - 1).derivative(nu - 1)

    def antiderivative(self, nu: int = 1) -> Any:
        """The spline whose derivative this is, 0 at the first knot."""
        if not nu:
            return self
        count = self.t.shape[0] - self.k - 1
        widths = like_rows((self.t[self.k + 1 :] - self.t[:count]) / (self.k + 1.0), self.c)
        sums = PUBLIC["cumsum"](self.c[:count] * widths, 0)
        c = cat([0.0 * sums[:1], sums], 0)
        return self._like(cat([self.t[:1], self.t, self.t[-1:]], 0), c, self.k + 1).antiderivative(nu - 1)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b, where the spline is 0 outside of its ends unless it extrapolates."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            fail(
                UnsupportedError,
                f"{self._name}.integrate: periodic extrapolation is not supported on a Tensor. Integrate "
                "within one period.",
            )
        whole, ends = self.antiderivative(), [doubles(a), doubles(b)]
        if not extrapolate:
            ends = [PUBLIC["clamp"](one, *self.ends) for one in ends]
        return as_array(whole(ends[1], extrapolate=True) - whole(ends[0], extrapolate=True))

    def _like(self, t: Tensor, c: Tensor, k: int) -> Spline:
        return Spline("BSpline", None, t, c, k, self.extrapolate, self.axis)


def _spline(name: str, plain: Any, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Spline:
    places = doubles(t)
    values, axis = along_first("scipy.interpolate.BSpline", c, axis)
    if places.ndim != 1 or k < 0 or values.shape[0] < places.shape[0] - k - 1 or places.shape[0] < 2 * k + 2:
        fail(
            ShapeError,
            f"scipy.interpolate.BSpline: knots and coefficients of the shapes {tuple(places.shape)} and "
            f"{tuple(values.shape)} for the degree {k}; expected n + k + 1 knots for n coefficients, n > k.",
        )
    grows = PUBLIC["diff"](places._detached()) >= 0
    places = demanded("scipy.interpolate.BSpline", places, grows, "t must not decrease.")
    return Spline(name, plain, places, values, int(k), extrapolate, axis)


# --- through points -----------------------------------------------------------------------------------------


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Spline:
    """The spline of degree k through points, with SciPy's choice of knots."""
    function = "scipy.interpolate.make_interp_spline"
    values, axis = along_first(function, y, axis)
    count = values.shape[0]
    places = knots(function, x, count, k + 1)
    if t is not None or bc_type not in (None, "not-a-knot"):
        given = "t" if t is not None else f"bc_type={bc_type!r}"
        fail(
            UnsupportedError,
            f"{function}: {given} is not supported on a Tensor. Leave it out, or use CubicSpline, which "
            "takes conditions at the ends.",
        )
    ranks = np.arange(float(count))
    intervals = np.clip(np.searchsorted(_knots(ranks, k), ranks, "right") - 1, k, count - 1)
    t = _knots(places, k)
    columns = values.reshape((count, -1))
    bands = as_dtype(_bands(_shares(t, places, intervals, k), intervals, k), array_dtype(values))
    c = apply(equations.banded_solution, bands, columns, lower=k, upper=k).reshape(tuple(values.shape))
    return Spline("BSpline", None, t, c, k, True, axis)


def _knots(x: Any, k: int) -> Any:
    """As many as a spline has that goes through points: of odd degree at points, else between them."""
    if not k:
        return np.concatenate([x, x[-1:]])
    left_out = (k + 1) // 2
    if k % 2:
        inner = x[left_out : x.shape[0] - left_out]
    else:
        middle = 0.5 * (x[1:] + x[:-1])
        inner = middle[left_out : middle.shape[0] - left_out]
    return np.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)])


def _shares(t: Tensor, x: Tensor, intervals: np.ndarray, k: int) -> list[Tensor]:
    """The k + 1 B-splines that are not 0 in the interval of each point, by Cox' and de Boor's recurrence."""
    found = [x * 0.0 + 1.0]
    for level in range(1, k + 1):
        after: list[Any] = [0.0] * (level + 1)
        for one in range(level):
            low, high = t[intervals - level + one + 1], t[intervals + one + 1]
            part = found[one] / (high - low)
            after[one] = after[one] + (high - x) * part
            after[one + 1] = after[one + 1] + (x - low) * part
        found = after
    return found


def _bands(shares: list[Tensor], intervals: np.ndarray, k: int) -> Tensor:
    """The matrix whose row of a point has the B-splines there, as its 2 k + 1 diagonals."""
    count = len(intervals)
    rows, elements = np.arange(count), np.full((2 * k + 1, count), (k + 1) * count)
    for one in range(k + 1):
        column = intervals - k + one
        elements[k + rows - column, column] = one * count + rows
    return cat([*shares, shares[0][:1] * 0.0], 0)[elements]


# --- FITPACK's names ----------------------------------------------------------------------------------------


def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1,
) -> tuple[Tensor, Tensor, int]:  # fmt: skip
    """Knots, coefficients with zeros behind, and degree of the spline through the points."""
    options = {"w": w, "xb": xb, "xe": xe, "task": task or None, "s": s or None, "t": t, "per": per or None}
    given = [name for name, value in options.items() if value is not None]
    if given or full_output or k % 2 == 0:
        named = given or (["full_output"] if full_output else [f"k={k}"])
        fail(
            UnsupportedError,
            f"scipy.interpolate.splrep: {', '.join(named)} is not supported on a Tensor, only splines of "
            "odd degree through the points (s=0).",
        )
    spline = make_interp_spline(x, y, k)
    return spline.t, cat([spline.c, 0.0 * spline.c[: k + 1]], 0), k


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Tensor:
    """Outside of the ends: extrapolated (0), zero (1), an error (2), or the value at the end (3)."""
    if isinstance(tck, Interpolant):
        return tck(x, der, ext == 0)
    t, c, k = tck
    return as_array(_as_fitpack(_spline("BSpline", None, t, c, k), x, der, ext))


def _as_fitpack(spline: Spline, x: Any, der: int, ext: int) -> Tensor:
    at, (low, high) = doubles(x), spline.ends
    is_outside = outside(at, low, high)
    if ext == 2:
        at = demanded("scipy.interpolate.splev", at, ~is_outside, "x must lie between the ends where ext=2.")
    if ext not in (0, 1, 2, 3):
        fail(ArgumentError, f"scipy.interpolate.splev: ext must be 0, 1, 2 or 3, found {ext!r}.")
    found = spline.derivative(der)._at(PUBLIC["clamp"](at, low, high) if ext == 3 else at)
    found = where(spread(is_outside, found), 0.0, found) if ext == 1 else found
    return placed(found, at.ndim, spline.axis)


class Fitpack(Spline):
    """SciPy's `UnivariateSpline`, made before of plain data."""

    def _evaluate(self, x: Any, nu: int = 0, ext: Any = None) -> Tensor:
        modes = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}
        ext = self.extrapolate if ext is None else ext
        return _as_fitpack(self, x, nu, modes.get(ext, ext))


def _of_points(name: str, plain: Any, *arguments: Any, **options: Any) -> Any:
    if plain is None:
        fail(
            UnsupportedError,
            f"scipy.interpolate.{name}: a Tensor makes no smoothing splines. Use make_interp_spline, "
            "CubicSpline or PchipInterpolator, which go through the points.",
        )
    return spline_of(plain)


def spline_of(value: Any) -> Interpolant | None:
    """What stands for SciPy's spline."""
    interpolate = sys.modules["scipy.interpolate"]
    if isinstance(value, interpolate.BSpline):
        t, c = tensor_of(np.asarray(value.t)), tensor_of(np.asarray(value.c))
        return Spline("BSpline", value, t, c, value.k, value.extrapolate, value.axis)
    if isinstance(value, interpolate.UnivariateSpline):
        t, c, k = value._eval_args
        knots, factors = tensor_of(t.astype(DOUBLE)), tensor_of(c[: len(t) - k - 1])
        return Fitpack(type(value).__name__, value, knots, factors, k, value.ext, 0)
    return None


SPLINES: dict[str, dict[str, Callable[..., Any]]] = {
    "classes": {
        "BSpline": made(_spline),
        **{name: made(_of_points) for name in ("UnivariateSpline", "InterpolatedUnivariateSpline")},
    },
    "functions": {"make_interp_spline": make_interp_spline, "splrep": splrep, "splev": splev},
}
