"""`profile`: times by line and by loop nest, as tables, data and pictures, of code that stays as it is."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError
from pullback.runtime.diagnosis.profiles import Profile

X, W = np.linspace(0, 1, 5000), np.full(5000, 0.3)


def energy(x: Any, w: Any) -> Any:
    hidden = pb.tanh(x * w)
    gate = pb.exp(-hidden * hidden)
    return (hidden * gate).sum()


@pytest.fixture(scope="module")
def profile() -> Profile:
    return pb.profile(pb.compile(energy), X, W)


@pytest.mark.drawn(4)
def test_lines_are_the_users_and_have_forward_and_backward(profile: Profile) -> None:
    texts = [line.strip() for line in inspect.getsource(energy).splitlines()[1:]]
    assert {one.text for one in profile.lines} == set(texts)
    slowest = profile.lines[0]
    assert slowest.text == "hidden = pb.tanh(x * w)"
    assert 0 < slowest.backward_seconds < slowest.seconds
    assert [one.title for one in profile.programs] == ["forward of energy", "backward of energy"]


def test_what_nests_take_is_what_lines_take(profile: Profile) -> None:
    for what in ("seconds", "nbytes", "operations"):
        of_nests, of_lines = (
            sum(getattr(one, what) for one in some) for some in (profile.nests, profile.lines)
        )
        assert of_lines == pytest.approx(of_nests)
    for one in profile.programs:
        nests = [nest for nest in profile.nests if nest.program == one.title]
        assert one.seconds_of_nests == pytest.approx(sum(nest.seconds for nest in nests))
        assert one.seconds_of_nests + one.rest == pytest.approx(one.seconds)
        assert 0 < one.seconds_of_nests < 3 * one.seconds
    (forward, _) = profile.nests
    assert forward.nbytes == 4 * X.nbytes + 8  # two arrays are read, two saved for backward
    assert forward.gigabytes == pytest.approx(1e-9 * forward.nbytes / forward.seconds)


def test_it_is_a_table_and_plain_data(profile: Profile) -> None:
    text = str(profile)
    assert repr(profile) == text
    assert "hidden = pb.tanh(x * w)" in text and "by loop nest" in text and "GFLOP/s" in text
    assert "backward of energy" in text and "the rest" in text
    assert max(map(len, text.splitlines())) <= 110
    data = json.loads(json.dumps(profile.as_data()))
    assert data["name"] == "energy" and data["lines"][0]["text"] == profile.lines[0].text


def test_the_code_that_calls_run_stays_as_it_is() -> None:
    function = pb.compile(energy)
    wanted, source = function(X, W), function.source(X, W)
    before = function.cache_info()
    pb.profile(function, X, W)
    assert function.source(X, W) == source and "clock" not in source
    assert function(X, W) == wanted
    assert function.cache_info().compilations <= before.compilations + 2


@pytest.mark.drawn(6)
def test_nests_of_one_function_are_timed_one_by_one() -> None:
    def steps(x: Any) -> Any:
        y = np.cumsum(np.sin(x))
        z = np.sort(y)
        return (z - z.mean()).sum()

    found = pb.profile(steps, X)
    assert len(found.nests) > 3
    titles = [one.title for one in found.nests if one.seconds > 0]
    assert any("sort" in one for one in titles)


@pytest.mark.drawn(6)
def test_loops_products_and_fused_gradients_have_profiles() -> None:
    def network(w: Any, x: Any) -> Any:
        for _ in range(20):
            x = np.tanh(x @ w)
        return x.sum()

    found = pb.profile(pb.value_and_grad(network), np.eye(16) / 2, np.ones((32, 16)))
    (line,) = [one for one in found.lines if "np.tanh(x @ w)" in one.text]
    assert line.backward_seconds > 0 and len(found.programs) >= 1
    x = pb.tensor(X, requires_grad=True)
    assert len(pb.profile(pb.compile(lambda x: (x * x).sum()), x).programs) == 2
    assert pb.profile(lambda z: abs(z).sum(), X + 1j).nests
    assert len(pb.profile(lambda n: n + 1, np.arange(3)).programs) == 1


@pytest.mark.drawn(6)
def test_threads_are_timed_as_a_whole() -> None:
    function = pb.compile(energy, parallel=True)
    found = pb.profile(function, np.linspace(0, 1, 100_000), np.ones(100_000))
    assert all(one.is_shared and one.seconds > 0 for one in found.nests)
    assert "*" in str(found)


def test_nothing_is_written_drawn_or_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)

    @pb.compile
    def busy(x: Any) -> Any:
        pb.debug.print("{}", x[0])
        x[1:] = 0.0
        return (x + rng.normal(size=3)).sum()

    given = np.ones(3)
    pb.profile(busy, given)
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(given, np.ones(3))
    assert rng.normal() == np.random.default_rng(0).normal()


@pytest.mark.drawn(6)
def test_pictures_show_programs_nests_and_lines(profile: Profile) -> None:
    pytest.importorskip("matplotlib")
    axes = profile.plot().axes[0]
    assert [one.get_text() for one in axes.get_yticklabels()] == ["program", "nest", "line"]
    axes = profile.plot("roofline").axes[0]
    assert axes.get_xlabel() == "operations for each byte"
    with pytest.raises(ArgumentError, match="one of flame, roofline, found 'pie'"):
        profile.plot("pie")


@pytest.mark.drawn(6)
def test_the_command_line_prints_it(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    source = inspect.getsource(energy).replace(": Any", "").replace(" -> Any", "")
    model.write_text(f"import pullback as pb\n\n\n{source}")
    command = [sys.executable, "-m", "pullback", "profile", f"{model}:energy"]
    found = subprocess.run(
        [*command, "--shape", "1000", "--shape", "w=1000"], capture_output=True, text=True, check=True
    )
    assert "model.py:5  hidden = pb.tanh(x * w)" in found.stdout and "by loop nest" in found.stdout
    refused = subprocess.run([*command, "--shape", "3", "--shape", "4"], capture_output=True, text=True)
    assert refused.returncode == 2 and "model.py:energy" in refused.stderr
