"""Tracebacks hide pullback's frames from tools that ask, and notes say the user's line."""

import json
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.dispatch import compiled, traced_function
from pullback.tracer.errors import GraphError
from pullback.tracer.origin import is_own


def hidden(error: BaseException) -> list[bool]:
    """Of each of pullback's frames in a traceback whether it is marked."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [bool(one.f_locals.get("__tracebackhide__")) for one in frames if is_own(one.f_code)]


def multiply(x: Any) -> Any:
    return x @ np.ones(7)


def fail(x: Any) -> Any:
    raise KeyError("mine")


def call_a_library(x: Any) -> Any:
    return np.linalg.cholesky(-x * np.eye(3)).sum()


@pytest.mark.parametrize("way", [pb.compile, pb.grad, lambda function: function])
@pytest.mark.parametrize("function", [multiply, fail, call_a_library])
def test_frames_of_pullback_are_marked(way: Callable[..., Any], function: Callable[..., Any]) -> None:
    with pytest.raises(Exception) as caught:
        way(function)(pb.ones(3, dtype=pb.float64))
    assert all(hidden(caught.value))
    frames = [one.name for one in traceback.extract_tb(caught.value.__traceback__)]
    assert function.__name__ in frames or "at test_tracebacks.py:" in str(caught.value)


@pytest.mark.parametrize("function", [multiply, fail, call_a_library])
def test_python_shows_the_users_frames_alone(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def frames() -> list[str]:
        with pytest.raises((pb.errors.PullbackError, KeyError)) as caught:
            pb.compile(function)(np.ones(3))
        return [one.name for one in traceback.extract_tb(caught.value.__traceback__)][1:]

    assert len(frames()) > 4, "under PULLBACK_CHECK there are all"
    monkeypatch.setattr(compiled, "CHECKING", False)
    assert frames() == ([] if function is call_a_library else [function.__name__])


def test_defects_are_shown_with_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "CHECKING", False)
    monkeypatch.setattr(traced_function, "trace_call", None)
    with pytest.raises(TypeError) as caught:
        pb.compile(multiply)(np.ones(3))
    assert "_traced" in [one.name for one in traceback.extract_tb(caught.value.__traceback__)]


def test_a_note_says_the_line_where_the_message_does_not() -> None:
    with pytest.raises(pb.errors.ArgumentError) as caught:
        pb.compile(lambda x: x)(1.0, 2.0)
    (note,) = caught.value.__notes__
    assert "test_tracebacks.py:" in note
    assert "pb.compile(lambda x: x)(1.0, 2.0)" in note


def test_what_the_message_says_is_not_noted() -> None:
    with pytest.raises(pb.errors.ShapeError, match=r"at test_tracebacks.py:\d+  pb.compile\(lam") as caught:
        pb.compile(lambda x: x + np.ones(7))(np.ones(3))
    assert not getattr(caught.value, "__notes__", ())


def test_an_error_of_a_library_gets_the_users_line() -> None:
    def parse(x: Any) -> Any:
        return x * json.loads("{")

    with pytest.raises(json.JSONDecodeError) as caught:
        pb.grad(parse)(1.0)
    (note,) = caught.value.__notes__
    assert note.endswith('return x * json.loads("{")')


def test_defects_show_all_frames() -> None:
    assert not getattr(GraphError("a defect"), "__notes__", ())


@pytest.mark.drawn(6)
def test_marks_keep_no_values_alive() -> None:
    import gc
    import weakref

    class Kept:
        pass

    def raising() -> None:
        value = Kept()
        alive.append(weakref.ref(value))
        with pytest.raises(pb.errors.ShapeError):
            pb.ones(2) @ pb.ones(3)

    alive: list[Any] = []
    raising()
    gc.collect()
    assert alive[0]() is None
