"""SciPy's special functions that are made of other functions: `scipy.special.betaln`, `eval_legendre`.

They are ufuncs; operators with SciPy's names (`tracer/ops`) need nothing here. Formulas: NIST Digital
Library of Mathematical Functions (dlmf.nist.gov), by section beside each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...tracer.errors import UnsupportedError
from ...tracer.operator import Operator
from ...tracer.ops import bessel, elliptic, noncentral, transcendents
from ...tracer.ops.error_functions import COMPLEX
from ...tracer.ops.gamma_ratios import log_beta, log_gamma_quotient
from ..functions import PUBLIC
from ..functions.common import fail
from ..functions.elements.arithmetic import product_with_log
from ..functions.elements.special import entr, xlog1py
from ..numpy_api.protocols import OF_OTHERS, UFUNCS, unknown
from ..numpy_api.values import averaged, floats, known
from ..tape.apply import apply
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor

Function = Callable[..., Any]
where, exp, log, log1p, expm1, lgamma, xlogy = (
    PUBLIC[name] for name in ("where", "exp", "log", "log1p", "expm1", "lgamma", "xlogy")
)
floor = PUBLIC["floor"]
gammainc, gammaincc, betainc, betaincc = (
    UFUNCS[name] for name in ("gammainc", "gammaincc", "betainc", "betaincc")
)
gammaincinv, gammainccinv, betaincinv, jv, yv = (
    UFUNCS[name] for name in ("gammaincinv", "gammainccinv", "betaincinv", "jv", "yv")
)
ndtri, ellipkm1 = UFUNCS["ndtri"], UFUNCS["ellipkm1"]
TERMS = 12
NEAR_ZERO = 0.05
"""Where so many terms of both series below are exact."""


# --- quotients with a limit ---------------------------------------------------------------------------------


def log1p_over(x: Any) -> Any:
    """log(1 + x) / x, which is 1 at 0, with derivatives there."""
    return _over(x, log1p, [(-1.0) ** term / (term + 1) for term in range(TERMS)])


def expm1_over(x: Any) -> Any:
    """(exp(x) - 1) / x, which is 1 at 0, with derivatives there."""
    return _over(x, expm1, [1.0 / math.factorial(term + 1) for term in range(TERMS)])


def _over(x: Any, function: Function, coefficients: list[float]) -> Any:
    """function(x) / x, near 0 by a series."""
    is_near = PUBLIC["abs"](x) < NEAR_ZERO
    near, far = where(is_near, x, 0.0), where(is_near, 1.0, x)
    total: Any = coefficients[-1]
    for one in reversed(coefficients[:-1]):
        total = total * near + one
    return where(is_near, total, function(far) / far)


def _boxcox(x: Any, power: Any) -> Tensor:
    """(x**power - 1) / power, and log x for a power of 0."""
    x, power = floats(x, power)
    return _powered(log(x), power)


def _boxcox1p(x: Any, power: Any) -> Tensor:
    x, power = floats(x, power)
    return _powered(log1p(x), power)


def _powered(logarithm: Any, power: Any) -> Any:
    """(exp(power * logarithm) - 1) / power, the logarithm for a power of 0."""
    is_finite, is_zero = PUBLIC["isfinite"](logarithm), PUBLIC["eq"](power, 0)
    finite, other = where(is_finite, logarithm, 0.0), where(is_zero, 1.0, power)
    is_near = PUBLIC["abs"](power * finite) < NEAR_ZERO
    near = finite * expm1_over(where(is_near, power * finite, 0.0))
    far = (exp(where(is_near, 0.0, other * finite)) - 1.0) / other  # whose slope keeps its digits
    found = where(is_near, near, far)
    is_bounded = where(power > 0, logarithm < 0, logarithm > 0) & ~is_zero
    ends = where(is_bounded, -1.0 / other, where(PUBLIC["isfinite"](power), logarithm, math.nan))
    return where(is_finite, found, ends)


def _log_of_inverse(y: Any, power: Any) -> Tensor:
    """log(1 + power * y) / power, and y for a power of 0."""
    y, power = floats(y, power)
    return y * log1p_over(power * y)


# --- entropies and losses -----------------------------------------------------------------------------------


def _entr(x: Any) -> Tensor:
    """-x log(x), and -inf where x is negative."""
    return entr(averaged(x))


def _rel_entr(x: Any, y: Any) -> Tensor:
    """x log(x / y), infinite where there is no such share; of neighbours by what they differ by."""
    p, q = floats(x, y)
    is_near = PUBLIC["logical_and"](p > 0.5 * q, p < 2.0 * q) & PUBLIC["isfinite"](q)
    near, beside = where(is_near, p, 1.0), where(is_near, q, 1.0)
    far = where(PUBLIC["logical_or"](p < 0, q < 0), math.inf, product_with_log(p, p) - product_with_log(p, q))
    return where(is_near, near * log1p((near - beside) / beside), far)


def _huber(delta: Any, x: Any) -> Tensor:
    delta, x = floats(delta, x)
    size = PUBLIC["abs"](x)
    found = where(size <= delta, 0.5 * x * x, delta * (size - 0.5 * delta))
    return where(delta < 0, math.inf, found)


def _pseudo_huber(delta: Any, x: Any) -> Tensor:
    """delta**2 (sqrt(1 + (x / delta)**2) - 1), as a quotient in which nothing cancels."""
    delta, x = floats(delta, x)
    is_finite = PUBLIC["isfinite"](delta)
    is_zero = PUBLIC["eq"](delta, 0) | (PUBLIC["eq"](x, 0) & ~is_finite)
    is_far = PUBLIC["isinf"](x) & is_finite & ~is_zero
    size, at = where(is_zero, 1.0, delta), where(is_far, 1.0, x)
    found = where(is_far, math.inf, size * at * (at / (size + PUBLIC["hypot"](size, at))))
    found = where(is_zero, 0.0, found)
    return where(delta < 0, math.inf, found)


# --- gamma and its kin --------------------------------------------------------------------------------------


def _sign_of_gamma(value: Tensor) -> Tensor:
    """Between negative integers it alternates (DLMF 5.2)."""
    is_odd = PUBLIC["eq"](PUBLIC["remainder"](PUBLIC["floor"](value), 2), 1)
    return where(is_odd & (value < 0), -1.0, 1.0)


def _is_pole(x: Any) -> Any:
    """Of the gamma function."""
    return (x <= 0) & PUBLIC["eq"](floor(x), x)


def _gamma(x: Any) -> Tensor:
    (value,) = floats(x)
    return where((value < 0) & _is_pole(value), math.nan, _sign_of_gamma(value) * exp(lgamma(value)))


def _loggamma(x: Any) -> Tensor:
    """The logarithm of a negative number is none."""
    (value,) = floats(x)
    return where(value < 0, math.nan, lgamma(value))


def _betaln(a: Any, b: Any) -> Tensor:
    return log_beta(*floats(a, b))


def _beta(a: Any, b: Any) -> Tensor:
    a, b = floats(a, b)
    return _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b) * exp(_betaln(a, b))


def _poch(z: Any, m: Any) -> Tensor:
    """gamma(z + m) / gamma(z), Pochhammer's symbol (DLMF 5.2.5); 0 where only the second is infinite."""
    z, m = floats(z, m)
    is_zero, last = _is_pole(z) & ~_is_pole(z + m), z + m
    base, step = where(is_zero, 1.0, z), where(is_zero, 1.0, m)
    found = _sign_of_gamma(base + step) * _sign_of_gamma(base) * exp(log_gamma_quotient(base, step))
    return where(is_zero, _gamma(where(is_zero, last, 1.0)) * UFUNCS["rgamma"](where(is_zero, z, 1.0)), found)


