"""Choices as functions: `cond` and `switch`.

Outside of compiled functions they call one of the functions. In a compiled function each is traced once and
becomes an `if` in the generated code, as does its reverse: what is not chosen is not computed, and adds
nothing to a gradient. JAX's names and signatures (jax.lax).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....tracer.errors import ArgumentError
from ....tracer.graph import constant, make_input
from ....tracer.loop import attributes_of_loop
from ....tracer.ops import elementwise as e
from ....tracer.ops.control import GIVEN
from ....tracer.origin import current_origin
from ...tape.apply import apply
from ...tape.bodies import BodyInput, TracedBody, trace_body
from ...tape.loops import apply_loop
from ...values.tensor import Tensor, make
from ...values.value_kinds import Auxiliary
from ..common import fail
from ..decisions import integer_of, known_truth, truth_of
from ..structures import Structured, common_of, require_same, spec_of_tensor, structured
from .draws_in_bodies import counted, counting_draws

__all__ = ["cond", "switch"]

Function = Callable[..., Any]
Inputs = Sequence[BodyInput]


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred`, else `false_fun(*operands)`; the other is not computed.

    Args:
        pred: one truth value: a bool, or a 0-d tensor, of which what is not 0 is true.
        true_fun, false_fun: functions whose results are alike: the same containers, shapes and dtypes.

    Raises:
        ShapeError, DTypeError, ArgumentError: the results differ (in a compiled function, where both are
            traced); `pred` is not one value.

    Example:
        >>> cond(tensor(2.0) > 1, lambda x: x * 2, lambda x: -x, tensor(3.0))
        tensor(6.)
    """
    for name, one in (("true_fun", true_fun), ("false_fun", false_fun)):
        if not callable(one):
            shown = f"{one!r} of type {type(one).__name__}"
            fail(ArgumentError, f"cond: {name} must be a function, found {shown}. Operands come behind.")
    truth = truth_of(pred, "cond", "pred")
    known = known_truth(truth)
    if known is not None:
        return (true_fun if known else false_fun)(*operands)
    otherwise = apply(e.logical_not, truth)
    return _choose("cond", [(truth, true_fun, "true_fun"), (otherwise, false_fun, "false_fun")], operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """`branches[index](*operands)`; the others are not computed.

    Args:
        index: an integer, or a 0-d integer tensor; below 0 it counts as 0, above the last as the last.
        branches: functions whose results are alike: the same containers, shapes and dtypes.

    Raises:
        ShapeError, DTypeError: as of `cond`. ArgumentError: there are no branches, or `index` is no integer.

    Example:
        >>> switch(1, [lambda x: x, lambda x: x * x], tensor(3.0))
        tensor(9.)
    """
    branches = list(branches)
    if not branches:
        fail(ArgumentError, "switch: there are no branches; give at least one function.")
    position = integer_of("switch", index, "index")
    if isinstance(position, int):
        return branches[min(max(position, 0), len(branches) - 1)](*operands)
    last = len(branches) - 1
    position = apply(e.minimum, apply(e.maximum, position, 0), last)
    choices = [
        (apply(e.equal, position, number), branch, f"branches[{number}]")
        for number, branch in enumerate(branches)
    ]
    return choices[0][1](*operands) if not last else _choose("switch", choices, operands)


def replaced_if(pred: Tensor, value: Tensor, function: Callable[[], Tensor]) -> Tensor:
    """`value`, in whose place is what the function gives if `pred`; in a trace alone."""
    body = trace_body("replaced_if", lambda _: [function()], [])
    before = [make_input(spec_of_tensor(value), "")]
    attributes = attributes_of_loop(body.graph("replaced_if", current_origin(), before), 1, 1, trips=GIVEN)
    (found,) = apply_loop([value, *body.constants, pred], attributes).tensors
    return found


Choice = tuple[Tensor, Function, str]


def _choose(name: str, choices: Sequence[Choice], operands: tuple[Any, ...]) -> Any:
    """What the function gives that is chosen."""
    drawing = [(taken, counted(function), label) for taken, function, label in choices]
    return counting_draws(
        lambda: _chosen(name, choices, operands), lambda count: _chosen(name, drawing, (count, *operands))
    )


def _chosen(name: str, choices: Sequence[Choice], operands: tuple[Any, ...]) -> Any:
    """Each branch as a loop of one step or none, which hands on what the ones before it have left."""
    given = structured(operands, name, "operands")
    inputs = given.inputs()
    traced = [_branch(name, one, given, inputs, None) for one in choices]
    common = common_of([found for _, found in traced])
    specs = common.specs
    traced = [
        _branch(name, choice, given, inputs, common) if one[1].differs(common) else one
        for one, choice in zip(traced, choices)
    ]
    first = traced[0][1]
    for _, found in traced[1:]:
        require_same(name, found, first, f"the result of {choices[0][2]}")
    values: Sequence[Tensor] = [make(constant(0, spec), Auxiliary) for spec in specs]
    origin = current_origin()
    for (taken, _, _), (body, _) in zip(choices, traced):
        before = [make_input(spec, "") for spec in specs]
        attributes = attributes_of_loop(body.graph(name, origin, before), 1, len(values), trips=GIVEN)
        values = apply_loop([*values, *given.tensors, *body.constants, taken], attributes).tensors
    return first.restored(values)


def _branch(
    name: str, choice: Choice, given: Structured, inputs: Inputs, like: Structured | None
) -> tuple[TracedBody, Structured]:
    """A branch, traced, and what it returns; Python numbers as what another branch returns."""
    _, function, label = choice
    found: list[Structured] = []

    def run(tensors: list[Tensor]) -> list[Tensor]:
        result = structured(function(*given.restored(tensors)), name, label)
        found.append(result if like is None else result.converted(like, only_numbers=True))
        return found[0].tensors

    body = trace_body(name, run, inputs)
    return body, found[0]
