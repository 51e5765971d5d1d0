"""Calls of BLAS, of functions that take whole rows or matrices, and of Python, as statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from pullback.tracer.graph import Node

from .. import ir
from ..host import HostCall
from ..nests.expression import AnyIndex, Axis, Index, Literal, axes_in, minus, of_axis, of_symbol, plus
from ..nests.tree import Call, Host, MatrixProduct, Root
from ..whole_calls import call_of, function_of
from .indices import Scope
from .stores import RootWriter

Side = set[Axis]
"""The axes that make the rows, or the columns, of a matrix."""


class LibraryWriter(RootWriter):
    """Writes calls in the loops that they are in."""

    def _call(self, root: Call, scope: Scope) -> None:
        write: ir.Stmt
        if isinstance(root, MatrixProduct):
            write = self._gemm(root, scope)
        elif isinstance(root, Host):
            write = self._host(root, scope)
        else:
            write = self._whole(root, scope)
        scope.statements.append(write)

    def _gemm(self, root: MatrixProduct, scope: Scope) -> ir.Library:
        """`gemm(1.0, x[i], w.T, 0.0, product)`"""
        product = root.product
        rows, columns, summed = _sides(root)
        first, second = root.reads[:2]
        left = self._matrix(first.node, first.indices, (rows, summed), root, scope)
        right = self._matrix(second.node, second.indices, (summed, columns), root, scope)
        out = self._matrix(root.node, root.target, (rows, columns), root, scope)
        if out.transposed:  # the transposed product of the transposed
            left, right, out = _transposed(right), _transposed(left), _transposed(out)
        if root in self.shared:  # each part makes some rows
            left, out = (replace(one, rows=ir.Span(*ir.PART)) for one in (left, out))
        scale = self.value(Literal(product.scale, ir.FLOAT64), scope)
        kept = ir.Const(1.0 if len(root.reads) > 2 else 0.0, ir.FLOAT64)
        return ir.Library("gemm", (scale, left, right, kept, out), origins=(product.origin,))

    def _matrix(
        self, node: Node, place: Sequence[AnyIndex], sides: tuple[Side, Side], root: Root, scope: Scope
    ) -> ir.Section:
        """The matrix in an array at the loops' place: `x`, `x.T`, `x[:, i]`, `x.reshape((n * m, p))`."""
        stored = range(len(place)) if node.is_input else self.tree.kept[node]
        dims = [[dim for dim in stored if axes_in(place[dim]) & side] for side in sides]
        places: list[ir.Expr | ir.Span] = [
            self._stretch(node, dim, place[dim], root, scope)
            if dim in dims[0] + dims[1]
            else self.position_in_storage(node, dim, place[dim], scope)
            for dim in stored
        ]
        while places and places[-1] == ir.WHOLE:
            places.pop()
        buffer, shape = self.array(node), []
        if any(len(side) > 1 for side in dims):
            for side in sorted(dims):
                extents: list[ir.Expr] = [self.extent(_walked(place[dim], root).extent) for dim in side]
                shape.append(reduce(partial(ir.apply, "multiply"), extents))
        return ir.Section(buffer, tuple(places), tuple(shape), dims != sorted(dims))

    def _stretch(self, node: Node, dim: int, index: AnyIndex, root: Root, scope: Scope) -> ir.Span:
        """What a call takes of a dimension: all of it, `:`, or a part, `1:n + 1`."""
        axis = _walked(index, root)
        assert isinstance(index, Index)
        if index.axis is axis and axis.extent is self.tree.extents[node][dim]:
            return ir.WHOLE
        start = minus(index, of_axis(axis))
        ends = (start, plus(start, of_symbol(axis.extent)))
        return ir.Span(*(self.index(one, scope) for one in ends))

    def _whole(self, root: Call, scope: Scope) -> ir.Library:
        """`sort_positions(x[i], positions[i])`; raises where there is no result."""
        node, declared = root.node, call_of(root.node)
        batch = node.operands[0].spec.ndim - declared.dims
        operands = [
            self._part(read.node, read.indices[: len(read.indices) - (x.spec.ndim - batch)], scope)
            for x, read in zip(node.operands, root.reads)
        ]
        if declared.transposes(**node.attributes):
            operands[0] = _transposed(operands[0])
        out = self._part(node, root.target[:batch], scope)
        failure = None
        if declared.refusal is not None:
            failure = self.tree.may_fail.setdefault(node, len(self.tree.may_fail))
        return ir.Library(function_of(node).__name__, (*operands, out), failure, (node.origin,))

    def _host(self, root: Host, scope: Scope) -> ir.Host:
        """`erfinv(x, result)`; a number is an array without dimensions, or with one if among others."""
        node, function = root.called, HostCall.of(root.called)
        operands = tuple(
            self._array_of(read.node, read.indices[: len(read.indices) - x.spec.ndim], scope)
            for x, read in zip(node.operands, root.reads)
        )
        out = self._part(root.node, root.target[: len(root.target) - node.spec.ndim], scope)
        if not node.spec.ndim and any(one.places for one in operands):
            out = replace(out, shape=(ir.number(1),))
        return ir.Host(self.arrays.host_calls[function], function, (*operands, out), (node.origin,))

    def _array_of(self, node: Node, place: Sequence[AnyIndex], scope: Scope) -> ir.Section:
        """As `_part`; of a number among others the array that holds it alone: `x[i:i + 1]`."""
        part = self._part(node, place, scope)
        if not part.places or len(part.places) < len(part.buffer.dims):
            return part
        *others, last = part.places
        assert not isinstance(last, ir.Span)
        return replace(part, places=(*others, ir.Span(last, ir.apply("add", last, ir.number(1)))))

    def _part(self, node: Node, place: Sequence[AnyIndex], scope: Scope) -> ir.Section:
        """What of an array the loops have come to: `x`, `x[i]`."""
        stored = range(node.spec.ndim) if node.is_input else self.tree.kept[node]
        dims = [dim for dim in stored if dim < len(place)]
        indices = tuple(self.position_in_storage(node, dim, place[dim], scope) for dim in dims)
        return ir.Section(self.array(node), indices)


def _sides(root: Root) -> tuple[Side, Side, Side]:
    """The axes of the rows, the columns, and the summed ones, that a call walks."""
    left, right, out = (
        {axis for index in place for axis in axes_in(index) if axis not in root.bound}
        for place in (root.reads[0].indices, root.reads[1].indices, root.target)
    )
    return left & out, right & out, left & right - out


def _walked(index: AnyIndex, root: Root) -> Axis:
    """The axis that the call walks along a dimension."""
    (axis,) = (one for one in axes_in(index) if one not in root.bound)
    return axis


def _transposed(matrix: ir.Section) -> ir.Section:
    return replace(matrix, transposed=not matrix.transposed)