def _agm(a: Any, b: Any) -> Tensor:
    """The mean of Gauss, by an elliptic integral (DLMF 19.8.5); of numbers of two signs there is none."""
    a, b = floats(a, b)
    both = a + b
    is_mean = (a * b > 0) & PUBLIC["isfinite"](both)
    share = where(is_mean, 4.0 * (a / both) * (b / both), 0.5)
    found = 0.25 * math.pi * both / ellipkm1(share)
    is_infinite = (a * b > 0) & PUBLIC["isinf"](both)
    return where(is_mean, found, where(is_infinite, both, where(a * b < 0, math.nan, a * b)))


def _binom(n: Any, k: Any) -> Tensor:
    """1 / ((n + 1) beta(n - k + 1, k + 1)) (DLMF 1.2.6)."""
    n, k = floats(n, k)
    return 1.0 / ((n + 1.0) * _beta(n - k + 1.0, k + 1.0))


# --- distributions ------------------------------------------------------------------------------------------


def _ndtr(x: Any) -> Tensor:
    return 0.5 * PUBLIC["erfc"](averaged(x) * -math.sqrt(0.5))


def _offloats(function: Function) -> Function:
    return lambda *given: function(*floats(*given))


def of_beta_ratio(ratio: Any, a: Any, b: Any) -> Any:
    """The distribution function of t / (1 - t) for beta variables t, by the lesser of t and 1 - t."""
    is_small = ratio < 1.0
    share, rest = where(is_small, ratio, 0.5), 1.0 / where(is_small, 1.0, ratio)
    return where(is_small, betainc(a, b, share / (1.0 + share)), betaincc(b, a, rest / (1.0 + rest)))


