"""Rewrites of single operators that change no bit."""

from collections.abc import Callable

import numpy as np
import pytest

from pullback.codegen.rewriting.simplify import simplify
from pullback.tracer.graph import Graph, Node, constant, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.ops import elementwise as e
from pullback.tracer.spec import Spec

VECTOR = Spec((50,), np.dtype("float64"))
ONE, NONE = (constant(value, VECTOR.with_shape(())) for value in (1.0, 0.0))


@pytest.mark.parametrize(
    ("function", "products"),
    [
        (lambda x, y: e.where(e.greater(x, NONE), ONE, NONE) * 0.5 * (y * 2.0), 1),
        (lambda x, y: e.where(e.greater(x, NONE), ONE, NONE) * 1.7, 0),
        (lambda x, y: x * 0.3 * (y * -2.0), 2),
        (lambda x, y: y * 4.0 * (x * 0.3), 2),
        (lambda x, y: x * 0.3 * (y * 0.7), 3),  # which would round otherwise
        (lambda x, y: x * (y * 2.0), 2),
    ],
)
def test_powers_of_two_go_to_other_constants(function: Callable[[Node, Node], Node], products: int) -> None:
    x, y = make_input(VECTOR, "x"), make_input(VECTOR, "y")
    graph = Graph("products", (x, y), (function(x, y),))
    found = simplify(graph)
    assert sum(node.operator is e.multiply for node in found.nodes) == products
    arrays = list(np.random.default_rng(0).standard_normal((2, 50)))
    np.testing.assert_array_equal(evaluate_graph(found, arrays)[0], evaluate_graph(graph, arrays)[0])
