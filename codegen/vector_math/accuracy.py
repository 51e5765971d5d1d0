"""How far the functions are from the exact values: references, bounds, where to look, errors in ulp.

An ulp of a number is the distance between the two floats around it (in the sense of J.-M. Muller, On the
definition of ulp(x), 2005). References are mpmath's; for many numbers in float32 they are our own functions
in float64, which are compared with mpmath themselves. mpmath comes with the `test` extra.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp  # type: ignore[import-untyped]

from ...tracer.records import record
from .primitives import FLOAT32, FLOAT64, Format

FORMATS = {"float32": FLOAT32, "float64": FLOAT64}
PRECISION = 140  # bits of a reference; mpmath takes more by itself where it reduces angles
ANGLE_PRECISION = PRECISION + 1100  # of multiples of pi as large as 2**1024

Real = Any  # a number of mpmath
Range = tuple[float, float]


@record(frozen=True)
class Case:
    """The exact function, the greatest error that is accepted, in ulp, and where to look.

    The whole domain is sampled evenly by the bits of its floats, and each range evenly. `near` gives real
    numbers whose neighbours are looked at: roots, thresholds, multiples of pi.
    """

    reference: Callable[..., Real]
    ranges: tuple[Range, ...] = ()
    bound: float = 2.0
    operands: int = 1
    domain: Range = (-np.inf, np.inf)
    near: Callable[[], list[Real]] = list
    cancels: bool = False
    """Whether a part of the value is what is left of squares of the operands."""
    size: Callable[..., Real] | None = None
    """Of a part of a complex number that number's size, whose ulp counts."""
    whole: str = ""
    """The function that it is a part of."""


# --- Hard places ------------------------------------------------------------------------------------------


@functools.cache
def _multiples_of_half_pi() -> list[Real]:
    """Some thousand, up to the largest floats."""
    random = np.random.default_rng(0)
    exponents = [*random.uniform(0, 64, 800), *random.uniform(64, 1023, 200)]
    with mp.workprec(ANGLE_PRECISION):
        factors = [*range(1, 1000), *(mp.floor(mp.mpf(2) ** exponent) for exponent in exponents)]
        return [factor * mp.pi / 2 for factor in factors] + [mp.mpf(6381956970095103) * mp.mpf(2) ** 797]


def _root(function: Callable[[Real], Real], low: Real, high: Real) -> Real:
    """Where `function` changes its sign, by bisection."""
    sign = mp.sign(function(low))
    for _ in range(PRECISION):
        middle = (low + high) / 2
        low, high = (middle, high) if mp.sign(function(middle)) == sign else (low, middle)
    return low


@functools.cache
def _digamma_roots() -> list[Real]:
    """The positive one and some of the negative ones, one between two poles each."""
    tiny = mp.mpf(10) ** -30
    with mp.workprec(PRECISION):
        return [_root(mp.digamma, 1, 2), *(_root(mp.digamma, -n - 1 + tiny, -n - tiny) for n in range(40))]


@functools.cache
def _lgamma_roots() -> list[Real]:
    """Two between negative poles, down to where they come so close to these that no float is between."""
    roots = [mp.mpf(1), mp.mpf(2)]
    tiny = mp.mpf(10) ** -30
    with mp.workprec(PRECISION):
        for n, lowest in enumerate(_digamma_roots()[3:21], start=2):
            roots += [_root(_log_gamma, pole, lowest) for pole in (-n - 1 + tiny, -n - tiny)]
    return roots


def _log_gamma(x: Real) -> Real:
    return mp.loggamma(x).real


def _erfc(x: Real) -> Real:
    return mp.erfc(max(-30, min(30, x)))  # mpmath cannot take very large numbers


