"""Contractions: matrix products go to BLAS, where it wins; all others become multiply and sum in a nest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pullback.tracer.graph import Graph, Node, rebuild, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.origin import located_at

from .layout import ForLoop, Line

if TYPE_CHECKING:
    from .write import Writer

SMALLEST_BLAS_PRODUCT = 2048
"""Multiplications below which a call of gemm costs more than the loops: about one microsecond."""


def lower_contractions(graph: Graph) -> Graph:
    """Each contraction as gemm on matrices (or stacks of them), or as multiply and sum."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is not contract:
            return with_operands(node, operands)
        with located_at(node.origin):
            letters = Letters(node.attributes["subscripts"], operands)
            result = _as_gemm(letters, operands) if letters.suits_blas else _as_sum(letters, operands)
        return _named(result, node.name)

    return rebuild(graph, change)


def _named(node: Node, name: str) -> Node:
    return node.renamed(name) if name and not node.name and node.operands else node


class Letters:
    """The indices of a contraction by role: batch, rows (left only), columns (right only), summed."""

    def __init__(self, subscripts: str, operands: tuple[Node, ...]) -> None:
        self.left, self.right, self.result = split_subscripts(subscripts)
        self.extents = dict(zip(self.left + self.right, operands[0].shape + operands[1].shape))
        both = [letter for letter in self.left if letter in self.right]
        self.batch = [letter for letter in self.result if letter in both]
        self.summed = [letter for letter in both if letter not in self.result]
        self.rows = [letter for letter in self.result if letter not in self.right]
        self.columns = [letter for letter in self.result if letter not in self.left]
        self.is_float = operands[0].spec.is_float

    def size(self, letters: list[str]) -> int:
        return math.prod(self.extents[letter] for letter in letters)

    @property
    def suits_blas(self) -> bool:
        sizes = [self.size(self.rows), self.size(self.columns), self.size(self.summed)]
        return self.is_float and min(sizes) > 1 and math.prod(sizes) >= SMALLEST_BLAS_PRODUCT


def _as_sum(letters: Letters, operands: tuple[Node, ...]) -> Node:
    """The product of the operands, broadcast against each other, summed over the shared indices."""
    order = [*letters.result, *letters.summed]
    left, right = (
        _aligned(operand, text, order, letters)
        for operand, text in zip(operands, (letters.left, letters.right))
    )
    product = e.multiply(left, right)
    dims = tuple(range(len(letters.result), len(order)))
    return r.sum_(product, dims=dims, keepdim=False) if dims else product


def _aligned(operand: Node, text: str, order: list[str], letters: Letters) -> Node:
    """The operand with its dimensions in the given order, and size 1 for those that it lacks."""
    own = [letter for letter in order if letter in text]
    moved = m.permute(operand, dims=tuple(text.index(letter) for letter in own))
    shape = tuple(letters.extents[letter] if letter in text else 1 for letter in order)
    return m.reshape(moved, shape=shape)


def _as_gemm(letters: Letters, operands: tuple[Node, ...]) -> Node:
    """Operands as matrices, or stacks of them: (batch, rows, summed) and (batch, summed, columns)."""
    left, right = operands
    batch, rows, columns, summed = letters.batch, letters.rows, letters.columns, letters.summed
    if list(letters.result) == [*batch, *columns, *rows] and rows:
        rows, columns, left, right = columns, rows, right, left
        texts = letters.right, letters.left
    else:
        texts = letters.left, letters.right
    left = _matrix(left, texts[0], batch, rows, summed, letters)
    right = _matrix(right, texts[1], batch, summed, columns, letters)
    product = contract(left, right, subscripts="zab,zbc->zac" if batch else "ab,bc->ac")
    order = [*batch, *rows, *columns]
    whole = m.reshape(product, shape=tuple(letters.extents[letter] for letter in order))
    return m.permute(whole, dims=tuple(order.index(letter) for letter in letters.result))


def _matrix(
    operand: Node, text: str, batch: list[str], first: list[str], second: list[str], letters: Letters
) -> Node:
    """The operand as (batch, first, second); a view where its dimensions lie so or transposed."""
    transposed = list(text) == [*batch, *second, *first] and list(text) != [*batch, *first, *second]
    groups = [second, first] if transposed else [first, second]
    order = [*batch, *groups[0], *groups[1]]
    moved = m.permute(operand, dims=tuple(text.index(letter) for letter in order))
    leading = [letters.size(batch)] if batch else []
    matrix = m.reshape(moved, shape=(*leading, letters.size(groups[0]), letters.size(groups[1])))
    if not transposed:
        return matrix
    return m.permute(matrix, dims=(0, 2, 1) if batch else (1, 0))


def untransposed(operand: Node) -> Node:
    """The array behind an operand of gemm, which takes transposed views as they are."""
    return operand.operands[0] if is_transposed(operand) else operand


def is_transposed(operand: Node) -> bool:
    return operand.operator is m.permute and operand.attributes["dims"] in ((1, 0), (0, 2, 1))


def write_call(node: Node, writer: Writer) -> list[Line | ForLoop]:
    """The statement that computes a product of matrices, in a loop over the batch if there is one."""
    from .element import comment_of

    names = [writer.array(untransposed(operand)) for operand in node.operands]
    result = writer.array(node)
    transposed = [".T" if is_transposed(operand) else "" for operand in node.operands]
    at = "[i]" if node.spec.ndim == 3 else ""
    left, right = (f"{name}{at}{suffix}" for name, suffix in zip(names, transposed))
    line = Line(f"np.dot({left}, {right}, {result}{at})", comment_of([node.origin]))
    writer.called.add("np.dot")
    if not at:
        return [line]
    return [ForLoop("i", "0", writer.extent(writer.tree.extents[node][0]), (line,))]
