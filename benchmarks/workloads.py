"""The workloads: each is a loss in terms of an array namespace, inputs, and what is differentiated.

`loss(xp, *inputs)` is the same text for every library; `xp` has the functions `cross_entropy`, `exp`,
`mean`, `softplus`, `sum` and `tanh` (`benchmarks.peers` says what they are in each library).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Inputs = tuple[np.ndarray, ...]
SEED = 20240229
CHAIN_SIZES = (10, 1_000, 100_000, 4_000_000)


@dataclass(frozen=True)
class Workload:
    """What is timed: the value of `loss` and its gradient with respect to the inputs at `argnums`."""

    name: str
    loss: Callable[..., Any]
    make: Callable[[np.random.Generator], Inputs]
    argnums: tuple[int, ...]
    flops: float = 0.0
    """Of the matrix products, where these are most of the work."""

    def inputs(self) -> Inputs:
        """The same arrays in every process."""
        return self.make(np.random.default_rng(SEED))

    def bytes(self, inputs: Inputs) -> int:
        """What must move between memory and processor: each input once, each gradient once."""
        gradients = [inputs[position] for position in self.argnums]
        return sum(array.nbytes for array in (*inputs, *gradients))


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
    def make(rng: np.random.Generator) -> Inputs:
        x, w, b = rng.standard_normal((3, size)).astype(dtype)
        return x, w, b + np.ones((), dtype)  # most terms are positive: the sum is well-conditioned

    return Workload(f"chain-{size}-{dtype}", chain, make, (0, 1, 2))


def network_workload(batch: int, width: int, hidden: int, classes: int) -> Workload:
    def make(rng: np.random.Generator) -> Inputs:
        def normal(*shape: int) -> np.ndarray:
            return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype("float32")

        x = rng.standard_normal((batch, width)).astype("float32")
        labels = rng.integers(0, classes, batch)
        return x, labels, normal(width, hidden), normal(hidden), normal(hidden, classes), normal(classes)

    # Forward and the gradient of each weight, and for the second layer that of its input.
    flops = 4.0 * batch * width * hidden + 6.0 * batch * hidden * classes
    return Workload(f"mlp-{batch}x{width}x{hidden}x{classes}", network, make, (2, 3, 4, 5), flops)


def _logits_and_labels(rng: np.random.Generator) -> Inputs:
    return rng.standard_normal((512, 1000)).astype("float32"), rng.integers(0, 1000, 512)


def _regression_data(rng: np.random.Generator) -> Inputs:
    x, truth = rng.standard_normal((10_000, 50)), rng.standard_normal(50)
    y = (x @ truth + rng.logistic(size=10_000) > 0).astype("float64")
    return x, y, 0.5 * truth, np.array(0.1)


WORKLOADS = (
    *(chain_workload(size, "float32") for size in CHAIN_SIZES),
    *(chain_workload(size, "float64") for size in CHAIN_SIZES),
    network_workload(64, 64, 64, 10),
    network_workload(256, 784, 256, 10),
    Workload("softmax-cross-entropy-512x1000", softmax_cross_entropy, _logits_and_labels, (0,)),
    Workload("logistic-regression-10000x50", logistic_regression, _regression_data, (2, 3)),
)


def workload_named(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)
