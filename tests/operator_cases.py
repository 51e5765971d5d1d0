"""The table of operators: one row for each, from which the tests of operators and of generated code come.

A row has what NumPy or SciPy says an operator computes, the operands to try it on, and how far results may
differ. `test_completeness.py` fails for an operator without a row.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.special

from pullback.codegen.derivatives.differentiate import differentiate
from pullback.tracer import ops  # noqa: F401  fills OPERATORS
from pullback.tracer.graph import Graph, Node, make_input, make_node
from pullback.tracer.operator import OPERATORS, Operator
from pullback.tracer.ops.complex_parts import PARTS_OF
from pullback.tracer.spec import complex_dtype, spec_of

Shape = tuple[int, ...]
Arrays = list[np.ndarray]

FLOATS = ("float64", "float32")
NUMBERS = (*FLOATS, "int64", "int32")
EVERYTHING = (*NUMBERS, "uint8", "bool")
INTEGERS = ("int64", "int32", "int8", "uint8")

STEP = "a step: its derivative is zero wherever there is one"
PREDICATE = "its result is bool"
WHOLE = "it is for integers and bools"
POSITION = "its result is a position"
NO_OPERANDS = "it has no operands"
PART_OF_OTHERS = "operators that are made of it have rules"
CONSTANT = "its result does not depend on x"
BY_DEFINITION = "stopping the gradient is what it is for"


@dataclass(frozen=True)
class Case:
    """Shapes of the operands, attributes, and operands that are not drawn (positions, of an indexing)."""

    shapes: tuple[Shape, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[int, np.ndarray] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, shape)) or "scalar" for shape in self.shapes)
        return "-".join([shapes, *(f"{key}={value}" for key, value in self.attributes.items())])


@dataclass(frozen=True)
class Row:
    """All that the tests know of one operator."""

    name: str
    expected: Callable[..., Any]
    """(*arrays, **attributes) -> the value, by another way than the operator's own where there is one."""
    cases: tuple[Case, ...]
    dtypes: tuple[str, ...] = FLOATS
    masks: frozenset[int] = frozenset()
    """Positions of operands that are bool whatever the dtype."""
    domain: tuple[float, float] | None = None
    """Where floats are drawn from, if not from the operator's own domain."""
    integers: tuple[int, int] = (-4, 5)
    ulps: float = 8.0
    """The greatest difference, in units of the last place of the largest element, or of the result."""
    because: str = ""
    """The reason for many ulps."""
    special: bool = True
    """Whether nan, infinities, zeros and huge numbers give what `expected` gives."""
    undefined: Callable[..., np.ndarray] | None = None
    """(*arrays) -> where the value on special operands is nobody's promise."""
    refused: frozenset[int] = frozenset()
    """Positions of operands by which a derivative is refused."""
    distinct: bool = False
    """Whether drawn floats keep a distance from each other: for what has a kink where two are equal."""
    order: int = 2
    """How often it can be differentiated, at least, of the orders that are tested."""
    no_rule: str = ""
    """Why it has no derivative."""

    @property
    def operator(self) -> Operator:
        return OPERATORS[self.name]

    @property
    def bounds(self) -> tuple[float, float]:
        return self.domain or self.operator.domain

    @property
    def is_exact(self) -> bool:
        return self.ulps == 0

    def draw(self, case: Case, dtype: str, seed: int = 0) -> Arrays:
        """Operands for a case, the same in every run."""
        rng = np.random.default_rng([zlib.crc32(f"{self.name} {case}".encode()), seed])
        return [
            case.fixed[position] if position in case.fixed else self._drawn(rng, shape, position, dtype)
            for position, shape in enumerate(case.shapes)
        ]

    def _drawn(self, rng: np.random.Generator, shape: Shape, position: int, dtype: str) -> np.ndarray:
        if position in self.masks or dtype == "bool":
            return np.asarray(rng.random(shape) < 0.5)
        if np.dtype(dtype).kind == "f" and self.distinct:
            return np.asarray(rng.permutation(np.linspace(*self.bounds, math.prod(shape))), dtype).reshape(
                shape
            )
        if np.dtype(dtype).kind == "f":
            return np.asarray(rng.uniform(*self.bounds, shape), dtype)
        low, high = self.integers
        return np.asarray(rng.integers(max(low, 0) if dtype.startswith("u") else low, high, shape), dtype)

    def promised(self, arrays: Arrays) -> Any:
        """Where the value on special operands is anybody's promise."""
        with np.errstate(all="ignore"):
            return ... if self.undefined is None else ~self.undefined(*arrays)

    def draw_special(self, case: Case, dtype: str) -> Arrays:
        """Operands with nan, infinities, zeros and ties: every combination, of an elementwise operator."""
        if self.operator.family == "elementwise":
            values = special_values(dtype, len(case.shapes))
            grid = np.meshgrid(*[values] * len(case.shapes), indexing="ij")
            arrays = [np.ravel(one) for one in grid]
            return [one > 0 if position in self.masks else one for position, one in enumerate(arrays)]
        values = np.asarray([1, np.nan, 2, np.inf, 0, 2, -np.inf, -1, 2, 0, 1, 3], dtype)
        arrays = self.draw(case, dtype)
        return [
            array if position in case.fixed else np.resize(np.roll(values, position), array.shape)
            for position, array in enumerate(arrays)
        ]

    @property
    def special_cases(self) -> tuple[Case, ...]:
        """Special operands of an elementwise operator are a grid, whatever the shapes."""
        if self.operator.family != "elementwise":
            return self.cases
        by_attributes = {str(dict(case.attributes)): case for case in self.cases}
        return tuple(by_attributes.values())

    def compiled_cases(self, dtype: str) -> tuple[Case, ...]:
        """A part of the cases, for compiling takes long; in float64 more than in other dtypes."""
        if self.operator.family == "elementwise":
            wanted = COMPILED[len(self.cases[0].shapes)]
            return tuple(case for case in self.cases if case.shapes in wanted)
        return self.cases[::2] if dtype == "float64" else self.cases[1::4] or self.cases[:1]


