"""The short way of an operator of elements: evaluated, wrapped and recorded in one frame.

It is for floating and complex arrays of one dtype, and what is beside floating ones without changing their
dtype: numbers, and NumPy's integers and bools beside doubles. It is for what is outside of traces: eager
code. Each operator has one function for it, which follows from the declaration. All else takes the way
through promotion and `apply`, to the same result: the function calls the `general` one, or says
NotImplemented. Decompositions, which have several results, have a short way where nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...tracer.array_rules import Copies
from ...tracer.operator import Operator
from ...tracer.quiet import quiet_context
from ...tracer.spec import CONTINUOUS
from ...tracer.trace import innermost
from ..values.modes import is_recording
from ..values.nodes import observers
from ..values.operator_nodes import OperatorNode, Plan, specs_of
from ..values.saved import saved_values
from ..values.tensor import Tensor, TorchTensor, View, make
from ..values.value_kinds import Auxiliary, NumpyScalar, NumpyTensor, PythonNumber
from .direct_indexing import direct_at, is_at_positions, note

ndarray = np.ndarray
Function = Callable[..., Any]
EXACT = 2**53
"""Integers below are floats without loss."""
_NUMPY = (NumpyTensor, NumpyScalar)
_OF_NUMPY = (ndarray, np.float64, np.int64, np.bool_)
_KINDS: dict[type, type[Tensor]] = {
    TorchTensor: TorchTensor, PythonNumber: PythonNumber, **dict.fromkeys(_NUMPY, NumpyTensor),
}  # fmt: skip
"""Of one operand's kind that of an array which is the result."""
_KINDS_OF_NUMPY = _KINDS | {PythonNumber: NumpyTensor}
"""The same for NumPy's functions, which make numbers of NumPy's of Python's."""
_PAIRS: dict[tuple[type, type], tuple[type[Tensor], bool, bool]] = {
    (TorchTensor, TorchTensor): (TorchTensor, True, True),
    **{(one, other): (NumpyTensor, True, True) for one in _NUMPY for other in _NUMPY},
    **{(TorchTensor, other): (TorchTensor, True, True) for other in (*_NUMPY, PythonNumber)},
    **{(other, TorchTensor): (TorchTensor, True, True) for other in (*_NUMPY, PythonNumber)},
    **{(one, other): (_KINDS[one], True, False) for one in _KINDS for other in (float, int)},
    **{(other, one): (_KINDS[one], False, True) for one in _KINDS for other in (float, int)},
    **{(one, other): (NumpyTensor, True, False) for one in _NUMPY for other in _OF_NUMPY},
    **{(other, one): (NumpyTensor, False, True) for one in _NUMPY for other in _OF_NUMPY},
    **{(PythonNumber, other): (NumpyTensor, True, True) for other in _NUMPY},
    **{(other, PythonNumber): (NumpyTensor, True, True) for other in _NUMPY},
    **{(PythonNumber, other): (NumpyTensor, True, False) for other in _OF_NUMPY},
    **{(other, PythonNumber): (NumpyTensor, False, True) for other in _OF_NUMPY},
    (PythonNumber, PythonNumber): (PythonNumber, True, True),
    **{(one, Auxiliary): (_KINDS[one], True, True) for one in (TorchTensor, *_NUMPY)},
    **{(Auxiliary, one): (_KINDS[one], True, True) for one in (TorchTensor, *_NUMPY)},
}
"""Of two operands' kinds that of an array which is the result, and which of them are tensors."""
_PAIRS_OF_NUMPY: dict[tuple[type, type], tuple[type[Tensor], bool, bool]] = {
    **_PAIRS,
    **{(PythonNumber, other): (NumpyTensor, True, False) for other in (float, int)},
    **{(other, PythonNumber): (NumpyTensor, False, True) for other in (float, int)},
    (PythonNumber, PythonNumber): (NumpyTensor, True, True),
}
"""The same for NumPy's functions, which make numbers of NumPy's of Python's."""
_PAIRS_IN_RULES: dict[tuple[type, type], tuple[type[Tensor], bool, bool]] = {
    **_PAIRS,
    **{(TorchTensor, other): (TorchTensor, True, False) for other in _OF_NUMPY},
    **{(other, TorchTensor): (TorchTensor, False, True) for other in _OF_NUMPY},
}
"""The same for rules: what a node has saved is an array where it was no tensor's."""
_USUAL = {"f": np.dtype("float64"), "b": np.dtype("bool")}
"""Of a kind of dtypes the one that is asked for first."""
_new = object.__new__
run = quiet_context().run
"""Calls NumPy's functions without warnings. Where another thread is doing so, it raises RuntimeError, and
the general way, which has one for each thread, does the same."""


