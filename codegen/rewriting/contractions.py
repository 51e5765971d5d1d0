"""Contractions: which become calls of BLAS, and which become multiply and sum in loops.

BLAS wins where many multiplications are done on each element that is read or written. Elsewhere loops win:
they take no call, need no operand in memory, and share a pass with what comes before and after.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np

from pullback.tracer.graph import Graph, Node, rebuild, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.origin import located_at

from ...tracer.forks import kept
from ..blas import LARGEST_EXTENT
from ..cost.machine import this_machine

SHORT = 8
"""Iterations up to which an inner loop is mostly overhead, unless it is unrolled."""
MOST_UNROLLED = 32
"""Multiplications up to which two short loops are unrolled, one in the other."""


def lower_contractions(graph: Graph) -> Graph:
    """Each contraction as a product of matrices that BLAS takes as they lie, or as multiply and sum."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is not contract:
            return with_operands(node, operands)
        with located_at(node.origin):
            indices = Indices.of(node.attributes["subscripts"], *operands)
            return as_call(indices, operands) if indices.suit_blas else as_sum(indices, operands)

    return rebuild(graph, change)


class Indices:
    """The indices of a contraction by role: batch, rows (left only), columns (right only), summed.

    `extents` are their sizes, and `dtype` that of the operands.
    """

    def __init__(self, subscripts: str, extents: Mapping[str, int], dtype: np.dtype) -> None:
        self.subscripts = subscripts
        self.texts = split_subscripts(subscripts)
        self.left, self.right, self.result = self.texts
        self.extents = extents
        self.dtype = dtype
        both = [index for index in self.left if index in self.right]
        self.batch = [index for index in both if index in self.result]
        self.summed = [index for index in both if index not in self.result]
        self.rows = [index for index in self.left if index not in self.right]
        self.columns = [index for index in self.right if index not in self.left]

    @staticmethod
    def of(subscripts: str, left: Node, right: Node) -> Indices:
        """The indices of a contraction of two nodes."""
        named = split_subscripts(subscripts)
        return Indices(subscripts, dict(zip(named[0] + named[1], left.shape + right.shape)), left.dtype)

    def size(self, indices: Iterable[str]) -> int:
        return math.prod(self.extents[index] for index in indices)

    # --- the call -----------------------------------------------------------------------------------------

    @kept
    def matrix(self) -> tuple[str, str, str]:
        """The rows, columns and summed indices of the matrices of one call, each a run that counts as one."""
        runs = [self._largest_run(role) for role in (self.rows, self.columns, self.summed)]
        while apart := [run for run in runs if len(run) > 1 and not self._is_one_block(run, runs)]:
            runs[runs.index(apart[0])] = max(apart[0], key=self.extents.__getitem__)
        return runs[0], runs[1], runs[2]

    @property
    def looped(self) -> list[str]:
        """The indices that loops around the call walk, outermost first; summed ones come last."""
        inside = "".join(self.matrix)
        return [index for index in (*self.result, *self.summed) if index not in inside]

    def _largest_run(self, role: Sequence[str]) -> str:
        """Of indices of a role the most that lie side by side, in one order, in every array that has them."""
        text = "".join(index for text in self.texts for index in text if index in role)[: len(role)]
        runs = [text[start:stop] for start in range(len(text)) for stop in range(start + 1, len(text) + 1)]
        whole = [run for run in runs if all(run in one or not set(run) & set(one) for one in self.texts)]
        return max(whole, key=self.size)

    def _is_one_block(self, run: str, runs: Sequence[str]) -> bool:
        """Whether loops walk only what lies outside of the run: what they leave of an array is contiguous."""
        behind = {index for text in self.texts if run in text for index in text[text.index(run) :]}
        return behind <= set("".join(runs))

    # --- BLAS or loops ------------------------------------------------------------------------------------

    @property
    def suit_blas(self) -> bool:
        """Whether calls are faster than loops. Products with vectors are bound by memory in both."""
        sizes = self._sizes
        fits = self.dtype.kind == "f" and min(sizes) > 1 and max(sizes) <= LARGEST_EXTENT
        return fits and self._call_nanoseconds < self._loop_nanoseconds

    @property
    def nanoseconds(self) -> float:
        """What the contraction takes, calls or loops."""
        return self.size(self.batch) * (self._call_nanoseconds if self.suit_blas else self._loop_nanoseconds)

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.size(self.rows), self.size(self.columns), self.size(self.summed)

    @property
    def _call_nanoseconds(self) -> float:
        """For one element of the batch."""
        return this_machine().nanoseconds_of_gemm(*self._sizes, self.dtype.itemsize)

    @property
    def _loop_nanoseconds(self) -> float:
        """For one element of the batch."""
        rows, columns, summed = self._sizes
        first, second, _ = sorted(self._sizes)
        contiguous = {index for index in self.extents if self._is_contiguous(index)}
        long = {index for index in contiguous if self.extents[index] > SHORT}
        is_unrolled = summed < max(rows, columns) and second <= SHORT and first * second <= MOST_UNROLLED
        machine, multiplications = this_machine(), rows * columns * summed
        if is_unrolled or (long and summed <= SHORT) or not long.isdisjoint(self.summed):
            return machine.nanoseconds_of_sums(multiplications, self.dtype.itemsize)
        if long:
            return machine.nanoseconds_into_rows(multiplications, self.dtype.itemsize)
        return machine.nanoseconds_alone(multiplications)

    def _is_contiguous(self, index: str) -> bool:
        """Whether neighbours along an index are neighbours in every array that has it."""
        return all(index not in text or text.endswith(index) for text in self.texts)


