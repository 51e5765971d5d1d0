"""The tape: `apply` runs one operator on tensors, and records it where a gradient will be asked for.

Every public function ends here, so this is the path to keep short: unwrap, evaluate, wrap, record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from ...tracer.errors import DTypeError, LeakedTraceError, LinearAlgebraError, PullbackError
from ...tracer.graph import Node, lift, make_node
from ...tracer.operator import HOLOMORPHIC, Operator
from ...tracer.ops.elementwise import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    convert,
    equal,
    greater,
    greater_equal,
    identity,
    less,
    less_equal,
    multiply,
    not_equal,
    stop_gradient,
    subtract,
    where,
)
from ...tracer.ops.indexing import gather
from ...tracer.ops.movement import pairs_of, reshape
from ...tracer.origin import fail
from ...tracer.quiet import Quiet
from ...tracer.spec import COMPLEX, CONTINUOUS, INT64, real_dtype
from ...tracer.trace import Trace, current_trace, innermost
from ..values.memory_order import (
    Maker,
    asked_strides_of,
    from_outside,
    in_order,
    is_in_order,
    note_order,
    reshaped_in_place,
)
from ..values.modes import is_recording
from ..values.nodes import observers
from ..values.operator_nodes import OperatorNode, Plan, spec_of_operand, specs_of
from ..values.plain_arrays import require_plain_array
from ..values.saved import saved_values
from ..values.tensor import PartAt, Rearranged, Step, Tensor, TorchTensor, View, make
from ..values.value_kinds import Auxiliary, NumpyTensor, as_kind, kind_of_result, kind_of_value
from .local import is_local, local, node_of

ndarray = np.ndarray
COMPUTING = frozenset((
    "elementwise", "complex", "reduction", "scan", "contraction", "composite", "linalg", "decomposition",
    "custom", "eager",
))  # fmt: skip
"""Families in which NumPy may warn of overflow, division by zero and the like; PyTorch does not."""
MODULAR = frozenset((add, subtract, multiply, bitwise_and, bitwise_or, bitwise_xor, where))
"""Operators on integers whose result is the same, modulo 2 ** bits, of operands that are."""
COMPARISONS = frozenset((equal, not_equal, less, less_equal, greater, greater_equal))

_quiet = Quiet()


def apply(operator: Operator, *operands: Any, grad_name: str | None = None, **attributes: Any) -> Tensor:
    """The result of an operator on tensors, recorded if grad mode is on and an operand requires grad.

    Args:
        operands: Tensors, ndarrays and Python numbers, of one dtype but for the numbers.
        grad_name: what the tape node is called, as "AddBackward0", where the operator's own name is not
            PyTorch's for this use.
        attributes: the operator's, normalised.

    Raises:
        ShapeError, DTypeError: what the operator's shape rule finds wrong, or complex numbers.
        LeakedTraceError: an operand is a traced value of a trace that has ended.

    Example:
        >>> apply(elementwise.multiply, make(np.ones(2)), 3.0)
        tensor([3., 3.], dtype=torch.float64)
    """
    values = []
    mask = 0
    bit = 1
    concrete = True
    kind: type[Tensor] = Auxiliary
    for operand in operands:
        if isinstance(operand, Tensor):
            found = type(operand)
            if found is not kind and found._precedence > kind._precedence:
                kind = found
            view = operand._view
            if view is not None and view.seen != operand._cell[0]:
                operand.refresh()
            value = operand._value
            if type(value) is not ndarray:
                concrete = False
            if operand._requires_grad:
                mask |= bit
            values.append(value)
        else:
            values.append(operand)
        bit <<= 1
    trace = innermost()
    if not concrete or (trace is not None and not (operands and all(map(is_local, operands)))):
        return _in_graph(
            trace or current_trace(), operator, operands, values, kind, mask, attributes, grad_name
        )
    try:
        if operator.family in COMPUTING:
            result = _quiet.run(operator.evaluate, *values, **attributes)
        else:
            result = operator.evaluate(*values, **attributes)
    except Exception as error:  # whatever NumPy raised: the operator's own check says it better
        if kind is TorchTensor and type(error) is OverflowError:
            wrapped = _wrapped(operator, operands, values, error)
            return apply(operator, *wrapped, grad_name=grad_name, **attributes)
        _explain(operator, values, attributes, error)
    if type(result) is not ndarray:
        result = np.asarray(result)
    if kind is not TorchTensor and not (kind is NumpyTensor and result.shape):
        kind = kind_of_result(kind, result.shape, operator.movement.is_view)
    tensor = make(result, kind) if trace is None else local(result, kind)
    sort = result.dtype.kind
    if sort != "f" and not operator.of_complex:
        _require_real(operator, values)
    if mask and operator.rules and sort in CONTINUOUS and is_recording():
        if sort == "c" and operator.of_complex == HOLOMORPHIC:
            _require_no_mixture(operator, values, attributes)
        record(tensor, operator, operands, values, mask, attributes, grad_name)
    if operator.movement.is_view:
        link_view(tensor, operator, operands[0], attributes)
    return tensor


def _in_graph(
    trace: Trace,
    operator: Operator,
    operands: Sequence[Any],
    values: list[Any],
    kind: type[Tensor],
    mask: int,
    attributes: dict[str, Any],
    grad_name: str | None,
) -> Tensor:
    """The same where an operand is traced: its payload is a node, which a long loop makes many of."""
    for value in values:
        if type(value) is not Node:
            try:
                nodes = _as_nodes(trace, operator, operands, values)
            except OverflowError as error:
                if operator in COMPARISONS:
                    values = _widened(values, error)
                elif kind is TorchTensor:
                    values = _wrapped(operator, values, values, error)
                else:
                    raise
                nodes = _as_nodes(trace, operator, operands, values)
            break
    else:
        nodes = tuple(values)
    node = make_node(operator, nodes, attributes, inside=2)
    records, spec = is_recording(), node.spec
    sort, is_view = spec.dtype.kind, operator.movement.is_view
    if not records and trace.differentiable and operands:
        node = cut_off(node)
    if kind is not TorchTensor and not (kind is NumpyTensor and spec.shape):
        kind = kind_of_result(kind, spec.shape, is_view)
    tensor = make(node, kind)
    if sort != "f" and not operator.of_complex:
        _require_real(operator, values)
    if mask and records and operator.rules and sort in CONTINUOUS:
        if sort == "c" and operator.of_complex == HOLOMORPHIC:
            _require_no_mixture(operator, values, attributes)
        record(tensor, operator, operands, values, mask, attributes, grad_name)
    if is_view:
        link_view(tensor, operator, operands[0], attributes)
    return tensor


_plans: dict[Any, Plan] = {}


def record(
    tensor: Tensor,
    operator: Operator,
    operands: Sequence[Any],
    values: list[Any],
    mask: int,
    attributes: dict[str, Any],
    grad_name: str | None,
) -> None:
    """Give `tensor`, the result, the tape node of the operator. Bit i of `mask`: operand i requires grad."""
    key = (operator, mask, len(values), grad_name)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = Plan(operator, mask, len(values), grad_name or f"{operator.grad_fn}Backward0")
    if not plan.positions:
        return
    edges: list[Any] = [None] * len(values)
    for position in plan.positions:
        operand = operands[position]
        edges[position] = (operand._grad_fn or operand, operand._output_nr)
    if type(tensor._value) is ndarray:
        node = plan.node(attributes, edges)
        save(node, tensor, operands, values)
    else:  # the graph keeps values that are overwritten, but `backward()` has PyTorch's rules
        node = plan.node_in_trace(attributes, edges, values, tensor._value)
        if plan.saves or plan.saves_result:
            versions = _versions(plan, tensor, operands)
            if versions:
                node.replace_versions(versions)
                noted = saved_values()
                if noted is not None:
                    noted.note(node)
    tensor._grad_fn = node
    tensor._requires_grad = True
    if observers:
        for observe in observers:
            observe(node)


def save(node: OperatorNode, tensor: Tensor, operands: Sequence[Any], values: list[Any]) -> None:
    """Let the node have what its rules need, of arrays that may be written to later."""
    plan = node.plan
    if plan.may_broadcast:
        node.shapes = [*[values[position].shape for position in plan.positions], tensor._value.shape]
    versions: list[Any] = []
    if plan.saves:
        saved: list[Any] = [None] * len(values)
        for position in plan.saves:
            saved[position] = values[position]
            operand = operands[position]
            if isinstance(operand, Tensor):
                cell = operand._cell
                versions.append((position, cell, cell[0]))
        node.operands = saved
    if plan.saves_result:
        node.result = tensor._value
        versions.append((-1, tensor._cell, tensor._cell[0]))
    if plan.saves_specs:
        node.specs = specs_of(values, tensor._value)
    if versions:
        node.replace_versions(versions)
        noted = saved_values()
        if noted is not None:
            noted.note(node)


def _versions(plan: Plan, tensor: Tensor, operands: Sequence[Any]) -> list[tuple[int, list[Any], int]]:
    """In a trace, of which memory of tensors the node's rules read values."""
    found = []
    for position in plan.saves:
        one = operands[position]
        if isinstance(one, TorchTensor):
            found.append((position, one._cell, one._cell[0]))
    if plan.saves_result and isinstance(tensor, TorchTensor):
        found.append((-1, tensor._cell, tensor._cell[0]))
    return found


