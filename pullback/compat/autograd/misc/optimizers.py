"""Optimisers of nested containers: `sgd`, `rmsprop`, `adam`, with HIPS autograd's options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .flatten import flatten

Function = Callable[..., Any]


def unflatten_optimizer(optimize: Function) -> Function:
    """An optimiser of nested containers, of one of vectors."""

    @functools.wraps(optimize)
    def of_containers(
        grad: Function, x0: Any, callback: Function | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        start, unflatten = flatten(x0)

        def slope(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def report(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(slope, start, report, *args, **kwargs))

    return of_containers


@unflatten_optimizer
def sgd(
    grad: Function,
    x: Any,
    callback: Function,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Steps along gradients `grad(x, i)` with momentum; `callback(x, i, g)` is called before each.

    Example:
        >>> sgd(lambda x, i: 2.0 * x, np.array([1.0]), None, 100, 0.1).round(1)
        array([0.])
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Function,
    x: Any,
    callback: Function,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps along gradients over the root of their mean square.

    Example:
        >>> rmsprop(lambda x, i: 2.0 * x, np.array([1.0]), None, 100, 0.1).round(1)
        array([0.])
    """
    squares = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        squares = squares * gamma + g**2 * (1 - gamma)
        x = x - step_size * g / (np.sqrt(squares) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Function,
    x: Any,
    callback: Function,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Kingma and Ba's method (arXiv:1412.6980): means of gradients and their squares, without their bias.

    Example:
        >>> adam(lambda x, i: 2.0 * x, np.array([1.0]), None, 100, 0.1).round(1)
        array([0.])
    """
    first, second = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        first = (1 - b1) * g + b1 * first
        second = (1 - b2) * (g**2) + b2 * second
        mean, square = first / (1 - b1 ** (i + 1)), second / (1 - b2 ** (i + 1))
        x = x - step_size * mean / (np.sqrt(square) + eps)
    return x
