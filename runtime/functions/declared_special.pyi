"""Declared operators: `pytest --update-golden tests/functions/test_declared.py` writes it."""

from ..values.tensor import Tensor
from .common import Operand

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "digamma",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "igamma",
    "igammac",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "lgamma",
    "log1p",
    "log_ndtr",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtri",
    "psi",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "zeta",
]

def airy_ai(input: Operand) -> Tensor:
    """The Airy function Ai (DLMF 9.2), element by element. Code calls Python for it."""

def bessel_j0(input: Operand) -> Tensor:
    """The Bessel function J_0 (DLMF 10.2.2), element by element. Code calls Python for it."""

def bessel_j1(input: Operand) -> Tensor:
    """The Bessel function J_1 (DLMF 10.2.2), element by element. Code calls Python for it."""

def bessel_y0(input: Operand) -> Tensor:
    """The Bessel function Y_0 (DLMF 10.2.3), element by element. Code calls Python for it."""

def bessel_y1(input: Operand) -> Tensor:
    """The Bessel function Y_1 (DLMF 10.2.3), element by element. Code calls Python for it."""

def chebyshev_polynomial_t(input: Operand, other: Operand) -> Tensor:
    """Chebyshev's polynomial T_n (DLMF 18.3), element by element. Code calls Python for it."""

def chebyshev_polynomial_u(input: Operand, other: Operand) -> Tensor:
    """Chebyshev's polynomial U_n (DLMF 18.3), element by element. Code calls Python for it."""

def digamma(input: Operand) -> Tensor:
    """The derivative of lgamma (DLMF 5.2.2), element by element."""

def erf(input: Operand) -> Tensor:
    """The error function (DLMF 7.2.1), element by element."""

def erfc(input: Operand) -> Tensor:
    """1 - erf(x), exact in the tail (DLMF 7.2.2), element by element."""

def erfcx(input: Operand) -> Tensor:
    """exp(x * x) erfc(x) (DLMF 7.2.2), element by element."""

def erfinv(input: Operand) -> Tensor:
    """The inverse of the error function (DLMF 7.17), element by element."""

def exp2(input: Operand) -> Tensor:
    """2 ** x, element by element."""

def expit(input: Operand) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""

def expm1(input: Operand) -> Tensor:
    """e ** x - 1, exact near 0, element by element."""

def gammainc(input: Operand, other: Operand) -> Tensor:
    """The lower incomplete gamma function over gamma(a) (DLMF 8.2.4), element by element."""

def gammaincc(input: Operand, other: Operand) -> Tensor:
    """The upper incomplete gamma function over gamma(a) (DLMF 8.2.4), element by element."""

def gammaln(input: Operand) -> Tensor:
    """`log |gamma(x)|` (DLMF 5.2), element by element."""

def hermite_polynomial_h(input: Operand, other: Operand) -> Tensor:
    """Hermite's polynomial H_n (DLMF 18.3), element by element. Code calls Python for it."""

def hermite_polynomial_he(input: Operand, other: Operand) -> Tensor:
    """The probabilist's Hermite polynomial He_n (DLMF 18.3), element by element. Code calls Python for it."""

def i0(input: Operand) -> Tensor:
    """The modified Bessel function I_0 (DLMF 10.25.2), element by element."""

def i0e(input: Operand) -> Tensor:
    """`exp(-|x|) I_0(x)` (DLMF 10.25.2), element by element."""

def i1(input: Operand) -> Tensor:
    """The modified Bessel function I_1 (DLMF 10.25.2), element by element."""

def i1e(input: Operand) -> Tensor:
    """`exp(-|x|) I_1(x)` (DLMF 10.25.2), element by element."""

def igamma(input: Operand, other: Operand) -> Tensor:
    """The lower incomplete gamma function over gamma(a) (DLMF 8.2.4), element by element."""

def igammac(input: Operand, other: Operand) -> Tensor:
    """The upper incomplete gamma function over gamma(a) (DLMF 8.2.4), element by element."""

def laguerre_polynomial_l(input: Operand, other: Operand) -> Tensor:
    """Laguerre's polynomial L_n (DLMF 18.3), element by element. Code calls Python for it."""

def legendre_polynomial_p(input: Operand, other: Operand) -> Tensor:
    """Legendre's polynomial P_n (DLMF 18.3), element by element. Code calls Python for it."""

def lgamma(input: Operand) -> Tensor:
    """`log |gamma(x)|` (DLMF 5.2), element by element."""

def log1p(input: Operand) -> Tensor:
    """log(1 + x), exact near 0, element by element."""

def log_ndtr(input: Operand) -> Tensor:
    """The logarithm of the normal distribution function (DLMF 7.20.1), element by element."""

def modified_bessel_i0(input: Operand) -> Tensor:
    """The modified Bessel function I_0 (DLMF 10.25.2), element by element."""

def modified_bessel_i1(input: Operand) -> Tensor:
    """The modified Bessel function I_1 (DLMF 10.25.2), element by element."""

def modified_bessel_k0(input: Operand) -> Tensor:
    """The modified Bessel function K_0 (DLMF 10.25.3), element by element. Code calls Python for it."""

def modified_bessel_k1(input: Operand) -> Tensor:
    """The modified Bessel function K_1 (DLMF 10.25.3), element by element. Code calls Python for it."""

def ndtri(input: Operand) -> Tensor:
    """The quantile of the normal distribution, the inverse of DLMF 7.20.1, element by element."""

def psi(input: Operand) -> Tensor:
    """The derivative of lgamma (DLMF 5.2.2), element by element."""

def scaled_modified_bessel_k0(input: Operand) -> Tensor:
    """exp(x) K_0(x) (DLMF 10.25.3), element by element. Code calls Python for it."""

def scaled_modified_bessel_k1(input: Operand) -> Tensor:
    """exp(x) K_1(x) (DLMF 10.25.3), element by element. Code calls Python for it."""

def zeta(input: Operand, other: Operand) -> Tensor:
    """The Hurwitz zeta function, the sum of (k + q) ** -x (DLMF 25.11.1), element by element."""
