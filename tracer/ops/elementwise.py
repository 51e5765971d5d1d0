"""Operators on one element at a time: operands of one dtype broadcast, the result has their common shape.

`scalar` is the expression of one element in generated code; functions in it come from
`codegen/vector_math`. Derivatives of special functions follow the NIST Digital Library of Mathematical
Functions (dlmf.nist.gov), sections 4 (elementary), 5 (gamma) and 7 (error functions).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError
from ..operator import (
    HOLOMORPHIC,
    OWN_RULES,
    TOGETHER,
    WRITTEN_OUT,
    Array,
    Monoid,
    Movement,
    Operator,
    declare,
    names_in_numpy,
)
from ..spec import BOOL, Spec, broadcast_shapes, complex_dtype, real_dtype
from .lazy import special_value

CHEAP, DIVISION, TRANSCENDENTAL = 1, 10, 20
"""What an operator takes, in multiplications: of vectors 10 to 20 in the time of a division or a root."""
WHOLE_DIVISION = 4
"""Of positions, by a number that the compiler knows: it multiplies."""
TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
LOG_2 = math.log(2.0)
NUMBERS = (int, float, complex)
LOG_10 = math.log(10.0)


def common_dtype(name: str, specs: tuple[Spec, ...]) -> np.dtype:
    dtypes = {spec.dtype for spec in specs}
    if len(dtypes) > 1:
        raise DTypeError(f"{name}: operands of one dtype expected, found {', '.join(map(str, specs))}.")
    return specs[0].dtype


def widest(specs: Sequence[Spec]) -> Spec | None:
    """The spec that all have but single numbers beside them; None where it takes a closer look."""
    found = specs[0]
    for spec in specs:
        if spec is not found:
            if spec.dtype is not found.dtype:
                return None
            if spec.shape != found.shape and spec.shape:
                if found.shape:
                    return None
                found = spec
    return found


def elementwise(
    name: str,
    operands: str = "x",
    *,
    numpy: Callable[..., Any],
    scalar: str,
    vjp: Mapping[str, Callable[..., Array]] | None = None,
    predicate: bool = False,
    masked: bool = False,
    real: bool = False,
    torch: str = "",
    arguments: str = "real",
    in_place: bool = True,
    also: str = "",
    **fields: Any,
) -> Operator:
    """Declare an elementwise operator; a `predicate` gives bools, a `masked` one has a bool operand first.

    A `real` one gives real numbers, also for complex ones.
    With names of `torch` it is offered under these, under what NumPy calls `numpy`, and `also` under others.
    """

    def of_result(dtype: np.dtype) -> np.dtype:
        return BOOL if predicate else real_dtype(dtype) if real else dtype

    def infer(*specs: Spec, **attributes: Any) -> Spec:
        common = None if masked else widest(specs)
        if common is not None:
            return common.with_dtype(of_result(common.dtype)) if predicate or real else common
        dtype = common_dtype(name, specs[1:] if masked else specs)
        if masked and specs[0].dtype != BOOL:
            raise DTypeError(f"{name}: the condition must be bool, found {specs[0]}.")
        shape = broadcast_shapes(*(spec.shape for spec in specs), function=name)
        return Spec(shape, of_result(dtype))

    return declare(
        name, "elementwise", operands, infer=infer, evaluate=numpy, scalar=scalar, vjp=vjp, torch=torch,
        arguments=arguments, in_place=in_place, numpy=names_in_numpy(numpy, also), **fields,
    )  # fmt: skip


def is_complex(x: Array) -> bool:
    """Whether a value, or a number, is complex."""
    if type(x) is np.ndarray:
        return x.dtype.kind == "c"
    return isinstance(x, complex) if isinstance(x, NUMBERS) else x.dtype.kind == "c"


def _sigmoid(x: np.ndarray) -> Any:
    if not is_complex(x):
        return special_value("expit", x)
    is_left = x.real < 0
    small = np.exp(np.where(is_left, x, -x))
    return np.where(is_left, small, 1.0) / (1.0 + small)


def _logaddexp(a: Any, b: Any) -> Any:
    if not is_complex(a) and not is_complex(b):
        return np.logaddexp(a, b)
    first = np.real(a) >= np.real(b)
    larger = np.where(first, a, b)
    return larger + np.log1p(np.exp(np.where(first, b, a) - larger))


# --- arithmetic -------------------------------------------------------------------------------------

add = elementwise(
    "add", "a b", numpy=np.add, scalar="{a} + {b}", noun="total",
    vjp={"a": lambda g: g, "b": lambda g: g}, is_associative=True,
    of_complex=HOLOMORPHIC, torch="add", arguments=WRITTEN_OUT, doc="a + b",
)  # fmt: skip
ADDITION = Monoid(add, lambda dtype: 0)
subtract = elementwise(
    "subtract", "a b", numpy=np.subtract, scalar="{a} - {b}", grad_fn="Sub", noun="difference",
    vjp={"a": lambda g: g, "b": lambda g: -g},
    of_complex=HOLOMORPHIC, torch="sub subtract", arguments=WRITTEN_OUT, doc="a - b",
)  # fmt: skip
multiply = elementwise(
    "multiply", "a b", numpy=np.multiply, scalar="{a} * {b}", grad_fn="Mul", noun="product",
    vjp={"a": lambda g, b: g * b, "b": lambda g, a: g * a}, is_associative=True,
    of_complex=HOLOMORPHIC,
    torch="mul multiply", arguments="number", example=("tensor([1.0, 2.0]), 3", "tensor([3., 6.])"),
    doc="a * b",
)  # fmt: skip
MULTIPLICATION = Monoid(multiply, lambda dtype: 1)
divide = elementwise(
    "divide", "a b", numpy=np.true_divide, scalar="{a} / {b}", grad_fn="Div", cost=DIVISION,
    vjp={"a": lambda g, b: g / b, "b": lambda g, a, b: -g * (a / b / b)},  # not by y: it may be written to
    domain=(0.5, 3.0), noun="quotient",
    of_complex=HOLOMORPHIC, torch="div divide", arguments=WRITTEN_OUT, doc="a / b",
)  # fmt: skip
negative = elementwise(
    "negative", numpy=np.negative, scalar="-{x}", grad_fn="Neg", noun="opposite",
    vjp={"x": lambda g: -g},
    of_complex=HOLOMORPHIC, torch="neg negative", arguments=WRITTEN_OUT, doc="-x",
)  # fmt: skip


def power_value(a: Any, b: Any) -> Any:
    """NumPy's power; integers to negative ones, which NumPy refuses, are 1 / a ** -b without its fraction."""
    try:
        return np.power(a, b)
    except ValueError:
        if np.result_type(a, b).kind != "i":
            raise
    signs = np.where(np.equal(a, 1), 1, np.where(np.equal(a, -1), 1 - 2 * np.remainder(b, 2), 0))
    return np.where(np.less(b, 0), signs, np.power(a, np.maximum(b, 0))).astype(np.result_type(a, b))