class _Plans(dict[int, Plan]):
    """How an operator is recorded, by which of its operands require grad."""

    def __init__(self, operator: Operator, count: int, grad_name: str | None) -> None:
        self._of = operator, count, grad_name or f"{operator.grad_fn}Backward0"

    def __missing__(self, mask: int) -> Plan:
        operator, count, name = self._of
        self[mask] = plan = Plan(operator, mask, count, name)
        return plan


def unsupported(*operands: Any, **attributes: Any) -> Any:
    return NotImplemented


def direct(
    operator: Operator,
    general: Function = unsupported,
    grad_name: str | None = None,
    reflected: bool = False,
    of_numpy: bool = False,
    kinds: str = "",
    in_rules: bool = False,
    fixed: Mapping[str, Any] | None = None,
    evaluate: Function | None = None,
) -> Function:
    """The function of an operator on one to three operands, with its short way; `general` does all else.

    Without a `general` one, or if that is the operator itself, it takes the operator's attributes by name. A
    `reflected` one takes the second operand first, as `x.__rmul__(2.0)`. A function `of_numpy` takes Python's
    numbers as NumPy's. The short way is for floating arrays, and complex ones that the operator takes, or for
    those of other `kinds` of dtypes. One `in_rules` takes arrays beside PyTorch's tensors. Of two operands
    attributes may be `fixed`, with what evaluates the operator with these. Operators of more operands, of
    three that are not of elements, and views have none. `function.around` gives the same around another form
    of `general`.
    """
    count = len(operator.operands)
    is_short = count in (1, 2) or (count == 3 and operator.family in ("elementwise", "eager"))
    if not is_short or operator.variadic or operator.movement.is_view:
        return general
    plans = _Plans(operator, count, grad_name)
    kinds = kinds or _kinds_of(operator)
    if count == 1:
        function = _of_one(operator, general, plans, _KINDS_OF_NUMPY if of_numpy else _KINDS, kinds)
    elif count == 3:
        function = _of_three(operator, general, plans)
    else:
        pairs = _PAIRS_IN_RULES if in_rules else _PAIRS_OF_NUMPY if of_numpy else _PAIRS
        straight = general if not reflected else lambda other, self: general(self, other)
        evaluate = evaluate or operator.evaluate
        function = _of_two(operator, straight, plans, pairs, kinds, dict(fixed or {}), evaluate)
    if reflected:
        straight = function

        def function(self: Any, other: Any) -> Any:
            return straight(other, self)

    if general is not unsupported:
        function.__doc__ = general.__doc__
        function.__wrapped__ = general  # type: ignore[attr-defined]  # whose signature it has
    function.around = lambda form: direct(operator, form(general), grad_name, reflected)  # type: ignore[attr-defined]
    return function


def _in_rules(operator: Operator) -> Function:
    """The short way of an operator, of views and at positions as well, and the operator for all else."""
    at_positions = is_at_positions(operator)
    if not (at_positions or operator.movement.is_view):
        kinds = _kinds_of(operator) + ("" if operator.rules else "b")  # as those of logical operators
        return direct(operator, operator, kinds=kinds, in_rules=True)
    short = direct_at(operator) if at_positions else direct_view(operator)

    def function(*operands: Any, **attributes: Any) -> Any:
        found = short(*operands, **attributes)
        return operator(*operands, **attributes) if found is NotImplemented else found

    return function


rules_on_tensors = Copies(_in_rules)
"""A function of operators for Tensors: their short ways take the operators' places."""
OperatorNode.on_tensors = rules_on_tensors


def _kinds_of(operator: Operator) -> str:
    return CONTINUOUS if operator.of_complex else "f"


