"""What a run takes of many like cases depends on its seed and on their names alone; so do random numbers."""

import itertools
from types import SimpleNamespace

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


class Asked:
    """A test of a session, marked where it says one in how many."""

    def __init__(self, name: str, one_in: int | None, mark: str = "part", **params: object) -> None:
        self.nodeid = f"{name}[{'-'.join(map(str, params.values()))}]"
        self.callspec = SimpleNamespace(params=params)
        self.mark = None if one_in is None else getattr(pytest.mark, mark)(one_in).mark

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.mark if self.mark is not None and self.mark.name == name else None


def asked(one_in: int | None) -> list[Asked]:
    """Two tests of two hundred operators, in three dtypes."""
    cases = itertools.product(("value", "gradient"), range(200), ("float64", "float32", "int64"))
    return [
        Asked(f"tests/test_operators.py::test_{test}", one_in, row=row, dtype=dtype)
        for test, row, dtype in cases
    ]


@pytest.mark.parametrize("one_in", [4, 50, 10_000])
def test_a_part_shows_each_test_and_each_value(one_in: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "WHOLE", False)
    every = asked(one_in)
    parts = []
    for seed in range(3):
        monkeypatch.setattr(extent, "SEED", seed)
        parts.append(part := extent.part_of(every))
        assert part == [one for one in every if one in part]
        assert {one.nodeid.split("[")[0] for one in part} == {one.nodeid.split("[")[0] for one in every}
        for name in ("row", "dtype"):
            assert {one.callspec.params[name] for one in part} == {one.callspec.params[name] for one in every}
        assert len(part) < max(1.3 * len(every) / one_in, 1.2 * 200)
    assert len(set(map(frozenset, parts))) == 3


def test_of_long_tests_some_are_left_out_and_others_are_taken_by_another_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extent, "WHOLE", False)
    single = [Asked(f"tests/test_long.py::test_{number}", 4, "drawn") for number in range(100)]
    several = [Asked("tests/test_long.py::test_cases", 4, "drawn", case=number) for number in range(5)]
    taken = set[Asked]()
    for seed in range(40):
        monkeypatch.setattr(extent, "SEED", seed)
        part = extent.part_of([*single, *several])
        assert 8 < len(set(part) & set(single)) < 45
        assert set(part) & set(several)
        taken.update(part)
    assert taken == {*single, *several}


def test_tests_without_the_mark_are_all_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "WHOLE", False)
    assert extent.part_of(every := asked(None)) == every


def test_all_of_every_test_are_taken_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "WHOLE", True)
    assert extent.part_of(every := asked(50)) == every


@pytest.mark.parametrize("test", ["one", "another"])
def test_numbers_of_a_module_begin_anew(test: str) -> None:
    assert RNG.random() == FIRST
