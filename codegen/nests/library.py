"""Calls of BLAS: their place in the loop tree; `writing/library_calls.py` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import identity

from ..rewriting.calls import pairs_of, start_of
from .expression import (
    AnyIndex,
    Axis,
    Index,
    Load,
    axes_in,
    minus,
    of_axis,
)
from .extents import ONE, Symbol
from .lower import Lowering, NotPlain
from .tree import Call, Loop, MatrixProduct, Root


def call_roots(node: Node, lowering: Lowering, storage: Node, row: Sequence[Index] = ()) -> Iterator[Root]:
    """The products of a `gemm`, each as a call in loops over all indices but those of its matrices.

    A call reads and writes, in each iteration, the matrices at the loops' place. So whatever makes or uses
    one matrix after another may share the loops, and then one matrix is all that is stored.
    """
    extents = lowering.extents
    for place, (product, left, right) in enumerate(pairs_of(node)):
        indices = product.indices
        symbols = dict(zip(indices.left + indices.right, extents[left] + extents[right]))
        axes = {index: Axis(symbol) for index, symbol in symbols.items()}
        first, second, target = (tuple(of_axis(axes[index]) for index in text) for text in indices.texts)
        runs = [[axes[index] for index in run] for run in indices.matrix]
        looped = tuple(axes[index] for index in indices.looped if axes[index].extent is not ONE)
        reads = [_operand(left, first, runs, lowering), _operand(right, second, runs, lowering)]
        if place or starts_filled(node):
            reads.append(Load(storage, (*row, *target)))
        reduced = frozenset(looped).difference(axes[index] for index in indices.result)
        target = (*row, *target)
        yield MatrixProduct(storage, looped, None, target, reduced, tuple(reads), product=product)


def _operand(node: Node, at: tuple[Index, ...], runs: Sequence[Sequence[Axis]], lowering: Lowering) -> Load:
    """The matrix that a call reads where it lies; if BLAS cannot take it from there, it is stored first."""
    element = lowering.element(node, at)
    if not isinstance(element, Load) or not _is_matrix(element, runs, lowering):
        raise NotPlain(node)
    return element


def _is_matrix(load: Load, runs: Sequence[Sequence[Axis]], lowering: Lowering) -> bool:
    """Whether the axes of the runs walk a matrix in an array: one side contiguous, each with even steps."""
    sized = [one for one in zip(load.indices, lowering.extents[load.node]) if one[1] is not ONE]
    place = {axis: dim for dim, (index, _) in enumerate(sized) for axis in axes_in(index)}
    walked = {axis for run in runs for axis in run if axis in place}
    if not all(_is_stretch(sized[place[axis]][0], axis, walked) for axis in walked):
        return False
    for run in runs:
        dims = [place[axis] for axis in run if axis in place]
        if len(dims) > 1:
            side_by_side = dims == list(range(dims[0], dims[0] + len(dims)))
            behind = sized[dims[0] + 1 :]  # must be whole, for what is merged to lie in one piece
            if not side_by_side or not all(_is_whole(*one) and axes_in(one[0]) <= walked for one in behind):
                return False
    return bool(axes_in(sized[-1][0]) & walked)


def _is_whole(index: AnyIndex, extent: Symbol) -> bool:
    """Whether an index is an axis over all of a dimension."""
    return isinstance(index, Index) and index.axis is not None and index.axis.extent is extent


def _is_stretch(index: AnyIndex, axis: Axis, walked: set[Axis]) -> bool:
    """Whether an index is one walked axis, with steps of one, from some place on."""
    return isinstance(index, Index) and not axes_in(minus(index, of_axis(axis))) & walked


def starts_filled(node: Node) -> bool:
    """Whether a `gemm` adds all its products to what is there: a start, or the sum of the last iterations."""
    indices = pairs_of(node)[0][0].indices
    return start_of(node) is not None or not set(indices.looped) <= set(indices.result)


def first_for_loops(roots: Sequence[Root]) -> list[Root]:
    """The roots, first those of inputs that calls in loops read whole: later they would end the loops."""
    whole = {
        load.node
        for root in roots
        if isinstance(root, Call)
        for load in root.reads[:2]
        if root.axes and not any(axes_in(index) & {*root.axes} for index in load.indices)
    }
    waits = {root.node for root in roots if root.steps or not all(load.node.is_input for load in root.reads)}
    return sorted(roots, key=lambda root: root.node not in whole - waits)


def looped_dims(roots: Sequence[Root]) -> dict[Node, tuple[int, ...]]:
    """For operands and results of calls, the dimensions that loops around the call walk, outermost first."""
    found: dict[Node, tuple[int, ...]] = {}
    for root in roots:
        if isinstance(root, Call) and root.axes:
            for node, place in (
                (root.node, root.target),
                *((load.node, load.indices) for load in root.reads),
            ):
                walked = [dim for axis in root.axes for dim, one in enumerate(place) if one == of_axis(axis)]
                found.setdefault(node, tuple(walked))
    return found


def reads_for_calls(roots: Sequence[Root]) -> dict[Node, list[Node]]:
    """For a copy that a call takes, what else the call reads: the copy is made when that is there."""
    return {
        load.node: [other.node for other in root.reads if other.node is not load.node]
        for root in roots
        for load in root.reads
        if isinstance(root, Call) and load.node.operator is identity
    }


def with_shared_operands(roots: Sequence[Root], same: Mapping[Node, Node]) -> list[Root]:
    """The roots without those of operands that are the same as others, which calls read instead."""
    for root in roots:
        if isinstance(root, Call):
            root.reads = tuple(Load(same.get(load.node, load.node), load.indices) for load in root.reads)
    return [root for root in roots if root.node not in same]


def equal_operands(roots: Sequence[Root]) -> dict[Node, Node]:
    """For copies of one value that calls alone read, in the same loops around them or outside, the first."""
    around_calls = {loop for root in roots if isinstance(root, Call) for loop in root.path}
    taken = {load.node for root in roots if isinstance(root, Call) for load in root.reads}
    taken -= {load.node for root in roots if not isinstance(root, Call) for load in root.reads}
    first: dict[tuple[Node, tuple[Loop, ...]], Node] = {}
    same: dict[Node, Node] = {}
    for root in roots:
        if root.node.operator is identity and root.node in taken:
            around = tuple(loop for loop in root.path if loop in around_calls)
            kept = first.setdefault((root.node.operands[0], around), root.node)
            if kept is not root.node:
                same[root.node] = kept
    return same
