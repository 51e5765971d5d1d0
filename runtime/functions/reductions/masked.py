"""Reductions, running totals and normalisations of the elements that a mask shows: torch.masked's.

What is hidden is replaced by what does not count: 0 in a sum, -inf under a maximum. Its gradient is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....tracer.errors import DimensionError, DTypeError
from ....tracer.ops.reduction import highest, lowest
from ...values.tensor import Tensor
from .. import declared
from ..common import (
    Dims,
    Scalar,
    array_dtype,
    as_dtype,
    conjugate,
    fail,
    floating,
    numpy_dtype,
    require_float,
    tensor,
    torch_name,
    truth,
)  # fmt: skip
from ..elements.comparison import where
from ..networks import activation
from ..shapes.movement import broadcast_to
from . import ordering, statistics
from .reduction import mean as mean_of_all

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
    "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _shown(x: Tensor, mask: Any, name: str) -> Tensor:
    """The mask as bools in the shape of x."""
    shown = tensor(mask, name, "mask")
    if shown.ndim > x.ndim:
        fail(
            DimensionError,
            f"masked.{name}(): the mask has more dimensions than the tensor, {tuple(shown.shape)} for "
            f"{tuple(x.shape)}: squeeze() it.",
        )
    return broadcast_to(truth(shown), tuple(x.shape))


def _with(x: Tensor, mask: Any, hidden: Scalar, name: str) -> Tensor:
    """x with `hidden` where the mask is false."""
    return x if mask is None else where(_shown(x, mask, name), x, hidden)


def _below(x: Tensor) -> Scalar:
    """What is largest of nothing; of complex numbers, what adds nothing to a sum of exponentials."""
    return -math.inf if array_dtype(x).kind == "c" else lowest(array_dtype(x))


def _in(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else as_dtype(x, numpy_dtype(dtype))


# --- reductions ---------------------------------------------------------------------------------------------


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum of the elements that the mask shows.

    Example:
        >>> sum(tensor([1.0, 2.0, 4.0]), mask=tensor([True, False, True]))
        tensor(5.)
    """
    return declared.sum(_with(tensor(input, "sum"), mask, 0, "sum"), dim, keepdim, dtype=dtype)


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product of the elements that the mask shows.

    Example:
        >>> prod(tensor([1.0, 2.0, 4.0]), mask=tensor([True, False, True]))
        tensor(4.)
    """
    return declared.prod(_with(tensor(input, "prod"), mask, 1, "prod"), dim, keepdim, dtype=dtype)


def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The largest element that the mask shows; of none the least number of the dtype.

    Example:
        >>> amax(tensor([1.0, 2.0]), mask=tensor([True, False]))
        tensor(1.)
    """
    x = tensor(input, "amax")
    return _in(declared.amax(_with(x, mask, lowest(array_dtype(x)), "amax"), dim, keepdim), dtype)


