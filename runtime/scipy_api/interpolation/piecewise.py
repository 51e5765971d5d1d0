"""Piecewise polynomials on Tensors: `CubicSpline`, `PchipInterpolator`, `Akima1DInterpolator`, `PPoly`.

A cubic interpolant is given by its slopes at the knots. Those of splines solve a tridiagonal system (de Boor,
A Practical Guide to Splines, 2001, chapter IV). Knots, values and points all have derivatives.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ....tracer.ops import matrix_equations as equations
from ...functions import PUBLIC, declared
from ...functions.common import as_dtype, fail, filled
from ...numpy_api.values import as_array
from ...tape.apply import apply
from ...tensors.conversion import array_dtype, tensor_of
from ...values.tensor import Tensor
from .points import (
    COMPLEX,
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
    spread,
    where,
)

cat, stack, diff, sign, abs_ = (PUBLIC[name] for name in ("cat", "stack", "diff", "sgn", "abs"))


class PiecewisePolynomial(Interpolant):
    """Polynomials in x - x[i] between knots, `c[0]` those of the highest power."""

    def __init__(self, name: str, plain: Any, c: Tensor, x: Tensor, extrapolate: Any, axis: int) -> None:
        super().__init__(name, plain)
        self.c, self.x, self.extrapolate, self.axis = c, x, extrapolate, axis

    def _evaluate(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Tensor:
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        powers = differentiated(self.c, nu)

        def at_points(at: Tensor) -> Tensor:
            place = interval(self.x, at, 0, self.x.shape[0] - 2)
            total = powers[0][place]
            apart = spread(at - self.x[place], total)
            for one in powers[1:]:
                total = total * apart + one[place]
            return total + 0.0 * apart  # nan where the point is

        return evaluated(x, self.x[0], self.x[-1], extrapolate, self.axis, at_points)

    def _like(self, c: Tensor) -> PiecewisePolynomial:
        return PiecewisePolynomial("PPoly", None, c, self.x, self.extrapolate, self.axis)

    def derivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial that is the derivative."""
        return self.antiderivative(-nu) if nu < 0 else self._like(stack(differentiated(self.c, nu), 0))

    def antiderivative(self, nu: int = 1) -> Any:
        """The continuous one whose derivative this is, 0 at the first knot."""
        if nu <= 0:
            return self.derivative(-nu) if nu else self
        order = self.c.shape[0]
        raised = [self.c[place] / (order - place) for place in range(order)]
        widths, total = like_rows(diff(self.x), raised[0]), raised[0]
        for one in raised[1:]:
            total = total * widths + one
        ends = PUBLIC["cumsum"](total * widths, 0)
        start = cat([0.0 * ends[:1], ends[:-1]], 0)
        return self._like(stack([*raised, start], 0)).antiderivative(nu - 1)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            fail(
                UnsupportedError,
                f"{self._name}.integrate: periodic extrapolation is not supported on a Tensor. Integrate "
                "within one period.",
            )
        whole = self.antiderivative()
        return as_array(whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate))


def differentiated(c: Tensor, nu: int) -> list[Tensor]:
    """The coefficients of each power, of the derivative of order nu."""
    order = c.shape[0] - nu
    if order <= 0:
        return [0.0 * c[0]]
    factors = [math.perm(c.shape[0] - 1 - place, nu) for place in range(order)]
    return [c[place] * factor if factor != 1 else c[place] for place, factor in enumerate(factors)]


def by_slopes(name: str, plain: Any, x: Tensor, y: Tensor, slopes: Tensor, *rest: Any) -> PiecewisePolynomial:
    """The cubic polynomials with these values and slopes at the knots."""
    widths = like_rows(diff(x), y)
    rise = (y[1:] - y[:-1]) / widths
    bend = (slopes[:-1] + slopes[1:] - 2.0 * rise) / widths
    c = stack([bend / widths, (rise - slopes[:-1]) / widths - bend, slopes[:-1], y[:-1]], 0)
    return PiecewisePolynomial(name, plain, c, x, *rest)


# --- cubic splines ------------------------------------------------------------------------------------------

NAMED_ENDS = {"natural": (2, 0.0), "clamped": (1, 0.0)}


