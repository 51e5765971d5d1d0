"""A promise that nothing is traced or compiled: where it is made, and where it is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

from .errors import RecompileError

_is_refused: ContextVar[bool] = ContextVar("recompilation is refused", default=False)


class fail_on_recompile(contextlib.ContextDecorator):
    """Have what would trace or compile a function raise: a context, or a decorator.

    It holds in the thread that entered it. What was traced and is only loaded, from memory or from disk, does
    not count. So put it around what has to be quick, once `warmup` or a first call has been there.

    Raises:
        RecompileError: a call has arguments, or takes a path, that no call before has had; or a gradient is
            asked for the first time. It says what was known.

    Example:
        >>> step = pb.compile(lambda x: x * 2.0)
        >>> step.warmup(ArraySpec((3,)))
        >>> with fail_on_recompile():
        ...     step(np.ones(3))
        array([2., 2., 2.])
    """

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def _recreate_cm(self) -> fail_on_recompile:
        return fail_on_recompile()

    def __enter__(self) -> None:
        self._tokens.append(_is_refused.set(True))

    def __exit__(self, *error: Any) -> None:
        _is_refused.reset(self._tokens.pop())


def refuse_recompilation(reason: Callable[[], str]) -> None:
    """RecompileError inside of `fail_on_recompile`."""
    if _is_refused.get():
        raise RecompileError(
            f"{reason()}, and nothing is to be compiled inside of fail_on_recompile(). Have it compiled "
            "before: by a call with arguments of this kind, or by warmup()."
        )