def _as_nodes(
    trace: Trace, operator: Operator, operands: Sequence[Any], values: list[Any]
) -> tuple[Node, ...]:
    """The values as nodes: concrete arrays, also in `values`, become constants, or captured inputs."""
    for position, value in enumerate(values):
        if type(value) is ndarray:
            values[position] = node_of(value) if is_local(operands[position]) else trace.capture(value)
    return lift(operator, tuple(values))


def _wrapped(
    operator: Operator, operands: Sequence[Any], values: Sequence[Any], error: OverflowError
) -> list[Any]:
    """The operands, with numbers beyond the integers of the tensors' dtype brought into its range.

    NumPy refuses such numbers. PyTorch's tensors wrap around, which is what is asked for where the operator
    does as well: `x + 300` of dtype uint8. Elsewhere, as in `x // -2`, it would compute something else.
    """
    dtype = _integers_among(values, error)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    beyond = [one for one in operands if isinstance(one, int) and not low <= one <= high]
    if not beyond:
        fail(DTypeError, f"{operator.name}: {error}")
    if operator not in MODULAR:
        fail(
            DTypeError,
            f"{operator.name}: {beyond[0]} is no {dtype}. Give a number from {low} to {high}, or convert the "
            "tensor first, e.g. with .long()",
        )
    return [low + (one - low) % (high - low + 1) if isinstance(one, int) else one for one in operands]