def _ends(bc_type: Any) -> list[Any]:
    """Of each end "not-a-knot", "periodic", or the order of a derivative and its value there."""
    both = [bc_type, bc_type] if isinstance(bc_type, str) else list(bc_type)
    found = [NAMED_ENDS.get(one, one) if isinstance(one, str) else one for one in both]
    known = [
        one in ("not-a-knot", "periodic") if isinstance(one, str) else len(one) == 2 and one[0] in (1, 2)
        for one in found
    ]
    if len(found) != 2 or not all(known) or found.count("periodic") == 1:
        fail(
            ArgumentError,
            "scipy.interpolate.CubicSpline: bc_type must be 'not-a-knot', 'periodic', 'clamped', 'natural', "
            f"or for each end one of these or (1 or 2, the derivative there); found {bc_type!r}.",
        )
    return found


def _end(asked: Any, widths: Tensor, rise: Tensor, y: Tensor, direction: float) -> tuple[Any, Any, Any]:
    """The equation at an end: the factors of its slope and of the next one, and its right-hand side.

    Args:
        widths, rise: of the intervals, and of them the slopes of lines, from that end on.
        direction: 1 where the second derivative counts as it is, -1 at the first end.
    """
    if asked == "not-a-knot":
        both, first, second = widths[0] + widths[1], widths[0], widths[1]
        return second, both, ((first + 2.0 * both) * second * rise[0] + first * first * rise[1]) / both
    order, value = asked
    given = doubles(value)
    if tuple(given.shape) != tuple(y.shape[1:]) and given.ndim:
        fail(
            ShapeError,
            f"scipy.interpolate.CubicSpline: a derivative at an end has the shape {tuple(given.shape)}; "
            f"expected {tuple(y.shape[1:])}.",
        )
    if order == 1:
        return 1.0, 0.0, given
    width = widths[0]
    return 2.0 * width, width, direction * 0.5 * given * width * width + 3.0 * width * rise[0]


def _solved(lower: Tensor, main: Tensor, upper: Tensor, sides: Tensor) -> Tensor:
    """The solution of a tridiagonal system, whose rows have these elements beside the diagonal."""
    none = main[:1] * 0.0
    bands = stack([cat([none, upper[:-1]], 0), main, cat([lower[1:], none], 0)], 0)
    dtype = array_dtype(sides)
    columns = sides.reshape((main.shape[0], -1))
    flat = apply(equations.banded_solution, as_dtype(bands, dtype), columns, lower=1, upper=1)
    return flat.reshape(tuple(sides.shape))


def _vector(value: Any) -> Tensor:
    return doubles(value).reshape((1,))


def _row(value: Any, y: Tensor) -> Tensor:
    return PUBLIC["broadcast_to"](as_dtype(doubles(value), array_dtype(y)), (1, *y.shape[1:]))


def _slopes(x: Tensor, y: Tensor, ends: list[Any]) -> Tensor:
    """The derivatives of the cubic spline at its knots."""
    count, widths = x.shape[0], diff(x)
    rise = (y[1:] - y[:-1]) / like_rows(widths, y)
    if "periodic" in ends:
        return _periodic_slopes(widths, rise)
    if count == 2:
        ends = [(1, rise[0]) if isinstance(one, str) else one for one in ends]
    first, last = ends
    above, below = widths[:-1], widths[1:]
    inner = 3.0 * (like_rows(below, y) * rise[:-1] + like_rows(above, y) * rise[1:])
    if count == 3 and first == last == "not-a-knot":  # one parabola
        start, end = (1.0, 1.0, 2.0 * rise[0]), (1.0, 1.0, 2.0 * rise[1])
    else:
        start = _end(first, widths, rise, y, -1.0)
        end = _end(last, widths.flip(0), rise.flip(0), y, 1.0)
    lower = cat([_vector(0.0), below, _vector(end[1])], 0)
    main = cat([_vector(start[0]), 2.0 * (above + below), _vector(end[0])], 0)
    upper = cat([_vector(start[1]), above, _vector(0.0)], 0)
    return _solved(lower, main, upper, cat([_row(start[2], y), inner, _row(end[2], y)], 0))