def _scaled_bessel(order: int, x: Real) -> Real:
    if abs(x) < 1e5:
        return mp.exp(-abs(x)) * mp.besseli(order, x)
    inverse, terms = 1 / (8 * abs(x)), [mp.mpf(1)]
    for k in range(1, 12):  # DLMF 10.40.1
        terms.append(-terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) * inverse / k)
    sign = mp.sign(x) if order else 1
    return sign * mp.fsum(terms) / mp.sqrt(2 * mp.pi * abs(x))


def _erfcx(x: Real) -> Real:
    if x < 1e4:
        return mp.exp(x * x) * mp.erfc(x)
    half = 1 / (2 * x * x)
    return (1 - half + 3 * half**2 - 15 * half**3) / (x * mp.sqrt(mp.pi))


def _log_ndtr(x: Real) -> Real:
    scaled = x / mp.sqrt(2)
    return mp.log(_erfcx(-scaled) / 2) - x * x / 2 if x < 0 else mp.log1p(-_erfc(scaled) / 2)


def _quantile(p: Real) -> Real:
    """By Newton's method on the logarithm, from the limit of small p."""
    if p > 0.5:
        return -_quantile(1 - p)
    if p == 0:
        return -mp.inf
    if p > 1e-10:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    x = -mp.sqrt(-2 * mp.log(p))
    for _ in range(12):
        ratio = _erfcx(-x / mp.sqrt(2)) * mp.sqrt(mp.pi / 2)
        x -= (_log_ndtr(x) - mp.log(p)) * ratio
    return x


def _incomplete_gamma(a: Real, x: Real) -> tuple[Real, Real]:
    """P and Q, the smaller one by a series (DLMF 8.7.1) or by mpmath."""
    if x > a + 5 * mp.sqrt(a) + 1:
        upper = mp.gammainc(a, x, mp.inf, regularized=True)
        return 1 - upper, upper
    term = total = mp.mpf(1)
    n = 1
    while term > mp.ldexp(total, -mp.prec):
        term *= x / (a + n)
        total += term
        n += 1
    lower = total * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
    return lower, 1 - lower


def _zeta(x: Real, q: Real) -> Real:
    """By Euler and Maclaurin's formula (DLMF 25.11.5); all that it adds is positive, but for small terms."""
    count = max(0, int(40 + x - q))  # behind which these terms fall fast
    end = q + count
    power = end**-x
    total = mp.fsum((q + k) ** -x for k in range(count)) + power * (end / (x - 1) + mp.mpf(0.5))
    factor, n = power * x / (2 * end), 2
    while abs(term := mp.bernoulli(n) * factor) > mp.ldexp(total, -mp.prec):
        total += term
        factor *= (x + n - 1) * (x + n) / (end**2 * (n + 1) * (n + 2))
        n += 2
    return total


def _around(*numbers: float) -> tuple[Range, ...]:
    """A little below and above each."""
    return tuple(
        (min(ends), max(ends)) for ends in ((number * (1 - 1e-4), number * (1 + 1e-4)) for number in numbers)
    )


# --- What is looked at ------------------------------------------------------------------------------------

_NEAR_0, _NEAR_1 = (-1e-3, 1e-3), (0.999, 1.001)
_POSITIVE, _UNIT = (0.0, np.inf), (-1.0, 1.0)
_OF_GAMMA = ((0.0, 3.0), (0.0, 30.0), (20.0, 40.0), (0.0, 1000.0), (900.0, 1000.0))
# where e**x overflows, becomes subnormal and vanishes, in float32 and float64
_OVERFLOW = _around(88.72284, 709.782712893384)
_UNDERFLOW = _around(-87.33655, -103.97208, -708.3964185322641, -745.1332191019411)

