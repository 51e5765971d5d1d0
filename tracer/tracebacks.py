"""Tracebacks in which users find their own lines: pullback's frames are hidden, and a note says the line.

pytest and IPython leave out frames with a local variable `__tracebackhide__`. Python shows all, so they are
taken out of what leaves a compiled function or a transform, and out of what ends the program or a thread.
PULLBACK_ALL_FRAMES=1 in the environment keeps them all.
"""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from .errors import PullbackError, locators
from .failed_calls import call_of, is_said
from .numpy_words import in_words_of_numpy
from .origin import calling_frame, is_own, is_users_code, is_users_file, place_of_line
from .settings import ALL_FRAMES, CHECKING

F = TypeVar("F", bound=Callable[..., Any])


def locate(error: PullbackError) -> None:
    """Hide pullback's frames above, and note the user's call and line unless the error says them."""
    frame = calling_frame()
    if frame is None:
        return
    place = place_of_line(frame.f_code.co_filename, frame.f_lineno)
    if error.tells_call:
        _tell_call(error, frame, place)
    handled = sys.exc_info()[1]
    if handled is not None and handled.__traceback__ and is_own(handled.__traceback__.tb_frame.f_code):
        error.__suppress_context__ = True  # it has led to this one inside of pullback
    _hide(_stack(sys._getframe(1)))
    _note(error, place)
    show_them_at_exit()


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
    show_them_at_exit()
    raised = list(_entries(error.__traceback__))
    _hide(entry.tb_frame for entry in raised)
    _hide(_stack(sys._getframe(1)))
    users = [entry for entry in raised if is_users_code(entry.tb_frame.f_code)]
    if users and users[-1] is not raised[-1]:
        _note(error, place_of_line(users[-1].tb_frame.f_code.co_filename, users[-1].tb_lineno))


def leave_out_own_frames(error: BaseException, seen: tuple[BaseException, ...] = ()) -> None:
    """Take pullback's frames out of a traceback, unless they may be to blame, and out of those it comes from.

    Args:
        seen: errors that have led to this one.
    """
    entries = list(_entries(error.__traceback__))
    if entries and (_is_meant(error) or not _is_to_blame(entries[-1].tb_frame.f_code) or misfit(error)):
        others = [entry for entry in entries if not is_own(entry.tb_frame.f_code)]
        if len(others) < len(entries):
            error.__traceback__ = _linked(others)
    seen = (*seen, error)
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for one in (error.__cause__, error.__context__, *parts):
        if one is not None and one not in seen:
            leave_out_own_frames(one, seen)


def calling_for_users(function: F) -> F:
    """Say of a function of ours that it stands for one of others, which it calls as the user has: what that
    raises is the user's error."""
    _stand_ins.add(function.__code__)
    return function


_stand_ins: set[CodeType] = set()


def _is_to_blame(code: CodeType) -> bool:
    """Whether what is raised in a function of ours is its fault; a module says what it does not have."""
    return is_own(code) and code not in _stand_ins and code.co_qualname != "__getattr__"


def misfit(error: BaseException) -> str | None:
    """What is wrong with the arguments of a call of the user's, if Python has found them not to fit.

    That of a function of pullback's, or of the user's own that pullback calls with the arguments it is given.
    """
    found = MISFIT.match(str(error)) if isinstance(error, TypeError) else None
    entries = own_frames_at_end(error) if found else []
    if found is None or not entries:
        return None
    users = next((one for one in _stack(entries[0]) if is_users_code(one.f_code)), None)
    place = place_of_line(users.f_code.co_filename, users.f_lineno) if users is not None else ""
    name = found[1].rpartition(".")[2]
    for entry in entries[-1], entries[0]:
        function = entry.f_locals.get("function")
        if callable(function) and getattr(function, "__name__", "") == name:
            return f"{error}. Its signature is {name}{_signature_of(function)}.\n  at {place}"
    return None


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Without annotations."""
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


MISFIT = re.compile(
    r"([\w.<>]+)\(\) (got an unexpected|got multiple|got some|missing \d+ required|takes )"
)


def _is_meant(error: BaseException) -> bool:
    """Whether it is no defect: one of pullback's own errors, or what stops a program, as Ctrl-C; of text the
    user's, of which there is no code yet."""
    if isinstance(error, SyntaxError):
        return is_users_file(error.filename or "")
    return getattr(error, "is_defect", None) is False or not isinstance(error, Exception)


def are_left_out() -> bool:
    """Whether tracebacks are without pullback's frames."""
    return not (ALL_FRAMES or CHECKING)


def show_them_at_exit() -> None:
    """Have what ends the program, or a thread, shown without pullback's frames, if Python itself shows it."""
    if not are_left_out():
        return
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _show_of_thread


def _show(kind: type[BaseException], error: BaseException, raised: TracebackType | None) -> None:
    leave_out_own_frames(error)
    sys.__excepthook__(kind, error, error.__traceback__)


def _show_of_thread(ended: Any) -> None:
    leave_out_own_frames(ended.exc_value)
    parts = ended.exc_type, ended.exc_value, ended.exc_value.__traceback__, ended.thread
    threading.__excepthook__(threading.ExceptHookArgs(parts))


def own_frames_at_end(error: BaseException) -> list[FrameType]:
    """Those frames of pullback's in which an error was raised that the user's innermost line has called."""
    frames = [entry.tb_frame for entry in _entries(error.__traceback__)]
    behind = list(itertools.takewhile(lambda one: not is_users_code(one.f_code), reversed(frames)))[::-1]
    return list(itertools.dropwhile(lambda one: not is_own(one.f_code), behind))


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
    if ALL_FRAMES:
        return
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


locators.append(locate)
