"""Complex values as pairs of real ones, before derivatives are taken: what follows knows real numbers alone.

The derivative by the parts of a complex variable is PyTorch's gradient of it, so no rule is needed here. What
has no such form (decompositions, products along a dimension) is refused, and runs uncompiled.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from pullback.tracer.errors import ComplexResultError, EagerOnlyError
from pullback.tracer.graph import Graph, Node, constant, made_anew, make_node, next_serial
from pullback.tracer.ops import composite as c
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.contraction import contract
from pullback.tracer.ops.control import (
    DERIVATIVES,
    Body,
    jacobian,
    loop,
    loop_result,
    ruled,
    variables_of,
)
from pullback.tracer.ops.creation import iota
from pullback.tracer.origin import located_at
from pullback.tracer.spec import Spec, broadcast_shapes, real_dtype

from .pairs import Pair, Value
from .split_bodies import BodySplitter, Values, whole_inputs


class Split:
    """The graph of a trace, with complex values among what its outputs are made of split.

    Args:
        joins: whether complex outputs are made of their parts again.

    Attributes:
        graph: of the same outputs.

    Raises:
        ComplexResultError: an output is complex, and is not to be joined again.
    """

    def __init__(self, graph: Graph, joins: bool = False) -> None:
        self.graph = graph
        self._nodes: Sequence[Node] = ()
        self._order: list[int] = []
        if not any(map(is_complex, graph.nodes)):
            return
        self._nodes = nodes = graph.nodes
        variables = {one for node in nodes if node.operator in DERIVATIVES for one in variables_of(node)}
        splitter = _Splitter()
        new: dict[Node, Any] = {}
        for node in nodes:
            self._order.append(next_serial())
            value = splitter.split(node, new)
            new[node] = _apart(value) if node in variables and value is not node else value
        self.graph = graph.with_outputs(
            _joined(new[one]) if joins else _result(one, new[one]) for one in graph.outputs
        )

    def serial(self, question: int) -> int:
        """The place of a question in the order of the new nodes, given that in the order of the trace."""
        place = bisect(self._nodes, question, key=lambda node: node.serial)
        if not self._nodes:
            return question
        return self._order[place] if place < len(self._order) else next_serial()


def _result(output: Node, value: Value) -> Node:
    if isinstance(value, Pair):
        raise ComplexResultError(f"{output.operator.name}() is a complex result of what is traced.")
    return value


def _joined(value: Value) -> Node:
    return value if isinstance(value, Node) else e.complex_of(value.real, value.imag)


def loop_of_parts(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], Values]:
    """The attributes of the loop on the parts of its operands, and its results."""
    return _Splitter().bodies.of_loop(attributes, whole_inputs(attributes["body"].graph))


def rule_of_parts(body: Body) -> tuple[Body, Values]:
    """The graph and the rule of a call on the parts of its operands, and its results."""
    return _Splitter().bodies.of_rule(body)


def is_complex(node: Node) -> bool:
    """Whether a value is complex, or a loop or a rule computes with complex ones."""
    if node.spec.dtype.kind == "c" or "body" not in node.attributes:
        return node.spec.dtype.kind == "c"
    body = node.attributes["body"]
    graphs = [body.graph] if body.rule is None or body.rule.graph is None else [body.graph, body.rule.graph]
    return any(is_complex(one) for graph in graphs for one in (*graph.inputs, *graph.nodes))


class _Splitter:
    """Makes nodes anew, on the parts of their operands."""

    def __init__(self) -> None:
        self.bodies = BodySplitter(self._split_all)

    def _split_all(self, nodes: Iterable[Node], new: dict[Node, Any]) -> None:
        for node in nodes:
            new[node] = self.split(node, new)

    def split(self, node: Node, new: Mapping[Node, Any]) -> Any:
        """What a node becomes, given what its operands have become."""
        operands = [new[operand] for operand in node.operands]
        is_square_of_size = node.operator is e.square and _is_size(node.operands[0], new)
        if is_square_of_size:
            operands = [new[node.operands[0].operands[0]]]
        elif not is_complex(node) and all(isinstance(one, Node) for one in operands):
            return made_anew(node, tuple(operands)) if operands else node
        since = next_serial()
        with located_at(node.origin):
            found = _squared_size(*operands) if is_square_of_size else self._of_parts(node, operands)
        return _named(found, node.name, since) if node.name else found

    def _of_parts(self, node: Node, operands: Sequence[Any]) -> Any:
        """What a node computes, of the parts of its operands."""
        if node.operator is loop:
            return self.bodies.loop(node, operands)
        if node.operator is loop_result:
            return operands[0].result(node.attributes["index"])
        if node.operator is ruled:
            return self.bodies.ruled(node, operands)
        rule = RULES.get(node.operator.name)
        if rule is not None:
            return rule(node, *operands)
        if node.operator.name in PARTWISE or node.operator.family in ("movement", "indexing"):
            return _partwise(node, *operands)
        _refuse(node)


def _named(value: Value, name: str, since: int) -> Value:
    """Under the name of what it is, or is a part of, unless it was there before."""

    def named(part: Node, name: str) -> Node:
        return part.named(name) if part.serial > since else part

    return named(value, name) if isinstance(value, Node) else value.each_named(name, named)


def _apart(variable: Value) -> Value:
    """A variable as nodes of its own: no part is what the other, or anything else, is made of."""
    if isinstance(variable, Node):
        return e.identity(variable)
    return Pair(e.identity(variable.real), e.identity(variable.imag))


def _is_size(node: Node, new: Mapping[Node, Value]) -> bool:
    """Whether it is |z| of a complex z, of which the square needs no root."""
    return node.operator is e.absolute and isinstance(new[node.operands[0]], Pair)


def _refuse(node: Node) -> NoReturn:
    raise EagerOnlyError(
        f"complex numbers have no form in compiled code in {node.operator.name}(), at {node.origin.place}  "
        f"{node.origin.text}. Compute that outside of the compiled function, or leave it uncompiled."
    )


def _real(value: Value) -> Node:
    assert not isinstance(value, Pair)
    return value


def _pair(value: Value) -> Pair:
    return value if isinstance(value, Pair) else Pair(value, None)


# --- arithmetic of parts, of which None is 0 ----------------------------------------------------------------


def _sum(a: Node | None, b: Node | None) -> Node | None:
    return b if a is None else a if b is None else e.add(a, b)


def _difference(a: Node | None, b: Node | None) -> Node | None:
    return a if b is None else e.negative(b) if a is None else e.subtract(a, b)


def _product(a: Pair, b: Pair, times: Callable[[Node, Node], Node]) -> Pair:
    """By any product that is linear in both."""

    def some(x: Node | None, y: Node | None) -> Node | None:
        return None if x is None or y is None else times(x, y)

    re = _difference(some(a.re, b.re), some(a.im, b.im))
    im = _sum(some(a.re, b.im), some(a.im, b.re))
    return Pair(times(a.real, b.real), None) if re is None and im is None else Pair(re, im)


def _both(combine: Callable[[Node | None, Node | None], Node | None], a: Pair, b: Pair) -> Pair:
    """Sums and differences; a part that one of them lacks gets the shape of the result."""
    shape = broadcast_shapes(a.real.shape, b.real.shape)

    def whole(part: Node | None) -> Node | None:
        return part if part is None or part.shape == shape else m.expand(part, shape=shape)

    return Pair(*(whole(combine(one, other)) for one, other in zip(a, b)))


def _times(a: Pair, b: Pair) -> Pair:
    return _product(a, b, e.multiply)


def _scaled(a: Pair, factor: Node | float) -> Pair:
    return a.each(lambda part: e.multiply(part, factor))


def _conjugate(a: Pair) -> Pair:
    return Pair(a.re, None if a.im is None else e.negative(a.im))


def _squared_size(a: Pair) -> Node:
    squares = [e.multiply(part, part) for part in a if part is not None]
    return squares[0] if len(squares) == 1 else e.add(*squares)


def _inverse(a: Pair) -> Pair:
    return Pair(1.0 / a.real, None) if a.im is None else _scaled(_conjugate(a), 1.0 / _squared_size(a))


def _quotient(a: Pair, b: Pair) -> Pair:
    if b.im is None:
        return a.each(lambda part: e.divide(part, b.real))
    return _scaled(_times(a, _conjugate(b)), 1.0 / _squared_size(b))


def _is_nothing(a: Pair) -> Node:
    are_zero = [e.equal(part, 0.0) for part in a if part is not None]
    return are_zero[0] if len(are_zero) == 1 else e.logical_and(*are_zero)


def _size(a: Pair) -> Node:
    """|a|, whose derivative at 0 is 0."""
    if a.re is None or a.im is None:
        return e.absolute(a.imag if a.re is None else a.re)
    nothing = _is_nothing(a)
    return e.where(nothing, 0.0, e.hypot(e.where(nothing, 1.0, a.re), a.im))


def _direction(a: Pair) -> Pair:
    nothing = _is_nothing(a)
    share = e.where(nothing, 0.0, 1.0 / e.where(nothing, 1.0, _size(a)))
    return _scaled(a, share)


# --- elementary functions -----------------------------------------------------------------------------------


def _exp(a: Pair) -> Pair:
    turned = Pair(e.cos(a.imag), e.sin(a.imag))
    return turned if a.re is None else _scaled(turned, e.exp(a.re))


def _log(a: Pair) -> Pair:
    return Pair(e.log(e.hypot(a.real, a.imag)), e.atan2(a.imag, a.real))


def _sqrt(a: Pair) -> Pair:
    """The root with a real part that is not negative; on the cut the sign of zero decides, as in C."""
    im = a.imag
    nothing = _is_nothing(a)
    safe = e.where(nothing, 1.0, a.real)
    half = e.sqrt(e.multiply(e.add(e.hypot(safe, im), e.absolute(safe)), 0.5))
    other = e.divide(im, e.multiply(half, 2.0))
    is_right = e.greater_equal(a.real, 0.0)
    is_below = e.less(e.atan2(im, -1.0 * e.absolute(safe)), 0.0)
    turned = e.where(is_below, e.negative(half), half)
    re = e.where(is_right, half, e.absolute(other))
    return Pair(e.where(nothing, 0.0, re), e.where(nothing, 0.0, e.where(is_right, other, turned)))


def _sin(a: Pair) -> Pair:
    return Pair(e.multiply(e.sin(a.real), e.cosh(a.imag)), e.multiply(e.cos(a.real), e.sinh(a.imag)))


def _cos(a: Pair) -> Pair:
    across = e.multiply(e.sin(a.real), e.sinh(a.imag))
    return Pair(e.multiply(e.cos(a.real), e.cosh(a.imag)), e.negative(across))


def _sinh(a: Pair) -> Pair:
    return Pair(e.multiply(e.sinh(a.real), e.cos(a.imag)), e.multiply(e.cosh(a.real), e.sin(a.imag)))


def _cosh(a: Pair) -> Pair:
    return Pair(e.multiply(e.cosh(a.real), e.cos(a.imag)), e.multiply(e.sinh(a.real), e.sin(a.imag)))


def _tanh(a: Pair) -> Pair:
    along, across = e.tanh(a.real), e.tan(a.imag)
    below = 1.0 + e.square(along * across)
    re = along * (1.0 + e.square(across)) / below
    return Pair(re, across * (1.0 - e.square(along)) / below)


def _whole_power(a: Pair, count: int) -> Pair:
    found: Pair | None = None
    while count:
        if count & 1:
            found = a if found is None else _times(found, a)
        count >>= 1
        a = _times(a, a) if count else a
    assert found is not None
    return found


LARGEST_POWER = 16


def _power(node: Node, a: Value) -> Value:
    exponent = node.attributes["exponent"]
    exponent = exponent.real if isinstance(exponent, complex) and not exponent.imag else exponent
    if isinstance(exponent, complex) or exponent == 0:
        _refuse(node)
    if exponent == 0.5:
        return _sqrt(_pair(a))
    if exponent == int(exponent) and abs(exponent) <= LARGEST_POWER:
        found = _whole_power(_pair(a), abs(int(exponent)))
        return found if exponent > 0 else _inverse(found)
    return _exp(_scaled(_log(_pair(a)), float(exponent)))


# --- what moves, joins and adds up --------------------------------------------------------------------------


def _partwise(node: Node, *operands: Value) -> Value:
    """By the operator itself, of the real parts and of the imaginary ones; positions are for both."""

    def applied(parts: Sequence[Node]) -> Node:
        attributes = dict(node.attributes)
        if attributes.get("value") or isinstance(attributes.get("value"), complex):
            _refuse(node)
        return make_node(node.operator, tuple(parts), attributes)

    pairs = [one for one in operands if isinstance(one, Pair)]
    re = im = None
    if any(one.re is not None for one in pairs):
        re = applied([one.real if isinstance(one, Pair) else one for one in operands])
    if any(one.im is not None for one in pairs):
        im = applied([one.imag if isinstance(one, Pair) else one for one in operands])
    return Pair(re, im)


def _constant(node: Node) -> Pair:
    value, dtype = complex(node.attributes["value"]), real_dtype(node.dtype)
    spec = Spec(node.shape, dtype)
    re = constant(value.real, spec) if value.real or not value.imag else None
    return Pair(re, constant(value.imag, spec) if value.imag else None)


def _converted(node: Node, a: Value) -> Value:
    wanted = node.attributes["dtype"]
    if not isinstance(a, Pair):
        return Pair(_in_dtype(a, real_dtype(wanted)), None)
    if wanted.kind != "c":
        return _in_dtype(a.real, wanted)
    return a.each(lambda part: _in_dtype(part, real_dtype(wanted)))


def _in_dtype(a: Node, dtype: object) -> Node:
    return a if a.dtype == dtype else e.convert(a, dtype=dtype)


def _pairs_of(node: Node, a: Value) -> Node:
    a = _pair(a)
    return c.stack(a.real, a.imag, dim=len(node.shape) - 1)


def _of_pairs(node: Node, a: Value) -> Pair:
    x = _real(a)
    zeros, stops = (0,) * len(node.shape), tuple(node.shape)
    parts = [
        m.slice_(x, starts=(*zeros, place), stops=(*stops, place + 1), steps=(1,) * len(x.shape))
        for place in (0, 1)
    ]
    re, im = (m.reshape(one, shape=stops) for one in parts)
    return Pair(re, im)


def _norm(node: Node, a: Value) -> Node:
    """Of order 2 that of all parts; of others that of the sizes."""
    a, dims = _pair(a), node.attributes["dims"]
    if node.attributes["order"] != 2 or a.re is None or a.im is None:
        return make_node(node.operator, (_size(a),), node.attributes)
    both, last = c.stack(a.re, a.im, dim=a.re.ndim), a.re.ndim
    found = c.norm(both, dims=(*dims, last), keepdim=node.attributes["keepdim"], order=2.0)
    return m.reshape(found, shape=node.shape)


def _variance(node: Node, a: Value) -> Node:
    a = _pair(a)
    parts = [make_node(node.operator, (one,), node.attributes) for one in (a.re, a.im) if one is not None]
    return parts[0] if len(parts) == 1 else e.add(*parts)


# --- derivatives, the parts of a value or variable as two of them -------------------------------------------


def _by_parts(derivative: Callable[[Node], Node], value: Value) -> Value:
    return derivative(value) if isinstance(value, Node) else value.each(derivative)


def _along(values: Sequence[Value], directions: Sequence[Value]) -> tuple[Node, ...]:
    """The parts of values, then those of their directions, without what is 0 and so adds nothing."""
    parts = [
        (part, along)
        for value, direction in zip(map(_pair, values), map(_pair, directions))
        for part, along in zip(value, direction)
        if part is not None and along is not None
    ]
    return (*(part for part, _ in parts), *(along for _, along in parts))


def _jacobian(node: Node, result: Value, variable: Value) -> Value:
    return _by_parts(lambda part: make_node(jacobian, (_real(result), part), node.attributes), variable)


def _along_given(node: Node, *operands: Value) -> Value:
    """A `gradient` or a `tangent`: of the last operand one for each part."""
    *given, last = operands
    half = len(given) // 2
    along = _along(given[:half], given[half:])

    def derivative(part: Node) -> Node:
        return make_node(node.operator, (*along, part), node.attributes) if along else e.zeros_like(part)

    return _by_parts(derivative, last)


def _where(node: Node, condition: Value, a: Value, b: Value) -> Pair:
    mask, a, b = _real(condition), _pair(a), _pair(b)
    return Pair(e.where(mask, a.real, b.real), e.where(mask, a.imag, b.imag))


def _same(a: Value, b: Value) -> Node:
    a, b = _pair(a), _pair(b)
    return e.logical_and(e.equal(a.real, b.real), e.equal(a.imag, b.imag))


def _either(test: Callable[[Node], Node], combine: Callable[[Node, Node], Node]) -> Rule:
    def rule(node: Node, a: Value) -> Node:
        a = _pair(a)
        return combine(test(a.real), test(a.imag))

    return rule


def _of(function: Callable[..., Value]) -> Rule:
    """A function of pairs as a rule."""
    return lambda node, *operands: function(*map(_pair, operands))


Rule = Callable[..., Value]
PARTWISE = frozenset((
    "negative", "identity", "stop_gradient", "zeros_like", "sum", "mean", "cumsum", "stack",
    "placed",
))  # fmt: skip
"""Linear operators, besides those that move."""
RULES: dict[str, Rule] = {
    "parameter": lambda node: Pair(e.real(node), e.imag(node)),
    "full": _constant,
    "iota": lambda node: Pair(
        make_node(iota, (), {**node.attributes, "dtype": real_dtype(node.dtype)}), None
    ),
    "convert": _converted, "complex_of": lambda node, re, im: Pair(_real(re), _real(im)),
    "real": lambda node, a: _pair(a).real, "imag": lambda node, a: _pair(a).imag,
    "conjugate": _of(_conjugate), "absolute": _of(_size), "sgn": _of(_direction),
    "angle": _of(lambda a: e.atan2(a.imag, a.real)), "pairs_of": _pairs_of, "of_pairs": _of_pairs,
    "add": _of(lambda a, b: _both(_sum, a, b)), "subtract": _of(lambda a, b: _both(_difference, a, b)),
    "multiply": _of(_times), "divide": _of(_quotient), "reciprocal": _of(_inverse),
    "square": _of(lambda a: _times(a, a)), "power_constant": _power,
    "exp": _of(_exp), "exp2": _of(lambda a: _exp(_scaled(a, e.LOG_2))), "log": _of(_log),
    "log2": _of(lambda a: _scaled(_log(a), 1 / e.LOG_2)),
    "log10": _of(lambda a: _scaled(_log(a), 1 / e.LOG_10)),
    "sqrt": _of(_sqrt), "rsqrt": _of(lambda a: _inverse(_sqrt(a))),
    "sin": _of(_sin), "cos": _of(_cos), "sinh": _of(_sinh), "cosh": _of(_cosh), "tanh": _of(_tanh),
    "equal": lambda node, a, b: _same(a, b), "not_equal": lambda node, a, b: e.logical_not(_same(a, b)),
    "isnan": _either(e.isnan, e.logical_or), "isinf": _either(e.isinf, e.logical_or),
    "isfinite": _either(e.isfinite, e.logical_and), "where": _where,
    "contract": lambda node, a, b: _product(
        _pair(a), _pair(b), lambda x, y: contract(x, y, subscripts=node.attributes["subscripts"])
    ),
    "norm": _norm, "var": _variance, "jacobian": _jacobian, "gradient": _along_given,
    "tangent": _along_given,
}  # fmt: skip
