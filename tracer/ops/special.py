"""Special functions, and how integers and floats are made.

Formulas and derivatives: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), sections 7.17
(inverse error function), 8.8 (incomplete gamma), 10.29 (modified Bessel), 5.15 and 25.11 (polygamma, zeta).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from ..errors import GradientError
from ..operator import WRITTEN_OUT, Array, Operator, declare
from ..spec import INT64, Spec, broadcast_shapes
from .creation import iota
from .elementwise import (
    TRANSCENDENTAL,
    absolute,
    common_dtype,
    convert,
    cos,
    elementwise,
    equal,
    exp,
    exp2,
    greater,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    maximum,
    power_constant,
    sign,
    sin,
    where,
    zeros_like,
)  # fmt: skip
from .lazy import scipy_special, special_value
from .movement import reshape
from .reduction import sum_

HALF_SQRT_PI = math.sqrt(math.pi) / 2
SQRT_TWO_PI = math.sqrt(2 * math.pi)
SQRT_TWO_OVER_PI = math.sqrt(2 / math.pi)


def eager(
    name: str,
    operands: str = "x",
    *,
    numpy: str | Callable[..., Any],
    vjp: Mapping[str, Callable[..., Array]] | None = None,
    arguments: str = "real",
    **fields: Any,
) -> Operator:
    """Declare an operator on one element at a time that only SciPy evaluates; see `elementwise`.

    `numpy` may be the name of a function of `scipy.special`, which can be told where to write.
    """
    function, fills = (numpy, "") if callable(numpy) else (_scipys(numpy), f"scipy.special.{numpy}")

    def infer(*specs: Spec, **attributes: Any) -> Spec:
        found = common_dtype(name, specs)
        return Spec(broadcast_shapes(*(spec.shape for spec in specs), function=name), found)

    def evaluate(*arrays: Any, **attributes: Any) -> np.ndarray:
        kind = next(one.dtype for one in arrays if isinstance(one, np.ndarray | np.generic))
        return np.asarray(function(*arrays, **attributes)).astype(kind, copy=False)

    return declare(
        name, "eager", operands, infer=infer, evaluate=evaluate, vjp=vjp, arguments=arguments, in_place=True,
        fills=fills, **fields,
    )  # fmt: skip


def _scipys(name: str) -> Callable[..., Any]:
    """A function of SciPy's, which is imported when it is called; numbers take the dtype of arrays beside."""

    def evaluate(*operands: Any) -> Any:
        if len(operands) > 1:
            dtype = next((one.dtype for one in operands if hasattr(one, "dtype")), None)
            operands = tuple(one if hasattr(one, "dtype") else np.asarray(one, dtype) for one in operands)
        return special_value(name, *operands)

    return evaluate


def of_scipy(name: str, operands: str = "x", *, function: str = "", **fields: Any) -> Operator:
    """A function of `scipy.special`, of its own name or another one, that generated code has as well."""
    scalar = f"{name}({', '.join(f'{{{one}}}' for one in operands.split())})"
    return elementwise(
        name, operands, numpy=_scipys(function or name), scalar=scalar, cost=2 * TRANSCENDENTAL, **fields
    )  # fmt: skip


def _nothing_of(a: Array, b: Array, lowest: float) -> Array:
    """Where a is 0 and b no positive argument of a logarithm: the product with it has the slope 0 by a."""
    return logical_and(equal(a, 0.0), less_equal(b, lowest))


