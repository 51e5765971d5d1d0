"""Writing into tensors: `x.add_(y)`, `x += y`, with exact gradients and version counters.

An in-place operation computes the new value with the ordinary, recorded function. Then the value goes into
the memory (in a trace: becomes the payload), and the tensor's place on the tape becomes that of the new
value. Where the tensor is a view, the change is carried back into the base by operators as well, so that
base and views keep exact gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from ...tracer.errors import DTypeError, GradientError, MutationError, ShapeError
from ...tracer.graph import Node, make_node
from ...tracer.ops.diagonals import diagonal, diagonal_update
from ...tracer.ops.elementwise import complex_of, convert, identity, imag, in_place_of, real, stop_gradient
from ...tracer.ops.indexing import index_update
from ...tracer.ops.movement import (
    expand,
    flip,
    inverse_permutation,
    of_pairs,
    pairs_of,
    permute,
    reshape,
    slice_,
    slice_update,
)
from ...tracer.origin import array_changed, at_caller, current_origin, named_at_line, place_of_caller
from ...tracer.trace import current_trace, is_tracing
from ..values.memory_order import in_order_of
from ..values.modes import enable_grad, is_recording, no_grad
from ..values.nodes import GradNode, hooks_of, next_sequence, scalar_type
from ..values.operator_nodes import OperatorNode
from ..values.saved import saved_values
from ..values.tensor import PartAt, Rearranged, Step, Tensor, View, make, mark_written, require_writable
from ..values.value_kinds import Auxiliary
from .apply import apply, cut_off, record
from .local import into_graph, is_local, local

ndarray = np.ndarray


def assign(target: Tensor, value: Tensor, began: int | None = None) -> Tensor:
    """Let `target` hold `value`, a tensor of its shape (or one that broadcasts) and of any dtype; returns it.

    `began` is the sequence number at which the operation began that makes the value in place.

    Raises:
        GradientError: `target` is a leaf that requires grad, or a view of one, and operations are recorded.
        ShapeError: `value` does not fit. DTypeError: floats into integers. MutationError: see `_frozen`.
    """
    require_assignable(target)
    require_writable(target)
    value = fitted(value, target)
    _require_tracked(target._view, value)
    recorded = is_recording() and (value._requires_grad or target._requires_grad)
    if is_local(target) and not is_local(value):
        into_graph(target)
    if (
        type(target._value) is ndarray
        and type(value._value) is ndarray
        and (not is_tracing() or is_local(target))
    ):
        if recorded:
            _keep_former(value._grad_fn, target._value, began)
        keep_saved(target)
        _write(target._value, value._value)
    elif not _is_traced(target):
        raise MutationError(
            f"a traced function writes into a tensor from outside of it{at_caller()}. "
            f"Return the new value instead."
        )
    else:
        note_traced_write(target)
        _keep_former_nodes(value._grad_fn, target._cell, began)
        keep_saved(target)
    mark_written(target)
    _take_over(target, value, recorded)
    return target


def note_traced_write(target: Tensor) -> None:
    """Note what a traced function writes while operations are recorded, which some memory must not be."""
    current_trace().layouts_matter = True
    if is_recording() and not (target._view is not None and target._view.is_detached):
        current_trace().recorded_writes.add(id(target._cell))


def rebase(target: Tensor, value: Tensor) -> None:
    """Give a tensor, whose memory holds what `value` does, the history of `value`; its base as well."""
    _take_over(target, value, recorded=True)


def _take_over(target: Tensor, value: Tensor, recorded: bool) -> None:
    if target._view is not None:
        _carry_back(target, target._view, value, recorded)
    else:
        _take_place(target, value, recorded)


def _keep_former(last: GradNode | None, memory: np.ndarray, began: int | None) -> None:
    """Let the nodes of an in-place operation have copies of what they saved and the operation overwrites.

    They are the last one, and those made since sequence number `began`.
    """
    for node in _nodes_of_operation(last, began):
        versions = list(node.each_version())
        for number, (position, _, _) in enumerate(versions):
            if position >= 0 and node.operands is not None:
                saved = node.operands[position]
                if saved is memory or (type(saved) is ndarray and np.may_share_memory(saved, memory)):
                    node.operands[position] = saved.copy()
                    versions[number] = (position, [0, None], 0)
        node.replace_versions(versions)


def _nodes_of_operation(last: GradNode | None, began: int | None) -> Iterator[OperatorNode]:
    """The node that has made a value, and those behind it that are newer than `began`."""
    pending, seen = [last], set()
    while pending:
        node = pending.pop()
        if not isinstance(node, OperatorNode) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if began is not None:
            targets = [edge[0] for edge in node.edges if edge is not None]
            pending.extend(one for one in targets if isinstance(one, OperatorNode) and one.sequence > began)


def _keep_former_nodes(last: GradNode | None, cell: list[Any], began: int | None) -> None:
    """The same in a trace, where nodes of the graph stay what they are: the operation overwrites nothing."""
    for node in _nodes_of_operation(last, began):
        node.replace_versions(one for one in node.each_version() if one[1] is not cell)


def may_overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether they have an element in common, or perhaps have: rows that take turns have none."""
    try:
        return np.shares_memory(a, b, max_work=1000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def keep_saved(target: Tensor) -> None:
    """Before a write: inside of a functional transform, nodes keep what they have saved of the memory."""
    noted = saved_values()
    if noted is not None:
        noted.keep(target._cell)


HOW_TO_WRITE = "Write into it under no_grad(), or into a clone() of it."


def require_assignable(target: Tensor) -> None:
    """GradientError where a write would lose the gradient of a leaf."""
    if not is_recording():
        return
    target.refresh()
    require_writable(target)  # whose message says more
    if target._requires_grad and target._grad_fn is None:
        raise GradientError(
            "a leaf Variable that requires grad is being used in an in-place operation"
            f"{at_caller()}. {HOW_TO_WRITE}"
        )
    view = target._view
    if view is None or not view.base._requires_grad or view.is_detached:
        return
    if view.base._grad_fn is None:
        raise GradientError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation"
            f"{at_caller()}. {HOW_TO_WRITE}"
        )
    if view.of_several:
        raise GradientError(
            f"a result of {view.of_several}() is a view and is being modified inplace. This view is the "
            "output of a function that returns multiple views. Such functions do not allow the output views "
            "to be modified inplace. You should replace the inplace operation by an out-of-place one."
        )


