"""Any distribution of SciPy's: in a trace each call draws random numbers, as plain Python would."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tracer.trace import is_tracing
from ...captures.randomness import drawing_from
from ...values.differentiated import is_differentiated
from ...values.tensor import Tensor
from ..refusing import Refusing


def _holds_differentiated(data: Any) -> bool:
    """Whether data for an array have a Tensor among them whose gradient is asked for."""
    if isinstance(data, list | tuple):
        return any(map(_holds_differentiated, data))
    return isinstance(data, Tensor) and is_differentiated(data)


class Sampled(Refusing):
    """What stands for any distribution of SciPy's; its methods refuse values that would lose a gradient."""

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real = f"scipy.stats.{name}", real

    def _is_refused(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        return any(map(_holds_differentiated, (*arguments, *options.values())))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        frozen = self._refusing("freeze", self._real)(*arguments, **options)
        return Sampled(self._name.removeprefix("scipy.stats."), frozen)

    def rvs(self, *arguments: Any, random_state: Any = None, **options: Any) -> Any:
        """Random numbers."""
        if not is_tracing() or isinstance(random_state, int | np.integer):
            return self._refusing("rvs", self._real.rvs)(*arguments, random_state=random_state, **options)
        stream = self._real.random_state if random_state is None else random_state
        return drawing_from(stream, self._real.rvs)(*arguments, **options)


class Distributed(Sampled):
    """The same of one that takes Tensors in some of its methods, and refuses them in all others."""

    _is_refused = Refusing._is_refused