def _periodic_slopes(widths: Tensor, rise: Tensor) -> Tensor:
    """A cyclic system, as a tridiagonal one and a product (Sherman and Morrison)."""
    count = widths.shape[0]
    if count < 3:
        weights = like_rows(1.0 / widths, rise)
        one = declared.sum(rise * weights, 0, True) / declared.sum(weights, 0, True)
        return PUBLIC["broadcast_to"](one, (count + 1, *rise.shape[1:]))
    before, lines = widths.roll(1, 0), rise.roll(1, 0)
    main = 2.0 * (before + widths)
    sides = 3.0 * (like_rows(widths, rise) * lines + like_rows(before, rise) * rise)
    left, right = widths[:1], before[-1:]  # the elements in the corners
    pivot = -main[:1]
    changed = cat([main[:1] - pivot, main[1:-1], main[-1:] - left * right / pivot], 0)
    none = filled((count - 2,), 0.0, DOUBLE)
    column = as_dtype(cat([pivot, none, right], 0), array_dtype(rise))
    flat = cat([sides.reshape((count, -1)), column[:, None]], 1)
    solved = _solved(widths, changed, before, flat)
    share = left / pivot
    found, moved = solved[:, :-1], solved[:, -1:]
    part = (found[:1] + share * found[-1:]) / (1.0 + moved[:1] + share * moved[-1:])
    slopes = (found - moved * part).reshape(tuple(rise.shape))
    return cat([slopes, slopes[:1]], 0)


