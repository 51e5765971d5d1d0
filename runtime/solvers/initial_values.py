"""Ordinary differential equations: values that follow from initial ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, EagerOnlyError, UnsupportedError
from ...tracer.trace import is_tracing
from ..functions.common import fail
from ..functions.reductions.ordering import argsort
from ..functions.shapes.joining import stack
from ..functions.shapes.movement import movedim
from ..functions.stopping import stop_gradient
from ..tape.apply import of_kind, standing_for
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary, NumpyScalar, plain
from .continuous_adjoint import solved_backwards, split_parameters
from .events import Event, Walk, events_of, happened, require_happened
from .integration import Integration, Rates, State
from .integration_methods import METHODS
from .requirements import Failure, require
from .trajectories import DenseOutput, OfUnknownLength, Trajectory
from .unknowns import Unknowns, number

Function = Callable[..., Any]


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
    """The values that follow from `y0` by `dy/dt = fun(t, y, *args)`: SciPy's `solve_ivp`, with derivatives.

    Steps are SciPy's, up to rounding. In compiled functions they are a loop of machine code, however many
    there are.

    Args:
        fun: from a time and values to the rates at which these change, of the same structure.
        t_span: the first and the last time; both have gradients.
        y0: the first values: a number, an array or a tensor, or nested containers of them; complex ones are
            pairs of real ones to the estimates of errors.
        method: "RK45", "RK23" or "DOP853"; "Radau" or "BDF" for stiff problems; "LSODA" begins with "DOP853"
            and goes on with "Radau" where the problem turns out to be stiff: not by the steps of SciPy's.
        t_eval: the times whose values are wanted, in order; they have gradients. Without them each step's,
            which are as many as values say; a compiled function that asks for more of them than the last
            (`t[-1]`, `y[..., -1]`) runs uncompiled.
        dense_output: let `sol` be the solution as a function of time, differentiable as `y` is. In compiled
            functions a call of it integrates again, to all times that it is given.
        events: functions `event(t, y, *args)`, or one, that are zero when something happens: SciPy's, with
            their attributes `terminal` and `direction`. The times and values are differentiable, by the
            implicit function theorem. How often something happens is a value: compiled functions know the
            times of the one event that ends the solution, and run uncompiled if they ask for others.
        rtol, atol: what a step may err, relative to a value and in all.
        adjoint: "discrete": derivatives are those of the steps, with lengths taken as constants.
            "continuous": the adjoint equation is solved, with the same method and tolerances; the memory it
            takes does not grow with the number of steps, and what `fun` closes over must have no gradient:
            give that in `args`.
        checkpoint: let backward compute each step again, and keep but one value of each.

    Returns:
        A `Trajectory`: `t`, `y` with times last in each array, `steps` and `nfev`, `t_events`, `y_events`,
        `sol`, `status`.

    Raises:
        ConvergenceError: steps become too small, or in a compiled function the event that ends the solution
            does not happen. ArgumentError: there is no such method; times are not in order, or not in t_span.
            LinearAlgebraError: a function does not change at its event, and a derivative is asked for.

    Example:
        >>> solve_ivp(lambda t, y: -y, (0.0, 1.0), np.ones(1), t_eval=np.array([1.0]), rtol=1e-8).y.round(4)
        array([[0.3679]])
    """
    if method not in METHODS:
        fail(
            ArgumentError, f"solve_ivp: method={method!r} is not known. Give {', '.join(map(repr, METHODS))}."
        )
    if adjoint not in ("discrete", "continuous"):
        fail(ArgumentError, f"solve_ivp: adjoint={adjoint!r} is not known. Give 'discrete' or 'continuous'.")
    unknowns = Unknowns(y0, "solve_ivp", "y0", may_be_complex=True)
    if unknowns.has_complex and np.ndim(atol):
        fail(UnsupportedError, "solve_ivp: atol must be one number where values are complex.")
    first, last = (_time(one, unknowns.dtype) for one in t_span)
    start = unknowns.vector(y0)
    rtol, atol = (stop_gradient(_time(one, unknowns.dtype)) for one in (rtol, atol))

    def begun(rates: Rates, y: Tensor, first: Tensor, last: Tensor) -> tuple[Integration, State]:
        integration = Integration(
            rates, first, last, METHODS[method](method), rtol, atol, float(max_step), checkpoint
        )
        return integration, integration.start(y, first_step)

    if adjoint == "continuous":
        _require_times_alone(t_eval, dense_output, events)
        return _by_adjoint_equation(fun, begun, first, last, start, t_eval, args, unknowns)
    integration, state = begun(_rates(fun, unknowns, args), start, first, last)
    problem = _Problem(integration, state, unknowns, t_eval, dense_output, events_of(events, unknowns, args))
    if is_tracing():
        return problem.in_trace()
    if t_eval is None or dense_output or events is not None:
        return problem.walked()
    return problem.at_times()


NUMBER_OF_STEPS = (
    "solve_ivp: without t_eval, or if an event ends the solution, the number of times depends on values, "
    "which compiled code does not have. Give t_eval, and no such event. Without t_eval the last time and the "
    "last value are known, t[-1] and y[..., -1]."
)
NUMBER_OF_EVENTS = (
    "solve_ivp: how often an event happens depends on values, which compiled code does not have. Times of "
    "the one event that ends the solution are known."
)
PAST_THE_END = Failure(
    "solve_ivp: sol was given a time past the end of the solution, {0:.6g}. Let t_span reach further.",
    ArgumentError,
)


class _Problem:
    """What is asked of an integration that begins at a state."""

    def __init__(
        self, integration: Integration, state: State, unknowns: Unknowns, t_eval: Any, dense_output: bool,
        events: Sequence[Event],
    ) -> None:  # fmt: skip
        self.integration = integration
        self.state = state
        self.unknowns = unknowns
        self.t_eval = np.asarray(t_eval) if isinstance(t_eval, list | tuple) else t_eval
        self.events = events
        self.dense_output = dense_output

    def at_times(self) -> Trajectory:
        """The values at the times that are asked for, all of which are reached."""
        state, values = self.integration.values_at(self.state, self._time(self.t_eval))
        return self._trajectory(state, self.t_eval, self.unknowns.restored_rows(values))

    def walked(self) -> Trajectory:
        """What all steps tell; not in a trace."""
        walk = Walk(self.integration, self.state, self.events)
        times, rows = self._steps_of(walk) if self.t_eval is None else self._times_of(walk)
        t_events = [stack(one) if one else times[:0] for one in walk.times]
        y_events = [stack(one) if one else rows[:0] for one in walk.values]
        rows = self.integration.required(rows, walk.state)
        return replace(
            self._trajectory(walk.state, self._array(times), self.unknowns.restored_rows(rows)),
            t_events=[self._array(one) for one in t_events],
            y_events=[self.unknowns.restored_rows(one, counts_last=False) for one in y_events],
            sol=self._dense(walk.rows_at, walk.last[0]),
            status=int(walk.ended_by is not None),
        )

    def _times_of(self, walk: Walk) -> tuple[Tensor, Tensor]:
        """The times that are asked for, as far as the solution goes."""
        times, way = self._time(self.t_eval), self.integration.direction
        self.integration.require_in_order(times)
        count = int((way * stop_gradient(times) <= way * stop_gradient(walk.last[0])).sum())
        return times[:count], walk.rows_at(times[:count]) if count else walk.last[1][None][:0]

    def _steps_of(self, walk: Walk) -> tuple[Tensor, Tensor]:
        states = [self.state, *walk.steps]
        end, value = walk.last
        times = [self.integration.moved(one.t) for one in states]
        values = [one.y for one in states]
        if walk.steps:
            times[-1], values[-1] = end, value
        return stack(times), stack(values)

    def in_trace(self) -> Trajectory:
        """What does not depend on the number of steps, of times and of events."""
        ending = [one for one in self.events if one.count is not None]
        if len(ending) > 1:
            raise EagerOnlyError("solve_ivp: which of several events ends the solution depends on values.")
        if ending:
            return self._until(ending[0])
        if self.t_eval is not None:
            found, end = self.at_times(), self.integration.last
        else:
            state = self.integration.until(self.state, self.integration.last)
            end = self.integration.moved(state.t)
            found = self._ended_at(state, end, self.integration.required(state.y, state))
        unknown = [OfUnknownLength(NUMBER_OF_EVENTS) for _ in self.events]
        return replace(found, t_events=unknown, y_events=unknown, sol=self._dense(self._rows_in_trace, end))

    def _until(self, event: Event) -> Trajectory:
        """The solution up to what ends it, in a trace."""
        state, times, values, is_found = happened(self.integration, self.state, event)
        found = self._ended_at(state, times[-1], values[-1])
        unknown = OfUnknownLength(NUMBER_OF_EVENTS)
        t_event = self._array(require_happened(times, is_found))
        y_event = self.unknowns.restored_rows(require_happened(values, is_found), counts_last=False)
        return replace(
            found,
            t_events=[t_event if one is event else unknown for one in self.events],
            y_events=[y_event if one is event else unknown for one in self.events],
            sol=self._dense(self._rows_in_trace, times[-1]),
            status=of_kind(is_found.all().long(), NumpyScalar),
        )

    def _ended_at(self, state: State, end: Tensor, value: Tensor) -> Trajectory:
        """Times and values of which the last are known, unless it depends on what is in `t_eval`."""
        is_known = self.t_eval is None
        leaves, structure = flatten(self.unknowns.restored(value))
        y = [OfUnknownLength(NUMBER_OF_STEPS, leaf if is_known else None) for leaf in leaves]
        t = OfUnknownLength(NUMBER_OF_STEPS, number(end) if is_known else None)
        return self._trajectory(state, t, unflatten(structure, y))

    def _rows_in_trace(self, times: Tensor) -> Tensor:
        """The values at times in any order: another integration, to all of them."""
        order = argsort(self.integration.direction * stop_gradient(times))
        rows = self.integration.values_at(self.state, times[order])[1]
        return rows[argsort(order)]

    def _dense(self, rows_at: Callable[[Tensor], Tensor], end: Tensor) -> DenseOutput | None:
        way = self.integration.direction

        def within(times: Tensor) -> Tensor:
            is_before = (way * stop_gradient(times) <= way * stop_gradient(end)).all()
            return rows_at(times) * require(end * 0.0 + 1.0, is_before, PAST_THE_END, end)

        return DenseOutput(within, self.unknowns, self._time) if self.dense_output else None

    def _trajectory(self, state: State, t: Any, y: Any) -> Trajectory:
        steps = number(stop_gradient(state.steps))
        method = self.integration.method
        return Trajectory(t, y, steps, 2 + method.stages * steps if method.counts_evaluations else None)

    def _time(self, value: Any) -> Tensor:
        return _time(value, self.unknowns.dtype)

    def _array(self, times: Tensor) -> Any:
        return plain(of_kind(times, self.unknowns.kind))


def _by_adjoint_equation(
    fun: Function, begun: Callable[..., Any], first: Tensor, last: Tensor, start: Tensor, t_eval: Any,
    args: tuple[Any, ...], unknowns: Unknowns,
) -> Trajectory:  # fmt: skip
    parameters, restored = split_parameters(args)

    def rates(t: Tensor, y: Tensor, parameters: Tensor) -> Tensor:
        return _rates(fun, unknowns, tuple(restored(parameters)))(t, y)

    def solve(rates: Rates, y: Tensor, first: Tensor, last: Tensor, times: Tensor) -> Tensor:
        integration, state = begun(rates, y, first, last)
        return integration.values_at(state, times)[1]

    times = _time(t_eval, unknowns.dtype)
    values = solved_backwards(rates, solve, first, stop_gradient(last), start, times, parameters)
    return Trajectory(t_eval, unknowns.restored_rows(values), None, None)


def _require_times_alone(t_eval: Any, dense_output: bool, events: Any) -> None:
    if t_eval is None:
        fail(ArgumentError, "solve_ivp: adjoint='continuous' needs the times in t_eval.")
    if dense_output or events is not None:
        fail(
            UnsupportedError,
            "solve_ivp: adjoint='continuous' has neither events nor dense output. Take adjoint='discrete'.",
        )


def _time(value: Any, dtype: np.dtype) -> Tensor:
    given = standing_for(np.asarray(value) if isinstance(value, list | tuple) else value)
    return of_kind(given, Auxiliary).to(dtype)


def _rates(fun: Function, unknowns: Unknowns, args: tuple[Any, ...]) -> Rates:
    """The user's function as one of a number and a vector."""

    def rates(t: Tensor, y: Tensor) -> Tensor:
        return unknowns.residual(lambda values: fun(number(t), values, *args), (), unknowns.size)(y)

    return rates


def odeint(func: Function, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8, atol: Any = 1.4e-8) -> Any:
    """The values at the times `t`, of which the first is that of `y0`, of `dy/dt = func(y, t, *args)`: JAX's
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