CASES: dict[str, Case] = {
    "exp": Case(mp.exp, ((-105, 89), _UNIT, (-746, 710), *_OVERFLOW, *_UNDERFLOW)),
    "exp2": Case(lambda x: mp.mpf(2) ** x, ((-150, 128), _UNIT, (-1075, 1024), *_around(-1022, 1024))),
    "expm1": Case(mp.expm1, ((-40, 89), _UNIT, _NEAR_0, (0, 710), (0.34, 0.4), *_OVERFLOW)),
    "sigmoid": Case(lambda x: 1 / (1 + mp.exp(-x)), ((-105, 40), (-5, 5), (-746, 5), *_UNDERFLOW)),
    "softplus": Case(lambda x: mp.log1p(mp.exp(x)), ((-100, 100), (-5, 5), (-1, 0), *_UNDERFLOW)),
    "tanh": Case(mp.tanh, ((-23, 23), _UNIT, _NEAR_0, (0.15, 0.3))),
    "sinh": Case(mp.sinh, ((-89, 89), _UNIT, _NEAR_0, (-710, 710), *_around(710.4758600739439))),
    "cosh": Case(mp.cosh, ((-89, 89), _UNIT, (-710, 710), *_around(710.4758600739439))),
    "asinh": Case(mp.asinh, ((-3, 3), _NEAR_0)),
    "acosh": Case(mp.acosh, ((1, 3), (1, 1.001), (1, 1e9)), bound=2.5, domain=(1.0, np.inf)),
    "atanh": Case(mp.atanh, (_UNIT, _NEAR_0, (0.15, 0.25)), bound=2.5, domain=_UNIT),
    "log": Case(mp.log, ((0.5, 2), _NEAR_1), domain=_POSITIVE),
    "log2": Case(lambda x: mp.log(x) / mp.ln2, ((0.5, 2), _NEAR_1), domain=_POSITIVE),
    "log10": Case(mp.log10, ((0.5, 2), _NEAR_1), domain=_POSITIVE),
    "log1p": Case(mp.log1p, (_UNIT, _NEAR_0, (0, 100)), domain=(-1.0, np.inf)),
    "sqrt": Case(mp.sqrt, bound=0.5, domain=_POSITIVE),
    "rsqrt": Case(lambda x: 1 / mp.sqrt(x), ((1, 4),), domain=_POSITIVE),
    "cbrt": Case(lambda x: mp.sign(x) * mp.cbrt(abs(x)), ((1, 8),)),
    "sin": Case(mp.sin, ((-10, 10), (-1e5, 1e5), _NEAR_0), near=_multiples_of_half_pi),
    "cos": Case(mp.cos, ((-10, 10), (-1e5, 1e5)), near=_multiples_of_half_pi),
    "tan": Case(mp.tan, ((-10, 10), (-1e5, 1e5), _NEAR_0), near=_multiples_of_half_pi),
    "asin": Case(mp.asin, (_UNIT, (0.99, 1), _NEAR_0), domain=_UNIT),
    "acos": Case(mp.acos, (_UNIT, (0.99, 1), _NEAR_0), domain=_UNIT),
    "atan": Case(mp.atan, ((-5, 5), _NEAR_0)),
    "atan2": Case(mp.atan2, ((-5, 5),), operands=2),
    "erf": Case(mp.erf, ((-6, 6), _UNIT, _NEAR_0, (1, 1.3))),
    "erfc": Case(_erfc, ((-6, 10), _UNIT, (0.5, 0.6), (0, 27), *_around(26.55)), bound=2.5),
    "lgamma": Case(
        _log_gamma,
        ((0, 10), (0.9, 1.1), (1.9, 2.1), (1.2, 1.4), (0, 200), (-30, 0)),
        bound=4.0,
        near=_lgamma_roots,
    ),
    "digamma": Case(mp.digamma, ((0, 10), (1.4, 1.5), (0, 100), (-30, 0)), near=_digamma_roots),
    "trigamma": Case(lambda x: mp.psi(1, x), ((0, 10), (0, 100)), bound=3.0, domain=(0.0, 1e10)),
    "i0": Case(lambda x: mp.besseli(0, x), ((-20, 20), (7, 9), (0, 700)), bound=4.0, domain=(-720, 720)),
    "i0e": Case(lambda x: _scaled_bessel(0, x), ((-20, 20), (7, 9), (0, 700)), bound=4.0),
    "i1": Case(lambda x: mp.besseli(1, x), ((-20, 20), (7, 9), (0, 700)), bound=6.0, domain=(-720, 720)),
    "i1e": Case(lambda x: _scaled_bessel(1, x), ((-20, 20), (7, 9), (0, 700)), bound=6.0),
    "erfinv": Case(mp.erfinv, (_UNIT, (0.84, 0.86), _NEAR_0, (0.999, 1)), bound=5.0, domain=_UNIT),
    "ndtri": Case(_quantile, ((0, 1), (0.07, 0.08), (0, 1e-3), (0.9, 1)), bound=5.0, domain=(0.0, 1.0)),
    "erfcx": Case(_erfcx, ((-26, 0), _UNIT, (0, 10), (0, 1e3)), bound=6.0, domain=(-26, np.inf)),
    "log_ndtr": Case(_log_ndtr, ((-40, 0), _UNIT, (0, 38)), bound=6.0),
    "igamma": Case(
        lambda a, x: _incomplete_gamma(a, x)[0], _OF_GAMMA, bound=14.0, operands=2, domain=(1e-4, 1e4)
    ),
    "igammac": Case(
        lambda a, x: _incomplete_gamma(a, x)[1], _OF_GAMMA, bound=14.0, operands=2, domain=(1e-4, 1e4)
    ),
    "zeta": Case(_zeta, ((1, 3), (1, 20), (1, 1.1)), bound=8.0, operands=2, domain=(1.0, 200.0)),
    "power": Case(
        lambda a, b: a**b, ((0, 20), (0.5, 2), (1.41, 1.42)), bound=2.5, operands=2, domain=_POSITIVE
    ),
    "hypot": Case(lambda a, b: mp.sqrt(a * a + b * b), ((-5, 5),), operands=2),
}
"""Every function that is not exact. `trigamma` and the inverse hyperbolic functions are extra."""


