"""SciPy's names of roots, minima and fits, in code that is traced or differentiated: with derivatives.

`brentq`, `bisect` and `fixed_point` are ours, which take the same steps; Python calls SciPy's own others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ..functions.common import fail
from ..functions.matrices import linalg
from ..functions.shapes.joining import cat
from ..functions.shapes.movement import transpose
from ..functions.stopping import stop_gradient
from ..numpy_api.values import as_array, as_python_number
from ..scipy_api.scipy_functions import SOLVERS
from ..tape.apply import of_kind
from ..tensors.conversion import tensor_of
from ..transforms.transforms import grad, hessian, jacobian, jvp
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, plain
from . import roots
from .constraints import Conditions, constraints_of, limits
from .equations import OfVector
from .scipy_calls import OfArrays, array, in_tuple, refuse, solved_by_scipy, value_alone
from .unknowns import Unknowns, number, vector_of_values

Function = Callable[..., Any]


OF_DIFFERENCES = frozenset(("band", "epsfcn", "factor", "diag", "col_deriv"))
OF_STEPS = frozenset(("x_scale", "diff_step", "tr_solver", "tr_options", "verbose"))
"""Options by which SciPy's steps differ, but not what they lead to; those of `fsolve` are not needed."""


def _result(known: Mapping[str, Any], **values: Any) -> Any:
    from scipy.optimize import OptimizeResult  # not at start

    return OptimizeResult({**known, **values, "success": True})


# --- systems of equations -----------------------------------------------------------------------------------


