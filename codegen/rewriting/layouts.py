"""Tables in the layout in which they are read fastest: by sums over a short dimension, and by small products.

A sum over a short last dimension, for each of many rows of a table, is best computed in vectors of sums, side
by side. They read the same column of neighbouring rows, which lie far apart. A small table that is read again
and again, for each point of the dimensions before, is worth a transposed copy. So is a small matrix that
every step of a loop multiplies by: BLAS multiplies small matrices where they lie, and takes half as long
again if it reads the second one across.
"""

from __future__ import annotations

import math

from pullback.tracer.graph import Graph, Node, make_input, make_node, rebuild, with_operands
from pullback.tracer.loop import LoopNode, change_loops
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.origin import located_at

from ..blas import MULTIPLIED_WHERE_IT_LIES
from ..cost.machine import this_machine

LONGEST_ROW = 32
"""Terms of a sum that are written out, without a loop, so that the loop around it is the one in vectors."""
FEWEST_READS = 64
"""How often a table is read as a whole, from which a copy pays."""
FEWEST_STEPS = 8
"""Of a loop, from which a copy before it pays."""


def transpose_tables(graph: Graph) -> Graph:
    """The same sums over the last dimension; small operands without the dimensions before lie transposed."""
    made: dict[Node, Node] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        node = with_operands(node, operands)
        if node.operator is not r.sum_ or not _reads_tables(node):
            return node
        with located_at(node.origin):
            (x,) = node.operands
            return with_operands(node, (_transposed(x, x.shape[-2:], made),))

    return rebuild(graph, change)


def _reads_tables(node: Node) -> bool:
    (x,) = node.operands
    if x.spec.ndim < 3 or node.attributes["dims"] != (x.spec.ndim - 1,) or node.attributes["keepdim"]:
        return False
    *reads, rows, columns = x.shape
    fills_vectors = rows >= this_machine().lanes
    fits = 1 < columns <= LONGEST_ROW and fills_vectors and math.prod(reads) >= FEWEST_READS
    return fits and _is_of_tables(x, x.shape[-2:])


def _is_of_tables(x: Node, table: tuple[int, ...]) -> bool:
    """Whether what an expression reads for neighbouring rows is in tables, or the same."""
    if _is_table(x, table) or x.spec.ndim < 2 or x.shape[-2] == 1:
        return True
    return x.operator.family == "elementwise" and all(_is_of_tables(one, table) for one in x.operands)


def _transposed(x: Node, table: tuple[int, ...], made: dict[Node, Node]) -> Node:
    """An elementwise expression with copies of those of its operands that are tables of the shape."""
    if _is_table(x, table):
        if x not in made:
            order = (*range(x.spec.ndim - 2), x.spec.ndim - 1, x.spec.ndim - 2)
            made[x] = m.permute(e.identity(m.permute(x, dims=order)), dims=order)
        return made[x]
    if x.operator.family != "elementwise":
        return x
    return with_operands(x, tuple(_transposed(one, table, made) for one in x.operands))


def _is_table(x: Node, table: tuple[int, ...]) -> bool:
    is_stored = x.is_input or x.operator.family in ("reduction", "contraction", "movement")
    is_whole = x.shape[-2:] == table and x.spec.size == math.prod(table)
    return is_stored and is_whole and not this_machine().is_large_table(x.spec.size)


# --- products in loops ------------------------------------------------------------------------------------


def transpose_constants(graph: Graph) -> Graph:
    """Loops that are given the transposes of small matrices that each step multiplies by, read across."""
    return change_loops(graph, _with_transposes)


def _with_transposes(loop: LoopNode) -> LoopNode:
    """The loop with further constants."""
    inits, stacked, values = loop.split(loop.node.operands)
    constants = loop.split(loop.body.inputs)[2]
    read = {
        (node, place): node.operands[place]
        for node in loop.body.nodes
        for place in (0, 1)
        if _is_read_across(node, place) and node.operands[place] in constants
    }
    if not read or loop.length < FEWEST_STEPS:
        return loop
    inside: dict[Node, Node] = {}
    outside: list[Node] = []
    for (product, _), matrix in read.items():
        if matrix not in inside:
            name = f"{matrix.name}_transposed" if matrix.name else ""
            inside[matrix] = make_input(matrix.spec.with_shape(matrix.shape[::-1]), name, product.origin)
            with located_at(product.origin):
                transpose = e.identity(m.permute(values[constants.index(matrix)], dims=(1, 0)))
            outside.append(transpose.named(name))

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        for place in (0, 1):
            if (node, place) in read:
                node, operands = _with_transpose(node, operands, place, inside[read[node, place]])
        return make_node(node.operator, operands, node.attributes, origin=node.origin, name=node.name)

    outputs = rebuild(loop.body, change).outputs
    body = Graph(loop.body.name, (*loop.body.inputs, *inside.values()), outputs, loop.body.origin)
    return loop.again(body, inits, stacked, [*values, *outside])


def _is_read_across(node: Node, place: int) -> bool:
    """Whether a product of two matrices has its columns from the rows of an operand."""
    if node.operator is not contract or not all(one.spec.ndim == 2 for one in (node, *node.operands)):
        return False
    *texts, result = split_subscripts(node.attributes["subscripts"])
    own, other = texts[place], texts[1 - place]
    multiplications = node.spec.size * node.operands[place].shape[1]
    return own[0] == result[1] and own[1] in other and multiplications <= MULTIPLIED_WHERE_IT_LIES


def _with_transpose(
    node: Node, operands: tuple[Node, ...], place: int, transpose: Node
) -> tuple[Node, tuple[Node, ...]]:
    """A product that takes the transpose of an operand instead."""
    *texts, result = split_subscripts(node.attributes["subscripts"])
    texts[place] = texts[place][::-1]
    operands = (*operands[:place], transpose, *operands[place + 1 :])
    attributes = {"subscripts": f"{texts[0]},{texts[1]}->{result}"}
    return make_node(contract, operands, attributes, origin=node.origin, name=node.name), operands