xlogy = elementwise(
    "xlogy", "a b", numpy=_scipys("xlogy"), cost=TRANSCENDENTAL,
    scalar="0.0 if ({a} == 0.0) & ({b} == {b}) else {a} * log({b})",
    vjp={
        "a": lambda g, a, b: where(_nothing_of(a, b, 0.0), 0.0, g * log(b)),
        "b": lambda g, a, b: g * (a / b),
    },
    domain=(0.2, 3.0), doc="a * log(b), 0 where a is 0; the derivatives there are PyTorch's",
)  # fmt: skip
xlog1py = elementwise(
    "xlog1py", "a b", numpy=_scipys("xlog1py"), cost=TRANSCENDENTAL, grad_fn="SpecialXlog1Py",
    scalar="0.0 if ({a} == 0.0) & ({b} == {b}) else {a} * log1p({b})",
    vjp={
        "a": lambda g, a, b: where(_nothing_of(a, b, -1.0), 0.0, g * log1p(b)),
        "b": lambda g, a, b: g * (a / (b + 1.0)),
    },
    domain=(0.2, 3.0), doc="a * log1p(b), 0 where a is 0; the derivatives there are PyTorch's",
)  # fmt: skip
entr = elementwise(
    "entr", numpy=_scipys("entr"), cost=TRANSCENDENTAL, grad_fn="SpecialEntr",
    scalar="-{x} * log({x}) if {x} > 0.0 else (-inf if {x} < 0.0 else {x})",
    vjp={"x": lambda g, x: g * (-1.0 - log(x))}, domain=(0.2, 3.0), doc="-x log(x), 0 at 0, -inf below",
)  # fmt: skip
logit = elementwise(
    "logit", numpy=_scipys("logit"), cost=TRANSCENDENTAL, scalar="log({x} / (1.0 - {x}))",
    vjp={"x": lambda g, x: where(less_equal(absolute(x - 0.5), 0.5), g / (x * (1.0 - x)), math.nan)},
    domain=(0.1, 0.9), doc="log(x / (1 - x))",
)  # fmt: skip
binary_cross_entropy = elementwise(
    "binary_cross_entropy", "p t", cost=2 * TRANSCENDENTAL,
    numpy=lambda p, t: (t - 1) * np.maximum(np.log1p(-p), -100) - t * np.maximum(np.log(p), -100),
    scalar="({t} - 1.0) * maximum(log1p(-{p}), -100.0) - {t} * maximum(log({p}), -100.0)",
    vjp={
        "p": lambda g, p, t: g * ((p - t) / maximum(p * (1.0 - p), 1e-12)),
        "t": lambda g, p: g * (maximum(log1p(-p), -100.0) - maximum(log(p), -100.0)),
    },
    domain=(0.1, 0.9),
    doc="-(t log(p) + (1 - t) log(1 - p)), with PyTorch's bounds of logarithms and slopes",
)  # fmt: skip


def no_rule(function: str, operand: str) -> NoReturn:
    raise GradientError(f"The derivative of {function} with respect to its {operand} is not supported.")


def over(y: Array, x: Array, slope: float = 0.5) -> Array:
    """y / x for an odd y of this slope at 0."""
    at_zero = equal(x, 0.0)
    return where(at_zero, slope, y / where(at_zero, 1.0, x))


erfinv = of_scipy(
    "erfinv", vjp={"x": lambda g, y: g * (HALF_SQRT_PI * exp(y * y))},
    domain=(-0.9, 0.9),
    torch="erfinv special.erfinv", scipy="erfinv", doc="the inverse of the error function (DLMF 7.17)",
)  # fmt: skip


def less_than_one(x: Array, y: Array, sense: float) -> Array:
    """2 x y - 1 for a y of which 1 / (2 x) is left for large x, where it is a series (DLMF 7.12.1, 7.12.2).

    `sense` is that of its terms: -1 where they alternate, as of erfcx, and 1 where not, as of dawsn.
    """
    square = x * x
    is_large = greater(square, 400.0)
    inverse = 0.5 / where(is_large, square, 400.0)
    series: Array = 1.0
    for odd in range(17, 1, -2):
        series = 1.0 + sense * odd * inverse * series
    return where(is_large, sense * inverse * series, 2.0 * x * y - 1.0)


def _slope_of_erfcx(x: Array, y: Array) -> Array:
    """For negative x there is nothing to lose."""
    is_right = greater(x, 0.0)
    of_right = less_than_one(where(is_right, x, 0.0), HALF_SQRT_PI * y, -1.0) / HALF_SQRT_PI
    return where(is_right, of_right, 2.0 * x * y - 1.0 / HALF_SQRT_PI)


