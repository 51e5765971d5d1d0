"""SciPy's functions on Tensors, with its names and options: `scipy.special.logsumexp`, `scipy.fft.rfft`.

Its ufuncs, `scipy.special.erf` and the like, come by way of NumPy: see `numpy_api/ufuncs`. What is here does
not ask its arguments what they are, so code is given these functions in place of SciPy's (`stand_ins`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, UnsupportedError
from ...tracer.ops.special import zeta as hurwitz
from ...tracer.ops.special import zetac
from ...tracer.ops.transcendents import lambert_w_imag, lambert_w_real
from ..functions import PUBLIC, declared
from ..functions.common import INTEGERS, as_dtype, fail, filled
from ..numpy_api.fft import OF_SCIPY
from ..numpy_api.protocols import FUNCTIONS, OF_OTHERS, UFUNCS
from ..numpy_api.values import as_array, averaged, floats, known, promoted
from ..tape.apply import apply
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .convolutions import CONVOLUTIONS
from .descriptive import DESCRIPTIVE
from .filters import FILTERS
from .interpolation import FUNCTIONS as INTERPOLATION
from .riccati import OF_CONTROL
from .scipy_distances import DISTANCES, OF_SPATIAL
from .scipy_linalg import OF_MATRICES

FLOAT64 = np.dtype("float64")
where = PUBLIC["where"]

# --- scipy.special ------------------------------------------------------------------------------------------


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b * exp(a))), without overflow; nan where the sum is negative, unless its sign is asked for."""
    x = averaged(a)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if b is None and not return_sign:
        return PUBLIC["logsumexp"](x, axes, keepdims) if x.ndim else x
    x, factor = promoted([x, 1.0 if b is None else b])
    top = PUBLIC["amax"](x._detached(), axes, True)
    top = PUBLIC["where"](PUBLIC["isfinite"](top), top, 0.0)
    total = declared.sum(factor * PUBLIC["exp"](x - top), axes, True)
    sign, size = PUBLIC["sgn"](total), PUBLIC["abs"](total) if return_sign else total
    found = [PUBLIC["log"](size) + top, sign]
    found = found if keepdims else [declared.sum(one, axes) for one in found]
    return tuple(found) if return_sign else found[0]


def zeta(x: Any, q: Any = None, out: Any = None) -> Tensor:
    """Hurwitz' zeta function of x and q, or Riemann's; below 0 by its reflection (DLMF 25.4.1)."""
    if out is not None:
        fail(UnsupportedError, "scipy.special.zeta: out= takes no Tensors. Write out[...] = zeta(...).")
    if q is not None:
        return apply(hurwitz, *floats(x, q))
    (value,) = floats(x)
    is_low = value < 0
    of_high = 1.0 + apply(zetac, where(is_low, 2.0, value))
    low = where(is_low, value, -2.0)
    turn = PUBLIC["remainder"](low, 4.0)
    half = where(turn > 2, turn - 2.0, turn)
    sine = where(turn > 2, -1.0, 1.0) * PUBLIC["sin"](0.5 * math.pi * where(half > 1, 2.0 - half, half))
    factor = PUBLIC["exp"](PUBLIC["lgamma"](1.0 - low) + (low - 1.0) * math.log(2.0 * math.pi))
    return where(is_low, 2.0 * factor * sine * (1.0 + apply(zetac, 1.0 - low)), of_high)


def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Tensor:
    """Lambert's W, of complex numbers; `tol` is left to SciPy, whose values are exact."""
    (branch,) = known("lambertw", k)
    if branch.ndim or branch != int(branch):
        fail(UnsupportedError, f"scipy.special.lambertw: k must be one integer on a Tensor; found {k!r}.")
    value = averaged(z)
    re, im = (value.real, value.imag) if value.is_complex() else (value, filled((), 0.0, FLOAT64))
    re, im = as_dtype(re, FLOAT64), as_dtype(im, FLOAT64)  # as SciPy, of any precision
    parts = [apply(one, re, im, branch=int(branch)) for one in (lambert_w_real, lambert_w_imag)]
    return PUBLIC["complex"](*parts)


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Tensor:
    """The number of ways to choose k of N, between integers by gamma functions; 0 where there is none."""
    _require_inexact("comb", exact)
    count, chosen = floats(N, k)
    if repetition:
        is_one = PUBLIC["eq"](chosen, 0) & (count >= 0)
        return PUBLIC["where"](is_one, 1.0, OF_OTHERS["binom"](count + chosen - 1.0, chosen))
    exists = _within(chosen, count)
    return PUBLIC["where"](exists, OF_OTHERS["binom"](count, PUBLIC["where"](exists, chosen, 0.0)), 0.0)


def perm(N: Any, k: Any, exact: bool = False) -> Tensor:
    """The number of sequences of k of N."""
    _require_inexact("perm", exact)
    count, chosen = floats(N, k)
    exists = _within(chosen, count)
    first = PUBLIC["where"](exists, count - chosen + 1.0, 1.0)
    return PUBLIC["where"](exists, OF_OTHERS["poch"](first, chosen), 0.0)


def _within(chosen: Any, count: Any) -> Any:
    return (chosen <= count) & (count >= 0) & (chosen >= 0)


def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Tensor:
    """gamma(n + 1); 0 where n is negative."""
    _require_inexact("factorial", exact)
    if extend != "zero":
        fail(UnsupportedError, f"scipy.special.factorial: extend={extend!r} is not supported on a Tensor.")
    (value,) = floats(n)
    return PUBLIC["where"](value < 0, 0.0, OF_OTHERS["gamma"](PUBLIC["where"](value < 0, 0.0, value) + 1.0))