def _of_one(
    operator: Operator,
    general: Function,
    plans: _Plans,
    kinds_of_results: Mapping[type, type[Tensor]],
    kinds: str,
) -> Function:
    kind_of_result = kinds_of_results.get
    evaluate, has_rule = operator.evaluate, operator.rule_for(0) is not None
    usual = _USUAL[kinds[0]]
    takes_attributes = general is unsupported or general is operator

    def function(input: Any, **attributes: Any) -> Any:
        if innermost() is not None:
            return general(input, **attributes)
        kind = kind_of_result(type(input))
        if kind is None or (attributes and not takes_attributes):
            return general(input, **attributes)
        view = input._view
        if view is not None and view.seen != input._cell[0]:
            input.refresh()
        value = input._value
        if type(value) is not ndarray or ((dtype := value.dtype) is not usual and dtype.kind not in kinds):
            return general(input, **attributes)
        try:
            result = run(evaluate, value, **attributes) if attributes else run(evaluate, value)
        except Exception:  # which the general way explains, outside of here
            result = None
        if type(result) is not ndarray:
            if result is None:
                return general(input, **attributes)
            result = np.asarray(result)
        if kind is NumpyTensor and not result.ndim:
            kind = NumpyScalar
        tensor = _new(kind)
        tensor._value = result
        tensor._grad_fn = tensor._grad = tensor._view = tensor._hooks = None
        tensor._output_nr = 0
        tensor._cell = own = [0, None]
        tensor._frozen = ""
        if not (has_rule and input._requires_grad and is_recording()):
            tensor._requires_grad = False
            return tensor
        plan = plans[1]
        tensor._grad_fn = node = plan.node(attributes, ((input._grad_fn or input, input._output_nr),))
        tensor._requires_grad = True
        if plan.may_broadcast:
            node.shapes = (value.shape,)
        if plan.saves_specs:
            node.specs = specs_of((value,), result)
        if plan.saves:
            node.operands = [value]
            cell = input._cell
            node.versions = (0, cell, cell[0])
        if plan.saves_result:
            node.result = result
            node.versions += (-1, own, 0)
        if node.versions and (noted := saved_values()) is not None:
            noted.note(node)
        for observe in observers:
            observe(node)
        return tensor

    return function


def _of_two(
    operator: Operator,
    general: Function,
    plans: _Plans,
    pairs: Mapping[tuple[type, type], tuple[type[Tensor], bool, bool]],
    kinds: str,
    fixed: dict[str, Any],
    evaluate: Function,
) -> Function:
    case_of = pairs.get
    usual = _USUAL[kinds[0]]
    takes_attributes = general is unsupported or general is operator
    with_rule = sum(1 << position for position in range(2) if operator.rule_for(position))
    is_of_bits = "f" not in kinds

    def function(input: Any, other: Any, **attributes: Any) -> Any:
        if innermost() is not None:
            return general(input, other, **attributes)
        case = case_of((type(input), type(other)))
        if case is None or (attributes and not takes_attributes):
            return general(input, other, **attributes)
        kind, first, second = case
        a, b, mask = input, other, 0
        if first:
            view = input._view
            if view is not None and view.seen != input._cell[0]:
                input.refresh()
            a = input._value
            if input._requires_grad:
                mask = 1
        if second:
            view = other._view
            if view is not None and view.seen != other._cell[0]:
                other.refresh()
            b = other._value
            if other._requires_grad:
                mask |= 2
        if first and second:
            if type(a) is not ndarray or type(b) is not ndarray:
                return general(input, other, **attributes)
            dtype, of_other = a.dtype, b.dtype
            if dtype is of_other or dtype == of_other:
                is_float = dtype is usual or dtype.kind in kinds
            elif is_of_bits:
                is_float = False
            elif dtype.kind == "f":
                b, is_float = _beside(a, b, kinds)
                second = False  # it is a copy, and has no gradient
            else:
                a, is_float = _beside(b, a, kinds)
                first = False
        elif first:
            b, is_float = _beside(a, b, kinds)
        else:
            a, is_float = _beside(b, a, kinds)
        if not is_float:
            return general(input, other, **attributes)
        try:
            result = run(evaluate, a, b, **attributes) if attributes else run(evaluate, a, b)
        except Exception:  # which the general way explains, outside of here
            result = None
        if type(result) is not ndarray:
            if result is None:
                return general(input, other, **attributes)
            result = np.asarray(result)
        if kind is NumpyTensor and not result.ndim:
            kind = NumpyScalar
        tensor = _new(kind)
        tensor._value = result
        tensor._grad_fn = tensor._grad = tensor._view = tensor._hooks = None
        tensor._output_nr = 0
        tensor._cell = own = [0, None]
        tensor._frozen = ""
        mask &= with_rule
        if not (mask and is_recording()):
            tensor._requires_grad = False
            return tensor
        plan = plans[mask]
        edges = (
            (input._grad_fn or input, input._output_nr) if mask & 1 else None,
            (other._grad_fn or other, other._output_nr) if mask & 2 else None,
        )
        tensor._grad_fn = node = plan.node(attributes or fixed, edges)
        tensor._requires_grad = True
        if type(b) is ndarray and type(a) is ndarray and a.shape != b.shape:
            node.shapes = [*[(a, b)[position].shape for position in plan.positions], result.shape]
        if plan.saves_specs:
            node.specs = specs_of((a, b), result)
        if plan.saves:
            noted = saved_values()
            saves_a, saves_b = plan.saves_each
            versions: tuple[Any, ...] = ()
            if not saves_a:
                a = None
            elif first:
                cell = input._cell
                versions = (0, cell, cell[0])
            elif noted is not None and type(a) is ndarray:
                a = noted.of_array(a)
            if not saves_b:
                b = None
            elif second:
                cell = other._cell
                versions += (1, cell, cell[0])
            elif noted is not None and type(b) is ndarray:
                b = noted.of_array(b)
            node.operands = [a, b]
            node.versions = versions
            if noted is not None and versions:
                noted.note(node)
        if plan.saves_result:
            node.result = result
            node.versions += (-1, own, 0)
            if len(node.versions) == 3 and (noted := saved_values()) is not None:
                noted.note(node)
        for observe in observers:
            observe(node)
        return tensor

    return function