def _fdtri(n: Any, m: Any, p: Any) -> Any:
    share = betaincinv(0.5 * n, 0.5 * m, p)
    return m * share / (n * (1.0 - share))


def _of_trials(function: Function, none: float, last: float, k: Any, n: Any, p: Any) -> Any:
    """A function of up to k successes in n trials; `none` for a negative k, `last` for all trials."""
    counts, trials = floor(k), PUBLIC["trunc"](n)
    is_probability, is_none = (p >= 0.0) & (p <= 1.0) & (trials == trials), counts < 0.0
    is_last = PUBLIC["eq"](counts, trials) & is_probability
    is_plain = ~(is_last | is_none)
    successes, rest = where(is_plain, counts, 0.0), where(is_plain, trials - counts, 1.0)
    found = where(is_last, last, function(successes + 1.0, rest, p))
    return where(is_none, where(is_probability, none, math.nan), found)


def _count(whole: Any, least: float) -> Any:
    return where(whole >= least, whole, math.nan)


def _ratio_of_squares(x: Any, n: Any, m: Any) -> Any:
    """Of Fisher's distribution: nan where its degrees of freedom, or the ratio, are none."""
    return where((n > 0.0) & (m > 0.0) & (x >= 0.0), x, math.nan)


DISTRIBUTIONS: dict[str, Function] = {
    "chdtr": lambda df, x: gammainc(0.5 * df, 0.5 * x),
    "chdtrc": lambda df, x: gammaincc(0.5 * df, 0.5 * x),
    "gdtr": lambda rate, shape, x: gammainc(shape, rate * x),
    "gdtrc": lambda rate, shape, x: gammaincc(shape, rate * x),
    "pdtr": lambda k, mean: gammaincc(_count(floor(k), 0.0) + 1.0, mean),
    "pdtrc": lambda k, mean: gammainc(_count(floor(k), 0.0) + 1.0, mean),
    "bdtr": lambda k, n, p: _of_trials(betaincc, math.nan, 1.0, k, n, p),
    "bdtrc": lambda k, n, p: _of_trials(betainc, 1.0, 0.0, k, n, p),
    "nbdtr": lambda k, n, p: betainc(_count(floor(n), 1.0), _count(PUBLIC["trunc"](k), 0.0) + 1.0, p),
    "nbdtrc": lambda k, n, p: betaincc(_count(floor(n), 1.0), _count(PUBLIC["trunc"](k), 0.0) + 1.0, p),
    "chndtr": lambda x, df, nc: apply(noncentral.ncx2_cdf, where(x >= 0.0, x, math.nan), df, nc),
    "ncfdtr": lambda n, m, nc, x: apply(noncentral.ncf_cdf, _ratio_of_squares(x, n, m), n, m, nc),
    "nctdtr": lambda df, nc, t: apply(noncentral.nct_cdf, t, df, nc),
    "pdtri": lambda k, p: gammainccinv(_count(PUBLIC["trunc"](k), 0.0) + 1.0, p),
    "nbdtri": lambda k, n, p: betaincinv(_count(floor(n), 1.0), _count(PUBLIC["trunc"](k), 0.0) + 1.0, p),
    "gdtria": lambda p, shape, x: gammaincinv(shape, p) / x,
    "nrdtrimn": lambda p, sd, x: x - sd * ndtri(p),
    "nrdtrisd": lambda mean, p, x: (x - mean) / ndtri(p),
    "chdtri": lambda df, p: 2.0 * gammainccinv(0.5 * df, p),
    "gdtrix": lambda rate, shape, p: gammaincinv(shape, p) / rate,
    "fdtri": _fdtri,
    "fdtr": lambda n, m, x: of_beta_ratio(n * _ratio_of_squares(x, n, m) / m, 0.5 * n, 0.5 * m),
    "fdtrc": lambda n, m, x: of_beta_ratio(m / (n * _ratio_of_squares(x, n, m)), 0.5 * m, 0.5 * n),
}
"""Distribution functions and what is above, of Cephes' names."""