def _in_parts(name: str, function: Callable[..., Real], **fields: Any) -> dict[str, Case]:
    """The parts of a function of complex numbers."""

    @functools.lru_cache(1)  # a part is asked for, and then the size
    def value(*parts: Real) -> Real:
        return function(*(mp.mpc(re, im) for re, im in zip(parts[::2], parts[1::2])))

    size, fields = lambda *parts: abs(value(*parts)), {"operands": 2, "bound": 4.0, **fields}
    return {
        f"{name}_real": Case(lambda *parts: value(*parts).real, size=size, whole=name, **fields),
        f"{name}_imag": Case(lambda *parts: value(*parts).imag, size=size, whole=name, **fields),
    }


_PLANE, _CIRCLE = ((-5, 5), _UNIT), ((-5, 5), _UNIT, _NEAR_0, _around(1.0)[0], _around(0.6)[0])
_PERIODIC: dict[str, Any] = {"ranges": (*_PLANE, (-710, 710))}
_INVERSE: dict[str, Any] = {"ranges": _CIRCLE, "cancels": True}
CASES |= {
    **_in_parts("divide", lambda a, b: a / b, ranges=_PLANE, operands=4),
    **_in_parts("reciprocal", lambda z: 1 / z, ranges=_PLANE),
    **_in_parts("sqrt", mp.sqrt, ranges=_PLANE, cancels=True),
    **_in_parts("exp", mp.exp, **_PERIODIC), **_in_parts("expm1", mp.expm1, bound=5.0, **_PERIODIC),
    **_in_parts("sinh", mp.sinh, **_PERIODIC), **_in_parts("cosh", mp.cosh, **_PERIODIC),
    **_in_parts("tanh", mp.tanh, bound=5.0, **_PERIODIC), **_in_parts("sin", mp.sin, **_PERIODIC),
    **_in_parts("cos", mp.cos, **_PERIODIC), **_in_parts("tan", mp.tan, **_PERIODIC),
    **_in_parts("sigmoid", lambda z: 1 / (1 + mp.exp(-z)), bound=6.0, **_PERIODIC),
    **_in_parts("log", mp.log, **_INVERSE), **_in_parts("log1p", lambda z: mp.log(1 + z), **_INVERSE),
    **_in_parts("asin", mp.asin, **_INVERSE), **_in_parts("acos", mp.acos, **_INVERSE),
    **_in_parts("atan", mp.atan, **_INVERSE), **_in_parts("asinh", mp.asinh, **_INVERSE),
    **_in_parts("acosh", mp.acosh, **_INVERSE), **_in_parts("atanh", mp.atanh, **_INVERSE),
}  # fmt: skip

