"""Layer normalisation, and the logarithm of a sum of exponentials over rows, over columns and of all."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload


def layer_norm_loss(xp, x, scale, shift, target):
    """Mean squared error of rows, normalised (J. L. Ba et al., 2016), scaled and shifted."""
    centred = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centred**2, axis=1, keepdims=True)
    normalised = centred / xp.sqrt(variance + 1e-5)
    return xp.mean((normalised * scale + shift - target) ** 2)


def logsumexp_of_rows(xp, x, weights):
    return xp.sum(weights * xp.logsumexp(x, axis=1))


def logsumexp_of_columns(xp, x, weights):
    return xp.sum(weights * xp.logsumexp(x, axis=0))


def logsumexp_of_all(xp, x):
    return xp.logsumexp(x, axis=0)


def _layer_norm_inputs(rng: np.random.Generator, rows: int = 4_096, columns: int = 1_024) -> Inputs:
    x, target = rng.standard_normal((2, rows, columns)).astype("float32")
    scale, shift = rng.standard_normal((2, columns)).astype("float32")
    return 2.0 * x + 1.0, 1.0 + 0.1 * scale, 0.1 * shift, target


def _matrix_and_weights(
    rng: np.random.Generator, axis: int, shape: tuple[int, int] = (2_000, 1_000)
) -> Inputs:
    return 3.0 * rng.standard_normal(shape), rng.uniform(0.5, 1.5, shape[1 - axis])


def _vector(rng: np.random.Generator, n: int = 1_000_000) -> Inputs:
    return (3.0 * rng.standard_normal(n),)


WORKLOADS = (
    Workload(
        "layer-norm-4096x1024",
        _layer_norm_inputs,
        layer_norm_loss,
        (0, 1, 2),
        make_small=partial(_layer_norm_inputs, rows=5, columns=12),
    ),
    Workload(
        "logsumexp-rows-2000x1000",
        partial(_matrix_and_weights, axis=1),
        logsumexp_of_rows,
        (0, 1),
        make_small=partial(_matrix_and_weights, axis=1, shape=(5, 12)),
    ),
    Workload(
        "logsumexp-columns-2000x1000",
        partial(_matrix_and_weights, axis=0),
        logsumexp_of_columns,
        (0, 1),
        make_small=partial(_matrix_and_weights, axis=0, shape=(5, 12)),
    ),
    Workload("logsumexp-1000000", _vector, logsumexp_of_all, (0,), make_small=partial(_vector, n=50)),
)
