"""NumPy's functions of polynomials on Tensors: coefficients, the highest power first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.errors import UnsupportedError
from ..functions import PUBLIC, joining
from ..functions.common import array_dtype, as_dtype, fail, is_traced, require_real
from ..functions.linalg import solved
from ..tape.apply import wrap
from ..tensors.conversion import tensor_of
from ..values.asked import Asked
from ..values.tensor import Tensor
from .differences import convolve
from .functions import implements
from .values import averaged, floats, promoted, require_vector


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with these coefficients, by Horner's scheme."""
    coefficients, at = promoted([p, x], as_arrays=True)
    total: Any = at * 0
    for place in range(coefficients.shape[0]):
        total = total * at + coefficients[place]
    return total


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Columns of powers, the highest first unless `increasing`."""
    values = require_vector(tensor_of(x), "vander", "x")
    values = as_dtype(values, np.promote_types(array_dtype(values), int))
    count = values.shape[0] if N is None else N
    columns = [values**power if power else values * 0 + 1 for power in range(count)]
    return joining.stack(columns if increasing else columns[::-1], 1)


def _same_length(a1: Any, a2: Any) -> list[Tensor]:
    given = [PUBLIC["atleast_1d"](one) for one in promoted([a1, a2])]
    longest = max(one.shape[0] for one in given)
    return [PUBLIC["pad"](one, (longest - one.shape[0], 0)) for one in given]


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Tensor:
    x, y = _same_length(a1, a2)
    return x + y


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Tensor:
    x, y = _same_length(a1, a2)
    return x - y


implements(np.polymul)(
    lambda a1, a2: convolve(PUBLIC["atleast_1d"](tensor_of(a1)), PUBLIC["atleast_1d"](tensor_of(a2)))
)


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """The quotient and the remainder of two polynomials."""
    dividend, divisor = (PUBLIC["atleast_1d"](averaged(one)) for one in promoted([u, v]))
    steps, size = dividend.shape[0] - divisor.shape[0] + 1, divisor.shape[0]
    if steps < 1:
        return divisor[:1] * 0.0, dividend
    rest, quotient = dividend, []
    for step in range(steps):
        quotient.append(rest[step] / divisor[0])
        taken = PUBLIC["pad"](quotient[-1] * divisor, (step, dividend.shape[0] - step - size))
        rest = rest - taken
    left = rest[steps:] if size > 1 else rest[:0]
    return joining.stack(quotient, 0), left if size > 1 else rest[-1:] * 0.0


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Tensor:
    """The coefficients of the m-th derivative."""
    x = tensor_of(p)
    for _ in range(m):
        x = x[:-1] * np.arange(x.shape[0] - 1, 0, -1)
    return x


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """The coefficients of the m-th antiderivative, with the constants of integration `k`."""
    x = averaged(p)
    constants = np.zeros(m) if k is None else tensor_of(k).reshape(-1)
    for step in range(m):
        constant = constants[step if len(constants) > 1 else 0]
        x = joining.cat([x / np.arange(x.shape[0], 0, -1), tensor_of(constant).reshape(1)], 0)
    return x


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Tensor:
    """The coefficients of the polynomial with these zeros."""
    zeros = averaged(seq_of_zeros)
    if zeros.ndim != 1:
        fail(UnsupportedError, "numpy.poly: the characteristic polynomial of a matrix is not supported.")
    found = one = wrap(np.ones(1, array_dtype(zeros)))
    for place in range(zeros.shape[0]):
        found = convolve(found, joining.cat([one, -zeros[place : place + 1]], 0))
    return found


def in_double(value: Any) -> Tensor:
    return as_dtype(require_real(tensor_of(value), "numpy.polyfit"), np.dtype("float64"))


@implements(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None
) -> Tensor:
    """The coefficients of the polynomial of a degree with the least squared distances from the points.

    Where x is known, they are a matrix times y. Else the normal equations give them, refined once.
    """
    if full:
        fail(UnsupportedError, "numpy.polyfit: full is not supported on a Tensor.")
    precision = np.finfo(array_dtype(averaged(x))).eps
    at, values = in_double(x), in_double(y)  # as `vander` is
    weights = None if w is None else in_double(w)
    if weights is not None:
        values = values * (weights if values.ndim == 1 else weights[:, None])
    if not any(one is not None and (is_traced(one) or one.requires_grad) for one in (at, weights)):
        shares = 1.0 if weights is None else Asked.numpy(weights)[:, None]
        table = np.vander(Asked.numpy(at), deg + 1) * shares
        scale = np.sqrt((table * table).sum(axis=0))
        cut = len(table) * precision if rcond is None else rcond
        return PUBLIC["matmul"](wrap(np.linalg.pinv(table / scale, cut) / scale[:, None]), values)
    powers = vander(at, deg + 1)
    powers = powers if weights is None else powers * weights[:, None]
    scale = PUBLIC["sqrt"](PUBLIC["sum"](powers * powers, 0))
    powers = powers / scale
    squares = PUBLIC["matmul"](powers.T, powers)

    def fitted(target: Tensor) -> Tensor:
        return solved(squares, PUBLIC["matmul"](powers.T, target), target.ndim == 1)

    found = fitted(values)
    found = found + fitted(values - PUBLIC["matmul"](powers, found))
    return found / (scale if found.ndim == 1 else scale[:, None])


# --- numpy.polynomial ---------------------------------------------------------------------------------------


def series(first: Sequence[float], recurrence: Any) -> Any:
    """The sum of coefficients, the lowest first, times polynomials that follow from the two before each."""

    def value(x: Any, c: Any, tensor: bool = True) -> Tensor:
        at, coefficients = floats(x, c)
        before, current = None, at * 0.0 + 1.0
        total = coefficients[0] * current
        for place in range(1, coefficients.shape[0]):
            following = first[0] * at + first[1] if before is None else recurrence(place, at, current, before)
            before, current = current, following
            total = total + coefficients[place] * current
        return total

    return value


SERIES = {
    np.polynomial.polynomial.polyval: series((1.0, 0.0), lambda n, x, a, b: x * a),
    np.polynomial.chebyshev.chebval: series((1.0, 0.0), lambda n, x, a, b: 2.0 * x * a - b),
    np.polynomial.legendre.legval: series(
        (1.0, 0.0), lambda n, x, a, b: ((2 * n - 1) * x * a - (n - 1) * b) / n
    ),
    np.polynomial.hermite.hermval: series((2.0, 0.0), lambda n, x, a, b: 2.0 * x * a - 2.0 * (n - 1) * b),
    np.polynomial.hermite_e.hermeval: series((1.0, 0.0), lambda n, x, a, b: x * a - (n - 1) * b),
    np.polynomial.laguerre.lagval: series(
        (-1.0, 1.0), lambda n, x, a, b: ((2 * n - 1 - x) * a - (n - 1) * b) / n
    ),
}
"""NumPy's function, which does not ask its arguments what they are -> what it does on Tensors."""
