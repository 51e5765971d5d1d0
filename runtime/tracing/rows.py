"""`x[i]` in the body of a loop over `i`: a row that the loop takes, in place of a look-up in each step.

A row costs index arithmetic, and its cotangent is a row as well; that of a look-up is an array as large as
`x`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...tracer.graph import Graph, Node, make_input, substitute
from ...tracer.interpret import evaluate_graph
from ...tracer.ops import creation
from ...tracer.ops import elementwise as e
from ...tracer.ops.indexing import gather
from ..tape.bodies import TracedBody, as_tensor
from ..values.tensor import Tensor, make


def with_rows(
    body: TracedBody, rows: Sequence[Tensor], carries: int, length: int
) -> tuple[TracedBody, list[Tensor]]:
    """The body and the stacked operands of a loop, look-ups at positions that count the steps made rows.

    Args:
        rows: the stacked operands; the body's inputs are the carries, one row of each, and constants.
    """
    kept = body.inputs[: carries + len(rows)]
    counts = {one for one, row in zip(kept[carries:], rows) if _counts(row.payload, length)}
    if not counts:
        return body, list(rows)
    graph = body.graph("body", body.outputs[0].origin) if body.outputs else None
    constants = body.inputs[len(kept) :]
    fixed = set(constants)
    found: dict[Node, Node] = {}
    added: list[Tensor] = []
    for node in graph.nodes if graph is not None else ():
        if node.operands and all(one in fixed or one.is_constant for one in node.operands):
            fixed.add(node)
        start = _start(node, counts) if node.operator is gather and node.operands[0] in fixed else None
        if start is None or start < 0 or start + length > node.operands[0].shape[0]:
            continue
        (whole,) = evaluate_graph(Graph("outside", constants, (node.operands[0],)), body.constants)
        added.append(as_tensor(whole)[start : start + length])
        found[node] = make_input(node.spec, node.name, node.origin)
    inputs = (*kept, *found.values(), *constants)
    return TracedBody(inputs, substitute(body.outputs, found), body.constants), [*rows, *added]


def with_drawn(
    body: TracedBody, rows: Sequence[Tensor], carries: int, drawn: Mapping[Node, Node]
) -> tuple[TracedBody, list[Tensor]]:
    """The body and the stacked operands of a loop, what each step draws as rows of what all steps draw."""
    count = carries + len(rows)
    pairs = [*zip(body.inputs[count:], body.constants)]
    own = [(place, one) for place, one in pairs if one.payload in drawn]
    others = [pair for pair in pairs if pair not in own]
    inputs = (*body.inputs[:count], *(place for place, _ in (*own, *others)))
    stacks = [make(drawn[one.payload], type(one)) for _, one in own]
    return TracedBody(inputs, body.outputs, [one for _, one in others]), [*rows, *stacks]


def _counts(value: object, length: int) -> bool:
    """Whether a stacked operand is 0, 1, 2, ..."""
    return isinstance(value, Node) and value.operator is creation.iota and value.shape == (length,)


def _start(look_up: Node, counts: set[Node]) -> int | None:
    """The row that the first step looks up, if the others look up the next ones."""
    _, *positions = look_up.operands
    if len(positions) != 1 or positions[0].shape != ():
        return None
    position = positions[0]
    if position.operator is e.where and position.operands[0].operator is e.less:
        # of a negative position, which counts from the end
        position = position.operands[2]
    start = 0
    while position not in counts:
        if position.operator not in (e.add, e.subtract):
            return None
        left, right = position.operands
        if left.is_constant and position.operator is e.add:
            left, right = right, left
        if not right.is_constant:
            return None
        step = int(right.attributes["value"])
        start += step if position.operator is e.add else -step
        position = left
    return start


__all__ = ["with_drawn", "with_rows"]
