"""Before anything is sent: whether a function is a sum over rows, on the graph of an example of each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...codegen.rewriting.row_sums import Kind, Rows, Shared, split_row_sum
from ...tracer.dims import formula_of
from ...tracer.errors import OutputError, SeparationError
from ...tracer.graph import Graph
from ..dispatch.compiled import CompiledFunction
from ..tracing.tracing import Traced
from .row_parts import Form, kind_of_constant

EXAMPLE_ROWS = (1021, 2040)
"""Two numbers that little but a constant gives the same result for."""


def prove(function: CompiledFunction, examples: Sequence[tuple[Any, ...]], has_rows: Sequence[bool]) -> Form:
    """Which sums a function is made of, the same for examples of all sizes.

    Args:
        examples: arguments with `EXAMPLE_ROWS` rows, the parameters first.
        has_rows: of each argument but the parameters whether it is data with rows.

    Raises:
        SeparationError: it is no sum over rows. OutputError: it is no scalar.
    """
    traces = [_trace(function, arguments) for arguments in examples]
    forms = [
        _form(function, traced, arguments, has_rows, rows)
        for traced, arguments, rows in zip(traces, examples, EXAMPLE_ROWS)
    ]
    constants = [_constants(traced, rows) for traced, rows in zip(traces, EXAMPLE_ROWS)]
    computed = [_fingerprint(traced.graph, rows) for traced, rows in zip(traces, EXAMPLE_ROWS)]
    if computed[0] != computed[1] or constants[0] != constants[1]:
        raise SeparationError(
            f"{function.name} does not compute the same for {EXAMPLE_ROWS[0]} rows and for "
            f"{EXAMPLE_ROWS[1]}: a number in it depends on how many rows there are, so that parts of the "
            "data do not add up. Use mean(), or divide a sum by len(x)."
        )
    return forms[0]


def _trace(function: CompiledFunction, arguments: tuple[Any, ...]) -> Traced:
    known = function._dispatcher.known_for(arguments, {})
    traced = known.traced
    if known.paths is not None:
        origin = traced.guards.guards[0].origin
        raise SeparationError(
            f"{origin.place}  {origin.text}\n  Which way {function.name} takes depends on values here, of "
            "which each part of the data has others. Keep what decides in the graph, as with where()."
        )
    if traced.streams or traced.written:
        what = "draws random numbers" if traced.streams else "writes into its arguments"
        raise SeparationError(f"{function.name} {what}, which is not the same on parts of the data.")
    graph = traced.graph
    if len(graph.outputs) != 1 or graph.outputs[0].ndim:
        found = ", ".join(str(one.spec) for one in graph.outputs)
        raise OutputError(
            f"{function.name}: a scalar expected, the sum or mean over all rows; found {found}."
        )
    return traced


def _form(
    function: CompiledFunction,
    traced: Traced,
    arguments: tuple[Any, ...],
    has_rows: Sequence[bool],
    rows: int,
) -> Form:
    call = function._dispatcher.signature.call(arguments, {})
    flags = iter(call.is_array)
    kinds: list[Kind] = []
    for place, structure in enumerate(call.structures):
        kind = Rows(0, False) if place and has_rows[place - 1] else Shared(not place)
        kinds += [kind for _ in range(1 if structure is None else structure.num_leaves) if next(flags)]
    kinds += [Shared(False)] * len(traced.sources)
    kinds += [kind_of_constant(one, rows) for one in traced.constants]
    return Form.of(split_row_sum(traced.graph, kinds, rows))


def _constants(traced: Traced, rows: int) -> list[Any]:
    """The arrays that the function has made, but for the numbers of the rows."""
    return [
        (one.shape, one.tobytes())
        for one in traced.constants
        if isinstance(kind_of_constant(one, rows), Shared)
    ]


def _fingerprint(graph: Graph, rows: int) -> tuple[Any, ...]:
    """What is computed, without the number of rows and the sizes that are known to follow from it."""
    places = {node: place for place, node in enumerate(graph.nodes)}
    return tuple(
        (node.operator.name, tuple(places[one] for one in node.operands), _text(node.attributes, rows))
        for node in graph.nodes
        if node.operands or not node.is_input
    )


def _text(value: Any, rows: int) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_text(one, rows)}" for name, one in value.items())
    if isinstance(value, tuple):
        return f"({', '.join(_text(one, rows) for one in value)})"
    if isinstance(value, Graph):
        return str(_fingerprint(value, rows))
    is_size = formula_of(value) is not None or (type(value) is int and value == rows)
    return "a size" if is_size else repr(value)
