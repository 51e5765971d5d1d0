"""What a row of the table of operators is, and graphs, operands and comparisons made of one."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.codegen.derivatives.differentiate import differentiate
from pullback.tracer import ops  # noqa: F401  fills OPERATORS
from pullback.tracer.graph import Graph, Node, make_input, make_node
from pullback.tracer.operator import OPERATORS, Operator
from pullback.tracer.spec import spec_of

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
        if array.dtype.kind == "f" and row.operator.rule_for(position)
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