def _require_tracked(view: View | None, value: Tensor) -> None:
    """GradientError where the write through a view would pass the gradient by."""
    if view is None or view.tracks or not is_recording():
        return
    if view.is_detached:
        if value._requires_grad:
            raise MutationError(
                f"a traced function writes a value with a gradient into a detached tensor{at_caller()}. "
                "Detach the value as well, or write into a clone() of the tensor."
            )
        return
    if view.base._requires_grad or value._requires_grad:
        raise GradientError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled: its "
            "base would change without its gradient. Make the view where gradients are recorded, or write "
            "into it under no_grad."
        )


def fitted(value: Tensor, target: Tensor) -> Tensor:
    """The value in the shape and dtype of the target. Raises ShapeError if it does not broadcast to that."""
    shape, dtype = target._value.shape, target._value.dtype
    found = value._value.dtype
    if found != dtype:
        value = apply(convert, value, dtype=dtype)
    if value._value.shape != shape:
        try:
            value = apply(expand, value, shape=shape)
        except ShapeError:
            raise ShapeError(
                f"a value of shape {list(value._value.shape)} does not broadcast to the shape {list(shape)} "
                f"of what it is written to, at {place_of_caller()}. Reshape it, or write to another part."
            ) from None
    return value


def _write(memory: np.ndarray, value: np.ndarray) -> None:
    if 0 in memory.strides and memory.size > 1 and _overlaps(memory):
        _refuse_expanded(memory.shape)
    if not memory.flags.writeable:
        raise GradientError(
            f"unsupported operation: the memory of the written-to tensor, of shape {list(memory.shape)}, is "
            f"read-only, as that of a row of what expand() gives, or of a read-only array{at_caller()}. "
            "Please clone() the tensor before performing the operation."
        )
    np.copyto(memory, value)


def _refuse_expanded(shape: Sequence[int]) -> NoReturn:
    raise GradientError(
        "unsupported operation: more than one element of the written-to tensor, of shape "
        f"{list(map(int, shape))}, refers to a single memory location, as of what expand() gives"
        f"{at_caller()}. Please clone() the tensor before performing the operation."
    )


def _overlaps(memory: np.ndarray) -> bool:
    return any(step == 0 and extent > 1 for step, extent in zip(memory.strides, memory.shape))


def _is_traced(tensor: Tensor) -> bool:
    root = tensor if tensor._view is None else tensor._view.base
    return type(root._value) is Node


