"""What pullback's functions mean on NumPy's data, written with NumPy: PyTorch's meaning, NumPy's kind.

Border programs without Tensors run plainly with this module in the place of pullback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _of_any_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, which gives a Python number for Python numbers."""

    def call(*arguments: Any) -> Any:
        found = function(*arguments)
        return found.item() if all(type(one) in (int, float) for one in arguments) else found

    return call


sin, cos, tan, exp, log, log1p, expm1, sqrt, tanh, abs, sign, floor, ceil, square, arctan, hypot = map(
    _of_any_number,
    (
        np.sin, np.cos, np.tan, np.exp, np.log, np.log1p, np.expm1, np.sqrt, np.tanh, np.abs, np.sign,
        np.floor, np.ceil, np.square, np.arctan, np.hypot,
    ),
)  # fmt: skip
maximum, minimum, add, multiply, subtract = map(
    _of_any_number, (np.maximum, np.minimum, np.add, np.multiply, np.subtract)
)
round, where, matmul, outer, einsum, dot, clip, clamp = (
    np.round, np.where, np.matmul, np.outer, np.einsum, np.dot, np.clip, np.clip,
)  # fmt: skip
allclose, isfinite = np.allclose, np.isfinite


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def softplus(x: Any) -> Any:
    return np.log1p(np.exp(x))


def std(x: Any, dim: int | None = None) -> Any:
    return np.std(x, axis=dim, ddof=1)


def var(x: Any, dim: int | None = None) -> Any:
    return np.var(x, axis=dim, ddof=1)


def sum(x: Any, dim: int | None = None) -> Any:
    return np.sum(x, axis=dim)


def mean(x: Any, dim: int | None = None) -> Any:
    return np.mean(x, axis=dim)


def prod(x: Any) -> Any:
    return np.prod(x)


def max(x: Any, dim: int | None = None) -> Any:
    return np.max(x) if dim is None else (np.max(x, axis=dim), np.argmax(x, axis=dim))


def min(x: Any, dim: int | None = None) -> Any:
    return np.min(x) if dim is None else (np.min(x, axis=dim), np.argmin(x, axis=dim))


def amax(x: Any, dim: int) -> Any:
    return np.max(x, axis=dim)


def argmax(x: Any) -> Any:
    return np.argmax(x)


def sort(x: Any) -> Any:
    return np.sort(x, axis=-1), np.argsort(x, axis=-1, kind="stable")


def cumsum(x: Any, dim: int) -> Any:
    return np.cumsum(x, axis=dim)


def softmax(x: Any, dim: int) -> Any:
    powers = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return powers / np.sum(powers, axis=dim, keepdims=True)


def logsumexp(x: Any, dim: int) -> Any:
    return np.log(np.sum(np.exp(x), axis=dim))


def norm(x: Any) -> Any:
    return np.sqrt(np.sum(x * x))


def stack(xs: Any, dim: int = 0) -> Any:
    return np.stack(xs, axis=dim)


def cat(xs: Any, dim: int = 0) -> Any:
    return np.concatenate(xs, axis=dim)


def flip(x: Any, dims: Any) -> Any:
    return np.flip(x, dims)


def roll(x: Any, shifts: int) -> Any:
    return np.roll(x, shifts)


def diff(x: Any) -> Any:
    return np.diff(x)


# --- transforms and loops, as plain Python --------------------------------------------------------------


def compile(function: Any = None, **_: Any) -> Any:
    return function if function is not None else lambda inner: inner


def stop_gradient(x: Any) -> Any:
    return x


def vmap(function: Callable[..., Any], in_dims: Any = 0) -> Any:
    def mapped(*arguments: Any) -> Any:
        axes = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(arguments)
        count = next(len(one) for one, axis in zip(arguments, axes) if axis == 0)
        rows = range(count)
        return np.stack(
            [function(*(x if a is None else x[r] for x, a in zip(arguments, axes))) for r in rows]
        )

    return mapped


def map(function: Callable[..., Any], xs: Any) -> Any:
    return np.stack([function(row) for row in xs])


def scan(function: Callable[..., Any], init: Any, xs: Any) -> Any:
    carry, outputs = init, []
    for row in xs:
        carry, output = function(carry, row)
        outputs.append(output)
    return carry, np.stack(outputs)


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    return true_fun(*operands) if pred else false_fun(*operands)


def fori_loop(lower: int, upper: int, body: Callable[..., Any], init: Any) -> Any:
    for step in range(lower, upper):
        init = body(step, init)
    return init


def while_loop(test: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
    while test(init):
        init = body(init)
    return init