erfcx = of_scipy(
    "erfcx", vjp={"x": lambda g, x, y: g * _slope_of_erfcx(x, y)}, grad_fn="SpecialErfcx",
    torch="special.erfcx", scipy="erfcx", doc="exp(x * x) erfc(x) (DLMF 7.2.2)",
)  # fmt: skip


def slope_of_log_ndtr(x: Array, y: Array) -> Array:
    """The density over the distribution function: in the left tail both are products with exp(-x * x / 2)."""
    is_right = greater(x, 0.0)
    right, left = where(is_right, x, 0.0), where(is_right, 0.0, x)
    of_right = exp(where(is_right, -0.5 * right * right - y, 0.0)) / SQRT_TWO_PI
    return where(is_right, of_right, SQRT_TWO_OVER_PI / erfcx(-math.sqrt(0.5) * left))


ndtri = of_scipy(
    "ndtri", vjp={"x": lambda g, y: g * (SQRT_TWO_PI * exp(0.5 * y * y))},
    domain=(0.05, 0.95), grad_fn="SpecialNdtri",
    torch="special.ndtri", scipy="ndtri",
    doc="the quantile of the normal distribution, the inverse of DLMF 7.20.1",
)  # fmt: skip
log_ndtr = of_scipy(
    "log_ndtr",
    vjp={"x": lambda g, x, y: g * slope_of_log_ndtr(x, y)}, grad_fn="SpecialLogNdtr",
    torch="special.log_ndtr", scipy="log_ndtr",
    doc="the logarithm of the normal distribution function (DLMF 7.20.1)",
)  # fmt: skip
i0 = of_scipy(
    "i0", vjp={"x": lambda g, x: g * i1(x)},
    torch="i0 special.i0 special.modified_bessel_i0", scipy="i0",
    doc="the modified Bessel function I_0 (DLMF 10.25.2)",
)  # fmt: skip
i0e = of_scipy(
    "i0e", vjp={"x": lambda g, x, y: g * (i1e(x) - sign(x) * y)},
    grad_fn="SpecialI0E",
    torch="special.i0e", scipy="i0e", doc="`exp(-|x|) I_0(x)` (DLMF 10.25.2)",
)  # fmt: skip
i1 = of_scipy(
    "i1", vjp={"x": lambda g, x, y: g * (i0(x) - over(y, x))},
    grad_fn="SpecialI1",
    torch="special.i1 special.modified_bessel_i1", scipy="i1",
    doc="the modified Bessel function I_1 (DLMF 10.25.2)",
)  # fmt: skip
i1e = of_scipy(
    "i1e", vjp={"x": lambda g, x, y: g * (i0e(x) - over(y, x) - sign(x) * y)},
    grad_fn="SpecialI1E",
    torch="special.i1e", scipy="i1e", doc="`exp(-|x|) I_1(x)` (DLMF 10.25.2)",
)  # fmt: skip
zeta = of_scipy(
    "zeta", "x q", domain=(1.2, 3.0), grad_fn="SpecialZeta",
    vjp={
        "x": lambda g, x, q: -g * zeta_moment(x, q, order=1),
        "q": lambda g, x, q: -g * x * zeta(x + 1.0, q),
    },
    torch="special.zeta", example=("tensor([2.0]), tensor([1.0])", "tensor([1.6449])"),
    doc="the Hurwitz zeta function, the sum of (k + q) ** -x (DLMF 25.11.1)",
)  # fmt: skip


