"""Every operator of the table, evaluated by NumPy: its value, its derivatives, its inputs in odd layouts."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from operator_cases import ROWS
from operator_cases.rows import (
    Arrays,
    Case,
    Row,
    agrees,
    differentiable_positions,
    gradient_graph,
    graph_of,
)

from pullback.runtime.tape.apply import apply, wrap
from pullback.runtime.transforms import inputs
from pullback.runtime.transforms.transforms import jvp, vjp
from pullback.runtime.values.tensor import Tensor
from pullback.tracer.graph import Graph
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.ops.reduction import sum_to_shape
from pullback.tracer.spec import Spec, spec_of
from pullback.tracer.verify import verify

pytestmark = pytest.mark.part(8)

STEP = 1e-4
WEIGHTS = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
"""The five-point difference (M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 25.3.6)."""

rows = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
DIFFERENTIABLE = [row for row in ROWS.values() if not row.no_rule]
differentiable = pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)


def evaluated(row: Row, case: Case, arrays: Arrays) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(row.operator(*arrays, **case.attributes))


def expected(row: Row, case: Case, arrays: Arrays) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of the variance of one element
        return np.asarray(row.expected(*arrays, **case.attributes))


# --- values -----------------------------------------------------------------------------------------------


@rows
def test_value_shape_and_dtype(row: Row) -> None:
    for dtype in row.dtypes:
        for case in row.cases:
            arrays = row.draw(case, dtype)
            result = evaluated(row, case, arrays)
            assert spec_of(result) == row.operator.infer(*map(spec_of, arrays), **case.attributes), (
                dtype,
                case,
            )
            agrees(result, expected(row, case, arrays), row.ulps, f"{row.name} {dtype} {case}")


@pytest.mark.parametrize(
    ("row", "dtype"),
    [
        pytest.param(row, dtype, id=f"{row.name}-{dtype}")
        for row in ROWS.values()
        for dtype in ("float64", "float32")
        if row.special and dtype in row.dtypes
    ],
)
def test_special_values(row: Row, dtype: str) -> None:
    for case in row.special_cases:
        arrays = row.draw_special(case, dtype)
        actual, wanted = evaluated(row, case, arrays), expected(row, case, arrays)
        promised = row.promised(arrays)
        agrees(actual[promised], wanted[promised], row.ulps, f"{row.name} {dtype} {case}", scale=0.0)


@rows
def test_layouts(row: Row) -> None:
    """Operands that are transposed, strided, reversed or read-only give what contiguous ones give."""
    for case in row.cases:
        arrays = row.draw(case, row.dtypes[0])
        wanted = evaluated(row, case, arrays)
        for odd in layouts(arrays):
            agrees(evaluated(row, case, odd), wanted, row.ulps, f"{row.name} {case}")
            assert all(np.array_equal(one, other) for one, other in zip(odd, arrays)), (
                "operands are left alone"
            )


def layouts(arrays: Arrays) -> Iterator[Arrays]:
    yield [np.asarray(array.T.copy().T) for array in arrays]
    yield [np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array for array in arrays]
    yield [np.flip(np.flip(array).copy()) for array in arrays]
    for array in (frozen := [array.copy() for array in arrays]):
        array.flags.writeable = False
    yield frozen


# --- derivatives ------------------------------------------------------------------------------------------


def difference(
    function: Callable[[Arrays], Any], arrays: Arrays, directions: dict[int, np.ndarray]
) -> np.ndarray:
    """The derivative of a function along a direction, by differences."""
    total = 0.0
    for step, weight in WEIGHTS:
        moved = list(arrays)
        for position, direction in directions.items():
            moved[position] = arrays[position] + step * STEP * direction
        total = total + weight / STEP * function(moved)
    return np.asarray(total)


def close(actual: float, wanted: float, message: str) -> None:
    assert abs(actual - wanted) <= 1e-7 * max(1.0, abs(wanted)), f"{message}: {actual} is not {wanted}"


@differentiable
def test_rules_against_differences(row: Row) -> None:
    """<g, J v> of differences is <J^T g, v> of the rule, for each operand on its own."""
    rng = np.random.default_rng(0)
    for case in row.cases:
        arrays = row.draw(case, "float64")
        result = evaluated(row, case, arrays)
        if result.dtype != np.float64:  # of bools and integers there is none, and float32 is too coarse
            continue
        g = rng.standard_normal(result.shape)
        specs = [spec_of(array) for array in arrays]
        for position in differentiable_positions(row, arrays):
            direction = rng.standard_normal(arrays[position].shape)
            with np.errstate(all="ignore"):
                cotangent = row.operator.pull_back(
                    position, g, arrays, specs, result, spec_of(result), case.attributes
                )
            cotangent = np.asarray(sum_to_shape(cotangent, arrays[position].shape))
            assert spec_of(cotangent) == Spec(arrays[position].shape, np.dtype("float64"))
            along = difference(partial(evaluated, row, case), arrays, {position: direction})
            wanted = float(np.sum(g * along))
            if np.isfinite(result).all():
                close(float(np.sum(cotangent * direction)), wanted, f"{row.name} {case} operand {position}")


@pytest.mark.parametrize(
    ("row", "order"),
    [
        pytest.param(row, order, id=f"{row.name}-{order}")
        for row in DIFFERENTIABLE
        for order in range(1, row.order + 1)
    ],
)
def test_differentiated_graphs_against_differences(row: Row, order: int) -> None:
    """The gradient as a graph, and the gradient of its projection, along a random direction."""
    for case in row.cases:
        arrays = row.draw(case, "float64")
        graph = graph_of(row, case, arrays)
        if graph.outputs[0].dtype != np.float64 or not np.isfinite(evaluated(row, case, arrays)).all():
            continue
        check_gradient(graph, arrays, differentiable_positions(row, arrays), order, f"{row.name} {case}")


def check_gradient(graph: Graph, arrays: Arrays, positions: list[int], order: int, message: str) -> None:
    """Differentiate `order` times, each time the projection on random cotangents; compare the last one."""
    rng = np.random.default_rng(order)
    for turn in range(order):
        previous, previous_arrays = graph, arrays
        cotangents = [rng.standard_normal(output.shape) for output in graph.outputs]
        graph, wanted = gradient_graph(graph, positions)
        verify(graph)
        arrays = arrays + cotangents
        if not graph.outputs:
            return
        if turn < order - 1:
            positions = [*wanted, *range(len(previous_arrays), len(arrays))]
    with np.errstate(all="ignore"):
        gradients = evaluate_graph(graph, arrays)
    directions = {position: rng.standard_normal(arrays[position].shape) for position in wanted}

    def projected(moved: Arrays) -> float:
        with np.errstate(all="ignore"):
            values = evaluate_graph(previous, moved)
        return float(sum(np.sum(value * one) for value, one in zip(values, cotangents)))

    actual = sum(float(np.sum(one * directions[position])) for one, position in zip(gradients, wanted))
    close(actual, float(difference(projected, previous_arrays, directions)), message)


@pytest.mark.parametrize("name", ["float64", "float32"])
@differentiable
def test_gradients_keep_dtype_and_shape(row: Row, name: str) -> None:
    for case in row.cases:
        arrays = row.draw(case, name)
        graph = graph_of(row, case, arrays)
        if graph.outputs[0].dtype.kind != "f":
            continue
        gradients, wanted = gradient_graph(graph, differentiable_positions(row, arrays))
        assert [one.spec for one in gradients.outputs] == [graph.inputs[one].spec for one in wanted]


@pytest.mark.drawn(2)
@differentiable
def test_what_is_pushed_forward_is_what_is_pulled_back(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """<g, J v> of `jvp` is <J^T g, v> of `vjp`; without a way of its own it differentiates rules at zeros."""
    rng = np.random.default_rng(1)
    for case in row.cases:
        arrays = row.draw(case, "float64")
        result = evaluated(row, case, arrays)
        if result.dtype != np.float64 or not np.isfinite(result).all():
            continue
        operands = [wrap(np.asarray(array)) for array in arrays]
        for position in differentiable_positions(row, arrays):
            before, after = operands[:position], operands[position + 1 :]
            function = partial(_applied, row, case, before, after)
            direction, g = rng.standard_normal(arrays[position].shape), rng.standard_normal(result.shape)
            pulled = vjp(function, operands[position])[1](wrap(np.asarray(g)))[0]
            right = (pulled.numpy() * direction).sum()
            for push in (inputs.pushed_forward, lambda *given: None):
                with monkeypatch.context() as patch:
                    patch.setattr(inputs, "pushed_forward", push)
                    pushed = jvp(function, (operands[position],), (wrap(np.asarray(direction)),))[1]
                left = (g * pushed.numpy()).sum()
                np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg=str(case))


def _applied(row: Row, case: Case, before: list[Tensor], after: list[Tensor], x: Tensor) -> Tensor:
    return apply(row.operator, *before, x, *after, **case.attributes)