def _take_place(target: Tensor, value: Tensor, recorded: bool) -> None:
    """Put a tensor where the new value is on the tape (and, in a trace, in the graph)."""
    if type(target._value) is Node:
        found = in_order_of(_node(value), target._value)
        target._value = found if recorded else _unrecorded(found, target)
    if recorded:
        _hand_over_retained(target, value)
        target._grad_fn = value._grad_fn
        target._output_nr = value._output_nr
        target._requires_grad = value._requires_grad
        if value._requires_grad and value._grad_fn is None:
            target._grad_fn = apply(identity, value, grad_name="CopyBackwards")._grad_fn


def _unrecorded(value: Node, target: Tensor) -> Node:
    """In a trace a value written where nothing is recorded: the tensor stays where it is on the tape."""
    differentiable = current_trace().differentiable and value.spec.is_continuous
    if differentiable and target._requires_grad:
        return make_node(in_place_of, (target._value, value), {})
    return cut_off(value)


def set_data_in_trace(target: Tensor, value: Tensor) -> None:
    """`target.data = value` of a traced tensor.

    Raises:
        MutationError: it is a view, or gets another shape or dtype.
    """
    former = target._value
    if target._view is not None or (value._value.shape, value._value.dtype) != (former.shape, former.dtype):
        raise MutationError(
            f"a traced function sets the .data of a view, or to another shape or dtype{at_caller()}. "
            "Write the values into it under no_grad(), or return a new tensor."
        )
    trace = current_trace()
    with no_grad():
        target._value = _unrecorded(_node(value), target)
    trace.rebound.add(id(target))


def _node(value: Tensor) -> Node:
    return value._value if type(value._value) is Node else current_trace().capture(value._value)


def _hand_over_retained(target: Tensor, value: Tensor) -> None:
    """`retain_grad()` goes with the tensor, from the node of its former value to that of the new one."""
    if not target.retains_grad or target._grad_fn is None:
        return
    kept = hooks_of(target._grad_fn).retained.pop(target._output_nr)
    if value._grad_fn is not None:
        hooks_of(value._grad_fn).retained[value._output_nr] = kept


def _carry_back(target: Tensor, view: View, value: Tensor, recorded: bool) -> None:
    """Change the base of a view as its memory has changed: the other views look there when they are used."""
    base = view.base
    if type(base._value) is not Node and not (recorded and view.tracks):
        view.seen = target._cell[0]
        return
    if view.is_detached and is_recording():
        with no_grad():
            return _carry_back(target, view, value, recorded=False)
    whole = make(base._value)  # the base as it was: its memory holds the new values, none of which are read
    whole._grad_fn, whole._output_nr, whole._requires_grad = (
        base._grad_fn,
        base._output_nr,
        base._requires_grad,
    )
    with _named_as_base(target, base):
        _take_place(base, _written_back(whole, view.steps, value), recorded)


def _named_as_base(target: Tensor, base: Tensor) -> AbstractContextManager[None]:
    """Within, what the line makes that writes into a view has the base's name: the view is a part of it."""
    if type(base._value) is not Node:
        return nullcontext()
    name = current_origin().target or array_changed()
    is_of_view = not name or getattr(target._value, "name", "") == name
    return named_at_line(base._value.name if is_of_view else name)


def _written_back(base: Tensor, steps: tuple[Step, ...], value: Tensor) -> Tensor:
    """`base` with the part that `steps` show replaced by `value`."""
    (operator, attributes), rest = steps[0], steps[1:]
    if rest:
        value = _written_back(_shown(base, steps[0]), rest, value)
    if isinstance(attributes, PartAt):
        return apply(index_update, base, value, *attributes.indices, grad_name="CopySlices")
    if isinstance(attributes, Rearranged):
        return _with_elements(base, value, attributes)
    if operator is slice_:
        return _with_part(base, value, attributes)
    if operator is reshape:
        return apply(reshape, value, shape=tuple(base._value.shape), grad_name="CopySlices")
    if operator is permute:
        return apply(permute, value, dims=inverse_permutation(attributes["dims"]), grad_name="CopySlices")
    if operator is diagonal:
        return apply(diagonal_update, base, value)
    if operator is stop_gradient:
        return value
    if operator is flip:
        return apply(flip, value, grad_name="CopySlices", **attributes)
    if operator is real:
        return apply(complex_of, value, apply(imag, base), grad_name="CopySlices")
    if operator is imag:
        return apply(complex_of, apply(real, base), value, grad_name="CopySlices")
    if operator in (pairs_of, of_pairs):
        return apply(of_pairs if operator is pairs_of else pairs_of, value, grad_name="CopySlices")
    _refuse_expanded(apply(operator, base, **attributes)._value.shape)


