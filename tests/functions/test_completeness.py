"""No operator without its row, rule, lowering, domain and doc."""

import ast
import builtins

import numpy as np
import pytest
from operator_cases import NOT_IN_THE_TABLE, ROWS
from operator_cases.rows import Row, differentiable_positions, graph_of

from pullback.codegen import whole_calls
from pullback.codegen.ir import OF_INTEGERS
from pullback.codegen.pipeline import build_forward
from pullback.codegen.vector_math import FUNCTIONS
from pullback.tracer.errors import GradientError
from pullback.tracer.operator import OPERATORS, Operator, operators

LOOSE = 16.0
OPERATORS_HERE = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS.keys())
rows = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())


def test_every_operator_has_a_row() -> None:
    assert ROWS.keys() | NOT_IN_THE_TABLE.keys() == OPERATORS.keys()
    assert not ROWS.keys() & NOT_IN_THE_TABLE.keys()


@OPERATORS_HERE
def test_doc_domain_and_name(operator: Operator) -> None:
    assert operator.doc.strip() and not operator.doc.endswith("."), "a phrase for the reference"
    assert -np.inf < operator.domain[0] < operator.domain[1] < np.inf
    assert operator.grad_fn.isidentifier() and operator.grad_fn[0].isupper()
    assert operator.cost >= 0


@rows
def test_rule_or_a_reason_why_not(row: Row) -> None:
    """Each float operand has a rule, or the row says why the operator has none, or one that refuses."""
    if row.no_rule:
        for rule in row.operator.rules.values():
            with pytest.raises(GradientError, match=row.name):
                rule.function(*rule.parameters)
        return
    for case in row.cases:
        arrays = row.draw(case, "float64")
        floats = [position for position, array in enumerate(arrays) if array.dtype.kind == "f"]
        assert differentiable_positions(row, arrays) == floats


@pytest.mark.drawn(4)
@rows
def test_lowering(row: Row) -> None:
    """Source can be generated for all its cases; of some of each operator it is run (`test_codegen.py`)."""
    for case in row.cases:
        program = build_forward(graph_of(row, case, row.draw(case, row.dtypes[0])))
        compile(program.source, row.name, "exec")


@OPERATORS_HERE
def test_scalar_expression(operator: Operator) -> None:
    """An elementwise operator says how one element is computed, with functions that exist."""
    assert (operator.scalar is not None) == (operator.family == "elementwise")
    if operator.scalar is None:
        return
    names = {name: name for name in operator.operands} | {"dtype": "float", "exponent": "2"}
    for node in ast.walk(ast.parse(operator.scalar.format(**names), mode="eval")):
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            known = node.func.id in FUNCTIONS or node.func.id in OF_INTEGERS
            assert known or hasattr(builtins, node.func.id), node.func.id


@pytest.mark.parametrize("operator", [*operators("reduction")], ids=lambda one: one.name)
def test_a_reduction_says_how_elements_combine(operator: Operator) -> None:
    """By a monoid or a search; what is combined with the identity, or compared with it, stays."""
    assert (operator.monoid is None) != (operator.search is None)
    for dtype in map(np.dtype, ROWS[operator.name].dtypes):
        found = operator.monoid or operator.search
        assert found is not None
        first = np.asarray(found.identity(dtype), dtype)
        elements = np.asarray([0, 1] if dtype.kind in "bu" else [-2, 0, 1], dtype)
        if operator.monoid:
            np.testing.assert_array_equal(operator.monoid.fold(first, elements), elements)
            np.testing.assert_array_equal(operator.monoid.fold(elements, first), elements)
        elif operator.search:
            assert not operator.search.beats(first, elements).any()


def test_what_takes_whole_matrices_calls_functions_that_exist() -> None:
    calls = [one.call for one in OPERATORS.values() if one.call is not None]
    called = {name for one in calls for name in one.functions}
    assert {name for one in calls for name in one.of_pairs} <= called
    assert called == {function.__name__ for function in whole_calls.FUNCTIONS}


def test_scans_say_what_follows_an_element() -> None:
    for operator in operators("scan"):
        assert (operator.monoid is None) == ("{before}" in (operator.recurrence or ""))


@rows
def test_row_draws_from_the_domain(row: Row) -> None:
    """Where operands are drawn from, floats give floats: the domain is one of the operator, not beyond it."""
    for case in row.cases:
        if 0 in sum((shape for shape in case.shapes), ()) or "float64" not in row.dtypes:
            continue
        result = np.asarray(row.operator(*row.draw(case, "float64"), **case.attributes))
        lone = case.attributes.get("correction") == 1.0  # the variance of one element is nan, and means it
        untouched = row.operator.monoid is not None and row.operator.family == "indexing"
        assert lone or untouched or np.isfinite(result).all(), str(case)


@rows
def test_row_covers_the_corners(row: Row) -> None:
    """0-d and empty operands, and size 1 beside others, wherever the operator takes operands."""
    shapes = [shape for case in row.cases for shape in case.shapes]
    extents = [case.attributes["extent"] for case in row.cases if "extent" in case.attributes]
    assert any(0 in shape for shape in (*shapes, extents)) or not shapes
    along_a_dimension = "dim" in row.cases[0].attributes or row.name.startswith("arg")
    walks = along_a_dimension or row.operator.family == "ordering" or row.name.startswith("diagonal")
    assert () in shapes or walks or not shapes
    assert any(1 in shape for shape in shapes) or row.operator.family != "elementwise"


@rows
def test_loose_tolerances_have_a_reason(row: Row) -> None:
    assert row.ulps <= LOOSE or row.because