def special_values(dtype: str, operands: int) -> np.ndarray:
    """What operators stumble over; fewer if they are combined three at a time."""
    kind = np.finfo(dtype)
    if operands > 2:
        return np.asarray([np.nan, np.inf, -np.inf, 0.0, 1.0, -2.5], dtype)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 40.0, -40.0, 1e4, -1e4]
    return np.asarray([*values, kind.max / 2, -kind.max / 2, kind.tiny, -kind.tiny], dtype)


# --- building graphs of rows ------------------------------------------------------------------------------


def node_of(row: Row, case: Case, operands: Sequence[Node]) -> Node:
    return make_node(row.operator, tuple(operands), case.attributes)


def inputs_of(arrays: Sequence[np.ndarray], stem: str = "x") -> list[Node]:
    return [make_input(spec_of(array), f"{stem}_{position}") for position, array in enumerate(arrays)]


def graph_of(row: Row, case: Case, arrays: Sequence[np.ndarray]) -> Graph:
    inputs = inputs_of(arrays)
    return Graph(row.name, tuple(inputs), (node_of(row, case, inputs),))


def differentiable_positions(row: Row, arrays: Sequence[np.ndarray]) -> list[int]:
    """The operands with a rule, and a dtype that has derivatives."""
    return [
        position
        for position, array in enumerate(arrays)
        if array.dtype.kind == "f" and position not in row.refused and row.operator.rule_for(position)
    ]


def gradient_graph(graph: Graph, positions: Sequence[int]) -> tuple[Graph, list[int]]:
    """The gradients of the outputs' projection on cotangents, further inputs; and of which inputs."""
    cotangents = [make_input(output.spec, f"g_{place}") for place, output in enumerate(graph.outputs)]
    wanted = [graph.inputs[position] for position in positions]
    total: dict[Node, Node] = {}
    for output, cotangent in zip(graph.outputs, cotangents):
        total[output] = total[output] + cotangent if output in total else cotangent
    found = differentiate(wanted, total)
    pairs = [(position, one) for position, one in zip(positions, found) if one is not None]
    gradients = Graph(f"d_{graph.name}", (*graph.inputs, *cotangents), tuple(one for _, one in pairs))
    return gradients, [position for position, _ in pairs]


def agrees(
    actual: np.ndarray, wanted: np.ndarray, ulps: float, message: str, scale: float | None = None
) -> None:
    """Assert equality of shape and dtype, and of values to so many units in the last place.

    Of each value's own, and of `scale`'s: unless given, that is the largest finite value. nan equals nan;
    the sign of zero is not compared.
    """
    assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype), message
    if actual.dtype.kind != "f" or not ulps:
        np.testing.assert_array_equal(actual, wanted, message)
        return
    eps = float(np.finfo(wanted.dtype).eps)
    if scale is None:
        scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    smallest = float(np.finfo(wanted.dtype).tiny)
    np.testing.assert_allclose(
        actual, wanted, rtol=ulps * eps, atol=ulps * (eps * scale + smallest), err_msg=message
    )


# --- shapes -----------------------------------------------------------------------------------------------

UNARY_SHAPES: tuple[Shape, ...] = ((), (1,), (67,), (3, 4), (0,), (2, 0, 3), (1, 6), (2, 1, 3), (2, 3, 4))
BINARY_SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((), ()), ((67,), (67,)), ((3, 4), (3, 4)), ((5,), ()), ((), (5,)), ((3, 1), (1, 4)), ((4,), (3, 4)),
    ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((1,), (1,)), ((1, 1), (3, 1)), ((2, 0), (1,)),
)  # fmt: skip
TERNARY_SHAPES: tuple[tuple[Shape, Shape, Shape], ...] = (
    ((), (), ()), ((67,), (67,), (67,)), ((3, 4), (), ()), ((3, 1), (1, 4), ()), ((4,), (3, 4), (3, 1)),
    ((1,), (5,), (5,)), ((0,), (1,), ()), ((2, 1, 3), (1, 4, 1), (3,)),
)  # fmt: skip
UNARY_COMPILED = [((67,),)]
BINARY_COMPILED = [((67,), (67,)), ((3, 1), (1, 4))]
TERNARY_COMPILED = [((67,), (67,), (67,)), ((4,), (3, 4), (3, 1))]
QUATERNARY_COMPILED = [2 * shapes for shapes in BINARY_COMPILED]
COMPILED = {1: UNARY_COMPILED, 2: BINARY_COMPILED, 3: TERNARY_COMPILED, 4: QUATERNARY_COMPILED}

UNARY = tuple(Case((shape,)) for shape in UNARY_SHAPES)
BINARY = tuple(Case(shapes) for shapes in BINARY_SHAPES)
TERNARY = tuple(Case(shapes) for shapes in TERNARY_SHAPES)


def unary(name: str, expected: Callable[..., Any], **fields: Any) -> Row:
    return Row(name, expected, UNARY, **fields)


def binary(name: str, expected: Callable[..., Any], **fields: Any) -> Row:
    return Row(name, expected, BINARY, **fields)


