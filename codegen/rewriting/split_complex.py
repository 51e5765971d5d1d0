"""Complex values as pairs of real ones, before derivatives are taken: what follows knows real numbers alone.

The derivative by the parts of a complex variable is PyTorch's gradient of it, so no rule is needed here. What
has no form in parts (Fourier transforms, decompositions) Python computes, of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from pullback.tracer.dims import share
from pullback.tracer.errors import ComplexResultError, EagerOnlyError
from pullback.tracer.graph import Graph, Node, Order, constant, made_anew, make_node, next_serial, toposort
from pullback.tracer.operator import OPERATORS
from pullback.tracer.ops import composite as c
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.complex_parts import BY_CALLS, PARTS_OF, on_pairs
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
from pullback.tracer.ops.general_eigenvalues import eig_of_real, eigvals_of_real
from pullback.tracer.ops.linalg import symmetric
from pullback.tracer.ops.reduction import amax, sum_
from pullback.tracer.origin import located_at
from pullback.tracer.spec import Spec, broadcast_shapes, real_dtype

from .complex_calls import (
    conjugate,
    is_conjugate,
    product_by_call,
    solution_by_calls,
    triangular_solution_by_call,
)
from .complex_products import product, running_product
from .pairs import Pair, Value, as_pairs, parts_of_pairs
from .split_bodies import BodySplitter, Values, whole_inputs


class Split:
    """The graph of a trace, with complex values among what its outputs are made of split.

    Args:
        joins: whether complex outputs are made of their parts again.

    Attributes:
        graph: of the same outputs.
        order: that of the new nodes.

    Raises:
        ComplexResultError: an output is complex, and is not to be joined again.
    """

    def __init__(self, graph: Graph, joins: bool = False) -> None:
        self.graph = graph
        self.order = Order()
        if not any(map(is_complex, graph.nodes)):
            return
        variables = {
            one for node in graph.nodes if node.operator in DERIVATIVES for one in variables_of(node)
        }
        splitter = _Splitter()
        new: dict[Node, Any] = {}
        for node in graph.nodes:
            self.order.visit(node)
            value = splitter.split(node, new)
            new[node] = _apart(value) if node in variables and value is not node else value
        self.graph = graph.with_outputs(
            _joined(new[one]) if joins else _result(one, new[one]) for one in graph.outputs
        )


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


class _Known(dict[Node, Any]):
    """By node what it is; one that has not been visited is real, and stays."""

    def __missing__(self, node: Node) -> Node:
        return node


def without_complex(found: Node, since: int) -> Node:
    """A real value of others, with complex ones split among what has been made of those since then."""
    nodes = toposort([found], since)
    if not any(map(is_complex, nodes)):
        return found
    new, splitter = _Known(), _Splitter()
    for node in nodes:
        new[node] = splitter.split(node, new)
    return _real(new[found])


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
        if node.operator.family in CALLED:
            return _called(node, *operands)
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
    if a == b and a.re is not None and a.im is not None:
        across = e.multiply(e.multiply(a.re, a.im), 2.0)
        return Pair(e.subtract(e.multiply(a.re, a.re), e.multiply(a.im, a.im)), across)
    return _product(a, b, e.multiply)


def _scaled(a: Pair, factor: Node | float) -> Pair:
    return a.each(lambda part: e.multiply(part, factor))


def _conjugate(a: Pair) -> Pair:
    return Pair(a.re, None if a.im is None else e.negative(a.im))


def _squared_size(a: Pair) -> Node:
    squares = [e.multiply(part, part) for part in a if part is not None]
    return squares[0] if len(squares) == 1 else e.add(*squares)


def _quotient(a: Pair, b: Pair) -> Pair:
    if b.im is None:
        return a.each(lambda part: e.divide(part, b.real))
    return _in_parts("divide", a, b)


def _in_parts(name: str, *operands: Pair) -> Pair:
    """A function of complex numbers by those of its parts."""
    parts = [part for one in operands for part in (one.real, one.imag)]
    return Pair(*(operator(*parts) for operator in PARTS_OF[name]))


def _inverse(a: Pair) -> Pair:
    return Pair(1.0 / a.real, None) if a.im is None else _in_parts("reciprocal", a)


def _is_nothing(a: Pair) -> Node:
    are_zero = [e.equal(part, 0.0) for part in a if part is not None]
    return are_zero[0] if len(are_zero) == 1 else e.logical_and(*are_zero)


def _size(a: Pair) -> Node:
    """|a|, whose derivative at 0 is 0."""
    if a.re is None or a.im is None:
        return e.absolute(a.imag if a.re is None else a.re)
    return e.modulus(a.re, a.im)


def _direction(a: Pair) -> Pair:
    nothing = _is_nothing(a)
    share = e.where(nothing, 0.0, 1.0 / e.where(nothing, 1.0, _size(a)))
    return _scaled(a, share)


# --- elementary functions -----------------------------------------------------------------------------------


def _exp(a: Pair) -> Pair:
    if a.re is None:
        return Pair(e.cos(a.imag), e.sin(a.imag))
    return _on_the_plane("exp")(a)


def _on_the_plane(name: str) -> Callable[[Pair], Pair]:
    """A function that gives real numbers for real ones."""
    of_real = OPERATORS[name]
    return lambda a: Pair(of_real(a.real), None) if a.im is None else _in_parts(name, a)


def _beyond_the_line(name: str) -> Callable[..., Pair]:
    """A function that may give others for real ones."""
    return lambda *operands: _in_parts(name, *operands)


def _logarithm_of_sum(a: Pair, b: Pair) -> Pair:
    """log(e ** a + e ** b)"""
    is_first = e.greater_equal(a.real, b.real)
    larger, smaller = (_chosen(is_first, *one) for one in ((a, b), (b, a)))
    rest = _in_parts("exp", _both(_difference, smaller, larger))
    return _both(_sum, larger, _in_parts("log1p", rest))


def _chosen(mask: Node, a: Pair, b: Pair) -> Pair:
    return Pair(e.where(mask, a.real, b.real), e.where(mask, a.imag, b.imag))


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
    if isinstance(exponent, complex):
        power = _constant_of(exponent, node.spec)
        return _in_parts("power", _pair(a), power)
    if exponent == 0:
        return Pair(e.zeros_like(_pair(a).real) + 1.0, None)
    if exponent == 0.5:
        return _in_parts("sqrt", _pair(a))
    if exponent == int(exponent) and abs(exponent) <= LARGEST_POWER:
        found = _whole_power(_pair(a), abs(int(exponent)))
        return found if exponent > 0 else _inverse(found)
    return _in_parts("power", _pair(a), _constant_of(float(exponent), node.spec))


# --- what moves, joins and adds up --------------------------------------------------------------------------


def _partwise(node: Node, *operands: Value) -> Pair:
    """By the operator itself, of the real parts and of the imaginary ones; positions are for both."""
    around = complex(node.attributes.get("value", 0))

    def applied(part: str, number: float) -> Node | None:
        given = [getattr(one, part) if isinstance(one, Pair) else one for one in operands]
        attributes = {**node.attributes, "value": number} if "value" in node.attributes else node.attributes
        return make_node(node.operator, tuple(given), attributes)

    pairs = [one for one in operands if isinstance(one, Pair)]
    has_real = around.real or any(one.re is not None for one in pairs)
    has_imag = around.imag or any(one.im is not None for one in pairs)
    return Pair(
        applied("real", around.real) if has_real else None,
        applied("imag", around.imag) if has_imag else None,
    )


def _called(node: Node, *operands: Value) -> Value:
    """By LAPACK, or Python, which compute with complex numbers: those of an array of pairs, where it lies."""
    pairs = tuple(place for place, one in enumerate((*node.operands, node)) if one.dtype.kind == "c")
    arrays = [
        as_pairs(_pair(value)).named(one.name or "pairs") if place in pairs else _real(value)
        for place, (one, value) in enumerate(zip(node.operands, operands))
    ]
    options = tuple(sorted(node.attributes.items()))
    attributes = {"of": node.operator.name, "pairs": pairs, "options": options}
    operator = BY_CALLS.get(node.operator.name, on_pairs) if node.operands[0].spec.size else on_pairs
    found = make_node(operator, tuple(arrays), attributes, name=node.name or node.operator.noun)
    return parts_of_pairs(found) if node.dtype.kind == "c" else found


def _cofactors(node: Node, a: Value) -> Value:
    """Those of a conjugate are the conjugates, which share the elimination of the matrix."""
    if isinstance(a, Pair) and is_conjugate(a):
        return conjugate(_pair(_called(node, conjugate(a))))
    return _called(node, a)


def _eigenvectors(node: Node, a: Value) -> Value:
    if isinstance(a, Pair):
        return _called(node, a)
    parts = eig_of_real(a)
    return Pair(*(m.between(parts, -3, start, start + 3) for start in (0, 3)))


def _eigenvalues(node: Node, a: Value) -> Value:
    """In the last row."""
    if isinstance(a, Pair):
        return _called(node, a)
    parts, rows = eigvals_of_real(a), node.shape[-2]
    return Pair(*(m.between(parts, -2, start, start + rows) for start in (0, 1)))


def _contracted(node: Node, a: Value, b: Value) -> Pair:
    subscripts, a, b = node.attributes["subscripts"], _pair(a), _pair(b)
    found = product_by_call(subscripts, a, b)
    return found or _product(a, b, lambda x, y: contract(x, y, subscripts=subscripts))


def _constant_of(value: complex, spec: Spec) -> Pair:
    spec, value = spec.with_dtype(real_dtype(spec.dtype)), complex(value)
    re = constant(value.real, spec) if value.real or not value.imag else None
    return Pair(re, constant(value.imag, spec) if value.imag else None)


def _converted(node: Node, a: Value) -> Value:
    wanted = node.attributes["dtype"]
    if not isinstance(a, Pair):
        return Pair(_in_dtype(a, real_dtype(wanted)), None)
    if wanted.kind != "c":
        return _in_dtype(a.real, wanted)
    return a.each(lambda part: _in_dtype(part, real_dtype(wanted)))


def _whole_of(node: Node, *parts: Value) -> Pair:
    """Of parts that are broadcast."""
    wide = [one if one.shape == node.shape else m.expand(one, shape=node.shape) for one in map(_real, parts)]
    return Pair(*wide)


def _in_dtype(a: Node, dtype: object) -> Node:
    return a if a.dtype == dtype else e.convert(a, dtype=dtype)


def _norm(node: Node, a: Value) -> Node:
    """Of order 2 that of all parts; of others that of the sizes."""
    a, dims = _pair(a), node.attributes["dims"]
    if node.attributes["order"] != 2 or a.re is None or a.im is None:
        return make_node(node.operator, (_size(a),), node.attributes)
    return _norm_of_parts(a, dims, node.attributes["keepdim"], node.shape)


def _norm_of_parts(a: Pair, dims: tuple[int, ...], keepdim: bool, shape: tuple[int, ...]) -> Node:
    found = c.norm(as_pairs(a), dims=(*dims, a.real.ndim), keepdim=keepdim, order=2.0)
    return m.reshape(found, shape=shape)


def _variance(node: Node, a: Value) -> Node:
    a = _pair(a)
    parts = [make_node(node.operator, (one,), node.attributes) for one in (a.re, a.im) if one is not None]
    return parts[0] if len(parts) == 1 else e.add(*parts)


def _deviation(node: Node, a: Value) -> Node:
    """The norm of what is left without the mean, over the root of the number of elements."""
    dims, keepdim, correction = (node.attributes[name] for name in ("dims", "keepdim", "correction"))
    left = _pair(a).each(lambda part: e.subtract(part, c.mean(part, dims=dims, keepdim=True)))
    size = _norm_of_parts(left, dims, keepdim, node.shape)
    freedom = max(c.count_of(node.operands[0].spec, dims) - correction, 0)
    return e.multiply(size, e.sqrt(constant(share(freedom) if freedom else math.inf, Spec((), node.dtype))))


def _log_of_sum_of_exp(node: Node, a: Value) -> Pair:
    a, dims = _pair(a), node.attributes["dims"]
    shift = Pair(e.stop_gradient(c.finite(amax(a.real, dims=dims, keepdim=True))), None)
    total = _exp(_both(_difference, a, shift)).each(lambda part: sum_(part, dims=dims, keepdim=True))
    found = _both(_sum, _in_parts("log", total), shift)
    return found if node.attributes["keepdim"] else found.each(lambda part: m.reshape(part, shape=node.shape))


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
CALLED = ("eager", "decomposition", "composite", "reduction", "scan")
"""Families of what Python evaluates where there is no rule; of matrices LAPACK."""
PARTWISE = frozenset((
    "negative", "identity", "stop_gradient", "in_place_of", "zeros_like", "sum", "mean", "cumsum", "stack",
    "placed", "triangle", "lower_half", "diagonal_matrix", "diagonal_update",
))  # fmt: skip
"""Linear operators, besides those that move."""
ON_THE_PLANE = ("expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid", "atan", "asinh")
BEYOND_THE_LINE = ("sqrt", "log", "log1p", "asin", "acos", "acosh", "atanh", "power")
RULES: dict[str, Rule] = {
    "parameter": lambda node: Pair(e.real(node), e.imag(node)),
    "full": lambda node: _constant_of(node.attributes["value"], node.spec),
    "iota": lambda node: Pair(
        make_node(iota, (), {**node.attributes, "dtype": real_dtype(node.dtype)}), None
    ),
    "convert": _converted, "complex_of": _whole_of,
    "unit_like": lambda node, a: Pair(make_node(node.operator, (_pair(a).real,), {}), None),
    "real": lambda node, a: _pair(a).real, "imag": lambda node, a: _pair(a).imag,
    "conjugate": _of(_conjugate), "absolute": _of(_size), "sgn": _of(_direction),
    "angle": _of(lambda a: e.atan2(a.imag, a.real)), "pairs_of": _of(as_pairs),
    "of_pairs": lambda node, a: parts_of_pairs(_real(a)),
    "add": _of(lambda a, b: _both(_sum, a, b)), "subtract": _of(lambda a, b: _both(_difference, a, b)),
    "multiply": _of(_times), "divide": _of(_quotient), "reciprocal": _of(_inverse),
    "square": _of(lambda a: _times(a, a)), "power_constant": _power,
    "exp": _of(_exp), "exp2": _of(lambda a: _exp(_scaled(a, e.LOG_2))),
    **{name: _of(_on_the_plane(name)) for name in ON_THE_PLANE},
    **{name: _of(_beyond_the_line(name)) for name in BEYOND_THE_LINE},
    "log2": _of(lambda a: _scaled(_in_parts("log", a), 1 / e.LOG_2)),
    "log10": _of(lambda a: _scaled(_in_parts("log", a), 1 / e.LOG_10)),
    "rsqrt": _of(lambda a: _inverse(_in_parts("sqrt", a))), "logaddexp": _of(_logarithm_of_sum),
    "equal": lambda node, a, b: _same(a, b), "not_equal": lambda node, a, b: e.logical_not(_same(a, b)),
    "isnan": _either(e.isnan, e.logical_or), "isinf": _either(e.isinf, e.logical_or),
    "isfinite": _either(e.isfinite, e.logical_and),
    "where": lambda node, condition, a, b: _chosen(_real(condition), _pair(a), _pair(b)),
    "symmetric": lambda node, a: Pair(
        *(None if part is None else symmetric(part, sign=sign) for part, sign in zip(_pair(a), (1.0, -1.0)))
    ),
    "cofactors": _cofactors, "eig": _eigenvectors, "eigvals": _eigenvalues, "contract": _contracted,
    "solve": _of(solution_by_calls),
    "triangular_solve": lambda node, a, b: triangular_solution_by_call(
        _pair(a), _pair(b), **node.attributes
    ),
    "prod": lambda node, a: product(node, _pair(a), _times),
    "cumprod": lambda node, a: running_product(node, _pair(a), _times),
    "norm": _norm, "var": _variance, "std": _deviation, "logsumexp": _log_of_sum_of_exp,
    "jacobian": _jacobian, "gradient": _along_given, "tangent": _along_given,
}  # fmt: skip
