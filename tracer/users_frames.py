"""What leaves a function of pullback's has the user's frames alone in its traceback."""

from __future__ import annotations

from .trace import innermost
from .tracebacks import are_left_out, leave_out_own_frames


def show_users_frames(error: BaseException) -> None:
    """Take pullback's frames out of what leaves a function of pullback's; in a trace, where it ends."""
    if are_left_out() and innermost() is None:
        leave_out_own_frames(error)
