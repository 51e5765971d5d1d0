"""Attention with several heads: softmax(q k^T / sqrt(d)) v (A. Vaswani et al., 2017, equation 1)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..workload import Inputs, Workload

HEADS, LENGTH, WIDTH = 8, 256, 64


def attention_loss(xp, queries, keys, values, target):
    """The mean squared error of the result; all are heads x length x width."""
    scores = queries @ xp.swapaxes(keys, -1, -2) / math.sqrt(queries.shape[-1])
    return xp.mean((xp.softmax(scores, axis=-1) @ values - target) ** 2)


def _make(rng: np.random.Generator, heads: int = HEADS, length: int = LENGTH, width: int = WIDTH) -> Inputs:
    return tuple(rng.standard_normal((4, heads, length, width)).astype("float32"))


WORKLOADS = (
    Workload(
        f"attention-{HEADS}x{LENGTH}x{WIDTH}",
        _make,
        attention_loss,
        (0, 1, 2),
        flops=12.0 * HEADS * LENGTH**2 * WIDTH,  # two products, and two more for the gradient of each
        blas_bound=True,
        make_small=partial(_make, heads=2, length=7, width=4),
    ),
)
