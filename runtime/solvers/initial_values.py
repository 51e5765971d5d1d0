"""Ordinary differential equations: values that follow from initial ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...tracer.errors import ArgumentError, EagerOnlyError, UnsupportedError
from ...tracer.trace import is_tracing
from ..functions.checkpointing import checkpoint as checkpointed
from ..functions.choices import cond
from ..functions.common import fail
from ..functions.comparison import where
from ..functions.control_flow import while_loop
from ..functions.joining import stack
from ..functions.movement import movedim
from ..functions.stopping import stop_gradient
from ..tape.apply import of_kind, standing_for
from ..tensors.creation import arange
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary, NumpyScalar, plain
from .continuous_adjoint import solved_backwards, split_parameters
from .integration_methods import METHODS
from .requirements import Failure, require
from .runge_kutta import RungeKutta, factor_of, first_step, smallest_step
from .unknowns import Unknowns, vector_of_values

Function = Callable[..., Any]
Rates = Callable[[Any, Tensor], Tensor]


@dataclass(frozen=True)
class Trajectory:
    """What `solve_ivp` returns.

    Attributes:
        t: the times.
        y: the values at these times, the last dimension of each array that `y0` has.
        steps: the number of steps, those that had to be repeated included.
        nfev: the number of evaluations, where each step takes as many. Neither is known under a continuous
            adjoint.
    """

    t: Any
    y: Any
    steps: Any
    nfev: Any


class _State(NamedTuple):
    """Where an integration is. Times and lengths of steps have no gradient, values and slopes have.

    Attributes:
        t, y, slope: now.
        length: of the next step; was_rejected: whether it repeats one.
        before, y_before, last, slopes: the last step that was taken: where from, how long, what led to it.
        is_alive: whether steps mean anything yet.
        steps: how many were tried.
    """

    t: Tensor
    y: Tensor
    slope: Tensor
    length: Tensor
    was_rejected: Tensor
    before: Tensor
    y_before: Tensor
    last: Tensor
    slopes: tuple[Tensor, ...]
    is_alive: Tensor
    steps: Tensor


class _Integration:
    """One problem: an equation, a method, and what steps may err."""

    def __init__(
        self, fun: Rates, first: Tensor, last: Tensor, method: RungeKutta, rtol: float, atol: Any,
        max_step: float, recompute: bool,
    ) -> None:  # fmt: skip
        self.method = method
        self._tolerances = rtol, atol
        self._max_step = max_step
        self._ends = first, last
        self.first, self.last = stop_gradient(first), stop_gradient(last)
        self.direction = where(self.last >= self.first, 1.0, -1.0) + 0.0 * self.last
        self._fun = fun
        self._attempted = checkpointed(self._step) if recompute else self._step

    def _moved(self, t: Tensor) -> Tensor:
        """A time between the ends, with its derivative by both, as if steps kept their share of the way."""
        first, last = self._ends
        if not (first.requires_grad or last.requires_grad or is_tracing()):
            return t
        whole = self.last - self.first
        share = (t - self.first) / where(whole != 0, whole, 1.0)
        return t + (1.0 - share) * (first - self.first) + share * (last - self.last)

    def start(self, y: Tensor, h0: float | None) -> _State:
        t = self.first
        slope = self._fun(self._moved(t), y)
        plain_y, plain_slope = stop_gradient(y), stop_gradient(slope)
        rtol, atol = self._tolerances
        interval = (self.last - self.first).abs()
        length = (
            first_step(
                self._fun, t, plain_y, plain_slope, self.direction, interval, self.method.order, rtol, atol,
                self._max_step,
            )
            if h0 is None
            else interval * 0.0 + h0
        )  # fmt: skip
        never = interval < 0
        slopes = (slope, *[slope * 0.0] * self.method.stages)
        one = interval * 0.0 + 1.0
        return _State(t, y, slope, length, never, t, y, one, slopes, ~never, where(never, 1, 0))

    def until(self, state: _State, target: Tensor) -> _State:
        """The state after the first step that reaches a time."""

        def goes_on(state: _State) -> Any:
            return (self.direction * (state.t - target) < 0) & state.is_alive

        return while_loop(goes_on, self._attempt, state)

    def _attempt(self, state: _State) -> _State:
        t, least = state.t, smallest_step(state.t)
        length = where(
            state.was_rejected, state.length, state.length.clamp(max=self._max_step).maximum(least)
        )
        is_alive = length >= least
        after = t + length * self.direction
        after = where(self.direction * (after - self.last) > 0, self.last, after)
        h = where(is_alive, after - t, self.direction)
        y, slopes = self._attempted(t, h, after, state.y, state.slope)
        error = self._error(t, state.y, y, slopes, h)
        is_taken = (error < 1) & is_alive
        factor = factor_of(error, self.method.order, state.was_rejected)
        return _State(
            where(is_taken, after, t),
            where(is_taken, y, state.y),
            where(is_taken, slopes[-1], state.slope),
            h.abs() * factor,
            ~is_taken,
            where(is_taken, t, state.before),
            where(is_taken, state.y, state.y_before),
            where(is_taken, h, state.last),
            tuple(where(is_taken, one, old) for one, old in zip(slopes, state.slopes)),
            is_alive,
            state.steps + 1,
        )

    def _step(self, t: Tensor, h: Tensor, after: Tensor, y: Tensor, slope: Tensor) -> Any:
        here, there = self._moved(t), self._moved(after)
        length = h + ((there - after) - (here - t))
        return self.method.step(self._fun, here, y, slope, length)

    def _error(
        self, t: Tensor, before: Tensor, after: Tensor, slopes: tuple[Tensor, ...], h: Tensor
    ) -> Tensor:
        rtol, atol = self._tolerances
        one, other = stop_gradient(before), stop_gradient(after)
        scale = atol + one.abs().maximum(other.abs()) * rtol
        plain_slopes = [stop_gradient(one) for one in slopes]
        return stop_gradient(self.method.error(self._fun, t, one, plain_slopes, h, scale))

    def at(self, state: _State, t: Tensor) -> Tensor:
        """The value at a time of the last step."""
        before, now = self._moved(state.before), self._moved(state.t)
        is_apart = (state.t - state.before).abs() > 0
        length = where(is_apart, now - before, state.last)
        share = (t - before) / length
        return self.method.between(self._fun, before, state.y_before, state.slopes, length, share, state.y)

    def required(self, value: Tensor, state: _State) -> Tensor:
        """The value, unless steps have become too small."""
        failure = Failure(
            "solve_ivp: after {0} steps, at t = {1:.6g}, the step is shorter than the distance between "
            "numbers there: the solution grows without bound, is not smooth, or is too stiff for "
            f"{self.method.name}. End before that, allow larger errors (rtol, atol), or take a stiff method."
        )
        one = require(state.t * 0.0 + 1.0, state.is_alive, failure, state.steps, state.t)
        return value * one


def solve_ivp(
    fun: Function,
    t_span: tuple[Any, Any],
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    args: tuple[Any, ...] = (),
    *,
    rtol: float = 1e-3,
    atol: Any = 1e-6,
    max_step: float = np.inf,
    first_step: float | None = None,
    adjoint: str = "discrete",
    checkpoint: bool = False,
) -> Trajectory:
    """The values that follow from `y0` by dy/dt = fun(t, y, *args): SciPy's `solve_ivp`, with derivatives.

    Steps are SciPy's, up to rounding. In compiled functions they are a loop of machine code, however many
    there are.

    Args:
        fun: from a time and values to the rates at which these change, of the same structure.
        t_span: the first and the last time; both have gradients.
        y0: the first values: a number, an array or a tensor, or nested containers of them.
        method: "RK45", "RK23" or "DOP853"; "Radau" for stiff problems.
        t_eval: the times whose values are wanted, in order; they have gradients. Without them each step's,
            which are as many as values say; a compiled function that asks for them runs uncompiled.
        dense_output, events: not supported.
        rtol, atol: what a step may err, relative to a value and in all.
        adjoint: "discrete": derivatives are those of the steps, with lengths taken as constants.
            "continuous": the adjoint equation is solved, with the same method and tolerances; the memory it
            takes does not grow with the number of steps, and what `fun` closes over must have no gradient:
            give that in `args`.
        checkpoint: let backward compute each step again, and keep but one value of each.

    Returns:
        A `Trajectory`: `t`, `y` with times last in each array, `steps` and `nfev`.

    Raises:
        ConvergenceError: steps become too small. ArgumentError: there is no such method. UnsupportedError:
            events or dense output.

    Example:
        >>> solve_ivp(lambda t, y: -y, (0.0, 1.0), np.ones(1), t_eval=np.array([1.0]), rtol=1e-8).y.round(6)
        array([[0.367879]])
    """
    _refuse(dense_output, events)
    if method not in METHODS:
        fail(
            ArgumentError, f"solve_ivp: method={method!r} is not known. Give {', '.join(map(repr, METHODS))}."
        )
    if adjoint not in ("discrete", "continuous"):
        fail(ArgumentError, f"solve_ivp: adjoint={adjoint!r} is not known. Give 'discrete' or 'continuous'.")
    unknowns = Unknowns(y0, "solve_ivp", "y0")
    first, last = (_time(one, unknowns.dtype) for one in t_span)
    start = vector_of_values(y0, unknowns.dtype)
    rtol, atol = (stop_gradient(_time(one, unknowns.dtype)) for one in (rtol, atol))

    def begun(rates: Rates, y: Tensor, first: Tensor, last: Tensor) -> tuple[_Integration, _State]:
        integration = _Integration(
            rates, first, last, METHODS[method](method), rtol, atol, float(max_step), checkpoint
        )
        return integration, integration.start(y, first_step)

    if adjoint == "continuous":
        return _by_adjoint_equation(fun, begun, first, last, start, t_eval, args, unknowns)
    integration, state = begun(_rates(fun, unknowns, args), start, first, last)
    if t_eval is None:
        return _every_step(integration, state, unknowns)
    state, values = _values_at(integration, state, _time(t_eval, unknowns.dtype))
    return _trajectory(integration, unknowns, state, t_eval, values)


def _values_at(integration: _Integration, state: _State, times: Tensor) -> tuple[_State, Tensor]:
    """The values at some times, one a row.

    Steps and times take turns in one loop. A loop of steps for each time would be run again by the backward
    pass, where other rounding may choose other steps, which do not fit those that the values come from.
    """
    count = times.shape[0]
    ends, places = stop_gradient(times), arange(count)[:, None]

    def goes_on(progress: _Progress) -> Any:
        return (progress.reached < count) & progress.state.is_alive

    def turn(progress: _Progress) -> Any:
        way = integration.direction * (progress.state.t - ends[progress.reached])
        return cond(way >= 0, noted, moved, progress)

    def moved(progress: _Progress) -> _Progress:
        return progress._replace(state=integration._attempt(progress.state))

    def noted(progress: _Progress) -> _Progress:
        state, rows, reached = progress
        value = integration.at(state, times[reached])
        return _Progress(state, where(places == reached, value, rows), reached + 1)

    none = state.y * 0.0 + 0.0 * times[:, None]
    state, rows, _ = while_loop(goes_on, turn, _Progress(state, none, 0)) if count else (state, none, 0)
    return state, integration.required(rows, state)


class _Progress(NamedTuple):
    """How far an integration is: its state, the rows of values, and how many times have been reached."""

    state: _State
    rows: Tensor
    reached: Any


def _by_adjoint_equation(
    fun: Function, begun: Callable[..., Any], first: Tensor, last: Tensor, start: Tensor, t_eval: Any,
    args: tuple[Any, ...], unknowns: Unknowns,
) -> Trajectory:  # fmt: skip
    if t_eval is None:
        fail(ArgumentError, "solve_ivp: adjoint='continuous' needs the times in t_eval.")
    parameters, restored = split_parameters(args)

    def rates(t: Tensor, y: Tensor, parameters: Tensor) -> Tensor:
        return _rates(fun, unknowns, tuple(restored(parameters)))(t, y)

    def solve(rates: Rates, y: Tensor, first: Tensor, last: Tensor, times: Tensor) -> Tensor:
        integration, state = begun(rates, y, first, last)
        return _values_at(integration, state, times)[1]

    times = _time(t_eval, unknowns.dtype)
    values = solved_backwards(rates, solve, first, stop_gradient(last), start, times, parameters)
    return Trajectory(t_eval, unknowns.restored_rows(values), None, None)


def _refuse(dense_output: bool, events: Any) -> None:
    if events is not None:
        fail(
            UnsupportedError,
            "solve_ivp: events are not supported. Solve for the time of one with brentq, whose function "
            "takes the value at the end of t_span: its derivative is that of the event.",
        )
    if dense_output:
        fail(UnsupportedError, "solve_ivp: dense_output is not supported. Give the times in t_eval.")


def _time(value: Any, dtype: np.dtype) -> Tensor:
    given = standing_for(np.asarray(value) if isinstance(value, list | tuple) else value)
    return of_kind(given, Auxiliary).to(dtype)


def _rates(fun: Function, unknowns: Unknowns, args: tuple[Any, ...]) -> Rates:
    """The user's function as one of a number and a vector."""

    def rates(t: Tensor, y: Tensor) -> Tensor:
        time = plain(of_kind(t, NumpyScalar))
        return unknowns.residual(lambda values: fun(time, values, *args), (), unknowns.size)(y)

    return rates


