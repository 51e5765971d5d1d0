"""Derivatives for a solver of one's own, of which nothing is known but the equation that it solves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd.custom_rules import primitive
from ..functions.stopping import stop_gradient
from ..values.modes import no_grad
from .adjoints import DENSE, adjoint_by
from .equations import Equation, solution_of
from .unknowns import Unknowns


def implicit(
    solver: Callable[..., Any], optimality: Callable[..., Any], *, adjoint: Any = DENSE
) -> Callable[..., Any]:
    """The solver, with derivatives by the implicit function theorem.

    The solver may be anything: SciPy's, a loop, foreign code, which compiled functions call in Python. Its
    steps are not differentiated; derivatives, of any order, are those of the equation that its result solves.

    Args:
        solver: `solver(*args)` returns x: an array, a tensor, a number, or a nested container of them.
        optimality: `optimality(x, *args)` returns what is zero at the solution, as many values as x has. What
            it closes over has gradients, too.
        adjoint: how the adjoint equation is solved: "dense", by elimination; "cg", "bicgstab" or "gmres",
            without the matrix; or `solve(product, vector)`.

    Raises:
        LinearAlgebraError: the Jacobian at the solution is singular, and a derivative is asked for.
        OutputError: `optimality` returns another number of values than x has.

    Example:
        >>> square_root = implicit(lambda a: np.sqrt(np.asarray(a)), lambda x, a: x * x - a)
        >>> grad(square_root)(4.0)
        np.float64(0.25)
    """
    plain_solver = primitive(solver)

    @functools.wraps(solver)
    def solved(*args: Any) -> Any:
        with no_grad():
            found = plain_solver(*stop_gradient(args))
        unknowns = Unknowns(found, "implicit", "the result of the solver")
        equation = Equation(
            implicit,
            unknowns.residual(optimality, args, unknowns.size),
            lambda function: function,
            lambda function, start: start,
            adjoint_by(adjoint, "implicit"),
        )
        return unknowns.restored(solution_of(equation, unknowns.start))

    return solved
