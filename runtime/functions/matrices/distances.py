"""Distances between vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply, wrap
from ...values.tensor import Tensor
from ..common import elementwise, fail, floating
from ..reductions.statistics import vector_norm
from ..selections.selection import index_select

__all__ = ["cdist", "pairwise_distance", "pdist"]


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """The p-norms of the differences between all rows of x1 and all rows of x2.

    Example:
        >>> cdist(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    a, b = floating(x1, "cdist", "x1"), floating(x2, "cdist", "x2")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        fail(
            ShapeError,
            f"cdist(): rows of one size expected, found shapes {tuple(a.shape)} and {tuple(b.shape)}",
        )
    _require_order(p, "cdist")
    return vector_norm(apply(e.subtract, a.unsqueeze(-2), b.unsqueeze(-3)), p, -1)


def _require_order(p: float, function: str) -> None:
    if p < 0:
        fail(ArgumentError, f"{function} only supports non-negative p values, found {p}.")


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension.

    Example:
        >>> pairwise_distance(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """
    a, b = floating(x1, "pairwise_distance", "x1"), floating(x2, "pairwise_distance", "x2")
    difference = elementwise(e.subtract, a, b, function="pairwise_distance")
    return vector_norm(apply(e.add, difference, float(eps)), p, -1, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences between each row and all rows after it.

    Example:
        >>> pdist(tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
        tensor([5.0000, 1.0000, 4.2426])
    """
    x = floating(input, "pdist")
    if x.ndim != 2:
        fail(ShapeError, f"pdist only supports 2D tensors, got: {x.ndim}D")
    _require_order(p, "pdist")
    first, second = np.triu_indices(x.shape[0], 1)
    rows = (index_select(x, 0, wrap(one)) for one in (first, second))
    return vector_norm(apply(e.subtract, *rows), p, -1)
