"""Memory of the caller's: arrays as programs take them, and what is written back into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import MutationError
from ..tape.inplace import keep_saved, may_overlap, require_assignable
from ..tracing.leaf_gradients import LeafGradient
from ..tracing.signature import conform
from ..tracing.traced import Written
from ..values.tensor import Tensor, make, require_writable

ndarray = np.ndarray


def payload(leaf: Any) -> ndarray:
    """The array of a leaf as programs take it."""
    if isinstance(leaf, Tensor):
        leaf.refresh()
        leaf = leaf._value
    if type(leaf) is ndarray and leaf.flags.carray and leaf.dtype.isnative:
        return leaf
    return conform(leaf)


def write_back(leaf: Any, value: ndarray, written: Written) -> None:
    """Put into memory of the caller's what the function has written into it."""
    if isinstance(leaf, Tensor):
        keep_saved(leaf)
        if written.is_rebound:
            leaf._value = value.copy()  # which results may show
        else:
            np.copyto(leaf._value, value)
        leaf._cell[0] += written.versions
        leaf._cell[1] = written.place
    else:
        np.copyto(leaf, value)


def put_gradient(
    tensor: Tensor,
    state: LeafGradient,
    own: Callable[[int, Sequence[ndarray]], ndarray],
    produced: Sequence[ndarray],
) -> None:
    """Let the `.grad` of a tensor be what the function has made of it; what it has written into is there."""
    if state.output is not None:
        tensor._grad = make(own(state.output, produced))
    elif state.is_gone:
        tensor._grad = None


def require_own_memory(leaves: Sequence[Any], written: Written, function: str, labels: Sequence[str]) -> None:
    """MutationError if memory cannot be written, or another array would change with it."""
    position = written.position
    if written.is_rebound:
        return
    arrays = [leaf._value if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    array = arrays[position]
    if not array.flags.writeable:
        raise MutationError(
            f"{function} writes into {labels[position]}, which is a read-only array of shape "
            f"{array.shape}. Pass a copy of it."
        )
    if isinstance(leaves[position], Tensor):
        require_writable(leaves[position])
        if written.is_recorded:
            require_assignable(leaves[position])
    for other, one in enumerate(arrays):
        if other != position and may_overlap(one, array):
            raise MutationError(
                f"{function} writes into {labels[position]}, whose memory {labels[other]} shows as well. "
                "Pass a copy of one of them."
            )
