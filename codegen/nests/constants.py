"""Constants that follow from extents: `1 / n` of a mean is written as such, so that code serves every n.

A trace sees only the number. If it equals a simple formula in the extents of the inputs, the formula is
written. A coincidence does no harm: the formula is right for the shapes at hand, and a call with other
shapes makes its own source, which either agrees with this one or is another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from .extents import ONE, Symbol

LARGEST_PLAIN = 8
NUMERATORS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 4.0, -4.0, 3.0, -3.0)
MOST_FACTORS = 3


class Formulas:
    """Products of extents, and the products less one, by their value."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        distinct = list(dict.fromkeys(symbol.find() for symbol in symbols if _is_shape(symbol.find())))[:12]
        self.products: dict[int, tuple[tuple[Symbol, ...], int]] = {}
        for count in range(1, MOST_FACTORS + 1):
            for factors in itertools.combinations(distinct, count):
                value = math.prod(symbol.value for symbol in factors)
                for less in (0, 1):
                    if value - less > LARGEST_PLAIN:
                        self.products.setdefault(value - less, (factors, less))

    def find(self, value: float, dtype: np.dtype) -> tuple[str, tuple[Symbol, ...], int, float] | None:
        """(operation, factors, less, numerator): numerator times, or by, product of factors - less."""
        for operation, numerator, product in self._candidates(value):
            result = numerator / product if operation == "divide" else numerator * product
            if dtype.type(result) == dtype.type(value):
                factors, less = self.products[product]
                return operation, factors, less, numerator
        return None

    def _candidates(self, value: float) -> Iterator[tuple[str, float, int]]:
        if (
            not math.isfinite(value)
            or value == 0
            or (float(value).is_integer() and abs(value) <= LARGEST_PLAIN)
        ):
            return
        for numerator in NUMERATORS:
            for operation, target in (("multiply", value / numerator), ("divide", numerator / value)):
                if 0 < target < 2**53 and round(target) in self.products:
                    yield operation, numerator, round(target)


def _is_shape(symbol: Symbol) -> bool:
    """Whether an extent is one of a shape that all calls with this code share."""
    return symbol is not ONE and not symbol.is_counted and symbol.size is None
