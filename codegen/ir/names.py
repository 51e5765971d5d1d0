"""Names in generated code: the user's where there are any, never one twice, never a keyword or a function."""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Iterable

from pullback.tracer.spec import SUPPORTED

from ..vector_math import FUNCTIONS as ELEMENTARY
from ..whole_calls import FUNCTIONS
from .expressions import OF_INTEGERS

LOOP_VARIABLES = "ijkl"
BLOCK, BLOCK_STOP, NEEDED = "block", "block_stop", "needed"
"""Variables of loops over blocks; where a function writes how many rows it needs of too small arrays."""


@functools.cache
def called_in_code() -> frozenset[str]:
    """The functions and constants that generated code may name."""
    others = (
        "np", "range", "min", "max", "abs", "bool", "inf", "nan", "gemm", "ComplexCall", "ForeignCall",
        "HostCall", "parts_of",
    )  # fmt: skip
    wholes = [function.__name__ for function in FUNCTIONS]
    dtypes = [dtype.name for dtype in SUPPORTED]
    return frozenset((*ELEMENTARY, *OF_INTEGERS, *others, *wholes, *dtypes))


class NamePool:
    """Hands out names that are valid, readable and distinct.

    Loops leave the names in `reserved`, those of the user's arguments, to these.
    """

    def __init__(self, taken: Iterable[str], reserved: Iterable[str] = ()) -> None:
        self._loops = [one for one in LOOP_VARIABLES if one not in {*reserved}]
        self._taken = {*taken, *called_in_code(), *keyword.kwlist, *self._loops}
        self._taken |= {BLOCK, BLOCK_STOP, NEEDED}
        self._last: dict[str, int] = {}
        """The last number behind a name that was handed out."""
        self.wanted: dict[str, str] = {}
        """What each name that was handed out would be without a number behind it."""

    @property
    def taken(self) -> frozenset[str]:
        return frozenset(self._taken)

    def copy(self) -> NamePool:
        """The same names taken, and no more when this one hands out others."""
        return NamePool(self._taken, {*LOOP_VARIABLES} - {*self._loops})

    def loop_variable(self, depth: int) -> str:
        """The name of the variable of a loop with so many around it."""
        return self._loops[depth] if depth < len(self._loops) else f"l{depth}"

    def take(self, wanted: str) -> str:
        """`wanted`, or with the first number behind it that makes it new."""
        base = re.sub(r"\W+", "_", wanted).strip("_") or "value"
        if base[0].isdigit():
            base = f"_{base}"
        name, count = base, self._last.get(base, 0)
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        self._last[base] = count
        self.wanted[name] = base
        return name

    def take_first(self, candidates: tuple[str, ...]) -> str:
        """The first of some names that is free, else the last one numbered."""
        for candidate in candidates:
            if candidate not in self._taken:
                return self.take(candidate)
        return self.take(candidates[-1])
