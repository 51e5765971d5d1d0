"""Tracebacks in which users find their own lines: pullback's frames are hidden, and a note says the line.

pytest and IPython leave out frames with a local variable `__tracebackhide__`. Python shows all, so
those of a trace are taken out of what leaves a compiled function.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType

from .errors import PullbackError
from .failed_calls import call_of, is_said
from .numpy_words import in_words_of_numpy
from .origin import calling_frame, is_own, is_users_code, place_of_line


def locate(error: PullbackError) -> None:
    """Hide pullback's frames above, and note the user's call and line unless the error says them."""
    frame = calling_frame()
    if frame is None:
        return
    place = place_of_line(frame.f_code.co_filename, frame.f_lineno)
    if error.tells_call:
        _tell_call(error, frame, place)
    _hide(_stack(sys._getframe(1)))
    _note(error, place)


def _tell_call(error: PullbackError, users: FrameType, place: str) -> None:
    """Note the call of the user's in which an error is raised; if it is one of NumPy's, in NumPy's words."""
    inner = itertools.takewhile(lambda one: one is not users, _stack(sys._getframe(2)))
    call = call_of([one for one in inner if is_own(one.f_code)][::-1])
    if call is None:
        return
    if call.name and len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (in_words_of_numpy(error, call, place),)
    if not is_said(str(error), call.shown):
        error.add_note(f"  in {call.shown}")


def hide_own_frames(error: BaseException) -> None:
    """The same for an error of others that goes through pullback: in its traceback, and above."""
    raised = list(_entries(error.__traceback__))
    _hide(entry.tb_frame for entry in raised)
    _hide(_stack(sys._getframe(1)))
    users = [entry for entry in raised if is_users_code(entry.tb_frame.f_code)]
    if users and users[-1] is not raised[-1]:
        _note(error, place_of_line(users[-1].tb_frame.f_code.co_filename, users[-1].tb_lineno))


def leave_out_own_frames(error: BaseException) -> None:
    """Take pullback's frames out of an error's traceback, unless they may be to blame."""
    entries = list(_entries(error.__traceback__))
    is_meant = getattr(error, "is_defect", None) is False  # a `PullbackError`
    if entries and (is_meant or not is_own(entries[-1].tb_frame.f_code)):
        others = [entry for entry in entries if not is_own(entry.tb_frame.f_code)]
        error.__traceback__ = _linked(others)


def up_to_users_code(raised: TracebackType | None) -> TracebackType | None:
    """A traceback without those of pullback's frames in which it ends; itself if it has no others."""
    entries = list(_entries(raised))
    while entries and is_own(entries[-1].tb_frame.f_code):
        entries.pop()
    return _linked(entries) or raised


def _linked(entries: Sequence[TracebackType]) -> TracebackType | None:
    """A traceback of these entries, the outermost first."""
    found: TracebackType | None = None
    for one in reversed(entries):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


def _note(error: BaseException, place: str) -> None:
    where = place.partition("  ")[0]
    said = "\n".join((str(error), *getattr(error, "__notes__", ())))
    if where and where not in said:
        error.add_note(f"  at {place}")


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _entries(raised: TracebackType | None) -> Iterator[TracebackType]:
    while raised is not None:
        yield raised
        raised = raised.tb_next


def _hide(frames: Iterator[FrameType]) -> None:
    """Mark those frames that are pullback's, and those of Python's library that these have entered."""
    for frame in frames:
        is_ours = is_own(frame.f_code)
        if not is_ours and (is_users_code(frame.f_code) or not _is_entered_by_own(frame)):
            continue
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            variables = frame.f_locals
            if type(variables) is dict:  # a copy, which would keep values alive as long as the frame
                variables.clear()
            variables["__tracebackhide__"] = True


def _is_entered_by_own(frame: FrameType) -> bool:
    return frame.f_back is not None and is_own(frame.f_back.f_code)
