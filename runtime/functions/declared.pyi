"""Declared operators: `pytest --update-golden tests/functions/test_declared.py` writes it."""

from typing import Any

from ..values.tensor import Tensor
from .common import Dims, Operand

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "all",
    "amax",
    "amin",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "digamma",
    "eq",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expit",
    "expm1",
    "fix",
    "floor",
    "floor_divide",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "hypot",
    "i0",
    "igamma",
    "igammac",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "ne",
    "not_equal",
    "prod",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "trunc",
]

def abs(input: Operand) -> Tensor:
    """`|x|`; the derivative at 0 is 0, element by element."""

def absolute(input: Operand) -> Tensor:
    """`|x|`; the derivative at 0 is 0, element by element."""

def acos(input: Operand) -> Tensor:
    """The arc cosine, in radians, element by element."""

def acosh(input: Operand) -> Tensor:
    """The inverse hyperbolic cosine, element by element."""

def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all are true, that is, not zero; true of nothing."""

def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest; elements that share the extreme share the gradient."""

def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest; elements that share the extreme share the gradient."""

def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any is true, that is, not zero; false of nothing."""

def arccos(input: Operand) -> Tensor:
    """The arc cosine, in radians, element by element."""

def arccosh(input: Operand) -> Tensor:
    """The inverse hyperbolic cosine, element by element."""

def arcsin(input: Operand) -> Tensor:
    """The arc sine, in radians, element by element."""

def arcsinh(input: Operand) -> Tensor:
    """The inverse hyperbolic sine, element by element."""

def arctan(input: Operand) -> Tensor:
    """The arc tangent, in radians, element by element."""

def arctan2(input: Operand, other: Operand) -> Tensor:
    """The angle of the point (b, a), in radians; the derivatives at the origin are 0, element by element."""

def arctanh(input: Operand) -> Tensor:
    """The inverse hyperbolic tangent, element by element."""

def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest."""

def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest."""

def asin(input: Operand) -> Tensor:
    """The arc sine, in radians, element by element."""

def asinh(input: Operand) -> Tensor:
    """The inverse hyperbolic sine, element by element."""

def atan(input: Operand) -> Tensor:
    """The arc tangent, in radians, element by element."""

def atan2(input: Operand, other: Operand) -> Tensor:
    """The angle of the point (b, a), in radians; the derivatives at the origin are 0, element by element."""

def atanh(input: Operand) -> Tensor:
    """The inverse hyperbolic tangent, element by element."""

def cbrt(input: Operand) -> Tensor:
    """The cube root, element by element."""

def ceil(input: Operand) -> Tensor:
    """Rounded up, element by element."""

def cos(input: Operand) -> Tensor:
    """The cosine, of radians, element by element."""

def cosh(input: Operand) -> Tensor:
    """The hyperbolic cosine, element by element."""

def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running products along a dimension; the derivative is exact with zeros among the factors."""

def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running sums along a dimension."""

def digamma(input: Operand) -> Tensor:
    """The derivative of lgamma (DLMF 5.2.2), element by element."""

def eq(input: Operand, other: Operand) -> Tensor:
    """a == b, element by element."""

def erf(input: Operand) -> Tensor:
    """The error function (DLMF 7.2.1), element by element."""

def erfc(input: Operand) -> Tensor:
    """1 - erf(x), exact in the tail (DLMF 7.2.2), element by element."""

def erfinv(input: Operand) -> Tensor:
    """The inverse of the error function (DLMF 7.17), element by element."""

def exp(input: Operand) -> Tensor:
    """e ** x, element by element."""

def exp2(input: Operand) -> Tensor:
    """2 ** x, element by element."""

def expit(input: Operand) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""

def expm1(input: Operand) -> Tensor:
    """e ** x - 1, exact near 0, element by element."""

def fix(input: Operand) -> Tensor:
    """Rounded to zero, element by element."""

def floor(input: Operand) -> Tensor:
    """Rounded down, element by element."""

def floor_divide(input: Operand, other: Operand) -> Tensor:
    """a / b, rounded to minus infinity, element by element."""

def ge(input: Operand, other: Operand) -> Tensor:
    """a >= b, element by element."""