power = elementwise(
    "power", "a b", numpy=power_value, scalar="power({a}, {b})", grad_fn="Pow",
    cost=2 * TRANSCENDENTAL,
    vjp={
        "a": lambda g, a, b: (
            g * b * power(where(logical_and(equal(a, 0.0), equal(b, 0.0)), 1.0, a), b - 1.0)
        ),
        "b": lambda g, a, b, y: (
            g * y * log(where(logical_and(equal(a, 0.0), greater_equal(real_part(b), 0.0)), 1.0, a))
        ),
    },
    domain=(0.2, 2.5), noun="powered",
    of_complex=HOLOMORPHIC,
    torch="pow", also="power float_power", arguments=WRITTEN_OUT, doc="a to the power b; 0 ** 0 is 1",
)  # fmt: skip
power_constant = elementwise(
    "power_constant", "x", scalar="power({x}, {exponent})", grad_fn="Pow", cost=2 * TRANSCENDENTAL,
    numpy=lambda x, exponent: np.power(x, np.asarray(exponent, x.dtype)),
    vjp={
        "x": lambda g, x, exponent: (
            zeros_like(g) if exponent == 0 else g * (exponent * _power(x, exponent - 1))
        )
    },
    domain=(0.2, 2.5), noun="powered", of_complex=HOLOMORPHIC, doc="x to a constant power, known when traced",
)  # fmt: skip
reciprocal = elementwise(
    "reciprocal", numpy=np.reciprocal, scalar="1.0 / {x}", cost=DIVISION,
    vjp={"x": lambda g, y: -g * y * y}, domain=(0.5, 3.0), noun="inverse",
    of_complex=HOLOMORPHIC, torch="reciprocal", doc="1 / x",
)  # fmt: skip
absolute = elementwise(
    "absolute", numpy=np.absolute, scalar="abs({x})", grad_fn="Abs", real=True,
    vjp={"x": lambda g, x: scaled(g, sgn(x)) if is_complex(x) else g * sign(x)}, of_complex=OWN_RULES,
    torch="abs absolute", also="fabs", arguments="number",
    example=("tensor([-1.0, 2.0])", "tensor([1., 2.])"), doc="`|x|`; the derivative at 0 is 0",
)  # fmt: skip
floor_divide = elementwise(
    "floor_divide", "a b", numpy=np.floor_divide, scalar="floor_divide({a}, {b})", cost=WHOLE_DIVISION,
    vjp={"a": lambda g: zeros_like(g), "b": lambda g: zeros_like(g)}, domain=(0.5, 3.0),
    torch="floor_divide", arguments="number", example=("tensor([7, -7]), 2", "tensor([ 3, -4])"),
    doc="a / b, rounded to minus infinity",
)  # fmt: skip
remainder = elementwise(
    "remainder", "a b", numpy=np.remainder, scalar="remainder({a}, {b})", cost=2 * WHOLE_DIVISION,
    vjp={"a": lambda g: g, "b": lambda g, a, b: -g * floor_divide(a, b)}, domain=(0.5, 3.0),
    torch="remainder", arguments=WRITTEN_OUT, doc="a - b * floor(a / b): the sign of b",
)  # fmt: skip
maximum = elementwise(
    "maximum", "a b", numpy=np.maximum, scalar="maximum({a}, {b})", noun="larger",
    vjp={
        "a": lambda g, a, b: where(less(a, b), 0.0, where(equal(a, b), 0.5 * g, g)),
        "b": lambda g, a, b: where(less(b, a), 0.0, where(equal(a, b), 0.5 * g, g)),
    },
    is_associative=True,
    torch="maximum", arguments="number", in_place=False,
    example=("tensor([1.0, 4.0]), tensor([2.0, 3.0])", "tensor([2., 4.])"),
    doc="the larger; nan if either is, with the gradient of both; equal ones share it",
)  # fmt: skip
minimum = elementwise(
    "minimum", "a b", numpy=np.minimum, scalar="minimum({a}, {b})", noun="smaller",
    vjp={
        "a": lambda g, a, b: where(greater(a, b), 0.0, where(equal(a, b), 0.5 * g, g)),
        "b": lambda g, a, b: where(greater(b, a), 0.0, where(equal(a, b), 0.5 * g, g)),
    },
    is_associative=True,
    torch="minimum", arguments="number", in_place=False,
    example=("tensor([1.0, 4.0]), tensor([2.0, 3.0])", "tensor([1., 3.])"),
    doc="the smaller; nan if either is, with the gradient of both; equal ones share it",
)  # fmt: skip
clamp = elementwise(
    "clamp", "x low high", scalar="minimum(maximum({x}, {low}), {high})",
    numpy=lambda x, low, high: np.minimum(np.maximum(x, low), high),
    vjp={
        "x": lambda g, x, low, high: where(logical_and(greater_equal(x, low), less_equal(x, high)), g, 0.0),
        "low": lambda g, x, low, high: where(logical_and(less(x, low), less(low, high)), g, 0.0),
        "high": lambda g, x, low, high: where(
            logical_or(greater(x, high), greater_equal(low, high)), g, 0.0
        ),
    },
    torch="clamp clip", arguments=WRITTEN_OUT,
    doc="x held between low and high; passes the gradient on both bounds",
)  # fmt: skip

