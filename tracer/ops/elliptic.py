"""Incomplete elliptic integrals and Jacobi's elliptic functions, by SciPy.

Their derivatives by the parameter m, of any order, are integrals of the same form, which are taken by
quadrature: sums of other elliptic integrals would cancel near m = 0 and m = 1. DLMF: NIST Digital Library of
Mathematical Functions (dlmf.nist.gov), 19.2 (integrals), 22.13 and 22.16 (Jacobi's functions).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ..operator import Array, Operator
from .elementwise import sin
from .lazy import scipy_special
from .special import eager

NODES = 16
AT_ONCE = 1000
"""How many integrals are taken at a time, so that their points need some ten megabytes."""
LEAST, MOST = -40, 45
"""Of the intervals: the first ends at 2**LEAST, those after 1 are of length 1 up to MOST."""


@cache
def _intervals() -> np.ndarray:
    """Ends of intervals on which the integrand is smooth, whatever m is."""
    return np.concatenate([[0.0], 2.0 ** np.arange(LEAST, 0), np.arange(1.0, MOST + 1)])


def _moments(phi: np.ndarray, m: np.ndarray, sines: int, twice: int) -> np.ndarray:
    """The integral of sin(t)**(2 sines) (1 - m sin(t)**2)**(-twice / 2) from 0 to phi.

    Of tan t = sinh u it is the integral of tanh(u)**(2 sines) / cosh(u), times the root, which falls off
    exponentially. Outside of half a turn integrals over all of that are added.
    """
    phi, m = np.broadcast_arrays(np.asarray(phi, float), np.asarray(m, float))
    if phi.size > AT_ONCE:
        parts = range(0, phi.size, AT_ONCE)
        ends, of_ends = phi.reshape(-1), m.reshape(-1)
        each = [_moments(ends[at : at + AT_ONCE], of_ends[at : at + AT_ONCE], sines, twice) for at in parts]
        return np.concatenate(each).reshape(phi.shape)
    turns = np.round(phi / np.pi)
    rest = phi - turns * np.pi
    with np.errstate(all="ignore"):
        ends = np.where(np.abs(rest) < np.pi / 2, np.arcsinh(np.tan(np.abs(rest))), np.inf)
    found = np.sign(rest) * _to(ends, m, sines, twice)
    if turns.any():
        whole = 2.0 * _to(np.full(m.shape, np.inf), m, sines, twice)
        found = found + np.where(turns == 0.0, 0.0, turns * whole)
    return found


def _to(end: np.ndarray, m: np.ndarray, sines: int, twice: int) -> np.ndarray:
    points, weights = np.polynomial.legendre.leggauss(NODES)
    last = np.minimum(end, MOST)[..., None]
    limits = np.minimum(_intervals(), last)
    middle, half = (limits[..., 1:] + limits[..., :-1]) / 2, np.diff(limits) / 2
    u = middle[..., None] + half[..., None] * points
    with np.errstate(all="ignore"):
        sech, square = 1.0 / np.cosh(u), np.tanh(u) ** 2
        root = sech * sech + (1.0 - m[..., None, None]) * square  # 1 - m sin(t)**2
        values = square**sines * sech * root ** (-0.5 * twice)
        found = ((values * weights).sum(-1) * half).sum(-1)
    return np.where(np.isnan(end) | np.isnan(m), np.nan, found)


elliptic_moment = eager(
    "elliptic_moment", "phi m", domain=(0.1, 0.9),
    numpy=lambda phi, m, sines, twice: _moments(phi, m, sines, twice),
    vjp={
        "phi": lambda g, phi, m, sines, twice: g * _integrand(phi, m, sines, twice),
        "m": lambda g, phi, m, sines, twice: (
            g * (0.5 * twice) * elliptic_moment(phi, m, sines=sines + 1, twice=twice + 2)
        ),
    },
    doc="the integral of sin(t)**(2 sines) (1 - m sin(t)**2)**(-twice / 2) from 0 to phi (DLMF 19.2)",
)  # fmt: skip


def _integrand(phi: Array, m: Array, sines: int, twice: int) -> Array:
    sine = sin(phi)
    square = sine * sine
    found: Array = (1.0 - m * square) ** (-0.5 * twice)
    return found * square**sines if sines else found


def _incomplete(name: str, twice: int, doc: str) -> Operator:
    return eager(
        name, "phi m", numpy=name, scipy=name, domain=(0.1, 0.9), doc=doc,
        vjp={
            "phi": lambda g, phi, m: g * _integrand(phi, m, 0, twice),
            "m": lambda g, phi, m: g * (0.5 * twice) * elliptic_moment(phi, m, sines=1, twice=twice + 2),
        },
    )  # fmt: skip


ellipkinc = _incomplete("ellipkinc", 1, "the incomplete elliptic integral of the first kind (DLMF 19.2.4)")
ellipeinc = _incomplete("ellipeinc", -1, "the incomplete elliptic integral of the second kind (DLMF 19.2.5)")

# --- Jacobi's functions -------------------------------------------------------------------------------------


def _slope_of_amplitude(u: Array, m: Array) -> Array:
    """The derivative of the amplitude by m, at which the integral of the first kind stays u."""
    return -0.5 * jacobi_dn(u, m) * elliptic_moment(jacobi_am(u, m), m, sines=1, twice=3)


def _jacobi(
    name: str, place: int, by_u: Callable[[Array, Array], Array], by_m: Callable[[Array, Array], Array]
) -> Operator:
    return eager(
        f"jacobi_{name}", "u m", numpy=lambda u, m: scipy_special().ellipj(u, m)[place], domain=(0.1, 0.9),
        vjp={"u": lambda g, u, m: g * by_u(u, m), "m": lambda g, u, m: g * by_m(u, m)},
        doc=f"Jacobi's elliptic function {name} of the parameter m (DLMF 22.13, 22.16)",
    )  # fmt: skip


jacobi_sn = _jacobi(
    "sn", 0, lambda u, m: jacobi_cn(u, m) * jacobi_dn(u, m),
    lambda u, m: jacobi_cn(u, m) * _slope_of_amplitude(u, m),
)  # fmt: skip
jacobi_cn = _jacobi(
    "cn", 1, lambda u, m: -jacobi_sn(u, m) * jacobi_dn(u, m),
    lambda u, m: -jacobi_sn(u, m) * _slope_of_amplitude(u, m),
)  # fmt: skip
jacobi_dn = _jacobi(
    "dn", 2, lambda u, m: -m * jacobi_sn(u, m) * jacobi_cn(u, m),
    lambda u, m: (
        -jacobi_sn(u, m)
        * (0.5 * jacobi_sn(u, m) + m * jacobi_cn(u, m) * _slope_of_amplitude(u, m))
        / jacobi_dn(u, m)
    ),
)  # fmt: skip
jacobi_am = _jacobi("am", 3, lambda u, m: jacobi_dn(u, m), _slope_of_amplitude)
