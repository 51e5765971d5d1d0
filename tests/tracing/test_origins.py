"""Where values come from: of a user's file those functions are read that are asked for."""

import ast
import linecache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.values.memory_order import reshaped_in_place
from pullback.tracer.graph import Node, make_input
from pullback.tracer.ops.elementwise import exp
from pullback.tracer.ops.movement import slice_
from pullback.tracer.origin import Origin, current_origin
from pullback.tracer.spec import Spec
from pullback.tracer.trace import Trace, tracing

PROGRAM = """
def in_a_function():
    found = current_origin()
    return found

def decorated(decorator):
    @decorator(current_origin())
    def function():
        inner = (
            current_origin()
        )
        return inner
    return function

one = current_origin(); other = current_origin()
"""


@pytest.fixture
def module() -> ModuleType:
    made = ModuleType("program")
    vars(made)["current_origin"] = current_origin
    linecache.cache["program.py"] = len(PROGRAM), None, PROGRAM.splitlines(keepends=True), "program.py"
    exec(compile(PROGRAM, "program.py", "exec"), vars(made))
    return made


def test_values_have_the_line_and_the_variable(module: ModuleType) -> None:
    assert (module.one.line, module.one.target, module.other.target) == (15, "one", "other")
    assert module.in_a_function() == Origin("program.py", 3, "found = current_origin()", "found")
    places: list[Origin] = []
    function = module.decorated(lambda place: places.append(place) or (lambda function: function))
    assert places[0].text == "@decorator(current_origin())"
    assert (function().target, function().text) == ("inner", "inner = (")
    assert function() is function()


def test_of_a_file_those_functions_are_read_that_are_asked_for(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[ast.AST] = []
    walk = ast.walk
    monkeypatch.setattr(ast, "walk", lambda tree: walked.append(tree) or walk(tree))
    linecache.cache["again.py"] = linecache.cache["program.py"]
    exec(compile(PROGRAM, "again.py", "exec"), vars(module))
    walked.clear()
    assert module.in_a_function().target == "found"
    assert [type(one) for one in walked] == [ast.FunctionDef]


def test_a_node_of_a_user_and_one_of_an_operator_have_the_users_line() -> None:
    x = make_input(Spec((3,), np.dtype(float)), "x")
    y = Node.apply(exp, (x,), {})
    z = exp(x)
    assert y.origin.text == "y = Node.apply(exp, (x,), {})" and y.name == "y"
    assert z.origin.text == "z = exp(x)" and z.name == "z"


def test_of_a_row_nobody_asks_how_it_lies() -> None:
    with tracing(Trace("f")) as trace:
        x = make_input(Spec((4, 3), np.dtype(float)), "x")
        row = slice_(x, starts=(1, 0), stops=(2, 3), steps=(1, 1))
        assert reshaped_in_place(row, (3,)) and not trace.strides
        assert reshaped_in_place(row, (3, 1, 1)) and reshaped_in_place(x, (12,)) and trace.strides


def test_a_line_whose_text_nobody_has_is_named_alone() -> None:
    names: dict[str, Any] = {}
    exec("def doubled(x):\n    return x * 2.0", names)
    source = pb.compile(names["doubled"]).source(np.ones(3))
    assert "# <string>:2\n" in source


def test_code_knows_nothing_of_the_line_that_calls_it() -> None:
    def squares(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total += x[i] ** 2
        return total

    slope = pb.grad(pb.compile(squares))
    pair_of_the_caller = slope(np.ones(20))
    assert "pair_of_the_caller" not in slope.source() + str(slope.graph()) and len(pair_of_the_caller) == 20
