"""How the elements of a traced value lie in memory where the function is called plainly.

There a reshape shows the memory of its operand if it can, and else copies; what is written afterwards says
which. A graph has no memory, so this asks how its operators would have laid out theirs: inputs as they lie in
the call that is traced, which is a guard where the function writes, results of elementwise operators as their
operands, views as their steps say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...tracer.dims import plain
from ...tracer.graph import Node
from ...tracer.ops.elementwise import identity, imag, real
from ...tracer.ops.movement import (
    inverse_permutation,
    of_pairs,
    pairs_of,
    permute,
    reshape,
    slice_update,
)
from ...tracer.trace import current_trace

Strides = tuple[int, ...]
Maker = Callable[[Callable[["np.ndarray | Node"], np.ndarray]], np.ndarray]
"""A call of a function of NumPy's, of what it is told to take for the values of its arguments."""
FOLLOWING = frozenset(("elementwise", "complex", "reduction", "scan", "movement", "composite"))
"""Families of operators whose results lie as their operands do."""
BYTE = np.zeros(1, np.int8)
NOTHING: tuple[list[Node], bool] = [], False


def reshaped_in_place(node: Node, shape: Sequence[int]) -> bool:
    """Whether a value's elements can be shown in another shape where they lie."""
    if node.ndim < 2 or _longer(node.shape) == _longer(shape):
        return True
    return _reshaped(node.shape, strides_of(node), shape) is not None


def _longer(shape: Sequence[int]) -> list[int]:
    """The extents of the dimensions in which there are neighbours."""
    return [extent for extent in shape if extent != 1]


def layout_of(array: np.ndarray) -> tuple[int, ...]:
    """What decides whether an array's elements can be shown in another shape: the steps that are taken."""
    return tuple(step for step, extent in zip(array.strides, array.shape) if extent > 1)


def in_order_of(node: Node, former: Node) -> Node:
    """The value, laid out as the one in whose memory it is written."""
    if node is former or not node.ndim or _lie_alike(node, former):
        return node
    if node.ndim == 1:
        found = identity(node)
    else:
        dims = from_outside(strides_of(former))
        inner = Node.apply(permute, (node,), {"dims": dims})
        found = Node.apply(permute, (in_order(inner),), {"dims": inverse_permutation(dims)})
    current_trace().strides[found] = strides_of(former)  # with its gaps, if there are
    return found


def in_order(node: Node, order: str = "C") -> Node:
    """The value in C's order, or in Fortran's ("F")."""
    if is_in_order(node, order):
        return node
    if order == "F":
        dims = tuple(reversed(range(node.ndim)))
        found = in_order(Node.apply(permute, (node,), {"dims": dims}))
        return Node.apply(permute, (found,), {"dims": dims})
    flat = Node.apply(reshape, (node,), {"shape": (node.spec.size,)})
    found = Node.apply(reshape, (flat,), {"shape": node.shape})
    current_trace().strides[found] = _in_order(node.shape)  # also of what is expanded
    return found


def note_order(node: Node, order: str) -> None:
    """Say of a new value that it lies in C's order, or in Fortran's ("F")."""
    shape = node.shape[::-1] if order == "F" else node.shape
    strides = _in_order(shape)
    current_trace().strides[node] = strides[::-1] if order == "F" else strides


def is_in_order(node: Node, order: str = "C") -> bool:
    shape, strides = node.shape, strides_of(node)
    if order == "F":
        shape, strides = shape[::-1], strides[::-1]
    return not node.ndim or _reshaped(shape, strides, (node.spec.size,)) == (1,)


def _lie_alike(one: Node, other: Node) -> bool:
    """Whether two values of a shape lie in the same way; steps of dimensions of size 1 say nothing."""
    steps = zip(one.shape, strides_of(one), strides_of(other))
    return all(extent == 1 or step == other_step for extent, step, other_step in steps)


def pattern_of(value: np.ndarray | Node) -> np.ndarray:
    """An array that lies as a value does, for functions that ask nothing else of it."""
    return value if isinstance(value, np.ndarray) else as_strided(BYTE, value.shape, strides_of(value))


def strides_of(node: Node) -> Strides:
    """How many elements lie between neighbours, of each dimension."""
    trace = current_trace()
    known = trace.strides
    pending = [] if node in known else [node]
    while pending:
        one = pending[-1]
        asked = (*_asked(one), *trace.made_of.get(one, NOTHING)[0])
        missing = [operand for operand in asked if operand not in known]
        if not missing:
            known[one] = trace.input_strides.get(one) or _strides(one, known)
            pending.pop()
        pending += missing
    return known[node]


def asked_strides_of(node: Node) -> Strides:
    """The same where the user's code asks, so that the answer is a guard of how the arguments lie."""
    current_trace().layouts_matter = True
    return strides_of(node)


def as_it_lies(array: np.ndarray, node: Node) -> np.ndarray:
    """The value of a node, which code may ask how it lies: as in a plain call. It is not to be written to."""
    strides = asked_strides_of(node)
    if is_in_order(node) and array.flags.c_contiguous:
        return array
    found = laid(array, strides)
    found.flags.writeable = False
    return found


