"""The meaning of a graph: each operator applied to its operands, one after another.

Slow and plain: the reference that generated code is compared with. Because operators take whatever carries
a value, the same function evaluates a graph on ndarrays, on Tensors, where it is recorded and can be
differentiated once more, and on the nodes of another graph, which splices it in: its lines stay the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from .graph import Graph, Node
from .operator import Array
from .origin import kept_at
from .trace import is_tracing

UNMOVED = nullcontext()


def evaluate_graph(graph: Graph, values: Sequence[Array]) -> tuple[Array, ...]:
    """The values of the graph's outputs, given those of its inputs in order.

    An input that is an output as well is returned itself. Raises ValueError for a wrong number of
    values; shapes and dtypes are for the caller to get right.
    """
    known: dict[Node, Array] = dict(zip(graph.inputs, values, strict=True))
    extends_a_graph = is_tracing() or any(isinstance(value, Node) for value in values)
    for node in graph.nodes:
        if extends_a_graph and not node.operands:
            known.setdefault(node, node)  # a constant is the same in every graph
        elif node not in known:
            operands = [known[operand] for operand in node.operands]
            with kept_at(node.origin) if extends_a_graph else UNMOVED:
                known[node] = node.operator(*operands, **node.attributes)
    return tuple(known[output] for output in graph.outputs)
