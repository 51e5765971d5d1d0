"""Calls of a compiled function that run its Python code, on the tape: what is not, or cannot be, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..captures.identities import require_alike, shared
from ..captures.places import Reading
from ..tape.apply import standing_for
from ..tracing.call_roots import explore_call, substituted_arguments
from ..tracing.signature import Call
from ..tracing.substitution import Substitution
from ..values.flatten import Results
from ..values.refusals import explaining_errors
from ..values.tensor import Tensor
from ..values.value_kinds import plain
from .table import Runs


def run_uncompiled(function: Callable[..., Any], call: Call, name: str) -> Any:
    """What the compiled function would return, with the history that the tape records.

    As in a trace the function gets a Tensor in the place of each array, also of those that it reaches.
    """
    reading = explore_call(function, call, name)
    given = [leaf for leaf, flag in zip(call.leaves, call.is_array) if flag]
    values = [*given, *(source.value for source in reading.sources)]
    tensors = [standing_for(one) for one in values]
    if reading.asks_identity:
        require_alike(name, values, [f"array {position}" for position in range(len(values))])
        tensors = shared(values, tensors)
    of_sources = dict(zip(reading.sources, tensors[len(given) :]))
    substitution = Substitution(reading, of_sources.__getitem__, name)
    waiting = iter(tensors)
    leaves = [next(waiting) if flag else leaf for leaf, flag in zip(call.leaves, call.is_array)]
    args, kwargs = substituted_arguments(call, leaves, substitution)
    try:
        with explaining_errors():
            value = substitution.root(0, function)(*args, **kwargs)
    finally:
        substitution.write_back(lambda value: _as_before(value, reading))
    results = Results(value, name)
    memory = [one for one in (*call.arrays, *values) if isinstance(one, np.ndarray)]
    return results.builder(lambda found: [_own_result(one, memory) for one in found])(results.leaves)


class Uncompiled(Runs):
    """What runs in the place of code for calls that cannot be compiled."""

    @property
    def size(self) -> int:
        return 0

    def __init__(self, function: Callable[..., Any], call: Call, name: str) -> None:
        self.function, self.name = function, name
        self.call = call.with_arrays([None] * len(call.arrays))

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call, by the Python function."""
        given = getattr(leaves, "given", leaves)  # which it may write into
        return run_uncompiled(self.function, self.call.with_arrays(given), self.name)


def _as_before(value: Any, reading: Reading) -> Any:
    """What the function stores outside: what it took from there as it was, else what stands for it."""
    if not isinstance(value, Tensor):
        return value
    for source in reading.sources:
        if source.value is value._value:
            return source.value
    return plain(value)


def _own_result(leaf: Any, memory: list[np.ndarray]) -> Any:
    """A result as the function returns it: arrays share no memory with arguments."""
    value = plain(leaf)
    if not isinstance(value, np.ndarray):
        return value
    return value.copy() if any(np.may_share_memory(value, one) for one in memory) else value
