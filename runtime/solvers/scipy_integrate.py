"""SciPy's names of integrals and initial values, in code that is traced or differentiated: ours, with its
options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions.shapes.movement import movedim
from ..numpy_api.values import as_python_number
from ..scipy_api.scipy_functions import SOLVERS
from ..tensors.conversion import joined
from . import initial_values, quadrature, samples
from .scipy_calls import array, in_tuple, refuse

Function = Callable[..., Any]


def quad(
    real: Function, func: Function, a: Any, b: Any, args: Any = (), full_output: Any = 0,
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8, limit: int = 50, points: Any = None, **options: Any,
) -> Any:  # fmt: skip
    refuse("scipy.integrate.quad", {"full_output": full_output or None, **options})
    a, b = map(as_python_number, (a, b))  # in double precision
    found = quadrature.quad(
        func, a, b, in_tuple(args), epsabs=epsabs, epsrel=epsrel, limit=limit, points=points
    )
    return tuple(map(as_python_number, found))


def _of_several(ours: Function) -> Function:
    """An integral over several variables, whose arguments are those of SciPy."""

    def integral(real: Function, func: Function, *given: Any, **options: Any) -> Any:
        if options.pop("full_output", False):
            refuse(f"scipy.integrate.{ours.__name__}", {"full_output": True})
        return tuple(map(as_python_number, ours(func, *given, **options)))

    return integral


def _of_samples(ours: Function) -> Function:
    def integral(real: Function, *given: Any, **options: Any) -> Any:
        return ours(*map(joined, given), **{name: joined(one) for name, one in options.items()})

    return integral


def fixed_quad(real: Function, func: Function, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    return quadrature.fixed_quad(func, a, b, in_tuple(args), n)


OF_JACOBIANS = frozenset(("jac", "jac_sparsity", "lband", "uband"))
TAKEN = OF_JACOBIANS | {"rtol", "atol", "max_step", "first_step"}
"""Options of solve_ivp's methods."""
OF_LSODA = frozenset((
    "Dfun", "col_deriv", "ml", "mu", "mxstep", "mxhnil", "mxordn", "mxords", "hmin", "hmax", "h0",
    "ixpr", "printmessg",
))  # fmt: skip
"""Options of odeint that are about steps and Jacobians; `hmax` and `h0` hold for steps of ours as well."""
REACHED = "The solver successfully reached the end of the integration interval."


def solve_ivp(
    real: Function, fun: Function, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """An exact Jacobian takes the place of one that the user gives."""
    from scipy.optimize import OptimizeResult  # not at start

    name = method if isinstance(method, str) else method.__name__
    given = () if args is None else tuple(args) if isinstance(args, list) else in_tuple(args)
    refuse("scipy.integrate.solve_ivp", {key: options[key] for key in options.keys() - TAKEN})
    options = {key: options[key] for key in options.keys() & TAKEN - OF_JACOBIANS}
    found = initial_values.solve_ivp(
        fun, t_span, array(y0), name, t_eval, dense_output, events, given, **options
    )
    is_ended = type(found.status) is not int or found.status
    has_events = events is not None
    return OptimizeResult(
        t=found.t, y=found.y, sol=found.sol, t_events=found.t_events if has_events else None,
        y_events=found.y_events if has_events else None, nfev=found.nfev, njev=0, nlu=0, status=found.status,
        message="A termination event occurred." if is_ended else REACHED, success=True,
    )  # fmt: skip


def odeint(
    real: Function, func: Function, y0: Any, t: Any, args: Any = (), tfirst: bool = False, rtol: Any = None,
    atol: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Within the tolerances of SciPy's LSODA, by other methods, whose number of steps has no limit."""
    refuse("scipy.integrate.odeint", {key: options[key] for key in options.keys() - OF_LSODA})
    rates = func if tfirst else (lambda t, y, *args: func(y, t, *args))
    tolerances: dict[str, Any] = {
        "rtol": 1.49012e-8 if rtol is None else rtol,
        "atol": 1.49012e-8 if atol is None else atol,
    }
    lengths = {"max_step": options.get("hmax"), "first_step": options.get("h0")}
    tolerances |= {name: length for name, length in lengths.items() if length}
    found = initial_values.solve_ivp(
        rates, (t[0], t[-1]), array(y0), "LSODA", t, args=in_tuple(args), **tolerances
    )
    return movedim(found.y, -1, 0)


SAMPLES = (samples.simpson, samples.cumulative_trapezoid, samples.cumulative_simpson, samples.romb)
SOLVERS["scipy.integrate"].update(
    quad=quad, fixed_quad=fixed_quad, solve_ivp=solve_ivp, odeint=odeint,
    **{one.__name__: _of_several(one) for one in (quadrature.dblquad, quadrature.tplquad, quadrature.nquad)},
    **{one.__name__: _of_samples(one) for one in (*SAMPLES, np.trapezoid)},
)  # fmt: skip
