"""Tracebacks hide pullback's frames from tools that ask, and notes say the user's line."""

import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.dispatch import traced_function
from pullback.tracer import tracebacks
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


def stop(x: Any) -> Any:
    raise KeyboardInterrupt


def chain(x: Any) -> Any:
    try:
        return multiply(x)
    except ValueError as error:
        raise ExceptionGroup("mine", [error]) from error


def entries(error: BaseException | None) -> list[str]:
    """The functions in a traceback, those of pullback's with a star."""
    assert error is not None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [f"{one.f_code.co_name}{'*' * is_own(one.f_code)}" for one in frames]


@pytest.mark.parametrize("function", [multiply, fail, call_a_library, stop, chain])
@pytest.mark.parametrize(
    "way",
    [
        pb.compile, pb.grad, pb.hessian, lambda function: lambda x: pb.vjp(function, x),
        lambda function: lambda x: pb.jvp(function, (x,), (x,)),
    ],
)  # fmt: skip
def test_python_shows_the_users_frames_alone(
    way: Callable[..., Any], function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def caught() -> BaseException:
        with pytest.raises(BaseException) as raised:
            way(function)(np.ones(3))
        return raised.value

    assert any("*" in one for one in entries(caught())), "under PULLBACK_CHECK there are all"
    monkeypatch.setattr(tracebacks, "CHECKING", False)
    error = caught()
    is_of_code = function is call_a_library and way is pb.compile  # which runs past the user's function
    assert [one for one in entries(error)[1:] if one != "<lambda>"] == [function.__name__] * (not is_of_code)
    if isinstance(error, ExceptionGroup):
        assert error.__cause__ is error.exceptions[0]
        assert entries(error.__cause__) == ["chain", "multiply"]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add(x, x[:2]), lambda x: np.dot(x, x[:2]), lambda x: pb.matmul(x, x[:2]),
        lambda x: x.backward(), lambda x: pb.vjp(np.sin, x)[1](np.ones(2)),
        lambda x: pb.vmap(multiply)(x[None]), lambda x: pb.vmap(fail)(x[None]),
    ],
)  # fmt: skip
def test_what_leaves_a_function_of_pullbacks_does_so_too(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "CHECKING", False)
    with pytest.raises((ValueError, KeyError, RuntimeError)) as caught:
        call(pb.ones(3, requires_grad=True))
    assert not any("*" in one for one in entries(caught.value))


def test_what_ends_a_program_or_a_thread_is_shown_without_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracebacks, "CHECKING", False)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    with pytest.raises(pb.errors.ShapeError) as caught:
        multiply(pb.ones(3, dtype=pb.float64))
    assert any("*" in one for one in entries(caught.value))
    sys.excepthook(caught.type, caught.value, caught.tb)
    shown = capsys.readouterr().err
    assert "in multiply" in shown and "apply.py" not in shown and shown.count("File") == 2
    thread = threading.Thread(target=multiply, args=[pb.ones(3, dtype=pb.float64)])
    thread.start()
    thread.join()
    shown = capsys.readouterr().err
    assert "in multiply" in shown and "apply.py" not in shown

    hook = sys.excepthook = lambda *_: None  # one that the program brings is left alone
    with pytest.raises(pb.errors.ShapeError):
        multiply(pb.ones(3, dtype=pb.float64))
    assert sys.excepthook is hook


@pytest.mark.drawn(4)
def test_all_frames_are_shown_where_the_environment_asks(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import pullback as pb\npb.grad(lambda x: x.reshape(4))(pb.ones(3))\n")

    def shown(**environment: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name != "PULLBACK_CHECK"}
        ran = subprocess.run(
            [sys.executable, program], capture_output=True, text=True, env=kept | environment, check=False
        )
        assert ran.returncode == 1
        return ran.stderr

    assert shown().count("  File ") == 2
    assert "transforms.py" in shown(PULLBACK_ALL_FRAMES="1")


def test_what_pullback_has_caught_is_no_context_and_what_users_catch_is() -> None:
    with pytest.raises(pb.errors.ShapeError) as caught:
        pb.grad(lambda x: np.exp(x) * np.ones(4))(np.ones(3))
    assert caught.value.__context__ is None or caught.value.__suppress_context__

    def catching(x: Any) -> Any:
        try:
            raise KeyError("mine")
        except KeyError:
            return multiply(x)

    with pytest.raises(pb.errors.ShapeError) as caught:
        pb.grad(catching)(np.ones(3))
    assert isinstance(caught.value.__context__, KeyError) and not caught.value.__suppress_context__


def test_defects_are_shown_with_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "CHECKING", False)
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