def greater(input: Operand, other: Operand) -> Tensor:
    """a > b, element by element."""

def greater_equal(input: Operand, other: Operand) -> Tensor:
    """a >= b, element by element."""

def gt(input: Operand, other: Operand) -> Tensor:
    """a > b, element by element."""

def hypot(input: Operand, other: Operand) -> Tensor:
    """sqrt(a*a + b*b) without overflow, element by element."""

def i0(input: Operand) -> Tensor:
    """The modified Bessel function I_0 (DLMF 10.25.2), element by element."""

def igamma(input: Operand, other: Operand) -> Tensor:
    """The lower incomplete gamma function over gamma(a) (DLMF 8.2.4), element by element."""

def igammac(input: Operand, other: Operand) -> Tensor:
    """The upper incomplete gamma function over gamma(a) (DLMF 8.2.4), element by element."""

def isfinite(input: Operand) -> Tensor:
    """Neither infinite nor nan, element by element."""

def isinf(input: Operand) -> Tensor:
    """Whether x is infinite, element by element."""

def isnan(input: Operand) -> Tensor:
    """Whether x is nan, element by element."""

def le(input: Operand, other: Operand) -> Tensor:
    """a <= b, element by element."""

def less(input: Operand, other: Operand) -> Tensor:
    """a < b, element by element."""

def less_equal(input: Operand, other: Operand) -> Tensor:
    """a <= b, element by element."""

def lgamma(input: Operand) -> Tensor:
    """`log |gamma(x)|` (DLMF 5.2), element by element."""

def log(input: Operand) -> Tensor:
    """The natural logarithm, element by element. -inf at 0, nan below."""

def log10(input: Operand) -> Tensor:
    """The logarithm to base 10, element by element."""

def log1p(input: Operand) -> Tensor:
    """log(1 + x), exact near 0, element by element."""

def log2(input: Operand) -> Tensor:
    """The logarithm to base 2, element by element."""

def logaddexp(input: Operand, other: Operand) -> Tensor:
    """log(exp(a) + exp(b)) without overflow, element by element."""

def logical_and(input: Operand, other: Operand) -> Tensor:
    """both, of bools, element by element."""

def logical_not(input: Operand) -> Tensor:
    """The opposite, of bools, element by element."""

def logical_or(input: Operand, other: Operand) -> Tensor:
    """either, of bools, element by element."""

def logical_xor(input: Operand, other: Operand) -> Tensor:
    """one, of bools, element by element."""

def lt(input: Operand, other: Operand) -> Tensor:
    """a < b, element by element."""

def maximum(input: Operand, other: Operand) -> Tensor:
    """The larger; nan if either is, with the gradient of both; equal ones share it, element by element."""

def minimum(input: Operand, other: Operand) -> Tensor:
    """The smaller; nan if either is, with the gradient of both; equal ones share it, element by element."""

def mul(input: Operand, other: Operand) -> Tensor:
    """a * b, element by element."""

def multiply(input: Operand, other: Operand) -> Tensor:
    """a * b, element by element."""

def ne(input: Operand, other: Operand) -> Tensor:
    """a != b, element by element."""

def not_equal(input: Operand, other: Operand) -> Tensor:
    """a != b, element by element."""

def prod(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product; 1 of nothing; the derivative is exact with zeros among the factors."""

def reciprocal(input: Operand) -> Tensor:
    """1 / x, element by element."""

def rsqrt(input: Operand) -> Tensor:
    """1 / sqrt(x), element by element."""

def sigmoid(input: Operand) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""

def sin(input: Operand) -> Tensor:
    """The sine, of radians, element by element."""

def sinh(input: Operand) -> Tensor:
    """The hyperbolic sine, element by element."""

def sqrt(input: Operand) -> Tensor:
    """The square root, element by element. nan for negative numbers."""

def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum; 0 of nothing."""

def tan(input: Operand) -> Tensor:
    """The tangent, of radians, element by element."""

def tanh(input: Operand) -> Tensor:
    """The hyperbolic tangent, element by element."""

def trunc(input: Operand) -> Tensor:
    """Rounded to zero, element by element."""
