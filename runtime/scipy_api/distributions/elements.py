"""The functions of elements that densities are written with."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ....tracer.operator import OPERATORS
from ...functions import PUBLIC
from ...numpy_api.protocols import OF_OTHERS, UFUNCS
from ...tape.apply import apply
from .. import special_ufuncs as special_ufuncs  # which adds to OF_OTHERS

Function = Callable[..., Any]
SPECIAL = UFUNCS | OF_OTHERS

where, exp, log, log1p, expm1, sqrt, abs_ = (
    PUBLIC[name] for name in ("where", "exp", "log", "log1p", "expm1", "sqrt", "abs")
)
sin, tan, tanh, atan, asin, asinh, sinh, atanh = (
    PUBLIC[name] for name in ("sin", "tan", "tanh", "atan", "asin", "asinh", "sinh", "atanh")
)
atan2, floor, isfinite, logaddexp = (PUBLIC[name] for name in ("atan2", "floor", "isfinite", "logaddexp"))
digamma = PUBLIC["digamma"]
lgamma, sigmoid, logit, log_sigmoid, softplus, erf, erfc, xlogy = (
    PUBLIC[name] for name in ("lgamma", "sigmoid", "logit", "logsigmoid", "softplus", "erf", "erfc", "xlogy")
)
ndtr, log_ndtr, ndtri, xlog1py, betaln, i0e = (
    SPECIAL[name] for name in ("ndtr", "log_ndtr", "ndtri", "xlog1py", "betaln", "i0e")
)
gammainc, gammaincc, gammaincinv, gammainccinv = (
    SPECIAL[name] for name in ("gammainc", "gammaincc", "gammaincinv", "gammainccinv")
)
betainc, betaincc, betaincinv, betainccinv = (
    SPECIAL[name] for name in ("betainc", "betaincc", "betaincinv", "betainccinv")
)
stdtr, stdtrit, owens_t, erfcinv = (SPECIAL[name] for name in ("stdtr", "stdtrit", "owens_t", "erfcinv"))

rice_cdf, vonmises_cdf, betabinom_cdf, hypergeom_cdf, hypergeom_sf, logser_cdf, logser_sf = (
    functools.partial(apply, OPERATORS[name])
    for name in (
        "rice_cdf", "vonmises_cdf", "betabinom_cdf", "hypergeom_cdf", "hypergeom_sf", "logser_cdf",
        "logser_sf",
    )
)  # fmt: skip

LOG_2 = math.log(2.0)
LOG_2_PI = math.log(2.0 * math.pi)


def log_normal_density(z: Any) -> Any:
    return -0.5 * z * z - 0.5 * LOG_2_PI


def log_difference(high: Any, low: Any) -> Any:
    """log(exp(high) - exp(low))."""
    return high + log(-expm1(low - high))


def log_normal_mass(low: Any, high: Any) -> Any:
    """The logarithm of what the normal distribution has between two places, in either tail."""
    is_right = low > 0.0
    near, far = where(is_right, -low, high), where(is_right, -high, low)
    return log_difference(log_ndtr(near), log_ndtr(far))
