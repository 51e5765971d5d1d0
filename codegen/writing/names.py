"""Names in generated code: the user's where there are any, never one twice, never a keyword or a function."""

from __future__ import annotations

import functools
import keyword
import re

from pullback.tracer.spec import SUPPORTED

from ..whole_calls import FUNCTIONS

LOOP_VARIABLES = ("i", "j", "k", "l")
BLOCK, BLOCK_STOP, NEEDED = "block", "block_stop", "needed"
"""Variables of loops over blocks; where a function writes how many rows it needs of too small arrays."""
EXTENTS = ("n", "m", "p", "q", "r", "s", "t", "u")
NOUNS = {
    "add": "total", "sum": "total", "cumsum": "running_total", "subtract": "difference",
    "multiply": "product", "prod": "product", "contract": "product", "gemm": "product", "divide": "quotient",
    "reciprocal": "inverse", "negative": "opposite", "amax": "largest", "amin": "smallest",
    "maximum": "larger", "minimum": "smaller", "where": "chosen", "power": "powered",
    "power_constant": "powered", "sqrt": "root", "convert": "converted", "loop_result": "result",
    "slice": "part", "slice_at": "part", "slice_update": "state", "update_at": "state",
    "sorted_positions": "order",
    "cholesky_factor": "factor", "triangular_solution": "solution", "eliminated_solution": "solution",
    "eliminated": "elimination",
}  # fmt: skip


def noun(operator: str) -> str:
    """What to call the result of an operator that the user gave no name."""
    return NOUNS.get(operator, f"{operator}_value")


@functools.cache
def called_in_code() -> frozenset[str]:
    """The functions and constants that generated code may name."""
    from ..vector_math import FUNCTIONS as ELEMENTARY

    others = ("np", "range", "min", "max", "abs", "bool", "inf", "nan", "gemm", "kernel")
    wholes = [function.__name__ for function in FUNCTIONS]
    dtypes = [dtype.name for dtype in SUPPORTED]
    return frozenset((*ELEMENTARY, *others, *wholes, *dtypes))


class NamePool:
    """Hands out names that are valid, readable and distinct."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = {*taken, *called_in_code(), *keyword.kwlist, *LOOP_VARIABLES}
        self._taken |= {BLOCK, BLOCK_STOP, NEEDED}

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
