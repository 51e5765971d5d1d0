"""How much of many like cases one run tests: a part drawn by a seed, or with `pytest --whole` all of it."""

from __future__ import annotations

import os
import zlib
from contextlib import AbstractContextManager, nullcontext

from border_checks import uncompiled

VARIABLE = "PULLBACK_TEST_WHOLE"
"""What the option sets, so that the processes of xdist inherit it."""
WHOLE = VARIABLE in os.environ


def examples(count: int) -> int:
    """How many examples of `count` a random test takes."""
    return count if WHOLE else count // 4


def machine_code(case: object, one_in: int = 4) -> AbstractContextManager[None]:
    """Where the generated code of a case is compiled; of most cases, the interpreter runs it.

    Which are compiled is drawn by their names: the same ones in every run.
    """
    return nullcontext() if WHOLE or zlib.crc32(str(case).encode()) % one_in == 0 else uncompiled()