def _widened(values: Sequence[Any], error: OverflowError) -> list[Any]:
    """The operands of a comparison with a number beyond their integers, as int64: NumPy compares exactly."""
    if _integers_among(values, error) == np.dtype("uint64"):
        raise error
    return [
        make_node(convert, (one,), {"dtype": INT64}) if isinstance(one, Node)
        else one.astype(INT64) if isinstance(one, ndarray) else one
        for one in values
    ]  # fmt: skip


def _integers_among(values: Sequence[Any], error: OverflowError) -> np.dtype:
    """The dtype of the integers beside a number; the error where there are none, as it is not about them."""
    specs = (spec_of_operand(one, INT64) for one in values if isinstance(one, ndarray | Node))
    dtype = next((one.dtype for one in specs if one.dtype.kind in "iu"), None)
    if dtype is None:
        raise error
    return dtype


def cut_off(node: Node) -> Node:
    """The node; where gradients will be taken of the graph and nothing is recorded, without gradient."""
    trace = current_trace()
    if not trace.differentiable or is_recording() or not node.spec.is_continuous:
        return node
    if not node.is_input and all(_has_no_gradient(one, trace.without_gradient) for one in node.operands):
        trace.without_gradient.add(node)
        return node
    return stop_gradient(node)


def _has_no_gradient(node: Node, known: set[Node]) -> bool:
    return node.operator is stop_gradient or node in known or not node.spec.is_continuous or node.is_constant


def _explain(operator: Operator, values: list[Any], attributes: dict[str, Any], error: Exception) -> NoReturn:
    """Raise what the operator's shape rule says about its operands, else NumPy's error."""
    if isinstance(error, PullbackError):
        raise error
    if isinstance(error, np.linalg.LinAlgError):
        element = _quiet.run(_first_failing, operator, values, attributes)
        raise LinearAlgebraError(f"linalg.{operator.name}: {element}{error}.") from error
    if not operator.of_complex:
        _require_real(operator, values)
    dtype = next((value.dtype for value in values if isinstance(value, ndarray)), np.dtype("float64"))
    operator.infer(*(spec_of_operand(value, dtype) for value in values), **attributes)
    raise error


def _require_no_mixture(operator: Operator, values: list[Any], attributes: dict[str, Any]) -> None:
    """NumPy computes with real and complex operands together, whose cotangents would not fit: DTypeError."""
    if any(isinstance(one, ndarray) and one.dtype.kind == "f" for one in values):
        operator.infer(*(spec_of_operand(value, np.dtype(complex)) for value in values), **attributes)


def _require_real(operator: Operator, values: list[Any]) -> None:
    """DTypeError for complex operands of an operator on real numbers."""
    for value in values:
        if isinstance(value, complex) or (isinstance(value, ndarray | Node) and value.dtype.kind == "c"):
            refuse_complex(operator.public_name)


