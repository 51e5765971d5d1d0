"""`python -m pullback`: what it prints, and one helpful line for each wrong argument."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pullback.__main__ import main

MODEL = """\
import pullback as pb

constant = 3


def energy(x, w):
    hidden = pb.tanh(x * w)
    return (hidden * hidden).sum()


def pick(scores, place):
    return scores[place].sum()


compiled = pb.compile(energy)
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(MODEL, encoding="utf-8")
    return str(path)


def run(*arguments: str) -> int:
    """The exit status, whether argparse or the command decides it."""
    try:
        return main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.mark.parametrize("function", ["energy", "compiled"])
@pytest.mark.parametrize("shapes", [("5", "5"), ("w=5:float32", "x=5:float32"), ("2,3", "w=3"), ("", "")])
def test_inspect_prints_the_source(model: str, function: str, shapes: tuple[str, str], capsys) -> None:
    arguments = [option for shape in shapes for option in ("--shape", shape)]
    assert run("inspect", f"{model}:{function}", *arguments) == 0
    printed = capsys.readouterr().out
    assert "def energy" in printed
    assert "hidden = pb.tanh(x * w)" in printed, "the user's line stands beside the statement"
    assert "backward of" in printed


def test_whoever_reads_may_stop(model: str) -> None:
    command = f"{sys.executable} -m pullback inspect {model}:energy --shape 5 --shape 5 --forward | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert not done.stderr


@pytest.mark.parametrize("view", ["forward", "backward", "graph", "explain"])
def test_inspect_prints_one_view(model: str, view: str, capsys) -> None:
    assert run("inspect", f"{model}:energy", "--shape", "5", "--shape", "5", f"--{view}") == 0
    printed = capsys.readouterr().out
    assert printed.strip()
    if view in ("forward", "graph"):
        assert "backward of" not in printed


def test_inspect_gives_integers_that_index(model: str, capsys) -> None:
    assert run("inspect", f"{model}:pick", "--shape", "4", "--shape", "place=2:int64") == 0
    assert "scores" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        ("energy", ["3,a", "3"], "'3,a' is no shape"),
        ("energy", ["3:float99", "3"], "'float99' in '3:float99' is no dtype of NumPy"),
        ("energy", ["3:str", "3"], "neither a float, an integer nor bool"),
        ("energy", ["3"], "energy(x, w): missing a required argument: 'w'"),
        ("energy", ["3", "3", "3"], "energy(x, w): too many positional arguments"),
        ("energy", ["3", "v=3"], "energy(x, w): "),
        ("energy", ["x=3", "x=3"], "'x' has two shapes"),
        ("enrgy", ["3"], "has no function 'enrgy'"),
        ("constant", [], "is a int, not a function"),
        ("", [], "names no function"),
    ],
)
def test_a_wrong_argument_is_one_line(
    model: str, function: str, shapes: list[str], message: str, capsys
) -> None:
    arguments = [option for shape in shapes for option in ("--shape", shape)]
    assert run("inspect", f"{model}:{function}", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_shapes_that_the_function_cannot_take_show_its_error(model: str, capsys) -> None:
    assert run("inspect", f"{model}:energy", "--shape", "3", "--shape", "4") == 2
    error = capsys.readouterr().err
    assert "energy" in error and "3" in error and "4" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("place", [".:f", "no_such:f", "no_such_package.module:f", "no_such_file.py:f", "f"])
def test_a_place_without_a_function_is_one_line(place: str, capsys) -> None:
    assert run("inspect", place) == 2
    error = capsys.readouterr().err
    assert place.partition(":")[0] in error
    assert error.count("\n") == 1


def test_an_unknown_command_is_one_line(capsys) -> None:
    assert run("dmeo") == 2
    error = capsys.readouterr().err
    assert "'dmeo'" in error
    assert error.count("\n") == 1


@pytest.mark.drawn(6)
def test_cache_shows_and_clears_its_folder(tmp_path: Path, model: str) -> None:
    environment = {**os.environ, "PULLBACK_CACHE_DIR": str(tmp_path / "compiled")}

    def pullback(*arguments: str) -> str:
        command = [sys.executable, "-m", "pullback", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert f"{tmp_path / 'compiled' / 'generated'}: 0 files" in pullback("cache")
    stranger = tmp_path / "compiled" / "notes.py"
    stranger.parent.mkdir()
    stranger.write_text("kept")
    program = f"import sys; sys.path.insert(0, {str(Path(model).parent)!r}); import model, numpy; "
    program += "model.compiled(numpy.ones(3), numpy.ones(3))"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert ": 0 files" not in pullback("cache")
    assert "Cleared." in pullback("cache", "--clear")
    assert ": 0 files" in pullback("cache")
    assert stranger.read_text() == "kept"


@pytest.mark.parametrize("text", ["def f(:", "1 / 0"])
def test_an_error_of_the_users_module_shows_its_lines_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    command = [sys.executable, "-m", "pullback", "inspect", "broken.py:f"]
    environment = {name: value for name, value in os.environ.items() if name != "PULLBACK_CHECK"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("  File ") == 1 and "broken.py" in done.stderr
