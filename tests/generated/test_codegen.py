"""Generated code computes what the operators of the table evaluate to: compiled, uncompiled, fused.

The interpreter (`evaluate_graph`) is the reference. To compile little, many rows share a graph with one
output each; a failure names the rows.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from extent import some_of
from operator_cases import DERIVED_BY_PYTHON, ROWS
from operator_cases.rows import (
    FLOATS,
    Arrays,
    Case,
    Row,
    agrees,
    differentiable_positions,
    gradient_graph,
    inputs_of,
    node_of,
)

import pullback as pb
from pullback.codegen.nests import blocking, expression
from pullback.codegen.nests.expression import children
from pullback.codegen.nests.lower import Lowering
from pullback.codegen.pipeline import Options, Pair, build_forward, build_pair
from pullback.codegen.program import Program
from pullback.codegen.writing import element
from pullback.tracer.errors import DimensionError
from pullback.tracer.graph import Graph, Node
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.verify import verify

pytestmark = pytest.mark.part(10)

GROUP = 12
SLACK = 8.0
"""Ulps for arithmetic in another order, and functions of another library, in addition to a row's own."""
rows = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())


@dataclass
class Trial:
    """A graph, the arrays to call it with, and to what each output belongs."""

    graph: Graph
    arrays: Arrays
    wrt: tuple[int, ...]
    labels: list[str]
    ulps: list[float]
    scale: float | None = None
    """The size of what is added up, where results cancel."""

    def check(
        self, results: Sequence[np.ndarray], wanted: Sequence[np.ndarray], scale: float | None = None
    ) -> None:
        """Compare the outputs; the failure names all that differ."""
        failures = []
        for result, reference, label, ulps in zip(results, wanted, self.labels, self.ulps, strict=True):
            try:
                agrees(np.asarray(result), np.asarray(reference), ulps, label, scale)
            except AssertionError as failure:
                failures.append(str(failure))
        assert not failures, "\n".join(failures)


def trial_of(
    parts: Sequence[tuple[Row, Case, Arrays]], build: Callable[[Row, Case, list[Node]], Node]
) -> Trial:
    """One graph with an output for each part."""
    arrays: Arrays = []
    inputs: list[Node] = []
    outputs, wrt, labels = [], [], []
    for number, (row, case, own) in enumerate(parts):
        nodes = inputs_of(own, f"x_{number}")
        wrt += [len(arrays) + position for position in differentiable_positions(row, own)]
        arrays += own
        inputs += nodes
        outputs.append(build(row, case, nodes))
        labels.append(f"{row.name} {case}")
    graph = Graph("trial", tuple(inputs), tuple(outputs))
    ulps = [row.ulps + SLACK if one.dtype.kind == "f" else 0.0 for (row, _, _), one in zip(parts, outputs)]
    return Trial(graph, [contiguous(array) for array in arrays], tuple(wrt), labels, ulps)


def contiguous(array: np.ndarray) -> np.ndarray:
    return np.array(array, order="C")


def interpreted(graph: Graph, arrays: Arrays) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return [np.asarray(one) for one in evaluate_graph(graph, arrays)]


Run = Callable[[Program, Arrays], Sequence[np.ndarray]]
COMPILED: tuple[Run, ...] = (Program.__call__,)
UNCOMPILED: tuple[Run, ...] = (Program.run_uncompiled, Program.run_interpreted)


