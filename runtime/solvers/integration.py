"""Steps along the solution of a differential equation, and values at times of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...tracer.errors import ArgumentError
from ...tracer.trace import is_tracing
from ..functions.elements.comparison import where
from ..functions.loops.checkpointing import checkpoint as checkpointed
from ..functions.loops.choices import cond
from ..functions.loops.control_flow import while_loop
from ..functions.stopping import stop_gradient
from ..tensors.creation import arange
from ..values.tensor import Tensor
from .requirements import Failure, require
from .runge_kutta import RungeKutta, first_step, smallest_step

Rates = Callable[[Any, Tensor], Tensor]


OUT_OF_ORDER = Failure(
    "solve_ivp: times must lie between the first ({0:.6g}) and the last ({1:.6g}), in this order. Sort them, "
    "or let t_span reach further.",
    ArgumentError,
)


class State(NamedTuple):
    """Where an integration is. Times and lengths of steps have no gradient, values and slopes have.

    Attributes:
        t, y, slope: now.
        length: of the next step; was_rejected: whether it repeats one.
        before, y_before, last, slopes: the last step that was taken: where from, how long, what led to it.
        memory: what the method knows of the steps before; memory_before: what it knew before the last one.
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
    memory: tuple[Tensor, ...]
    memory_before: tuple[Tensor, ...]
    is_alive: Tensor
    steps: Tensor


class Progress(NamedTuple):
    """How far an integration is: its state, a row for each time, and how many times have been reached."""

    state: State
    rows: Tensor
    reached: Any


