"""Of products of which only the diagonal is wanted nothing else is computed, and of diagonals no product.

The diagonal of `a @ b` are the sums of `a * b.T` along rows: n**2 products in place of n**3. This is done
before a graph is differentiated, so that its gradient has no product with a matrix of zeros beside a
diagonal. Where a gradient has one all the same (the cotangent of a factor of whose diagonal a logarithm is
taken), it is the other matrix with scaled rows or columns. The user's own products with such a matrix stay:
that would lose what zeros times infinity are.
"""

from __future__ import annotations

from pullback.tracer.graph import Graph, Node, make_node, rebuild, with_operands
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.ops.diagonals import diagonal, diagonal_matrix
from pullback.tracer.origin import located_at


def take_diagonals(graph: Graph) -> Graph:
    """Diagonals of products as sums along rows, and of what is added to products as well."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is not diagonal:
            return with_operands(node, operands)
        with located_at(node.origin):
            return _taken(operands[0])

    return rebuild(graph, change)


def _taken(x: Node) -> Node:
    """The diagonal of a value."""
    if x.operator is diagonal_matrix:
        return x.operands[0]
    if x.operator is contract:
        return _of_product(x)
    is_whole = all(one.shape in ((), x.shape) for one in x.operands)
    if x.operator.family == "elementwise" and is_whole and any(map(_is_product, x.operands)):
        operands = tuple([_taken(one) if one.shape else one for one in x.operands])
        return make_node(x.operator, operands, x.attributes, origin=x.origin)
    return diagonal(x)


def _is_product(x: Node) -> bool:
    """Whether its diagonal is less work than the whole: of a product, and of a sum or the like with one."""
    while x.operator.family == "elementwise" and len(x.operands) == 1:
        (x,) = x.operands
    return x.operator in (contract, diagonal_matrix) or (
        x.operator.family == "elementwise" and any(one.operator is contract for one in x.operands)
    )


def _of_product(product: Node) -> Node:
    *texts, result = split_subscripts(product.attributes["subscripts"])
    row, column = result[-2], result[-1]
    if any(row in text and column in text for text in texts):
        return diagonal(product)
    left, right = (text.replace(column, row) for text in texts)
    with located_at(product.origin):
        return contract(*product.operands, subscripts=f"{left},{right}->{result[:-1]}")


def scale_by_diagonals(graph: Graph) -> Graph:
    """Products with diagonal matrices in gradients as rows or columns times the diagonals."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        node = with_operands(node, operands)
        if node.operator is not contract or not node.origin.is_backward:
            return node
        for place, one in enumerate(operands):
            if one.operator is diagonal_matrix and (found := _scaled(node, place)) is not None:
                return found
        return node

    return rebuild(graph, change)


def _scaled(product: Node, place: int) -> Node | None:
    """A product of a diagonal matrix at a place among its operands, which sums over one of its dimensions."""
    *texts, result = split_subscripts(product.attributes["subscripts"])
    row, column = texts[place][-2], texts[place][-1]
    other = texts[1 - place]
    if (row in result) == (column in result) or (row in other) == (column in other):
        return None
    texts[1 - place] = other.replace(column, row)
    texts[place] = texts[place][:-1]
    operands = [*product.operands]
    (operands[place],) = operands[place].operands
    with located_at(product.origin):
        return contract(*operands, subscripts=f"{','.join(texts)}->{result.replace(column, row)}")