def predicate(name: str, expected: Callable[..., Any], arity: int = 2, **fields: Any) -> Row:
    fields = {"ulps": 0.0, "no_rule": PREDICATE, **fields}
    return Row(name, expected, UNARY if arity == 1 else BINARY, **fields)


def step(name: str, expected: Callable[..., Any], **fields: Any) -> Row:
    return unary(name, expected, ulps=0.0, **fields)


# --- elementwise ------------------------------------------------------------------------------------------


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
    binary("zeta", scipy.special.zeta, ulps=16, undefined=_is_not_positive, refused=frozenset({0})),
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

# --- movement ---------------------------------------------------------------------------------------------


def _moves(name: str, expected: Callable[..., Any], *cases: Case, **fields: Any) -> Row:
    return Row(name, expected, cases, dtypes=EVERYTHING, ulps=0, **fields)


def _region(x: np.ndarray, starts: Shape, stops: Shape, steps: Shape) -> tuple[slice, ...]:
    return tuple(slice(*bounds) for bounds in zip(starts, stops, steps))


def _dilated(x: np.ndarray, shape: Shape, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
    result = np.zeros(shape, x.dtype)
    result[_region(x, starts, stops, steps)] = x
    return result


def _with_diagonal(x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    return np.where(np.eye(x.shape[-1], dtype=bool), diagonal[..., None], x)


def _of_diagonal(x: np.ndarray) -> np.ndarray:
    return _with_diagonal(np.zeros((*x.shape, x.shape[-1]), x.dtype), x)


def _updated(x: np.ndarray, update: np.ndarray, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
    result = x.copy()
    result[_region(x, starts, stops, steps)] = update
    return result


def _padded(x: np.ndarray, widths: Sequence[tuple[int, int]], value: float) -> np.ndarray:
    return np.pad(x, widths, constant_values=x.dtype.type(value)) if x.ndim else x


def _flipped(x: np.ndarray, dims: Shape) -> np.ndarray:
    return x[tuple(slice(None, None, -1 if axis in dims else 1) for axis in range(x.ndim))]


def _sliced(shape: Shape, starts: Shape, stops: Shape, steps: Shape) -> Case:
    return Case((shape,), {"starts": starts, "stops": stops, "steps": steps})


REGIONS = (
    ((7,), (2,), (6,), (1,)), ((7,), (0,), (7,), (2,)), ((7,), (1,), (6,), (3,)),
    ((5, 4), (1, 0), (4, 4), (1, 1)),
    ((5, 4), (0, 1), (5, 4), (2, 2)), ((5, 4), (3, 0), (4, 1), (1, 1)), ((5,), (2,), (2,), (1,)),
    ((3, 4, 2), (0, 2, 0), (3, 4, 2), (1, 1, 1)), ((40,), (11,), (37,), (1,)),
    ((0, 3), (0, 1), (0, 2), (1, 1)), ((), (), (), ()),
)  # fmt: skip


def _region_shape(starts: Shape, stops: Shape, steps: Shape) -> Shape:
    return tuple(len(range(*bounds)) for bounds in zip(starts, stops, steps))


MOVEMENT = (
    _moves("reshape", lambda x, shape: np.ravel(x).reshape(shape), *(
        Case((before,), {"shape": after}) for before, after in (
            ((6,), (2, 3)), ((2, 3), (6,)), ((2, 3), (3, 2)), ((4, 1, 3), (4, 3)), ((4, 3), (1, 4, 1, 3)),
            ((), (1,)), ((1, 1), ()), ((0, 4), (2, 0)), ((2, 3, 4), (6, 4)), ((2, 3, 4), (2, 12)),
            ((2, 12), (2, 3, 4)), ((4, 6), (3, 8)), ((5,), (5,)), ((0,), (0, 3)),
        )
    )),
    _moves("permute", lambda x, dims: np.moveaxis(x, dims, range(len(dims))), *(
        Case((shape,), {"dims": dims}) for shape, dims in (
            ((3, 4), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 4), (0, 2, 1)), ((5,), (0,)), ((), ()),
            ((1, 4), (1, 0)), ((0, 3), (1, 0)), ((2, 3, 1, 2), (3, 1, 0, 2)),
        )
    )),
    _moves("expand", lambda x, shape: x * np.ones(shape, x.dtype), *(
        Case((before,), {"shape": after}) for before, after in (
            ((1,), (4,)), ((3, 1), (3, 4)), ((), (2, 3)), ((4,), (3, 4)), ((2, 1, 3), (2, 5, 3)),
            ((3,), (3,)), ((1, 3), (0, 3)), ((1, 1), (2, 1)), ((1, 0), (3, 0)),
        )
    ), special=False),
    _moves("slice", lambda x, **bounds: x[_region(x, **bounds)], *(_sliced(*region) for region in REGIONS)),
    _moves("dilate", _dilated, *(
        Case((_region_shape(*bounds),), {
            "shape": shape, "starts": bounds[0], "stops": bounds[1], "steps": bounds[2]
        }) for shape, *bounds in REGIONS
    )),
    _moves("slice_update", _updated, *(
        Case((shape, _region_shape(*bounds)), {
            "starts": bounds[0], "stops": bounds[1], "steps": bounds[2]
        }) for shape, *bounds in REGIONS
    )),
    _moves("pad", _padded, *(
        Case((shape,), {"widths": widths, "value": value}) for shape, widths, value in (
            ((5,), ((1, 2),), 0.0), ((3, 4), ((0, 0), (2, 0)), 1.0), ((3, 4), ((1, 1), (0, 3)), 0.0),
            ((0,), ((2, 1),), 1.0), ((), (), 0.0), ((4,), ((0, 0),), 0.0),
            ((2, 3, 2), ((0, 1), (0, 0), (1, 0)), 1.0), ((1,), ((1, 0),), 0.0), ((20,), ((12, 9),), 0.0),
        )
    )),
    _moves("concatenate", lambda *xs, dim: np.concatenate(xs, dim), *(
        Case(shapes, {"dim": dim}) for shapes, dim in (
            (((3,), (4,)), 0), (((2, 3), (2, 1), (2, 4)), 1), (((2, 3), (1, 3)), 0), (((0, 3), (2, 3)), 0),
            (((4,),), 0), (((2, 1, 3), (2, 2, 3)), 1), (((0,), (0,)), 0), (((1,), (1,), (1,)), 0),
        )
    )),
    _moves("flip", _flipped, *(
        Case((shape,), {"dims": dims}) for shape, dims in (
            ((5,), (0,)), ((3, 4), (0,)), ((3, 4), (0, 1)), ((2, 3, 4), (1,)), ((3,), ()),
            ((0, 2), (0,)), ((1, 3), (0, 1)), ((), ()),
        )
    )),
    _moves("diagonal", lambda x: np.diagonal(x, 0, -2, -1), *(
        Case((shape,)) for shape in ((4, 4), (1, 1), (0, 0), (3, 5, 5), (2, 3, 1, 1), (0, 2, 2), (40, 40))
    )),
    _moves("diagonal_matrix", _of_diagonal, *(
        Case((shape,)) for shape in ((4,), (1,), (0,), (3, 5), (2, 3, 1), (0, 2), (40,))
    )),
    _moves("diagonal_update", _with_diagonal, *(
        Case((shape, shape[:-1])) for shape in ((4, 4), (1, 1), (0, 0), (3, 5, 5), (2, 3, 1, 1), (40, 40))
    )),
    _moves("rotate", lambda x, dim, shift: np.roll(x, shift, dim), *(
        Case((shape,), {"dim": dim, "shift": shift}) for shape, dim, shift in (
            ((5,), 0, 1), ((5,), 0, -1), ((40,), 0, 3), ((40,), 0, -17), ((3, 20), 1, -1), ((20, 3), 0, 2),
            ((2, 18, 4), 1, 9), ((6,), 0, 6), ((3, 4), 0, -4), ((1, 3), 0, 1), ((3, 0), 0, 1),
        )
    )),
)  # fmt: skip

# --- reductions and scans ---------------------------------------------------------------------------------

REDUCED: tuple[tuple[Shape, Shape, bool], ...] = (
    ((67,), (0,), False), ((3, 4), (0,), False), ((3, 4), (1,), True), ((3, 4), (0, 1), False),
    ((2, 3, 4), (1,), False), ((2, 3, 4), (0, 2), True), ((2, 3, 4), (1, 2), False), ((), (), False),
    ((1, 5), (0,), False), ((3, 1), (1,), True), ((5,), (), False), ((1,), (0,), True),
    ((3, 1, 4), (0, 2), False), ((0, 3), (1,), False),
)  # fmt: skip
EMPTY_REDUCED: tuple[tuple[Shape, Shape, bool], ...] = (
    ((0,), (0,), False), ((0, 3), (0,), True), ((2, 0), (0, 1), False),
)  # fmt: skip
SUM_ULPS = 32.0
SUM_ORDER = "sums are reordered"


def _reduces(
    name: str,
    expected: Callable[..., Any],
    *,
    empty: bool = False,
    variants: Sequence[Mapping[str, Any]] = ({},),
    **fields: Any,
) -> Row:
    cases = tuple(
        Case((shape,), {"dims": dims, "keepdim": keepdim, **variant})
        for variant in variants
        for shape, dims, keepdim in (REDUCED + EMPTY_REDUCED if empty else REDUCED)
    )
    return Row(name, expected, cases, **{"ulps": SUM_ULPS, "because": SUM_ORDER, **fields})


def _one_by_one(ufunc: np.ufunc) -> Callable[..., Any]:
    """A reduction one dimension after another, the last first."""

    def reduce(x: np.ndarray, dims: Shape, keepdim: bool) -> Any:
        for dim in reversed(dims):
            x = ufunc.reduce(x, axis=dim, keepdims=keepdim, dtype=x.dtype)
        return x

    return reduce


def _logical(ufunc: np.ufunc) -> Callable[..., Any]:
    reduce = _one_by_one(ufunc)
    return lambda x, dims, keepdim: reduce(x != 0, dims, keepdim)


def _first_of(extreme: np.ufunc) -> Callable[..., Any]:
    """The first position that holds the extreme, or nan where there is one."""

    def find(x: np.ndarray, dims: Shape, keepdim: bool) -> np.ndarray:
        best = extreme.reduce(x, axis=dims[0], keepdims=True)
        found = (x == best) | ((x != x) & (best != best))
        extent = x.shape[dims[0]]
        places = np.moveaxis(
            np.broadcast_to(np.arange(extent), (*_without(x.shape, dims[0]), extent)), -1, dims[0]
        )
        return np.where(found, places, extent).min(axis=dims[0], keepdims=keepdim)

    return find


def _without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def _search(name: str, extreme: np.ufunc) -> Row:
    cases = tuple(
        Case((shape,), {"dims": (dim,), "keepdim": keepdim})
        for shape, dim, keepdim in (
            ((67,), 0, False), ((3, 4), 0, False), ((3, 4), 1, True), ((2, 3, 4), 1, False),
            ((3, 1), 1, False), ((0, 3), 1, False), ((1,), 0, True),
        )
    )  # fmt: skip
    return Row(name, _first_of(extreme), cases, dtypes=EVERYTHING, ulps=0, no_rule=POSITION)


def _sorted_positions(x: np.ndarray, stable: bool = True) -> np.ndarray:
    """By Python's sort, nan as a number above all others."""
    result = np.empty(x.shape, np.int64)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place].tolist()
        result[place] = sorted(
            range(len(row)), key=lambda at: (row[at] != row[at], row[at] if row[at] == row[at] else 0)
        )
    return result


def _sorted_values(x: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, _sorted_positions(x), -1)


def _running(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(x: np.ndarray, dim: int) -> np.ndarray:
        result = x.copy()
        lines = np.moveaxis(result, dim, 0)
        for place in range(1, len(lines)):
            lines[place] = operation(lines[place - 1], lines[place])
        return result

    return run


SCANS = tuple(
    Case((shape,), {"dim": dim})
    for shape, dim in (
        ((33,), 0),
        ((3, 4), 0),
        ((3, 4), 1),
        ((2, 3, 4), 1),
        ((1, 3), 0),
        ((0,), 0),
        ((2, 0, 3), 1),
    )
)


def _recurred(factor: np.ndarray, x: np.ndarray, dim: int) -> np.ndarray:
    """As the product with a triangular matrix, whose elements are products of factors."""
    factors, xs = np.moveaxis(factor, dim, -1), np.moveaxis(x, dim, -1)
    result = np.zeros_like(xs)
    for place in range(x.shape[dim]):
        for source in range(place + 1):
            result[..., place] += xs[..., source] * np.prod(factors[..., source + 1 : place + 1], axis=-1)
    return np.moveaxis(result, -1, dim)


ROWS_TO_SORT = tuple(
    Case((shape,)) for shape in ((33,), (3, 4), (2, 3, 5), (3, 1), (1, 4), (1,), (0,), (0, 3), (2, 0))
)
REDUCTIONS = (
    _reduces("sum", _one_by_one(np.add), empty=True, dtypes=NUMBERS),
    _reduces("prod", _one_by_one(np.multiply), empty=True, dtypes=NUMBERS),
    _reduces("amax", _one_by_one(np.maximum), dtypes=EVERYTHING, ulps=0, because="", distinct=True),
    _reduces("amin", _one_by_one(np.minimum), dtypes=EVERYTHING, ulps=0, because="", distinct=True),
    _reduces(
        "all", _logical(np.logical_and), empty=True, dtypes=("bool",), ulps=0, because="", no_rule=PREDICATE
    ),
    _reduces(
        "any", _logical(np.logical_or), empty=True, dtypes=("bool",), ulps=0, because="", no_rule=PREDICATE
    ),
    _search("argmax", np.maximum),
    _search("argmin", np.minimum),
    Row(
        "sorted_positions",
        _sorted_positions,
        tuple(Case(one.shapes, {"stable": True}) for one in ROWS_TO_SORT),
        dtypes=NUMBERS,
        ulps=0,
        no_rule=POSITION,
    ),
    Row("sorted_values", _sorted_values, ROWS_TO_SORT, dtypes=NUMBERS, ulps=0),
    Row("cumsum", _running(lambda a, b: a + b), SCANS, dtypes=NUMBERS, ulps=SUM_ULPS, because=SUM_ORDER),
    Row("cumprod", _running(lambda a, b: a * b), SCANS, dtypes=NUMBERS, ulps=SUM_ULPS, because=SUM_ORDER),
    Row(
        "linear_recurrence",
        _recurred,
        tuple(Case(case.shapes * 2, case.attributes) for case in SCANS),
        ulps=SUM_ULPS,
        because=SUM_ORDER,
        special=False,
    ),  # a product of factors is nan where 0 times inf is
)

# --- composites -------------------------------------------------------------------------------------------


def _over(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dims, keepdim, **rest: function(x, axis=dims, keepdims=keepdim, **rest)


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, correction, **rest: _over(function)(x, ddof=correction, **rest)


def _normed(x: np.ndarray, axis: Shape, keepdims: bool, order: float) -> Any:
    return np.sum(np.abs(x) ** order, axis=axis, keepdims=keepdims) ** (1 / order)


def _stacked(*xs: np.ndarray, dim: int) -> np.ndarray:
    return np.concatenate([np.expand_dims(x, dim) for x in xs], dim)


def _log_softmax(x: np.ndarray, dim: int) -> np.ndarray:
    weights = np.exp(x - x.max(axis=dim, keepdims=True, initial=-np.inf))
    return np.log(weights / weights.sum(axis=dim, keepdims=True))


ALONG = tuple(
    Case((shape,), {"dim": dim})
    for shape, dim in (
        ((5,), 0),
        ((3, 4), 0),
        ((3, 4), 1),
        ((2, 3, 4), 1),
        ((3, 1), 1),
        ((0, 3), 1),
        ((1, 4), 0),
    )
)
CORRECTIONS = ({"correction": 1.0}, {"correction": 0.0})
ORDERS = ({"order": 2.0}, {"order": 1.0}, {"order": 3.0})
COMPOSITES = (
    _reduces("mean", _over(np.mean), empty=True),
    _reduces("var", _spread(np.var), variants=CORRECTIONS),
    _reduces("std", _spread(np.std), variants=CORRECTIONS),
    _reduces("logsumexp", lambda x, dims, keepdim: np.log(np.sum(np.exp(x), axis=dims, keepdims=keepdim))),
    Row("softmax", lambda x, dim: scipy.special.softmax(x, axis=dim), ALONG, ulps=16),
    Row("log_softmax", _log_softmax, ALONG, ulps=16),
    _reduces("norm", _over(_normed), variants=ORDERS),
    Row("stack", _stacked, tuple(
        Case((shape,) * count, {"dim": dim})
        for shape, count, dim in (
            ((3,), 2, 0), ((3, 4), 3, 1), ((3, 4), 2, 2), ((), 2, 0), ((4,), 1, 0), ((0, 2), 2, 1),
        )
    ), ulps=0, dtypes=EVERYTHING),
)  # fmt: skip

# --- contraction, indexing, creation ----------------------------------------------------------------------

CONTRACTIONS = tuple(
    Case(shapes, {"subscripts": subscripts})
    for subscripts, *shapes_of in (
        (
            "ij,jk->ik",
            ((3, 4), (4, 5)),
            ((17, 13), (13, 19)),
            ((1, 4), (4, 1)),
            ((3, 0), (0, 2)),
            ((0, 4), (4, 2)),
        ),
        ("ij,j->i", ((3, 4), (4,)), ((50, 60), (60,))),
        ("i,ij->j", ((3,), (3, 4))),
        ("i,i->", ((5,), (5,)), ((1,), (1,)), ((0,), (0,))),
        ("i,j->ij", ((3,), (4,))),
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5)), ((2, 14, 13), (2, 13, 15)), ((1, 3, 4), (1, 4, 2))),
        ("bij,jk->bik", ((2, 3, 4), (4, 5)), ((3, 14, 13), (13, 15))),
        ("ij,kj->ik", ((3, 4), (5, 4)), ((15, 13), (17, 13))),
        ("ji,jk->ik", ((4, 3), (4, 5)), ((13, 15), (13, 17))),
        ("ij,jk->ki", ((3, 4), (4, 5)), ((15, 13), (13, 17))),
        ("ijk,kjl->il", ((2, 3, 4), (4, 3, 5)), ((12, 5, 6), (6, 5, 14))),
        ("abij,abjk->abik", ((2, 2, 3, 4), (2, 2, 4, 2))),
        ("ij,ij->ij", ((3, 4), (3, 4))),
        ("ij,ij->", ((3, 4), (3, 4))),
        (",->", ((), ())),
        ("bi,bj->bij", ((3, 2), (3, 4))),
    )
    for shapes in shapes_of
)