def refuse_complex(function: str) -> NoReturn:
    """DTypeError: the function is one of real numbers."""
    fail(
        DTypeError,
        f"{function}() is not implemented for complex numbers, and an operand is complex. Take its .real, "
        ".imag or abs() first.",
    )


def _first_failing(operator: Operator, matrices: list[Any], attributes: dict[str, Any]) -> str:
    """Which of a batch of matrices has no result, in PyTorch's words."""
    for number, place in enumerate(np.ndindex(matrices[0].shape[:-2])):
        try:
            operator(*(np.asarray(one[place]) for one in matrices), **attributes)
        except np.linalg.LinAlgError:
            return f"(Batch element {number}): " if place else ""
    return ""


def link_view(tensor: Tensor, operator: Operator, operand: Any, attributes: dict[str, Any] | PartAt) -> None:
    """Note whose memory the result shows, unless NumPy had to copy."""
    if not isinstance(operand, Tensor):
        return
    value, source = tensor._value, operand._value
    if operand._is_number:  # which has no memory that an array could show
        if type(value) is ndarray:
            tensor._value = value.copy()
        return
    if type(value) is ndarray and not (
        value.base is source or (source.base is not None and value.base is source.base)
    ):
        return
    if type(value) is Node and type(source) is ndarray:  # of an array that the graph has captured
        return
    if operator is reshape and type(value) is Node and not reshaped_in_place(source, value.shape):
        return
    _link(tensor, operand, (operator, attributes))


def rearranged(
    x: Tensor, part: Rearranged, memory: Callable[[np.ndarray], np.ndarray], is_shared: bool
) -> Tensor:
    """A view of the elements of a part, whose memory is a part of that of x.

    Where elements are shown more than once (`is_shared`) it can't be written to.
    """
    shown = part.of(x)
    if type(x._value) is ndarray:
        if type(shown._value) is not ndarray:  # of an array that the graph has captured
            return shown
        shown._value = memory(x._value)
    _link(shown, x, (gather, part))
    if is_shared and not shown._frozen:
        shown._frozen = (
            f"more than one element of what {part.name} shows refers to a single memory location; write into "
            "a copy of it"
        )
    return shown


def _link(tensor: Tensor, operand: Tensor, shown: Step) -> None:
    """Let a tensor be the view of another that a step shows."""
    step = (shown,)
    view = operand._view
    cell = tensor._cell = operand._cell
    tensor._frozen = operand._frozen
    if view is None:
        tensor._view = View(operand, step, cell[0], is_recording())
    else:
        tensor._view = View(view.base, view.steps + step, cell[0], view.tracks and is_recording())
        tensor._view.of_several = view.of_several


def as_several_views(tensors: Sequence[Tensor], function: str) -> tuple[Tensor, ...]:
    """The views that PyTorch's function gives at once: they must not be written to where that is recorded."""
    for one in tensors:
        if one._view is not None and isinstance(one, TorchTensor):
            one._view.of_several = function
    return tuple(tensors)


def with_own_memory(tensor: Tensor) -> Tensor:
    """A new result as one that shows no other's memory, where PyTorch copies."""
    if tensor._view is not None:
        tensor._view, tensor._cell, tensor._frozen = None, [0, None], ""
        if type(tensor._value) is ndarray:
            tensor._value = tensor._value.copy()
    return tensor


def apart_from(x: Tensor, result: Tensor) -> Tensor:
    """A result, as a copy where it still shows the memory of x."""
    return apply(identity, result) if result._cell is x._cell else result


def copied_in_order(tensor: Tensor, order: str | None = "C") -> Tensor:
    """A copy in C's order of memory, in Fortran's ("F"), or in that of the two which it has ("A").

    `identity` keeps the operand's ("K", or None).
    """
    if order == "A":
        order = "F" if lies_in(tensor, "F") and not lies_in(tensor, "C") else "C"
    copied = apply(identity, tensor)
    if order is not None and not lies_in(copied, order):
        value = copied._value
        is_array = type(value) is ndarray
        copied._value = np.asarray(value, order=cast(Any, order)) if is_array else in_order(value, order)
    return copied


def laid_out(tensor: Tensor, order: str | None) -> Tensor:
    """The tensor itself if it lies in an order of memory, else a copy that does."""
    return tensor if order is None or lies_in(tensor, order) else copied_in_order(tensor, order)


def dims_from_outside(tensor: Tensor) -> tuple[int, ...]:
    """The dimensions, those first whose neighbours lie farthest apart; in a trace that is a guard."""
    value = tensor._value
    return from_outside(asked_strides_of(value) if isinstance(value, Node) else value.strides)


