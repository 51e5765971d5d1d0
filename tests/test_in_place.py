"""Methods and functions that end in an underscore: one table of them, and what only they do."""

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.methods import IN_PLACE
from pullback.runtime.random_fills import FILLS


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