def polygamma(n: Any, x: Any) -> Tensor:
    """The n-th derivative of psi; of several n that of each."""
    (orders,) = known("polygamma", n)
    if orders.dtype.kind not in "iuf" or not np.all((orders >= 0) & (orders == np.floor(orders))):
        fail(ArgumentError, f"scipy.special.polygamma: n must be integers from 0 on; found {n!r}.")
    value = averaged(x)
    if not orders.ndim:
        return as_array(PUBLIC["polygamma"](int(orders), value))
    found = sum(where(orders == one, PUBLIC["polygamma"](int(one), value), 0.0) for one in np.unique(orders))
    return as_array(found)


def _require_inexact(function: str, exact: bool) -> None:
    if exact:
        fail(
            UnsupportedError,
            f"scipy.special.{function}: exact=True counts with Python's integers, and a Tensor holds none.",
        )


def _spherical(name: str, of_half: str, sign: float) -> Callable[..., Tensor]:
    """A spherical Bessel function of an order n, as one of order n + 1/2 (DLMF 10.47), near 0 by its series.

    Args:
        sign: of the function of order n + 1 in the derivative (DLMF 10.51), and of x**2 in the series
            (DLMF 10.53); that of the second kind has none.
    """

    def function(n: Any, z: Any, derivative: bool = False) -> Tensor:
        (order,) = known(name, n)
        if order.ndim or order != int(order) or order < 0:
            fail(
                UnsupportedError,
                f"scipy.special.{name}: the order must be one integer from 0 on, on a Tensor; found {n!r}.",
            )
        x = averaged(z)
        if x.is_complex():
            fail(UnsupportedError, f"scipy.special.{name}: z must be real, on a Tensor.")
        return _of_order(x, int(order), derivative)

    def _of_order(x: Tensor, order: int, derivative: bool) -> Tensor:
        if derivative:
            return order / x * _of_order(x, order, False) + sign * _of_order(x, order + 1, False)
        if of_half == "yv":
            found = _by_half(PUBLIC["abs"](x), order)
            return found if order % 2 else PUBLIC["sgn"](x) * found
        is_near = PUBLIC["abs"](x) < 1.0
        far = PUBLIC["where"](is_near, 1.0, x)
        found = _by_half(PUBLIC["abs"](far), order)
        found = PUBLIC["sgn"](far) * found if order % 2 else found
        return PUBLIC["where"](is_near, _series(PUBLIC["where"](is_near, x, 0.0), order), found)

    def _by_half(size: Tensor, order: int) -> Tensor:
        return PUBLIC["sqrt"](0.5 * math.pi / size) * UFUNCS[of_half](*floats(order + 0.5, size))

    def _series(x: Tensor, order: int) -> Tensor:
        total: Any = 1.0
        for place in range(SERIES_TERMS, 0, -1):
            total = 1.0 + sign * 0.5 * x * x / (place * (2.0 * order + 2.0 * place + 1.0)) * total
        return x**order * total / math.prod(range(1, 2 * order + 2, 2))

    return function


SERIES_TERMS = 10
"""Of spherical Bessel functions of numbers below 1: what follows is rounded away."""


def softmax(x: Any, axis: Any = None) -> Tensor:
    """exp(x) / sum(exp(x))."""
    values = averaged(x)
    if isinstance(axis, INTEGERS):
        return PUBLIC["softmax"](values, axis)
    return PUBLIC["exp"](values - logsumexp(values, axis, keepdims=True))


def log_softmax(x: Any, axis: Any = None) -> Tensor:
    """x - logsumexp(x)."""
    values = averaged(x)
    if isinstance(axis, INTEGERS):
        return PUBLIC["log_softmax"](values, axis)
    return values - logsumexp(values, axis, keepdims=True)


# --- all ----------------------------------------------------------------------------------------------------

SCIPY: dict[str, dict[str, Callable[..., Any]]] = {
    "scipy.special": {
        "logsumexp": logsumexp, "softmax": softmax, "log_softmax": log_softmax,
        "polygamma": polygamma,
        "multigammaln": lambda a, d: PUBLIC["mvlgamma"](averaged(a), d),
        "zeta": zeta, "lambertw": lambertw, "comb": comb, "perm": perm, "factorial": factorial,
        "spherical_jn": _spherical("spherical_jn", "jv", -1.0),
        "spherical_yn": _spherical("spherical_yn", "yv", -1.0),
        "spherical_in": _spherical("spherical_in", "iv", 1.0),
    },
    "scipy.linalg": OF_MATRICES | OF_CONTROL,
    "scipy.fft": OF_SCIPY,
    "scipy.interpolate": INTERPOLATION,
    "scipy.stats": DESCRIPTIVE,
    "scipy.spatial.distance": DISTANCES,
    "scipy.spatial": OF_SPATIAL,
    "scipy.signal": {**CONVOLUTIONS, **FILTERS},
    "scipy.integrate": {
        "trapezoid": lambda y, x=None, dx=1.0, axis=-1: FUNCTIONS[np.trapezoid](tensor_of(y), x, dx, axis),
    },
}  # fmt: skip
"""The modules, and by name what their functions do on Tensors."""

SOLVERS: dict[str, dict[str, Callable[..., Any]]] = {"scipy.optimize": {}, "scipy.integrate": {}}
"""The same of functions that call a function of the user's, through which Tensors reach them: `solvers/`
enters its own. Each takes SciPy's function first."""
