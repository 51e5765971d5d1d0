"""Special functions: of probability, of Bessel, gamma and its kin.

Those whose operator is declared in `tracer/ops/special.py` have no form in compiled code.
"""

from __future__ import annotations

import math

import numpy as np

from ....tracer.errors import ArgumentError
from ....tracer.ops import elementwise as e
from ....tracer.ops import special as s
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..common import Operand, fail, floating, promoted_pair
from ..declared import lgamma, trunc
from ..declared_special import chebyshev_polynomial_t, chebyshev_polynomial_u
from .elementwise import sinc

__all__ = ["mvlgamma", "polygamma"]


def polygamma(n: int, input: Operand) -> Tensor:
    """The n-th derivative of digamma (DLMF 5.15).

    Raises:
        ArgumentError: n is negative.

    Example:
        >>> polygamma(1, tensor([1.0]))
        tensor([1.6449])
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        fail(ArgumentError, f"polygamma(n, x): n must be an integer, found {n!r}.")
    if n < 0:
        fail(ArgumentError, f"polygamma(n, x) does not support negative n: found n = {n!r}.")
    x = floating(input, "polygamma")
    if n > 1:
        return apply(s.polygamma, x, n=int(n))
    return apply(s.trigamma if n else s.digamma, x, grad_name="PolygammaBackward0")


def mvlgamma(input: Operand, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p (DLMF 35.3).

    Example:
        >>> mvlgamma(tensor([2.0]), 1)
        tensor([0.])
    """
    if p < 1:
        fail(ArgumentError, f"p has to be greater than or equal to 1, found {p}.")
    x = floating(input, "mvlgamma")
    total = lgamma(x)
    for place in range(1, p):
        total = apply(e.add, total, lgamma(apply(e.subtract, x, 0.5 * place)))
    constant = 0.25 * p * (p - 1) * math.log(math.pi)
    return apply(e.add, total, constant, grad_name="MvlgammaBackward0")


def ndtr(input: Operand) -> Tensor:
    """The distribution function of the standard normal distribution.

    Example:
        >>> ndtr(tensor([0.0]))
        tensor([0.5000])
    """
    x = floating(input, "ndtr")
    return apply(e.multiply, apply(e.erfc, apply(e.multiply, x, -math.sqrt(0.5))), 0.5)


def spherical_bessel_j0(input: Operand) -> Tensor:
    """sin(x) / x, and 1 at 0: the spherical Bessel function of order 0 (DLMF 10.49).

    Example:
        >>> spherical_bessel_j0(tensor([0.0]))
        tensor([1.])
    """
    return sinc(apply(e.multiply, floating(input, "spherical_bessel_j0"), 1 / math.pi))


def chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the third kind: U_n - U_(n - 1) (DLMF 18.7).

    Example:
        >>> chebyshev_polynomial_v(tensor([0.5]), 1)
        tensor([0.])
    """
    of_degree, below = _second_kind("chebyshev_polynomial_v", input, n)
    return of_degree - below


def chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the fourth kind: U_n + U_(n - 1) (DLMF 18.7).

    Example:
        >>> chebyshev_polynomial_w(tensor([0.5]), 1)
        tensor([2.])
    """
    of_degree, below = _second_kind("chebyshev_polynomial_w", input, n)
    return of_degree + below


def _second_kind(function: str, input: Operand, n: Operand) -> tuple[Tensor, Tensor]:
    """Chebyshev's polynomials U_n and U_(n - 1), of the degree without its fraction."""
    x, degree = promoted_pair(function, input, n, as_float=True)
    degree = trunc(degree)
    return chebyshev_polynomial_u(x, degree), chebyshev_polynomial_u(x, degree - 1)


def shifted_chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_t` of 2 x - 1.

    Example:
        >>> shifted_chebyshev_polynomial_t(tensor([1.0]), 2)
        tensor([1.])
    """
    return chebyshev_polynomial_t(_shifted(input, "shifted_chebyshev_polynomial_t"), n)


def shifted_chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_u` of 2 x - 1.

    Example:
        >>> shifted_chebyshev_polynomial_u(tensor([1.0]), 2)
        tensor([3.])
    """
    return chebyshev_polynomial_u(_shifted(input, "shifted_chebyshev_polynomial_u"), n)


def shifted_chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_v` of 2 x - 1.

    Example:
        >>> shifted_chebyshev_polynomial_v(tensor([1.0]), 2)
        tensor([1.])
    """
    return chebyshev_polynomial_v(_shifted(input, "shifted_chebyshev_polynomial_v"), n)


def shifted_chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_w` of 2 x - 1.

    Example:
        >>> shifted_chebyshev_polynomial_w(tensor([1.0]), 2)
        tensor([5.])
    """
    return chebyshev_polynomial_w(_shifted(input, "shifted_chebyshev_polynomial_w"), n)


def _shifted(input: Operand, function: str) -> Tensor:
    return floating(input, function) * 2 - 1


def entr(input: Operand) -> Tensor:
    """-x log(x), 0 at 0, and -inf for negative x.

    Example:
        >>> entr(tensor([0.5]))
        tensor([0.3466])
    """
    return apply(s.entr, floating(input, "entr"))


def xlog1py(input: Operand, other: Operand) -> Tensor:
    """input * log1p(other), 0 where input is 0 (but nan where other is nan).

    Example:
        >>> xlog1py(tensor([0.0]), tensor([-1.0]))
        tensor([0.])
    """
    return apply(s.xlog1py, *promoted_pair("xlog1py", input, other, as_float=True))


def product_with_log1p(input: Operand, other: Operand) -> Tensor:
    """`xlog1py` whose slopes are 0 where input is 0 and log1p(other) infinite or none."""
    a, b = promoted_pair("xlog1py", input, other, as_float=True)
    has_no_number = apply(e.logical_or, apply(e.less_equal, b, -1.0), apply(e.equal, b, math.inf))
    vanishes = apply(e.logical_and, apply(e.equal, a, 0.0), has_no_number)
    return apply(e.multiply, a, apply(e.log1p, apply(e.where, vanishes, 0.0, b)))
