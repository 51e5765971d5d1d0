"""Tables: constants that differ from step to step of a loop of Python's, as the rows of one array.

Python computes a learning rate, or the gain of a filter, as it goes, and a trace meets a number or an array
of its own in each step. As rows that advance by one they do not keep the steps from being rolled, and code
is given one array in the place of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from pullback.tracer.dims import plain
from pullback.tracer.graph import Node, made_anew, toposort
from pullback.tracer.ops.movement import row_of
from pullback.tracer.spec import Spec, spec_of

from .periods import find_stretches
from .rows import progression_of_constants
from .steps import FEWEST_IF_FUSED, FEWEST_NODES_SAVED

FEWEST_ROWS = 8
"""Steps of which code is given a table."""
MOST_PASSES = 64
"""Of a loop inside of a step, which is not rolled yet."""
MOST_ALIKE = 4
"""Such steps that are looked at as one."""

Capture = Callable[[np.ndarray], Node]


def with_tables(
    outputs: Iterable[Node], contents: Mapping[Node, np.ndarray], capture: Capture
) -> tuple[Node, ...]:
    """The values, made of rows of tables in the place of constants of steps that are alike.

    Args:
        contents: of the inputs that are constants what they hold.
        capture: makes an array an input.
    """
    outputs = tuple(outputs)
    nodes = toposort(outputs)
    numbers = {(one.spec, repr(one.attributes["value"])) for one in nodes if one.is_constant}
    if len(contents) < FEWEST_ROWS and len(numbers) < FEWEST_ROWS:
        return outputs
    sequence = [node for node in nodes if not node.is_input and not node.is_constant]
    rows: dict[tuple[Node, int], tuple[Node, int]] = {}
    tables: dict[tuple[Spec, bytes], Node] = {}
    for column, place in _columns(sequence, contents):
        for part, found in _parts_that_differ(column, place, contents):
            if not any((node, place) in rows for node in part):
                whole = np.stack(found)
                key = spec_of(whole), whole.tobytes()
                table = tables[key] = tables[key] if key in tables else capture(whole)
                rows.update(((node, place), (table, step)) for step, node in enumerate(part))
    return _with_rows(outputs, sequence, rows) if rows else outputs


def _with_rows(
    outputs: Sequence[Node], sequence: Iterable[Node], rows: Mapping[tuple[Node, int], tuple[Node, int]]
) -> tuple[Node, ...]:
    """All values anew, which keeps their order, with rows for some operands."""
    new: dict[Node, Node] = {}
    for node in sequence:
        operands = tuple(
            [
                row_of(*rows[node, place]) if (node, place) in rows else new.get(one, one)
                for place, one in enumerate(node.operands)
            ]
        )
        new[node] = made_anew(node, operands)
    return tuple(new.get(one, one) for one in outputs)


def _columns(
    sequence: Sequence[Node], contents: Mapping[Node, np.ndarray]
) -> Iterator[tuple[list[Node], int]]:
    """The operations that stand at one place of all steps, of each stretch in which steps repeat.

    And the place of an operand that is a constant; numbers stay as they are where steps will be written out,
    into one loop over elements.
    """
    found = find_stretches(
        sequence, lambda period: FEWEST_ROWS, FEWEST_NODES_SAVED, occurrences=MOST_PASSES
    )
    for stretch in found:
        step = sequence[stretch.start : stretch.start + stretch.period]
        is_short = stretch.period * stretch.steps < FEWEST_IF_FUSED
        are_elements = any(node.spec.size > 1 for node in step)
        is_one_pass = all(node.operator.family == "elementwise" for node in step)
        keeps_numbers = is_short and are_elements and is_one_pass
        for offset, node in enumerate(step):
            for place, operand in enumerate(node.operands):
                if operand in contents or (operand.is_constant and not keeps_numbers):
                    yield [*sequence[stretch.start + offset : stretch.stop : stretch.period]], place


def _parts_that_differ(
    column: Sequence[Node], place: int, contents: Mapping[Node, np.ndarray]
) -> list[tuple[Sequence[Node], list[np.ndarray]]]:
    """Operations of a column whose operands are constants that differ, and these constants.

    All of them, or every second one and so on, where the ones between have the same operand: a step may be
    several that are alike.
    """
    ways: list[list[tuple[Sequence[Node], list[np.ndarray]]]] = []
    for several in range(1, MOST_ALIKE + 1):
        if len(column) < several * FEWEST_ROWS:
            break
        parts = [column[first::several] for first in range(several)]
        found = [(part, _contents([node.operands[place] for node in part], contents)) for part in parts]
        ways.append([(part, values) for part, values in found if values is not None])
    return min(ways, key=lambda parts: sum(len(part) for part, _ in parts), default=[])


def _contents(nodes: Sequence[Node], contents: Mapping[Node, np.ndarray]) -> list[np.ndarray] | None:
    """What constants of one shape and dtype hold, if that differs and nothing else tells it; else None."""
    first = nodes[0]
    if any(one.spec != first.spec for one in nodes):
        return None
    if all(one.is_constant for one in nodes):
        numbers = [plain(one.attributes["value"]) for one in nodes]
        if len({*map(repr, numbers)}) == 1 or progression_of_constants(nodes) is not None:
            return None
        return [np.full(first.shape, number, first.dtype) for number in numbers]
    if len({*nodes}) == 1 or any(one not in contents for one in nodes):
        return None
    return [contents[one] for one in nodes]
