"""Integrals, differentiable by their limits and by all that the integrands depend on.

An adaptive integral is a sum over intervals, chosen without derivatives; its derivatives are those of the
sum, whose intervals keep their shares of the way between the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError
from ..functions.common import fail, one_dim
from ..functions.comparison import where
from ..functions.control_flow import fori_loop, scan, while_loop
from ..functions.movement import movedim
from ..functions.stopping import stop_gradient
from ..functions.structures import structured
from ..tape.apply import of_kind, standing_for
from ..tensors.creation import arange
from ..values.modes import no_grad
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary, NumpyScalar, kind_of_result, plain, settled
from .requirements import Failure, require
from .unknowns import floating_dtype, vector_of_values

Function = Callable[..., Any]
# The nodes and weights of Gauss and Kronrod for 10 and 21 points (R. Piessens and others, QUADPACK, 1983).
_NODES = (
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452,
    0.930157491355708226001207180059508, 0.865063366688984510732096688423493,
    0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784,
    0.294392862701460198131126603103866, 0.148874338981631210884826001129720,
)  # fmt: skip
_KRONROD = (
    0.011694638867371874278064396062192, 0.032558162307964727478818972459390,
    0.054755896574351996031381300244580, 0.075039674810919952767043140916190,
    0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109585166, 0.134709217311473325928054001771707,
    0.142775938577060080797094273138717, 0.147739104901338491374841515972068,
)  # fmt: skip
_MIDDLE = 0.149445554002916905664936468389821
_GAUSS = (
    0.066671344308688137593568809893332, 0.149451349150580593145863396957658,
    0.219086362515982043995534934228163, 0.269266719309996355091226921569469,
    0.295524224714752870173815619188769,
)  # fmt: skip


def _both_sides(half: tuple[float, ...], middle: float, sign: float) -> np.ndarray:
    return np.array([*(sign * one for one in half), middle, *half[::-1]])


NODES = _both_sides(_NODES, 0.0, -1.0)
KRONROD = _both_sides(_KRONROD, _MIDDLE, 1.0)
GAUSS = _both_sides(tuple(one for pair in zip((0.0,) * 5, _GAUSS) for one in pair), 0.0, 1.0)


def quad(
    func: Function,
    a: Any,
    b: Any,
    args: tuple[Any, ...] = (),
    *,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 100,
) -> tuple[Any, Any]:
    """The integral of func(x, *args) from a to b, and an estimate of its error.

    By the rule of Gauss and Kronrod for 21 points, on intervals of which the one with the largest error is
    halved until the sum of errors is small enough.

    Args:
        func: from a number to a number. It need not take arrays.
        a, b: the limits; they have gradients. Infinite ones are Python's or NumPy's numbers.
        epsabs, epsrel: the error that may be left, in all and relative to the integral.
        limit: the most intervals.

    Raises:
        ConvergenceError: the error does not become so small, as where the integral diverges.

    Example:
        >>> grad(lambda a: quad(lambda x: np.exp(-a * x), 0.0, np.inf)[0])(2.0)
        np.float64(-0.25)
    """
    given = structured([a, b], "quad", "limits")
    dtype = floating_dtype(given, "quad")
    integrand, first, last = _on_finite_limits(_number_of(func, args, dtype), a, b, dtype)
    value, error = _adaptive(integrand, first, last, epsabs, epsrel, limit)
    return plain(of_kind(value, NumpyScalar)), plain(of_kind(error, NumpyScalar))


def _number_of(func: Function, args: tuple[Any, ...], dtype: np.dtype) -> Function:
    def integrand(x: Tensor) -> Tensor:
        found = structured(func(plain(of_kind(x, NumpyScalar)), *args), "quad", "the result of func")
        if [math.prod(one._value.shape) for one in found.tensors] != [1]:
            fail(ShapeError, f"quad: func returned {', '.join(map(str, found.specs))}; expected one number.")
        return vector_of_values(found.tensors, dtype)[0]

    return integrand


def _limit(value: Any, dtype: np.dtype) -> Tensor:
    return of_kind(standing_for(value), Auxiliary).to(dtype)


def _is_infinite(value: Any) -> bool:
    is_number = isinstance(value, float | int | np.generic) and not isinstance(value, Tensor)
    return is_number and bool(np.isinf(value))


def _on_finite_limits(func: Function, a: Any, b: Any, dtype: np.dtype) -> tuple[Function, Tensor, Tensor]:
    """The integral with x = a + (1 - t) / t where b is infinite, and the like, as QUADPACK has it."""
    zero, one = _limit(0.0, dtype), _limit(1.0, dtype)
    if _is_infinite(a) and _is_infinite(b):
        if a == b:
            return lambda t: 0.0 * func(t), zero, one
        sign = 1.0 if b > a else -1.0
        return lambda t: sign * (func((1.0 - t) / t) + func((t - 1.0) / t)) / (t * t), zero, one
    if _is_infinite(b):
        start, way = _limit(a, dtype), math.copysign(1.0, b)
        return lambda t: way * func(start + way * (1.0 - t) / t) / (t * t), zero, one
    if _is_infinite(a):
        end, way = _limit(b, dtype), math.copysign(1.0, a)
        return lambda t: -way * func(end + way * (1.0 - t) / t) / (t * t), zero, one
    return func, _limit(a, dtype), _limit(b, dtype)


DIVERGES = Failure(
    "quad: on {0} intervals the error is {1:.1e} and the integral {2:.6g}: it diverges, or the integrand is "
    "too rough. Split the integral where it is, allow more intervals (limit) or a larger error (epsabs, "
    "epsrel)."
)


def _adaptive(
    func: Function, first: Tensor, last: Tensor, epsabs: float, epsrel: float, limit: int
) -> tuple[Tensor, Tensor]:
    start, end = stop_gradient(first), stop_gradient(last)
    with no_grad():
        lefts, rights, values, errors, count = _intervals(func, start, end, epsabs, epsrel, limit)
    error = errors.sum()
    holds = error <= _allowed(values.sum(), epsabs, epsrel)
    one = require(error * 0.0 + 1.0, holds, DIVERGES, count, error, values.sum())
    whole = where(end != start, end - start, 1.0)
    place = (lefts - start) / whole
    width = (rights - lefts) / whole
    way = last - first

    def add(i: Any, total: Tensor) -> Tensor:
        left = first + place[i] * way
        return total + _by_kronrod(func, left, left + width[i] * way)[0]

    return fori_loop(0, count, add, (first - first) * one) * one, error


def _allowed(value: Tensor, epsabs: float, epsrel: float) -> Tensor:
    return (epsrel * value.abs()).clamp(min=epsabs)


def _intervals(
    func: Function, start: Tensor, end: Tensor, epsabs: float, epsrel: float, limit: int
) -> tuple[Tensor, ...]:
    """The borders of intervals, integrals and errors on them, and how many there are."""
    places = arange(limit)
    value, error = _by_kronrod(func, start, end)
    is_first = (places < 1).to(start.dtype)

    def goes_on(state: Any) -> Any:
        _, _, values, errors, count = state
        return (errors.sum() > _allowed(values.sum(), epsabs, epsrel)) & (count < limit)

    def step(state: Any) -> Any:
        lefts, rights, values, errors, count = state
        worst = errors.argmax()
        is_worst, is_new = places == worst, places == count
        left, right = lefts[worst], rights[worst]
        middle = 0.5 * (left + right)
        (one, error), (other, error_of_other) = (
            _by_kronrod(func, left, middle), _by_kronrod(func, middle, right),
        )  # fmt: skip
        return (
            where(is_new, middle, lefts),
            where(is_worst, middle, where(is_new, right, rights)),
            where(is_worst, one, where(is_new, other, values)),
            where(is_worst, error, where(is_new, error_of_other, errors)),
            count + 1,
        )

    state = (is_first * start, is_first * end, is_first * value, is_first * error, places[0] + 1)
    found: tuple[Tensor, ...] = while_loop(goes_on, step, state)
    return found


def _by_kronrod(func: Function, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """The integral on an interval, and QUADPACK's estimate of its error."""
    half = 0.5 * (right - left)
    points = 0.5 * (left + right) + half * _constant(NODES, left)
    _, heights = scan(lambda carry, x: (None, func(x)), None, points)
    weights = _constant(KRONROD, left)
    value = (weights * heights).sum() * half
    plain_heights = stop_gradient(heights)
    size = stop_gradient(half).abs()
    mean = 0.5 * (weights * plain_heights).sum()
    spread = (weights * (plain_heights - mean).abs()).sum() * size
    whole = (weights * plain_heights.abs()).sum() * size
    apart = ((weights - _constant(GAUSS, left)) * plain_heights).sum().abs() * size
    safe = where(spread > 0, spread, 1.0)
    error = where((spread > 0) & (apart > 0), spread * ((200.0 * apart / safe) ** 1.5).clamp(max=1.0), apart)
    return value, error.maximum(50.0 * float(np.finfo(left._value.dtype).eps) * whole)