def _zeta_moment(x: np.ndarray, q: np.ndarray, order: int) -> np.ndarray:
    """The sum of log(k + q)**order (k + q)**-x, by the formula of Euler and Maclaurin (DLMF 25.11.5)."""
    x, q = np.broadcast_arrays(np.asarray(x, float), np.asarray(q, float))
    with np.errstate(all="ignore"):
        terms = q[..., None] + np.arange(SHIFT)
        total = (np.log(terms) ** order * terms ** -x[..., None]).sum(-1)
        at, rest = q + SHIFT, x - 1.0
        logarithm = np.log(at)
        integral, factor = 0.0, 1.0
        for power in range(order, -1, -1):
            integral = integral + factor * logarithm**power / rest ** (order - power + 1)
            factor *= power
        total = total + integral * at**-rest + 0.5 * logarithm**order * at**-x
        # Derivatives of a polynomial of log t times t**-s are of that form: its coefficients change.
        coefficients: list[Any] = [0.0] * order + [1.0]
        for degree in range(1, 2 * len(BERNOULLI)):
            slopes = [*(place * one for place, one in enumerate(coefficients[1:], 1)), 0.0]
            coefficients = [a - (x + degree - 1) * one for a, one in zip(slopes, coefficients)]
            if degree % 2:
                value: Any = 0.0
                for one in reversed(coefficients):
                    value = value * logarithm + one
                number = BERNOULLI[degree // 2] / math.factorial(degree + 1)
                total = total - number * value * at ** -(x + degree)
    return np.asarray(total)


zeta_moment = eager(
    "zeta_moment", "x q", domain=(1.2, 3.0),
    numpy=lambda x, q, order: _zeta_moment(x, q, order),
    vjp={
        "x": lambda g, x, q, order: -g * zeta_moment(x, q, order=order + 1),
        "q": lambda g, x, q, order: g * (
            order * zeta_moment(x + 1.0, q, order=order - 1) - x * zeta_moment(x + 1.0, q, order=order)
        ),
    },
    doc="the sum of log(k + q)**order (k + q)**-x, of order 1 on (DLMF 25.11.17)",
)  # fmt: skip


def _zeta_slope(x: Array) -> Array:
    """Far below 0 by the reflection of Riemann's function (DLMF 25.4.1), where the sum loses its digits."""
    is_low = less(x, -0.5)
    high, low = where(is_low, 2.0, x), where(is_low, x, -1.0)
    other, turn = 1.0 - low, 0.5 * math.pi * low
    value, slope = 1.0 + zetac(other), zeta_moment(other, 0.0 * x + 1.0, order=1)
    sine = sin(turn) * ((math.log(2.0 * math.pi) - digamma(other)) * value + slope)
    factor = 2.0 * exp((low - 1.0) * math.log(2.0 * math.pi) + lgamma(other))
    reflected = factor * (sine + 0.5 * math.pi * cos(turn) * value)
    return where(is_low, reflected, -zeta_moment(high, 0.0 * x + 1.0, order=1))


zetac = eager(
    "zetac", numpy="zetac", scipy="zetac", domain=(1.2, 3.0),
    vjp={"x": lambda g, x: g * _zeta_slope(x)},
    doc="Riemann's zeta function less 1 (DLMF 25.2.1)",
)  # fmt: skip


# --- the logarithm of gamma and its derivatives ---------------------------------------------------------


def _lgamma(x: np.ndarray) -> np.ndarray:
    """SciPy's, with C's value at -inf (C11, F.9.5.3)."""
    return np.where(x == -np.inf, np.inf, special_value("gammaln", x))


lgamma = elementwise(
    "lgamma", numpy=_lgamma, scalar="lgamma({x})", cost=2 * TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * digamma(x)}, domain=(0.3, 4.0),
    torch="lgamma special.lgamma special.gammaln", scipy="gammaln",
    doc="`log |gamma(x)|` (DLMF 5.2)",
)  # fmt: skip
digamma = elementwise(
    "digamma", numpy=lambda x: special_value("digamma", x), scalar="digamma({x})",
    cost=2 * TRANSCENDENTAL, vjp={"x": lambda g, x: g * trigamma(x)}, domain=(0.3, 4.0),
    torch="digamma special.digamma special.psi", scipy="psi",
    doc="the derivative of lgamma (DLMF 5.2.2)",
)  # fmt: skip
trigamma = elementwise(
    "trigamma", numpy=lambda x: scipy_special().polygamma(1, x).astype(x.dtype), scalar="trigamma({x})",
    cost=2 * TRANSCENDENTAL, grad_fn="Polygamma", domain=(0.3, 4.0),
    vjp={"x": lambda g, x: g * polygamma(x, n=2)}, doc="the derivative of digamma (DLMF 5.15)",
)  # fmt: skip

