"""Which functions are sums over rows, as the graph shows; all others are refused at their line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import OutputError, SeparationError
from pullback.runtime.dispatch.compiled import CompiledFunction
from pullback.runtime.distributed.proof import Proof
from pullback.runtime.distributed.row_parts import sums_and_gradients

DRAWS = np.random.default_rng(0)
WEIGHTS = np.array([0.5, -1.0, 2.0])


def example(rows: int) -> tuple[Any, ...]:
    return WEIGHTS, np.zeros((rows, 3)), np.zeros(rows)


def form(function: Callable[..., Any]) -> Any:
    return Proof(CompiledFunction(function), example, (True, True)).form


def _tanh_residuals(p, X, y):
    residuals = np.tanh(X @ p) - y
    return residuals @ residuals / X.shape[0]


def _by_column(p, X, y):
    return sum(np.sum((X[:, column] * p[column] - y) ** 2) for column in range(3))


def _labels(p, X, y):
    logits = np.stack([X @ p, np.sin(X @ p)], axis=1)
    chosen = logits[np.arange(len(y)), (y > 0).astype(int)]
    return -(chosen - pb.logsumexp(logits, 1)).mean()


SUMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "sum": (lambda p, X, y: ((X @ p - y) ** 2).sum(), ((False,), (None,), False)),
    "mean": (lambda p, X, y: ((X @ p - y) ** 2).mean(), ((True,), (None,), False)),
    "by its length": (_tanh_residuals, ((True,), (None,), False)),
    "weighted mean": (lambda p, X, y: np.average(X @ p, weights=y**2), ((False,), (0,), False)),
    "regulariser": (lambda p, X, y: (X @ p).sum() + 0.1 * (p**2).sum(), ((False,), (None,), True)),
    "regulariser of a mean": (lambda p, X, y: 2.0 * ((X @ p).mean() - (p @ p)), ((True,), (None,), True)),
    "no data": (lambda p, X, y: (p**2).sum(), ((), (), True)),
    "sum and mean": (lambda p, X, y: y.sum() * p[0] + (X @ p).mean(), ((False, True), (None, None), False)),
    "columns": (_by_column, ((False,), (None,), False)),
    "chosen by label": (_labels, ((True,), (None,), False)),
    "by number": (lambda p, X, y: (X[np.arange(len(X)), 0] * p[0]).sum(), ((False,), (None,), False)),
    "table of parameters": (lambda p, X, y: p[y.astype(int) % 3].sum(), ((False,), (None,), False)),
    "product of data": (lambda p, X, y: (X.T @ (X @ p - y)) @ p, ((False,), (None,), False)),
    "means of columns": (lambda p, X, y: X.mean(axis=0) @ p, ((True,), (None,), False)),
    "reshaped": (lambda p, X, y: (X.reshape(len(X), 3, 1) * p[:, None]).sum(), ((False,), (None,), False)),
    "beside each other": (
        lambda p, X, y: (np.concatenate([X, X**2], axis=1) @ np.concatenate([p, p])).sum(),
        ((False,), (None,), False),
    ),
    "as often as rows": (lambda p, X, y: len(y) * np.log(p[2]) - y.sum() * p[0], ((False,), (None,), False)),
    "softmax of columns": (lambda p, X, y: pb.log_softmax(X * p, 1)[:, 0].mean(), ((True,), (None,), False)),
    "running sum of columns": (
        lambda p, X, y: np.cumsum(X * p, axis=1)[:, 2].sum(),
        ((False,), (None,), False),
    ),
    "where": (lambda p, X, y: np.where(y > 0, X @ p, 0.0).sum(), ((False,), (None,), False)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_are_found(name: str) -> None:
    function, expected = SUMS[name]
    found = form(function)
    assert (found.by_count, found.denominators, found.has_shared) == expected


def _asks_length(p, X, y):
    scale = 1.0 if len(y) > 1500 else 2.0
    return scale * (X @ p).sum()


NO_SUMS: dict[str, tuple[Callable[..., Any], str]] = {
    "centred": (lambda p, X, y: ((X - X.mean(axis=0)) @ p).sum(), "single rows"),
    "root of a mean": (lambda p, X, y: np.sqrt(((X @ p - y) ** 2).mean()), "sqrt of a sum"),
    "running sum": (lambda p, X, y: (np.cumsum(X @ p) * y).sum(), "cumsum combines rows"),
    "sorted": (lambda p, X, y: (np.sort(X @ p) * y).sum(), "sorted_values combines rows"),
    "largest": (lambda p, X, y: np.max(X @ p), "amax combines rows"),
    "product": (lambda p, X, y: np.prod(X @ p), "prod combines rows"),
    "neighbours": (lambda p, X, y: ((X @ p)[1:] * y[:-1]).sum(), "slice combines rows"),
    "backwards": (lambda p, X, y: ((X @ p)[::-1] * y).sum(), "flip combines rows"),
    "rolled": (lambda p, X, y: (np.roll(X @ p, 1) * y).sum(), "combines rows"),
    "numbered": (lambda p, X, y: ((X @ p) * np.arange(len(y))).sum(), "row"),
    "pairs of rows": (lambda p, X, y: np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)).sum() * p[0], "rows"),
    "times its length": (lambda p, X, y: (X @ p).sum() * len(y), "multiplied"),
    "degrees of freedom": (lambda p, X, y: ((X @ p) ** 2).sum() / (len(y) - 3), "how many rows"),
    "divided twice": (lambda p, X, y: (X @ p).mean() / len(y), "twice"),
    "norm": (lambda p, X, y: np.linalg.norm(X @ p - y), "norm combines rows"),
    "variance": (lambda p, X, y: np.var(X @ p), "var combines rows"),
    "divided by what depends on parameters": (lambda p, X, y: y.sum() / (X @ p).sum(), "parameters"),
    "square of a sum": (lambda p, X, y: (X @ p).sum() ** 2, "of a sum over rows"),
    "product of sums": (lambda p, X, y: (X @ p).sum() * y.sum(), "of a sum over rows"),
    "other rows": (lambda p, X, y: X[y.astype(int)].sum() * p[0], "other places"),
    "a number from elsewhere": (lambda p, X, y: (X @ p).sum() / float(str(len(y))), "rows"),
    "a number of NumPy's": (lambda p, X, y: (X @ p).sum() / np.prod(y.shape), "how many rows"),
    "asks its length": (_asks_length, "does not compute the same"),
    "first rows": (lambda p, X, y: (X @ p)[:10].sum(), "slice combines rows"),
    "half": (lambda p, X, y: (X @ p)[: len(y) // 2].sum(), "slice combines rows"),
    "softmax over rows": (lambda p, X, y: pb.log_softmax(X @ p, 0).mean(), "log_softmax combines rows"),
    "log of a sum": (lambda p, X, y: np.log(np.exp(X @ p).sum()), "log of a sum"),
    "beside parameters": (lambda p, X, y: np.concatenate([X.sum(axis=0), p]).sum(), "of a sum over rows"),
    "beside ones": (lambda p, X, y: np.pad(X.sum(axis=0), 1, constant_values=1.0).sum(), "of a sum"),
    "whole part of a sum": (lambda p, X, y: p[0] * (X @ p).sum().astype(int), "of a sum over rows"),
    "pairs with all rows": (lambda p, X, y: np.broadcast_to(y[:, None], (len(y), len(y))).sum(), "rows"),
    "a sum for each row": (lambda p, X, y: np.broadcast_to((X @ p).sum(), (len(y),)).sum(), "rows"),
    "a parameter for each row": (lambda p, X, y: (p[np.arange(len(y))] * y).sum(), "row"),
    "clipped sum": (lambda p, X, y: np.clip((X @ p).sum(), 0, 1), "of a sum over rows"),
    "decides": (lambda p, X, y: (X @ p).sum() if y.sum() > 0 else y.sum(), "depends on values"),
    "random": (lambda p, X, y: (X @ p).sum() * DRAWS.random(), "random numbers"),
    "scaled by its largest": (lambda p, X, y: (X / np.max(X)) @ p @ y, "amax combines rows"),
}


@pytest.mark.parametrize("name", NO_SUMS)
def test_what_is_no_sum_is_refused(name: str) -> None:
    function, reason = NO_SUMS[name]
    with pytest.raises(SeparationError, match=reason):
        form(function)


def test_the_line_is_named() -> None:
    def root(p, X, y):
        squares = (X @ p - y) ** 2
        return np.sqrt(squares.mean())

    with pytest.raises(SeparationError, match=r"test_row_sums.py:\d+  return np.sqrt\(squares.mean"):
        form(root)


def test_what_is_computed_of_a_part_shows_the_lines_of_the_function() -> None:
    def squares(p, x):
        return ((x @ p) ** 2).sum()

    part = CompiledFunction(functools.partial(sums_and_gradients, squares, (True,), Proof(
        CompiledFunction(squares), lambda rows: (WEIGHTS, np.zeros((rows, 3))), (True,)
    ).form))  # fmt: skip
    assert "return ((x @ p) ** 2).sum()" in part.source(WEIGHTS, np.ones((5, 3)))


def test_rows_themselves_are_no_sum() -> None:
    with pytest.raises(OutputError, match="a scalar expected"):
        form(lambda p, X, y: X @ p)


# --- what depends on how many rows there are --------------------------------------------------------------


def _proof(function: Callable[..., Any]) -> Proof:
    return Proof(CompiledFunction(function), example, (True, True))


def _small_alike(p, X, y):
    return (X @ p).sum() if len(y) < 400 else (X @ p).sum() * 2.0


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (lambda p, X, y: (X[:5000] @ p).sum(), 16000),
        (lambda p, X, y: (X @ p)[-3000:].sum(), 3001),
        (lambda p, X, y: (X @ p).sum() * (1 + len(str(len(y))) // 5), 12345),
        (_small_alike, 399),
    ],
    ids=["the first", "the last", "digits", "a branch"],
)
def test_a_size_for_which_it_does_something_else_is_refused(function: Callable[..., Any], rows: int) -> None:
    proof = _proof(function)
    with pytest.raises(SeparationError, match=f"not compute the same for 1021 rows and for {rows}"):
        proof.extend([rows], example)
    assert rows not in proof.known


@pytest.mark.parametrize("name", SUMS)
def test_sizes_that_other_numbers_have_too_are_no_hindrance(name: str) -> None:
    _proof(SUMS[name][0]).extend([2, 3, 4, 6, 10, 64, 100_000], example)
