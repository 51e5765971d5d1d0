"""SciPy's functions on Tensors, with its names and options: `scipy.special.logsumexp`, `scipy.fft.rfft`.

Its ufuncs, `scipy.special.erf` and the like, come by way of NumPy: see `numpy_api/ufuncs`. What is here does
not ask its arguments what they are, so code is given these functions in place of SciPy's (`stand_ins`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import UnsupportedError
from ...tracer.ops.special import zeta as hurwitz
from ..functions import PUBLIC, declared
from ..functions.common import INTEGERS, fail
from ..numpy_api.fft import OF_SCIPY
from ..numpy_api.protocols import FUNCTIONS
from ..numpy_api.values import averaged, floats, promoted
from ..tape.apply import apply
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .convolutions import CONVOLUTIONS
from .filters import FILTERS
from .interpolation import FUNCTIONS as INTERPOLATION
from .scipy_linalg import OF_MATRICES

# --- scipy.special ------------------------------------------------------------------------------------------


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b * exp(a))), without overflow; nan where the sum is negative, unless its sign is asked for."""
    x = averaged(a)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if b is None and not return_sign:
        return PUBLIC["logsumexp"](x, axes, keepdims) if x.ndim else x
    x, factor = promoted([x, 1.0 if b is None else b])
    top = PUBLIC["amax"](x._detached(), axes, True)
    top = PUBLIC["where"](PUBLIC["isfinite"](top), top, 0.0)
    total = declared.sum(factor * PUBLIC["exp"](x - top), axes, True)
    sign, size = PUBLIC["sgn"](total), PUBLIC["abs"](total) if return_sign else total
    found = [PUBLIC["log"](size) + top, sign]
    found = found if keepdims else [declared.sum(one, axes) for one in found]
    return tuple(found) if return_sign else found[0]


def zeta(x: Any, q: Any = None) -> Tensor:
    """Hurwitz' zeta function of x and q."""
    if q is None:
        fail(UnsupportedError, "scipy.special.zeta: q must be given for a Tensor, whose derivative is known.")
    return apply(hurwitz, *floats(x, q))


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


# --- all ----------------------------------------------------------------------------------------------------

SCIPY: dict[str, dict[str, Callable[..., Any]]] = {
    "scipy.special": {
        "logsumexp": logsumexp, "softmax": softmax, "log_softmax": log_softmax,
        "polygamma": lambda n, x: PUBLIC["polygamma"](n, averaged(x)),
        "multigammaln": lambda a, d: PUBLIC["mvlgamma"](averaged(a), d),
        "zeta": zeta,
    },
    "scipy.linalg": OF_MATRICES,
    "scipy.fft": OF_SCIPY,
    "scipy.interpolate": INTERPOLATION,
    "scipy.signal": {**CONVOLUTIONS, **FILTERS},
    "scipy.integrate": {
        "trapezoid": lambda y, x=None, dx=1.0, axis=-1: FUNCTIONS[np.trapezoid](tensor_of(y), x, dx, axis),
    },
}  # fmt: skip
"""The modules, and by name what their functions do on Tensors."""

SOLVERS: dict[str, dict[str, Callable[..., Any]]] = {"scipy.optimize": {}, "scipy.integrate": {}}
"""The same of functions that call a function of the user's, through which Tensors reach them: `solvers/`
enters its own. Each takes SciPy's function first."""
