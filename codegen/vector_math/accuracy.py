"""How far the functions are from the exact values: references from mpmath, points to look at, errors in ulp.

An ulp of a number is the distance between the two floats around it (in the sense of J.-M. Muller, On the
definition of ulp(x), 2005). mpmath is needed here only, and comes with the `test` extra.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from mpmath import mp

from .primitives import FLOAT32, FLOAT64, Format

FORMATS = {"float32": FLOAT32, "float64": FLOAT64}
PRECISION = 160  # bits of a reference; of powers, 1100 more while arguments as large as 2**1024 are reduced
POINTS_PER_RANGE = 250
EVERYWHERE = (-np.inf, np.inf)  # random bits instead of evenly spread numbers
POSITIVE = (0.0, np.inf)


@dataclass(frozen=True)
class Case:
    """The exact function, where to look at it, and the greatest error that is accepted, in ulp."""

    reference: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    limit: float = 2.0
    operands: int = 1
    hard_points: tuple[float, ...] = ()


def _log_gamma(x: Any) -> Any:
    return mp.loggamma(x).real


_NEAR_ZERO = (-1e-3, 1e-3)
_MULTIPLES_OF_PI = tuple(float(n * np.pi / 2) for n in (1, 2, 3, 7, 22, 355, 1878, 52174, 10**5))
_HARD_ANGLES = (*_MULTIPLES_OF_PI, 2.0**18, 2.0**44, 1e22)
_ANGLES = ((-10.0, 10.0), (-1e5, 1e5), EVERYWHERE)
_OVERFLOW = (88.72283, 88.722839, 709.78, 709.782712893384, -103.97, -745.13)

CASES: dict[str, Case] = {
    "exp": Case(mp.exp, ((-105, 89), (-1, 1), (-746, 710)), hard_points=_OVERFLOW),
    "exp2": Case(lambda x: mp.mpf(2) ** x, ((-150, 128), (-1, 1), (-1075, 1024))),
    "expm1": Case(mp.expm1, ((-40, 89), (-1, 1), _NEAR_ZERO, (0, 710), EVERYWHERE), hard_points=_OVERFLOW),
    "sigmoid": Case(lambda x: 1 / (1 + mp.exp(-x)), ((-105, 40), (-5, 5), (-746, 5)), limit=2.5),
    "softplus": Case(lambda x: mp.log1p(mp.exp(x)), ((-100, 100), (-5, 5), (-740, 5))),
    "tanh": Case(mp.tanh, ((-23, 23), (-1, 1), _NEAR_ZERO, EVERYWHERE)),
    "sinh": Case(mp.sinh, ((-89, 89), (-1, 1), _NEAR_ZERO, (-710, 710))),
    "cosh": Case(mp.cosh, ((-89, 89), (-1, 1), (-710, 710))),
    "asinh": Case(mp.asinh, ((-3, 3), _NEAR_ZERO, EVERYWHERE)),
    "acosh": Case(mp.acosh, ((1, 3), (1, 1.001), (1, 1e9), (1, 1e38))),
    "atanh": Case(mp.atanh, ((-1, 1), _NEAR_ZERO)),
    "log": Case(mp.log, (POSITIVE, (0.5, 2), (0.999, 1.001))),
    "log2": Case(lambda x: mp.log(x) / mp.log(2), (POSITIVE, (0.5, 2), (0.999, 1.001))),
    "log10": Case(mp.log10, (POSITIVE, (0.5, 2), (0.999, 1.001))),
    "log1p": Case(mp.log1p, (POSITIVE, (-0.99, 1), _NEAR_ZERO)),
    "sqrt": Case(mp.sqrt, (POSITIVE,), limit=0.5),
    "rsqrt": Case(lambda x: 1 / mp.sqrt(x), (POSITIVE,)),
    "cbrt": Case(lambda x: mp.sign(x) * mp.cbrt(abs(x)), ((-2, 2), EVERYWHERE)),
    "sin": Case(mp.sin, (*_ANGLES, _NEAR_ZERO), hard_points=_HARD_ANGLES),
    "cos": Case(mp.cos, _ANGLES, hard_points=_HARD_ANGLES),
    "tan": Case(mp.tan, (*_ANGLES, _NEAR_ZERO), hard_points=_HARD_ANGLES),
    "asin": Case(mp.asin, ((-1, 1), (0.99, 1), _NEAR_ZERO)),
    "acos": Case(mp.acos, ((-1, 1), (0.99, 1), _NEAR_ZERO)),
    "atan": Case(mp.atan, ((-5, 5), _NEAR_ZERO, EVERYWHERE)),
    "erf": Case(mp.erf, ((-6, 6), (-1, 1), _NEAR_ZERO)),
    "erfc": Case(mp.erfc, ((-6, 10), (-1, 1), (0, 27)), limit=4.0),
    "lgamma": Case(_log_gamma, ((0, 10), (0.9, 1.1), (1.9, 2.1), (0, 200), POSITIVE), limit=4.0),
    "digamma": Case(mp.digamma, ((0, 10), (1.4, 1.5), (0, 100), POSITIVE), limit=3.0),
    "trigamma": Case(lambda x: mp.psi(1, x), ((0, 10), (0, 100))),
    "power": Case(lambda a, b: a**b, ((0, 20), (0.5, 2), POSITIVE), limit=2.0, operands=2),
    "hypot": Case(lambda a, b: mp.sqrt(a * a + b * b), ((-5, 5), EVERYWHERE), operands=2),
    "atan2": Case(mp.atan2, ((-5, 5), EVERYWHERE), operands=2),
}


def points(case: Case, number_format: Format, count: int = POINTS_PER_RANGE) -> list[np.ndarray]:
    """The operands to look at, one array each: `count` random points of each range, and the hard ones."""
    random = np.random.default_rng(0)
    operands = []
    for _ in range(case.operands):
        parts = [_sample(random, low, high, count, number_format) for low, high in case.ranges]
        operands.append(np.concatenate([*parts, np.array(case.hard_points, number_format.float_type)]))
    if case.reference is CASES["power"].reference:
        # exponents that spread the results over the format's range
        widest = (number_format.bias + 1) * np.log(2.0)
        spread = random.uniform(-1.1, 1.1, operands[0].size) * widest
        operands[1] = (spread / np.log(operands[0].astype(np.float64))).astype(number_format.float_type)
    return operands


def _sample(
    random: np.random.Generator, low: float, high: float, count: int, number_format: Format
) -> np.ndarray:
    if np.isfinite(high):
        return random.uniform(low, high, count).astype(number_format.float_type)
    bits = random.integers(1, number_format.bits_of(np.inf), count, dtype=number_format.bits_type)
    x: np.ndarray = bits.view(number_format.float_type)
    return x if low == 0.0 else x * random.choice([-1, 1], count).astype(number_format.float_type)


def errors(case: Case, operands: list[np.ndarray], results: np.ndarray, number_format: Format) -> np.ndarray:
    """The error of each result in ulp."""
    found = np.empty(results.size)
    for index, result in enumerate(results):
        numbers = [mp.mpf(float(operand[index])) for operand in operands]
        with mp.workprec(PRECISION + (1100 if case.hard_points else 0)):
            exact = case.reference(*numbers)
        found[index] = error(float(result), exact, number_format)
    return found


def error(result: float, exact: Any, number_format: Format) -> float:
    """The distance between `result` and the exact value in ulp; infinite results count as 2**(bias + 1)."""
    if result != result:
        return np.inf
    overflow = mp.ldexp(1, number_format.bias + 1)
    value = mp.sign(result) * overflow if np.isinf(result) else mp.mpf(result)
    exact = max(-overflow, min(overflow, exact))
    if exact == 0:
        return 0.0 if result == 0.0 else np.inf
    _, exponent = mp.frexp(exact)
    exponent = min(max(int(exponent), 2 - number_format.bias), number_format.bias + 1)
    with mp.workprec(PRECISION):
        return float(mpmath.fabs(value - exact) / mp.ldexp(1, exponent - number_format.fraction_bits - 1))
