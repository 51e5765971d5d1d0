"""Derivatives of one function in pullback and in PyTorch, to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def first_and_second(lib: Any, function: Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The value, its gradients, and those of the gradients' squares."""
    leaves = [lib.tensor(one, requires_grad=True) for one in arrays]
    value = function(lib, *leaves)
    first = lib.autograd.grad((value**2).sum(), leaves, create_graph=True, allow_unused=True)
    total = sum((one * one).sum() for one in first if one is not None)
    second = lib.autograd.grad(total, leaves, allow_unused=True)
    return [one.detach().numpy() for one in (value, *first, *second) if one is not None]
