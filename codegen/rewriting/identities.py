"""Rewrites of single operators: what arithmetic, movement and reductions need not do."""

from __future__ import annotations

import math

from pullback.tracer.dims import formula_of
from pullback.tracer.graph import Node, constant, make_node
from pullback.tracer.operator import operators
from pullback.tracer.ops import composite, creation, linalg
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.indexing import counts_from_zero

from .simplify import rewrite

MONOIDS = {one.monoid.fold.name: one.monoid for one in operators("reduction") if one.monoid}
"""By the operator that combines two elements."""
LONGEST_POWER_CHAIN = 8
"""The largest exponent that is written as products."""

# --- arithmetic -------------------------------------------------------------------------------------------


def _same_shape(x: Node, node: Node) -> Node | None:
    """x, broadcast to the shape of the node that it replaces."""
    return x if x.shape == node.shape else m.expand(x, shape=node.shape)


@rewrite(*MONOIDS)
def _with_the_identity(node: Node) -> Node | None:
    """The element that changes no other, of which a total begins, is not combined with others."""
    identity = MONOIDS[node.operator.name].identity(node.dtype)
    for one, other in (node.operands, node.operands[::-1]):
        if other.scalar_value == identity and not (identity == 0 and _is_negative_zero(one)):
            return _same_shape(one, node)
    return None


def _is_negative_zero(node: Node) -> bool:
    value = node.scalar_value
    return value == 0 and math.copysign(1.0, float(value or 0.0)) < 0


@rewrite("logical_and", "logical_or")
def _decided(node: Node) -> Node | None:
    """By one operand alone."""
    decides = node.operator is e.logical_or
    for one in node.operands:
        if one.scalar_value is not None and bool(one.scalar_value) == decides:
            return _same_shape(one, node)
    return None


@rewrite("add")
def _add(node: Node) -> Node | None:
    a, b = node.operands
    if b.operator is e.negative:
        return e.subtract(a, b.operands[0])
    if a.operator is e.negative:
        return e.subtract(b, a.operands[0])
    return e.multiply(a, 2) if a is b else None


@rewrite("subtract")
def _subtract(node: Node) -> Node | None:
    a, b = node.operands
    if b.scalar_value == 0:
        return _same_shape(a, node)
    if b.operator is e.negative:
        return e.add(a, b.operands[0])
    if a.operator is e.negative and a.operands[0] is b:
        return e.multiply(b, -2)
    if a.operator is e.subtract and a.operands[1] is b:
        return e.subtract(a.operands[0], e.multiply(b, 2))
    return None


@rewrite("multiply")
def _multiply(node: Node) -> Node | None:
    a, b = node.operands
    if a.scalar_value is not None and b.scalar_value is None:
        return e.multiply(b, a)  # constants to the right
    if b.scalar_value == -1:
        return _same_shape(-a, node)
    if a.operator is e.negative and b.operator is e.negative:
        return e.multiply(a.operands[0], b.operands[0])
    if a.operator is e.negative and b.scalar_value is not None:
        return e.multiply(a.operands[0], constant(-b.scalar_value, b.spec))
    if a.operator is e.negative:
        return e.negative(e.multiply(a.operands[0], b))
    if b.operator is e.negative:
        return e.negative(e.multiply(a, b.operands[0]))
    if not node.spec.is_float:
        return None
    ways = (_merge_constants(a, b, node), _merge_factors(a, b, node), _merge_factors(b, a, node))
    return next((one for one in ways if one is not None), None)


def _merge_constants(a: Node, b: Node, node: Node) -> Node | None:
    """(x * c) * d is x * (c * d), also where d is an array of equal elements; so are chosen constants."""
    if b.scalar_value is None:
        return None
    if _is_choice_of_constants(a):
        condition, *choices = a.operands
        scaled = [constant(one.scalar_value * b.scalar_value, one.spec) for one in choices]  # type: ignore[operator]
        return _same_shape(e.where(condition, *scaled), node)
    if a.operator is not e.multiply or a.operands[1].scalar_value is None:
        return None
    inner, first = a.operands
    product = first.scalar_value * b.scalar_value  # type: ignore[operator]
    if math.isfinite(product) and product != 0:
        return _same_shape(e.multiply(inner, constant(product, b.spec.with_shape(()))), node)
    return None


