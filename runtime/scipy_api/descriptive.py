"""Statistics of samples in `scipy.stats` on Tensors: `zscore`, `gmean`, `skew`, `pearsonr`, `entropy`, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...tracer.errors import UnsupportedError
from ..functions import PUBLIC, declared
from ..functions.common import as_dtype, fail
from ..functions.elements.arithmetic import product_with_log
from ..numpy_api.protocols import UFUNCS
from ..numpy_api.values import averaged, floats
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor

where, log, exp, sqrt = (PUBLIC[name] for name in ("where", "log", "exp", "sqrt"))


def _sample(function: str, a: Any, axis: int | None, nan_policy: str = "propagate") -> tuple[Tensor, int]:
    """Floats, and the axis along which a sample lies; all of them are one for None."""
    if nan_policy != "propagate":
        fail(
            UnsupportedError,
            f"scipy.stats.{function}: nan_policy={nan_policy!r} is not supported on a Tensor. Leave nan out "
            "before.",
        )
    x = averaged(a)
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def _mean(x: Tensor, axis: int, weights: Any, keepdims: bool) -> Tensor:
    if weights is None:
        return PUBLIC["mean"](x, axis, keepdims)
    factors = averaged(weights)
    if factors.ndim == 1 != x.ndim:
        factors = factors.reshape([-1 if dim == axis % x.ndim else 1 for dim in range(x.ndim)])
    total = declared.sum(PUBLIC["broadcast_to"](factors, tuple(x.shape)), axis, keepdims)
    return declared.sum(x * factors, axis, keepdims) / total


def _in_dtype(dtype: Any, a: Any, weights: Any) -> tuple[Any, Any]:
    """A sample and its weights in the dtype that is asked for."""
    if dtype is None:
        return a, weights
    kind = np.dtype(dtype)
    return as_dtype(tensor_of(a), kind), None if weights is None else as_dtype(tensor_of(weights), kind)


def _power_mean(
    p: float, function: str, a: Any, axis: Any, dtype: Any, weights: Any, policy: str, keepdims: bool
) -> Any:
    """Of numbers that are not negative; else it is nan."""
    a, weights = _in_dtype(dtype, a, weights)
    x, axis = _sample(function, a, axis, policy)
    x = where(x < 0, math.nan, x)
    return _mean(x**p, axis, weights, keepdims) ** (1.0 / p)


def gmean(
    a: Any, axis: int | None = 0, dtype: Any = None, weights: Any = None, *, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    a, weights = _in_dtype(dtype, a, weights)
    x, axis = _sample("gmean", a, axis, nan_policy)
    return exp(_mean(log(x), axis, weights, keepdims))


def hmean(
    a: Any, axis: int | None = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    return _power_mean(-1.0, "hmean", a, axis, dtype, weights, nan_policy, keepdims)


def pmean(
    a: Any, p: float, *, axis: int | None = 0, dtype: Any = None, weights: Any = None,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Tensor:  # fmt: skip
    if p == 0:
        return gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    return _power_mean(float(p), "pmean", a, axis, dtype, weights, nan_policy, keepdims)


def zmap(
    scores: Any, compare: Any, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Tensor:
    given, others = floats(scores, compare)
    x, axis = _sample("zmap", others, axis, nan_policy)
    spread = PUBLIC["std"](x, axis, correction=ddof, keepdim=True)
    return (given - PUBLIC["mean"](x, axis, True)) / spread


def zscore(a: Any, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Tensor:
    return zmap(a, a, axis, ddof, nan_policy)


def gzscore(a: Any, *, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Tensor:
    return zscore(log(averaged(a)), axis, ddof, nan_policy)


def _central(x: Tensor, axis: int, order: int, keepdims: bool, center: Any = None) -> Tensor:
    middle = PUBLIC["mean"](x, axis, True) if center is None else center
    return PUBLIC["mean"]((x - middle) ** order, axis, keepdims)


def moment(
    a: Any, order: Any = 1, axis: int | None = 0, nan_policy: str = "propagate", *, center: Any = None,
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    x, axis = _sample("moment", a, axis, nan_policy)
    if not isinstance(order, int):
        fail(
            UnsupportedError,
            f"scipy.stats.moment: the order must be one integer on a Tensor, found {order!r}.",
        )
    return _central(x, axis, order, keepdims, center)


def skew(
    a: Any, axis: int | None = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Tensor:
    x, axis = _sample("skew", a, axis, nan_policy)
    count = x.shape[axis]
    found = _central(x, axis, 3, keepdims) / _central(x, axis, 2, keepdims) ** 1.5
    return found if bias or count < 3 else found * ((count - 1.0) * count) ** 0.5 / (count - 2.0)


def kurtosis(
    a: Any, axis: int | None = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    x, axis = _sample("kurtosis", a, axis, nan_policy)
    n = x.shape[axis]
    found = _central(x, axis, 4, keepdims) / _central(x, axis, 2, keepdims) ** 2
    if not bias and n > 3:
        found = ((n * n - 1.0) * found - 3.0 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3.0
    return found - 3.0 if fisher else found


def sem(
    a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Tensor:
    x, axis = _sample("sem", a, axis, nan_policy)
    return PUBLIC["std"](x, axis, correction=ddof, keepdim=keepdims) / x.shape[axis] ** 0.5


def variation(
    a: Any, axis: int | None = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False
) -> Tensor:
    x, axis = _sample("variation", a, axis, nan_policy)
    return PUBLIC["std"](x, axis, correction=ddof, keepdim=keepdims) / PUBLIC["mean"](x, axis, keepdims)


def entropy(
    pk: Any, qk: Any = None, base: float | None = None, axis: int = 0, *, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    """Of shares, which need not sum up to 1; with `qk` relative to these."""
    p, axis = _sample("entropy", pk, axis, nan_policy)
    p = p / declared.sum(p, axis, True)
    terms = -product_with_log(p, p)
    if qk is not None:
        p, q = floats(p, qk)
        terms = product_with_log(p, p) - product_with_log(p, q / declared.sum(q, axis, True))
    found = declared.sum(terms, axis, keepdims)
    return found if base is None else found / log(tensor_of(float(base)))


class Correlation(NamedTuple):
    """What `pearsonr` finds."""

    statistic: Any
    pvalue: Any


def pearsonr(
    x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: int | None = 0
) -> Correlation:
    """Pearson's correlation, and the probability of a larger one of independent normal samples."""
    if alternative != "two-sided" or method is not None:
        fail(
            UnsupportedError,
            f"scipy.stats.pearsonr: alternative={alternative!r} and method={method!r} on a Tensor; only "
            "'two-sided' and None are supported.",
        )
    (first, axis), (second, _) = (_sample("pearsonr", one, axis) for one in floats(x, y))
    apart = [one - PUBLIC["mean"](one, axis, True) for one in (first, second)]
    sizes = [sqrt(declared.sum(one * one, axis)) for one in apart]
    statistic = PUBLIC["clamp"](declared.sum(apart[0] * apart[1], axis) / (sizes[0] * sizes[1]), -1.0, 1.0)
    power = 0.5 * first.shape[axis] - 1.0
    return Correlation(statistic, 2.0 * UFUNCS["betainc"](power, power, 0.5 - 0.5 * PUBLIC["abs"](statistic)))


DESCRIPTIVE: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        gmean, hmean, pmean, zmap, zscore, gzscore, moment, skew, kurtosis, sem, variation, entropy,
        pearsonr,
    )
}  # fmt: skip
"""By name what functions of scipy.stats do on Tensors."""
