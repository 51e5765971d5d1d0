"""How much of many like cases one run tests: a part drawn by a seed, or with `pytest --whole` all of it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from uncompiled import uncompiled

WHOLE = "PULLBACK_TEST_WHOLE" in os.environ
"""What the option sets, so that the processes of xdist inherit it."""
SEED = int(os.environ.get("PULLBACK_TEST_SEED", 0))
"""Another one draws another part."""
Way = TypeVar("Way")


def examples(count: int) -> int:
    """How many examples of `count` a random test takes."""
    return count if WHOLE else count // 4


def machine_code(case: object, one_in: int = 4) -> AbstractContextManager[None]:
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


def _number_of(case: object) -> int:
    """The same one in every run with a seed."""
    return zlib.crc32(str(case).encode(), SEED)
