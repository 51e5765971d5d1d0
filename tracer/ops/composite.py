"""Operators made of others: one node and one rule, and a `body` of simpler operators for what follows.

In a graph they stay whole until it is differentiated, so that their own, better rule is used. A loop's
reverse is made of bodies, but for operators with `needs_own_rule`: it may be differentiated again.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..dims import share
from ..operator import HOLOMORPHIC, OWN_RULES, TOGETHER, Array, Operator, declare
from ..spec import Spec, real_dtype, reduced_shape
from .elementwise import (
    absolute,
    clamp,
    conjugate,
    convert,
    equal,
    exp,
    is_complex,
    less_equal,
    log,
    multiply,
    real,
    real_part,
    scaled,
    sgn,
    sign,
    sqrt,
    where,
)
from .lazy import HALF
from .movement import between, concatenate, flip, pad, reshape
from .reduction import (
    ARRAYS,
    amax,
    linear_recurrence,
    restore_dims,
    running_largest,
    spread,
    sum_,
)


def composite(
    name: str,
    *,
    infer: Callable[..., Spec],
    body: Callable[..., Array],
    vjp: Mapping[str, Callable[..., Array]],
    evaluate: Callable[..., Any] | None = None,
    **fields: Any,
) -> Operator:
    """Declare an operator by its body, which evaluates it as well unless told otherwise."""
    value = evaluate or body
    return declare(name, "composite", "x", infer=infer, evaluate=value, body=body, vjp=vjp, **fields)


def _in_single(body: Callable[..., Array]) -> Callable[..., Array]:
    """The values of half precision by way of float32: the square of 256 is beyond its largest number."""

    def evaluate(x: Any, **attributes: Any) -> Any:
        if getattr(x, "dtype", None) != HALF:
            return body(x, **attributes)
        with np.errstate(over="ignore"):  # of results: they are infinite, as PyTorch's
            return np.asarray(body(x.astype(np.float32), **attributes)).astype(HALF)

    return evaluate


def _same(x: Spec, **attributes: Any) -> Spec:
    return x


def _reduced(x: Spec, dims: tuple[int, ...], keepdim: bool, **attributes: Any) -> Spec:
    return x.with_shape(reduced_shape(x.shape, dims, keepdim))


def _real_reduced(x: Spec, **attributes: Any) -> Spec:
    return _reduced(x, **attributes).with_dtype(real_dtype(x.dtype))


def _spec(x: Array) -> Spec:
    return Spec(tuple(x.shape), np.dtype(getattr(x.dtype, "numpy", x.dtype)))


def count_of(x: Spec | Array, dims: tuple[int, ...]) -> int:
    """How many elements a reduction of x over `dims` combines."""
    shape = x.shape
    return math.prod([shape[dim] for dim in dims])


def _over(total: Array, count: float, times: float = 1.0) -> Array:
    """total * times / count, with no warning: over nothing 0 is nan, and what is not 0 infinite."""
    if not count:
        return total * math.inf
    return total * (times / count if isinstance(total, ARRAYS) else share(count, times))


def _mean(x: Array, dims: tuple[int, ...], keepdim: bool) -> Array:
    return _over(sum_(x, dims=dims, keepdim=keepdim), count_of(x, dims))


mean = composite(
    "mean",
    infer=_reduced,
    body=_mean,
    vjp={
        "x": lambda g, x_spec, dims: spread(_over(g, count_of(x_spec, dims)), x_spec, dims),
    },
    of_complex=HOLOMORPHIC,
    linear=TOGETHER,
    doc="the mean; nan of nothing",
)


def _variance(x: Array, dims: tuple[int, ...], keepdim: bool, correction: float) -> Array:
    centred = x - _mean(x, dims, True)
    freedom = max(count_of(_spec(x), dims) - correction, 0)
    return _over(sum_(_squared_size(centred), dims=dims, keepdim=keepdim), freedom)


def _squared_size(x: Array) -> Array:
    """|x| ** 2"""
    return real(x * conjugate(x)) if is_complex(x) else x * x


def _variance_cotangent(g: Array, x: Array, x_spec: Spec, dims: tuple[int, ...], correction: float) -> Array:
    freedom = max(count_of(x_spec, dims) - correction, 0)
    return scaled(restore_dims(_over(g, freedom, 2.0), x_spec, dims), x - mean(x, dims=dims, keepdim=True))


def _deviation_cotangent(
    g: Array, x: Array, y: Array, x_spec: Spec, dims: tuple[int, ...], correction: float
) -> Array:
    """0 where the deviation is no more than the mean of equal numbers may be rounded by."""
    g, y = restore_dims(g, x_spec, dims), restore_dims(y, x_spec, dims)
    centre = mean(x, dims=dims, keepdim=True)
    is_none = less_equal(y, absolute(centre) * (4.0 * float(np.finfo(x_spec.dtype).eps)))
    share = where(is_none, 0.0, g / where(is_none, 1.0, y))
    freedom = max(count_of(x_spec, dims) - correction, 0)
    return scaled(_over(share, freedom), x - centre)


def _deviation(x: Array, dims: tuple[int, ...], keepdim: bool, correction: float) -> Array:
    return sqrt(_variance(x, dims, keepdim, correction))


var = composite(
    "var",
    infer=_real_reduced,
    of_complex=OWN_RULES,
    body=_variance,
    evaluate=_in_single(_variance),
    vjp={"x": _variance_cotangent},
    doc="the variance: squared deviations over n - correction",
)
std = composite(
    "std",
    infer=_real_reduced,
    of_complex=OWN_RULES,
    needs_own_rule=True,
    body=_deviation,
    evaluate=_in_single(_deviation),
    vjp={
        "x": lambda g, x, y, x_spec, dims, correction: _deviation_cotangent(g, x, y, x_spec, dims, correction)
    },
    doc="the standard deviation: the root of var; the derivative where all are equal is taken as 0",
)


def _shifted_exp(x: Array, dims: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """exp(x - shift), its sum, and the shift: the largest, or what `finite` makes of it."""
    largest = amax(real_part(x), dims=dims, keepdim=True)
    shift = finite(largest)
    if is_complex(x):
        shift = convert(shift, dtype=_spec(x).dtype)
    exponentials = exp(x - shift)
    return exponentials, sum_(exponentials, dims=dims, keepdim=True), shift


def finite(largest: Array) -> Array:
    """What to take off before `exp`: of an infinite number the largest finite one, so that beside inf all
    others vanish, and -inf itself does."""
    most = float(np.finfo(_spec(largest).dtype).max)
    return clamp(largest, -most, most)


def _logsumexp(x: Array, dims: tuple[int, ...], keepdim: bool) -> Array:
    _, total, shift = _shifted_exp(x, dims)
    result = log(total) + shift
    return result if keepdim else sum_(result, dims=dims, keepdim=False)


def exp_less_logsumexp(x: Array, dims: tuple[int, ...]) -> Array:
    """exp(x - logsumexp(x)), as the derivative has it, from the exponentials that logsumexp has computed."""
    exponentials, total, _ = _shifted_exp(x, dims)
    return exponentials / where(equal(total, 0.0), 1.0, total)


logsumexp = composite(
    "logsumexp",
    infer=_reduced,
    needs_own_rule=True,
    of_complex=HOLOMORPHIC,
    body=_logsumexp,
    vjp={
        "x": lambda g, x, y, x_spec, dims: (
            restore_dims(g, x_spec, dims) * exp(x - _above_nothing(restore_dims(y, x_spec, dims)))
        )
    },
    doc="log(sum(exp(x))) without overflow",
)


def _running_logsumexp(x: Array, dim: int) -> Array:
    """Sums of exponentials less the largest so far, each brought to the next such number."""
    shift = finite(running_largest(x, dim=dim))
    total = linear_recurrence(_decay(shift, dim, first=True), exp(x - shift), dim=dim)
    return log(total) + shift


def _decay(x: Array, dim: int, first: bool) -> Array:
    """exp(x_{i-1} - x_i) of what does not fall along a dimension, with 0 in front, or at the end instead."""
    count = x.shape[dim]
    distance = min(1, count)
    falls = exp(between(x, dim, 0, count - distance) - between(x, dim, distance, count))
    around = (distance, 0) if first else (0, distance)
    widths = tuple(around if axis == dim else (0, 0) for axis in range(len(x.shape)))
    return pad(falls, widths=widths, value=0.0)


def _running_logsumexp_cotangent(g: Array, x: Array, y: Array, dim: int) -> Array:
    """exp(x_j) * sum(g_i * exp(-y_i)) over the places from j on, relative to y_j, so none overflows."""
    decay = flip(_decay(finite(y), dim, first=False), dims=(dim,))
    totals = flip(linear_recurrence(decay, flip(g, dims=(dim,)), dim=dim), dims=(dim,))
    return totals * exp(x - _above_nothing(y))


running_logsumexp = declare(
    "running_logsumexp", "composite", "x", infer=_same, body=_running_logsumexp, needs_own_rule=True,
    evaluate=lambda x, dim: np.logaddexp.accumulate(x, axis=dim),
    vjp={"x": _running_logsumexp_cotangent}, grad_fn="Logcumsumexp",
    doc="log(cumsum(exp(x))) along a dimension, without overflow",
)  # fmt: skip


def _above_nothing(x: Array) -> Array:
    """x, with -inf, the logarithm of nothing, replaced by 0, so that inf - inf does not arise."""
    return where(equal(x, -math.inf), 0.0, x)


def _softmax(x: Array, dim: int) -> Array:
    weights = exp(x - amax(x, dims=(dim,), keepdim=True))
    return weights / sum_(weights, dims=(dim,), keepdim=True)


def _log_softmax(x: Array, dim: int) -> Array:
    shifted = x - amax(x, dims=(dim,), keepdim=True)
    return shifted - log(sum_(exp(shifted), dims=(dim,), keepdim=True))


softmax = composite(
    "softmax",
    infer=_same,
    body=_softmax,
    vjp={"x": lambda g, y, dim: y * (g - sum_(multiply(g, y), dims=(dim,), keepdim=True))},
    doc="exp(x) over its sum along a dimension",
)
log_softmax = composite(
    "log_softmax",
    infer=_same,
    body=_log_softmax,
    grad_fn="LogSoftmax",
    vjp={"x": lambda g, y, dim: g - exp(y) * sum_(g, dims=(dim,), keepdim=True)},
    doc="the logarithm of softmax",
)


def _zero_at(y: Array, g: Array) -> Array:
    """g / y, and 0 where y is 0, in this and in every further derivative."""
    at_zero = equal(y, 0.0)
    return where(at_zero, 0.0, g / where(at_zero, 1.0, y))


def _norm(x: Array, dims: tuple[int, ...], keepdim: bool, order: float) -> Array:
    if order == 2:
        return sqrt(sum_(_squared_size(x), dims=dims, keepdim=keepdim))
    if order == 1:
        return sum_(absolute(x), dims=dims, keepdim=keepdim)
    return sum_(absolute(x) ** order, dims=dims, keepdim=keepdim) ** (1.0 / order)


def _norm_cotangent(g: Array, x: Array, y: Array, x_spec: Spec, dims: tuple[int, ...], order: float) -> Array:
    g = restore_dims(g, x_spec, dims)
    direction = sgn if is_complex(x) else sign
    if order == 1:
        return scaled(g, direction(x))
    y = restore_dims(y, x_spec, dims)
    if order == 2:
        return scaled(_zero_at(y, g), x)
    if order < 1:
        at_zero = equal(y, 0.0)
        share = where(at_zero, 0.0, g / where(at_zero, 1.0, y) ** (order - 1.0))
        return scaled(scaled(share, direction(x)), where(equal(x, 0.0), 1.0, absolute(x)) ** (order - 1.0))
    return scaled(scaled(_zero_at(y ** (order - 1.0), g), direction(x)), absolute(x) ** (order - 1.0))


norm = composite(
    "norm",
    infer=_real_reduced,
    of_complex=OWN_RULES,
    needs_own_rule=True,
    body=_norm,
    evaluate=_in_single(_norm),
    grad_fn="LinalgVectorNorm",
    vjp={"x": _norm_cotangent},
    doc="`(sum |x| ** order) ** (1 / order)`, for a finite order other than 0; the derivative at 0 is 0",
)


def _with_new_dim(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], 1, *shape[dim:])


def _infer_stack(*specs: Spec, dim: int) -> Spec:
    shape = specs[0].shape
    return specs[0].with_shape((*shape[:dim], len(specs), *shape[dim:]))


def _stack(*xs: Array, dim: int) -> Array:
    return concatenate(*(reshape(x, shape=_with_new_dim(tuple(x.shape), dim)) for x in xs), dim=dim)


def _layer(g: Array, specs: tuple[Spec, ...], index: int, dim: int) -> Array:
    """The part of the cotangent `g` that belongs to operand `index`."""
    if isinstance(g, np.ndarray):
        return g[(slice(None),) * dim + (index,)]
    return reshape(between(g, dim, index, index + 1), shape=specs[index].shape)


stack = declare(
    "stack", "composite", "*xs", infer=_infer_stack, body=_stack,
    evaluate=lambda *xs, dim: np.stack(xs, axis=dim) if dim else np.array(xs),
    vjp={"xs": _layer}, of_complex=HOLOMORPHIC, linear=TOGETHER,
    doc="arrays of one shape side by side along a new dimension",
)  # fmt: skip