# --- roots, exponentials, logarithms -------------------------------------------------------------------

sqrt = elementwise(
    "sqrt", numpy=np.sqrt, scalar="sqrt({x})", cost=DIVISION, vjp={"x": lambda g, y: 0.5 * g / y},
    domain=(0.2, 3.0), noun="root",
    of_complex=HOLOMORPHIC, torch="sqrt", note="nan for negative numbers.", doc="the square root",
)  # fmt: skip
rsqrt = elementwise(
    "rsqrt", numpy=lambda x: np.reciprocal(np.sqrt(x)), scalar="rsqrt({x})", cost=2 * DIVISION,
    vjp={"x": lambda g, y: -0.5 * g * y * y * y}, domain=(0.2, 3.0),
    of_complex=HOLOMORPHIC, torch="rsqrt", doc="1 / sqrt(x)",
)  # fmt: skip
cbrt = elementwise(
    "cbrt", numpy=np.cbrt, scalar="cbrt({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, y: g / (3.0 * y * y)}, domain=(0.2, 3.0),
    torch="cbrt", in_place=False, doc="the cube root",
)  # fmt: skip
square = elementwise(
    "square", numpy=np.square, scalar="{x} * {x}", grad_fn="Pow",
    vjp={"x": lambda g, x: g * (2.0 * x)},
    of_complex=HOLOMORPHIC, torch="square", arguments=WRITTEN_OUT, doc="x * x",
)  # fmt: skip
exp = elementwise(
    "exp", numpy=np.exp, scalar="exp({x})", cost=TRANSCENDENTAL, vjp={"x": lambda g, y: g * y},
    of_complex=HOLOMORPHIC, torch="exp", doc="e ** x",
)  # fmt: skip
exp2 = elementwise(
    "exp2", numpy=np.exp2, scalar="exp2({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, y: g * (y * LOG_2)},
    of_complex=HOLOMORPHIC, torch="exp2 special.exp2", doc="2 ** x",
)  # fmt: skip
expm1 = elementwise(
    "expm1", numpy=np.expm1, scalar="expm1({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, y: g * (y + 1.0)},
    of_complex=HOLOMORPHIC, torch="expm1 special.expm1", doc="e ** x - 1, exact near 0",
)  # fmt: skip
log = elementwise(
    "log", numpy=np.log, scalar="log({x})", cost=TRANSCENDENTAL, vjp={"x": lambda g, x: g / x},
    domain=(0.2, 3.0),
    of_complex=HOLOMORPHIC, torch="log", note="-inf at 0, nan below.", doc="the natural logarithm",
)  # fmt: skip
log2 = elementwise(
    "log2", numpy=np.log2, scalar="log2({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g / (x * LOG_2)}, domain=(0.2, 3.0),
    of_complex=HOLOMORPHIC, torch="log2", doc="the logarithm to base 2",
)  # fmt: skip
log10 = elementwise(
    "log10", numpy=np.log10, scalar="log10({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g / (x * LOG_10)}, domain=(0.2, 3.0),
    of_complex=HOLOMORPHIC, torch="log10", doc="the logarithm to base 10",
)  # fmt: skip
log1p = elementwise(
    "log1p", numpy=np.log1p, scalar="log1p({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g / (x + 1.0)}, domain=(-0.7, 3.0), grad_fn="Log1P",
    of_complex=HOLOMORPHIC, torch="log1p special.log1p", doc="log(1 + x), exact near 0",
)  # fmt: skip
logaddexp = elementwise(
    "logaddexp", "a b", numpy=_logaddexp, also="logaddexp", cost=3 * TRANSCENDENTAL, of_complex=HOLOMORPHIC,
    scalar="{a} if {a} == {b} and abs({a}) == inf else maximum({a}, {b}) + log1p(exp(-abs({a} - {b})))",
    vjp={"a": lambda g, a, b: g * sigmoid(a - b), "b": lambda g, a, b: g * sigmoid(b - a)},
    is_associative=True,
    torch="logaddexp", in_place=False, example=("tensor([0.0]), tensor([0.0])", "tensor([0.6931])"),
    doc="log(exp(a) + exp(b)) without overflow",
)  # fmt: skip