def _summed_products(a: np.ndarray, b: np.ndarray, subscripts: str) -> Any:
    return np.einsum(subscripts, a, b, optimize=False)


def _at(*positions: Any) -> np.ndarray:
    return np.asarray(positions, np.int64)


GATHERS = (
    Case(((5,), (4,)), fixed={1: _at(0, 4, 4, 2)}),
    Case(((5, 3), (2, 2)), fixed={1: _at([0, 4], [4, 2])}),
    Case(((5, 3), (4,), (4,)), fixed={1: _at(0, 4, 4, 2), 2: _at(2, 0, 0, 1)}),
    Case(((2, 3, 4), (3,)), fixed={1: _at(1, 1, 0)}),
    Case(((5, 3), ()), fixed={1: np.asarray(3)}),
    Case(((5, 3), (0,)), fixed={1: np.zeros(0, np.int64)}),
    Case(((1, 3), (2,)), fixed={1: _at(0, 0)}),
    Case(((5,), ()), fixed={1: np.asarray(2)}),
    Case(((1,), (1,)), fixed={1: _at(0)}),
    Case(((3, 2, 2), (3,), (3,)), fixed={1: _at(0, 1, 2), 2: _at(1, 1, 0)}),
)


def _scattered(updates: np.ndarray, *indices: np.ndarray, shape: Shape) -> np.ndarray:
    result = np.zeros(shape, updates.dtype)
    for place in np.ndindex(indices[0].shape):
        result[tuple(int(index[place]) for index in indices)] += updates[place]
    return result


