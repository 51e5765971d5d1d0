"""Integrals, differentiable by their limits and by all that the integrands depend on.

An adaptive integral is a sum over intervals, chosen without derivatives; its derivatives are those of the
sum, whose intervals keep their shares of the way between the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError
from ...tracer.trace import is_tracing
from ..functions.common import fail
from ..functions.elements.comparison import where
from ..functions.loops.control_flow import fori_loop, scan, while_loop
from ..functions.shapes.joining import stack
from ..functions.stopping import stop_gradient
from ..functions.structures import structured
from ..tape.apply import of_kind, standing_for
from ..tensors.creation import arange
from ..values.modes import is_recording, no_grad
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary, NumpyScalar, plain
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
    points: Sequence[float] | None = None,
) -> tuple[Any, Any]:
    """The integral of `func(x, *args)` from a to b, and an estimate of its error.

    By the rule of Gauss and Kronrod for 21 points, on intervals of which the one with the largest error is
    halved until the sum of errors is small enough.

    Args:
        func: from a number to a number. It need not take arrays.
        a, b: the limits; they have gradients. Infinite ones are Python's or NumPy's numbers.
        epsabs, epsrel: the error that may be left, in all and relative to the integral.
        limit: the most intervals.
        points: where the integrand is not smooth, between finite limits: the integral is split there.

    Raises:
        ConvergenceError: the error does not become so small, as where the integral diverges. ArgumentError:
            points beside infinite limits.

    Example:
        >>> grad(lambda a: quad(lambda x: np.exp(-a * x), 0.0, np.inf)[0])(2.0).round(6)
        np.float64(-0.25)
    """
    given = structured([a, b], "quad", "limits")
    dtype = floating_dtype(given, "quad")
    if points is not None and len(points):
        if _is_infinite(a) or _is_infinite(b):
            fail(ArgumentError, "quad: points are for finite limits. Split an infinite integral in two.")
        return _in_pieces(func, [a, *sorted(map(float, points)), b], args, epsabs, epsrel, limit)
    integrand, first, last = _on_finite_limits(_number_of(func, args, dtype), a, b, dtype)
    value, error = _adaptive(integrand, first, last, epsabs, epsrel, limit)
    return plain(of_kind(value, NumpyScalar)), plain(of_kind(error, NumpyScalar))


def _in_pieces(
    func: Function, ends: Sequence[Any], args: tuple[Any, ...], epsabs: float, epsrel: float, limit: int
) -> tuple[Any, Any]:
    """The sum of the integrals between neighbours."""
    pieces = [
        quad(func, low, high, args, epsabs=epsabs, epsrel=epsrel, limit=limit)
        for low, high in pairwise(ends)
    ]
    value, error = pieces[0]
    for more, its_error in pieces[1:]:
        value, error = value + more, error + its_error
    return value, error


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
    if not is_tracing():
        return _of_known_limits(func, first, last, epsabs, epsrel, limit)
    start, end = stop_gradient(first), stop_gradient(last)
    with no_grad():
        lefts, rights, values, errors, count = _intervals(func, start, end, epsabs, epsrel, limit)
    error = errors.sum()
    holds = (error <= _allowed(values.sum(), epsabs, epsrel)) & values.sum().isfinite()
    one = require(error * 0.0 + 1.0, holds, DIVERGES, count, error, values.sum())
    if not is_recording():  # as inside of an outer integral's search for intervals
        return values.sum() * one, error
    is_point = end == start
    whole = where(is_point, 1.0, end - start)
    place = (lefts - start) / whole
    width = where(is_point, 1.0, (rights - lefts) / whole)
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
    none = (places < 0).to(start.dtype)

    def goes_on(state: Any) -> Any:
        _, _, values, errors, count = state
        is_rough = errors.sum() > _allowed(values.sum(), epsabs, epsrel)
        return (is_rough | (count < 1)) & (count < limit)

    def step(state: Any) -> Any:
        """The whole at first, and then both halves of the interval with the largest error."""
        lefts, rights, values, errors, count = state
        worst, is_first = errors.argmax(), count < 1
        left, right = lefts[worst], rights[worst]
        middle = where(is_first, right, 0.5 * (left + right))
        lows, highs, sides = stack([left, middle]), stack([middle, right]), arange(2)

        def measured(i: Any, known: Any) -> Any:
            new = _by_kronrod(func, lows[i], highs[i])
            return tuple(where(sides == i, one, other) for one, other in zip(new, known))

        nothing = 0.0 * lows
        found, error = fori_loop(0, where(is_first, 1, 2), measured, (nothing, nothing))
        is_worst, is_new = places == worst, (places == count) & (count > 0)
        return (
            where(is_new, middle, lefts),
            where(is_worst, middle, where(is_new, right, rights)),
            where(is_worst, found[0], where(is_new, found[1], values)),
            where(is_worst, error[0], where(is_new, error[1], errors)),
            count + 1,
        )

    state = (none + start, none + end, none, none, places[0])
    found: tuple[Tensor, ...] = while_loop(goes_on, step, state)
    return found


def _of_known_limits(
    func: Function, first: Tensor, last: Tensor, epsabs: float, epsrel: float, limit: int
) -> tuple[Tensor, Tensor]:
    """The same where values are known: the tape keeps what the search evaluates, of halved intervals too.

    Intervals are shares of the way between the limits.
    """
    dtype = first.payload.dtype
    nodes, weights, without = (one.astype(dtype) for one in (NODES, KRONROD, KRONROD - GAUSS))
    start, way = first.payload[()], last.payload[()] - first.payload[()]
    moves = is_recording() and (first.requires_grad or last.requires_grad)
    moved = last - first

    def measured(left: float, right: float) -> tuple[Any, ...]:
        half = 0.5 * (right - left)
        shares = 0.5 * (left + right) + half * nodes
        points = [
            first + share * moved if moves else make(np.asarray(start + share * way, dtype), Auxiliary)
            for share in shares.tolist()
        ]
        heights = [func(one) for one in points]
        known = np.array([one.payload for one in heights])
        return left, right, *_of_heights(known, half * way, weights, without), heights

    found = [measured(0.0, 1.0)]
    while True:
        _, _, values, errors, _ = zip(*found)
        value, error = sum(values), sum(errors)
        if not error > max(epsabs, epsrel * abs(value)) or len(found) >= limit:
            break
        worst = int(np.argmax(errors))
        left, right = found[worst][:2]
        found[worst : worst + 1] = (
            measured(left, 0.5 * (left + right)), measured(0.5 * (left + right), right)
        )  # fmt: skip
    heights = stack([height for *_, heights in found for height in heights])
    factors = np.concatenate([0.5 * (right - left) * weights for left, right, *_ in found])
    total = (_constant(factors, first) * heights).sum() * moved
    holds = np.asarray(np.isfinite(value) and error <= max(epsabs, epsrel * abs(value)))
    return require(total, holds, DIVERGES, len(found), error, value), _constant(np.asarray(error), first)


def _of_heights(heights: np.ndarray, half: Any, weights: np.ndarray, without: np.ndarray) -> tuple[Any, Any]:
    """The integral of known values on an interval, and QUADPACK's estimate of its error."""
    value, size = (weights * heights).sum() * half, abs(half)
    spread = (weights * abs(heights - 0.5 * (weights * heights).sum())).sum() * size
    apart = abs((without * heights).sum()) * size
    error = spread * min(1.0, (200.0 * apart / spread) ** 1.5) if spread > 0 and apart > 0 else apart
    return value, max(error, 50.0 * np.finfo(heights.dtype).eps * (weights * abs(heights)).sum() * size)


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
    """The integral of `func(y, x, *args)` over y from gfun(x) to hfun(x) and x from a to b: see `quad`.

    Args:
        gfun, hfun: functions of x, or numbers.

    Example:
        >>> dblquad(lambda y, x: x * y, 0.0, 1.0, 0.0, lambda x: x)[0].round(6)
        np.float64(0.125)
    """
    inner = lambda x, *args: _between(gfun, hfun)(x)  # noqa: E731
    return nquad(func, [inner, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Function,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: tuple[Any, ...] = (),
    *,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, Any]:
    """The integral of `func(z, y, x, *args)` over z from qfun(x, y) to rfun(x, y), y from gfun(x) to hfun(x),
    and x from a to b: see `dblquad`.

    Example:
        >>> tplquad(lambda z, y, x: x * y * z, 0.0, 1.0, 0.0, 1.0, 0.0, lambda x, y: x)[0].round(6)
        np.float64(0.0625)
    """
    ranges = [
        lambda y, x, *args: _between(qfun, rfun)(x, y),
        lambda x, *args: _between(gfun, hfun)(x),
        (a, b),
    ]
    return nquad(func, ranges, args, {"epsabs": epsabs, "epsrel": epsrel})


def _between(low: Any, high: Any) -> Function:
    """Limits that are functions of the outer variables, or numbers."""
    return lambda *outer: tuple(one(*outer) if callable(one) else one for one in (low, high))


def nquad(
    func: Function, ranges: Sequence[Any], args: tuple[Any, ...] = (), opts: Any = None
) -> tuple[Any, Any]:
    """The integral of `func(x0, ..., xn, *args)` over all of them, x0 innermost: SciPy's `nquad`.

    Args:
        ranges: of each variable the limits, or a function of the outer variables and `args` that gives them.
        opts: options of `quad`: a dict, or one for each variable.

    Raises:
        ArgumentError: as of `quad`, or the numbers of ranges and options differ.

    Example:
        >>> nquad(lambda y, x: x * y, [lambda x: (0.0, x), (0.0, 1.0)])[0].round(6)
        np.float64(0.125)
    """
    options = list(opts) if isinstance(opts, list | tuple) else [opts or {}] * len(ranges)
    if len(options) != len(ranges):
        fail(ArgumentError, f"nquad: {len(options)} options for {len(ranges)} ranges.")

    def over(place: int, outer: tuple[Any, ...]) -> tuple[Any, Any]:
        """Over the variables up to one, where the outer ones are known."""
        limits, options_here = (
            one(*outer, *args) if callable(one) else one for one in (ranges[place], options[place])
        )

        def integrand(x: Any) -> Any:
            return over(place - 1, (x, *outer))[0] if place else func(x, *outer, *args)

        return quad(integrand, *limits, **options_here)

    return over(len(ranges) - 1, ())


def fixed_quad(func: Function, a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5) -> tuple[Any, None]:
    """The integral of `func(x, *args)` from a to b by Gauss's rule for n points: SciPy's `fixed_quad`.

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