def _cubic_spline(
    name: str, plain: Any, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> PiecewisePolynomial:
    values, axis = along_first("scipy.interpolate.CubicSpline", y, axis)
    places, ends = knots("scipy.interpolate.CubicSpline", x, values.shape[0]), _ends(bc_type)
    given = [doubles(one[1]) for one in ends if not isinstance(one, str)]
    if any(one.is_complex() for one in given):
        values = as_dtype(values, COMPLEX)
    if "periodic" in ends:
        closes = PUBLIC["isclose"](values[0]._detached(), values[-1]._detached(), 1e-15, 1e-15)
        text = "the first and the last value must be the same where bc_type is 'periodic'."
        values = demanded("scipy.interpolate.CubicSpline", values, closes, text)
    extrapolate = ("periodic" if "periodic" in ends else True) if extrapolate is None else extrapolate
    return by_slopes(name, plain, places, values, _slopes(places, values, ends), extrapolate, axis)


# --- slopes by rules of their own ---------------------------------------------------------------------------


def _real_values(name: str, x: Any, y: Any, axis: int) -> tuple[Tensor, Tensor, int]:
    function = f"scipy.interpolate.{name}"
    values, axis = along_first(function, y, axis)
    if values.is_complex():
        fail(ArgumentError, f"{function}: y must be real. Interpolate its real and imaginary parts.")
    return knots(function, x, values.shape[0]), values, axis


def _pchip_end(near: Tensor, next_: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """A one-sided estimate of three points that keeps the shape (Moler, Numerical Computing, 3.6)."""
    found = ((2.0 * near + next_) * first - near * second) / (near + next_)
    too_steep = (sign(first) != sign(second)) & (abs_(found) > 3.0 * abs_(first))
    return where(sign(found) != sign(first), 0.0, where(too_steep, 3.0 * first, found))


def _pchip_slopes(x: Tensor, y: Tensor) -> Tensor:
    """Weighted harmonic means of neighbouring slopes, 0 where these differ in sign (Fritsch and Butland)."""
    widths = like_rows(diff(x), y)
    rise = (y[1:] - y[:-1]) / widths
    if y.shape[0] == 2:
        return cat([rise, rise], 0)
    before, after = rise[:-1], rise[1:]
    is_flat = (sign(before) != sign(after)) | PUBLIC["eq"](before, 0) | PUBLIC["eq"](after, 0)
    first, second = 2.0 * widths[1:] + widths[:-1], widths[1:] + 2.0 * widths[:-1]
    safe = [where(is_flat, 1.0, one) for one in (before, after)]
    inner = where(is_flat, 0.0, (first + second) / (first / safe[0] + second / safe[1]))
    start = _pchip_end(widths[:1], widths[1:2], rise[:1], rise[1:2])
    end = _pchip_end(widths[-1:], widths[-2:-1], rise[-1:], rise[-2:-1])
    return cat([start, inner, end], 0)


LEAST_BEND = 1e-9
"""Of the largest change of slopes, below which Akima's weights count as undefined; SciPy's."""


def _akima_slopes(x: Tensor, y: Tensor, method: str) -> Tensor:
    """Means of neighbouring slopes, weighted by how little those on their side change (Akima, 1970)."""
    rise = (y[1:] - y[:-1]) / like_rows(diff(x), y)
    if y.shape[0] == 2:
        return cat([rise, rise], 0)
    left = 2.0 * rise[:1] - rise[1:2]
    right = 2.0 * rise[-1:] - rise[-2:-1]
    lines = cat([2.0 * left - rise[:1], left, rise, right, 2.0 * right - rise[-1:]], 0)
    change = abs_(lines[1:] - lines[:-1])
    if method == "makima":
        change = change + 0.5 * abs_(lines[1:] + lines[:-1])
    after, before = change[2:], change[:-2]
    total = after + before
    bends = total > LEAST_BEND * PUBLIC["amax"](total._detached())
    share = before / where(bends, total, 1.0)
    return where(bends, lines[1:-2] + share * (lines[2:-1] - lines[1:-2]), 0.5 * (lines[3:] + lines[:-3]))


def _pchip(name: str, plain: Any, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> Any:
    places, values, axis = _real_values(name, x, y, axis)
    slopes = _pchip_slopes(places, values)
    return by_slopes(name, plain, places, values, slopes, extrapolate in (None, True) or extrapolate, axis)


def _akima(
    name: str, plain: Any, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
) -> PiecewisePolynomial:
    if method not in ("akima", "makima"):
        fail(
            ArgumentError,
            f"scipy.interpolate.{name}: method must be 'akima' or 'makima', found {method!r}.",
        )
    places, values, axis = _real_values(name, x, y, axis)
    slopes = _akima_slopes(places, values, method)
    return by_slopes(name, plain, places, values, slopes, bool(extrapolate) and extrapolate, axis)


def _hermite(
    name: str, plain: Any, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None
) -> PiecewisePolynomial:
    function = f"scipy.interpolate.{name}"
    (values, place), (slopes, _) = along_first(function, y, axis), along_first(function, dydx, axis)
    if values.shape != slopes.shape:
        fail(
            ShapeError,
            f"{function}: y and dydx must have one shape, found {tuple(values.shape)} and "
            f"{tuple(slopes.shape)}.",
        )
    places = knots(function, x, values.shape[0])
    return by_slopes(name, plain, places, values, slopes, True if extrapolate is None else extrapolate, place)


def _polynomials(
    name: str, plain: Any, c: Any, x: Any, extrapolate: Any = None, axis: int = 0
) -> PiecewisePolynomial:
    powers = doubles(c)
    if axis or powers.ndim < 2:
        fail(
            UnsupportedError,
            f"scipy.interpolate.PPoly: c of the shape {tuple(powers.shape)} and axis={axis} on a Tensor; "
            "expected (order, intervals, ...) and axis=0.",
        )
    places = knots("scipy.interpolate.PPoly", x, powers.shape[1] + 1)
    return PiecewisePolynomial(name, plain, powers, places, True if extrapolate is None else extrapolate, 0)


PIECEWISE: dict[str, Callable[..., Any]] = {
    "CubicSpline": made(_cubic_spline), "PchipInterpolator": made(_pchip),
    "Akima1DInterpolator": made(_akima), "CubicHermiteSpline": made(_hermite), "PPoly": made(_polynomials),
}  # fmt: skip


def piecewise_of(value: Any) -> Interpolant | None:
    """What stands for SciPy's piecewise polynomial."""
    if not isinstance(value, sys.modules["scipy.interpolate"].PPoly):
        return None
    c, x = tensor_of(np.asarray(value.c)), tensor_of(np.asarray(value.x))
    return PiecewisePolynomial(type(value).__name__, value, c, x, value.extrapolate, value.axis)
