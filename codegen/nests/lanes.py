"""Short sums side by side: where neighbours are summed over the same few terms, vectors hold the neighbours.

LLVM chooses the innermost loop for vectors. A sum of sixteen terms in a loop is two vectors and a dozen steps
to add up their elements; the sums of sixteen neighbours, without a loop over terms, need no such steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cost.machine import this_machine
from ..rewriting.layouts import LONGEST_ROW
from .expression import AnyIndex, Axis, Index
from .tree import Loop, Reduction, Root


def mark_short_sums(roots: Sequence[Root]) -> None:
    """Mark the innermost loops over few terms around which is a loop that suits vectors."""
    for root in roots:
        if isinstance(root, Reduction) and len(root.path) > 1:
            around, loop = root.path[-2:]
            is_plain = not (loop.outer or around.block or loop.extent.find().formula)
            is_short = is_plain and 1 < loop.extent.value <= LONGEST_ROW
            alone = [one for one in roots if loop in one.path] == [root]
            fills_vectors = around.extent.value >= this_machine().lanes
            if is_short and fills_vectors and alone and root.first_reduced is loop:
                loop.is_short = _reads_neighbours(root, around)


def _reads_neighbours(root: Root, loop: Loop) -> bool:
    """Whether elements that are read in neighbouring iterations of a loop are neighbours, or the same."""
    axis = root.axis_of(loop)
    return axis is not None and all(_is_last(axis, load.indices) for load in root.reads)


def _is_last(axis: Axis, indices: Sequence[AnyIndex]) -> bool:
    """Whether an axis walks only the last dimension of a place, one element after another, or none."""
    places = [index for index in indices if isinstance(index, Index)]
    if len(places) < len(indices):
        return False
    with_axis = [index for index in places if axis in index.axes]
    return not with_axis or (with_axis == places[-1:] and places[-1].axis is axis)