# --- orthogonal polynomials ---------------------------------------------------------------------------------

Step = Callable[[int, Any, Any, Any], Any]
"""(k, x, P_k, P_(k - 1)) -> P_(k + 1)."""


def _degree(n: Any, function: str) -> int:
    """An integer that is known: it says how many steps a recurrence has."""
    (degree,) = known(function, n)
    if degree.ndim or degree != int(degree) or degree < 0:
        fail(
            UnsupportedError,
            f"scipy.special.{function}: the degree must be one integer from 0 on, found {degree.tolist()!r}.",
        )
    return int(degree)


def _recurrent(name: str, first: Function, step: Callable[..., Step]) -> Function:
    """A polynomial by its recurrence in the degree (DLMF 18.9): P_0 = 1, P_1 = first(x, *parameters)."""

    def polynomial(n: Any, *given: Any) -> Any:
        *parameters, x = floats(*given)
        degree, advance = _degree(n, name), step(*parameters)
        before, now = 0.0 * x + 1.0, first(x, *parameters)
        if not degree:
            return before
        for k in range(1, degree):
            before, now = now, advance(k, x, now, before)
        return now

    return polynomial


def _jacobi(a: Any, b: Any) -> Step:
    def step(k: int, x: Any, now: Any, before: Any) -> Any:
        total = 2.0 * k + a + b
        factor = (total + 1.0) * ((total + 2.0) * total * x + a * a - b * b)
        less = 2.0 * (k + a) * (k + b) * (total + 2.0)
        return (factor * now - less * before) / (2.0 * (k + 1.0) * (k + 1.0 + a + b) * total)

    return step


POLYNOMIALS: dict[str, Function] = {
    name: _recurrent(name, first, step)
    for name, first, step in (
        (
            "eval_legendre", lambda x: x,
            lambda: lambda k, x, now, before: ((2 * k + 1.0) * x * now - k * before) / (k + 1.0),
        ),
        ("eval_chebyt", lambda x: x, lambda: lambda k, x, now, before: 2.0 * x * now - before),
        ("eval_chebyu", lambda x: 2.0 * x, lambda: lambda k, x, now, before: 2.0 * x * now - before),
        (
            "eval_hermite", lambda x: 2.0 * x,
            lambda: lambda k, x, now, before: 2.0 * x * now - 2.0 * k * before,
        ),
        ("eval_hermitenorm", lambda x: x, lambda: lambda k, x, now, before: x * now - k * before),
        (
            "eval_laguerre", lambda x: 1.0 - x,
            lambda: lambda k, x, now, before: ((2 * k + 1.0 - x) * now - k * before) / (k + 1.0),
        ),
        (
            "eval_genlaguerre", lambda x, a: 1.0 + a - x,
            lambda a: lambda k, x, now, before: (
                (2 * k + 1.0 + a - x) * now - (k + a) * before
            ) / (k + 1.0),
        ),
        (
            "eval_gegenbauer", lambda x, a: 2.0 * a * x,
            lambda a: lambda k, x, now, before: (
                2.0 * (k + a) * x * now - (k + 2.0 * a - 1.0) * before
            ) / (k + 1.0),
        ),
        ("eval_jacobi", lambda x, a, b: 0.5 * ((a + b + 2.0) * x + a - b), _jacobi),
    )
}  # fmt: skip

SHIFTED = {
    "eval_sh_legendre": "eval_legendre", "eval_sh_chebyt": "eval_chebyt", "eval_sh_chebyu": "eval_chebyu",
}  # fmt: skip
"""Polynomials on [0, 1], and the same on [-1, 1]."""
HALVED = {"eval_chebyc": ("eval_chebyt", 2.0), "eval_chebys": ("eval_chebyu", 1.0)}
"""Those on [-2, 2], and what they are a multiple of."""


def _of_another(name: str, scale: float, shift: float, factor: float) -> Function:
    """A polynomial of scale * x + shift, times a factor."""
    polynomial = POLYNOMIALS[name]
    return lambda n, x: factor * polynomial(n, scale * averaged(x) + shift)


