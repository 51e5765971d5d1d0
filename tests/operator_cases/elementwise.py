"""Rows of operators that compute element by element."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import scipy.special

from .rows import (
    BY_DEFINITION,
    CONSTANT,
    EVERYTHING,
    INTEGERS,
    NUMBERS,
    STEP,
    TERNARY,
    WHOLE,
    Case,
    Row,
    binary,
    predicate,
    step,
    unary,
)


def _of_floats(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of Python floats as one of arrays, computed in float64."""

    def apply(x: np.ndarray) -> np.ndarray:
        values = [function(float(one)) for one in np.ravel(x)]
        return np.asarray(values, x.dtype).reshape(x.shape)

    return apply


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # at poles, and beyond the largest float
        return math.inf


def _power_constant(x: np.ndarray, exponent: float) -> np.ndarray:
    return x ** x.dtype.type(exponent)


def _is_not_positive(*arrays: np.ndarray) -> np.ndarray:
    """Where a special function of two numbers is nobody's promise: at the ends of its domain, and beyond."""
    return ~functools.reduce(np.logical_and, [(x > 0) & (x < 1e3) for x in arrays])


POWERS = (2, 3, -1, 0.5, 1.7, -2, -0.5, 0, 1, 7, 11)
ARITHMETIC = (
    binary("add", lambda a, b: a + b, dtypes=NUMBERS),
    binary("subtract", lambda a, b: a - b, dtypes=NUMBERS),
    binary("multiply", lambda a, b: a * b, dtypes=NUMBERS),
    binary("divide", lambda a, b: a / b),
    unary("negative", lambda x: 0 - x, dtypes=NUMBERS),
    binary("power", lambda a, b: a**b, dtypes=NUMBERS, integers=(0, 9), ulps=16),
    Row("power_constant", _power_constant, tuple(
        Case((shape,), {"exponent": exponent})
        for exponent in POWERS for shape in ((67,), (2, 1, 3), (), (0,))
    ), ulps=32, because="a whole power is a chain of products",
        undefined=lambda x: np.isneginf(x) | ((x == 0) & np.signbit(x))),  # compiled, a root may stand for it
    unary("reciprocal", lambda x: 1 / x),
    unary("absolute", lambda x: np.where(x < 0, -x, x), dtypes=NUMBERS),
    binary("floor_divide", lambda a, b: a // b, dtypes=NUMBERS, integers=(1, 9), ulps=0),
    binary("remainder", lambda a, b: a % b, dtypes=NUMBERS, integers=(1, 9),
           undefined=lambda a, b: np.abs(a / b) > 2.0**40),  # beyond what two floats can hold
    binary("maximum", lambda a, b: np.where(np.isnan(a) | (a > b), a, b), dtypes=NUMBERS, ulps=0),
    binary("minimum", lambda a, b: np.where(np.isnan(a) | (a < b), a, b), dtypes=NUMBERS, ulps=0),
    Row("clamp", lambda x, low, high: np.minimum(np.maximum(x, low), high), TERNARY, dtypes=NUMBERS, ulps=0),
)  # fmt: skip
TRANSCENDENTAL = (
    unary("sqrt", lambda x: x**0.5, undefined=lambda x: x == -np.inf),  # the power takes no root of -inf
    unary("rsqrt", lambda x: 1 / np.sqrt(x)),
    unary("cbrt", np.cbrt),
    unary("square", lambda x: x * x, dtypes=NUMBERS),
    unary("exp", np.exp),
    unary("exp2", np.exp2),
    unary("expm1", np.expm1),
    unary("log", np.log),
    unary("log2", np.log2),
    unary("log10", np.log10),
    unary("log1p", np.log1p),
    binary("logaddexp", np.logaddexp),
    unary("sin", np.sin),
    unary("cos", np.cos),
    unary("tan", np.tan),
    unary("asin", np.arcsin),
    unary("acos", np.arccos),
    unary("atan", np.arctan),
    binary("atan2", np.arctan2),
    unary("sinh", np.sinh),
    unary("cosh", np.cosh),
    unary("tanh", np.tanh),
    unary("asinh", np.arcsinh),
    unary("acosh", np.arccosh),
    unary("atanh", np.arctanh),
    binary("hypot", np.hypot),
    binary("modulus", np.hypot),
    unary("sigmoid", lambda x: np.where(x < -30, np.exp(x), 0.5 * (1 + np.tanh(x / 2))), ulps=64,
          because="1 + tanh(x / 2) cancels for negative x"),
    unary("softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
    unary("relu", lambda x: x * (x > 0), dtypes=NUMBERS, ulps=0, undefined=lambda x: np.isinf(x)),
    unary("erf", _of_floats(math.erf)),
    unary("erfc", _of_floats(math.erfc)),
    unary("lgamma", _of_floats(_lgamma), ulps=64, because="it is a difference near its zeros at 1 and 2"),
    *(unary(name, getattr(scipy.special, name), ulps=64, because="that of SciPy's")
      for name in ("i0", "i0e", "i1", "i1e", "erfinv", "erfcx", "ndtri", "log_ndtr")),
    unary("digamma", scipy.special.psi, order=1, ulps=64, because="it is a difference near its zero at 1.46"),
    unary("trigamma", lambda x: scipy.special.zeta(2, x.astype(np.float64)).astype(x.dtype),
          undefined=lambda x: ~(x > 0), ulps=16),
    Row("polygamma", lambda x, n: scipy.special.polygamma(n, x.astype(np.float64)).astype(x.dtype), tuple(
        Case((shape,), {"n": n}) for shape in ((4,), (), (0,), (1, 3)) for n in (2, 3)
    ), undefined=lambda x: ~(x > 0) | (x > 1e30), ulps=16),
    *(binary(name, expected, ulps=512, because="SciPy's are so far off",
             undefined=lambda a, x: (np.abs(a) > 1e300) | (np.abs(a) < 1e-300) & (a != 0))  # SciPy's overflow
      for name, expected in (("igamma", scipy.special.gammainc), ("igammac", scipy.special.gammaincc))),
    binary("zeta", scipy.special.zeta, ulps=16, undefined=_is_not_positive),
    binary("xlogy", scipy.special.xlogy),
    binary("xlog1py", scipy.special.xlog1py),
    unary("entr", scipy.special.entr),
    unary("logit", scipy.special.logit, ulps=64, because="the quotient is rounded first"),
    binary("binary_cross_entropy", lambda p, t: -t * np.log(p) - (1 - t) * np.log1p(-p),
           undefined=lambda p, t: ~((p > 1e-30) & (p < 1) & (abs(t) < 4))),  # huge terms cancel
)  # fmt: skip
STEPS = (
    unary("mantissa", lambda x: np.frexp(x)[0], ulps=0, order=1),
    step("exponent", lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(x.dtype), no_rule=STEP),
    binary("nextafter", np.nextafter, ulps=0),
    *(binary(name, expected, dtypes=INTEGERS, ulps=0, no_rule=WHOLE) for name, expected in (
        ("gcd", np.gcd), ("lcm", np.lcm),
        ("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift),
    )),
    step("sign", lambda x: np.sign(x), dtypes=NUMBERS),
    step("floor", np.floor),
    step("ceil", np.ceil),
    step("trunc", np.trunc),
    step("round_half_even", np.round),
)
LOGIC = (
    predicate("equal", lambda a, b: a == b, dtypes=EVERYTHING),
    predicate("not_equal", lambda a, b: a != b, dtypes=EVERYTHING),
    predicate("less", lambda a, b: a < b, dtypes=EVERYTHING),
    predicate("less_equal", lambda a, b: a <= b, dtypes=EVERYTHING),
    predicate("greater", lambda a, b: a > b, dtypes=EVERYTHING),
    predicate("greater_equal", lambda a, b: a >= b, dtypes=EVERYTHING),
    predicate("isnan", lambda x: x != x, arity=1),
    predicate("isinf", lambda x: np.abs(x) == np.inf, arity=1),
    predicate("isfinite", lambda x: np.abs(x) < np.inf, arity=1),
    predicate("logical_and", lambda a, b: a & b, dtypes=("bool",)),
    predicate("logical_or", lambda a, b: a | b, dtypes=("bool",)),
    predicate("logical_xor", lambda a, b: a != b, dtypes=("bool",)),
    predicate("logical_not", lambda x: ~x, arity=1, dtypes=("bool",)),
    predicate("bitwise_and", np.bitwise_and, dtypes=(*INTEGERS, "bool"), no_rule=WHOLE),
    predicate("bitwise_or", np.bitwise_or, dtypes=(*INTEGERS, "bool"), no_rule=WHOLE),
    predicate("bitwise_xor", np.bitwise_xor, dtypes=(*INTEGERS, "bool"), no_rule=WHOLE),
    predicate("bitwise_not", np.bitwise_not, arity=1, dtypes=(*INTEGERS, "bool"), no_rule=WHOLE),
    Row("where", np.where, TERNARY, dtypes=EVERYTHING, masks=frozenset({0}), ulps=0),
)
CONVERSIONS = ("float64", "float32", "int64", "int32", "uint8", "bool")
COPIES = (
    Row("convert", lambda x, dtype: x.astype(dtype), tuple(
        Case((shape,), {"dtype": np.dtype(target)})
        for target in CONVERSIONS for shape in ((67,), (), (0, 2), (1, 3))
    ), dtypes=EVERYTHING, domain=(0.0, 3.0), integers=(0, 5), ulps=0, special=False),
    unary("identity", lambda x: x, dtypes=EVERYTHING, ulps=0),
    unary("zeros_like", lambda x: np.zeros(x.shape, x.dtype), dtypes=EVERYTHING, ulps=0, no_rule=CONSTANT),
    unary("stop_gradient", lambda x: x, dtypes=EVERYTHING, ulps=0, no_rule=BY_DEFINITION),
)  # fmt: skip
