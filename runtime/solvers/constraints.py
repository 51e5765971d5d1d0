"""Minima with bounds and constraints as solutions of equations: the conditions of Karush, Kuhn and Tucker.

J. Nocedal, S. J. Wright, Numerical Optimization (2006), chapter 12. Which constraints are active is found at
the solution; there the derivatives are those of the minimum with these as equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ...tracer.records import record
from ..functions.common import fail
from ..functions.elements.comparison import where
from ..functions.shapes.joining import cat
from ..functions.stopping import stop_gradient
from ..tape.apply import of_kind, standing_for
from ..tensors.conversion import joined
from ..tensors.creation import zeros
from ..transforms.transforms import vjp
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary
from .equations import OfVector
from .unknowns import Unknowns

Function = Callable[..., Any]
ACTIVE = 1e-6
"""What a constraint may be apart from zero where it counts as active, relative to its slope."""


def limits(bounds: Any, unknowns: Unknowns) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds of all unknowns; infinite where there is none.

    Args:
        bounds: SciPy's `Bounds`, a pair for each unknown, or None.
    """
    size = unknowns.size
    if bounds is None:
        lower, upper = -np.inf, np.inf
    elif hasattr(bounds, "lb"):
        lower, upper = bounds.lb, bounds.ub
    else:
        pairs = list(bounds)
        if len(pairs) != size:
            fail(ArgumentError, f"{unknowns.function}: {len(pairs)} bounds for {size} unknowns.")
        lower = joined([-np.inf if low is None else low for low, _ in pairs])
        upper = joined([np.inf if high is None else high for _, high in pairs])
    return _of_size(lower, unknowns), _of_size(upper, unknowns)


def _of_size(value: Any, unknowns: Unknowns) -> Tensor:
    given = value if isinstance(value, Tensor) else standing_for(np.asarray(value, unknowns.dtype))
    return of_kind(given, Auxiliary).to(unknowns.dtype) + unknowns.start * 0.0


@record(frozen=True)
class Constraint:
    """A function of the unknowns whose values are zero, or not negative.

    Attributes:
        count: of values.
    """

    function: OfVector
    is_equality: bool
    count: int


def constraints_of(given: Any, unknowns: Unknowns) -> list[Constraint]:
    """SciPy's constraints, equations first.

    Args:
        given: dicts, `LinearConstraint` and `NonlinearConstraint`, one or several.
    """
    several = given if isinstance(given, list | tuple) else [given]
    found = [one for each in several for one in _constraints(each, unknowns)]
    return sorted((one for one in found if one.count), key=lambda one: not one.is_equality)


def _constraints(given: Any, unknowns: Unknowns) -> list[Constraint]:
    if isinstance(given, dict):
        args, kind = given.get("args", ()), str(given.get("type")).lower()
        if kind not in ("eq", "ineq") or "fun" not in given:
            fail(
                ArgumentError,
                f"{unknowns.function}: a constraint is a dict of a type, 'eq' or 'ineq', and a function fun; "
                f"found the type {given.get('type')!r} and {', '.join(map(str, given))}.",
            )
        function = unknowns.residual(given["fun"], args if isinstance(args, tuple) else (args,))
        return [Constraint(function, kind == "eq", _count(function, unknowns))]
    fun = given.fun if hasattr(given, "fun") else lambda x: given.A @ x
    values = unknowns.residual(fun, ())
    count = _count(values, unknowns)
    low, high = (np.broadcast_to(np.asarray(one, float), (count,)) for one in (given.lb, given.ub))
    same = low == high
    return [
        _part(values, same, low, 1.0, True),
        _part(values, ~same & np.isfinite(low), low, 1.0, False),
        _part(values, ~same & np.isfinite(high), high, -1.0, False),
    ]


def _part(
    values: OfVector, chosen: np.ndarray, limit: np.ndarray, sign: float, is_equality: bool
) -> Constraint:
    (places,) = np.nonzero(chosen)
    return Constraint(lambda x: sign * (values(x)[places] - limit[places]), is_equality, len(places))


def _count(function: OfVector, unknowns: Unknowns) -> int:
    return int(stop_gradient(function(unknowns.start)).shape[0])


class Conditions:
    """What holds at a minimum with bounds and constraints, for the unknowns and the constraints' multipliers.

    Args:
        objective: what is smallest: one value, or values whose squares are summed.
        of_squares: which of both.
    """

    def __init__(
        self, unknowns: Unknowns, objective: OfVector, of_squares: bool, bounds: tuple[Tensor, Tensor],
        constraints: Sequence[Constraint] = (),
    ) -> None:  # fmt: skip
        self.size = unknowns.size
        self._objective = objective
        self._of_squares = of_squares
        self._bounds = bounds
        self._constraints = constraints
        self.equalities = sum(one.count for one in constraints if one.is_equality)
        self.count = sum(one.count for one in constraints)

    def start(self, x: Tensor) -> Tensor:
        return cat([x, zeros(self.count, dtype=x.dtype)])

    def function(self, both: Tensor) -> Tensor:
        """Constraints, bounds and what is smallest, one behind the other."""
        x = both[: self.size]
        return cat([*(one.function(x) for one in self._constraints), *self._bounds, self._objective(x)])

    def parts(self, values: Any) -> tuple[Any, Any, Any, Any]:
        """Constraints, lower and upper bounds, and what is smallest, of values of the function."""
        ends = np.cumsum([self.count, self.size, self.size])
        low, middle, high = map(int, ends)
        return values[:low], values[low:middle], values[middle:high], values[high:]

    def residual(self, function: OfVector) -> OfVector:
        """What is zero at the minimum."""

        def residual(both: Tensor) -> Tensor:
            x, multipliers = both[: self.size], both[self.size :]
            values, pull = vjp(function, both)
            held, lower, upper, objective = self.parts(values)
            weights = objective if self._of_squares else objective * 0.0 + 1.0
            (slope,) = pull(cat([-multipliers, lower * 0.0, upper * 0.0, weights]))
            slope = slope[: self.size]
            moved = x - slope
            stationary = where(moved < lower, x - lower, where(moved > upper, x - upper, slope))
            equal, others = held[: self.equalities], held[self.equalities :]
            return cat([stationary, equal, others.minimum(multipliers[self.equalities :])])

        return residual

    def multipliers(self, x: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Those of the constraints at a minimum, not negative where the constraint is an inequality."""
        from scipy.optimize import nnls  # not at start

        held, lower, upper, objective = self.parts(values)
        of_constraints, _, _, of_objective = self.parts(slopes)
        slope = (objective if self._of_squares else np.ones(1)) @ of_objective
        near = ACTIVE * (1.0 + np.abs(x))
        is_free = (x > lower + near) & (x < upper - near)
        is_active = np.abs(held) <= ACTIVE * (1.0 + np.abs(of_constraints).sum(1))
        is_equality = np.arange(self.count) < self.equalities
        columns = (of_constraints * (is_active | is_equality)[:, None])[:, is_free].T
        if not columns.size:
            return np.zeros(self.count)
        both_signs = np.concatenate([columns, -columns[:, : self.equalities]], 1)
        found = nnls(both_signs, slope[is_free])[0]
        found[: self.equalities] -= found[self.count :]
        return found[: self.count]