# --- polygamma: in compiled code as well --------------------------------------------------------------------

SHIFT = 24
"""Terms that are summed before the asymptotic series, which so begins at x + 24."""
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _polygamma(x: Array, n: int) -> Array:
    """-(-1)**n n! zeta(n + 1, x), by the formula of Euler and Maclaurin (DLMF 25.11.5); nan below -12."""
    order, rank = n + 1.0, len(x.shape)
    places = convert(type(x).apply(iota, (), {"size": SHIFT, "dtype": INT64}), dtype=x.dtype)
    terms = power_constant(reshape(x, shape=(*x.shape, 1)) + places, exponent=-order)
    at = x + float(SHIFT)
    series = 1.0 / n + 0.5 / at
    factor = order
    for place, number in enumerate(BERNOULLI, 1):
        series = series + (number * factor / math.factorial(2 * place)) * power_constant(
            at, exponent=-2.0 * place
        )
        factor *= (order + 2 * place - 1) * (order + 2 * place)
    rest = series * power_constant(at, exponent=-float(n))
    total = sum_(terms, dims=(rank,), keepdim=False) + rest
    sign_of_all = -1.0 if n % 2 == 0 else 1.0
    return where(less(x, -SHIFT / 2), math.nan, (sign_of_all * math.factorial(n)) * total)


polygamma = declare(
    "polygamma", "composite", "x", infer=lambda x, n: x, body=_polygamma,
    evaluate=lambda x, n: np.asarray(scipy_special().polygamma(n, x)).astype(x.dtype),
    vjp={"x": lambda g, x, n: g * polygamma(x, n=n + 1)}, domain=(0.3, 4.0),
    doc="the n-th derivative of digamma, for n from 1 on",
)  # fmt: skip

# --- integers and the parts of floats ---------------------------------------------------------------------

gcd = elementwise(
    "gcd", "a b", numpy=np.gcd, scalar="gcd({a}, {b})", cost=TRANSCENDENTAL, is_associative=True,
    torch="gcd", arguments=WRITTEN_OUT, doc="the greatest common divisor",
)  # fmt: skip
lcm = elementwise(
    "lcm", "a b", numpy=lambda a, b: np.abs(np.lcm(a, b)),
    scalar="abs(floor_divide({a}, gcd({a}, {b})) * {b})", cost=TRANSCENDENTAL, is_associative=True,
    torch="lcm", also="lcm", arguments=WRITTEN_OUT, doc="the least common multiple",
)  # fmt: skip
nextafter = elementwise(
    "nextafter", "a b", numpy=np.nextafter, scalar="nextafter({a}, {b})",
    vjp={"a": lambda g: g, "b": lambda g: zeros_like(g)},
    torch="nextafter", arguments=WRITTEN_OUT,
    doc="the next float from a towards b; its derivative is that of a",
)  # fmt: skip
mantissa = elementwise(
    "mantissa", numpy=lambda x: np.frexp(x)[0], scalar="mantissa({x})", grad_fn="Frexp",
    vjp={"x": lambda g, x: g * exp2(-exponent(x))},
    doc="x without its power of two, in [0.5, 1)",
)  # fmt: skip
exponent = elementwise(
    "exponent", numpy=lambda x: np.frexp(x)[1].astype(x.dtype), scalar="exponent({x})",
    doc="the power of two that frexp splits off, as a float",
)  # fmt: skip
bitwise_left_shift = elementwise(
    "bitwise_left_shift", "a b", numpy=np.left_shift, scalar="bitwise_left_shift({a}, {b})",
    torch="bitwise_left_shift", arguments=WRITTEN_OUT, doc="a << b",
)  # fmt: skip
bitwise_right_shift = elementwise(
    "bitwise_right_shift", "a b", numpy=np.right_shift, scalar="bitwise_right_shift({a}, {b})",
    torch="bitwise_right_shift", arguments=WRITTEN_OUT, doc="a >> b, the sign kept",
)  # fmt: skip
