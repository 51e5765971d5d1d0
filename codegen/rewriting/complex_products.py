"""Products of complex numbers along dimensions: loops whose state is a pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.tracer.graph import Graph, Node, constant, make_input, make_node
from pullback.tracer.loop import make_loop
from pullback.tracer.ops import movement as m
from pullback.tracer.origin import current_origin

from .pairs import Pair

Times = Callable[[Pair, Pair], Pair]


def product(node: Node, a: Pair, times: Times) -> Pair:
    """`prod`: along one dimension after the other, from 1 on as NumPy does, which shows in 0 * inf."""
    if a.im is None:
        return a.each(lambda part: make_node(node.operator, (part,), node.attributes))
    for dim in sorted(node.attributes["dims"], reverse=True):
        rows = [_from(part, dim) for part in _both(a)]
        spec = rows[0].spec.with_shape(rows[0].shape[1:])
        start = Pair(constant(1.0, spec), constant(0.0, spec))
        a = Pair(*_loop(start, rows, times, keeps_all=False)) if rows[0].shape[0] else start
    return a.each(lambda part: m.reshape(part, shape=node.shape))


def running_product(node: Node, a: Pair, times: Times) -> Pair:
    """`cumprod`, from the first number on."""
    dim = node.attributes["dim"]
    count = a.real.shape[dim] if a.real.spec.ndim else 1
    if a.im is None or count < 2:
        return a.each(lambda part: make_node(node.operator, (part,), node.attributes))
    rows = [_from(part, dim) for part in _both(a)]
    first, others = ([_rows(part, *ends) for part in rows] for ends in ((0, 1), (1, count)))
    start = Pair(*(m.reshape(part, shape=part.shape[1:]) for part in first))
    found = _loop(start, others, times, keeps_all=True)
    order = (*range(1, dim + 1), 0, *range(dim + 1, a.real.spec.ndim))
    whole = (m.concatenate(one, more, dim=0) for one, more in zip(first, found))
    return Pair(*(m.permute(part, dims=order) for part in whole))


def _loop(start: Pair, rows: Sequence[Node], times: Times, keeps_all: bool) -> list[Node]:
    """The parts of the product of a number and rows, or of all up to each row, stacked."""
    spec = start.real.spec
    names = "product_real", "product_imag", "factor_real", "factor_imag"
    inputs = [make_input(spec, name) for name in names]
    after = _both(times(Pair(*inputs[:2]), Pair(*inputs[2:])))
    origin = current_origin()
    body = Graph("product", tuple(inputs), (*after, *after) if keeps_all else after, origin)
    return make_loop(body, _both(start), rows, [], rows[0].shape[0], origin).results[-2:]


def _from(x: Node, dim: int) -> Node:
    """With that dimension in front."""
    return m.permute(x, dims=(dim, *(one for one in range(x.spec.ndim) if one != dim)))


def _both(a: Pair) -> tuple[Node, Node]:
    return a.real, a.imag


def _rows(x: Node, start: int, stop: int) -> Node:
    zeros = (0,) * (x.spec.ndim - 1)
    return m.slice_(x, starts=(start, *zeros), stops=(stop, *x.shape[1:]), steps=(1,) * x.spec.ndim)
