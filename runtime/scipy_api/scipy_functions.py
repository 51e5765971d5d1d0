"""SciPy's functions on Tensors, with its names and options: `scipy.special.logsumexp`, `scipy.linalg.solve`.

Its ufuncs, `scipy.special.erf` and the like, come by way of NumPy: see `numpy_api/ufuncs`. What is here does
not ask its arguments what they are, so code is given these functions in place of SciPy's (`stand_ins`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import UnsupportedError
from ..functions import PUBLIC, declared, decompositions, linalg
from ..functions.common import INTEGERS, array_dtype, fail
from ..numpy_api.fft import OF_SCIPY
from ..numpy_api.protocols import FUNCTIONS
from ..numpy_api.values import as_python_number, averaged, promoted
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor

# --- scipy.special ------------------------------------------------------------------------------------------


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Tensor:
    """log(sum(b * exp(a))), without overflow; nan where the sum is negative."""
    x = averaged(a)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if return_sign:
        fail(UnsupportedError, "scipy.special.logsumexp: return_sign is not supported on a Tensor.")
    if b is None:
        return PUBLIC["logsumexp"](x, axes, keepdims) if x.ndim else x
    x, factor = promoted([x, b])
    top = PUBLIC["amax"](x._detached(), axes, True)
    top = PUBLIC["where"](PUBLIC["isfinite"](top), top, 0.0)
    total = PUBLIC["log"](declared.sum(factor * PUBLIC["exp"](x - top), axes, True)) + top
    return total if keepdims else declared.sum(total, axes)


def softmax(x: Any, axis: Any = None) -> Tensor:
    """exp(x) / sum(exp(x))."""
    values = averaged(x)
    if isinstance(axis, INTEGERS):
        return PUBLIC["softmax"](values, axis)
    return PUBLIC["exp"](values - logsumexp(values, axis, keepdims=True))


def log_softmax(x: Any, axis: Any = None) -> Tensor:
    """x - logsumexp(x)."""
    values = averaged(x)
    if isinstance(axis, INTEGERS):
        return PUBLIC["log_softmax"](values, axis)
    return values - logsumexp(values, axis, keepdims=True)


# --- scipy.linalg -------------------------------------------------------------------------------------------

HARMLESS = frozenset(("check_finite", "debug", "overwrite_a", "overwrite_b", "overwrite_ab", "lapack_driver"))
"""Options that change how the result is computed, not what it is."""


SYMMETRIC = ("sym", "symmetric", "her", "hermitian", "pos", "positive definite")
GENERAL = (None, "gen", "general")
"""What `solve` may be told about its matrix."""


def _plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which ignores SciPy's harmless options."""

    def call(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, **{name: one for name, one in options.items() if name not in HARMLESS})

    return call


def solve(
    a: Any, b: Any, lower: bool = False, transposed: bool = False, assume_a: str | None = None
) -> Tensor:
    """The x with a x = b; of a matrix that is said to be symmetric one triangle is read."""
    x, y = (averaged(one) for one in promoted([a, b]))
    if assume_a in SYMMETRIC:
        if x.is_complex() and assume_a in SYMMETRIC[:2]:
            fail(UnsupportedError, f"scipy.linalg.solve: assume_a={assume_a!r} with a complex matrix.")
        x = linalg.symmetric(x, lower)
    elif assume_a not in GENERAL:
        fail(UnsupportedError, f"scipy.linalg.solve: assume_a={assume_a!r} is not supported on a Tensor.")
    return linalg.solved(x.mT if transposed else x, y, y.ndim == 1)


def cholesky(a: Any, lower: bool = False) -> Tensor:
    """The triangular factor: an upper one unless `lower`, from the upper half."""
    return linalg.cholesky(linalg.symmetric(averaged(a), lower), not lower)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Tensor:
    x, y = (averaged(one) for one in promoted([a, b]))
    if trans in (1, 2, "T", "C"):
        x, lower = x.mT if trans in (1, "T") else x.mH, not lower
    right = y[:, None] if y.ndim == 1 else y
    found = linalg.solve_triangular(x, right, upper=not lower, unitriangular=unit_diagonal)
    return found[:, 0] if y.ndim == 1 else found


def cho_solve(c_and_lower: Any, b: Any) -> Tensor:
    """The solution, given Cholesky's factor."""
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(factor, first, trans=2 if lower else 0, lower=lower)


NORMS_BY_LAPACK = {1: (None, 2), 2: (1, np.inf)}
"""By number of dimensions the norms that SciPy gives as Python numbers."""


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    x = tensor_of(a)
    found = FUNCTIONS[np.linalg.norm](x, ord, axis, keepdims)
    by_lapack = axis is None and not keepdims and array_dtype(x).kind == "f"
    return as_python_number(found) if by_lapack and ord in NORMS_BY_LAPACK.get(x.ndim, ()) else found


def eigh(a: Any, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    """Eigenvalues in ascending order, and eigenvectors in columns, of a symmetric matrix."""
    values, vectors = decompositions.eigh(linalg.symmetric(averaged(a), lower))
    return values if eigvals_only else (values, vectors)


# --- all ----------------------------------------------------------------------------------------------------

SCIPY: dict[str, dict[str, Callable[..., Any]]] = {
    "scipy.special": {
        "logsumexp": logsumexp, "softmax": softmax, "log_softmax": log_softmax,
        "polygamma": lambda n, x: PUBLIC["polygamma"](n, averaged(x)),
    },
    "scipy.linalg": {
        "solve": _plainly(solve), "inv": _plainly(lambda a: linalg.inverse(averaged(a))),
        "det": _plainly(lambda a: linalg.det(averaged(a))), "cholesky": _plainly(cholesky),
        "cho_factor": _plainly(lambda a, lower=False: (cholesky(a, lower), lower)),
        "cho_solve": _plainly(cho_solve), "solve_triangular": _plainly(solve_triangular),
        "norm": _plainly(norm), "expm": lambda A: PUBLIC["matrix_exp"](averaged(A)),
        "svdvals": _plainly(lambda a: decompositions.svdvals(averaged(a))),
        "svd": _plainly(lambda a, full_matrices=True: decompositions.linalg_svd(averaged(a), full_matrices)),
        "eigvalsh": _plainly(lambda a, lower=True: eigh(a, lower=lower, eigvals_only=True)),
        "eigh": _plainly(eigh),
    },
    "scipy.fft": OF_SCIPY,
    "scipy.integrate": {
        "trapezoid": lambda y, x=None, dx=1.0, axis=-1: FUNCTIONS[np.trapezoid](tensor_of(y), x, dx, axis),
    },
}  # fmt: skip
"""The modules, and by name what their functions do on Tensors."""

SOLVERS: dict[str, dict[str, Callable[..., Any]]] = {"scipy.optimize": {}, "scipy.integrate": {}}
"""The same of functions that call a function of the user's, through which Tensors reach them: `solvers/`
enters its own. Each takes SciPy's function first."""
