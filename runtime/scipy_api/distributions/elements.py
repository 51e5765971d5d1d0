"""The functions of elements that densities are written with."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ....tracer.operator import OPERATORS
from ....tracer.ops import incomplete
from ....tracer.trace import innermost
from ...functions import PUBLIC
from ...functions.elements.arithmetic import product_with_log
from ...functions.elements.special import product_with_log1p
from ...numpy_api.protocols import OF_OTHERS, UFUNCS
from ...numpy_api.values import floats
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..special_ufuncs import expm1_over  # of what adds to OF_OTHERS

Function = Callable[..., Any]
SPECIAL = UFUNCS | OF_OTHERS

where, exp, log, log1p, expm1, sqrt, abs_ = (
    PUBLIC[name] for name in ("where", "exp", "log", "log1p", "expm1", "sqrt", "abs")
)
sin, cos, tan, tanh, atan, asin, asinh, sinh, atanh = (
    PUBLIC[name] for name in ("sin", "cos", "tan", "tanh", "atan", "asin", "asinh", "sinh", "atanh")
)
atan2, floor, isfinite, isinf, logaddexp = (
    PUBLIC[name] for name in ("atan2", "floor", "isfinite", "isinf", "logaddexp")
)
digamma = PUBLIC["digamma"]
lgamma, sigmoid, logit, log_sigmoid, erf, erfc = (
    PUBLIC[name] for name in ("lgamma", "sigmoid", "logit", "logsigmoid", "erf", "erfc")
)
ndtr, log_ndtr, ndtri, betaln, i0e, erfcx = (
    SPECIAL[name] for name in ("ndtr", "log_ndtr", "ndtri", "betaln", "i0e", "erfcx")
)
xlogy, xlog1py = product_with_log, product_with_log1p
gammainc, gammaincc, gammaincinv, gammainccinv = (
    SPECIAL[name] for name in ("gammainc", "gammaincc", "gammaincinv", "gammainccinv")
)
betainc, betaincc, betaincinv, betainccinv = (
    SPECIAL[name] for name in ("betainc", "betaincc", "betaincinv", "betainccinv")
)
stdtr, stdtrit, erfcinv, erfinv, k1e, kve = (
    SPECIAL[name] for name in ("stdtr", "stdtrit", "erfcinv", "erfinv", "k1e", "kve")
)

(
    rice_cdf, vonmises_cdf, skewnorm_cdf, skewnorm_sf, betabinom_cdf, hypergeom_cdf, hypergeom_sf,
    logser_cdf, logser_sf,
) = (
    functools.partial(apply, OPERATORS[name])
    for name in (
        "rice_cdf", "vonmises_cdf", "skewnorm_cdf", "skewnorm_sf", "betabinom_cdf", "hypergeom_cdf",
        "hypergeom_sf", "logser_cdf", "logser_sf",
    )
)  # fmt: skip


def _of_floats(name: str) -> Function:
    return lambda *given: apply(OPERATORS[name], *floats(*given))


log_gammainc, log_gammaincc, log_betainc, log_betaincc = map(
    _of_floats, ("log_gammainc", "log_gammaincc", "log_betainc", "log_betaincc")
)
log_ncx2_density, ncx2_cdf, ncx2_sf = map(_of_floats, ("ncx2_logpdf", "ncx2_cdf", "ncx2_sf"))
log_ncf_density, ncf_cdf, ncf_sf = map(_of_floats, ("ncf_logpdf", "ncf_cdf", "ncf_sf"))
log_nct_density, nct_cdf, nct_sf = map(_of_floats, ("nct_logpdf", "nct_cdf", "nct_sf"))


hurwitz = _of_floats("zeta")


def is_everywhere(condition: Any) -> bool:
    """Whether it is known to hold for all elements, as outside of a trace."""
    return innermost() is None and isinstance(condition, Tensor) and bool(condition._value.all())


def log_gamma_density(a: Any, x: Any) -> Any:
    return incomplete.log_gamma_density(*floats(a, x))


LOG_2 = math.log(2.0)
LOG_2_PI = math.log(2.0 * math.pi)


def log_of_beta_ratio(ratio: Any, a: Any, b: Any) -> Any:
    """The logarithm of `of_beta_ratio`."""
    is_small = ratio < 1.0
    share, rest = where(is_small, ratio, 0.5), 1.0 / where(is_small, 1.0, ratio)
    return where(is_small, log_betainc(a, b, share / (1.0 + share)), log_betaincc(b, a, rest / (1.0 + rest)))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), also where PyTorch's is x."""
    return -log_sigmoid(-x)


def log_normal_density(z: Any) -> Any:
    return -0.5 * z * z - 0.5 * LOG_2_PI


def log_complement(logarithm: Any) -> Any:
    """log(1 - exp(logarithm)), exact where that is small and where it is almost 1 (Maechler, 2012)."""
    is_near = logarithm > -LOG_2
    near, far = where(is_near, logarithm, -1.0), where(is_near, -1.0, logarithm)
    return where(is_near, log(-expm1(near)), log1p(-exp(far)))


def log_less_than(log_rate: Any) -> Any:
    """log(1 - exp(-t)) for t = exp(log_rate), which may be too small or too large for a number."""
    is_small = log_rate < 0.0
    small = where(is_small, log_rate, 0.0)
    large = where(is_small, 0.0, log_rate)
    return where(is_small, small + log(expm1_over(-exp(small))), log1p(-exp(-exp(large))))


def log_share_of_rate(log_rate: Any) -> Any:
    """log((1 - exp(-t)) / t) for t = exp(log_rate), which may be 0 or too large for a number."""
    is_small = log_rate < 0.0
    small, large = where(is_small, log_rate, 0.0), where(is_small, 0.0, log_rate)
    return where(is_small, log(expm1_over(-exp(small))), log1p(-exp(-exp(large))) - large)


def log_difference(high: Any, low: Any) -> Any:
    """log(exp(high) - exp(low))."""
    return high + log_complement(low - high)


def log_normal_mass(low: Any, high: Any) -> Any:
    """The logarithm of what the normal distribution has between two places, in either tail."""
    is_right = low > 0.0
    near, far = where(is_right, -low, high), where(is_right, -high, low)
    is_open = isinf(far)  # where nothing depends on it
    width = near - where(is_open, near - 1.0, far)
    is_narrow = width * (1.0 + abs_(near)) < 1e-4
    largest, beside = log_ndtr(near), where(is_open | is_narrow, near - 1.0, far)
    middle = near - 0.5 * where(is_narrow, width, 0.0)  # of both the density there, with an error of width**2
    bend = (middle * middle - 1.0) * where(is_narrow, width, 0.0) ** 2 / 24.0
    narrow = log_normal_density(middle) + log(where(is_narrow, width, 1.0)) + log1p(bend)
    return where(is_narrow, narrow, where(is_open, largest, log_difference(largest, log_ndtr(beside))))
