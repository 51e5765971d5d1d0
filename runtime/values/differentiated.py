"""Whether a value depends on an argument that a functional transform under way differentiates.

`grad`, `vjp` and their kin say so of their arguments while they run a function. A value with such a history
loses its gradient where it becomes a plain number or array, and that is an error (`lost_gradients.py`). It is
one in all threads: a function that is differentiated may give its work to others.
"""

from __future__ import annotations

from typing import Any, Protocol

from .modes import is_recording


class Differentiation(Protocol):
    """What runs a function of which derivatives are taken."""

    edges: list[tuple[Any, int]]
    """The places of its arguments on the tape, which keeps the ids of these."""
    since: int
    """A sequence number of the tape before the function began; no node before depends on them."""


under_way: list[Differentiation] = []
"""Those that run theirs now."""


class differentiating:
    """Inside, a function runs of which derivatives are taken by arguments at these places on the tape."""

    def __init__(self, edges: list[tuple[Any, int]], since: int) -> None:
        self.edges = edges
        self.since = since

    def __enter__(self) -> None:
        under_way.append(self)

    def __exit__(self, *error: object) -> None:
        under_way.remove(self)


def are_any_differentiated() -> bool:
    """Whether a transform under way asks for gradients."""
    return any(one.edges for one in under_way)


def is_differentiated(tensor: Any) -> bool:
    """Whether a Tensor has a gradient that a transform under way asks for."""
    if not under_way or not tensor.requires_grad or not is_recording():
        return False
    transforms = tuple(under_way)
    wanted = {id(target) for one in transforms for target, _ in one.edges}
    return _reaches(tensor._grad_fn or tensor, wanted, min(one.since for one in transforms))


def _reaches(target: Any, wanted: set[int], since: int) -> bool:
    """Whether gradients reach one of the `wanted` from a node, or leaf, of the tape."""
    pending, seen = [target], {id(target)}
    while pending:
        one = pending.pop()
        if id(one) in wanted:
            return True
        for edge in getattr(one, "edges", ()):  # leaves have none
            if edge is not None and id(edge[0]) not in seen:
                seen.add(id(edge[0]))
                if getattr(edge[0], "sequence", since) >= since:
                    pending.append(edge[0])
    return False
