"""Interpolants: `scipy.interpolate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as interpolate
from scipy.interpolate import CubicSpline, interp1d
from scipy_programs import Program, drawn

from pullback.runtime.scipy_api.interpolation.interp1d import DEGREES, STEPS

RNG = drawn("interpolate")
X = np.array([0.0, 0.7, 1.1, 2.0, 2.6, 3.3, 4.1])
Y = RNG.standard_normal(7)
ROWS = RNG.standard_normal((3, 7, 2))
AT = np.array([[0.1, 0.95, 3.9], [1.3, 2.2, 3.0]])
OUTSIDE = np.array([-0.5, 0.4, 4.5])
CLOSED = np.concatenate([Y[:-1], Y[:1]])
GRID = (X, np.array([0.0, 1.0, 2.5]))
TABLE = RNG.standard_normal((7, 3, 2))
POINTS = np.stack([AT.ravel(), np.array([0.2, 1.4, 2.1, 0.7, 1.9, 0.3])], -1)
MADE = {
    "CubicSpline": CubicSpline(X, Y),
    "PchipInterpolator": interpolate.PchipInterpolator(X, Y),
    "BSpline": interpolate.make_interp_spline(X, Y, 3),
    "interp1d": interp1d(X, Y),
    "interp1d cubic": interp1d(X, Y, "cubic"),
    "UnivariateSpline": interpolate.UnivariateSpline(X, Y, s=0.1),
}
TABLE_MADE = interpolate.RegularGridInterpolator(GRID, TABLE)


def closed(spline: Any) -> Any:
    """Of values whose last is the first."""
    return lambda x, y, at: spline(x, np.concatenate([y, y[:1]]), at)


PROGRAMS: dict[str, Program] = {
    **{
        f"CubicSpline {ends}": (lambda x, y, at, ends=ends: CubicSpline(x, y, bc_type=ends)(at), (X, Y, AT))
        for ends in ("not-a-knot", "natural", "clamped", ((1, 0.3), (2, -0.4)), ("natural", "not-a-knot"))
    },
    **{
        f"CubicSpline of {count} points": (lambda x, y, at: CubicSpline(x, y)(at), (X[:count], Y[:count], AT))
        for count in (2, 3, 4)
    },
    "CubicSpline along an axis": (lambda y, at: CubicSpline(X, y, axis=1)(at), (ROWS, AT)),
    "CubicSpline with slopes": (
        lambda y, at, v: CubicSpline(X, y, bc_type=((1, v), (2, 2.0 * v)))(at), (Y, AT, np.array(0.7)),
    ),
    "CubicSpline outside": (lambda x, y, at: CubicSpline(x, y)(at), (X, Y, OUTSIDE)),
    "CubicSpline nowhere outside": (
        lambda y: np.nan_to_num(CubicSpline(X, y, extrapolate=False)(OUTSIDE)), (Y,),
    ),
    "CubicSpline complex": (lambda y, at: CubicSpline(X, y)(at), (Y + 0.3j * Y[::-1], AT)),
    **{
        f"CubicSpline periodic of {count} points": (
            closed(lambda x, y, at: CubicSpline(x, y, bc_type="periodic")(at)),
            (X[:count], Y[: count - 1], OUTSIDE),
        )
        for count in (3, 4, 5, 7)
    },
    "derivatives": (lambda y, at: CubicSpline(X, y)(at, 1) + CubicSpline(X, y).derivative(2)(at), (Y, AT)),
    "antiderivatives": (lambda x, y, at: CubicSpline(x, y).antiderivative()(at), (X, Y, AT)),
    "integrals": (lambda x, y: CubicSpline(x, y).integrate(0.3, 3.7), (X, Y)),
    "coefficients": (lambda x, y: CubicSpline(x, y).c, (X, Y)),
    "PchipInterpolator": (lambda x, y, at: interpolate.PchipInterpolator(x, y)(at), (X, Y, AT)),
    "PchipInterpolator of monotone values": (
        lambda x, y, at: interpolate.PchipInterpolator(x, y)(at), (X, np.sort(Y), AT),
    ),
    "PchipInterpolator along an axis": (lambda y: interpolate.PchipInterpolator(X, y, 1)(AT), (ROWS,)),
    **{
        f"Akima1DInterpolator {method}": (
            lambda x, y, at, method=method: interpolate.Akima1DInterpolator(x, y, method=method)(at),
            (X, Y, AT),
        )
        for method in ("akima", "makima")
    },
    "CubicHermiteSpline": (
        lambda x, y, s, at: interpolate.CubicHermiteSpline(x, y, s)(at), (X, Y, np.cos(X), AT),
    ),
    "PPoly": (lambda c, x, at: interpolate.PPoly(c, x)(at), (RNG.standard_normal((3, 6)), X, AT)),
    "BSpline": (
        lambda c, at: interpolate.BSpline(np.r_[0, 0, 0, X[1:-1], 4.1, 4.1, 4.1], c, 2)(at),
        (RNG.standard_normal((8, 2)), AT),
    ),
    "BSpline by its knots": (
        lambda t, at: interpolate.BSpline(t, Y[:5], 3)(at), (np.cumsum(0.3 + RNG.random(9)), AT[:, 2] - 1.0),
    ),
    "BSpline derivatives": (
        lambda y, at: interpolate.make_interp_spline(X, y, 4)(at, 2)
        + interpolate.make_interp_spline(X, y).antiderivative()(at), (Y, AT),
    ),
    "BSpline integrals": (
        lambda y, a, b: interpolate.make_interp_spline(X, y).integrate(a, b),
        (Y, np.array(0.4), np.array(3.0)),
    ),
    **{
        f"make_interp_spline of degree {k}": (
            lambda y, at, k=k: interpolate.make_interp_spline(X, y, k, axis=1)(at), (ROWS, AT),
        )
        for k in (0, 1, 2, 3, 5)
    },
    "make_interp_spline by its points": (
        lambda x, y, at: interpolate.make_interp_spline(x, y, 2)(at), (X, Y, OUTSIDE),
    ),
    **{
        f"splev {ext}": (
            lambda y, at, ext=ext: interpolate.splev(at, interpolate.splrep(X, y), ext=ext), (Y, OUTSIDE),
        )
        for ext in (0, 1, 3)
    },
    "splev of a slope": (lambda y, at: interpolate.splev(at, interpolate.splrep(X, y, s=0), 1), (Y, AT)),
    **{
        f"interp1d {kind}": (lambda y, at, kind=kind: interp1d(X, y, kind, axis=1)(at), (ROWS, AT))
        for kind in ("linear", *STEPS, *DEGREES)
    },
    **{
        f"interp1d {kind} outside": (
            lambda y, at, kind=kind: np.nan_to_num(interp1d(X, y, kind, fill_value="extrapolate")(at)),
            (Y, OUTSIDE),
        )
        for kind in ("linear", "nearest", "previous", "next", "zero", "cubic")
    },
    "interp1d by its points": (lambda x, y, at: interp1d(x, y)(at), (X[::-1].copy(), Y, AT)),
    "interp1d filled": (
        lambda y, at: interp1d(X, y, bounds_error=False, fill_value=(1.5, -2.0))(at), (Y, OUTSIDE),
    ),
    "RegularGridInterpolator": (
        lambda v, at: interpolate.RegularGridInterpolator(GRID, v)(at), (TABLE, POINTS),
    ),
    "RegularGridInterpolator by its points": (
        lambda a, b, v, at: interpolate.RegularGridInterpolator((a, b), v)(at), (*GRID, TABLE, POINTS),
    ),
    "RegularGridInterpolator nearest": (
        lambda v: interpolate.RegularGridInterpolator(GRID, v, "nearest")(POINTS), (TABLE,),
    ),
    "RegularGridInterpolator outside": (
        lambda v, at: interpolate.RegularGridInterpolator(GRID, v, bounds_error=False, fill_value=None)(at),
        (TABLE[..., 0].copy(), POINTS * 1.7 - 0.3),
    ),
    "RegularGridInterpolator filled": (
        lambda v, at: interpolate.RegularGridInterpolator(GRID, v, "linear", False, 2.0)((at, 0.5)),
        (TABLE, OUTSIDE),
    ),
    "interpn": (lambda v, at: interpolate.interpn(GRID, v, at), (TABLE, POINTS)),
    **{f"{name} made before": (lambda at, name=name: MADE[name](at), (AT,)) for name in MADE},
    "RegularGridInterpolator made before": (lambda at: TABLE_MADE(at), (POINTS,)),
    "made of constants": (lambda at: CubicSpline(X, Y)(at) + interp1d(X, Y)(at), (AT,)),
}  # fmt: skip
