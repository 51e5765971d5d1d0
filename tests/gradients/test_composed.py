"""Functions composed of operators, once they are called often: one node, the same value and slopes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback as pb
import pullback.nn.functional as F
from pullback.runtime.tape import composed
from pullback.runtime.tape.composed import ComposedBackward
from pullback.runtime.values.tensor import Tensor
from pullback.tracer.errors import GradientError

RNG = np.random.default_rng(3)
X, Y = RNG.uniform(0.2, 0.8, 6), RNG.uniform(0.2, 0.8, 6)
TABLE = RNG.normal(size=(4, 5))
LABELS = np.array([0, 4, 2, 1])


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Composed functions are traced when they are first called."""
    monkeypatch.setattr(composed, "OFTEN", 0)


OF_NUMPY: list[Callable[..., Any]] = [
    lambda x, y: scipy.special.betaln(x, y), lambda x, y: scipy.special.boxcox(x, 0.3),
    lambda x, y: np.interp(x, np.linspace(0.0, 1.0, 6), y), lambda x, y: np.median(x * y),
    lambda x, y: np.copysign(x, y - 0.5), lambda x, y: np.take(x, LABELS), lambda x, y: np.kron(x, y),
    lambda x, y: np.pad(x, (1, 2)), lambda x, y: np.average(x, weights=y),
]  # fmt: skip
OF_TORCH: list[Callable[..., Any]] = [
    lambda x, y: F.huber_loss(x, y, delta=0.1), lambda x, y: F.gelu(x) * y, lambda x, y: pb.median(x + y),
    lambda x, y: F.group_norm(x.reshape(1, 6, 1), 2, y), lambda x, y: pb.nan_to_num(x / (y - y[0])),
    lambda x, y: F.conv1d(x.reshape(1, 2, 3), y.reshape(1, 2, 3)), lambda x, y: pb.fmax(x, y),
    lambda x, y: pb.sub(x, x, alpha=2) * y, lambda x, y: F.cross_entropy(x.reshape(2, 3), pb.tensor([0, 2])),
]  # fmt: skip


def value_and_slopes(function: Callable[..., Any], of_torch: bool) -> list[np.ndarray]:
    """The value of a sum, its slopes, and those of a sum of these."""

    def total(x: Any, y: Any) -> Any:
        return (function(x, y) * np.arange(1.0, 1.5, 0.5)).sum()

    if not of_torch:
        value, slopes = pb.value_and_grad(total, (0, 1))(X, Y)
        curved = pb.grad(lambda x, y: sum((one * one).sum() for one in pb.grad(total, (0, 1))(x, y)))(X, Y)
        return [value, *slopes, curved]
    x, y = pb.tensor(X).requires_grad_(), pb.tensor(Y).requires_grad_()
    value = (function(x, y) * 1.5).sum()
    slopes = pb.autograd.grad(value, (x, y), create_graph=True, allow_unused=True)
    known = [one for one in slopes if one is not None]
    curved = [pb.zeros_like(x)]
    if any(one.requires_grad for one in known):
        curved = list(pb.autograd.grad(sum((one * one).sum() for one in known), (x, y), allow_unused=True))
    return [one.detach().numpy() for one in (value, *known, *curved) if one is not None]


@pytest.mark.parametrize("function", OF_NUMPY + OF_TORCH)
def test_what_is_called_often_gives_the_same(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_torch, calls, call = function in OF_TORCH, [], composed.composed_call
    monkeypatch.setattr(composed, "composed_call", lambda *given: calls.append(given) or call(*given))
    found = value_and_slopes(function, of_torch)
    assert calls
    monkeypatch.setattr(composed, "composed_call", lambda *given: NotImplemented)
    expected = value_and_slopes(function, of_torch)
    np.testing.assert_array_equal(found[0], expected[0])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def leaf(array: np.ndarray) -> Tensor:
    return pb.tensor(array).requires_grad_()


def test_it_is_one_node_of_its_own_name() -> None:
    x, y = leaf(X), leaf(Y)
    loss = F.huber_loss(x, y)
    assert isinstance(loss.grad_fn, ComposedBackward) and loss.grad_fn.name() == "HuberLossBackward0"
    assert [one[0].variable for one in loss.grad_fn.next_functions] == [x, y]  # type: ignore[union-attr]
    assert F.huber_loss(x.detach(), y.detach()).grad_fn is None
    with pb.no_grad():
        assert not F.huber_loss(x, y).requires_grad


def test_what_it_has_saved_must_be_as_it_was() -> None:
    x, y = leaf(X), leaf(Y)
    u, v = x * 1.0, y * 1.0
    result = pb.special.xlog1py(u, v) + F.softplus(u)
    u.add_(1.0)
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        result.sum().backward()
    u = x * 1.0
    loss = F.mse_loss(u, y)
    u.add_(1.0)  # it needs the difference alone
    loss.backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.numpy(), (X - Y) / 3)
    loss.backward()
    with pytest.raises(GradientError, match="a second time"):
        loss.backward()
    result = F.softplus(x * 1.0)
    result.mul_(2.0)
    result.sum().backward()
    u = x * 1.0
    loss = F.mse_loss(u, y)
    u.add_(1.0)
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        pb.autograd.grad(loss, x, create_graph=True)