# --- multiply and sum -------------------------------------------------------------------------------------


def as_sum(indices: Indices, operands: Sequence[Node]) -> Node:
    """The product of the operands, broadcast against each other, summed over the shared indices."""
    order = _common_order([indices.result, *indices.texts[:2]])
    left, right = (_aligned(operand, text, order, indices) for operand, text in zip(operands, indices.texts))
    product = e.multiply(left, right)
    dims = tuple(place for place, index in enumerate(order) if index in indices.summed)
    return r.sum_(product, dims=dims, keepdim=False) if dims else product


def _common_order(texts: Sequence[str]) -> list[str]:
    """All indices in an order that is that of the first text, and of others as far as they agree."""
    before: dict[str, set[str]] = {index: set() for text in texts for index in text}
    for text in texts:
        wanted = {index: set(found) for index, found in before.items()}
        for first, second in pairwise(text):
            wanted[second].add(first)
        if _order_of(wanted):
            before = wanted
    return _order_of(before)


def _order_of(before: dict[str, set[str]]) -> list[str]:
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError:
        return []


def _aligned(operand: Node, text: str, order: Sequence[str], indices: Indices) -> Node:
    """The operand with its dimensions in the given order, and size 1 for those that it lacks."""
    own = [index for index in order if index in text]
    moved = m.permute(operand, dims=tuple(text.index(index) for index in own))
    shape = tuple(indices.extents[index] if index in text else 1 for index in order)
    return m.reshape(moved, shape=shape)


# --- calls of BLAS ----------------------------------------------------------------------------------------


def as_call(indices: Indices, operands: Sequence[Node]) -> Node:
    """A contraction of the form that `library` writes: matrices, in loops over all other indices.

    An array is copied in another order where its last index is not one of the matrix, or where summed indices
    do not lie side by side and the matrices without them would be small.
    """
    if not this_machine().is_worth_several_calls(indices.size("".join(indices.matrix))):
        indices, operands = _in_order(indices, operands, _summed_together(indices))
    texts = [_matrix_last(text, indices.matrix) for text in indices.texts]
    moved, operands = _in_order(indices, operands, texts)
    product = contract(*operands, subscripts=moved.subscripts)
    return m.permute(product, dims=tuple(moved.result.index(index) for index in indices.result))


def _in_order(
    indices: Indices, operands: Sequence[Node], texts: Sequence[str]
) -> tuple[Indices, tuple[Node, ...]]:
    """The contraction with the indices of its arrays in the order that `texts` say."""
    moved = tuple(
        m.permute(operand, dims=tuple(old.index(index) for index in new))
        for operand, old, new in zip(operands, indices.texts, texts)
    )
    return Indices.of(f"{texts[0]},{texts[1]}->{texts[2]}", *moved), moved


def _summed_together(indices: Indices) -> list[str]:
    """The texts with summed indices side by side, in the order that they have in the larger operand."""
    larger = max(indices.texts[:2], key=indices.size)
    run = "".join(index for index in larger if index in indices.summed)
    operands = [
        text if run in text else "".join(index for index in text if index not in run) + run
        for text in indices.texts[:2]
    ]
    return [*operands, indices.result]


def _matrix_last(text: str, matrix: Sequence[str]) -> str:
    """The text as it is if its last index is one of the matrix, else with those at the end."""
    inside = "".join(matrix)
    return text if text[-1] in inside else "".join(sorted(text, key=lambda index: index in inside))
