"""The generator of border programs: it draws what plain code runs, and its checks find what differs."""

from collections.abc import Callable
from typing import Any

import border_programs
import numpy as np
import pytest
from border_checks import Checks, outcome_of, run_calls
from border_compare import Case, Differs, compare

import pullback as pb

pytestmark = pytest.mark.usefixtures("uncompiled")

SQUARE = Case("def f(x):\n    return (x * x).sum()", ("np.array([1.0, 2.0])",), ("np.array([3.0, 4.0])",))
COUNTS = Case("n = 0\ndef f(x):\n    global n\n    n += 1\n    return x * n", ("np.ones(2)",))


def status(case: Case, check: str) -> str:
    return outcome_of(Checks(case), check).status


def test_a_seed_is_one_program() -> None:
    assert [border_programs.draw(seed) for seed in range(5)] == [
        border_programs.draw(seed) for seed in range(5)
    ]


@pytest.mark.parametrize(
    "subject", [one for one in border_programs.idioms() if one not in ("pullback", "tensors")]
)
def test_plain_code_runs_idioms(subject: str) -> None:
    """Some of them, since all take long; `--each` says which others it doesn't run."""
    texts = border_programs.idioms()[subject][::6]
    assert not [text for text in texts if border_programs.draw_alone(subject, text) is None]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1.0, np.float64(1.0), "kind"), (np.float64(1.0), np.array(1.0), "kind"), (True, np.True_, "kind"),
        (1, 1.0, "dtype"), (np.float32(1), 1.0, "dtype"), (np.ones(2), np.ones(3), "shape"),
        (1.0, 1.0 + 1e-6, "value"), (np.ones(2), pb.ones(2, dtype=pb.float64), "kind"),
        ([1.0], (1.0,), "structure"), ({"a": 1.0}, {"b": 1.0}, "structure"), ("1.5", "1.6", "value"),
        (np.nan, np.nan, ""),
    ],
)  # fmt: skip
def test_comparing(one: Any, other: Any, expected: str) -> None:
    if not expected:
        return compare(one, other, 1e-9)
    with pytest.raises(Differs) as found:
        compare(one, other, 1e-9)
    assert found.value.status == expected


@pytest.mark.drawn(4)
def test_right_programs_have_no_findings() -> None:
    for check in (
        "compile",
        "compile_inside",
        "value_and_grad",
        "compiled_value_and_grad",
        "vjp",
        "jvp",
        "cond",
    ):
        assert status(SQUARE, check) == "ok", check


def test_what_raises_plainly_raises_compiled() -> None:
    assert status(Case("def f(x):\n    return x[9]", ("np.ones(2)",)), "compile") == "ok"


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (lambda f: lambda x: f(x) * 1.001, "value"),
        (lambda f: lambda x: np.float32(f(x)), "dtype"),
        (lambda f: lambda x: pb.tensor(f(x)), "kind"),
    ],
)  # fmt: skip
def test_a_wrong_transform_is_found(transform: Callable[[Any], Any], expected: str) -> None:
    checks = Checks(SQUARE)
    with pytest.raises(Differs) as found:
        checks.compare_calls(checks.expected(), run_calls(SQUARE, transform))
    assert found.value.status == expected


def test_what_is_called_once_too_often_is_found() -> None:
    checks = Checks(COUNTS)
    with pytest.raises(Differs):
        checks.compare_calls(checks.expected(), run_calls(COUNTS, lambda f: lambda x: (f(x), f(x))[1]))


def shifted(distance: float) -> Callable[..., Any]:
    """A transform that is wrong by so much in each element of the gradient."""

    def transform(function: Any, places: tuple[int, ...]) -> Any:
        def call(x: Any) -> Any:
            value, (gradient,) = pb.value_and_grad(function, places)(x)
            return value, (gradient + distance,)

        return call

    return transform


def test_a_wrong_gradient_is_found() -> None:
    with pytest.raises(Differs) as found:
        Checks(SQUARE).compare_gradient(shifted(1.0))
    assert found.value.status == "gradient"


def test_a_step_where_rounding_decides_is_known() -> None:
    cut = "def f(x):\n    return (x * 100).astype(np.int32)"
    for number, is_step in ((0.58, True), (0.505, False)):  # 0.58 * 100 is a little less than 58
        assert Checks(Case(cut, (f"np.array([{number}])",))).does_rounding_decide() is is_step


@pytest.mark.parametrize("arguments", ["np.array([-1.0, 0.5])", "np.array([-1.0, 0.5], dtype=np.float32)"])
def test_at_a_kink_the_slopes_between_its_sides_are_right(arguments: str) -> None:
    clipped = Checks(Case("def f(x):\n    return np.clip(x, -1, 1).sum() + (x ** 2).sum()", (arguments,)))
    for distance in (0.0, -0.3):
        clipped.compare_gradient(shifted(distance))
    for distance in (0.3, -0.9):
        with pytest.raises(Differs):
            clipped.compare_gradient(shifted(distance))


def test_a_finding_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every program with a sine were wrong."""
    program = next(one for one in map(border_programs.draw, range(300)) if "np.sin(" in one.text())

    def found(checks: Checks, name: str) -> border_programs.Outcome:
        return border_programs.Outcome(name, "value" if "np.sin(" in checks.case.text else "ok")

    monkeypatch.setattr("border_checks.outcome_of", found)
    smaller, _ = border_programs.shrunk(program, border_programs.Outcome("compile", "value"))
    assert "np.sin(" in smaller.text() and len(smaller.text()) <= len(program.text())
    assert len(smaller.pieces) <= 1 or len(smaller.result) == 1
