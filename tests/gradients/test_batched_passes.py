"""Jacobians and Hessians outside of traces: all rows are swept at once, to what one after the other gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback as pb
from pullback.runtime.tape import batched, engine
from pullback.tracer.operator import Operator, operators

RNG = np.random.default_rng(0)
X, A, W = RNG.uniform(0.2, 1.0, 6), RNG.normal(size=(6, 6)), RNG.normal(size=(7, 6))


def filled(x: Any) -> Any:
    y = np.zeros((3, 2))
    y[0] = x[:2]
    y[:, 1] = x[3]
    for row in range(1, 3):
        y[row] = y[row - 1] * x[row] + np.sin(x[2 * row : 2 * row + 2])
    return y


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda x: np.sin(x) * np.exp(-x) / (1.0 + x * x) + np.maximum(x, 0.5) ** 3,
    "product": lambda x: np.tanh(W @ x) * 2.0,
    "broadcast": lambda x: x[:, None] * np.cos(x)[None, :] + x.sum(),
    "number beside array": lambda x: x[0] * np.ones((2, 3)) + x[1],
    "quotient": lambda x: np.exp(x) / np.exp(x).sum(),
    "norms": lambda x: np.linalg.norm(x) * x / np.mean(x) + np.var(x) + np.max(x),
    "reductions": lambda x: np.max(x * A, axis=1) + np.mean(x * A, axis=0, keepdims=True),
    "scans": lambda x: np.cumsum(x) * np.cumprod(x),
    "stacked": lambda x: np.stack([x[0] * x[1], x[2] ** 2, np.sin(x[-1])]),
    "joined": lambda x: np.concatenate([x[2:] * x[:-2], np.ones(2) * x[0]]),
    "solved": lambda x: np.linalg.solve(A + np.diag(x), x),
    "sorted": lambda x: np.sort(x) * x[::-1],
    "einsum": lambda x: np.einsum("i,ij,j->ij", x, A, x).sum(0),
    "chosen": lambda x: np.where(x > 0.5, x * x, np.sqrt(x)),
    "reshaped": lambda x: (x.reshape(2, 3) @ x.reshape(3, 2)).T.ravel() * 2.0,
    "padded": lambda x: np.roll(np.pad(x, 2), 1) * np.tile(x, 2)[:10],
    "taken": lambda x: x[np.array([1, 2, 2, 0])] * x[..., :4],
    "outer": lambda x: np.outer(x, x[:3])[:, 1:],
    "inverse": lambda x: np.linalg.inv(np.diag(x) + A) @ x,
    "special": lambda x: scipy.special.gammaln(x) * scipy.special.expit(x),
    "written": filled,
    "several": lambda x: (x * x, x.sum()),
    "not all": lambda x: np.stack([x[0], 1.0, 2.0 * x[1]]),
}  # fmt: skip


def one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.Pass, "takes_many", lambda *_: False)


def require_close(found: Any, expected: Any) -> None:
    if isinstance(found, tuple):
        for one, other in zip(found, expected, strict=True):
            require_close(one, other)
        return
    assert type(found) is type(expected) and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_at_once_are_the_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jacobian = pb.jacobian(FUNCTIONS[name])
    found = jacobian(X)
    monkeypatch.setattr(batched, "MOST_ELEMENTS", 24)  # a few at once
    in_parts = jacobian(X)
    one_after_the_other(monkeypatch)
    for one in (found, in_parts):
        require_close(one, jacobian(X))


ELEMENTWISE = [one for one in operators("elementwise") if one.rules and one.torch and len(one.operands) < 3]


@pytest.mark.parametrize("operator", ELEMENTWISE, ids=lambda one: one.name)
def test_rules_of_elements_take_many_cotangents(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of operands that broadcast, whose cotangents are summed."""
    low, high = operator.domain
    operands = [RNG.uniform(low, high, shape) for shape in ((2, 3), (3,))[: len(operator.operands)]]
    jacobian = pb.jacobian(lambda *given: operator(*given), tuple(range(len(operands))))
    tensors = [pb.from_numpy(one) for one in operands]
    found = [one.numpy() for one in jacobian(*tensors)]
    one_after_the_other(monkeypatch)
    require_close(tuple(found), tuple(one.numpy() for one in jacobian(*tensors)))


def test_second_derivatives_are_swept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[Any] = []
    monkeypatch.setattr(batched, "_one_by_one", lambda *given: alone.append(given))
    found = pb.hessian(lambda x: np.sum(np.sin(x) * np.tanh(A @ x)))(X)
    assert not alone
    one_after_the_other(monkeypatch)
    require_close(found, pb.hessian(lambda x: np.sum(np.sin(x) * np.tanh(A @ x)))(X))


def test_hooks_see_each_row_alone() -> None:
    shapes = []

    def function(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda g: shapes.append(tuple(g.shape)))
        return y * 2.0

    np.testing.assert_allclose(pb.jacobian(function)(pb.from_numpy(X)).numpy(), np.diag(4.0 * X))
    assert shapes == [(6,)] * 6