def laid(array: np.ndarray, strides: Strides) -> np.ndarray:
    """A copy of an array, with steps of so many elements between neighbours."""
    if array.size == 0:
        return array
    reach = [step * (extent - 1) for step, extent in zip(strides, array.shape)]
    before = -sum(one for one in reach if one < 0)
    memory = np.empty(before + sum(one for one in reach if one > 0) + 1, array.dtype)
    found = as_strided(memory[before:], array.shape, [step * array.itemsize for step in strides])
    found[...] = array
    return found


def _asked(node: Node) -> Sequence[Node]:
    """The operands that say how a value lies."""
    if node.operator.movement.is_view or node.operator is slice_update:
        return node.operands[:1]
    is_following = node.operator.family in FOLLOWING and node.ndim > 1
    return [one for one in node.operands if one.ndim > 1] if is_following else ()


def _strides(node: Node, known: dict[Node, Strides]) -> Strides:
    asked = _asked(node)
    made_of, lies_as_given = current_trace().made_of.get(node, NOTHING)
    if callable(lies_as_given):
        return _as_made(node, known, lies_as_given)
    is_made_in_order = node in current_trace().made_of and all(
        known[one] == _in_order(one.shape) for one in made_of
    )
    if lies_as_given and made_of and made_of[0].shape == node.shape:
        return _in_order_of(node.shape, known[made_of[0]])
    if not asked or is_made_in_order:
        return _in_order(node.shape)
    operand, steps = asked[0], known[asked[0]]
    if node.operator is pairs_of:
        return (*(2 * step for step in steps), 1)
    if node.operator is of_pairs:
        return tuple(step // 2 for step in steps[:-1])
    if node.operator in (real, imag):
        return steps
    if node.operator is slice_update:
        return steps
    if node.operator is reshape:
        return _reshaped(operand.shape, steps, node.shape) or _in_order(node.shape)
    if node.operator.movement.is_view:
        return node.operator.evaluate(as_strided(BYTE, operand.shape, steps), **node.attributes).strides
    if all(known[one] == _in_order(one.shape) for one in asked):
        return _in_order(node.shape)
    return _as_of_small_arrays(node, known)


def _as_of_small_arrays(node: Node, known: dict[Node, Strides]) -> Strides:
    """In the order that the operator gives arrays that lie as its operands do, with up to two of each row."""
    try:
        small = [_small(one, known.get(one) or _in_order(one.shape)) for one in node.operands]
        found = np.asarray(node.operator.evaluate(*small, **node.attributes)).strides
    except (ValueError, IndexError):  # of dilations and windows, which are told about sizes
        return _in_order(node.shape)
    return _in_order_of(node.shape, found) if len(found) == node.ndim else _in_order(node.shape)


def _as_made(node: Node, known: dict[Node, Strides], make: Maker) -> Strides:
    """As a function of NumPy's lays out what it makes of arrays of zeros that lie as those it was given."""

    def lying(value: np.ndarray | Node) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return value
        return laid(np.zeros(value.shape, value.dtype), known.get(value) or _in_order(value.shape))

    try:
        found = make(lying)
    except (ArithmeticError, LookupError, ValueError):  # of zeros there is none
        return _in_order(node.shape)
    if found.shape != node.shape:  # which its elements decide
        return _in_order(node.shape)
    return tuple(step // found.itemsize for step in found.strides)


def _in_order_of(shape: Sequence[int], steps: Strides) -> Strides:
    """The strides of an array without gaps whose dimensions are in the order of those of steps."""
    dims = from_outside(steps)
    outside_in = _in_order([shape[dim] for dim in dims])
    return tuple(outside_in[dims.index(dim)] for dim in range(len(dims)))


def _small(node: Node, steps: Strides) -> np.ndarray:
    dims = from_outside(steps)
    extents = [min(node.shape[dim], 2) if steps[dim] else 1 for dim in dims]
    array = np.ones(extents, node.dtype).transpose(inverse_permutation(dims))
    return np.broadcast_to(array, [min(extent, 2) for extent in node.shape])


def from_outside(steps: Sequence[int]) -> tuple[int, ...]:
    """The dimensions, those with the longest steps first."""
    return tuple(sorted(range(len(steps)), key=lambda dim: -abs(steps[dim])))


def _in_order(shape: Sequence[int]) -> Strides:
    strides = [1]
    for extent in reversed(_plainly(shape[1:])):
        strides.append(strides[-1] * max(extent, 1))
    return tuple(reversed(strides)) if shape else ()


def _plainly(sizes: Sequence[int]) -> list[int]:
    """The numbers alone: how elements lie is asked for one call, and is no part of the code."""
    return list(map(plain, sizes))


def _reshaped(shape: Sequence[int], strides: Strides, wanted: Sequence[int]) -> Strides | None:
    """The strides in another shape of what is not moved; None if it has to be."""
    if 0 in shape:
        return _in_order(wanted)
    shape, wanted = _plainly(shape), _plainly(wanted)
    blocks: list[list[int]] = []  # of dimensions that follow each other: extent and stride
    for extent, stride in zip(shape, strides):
        if extent == 1:
            continue
        if blocks and blocks[-1][1] == extent * stride:
            blocks[-1] = [blocks[-1][0] * extent, stride]
        else:
            blocks.append([extent, stride])
    found: list[int] = []
    left, stride = blocks.pop() if blocks else (1, 1)
    for extent in reversed(wanted):
        if left == 1 and extent > 1 and blocks:
            left, stride = blocks.pop()
        if left % extent:
            return None
        found.append(stride)
        left //= extent
        stride *= extent
    return tuple(reversed(found))
