"""Arrays that a traced function makes itself: plain values until something traced is written into them.

So a table that is filled with numbers is computed once, in the trace, and one that is filled with what
depends on the arguments becomes part of the graph with the first such write.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.graph import Node, make_node
from ...tracer.lost_numbers import traced_number
from ...tracer.ops.creation import full
from ...tracer.ops.elementwise import identity
from ...tracer.trace import Trace, current_trace, innermost
from ..values.tensor import Tensor, make


class LocalCell(list[Any]):
    """The version cell of such memory, with the trace that it belongs to.

    Attributes:
        body: where the body of a loop or a choice began in which it is made; -1 outside of them.
    """

    trace: Trace | None
    body: int


def local(array: np.ndarray, kind: type[Tensor]) -> Tensor:
    """A tensor around an array that nobody else has; outside of traces like any other."""
    tensor = make(array, kind)
    trace = innermost()
    if trace is not None:
        cell = tensor._cell = LocalCell(tensor._cell)
        cell.trace = trace
        cell.body = trace.bodies[-1] if trace.bodies else -1
    return tensor


def is_local(value: Any) -> bool:
    """Whether a value is known now and the same in all calls: a number, or such an array of this trace."""
    if not isinstance(value, Tensor):
        return not isinstance(value, np.ndarray)
    value.refresh()
    cell = value._cell
    return type(cell) is LocalCell and cell.trace is innermost() and type(value._value) is np.ndarray


def into_graph(tensor: Tensor) -> None:
    """Make the memory of a local tensor part of the graph, before something traced is written into it."""
    base = tensor if tensor._view is None else tensor._view.base
    base._value = node_of(base._value)
    base._cell[0] += 1  # its views look there again
    tensor.refresh()


def _signs(array: np.ndarray) -> np.ndarray:
    return np.signbit(array.real) | np.signbit(array.imag) if array.dtype.kind == "c" else np.signbit(array)


def node_of(array: np.ndarray) -> Node:
    """What stands for a local array in the graph, and lies as it does."""
    found = _in_graph(array)
    if array.flags.c_contiguous:
        return found
    found = identity(found)
    current_trace().strides[found] = tuple(step // array.itemsize for step in array.strides)
    return found


def _in_graph(array: np.ndarray) -> Node:
    """One value everywhere needs no memory."""
    is_one_value = array.size > 0 and bool((array == array.flat[0]).all())
    if is_one_value and ((array.dtype.kind != "c" and array.flat[0] != 0) or not _signs(array).any()):
        value = traced_number(array.flat[0].item())
        attributes = {"shape": array.shape, "value": value, "dtype": array.dtype}
        return make_node(full, (), attributes)
    return current_trace().capture(array)
