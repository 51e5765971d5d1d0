"""Random programs: what is generated for them agrees with the interpreter, in values and in gradients.

Operators come from the table. Concrete values are carried along while a program is drawn, so that each
operand can be squashed into the operator's domain when it lies outside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from extent import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operator_cases import DERIVED_BY_PYTHON, ROWS
from operator_cases.rows import Arrays, gradient_graph

from pullback.codegen.cost.machine import REFERENCE, assuming
from pullback.codegen.nests import interior, stored
from pullback.codegen.pipeline import build_forward, build_pair
from pullback.codegen.program import Program as GeneratedCode
from pullback.codegen.rewriting import unroll
from pullback.tracer.graph import Graph, Node, make_input, make_node
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.operator import OPERATORS
from pullback.tracer.ops import elementwise as e
from pullback.tracer.spec import broadcast_shapes, spec_of
from pullback.tracer.verify import verify

JUMPS = {"sign", "floor", "ceil", "trunc", "round_half_even", "remainder", "convert", "zeros_like"}
"""A last bit decides on which side of a jump an operand is, so these agree almost always only."""
ELEMENTWISE = sorted(
    name
    for name, row in ROWS.items()
    if row.operator.family == "elementwise"
    and not row.no_rule
    and name not in JUMPS | DERIVED_BY_PYTHON
)
REDUCTIONS = ("sum", "prod", "amax", "amin", "mean", "var", "std", "logsumexp", "norm")
NEED_DISTANCE_FROM_0 = ("std", "norm")
EXTENTS = (1, 2, 3, 4, 7)
LARGEST = 400
TOLERANCE = 1e-9
AMPLIFIED = 1e-7
"""Gradients of a few operators in a row magnify the rounding of values."""


class Drawn:
    """A program as the tests take it; a failing one is shown as its graph."""

    def __init__(self, graph: Graph, arrays: Arrays) -> None:
        self.graph = graph
        self.arrays = arrays

    def __repr__(self) -> str:
        return f"{self.graph}\n{self.arrays}"


@dataclass
class Program:
    """A program as it is drawn: inputs with their arrays, and the values made so far."""

    draw: Any
    inputs: list[Node] = field(default_factory=list)
    arrays: Arrays = field(default_factory=list)
    values: list[tuple[Node, np.ndarray]] = field(default_factory=list)

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def add_input(self, array: np.ndarray) -> tuple[Node, np.ndarray]:
        node = make_input(spec_of(array), f"x_{len(self.inputs)}")
        self.inputs.append(node)
        self.arrays.append(array)
        return node, array

    def apply(
        self, name: str, *operands: tuple[Node, np.ndarray], **attributes: Any
    ) -> tuple[Node, np.ndarray]:
        operator = OPERATORS[name]
        node = make_node(operator, tuple(one for one, _ in operands), attributes)
        with np.errstate(all="ignore"):
            return node, np.asarray(operator(*(array for _, array in operands), **attributes))

    def within(
        self, operand: tuple[Node, np.ndarray], bounds: tuple[float, float]
    ) -> tuple[Node, np.ndarray]:
        """The operand itself if it lies within the bounds, else squashed between them."""
        low, high = bounds
        if np.all((low <= operand[1]) & (operand[1] <= high)):
            return operand
        squashed, squashed_array = self.apply("sigmoid", operand)
        return e.add(e.multiply(squashed, high - low), low), squashed_array * (high - low) + low

    # --- steps --------------------------------------------------------------------------------------------

    def elementwise(self) -> tuple[Node, np.ndarray] | None:
        name = self.choose(ELEMENTWISE)
        operator = OPERATORS[name]
        operands = [self.choose(self.values)]
        for _ in operator.operands[1:]:
            operands.append(self.choose([one for one in self.values if self._broadcasts(one, operands)]))
        operands = [self.within(one, operator.domain) for one in operands]
        if name == "where":
            compared = self.apply("less", operands[1], operands[2])
            return self.apply(name, compared, *operands[1:])
        attributes = {"exponent": self.choose((2, 3, -1, 0.5, 1.7, 0))} if name == "power_constant" else {}
        return self.apply(name, *operands, **attributes)

    def _broadcasts(self, one: tuple[Node, np.ndarray], others: Sequence[tuple[Node, np.ndarray]]) -> bool:
        shapes = [one[0].shape, *(node.shape for node, _ in others)]
        rank = max(map(len, shapes))
        columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes))
        fits = all(len(set(column) - {1}) <= 1 for column in columns)
        return fits and int(np.prod(broadcast_shapes(*shapes))) <= LARGEST

    def reduction(self) -> tuple[Node, np.ndarray] | None:
        name, operand = self.choose(REDUCTIONS), self.choose(self.values)
        rank = operand[0].ndim
        dims = tuple(sorted(self.draw(st.sets(st.sampled_from(range(rank)), min_size=1)))) if rank else ()
        attributes: dict[str, Any] = {"dims": dims, "keepdim": self.draw(st.booleans())}
        if name in ("var", "std"):
            attributes["correction"] = 0.0
        if name == "norm":
            attributes["order"] = self.choose((1.0, 2.0, 3.0))
        result = self.apply(name, self.within(operand, (-2.0, 2.0)), **attributes)
        too_near = name in NEED_DISTANCE_FROM_0 and not np.all(result[1] > 0.1)
        return None if too_near else result

    def movement(self) -> tuple[Node, np.ndarray]:
        operand = self.choose(self.values)
        shape = operand[0].shape
        name = self.choose(("reshape", "permute", "expand", "slice", "pad", "flip", "concatenate", "stack"))
        if name == "reshape":
            joined = (int(np.prod(shape)),)
            options = [joined, (1, *shape), (*shape, 1), tuple(reversed(shape))]
            options += [(shape[0] * shape[1], *shape[2:])] if len(shape) > 1 else []
            return self.apply(name, operand, shape=self.choose(options))
        if name == "permute":
            return self.apply(name, operand, dims=tuple(self.draw(st.permutations(range(len(shape))))))
        if name == "expand":
            return self.apply(name, operand, shape=(self.choose((1, 2)), *shape))
        if name == "slice":
            starts = tuple(self.draw(st.integers(0, extent - 1)) for extent in shape)
            steps = tuple(self.choose((1, 1, 2)) for _ in shape)
            return self.apply(name, operand, starts=starts, stops=shape, steps=steps)
        if name == "pad":
            widths = tuple((self.choose((0, 1)), self.choose((0, 2))) for _ in shape)
            return self.apply(name, operand, widths=widths, value=self.choose((0.0, 1.0)))
        if name == "flip":
            return self.apply(name, operand, dims=tuple(range(self.draw(st.integers(0, len(shape))))))
        others = [one for one in self.values if one[0].shape == shape]
        pieces = [operand, self.choose(others)]
        dim = self.draw(st.integers(0, len(shape) - (name == "concatenate"))) if shape else 0
        return self.apply("stack" if not shape else name, *pieces, dim=dim)

    def along(self) -> tuple[Node, np.ndarray] | None:
        operand = self.within(self.choose(self.values), (-2.0, 2.0))
        if not operand[0].ndim:
            return None
        name = self.choose(("cumsum", "cumprod", "softmax", "log_softmax", "linear_recurrence"))
        operands = [operand] * len(OPERATORS[name].operands)
        return self.apply(name, *operands, dim=self.draw(st.integers(0, operand[0].ndim - 1)))

    def contraction(self) -> tuple[Node, np.ndarray] | None:
        operand = self.within(self.choose(self.values), (-2.0, 2.0))
        texts = {1: ("i,i->", "i,j->ij"), 2: ("ij,kj->ik", "ij,ik->jk", "ij,ij->j"), 3: ("bij,bkj->bik",)}
        if operand[0].ndim not in texts or operand[0].spec.size > 60:
            return None
        return self.apply("contract", operand, operand, subscripts=self.choose(texts[operand[0].ndim]))

    def indexing(self) -> tuple[Node, np.ndarray] | None:
        operand = self.choose(self.values)
        if not operand[0].ndim:
            return None
        extent = operand[0].shape[0]
        positions = self.draw(st.lists(st.integers(0, extent - 1), min_size=1, max_size=4))
        indices = self.add_input(np.asarray(positions, np.int64))
        if self.draw(st.booleans()):
            return self.apply("gather", operand, indices)
        updates = self.apply("gather", operand, indices)
        if self.draw(st.booleans()):
            return self.apply("scatter_add", updates, indices, shape=operand[0].shape)
        return self.apply("index_update", operand, self.apply("sin", updates), indices)

    def neighbours(self) -> tuple[Node, np.ndarray] | None:
        """A stencil on the first dimension, or its transpose: values read, and padded, at several places."""
        operand = self.choose(self.values)
        shape = operand[0].shape
        if not shape or shape[0] < 4:
            return None
        before, whole, size = self.choose((0, 1, 2)), (0,) * (len(shape) - 1), shape[0] - 2
        starts, stops = (before, *whole), (size + before, *shape[1:])
        inside = self.apply("slice", operand, starts=starts, stops=stops, steps=(1,) * len(shape))
        inside = self.apply("sin", inside)
        terms = [self.apply("exp", inside), inside]
        total = operand
        for _ in range(self.choose((2, 5))):
            term = self.choose(terms)
            first = self.choose((0, 1, 2))
            widths = ((first, 2 - first), *((0, 0) for _ in whole))
            total = self.apply("add", self.apply("pad", term, widths=widths, value=0.0), total)
        return total


@st.composite
def programs(draw: Any, extents: tuple[int, ...] = EXTENTS, stencils: int = 0) -> Drawn:
    """A graph with one to three outputs of float64, and arrays for its inputs."""
    program = Program(draw)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    for _ in range(draw(st.integers(1, 3))):
        shape = tuple(draw(st.lists(st.sampled_from(extents), min_size=bool(stencils), max_size=3)))
        program.values.append(program.add_input(np.asarray(rng.uniform(-2.0, 2.0, shape))))
    steps = (
        program.elementwise, program.elementwise, program.elementwise, program.reduction, program.movement,
        program.along, program.contraction, program.indexing, *[program.neighbours] * stencils,
    )  # fmt: skip
    for _ in range(draw(st.integers(1, 8))):
        result = program.choose(steps)()
        if result is not None and np.isfinite(result[1]).all() and result[1].size <= LARGEST:
            program.values.append(result)
    count = min(draw(st.integers(1, 3)), len(program.values))
    outputs = tuple(node for node, _ in program.values[-count:])
    graph = verify(Graph("program", tuple(program.inputs), outputs))
    return Drawn(graph, [np.array(one) for one in program.arrays])


Run = Callable[[GeneratedCode, Arrays], Sequence[np.ndarray]]


def check(graph: Graph, arrays: Arrays, run: Run = GeneratedCode.__call__) -> None:
    """Values from the forward function alone, and values and gradients from the pair."""
    with np.errstate(all="ignore"):
        wanted = [np.asarray(one) for one in evaluate_graph(graph, arrays)]
    compare(run(build_forward(graph), arrays), wanted, TOLERANCE)

    wrt = [position for position, node in enumerate(graph.inputs) if node.spec.is_float]
    reference, connected = gradient_graph(graph, wrt)
    pair = build_pair(graph, tuple(wrt))
    cotangents = [np.cos(np.arange(one.size, dtype=float)).reshape(one.shape) for one in wanted]
    results = run(pair.forward, arrays)
    compare(results[: len(wanted)], wanted, TOLERANCE)
    sources = {"input": arrays, "output": results, "residual": results[len(wanted) :]}
    given_values = [sources[kind][position] for kind, position in pair.backward_inputs]
    given_values += [cotangents[position] for position in pair.cotangent_outputs]
    gradients = run(pair.backward, given_values)
    with np.errstate(all="ignore"):
        expected = evaluate_graph(reference, arrays + cotangents)
    assert pair.connected == tuple(position in connected for position in wrt)
    compare(gradients, expected, AMPLIFIED)


def compare(actual: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float) -> None:
    assert len(actual) == len(wanted)
    for one, other in zip(actual, map(np.asarray, wanted)):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        scale = max(1.0, float(np.abs(other).max(initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("run", [GeneratedCode.run_uncompiled, GeneratedCode.run_interpreted])
@given(programs())
@settings(max_examples=examples(100))
def test_uncompiled(run: Run, program: Drawn) -> None:
    check(program.graph, program.arrays, run)


@given(programs())
@settings(max_examples=12, derandomize=True)
def test_compiled(program: Drawn) -> None:
    """Few, and the same ones in every run: they compile once."""
    check(program.graph, program.arrays)


@given(program=programs(extents=(2, 3, 6), stencils=12))
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_decisions_that_sizes_make(program: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only large arrays are worth, on small ones: pieces, interiors, stored padding, shared memory."""
    monkeypatch.setattr(unroll, "SMALLEST_BATCH", 2)
    monkeypatch.setattr(interior, "SMALLEST_LOOP", 2)
    monkeypatch.setattr(interior, "LEAST_SHARE", 0.1)
    monkeypatch.setattr(stored, "EFFORT_TO_REPEAT", 1)
    monkeypatch.setattr(stored, "MOST_PARTS", 1)
    with assuming(replace(REFERENCE, keeping=0.02)):  # whatever is dear is kept
        check(program.graph, program.arrays, GeneratedCode.run_interpreted)
