"""What a run takes of many like cases depends on its seed and on their names alone; so do random numbers."""

import extent
import numpy as np
import pytest

CASES = [f"case {number}" for number in range(400)]
RNG = np.random.default_rng(1)
FIRST = np.random.default_rng(1).random()


@pytest.mark.parametrize("one_in", [2, 4, 8])
def test_a_part_is_drawn_by_the_seed(one_in: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "WHOLE", False)
    parts = []
    for seed in (0, 1, 0):
        monkeypatch.setattr(extent, "SEED", seed)
        parts.append(extent.drawn(CASES, one_in))
        assert extent.drawn(CASES[::-1], one_in) == parts[-1][::-1]
        assert 0.5 < len(parts[-1]) * one_in / len(CASES) < 1.5
    assert parts[0] == parts[2] != parts[1]


def test_all_are_taken_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "WHOLE", True)
    assert extent.drawn(CASES, 8) == CASES
    assert extent.some_of(CASES, "case") == CASES
    assert extent.examples(100) == 100


@pytest.mark.parametrize("test", ["one", "another"])
def test_numbers_of_a_module_begin_anew(test: str) -> None:
    assert RNG.random() == FIRST
