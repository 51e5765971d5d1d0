"""Sums of padded values put together: the gradient of an array of which a program has used part after part.

Each use of a part contributes a cotangent with zeros around it. Added up as they are, every element would be
a sum over all uses. So those of the same part are added first, and parts that do not overlap are laid side
by side, which is a concatenation and no sum at all. Totals, too, are added before they are summed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from pullback.tracer.graph import Graph, Node, constant, rebuild, rebuild_from, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.origin import located_at

from ...tracer.records import record
from .slices import is_in_zeros, region_inside

Span = tuple[int, int]


@record(frozen=True)
class Part:
    """A value that fills the region between the spans' starts and stops of an array of zeros otherwise."""

    spans: tuple[Span, ...]
    value: Node


def join_padded_terms(graph: Graph) -> Graph:
    """The graph with the padded terms of each sum joined, where they do not overlap in part."""
    inner = inner_sums(graph)

    def change(node: Node, new: dict[Node, Node]) -> Node:
        joined = _with_joined_terms(node, inner, new) if node.operator is e.add else None
        operands = tuple(new[operand] for operand in node.operands)
        return with_operands(node, operands) if joined is None else joined

    return rebuild_from(graph, change)


def join_totals(graph: Graph) -> Graph:
    """In gradients, the sum of two arrays of totals over the same dimensions is one array of totals."""
    uses = Counter([operand for node in graph.nodes for operand in node.operands] + list(graph.outputs))

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        is_sum = node.operator in (e.add, e.subtract) and node.origin.is_backward
        are_alone = all(uses[one] == 1 for one in node.operands)
        if is_sum and are_alone and _are_totals_alike(operands):
            with located_at(node.origin):
                terms = node.operator(*(one.operands[0] for one in operands))
                return r.sum_(terms, **operands[0].attributes)
        return with_operands(node, operands)

    return rebuild(graph, change)


def _are_totals_alike(operands: Sequence[Node]) -> bool:
    one, other = operands
    return (
        one.operator is other.operator is r.sum_
        and one.spec.ndim > 0
        and one.attributes == other.attributes
        and one.operands[0].spec == other.operands[0].spec
        and one.spec.is_float
    )


def inner_sums(graph: Graph) -> set[Node]:
    """Sums that are a term of one other sum, and nothing else."""
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for operand in node.operands:
            users.setdefault(operand, []).append(node)
    outputs = set(graph.outputs)
    return {
        node
        for node, found in users.items()
        if node.operator is e.add
        and node not in outputs
        and len(found) == 1
        and found[0].operator is e.add
        and found[0].shape == node.shape
    }


def _with_joined_terms(node: Node, inner: set[Node], new: dict[Node, Node]) -> Node | None:
    if node in inner:
        return None
    terms = [new[term] for term in terms_of(node, inner)]
    padded = [term for term in terms if _is_padded(term, node)]
    with located_at(node.origin):
        joined = _join([_part(term) for term in padded], node) if len(padded) > 1 else None
        if joined is None:
            return None
        rest = [term for term in terms if not _is_padded(term, node)]
        return reduce(e.add, [*rest, joined])


def terms_of(node: Node, inner: set[Node]) -> list[Node]:
    """What a sum of sums adds up, from left to right."""
    found: list[Node] = []
    pending = [node]
    while pending:
        one = pending.pop()
        if one is node or one in inner:
            pending.extend(reversed(one.operands))
        else:
            found.append(one)
    return found


def _is_padded(term: Node, node: Node) -> bool:
    return term.operator is m.pad and is_in_zeros(term) and term.shape == node.shape


def _part(term: Node) -> Part:
    return Part(tuple((one.start, one.stop) for one in region_inside(term)), term.operands[0])


def _join(parts: list[Part], node: Node) -> Node | None:
    """The sum of the parts, one for each region; None if that is what there was."""
    by_spans: dict[tuple[Span, ...], list[Node]] = {}
    for part in parts:
        by_spans.setdefault(part.spans, []).append(part.value)
    distinct = [Part(spans, reduce(e.add, values)) for spans, values in by_spans.items()]
    laid_out = _laid_out(distinct, node, 0)
    if laid_out is None and len(distinct) < len(parts):
        return reduce(e.add, (_padded(part, node, 0) for part in distinct))
    return laid_out


def _laid_out(parts: list[Part], node: Node, dim: int) -> Node | None:
    """The parts side by side along `dim`, those of one span side by side along the next.

    The result has the node's extents from `dim` on. None if regions overlap.
    """
    if len(parts) == 1:
        return _padded(parts[0], node, dim)
    if dim == node.spec.ndim:
        return None
    groups: dict[Span, list[Part]] = {}
    for part in parts:
        groups.setdefault(part.spans[dim], []).append(part)
    pieces: list[Node] = []
    end = 0
    for span in sorted(groups):
        inside = _laid_out(groups[span], node, dim + 1)
        if inside is None or span[0] < end:
            return None
        pieces += [*_zeros(inside, dim, span[0] - end), inside]
        end = span[1]
    pieces += _zeros(pieces[-1], dim, node.shape[dim] - end)
    return m.concatenate(*pieces, dim=dim) if len(pieces) > 1 else pieces[0]


def _padded(part: Part, node: Node, dim: int) -> Node:
    """One part, with zeros around it in the dimensions from `dim` on."""
    widths = tuple(
        (start, extent - stop) if one >= dim else (0, 0)
        for one, ((start, stop), extent) in enumerate(zip(part.spans, node.shape))
    )
    return m.pad(part.value, widths=widths, value=0) if any(map(any, widths)) else part.value


def _zeros(beside: Node, dim: int, extent: int) -> list[Node]:
    shape = (*beside.shape[:dim], extent, *beside.shape[dim + 1 :])
    return [constant(0, beside.spec.with_shape(shape))] if extent else []