class Integration:
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
        self._recompute = recompute

    def moved(self, t: Tensor) -> Tensor:
        """A time between the ends, with its derivative by both, as if steps kept their share of the way."""
        first, last = self._ends
        if not (first.requires_grad or last.requires_grad or is_tracing()):
            return t
        whole = self.last - self.first
        share = (t - self.first) / where(whole != 0, whole, 1.0)
        return t + (1.0 - share) * (first - self.first) + share * (last - self.last)

    def start(self, y: Tensor, h0: float | None) -> State:
        t = self.first
        slope = self._fun(self.moved(t), y)
        plain_y, plain_slope = stop_gradient(y), stop_gradient(slope)
        rtol, atol = self._tolerances
        interval = (self.last - self.first).abs()
        length = (
            first_step(
                self._fun, t, plain_y, plain_slope, self.direction, interval,
                self.method.order, rtol, atol, self._max_step,
            )
            if h0 is None
            else interval * 0.0 + h0
        )  # fmt: skip
        never = interval < 0
        slopes = (slope, *[slope * 0.0] * self.method.stages)
        one = interval * 0.0 + 1.0
        h = self._moved_length(t, t + self.direction * length, self.direction * length)
        memory = self.method.first_memory(y, slope, h)
        return State(
            t, y, slope, length, never, t, y, one, slopes, memory, memory, ~never, where(never, 1, 0)
        )

    def until(self, state: State, target: Tensor) -> State:
        """The state after the first step that reaches a time."""

        def goes_on(state: State) -> Any:
            return (self.direction * (state.t - target) < 0) & state.is_alive

        return while_loop(goes_on, self.attempt, state)

    def attempt(self, state: State) -> State:
        t, least = state.t, smallest_step(state.t)
        length = where(
            state.was_rejected, state.length, state.length.clamp(max=self._max_step).maximum(least)
        )
        is_alive = length >= least
        after = t + length * self.direction
        after = where(self.direction * (after - self.last) > 0, self.last, after)
        h = where(is_alive, after - t, self.direction)
        step = checkpointed(self._step) if self._recompute else self._step
        y, slopes = step(t, h, after, state.y, state.slope, state.memory)
        before, now, *plain_slopes = (stop_gradient(one) for one in (state.y, y, *slopes))
        rtol, atol = self._tolerances
        scale = atol + before.abs().maximum(now.abs()) * rtol
        error = stop_gradient(
            self.method.error(self._fun, t, before, plain_slopes, h, scale, state.memory)
        )
        is_taken = (error < 1) & is_alive
        memory, factor = self.method.after_step(
            state.memory, before, now, slopes, h, error, scale, state.was_rejected
        )
        return State(
            where(is_taken, after, t),
            where(is_taken, y, state.y),
            where(is_taken, slopes[-1], state.slope),
            h.abs() * factor,
            ~is_taken,
            where(is_taken, t, state.before),
            where(is_taken, state.y, state.y_before),
            where(is_taken, h, state.last),
            tuple(where(is_taken, one, old) for one, old in zip(slopes, state.slopes)),
            tuple(where(is_taken, one, old) for one, old in zip(memory, state.memory)),
            tuple(where(is_taken, one, old) for one, old in zip(state.memory, state.memory_before)),
            is_alive,
            state.steps + 1,
        )

    def _step(self, t: Tensor, h: Tensor, after: Tensor, y: Tensor, slope: Tensor, memory: Any) -> Any:
        length = self._moved_length(t, after, h)
        return self.method.step(self._fun, self.moved(t), y, slope, length, memory)

    def _moved_length(self, t: Tensor, after: Tensor, h: Tensor) -> Tensor:
        """The length of a step between two times, with its derivative by the ends."""
        return h + ((self.moved(after) - after) - (self.moved(t) - t))

    def at(self, state: State, t: Tensor) -> Tensor:
        """The value at a time of the last step."""
        before, now = self.moved(state.before), self.moved(state.t)
        is_apart = (state.t - state.before).abs() > 0
        length = where(is_apart, now - before, state.last)
        share = (t - before) / length
        return self.method.between(
            self._fun, before, state.y_before, state.slopes, length, share, state.y, state.memory_before
        )

    def values_at(self, state: State, times: Tensor) -> tuple[State, Tensor]:
        """The values at times in order, one a row.

        Steps and times take turns in one loop. A loop of steps for each time would be run again by the
        backward pass, where other rounding may choose other steps, which do not fit those of the values.

        Raises:
            ArgumentError: they are not, or not between the ends.
        """
        one, count = self.require_in_order(times), times.shape[0]
        ends, places = stop_gradient(times), arange(count)[:, None]

        def goes_on(progress: Progress) -> Any:
            return (progress.reached < count) & progress.state.is_alive

        def turn(progress: Progress) -> Any:
            way = self.direction * (progress.state.t - ends[progress.reached])
            return cond(way >= 0, noted, stepped, progress)

        def noted(progress: Progress) -> Progress:
            state, rows, reached = progress
            value = self.at(state, times[reached])
            return Progress(state, where(places == reached, value, rows), reached + 1)

        def stepped(progress: Progress) -> Progress:
            return progress._replace(state=self.attempt(progress.state))

        rows = state.y * 0.0 + 0.0 * times[:, None]
        if count:
            state, rows, _ = while_loop(goes_on, turn, Progress(state, rows, 0))
        return state, self.required(rows * one, state)

    def require_in_order(self, times: Tensor) -> Tensor:
        """1, if they are in order and between the ends."""
        way = self.direction * stop_gradient(times)
        first, last = self.direction * self.first, self.direction * self.last
        in_order = (way[1:] >= way[:-1]).all() & (way >= first).all() & (way <= last).all()
        return require(self.first * 0.0 + 1.0, in_order, OUT_OF_ORDER, self.first, self.last)

    def required(self, value: Tensor, state: State) -> Tensor:
        """The value, unless steps have become too small."""
        failure = Failure(
            "solve_ivp: after {0} steps, at t = {1:.6g}, the step is shorter than the distance between "
            "numbers there: the solution grows without bound, is not smooth, or is too stiff for "
            f"{self.method.name}. End before that, allow larger errors (rtol, atol), or take a stiff method."
        )
        one = require(state.t * 0.0 + 1.0, state.is_alive, failure, state.steps, state.t)
        return value * one
