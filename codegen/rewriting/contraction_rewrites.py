"""Contractions made simpler, or found where they are written as sums of products.

A gradient is often one number or one row, repeated: `ones @ w.T` is the sum of the columns of `w`, repeated.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Sequence

from pullback.tracer.dims import known
from pullback.tracer.graph import Graph, Node, constant, rebuild, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.origin import located_at

from .contractions import Indices
from .simplify import IDENTITIES, rewrite


def _identity_of(node: Node) -> tuple[object, ...]:
    """The same for `a b` and `b a`, whatever the indices are called."""
    *texts, result = split_subscripts(node.attributes["subscripts"])
    (left, a), (right, b) = sorted(zip(texts, node.operands), key=lambda one: (one[1].serial, one[0]))
    names = dict(zip(dict.fromkeys(left + right), string.ascii_letters))
    return a, b, "".join(names.get(index, index) for index in f"{left},{right}->{result}")


IDENTITIES["contract"] = _identity_of

# --- repeated elements ------------------------------------------------------------------------------------


@rewrite("contract")
def _without_repetition(node: Node) -> Node | None:
    """Without the dimensions along which an operand repeats its elements, and those of size 1."""
    *texts, result = split_subscripts(node.attributes["subscripts"])
    repeated = [_repeated_dims(operand) for operand in node.operands]
    if not any(repeated):
        return None
    extents = dict(zip(texts[0] + texts[1], node.operands[0].shape + node.operands[1].shape))
    operands = [_without(operand, dims) for operand, dims in zip(node.operands, repeated)]
    terms = [
        "".join(index for dim, index in enumerate(text) if dim not in dims)
        for text, dims in zip(texts, repeated)
    ]
    count = math.prod(extents[index] for index in extents if index not in terms[0] + terms[1] + result)
    for place, elsewhere in ((0, terms[1] + result), (1, terms[0] + result)):
        operands[place], terms[place] = _summed(operands[place], terms[place], elsewhere)
    product, found = _product(operands, terms, result)
    if count != 1:
        product = e.multiply(product, constant(known(count), product.spec.with_shape(())))
    shape = tuple(extents[index] if index in found else 1 for index in result)
    return m.expand(m.reshape(product, shape=shape), shape=node.shape)


def _repeated_dims(operand: Node) -> set[int]:
    """The dimensions along which all elements are equal."""
    if operand.is_constant:
        return set(range(operand.spec.ndim))
    dims = {dim for dim, extent in enumerate(operand.shape) if extent == 1}
    if operand.operator is m.expand:
        inner = operand.operands[0].shape
        added = operand.spec.ndim - len(inner)
        dims |= {dim for dim in range(operand.spec.ndim) if dim < added or inner[dim - added] == 1}
    return dims


def _without(operand: Node, dims: set[int]) -> Node:
    """The operand without dimensions along which it repeats."""
    shape = tuple(extent for dim, extent in enumerate(operand.shape) if dim not in dims)
    if operand.is_constant:
        return constant(operand.attributes["value"], operand.spec.with_shape(shape))
    return m.reshape(operand.operands[0] if operand.operator is m.expand else operand, shape=shape)


def _summed(operand: Node, term: str, elsewhere: str) -> tuple[Node, str]:
    """The operand summed over the indices that occur nowhere else."""
    dims = tuple(dim for dim, index in enumerate(term) if index not in elsewhere)
    total = r.sum_(operand, dims=dims, keepdim=False) if dims else operand
    return total, "".join(index for index in term if index in elsewhere)


def _product(operands: Sequence[Node], terms: Sequence[str], result: str) -> tuple[Node, str]:
    """The contraction of two operands, one of which may be 0-d, and its indices, as the result has them."""
    left, right = terms
    found = "".join(index for index in result if index in left + right)
    if left and right:
        return contract(*operands, subscripts=f"{left},{right}->{found}"), found
    array, text, number = (operands[0], left, operands[1]) if left else (operands[1], right, operands[0])
    moved = m.permute(array, dims=tuple(text.index(index) for index in found))
    return e.multiply(moved, number), found


# --- sums of products -------------------------------------------------------------------------------------


def find_contractions(graph: Graph) -> Graph:
    """`(x[:, None, :] * y).sum(-1)` as `x @ y.T`, where BLAS computes it faster than loops."""
    if any(node.attributes.get("ragged") for node in graph.nodes):  # BLAS takes whole dimensions
        return graph
    uses = Counter(operand for node in graph.nodes for operand in node.operands)

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        found = None
        if node.operator is r.sum_ and uses[node.operands[0]] == 1 and not node.attributes["keepdim"]:
            with located_at(node.origin):
                found = _as_contraction(operands[0], node.attributes["dims"])
        return with_operands(node, operands) if found is None else found

    return rebuild(graph, change)


def _as_contraction(product: Node, dims: tuple[int, ...]) -> Node | None:
    """The sum of a product over dims as a contraction, if it is one that suits BLAS."""
    rank = product.spec.ndim
    if product.operator is not e.multiply or not product.spec.is_float or rank > len(string.ascii_letters):
        return None
    letters = string.ascii_letters[:rank]
    operands, texts = [], []
    for operand in product.operands:
        repeated = _repeated_dims(operand)
        own = letters[rank - operand.spec.ndim :]
        operands.append(_without(operand, repeated))
        texts.append("".join(index for dim, index in enumerate(own) if dim not in repeated))
    result = "".join(index for dim, index in enumerate(letters) if dim not in dims)
    both = set(texts[0]) & set(texts[1])
    if any(index not in both for index in letters if index not in result) or not set(result) <= set(
        texts[0] + texts[1]
    ):
        return None
    subscripts = f"{texts[0]},{texts[1]}->{result}"
    return contract(*operands, subscripts=subscripts) if Indices.of(subscripts, *operands).suit_blas else None
