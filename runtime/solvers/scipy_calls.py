"""What SciPy's names of solvers share: reading arguments, and calling SciPy's own solver by Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import numpy as np

from ...tracer.errors import ConvergenceError, PullbackError, UnsupportedError
from ..functions.common import fail
from ..tensors.conversion import joined
from ..transforms.transforms import jacobian
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .adjoints import DENSE, Reach, adjoint_by
from .equations import Equation, OfVector, solution_of
from .unknowns import Unknowns

Function = Callable[..., Any]


def refuse(name: str, options: Mapping[str, Any]) -> None:
    """UnsupportedError for options that are not dealt with."""
    given = [
        key for key, value in options.items()
        if value is not None and value is not False and not (isinstance(value, tuple) and not value)
    ]  # fmt: skip
    if given:
        fail(
            UnsupportedError,
            f"{name}: {', '.join(given)} in a function that is traced or differentiated. Leave it out there.",
        )


def array(value: Any) -> Any:
    """At least one dimension, as SciPy has it; a list that holds Tensors as one of them."""
    return np.atleast_1d(joined(value))


def in_tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def value_alone(fun: Function, jac: Any) -> Function:
    """The function, where it gives its derivative as well."""
    return (lambda x, *args: fun(x, *args)[0]) if jac is True else fun


class OfArrays:
    """Functions of vectors as those of arrays and numbers, which SciPy's solvers call."""

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...] = (-1,)) -> None:
        self._dtype = dtype
        self._shape = shape

    def __call__(self, function: Function) -> Function:
        def of_arrays(x: Any, *_: Any) -> Any:
            found = function(make(np.array(x, self._dtype).reshape(-1), Auxiliary))
            found = found.detach().payload if isinstance(found, Tensor) else np.asarray(found)
            return found if found.ndim != 1 else found.reshape(self._shape)[()]

        return of_arrays


class _Named:
    """What a rule belongs to, by the name of SciPy's function."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


_OWNERS: dict[str, _Named] = {}


def solved_by_scipy(
    name: str, unknowns: Unknowns, start: Tensor, function: OfVector,
    residual: Callable[[OfVector], OfVector],
    run: Callable[[Function, np.ndarray], tuple[Any, np.ndarray]], reach: Reach | None = None,
    settings: Any = None,
) -> tuple[Tensor, dict[str, Any]]:  # fmt: skip
    """The solution, with derivatives, and what SciPy tells beside it where nothing is traced.

    Args:
        start, function, residual: of the equation.
        run: from the function and an array to begin with to SciPy's result and the solution.
        reach: see `adjoint_by`.
        settings: numbers, text and containers of them that tell `run` from others of the name; None if there
            is more.
    """
    results: list[Any] = []

    def solve(function: Function, start: np.ndarray) -> np.ndarray:
        try:
            result, found = run(function, start)
        except PullbackError:
            raise
        except RuntimeError as error:
            raise ConvergenceError(f"{name}: {error}") from error
        if not (result.get("success", True) or _is_solved(residual(function), start, found)):
            raise ConvergenceError(f"{name}: {' '.join(result['message'].split())}")
        results[:] = [result]
        return np.asarray(found, unknowns.dtype)

    owner = _OWNERS.setdefault(name, _Named(name))
    equation = Equation(
        owner, function, residual, solve, adjoint_by(DENSE, name, reach), by_python=True,
        settings=_as_key((settings, unknowns.size, unknowns.dtype.str)) if settings is not None else None,
    )  # fmt: skip
    vector = solution_of(equation, start)
    known = results[-1] if results else {}
    return vector, {key: one for key, one in known.items() if isinstance(one, bool | int | str)}


def _as_key(settings: Any) -> Any:
    """Settings as what is hashable; what is no plain number or text is like nothing else."""
    if isinstance(settings, Mapping):
        return tuple((name, _as_key(one)) for name, one in sorted(settings.items()))
    if isinstance(settings, tuple | list):
        return tuple(map(_as_key, settings))
    return repr(settings) if isinstance(settings, str | int | float | NoneType) else object()


def _is_solved(residual: OfVector, start: np.ndarray, x: np.ndarray) -> bool:
    """Whether little is left of the equation, though SciPy could not do all that it was asked for.

    That is as much as is left where each number of x has half of its digits, which is what differences of
    values tell, and Newton's step from there is small, too, whatever units the equation has.
    """
    of_arrays = OfArrays(start.dtype)
    values, root_of_precision = of_arrays(residual), float(np.sqrt(np.finfo(start.dtype).eps))
    first, left = (np.linalg.norm(values(one)) for one in (start, x))
    if left <= root_of_precision * (1.0 + first):
        return True
    slopes, size = of_arrays(jacobian(residual))(x), max(1.0, float(np.linalg.norm(x)))
    if not np.isfinite(slopes).all() or np.linalg.matrix_rank(slopes) < len(slopes):
        return False
    step = np.linalg.norm(np.linalg.solve(slopes, values(x)))
    is_rounding = left <= root_of_precision * np.sqrt(x.size) * np.linalg.norm(slopes, 2) * size
    return bool(is_rounding and step <= np.sqrt(root_of_precision) * size)
