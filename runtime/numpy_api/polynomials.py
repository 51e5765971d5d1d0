"""NumPy's functions of polynomials on Tensors: coefficients, the highest power first."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, UnsupportedError
from ..functions import PUBLIC, declared
from ..functions.common import array_dtype, as_dtype, fail, filled, is_traced, require_real
from ..functions.matrices.linalg import solved
from ..functions.shapes import joining
from ..tape.apply import wrap
from ..tensors.conversion import tensor_of
from ..values.asked import Asked
from ..values.tensor import Tensor
from .differences import convolve
from .factorisations import eigenvalues
from .functions import implements
from .protocols import FUNCTIONS
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
    ones = filled(tuple(values._value.shape), 1, array_dtype(values))
    columns = [values**power if power else ones for power in range(count)]
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
    """The coefficients of the polynomial with these zeros, or with the eigenvalues of a matrix as zeros."""
    zeros = averaged(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1]:
        zeros = eigenvalues(zeros)
    if zeros.ndim != 1:
        fail(ArgumentError, "numpy.poly: the argument must be 1d or a square matrix.")
    found = one = wrap(np.ones(1, array_dtype(zeros)))
    for place in range(zeros.shape[0]):
        found = convolve(found, joining.cat([one, -zeros[place : place + 1]], 0))
    return found.real if zeros.is_complex() and _are_conjugate(zeros._detached()) else found


def _are_conjugate(values: Tensor) -> bool:
    """Whether complex numbers are as many, and the same, as their conjugates."""
    return bool(declared.all(PUBLIC["eq"](sorted_complex(values), sorted_complex(values.conj()))))


def sorted_complex(a: Any) -> Tensor:
    """The elements in order, as complex numbers."""
    ordered = FUNCTIONS[np.sort](tensor_of(a))
    if ordered.is_complex():
        return ordered
    is_small = array_dtype(ordered).char in "bhBHf?"
    return as_dtype(ordered, np.dtype("complex64" if is_small else "complex128"))


implements(np.sort_complex)(sorted_complex)


@implements(np.roots)
def roots(p: Any) -> Tensor:
    """The zeros of a polynomial: eigenvalues of its companion matrix, real ones where there are no others."""
    coefficients = PUBLIC["atleast_1d"](averaged(p))
    if coefficients.ndim != 1:
        fail(ArgumentError, "numpy.roots: Input must be a rank-1 array.")
    is_zero = [bool(one) for one in PUBLIC["eq"](coefficients._detached(), 0)]
    if all(is_zero):
        return wrap(np.array([]))
    first, after = is_zero.index(False), len(is_zero) - is_zero[::-1].index(False)
    found = _zeros_of(coefficients[first:after])
    at_zero = len(is_zero) - after
    return joining.cat([found, found.new_zeros(at_zero)], 0) if at_zero else found


def _zeros_of(coefficients: Tensor) -> Tensor:
    """The zeros of a polynomial, of which neither the first nor the last coefficient is 0."""
    count = coefficients.shape[0] - 1
    if not count:
        return wrap(np.zeros(0, array_dtype(coefficients)))
    first = (-coefficients[1:] / coefficients[0])[None]
    below = wrap(np.eye(count - 1, count, dtype=array_dtype(coefficients)))
    return eigenvalues(joining.cat([first, below], 0))


def polyroots(c: Any) -> Tensor:
    """The zeros of a polynomial, the lowest power first among its coefficients, in order."""
    coefficients = PUBLIC["atleast_1d"](averaged(c))
    size = coefficients.shape[0]
    while size > 1 and bool(PUBLIC["eq"](coefficients[size - 1]._detached(), 0)):
        size -= 1
    return FUNCTIONS[np.sort](_zeros_of(coefficients[:size].flip(0)))


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
    precision = float(np.finfo(array_dtype(averaged(x))).eps)
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
    return _fitted(vander(at, deg + 1), values, weights, rcond)


def _fitted(table: Tensor, values: Tensor, weights: Tensor | None, rcond: float | None) -> Tensor:
    """The shares of columns with the least squared distances; `values` are weighted already.

    Where `rcond` is given, singular values of the table up to that times the largest count as 0.
    """
    table = table if weights is None else table * weights[:, None]
    scale = PUBLIC["sqrt"](PUBLIC["sum"](table * table, 0))
    table = table / scale
    if rcond is not None:
        if table.requires_grad:  # the pseudo-inverse's is that of matrices of the same rank
            fail(UnsupportedError, "numpy: fits with rcond have no derivative by x. Leave it out.")
        found = PUBLIC["matmul"](FUNCTIONS[np.linalg.pinv](table, rcond), values)
        return found / (scale if found.ndim == 1 else scale[:, None])
    squares = PUBLIC["matmul"](table.T, table)

    def solution(target: Tensor) -> Tensor:
        return solved(squares, PUBLIC["matmul"](table.T, target), target.ndim == 1)

    found = solution(values)
    found = found + solution(values - PUBLIC["matmul"](table, found))
    return found / (scale if found.ndim == 1 else scale[:, None])


# --- numpy.polynomial ---------------------------------------------------------------------------------------


class Family:
    """Polynomials p_n: p_0 is 1, p_1 is given, each other follows from the two before it.

    Args:
        slope, offset: p_1 at x is slope * x + offset.
        following: p_n of n, x, p_(n - 1) and p_(n - 2).
    """

    def __init__(self, slope: float, offset: float, following: Callable[..., Any]) -> None:
        self._slope, self._offset = slope, offset
        self._following = following

    def _terms(self, x: Tensor) -> Iterator[Tensor]:
        """p_0(x), p_1(x), ..."""
        before, current = x * 0.0 + 1.0, self._slope * x + self._offset
        yield before
        for n in itertools.count(2):
            yield current
            before, current = current, self._following(n, x, current, before)

    def value(self, x: Any, c: Any, tensor: bool = True) -> Tensor:
        """The sum of coefficients, the lowest first, times polynomials.

        Of coefficients with several columns each column is taken at all of x, or with `tensor` false at one.
        """
        at, coefficients = floats(x, c)
        if tensor and coefficients.ndim > 1:
            coefficients = coefficients.reshape((*coefficients.shape, *(1,) * at.ndim))
        terms = zip(range(coefficients.shape[0]), self._terms(at))
        return functools.reduce(operator.add, (coefficients[n] * one for n, one in terms))

    def table(self, x: Any, deg: int) -> Tensor:
        """The polynomials up to a degree, along a new last dimension."""
        at = PUBLIC["atleast_1d"](averaged(x))
        return joining.stack(list(itertools.islice(self._terms(at), deg + 1)), -1)

    def fit(self, x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None) -> Tensor:
        """The coefficients up to a degree with the least squared distances from the points."""
        if full or not isinstance(deg, int | np.integer):
            fail(UnsupportedError, "numpy.polynomial: fits are supported without full, for one degree.")
        values, weights = in_double(y), None if w is None else in_double(w)
        if weights is not None:
            values = values * (weights if values.ndim == 1 else weights[:, None])
        return _fitted(self.table(in_double(x), int(deg)), values, weights, rcond)


_modules = np.polynomial
_FAMILIES = {
    "poly": (_modules.polynomial, Family(1.0, 0.0, lambda n, x, a, b: x * a)),
    "cheb": (_modules.chebyshev, Family(1.0, 0.0, lambda n, x, a, b: 2.0 * x * a - b)),
    "leg": (_modules.legendre, Family(1.0, 0.0, lambda n, x, a, b: ((2 * n - 1) * x * a - (n - 1) * b) / n)),
    "herm": (_modules.hermite, Family(2.0, 0.0, lambda n, x, a, b: 2.0 * x * a - 2.0 * (n - 1) * b)),
    "herme": (_modules.hermite_e, Family(1.0, 0.0, lambda n, x, a, b: x * a - (n - 1) * b)),
    "lag": (_modules.laguerre, Family(-1.0, 1.0, lambda n, x, a, b: ((2 * n - 1 - x) * a - (n - 1) * b) / n)),
}
SERIES = {
    getattr(module, f"{name}{ending}"): getattr(family, form)
    for name, (module, family) in _FAMILIES.items()
    for ending, form in (("val", "value"), ("vander", "table"), ("fit", "fit"))
} | {_modules.polynomial.polyroots: polyroots}
"""NumPy's function, which does not ask its arguments what they are -> what it does on Tensors."""
