"""Special functions: of probability, of Bessel, gamma and its kin.

Those whose operator is declared in `tracer/ops/special.py` have no form in compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...tracer.errors import ArgumentError
from ...tracer.operator import Operator
from ...tracer.ops import elementwise as e
from ...tracer.ops import special as s
from ..tape import apply
from ..tensor import Tensor
from .arithmetic import xlogy
from .common import Operand, fail, floating, promoted_pair
from .elementwise import lgamma

__all__ = ["erfinv", "i0", "igamma", "igammac", "mvlgamma", "polygamma"]


def _function(name: str, operator: Operator) -> Callable[[Operand], Tensor]:
    def function(input: Operand) -> Tensor:
        return apply(operator, floating(input, name))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{operator.doc}, element by element. Not in compiled functions.

    Example:
        >>> {name}(tensor([0.5])).shape
        torch.Size([1])
    """
    return function


erfinv = _function("erfinv", s.erfinv)
erfcx = _function("erfcx", s.erfcx)
ndtri = _function("ndtri", s.ndtri)
log_ndtr = _function("log_ndtr", s.log_ndtr)
i0 = _function("i0", s.i0)
i0e = _function("i0e", s.i0e)
i1 = _function("i1", s.i1)
i1e = _function("i1e", s.i1e)


def polygamma(n: int, input: Operand) -> Tensor:
    """The n-th derivative of digamma (DLMF 5.15).

    Raises:
        ArgumentError: n is negative.

    Example:
        >>> polygamma(1, tensor([1.0]))
        tensor([1.6449])
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        fail(ArgumentError, f"polygamma(n, x) does not support negative n: found n = {n!r}.")
    x = floating(input, "polygamma")
    if n > 1:
        return apply(s.polygamma, x, n=int(n))
    return apply(e.trigamma if n else e.digamma, x, grad_name="PolygammaBackward0")


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


def _pair(operator: Operator, name: str, input: Operand, other: Operand) -> Tensor:
    a, b = promoted_pair(name, input, other, as_float=True)
    return apply(operator, a, b)


def igamma(input: Operand, other: Operand) -> Tensor:
    """The regularised lower incomplete gamma function P(input, other) (DLMF 8.2.4).

    Its gradient goes to `other` alone. Not in compiled functions.

    Example:
        >>> igamma(tensor([1.0]), tensor([0.0]))
        tensor([0.])
    """
    return _pair(s.igamma, "igamma", input, other)


def igammac(input: Operand, other: Operand) -> Tensor:
    """The regularised upper incomplete gamma function, 1 - igamma. Not in compiled functions.

    Example:
        >>> igammac(tensor([1.0]), tensor([0.0]))
        tensor([1.])
    """
    return _pair(s.igammac, "igammac", input, other)


def zeta(input: Operand, other: Operand) -> Tensor:
    """The Hurwitz zeta function: the sum of (k + other) ** -input for k from 0 on. Not in compiled functions.

    Example:
        >>> zeta(tensor([2.0]), tensor([1.0]))
        tensor([1.6449])
    """
    return _pair(s.zeta, "zeta", input, other)


def ndtr(input: Operand) -> Tensor:
    """The distribution function of the standard normal distribution.

    Example:
        >>> ndtr(tensor([0.0]))
        tensor([0.5000])
    """
    x = floating(input, "ndtr")
    return apply(e.multiply, apply(e.erfc, apply(e.multiply, x, -math.sqrt(0.5))), 0.5)


def entr(input: Operand) -> Tensor:
    """-x log(x), 0 at 0, and -inf for negative x.

    Example:
        >>> entr(tensor([0.0, 1.0]))
        tensor([0., 0.])
    """
    x = floating(input, "entr")
    negative = apply(e.less, x, 0.0)
    inside = apply(e.where, negative, 1.0, x)
    found = apply(e.negative, xlogy(inside, inside))
    return apply(e.where, negative, -math.inf, found, grad_name="SpecialEntrBackward0")


def xlog1py(input: Operand, other: Operand) -> Tensor:
    """input * log1p(other), 0 where input is 0 (but nan where other is nan).

    Example:
        >>> xlog1py(tensor([0.0]), tensor([-1.0]))
        tensor([0.])
    """
    a, b = promoted_pair("xlog1py", input, other, as_float=True)
    vanishes = apply(e.logical_and, apply(e.equal, a, 0.0), apply(e.less_equal, b, -1.0))
    safe = apply(e.where, vanishes, 0.0, b)
    return apply(e.multiply, a, apply(e.log1p, safe), grad_name="SpecialXlog1PyBackward0")
