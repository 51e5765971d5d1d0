"""Methods and functions that end in an underscore: one table of them, and what only they do."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.methods.binding import IN_PLACE
from pullback.runtime.methods.random_fills import FILLS


def test_every_name_is_a_method_and_a_function() -> None:
    for name in IN_PLACE:
        assert callable(getattr(pb, f"{name}_"))
    x = pb.tensor([1.0, 4.0])
    assert pb.sqrt_(x) is x and x.tolist() == [1, 2]
    assert x.copysign_(pb.tensor(-1.0)) is x and x.tolist() == [-1, -2]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("t", ()), ("transpose", (0, 1)), ("unsqueeze", (1,)), ("squeeze", ()), ("swapaxes", (0, 1))],
)
def test_views_in_place(name: str, arguments: tuple[int, ...]) -> None:
    leaf = pb.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    x = leaf * 2
    expected = getattr(x, name)(*arguments)
    assert getattr(x, f"{name}_")(*arguments) is x and x.shape == expected.shape
    (x**2).sum().backward()
    np.testing.assert_array_equal(leaf.grad, [[8, 16, 24]])


def test_several_operators_in_place_keep_what_they_need() -> None:
    """The value is made in several steps, of which some save the memory that is overwritten."""
    for method in (lambda x: x.logit_(), lambda x: x.div_(x.detach() + 1, rounding_mode="trunc")):
        leaf = pb.tensor([0.2, 0.7], requires_grad=True)
        method(leaf.clone()).sum().backward()
        assert leaf.grad is not None
    again = pb.tensor([0.2, 0.7], requires_grad=True)
    pb.logit(again).sum().backward()
    leaf = pb.tensor([0.2, 0.7], requires_grad=True)
    leaf.clone().logit_().sum().backward()
    np.testing.assert_array_equal(leaf.grad, again.grad)


def test_what_is_overwritten_between_is_noticed() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    squared = y * y
    y.exp_()
    with pytest.raises(pb.errors.GradientError, match="modified by an inplace operation"):
        squared.sum().backward()


@pytest.mark.parametrize("name", FILLS)
def test_random_fills(name: str) -> None:
    pb.manual_seed(0)
    x = pb.zeros(2000, dtype=pb.float64)
    parameters = {"geometric_": (0.3,), "random_": (3, 8), "uniform_": (2.0, 4.0), "bernoulli_": (0.3,)}
    assert getattr(x, name)(*parameters.get(name, ())) is x
    median = {
        "normal_": 0.0, "uniform_": 3.0, "exponential_": np.log(2), "geometric_": 2, "cauchy_": 0.0,
        "log_normal_": np.e, "bernoulli_": 0, "random_": 5,
    }  # fmt: skip
    assert float(x.median()) == pytest.approx(median[name], abs=0.3)
    with pytest.raises(pb.errors.PullbackError):
        bad = {"random_": (8, 3), "uniform_": (4.0, 2.0), "normal_": (0.0, -1.0), "geometric_": (2.0,)}
        getattr(x, name)(*bad.get(name, (-1.0, -1.0) if name in ("cauchy_", "log_normal_") else (-1.0,)))


def test_fill_diagonal() -> None:
    x = np.zeros((7, 3))
    for wrap in (False, True):
        expected = x.copy()
        np.fill_diagonal(expected, 5.0, wrap)
        np.testing.assert_array_equal(pb.tensor(x).fill_diagonal_(5.0, wrap), expected)


def _written_reshapes(m: Any) -> tuple[Any, ...]:
    """Reshapes that show memory, and reshapes that copy, with a 9 written into each."""
    filled = np.zeros(m.shape[::-1])
    filled[...] = m.T
    owners = (
        m.T, m.T.copy(), np.ascontiguousarray(m.T), m[:, 1:], m[1:], m.T * 2, m.T + m.T.copy(), filled,
        m.T.cumsum(0), np.asfortranarray(m), np.concatenate([m.T, m.T]), m[::-1], m[:, 0],
        np.array(m.T),
    )  # fmt: skip
    found = []
    for one in owners:
        flat = one.ravel()
        flat[0] = 9.0
        found += [one * 1, flat]
    return tuple(found)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("make", [np.array, pb.tensor])
def test_a_reshape_shows_memory_or_copies_as_in_a_plain_call(make: Any) -> None:
    table = [[2.0, 0.5, 1.0], [0.5, 3.0, 7.0]]
    wanted, argument = make(table), make(table)
    found = pb.compile(_written_reshapes)(argument)
    for one, other in zip(found, _written_reshapes(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    np.testing.assert_array_equal(np.asarray(argument), np.asarray(wanted))


def test_a_copy_in_order_has_a_gradient() -> None:
    def total(m: Any) -> Any:
        copied = m.T.copy()
        copied.ravel()[0] = 9.0
        return (copied * np.arange(6.0).reshape(3, 2)).sum()

    for transformed in (pb.grad(total), pb.compile(pb.grad(total))):
        np.testing.assert_array_equal(transformed(np.ones((2, 3))), [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])