# --- trigonometric and hyperbolic -----------------------------------------------------------------------

sin = elementwise(
    "sin", numpy=np.sin, scalar="sin({x})", cost=TRANSCENDENTAL, vjp={"x": lambda g, x: g * cos(x)},
    of_complex=HOLOMORPHIC, torch="sin", doc="the sine, of radians",
)  # fmt: skip
cos = elementwise(
    "cos", numpy=np.cos, scalar="cos({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: -g * sin(x)},
    of_complex=HOLOMORPHIC, torch="cos", doc="the cosine, of radians",
)  # fmt: skip
tan = elementwise(
    "tan", numpy=np.tan, scalar="tan({x})", cost=2 * TRANSCENDENTAL,
    vjp={"x": lambda g, y: g * (1.0 + y * y)}, domain=(-1.2, 1.2),
    of_complex=HOLOMORPHIC, torch="tan", doc="the tangent, of radians",
)  # fmt: skip
asin = elementwise(
    "asin", numpy=np.arcsin, scalar="asin({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * rsqrt(1.0 - x * x)}, domain=(-0.9, 0.9),
    of_complex=HOLOMORPHIC, torch="asin arcsin", doc="the arc sine, in radians",
)  # fmt: skip
acos = elementwise(
    "acos", numpy=np.arccos, scalar="acos({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: -g * rsqrt(1.0 - x * x)}, domain=(-0.9, 0.9),
    of_complex=HOLOMORPHIC, torch="acos arccos", doc="the arc cosine, in radians",
)  # fmt: skip
atan = elementwise(
    "atan", numpy=np.arctan, scalar="atan({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g / (1.0 + x * x)},
    of_complex=HOLOMORPHIC, torch="atan arctan", doc="the arc tangent, in radians",
)  # fmt: skip
atan2 = elementwise(
    "atan2", "a b", numpy=np.arctan2, scalar="atan2({a}, {b})", cost=TRANSCENDENTAL,
    vjp={
        "a": lambda g, a, b: g * (b / _squared_distance(a, b)),
        "b": lambda g, a, b: g * (-a / _squared_distance(a, b)),
    },
    domain=(0.3, 3.0),
    torch="atan2 arctan2", example=("tensor([1.0]), tensor([-1.0])", "tensor([2.3562])"),
    doc="the angle of the point (b, a), in radians; the derivatives at the origin are 0",
)  # fmt: skip
sinh = elementwise(
    "sinh", numpy=np.sinh, scalar="sinh({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * cosh(x)},
    of_complex=HOLOMORPHIC, torch="sinh", doc="the hyperbolic sine",
)  # fmt: skip
cosh = elementwise(
    "cosh", numpy=np.cosh, scalar="cosh({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * sinh(x)},
    of_complex=HOLOMORPHIC, torch="cosh", doc="the hyperbolic cosine",
)  # fmt: skip
tanh = elementwise(
    "tanh", numpy=np.tanh, scalar="tanh({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, y: g * (1.0 - y * y)},
    of_complex=HOLOMORPHIC, torch="tanh nn.functional.tanh", doc="the hyperbolic tangent",
)  # fmt: skip
asinh = elementwise(
    "asinh", numpy=np.arcsinh, scalar="asinh({x})", cost=2 * TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * rsqrt(x * x + 1.0)},
    of_complex=HOLOMORPHIC, torch="asinh arcsinh", doc="the inverse hyperbolic sine",
)  # fmt: skip
acosh = elementwise(
    "acosh", numpy=np.arccosh, scalar="acosh({x})", cost=2 * TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * (rsqrt(x - 1.0) * rsqrt(x + 1.0) if is_complex(x) else rsqrt(x * x - 1.0))},
    domain=(1.2, 4.0),
    of_complex=HOLOMORPHIC, torch="acosh arccosh", doc="the inverse hyperbolic cosine",
)  # fmt: skip
atanh = elementwise(
    "atanh", numpy=np.arctanh, scalar="atanh({x})", cost=2 * TRANSCENDENTAL,
    vjp={"x": lambda g, x: g / (1.0 - x * x)}, domain=(-0.9, 0.9),
    of_complex=HOLOMORPHIC, torch="atanh arctanh", doc="the inverse hyperbolic tangent",
)  # fmt: skip
hypot = elementwise(
    "hypot", "a b", numpy=np.hypot, scalar="hypot({a}, {b})", cost=2 * DIVISION,
    vjp={"a": lambda g, a, y: g * (a / y), "b": lambda g, b, y: g * (b / y)}, domain=(0.3, 3.0),
    is_associative=True,
    torch="hypot", example=("tensor([3.0]), tensor([4.0])", "tensor([5.])"),
    doc="sqrt(a*a + b*b) without overflow",
)  # fmt: skip
modulus = elementwise(
    "modulus", "a b", numpy=lambda a, b: np.hypot(a, b), scalar="hypot({a}, {b})", cost=2 * DIVISION,
    vjp={
        "a": lambda g, a, y: g * (a / where(equal(y, 0.0), 1.0, y)),
        "b": lambda g, b, y: g * (b / where(equal(y, 0.0), 1.0, y)),
    },
    domain=(0.3, 3.0), doc="`|a + ib|`, whose derivative at 0 is 0",
)  # fmt: skip

