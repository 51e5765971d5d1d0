"""Elementary functions for generated code: plain Python that computes, and that writes LLVM instructions.

    from pullback.codegen.vector_math import exp, tanh

`exp(x)` takes and returns a float, a NumPy scalar or an array. In compiled code `staged` turns it into a
function without branches, which LLVM inlines and vectorises. One function serves both dtypes: float32
arguments give a float32 result, and every step between is float32 too. nan, infinities, signed zeros and
subnormal numbers are treated as IEEE 754 and C's Annex F say.

Measured errors: `python -m pullback.codegen.vector_math`. `FUNCTIONS` has every function by its name.
"""

from .arithmetic import (
    absolute,
    cbrt,
    ceil,
    exponent,
    floor,
    floor_divide,
    hypot,
    mantissa,
    maximum,
    minimum,
    nextafter,
    remainder,
    round_half_even,
    rsqrt,
    sign,
    sqrt,
    trunc,
)
from .bessel import i0, i0e, i1, i1e
from .error_function import erf, erfc
from .exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from .exponentiation import power
from .gamma import digamma, lgamma, trigamma
from .hurwitz import zeta
from .incomplete_gamma import igamma, igammac
from .inverse_trigonometric import acos, asin, atan, atan2
from .logarithm import acosh, asinh, atanh, log, log1p, log2, log10, softplus
from .primitives import FUNCTIONS
from .quantiles import erfcx, erfinv, log_ndtr, ndtri
from .trigonometric import cos, sin, tan

__all__ = [
    "FUNCTIONS",
    "absolute",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "exponent",
    "floor",
    "floor_divide",
    "hypot",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "igamma",
    "igammac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_ndtr",
    "mantissa",
    "maximum",
    "minimum",
    "ndtri",
    "nextafter",
    "power",
    "remainder",
    "round_half_even",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "tan",
    "tanh",
    "trigamma",
    "trunc",
    "zeta",
]
