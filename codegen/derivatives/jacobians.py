"""All derivatives of values: the derivative along one direction, in a loop over all directions.

Directions are those of the result, pulled back, or those of the arguments, pushed forward, whichever are
fewer. What does not depend on the direction is computed once, before the loop. A few directions are written
out: most of what they multiply is 0 then. Where directions are multiplied with matrices, and all of them stay
in a cache, they are rows of a matrix, and there is no loop: a product of matrices takes less than its rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Container, Mapping, Sequence

from pullback.tracer.graph import Graph, Node, constant, make_input, make_node, substitute, toposort
from pullback.tracer.loop import make_loop
from pullback.tracer.many import on_many
from pullback.tracer.ops import creation
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.ops.diagonals import diagonal_matrix
from pullback.tracer.ops.movement import concatenate, expand, permute, reshape
from pullback.tracer.origin import current_origin
from pullback.tracer.spec import INT64, Spec

from ..cost.machine import this_machine
from .differentiate import differentiate, summed

MOST_WRITTEN_OUT = 8
"""Directions up to which each has code of its own: above, a loop over them compiles sooner."""


def derivatives(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[list[Node]]:
    """For each output and each input all derivatives, of shape output.shape + input.shape."""
    return [
        [filled(one, output.shape, variable.spec) for one, variable in zip(row, inputs)]
        for row, output in zip(_derivatives(outputs, inputs), outputs)
    ]


def filled(derivative: Node | None, shape: tuple[int, ...], variable: Spec) -> Node:
    """A derivative in the dtype of the variable; zeros for None."""
    if derivative is None:
        return constant(0, variable.with_shape((*shape, *variable.shape)))
    return derivative if derivative.dtype == variable.dtype else e.convert(derivative, dtype=variable.dtype)


def _derivatives(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[list[Node | None]]:
    """The same, with None for 0."""
    if not any(one.shape for one in outputs):
        return [differentiate(inputs, {one: constant(1, one.spec)}) for one in outputs]
    given = {one: make_input(one.spec, f"d_{one.name}" if one.name else "") for one in outputs}
    if sum(one.spec.size for one in given) <= sum(one.spec.size for one in inputs):
        rows = {one: _pulled(differentiate(inputs, {one: given[one]}), given[one]) for one in given}
        return [rows[one] for one in outputs]
    columns = []
    for variable, one in zip(inputs, differentiate(inputs, given)):
        tangent = make_input(variable.spec, "")
        along = {} if one is None else {one: tangent}
        columns.append(dict(zip(given, _pushed(_linear(given.values(), along), tangent))))
    return [[column[one] for column in columns] for one in outputs]


def push_forward(
    outputs: Sequence[Node], inputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node | None]:
    """The derivatives of outputs along tangents of the inputs.

    The pull-back is linear in the cotangent, so its own pull-back is the push-forward (J. Townsend, A new
    trick for calculating Jacobian vector products, 2017).
    """
    given = {one: make_input(one.spec, "") for one in outputs}
    pulled = differentiate(inputs, given)
    present = [(one, tangent) for one, tangent in zip(pulled, tangents) if one is not None]
    return _linear(given.values(), summed(*zip(*present)) if present else {})


def _linear(cotangents: Collection[Node], along: Mapping[Node, Node]) -> list[Node | None]:
    """The derivatives by cotangents of what is linear in them, and the same at any."""
    found = differentiate(list(cotangents), along)
    places = [place for place, node in enumerate(found) if node is not None]
    at = {one: constant(0, one.spec) for one in cotangents}
    fixed = substitute([node for node in found if node is not None], at)
    for place, node in zip(places, fixed):
        found[place] = node
    return found


def _pulled(gradients: Sequence[Node | None], cotangent: Node) -> list[Node | None]:
    """The rows for the elements of one output: gradients of inputs, given its cotangent."""
    shape = cotangent.shape
    return [
        None if one is None else reshape(one, shape=(*shape, *one.shape[1:]))
        for one in _along_all(gradients, cotangent)
    ]


def _pushed(derivatives: Sequence[Node | None], tangent: Node) -> list[Node | None]:
    """The columns for the elements of one input: derivatives of outputs along its tangent."""
    found: list[Node | None] = []
    for one in _along_all(derivatives, tangent):
        if one is not None:
            last_first = (*range(1, one.ndim), 0)
            shape = (*one.shape[1:], *tangent.shape)
            one = reshape(permute(one, dims=last_first), shape=shape)
        found.append(one)
    return found


def _along_all(values: Sequence[Node | None], direction: Node) -> list[Node | None]:
    """What each of the values is with the input `direction` as each unit vector, stacked."""
    present = [one for one in values if one is not None]
    size = direction.spec.size
    if not present:
        return [None] * len(values)
    if size <= MOST_WRITTEN_OUT:
        each = [
            substitute(present, {direction: _unit(constant(place, Spec((), INT64)), direction.spec)})
            for place in range(size)
        ]
        rows = [[reshape(one, shape=(1, *one.shape)) for one in every] for every in zip(*each)]
        stacks = [row[0] if len(row) == 1 else concatenate(*row, dim=0) for row in rows]
    else:
        stacks = _at_once(present, direction) or _in_loop(present, direction)
    waiting = iter(stacks)
    return [None if one is None else next(waiting) for one in values]


def _at_once(values: Sequence[Node], direction: Node) -> list[Node] | None:
    """All directions along a first dimension; None where a loop over them takes less, or an operator has no
    such form.

    It takes less unless most of the work is products of a matrix with a vector for each direction, and what
    is computed on the way stays in the caches, or is no larger than these matrices.
    """
    count = direction.spec.size
    units = diagonal_matrix(constant(1, direction.spec.with_shape((count,))))
    many = {direction: units if direction.ndim == 1 else reshape(units, shape=(count, *direction.shape))}
    matrices: list[Node] = []
    balance = 0
    for node in toposort(values, direction.serial):
        if many.keys().isdisjoint(node.operands):
            continue
        found = on_many(node, many.keys(), count)
        if found is None:
            return None
        forms, attributes = found
        if node.operator is contract:
            matrix = _matrix_of(node, many)
            work = _multiplications(node)
            balance += work if matrix is not None else -work
            matrices += [] if matrix is None else [matrix]
        operands = [_given(many.get(one, one), form) for one, form in zip(node.operands, forms)]
        many[node] = make_node(node.operator, tuple(operands), attributes, origin=node.origin, name=node.name)
    room = max((one.spec.nbytes for one in matrices), default=0)
    sizes = [one.spec.nbytes for one in many.values()]
    if balance <= 0 or any(size > room and this_machine().is_read_from_memory_twice(size) for size in sizes):
        return None
    return [many[one] if one in many else expand(one, shape=(count, *one.shape)) for one in values]


def _matrix_of(product: Node, many: Container[Node]) -> Node | None:
    """The operand that no direction changes, if each has a vector that is multiplied with it."""
    *terms, _ = split_subscripts(product.attributes["subscripts"])
    for (matrix, term), (vector, own) in itertools.permutations(zip(product.operands, terms)):
        if vector in many and matrix not in many and set(own) <= set(term) and len(own) < len(term):
            return matrix
    return None


def _multiplications(product: Node) -> int:
    *terms, _ = split_subscripts(product.attributes["subscripts"])
    shapes = (one.shape for one in product.operands)
    return math.prod(dict(zip(itertools.chain(*terms), itertools.chain(*shapes))).values())


def _given(value: Node, form: tuple[tuple[int, ...], bool] | None) -> Node:
    """An operand in the form that `on_many` tells."""
    if form is None:
        return value
    shape, is_repeated = form
    return expand(value, shape=shape) if is_repeated else reshape(value, shape=shape)


def _in_loop(values: Sequence[Node], direction: Node) -> list[Node]:
    count = make_input(Spec((), INT64), "direction")
    inside = {direction}
    outside: dict[Node, Node] = {}
    for node in toposort(values, direction.serial):
        if not any(operand in inside for operand in node.operands):
            continue
        inside.add(node)
        for operand in node.operands:
            if operand not in inside and not operand.is_constant:
                outside.setdefault(operand, make_input(operand.spec, operand.name, operand.origin))
    for value in values:
        if value not in inside and not value.is_constant:
            outside.setdefault(value, make_input(value.spec, value.name, value.origin))
    outputs = substitute(values, {direction: _unit(count, direction.spec), **outside})
    body = Graph("derivatives", (count, *outside.values()), outputs, current_origin())
    counts = make_node(creation.iota, (), {"size": direction.spec.size, "dtype": INT64})
    loop = make_loop(body, [], [counts], list(outside), direction.spec.size, current_origin())
    return loop.results


def _unit(place: Node, spec: Spec) -> Node:
    """1 at a place, counted in the order of memory, 0 elsewhere."""
    if spec.size == 1:
        return constant(1, spec)
    counts = make_node(creation.iota, (), {"size": spec.size, "dtype": INT64})
    is_there = e.equal(counts, expand(reshape(place, shape=(1,)), shape=(spec.size,)))
    one, zero = (constant(value, Spec((spec.size,), spec.dtype)) for value in (1, 0))
    return reshape(e.where(is_there, one, zero), shape=spec.shape)