# --- activations and special functions -------------------------------------------------------------------

sigmoid = elementwise(
    "sigmoid", numpy=_sigmoid, scalar="sigmoid({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, y: g * (y * (1.0 - y))},
    of_complex=HOLOMORPHIC, torch="sigmoid pullback.expit special.expit nn.functional.sigmoid", scipy="expit",
    doc="1 / (1 + exp(-x))",
)  # fmt: skip
softplus = elementwise(
    "softplus", numpy=lambda x: np.logaddexp(x, np.zeros((), x.dtype)), scalar="softplus({x})",
    cost=2 * TRANSCENDENTAL, vjp={"x": lambda g, x: g * sigmoid(x)}, doc="log(1 + exp(x)) without overflow",
)  # fmt: skip
relu = elementwise(
    "relu", numpy=lambda x: np.maximum(x, np.zeros((), x.dtype)), scalar="maximum({x}, 0.0)",
    vjp={"x": lambda g, y: where(less_equal(y, 0.0), 0.0, g)},
    torch="relu", arguments=WRITTEN_OUT, doc="max(x, 0); the derivative at 0 is 0",
)  # fmt: skip
erf = elementwise(
    "erf", numpy=lambda x: special_value("erf", x), scalar="erf({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * (TWO_OVER_SQRT_PI * exp(-(x * x)))},
    torch="erf special.erf", scipy="erf", doc="the error function (DLMF 7.2.1)",
)  # fmt: skip
erfc = elementwise(
    "erfc", numpy=lambda x: special_value("erfc", x), scalar="erfc({x})", cost=TRANSCENDENTAL,
    vjp={"x": lambda g, x: g * (-TWO_OVER_SQRT_PI * exp(-(x * x)))},
    torch="erfc special.erfc", scipy="erfc", doc="1 - erf(x), exact in the tail (DLMF 7.2.2)",
)  # fmt: skip