def _of_three(operator: Operator, general: Function, plans: _Plans) -> Function:
    """Of operators of elements, whose first operand may be a condition, beside tensors also arrays."""
    evaluate, chooses = operator.evaluate, operator.operands[0] == "condition"
    with_rule = sum(1 << position for position in range(3) if operator.rule_for(position))

    def function(*operands: Any, **attributes: Any) -> Any:
        if attributes or len(operands) != 3 or innermost() is not None:
            return general(*operands, **attributes)
        kind: Any = None
        dtype, mask, bit = None, 0, 1
        values: list[Any] = []
        for operand in operands:
            value, own = operand, type(operand)
            if (given := _KINDS.get(own)) is not None:
                view = operand._view
                if view is not None and view.seen != operand._cell[0]:
                    operand.refresh()
                value = operand._value
                if type(value) is not ndarray:
                    return general(*operands)
                if kind is None or given._precedence > kind._precedence:
                    kind = given
                if operand._requires_grad:
                    mask |= bit
            elif own is float or (own is int and bit > 1 and -EXACT < operand < EXACT):
                values.append(float(value))
                bit <<= 1
                continue
            elif own is not ndarray and own is not np.float64:
                return general(*operands)
            found = value.dtype
            if chooses and bit == 1:
                if found.kind != "b":
                    return general(*operands)
            elif dtype is None and found.kind == "f":
                dtype = found
            elif found is not dtype and found != dtype:
                return general(*operands)
            values.append(value)
            bit <<= 1
        if dtype is None or kind is None or kind is PythonNumber:
            return general(*operands)
        try:
            result = run(evaluate, *values)
        except Exception:  # which the general way explains, outside of here
            result = None
        if type(result) is not ndarray or not result.ndim:  # an array, or a number, by who asks
            return general(*operands)
        tensor = make(result, kind)
        mask &= with_rule
        if not (mask and is_recording()):
            return tensor
        plan = plans[mask]
        edges = [
            (operand._grad_fn or operand, operand._output_nr) if mask >> position & 1 else None
            for position, operand in enumerate(operands)
        ]
        node = plan.node({}, edges)
        node.shapes = [*[values[position].shape for position in plan.positions], result.shape]
        if plan.saves_specs:
            node.specs = specs_of(values, result)
        versions: tuple[Any, ...] = ()
        saved: list[Any] = [None, None, None]
        for position in plan.saves:
            value, operand = values[position], operands[position]
            if value is not operand:
                cell = operand._cell
                versions += (position, cell, cell[0])
            elif type(value) is ndarray and (noted := saved_values()) is not None:
                value = noted.of_array(value)
            saved[position] = value
        node.operands = saved
        if plan.saves_result:
            node.result = result
            versions += (-1, tensor._cell, 0)
        tensor._grad_fn = node
        tensor._requires_grad = True
        if versions or observers:
            note(node, versions)
        return tensor

    return function


