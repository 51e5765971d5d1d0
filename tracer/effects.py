"""Functions that a program calls for their effect: at once, or held back until its run is known to count."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType

Effect = Callable[[], object]
_waiting: ContextVar[list[Effect] | None] = ContextVar("effects", default=None)


def perform(effect: Effect) -> None:
    """Call a function, now or once the run that calls it counts."""
    waiting = _waiting.get()
    if waiting is None:
        effect()
    else:
        waiting.append(effect)


class held_back:
    """Inside, effects wait; behind, they are performed, unless one of these errors says: no run counts."""

    def __init__(self, *dropping: type[BaseException]) -> None:
        self._dropping = dropping
        self._effects: list[Effect] = []

    def __enter__(self) -> None:
        self._token: Token[list[Effect] | None] = _waiting.set(self._effects)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _waiting.reset(self._token)
        if not isinstance(error, self._dropping):
            for effect in self._effects:
                perform(effect)
