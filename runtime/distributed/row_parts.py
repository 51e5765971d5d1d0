"""A function of parameters and data as what each part of the data adds to it: see `row_sums.py`.

What is here runs inside of a trace, once for each kind of part, and is compiled with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...codegen.rewriting.row_kinds import Kind, Numbers, Rows, Shared
from ...codegen.rewriting.row_sums import RowSum, split_row_sum
from ...tracer.errors import ArgumentError, OutputError, SeparationError
from ...tracer.graph import Graph
from ...tracer.interpret import evaluate_graph
from ...tracer.records import record
from ...tracer.trace import current_trace
from ..dispatch.compiled import function_name
from ..functions.structures import structured
from ..tape.apply import standing_for
from ..tape.bodies import as_tensor, trace_body
from ..transforms.transforms import jvp, vjp
from ..values.tensor import Tensor

Function = Callable[..., Any]


@record(frozen=True)
class Form:
    """Which sums a function is made of: the same for each part of the data."""

    by_count: tuple[bool, ...]
    denominators: tuple[int | None, ...]
    has_shared: bool

    @classmethod
    def of(cls, found: RowSum) -> Form:
        return cls(found.by_count, found.denominators, found.has_shared)


@record(frozen=True)
class Parts:
    """What a part of the data adds: sums, what they are divided by, and what counts once."""

    form: Form
    sums: tuple[Any, ...]
    denominators: tuple[Any, ...]
    once: tuple[Any, ...]


def parts_of(function: Function, has_rows: Sequence[bool], arguments: Sequence[Any]) -> Parts:
    """The parts of a function's value, in a trace.

    Args:
        function: of parameters, then data.
        has_rows: of each argument behind the parameters whether it is data with rows.
        arguments: the parameters, then the data.

    Raises:
        SeparationError: the value is no sum over rows.
        OutputError: it is no scalar.
    """
    name = function_name(function)
    parameters, data = arguments[0], list(arguments[1:])
    given = structured((parameters, data), name, "arguments")
    count = len(structured(parameters, name, "parameters").tensors)
    flags = [
        flag
        for value, flag in zip(data, has_rows, strict=True)
        for _ in structured(value, name, "data").tensors
    ]

    def run(tensors: list[Tensor]) -> list[Tensor]:
        restored, rest = given.restored(tensors)
        return [_scalar(name, function(restored, *rest))]

    body = trace_body(name, run, given.inputs())
    graph = Graph(name, body.inputs, body.outputs)
    rows = _rows_of([one for one, flag in zip(data, has_rows) if flag])
    arrays = {node: array for array, node in current_trace().captured}
    kinds: list[Kind] = [Shared(one.spec.is_continuous) for one in body.inputs[:count]]
    kinds += [Rows(0, False) if flag else Shared(False) for flag in flags]
    kinds += [kind_of_constant(arrays.get(one.payload), rows) for one in body.constants]
    found = split_row_sum(graph, kinds)
    values = [as_tensor(one) for one in evaluate_graph(found.graph, [*given.tensors, *body.constants])]
    first, behind = found.sums, len(values) - int(found.has_shared)
    return Parts(Form.of(found), tuple(values[:first]), tuple(values[first:behind]), tuple(values[behind:]))


def kind_of_constant(array: np.ndarray | None, rows: int) -> Kind:
    """Of an array that the function has made: the numbers of the rows, as `np.arange(len(x))`, or shared."""
    if array is None or array.shape != (rows,) or array.dtype.kind not in "iu":
        return Shared(False)
    return Numbers(0) if np.array_equal(array, np.arange(rows)) else Shared(False)


def _scalar(name: str, value: Any) -> Tensor:
    tensor = (
        standing_for(value) if isinstance(value, Tensor | np.ndarray | np.generic | float | int) else None
    )
    if tensor is None or tensor.ndim:
        shape = "" if tensor is None else f" of shape {tuple(tensor.shape)}"
        raise OutputError(
            f"{name}: a scalar expected, the sum or mean over all rows; found {type(value).__name__}{shape}."
        )
    return tensor


# --- what is compiled for a part of the data --------------------------------------------------------------


def sums_and_gradients(
    function: Function, has_rows: tuple[bool, ...], form: Form, parameters: Any, *data: Any
) -> tuple[Any, Any, Any]:
    """The sums of a part of the data, their gradients, and what the sums are divided by."""

    def sums(parameters: Any) -> Any:
        found = _same_form(function, has_rows, form, (parameters, *data))
        return found.sums, found.denominators

    values, pull, denominators = vjp(sums, parameters, has_aux=True)
    gradients = [pull(_one_of(values, place))[0] for place in range(len(values))]
    return values, gradients, denominators


def sums_and_products(
    function: Function, has_rows: tuple[bool, ...], form: Form, parameters: Any, vector: Any, *data: Any
) -> tuple[Any, Any, Any]:
    """The same of the products of second derivatives with a vector."""

    def gradients(parameters: Any) -> Any:
        return sums_and_gradients(function, has_rows, form, parameters, *data)[1]

    found, products = jvp(gradients, (parameters,), (vector,))
    _, denominators = _sums(function, has_rows, form, parameters, data)
    return found, products, denominators


def _sums(
    function: Function, has_rows: tuple[bool, ...], form: Form, parameters: Any, data: Sequence[Any]
) -> tuple[Any, Any]:
    found = _same_form(function, has_rows, form, (parameters, *data))
    return found.sums, found.denominators


def value_once(
    function: Function, has_rows: tuple[bool, ...], form: Form, parameters: Any, *data: Any
) -> Any:
    """What counts once; it depends on no row."""
    return _same_form(function, has_rows, form, (parameters, *data)).once[0]


def squares(residuals: Function, parameters: Any, *data: Any) -> Any:
    """Half the sum of squares of residuals, whose Gauss-Newton matrix is asked for."""
    return 0.5 * (residuals(parameters, *data) ** 2).sum()


def sums_and_gauss_newton(
    residuals: Function, has_rows: tuple[bool, ...], form: Form, parameters: Any, vector: Any, *data: Any
) -> tuple[Any, Any, Any]:
    """J'J times a vector, of the residuals of a part (J. Nocedal and S. Wright, Numerical Optimization,
    10.3)."""

    def at(parameters: Any) -> Any:
        return residuals(parameters, *data)

    _, along = jvp(at, (parameters,), (vector,))
    _, pull = vjp(at, parameters)
    return (), [pull(along)[0]], ()


def _same_form(function: Function, has_rows: tuple[bool, ...], form: Form, arguments: Sequence[Any]) -> Parts:
    found = parts_of(function, has_rows, arguments)
    if found.form != form:
        raise SeparationError(
            f"{function_name(function)} is another sum for a part of the data with {_rows_of(arguments[1:])} "
            "rows than for others, as where Python code asks how many there are. Write it the same for all."
        )
    return found


def _rows_of(data: Sequence[Any]) -> int:
    return next((int(one.shape[0]) for one in data if getattr(one, "ndim", 0)), 0)


def _one_of(values: Sequence[Any], place: int) -> Any:
    """The cotangent that asks for the gradient of one of several scalars."""
    return tuple(np.ones_like(one) if at == place else np.zeros_like(one) for at, one in enumerate(values))


def require_gauss_newton(form: Form, name: str) -> None:
    """ArgumentError where residuals are no rows alone."""
    if form.by_count != (False,) or form.denominators != (None,) or form.has_shared:
        raise ArgumentError(
            f"{name}: residuals expected that depend on a row each; these have parts that depend on none, or "
            "on how many rows there are. Return one residual, or several, for each row."
        )
