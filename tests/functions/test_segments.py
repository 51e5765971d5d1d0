"""Reductions of segments against PyTorch's: values and gradients."""

import warnings
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.random.default_rng(1).normal(size=(6, 3))
CASES = {
    "lengths": {"lengths": [2, 0, 4]},
    "offsets": {"offsets": [0, 1, 6]},
    "beginning with a number": {"lengths": [2, 0, 4], "initial": 0.5},
    "a part": {"lengths": [2, 1], "unsafe": True},
    "nothing": {"lengths": [0, 0], "unsafe": True},
}


def reduced(lib: Any, reduce: str, case: str) -> tuple[np.ndarray, np.ndarray]:
    options = {
        name: lib.tensor(one) if isinstance(one, list) else one for name, one in CASES[case].items()
    }
    x = lib.tensor(X, requires_grad=True)
    found = lib.segment_reduce(x, reduce, **options)
    finite = lib.where(lib.isfinite(found), found, lib.zeros_like(found))
    (slope,) = lib.autograd.grad((finite**2).sum(), x)
    return found.detach().numpy(), slope.numpy()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_values_and_gradients_are_pytorchs(reduce: str, case: str) -> None:
    torch = pytest.importorskip("torch")
    for one, other in zip(reduced(pb, reduce, case), reduced(torch, reduce, case)):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_along_another_dimension_and_compiled() -> None:
    def means(x: Any) -> Any:
        return pb.segment_reduce(x, "mean", lengths=pb.tensor([2, 4]), axis=1)

    expected = np.stack([X[:2].mean(0), X[2:].mean(0)], 1)
    np.testing.assert_allclose(means(pb.tensor(X.T)), expected, rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it runs uncompiled
        np.testing.assert_allclose(pb.compile(means)(X.T), expected, rtol=1e-12)


def test_what_does_not_fit_is_refused() -> None:
    x, lengths = pb.tensor(X), pb.tensor([2, 4])
    with pytest.raises(pb.errors.ArgumentError, match="reduce must be one of"):
        pb.segment_reduce(x, "median", lengths=lengths)
    with pytest.raises(pb.errors.ArgumentError, match="either lengths or offsets"):
        pb.segment_reduce(x, "sum")
    with pytest.raises(pb.errors.ShapeError, match=r"found lengths \[2, 3\]"):
        pb.segment_reduce(x, "sum", lengths=pb.tensor([2, 3]))
    with pytest.raises(pb.errors.UnsupportedError, match="Reduce each row on its own"):
        pb.segment_reduce(x, "sum", lengths=pb.tensor([[1, 2]] * 6), axis=1)
