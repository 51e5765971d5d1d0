"""Programs that ask for values, and what compares compiled ones with plain ones: values and gradients."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import pullback as pb

X = np.array([0.5, -1.5, 2.0])
Function = Callable[..., Any]


def gradient(function: Function, *arrays: np.ndarray) -> list[Any]:
    """Value and gradients on the tape, through Tensors."""
    tensors = [pb.tensor(array, requires_grad=True) for array in arrays]
    value = function(*tensors)
    value.sum().backward()
    return [value.detach().numpy(), *(one.grad.numpy() for one in tensors)]


def agree(function: Function, *arrays: np.ndarray, compiled: Any = None) -> Any:
    """Compiled and eager give the same, as value, in pairs and in fused gradients."""
    compiled = compiled or pb.compile(function)
    expected = gradient(function, *arrays)
    for found, wanted in zip(gradient(compiled, *arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(compiled(*arrays), expected[0], rtol=1e-12)
    if np.ndim(expected[0]) == 0:
        argnums = tuple(range(len(arrays)))
        value, slopes = pb.value_and_grad(compiled, argnums)(*arrays)
        for found, wanted in zip((value, *slopes), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    return compiled


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="(.|\\n)*calls itself")  # which `recursion` is to be told
        yield


def branch(x):
    return (x * x).sum() if x.sum() > 0 else pb.sin(x).sum()


def nested_branches(x):
    y = x * 2
    if y[0] > 0:
        y = y + 1 if y[1] > 0 else y * y
    elif y[2] > 0 and y[1] < 3:
        y = pb.exp(y)
    return y.sum()


def loop(x):
    while (x * x).sum() < 1000:
        x = x * 2
    return x.sum()


def loop_in_branch_in_loop(x):
    total = x.sum() * 0
    for row in x:
        if row > 0:
            while row < 4:
                row = row * 1.7
        total = total + row * row
    return total


def asserted(x):
    assert x.sum() < 1e6, "too large"
    assert not (x == 7).any()
    return (x * x).sum()


def as_float(x):
    return (x * float(pb.stop_gradient(x.sum()))).sum()


def as_item(x):
    return (x * x.detach().mean().item()).sum()


def as_list(x):
    first, *rest = x.detach().tolist()
    return (x * first).sum() + sum(rest)


def as_array(x):
    return (x * np.fft.fft(pb.as_tensor(x).detach().numpy()).real).sum()


def prefix(x):
    return (x[: int(abs(x[0]) + 1)] ** 2).sum()


def positions(x):
    total = x.sum()
    for index in range(x.argmax()):
        total = total + x[index] * index
    return total


def extremes(x):
    return max(x[0], x[1]) * 2 + min(x[1], x[2]) * sorted(x)[1]


def membership(x):
    return x.sum() if 2.0 in x else (x * 3).sum()


def compared(x):
    if x.equal(x * 1) and not x.allclose(x + 1):
        return (x * 3).sum()
    return x.sum()


def numpy_bool(x):
    return np.sum(x * 2) if np.all(x > -2) and np.any(x > 0) else np.sum(x)


def without_gradient(x):
    with pb.no_grad():
        size = (x * x).sum()
    return (x / size).sum() if size > 1 else (x * size).sum()


def clipped(x):
    y = x * x
    if y.requires_grad:
        y.register_hook(lambda slope: slope * 2)
    return y.sum() if y.sum() > 1 else (y * 3).sum()


def masks(x):
    chosen = x > 0.2
    rows = pb.outer(x, x * 2)
    total = (x[chosen] ** 2).sum() + (rows[chosen, 1:] * 3).sum() + rows[rows > 1].sum()
    filled = pb.masked_scatter(x * 0, chosen, pb.masked_select(x, chosen) * 5)
    return total + filled.sum() + pb.nonzero(rows < 0)[:, 0].sum() * x[0]


def shared_condition(x):
    """A guard is read by the backward function as well."""
    large = (x * x).sum() > 3
    y = pb.where(large, pb.sin(x), x * 3)
    return y.sum() if large else (y * y).sum()


def recursion(x):
    return (x * x).sum() if x.sum() > 9 else recursion(x + 0.7)


def early_return(x):
    for step in range(20):
        x = x * 1.5
        if x.abs().max() > 10:
            return x.sum() * step
    return x.sum()


PROGRAMS = [
    branch, nested_branches, loop, loop_in_branch_in_loop, asserted, as_float, as_item, as_list, as_array,
    prefix, positions, extremes, membership, compared, numpy_bool, without_gradient, clipped, masks,
    shared_condition, recursion, early_return,
]  # fmt: skip


INPUTS = [X, -X, X[::-1].copy(), X * 0.1, np.array([3.0, 2.0, 1.0]), X]
