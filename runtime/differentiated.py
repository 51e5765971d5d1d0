"""Whether a value depends on an argument that a functional transform under way differentiates.

`grad`, `vjp` and their kin say so of their arguments while they run a function. A value with such a history
loses its gradient where it becomes a plain number or array, and that is an error (`lost_gradients.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from .modes import is_recording


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The places on the tape of all arguments that are differentiated now; holding them keeps their ids."""

    targets: tuple[Any, ...]
    ids: frozenset[int]
    since: int
    """The sequence number before which no node depends on them."""

    def are_behind(self, target: Any) -> bool:
        """Whether gradients reach one of them from a node, or leaf, of the tape."""
        pending, seen = [target], {id(target)}
        while pending:
            one = pending.pop()
            if id(one) in self.ids:
                return True
            for edge in getattr(one, "edges", ()):  # leaves have none
                if edge is not None and id(edge[0]) not in seen:
                    seen.add(id(edge[0]))
                    if getattr(edge[0], "sequence", self.since) >= self.since:
                        pending.append(edge[0])
        return False


_current: ContextVar[_Arguments | None] = ContextVar("differentiated", default=None)


@contextmanager
def differentiating(arguments: Sequence[Any], since: int) -> Iterator[None]:
    """Inside, a function runs of which derivatives are taken; those of transforms around it count as well.

    Args:
        arguments: the Tensors.
        since: a sequence number of the tape before the function began.
    """
    outer = _current.get()
    targets = tuple(one._grad_fn or one for one in arguments)
    if outer is not None:
        targets, since = outer.targets + targets, outer.since
    token = _current.set(_Arguments(targets, frozenset(map(id, targets)), since))
    try:
        yield
    finally:
        _current.reset(token)


def is_differentiated(tensor: Any) -> bool:
    """Whether a Tensor has a gradient that a transform under way asks for."""
    current = _current.get()
    if current is None or not tensor.requires_grad or not is_recording():
        return False
    return current.are_behind(tensor._grad_fn or tensor)
