"""`debug.print`, `callback` and `breakpoint` in compiled functions: as plain Python, once, and in order."""

import io
import pdb
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError

X = np.array([1.0, 2.0, 3.0])
Prints = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Nothing runs uncompiled unnoticed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Prints:
    return lambda: capsys.readouterr().out.splitlines()


def same_prints(printed: Prints, function: Callable[..., Any], *args: Any, calls: int = 3) -> list[str]:
    """The lines that the plain call prints, which those of the compiled one print as well."""
    function(*args)
    wanted = printed()
    compiled = pb.compile(function)
    for _ in range(calls):
        compiled(*args)
        assert printed() == wanted
    return wanted


def test_values_are_printed_as_plain_python_prints_them(printed: Prints) -> None:
    def shown(x: Any, n: float) -> Any:
        y = x * 2
        pb.debug.print("{0} {y.shape} {total:.2f} {n}", x, y=y, total=y.sum(), n=n)
        pb.debug.print("done")
        return y.sum()

    assert same_prints(printed, shown, X, 0.5) == ["[1. 2. 3.] (3,) 12.00 0.5", "done"]


def test_tensors_and_containers_are_printed_as_what_they_are(printed: Prints) -> None:
    def shown(x: Any) -> Any:
        pb.debug.print("{p[w]} {p[k]} {t}", p={"w": x * 2, "k": [1, "a"]}, t=x.sum())
        return x

    assert same_prints(printed, shown, pb.tensor([1.0, 2.0])) == ["tensor([2., 4.]) [1, 'a'] 3.0"]


def test_other_values_and_other_arguments_are_printed_by_the_same_program(printed: Prints) -> None:
    shown = pb.compile(lambda x: pb.debug.print("{}", x.sum()))
    for scale in (1.0, 2.0):
        shown(X * scale)
    assert printed() == ["6.0", "12.0"]
    assert shown.cache_info().traces == 1


@pytest.mark.parametrize("count", [3, 40])
def test_loops_of_python_print_in_each_step(printed: Prints, count: int) -> None:
    def iterated(x: Any) -> Any:
        for i in range(count):
            x = np.sin(x) + 0.1 * i
            pb.debug.print("{}", x)
        return x.sum()

    assert len(same_prints(printed, iterated, X, calls=2)) == count