# --- steps: their derivative is zero almost everywhere ----------------------------------------------------

sign = elementwise(
    "sign", numpy=np.sign, scalar="sign({x})", vjp={"x": lambda g: zeros_like(g)},
    torch="sign", arguments=WRITTEN_OUT, doc="-1, 0 or 1; nan for nan",
)  # fmt: skip


def _rounding(name: str, torch: str, result: str, doc: str) -> Operator:
    return elementwise(
        name, numpy=getattr(np, name), scalar=f"{name}({{x}})", vjp={"x": lambda g: zeros_like(g)},
        torch=torch, arguments="rounding", example=("tensor([1.7, -1.2])", f"tensor({result})"), doc=doc,
    )  # fmt: skip


floor = _rounding("floor", "floor", "[ 1., -2.]", "rounded down")
ceil = _rounding("ceil", "ceil", "[ 2., -1.]", "rounded up")
trunc = _rounding("trunc", "trunc fix", "[ 1., -1.]", "rounded to zero")
round_half_even = elementwise(
    "round_half_even", numpy=np.rint, scalar="round_half_even({x})", grad_fn="Round",
    vjp={"x": lambda g: zeros_like(g)},
    torch="round", arguments=WRITTEN_OUT, doc="rounded to the nearest integer, halves to the even one",
)  # fmt: skip

# --- comparison and logic -----------------------------------------------------------------------------


def _comparison(name: str, symbol: str, torch: str, number: int, result: str, **fields: Any) -> Operator:
    return elementwise(
        name, "a b", numpy=getattr(np, name), scalar=f"{{a}} {symbol} {{b}}", predicate=True, torch=torch,
        arguments="number", example=(f"tensor([1, 2]), {number}", f"tensor({result})"), doc=f"a {symbol} b",
        **fields,
    )  # fmt: skip


def _connective(name: str, symbol: str, doc: str, *, is_logical: bool) -> Operator:
    return elementwise(
        name, "a b", numpy=getattr(np, name), scalar=f"{{a}} {symbol} {{b}}", predicate=is_logical,
        is_associative=True, torch=name, arguments="truth" if is_logical else WRITTEN_OUT, doc=doc,
    )  # fmt: skip