# --- Errors -----------------------------------------------------------------------------------------------


def errors(case: Case, operands: list[np.ndarray], results: np.ndarray, number_format: Format) -> np.ndarray:
    """The error of each result in ulp, by mpmath."""
    return np.array([
        _error_at(case, numbers, float(result), number_format) for *numbers, result in zip(*operands, results)
    ])  # fmt: skip


def _error_at(case: Case, numbers: list[float], result: float, number_format: Format) -> float:
    with mp.workprec(PRECISION + (2 * _distance_from_1(numbers) if case.cancels else 0)):
        return error(result, _exact(case.reference, numbers), number_format, _size(case, numbers))


def _distance_from_1(numbers: list[float]) -> int:
    """The greatest of the exponents, without its sign."""
    return max(abs(math.frexp(number)[1]) for number in numbers)


def _exact(reference: Callable[..., Real], numbers: list[float]) -> Real:
    try:
        return reference(*(mp.mpf(float(number)) for number in numbers))
    except (ValueError, ZeroDivisionError):  # a pole
        return mp.nan


def _size(case: Case, numbers: list[float]) -> Real:
    return None if case.size is None else _exact(case.size, numbers)


def error(result: float, exact: Real, number_format: Format, size: Real = None) -> float:
    """The distance between `result` and the exact value in ulp, of that or of `size`; infinite results count
    as 2**(bias + 1).

    Where the exact value is none, or infinite at a pole, anything that is not finite will do.
    """
    if mp.isnan(exact) or result != result:
        return 0.0 if mp.isnan(exact) and not np.isfinite(result) else np.inf
    overflow = mp.ldexp(1, number_format.bias + 1)
    value = mp.sign(result) * overflow if np.isinf(result) else mp.mpf(result)
    exact = max(-overflow, min(overflow, exact))
    unit = exact if size is None else min(overflow, size)
    if unit == 0:
        return 0.0 if result == 0.0 else np.inf
    exponent = min(max(int(mp.frexp(unit)[1]), 2 - number_format.bias), number_format.bias + 1)
    return float(mp.ldexp(abs(value - exact), number_format.fraction_bits + 1 - exponent))


def errors_of_float32(
    results: np.ndarray, exact: np.ndarray, size: np.ndarray | None = None
) -> np.ndarray:
    """The error of each float32 result in ulp, of `exact`, the value in float64, or of `size`."""
    overflow = 2.0 ** (FLOAT32.bias + 1)
    exact = np.clip(exact, -overflow, overflow)
    values = np.clip(results.astype(np.float64), -overflow, overflow)
    unit = np.abs(exact) if size is None else np.minimum(size, overflow)
    exponents = unit.view(np.int64) >> FLOAT64.fraction_bits
    exponents = np.maximum(exponents, FLOAT64.bias + 1 - FLOAT32.bias)
    ulps = (exponents - FLOAT32.fraction_bits << FLOAT64.fraction_bits).view(np.float64)
    found = np.abs(values - exact) / ulps
    found[np.isnan(found)] = np.inf
    found[np.isnan(values) & np.isnan(exact)] = 0.0
    return found
