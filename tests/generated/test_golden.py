"""Generated source of a dozen functions, compared with golden files: read their changes as a user would.

`pytest --update-golden` writes them to tests/golden.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

Function = Callable[..., Any]


def chain(x: Any, w: Any, b: Any) -> Any:
    hidden = pb.tanh(x * w + b)
    gate = pb.exp(-x * x)
    return (hidden * gate).sum()


def cross_entropy(logits: Any, labels: Any) -> Any:
    return pb.nn.functional.cross_entropy(logits, labels)


def logistic_regression(w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    return (pb.nn.functional.softplus(z) - y * z).mean()


def two_layers(w1: Any, b1: Any, w2: Any, x: Any) -> Any:
    hidden = pb.tanh(x @ w1 + b1)
    return ((hidden @ w2) ** 2).mean()


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    return centred * pb.rsqrt(variance + 1e-5) * scale + shift


def logsumexp_over_columns(x: Any) -> Any:
    return pb.logsumexp(x, dim=0)


def diffusion_step(u: Any) -> Any:
    curvature = u[2:] - 2 * u[1:-1] + u[:-2]
    return u + 0.1 * pb.nn.functional.pad(curvature, (1, 1))


def embedding(table: Any, words: Any) -> Any:
    return (table[words] ** 2).sum()


def running_total(x: Any) -> Any:
    return pb.cumsum(pb.sin(x), dim=0)


def position_of_largest(x: Any) -> Any:
    return pb.argmax(x, dim=1)


def batched_product(a: Any, b: Any) -> Any:
    return pb.relu(a @ b).sum()


def spread(x: Any) -> Any:
    return x.var(dim=0), x.std(dim=1)


def online_means(centers: Any, samples: Any, rate: Any) -> Any:
    centers = centers.copy()
    for t in range(len(samples)):
        nearest = np.argmin(np.sum((centers - samples[t]) ** 2, 1))
        row = centers[nearest]
        row += rate * (samples[t] - row)
    return centers


def normal(*shape: int) -> np.ndarray:
    return np.linspace(-1.0, 1.0, int(np.prod(shape))).reshape(shape)


CASES: dict[str, tuple[Function, tuple[np.ndarray, ...]]] = {
    "chain": (chain, (normal(50), normal(50), normal(50))),
    "cross_entropy": (cross_entropy, (normal(30, 20), np.arange(30) % 20)),
    "logistic_regression": (logistic_regression, (normal(30), normal(100, 30), np.arange(100) % 2.0)),
    "two_layers": (two_layers, (normal(64, 48), normal(48), normal(48, 10), normal(32, 64))),
    "layer_norm": (layer_norm, (normal(40, 24), normal(24), normal(24))),
    "logsumexp_over_columns": (logsumexp_over_columns, (normal(40, 24),)),
    "diffusion_step": (diffusion_step, (normal(50),)),
    "embedding": (embedding, (normal(40, 24), np.arange(30) % 7)),
    "running_total": (running_total, (normal(40, 24),)),
    "position_of_largest": (position_of_largest, (normal(40, 24),)),
    "batched_product": (batched_product, (normal(12, 20, 16), normal(12, 16, 24))),
    "spread": (spread, (normal(40, 24),)),
    "online_means": (online_means, (normal(9, 2), -normal(12, 2), np.array(0.3))),
}


@pytest.mark.parametrize("name", CASES)
def test_source(name: str, golden: Callable[..., None]) -> None:
    """The forward and the backward function, as `source` shows them."""
    function, arguments = CASES[name]
    golden(pb.compile(function).source(*arguments))


def test_source_is_python() -> None:
    """What the golden files hold is Python."""
    for function, arguments in CASES.values():
        compile(pb.compile(function).source(*arguments), "source", "exec")


def test_float32_says_so_in_its_constants(golden: Callable[..., None]) -> None:
    arguments = [array.astype(np.float32) for array in CASES["diffusion_step"][1]]
    golden(pb.compile(diffusion_step).source(*arguments))


def test_same_source_for_other_shapes() -> None:
    """Sources are generic in extents, of which the header names those that are not the inputs'."""
    for name, shapes in (("chain", [(70,)] * 3), ("layer_norm", [(13, 31), (31,), (31,)])):
        function, arguments = CASES[name]
        others = [normal(*shape) for shape in shapes]
        assert pb.compile(function).source(*arguments) == pb.compile(function).source(*others)