POLYNOMIALS |= {name: _of_another(one, 2.0, -1.0, 1.0) for name, one in SHIFTED.items()}
POLYNOMIALS |= {name: _of_another(one, 0.5, 0.0, factor) for name, (one, factor) in HALVED.items()}

# --- of whole orders ----------------------------------------------------------------------------------------


def _of_whole_order(function: Function) -> Function:
    """A function of any order under its name for whole ones: SciPy cuts off what is behind the point."""

    def call(n: Any, x: Any) -> Any:
        order, value = floats(n, x)
        return function(PUBLIC["trunc"](order), value)

    return call


# --- of degrees ---------------------------------------------------------------------------------------------

DEGREE = math.pi / 180


def _within_a_turn(x: Any, turn: float) -> Any:
    """What is left of an angle after whole turns, of which nothing is rounded."""
    return x - turn * PUBLIC["round"](x / turn)


def _from_right_angle(angle: Any) -> Any:
    """What is missing to the nearer right angle, of the same sign."""
    return where(angle > 0.0, 90.0, -90.0) - angle


def _sine_of_degrees(x: Any) -> Any:
    """Of folded angles, so that it is exact at multiples of 90."""
    angle = _within_a_turn(averaged(x), 360.0)
    is_behind = PUBLIC["abs"](angle) > 90.0
    return PUBLIC["sin"](where(is_behind, where(angle > 0.0, 180.0, -180.0) - angle, angle) * DEGREE)


def _cosine_of_degrees(x: Any) -> Any:
    angle = _within_a_turn(averaged(x), 360.0)
    other = where(angle > 0.0, 90.0 - angle, 90.0 + angle)
    is_near = PUBLIC["abs"](angle) < 45.0
    return where(is_near, PUBLIC["cos"](angle * DEGREE), PUBLIC["sin"](other * DEGREE))


def _tangent_of_degrees(x: Any) -> Any:
    """Infinite at odd multiples of 90."""
    angle = _within_a_turn(averaged(x), 180.0)
    return _quotient_of_degrees(angle, _from_right_angle(angle))


def _cotangent_of_degrees(x: Any) -> Any:
    angle = _within_a_turn(averaged(x), 180.0)
    return _quotient_of_degrees(_from_right_angle(angle), angle)


def _quotient_of_degrees(angle: Any, other: Any) -> Any:
    """The tangent of an angle, by the lesser of it and of what is missing to a right angle."""
    is_near = PUBLIC["abs"](angle) < 45.0
    near, far = where(is_near, angle, 0.0), where(is_near, 45.0, other)
    return where(is_near, PUBLIC["tan"](near * DEGREE), 1.0 / PUBLIC["tan"](far * DEGREE))


# --- of several results ------------------------------------------------------------------------------------


def _reals(name: str, *values: Any) -> list[Tensor]:
    found = floats(*values)
    if any(one.is_complex() for one in found):
        unknown(f"scipy.special.{name} of complex numbers")
    return found


def _of_several(name: str, *results: Operator) -> Function:
    """A ufunc of real numbers whose results are those of operators."""

    def call(*values: Any) -> tuple[Tensor, ...]:
        given = _reals(name, *values)
        return tuple(apply(one, *given) for one in results)

    return call


SEVERAL = {
    name: _of_several(name, *results)
    for name, results in {
        "airy": (bessel.airy_ai, bessel.airy_ai_slope, bessel.airy_bi, bessel.airy_bi_slope),
        "sici": (transcendents.sine_integral, transcendents.cosine_integral),
        "shichi": (transcendents.hyperbolic_sine_integral, transcendents.hyperbolic_cosine_integral),
        "fresnel": (transcendents.fresnel_sine, transcendents.fresnel_cosine),
        "ellipj": (elliptic.jacobi_sn, elliptic.jacobi_cn, elliptic.jacobi_dn, elliptic.jacobi_am),
    }.items()
}

# --- of complex numbers -------------------------------------------------------------------------------------


def _kelvin(x: Any) -> tuple[Tensor, ...]:
    """Both functions and their derivatives, each a complex number (DLMF 10.61)."""
    pairs = (("ber", "bei"), ("ker", "kei"), ("berp", "beip"), ("kerp", "keip"))
    return tuple(PUBLIC["complex"](*(UFUNCS[one](x) for one in pair)) for pair in pairs)