def lies_in(tensor: Tensor, order: str, asked: bool = False) -> bool:
    """Whether the elements lie one behind the other in an order: C's, Fortran's, either ("A"), any ("K").

    `asked` if what the function computes depends on the answer, not only where it writes: that is a guard.
    """
    if asked and isinstance(tensor._value, Node):
        asked_strides_of(tensor._value)
    if order == "K":
        return True
    if order == "A":
        return lies_in(tensor, "C") or lies_in(tensor, "F")
    value = tensor._value
    if type(value) is not ndarray:
        return is_in_order(value, order)
    return value.flags.c_contiguous if order == "C" else value.flags.f_contiguous


def lay_in_order(tensor: Tensor, given: Sequence[np.ndarray | Node], otherwise: bool | Maker) -> None:
    """Let a result with memory of its own lie in C's order if what it was made of does.

    If that does not, it lies as the first of it where `otherwise` is true, or as what a call gives.
    """
    value = tensor._value
    nodes = [one for one in given if isinstance(one, Node)]
    are_in_order = all(one.flags.c_contiguous for one in given if isinstance(one, ndarray))
    if isinstance(value, Node):
        if (are_in_order or callable(otherwise)) and value not in nodes:
            current_trace().made_of[value] = [one for one in nodes if one.ndim > 1], otherwise
            tensor._view, tensor._cell = None, [0, None]  # nobody has what it may be a view of
    elif nodes or is_local(tensor):
        return
    elif are_in_order:
        tensor._value = np.ascontiguousarray(value)
    elif callable(otherwise):
        tensor._value = _laid_as(otherwise(lambda one: cast(np.ndarray, one)), value)
    elif otherwise and given[0].shape == value.shape:
        tensor._value = _laid_as(cast(np.ndarray, given[0]), value)
    if tensor._value is not value:
        tensor._view, tensor._cell = None, [0, None]


def left_in_order(tensor: Tensor, order: str) -> Tensor:
    """A result with memory of its own, which lies in C's order or in Fortran's ("F")."""
    if isinstance(tensor._value, Node):
        note_order(tensor._value, order)
    else:
        tensor._value = np.asarray(tensor._value, order=cast(Any, order))
    return tensor


def _laid_as(pattern: np.ndarray, value: np.ndarray) -> np.ndarray:
    """A copy of a value which lies as an array of its shape does."""
    found = np.empty_like(pattern, dtype=value.dtype)
    found[...] = value
    return found


def of_kind(tensor: Tensor, kind: type[Tensor]) -> Tensor:
    """The same value, at the same place on the tape, as a tensor of a kind; itself if it is of that kind."""
    if type(tensor) is kind:
        return tensor
    if tensor._requires_grad and tensor._grad_fn is None:  # a leaf is known by its identity
        return as_kind(apply(reshape, tensor, shape=tensor._value.shape), kind)
    shown = make(tensor._value, kind)
    shown._grad_fn, shown._output_nr, shown._requires_grad = (
        tensor._grad_fn, tensor._output_nr, tensor._requires_grad
    )  # fmt: skip
    shown._cell, shown._frozen = tensor._cell, tensor._frozen
    shown._view = None if tensor._view is None else tensor._view.copy()
    return shown


def wrap(value: Any) -> Tensor:
    """A tensor around an ndarray (not copied), NumPy scalar or graph node; a Tensor stays itself.

    It is of no kind of its own: see `value_kinds.py`.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Node):
        return make(value, Auxiliary)
    if type(value) is not ndarray:
        require_plain_array(value, "an operand")
    tensor = make(np.asarray(value), Auxiliary)
    noted = saved_values()
    if noted is not None:
        noted.share(tensor._cell)
    return tensor


def standing_for(value: Any) -> Tensor:
    """The tensor that stands for an array or a number of NumPy's or Python's; a Tensor stays itself."""
    return value if isinstance(value, Tensor) else as_kind(wrap(value), kind_of_value(value))


def unwrap(operand: Any) -> Any:
    """The payload of a Tensor; anything else as it is."""
    if isinstance(operand, Tensor):
        operand.refresh()
        return operand._value
    return operand


__all__ = ["LeakedTraceError", "apply", "record", "unwrap", "wrap"]


def parts_of(value: Any) -> Any:
    """Complex numbers, as a Tensor or of NumPy's, as pairs of real ones in a last dimension."""
    if isinstance(value, Tensor):
        return apply(pairs_of, value)
    array = np.asarray(value)
    return array.view(_PAIRS[array.dtype.char])


_PAIRS = {one.char: np.dtype((real_dtype(one), (2,))) for one in COMPLEX}
"""By a complex dtype's character, which is found sooner than the dtype."""
