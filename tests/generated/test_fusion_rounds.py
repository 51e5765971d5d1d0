"""Fusion asks for all values that it finds it must store in one round."""

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.nests import fuse
from pullback.codegen.nests.expression import Expression
from pullback.codegen.nests.lower import Indices
from pullback.tracer.graph import Node


@pytest.mark.parametrize("count", [1, 4])
def test_values_that_must_be_stored_are_asked_for_at_once(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[fuse.Lowering] = []

    class Noted(fuse.Lowering):
        def settle(self) -> None:
            super().settle()
            rounds.append(self)

    monkeypatch.setattr(fuse, "Lowering", Noted)

    @pb.compile
    def selected(place: np.ndarray, *rows: np.ndarray) -> list[np.ndarray]:
        return [(row * 2.0).reshape(3, 4)[place] for row in rows]

    place, rows = np.array([2, 0]), [np.arange(12.0) + number for number in range(count)]
    results = selected(place, *rows)
    for row, result in zip(rows, results):
        np.testing.assert_array_equal(result, (row * 2.0).reshape(3, 4)[place])
    assert len(rounds) == 2


def test_a_round_makes_again_only_what_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Noted(fuse.Lowering):
        def computed(self, node: Node, indices: Indices) -> Expression:
            made.append(node.operator.name)
            return super().computed(node, indices)

    monkeypatch.setattr(fuse, "Lowering", Noted)

    @pb.compile
    def selected(place: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (row * 2.0).reshape(3, 4)[place], np.tanh(row)

    place, row = np.array([2, 0]), np.arange(12.0)
    np.testing.assert_array_equal(selected(place, row)[0], (row * 2.0).reshape(3, 4)[place])
    assert made.count("tanh") == 1  # which stays where it is
    assert made.count("gather") == 2  # which is stored in the first round, and reads what is in the second