def _constant(values: np.ndarray, like: Tensor) -> Tensor:
    return of_kind(standing_for(values.astype(like._value.dtype)), Auxiliary)


def dblquad(
    func: Function,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: tuple[Any, ...] = (),
    *,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, Any]:
    """The integral of func(y, x, *args) over y from gfun(x) to hfun(x) and x from a to b: see `quad`.

    Args:
        gfun, hfun: functions of x, or numbers.

    Example:
        >>> dblquad(lambda y, x: x * y, 0.0, 1.0, 0.0, lambda x: x)[0].round(6)
        np.float64(0.125)
    """

    def along(x: Any, *args: Any) -> Any:
        low, high = (one(x) if callable(one) else one for one in (gfun, hfun))
        return quad(lambda y, *args: func(y, x, *args), low, high, args, epsabs=epsabs, epsrel=epsrel)[0]

    return quad(along, a, b, args, epsabs=epsabs, epsrel=epsrel)


def fixed_quad(func: Function, a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5) -> tuple[Any, None]:
    """The integral of func(x, *args) from a to b by Gauss's rule for n points: SciPy's `fixed_quad`.

    Args:
        func: takes all points at once, an array of shape (n,), and gives values with those last.

    Example:
        >>> fixed_quad(lambda x: x ** 4, 0.0, 1.0)[0].round(12)
        np.float64(0.2)
    """
    if _is_infinite(a) or _is_infinite(b):
        fail(ArgumentError, "fixed_quad: the limits must be finite. Use quad for infinite ones.")
    nodes, weights = np.polynomial.legendre.leggauss(n)
    points = (b - a) * (nodes + 1.0) / 2.0 + a
    return (b - a) / 2.0 * (weights * func(points, *args)).sum(-1), None