def _shown(x: Tensor, step: Step, grad_name: str | None = None) -> Tensor:
    """What one step of a view shows of x."""
    operator, attributes = step
    if isinstance(attributes, PartAt):
        return apply(operator, x, *attributes.indices, grad_name=grad_name)
    if isinstance(attributes, Rearranged):
        return attributes.of(x)
    return apply(operator, x, grad_name=grad_name, **attributes)


def _with_elements(base: Tensor, value: Tensor, part: Rearranged) -> Tensor:
    """`base` with the elements that a part shows, each of them once, replaced."""
    shape = tuple(base._value.shape)
    size = math.prod(shape)
    places = part.of(local(np.arange(size).reshape(shape), Auxiliary))._value.reshape(-1)
    elements = apply(reshape, value, shape=(len(places),))
    flat = apply(reshape, base, shape=(size,))
    written = apply(index_update, flat, elements, places, grad_name="CopySlices")
    return apply(reshape, written, shape=shape, grad_name="CopySlices")


def _with_part(base: Tensor, value: Tensor, attributes: Mapping[str, Any]) -> Tensor:
    """`slice_update` on the tape; of concrete memory it is not computed, for the memory holds the part."""
    if type(base._value) is Node or type(value._value) is Node:
        return apply(slice_update, base, value, grad_name="CopySlices", **attributes)
    written = make(base._value)
    mask = base._requires_grad | value._requires_grad << 1
    if mask:
        values = [base._value, value._value]
        record(written, slice_update, (base, value), values, mask, dict(attributes), "CopySlices")
    return written


def refresh_view(tensor: Tensor, view: View) -> None:
    """Bring a view up to date after a write: its graph node and its place on the tape follow the base's."""
    view.seen = tensor._cell[0]
    base = view.base
    traced = type(base._value) is Node
    if not traced and not (view.tracks and base._requires_grad):
        return
    with enable_grad() if view.tracks else no_grad():
        shown = base
        for step in view.steps:
            shown = _shown(shown, step, "AsStridedBackward0")
    if traced:
        tensor._value = shown._value
    if view.tracks:
        tensor._grad_fn, tensor._output_nr = shown._grad_fn, shown._output_nr
        tensor._requires_grad = shown._requires_grad


# --- the methods that end in an underscore ----------------------------------------------------------------


def update(target: Tensor, value: Tensor, began: int | None = None) -> Tensor:
    """`assign` for the result of an operation on `target`: its shape and kind of dtype must fit."""
    shape, dtype = target._value.shape, target._value.dtype
    found = value._value.dtype
    if value._value.shape != shape:
        raise ShapeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape {list(value._value.shape)}"
            f"{at_caller()}. What is written in place keeps its shape."
        )
    if "biufc".index(found.kind.replace("u", "i")) > "biufc".index(dtype.kind.replace("u", "i")):
        raise DTypeError(
            f"result type {scalar_type(found)} can't be cast to the desired output type {scalar_type(dtype)}"
            f"{at_caller()}. What is written in place keeps its dtype: convert it first."
        )
    return assign(target, value, began)


def in_place(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The method `name` that writes into its tensor what `function` returns for it."""

    def method(self: Tensor, *arguments: Any, **options: Any) -> Tensor:
        require_assignable(self)
        began = next_sequence()
        return update(self, function(self, *arguments, **options), began)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"In place: the tensor becomes what `{name.rstrip('_')}` returns for it. Returns the tensor."
    )
    return method


def in_place_view(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The method `name` that makes its tensor what `function`, a view, shows of it."""

    def method(self: Tensor, *arguments: Any, **options: Any) -> Tensor:
        require_assignable(self)
        former = make(self._value)
        for slot in _PLACE:
            setattr(former, slot, getattr(self, slot))
        former._cell = self._cell
        shown = function(former, *arguments, **options)
        self._value = shown._value
        for slot in _PLACE:
            setattr(self, slot, getattr(shown, slot))
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"In place: the tensor becomes what `{name.rstrip('_')}` shows of it. Returns the tensor."
    )
    return method


_PLACE = ("_grad_fn", "_output_nr", "_requires_grad", "_view")
"""Where a tensor is on the tape, and of what it is a view."""
