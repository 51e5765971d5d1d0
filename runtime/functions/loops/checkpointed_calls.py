"""`checkpoint` as torch.utils.checkpoint has it: a function is called with its arguments at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....tracer.errors import ArgumentError
from ..common import fail
from . import checkpointing

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    preserve_rng_state: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, of which backward keeps the arguments, and runs it again for all else.

    Args:
        use_reentrant: accepted; gradients go to arguments and to what the function takes from outside alike.
        preserve_rng_state: accepted; random numbers are the same both times.

    Example:
        >>> checkpoint(lambda x: (x * x).sum(), tensor([1.0, 2.0]), use_reentrant=False)
        tensor(5.)
    """
    return checkpointing.checkpoint(function)(*args, **kwargs)


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]], segments: int, input: Any, use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:  # fmt: skip
    """Functions one after another, in segments of which each but the last is a `checkpoint`.

    Raises:
        ArgumentError: there are fewer functions than segments, or no segment.

    Example:
        >>> checkpoint_sequential([lambda x: x * x, lambda x: x + 1], 2, tensor([1.0, 2.0]))
        tensor([2., 5.])
    """
    functions = list(functions)
    if not 0 < segments <= len(functions):
        fail(
            ArgumentError,
            f"checkpoint_sequential(): {segments} segments of {len(functions)} functions; give from 1 to "
            f"{len(functions)}.",
        )
    length = len(functions) // segments
    for first in range(0, length * (segments - 1), length):
        input = checkpoint(_one_after_another(functions[first : first + length]), input)
    return _one_after_another(functions[length * (segments - 1) :])(input)


def _one_after_another(functions: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run