def _combined(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    """Of an array and updates of its elements: what they are together."""

    def apply(x: np.ndarray, updates: np.ndarray, *indices: np.ndarray) -> np.ndarray:
        result = x.copy()
        for place in np.ndindex(indices[0].shape):
            at = tuple(int(index[place]) for index in indices)
            result[at] = combine(result[at], updates[place])
        return result

    return apply


def _extreme_of_all(x: np.ndarray, *others: np.ndarray, largest: bool) -> np.ndarray:
    return _combined(np.maximum if largest else np.minimum)(x, *others)


def _folded(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    """Of updates alone."""

    def apply(updates: np.ndarray, *indices: np.ndarray, shape: Shape) -> np.ndarray:
        kind = updates.dtype.kind
        limits = None if kind == "f" else np.iinfo(updates.dtype)
        lowest, highest = (limits.min, limits.max) if limits else (-np.inf, np.inf)
        first = {np.multiply: 1, np.maximum: lowest, np.minimum: highest}[ufunc]
        return _combined(ufunc)(np.full(shape, first, updates.dtype), updates, *indices)

    return apply


def _put(x: np.ndarray, updates: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    result = x.copy()
    for place in np.ndindex(indices[0].shape):
        result[tuple(int(index[place]) for index in indices)] = updates[place]
    return result


def _gathered_shape(case: Case) -> Shape:
    x, *indices = case.shapes
    return indices[0] + x[len(indices) :]


def _moved_up(case: Case) -> dict[int, np.ndarray]:
    return {position + 1: index for position, index in case.fixed.items()}


def _placed(shape: Shape, places: Sequence[np.ndarray], steps: Shape, ragged: Shape) -> Iterator[Any]:
    """Of each element of a window within the sizes, its place in the window, and in the array."""
    extents = [*shape]
    for dim, size in zip(ragged, places[len(shape) :]):
        extents[dim] = int(size)
    for place in np.ndindex(*extents):
        yield place, tuple(int(start) + step * at for start, step, at in zip(places, steps, place))


def _shown(x: np.ndarray, *places: np.ndarray, shape: Shape, steps: Shape, ragged: Shape) -> np.ndarray:
    result = np.zeros(shape, x.dtype)
    for place, source in _placed(shape, places, steps, ragged):
        result[place] = x[source]
    return result


def _surrounded(x: np.ndarray, *places: np.ndarray, shape: Shape, steps: Shape, ragged: Shape) -> np.ndarray:
    return _overwritten(np.zeros(shape, x.dtype), x, *places, steps=steps, ragged=ragged)


def _overwritten(
    x: np.ndarray, update: np.ndarray, *places: np.ndarray, steps: Shape, ragged: Shape
) -> np.ndarray:
    result = x.copy()
    for place, target in _placed(update.shape, places, steps, ragged):
        result[target] = update[place]
    return result


WINDOWS = (
    *((shape, _region_shape(*bounds), bounds[0], bounds[2], ()) for shape, *bounds in REGIONS),
    ((7,), (4,), (1, 3), (1,), (0,)), ((7,), (4,), (2, 0), (1,), (0,)), ((7,), (4,), (5,), (-1,), ()),
    ((7,), (4,), (6, 2), (-2,), (0,)), ((5, 4), (3, 2), (1, 1, 2), (1, 1), (0,)),
    ((5, 4), (1, 4), (3, 0, 3), (1, 1), (1,)), ((5, 4), (4, 4), (0, 3, 3, 4), (1, -1), (0, 1)),
)  # fmt: skip


def _windowed(before: int, places: Shape, **attributes: Any) -> tuple[dict[str, Any], dict[int, np.ndarray]]:
    """The attributes of an operator, and the places as its operands from `before` on."""
    return attributes, {before + one: np.asarray(place, np.int64) for one, place in enumerate(places)}


WINDOWED = (
    Row("within", lambda size, extent: np.asarray([place < size for place in range(extent)], bool), tuple(
        Case(((),), {"extent": extent}, {0: np.asarray(size, np.int64)})
        for extent, size in ((5, 3), (4, 0), (4, 4), (0, 0), (1, 1))
    ), dtypes=("int64",), ulps=0, special=False, no_rule=PREDICATE),
    _moves("slice_at", _shown, *(
        Case((whole, *((),) * len(places)), *_windowed(1, places, shape=part, steps=steps, ragged=ragged))
        for whole, part, places, steps, ragged in WINDOWS
    )),
    _moves("dilate_at", _surrounded, *(
        Case((part, *((),) * len(places)), *_windowed(1, places, shape=whole, steps=steps, ragged=ragged))
        for whole, part, places, steps, ragged in WINDOWS
    )),
    _moves("update_at", _overwritten, *(
        Case((whole, part, *((),) * len(places)), *_windowed(2, places, steps=steps, ragged=ragged))
        for whole, part, places, steps, ragged in WINDOWS
    )),
)  # fmt: skip
SCATTERED = {"scatter_multiply": np.multiply, "scatter_maximum": np.maximum, "scatter_minimum": np.minimum}
INTO = tuple(
    Case((shape, *(index.shape for index in (indices[0], *indices))), {}, dict(enumerate(indices, 2)))
    for shape, *indices in (
        ((5,), _at(0, 4, 4, 2)), ((5, 3), _at([0, 4], [4, 0]), _at([1, 2], [2, 1])), ((1,), _at(0)),
        ((3,), _at()), ((3,), np.asarray(1)), ((2, 2), _at([1, 1, 1]), _at([0, 1, 0])),
    )
)  # fmt: skip
INDEXING = (
    Row("gather", lambda x, *indices: x[indices], GATHERS, dtypes=EVERYTHING, ulps=0),
    Row("scatter_add", _scattered, tuple(
        Case((_gathered_shape(case), *case.shapes[1:]), {"shape": case.shapes[0]}, case.fixed)
        for case in GATHERS
    ), dtypes=NUMBERS, because=SUM_ORDER),
    *(Row(name, _folded(ufunc), tuple(
        Case((_gathered_shape(case), *case.shapes[1:]), {"shape": case.shapes[0]}, case.fixed)
        for case in GATHERS
    ), dtypes=NUMBERS, ulps=4, no_rule=PART_OF_OTHERS) for name, ufunc in SCATTERED.items()),
    Row("scatter_extreme", _extreme_of_all, tuple(
        Case(case.shapes, {"largest": largest}, case.fixed) for case in INTO for largest in (True, False)
    ), dtypes=NUMBERS, ulps=0, distinct=True),
    Row("scatter_prod", _combined(np.multiply), INTO, dtypes=NUMBERS, ulps=16, because=SUM_ORDER),
    Row("index_update", _put, tuple(
        Case((case.shapes[0], _gathered_shape(case), *case.shapes[1:]), {}, _moved_up(case)) for case in (
            *GATHERS[3:], Case(((5,), (3,)), fixed={1: _at(4, 0, 2)}),
            Case(((5, 3), (3,), (3,)), fixed={1: _at(0, 4, 2), 2: _at(2, 0, 0)}),
        )
    ), dtypes=EVERYTHING, ulps=0, order=2),
    Row("placed", _put, tuple(
        Case((case.shapes[0], _gathered_shape(case), *case.shapes[1:]), {}, _moved_up(case)) for case in (
            Case(((5,), (3,)), fixed={1: _at(4, 0, 2)}),
            Case(((5, 3), (3,), (3,)), fixed={1: _at(0, 4, 2), 2: _at(2, 0, 0)}), *GATHERS[4:6], *GATHERS[7:],
        )
    ), dtypes=EVERYTHING, ulps=0, order=2),
)  # fmt: skip
CREATION = (
    Row("full", lambda shape, value, dtype: np.ones(shape, dtype) * dtype.type(value), tuple(
        Case((), {"shape": shape, "value": value, "dtype": np.dtype(dtype)})
        for shape in ((), (3,), (2, 0), (2, 3))
        for value, dtype in ((1.5, "float32"), (2, "int64"), (True, "bool"))
    ), ulps=0, special=False, no_rule=NO_OPERANDS),
    Row("iota", lambda size, dtype: np.asarray([*range(size)], dtype), tuple(
        Case((), {"size": size, "dtype": np.dtype(dtype)})
        for size in (0, 1, 5) for dtype in ("int64", "float32")
    ), ulps=0, special=False, no_rule=NO_OPERANDS),
)  # fmt: skip

PLANE_SHAPES: tuple[tuple[Shape, ...], ...] = (
    ((67,), (67,)), ((), ()), ((3, 1), (1, 4)), ((0, 3), (1, 3)), ((1,), (5,)),
)  # fmt: skip


def _of_plane(name: str, place: int) -> Callable[..., Any]:
    """A part of NumPy's function of complex numbers."""
    function = NAMES_OF_COMPLEX.get(name) or getattr(np, name)

    def apply(*parts: np.ndarray) -> Any:
        found = function(*(_complex(re, im) for re, im in zip(parts[::2], parts[1::2])))
        return found.imag if place else found.real

    return apply


def _complex(re: np.ndarray, im: np.ndarray) -> Any:
    return re + im * np.asarray(1j, complex_dtype(re.dtype))


NAMES_OF_COMPLEX: dict[str, Callable[..., Any]] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "log1p": lambda z: np.log(1 + z),
}  # fmt: skip
PLANE = tuple(
    Row(
        operator.name, _of_plane(name, place),
        tuple(Case(shapes * (len(operator.operands) // 2)) for shapes in PLANE_SHAPES),
        ulps=16.0, because="of a part the size of the complex number counts", special=False,
    )
    for name, parts in PARTS_OF.items() for place, operator in enumerate(parts)
)  # fmt: skip

ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        *ARITHMETIC, *TRANSCENDENTAL, *STEPS, *LOGIC, *COPIES, *MOVEMENT, *REDUCTIONS, *COMPOSITES,
        Row("contract", _summed_products, CONTRACTIONS, dtypes=NUMBERS, ulps=SUM_ULPS, because=SUM_ORDER),
        *INDEXING, *WINDOWED, *CREATION, *PLANE,
    )
}  # fmt: skip
DERIVED_BY_PYTHON = frozenset(("igamma", "igammac"))
"""Operators with a form in code whose derivative by the shape has none."""
MATRICES = "of square matrices alone: tests/functions/test_linalg.py"
EAGER = "evaluated by NumPy and SciPy alone: tests/functions/test_special.py"
OF_PARTS = "of complex numbers alone: tests/functions/test_complex_operators.py"
DECOMPOSED = "of matrices: tests/functions/test_decompositions.py"
NOT_IN_THE_TABLE = {
    **{operator.name: EAGER for operator in OPERATORS.values() if operator.family == "eager"},
    **{operator.name: OF_PARTS for operator in OPERATORS.values() if operator.family == "complex"},
    **{operator.name: DECOMPOSED for operator in OPERATORS.values() if operator.family == "decomposition"},
    **dict.fromkeys(
        ("product_of_pairs", "eliminated_pairs", "eliminated_pairs_solution", "solved_pairs"),
        "of complex matrices: tests/graphs/test_split_complex.py",
    ),
    **dict.fromkeys(
        ("determined_pairs", "det_on_pairs", "sign_of_det_on_pairs", "logabsdet_on_pairs", "pinv_on_pairs"),
        DECOMPOSED,
    ),
    "matrix_exp": DECOMPOSED,
    "expm_frechet": DECOMPOSED,
    "pinv": DECOMPOSED,
    "gemm": "made by code generation alone: tests/graphs/test_contractions.py",
    "parameter": "an input has a value only in a call",
    **dict.fromkeys(
        ("jacobian", "gradient", "tangent"),
        "taken of a graph, when its trace ends: tests/gradients/test_derivatives_in_traces.py",
    ),
    "ruled": "its attributes hold graphs: tests/gradients/test_custom_rules.py",
    "loop": "its attributes hold a graph: tests/loops/test_loops.py",
    "loop_result": "of a loop alone: tests/loops/test_loops.py",
    "searchsorted": "of rows in order: tests/functions/test_sorting.py",
    "solve": MATRICES,
    "solve_factored": MATRICES,
    "lu_solve": MATRICES,
    "det": MATRICES,
    "logabsdet": MATRICES,
    "sign_of_det": MATRICES,
    "cholesky": MATRICES,
    "unit_like": MATRICES,
    "lower_half": MATRICES,
    "symmetric": MATRICES,
    "triangle": MATRICES,
    "triangular_solve": MATRICES,
    "cholesky_factor": MATRICES,
    "triangular_solution": MATRICES,
    "eliminated": MATRICES,
    "eliminated_solution": MATRICES,
    "inverse_norm": MATRICES,
    "reciprocal_condition": MATRICES,
}
