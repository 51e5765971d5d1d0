"""Before anything is sent: whether a function is a sum over rows, on the graph of an example of each size.

Two examples of sizes that nothing else has by chance say which sums it is made of. That the function computes
the same for the whole and for each part, whatever Python asks of the number of rows, is seen on graphs of
just these sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...codegen.rewriting.row_kinds import Kind, Rows, Shared
from ...codegen.rewriting.row_sums import split_row_sum
from ...tracer.dims import canonical, formula_of, spelled
from ...tracer.errors import OutputError, SeparationError
from ...tracer.graph import Graph, Node
from ...tracer.ops import creation
from ..dispatch.compiled import CompiledFunction
from ..tracing.traced import Traced
from .row_parts import Form, kind_of_constant

EXAMPLE_ROWS = (1021, 2040)
"""Two numbers that little but a constant gives the same result for."""
Example = Callable[[int], tuple[Any, ...]]
"""From a number of rows to arguments with so many, the parameters first."""


class Proof:
    """That a function is a sum over rows.

    Args:
        has_rows: of each argument but the parameters whether it is data with rows.

    Attributes:
        form: which sums it is made of, the same for all sizes.

    Raises:
        SeparationError: it is no sum over rows. OutputError: it is no scalar.
    """

    def __init__(self, function: CompiledFunction, example: Example, has_rows: Sequence[bool]) -> None:
        self.function = function
        self.known: set[int] = set()
        self.rows = EXAMPLE_ROWS[0]
        arguments = example(self.rows)
        self.traced = _trace(function, arguments)
        self.form = _form(function, self.traced, arguments, has_rows, self.rows)
        self.extend(EXAMPLE_ROWS, example)

    def extend(self, sizes: Iterable[int], example: Example) -> None:
        """Has it proven for so many rows, too.

        Raises:
            SeparationError: the function does something else for one of the sizes.
        """
        for rows in sorted({*sizes} - self.known):
            traced = _trace(self.function, example(rows))
            if not _computes_the_same((self.traced, self.rows), (traced, rows)):
                raise SeparationError(
                    f"{self.function.name} does not compute the same for {self.rows} rows and for {rows}: a "
                    "number in it, or which way it takes, depends on how many rows there are, so that parts "
                    "of the data do not add up. Use mean(), or divide a sum by len(x)."
                )
            self.known.add(rows)


def _trace(function: CompiledFunction, arguments: tuple[Any, ...]) -> Traced:
    known = function._dispatcher.known_for(arguments, {})
    traced = known.traced
    if known.paths is not None:
        origin = traced.guards.guards[0].origin
        raise SeparationError(
            f"{origin.place}  {origin.text}\n  Which way {function.name} takes depends on values here, of "
            "which each part of the data has others. Keep what decides in the graph, as with where()."
        )
    if traced.streams or traced.written or traced.gradients:
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


# --- whether two graphs compute the same, but for the number of rows --------------------------------------


def _computes_the_same(first: tuple[Traced, int], second: tuple[Traced, int]) -> bool:
    """Of a trace and its number of rows, and another."""
    (one, rows), (other, count) = first, second
    leaves = _leaves(one, rows), _leaves(other, count)
    return _agree(one.graph, other.graph, leaves, (rows, count))


def _leaves(traced: Traced, rows: int) -> dict[Node, Any]:
    """What a graph's inputs are known by: their places, or what is in arrays that the function made."""
    given, made = traced.graph.inputs, traced.constants
    contents: list[Any] = [_content(one, rows) for one in made]
    return dict(zip(given, [*range(len(given) - len(made)), *contents], strict=True))


def _content(array: np.ndarray, rows: int) -> Any:
    is_shared = isinstance(kind_of_constant(array, rows), Shared)
    return (array.shape, array.dtype, array.tobytes()) if is_shared else (NUMBERS, array.dtype)


NUMBERS = "the numbers of the rows"


def _agree(
    first: Graph, second: Graph, leaves: tuple[dict[Node, Any], dict[Node, Any]], rows: tuple[int, int]
) -> bool:
    """Whether each pair of values that correspond, from the results on, is computed alike."""
    if len(first.outputs) != len(second.outputs):
        return False
    pending = [*zip(first.outputs, second.outputs)]
    seen = set(pending)
    while pending:
        one, other = pending.pop()
        known = _known(one, leaves[0], rows[0]), _known(other, leaves[1], rows[1])
        if known != (None, None):
            if known[0] != known[1]:
                return False
            continue
        is_alike = one.operator.name == other.operator.name and len(one.operands) == len(other.operands)
        if not is_alike or not _same(one.attributes, other.attributes, rows):
            return False
        further = [pair for pair in zip(one.operands, other.operands) if pair not in seen]
        seen.update(further)
        pending += further
    return True


def _is_numbers(node: Node, rows: int) -> bool:
    return node.operator is creation.iota and node.shape == (rows,)


def _known(node: Node, leaves: dict[Node, Any], rows: int) -> Any:
    return (NUMBERS, node.dtype) if _is_numbers(node, rows) else leaves.get(node)


def _same(first: Any, second: Any, rows: tuple[int, int]) -> bool:
    """Of attributes: equal, or both the number of rows or a size that is known to follow from it."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_same(first[name], second[name], rows) for name in first)
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(_same(one, other, rows) for one, other in zip(first, second))
    if isinstance(first, Graph) and isinstance(second, Graph):
        leaves = [{node: place for place, node in enumerate(graph.inputs)} for graph in (first, second)]
        return _agree(first, second, (leaves[0], leaves[1]), rows)
    formula, other = formula_of(first), formula_of(second)
    if formula is not None and other is not None:
        return spelled(canonical(formula)) == spelled(canonical(other))
    if type(first) is int and type(second) is int and (first, second) == rows:
        return True
    return type(first) is type(second) and repr(first) == repr(second)