def unrecorded(compute: Function, gather: Function) -> Function:
    """The short way of a function of matrices where nobody asks for its gradient, outside of traces.

    Args:
        compute: of an ndarray of floating or complex numbers, of two rows and columns at least, and options:
            the arrays that are the results, whose memory nobody else holds. What it refuses, by any error, is
            the general way's.
        gather: of a tensor for each the result.
    """

    def function(input: Any = None, *arguments: Any, **options: Any) -> Any:
        kind = _KINDS.get(type(input))
        if kind is None or innermost() is not None or (input._requires_grad and is_recording()):
            return NotImplemented
        view = input._view
        if view is not None and view.seen != input._cell[0]:
            input.refresh()
        value = input._value
        is_table = value.ndim > 1 and value.size and min(value.shape[-2:]) > 1
        if not is_table or value.dtype.kind not in CONTINUOUS:
            return NotImplemented
        try:
            found = run(compute, value, *arguments, **options)
        except Exception:  # which the general way explains
            return NotImplemented
        return gather(*[_standing_for(one, kind) for one in found])

    function.takes_options = True  # type: ignore[attr-defined]
    return function


def _standing_for(result: Any, kind: type[Tensor]) -> Tensor:
    """A tensor for an array, or for a number of NumPy's that a function gives of one matrix."""
    if type(result) is not ndarray:
        result = np.asarray(result)
    return make(result, NumpyScalar if kind is NumpyTensor and not result.ndim else kind)


def direct_view(operator: Operator, grad_name: str | None = None, of_numbers: bool = False) -> Function:
    """The short way of an operator whose result shows its operand's memory.

    It takes the tensor and the operator's attributes by name, and gives NotImplemented for what it is not
    for. NumPy may be given what it completes, as a shape with -1: of what it has made, `complete` gives the
    attributes. Where it stays a number, one `of_numbers` takes NumPy's and Python's as well.
    """
    evaluate, plans = operator.evaluate, _Plans(operator, 1, grad_name)

    def function(input: Any, complete: Function | None = None, **attributes: Any) -> Any:
        kind = type(input)
        if innermost() is not None or not (
            kind is TorchTensor or kind is NumpyTensor or (of_numbers and kind in _KINDS)
        ):
            return NotImplemented
        view = input._view
        if view is not None and view.seen != input._cell[0]:
            input.refresh()
        value = input._value
        if type(value) is not ndarray or value.dtype.kind != "f":
            return NotImplemented
        try:
            result = evaluate(value, **attributes)
        except Exception:  # which the general way explains
            return NotImplemented
        if complete is not None:
            attributes = complete(result)
        tensor = _new(kind)
        tensor._value = result
        tensor._grad_fn = tensor._grad = tensor._hooks = None
        tensor._output_nr = 0
        recording = is_recording()
        if result.base is value or (value.base is not None and result.base is value.base):
            tensor._cell = cell = input._cell
            tensor._frozen = input._frozen
            step = ((operator, attributes),)
            if view is None:
                tensor._view = View(input, step, cell[0], recording)
            else:
                shown = tensor._view = View(view.base, view.steps + step, cell[0], view.tracks and recording)
                shown.of_several = view.of_several
        else:
            tensor._cell, tensor._frozen, tensor._view = [0, None], "", None
        if not (input._requires_grad and recording):
            tensor._requires_grad = False
            return tensor
        node = plans[1].node(attributes, ((input._grad_fn or input, input._output_nr),))
        node.shapes = (value.shape,)
        if plans[1].saves_specs:
            node.specs = specs_of((value,), result)
        tensor._grad_fn = node
        tensor._requires_grad = True
        if observers:
            note(node, ())
        return tensor

    return function


def _beside(array: Any, other: Any, kinds: str) -> tuple[Any, bool]:
    """What is no tensor, as it is computed with beside a tensor's payload, and whether the short way does."""
    if type(array) is not ndarray:
        return other, False
    dtype, kind = array.dtype, type(other)
    if dtype.kind not in kinds or dtype.kind not in CONTINUOUS:
        return other, False
    if kind is float or kind is int:
        if kind is int and not -EXACT < other < EXACT:
            return other, False
        return (float(other) if dtype.kind == "f" else complex(other)), True
    of_other = other.dtype
    if of_other == dtype:
        return other, True
    if of_other.char in _BELOW.get(dtype.char, "?"):  # which NumPy promotes so
        return other.astype(dtype), True
    return other, False


_INTEGERS = "?bBhHiIlLqQ"
_BELOW = {"d": _INTEGERS, "D": "efd" + _INTEGERS}
"""Of a dtype those that NumPy promotes to it, by their characters; of other dtypes truth values alone."""
