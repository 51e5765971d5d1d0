"""Orthogonal polynomials of degrees that are data, by SciPy; of degrees below 0 they are 0, as in PyTorch.

A degree counts without its fraction, also as PyTorch has it, in derivatives as in values.

Derivatives (NIST Digital Library of Mathematical Functions, dlmf.nist.gov, 18.9) are polynomials of a degree
less by 1: of the same family, or of one that has a parameter more by 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..operator import Array, Operator
from .elementwise import trunc
from .lazy import scipy_special
from .special import eager, no_rule


def _polynomial(
    name: str, value: str | Callable[..., Any], slope: Callable[..., Array], doc: str, public: bool = True
) -> Operator:
    """`value`(integers, x) or SciPy's function of that name, and `slope`(g, x, n, of attributes)."""

    def evaluate(x: Any, n: Any, **attributes: Any) -> np.ndarray:
        function = getattr(scipy_special(), value) if isinstance(value, str) else value
        degree = np.trunc(np.nan_to_num(n)).astype(np.int64)
        found = function(np.maximum(degree, 0), np.asarray(x, np.float64), **attributes)
        return np.where(np.isnan(n), np.nan, np.where(degree < 0, 0.0, found))

    return eager(
        name, "x n", numpy=evaluate, domain=(0.3, 3.0), doc=doc,
        vjp={"x": slope, "n": lambda: no_rule(name, "degree")},
        torch=f"special.{name}" if public else "",
    )  # fmt: skip


def _below(n: Array) -> Array:
    """The degree of a derivative."""
    return trunc(n) - 1.0


gegenbauer = _polynomial(
    "gegenbauer", lambda n, x, alpha: scipy_special().eval_gegenbauer(n, alpha, x),
    lambda g, x, n, alpha: 2.0 * alpha * g * gegenbauer(x, _below(n), alpha=alpha + 1.0),
    "the ultraspherical polynomial of degree n", public=False,
)  # fmt: skip
laguerre = _polynomial(
    "laguerre", lambda n, x, alpha: scipy_special().eval_genlaguerre(n, alpha, x),
    lambda g, x, n, alpha: -g * laguerre(x, _below(n), alpha=alpha + 1.0),
    "the generalised Laguerre polynomial of degree n", public=False,
)  # fmt: skip

chebyshev_polynomial_t = _polynomial(
    "chebyshev_polynomial_t", "eval_chebyt",
    lambda g, x, n: trunc(n) * g * chebyshev_polynomial_u(x, _below(n)),
    "Chebyshev's polynomial T_n (DLMF 18.3)",
)  # fmt: skip
chebyshev_polynomial_u = _polynomial(
    "chebyshev_polynomial_u", "eval_chebyu",
    lambda g, x, n: 2.0 * g * gegenbauer(x, _below(n), alpha=2.0), "Chebyshev's polynomial U_n (DLMF 18.3)",
)  # fmt: skip
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h", "eval_hermite",
    lambda g, x, n: 2.0 * trunc(n) * g * hermite_polynomial_h(x, _below(n)),
    "Hermite's polynomial H_n (DLMF 18.3)",
)  # fmt: skip
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he", "eval_hermitenorm",
    lambda g, x, n: trunc(n) * g * hermite_polynomial_he(x, _below(n)),
    "the probabilist's Hermite polynomial He_n (DLMF 18.3)",
)  # fmt: skip
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l", "eval_laguerre",
    lambda g, x, n: -g * laguerre(x, _below(n), alpha=1.0), "Laguerre's polynomial L_n (DLMF 18.3)",
)  # fmt: skip
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p", "eval_legendre",
    lambda g, x, n: g * gegenbauer(x, _below(n), alpha=1.5), "Legendre's polynomial P_n (DLMF 18.3)",
)  # fmt: skip