equal = _comparison("equal", "==", "eq", 2, "[False,  True]", of_complex=HOLOMORPHIC)
not_equal = _comparison("not_equal", "!=", "ne not_equal", 2, "[ True, False]", of_complex=HOLOMORPHIC)
less = _comparison("less", "<", "lt less", 2, "[ True, False]")
less_equal = _comparison("less_equal", "<=", "le less_equal", 1, "[ True, False]")
greater = _comparison("greater", ">", "gt greater", 1, "[False,  True]")
greater_equal = _comparison("greater_equal", ">=", "ge greater_equal", 2, "[False,  True]")
isnan = elementwise(
    "isnan", numpy=np.isnan, scalar="{x} != {x}", predicate=True,
    of_complex=HOLOMORPHIC, torch="isnan", arguments="test", in_place=False, doc="whether x is nan",
)  # fmt: skip
isinf = elementwise(
    "isinf", numpy=np.isinf, scalar="abs({x}) == inf", predicate=True,
    of_complex=HOLOMORPHIC, torch="isinf", arguments="test", in_place=False, doc="whether x is infinite",
)  # fmt: skip
isfinite = elementwise(
    "isfinite", numpy=np.isfinite, scalar="abs({x}) < inf", predicate=True,
    of_complex=HOLOMORPHIC,
    torch="isfinite", arguments="test", in_place=False, doc="neither infinite nor nan",
)  # fmt: skip
logical_and = _connective("logical_and", "&", "both, of bools", is_logical=True)
CONJUNCTION = Monoid(logical_and, lambda dtype: True)
logical_or = _connective("logical_or", "|", "either, of bools", is_logical=True)
logical_xor = _connective("logical_xor", "^", "one, of bools", is_logical=True)
logical_not = elementwise(
    "logical_not", numpy=np.logical_not, scalar="not {x}", predicate=True,
    torch="logical_not", arguments="truth", doc="the opposite, of bools",
)  # fmt: skip
bitwise_and = _connective("bitwise_and", "&", "a & b of integers", is_logical=False)
bitwise_or = _connective("bitwise_or", "|", "a | b of integers", is_logical=False)
bitwise_xor = _connective("bitwise_xor", "^", "a ^ b of integers", is_logical=False)
bitwise_not = elementwise(
    "bitwise_not", numpy=np.bitwise_not, scalar="~{x}",
    torch="bitwise_not", arguments=WRITTEN_OUT, doc="~x of integers",
)  # fmt: skip
where = elementwise(
    "where", "condition a b", numpy=np.where, scalar="{a} if {condition} else {b}", masked=True,
    vjp={
        "a": lambda g, condition: where(condition, g, 0.0),
        "b": lambda g, condition: where(condition, 0.0, g),
    },
    noun="chosen", of_complex=HOLOMORPHIC, doc="a where the condition holds, else b",
)  # fmt: skip

# --- dtype and identity --------------------------------------------------------------------------------

convert = declare(
    "convert", "elementwise", "x",
    infer=lambda x, dtype: Spec(x.shape, dtype),
    evaluate=lambda x, dtype: np.asarray(x).astype(dtype),
    scalar="{dtype}({x})", grad_fn="ToCopy", noun="converted", of_complex=OWN_RULES,
    linear=TOGETHER,
    vjp={"x": lambda g, x_spec: returned(g, x_spec.dtype)},
    doc="x in another dtype",
)  # fmt: skip
identity = elementwise(
    "identity",
    numpy=np.copy,
    scalar="{x}",
    grad_fn="Clone",
    vjp={"x": lambda g: g},
    of_complex=HOLOMORPHIC,
    doc="x itself, as a new value",
)
zeros_like = elementwise(
    "zeros_like", numpy=np.zeros_like, scalar="0.0", of_complex=HOLOMORPHIC, doc="zero, of x's shape"
)
stop_gradient = elementwise(
    "stop_gradient", numpy=np.copy, scalar="{x}", of_complex=HOLOMORPHIC, doc="x, with no gradient through it"
)
in_place_of = elementwise(
    "in_place_of",
    "former x",
    numpy=lambda former, x: np.copy(x),
    scalar="{x}",
    vjp={"former": lambda g: g},
    of_complex=HOLOMORPHIC,
    doc="x, with the gradient of what it has overwritten where nothing was recorded",
)


