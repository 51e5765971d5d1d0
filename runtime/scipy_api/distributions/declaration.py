"""What a probability distribution is: its functions in standard form, of values in its support alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....tracer.records import record
from ...functions.stopping import stop_gradient
from .elements import LOG_2, exp, expm1, log, log1p, where

Function = Callable[..., Any]
Bound = float | Function
"""An end of the support, or (*shapes) -> the end."""


VANISHES = (math.inf, math.inf)
"""Powers of a density that is 0 at both ends."""
POSITIVE = (0.0, math.inf)
UNIT = (0.0, 1.0)


def _positive(*shapes: Any) -> list[Any]:
    return [one > 0.0 for one in shapes]


def any_shapes(*shapes: Any) -> list[Any]:
    """What holds for all parameters but nan."""
    return [one == one for one in shapes]


@record(frozen=True)
class Declaration:
    """A distribution of loc 0 and scale 1; values and the parameters of shape are Tensors.

        Declaration(lambda z: -z, log_survival=lambda z: -z, support=(0.0, math.inf))

    What is None follows from the others, as the functions below say.
    """

    log_density: Function
    """(z, *shapes) -> log p(z); of a distribution of integers the logarithm of the probability."""
    cumulative: Function | None = None
    """(z, *shapes) -> the probability of values up to z."""
    log_cumulative: Function | None = None
    survival: Function | None = None
    """(z, *shapes) -> the probability of values above z."""
    log_survival: Function | None = None
    quantile: Function | None = None
    """(q, *shapes) -> the z up to which the probability is q."""
    upper_quantile: Function | None = None
    """(q, *shapes) -> the z above which the probability is q."""
    support: tuple[Bound, Bound] = (-math.inf, math.inf)
    turn: tuple[float, float] | None = None
    """Of an angle, between which values its mean is taken."""
    ends: tuple[Bound, Bound] | None = None
    """The quantiles of 0 and 1, where SciPy's are not those of the support."""
    valid: Function = _positive
    """(*shapes) -> conditions, all of which hold for parameters of shape that there are."""
    inside: Bound = 0.5
    """A place in the support, for which functions are computed where a value is outside."""
    least: Bound = -math.inf
    largest: Bound = math.inf
    """The z between which formulas do not overflow: outside there is nothing of the density, or beyond.

    Logarithms go on, as far as numbers do, and their slopes as well; those of the others are 0.
    """
    symmetric: bool = False
    """Whether the density of -z is that of z."""
    powers: tuple[Bound | None, Bound | None] = (None, None)
    """Of the distance from each end of the support, which the density there is like: with a positive one it
    is 0 at the end, with a negative one infinite, and its formula, whose slopes are not finite, is not asked
    for. With 0 or None the formula holds at the end as well."""
    of_integers: bool = False
    mean: Bound | None = None
    """A number, or (*shapes) -> the mean; so are the next two."""
    variance: Bound | None = None
    entropy: Bound | None = None

    @property
    def has_cumulative(self) -> bool:
        functions = (self.cumulative, self.log_cumulative, self.survival, self.log_survival)
        return any(one is not None for one in functions)


def cumulative(one: Declaration, z: Any, *shapes: Any) -> Any:
    if one.cumulative is not None:
        return one.cumulative(z, *shapes)
    if one.log_cumulative is not None:
        return exp(one.log_cumulative(z, *shapes))
    if one.log_survival is not None:
        return -expm1(one.log_survival(z, *shapes))
    return 1.0 - survival(one, z, *shapes)


def survival(one: Declaration, z: Any, *shapes: Any) -> Any:
    if one.survival is not None:
        return one.survival(z, *shapes)
    if one.log_survival is not None:
        return exp(one.log_survival(z, *shapes))
    if one.symmetric:
        return cumulative(one, -z, *shapes)
    if one.log_cumulative is not None:
        return -expm1(one.log_cumulative(z, *shapes))
    return 1.0 - cumulative(one, z, *shapes)


def log_cumulative(one: Declaration, z: Any, *shapes: Any) -> Any:
    if one.log_cumulative is not None:
        return one.log_cumulative(z, *shapes)
    if one.log_survival is not None:
        return _log_of_rest(cumulative(one, z, *shapes), one.log_survival(z, *shapes))
    return log(cumulative(one, z, *shapes))


def log_survival(one: Declaration, z: Any, *shapes: Any) -> Any:
    if one.log_survival is not None:
        return one.log_survival(z, *shapes)
    if one.symmetric:
        return log_cumulative(one, -z, *shapes)
    if one.log_cumulative is not None:
        return _log_of_rest(survival(one, z, *shapes), one.log_cumulative(z, *shapes))
    return log(survival(one, z, *shapes))


def _log_of_rest(share: Any, log_rest: Any) -> Any:
    """The logarithm of a share, by what is left where that is less."""
    is_lesser = log_rest > -LOG_2
    lesser = log(where(is_lesser, share, 0.5))
    return where(is_lesser, lesser, log1p(-exp(where(is_lesser, -1.0, log_rest))))


def quantile(one: Declaration, q: Any, *shapes: Any) -> Any:
    assert one.quantile is not None
    return one.quantile(q, *shapes)


NEWTON_STEPS = 2
"""With which the derivatives of a solution are exact up to the third."""


def with_derivatives(one: Declaration, z: Any, q: Any, upper: bool, *shapes: Any) -> Any:
    """The quantile z, whose derivatives are those of steps of Newton's, which leave its value as it is.

    So far out that no number is left of the density, there are none.
    """
    for _ in range(NEWTON_STEPS):
        share, sign = (survival, -1.0) if upper else (cumulative, 1.0)
        density = exp(one.log_density(z, *shapes))
        is_known = density > 0.0
        apart = where(is_known, share(one, z, *shapes) - q, 0.0)
        step = sign * apart / where(is_known, density, 1.0)
        z = z - (step - stop_gradient(step))
    return z


def upper_quantile(one: Declaration, q: Any, *shapes: Any) -> Any:
    if one.upper_quantile is not None:
        return one.upper_quantile(q, *shapes)
    return -quantile(one, q, *shapes) if one.symmetric else quantile(one, 1.0 - q, *shapes)