def _merge_factors(a: Node, b: Node, node: Node) -> Node | None:
    """a * (y * c) is (a * c) * y, where a has a constant that takes c up, a power of two: which is exact."""
    if b.operator is not e.multiply or not (factor := b.operands[1].scalar_value):
        return None
    if math.frexp(factor)[0] not in (0.5, -0.5):
        return None
    scaled = _merge_constants(a, constant(factor, b.spec.with_shape(())), a)
    return None if scaled is None else _same_shape(e.multiply(scaled, b.operands[0]), node)


def _is_choice_of_constants(node: Node) -> bool:
    return node.operator is e.where and all(one.scalar_value is not None for one in node.operands[1:])


@rewrite("divide")
def _divide(node: Node) -> Node | None:
    a, b = node.operands
    if b.scalar_value == 1:
        return _same_shape(a, node)
    divisor = b.scalar_value if formula_of(b.scalar_value) is None else None
    if divisor and math.frexp(divisor)[0] in (0.5, -0.5):  # a power of two: exact
        return e.multiply(a, constant(1.0 / divisor, b.spec))
    if divisor == 0 and node.spec.is_float:  # the same, and no error where Python divides its own numbers
        return e.multiply(a, constant(math.copysign(math.inf, divisor), b.spec))
    if a.scalar_value == 1:
        return _same_shape(e.reciprocal(b), node)
    if a.operator is e.negative:
        return e.negative(e.divide(a.operands[0], b))
    return None


@rewrite("negative")
def _negative(node: Node) -> Node | None:
    (x,) = node.operands
    if x.operator is e.negative:
        return x.operands[0]
    if x.operator is e.subtract:
        return e.subtract(x.operands[1], x.operands[0])
    if x.operator is e.multiply and x.operands[1].scalar_value is not None:
        return e.multiply(x.operands[0], constant(-x.operands[1].scalar_value, x.operands[1].spec))
    return None


@rewrite("power_constant")
def _power_constant(node: Node) -> Node | None:
    (x,), exponent = node.operands, node.attributes["exponent"]
    if exponent == 0.5 and node.spec.is_float:
        return e.sqrt(x)
    if exponent == -0.5:
        return e.rsqrt(x)
    if exponent < 0 and node.spec.is_float and float(exponent).is_integer():
        return e.reciprocal(e._power(x, -exponent))
    if float(exponent).is_integer() and 0 <= exponent <= LONGEST_POWER_CHAIN:
        return _product_chain(x, int(exponent))
    return None


