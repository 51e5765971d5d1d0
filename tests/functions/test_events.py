"""Events, dense output and the end of a solution: SciPy's values, and derivatives in every way of running."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate

import pullback as pb
from pullback.errors import ArgumentError, ConvergenceError, LinearAlgebraError

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]
RUNS = pytest.mark.parametrize("run", [lambda f: f, pb.compile], ids=["eager", "compiled"])
FIRST = np.array([1.0, 3.0])
EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11}


def falls(t: Any, y: Any, g: Any) -> Any:
    return np.stack([y[1], -g * np.ones_like(y[1])])


def swings(t: Any, y: Any, w: Any) -> Any:
    return np.stack([y[1], -(w**2) * y[0]])


def hits_ground(t: Any, y: Any, *args: Any) -> Any:
    return y[0]


def turns(t: Any, y: Any, *args: Any) -> Any:
    return y[1]


hits_ground.terminal = True  # type: ignore[attr-defined]
hits_ground.direction = -1  # type: ignore[attr-defined]


def crosses_thrice(t: Any, y: Any, *args: Any) -> Any:
    return y[0] - 0.5


crosses_thrice.terminal = 3  # type: ignore[attr-defined]


def fall(g: Any, module: Any = pb, **options: Any) -> Any:
    given = {"events": [hits_ground, turns], **EXACT, **options}
    return module.solve_ivp(falls, (0.0, 10.0), FIRST, args=(g,), **given)


def time_of_fall(g: Any) -> Any:
    return fall(g).t_events[0][0]


def exact_time_of_fall(g: float) -> float:
    return (3.0 + np.sqrt(9.0 + 2.0 * g)) / g


def slope(function: Any, a: float, step: float = 1e-3) -> float:
    near, far = ((function(a + k * step) - function(a - k * step)) / (2 * k * step) for k in (1, 2))
    return float((4 * near - far) / 3)


@pytest.mark.parametrize("t_eval", [None, np.linspace(0.0, 2.0, 7)])
def test_they_are_those_of_scipy(t_eval: Any) -> None:
    found, expected = (fall(9.8, one, t_eval=t_eval) for one in (pb, integrate))
    np.testing.assert_allclose(found.t, expected.t)
    np.testing.assert_allclose(found.y, expected.y, atol=1e-12)
    assert found.status == expected.status == 1
    for name in ("t_events", "y_events"):
        for one, other in zip(getattr(found, name), getattr(expected, name), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.drawn(6)
def test_all_directions_and_counts_are_those_of_scipy() -> None:
    def solve(module: Any, direction: float) -> Any:
        def event(t: Any, y: Any) -> Any:
            return y[0]

        event.direction = direction  # type: ignore[attr-defined]
        rates = lambda t, y: swings(t, y, 2.0)  # noqa: E731
        return module.solve_ivp(rates, (0.0, 9.0), FIRST, events=[event, crosses_thrice, turns], **EXACT)

    for direction in (-1, 0, 1):
        found, expected = (solve(one, direction) for one in (pb, integrate))
        for one, other in zip(found.t_events, expected.t_events, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


@RUNS
class TestTimeOfTheEnd:
    @pytest.mark.drawn(6)
    def test_has_derivatives(self, run: Any) -> None:
        np.testing.assert_allclose(run(time_of_fall)(9.8), exact_time_of_fall(9.8), rtol=1e-9)
        expected = slope(exact_time_of_fall, 9.8)
        np.testing.assert_allclose(run(pb.grad(time_of_fall))(9.8), expected, rtol=1e-7)

    @pytest.mark.drawn(6)
    def test_of_a_count(self, run: Any) -> None:
        def third(w: Any) -> Any:
            found = pb.solve_ivp(swings, (0.0, 9.0), FIRST, args=(w,), events=crosses_thrice, **EXACT)
            return found.t_events[0]

        np.testing.assert_allclose(run(third)(2.0), third(2.0), rtol=1e-9)
        last = lambda w: third(w)[-1]  # noqa: E731
        np.testing.assert_allclose(run(pb.grad(last))(2.0), slope(last, 2.0), rtol=1e-6)

    def test_values_then_and_at_the_end(self, run: Any) -> None:
        def speeds(g: Any) -> Any:
            found = fall(g)
            return np.stack([found.y_events[0][0, 1], found.y[1, -1]])

        np.testing.assert_allclose(run(speeds)(9.8), -np.sqrt(9.0 + 2 * 9.8), rtol=1e-8)
        slopes = run(pb.jacobian(speeds))(9.8)
        np.testing.assert_allclose(slopes, -1 / np.sqrt(9.0 + 2 * 9.8), rtol=1e-7)

    @pytest.mark.drawn(4)
    def test_of_a_batch(self, run: Any) -> None:
        batch = np.array([9.8, 3.0])
        expected = [slope(exact_time_of_fall, g) for g in batch]
        np.testing.assert_allclose(run(pb.vmap(pb.grad(time_of_fall)))(batch), expected, rtol=1e-7)


def test_second_derivatives() -> None:
    found = pb.grad(pb.grad(time_of_fall))(9.8)
    np.testing.assert_allclose(found, slope(lambda g: slope(exact_time_of_fall, g), 9.8), rtol=1e-5)


@pytest.mark.drawn(6)
def test_an_event_that_does_not_happen() -> None:
    value = lambda w: pb.solve_ivp(swings, (0.0, 0.1), FIRST, args=(w,), events=hits_ground).t_events[0]  # noqa: E731
    assert value(1.0).shape == (0,)
    with pytest.raises(ConvergenceError, match="the event that ends the solution has not happened"):
        pb.compile(value)(1.0)


def test_an_event_that_jumps_has_no_derivative() -> None:
    def jump(a: Any) -> Any:
        event = lambda t, y: np.where(y[0] < 1.0, -1.0, 1.0) + 0.0 * y[0]  # noqa: E731
        found = pb.solve_ivp(lambda t, y: a * np.ones_like(y), (0.0, 2.0), np.zeros(1), events=event)
        return found.t_events[0][0]

    with pytest.raises(LinearAlgebraError, match="solve_ivp: the Jacobian"):
        pb.grad(jump)(1.0)


@pytest.mark.drawn(4)
def test_how_often_something_happens_is_not_compiled() -> None:
    function = pb.compile(lambda g: fall(g).t_events[1])
    with pytest.warns(UserWarning, match="how often an event happens depends on values"):
        np.testing.assert_allclose(function(9.8), [3.0 / 9.8])


@RUNS
class TestDenseOutput:
    @pytest.mark.drawn(6)
    def test_is_that_of_scipy(self, run: Any) -> None:
        times = np.array([1.9, 0.3, 0.0, 1.2])

        def solve(module: Any) -> Any:
            return lambda w: module.solve_ivp(
                swings, (0.0, 2.0), FIRST, args=(w,), dense_output=True, rtol=1e-6
            ).sol(times)

        np.testing.assert_allclose(run(solve(pb))(2.0), solve(integrate)(2.0), rtol=1e-9)

    @pytest.mark.drawn(6)
    def test_has_derivatives(self, run: Any) -> None:
        def value(w: Any) -> Any:
            found = pb.solve_ivp(swings, (0.0, 2.0), FIRST, args=(w,), dense_output=True, **EXACT)
            return found.sol(w / 2)[0]

        exact = lambda w: np.cos(w * w / 2) + 3 / w * np.sin(w * w / 2)  # noqa: E731
        np.testing.assert_allclose(run(pb.grad(value))(2.0), slope(exact, 2.0), rtol=1e-6)

    def test_past_the_end_is_refused(self, run: Any) -> None:
        def past(a: Any) -> Any:
            return pb.solve_ivp(lambda t, y: -y * a, (0.0, 1.0), FIRST, dense_output=True).sol(2.0)

        with pytest.raises(ArgumentError, match="times must lie between|past the end"):
            run(past)(1.0)


@pytest.mark.drawn(6)
@RUNS
def test_the_last_value_is_known_without_times(run: Any) -> None:
    def last(a: Any) -> Any:
        found = pb.solve_ivp(lambda t, y: -a * y, (0.0, a), FIRST, **EXACT)
        return found.y[:, -1].sum() + found.t[-1]

    np.testing.assert_allclose(run(last)(1.3), 4.0 * np.exp(-(1.3**2)) + 1.3, rtol=1e-8)
    np.testing.assert_allclose(run(pb.grad(last))(1.3), 1.0 - 10.4 * np.exp(-(1.3**2)), rtol=1e-7)


def test_all_steps_run_uncompiled() -> None:
    function = pb.compile(lambda a: pb.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), FIRST).y)
    with pytest.warns(UserWarning, match="without t_eval"):
        assert function(1.0).shape[0] == 2


@RUNS
def test_times_that_are_not_between_the_ends_are_refused(run: Any) -> None:
    def values(a: Any, times: Any) -> Any:
        return pb.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), FIRST, t_eval=times).y

    for times in ([0.5, 1.5], [0.5, 0.2]):
        with pytest.raises(ArgumentError, match="times must lie between the first"):
            run(lambda a, times=times: values(a, times))(1.0)


@pytest.mark.drawn(6)
@RUNS
def test_what_turns_out_to_be_stiff_is_solved_in_few_steps(run: Any) -> None:
    def solve(mu: Any) -> tuple[Any, Any]:
        rates = lambda t, y: np.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])  # noqa: E731
        options: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8}
        found = pb.solve_ivp(rates, (0.0, 20.0), np.array([2.0, 0.0]), "LSODA", [20.0], **options)
        return found.y[:, 0], found.steps

    expected = integrate.solve_ivp(
        lambda t, y: [y[1], 200.0 * (1 - y[0] ** 2) * y[1] - y[0]], (0.0, 20.0), [2.0, 0.0], "Radau",
        rtol=1e-9, atol=1e-11,
    ).y[:, -1]  # fmt: skip
    found, steps = run(solve)(200.0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert steps < 1000
