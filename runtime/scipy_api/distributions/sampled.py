"""Random numbers of SciPy's distributions: in a trace each call draws them, as plain Python would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....tracer.trace import is_tracing
from ...captures.randomness import drawing_from
from ..refusing import Refusing


class Sampled:
    """What stands for any distribution of SciPy's."""

    _real: Any

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return Sampled(self._real(*arguments, **options))

    def rvs(self, *arguments: Any, random_state: Any = None, **options: Any) -> Any:
        """Random numbers."""
        if not is_tracing() or isinstance(random_state, int | np.integer):
            return self._plain_method("rvs")(*arguments, random_state=random_state, **options)
        stream = self._real.random_state if random_state is None else random_state
        return drawing_from(stream, self._real.rvs)(*arguments, **options)

    def _plain_method(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._real, name)
        return found


class Distributed(Refusing, Sampled):
    """The same of one that takes Tensors in some of its methods."""

    def _plain_method(self, name: str) -> Callable[..., Any]:
        return self._refusing(name, super()._plain_method(name))
