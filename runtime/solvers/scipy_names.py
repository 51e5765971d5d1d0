"""SciPy's names of solvers, in code that is traced or differentiated: its values, with derivatives.

Those that minimise, and those of systems of equations, are SciPy's own, called by Python; the others are
ours, which take the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...tracer.errors import ConvergenceError, UnsupportedError
from ...tracer.trace import is_tracing
from ..functions.common import fail
from ..functions.movement import movedim
from ..numpy_api.values import as_python_number
from ..scipy_api.scipy_functions import SOLVERS
from ..tensors.conversion import joined
from ..transforms.transforms import grad, hessian, jacobian
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from . import initial_values, minimisation, quadrature, roots
from .adjoints import DENSE, adjoint_by
from .equations import Equation, OfVector, solution_of
from .unknowns import Unknowns

Function = Callable[..., Any]


def _refuse(name: str, options: Mapping[str, Any]) -> None:
    """UnsupportedError for options that are not dealt with."""
    given = [
        key for key, value in options.items() if value is not None and value is not False and value != ()
    ]
    if given:
        fail(
            UnsupportedError,
            f"{name}: {', '.join(given)} in a function that is traced or differentiated. Leave it out there.",
        )


def _array(value: Any) -> Any:
    """At least one dimension, as SciPy has it; a list that holds Tensors as one of them."""
    return np.atleast_1d(joined(value))


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


# --- by SciPy itself --------------------------------------------------------------------------------------


def _by_scipy(
    real: Function,
    name: str,
    unknowns: Unknowns,
    function: OfVector,
    residual: Callable[[OfVector], OfVector],
    slopes: Callable[[OfVector], Mapping[str, Function]],
    options: Mapping[str, Any],
) -> Any:
    """SciPy's result, with a solution that has derivatives.

    Args:
        slopes: from the function to those derivatives that SciPy's solver is given as options.
    """
    from scipy.optimize import OptimizeResult  # not at start

    results: list[Any] = []

    def solve(function: Function, start: np.ndarray) -> np.ndarray:
        def arrays(evaluate: Function) -> Function:
            return lambda x, *_: _as_array(evaluate(_as_vector(x, unknowns.dtype)))

        given = {key: arrays(one) for key, one in slopes(function).items()}
        result = real(arrays(function), start, **{**options, **given})
        if not (result.success or _is_solved(arrays(residual(function)), start, result.x)):
            raise ConvergenceError(f"{name}: {' '.join(result.message.split())}")
        results.append(result)
        return np.asarray(result.x, unknowns.dtype)

    owner = _OWNERS.setdefault(name, _Named(name))
    equation = Equation(owner, function, residual, solve, adjoint_by(DENSE, name), by_python=True)
    x = unknowns.restored(solution_of(equation, unknowns.start))
    known = {} if is_tracing() else dict(results[-1])
    return OptimizeResult({**known, "x": x, "success": True})


def _is_solved(residual: Function, start: np.ndarray, x: np.ndarray) -> bool:
    """Whether little is left of the equation, though SciPy could not do all that it was asked for."""
    first, left = (np.linalg.norm(residual(one)) for one in (start, x))
    return bool(left <= np.sqrt(np.finfo(start.dtype).eps) * (1.0 + first))


class _Named:
    """What a rule belongs to, by the name of SciPy's function."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


_OWNERS: dict[str, _Named] = {}


def _as_vector(x: np.ndarray, dtype: np.dtype) -> Tensor:
    return make(np.array(x, dtype), Auxiliary)


def _as_array(value: Any) -> Any:
    return value.detach().payload if isinstance(value, Tensor) else value


def _value_alone(fun: Function, jac: Any) -> Function:
    """The function, where it gives its derivative as well."""
    return (lambda x, *args: fun(x, *args)[0]) if jac is True else fun


def minimize(
    real: Function, fun: Function, x0: Any, args: Any = (), method: Any = None, jac: Any = None,
    hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None, callback: Any = None,
    options: Any = None,
) -> Any:  # fmt: skip
    """Exact derivatives take the place of those that the user gives."""
    _refuse("scipy.optimize.minimize", {"bounds": bounds, "constraints": constraints, "callback": callback})
    unknowns = Unknowns(_array(x0), "minimize", "x0")

    def slopes(function: OfVector) -> Mapping[str, Function]:
        exact = {"jac": grad(function)} if jac else {}
        return {**exact, "hess": hessian(function)} if hess is not None or hessp is not None else exact

    function = unknowns.scalar(_value_alone(fun, jac), _tuple(args))
    given = {"method": method, "tol": tol, "options": options}
    return _by_scipy(real, "scipy.optimize.minimize", unknowns, function, grad, slopes, given)


