"""Bodies that threads share inside of a function, as generated code writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np


def parts_of(
    extent: int,
    threads: int,
    per_thread: int,
    own: Sequence[np.ndarray] = (),
    **totals: Sequence[np.ndarray],
) -> Iterator[tuple[int, int]]:
    """The parts of `range(extent)` that threads run at once, each from a start to a stop.

    In machine code each thread has `per_thread` of them. Of the arrays `own`, and of those that hold totals,
    every part has its own; totals are combined as the keyword says, in the order of the parts. Run by Python
    there is one part.

    >>> list(parts_of(10, 2, 4))
    [(0, 10)]
    """
    yield 0, extent
