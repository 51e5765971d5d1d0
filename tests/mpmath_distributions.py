"""The declared distributions in arithmetic of many digits: what their functions are in far tails.

Their modules are run once more with mpmath's functions in the place of ours, and with plain definitions in
the place of what is written so that nothing cancels. So each formula is there a second time, and only our
rounding differs. That the formulas are right, tests show against SciPy.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import mpmath as mp

from pullback.runtime.scipy_api.distributions import continuous, extremes, formulas
from pullback.runtime.scipy_api.distributions.declaration import (
    POSITIVE,
    UNIT,
    VANISHES,
    Declaration,
    any_shapes,
)

Number = Any


def _log(x: Number) -> Number:
    x = mp.mpf(x)
    return mp.log(x) if x > 0 else mp.ninf if x == 0 else mp.nan


def _normal(x: Number) -> Number:
    return mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2


def _student(df: Number, t: Number) -> Number:
    tail = mp.betainc(mp.mpf(df) / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def _log_beta(a: Number, b: Number) -> Number:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(mp.mpf(a) + b)


def _times_log(factor: Number, x: Number) -> Number:
    return mp.mpf(0) if factor == 0 else factor * _log(x)


def _of_beta(low: int, high: int) -> Callable[..., Number]:
    return lambda a, b, x: mp.betainc(a, b, x if low else 0, 1 if high else x, regularized=True)


_beta_below, _beta_above = _of_beta(0, 0), _of_beta(1, 1)
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(mp, name) for name in (
        "exp", "expm1", "sqrt", "sin", "tan", "tanh", "atan", "asin", "asinh", "sinh", "atanh", "atan2",
        "erf", "erfc", "digamma", "floor",
    )},
    "where": lambda holds, a, b: a if holds else b,
    "isfinite": mp.isfinite, "is_everywhere": bool, "Function": Callable,
    "log": _log, "log1p": lambda x: _log(1 + mp.mpf(x)), "abs_": abs, "lgamma": mp.loggamma,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "log_sigmoid": lambda x: -mp.log1p(mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)), "logit": lambda p: _log(p / (1 - mp.mpf(p))),
    "logaddexp": lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), "xlogy": _times_log,
    "xlog1py": lambda factor, x: _times_log(factor, 1 + mp.mpf(x)), "betaln": _log_beta,
    "ndtr": _normal, "log_ndtr": lambda x: _log(_normal(x)), "stdtr": _student,
    "i0e": lambda x: mp.exp(-x) * mp.besseli(0, x),
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    "betainc": _beta_below, "betaincc": _beta_above,
    **dict.fromkeys(("log_gammainc", "log_gammaincc", "log_betainc", "log_betaincc", "log_of_beta_ratio")),
    "of_beta_ratio": lambda ratio, a, b: _beta_below(a, b, ratio / (1 + mp.mpf(ratio))),
    "log1p_over": lambda x: mp.log1p(x) / x if x else mp.mpf(1),
    "expm1_over": lambda x: mp.expm1(x) / x if x else mp.mpf(1),
    "log_normal_density": lambda z: -z * z / 2 - mp.log(2 * mp.pi) / 2,
    "log_normal_mass": lambda low, high: _log(_normal(high) - _normal(low)),
    "log_difference": lambda high, low: _log(mp.exp(high) - mp.exp(low)),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "log_less_than": lambda log_rate: _log(-mp.expm1(-mp.exp(log_rate))),
    "rice_cdf": lambda z, b: mp.quad(
        lambda t: t * mp.exp(-(t * t + b * b) / 2) * mp.besseli(0, t * b), [0, z]
    ),
    "skewnorm_cdf": lambda z, a: mp.quad(lambda t: 2 * mp.npdf(t) * _normal(a * t), [mp.ninf, z]),
    "skewnorm_sf": lambda z, a: mp.quad(lambda t: 2 * mp.npdf(t) * _normal(a * t), [z, z + 1, mp.inf]),
    "log_share_of_rate": lambda log_rate: _log(-mp.expm1(-mp.exp(log_rate))) - log_rate,
    "LOG_2": mp.log(2), "LOG_2_PI": mp.log(2 * mp.pi), "Declaration": Declaration, "VANISHES": VANISHES,
    "POSITIVE": POSITIVE, "UNIT": UNIT, "any_shapes": any_shapes,
}  # fmt: skip
UNUSED = dict.fromkeys((
    "ndtri", "betaincinv", "betainccinv", "gammaincinv", "gammainccinv", "erfcinv", "stdtrit", "vonmises_cdf",
    "erfinv", "log_complement",
))  # fmt: skip
"""What no function of these here asks for."""


def declarations() -> dict[str, Declaration]:
    own = {"formulas": SimpleNamespace(**_run_again(formulas, {}))}
    found: dict[str, Declaration] = _run_again(continuous, own)["CONTINUOUS"]
    return found | _run_again(extremes, own)["EXTREMES"]


def _run_again(module: ModuleType, given: dict[str, Any]) -> dict[str, Any]:
    text = re.sub(r"from \.[\w.]* import (\([^)]*\)|.*)", "", inspect.getsource(module))
    names: dict[str, Any] = {**FUNCTIONS, **UNUSED, **given}
    exec(compile(text, module.__file__ or "", "exec", dont_inherit=True), names)
    return names


def _cumulative(one: Declaration, z: Number, *shapes: Number) -> Number:
    if one.cumulative is not None:
        return one.cumulative(z, *shapes)
    if one.log_cumulative is not None:
        return mp.exp(one.log_cumulative(z, *shapes))
    if one.log_survival is not None:
        return -mp.expm1(one.log_survival(z, *shapes))
    return 1 - _survival(one, z, *shapes)


def _survival(one: Declaration, z: Number, *shapes: Number) -> Number:
    if one.survival is not None:
        return one.survival(z, *shapes)
    if one.log_survival is not None:
        return mp.exp(one.log_survival(z, *shapes))
    return _cumulative(one, -z, *shapes) if one.symmetric else 1 - _cumulative(one, z, *shapes)


METHODS: dict[str, Callable[..., Number]] = {
    "logpdf": lambda one, z, *shapes: one.log_density(z, *shapes),
    "pdf": lambda one, z, *shapes: mp.exp(one.log_density(z, *shapes)),
    "cdf": _cumulative,
    "sf": _survival,
    "logcdf": lambda one, z, *shapes: _log(_cumulative(one, z, *shapes)),
    "logsf": lambda one, z, *shapes: _log(_survival(one, z, *shapes)),
}