def simpson(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by Simpson's rule: SciPy's `simpson`.

    With an even number of samples the last interval is that of the parabola through the last three
    (K. V. Cartwright, 2017).

    Args:
        y: the samples; x: where they are, a vector or an array of the shape of y; dx: else their distance.

    Raises:
        ShapeError: x does not fit y. ArgumentError: there are no samples.

    Example:
        >>> simpson(np.array([0.0, 1.0, 4.0]))
        np.float64(2.6666666666666665)
    """
    samples = of_kind(standing_for(np.asarray(y) if isinstance(y, list | tuple) else y), Auxiliary)
    samples = samples if samples.is_floating_point() else samples.double()
    samples = movedim(samples, one_dim(axis, samples.ndim, "simpson"), -1)
    count = samples.shape[-1]
    if not count:
        fail(ArgumentError, "simpson: there are no samples along this axis.")
    if x is None:
        widths = samples[..., 1:] * 0.0 + _limit(dx, samples._value.dtype)
    else:
        places = of_kind(standing_for(np.asarray(x) if isinstance(x, list | tuple) else x), Auxiliary)
        places = movedim(places, axis, -1) if places.ndim > 1 else places
        if places.shape[-1] != count:
            fail(ShapeError, f"simpson: x has {places.shape[-1]} values for {count} samples.")
        widths = samples[..., 1:] * 0.0 + (places[..., 1:] - places[..., :-1])
    total = _by_parabolas(samples, widths, count)
    return plain(settled(of_kind(total, kind_of_result(type(standing_for(y)), total.shape, False)), (y,)))


def _by_parabolas(y: Tensor, h: Tensor, count: int) -> Tensor:
    if count == 1:
        return y[..., 0] * 0.0
    if count == 2:
        return 0.5 * h[..., 0] * (y[..., 0] + y[..., 1])
    last = count - 1 - (count + 1) % 2
    first, second = h[..., 0:last:2], h[..., 1:last:2]
    whole, share = first + second, first / second
    total = (
        whole / 6.0
        * (
            y[..., 0 : last - 1 : 2] * (2.0 - 1.0 / share)
            + y[..., 1:last:2] * (whole * whole / (first * second))
            + y[..., 2 : last + 1 : 2] * (2.0 - share)
        )
    ).sum(-1)  # fmt: skip
    if count % 2:
        return total
    near, far = h[..., -1], h[..., -2]
    own = (2.0 * near**2 + 3.0 * near * far) / (6.0 * (far + near))
    before = (near**2 + 3.0 * near * far) / (6.0 * far)
    two_before = near**3 / (6.0 * far * (far + near))
    return total + own * y[..., -1] + before * y[..., -2] - two_before * y[..., -3]
