"""An elementwise chain, small networks, softmax cross-entropy and logistic regression."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

CHAIN_SIZES = (10, 1_000, 100_000, 4_000_000)

# --- losses -------------------------------------------------------------------------------------------------


def chain(xp, x, w, b):
    return xp.sum(xp.tanh(x * w + b) * xp.exp(-x * x))


def network(xp, x, labels, weight_1, bias_1, weight_2, bias_2):
    hidden = xp.tanh(x @ weight_1 + bias_1)
    return xp.cross_entropy(hidden @ weight_2 + bias_2, labels)


def softmax_cross_entropy(xp, logits, labels):
    return xp.cross_entropy(logits, labels)


def logistic_regression(xp, x, y, weights, bias):
    z = x @ weights + bias
    return xp.mean(xp.softplus(z) - y * z)


# --- inputs -------------------------------------------------------------------------------------------------


def chain_workload(size: int, dtype: str) -> Workload:
    def make(rng: np.random.Generator, size: int = size) -> Inputs:
        x, w, b = rng.standard_normal((3, size)).astype(dtype)
        return x, w, b + np.ones((), dtype)  # most terms are positive: the sum is well-conditioned

    return Workload(
        f"chain-{size}-{dtype}",
        make,
        chain,
        (0, 1, 2),
        small_calls=size <= 1_000,
        make_small=partial(make, size=10),
    )


def network_workload(batch: int, width: int, hidden: int, classes: int) -> Workload:
    def make(rng: np.random.Generator, batch: int = batch) -> Inputs:
        def normal(*shape: int) -> np.ndarray:
            return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype("float32")

        x = rng.standard_normal((batch, width)).astype("float32")
        labels = rng.integers(0, classes, batch)
        return x, labels, normal(width, hidden), normal(hidden), normal(hidden, classes), normal(classes)

    # Forward and the gradient of each weight, and for the second layer that of its input.
    flops = 4.0 * batch * width * hidden + 6.0 * batch * hidden * classes
    name = f"mlp-{batch}x{width}x{hidden}x{classes}"
    return Workload(
        name,
        make,
        network,
        (2, 3, 4, 5),
        flops=flops,
        blas_bound=width > 100,
        make_small=partial(make, batch=3),
    )


def _logits_and_labels(rng: np.random.Generator, n: int = 512) -> Inputs:
    return rng.standard_normal((n, 1000)).astype("float32"), rng.integers(0, 1000, n)


def _regression_data(rng: np.random.Generator, n: int = 10_000) -> Inputs:
    x, truth = rng.standard_normal((n, 50)), rng.standard_normal(50)
    y = (x @ truth + rng.logistic(size=n) > 0).astype("float64")
    return x, y, 0.5 * truth, np.array(0.1)


WORKLOADS = (
    *(chain_workload(size, "float32") for size in CHAIN_SIZES),
    *(chain_workload(size, "float64") for size in CHAIN_SIZES),
    network_workload(64, 64, 64, 10),
    network_workload(256, 784, 256, 10),
    Workload(
        "softmax-cross-entropy-512x1000",
        _logits_and_labels,
        softmax_cross_entropy,
        (0,),
        make_small=partial(_logits_and_labels, n=3),
    ),
    Workload(
        "logistic-regression-10000x50",
        _regression_data,
        logistic_regression,
        (2, 3),
        make_small=partial(_regression_data, n=20),
    ),
)
