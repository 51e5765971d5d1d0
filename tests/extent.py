"""How much of many like cases one run tests: a part drawn by a seed, or with `pytest --whole` all of it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import pytest
from uncompiled import uncompiled

WHOLE = "PULLBACK_TEST_WHOLE" in os.environ
"""What the option sets, so that the processes of xdist inherit it."""
SEED = int(os.environ.get("PULLBACK_TEST_SEED", 0))
"""Another one draws another part."""
ONE_IN = 8
"""Of the programs of like cases one in so many is compiled."""
Way = TypeVar("Way")


def examples(count: int) -> int:
    """How many examples of `count` a random test takes."""
    return count if WHOLE else count // 6


def machine_code(case: object, one_in: int = ONE_IN) -> AbstractContextManager[None]:
    """Where the generated code of a case is compiled; of most cases, the interpreter runs it."""
    return nullcontext() if is_drawn(case, one_in) else uncompiled()


def is_drawn(case: object, one_in: int) -> bool:
    """Whether a case is one of those that every run takes, one in so many, drawn by their names."""
    return WHOLE or _number_of(case) % one_in == 0


def drawn(cases: Iterable[Way], one_in: int) -> list[Way]:
    """Those of the cases that this run takes, one in so many."""
    return [one for one in cases if is_drawn(one, one_in)]


def some_of(ways: Sequence[Way], case: object, count: int = 1) -> list[Way]:
    """In which of the ways a case is tested: so many that follow one another, drawn by its name."""
    first, count = _number_of(case), min(count, len(ways))
    return list(ways) if WHOLE else [ways[(first + more) % len(ways)] for more in range(count)]


def part_of(tests: Sequence[pytest.Item]) -> list[pytest.Item]:
    """What this run takes of the tests: of those that are marked with `drawn` or `part` one in so many.

    `drawn` is for what takes long: a test of fewer cases may be left out whole, another seed takes it. Of
    tests that are marked with `part` more are taken, until each of them, and each value of their parameters
    in a module, is in a case that is taken: of operators and of what is asked of them each one, and not each
    pair. What tests of few cases show need not be shown by those of which so many are left out because they
    take long.
    """
    left_out = _not_drawn(_one_in(tests, "drawn"))
    tests = [test for test in tests if test not in left_out]
    one_in = _one_in(tests, "part")
    is_first = {test: is_drawn(f"{test.nodeid} in a part", one_in[test]) for test in one_in}
    taken, seen = set[pytest.Item](), set[Hashable]()
    for test in sorted(one_in, key=lambda test: (not is_first[test], one_in[test], _number_of(test.nodeid))):
        shown = set(_shown_by(test))
        if is_first[test] or not shown <= seen:
            taken.add(test)
            seen |= shown
    return [test for test in tests if test in taken or test not in one_in]


def _one_in(tests: Sequence[pytest.Item], mark: str) -> dict[pytest.Item, int]:
    """The tests that have a mark, with its number."""
    return {test: found.args[0] for test in tests if (found := test.get_closest_marker(mark)) is not None}


def _not_drawn(one_in: dict[pytest.Item, int]) -> set[pytest.Item]:
    """Those of the tests that this run leaves out: of one with many cases it takes one at least."""
    cases: dict[str, list[pytest.Item]] = {}
    for test in one_in:
        cases.setdefault(test.nodeid.split("[")[0], []).append(test)
    return {
        test
        for like in cases.values()
        for test in like
        if not is_drawn(test.nodeid, one_in[test])
        and (len(like) < one_in[test] or test is not min(like, key=lambda one: _number_of(one.nodeid)))
    }


def _shown_by(test: pytest.Item) -> Iterable[Hashable]:
    """The test without its case, and the values of the case."""
    module, case = test.nodeid.split("::")[0], getattr(test, "callspec", None)
    yield test.nodeid.split("[")[0]
    for name, value in case.params.items() if case is not None else ():
        yield module, name, value if isinstance(value, str | int | float) else id(value)


def _number_of(case: object) -> int:
    """The same one in every run with a seed."""
    return zlib.crc32(str(case).encode(), SEED)
