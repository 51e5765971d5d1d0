"""What C calls the types, the functions and the names of a program."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

WORDS = """
alignas alignof atomic auto bool break case char complex const continue default do double else enum errno
extern false float for generic goto if imaginary inline int long noreturn register restrict return short
signed sizeof static struct switch true typedef union unsigned void volatile while NAN INFINITY NULL
M_E M_PI HUGE_VAL RAND_MAX linux unix error free malloc rows
"""
KEYWORDS = frozenset(WORDS.split())
"""What can be no name in a file: C's own words, and those of the templates."""
TYPES = {"float64": "double", "float32": "float", "bool": "bool"}


def type_name(dtype: np.dtype) -> str:
    """`double`, `int32_t`"""
    return TYPES.get(dtype.name, f"{dtype.name}_t")


class Names:
    """The names that functions' variables and arrays have in C: their own, unless that is a word of C's."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._names: dict[str, str] = {}
        wanted = [*dict.fromkeys(wanted)]
        self._taken = {*wanted, *KEYWORDS}
        for name in wanted:
            fits = name not in KEYWORDS and name.isascii()
            self._names[name] = name if fits else self.new("".join(c for c in name if c.isascii()))

    def __getitem__(self, name: str) -> str:
        return self._names[name]

    def new(self, stem: str) -> str:
        """A name that nothing has."""
        count, name = 0, stem
        while not name or name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name
