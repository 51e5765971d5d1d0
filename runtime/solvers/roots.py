"""Roots of functions and fixed points, differentiable by all that the functions depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ...tracer.trace import is_tracing
from ..functions.common import fail
from ..functions.elements.comparison import where
from ..functions.loops.control_flow import while_loop
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .adjoints import DENSE, adjoint_by
from .equations import Equation, solution_of
from .levenberg_marquardt import least_squares_of
from .newton import full_steps
from .requirements import Failure, require
from .unknowns import Unknowns

Function = Callable[..., Any]


def root(
    fun: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    tol: float = 1e-12,
    maxiter: int = 200,
    adjoint: Any = DENSE,
) -> Any:
    """The x with `fun(x, *args) = 0`, by Newton's method while it goes well, else Levenberg and Marquardt's.

    It is differentiable, to any order, by `args` and by all that `fun` closes over, by the implicit function
    theorem; `x0` has no gradient.

    Args:
        fun: from the unknowns to as many values, nested in any way.
        x0: where to begin: a number, an array or a tensor, or nested containers of them.
        tol: of the last step, relative to x.
        maxiter: the most evaluations.
        adjoint: how the adjoint equation of derivatives is solved: "dense", by elimination; "cg",
            "bicgstab" or "gmres" without the matrix; or `solve(product, vector)`.

    Returns:
        The solution, in the structure of `x0`.

    Raises:
        ConvergenceError: no root is found. LinearAlgebraError: the Jacobian at the root is singular, and a
            derivative is asked for. OutputError: there are not as many equations as unknowns.

    Example:
        >>> grad(lambda a: root(lambda x: x ** 2 - a, 1.0))(4.0)
        np.float64(0.25)
    """
    unknowns = Unknowns(x0, "root", "x0")
    equation = Equation(
        root,
        unknowns.residual(fun, args, unknowns.size),
        lambda function: function,
        lambda function, start: _root_of(function, start, tol, maxiter),
        adjoint_by(adjoint, "root"),
    )
    return unknowns.restored(solution_of(equation, unknowns.start))


NO_ROOT = Failure(
    "root: after {0} evaluations the norm of the function is {1:.1e} at the best point found, where it was "
    "{2:.1e} at x0: there is no root near, or the function is not smooth there. Begin elsewhere, or allow "
    "more evaluations (maxiter)."
)


def _root_of(function: Function, start: Tensor, tol: float, maxiter: int) -> Tensor:
    reached = full_steps(function, start, tol, maxiter)
    found = least_squares_of(function, start, tol, maxiter, reached)
    first = function(start)
    scale = found.scale * (found.x * found.x).sum().sqrt() + (first * first).sum().sqrt()
    small = float(np.sqrt(np.finfo(start._value.dtype).eps))
    norm = (found.residual * found.residual).sum().sqrt()
    return require(
        found.x, (norm <= small * scale) & found.converged, NO_ROOT, found.steps, norm,
        (first * first).sum().sqrt(),
    )  # fmt: skip


def fixed_point(
    func: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-10,
    maxiter: int = 500,
    method: str = "del2",
    *,
    adjoint: Any = DENSE,
) -> Any:
    """The x with `func(x, *args) = x`, by iteration: SciPy's `fixed_point`, with derivatives as of `root`.

    Args:
        func, x0: as of `root`; the result has the structure of `x0`.
        xtol: of the last step, relative to x, element by element.
        method: "del2", with Steffensen's acceleration, or "iteration".

    Raises:
        ConvergenceError: it does not converge within `maxiter` steps. ArgumentError: another method.

    Example:
        >>> fixed_point(lambda x: np.cos(x), 1.0)
        np.float64(0.7390851332151607)
    """
    if method not in ("del2", "iteration"):
        fail(ArgumentError, f"fixed_point: method={method!r} is not known. Give 'del2' or 'iteration'.")
    unknowns = Unknowns(x0, "fixed_point", "x0")
    equation = Equation(
        fixed_point,
        unknowns.residual(func, args, unknowns.size),
        lambda function: lambda x: function(x) - x,
        lambda function, start: _fixed_point_of(function, start, xtol, maxiter, method == "del2"),
        adjoint_by(adjoint, "fixed_point"),
    )
    return unknowns.restored(solution_of(equation, unknowns.start))


NO_FIXED_POINT = Failure(
    "fixed_point: after {0} steps the last one still changed x by {1:.1e} of itself. Begin elsewhere, allow "
    "more steps (maxiter), or solve func(x) - x = 0 with root."
)


def _fixed_point_of(
    function: Function, start: Tensor, xtol: float, maxiter: int, accelerated: bool
) -> Tensor:
    def goes_on(state: Any) -> Any:
        _, error, steps = state
        return ~(error <= xtol) & (steps < maxiter)

    def step(state: Any) -> Any:
        x, _, steps = state
        after = _accelerated(function, x) if accelerated else function(x)
        moved = where(x != 0, (after - x) / where(x != 0, x, 1.0), after)
        return after, moved.abs().max(), steps + 1

    x, error, steps = while_loop(goes_on, step, (start, start.abs().max() * 0 + np.inf, 0))
    return require(x, error <= xtol, NO_FIXED_POINT, steps, error)


def _accelerated(function: Function, x: Tensor) -> Tensor:
    """Where Aitken's process takes two steps."""
    first = function(x)
    second = function(first)
    bend = second - 2.0 * first + x
    is_bent = bend != 0
    return where(is_bent, x - (first - x) ** 2 / where(is_bent, bend, 1.0), second)


