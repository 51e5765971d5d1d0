"""The solvers that `pullback` offers by its own names."""

from .implicit import implicit
from .initial_values import odeint, solve_ivp
from .linear import linear_solve
from .minimisation import least_squares, minimize
from .quadrature import dblquad, fixed_quad, nquad, quad, tplquad
from .roots import bisect, brentq, fixed_point, root, root_scalar
from .samples import cumulative_simpson, romb, simpson
from .sparse import splu, spsolve

__all__ = [
    "bisect", "brentq", "cumulative_simpson", "dblquad", "fixed_point", "fixed_quad", "implicit",
    "least_squares", "linear_solve", "minimize", "nquad", "odeint", "quad", "romb", "root", "root_scalar",
    "simpson", "solve_ivp", "splu", "spsolve", "tplquad",
]  # fmt: skip
