"""Where SciPy's solvers are tested: programs of one number, and what they find in closed form.

Special functions and distributions have rows in `scipy_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as sparse_linalg
from scipy import integrate, optimize

TIMES = np.linspace(0.5, 2.0, 4)
SPARSE = sparse.csc_array(np.array([[4.0, 1.0], [0.0, 2.0]]))
ONES = np.ones(2)


@dataclass(frozen=True)
class Solver:
    """A program of a number, near 1.3.

    Attributes:
        exact: the same, in mpmath's arithmetic.
        tolerance: of the value and both derivatives; larger where what is found is.
    """

    program: Callable[[Any], Any]
    exact: Callable[[Any], Any]
    tolerance: float = 1e-9


def _cube_root(a: Any) -> Any:
    return a ** (mp.mpf(1) / 3)


def _bracketed(name: str) -> Solver:
    return Solver(lambda a: getattr(optimize, name)(lambda x: x**3 - a, 0.0, 5.0, xtol=1e-13), _cube_root)


def _matrix(a: Any) -> Any:
    """Symmetric and definite; the solution for a right-hand side of ones is (1, a - 1) / (2 a - 1)."""
    return np.array([[a, 1.0], [1.0, 2.0]])


def _of_times(a: Any) -> Any:
    return a**2 * TIMES**2


def _decay(a: Any, method: str, tolerance: float) -> Any:
    return integrate.solve_ivp(
        lambda t, y: -a * y, (0, 1), [1.0], method, t_eval=[1.0], rtol=tolerance, atol=tolerance
    ).y.sum()


SOLVERS: dict[str, Solver] = {
    "root": Solver(lambda a: optimize.root(lambda x: x**3 - a, [1.0], tol=1e-13).x.sum(), _cube_root),
    "fsolve": Solver(lambda a: optimize.fsolve(lambda x: x**3 - a, 1.0, xtol=1e-13)[0], _cube_root),
    "newton": Solver(lambda a: optimize.newton(lambda x: x**3 - a, 1.0, tol=1e-13), _cube_root),
    "root_scalar": Solver(
        lambda a: optimize.root_scalar(lambda x: x**3 - a, bracket=(0.0, 5.0), xtol=1e-13).root, _cube_root
    ),
    **{name: _bracketed(name) for name in ("brentq", "brenth", "bisect", "ridder", "toms748")},
    "fixed_point": Solver(
        lambda a: optimize.fixed_point(lambda x: 0.5 * (x + a / x), 1.0, xtol=1e-13).sum(), mp.sqrt
    ),
    "minimize": Solver(
        lambda a: optimize.minimize(lambda x: ((x - a**2) ** 2).sum(), np.zeros(2), tol=1e-12).x.sum(),
        lambda a: 2 * a**2, 1e-7,
    ),
    "minimize_scalar": Solver(
        lambda a: optimize.minimize_scalar(lambda x: (x - a**2) ** 2).x, lambda a: a**2, 1e-7
    ),
    "least_squares": Solver(
        lambda a: optimize.least_squares(
            lambda x: np.stack([x[0] - a, x[1] * a - 2]), ONES, xtol=1e-14, ftol=1e-14, gtol=1e-14
        ).x.sum(),
        lambda a: a + 2 / a,
    ),
    "curve_fit": Solver(
        lambda a: optimize.curve_fit(lambda t, k: np.exp(k) * t, TIMES, a * TIMES, [0.1])[0][0], mp.log, 1e-7
    ),
    "quad": Solver(lambda a: integrate.quad(lambda x: np.exp(-a * x), 0, np.inf)[0], lambda a: 1 / a),
    "dblquad": Solver(
        lambda a: integrate.dblquad(lambda y, x: a * x * y**2, 0, 1, 0, a)[0], lambda a: a**4 / 6
    ),
    "fixed_quad": Solver(
        lambda a: integrate.fixed_quad(lambda x: a**2 * x**2, 0.0, a)[0], lambda a: a**5 / 3
    ),
    "trapezoid": Solver(lambda a: integrate.trapezoid(_of_times(a), TIMES), lambda a: a**2 * 2.6875),
    "simpson": Solver(lambda a: integrate.simpson(_of_times(a), TIMES), lambda a: a**2 * 2.625),
    "romb": Solver(lambda a: integrate.romb(a**2 * np.linspace(0, 1, 5) ** 2, 0.25), lambda a: a**2 / 3),
    "cumulative_trapezoid": Solver(
        lambda a: integrate.cumulative_trapezoid(_of_times(a), TIMES)[-1], lambda a: a**2 * 2.6875
    ),
    "cumulative_simpson": Solver(
        lambda a: integrate.cumulative_simpson(_of_times(a), x=TIMES)[-1], lambda a: a**2 * 2.625
    ),
    **{
        f"solve_ivp by {method}": Solver(
            lambda a, method=method, asked=asked: _decay(a, method, asked), lambda a: mp.exp(-a), tolerance
        )
        for method, asked, tolerance in (
            ("RK45", 1e-10, 1e-7), ("RK23", 1e-7, 1e-5), ("DOP853", 1e-11, 1e-7), ("Radau", 1e-7, 1e-4),
            ("BDF", 1e-6, 1e-3), ("LSODA", 1e-9, 1e-6),
        )
    },
    "odeint": Solver(
        lambda a: integrate.odeint(lambda y, t: -a * y, [1.0], [0.0, 1.0], rtol=1e-10, atol=1e-10)[1, 0],
        lambda a: mp.exp(-a), 1e-6,
    ),
    **{
        name: Solver(
            lambda a, name=name: getattr(sparse_linalg, name)(_matrix(a), ONES, rtol=1e-13)[0].sum(),
            lambda a: a / (2 * a - 1),
        )
        for name in ("cg", "bicgstab", "gmres")
    },
    "spsolve": Solver(
        lambda a: sparse_linalg.spsolve(SPARSE, a**2 * ONES).sum(), lambda a: a**2 * 0.625
    ),
    "splu": Solver(lambda a: sparse_linalg.splu(SPARSE).solve(a**2 * ONES).sum(), lambda a: a**2 * 0.625),
    "factorized": Solver(
        lambda a: sparse_linalg.factorized(SPARSE)(a**2 * ONES).sum(), lambda a: a**2 * 0.625
    ),
    "norm": Solver(lambda a: sparse_linalg.norm(SPARSE * a**2), lambda a: a**2 * mp.sqrt(21)),
    "expm_multiply": Solver(
        lambda a: sparse_linalg.expm_multiply(SPARSE * -a, ONES)[1], lambda a: mp.exp(-2 * a)
    ),
}  # fmt: skip
"""By SciPy's name, and what distinguishes several rows of one."""
