"""What happens along the solution of a differential equation: where functions of time and value are zero.

The time of an event is the root of its function along the last step, and differentiated as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ..functions.common import fail
from ..functions.elements.comparison import where
from ..functions.loops.choices import cond
from ..functions.loops.control_flow import scan, while_loop
from ..functions.shapes.joining import stack
from ..functions.stopping import stop_gradient
from ..values.tensor import Tensor
from .adjoints import DENSE, adjoint_by
from .equations import Equation, solution_of
from .integration import Integration, State
from .requirements import Failure, require
from .roots import by_brent
from .unknowns import Unknowns, number

Function = Callable[..., Any]
ROUNDING = 4.0 * float(np.finfo(float).eps)
"""How exactly the time of an event is found: SciPy's bound."""


def event() -> None:
    """What the equation of an event is called in messages."""


event.__name__ = "solve_ivp"


class Event:
    """A function of time and value that is zero when something happens.

    Attributes:
        count: how often it happens before the solution ends; None if it goes on.
        direction: the sign of its slope that counts; 0 for any.
    """

    def __init__(self, function: Function, height: Callable[[Any, Tensor], Tensor]) -> None:
        self.height = height
        terminal = getattr(function, "terminal", None)
        self.count = int(terminal) if terminal else None
        self.direction = float(getattr(function, "direction", 0))
        if self.count is not None and self.count < 0:
            fail(ArgumentError, f"solve_ivp: an event's terminal is {terminal}; expected a bool or a number.")

    def is_crossed(self, before: Any, after: Any) -> Any:
        """Whether it has happened between two heights."""
        rises, falls = (before <= 0) & (after >= 0), (before >= 0) & (after <= 0)
        return rises if self.direction > 0 else falls if self.direction < 0 else rises | falls

    def time(self, integration: Integration, state: State) -> Tensor:
        """When it has happened in the last step."""

        def along(t: Tensor) -> Tensor:
            return self.height(t[0], integration.at(state, t[0]))[None]

        def solve(function: Function, start: Tensor) -> Tensor:
            end = stop_gradient(integration.moved(state.t))[None]
            return by_brent("solve_ivp", function, start, end, ROUNDING, ROUNDING, 100)

        equation = Equation(event, along, lambda same: same, solve, adjoint_by(DENSE, "solve_ivp"))
        return solution_of(equation, integration.moved(state.before)[None])[0]


def events_of(given: Any, unknowns: Unknowns, args: tuple[Any, ...]) -> list[Event]:
    """The events that a user gives: a function, or several."""
    functions = [] if given is None else [given] if callable(given) else list(given)
    return [Event(function, _height_of(function, unknowns, args)) for function in functions]


def _height_of(function: Function, unknowns: Unknowns, args: tuple[Any, ...]) -> Function:
    def height(t: Tensor, y: Tensor) -> Tensor:
        return unknowns.scalar(lambda values: function(number(t), values, *args), ())(y)

    return height


class Walk:
    """All steps of an integration, until its end or an event that ends it; not in a trace.

    Attributes:
        steps: the states after them.
        times, values: of each event, when it has happened, and the values then.
        ended_by: the time and the value of the event that has ended it.
    """

    def __init__(self, integration: Integration, state: State, events: Sequence[Event]) -> None:
        self.integration = integration
        self.first, self.state = state, state
        self.steps: list[State] = []
        self.times: list[list[Tensor]] = [[] for _ in events]
        self.values: list[list[Tensor]] = [[] for _ in events]
        self.ended_by: tuple[Tensor, Tensor] | None = None
        heights = self._heights(events)
        while self.ended_by is None and bool(integration.direction * (self.state.t - integration.last) < 0):
            before, self.state = self.state, integration.attempt(self.state)
            if not bool(self.state.is_alive):
                break
            if bool(self.state.t != before.t):
                self.steps.append(self.state)
                heights, last = self._heights(events), heights
                self._note(list(zip(events, last, heights)))

    def _heights(self, events: Sequence[Event]) -> list[Tensor]:
        t = self.integration.moved(self.state.t)
        return [one.height(t, self.state.y) for one in events]

    def _note(self, events: Sequence[tuple[Event, Tensor, Tensor]]) -> None:
        """The events of the last step, in the order in which they happen, up to one that ends it."""
        happened = [
            (one.time(self.integration, self.state), place)
            for place, (one, before, after) in enumerate(events)
            if bool(one.is_crossed(before, after))
        ]
        way = self.integration.direction
        for t, place in sorted(happened, key=lambda one: float(way * stop_gradient(one[0]))):
            value = self.integration.at(self.state, t)
            self.times[place].append(t)
            self.values[place].append(value)
            if len(self.times[place]) == events[place][0].count:
                self.ended_by = t, value
                return

    @property
    def last(self) -> tuple[Tensor, Tensor]:
        """The time and the value at the end."""
        return self.ended_by or (self.integration.moved(self.state.t), self.state.y)

    def rows_at(self, times: Tensor) -> Tensor:
        """The values at times of the walk, one a row."""
        way = float(self.integration.direction)
        ends = np.array([float(one.t) * way for one in self.steps[:-1]])
        places = np.searchsorted(ends, stop_gradient(times).payload * way)
        steps = self.steps or [self.first]
        return stack([self.integration.at(steps[place], t) for place, t in zip(places, times)])


def happened(
    integration: Integration, state: State, event: Event
) -> tuple[State, Tensor, Tensor, Tensor]:
    """The state when an event has ended an integration; when it has happened, the values then, and whether it
    has, each as often as it must: where it has not, time and value at the end. In a trace as well."""

    def goes_on(carry: Any) -> Any:
        state, _, is_crossed = carry
        return (integration.direction * (state.t - integration.last) < 0) & state.is_alive & ~is_crossed

    def step(carry: Any) -> Any:
        state, height, _ = carry
        state = integration.attempt(state)
        after = event.height(integration.moved(state.t), state.y)
        was_rejected: Any = state.was_rejected
        return state, after, event.is_crossed(height, after) & ~was_rejected

    def next_one(carry: Any, _: Any) -> Any:
        state, height = carry
        state, height, is_crossed = while_loop(goes_on, step, (state, height, state.t != state.t))
        end = integration.moved(state.t)
        t = cond(is_crossed, lambda: event.time(integration, state), lambda: end)
        value = where(is_crossed, integration.at(state, t), state.y)
        return (state, height), (t, integration.required(value, state), is_crossed)

    height = event.height(integration.moved(state.t), state.y)
    (state, _), found = scan(next_one, (state, height), length=event.count)
    return state, *found


NOT_HAPPENED = Failure(
    "solve_ivp: the event that ends the solution has not happened as often as it must before the end of "
    "t_span, so there is no time of it. Let t_span reach further, or ask for status first, uncompiled."
)


def require_happened(values: Tensor, is_found: Tensor) -> Tensor:
    """Values of an event, unless it has not happened as often as it must."""
    return values * require(values.sum() * 0.0 + 1.0, is_found.all(), NOT_HAPPENED)
