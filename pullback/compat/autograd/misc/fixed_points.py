"""Fixed points of functions, differentiable by what these depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.compat.autograd.numpy as np
from pullback.compat.autograd.core import make_vjp
from pullback.compat.autograd.rules import defvjp, primitive

Function = Callable[..., Any]


@primitive
def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Any:
    """The x with `f(a)(x) = x`, by iteration from x0 until `distance(x, previous)` is at most `tol`.

    Example:
        >>> newton = lambda a: lambda x: 0.5 * (x + a / x)
        >>> fixed_point(newton, 2.0, 1.0, lambda x, y: abs(x - y), 1e-9)
        1.414213562373095
    """
    step = f(a)
    x, previous = step(x0), x0
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return x


def _pulled(ans: Any, f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Function:
    """The adjoint's own fixed point, `w = g + w df/dx`, pulled back along a."""

    def adjoint_step(given: Any) -> Function:
        a, x, g = given
        pull, _ = make_vjp(f(a), x)
        return lambda w: pull(w) + g

    def pull(g: Any) -> Any:
        w = fixed_point(adjoint_step, (a, ans, g), np.zeros_like(x0), distance, tol)
        return make_vjp(lambda a: f(a)(ans), a)[0](w)

    return pull


defvjp(fixed_point, None, _pulled, None)