def _product_chain(x: Node, exponent: int) -> Node:
    """x ** exponent by squaring (D. E. Knuth, The Art of Computer Programming 2, 4.6.3)."""
    if exponent == 0:
        return constant(1, x.spec)
    if exponent == 1:
        return x
    half = _product_chain(x, exponent // 2)
    squared = e.multiply(half, half)
    return e.multiply(squared, x) if exponent % 2 else squared


@rewrite("power")
def _power(node: Node) -> Node | None:
    base, exponent = node.operands
    if exponent.scalar_value is not None and node.spec.is_float:
        return _same_shape(e._power(base, exponent.scalar_value), node)
    return None


@rewrite("square")
def _square(node: Node) -> Node:
    return e.multiply(node.operands[0], node.operands[0])


@rewrite("identity", "stop_gradient")
def _identity(node: Node) -> Node:
    return node.operands[0]


@rewrite("zeros_like")
def _zeros_like(node: Node) -> Node:
    return constant(0, node.spec)


@rewrite("in_place_of")
def _in_place_of(node: Node) -> Node | None:
    return _same_shape(node.operands[1], node)


@rewrite("convert")
def _convert(node: Node) -> Node | None:
    (x,) = node.operands
    return x if x.dtype == node.dtype else None


@rewrite("where")
def _where(node: Node) -> Node | None:
    condition, a, b = node.operands
    if condition.scalar_value is not None:
        return _same_shape(a if condition.scalar_value else b, node)
    return _same_shape(a, node) if a is b else None


@rewrite("exp")
def _exp(node: Node) -> Node | None:
    """exp(log_softmax(x)) is softmax(x), which shares what it needs with the former."""
    (x,) = node.operands
    if x.operator is composite.log_softmax:
        return composite.softmax(x.operands[0], **x.attributes)
    return None


@rewrite("exp")
def _exp_less_logsumexp(node: Node) -> Node | None:
    """exp(x - logsumexp(x)) shares the exponentials of its logsumexp."""
    (difference,) = node.operands
    guarded = difference.operands[1] if difference.operator is e.subtract else difference
    if guarded.operator is not e.where or guarded.operands[0].operator is not e.equal:
        return None
    x, total = difference.operands[0], guarded.operands[2]
    while total.operator is m.reshape:
        total = total.operands[0]
    if total.operator is not composite.logsumexp or total.operands[0] is not x:
        return None
    return composite.exp_less_logsumexp(x, total.attributes["dims"])


# --- movement ---------------------------------------------------------------------------------------------


@rewrite("reshape", "expand")
def _same_result(node: Node) -> Node | None:
    (x,) = node.operands
    if x.shape == node.shape:
        return x
    if x.operator is node.operator:
        return make_node(node.operator, x.operands, node.attributes, origin=node.origin, name=node.name)
    return None


@rewrite("permute")
def _permute(node: Node) -> Node | None:
    (x,), dims = node.operands, node.attributes["dims"]
    if dims == tuple(range(len(dims))):
        return x
    if x.operator is m.permute:
        inner = x.attributes["dims"]
        return m.permute(x.operands[0], dims=tuple(inner[dim] for dim in dims))
    return x if _is_own_image(x, dims) else None


def _is_own_image(x: Node, dims: tuple[int, ...]) -> bool:
    """Whether an exchange of dimensions leaves a value as it is, as it does x + x' and 2 (x + x')."""
    if x.operator.family != "elementwise":
        return False
    if x.operator.name in MONOIDS:
        one, other = x.operands
        if _is_image(one, other, dims) or _is_image(other, one, dims):
            return True
    arrays = [one for one in x.operands if one.shape]
    return len(arrays) == 1 and _is_own_image(arrays[0], dims)


def _is_image(x: Node, image: Node, dims: tuple[int, ...]) -> bool:
    """Whether `image` is x with dimensions exchanged, as `dims` exchanges them twice."""
    if image.operator is not m.permute or image.operands[0] is not x or image.attributes["dims"] != dims:
        return False
    return all(dims[dim] == place for place, dim in enumerate(dims))


@rewrite("cholesky", "eigh", "eigvalsh")
def _of_lower_triangle(node: Node) -> Node | None:
    """It reads the lower triangle alone: a mirror image above it need not be made."""
    (x,) = node.operands
    if x.operator is not linalg.symmetric or x.attributes["sign"] < 0 or x.dtype.kind == "c":
        return None
    reads_lower = node.attributes.get("lower", True)
    return make_node(node.operator, x.operands, node.attributes) if reads_lower else None


@rewrite("cholesky_on_pairs")
def _of_lower_triangle_of_pairs(node: Node) -> Node | None:
    """The same of complex numbers, whose diagonal is read as real."""
    (pairs,) = node.operands
    if pairs.operator is not composite.stack or any(
        part.operator is not linalg.symmetric or part.attributes["sign"] != sign
        for part, sign in zip(pairs.operands, (1.0, -1.0))
    ):
        return None
    parts = [part.operands[0] for part in pairs.operands]
    below = composite.stack(*parts, dim=pairs.attributes["dim"])
    return make_node(node.operator, (below,), node.attributes)


@rewrite("slice")
def _slice(node: Node) -> Node | None:
    return node.operands[0] if node.shape == node.operands[0].shape else None


@rewrite("pad")
def _pad(node: Node) -> Node | None:
    return node.operands[0] if node.shape == node.operands[0].shape else None


@rewrite("concatenate")
def _concatenate(node: Node) -> Node | None:
    dim = node.attributes["dim"]
    pieces = tuple(piece for piece in node.operands if piece.shape[dim])
    if len(pieces) == 1:
        return pieces[0]
    if 0 < len(pieces) < len(node.operands):
        return make_node(node.operator, pieces, node.attributes, origin=node.origin, name=node.name)
    return None


@rewrite("flip")
def _flip(node: Node) -> Node | None:
    (x,), dims = node.operands, node.attributes["dims"]
    if not dims:
        return x
    return x.operands[0] if x.operator is m.flip and x.attributes["dims"] == dims else None


# --- indexing ---------------------------------------------------------------------------------------------


@rewrite("less")
def _less(node: Node) -> Node | None:
    """Positions are not negative: those of arange, and those that are searched for, need no wrapping."""
    a, b = node.operands
    if b.scalar_value is not None and b.scalar_value <= 0 and counts_from_zero(a):
        return constant(False, node.spec)
    return None


@rewrite("scatter_add")
def _nothing_added(node: Node) -> Node | None:
    return constant(0, node.spec) if node.operands[0].scalar_value == 0 else None


@rewrite("scatter_add")
def _one_per_row(node: Node) -> Node | None:
    """One update for each row, at a column of its own, is a comparison: no array is scattered into."""
    updates, *indices = node.operands
    rows_first = len(indices) == 2 and updates.spec.ndim == 1 and indices[0].operator is creation.iota
    if not rows_first or indices[0].shape[0] != node.shape[0]:
        return None
    rows, columns = node.shape
    column = make_node(creation.iota, (), {"size": columns, "dtype": indices[1].dtype})
    chosen = e.equal(m.reshape(indices[1], shape=(rows, 1)), m.reshape(column, shape=(1, columns)))
    return e.where(chosen, m.reshape(updates, shape=(rows, 1)), 0)


@rewrite("sum")
def _sum_of_one_per_row(node: Node) -> Node | None:
    """The sum over the columns of what `_one_per_row` makes is the update."""
    (x,) = node.operands
    if x.operator is not e.where or node.attributes["dims"] != (1,) or x.spec.ndim != 2:
        return None
    chosen, update, other = x.operands
    is_one_hot = chosen.operator is e.equal and _is_row_of_positions(chosen.operands[1])
    if is_one_hot and other.scalar_value == 0 and update.shape == (x.shape[0], 1) == chosen.operands[0].shape:
        return m.reshape(update, shape=node.shape)
    return None


def _is_row_of_positions(node: Node) -> bool:
    return node.operator is m.reshape and node.operands[0].operator is creation.iota


# --- reductions -------------------------------------------------------------------------------------------


@rewrite("sorted_positions")
def _sorted_already(node: Node) -> Node | None:
    return constant(0, node.spec) if node.operands[0].shape[-1] == 1 else None


@rewrite("sorted_values")
def _single_values(node: Node) -> Node | None:
    return node.operands[0] if node.shape[-1] == 1 else None


@rewrite(*(one.name for one in operators("reduction") if one.monoid))
def _reduce_without_keepdim(node: Node) -> Node | None:
    """A reduction keeps no dims of size 1; a reshape puts them back."""
    (x,), dims = node.operands, node.attributes["dims"]
    if not dims or all(x.shape[dim] == 1 for dim in dims):
        return m.reshape(x, shape=node.shape)
    if node.attributes["keepdim"]:
        inner = make_node(
            node.operator, (x,), {"dims": dims, "keepdim": False}, origin=node.origin, name=node.name
        )
        return m.reshape(inner, shape=node.shape)
    return None


@rewrite(*(one.name for one in operators("reduction") if one.search))
def _search_without_keepdim(node: Node) -> Node | None:
    if not node.attributes["keepdim"]:
        return None
    attributes = {**node.attributes, "keepdim": False}
    inner = make_node(node.operator, node.operands, attributes, origin=node.origin, name=node.name)
    return m.reshape(inner, shape=node.shape)
