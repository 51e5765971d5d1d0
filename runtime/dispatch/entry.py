"""What a cache holds for one signature: variants, and how a call finds the one that runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .paths import Paths
from .uncompiled import Uncompiled
from .variant import STALE, Variant

ndarray = np.ndarray


class Entry:
    """The variants of one key: more than one where values that the function reaches have differed."""

    __slots__ = ("_matches", "former", "hits", "run", "variants")
    variants: tuple[Variant | Paths | Uncompiled, ...]
    run: Callable[[Any], Any]
    SIBLINGS = 8

    def __init__(self) -> None:
        self.clear()
        self.hits = 0
        self.former = 0
        """The hits at the last eviction round, to tell whether it has been used since."""
        self._matches: Callable[..., bool] | None = None

    def matching(self, arrays: Sequence[ndarray]) -> Callable[..., bool]:
        """What tells whether arguments are arrays like these, which are of this entry."""
        if self._matches is None:
            from ...codegen.machine.small_calls import matcher

            self._matches = matcher(arrays)
        return self._matches

    def add(self, variant: Variant | Paths | Uncompiled) -> None:
        self.variants = (variant, *self.variants[: self.SIBLINGS - 1])
        self.settle()

    def clear(self) -> None:
        """Forget the variants; the hits stay."""
        self.variants = ()
        self.run = lambda leaves: STALE

    def settle(self) -> None:
        """Call the one variant directly, once it has its own fast runner."""
        self.run = self._run_any if len(self.variants) > 1 else self._run_first

    def _run_first(self, leaves: Any) -> Any:
        variant = self.variants[0]
        result = variant.run(leaves)
        if variant.is_settled and len(self.variants) == 1:
            self.run = variant.run
        return result

    def _run_any(self, leaves: Any) -> Any:
        for variant in self.variants:
            result = variant.run(leaves)
            if result is not STALE:
                return result
        return STALE