def test_programs_that_write_have_what_it_has_saved() -> None:
    def function(x: Any) -> Any:
        y = np.zeros(6)
        y[:] = x
        z = np.kron(y, y).sum() + scipy.special.boxcox(y, 2.0).sum()
        y[:] = 0.0
        return z

    np.testing.assert_allclose(pb.grad(function)(X), 2 * X.sum() + X)
    np.testing.assert_allclose(pb.hessian(function)(X), 2.0 + np.eye(6))


def test_zeros_of_either_sign_and_numbers_of_either_kind_are_different_calls() -> None:
    x = leaf(np.array([2.0, -3.0]))
    assert pb.copysign(x, 0.0).tolist() == [2.0, 3.0] and pb.copysign(x, -0.0).tolist() == [-2.0, -3.0]
    assert pb.pow(x, True).tolist() == pb.pow(x, 1).tolist() == [2.0, -3.0]


def test_positions_are_checked_as_ever() -> None:
    scores = leaf(TABLE)
    assert F.nll_loss(scores, pb.tensor(LABELS)).item() == -TABLE[np.arange(4), LABELS].mean()
    for wrong in (-1, 5, -6):
        with pytest.raises(Exception, match=r"out of bounds|out of range"):
            F.nll_loss(scores, pb.tensor(np.array([0, wrong, 2, 1])))
    assert np.take(scores[0], LABELS - 5).tolist() == TABLE[0, LABELS].tolist()  # type: ignore[call-overload]


def test_what_writes_draws_or_asks_is_called_as_it_is() -> None:
    mean, var, table = pb.zeros(5).double(), pb.ones(5).double(), leaf(TABLE)
    for _ in range(2):
        F.batch_norm(table, mean, var, training=True, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), 0.75 * TABLE.mean(0))
    pb.manual_seed(1)
    first = F.dropout(table, 0.5)
    pb.manual_seed(1)
    assert (F.dropout(table, 0.5) == first).all() and not (F.dropout(table, 0.5) == first).all()
    assert [np.unique(leaf(one)).tolist() for one in (X[[0, 0]], X[:2])] == [[X[0]], sorted(X[:2])]


def test_hooks_anomalies_and_single_gradients_of_it() -> None:
    x, y = leaf(X), leaf(Y)
    seen: list[Any] = []
    loss = F.huber_loss(x, y)
    loss.grad_fn.register_hook(lambda given, got: seen.append(len(given)))  # type: ignore[union-attr]
    (slope,) = pb.autograd.grad(loss, y)
    np.testing.assert_allclose(slope.numpy(), (Y - X) / 6)
    assert seen == [2]
    with pb.autograd.detect_anomaly(), pytest.raises(Exception, match="nan"):
        F.huber_loss(x * np.nan, y).backward()


def test_what_it_gives_is_nobody_elses() -> None:
    x = leaf(np.array([0.5, -0.5]))
    for _ in range(3):
        F.hardshrink(x, 1.0).sum().backward()
        np.round(x).sum().backward()  # type: ignore[call-overload]
        x.grad.add_(1.0)
        y = x.detach()
        for one in (np.fabs(y[:1]), np.nan_to_num(y), pb.nan_to_num(y), F.relu6(y + 1.0)):
            one += 1.0
    assert x.grad.tolist() == [3.0, 3.0] and x.tolist() == [0.5, -0.5]
