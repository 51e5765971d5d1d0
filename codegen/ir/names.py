"""Names in generated code: the user's where there are any, never one twice, never a keyword or a function."""

from __future__ import annotations

import functools
import keyword
import re

from pullback.tracer.spec import SUPPORTED

from ..vector_math import FUNCTIONS as ELEMENTARY
from ..whole_calls import FUNCTIONS

LOOP_VARIABLES = ("i", "j", "k", "l")
BLOCK, BLOCK_STOP, NEEDED = "block", "block_stop", "needed"
"""Variables of loops over blocks; where a function writes how many rows it needs of too small arrays."""


@functools.cache
def called_in_code() -> frozenset[str]:
    """The functions and constants that generated code may name."""
    others = (
        "np", "range", "min", "max", "abs", "bool", "inf", "nan", "gemm", "kernel", "ForeignCall", "HostCall",
    )  # fmt: skip
    wholes = [function.__name__ for function in FUNCTIONS]
    dtypes = [dtype.name for dtype in SUPPORTED]
    return frozenset((*ELEMENTARY, *others, *wholes, *dtypes))


class NamePool:
    """Hands out names that are valid, readable and distinct."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = {*taken, *called_in_code(), *keyword.kwlist, *LOOP_VARIABLES}
        self._taken |= {BLOCK, BLOCK_STOP, NEEDED}

    def copy(self) -> NamePool:
        """The same names taken, and no more when this one hands out others."""
        return NamePool(self._taken)

    def take(self, wanted: str) -> str:
        """`wanted`, or with the first number behind it that makes it new."""
        base = re.sub(r"\W+", "_", wanted).strip("_") or "value"
        if base[0].isdigit():
            base = f"_{base}"
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def take_first(self, candidates: tuple[str, ...]) -> str:
        """The first of some names that is free, else the last one numbered."""
        for candidate in candidates:
            if candidate not in self._taken:
                return self.take(candidate)
        return self.take(candidates[-1])


def loop_variable(depth: int) -> str:
    return LOOP_VARIABLES[depth] if depth < len(LOOP_VARIABLES) else f"l{depth}"
