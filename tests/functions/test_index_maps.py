"""Where operators that move elements say that they take them from is where they do."""

import numpy as np
import pytest
from operator_cases import ROWS
from operator_cases.rows import Case

from pullback.tracer.graph import Node, make_input, make_node
from pullback.tracer.operator import OPERATORS
from pullback.tracer.spec import spec_of

MOVES = [
    pytest.param(name, case, id=f"{name}-{case}")
    for name, row in ROWS.items()
    for case in row.cases
    if OPERATORS[name].movement.walks or (OPERATORS[name].movement.parts and not case.fixed)
]


def numbered(case: Case) -> list[np.ndarray]:
    """Operands no two elements of which are equal."""
    sizes = [int(np.prod(shape)) for shape in case.shapes]
    starts = np.cumsum([1, *sizes])
    return [np.arange(start, start + size).reshape(shape) + 0.5
            for start, size, shape in zip(starts, sizes, case.shapes)]  # fmt: skip


def by_walks(node: Node, x: np.ndarray, place: tuple[int, ...]) -> float:
    walks = zip(node.walks, x.shape)
    return x[tuple(0 if walk is None else walk.place(place[walk.dim], extent) for walk, extent in walks)]


def by_parts(node: Node, arrays: list[np.ndarray], place: tuple[int, ...]) -> float:
    parts = node.parts
    for part in parts.parts:
        x = arrays[part.operand]
        region = part.region(x.shape)
        if all(at in one for at, one in zip(place, region)):
            return x[tuple(one.index(at) for at, one in zip(place, region))]
    return parts.around if parts.base is None else arrays[parts.base][place]


@pytest.mark.parametrize("name, case", MOVES)
def test_each_element_comes_from_where_the_declaration_says(name: str, case: Case) -> None:
    arrays, operator = numbered(case), OPERATORS[name]
    has_walks = operator.movement.walks is not None
    operands = tuple(make_input(spec_of(array), f"x{place}") for place, array in enumerate(arrays))
    node = make_node(operator, operands, case.attributes)
    expected = operator(*arrays, **case.attributes)
    for place in np.ndindex(expected.shape):
        found = by_walks(node, arrays[0], place) if has_walks else by_parts(node, arrays, place)
        assert found == expected[place]
