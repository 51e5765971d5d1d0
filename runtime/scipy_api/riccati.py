"""Riccati's equations of optimal control: SciPy solves them, the implicit function theorem differentiates.

Of the solution x, k is the feedback and a - b k what it makes of the system. A cotangent of x is that of the
equation under a linear one of Lyapunov's, which holds for derivatives of all orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import UnsupportedError
from ...tracer.ops.lazy import scipy_linalg
from ..autograd.custom_rules import custom_vjp
from ..functions.common import fail
from ..functions.matrices import linalg
from ..numpy_api.values import floats
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .scipy_linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

Cotangents = tuple[Tensor, ...]


def _solved_by_scipy(name: str) -> Callable[..., np.ndarray]:
    def solution(*given: Any) -> np.ndarray:
        found: np.ndarray = getattr(scipy_linalg(), name)(*map(np.asarray, given))
        return found

    solution.__name__ = name
    return solution


def _continuous(residuals: Any, g: Any) -> Cotangents:
    x, a, b, _, r = map(tensor_of, residuals)
    feedback = linalg.solve(r, b.mT @ x)
    weight = solve_continuous_lyapunov(a - b @ feedback, -_symmetric(g))
    return _shared(x @ weight, weight, feedback)


def _discrete(residuals: Any, g: Any) -> Cotangents:
    x, a, b, _, r = map(tensor_of, residuals)
    feedback = linalg.solve(r + b.mT @ x @ b, b.mT @ x @ a)
    controlled = a - b @ feedback
    weight = solve_discrete_lyapunov(controlled, _symmetric(g))
    return _shared(x @ controlled @ weight, weight, feedback)


def _symmetric(g: Any) -> Tensor:
    whole = tensor_of(g)
    return 0.5 * (whole + whole.mT)


def _shared(moved: Tensor, weight: Tensor, feedback: Tensor) -> Cotangents:
    """The cotangents of a, b, q and r."""
    return 2.0 * moved, -2.0 * moved @ feedback.mT, weight, feedback @ weight @ feedback.mT


def _equation(name: str, rule: Callable[[Any, Any], Cotangents]) -> Callable[..., Tensor]:
    solution = _solved_by_scipy(name)
    ruled = custom_vjp(solution)

    def forward(*given: Any) -> tuple[Any, Any]:
        found = solution(*given)
        return found, (found, *given)

    ruled.defvjp(forward, rule)

    def solve(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Tensor:
        given = floats(a, b, q, r)
        if e is not None or s is not None or any(one.is_complex() for one in given):
            fail(
                UnsupportedError,
                f"scipy.linalg.{name}: e, s and complex matrices are not supported on a Tensor.",
            )
        return tensor_of(ruled(*given))

    return solve


OF_CONTROL = {
    name: _equation(name, rule)
    for name, rule in (("solve_continuous_are", _continuous), ("solve_discrete_are", _discrete))
}
"""By name what functions of scipy.linalg do on Tensors."""