def _squared_distance(a: Array, b: Array) -> Array:
    """From the origin, where it is 1 in place of 0, so that one may divide by it."""
    squares = a * a + b * b
    return where(equal(squares, 0.0), 1.0, squares)


def _power(x: Array, exponent: float) -> Array:
    """x ** exponent in the simplest operator for it."""
    if exponent == 0:
        return zeros_like(x) + 1.0
    if exponent == 1:
        return x
    return multiply(x, x) if exponent == 2 else power_constant(x, exponent=exponent)


# --- complex numbers ------------------------------------------------------------------------------------


def _of_parts(
    name: str, operands: str = "x", *, dtype: Callable[[np.dtype], np.dtype], **fields: Any
) -> Operator:
    """Declare an operator on the parts of complex numbers; `dtype` is that of its result."""

    def infer(*specs: Spec) -> Spec:
        shape = broadcast_shapes(*(spec.shape for spec in specs), function=name)
        return Spec(shape, dtype(common_dtype(name, specs)))

    return declare(name, "complex", operands, infer=infer, of_complex=OWN_RULES, **fields)


real = _of_parts(
    "real", dtype=real_dtype, evaluate=lambda x: x.real, vjp={"x": lambda g: complex_of(g, zeros_like(g))},
    movement=Movement(is_view=True), doc="the real part",
)  # fmt: skip
imag = _of_parts(
    "imag", dtype=real_dtype, evaluate=lambda x: x.imag, vjp={"x": lambda g: complex_of(zeros_like(g), g)},
    movement=Movement(is_view=True), doc="the imaginary part",
)  # fmt: skip


def _complex_of(re: Any, im: Any) -> np.ndarray:
    re, im = np.broadcast_arrays(re, im)
    result = np.empty(re.shape, complex_dtype(re.dtype))
    result.real, result.imag = re, im
    return result


complex_of = _of_parts(
    "complex_of", "re im", dtype=complex_dtype, evaluate=_complex_of, grad_fn="Complex",
    vjp={"re": lambda g: real(g), "im": lambda g: imag(g)}, doc="the complex numbers with these parts",
)  # fmt: skip
conjugate = _of_parts(
    "conjugate", dtype=complex_dtype, evaluate=np.conjugate, grad_fn="Conj",
    vjp={"x": lambda g: conjugate(g)}, doc="the conjugate of a complex number",
)  # fmt: skip
sgn = _of_parts(
    "sgn", dtype=complex_dtype, evaluate=np.sign, vjp={"x": lambda g, x, y: _turned(g, x, y)},
    doc="`x / |x|` of a complex number, 0 of 0",
)  # fmt: skip
angle = _of_parts(
    "angle", dtype=real_dtype, evaluate=np.angle,
    vjp={"x": lambda g, x: scaled(g, 1j * x / where(equal(x, 0.0), 1.0, x * conjugate(x)))},
    doc="the angle of a complex number, in radians; the derivative at 0 is 0",
)  # fmt: skip


def real_part(x: Array) -> Array:
    """The real part of what may be complex, or a number."""
    if isinstance(x, int | float | complex):
        return x.real
    return real(x) if is_complex(x) else x


def conjugated(x: Array) -> Array:
    """The conjugate of what may be complex."""
    return conjugate(x) if is_complex(x) else x


def scaled(a: Array, b: Array) -> Array:
    """a * b, of which one may be complex and the other real."""
    if is_complex(a) and not is_complex(b):
        b = convert(b, dtype=_dtype_of(a))
    elif is_complex(b) and not is_complex(a):
        a = convert(a, dtype=_dtype_of(b))
    return a * b


def returned(g: Array, dtype: np.dtype) -> Array:
    """A cotangent in the dtype of what it belongs to: of real numbers the real part alone counts."""
    return convert(g if dtype.kind == "c" else real_part(g), dtype=dtype)


def _dtype_of(x: Array) -> np.dtype:
    return np.dtype(getattr(x.dtype, "numpy", x.dtype))


def _turned(g: Array, x: Array, y: Array) -> Array:
    """What changes the angle alone: a change along x leaves its direction."""
    size, along = absolute(x), real(g * conjugate(y))
    is_nothing = equal(size, 0.0)
    return scaled(g - scaled(along, y), where(is_nothing, 0.0, 1.0 / where(is_nothing, 1.0, size)))
