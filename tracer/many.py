"""Operators on many values at once, which lie along a first dimension.

What works element by element takes them as they are; what tells dimensions counts them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from .graph import Node
from .operator import Operator
from .ops.contraction import contract, split_subscripts
from .ops.movement import concatenate, permute, reshape, slice_update

ALONG = frozenset(("dim", "dims", "shape", "starts", "widths"))
"""Attributes that tell dimensions; an operator with none of them treats an array as a whole."""
UNCHANGED = frozenset(("correction", "dtype", "keepdim", "shift", "value"))
PREFIXED: dict[str, Callable[[int], Any]] = {
    "shape": lambda count: count, "starts": lambda count: 0, "stops": lambda count: count,
    "steps": lambda count: 1, "widths": lambda count: (0, 0),
}  # fmt: skip
"""Attributes that have an element for each dimension, and that of the first one."""
FAMILIES = frozenset(("composite", "movement", "reduction", "scan"))


def on_many(node: Node, depending: Container[Node], count: int) -> tuple[list[Any], Mapping[str, Any]] | None:
    """In which forms an operator takes its operands where some are many, and its attributes.

    A form is None for an operand as it is, else the shape that it is given, and whether it is repeated in
    this shape. None for both where the operator cannot take many.
    """
    operator, attributes = node.operator, node.attributes
    are_many = [one in depending for one in node.operands]
    if operator is contract:
        left, right, result = split_subscripts(attributes["subscripts"])
        letter = next(one for one in "ZYXWVUTSRQ" if one not in attributes["subscripts"])
        terms = [letter * is_many + term for is_many, term in zip(are_many, (left, right))]
        return [None, None], {"subscripts": f"{','.join(terms)}->{letter}{result}"}
    if operator.family == "elementwise":
        rank = len(node.spec.shape)
        return [
            _padded(one, rank, count) if is_many else None for one, is_many in zip(node.operands, are_many)
        ], attributes
    names = set(attributes)
    if operator.family not in FAMILIES or not names & ALONG or not names <= ALONG | UNCHANGED | set(PREFIXED):
        return None
    moved = {name: _moved(operator, name, value, count) for name, value in attributes.items()}
    forms: list[Any] = [None] * len(are_many)
    if operator in (concatenate, slice_update):
        forms = [
            None if is_many else ((count, *one.spec.shape), True)
            for one, is_many in zip(node.operands, are_many)
        ]
    elif len(are_many) > 1:
        return None
    elif "shape" in attributes and operator is not reshape:
        forms = [_padded(node.operands[0], len(attributes["shape"]), count)]
    return forms, moved


def _padded(operand: Node, rank: int, count: int) -> Any:
    """Many of an operand with so many dimensions: broadcasting puts new ones behind their own."""
    shape = operand.spec.shape
    return None if len(shape) == rank else ((count, *(1,) * (rank - len(shape)), *shape), False)


def _moved(operator: Operator, name: str, value: Any, count: int) -> Any:
    """An attribute, for arrays with one more dimension in front."""
    if name == "dim":
        return value + 1
    if name == "dims":
        return (0,) * (operator is permute) + tuple([one + 1 for one in value])
    return (PREFIXED[name](count), *value) if name in PREFIXED else value