def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest element that the mask shows; of none the greatest number of the dtype.

    Example:
        >>> amin(tensor([1.0, 2.0]), mask=tensor([False, True]))
        tensor(2.)
    """
    x = tensor(input, "amin")
    return _in(declared.amin(_with(x, mask, highest(array_dtype(x)), "amin"), dim, keepdim), dtype)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the largest element is that the mask shows, in the dtype of the tensor, as PyTorch has it.

    Example:
        >>> argmax(tensor([1.0, 2.0]), mask=tensor([True, False]), dtype=int64)
        tensor(0)
    """
    x = tensor(input, "argmax")
    found = declared.argmax(_with(x, mask, lowest(array_dtype(x)), "argmax"), dim, keepdim)
    return _in(found, dtype or x.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the smallest element is that the mask shows, in the dtype of the tensor, as PyTorch has it.

    Example:
        >>> argmin(tensor([1.0, 2.0]), mask=tensor([False, True]), dtype=int64)
        tensor(1)
    """
    x = tensor(input, "argmin")
    found = declared.argmin(_with(x, mask, highest(array_dtype(x)), "argmin"), dim, keepdim)
    return _in(found, dtype or x.dtype)


def _count(x: Tensor, dim: Dims, keepdim: bool, mask: Any, name: str) -> Tensor:
    """How many elements the mask shows, in the dtype of x."""
    shown = where(_shown(x, True if mask is None else mask, name), 1.0, 0.0)
    return declared.sum(as_dtype(shown, array_dtype(x)), dim, keepdim)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements that the mask shows; of none nan.

    Raises:
        DTypeError: the tensor is not floating, and no `dtype` is given that is.

    Example:
        >>> mean(tensor([1.0, 2.0, 4.0]), mask=tensor([True, False, True]))
        tensor(2.5000)
    """
    x = _in(tensor(input, "mean"), dtype)
    require_float(x, "mean")
    if mask is None:
        return mean_of_all(x, dim, keepdim)
    return sum(x, dim, keepdim=keepdim, mask=mask) / _count(x, dim, keepdim, mask, "mean")


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The median of the elements that the mask shows, the lower one of two; of none nan.

    Raises:
        DTypeError: the tensor is not floating.

    Example:
        >>> median(tensor([1.0, 2.0, 4.0]), mask=tensor([True, True, False]))
        tensor(1.)
    """
    x = tensor(input, "median")
    if array_dtype(x).kind != "f":
        fail(DTypeError, f"masked.median(): expected floats, found {torch_name(x)}. Convert with .float().")
    found: Tensor = ordering.nanmedian(_with(x, mask, math.nan, "median"), dim, keepdim).values
    return _in(found, dtype)


def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The norm of the elements that the mask shows: see `linalg.vector_norm`.

    Example:
        >>> norm(tensor([3.0, 9.0, 4.0]), mask=tensor([True, False, True]))
        tensor(5.)
    """
    order = 2.0 if ord is None else ord
    hidden = math.inf if order == -math.inf else 0
    x = _with(tensor(input, "norm"), mask, hidden, "norm")
    return statistics.vector_norm(x, order, dim, keepdim, dtype=dtype)


def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance of the elements that the mask shows; see `var`.

    Example:
        >>> var(tensor([1.0, 2.0, 9.0]), mask=tensor([True, True, False]))
        tensor(0.5000)
    """
    x = _in(floating(input, "var"), dtype)
    centred = x - mean(x, dim, keepdim=True, mask=mask)
    total = sum(centred * conjugate(centred), dim, keepdim=keepdim, mask=mask)
    taken = correction if correction is not None else float(unbiased is not False)
    freedom = declared.maximum(_count(x.real, dim, keepdim, mask, "var") - taken, tensor(0.0, "var"))
    return total / as_dtype(freedom, array_dtype(total))


def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation of the elements that the mask shows, the root of `var`.

    Example:
        >>> std(tensor([1.0, 3.0, 9.0]), correction=0, mask=tensor([True, True, False]))
        tensor(1.)
    """
    options: dict[str, Any] = {"correction": correction, "keepdim": keepdim, "dtype": dtype, "mask": mask}
    return declared.sqrt(var(input, dim, unbiased, **options))


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of the exponentials of the elements that the mask shows.

    Example:
        >>> logsumexp(tensor([0.0, 5.0, 0.0]), mask=tensor([True, False, True]))
        tensor(0.6931)
    """
    x = tensor(input, "logsumexp")
    found = statistics.logsumexp(_with(x, mask, _below(x), "logsumexp"), dim, keepdim)
    return _in(found, dtype or x.dtype)


# --- of the same shape ----------------------------------------------------------------------------------


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along a dimension, to which only elements add that the mask shows.

    Example:
        >>> cumsum(tensor([1.0, 2.0, 4.0]), 0, mask=tensor([True, False, True]))
        tensor([1., 1., 5.])
    """
    x = tensor(input, "cumsum")
    return declared.cumsum(_with(x, mask, 0, "cumsum"), dim, dtype=dtype or x.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running product along a dimension of the elements that the mask shows.

    Example:
        >>> cumprod(tensor([1.0, 2.0, 4.0]), 0, mask=tensor([True, False, True]))
        tensor([1., 1., 4.])
    """
    x = tensor(input, "cumprod")
    return declared.cumprod(_with(x, mask, 1, "cumprod"), dim, dtype=dtype or x.dtype)


def _distributed(
    function: Callable[..., Tensor], input: Tensor, dim: int, dtype: Any, mask: Any, sign: int
) -> Tensor:
    """exp(sign * x), or its logarithm, in proportion to the sum of what the mask shows."""
    x = _in(floating(input, function.__name__), dtype)
    return function(_with(x, mask, -sign * math.inf, function.__name__), dim)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`softmax` of the elements that the mask shows, and 0 elsewhere; nan where it shows none.

    Example:
        >>> softmax(tensor([0.0, 5.0, 0.0]), 0, mask=tensor([True, False, True]))
        tensor([0.5000, 0.0000, 0.5000])
    """
    return _distributed(activation.softmax, input, dim, dtype, mask, 1)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of `softmax` of the elements that the mask shows, and -inf elsewhere.

    Example:
        >>> log_softmax(tensor([0.0, 5.0, 0.0]), 0, mask=tensor([True, False, True]))
        tensor([-0.6931,    -inf, -0.6931])
    """
    return _distributed(activation.log_softmax, input, dim, dtype, mask, 1)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`softmin` of the elements that the mask shows, and 0 elsewhere.

    Example:
        >>> softmin(tensor([0.0, 5.0, 0.0]), 0, mask=tensor([True, False, True]))
        tensor([0.5000, 0.0000, 0.5000])
    """
    return _distributed(activation.softmin, input, dim, dtype, mask, -1)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The elements that the mask shows over their norm along a dimension, but at least `eps`; 0 elsewhere.

    Example:
        >>> normalize(tensor([3.0, 9.0, 4.0]), 2, 0, mask=tensor([True, False, True]))
        tensor([0.6000, 0.0000, 0.8000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    x = _with(tensor(input, "normalize"), mask, 0, "normalize")
    return x / declared.maximum(size, tensor(eps, "normalize"))


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """log(exp(input) + exp(other)) with exponentials of 0 where a mask is false.

    Example:
        >>> logaddexp(tensor([0.0, 0.0]), tensor([0.0, 0.0]), input_mask=tensor([True, False]))
        tensor([0.6931, 0.0000])
    """
    x, y = tensor(input, "logaddexp"), tensor(other, "logaddexp", "other")
    pair = (_with(x, input_mask, _below(x), "logaddexp"), _with(y, other_mask, _below(y), "logaddexp"))
    return _in(declared.logaddexp(*pair), dtype or x.dtype)
