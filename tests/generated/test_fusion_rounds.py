"""Fusion asks for all values that it finds it must store in one round."""

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.nests import fuse


@pytest.mark.parametrize("count", [1, 4])
def test_values_that_must_be_stored_are_asked_for_at_once(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowerings: list[fuse.Lowering] = []

    class Noted(fuse.Lowering):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            lowerings.append(self)

    monkeypatch.setattr(fuse, "Lowering", Noted)

    @pb.compile
    def selected(place: np.ndarray, *rows: np.ndarray) -> list[np.ndarray]:
        return [(row * 2.0).reshape(3, 4)[place] for row in rows]

    place, rows = np.array([2, 0]), [np.arange(12.0) + number for number in range(count)]
    results = selected(place, *rows)
    for row, result in zip(rows, results):
        np.testing.assert_array_equal(result, (row * 2.0).reshape(3, 4)[place])
    assert len(lowerings) == 2