# --- of one variable --------------------------------------------------------------------------------------


def brentq(
    f: Function,
    a: Any,
    b: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> Any:
    """The root of a function of one number between a and b, where its sign changes: by Brent's method.

    Derivatives are those of `root`; the bracket has none. The steps are those of SciPy's `brentq`.

    Raises:
        ArgumentError: the function has the same sign at both ends. ConvergenceError: more than `maxiter`
            steps.

    Example:
        >>> grad(lambda a: brentq(lambda x: x ** 2 - a, 0.0, 10.0))(4.0)
        np.float64(0.25)
    """
    return _between(brentq, by_brent, f, a, b, args, xtol, rtol, maxiter)


def bisect(
    f: Function,
    a: Any,
    b: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> Any:
    """The same by halving: see `brentq`. The steps are those of SciPy's `bisect`.

    Example:
        >>> bisect(lambda x: x ** 2 - 4.0, 0.0, 10.0).round(6)
        np.float64(2.0)
    """
    return _between(bisect, _halved, f, a, b, args, xtol, rtol, maxiter)


def _between(
    owner: Any, solve: Function, f: Function, a: Any, b: Any, args: tuple[Any, ...], xtol: float, rtol: float,
    maxiter: int,
) -> Any:  # fmt: skip
    name = owner.__name__
    unknowns = Unknowns(a, name, "a")
    other = Unknowns(b, name, "b")
    if not is_tracing() and unknowns.size == 1 and unknowns.dtype == np.float64:
        solve = _of_one_number
    equation = Equation(
        owner,
        unknowns.residual(f, args, 1),
        lambda function: function,
        lambda function, start: solve(name, function, start, other.start, xtol, rtol, maxiter),
        adjoint_by(DENSE, name, reach_in(other.start - unknowns.start, xtol, rtol)),
    )
    return unknowns.restored(solution_of(equation, unknowns.start))


def _of_one_number(
    name: str, function: Function, a: Tensor, b: Tensor, xtol: float, rtol: float, maxiter: int
) -> Tensor:
    """What SciPy's function of this name finds, by the same steps, each of which costs the call alone."""
    from scipy import optimize  # not at start

    solve = getattr(optimize, name)
    ends = function(a), function(b)
    _signs_differ(name, a, *ends)
    known = [float(one.payload[0]) for one in ends]

    def of_number(x: float) -> float:
        return known.pop(0) if known else float(function(make(np.array([x]), Auxiliary)).payload[0])

    bracket = (float(one.payload[0]) for one in (a, b))
    found, told = solve(of_number, *bracket, (), xtol, rtol, maxiter, full_output=True, disp=False)
    x = make(np.array([found]), Auxiliary)
    return _found(name, x, make(np.array(told.converged), Auxiliary), make(np.array(maxiter), Auxiliary))


def reach_in(width: Tensor, xtol: float, rtol: float) -> Callable[[Tensor], Tensor]:
    """How far a root in a bracket may be from a point that is found, as Newton's step tells.

    That is its distance, or several times that where the slope is infinite at the root; and where values are
    rounded, some more.
    """
    rounding = float(np.sqrt(np.finfo(width._value.dtype).eps))
    return lambda x: (10.0 * (xtol + rtol * x.abs()) + rounding * width.abs()).norm()


SAME_SIGN = (
    "{0}: f has the same sign at both ends of the bracket: {{0:.3e}} and {{1:.3e}}. Give a and b with a root "
    "between."
)
MORE_STEPS = "{0}: no root within {{0}} steps. Allow more (maxiter), or give a shorter bracket."


def _signs_differ(name: str, value: Tensor, at_a: Tensor, at_b: Tensor) -> Tensor:
    holds = (at_a.sign() * at_b.sign() <= 0).all()
    failure = Failure(SAME_SIGN.format(name), ArgumentError)
    return require(value, holds, failure, at_a.sum(), at_b.sum())


def _found(name: str, value: Tensor, is_found: Tensor, steps: Tensor) -> Tensor:
    return require(value, is_found.all(), Failure(MORE_STEPS.format(name)), steps)


def _halved(
    name: str, function: Function, a: Tensor, b: Tensor, xtol: float, rtol: float, maxiter: int
) -> Tensor:
    at_a, at_b = function(a), function(b)
    a = _signs_differ(name, a, at_a, at_b)

    def goes_on(state: Any) -> Any:
        *_, is_found, steps = state
        return ~is_found.all() & (steps < maxiter)

    def step(state: Any) -> Any:
        low, width, _, _, steps = state
        width = width * 0.5
        middle = low + width
        value = function(middle)
        low = where(value.sign() == at_a.sign(), middle, low)
        is_found = (value == 0) | (width.abs() < xtol + rtol * middle.abs())
        return low, width, middle, is_found, steps + 1

    at_end = (at_a == 0) | (at_b == 0)
    end = where(at_a == 0, a, b)
    _, _, x, is_found, steps = while_loop(goes_on, step, (a, b - a, end, at_end, 0))
    return _found(name, x, is_found, steps)


def by_brent(
    name: str, function: Function, a: Tensor, b: Tensor, xtol: float, rtol: float, maxiter: int
) -> Tensor:
    """R. P. Brent, Algorithms for Minimization Without Derivatives (1973), chapter 4, with SciPy's tests.

    `x` is the best point, `last` the one before, `other` one where the function has the other sign.
    """
    at_a, at_b = function(a), function(b)
    a = _signs_differ(name, a, at_a, at_b)

    def goes_on(state: Any) -> Any:
        *_, is_found, steps = state
        return ~is_found.all() & (steps <= maxiter)

    def step(state: Any) -> Any:
        last, x, other, at_last, at_x, at_other, step_before, step_last, _, steps = state
        changes = (at_last != 0) & (at_x != 0) & (at_last.sign() != at_x.sign())
        other, at_other = where(changes, last, other), where(changes, at_last, at_other)
        step_before = where(changes, x - last, step_before)
        step_last = where(changes, x - last, step_last)
        swaps = at_other.abs() < at_x.abs()
        last, x, other = where(swaps, x, last), where(swaps, other, x), where(swaps, x, other)
        at_last, at_x, at_other = (
            where(swaps, at_x, at_last), where(swaps, at_other, at_x), where(swaps, at_x, at_other),
        )  # fmt: skip
        least = (xtol + rtol * x.abs()) / 2.0
        half = (other - x) / 2.0
        is_found = (at_x == 0) | (half.abs() < least)
        tried = _interpolated(last, x, other, at_last, at_x, at_other)
        is_short = 2.0 * tried.abs() < step_before.abs().minimum(3.0 * half.abs() - least)
        takes = (step_before.abs() > least) & (at_x.abs() < at_last.abs()) & is_short
        step_before, step_last = where(takes, step_last, half), where(takes, tried, half)
        smallest = where(half > 0, least, -least)
        after = where(is_found, x, x + where(step_last.abs() > least, step_last, smallest))
        return x, after, other, at_x, function(after), at_other, step_before, step_last, is_found, steps + 1

    at_end = (at_a == 0) | (at_b == 0)
    end = where(at_a == 0, a, b)
    start = (a, end, a * 0, at_a, at_b, a * 0, a * 0, a * 0, at_end, 0)
    found = while_loop(goes_on, step, start)
    return _found(name, found[1], found[-2], found[-1])


def _interpolated(
    last: Tensor, x: Tensor, other: Tensor, at_last: Tensor, at_x: Tensor, at_other: Tensor
) -> Tensor:
    """The step to where a line through two points, or an inverse parabola through three, is zero."""
    secant = -at_x * (x - last) / (at_x - at_last)
    slope, slope_other = (at_last - at_x) / (last - x), (at_other - at_x) / (other - x)
    parabola = (
        -at_x * (at_other * slope_other - at_last * slope) / (slope_other * slope * (at_other - at_last))
    )
    return where((last - other).abs() > 0, parabola, secant)


def root_scalar(
    f: Function,
    args: tuple[Any, ...] = (),
    method: str | None = None,
    bracket: Any = None,
    x0: Any = None,
    *,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
) -> Any:
    """The root of a function of one number, in a bracket or near `x0`; derivatives are those of `root`.

    Args:
        method: "brentq", the default, or "bisect", with a bracket; "newton" with `x0`.

    Raises:
        ArgumentError: neither a bracket nor `x0` is given, or another method. ConvergenceError: no root is
            found.

    Example:
        >>> root_scalar(lambda x: x ** 2 - 4.0, bracket=(0.0, 10.0))
        np.float64(2.0)
    """
    options = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if bracket is not None and method in (None, "brentq", "bisect"):
        a, b = bracket
        return (bisect if method == "bisect" else brentq)(f, a, b, args, **given)
    if bracket is None and x0 is not None and method in (None, "newton"):
        given.pop("rtol", None)
        return root(f, x0, args, tol=given.pop("xtol", 1e-12), **given)
    given_start = "a bracket" if bracket is not None else "x0" if x0 is not None else "neither bracket nor x0"
    fail(
        ArgumentError,
        f"root_scalar: method={method!r} with {given_start}. Give "
        "a bracket, with method 'brentq' or 'bisect', or x0, with 'newton'.",
    )
