"""Calls of BLAS: their place in the loop tree, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from pullback.tracer.graph import Node
from pullback.tracer.ops.contraction import gemm
from pullback.tracer.ops.elementwise import identity

from .. import ir
from ..rewriting.calls import pairs_of, start_of
from .expression import (
    AnyIndex,
    Axis,
    Index,
    Literal,
    Load,
    axes_in,
    minus,
    of_axis,
    of_symbol,
    plus,
)
from .extents import ONE, Symbol
from .lower import Lowering, NotPlain
from .tree import Loop, Root
from .whole_roots import write_whole_call

if TYPE_CHECKING:
    from ..writing.indices import Scope
    from ..writing.write import Writer

Side = set[Axis]
"""The axes that make the rows, or the columns, of a matrix."""


# --- the loop tree ----------------------------------------------------------------------------------------


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
        yield Root(storage, "call", looped, None, target, reduced, tuple(reads), product=product)


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


def starts_at_zero(root: Root) -> bool:
    """Whether this call adds to zeros, with which its loops begin."""
    return root.node.operator is gemm and bool(root.reduced) and start_of(root.node) is None


def first_for_loops(roots: Sequence[Root]) -> list[Root]:
    """The roots, first those of inputs that calls in loops read whole: later they would end the loops."""
    whole = {
        load.node
        for root in roots
        if root.kind == "call"
        for load in root.reads[:2]
        if root.axes and not any(axes_in(index) & {*root.axes} for index in load.indices)
    }
    waits = {root.node for root in roots if root.steps or not all(load.node.is_input for load in root.reads)}
    return sorted(roots, key=lambda root: root.node not in whole - waits)


def looped_dims(roots: Sequence[Root]) -> dict[Node, tuple[int, ...]]:
    """For operands and results of calls, the dimensions that loops around the call walk, outermost first."""
    found: dict[Node, tuple[int, ...]] = {}
    for root in roots:
        if root.kind == "call" and root.axes:
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
        if root.kind == "call" and load.node.operator is identity
    }


def with_shared_operands(roots: Sequence[Root], same: Mapping[Node, Node]) -> list[Root]:
    """The roots without those of operands that are the same as others, which calls read instead."""
    for root in roots:
        if root.kind == "call":
            root.reads = tuple(Load(same.get(load.node, load.node), load.indices) for load in root.reads)
    return [root for root in roots if root.node not in same]


def equal_operands(roots: Sequence[Root]) -> dict[Node, Node]:
    """For copies of one value that calls alone read, in the same loops around them or outside, the first."""
    around_calls = {loop for root in roots if root.kind == "call" for loop in root.path}
    taken = {load.node for root in roots if root.kind == "call" for load in root.reads}
    taken -= {load.node for root in roots if root.kind != "call" for load in root.reads}
    first: dict[tuple[Node, tuple[Loop, ...]], Node] = {}
    same: dict[Node, Node] = {}
    for root in roots:
        if root.node.operator is identity and root.node in taken:
            around = tuple(loop for loop in root.path if loop in around_calls)
            kept = first.setdefault((root.node.operands[0], around), root.node)
            if kept is not root.node:
                same[root.node] = kept
    return same


# --- statements -------------------------------------------------------------------------------------------


def write_call(root: Root, writer: Writer, scope: Scope) -> ir.Library:
    """`gemm(1.0, x[i], w.T, 0.0, product)` in the loops that the call is in."""
    product = root.product
    if product is None:
        return write_whole_call(root, writer, scope)
    rows, columns, summed = _sides(root)
    first, second = root.reads[:2]
    left = _matrix(first.node, first.indices, (rows, summed), root, writer, scope)
    right = _matrix(second.node, second.indices, (summed, columns), root, writer, scope)
    out = _matrix(root.node, root.target, (rows, columns), root, writer, scope)
    if out.transposed:  # the transposed product of the transposed
        left, right, out = _transposed(right), _transposed(left), _transposed(out)
    if root in writer.shared:  # each part makes some rows
        left, out = (replace(one, rows=ir.Span(*ir.PART)) for one in (left, out))
    scale = writer.value(Literal(product.scale, ir.FLOAT64), scope)
    kept = ir.Const(1.0 if len(root.reads) > 2 else 0.0, ir.FLOAT64)
    return ir.Library("gemm", (scale, left, right, kept, out), origins=(product.origin,))


def _sides(root: Root) -> tuple[Side, Side, Side]:
    """The axes of the rows, the columns, and the summed ones, that a call walks."""
    left, right, out = (
        {axis for index in place for axis in axes_in(index) if axis not in root.bound}
        for place in (root.reads[0].indices, root.reads[1].indices, root.target)
    )
    return left & out, right & out, left & right - out


def _matrix(
    node: Node, place: Sequence[AnyIndex], sides: tuple[Side, Side], root: Root, writer: Writer, scope: Scope
) -> ir.Section:
    """The matrix in an array at the loops' place: `x`, `x.T`, `x[:, i]`, `x.reshape((n * m, p))`."""
    stored = range(len(place)) if node.is_input else writer.tree.kept[node]
    dims = [[dim for dim in stored if axes_in(place[dim]) & side] for side in sides]
    places: list[ir.Expr | ir.Span] = [
        _stretch(node, dim, place[dim], root, writer, scope)
        if dim in dims[0] + dims[1]
        else writer.position_in_storage(node, dim, place[dim], scope)
        for dim in stored
    ]
    while places and places[-1] == ir.WHOLE:
        places.pop()
    buffer, shape = writer.array(node), []
    if any(len(side) > 1 for side in dims):
        for side in sorted(dims):
            extents: list[ir.Expr] = [writer.extent(_walked(place[dim], root).extent) for dim in side]
            shape.append(reduce(partial(ir.apply, "multiply"), extents))
    return ir.Section(buffer, tuple(places), tuple(shape), dims != sorted(dims))


def _walked(index: AnyIndex, root: Root) -> Axis:
    """The axis that the call walks along a dimension."""
    (axis,) = (one for one in axes_in(index) if one not in root.bound)
    return axis


def _stretch(node: Node, dim: int, index: AnyIndex, root: Root, writer: Writer, scope: Scope) -> ir.Span:
    """What a call takes of a dimension: all of it, `:`, or a part, `1:n + 1`."""
    axis = _walked(index, root)
    assert isinstance(index, Index)
    if index.axis is axis and axis.extent is writer.tree.extents[node][dim]:
        return ir.WHOLE
    start = minus(index, of_axis(axis))
    ends = (start, plus(start, of_symbol(axis.extent)))
    return ir.Span(*(writer.index(one, scope) for one in ends))


def _transposed(matrix: ir.Section) -> ir.Section:
    return replace(matrix, transposed=not matrix.transposed)