def _hankel(name: str, sense: float, is_scaled: bool) -> Function:
    """J + sense * i * Y of real numbers (DLMF 10.4.3), times exp(-sense * i * x) if that is scaled."""

    def call(v: Any, x: Any) -> Tensor:
        order, value = _reals(name, v, x)
        re, im = jv(order, value), sense * yv(order, value)
        if not is_scaled:
            return PUBLIC["complex"](re, im)
        c, s = PUBLIC["cos"](value), sense * PUBLIC["sin"](value)
        return PUBLIC["complex"](re * c + im * s, im * c - re * s)

    return call


def _of_complex(name: str, parts: tuple[Operator, Operator]) -> Function:
    """A function of complex numbers by operators of their parts; of real ones the operator of this name."""

    def call(z: Any, **options: Any) -> Tensor:
        value = averaged(z)
        if not value.is_complex() and name in UFUNCS:
            return UFUNCS[name](value, **options)
        return _in_plane(parts, *((value.real, value.imag) if value.is_complex() else (value, 0.0 * value)))

    return call


def _in_plane(parts: tuple[Operator, Operator], re: Any, im: Any) -> Tensor:
    return PUBLIC["complex"](*(apply(one, *floats(re, im)) for one in parts))


def _voigt_profile(x: Any, sigma: Any, gamma: Any) -> Tensor:
    """The real part of w((x + i gamma) / (sigma sqrt(2))) / (sigma sqrt(2 pi)) (DLMF 7.19.1)."""
    x, sigma, gamma = _reals("voigt_profile", x, sigma, gamma)
    is_narrow = PUBLIC["eq"](sigma, 0)
    scale = 1.0 / (where(is_narrow, 1.0, sigma) * math.sqrt(2.0))
    found = apply(COMPLEX["wofz"][0], *floats(x * scale, gamma * scale)) * scale / math.sqrt(math.pi)
    lorentzian = gamma / (math.pi * (where(is_narrow, x * x + gamma * gamma, 1.0)))
    return where(is_narrow, lorentzian, found)


def _powm1(x: Any, y: Any) -> Tensor:
    """x**y - 1, by expm1 where x is positive."""
    x, y = _reals("powm1", x, y)
    is_positive = x > 0
    near = expm1(xlogy(y, where(is_positive, x, 1.0)))
    return where(is_positive, near, where(is_positive, 1.0, x) ** y - 1.0)


# --- all ----------------------------------------------------------------------------------------------------

OF_OTHERS |= POLYNOMIALS | SEVERAL | {name: _of_complex(name, parts) for name, parts in COMPLEX.items()}
OF_OTHERS |= {
    f"hankel{kind}{scaled}": _hankel(f"hankel{kind}{scaled}", sense, bool(scaled))
    for kind, sense in ((1, 1.0), (2, -1.0))
    for scaled in ("", "e")
}
OF_OTHERS |= {name: _offloats(one) for name, one in DISTRIBUTIONS.items()} | {
    "ndtr": _ndtr, "xlog1py": lambda x, y: xlog1py(*floats(x, y)), "rel_entr": _rel_entr, "gamma": _gamma,
    "loggamma": _loggamma,
    "betaln": _betaln, "beta": _beta, "poch": _poch, "agm": _agm, "binom": _binom,
    "boxcox": _boxcox, "boxcox1p": _boxcox1p,
    "inv_boxcox": lambda y, power: exp(_log_of_inverse(y, power)),
    "inv_boxcox1p": lambda y, power: expm1(_log_of_inverse(y, power)),
    "huber": _huber, "pseudo_huber": _pseudo_huber,
    "entr": _entr,
    "kl_div": lambda x, y: _rel_entr(x, y) - tensor_of(x) + tensor_of(y),
    "exp10": lambda x: PUBLIC["pow"](10.0, averaged(x)),
    "cosm1": lambda x: -2.0 * PUBLIC["sin"](0.5 * averaged(x)) ** 2,
    "sindg": _sine_of_degrees, "cosdg": _cosine_of_degrees,
    "tandg": _tangent_of_degrees, "cotdg": _cotangent_of_degrees,
    "kelvin": _kelvin, "voigt_profile": _voigt_profile, "powm1": _powm1,
    "yn": _of_whole_order(yv), "kn": _of_whole_order(UFUNCS["kv"]),
    "jve": lambda v, x: jv(*floats(v, x)), "yve": lambda v, x: yv(*floats(v, x)),
    "radian": lambda d, m, s: (averaged(d) + averaged(m) / 60.0 + averaged(s) / 3600.0) * DEGREE,
}  # fmt: skip