def root(
    real: Function, fun: Function, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None,
    tol: Any = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """An exact Jacobian takes the place of one that the user gives."""
    _refuse("scipy.optimize.root", {"callback": callback})
    unknowns = Unknowns(_array(x0), "root", "x0")
    function = unknowns.residual(_value_alone(fun, jac), _tuple(args), unknowns.size)
    given = {"method": method, "tol": tol, "options": options}
    return _by_scipy(
        real, "scipy.optimize.root", unknowns, function, lambda same: same,
        lambda function: {"jac": jacobian(function)} if jac else {}, given,
    )  # fmt: skip


def fsolve(
    real: Function, func: Function, x0: Any, args: Any = (), fprime: Any = None, **options: Any
) -> Any:
    from scipy import optimize  # not at start

    tol = options.pop("xtol", 1.49012e-8)
    _refuse("scipy.optimize.fsolve", options)
    found = root(optimize.root, func, x0, args, jac=fprime, tol=tol)
    return found.x


def least_squares(
    real: Function, fun: Function, x0: Any, jac: Any = "2-point", bounds: Any = None, method: str = "trf",
    ftol: Any = 1e-8, xtol: Any = 1e-8, gtol: Any = 1e-8, args: Any = (), **options: Any,
) -> Any:  # fmt: skip
    _refuse("scipy.optimize.least_squares", {"bounds": bounds, **options})
    unknowns = Unknowns(_array(x0), "least_squares", "x0")
    given = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol}
    return _by_scipy(
        real, "scipy.optimize.least_squares", unknowns, unknowns.residual(fun, _tuple(args)),
        minimisation.normal_equations,
        lambda function: {"jac": jacobian(function)} if callable(jac) else {}, given,
    )  # fmt: skip


# --- by ours ----------------------------------------------------------------------------------------------


def _bracketed(ours: Function) -> Function:
    def bracketed(
        real: Function, f: Function, a: Any, b: Any, args: Any = (), xtol: float = 2e-12,
        rtol: float = 8.881784197001252e-16, maxiter: int = 100, **options: Any,
    ) -> Any:  # fmt: skip
        _refuse(
            f"scipy.optimize.{ours.__name__}", {key: one for key, one in options.items() if key != "disp"}
        )
        return as_python_number(ours(f, a, b, _tuple(args), xtol, rtol, maxiter))

    return bracketed


def fixed_point(
    real: Function, func: Function, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500,
    method: str = "del2",
) -> Any:  # fmt: skip
    return roots.fixed_point(func, x0, _tuple(args), xtol, maxiter, method)


def root_scalar(
    real: Function, f: Function, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None,
    fprime2: Any = None, x0: Any = None, x1: Any = None, xtol: Any = None, rtol: Any = None,
    maxiter: Any = None,
    options: Any = None,
) -> Any:  # fmt: skip
    from scipy.optimize import RootResults  # not at start

    _refuse("scipy.optimize.root_scalar", {"fprime2": fprime2, "x1": x1, "options": options})
    value = roots.root_scalar(
        _value_alone(f, fprime), _tuple(args), method, bracket, x0, xtol=xtol, rtol=rtol, maxiter=maxiter
    )
    return RootResults(as_python_number(value), -1, -1, 0, method or "brentq")


def quad(
    real: Function, func: Function, a: Any, b: Any, args: Any = (), full_output: Any = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8, limit: int = 50, **options: Any,
) -> Any:  # fmt: skip
    _refuse("scipy.integrate.quad", {"full_output": full_output or None, **options})
    found = quadrature.quad(func, a, b, _tuple(args), epsabs=epsabs, epsrel=epsrel, limit=limit)
    return tuple(map(as_python_number, found))


def dblquad(
    real: Function, func: Function, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    found = quadrature.dblquad(func, a, b, gfun, hfun, _tuple(args), epsabs=epsabs, epsrel=epsrel)
    return tuple(map(as_python_number, found))


def simpson(real: Function, y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    return quadrature.simpson(y, x, dx, axis)


def fixed_quad(real: Function, func: Function, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    return quadrature.fixed_quad(func, a, b, _tuple(args), n)


def solve_ivp(
    real: Function, fun: Function, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    from scipy.optimize import OptimizeResult  # not at start

    name = method if isinstance(method, str) else method.__name__
    found = initial_values.solve_ivp(
        fun, t_span, _array(y0), name, t_eval, dense_output, events, _tuple(args or ()), **options
    )
    return OptimizeResult(
        t=found.t, y=found.y, sol=None, t_events=None, y_events=None, nfev=found.nfev, njev=0, nlu=0,
        status=0,
        message="The solver successfully reached the end of the integration interval.", success=True,
    )  # fmt: skip


def odeint(
    real: Function, func: Function, y0: Any, t: Any, args: Any = (), tfirst: bool = False, rtol: Any = None,
    atol: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """By DOP853, within the tolerances of SciPy's method, which is another one."""
    _refuse("scipy.integrate.odeint", options)
    rates = func if tfirst else (lambda t, y, *args: func(y, t, *args))
    tolerances: dict[str, Any] = {
        "rtol": 1.49012e-8 if rtol is None else rtol,
        "atol": 1.49012e-8 if atol is None else atol,
    }
    found = initial_values.solve_ivp(
        rates, (t[0], t[-1]), _array(y0), "DOP853", t, args=_tuple(args), **tolerances
    )
    return movedim(found.y, -1, 0)


SOLVERS["scipy.optimize"].update(
    minimize=minimize, root=root, fsolve=fsolve, least_squares=least_squares, fixed_point=fixed_point,
    brentq=_bracketed(roots.brentq), bisect=_bracketed(roots.bisect), root_scalar=root_scalar,
)  # fmt: skip
SOLVERS["scipy.integrate"].update(
    quad=quad, dblquad=dblquad, simpson=simpson, fixed_quad=fixed_quad, solve_ivp=solve_ivp, odeint=odeint,
)  # fmt: skip