def run_pair(
    pair: Pair, arrays: Arrays, count: int, cotangents: Arrays, run: Run
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(outputs, gradients) of a pair."""
    results = list(run(pair.forward, arrays))
    places = {"input": arrays, "output": results, "residual": results[count:]}
    given = [places[kind][position] for kind, position in pair.backward_inputs]
    gradients = run(pair.backward, given + [cotangents[position] for position in pair.cotangent_outputs])
    return results[:count], list(gradients)


def check_trial(trial: Trial, compiled: bool, gradients: bool) -> None:
    """Values, and where asked for gradients, against the interpreter."""
    graph, arrays = trial.graph, trial.arrays
    wanted = interpreted(graph, arrays)
    runs = COMPILED if compiled else UNCOMPILED
    if not gradients:
        program = build_forward(graph)
        for run in runs:
            trial.check(run(program, arrays), wanted, trial.scale)
        return
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(one.shape).astype(one.dtype) for one in wanted]
    reference, positions = gradient_graph(graph, trial.wrt)
    pair = build_pair(graph, trial.wrt)
    expected = interpreted(reference, arrays + cotangents)
    scale = max([1.0, *(float(np.abs(one).max(initial=0.0)) for one in expected)])
    slack = max(trial.ulps, default=0.0) + 4 * SLACK
    for run in runs:
        results, found = run_pair(pair, arrays, len(wanted), cotangents, run)
        trial.check(results, wanted, trial.scale)
        assert sum(pair.connected) == len(positions) == len(found) == len(expected)
        for position, gradient, reference_gradient in zip(positions, found, expected):
            name = graph.inputs[position].name
            agrees(gradient, reference_gradient, slack, f"gradient of {name}: {trial.labels}", scale)


def direct(row: Row, case: Case, operands: list[Node]) -> Node:
    return node_of(row, case, operands)


def chained(scale: Node, row: Row, case: Case, operands: list[Node]) -> Node:
    """The operator between elementwise ones, and a reduction after all."""
    before = [e.multiply(one, scale) if one.dtype == scale.dtype else one for one in operands]
    after = node_of(row, case, before)
    if after.dtype != scale.dtype:
        after = e.convert(after, dtype=scale.dtype)
    after = e.atan(e.multiply(after, scale))
    dims = (after.ndim - 1,) if after.ndim else ()
    return r.sum_(after, dims=dims, keepdim=False)


def check_special(parts: Sequence[tuple[Row, Case, Arrays]], compiled: bool) -> None:
    """Values on nan, infinities and the like, where the row promises them."""
    trial = trial_of(parts, direct)
    program = build_forward(trial.graph)
    places = [row.promised(arrays) for row, _, arrays in parts]
    wanted = interpreted(trial.graph, trial.arrays)
    for run in COMPILED if compiled else UNCOMPILED:
        trial.check(
            [one[place] for one, place in zip(run(program, trial.arrays), places)],
            [one[place] for one, place in zip(wanted, places)],
            scale=0.0,
        )


# --- one operator at a time, uncompiled -------------------------------------------------------------------


@rows
def test_uncompiled_values(row: Row) -> None:
    """The source run by the interpreter of Python, for every case and dtype of the row."""
    for dtype in row.dtypes:
        check_trial(
            trial_of([(row, case, row.draw(case, dtype)) for case in row.cases], direct), False, False
        )


@pytest.mark.parametrize("row", [row for row in ROWS.values() if not row.no_rule], ids=lambda row: row.name)
def test_uncompiled_gradients(row: Row) -> None:
    check_trial(trial_of([(row, case, row.draw(case, "float64")) for case in row.cases], direct), False, True)


@rows
def test_uncompiled_special_values(row: Row) -> None:
    """nan, infinities, zeros and ties give what the operator itself gives."""
    for dtype in set(row.dtypes) & {"float64", "float32"} if row.special else ():
        parts = [(row, case, row.draw_special(case, dtype)) for case in row.special_cases]
        check_special(parts, compiled=False)


@rows
def test_fused_into_a_chain(row: Row) -> None:
    """Elementwise operators before and after, then a reduction, all in one nest where that is possible."""
    cases = some_of(row.cases, row.name, count=-(-len(row.cases) // 3))
    for dtype in row.dtypes[:2]:
        has_rule = has_gradient(row, dtype) and dtype == "float64"
        check_trial(chain_of([(row, case, row.draw(case, dtype)) for case in cases], dtype), False, has_rule)


def chain_of(parts: Sequence[tuple[Row, Case, Arrays]], dtype: str) -> Trial:
    """A trial of chains, which share a scale: 0-d, and below 1 so that operands stay in their domain."""
    dtype = dtype if np.dtype(dtype).kind == "f" else "float64"
    (scale,) = inputs_of([np.asarray(0.95, dtype)], "scale")
    trial = trial_of(parts, partial(chained, scale))
    graph = verify(Graph("chain", (*trial.graph.inputs, scale), trial.graph.outputs))
    wrt = (*trial.wrt, len(trial.arrays))
    return Trial(
        graph, [*trial.arrays, np.asarray(0.95, dtype)], wrt, trial.labels, [SLACK * 8] * len(trial.ulps), 1.0
    )


# --- many operators at a time, compiled -------------------------------------------------------------------

DTYPES = ("float64", "float32", "int64", "int32", "uint8", "int8", "bool")


def grouped(parts: list[tuple[Row, Case, Arrays]], label: str) -> list[Any]:
    """Parameters of a test: the parts a dozen at a time, each dozen with a name."""
    starts = range(0, len(parts), GROUP)
    chunks = [parts[start : start + GROUP] for start in starts]
    return [
        pytest.param(chunk, id=f"{label}-{number}-{chunk[0][0].name}-to-{chunk[-1][0].name}")
        for number, chunk in enumerate(chunks)
    ]


def has_gradient(row: Row, dtype: str) -> bool:
    return not row.no_rule and np.dtype(dtype).kind == "f"


def is_derived_in_code(row: Row, dtype: str) -> bool:
    return has_gradient(row, dtype) and row.name not in DERIVED_BY_PYTHON


def is_derived_by_python(row: Row, dtype: str) -> bool:
    return has_gradient(row, dtype) and row.name in DERIVED_BY_PYTHON


def compiled_parts(
    cases: Callable[[Row, str], Iterable[Case]], draw: Callable[[Row, Case, str], Arrays] = Row.draw
) -> list[Any]:
    """Of the cases of each operator, in all dtypes, an eighth, and one at least."""
    parts: dict[str, list[tuple[Row, Case, Arrays]]] = {dtype: [] for dtype in DTYPES}
    for row in ROWS.values():
        every = [(dtype, case) for dtype in DTYPES if dtype in row.dtypes for case in cases(row, dtype)]
        for dtype, case in some_of(every, row.name, count=-(-len(every) // 8)):
            parts[dtype].append((row, case, draw(row, case, dtype)))
    return [one for dtype, found in parts.items() for one in grouped(found, dtype)]


def cases_where(wanted: Callable[[Row, str], bool]) -> Callable[[Row, str], Iterable[Case]]:
    return lambda row, dtype: row.compiled_cases(dtype) if wanted(row, dtype) else ()


def special_cases(row: Row, dtype: str) -> Iterable[Case]:
    if not row.special or dtype not in FLOATS:
        return ()
    return row.special_cases[: None if row.name == "power_constant" else 2]


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "parts",
    [*compiled_parts(cases_where(is_derived_in_code)), *compiled_parts(cases_where(is_derived_by_python))],
)
def test_compiled_values_and_gradients(parts: list[tuple[Row, Case, Arrays]]) -> None:
    check_trial(trial_of(parts, direct), compiled=True, gradients=True)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("parts", compiled_parts(cases_where(lambda *given: not has_gradient(*given))))
def test_compiled_values(parts: list[tuple[Row, Case, Arrays]]) -> None:
    """Operators without a rule, and integers and bools."""
    check_trial(trial_of(parts, direct), compiled=True, gradients=False)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("parts", compiled_parts(special_cases, Row.draw_special))
def test_compiled_special_values(parts: list[tuple[Row, Case, Arrays]]) -> None:
    """Optimised machine code keeps nan and infinities as they are."""
    check_special(parts, compiled=True)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("fastmath", [True, False])
@pytest.mark.parametrize("parallel", [None, True, False])
def test_options(fastmath: bool, parallel: bool | None) -> None:
    """Every combination of options gives the same values, to the order of sums."""
    names = ("sum", "amax", "prod", "cumsum", "argmin", "softmax", "var", "tanh", "contract", "scatter_add")
    parts = [
        (ROWS[name], case, ROWS[name].draw(case, "float64"))
        for name in names
        for case in ROWS[name].cases[:2]
    ]
    trial = trial_of(parts, direct)
    program = build_forward(trial.graph, Options(fastmath=fastmath, parallel=parallel))
    trial.check(program(trial.arrays), interpreted(trial.graph, trial.arrays))


# --- found by random programs -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5])
def test_readers_see_an_update(size: int) -> None:
    """A named value that starts as a copy and is then updated at a position: readers read the array."""
    arrays = [np.linspace(0.5, 1.0, size), np.asarray([size - 1])]
    x, position = inputs_of(arrays)
    doubled = e.multiply(x, x)
    updated = ix.index_update(doubled, e.sin(ix.gather(x, position)), position)
    trial = Trial(
        Graph("update", (x, position), (e.add(updated, doubled),)), arrays, (0,), ["update"], [SLACK]
    )
    check_trial(trial, compiled=False, gradients=False)
    check_trial(trial, compiled=False, gradients=True)


def test_a_stencil_grows_with_its_rounds() -> None:
    """Not with a power of their number: what several places read is stored once it is costly."""

    def source_of(rounds: int) -> str:
        (x,) = inputs_of([np.zeros(50)])
        u = x
        for _ in range(rounds):
            padded = m.pad(u, widths=((1, 1),), value=0.0)
            left, right = (
                m.slice_(padded, starts=(first,), stops=(first + 50,), steps=(1,)) for first in (0, 2)
            )
            u = u + 0.1 * (left - 2.0 * u + right)
        return build_forward(Graph("heat", (x,), (u,))).source

    assert len(source_of(24)) < 3 * len(source_of(12))


def test_the_parts_of_a_long_expression_are_looked_at_a_few_times_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = itertools.count()
    for module in (expression, blocking):
        monkeypatch.setattr(module, "children", lambda one: (next(counted), children(one))[1])

    def looks(rounds: int) -> int:
        x, first = inputs_of([np.ones((6, 4))])[0], next(counted)
        y = x
        for _ in range(rounds):
            y = e.add(y, e.multiply(x, y))
        assert build_forward(Graph("chain", (x,), (y,))).source
        return next(counted) - first

    assert looks(120) < 3 * looks(60)


@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_source_of_products_does_not_grow(name: str) -> None:
    """Their gradients are running products, whatever the number of factors."""

    def source_of(size: int) -> str:
        (x,) = inputs_of([np.zeros(size)])
        y = r.prod(x, dims=(0,), keepdim=False) if name == "prod" else r.cumprod(x, dim=0)
        return build_pair(Graph(name, (x,), (y,)), (0,)).backward.source

    assert len(source_of(24)) == len(source_of(99))


def test_positions_out_of_range_raise() -> None:
    """In compiled code as well, before memory beyond the array is touched."""
    arrays = [np.ones(5), np.asarray([1, 5])]
    x, position = inputs_of(arrays)
    program = build_forward(Graph("take", (x, position), (ix.gather(x, position),)))
    with pytest.raises(DimensionError, match="take: an index array holds a position that is out of range"):
        program(arrays)
    with pytest.raises(DimensionError, match="take"):
        build_pair(Graph("take", (x, position), (ix.gather(x, position),)), (0,)).forward(arrays)


@pytest.mark.drawn(6)
def test_parts_that_branches_share_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a comment names is found in time that grows with the expression, not with its paths."""
    looked_at = []

    def noted(expression: Any) -> Any:
        looked_at.append(expression)
        return children(expression)

    monkeypatch.setattr(element, "children", noted)

    def midpoint(y: Any) -> Any:
        for _ in range(4):
            slope = np.array([y[1], -y[0] * np.abs(y[1])])
            middle = y + 0.1 * slope
            y = y + 0.2 * np.array([middle[1], -middle[0] * np.abs(middle[1])])
        return y @ y

    assert "middle" in pb.compile(midpoint).forward_source(np.array([1.0, 0.5]))
    assert len(looked_at) < 20_000


@pytest.mark.drawn(6)
def test_steps_that_read_two_neighbours_are_lowered_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A binomial tree: in its reverse, each step pads two products of what the step before has padded."""

    def tree(steps: int) -> Callable[..., Any]:
        def price(v, p, d):
            for _ in range(steps):
                v = d * (p * v[:-1] + (1 - p) * v[1:])
                v = np.maximum(v, 0.3 - p * d ** np.arange(len(v)))
            return np.sum(v)

        return pb.value_and_grad(price, argnums=(0, 1, 2))

    counted = itertools.count()
    computed = Lowering.computed
    monkeypatch.setattr(Lowering, "computed", lambda *given: (next(counted), computed(*given))[1])
    arrays = np.linspace(-1.0, 2.0, 40), np.float64(0.4), np.float64(0.7)
    for found, wanted in zip(pb.compile(tree(6))(*arrays)[1], tree(6)(*arrays)[1]):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    short = next(counted)
    pb.compile(tree(18)).source(*arrays)
    assert next(counted) - short < 4 * short


def irregular(x: Any, count: int) -> Any:
    """So many parts, of which no two are alike."""
    steps = (
        lambda a, b: a * b,
        lambda a, b: a + pb.sin(b),
        lambda a, b: pb.exp(-a) * b,
        lambda a, b: a - b * b,
    )
    random, parts = np.random.default_rng(1), []
    for place in range(count):
        part = x[random.integers(10)]
        for _ in range(3 + place % 3):
            part = steps[random.integers(4)](part, x[random.integers(10)])
        parts.append(part)
    return pb.stack(parts)


@pytest.mark.drawn(6)
def test_a_choice_among_many_pieces_is_no_ladder() -> None:
    x = pb.tensor(np.linspace(0.1, 1.0, 10))
    source = pb.compile(pb.jacobian(lambda x: irregular(x, 120))).source(x)
    compile(source, "generated", "exec")  # Python indents up to 100 levels
    assert " " * 40 not in source
    slopes = pb.jacobian(lambda x: irregular(x, 20))
    np.testing.assert_allclose(pb.compile(slopes)(x).numpy(), slopes(x).numpy(), rtol=1e-13)


def test_a_recurrence_of_numbers_is_no_function_of_elements() -> None:
    x = pb.tensor(2.0, requires_grad=True)
    for function in (pb.prod, lambda x: pb.cumprod(x, 0)):
        (slope,) = pb.autograd.grad(pb.compile(function)(x), x, create_graph=True)
        assert slope == 1.0 and slope.requires_grad