def _every_step(integration: _Integration, state: _State, unknowns: Unknowns) -> Trajectory:
    """The values after each step."""
    if is_tracing():
        raise EagerOnlyError(
            "solve_ivp: without t_eval the number of times depends on values, which compiled code does not "
            "have. Give t_eval."
        )
    times, values = [state.t], [state.y]
    while bool(integration.direction * (state.t - integration.last) < 0):
        before, state = state, integration._attempt(state)
        if bool(state.t != before.t):
            times.append(state.t)
            values.append(state.y)
        elif not bool(state.is_alive):
            break
    found = integration.required(stack(values), state)
    t = plain(of_kind(stack(times), unknowns.kind))
    return _trajectory(integration, unknowns, state, t, found)


def _trajectory(
    integration: _Integration, unknowns: Unknowns, state: _State, times: Any, values: Tensor
) -> Trajectory:
    steps = plain(of_kind(stop_gradient(state.steps), NumpyScalar))
    times = np.asarray(times) if isinstance(times, list | tuple) else times
    method = integration.method
    nfev = 2 + method.stages * steps if method.counts_evaluations else None
    return Trajectory(times, unknowns.restored_rows(values), steps, nfev)


def odeint(func: Function, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8, atol: Any = 1.4e-8) -> Any:
    """The values at the times `t`, of which the first is that of `y0`, of dy/dt = func(y, t, *args): JAX's
    `odeint`.

    Args:
        func: from values and a time to rates, of the same structure.
        t: the times, in order; values and times have gradients.

    Returns:
        The values, with times first in each array that `y0` has.

    Example:
        >>> odeint(lambda y, t: -y, np.ones(1), np.array([0.0, 1.0]))[-1].round(6)
        array([0.367879])
    """
    found = solve_ivp(
        lambda t, y, *args: func(y, t, *args), (t[0], t[-1]), y0, "DOP853", t, args=args, rtol=rtol, atol=atol
    )
    leaves, structure = flatten(found.y)
    return unflatten(structure, [movedim(one, -1, 0) for one in leaves])