def root(
    real: Function, fun: Function, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None,
    tol: Any = None, callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """An exact Jacobian takes the place of one that the user gives."""
    refuse("scipy.optimize.root", {"callback": callback})
    unknowns = Unknowns(array(x0), "root", "x0")
    arrays = OfArrays(unknowns.dtype)
    function = unknowns.residual(value_alone(fun, jac), in_tuple(args), unknowns.size)

    def run(function: Function, start: np.ndarray) -> Any:
        given = {"jac": arrays(jacobian(function))} if jac else {}
        result = real(arrays(function), start, method=method, tol=tol, options=options, **given)
        return result, result.x

    vector, known = solved_by_scipy(
        "scipy.optimize.root", unknowns, unknowns.start, function, lambda same: same, run,
        settings=(method, tol, options, bool(jac)),
    )  # fmt: skip
    x = unknowns.restored(vector)
    return _result(known, x=x, fun=value_alone(fun, jac)(x, *in_tuple(args)))


def fsolve(
    real: Function, func: Function, x0: Any, args: Any = (), fprime: Any = None, **options: Any
) -> Any:
    from scipy import optimize  # not at start

    tol, steps = options.pop("xtol", 1.49012e-8), {"maxfev": options.pop("maxfev", 0)}
    refuse("scipy.optimize.fsolve", {key: one for key, one in options.items() if key not in OF_DIFFERENCES})
    found = root(optimize.root, func, x0, args, jac=fprime, tol=tol, options=steps)
    return found.x


# --- minima -------------------------------------------------------------------------------------------------


def minimize(
    real: Function, fun: Function, x0: Any, args: Any = (), method: Any = None, jac: Any = None,
    hess: Any = None, hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """Exact derivatives take the place of those that the user gives."""
    refuse("scipy.optimize.minimize", {"callback": callback})
    unknowns = Unknowns(array(x0), "minimize", "x0")
    objective = unknowns.scalar(value_alone(fun, jac), in_tuple(args))
    given = {"method": method, "tol": tol, "options": options}
    if bounds is not None or constraints != ():
        held = constraints_of(constraints, unknowns)
        conditions = Conditions(
            unknowns, lambda x: objective(x)[None], False, limits(bounds, unknowns), held
        )
        vector, known = _constrained("scipy.optimize.minimize", unknowns, conditions, real, given)
    else:
        arrays = OfArrays(unknowns.dtype)

        def run(function: Function, start: np.ndarray) -> Any:
            exact = {"jac": arrays(grad(function))} if jac else {}
            if hess is not None or hessp is not None:
                exact["hess"] = arrays(hessian(function))
            result = real(arrays(function), start, **given, **exact)
            return result, result.x

        vector, known = solved_by_scipy(
            "scipy.optimize.minimize", unknowns, unknowns.start, objective, grad, run,
            settings=(given, bool(jac), hess is not None or hessp is not None),
        )  # fmt: skip
    return _result(known, x=unknowns.restored(vector), fun=number(objective(vector)))


def _constrained(
    name: str, unknowns: Unknowns, conditions: Conditions, real: Function, options: Mapping[str, Any]
) -> tuple[Tensor, dict[str, Any]]:
    """By SciPy's `minimize`, with exact derivatives."""
    size, arrays = conditions.size, OfArrays(unknowns.dtype)

    def run(function: Function, start: np.ndarray) -> Any:
        values, slopes = arrays(function), arrays(jacobian(function))

        def padded(x: np.ndarray) -> np.ndarray:
            return np.concatenate([x, start[size:]])

        def part(of: Function, which: int, rows: slice) -> Function:
            return lambda x, *_: conditions.parts(of(padded(x)))[which][rows][..., :size]

        def constraint(kind: str, rows: slice) -> dict[str, Any]:
            fun = lambda x, *_: conditions.parts(values(padded(x)))[0][rows]  # noqa: E731
            return {"type": kind, "fun": fun, "jac": part(slopes, 0, rows)}

        _, lower, upper, _ = conditions.parts(values(start))
        equal, others = slice(conditions.equalities), slice(conditions.equalities, None)
        held = [constraint("eq", equal)] if conditions.equalities else []
        held += [constraint("ineq", others)] if conditions.equalities < conditions.count else []
        result = real(
            lambda x, *_: conditions.parts(values(padded(x)))[3][0],
            start[:size],
            jac=lambda x, *_: conditions.parts(slopes(padded(x)))[3][0, :size],
            bounds=list(zip(lower, upper)),
            constraints=held,
            **options,
        )
        x = padded(result.x)
        multipliers = conditions.multipliers(result.x, values(x), slopes(x)[:, :size])
        return result, np.concatenate([result.x, multipliers])

    vector, known = solved_by_scipy(
        name, unknowns, conditions.start(unknowns.start), conditions.function, conditions.residual, run
    )
    return vector[:size], known


def minimize_scalar(
    real: Function, fun: Function, bracket: Any = None, bounds: Any = None, args: Any = (),
    method: Any = None, tol: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    start = 0.0 if bounds is None else bounds[0]
    unknowns = Unknowns(start, "minimize_scalar", "bounds")
    pairs = None if bounds is None else [tuple(bounds)]
    objective = unknowns.scalar(fun, in_tuple(args))
    conditions = Conditions(unknowns, lambda x: objective(x)[None], False, limits(pairs, unknowns))
    arrays = OfArrays(unknowns.dtype)

    def run(function: Function, start: np.ndarray) -> Any:
        _, (low,), (high,), _ = conditions.parts(arrays(function)(start))
        given = {"bracket": bracket, "method": method, "tol": tol, "options": options}
        given |= {} if bounds is None else {"bounds": (low, high)}
        result = real(lambda x: arrays(function)(x)[-1], **given)
        return result, np.reshape(result.x, 1)

    name = "scipy.optimize.minimize_scalar"
    vector, known = solved_by_scipy(
        name, unknowns, unknowns.start, conditions.function, conditions.residual, run
    )
    return _result(known, x=unknowns.restored(vector), fun=number(objective(vector)))


def _least(method: str) -> Function:
    """The place of the least value of a function of one number, as `minimize_scalar` has it."""

    def least(
        real: Function, func: Function, args: Any = (), brack: Any = None, tol: float = 1.48e-8,
        full_output: Any = 0, maxiter: int = 500,
    ) -> Any:  # fmt: skip
        from scipy import optimize  # not at start

        refuse(f"scipy.optimize.{method}", {"full_output": full_output or None})
        steps = {"maxiter": maxiter}
        return minimize_scalar(optimize.minimize_scalar, func, brack, None, args, method, tol, steps).x

    return least


def fminbound(
    real: Function, func: Function, x1: Any, x2: Any, args: Any = (), xtol: float = 1e-5, maxfun: int = 500,
    full_output: Any = 0, disp: int = 1,
) -> Any:  # fmt: skip
    from scipy import optimize  # not at start

    refuse("scipy.optimize.fminbound", {"full_output": full_output or None})
    steps = {"maxiter": maxfun, "xatol": xtol, "disp": disp}
    return minimize_scalar(
        optimize.minimize_scalar, func, None, (x1, x2), args, "bounded", options=steps
    ).x


def least_squares(
    real: Function, fun: Function, x0: Any, jac: Any = "2-point", bounds: Any = None, method: str = "trf",
    ftol: Any = 1e-8, xtol: Any = 1e-8, gtol: Any = 1e-8, args: Any = (), kwargs: Any = None,
    max_nfev: Any = None, **options: Any,
) -> Any:  # fmt: skip
    refuse("scipy.optimize.least_squares", {key: options[key] for key in options.keys() - OF_STEPS})
    unknowns = Unknowns(array(x0), "least_squares", "x0")
    function = unknowns.residual(lambda x, *args: fun(x, *args, **(kwargs or {})), in_tuple(args))
    given = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "max_nfev": max_nfev, **options}
    vector, known = _smallest_squares(
        "scipy.optimize.least_squares", real, unknowns, function, _pairs(bounds, unknowns), given,
        callable(jac),
    )  # fmt: skip
    values = of_kind(function(vector), unknowns.kind)
    return _result(known, x=unknowns.restored(vector), fun=values, cost=0.5 * (values**2).sum())


def _pairs(bounds: Any, unknowns: Unknowns) -> Any:
    """Bounds as pairs, of which SciPy is given two arrays here."""
    if bounds is None or hasattr(bounds, "lb"):
        return bounds
    low, high = (np.broadcast_to(array(one), (unknowns.size,)) for one in bounds)
    return [(low[place], high[place]) for place in range(unknowns.size)]


def _smallest_squares(
    name: str, real: Function, unknowns: Unknowns, function: OfVector, bounds: Any,
    options: Mapping[str, Any], is_exact: bool,
) -> tuple[Tensor, dict[str, Any]]:  # fmt: skip
    arrays = OfArrays(unknowns.dtype)
    conditions = Conditions(unknowns, function, True, limits(bounds, unknowns))

    def run(function: Function, start: np.ndarray) -> Any:
        values = arrays(function)

        def slopes(x: np.ndarray, *_: Any) -> np.ndarray:
            found: np.ndarray = conditions.parts(arrays(jacobian(function))(x))[3]
            return found

        _, lower, upper, _ = conditions.parts(values(start))
        given: dict[str, Any] = {} if bounds is None else {"bounds": (lower, upper)}
        given |= {"jac": slopes} if is_exact else {}
        result = real(lambda x, *_: conditions.parts(values(x))[3], start, **options, **given)
        return result, result.x

    return solved_by_scipy(name, unknowns, unknowns.start, conditions.function, conditions.residual, run)


def curve_fit(
    real: Function, f: Function, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
    absolute_sigma: bool = False, check_finite: Any = None, bounds: Any = None, method: Any = None,
    jac: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """By SciPy's `least_squares`; the covariance has derivatives, too."""
    from scipy import optimize  # not at start

    steps = {key: options[key] for key in options.keys() & (OF_STEPS | {"ftol", "xtol", "gtol", "max_nfev"})}
    steps |= {"max_nfev": options["maxfev"]} if "maxfev" in options else {}
    refuse("scipy.optimize.curve_fit", {key: options[key] for key in options.keys() - steps - {"maxfev"}})
    start = np.ones(len(inspect.signature(f).parameters) - 1) if p0 is None else array(p0)
    unknowns = Unknowns(start, "curve_fit", "p0")
    measured = vector_of_values(array(ydata), unknowns.dtype)
    fitted = unknowns.residual(lambda p: f(xdata, *p), (), measured.shape[0])
    weighted = _weighted(sigma, unknowns.dtype)

    def misfit(x: Tensor) -> Tensor:
        return weighted(fitted(x) - measured)

    given = {"method": method or ("lm" if bounds is None else "trf"), **steps}
    vector, _ = _smallest_squares(
        "scipy.optimize.curve_fit", optimize.least_squares, unknowns, misfit, _pairs(bounds, unknowns), given,
        jac is not None,
    )  # fmt: skip
    slopes = jacobian(misfit)(vector)
    covariance = linalg.inverse(transpose(slopes, 0, 1) @ slopes)
    if not absolute_sigma:
        freedom = measured.shape[0] - unknowns.size
        covariance = covariance * ((misfit(vector) ** 2).sum() / freedom if freedom > 0 else np.inf)
    return unknowns.restored(vector), plain(of_kind(covariance, NumpyTensor))


def _weighted(sigma: Any, dtype: np.dtype) -> OfVector:
    """What divides by standard deviations, or by the root of a covariance matrix."""
    if sigma is None:
        return lambda values: values
    if np.ndim(sigma) < 2:
        deviations = vector_of_values(array(sigma), dtype)
        return lambda values: values / deviations
    factor = linalg.cholesky(vector_of_values(array(sigma), dtype).reshape(np.shape(sigma)))
    return lambda values: linalg.solve_triangular(factor, values[:, None], upper=False)[:, 0]


# --- roots of one number ------------------------------------------------------------------------------------


def _bracketed(ours: Function) -> Function:
    def bracketed(
        real: Function, f: Function, a: Any, b: Any, args: Any = (), xtol: float = 2e-12,
        rtol: float = 8.881784197001252e-16, maxiter: int = 100, full_output: bool = False,
        disp: bool = True,
    ) -> Any:  # fmt: skip
        found = as_python_number(ours(f, a, b, in_tuple(args), xtol, rtol, maxiter))
        return (found, _of_scalar(found, ours.__name__)) if full_output else found

    return bracketed


def _of_scalar(root: Any, method: str) -> Any:
    """What SciPy tells of a root; how many steps there were is not known in code."""
    from scipy.optimize import RootResults  # not at start

    return RootResults(root, -1, -1, 0, method)


def _elementwise(
    name: str, f: Function, x0: Any, args: Any, other: Any, run: Callable[..., np.ndarray], settings: Any,
    tolerances: tuple[float, float] | None = None,
) -> Any:  # fmt: skip
    """The root of a function of one number, or of several, of each by itself.

    Args:
        other: a second place to begin with, of the same shape, or None.
        run: from functions of arrays, the value and its first two derivatives, and from both places to the
            root.
        settings: see `solved_by_scipy`.
        tolerances: of a root between both places, absolute and relative.
    """
    unknowns, shape = Unknowns(x0, name, "x0"), np.shape(x0)
    function = unknowns.residual(f, in_tuple(args), unknowns.size)
    places = [] if other is None else [vector_of_values(other, unknowns.dtype)]
    arrays = OfArrays(unknowns.dtype, shape)

    def slope(function: Function) -> Function:
        return lambda x: jvp(function, (x,), (x * 0.0 + 1.0,))[1]

    def value_of(function: Function) -> Function:
        return lambda x: function(x)[: unknowns.size]

    def solve(function: Function, start: np.ndarray) -> Any:
        value = value_of(function)
        of_arrays = [arrays(one) for one in (value, slope(value), slope(slope(value)))]
        given = OfArrays(unknowns.dtype)(function)(start)[unknowns.size :]
        shaped = [one.reshape(shape)[()] for one in (start, *([given] if places else []))]
        return {}, np.reshape(run(of_arrays, *shaped), -1)

    def values(x: Tensor) -> Tensor:
        return cat([function(x), *places])

    name = f"scipy.optimize.{name}"
    reach = roots.reach_in(stop_gradient(places[0]) - unknowns.start, *tolerances) if tolerances else None
    settings = (settings, shape, len(places), tolerances)
    vector, _ = solved_by_scipy(name, unknowns, unknowns.start, values, value_of, solve, reach, settings)
    found = unknowns.restored(vector)
    return found if shape else of_kind(tensor_of(found), NumpyScalar)


def _bracketed_by_scipy(name: str) -> Function:
    def bracketed(real: Function, f: Function, a: Any, b: Any, args: Any = (), **options: Any) -> Any:
        refuse(f"scipy.optimize.{name}", {"full_output": options.pop("full_output", None)})

        def run(functions: Any, a: float, b: float) -> Any:
            try:
                return real(functions[0], a, b, **options)
            except ValueError as error:  # the signs at a and b
                raise ArgumentError(f"scipy.optimize.{name}: {error}") from error

        tolerances = options.get("xtol", 2e-12), options.get("rtol", 8.881784197001252e-16)
        found = _elementwise(name, f, a, args, b, run, options, tolerances)
        return found if np.shape(a) or name == "toms748" else as_python_number(found)  # it is not in C

    return bracketed


def newton(
    real: Function, func: Function, x0: Any, fprime: Any = None, args: Any = (), tol: float = 1.48e-8,
    maxiter: int = 50, fprime2: Any = None, x1: Any = None, rtol: float = 0.0, full_output: bool = False,
    disp: bool = True,
) -> Any:  # fmt: skip
    """Exact derivatives take the place of those that the user gives."""
    refuse("scipy.optimize.newton", {"full_output": full_output, "disp=False": not disp})

    def run(functions: Any, first: Any, second: Any = None) -> Any:
        value, slope, curvature = functions
        return real(
            value, first, slope if fprime else None, tol=tol, maxiter=maxiter,
            fprime2=curvature if fprime2 else None, x1=second, rtol=rtol,
        )  # fmt: skip

    settings = (bool(fprime), bool(fprime2), tol, maxiter, rtol)
    return _elementwise("newton", func, x0, args, x1, run, settings)


def fixed_point(
    real: Function, func: Function, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500,
    method: str = "del2",
) -> Any:  # fmt: skip
    return as_array(tensor_of(roots.fixed_point(func, x0, in_tuple(args), xtol, maxiter, method)))


def root_scalar(
    real: Function, f: Function, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None,
    fprime2: Any = None, x0: Any = None, x1: Any = None, xtol: Any = None, rtol: Any = None,
    maxiter: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    from scipy import optimize  # not at start

    refuse("scipy.optimize.root_scalar", {"options": options})
    f = value_alone(f, fprime)
    method = (method or _usual_method(bracket, fprime, fprime2)).lower()
    tolerances = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter}
    given: dict[str, Any] = {name: value for name, value in tolerances.items() if value is not None}
    if method in BRACKETED and bracket is not None:
        value = BRACKETED[method](getattr(optimize, method), f, *bracket, args, **given)
    elif method in ("newton", "secant", "halley") and x0 is not None:
        given = {"tol" if name == "xtol" else name: one for name, one in given.items()}
        slopes = {"newton": (True, False), "halley": (True, True), "secant": (False, False)}[method]
        value = newton(optimize.newton, f, x0, slopes[0], args, fprime2=slopes[1], x1=x1, **given)
    else:
        missing = "a bracket" if bracket is None else "x0"
        fail(ArgumentError, f"scipy.optimize.root_scalar: method={method!r} needs {missing}.")
    return _of_scalar(value, method)


def _usual_method(bracket: Any, fprime: Any, fprime2: Any) -> str:
    """As SciPy chooses it."""
    if bracket is not None:
        return "brentq"
    return "secant" if not fprime else "halley" if fprime2 else "newton"


BRACKETED: dict[str, Function] = {
    "brentq": _bracketed(roots.brentq),
    "bisect": _bracketed(roots.bisect),
    **{name: _bracketed_by_scipy(name) for name in ("brenth", "ridder", "toms748")},
}
SOLVERS["scipy.optimize"].update(
    BRACKETED, minimize=minimize, minimize_scalar=minimize_scalar, brent=_least("brent"),
    golden=_least("golden"), fminbound=fminbound, root=root, fsolve=fsolve, newton=newton,
    least_squares=least_squares, curve_fit=curve_fit, fixed_point=fixed_point, root_scalar=root_scalar,
)  # fmt: skip