def test_structured_loops_print_in_each_step(printed: Prints) -> None:
    def scanned(xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            pb.debug.print("{} {}", total, x)
            return total + x, None

        return pb.scan(step, np.float64(0.0), xs)[0]

    assert same_prints(printed, scanned, X) == ["0.0 1.0", "1.0 2.0", "3.0 3.0"]

    def halved(x: Any) -> Any:
        def step(y: Any) -> Any:
            pb.debug.print("{:.3f}", y)
            return y / 2

        return pb.while_loop(lambda y: y > 0.1, step, x)

    assert len(same_prints(printed, halved, np.float64(1.0))) == 4


def test_choices_print_on_the_side_that_is_taken(printed: Prints) -> None:
    def chosen(x: Any) -> Any:
        def positive(x: Any) -> Any:
            pb.debug.print("positive {}", x)
            return x

        return pb.cond(x > 0, positive, lambda x: -x, x)

    assert same_prints(printed, chosen, np.float64(2.0)) == ["positive 2.0"]
    assert same_prints(printed, chosen, np.float64(-2.0)) == []


@pytest.mark.drawn(4)
def test_a_gradient_prints_once_in_the_forward_pass(printed: Prints) -> None:
    def loss(x: Any) -> Any:
        y = np.sin(x)
        pb.debug.print("{:.9f}", y.sum())
        for _ in range(30):
            y = np.sin(y) * x
            pb.debug.print("{:.9f}", y[0])
        return y.sum()

    loss(X)
    wanted = printed()
    for transform in (pb.grad, pb.value_and_grad):
        transform(pb.compile(loss))(X)
        assert printed() == wanted
    x = pb.tensor(X, requires_grad=True)
    value = pb.compile(loss)(x)
    assert len(printed()) == len(wanted)
    value.backward()
    assert printed() == []
    np.testing.assert_allclose(x.grad.numpy(), pb.grad(loss)(X))


def test_a_while_loop_that_backward_runs_again_prints_once(printed: Prints) -> None:
    @pb.compile
    def halved(x: Any) -> Any:
        def step(y: Any) -> Any:
            pb.debug.print("{:.9f}", y)
            return y * 0.9

        return pb.while_loop(lambda y: y > 0.001, step, x)

    slope = pb.value_and_grad(halved)(np.float64(1.0))[1]
    lines = printed()
    assert len(lines) == len(set(lines)) == 66  # the tape had no room for as many at first
    x = pb.tensor(1.0, requires_grad=True, dtype=pb.float64)
    value = halved(x)
    assert len(printed()) == 66
    value.backward()
    assert printed() == []
    np.testing.assert_allclose(x.grad.item(), slope, rtol=1e-6)


def test_vmap_prints_for_each_example(printed: Prints) -> None:
    def mapped(xs: Any) -> Any:
        def one(x: Any) -> Any:
            pb.debug.print("{}", x)
            return x * 2

        return pb.vmap(one)(xs)

    assert same_prints(printed, mapped, X) == ["1.0", "2.0", "3.0"]


def test_paths_print_what_the_path_of_the_call_prints(printed: Prints) -> None:
    def branched(x: Any) -> Any:
        pb.debug.print("start {}", x)
        if x > 0:
            pb.debug.print("positive")
            return x * 2
        pb.debug.print("negative")
        return -x

    compiled = pb.compile(branched)
    for value in (1.0, -1.0, 2.0, -2.0, -3.0, 3.0):
        branched(np.float64(value))
        wanted = printed()
        compiled(np.float64(value))
        assert printed() == wanted


def test_printing_leaves_random_numbers_as_they_are(printed: Prints) -> None:
    def noisy(rng: Any, x: Any) -> Any:
        pb.debug.print("{}", x)
        y = x + rng.normal(size=3)
        pb.debug.print("{}", y)
        return y

    wanted = noisy(np.random.default_rng(0), X)
    lines = printed()
    np.testing.assert_array_equal(pb.compile(noisy)(np.random.default_rng(0), X), wanted)
    assert printed() == lines


@pytest.mark.drawn(4)
def test_large_arrays_are_computed_by_threads_all_the_same(printed: Prints) -> None:
    @pb.compile(parallel=True)
    def large(x: Any) -> Any:
        y = np.sin(x)
        pb.debug.print("{:.6f}", y.sum())
        return y * 2

    x = np.linspace(0, 1, 200_000)
    np.testing.assert_allclose(large(x), 2 * np.sin(x))
    assert printed() == [f"{np.sin(x).sum():.6f}"]


def test_a_text_that_does_not_fit_is_refused_while_tracing(printed: Prints) -> None:
    @pb.compile
    def misspelt(x: Any) -> Any:
        pb.debug.print("{y}", x=x)
        return x

    with pytest.raises(ArgumentError, match=r"names 'y'.*\n.*debugging.py:\d+  pb.debug.print") as raised:
        misspelt(X)
    assert "(x)" in str(raised.value)
    with pytest.raises(ArgumentError, match="no attribute 'size_of'"):
        pb.compile(lambda x: pb.debug.print("{x.size_of}", x=x))(X)
    with pytest.raises(ArgumentError, match="unsupported format string"):
        pb.compile(lambda x: pb.debug.print("{:.2f}", x))(X)
    with pytest.raises(ArgumentError, match="debug.print"):
        pb.debug.print("{} {}", 1)
    assert printed() == []


seen: list[Any] = []


def note(*values: Any, **named: Any) -> None:
    seen.append((values, named))


def test_callbacks_get_values_of_their_own() -> None:
    seen.clear()

    @pb.compile
    def noted(x: Any) -> Any:
        pb.debug.callback(note, x * 2, [x.sum(), "text"], flag=True)
        return x.sum()

    for _ in range(2):
        noted(X)
    assert len(seen) == 2 and noted.cache_info().compilations <= 1
    (array, (total, text)), named = seen[1]
    np.testing.assert_array_equal(array, 2 * X)
    assert (total, text, named) == (6.0, "text", {"flag": True})


def test_callbacks_may_keep_what_they_get_in_containers_of_the_program() -> None:
    seen.clear()

    @pb.compile
    def noted(x: Any) -> Any:
        pb.debug.callback(lambda y: seen.append(y), x * 2)
        return x.sum()

    for scale in (1.0, 2.0, 3.0):
        noted(scale * X)
    np.testing.assert_array_equal(seen, [2 * X, 4 * X, 6 * X])

    @pb.compile
    def lost(x: Any) -> Any:
        pb.debug.callback(seen.append, x)
        return x.sum()

    with pytest.raises(ArgumentError, match=r"a method of a list.*Write a function"):
        lost(X)


def test_what_a_callback_raises_ends_the_call() -> None:
    def refuse(x: Any) -> None:
        if x > 1:
            raise ValueError("too large")

    @pb.compile
    def guarded(x: Any) -> Any:
        pb.debug.callback(refuse, x)
        return x * 2

    assert guarded(np.float64(1.0)) == 2.0
    with pytest.raises(ValueError, match="too large"):
        guarded(np.float64(2.0))


def test_anomaly_mode_prints_once(printed: Prints) -> None:
    @pb.compile
    def broken(x: Any) -> Any:
        pb.debug.print("{}", x)
        return np.log(x - 1.0).sum()

    with pb.autograd.detect_anomaly(), pytest.raises(pb.errors.AnomalyError):
        broken(X)
    assert printed() == ["[1. 2. 3.]"]


class Session:
    """A debugger that is given commands, and what it answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *commands: str) -> None:
        self.answers = io.StringIO()
        monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
        monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
        begin = pdb.Pdb.__init__
        given = io.StringIO("\n".join([*commands, ""]))

        def begin_with(debugger: pdb.Pdb) -> None:
            begin(debugger, stdin=given, stdout=self.answers, nosigint=True, readrc=False)
            debugger.use_rawinput = False

        monkeypatch.setattr(pdb.Pdb, "__init__", begin_with)

    @property
    def text(self) -> str:
        return self.answers.getvalue()


def test_a_breakpoint_stops_in_the_generated_source(monkeypatch: pytest.MonkeyPatch, printed: Prints) -> None:
    @pb.compile
    def stopped(x: Any) -> Any:
        residual = x * 2
        pb.debug.breakpoint()
        return (residual * residual).sum()

    session = Session(monkeypatch, "p residual", "where", "c")
    assert stopped(X) == 56.0
    sys.settrace(None)
    assert "array([2., 4., 6.])" in session.text and "stopped_" in session.text
    (line,) = printed()
    assert "test_debugging.py" in line and "x, residual" in line


def test_a_breakpoint_in_plain_python_is_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(x: Any) -> Any:
        residual = x * 2
        pb.debug.breakpoint()
        return residual

    session = Session(monkeypatch, "p residual", "c")
    stopped(X)
    sys.settrace(None)
    assert "array([2., 4., 6.])" in session.text


def test_breakpoints_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)

    @pb.compile
    def stopped(x: Any) -> Any:
        pb.debug.breakpoint()
        return x.sum()

    assert stopped(X) == 6.0
