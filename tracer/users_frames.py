"""What leaves a function of pullback's has the user's frames alone in its traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .trace import innermost
from .tracebacks import are_left_out, leave_out_own_frames

F = TypeVar("F", bound=Callable[..., Any])


def show_users_frames(error: BaseException) -> None:
    """Take pullback's frames out of what leaves a function of pullback's; in a trace, where it ends."""
    if are_left_out() and innermost() is None:
        leave_out_own_frames(error)


def showing_users_frames(function: F) -> F:
    """The function, with the user's frames alone in what it raises."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except BaseException as error:
            show_users_frames(error)
            raise

    return cast(F, call)
