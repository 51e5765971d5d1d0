"""Initial values, differentiated by the adjoint equation, which is solved backwards beside the values.

R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud, Neural ordinary differential equations (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.spec import CONTINUOUS
from ..autograd.custom_rules import custom_vjp
from ..functions.loops.control_flow import scan
from ..functions.shapes.joining import cat
from ..functions.shapes.parts import flip
from ..transforms.transforms import vjp
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor
from .unknowns import Unknowns, vector_of_values

Rates = Callable[[Tensor, Tensor, Tensor], Tensor]
Solve = Callable[..., Tensor]
"""(rates of a time and a vector, the first value, the first and the last time, times) to rows of values."""


def solved_backwards(
    rates: Rates, solve: Solve, first: Tensor, last: Tensor, y: Tensor, times: Tensor, parameters: Tensor
) -> Tensor:
    """The values at some times, one a row; their derivatives are integrals along the way back."""

    def solved(first: Tensor, y: Tensor, times: Tensor, parameters: Tensor) -> Tensor:
        return solve(lambda t, y: rates(t, y, parameters), y, first, last, times)

    def forward(*given: Tensor) -> tuple[Tensor, Any]:
        found = solved(*given)
        return found, (found, *given)

    def backward(residuals: Any, cotangent: Tensor) -> tuple[Tensor, ...]:
        found, first, y, times, parameters = residuals
        size = y.shape[0]

        def augmented(t: Tensor, state: Tensor) -> Tensor:
            slope, pull = vjp(lambda y, p: rates(t, y, p), state[:size], parameters)
            by_y, by_parameters = pull(state[size : 2 * size])
            return cat([slope, -by_y, -by_parameters])

        def back(carry: Any, row: Any) -> tuple[Any, Tensor]:
            adjoint, share = carry
            value, g, now, before = row
            adjoint = adjoint + g
            state = cat([value, adjoint, share])
            reached = solve(augmented, state, now, before, before[None])[0]
            return (reached[size : 2 * size], reached[2 * size :]), g @ rates(now, value, parameters)

        before = cat([first[None], times[:-1]])
        rows = tuple(flip(one, 0) for one in (found, cotangent, times, before))
        (adjoint, share), by_times = scan(back, (y * 0.0, parameters * 0.0), rows)
        return -(adjoint @ rates(first, y, parameters)), adjoint, flip(by_times, 0), share

    values = custom_vjp(solved)
    values.defvjp(forward, backward)
    values._name = "solve_ivp"
    return values(first, y, times, parameters)


def split_parameters(args: tuple[Any, ...]) -> tuple[Tensor, Callable[[Tensor], Sequence[Any]]]:
    """Arguments that are floats as one vector, and the arguments for another one."""
    leaves, structure = flatten(args)
    places = [place for place, one in enumerate(leaves) if _is_continuous(one)]
    unknowns = Unknowns([leaves[place] for place in places], "solve_ivp", "args")

    def restored(vector: Tensor) -> Sequence[Any]:
        found = list(leaves)
        for place, one in zip(places, unknowns.restored(vector)):
            found[place] = one
        given: Sequence[Any] = unflatten(structure, found)
        return given

    return vector_of_values([leaves[place] for place in places], unknowns.dtype), restored


def _is_continuous(leaf: Any) -> bool:
    if isinstance(leaf, Tensor):
        return leaf._value.dtype.kind in CONTINUOUS
    return isinstance(leaf, float) or (
        isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in CONTINUOUS
    )
