"""Graphs that break a rule are caught, with a message that shows where; nodes never change."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pullback.codegen.passes import run_passes
from pullback.tracer import verify as verifying
from pullback.tracer.errors import GraphError
from pullback.tracer.graph import (
    Graph,
    Labels,
    Node,
    constant,
    make_input,
    name_results,
    new_node,
    node_names,
    rebuild,
    relabel,
    toposort,
    with_operands,
)
from pullback.tracer.loop import make_loop
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.contraction import contract
from pullback.tracer.ops.control import loop_result
from pullback.tracer.origin import UNKNOWN, Origin, located_at
from pullback.tracer.spec import Spec
from pullback.tracer.verify import checked, verify

FLOAT = np.dtype("float64")
VECTOR, NUMBER = Spec((3,), FLOAT), Spec((), FLOAT)
LINE = Origin("/home/user/model.py", 5, "h = np.tanh(x)", "h")


def given(name: str, spec: Spec = VECTOR) -> Node:
    return make_input(spec, name)


def exp(x: Node) -> Node:
    """Without a name."""
    return new_node(e.exp, (x,), {}, x.spec)


def tanh(x: Node, spec: Spec = VECTOR, attributes: Any = None, serial: int = 0) -> Node:
    return new_node(e.tanh, (x,), attributes or {}, spec, LINE, "h", serial)


def unlisted_input() -> Graph:
    x = given("x")
    return Graph("f", (), (tanh(x),))


def input_listed_twice() -> Graph:
    x = given("x")
    return Graph("f", (x, x), (tanh(x),))


def computed_input() -> Graph:
    x = given("x")
    return Graph("f", (x, tanh(x)), (x,))


def result_before_its_operand() -> Graph:
    x = given("x")
    between = exp(x)
    return Graph("f", (x,), (tanh(between, serial=between.serial - 1),))


def another_spec() -> Graph:
    x = given("x")
    return Graph("f", (x,), (exp(tanh(x, Spec((4,), FLOAT))),))


def operands_that_do_not_fit() -> Graph:
    x, y = given("x"), given("y", Spec((4,), FLOAT))
    return Graph("f", (x, y), (new_node(e.add, (x, y), {}, VECTOR, LINE, "h"),))


def attribute_that_is_missing() -> Graph:
    x = given("x")
    return Graph("f", (x,), (new_node(r.sum_, (x,), {"dims": (0,)}, NUMBER, LINE, "h"),))


def array_as_attribute() -> Graph:
    x = given("x")
    return Graph("f", (x,), (tanh(x, attributes={"steps": (1, np.ones(3))}),))


def node_as_attribute() -> Graph:
    x = given("x")
    return Graph("f", (x,), (tanh(x, attributes={"other": given("y")}),))


def body_that_reaches_outside() -> Graph:
    x, carry = given("x"), given("carry")
    body = Graph("step", (carry,), (carry + e.exp(x),))
    return Graph("f", (x,), (make_loop(body, [x], [], [], 4).result(0),))


def broken_body() -> Graph:
    x, carry = given("x"), given("carry")
    body = Graph("step", (carry,), (tanh(tanh(carry, Spec((4,), FLOAT))),))
    return Graph("f", (x,), (make_loop(body, [x], [], [], 4).result(0),))


def another_spec_of_a_result() -> Graph:
    x, carry = given("x"), given("carry")
    loop = make_loop(Graph("step", (carry,), (carry + 1.0,)), [x], [], [], 4)
    attributes = {"index": 0, "spec": NUMBER}
    return Graph("f", (x,), (new_node(loop_result, (loop.node,), attributes, NUMBER, LINE, "h"),))


BROKEN: dict[str, tuple[Callable[[], Graph], str]] = {
    "unlisted input": (unlisted_input, "x is an input that the graph does not list"),
    "input listed twice": (input_listed_twice, "x is listed as an input twice"),
    "computed input": (computed_input, "h is listed as an input, and is computed"),
    "order": (result_before_its_operand, "h comes before its operand <node exp float64[3]>"),
    "spec": (another_spec, "h has the spec float64[4], and its operands give float64[3]"),
    "operands": (operands_that_do_not_fit, "h does not accept its operands"),
    "missing attribute": (attribute_that_is_missing, "h does not accept its operands"),
    "array as attribute": (array_as_attribute, "h has an attribute that is no plain value, steps="),
    "node as attribute": (node_as_attribute, "h has an attribute that is no plain value, other="),
    "outside of a body": (body_that_reaches_outside, "x is an input that the graph does not list"),
    "body": (broken_body, "has the spec float64[4], and its operands give float64[3]"),
    "spec of a result": (another_spec_of_a_result, "h has the spec float64[], and its operands give"),
}


@pytest.mark.parametrize(("make", "fault"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_graph_is_caught(make: Callable[[], Graph], fault: str) -> None:
    with pytest.raises(GraphError) as caught:
        verify(make(), "fold_constants")
    message = str(caught.value)
    assert fault in message and message.startswith("After fold_constants")
    assert sum(line.startswith("  > ") for line in message.splitlines()) == 1


def test_the_message_shows_operands_and_users_with_the_users_line() -> None:
    with pytest.raises(GraphError) as caught:
        verify(another_spec(), "simplify")
    comment = "  # model.py:5  h = np.tanh(x)"
    assert str(caught.value).splitlines() == [
        "After simplify: in the graph f, h has the spec float64[4], and its operands give float64[3], "
        "at model.py:5  h = np.tanh(x).",
        "    x: float64[3]",
        f"  > {'h: float64[4] = tanh(x)':<68}{comment}",
        "    exp_0: float64[4] = exp(h)",
    ]


def test_a_broken_body_is_said_to_be_one() -> None:
    for make in (body_that_reaches_outside, broken_body):
        with pytest.raises(GraphError, match="After simplify, in a body: in the graph step, "):
            verify(make(), "simplify")


def test_what_keeps_the_rules_is_given_back() -> None:
    x = given("x")
    graph = Graph("f", (x,), (tanh(x) + 1.0,))
    assert verify(graph) is graph


def test_a_node_that_has_been_found_right_is_looked_at_in_each_place() -> None:
    x = given("x")
    node = tanh(x)
    verify(Graph("f", (x,), (node,)))
    with pytest.raises(GraphError, match="x is an input that the graph does not list"):
        verify(Graph("g", (), (node,)))


def test_a_pass_that_breaks_a_graph_is_named() -> None:
    def forget_inputs(graph: Graph) -> Graph:
        return replace(graph, inputs=())

    x = given("x")
    with pytest.raises(GraphError, match="After forget_inputs: in the graph f, x is an input"):
        run_passes(Graph("f", (x,), (tanh(x),)), forget_inputs)


def test_nothing_is_verified_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = unlisted_input()
    monkeypatch.setattr(verifying, "CHECKING", False)
    assert checked(graph, "simplify") is graph


# --- nodes never change -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", Node.__slots__)
def test_a_node_cannot_be_written_into(name: str) -> None:
    node = tanh(given("x"))
    verify(Graph("f", node.operands, (node,)))
    before = getattr(node, name)
    with pytest.raises(AttributeError, match="never changes"):
        setattr(node, name, before)
    with pytest.raises(AttributeError, match="never changes"):
        delattr(node, name)
    assert getattr(node, name) is before


def test_a_node_has_no_further_attributes() -> None:
    with pytest.raises(AttributeError):
        given("x").note = "mine"  # type: ignore[attr-defined]


def test_a_copy_of_a_node_is_the_node() -> None:
    node = tanh(given("x"))
    assert copy.copy(node) is node and copy.deepcopy([node]) == [node]


def test_attributes_cannot_be_written_into() -> None:
    node = constant(1.0, VECTOR)
    with pytest.raises(TypeError):
        node.attributes["value"] = 2.0  # type: ignore[index]


def test_another_name_is_another_node_in_the_same_place() -> None:
    x = given("x")
    node = tanh(x)
    other = node.named("hidden")
    assert (node.name, other.name) == ("h", "hidden") and other is not node
    assert (other.operator, other.operands, other.serial) == (node.operator, node.operands, node.serial)
    assert node.named("h") is node


def test_names_are_given_to_a_new_graph() -> None:
    x = given("x")
    inner = exp(x)
    graph = Graph("f", (x,), (tanh(inner) * inner,))
    before = str(graph)
    named = relabel(graph, Labels({inner: "size"}))
    assert "size: float64[3] = exp(x)" in str(named) and "tanh(size)" in str(named)
    assert str(graph) == before and [node.serial for node in named.nodes] == [
        node.serial for node in graph.nodes
    ]


def test_what_replaces_a_value_takes_its_name() -> None:
    """Also where it was there before, under no name, and others read it."""
    x = given("x")
    first = exp(x)
    graph = Graph("f", (x,), (exp(first), exp(tanh(x))))

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        return first if node.name == "h" else with_operands(node, operands)

    changed = verify(rebuild(graph, change))
    (renamed,) = (node for node in changed.nodes if node.operands == (x,))
    assert renamed.name == "h" and first.name == ""
    assert [output.operands[0] for output in changed.outputs] == [renamed, renamed]


def test_a_variable_names_the_last_value_of_a_call() -> None:
    x = given("x")
    step = tanh(x)
    result = new_node(e.exp, (step,), {}, VECTOR, LINE, "h")
    graph = name_results(Graph("f", (x,), (result,)))
    (named,) = graph.outputs
    assert (named.name, named.operands[0].name) == ("h", "") and step.name == "h"
    assert "nodes" in vars(graph) and [*graph.nodes] == toposort(graph.outputs)  # they need no search


def test_names_in_a_text_are_distinct() -> None:
    """Also where a name is what another one would become."""
    inputs = tuple(given(name, Spec((2, 2), FLOAT)) for name in ("x", "x_1", "x", "x", "contract_0"))
    with located_at(UNKNOWN):
        product = contract(inputs[0], inputs[1], subscripts="ij,jk->ik")
    graph = Graph("f", inputs, (product,))
    assert list(node_names(graph).values()) == ["x", "x_1", "x_2", "x_3", "contract_0", "contract_1"]
