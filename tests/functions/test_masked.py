"""Functions of the elements that a mask shows, against PyTorch's: values, dtypes and gradients."""

from typing import Any

import numpy as np
import pytest

import pullback as pb

RANDOM = np.random.default_rng(5)
X, Y = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(3, 4))
Z = X + 1j * Y
SHOWN = np.array([[True, False, True, True], [False, True, False, True], [True, True, True, False]])
ROW = np.array([True, False, True, True])
ROWS = [
    "sum(x,mask=m)", "sum(x,1,mask=r)", "sum(z,0,mask=m)", "prod(x,1,keepdim=True,mask=m)", "prod(z,mask=r)",
    "amax(x,1,mask=m)", "amin(x,mask=m)", "mean(x,0,mask=m)", "mean(z,1,mask=m)", "mean(x,1)",
    "median(x,1,mask=m)", "norm(x,2,1,mask=m)", "norm(x,float('inf'),mask=r)",
    "norm(x,-float('inf'),1,mask=m)", "var(x,1,mask=m)", "var(x,mask=r,unbiased=False)",
    "var(z,0,correction=0,mask=m)", "std(x,1,mask=r)",
    "cumsum(x,1,mask=m)", "cumprod(x,0,mask=m)", "cumsum(z,0,mask=m)", "softmax(x,1,mask=m)",
    "log_softmax(x,0,mask=r)", "softmin(x,-1,mask=m)", "normalize(x,2.0,1,mask=m)", "logsumexp(x,1,mask=m)",
    "logsumexp(z,1,mask=m)", "normalize(z,1.0,0,mask=r)",
]  # fmt: skip
WITHOUT_GRADIENT = [
    "argmax(x,1,mask=m)", "argmin(x,mask=m)", "argmax(n,1,mask=r)", "amax(n,1,mask=m)", "amin(n,mask=m)",
    "sum(n,1,mask=m)", "prod(n,0,mask=m)", "cumsum(n,1,mask=m)", "logaddexp(x,y,input_mask=m,other_mask=r)",
]  # fmt: skip


def evaluated(lib: Any, namespace: Any, row: str) -> tuple[Any, list[Any]]:
    given = {"x": X, "y": Y, "z": Z}
    differentiable = {name: lib.tensor(one).requires_grad_() for name, one in given.items()}
    fixed = {"m": SHOWN, "r": ROW, "n": np.arange(12).reshape(3, 4)}
    tensors = differentiable | {name: lib.tensor(one) for name, one in fixed.items()}
    return eval(row, dict(vars(namespace)), tensors), list(differentiable.values())


@pytest.mark.parametrize("row", ROWS + WITHOUT_GRADIENT)
def test_values_and_gradients_are_pytorchs(row: str) -> None:
    torch = pytest.importorskip("torch")
    (found, ours), (wanted, theirs) = evaluated(pb, pb.masked, row), evaluated(torch, torch.masked, row)
    assert str(found.dtype) == str(wanted.dtype)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)
    if row in WITHOUT_GRADIENT:
        return
    for value, leaves in ((found, ours), (wanted, theirs)):
        (value * value.detach().conj() * value.abs()).real.sum().backward()
        leaves[:] = [np.zeros(()) if one.grad is None else one.grad.numpy() for one in leaves]
    for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-14)


@pytest.mark.drawn(4)
def test_compiled_functions_compute_the_same() -> None:
    def of_masked(x: Any, m: Any) -> Any:
        shown = pb.masked.softmax(x, 1, mask=m) * pb.masked.mean(x, 1, keepdim=True, mask=m)
        return (shown * pb.masked.cumsum(x, 0, mask=m)).sum() + pb.masked.var(x, mask=m) * pb.masked.amax(x)

    wanted, found = (pb.value_and_grad(one)(X, SHOWN) for one in (of_masked, pb.compile(of_masked)))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-11)


def test_nothing_shown() -> None:
    nothing = pb.tensor([False, False])
    x = pb.tensor([1.0, 2.0])
    assert pb.masked.sum(x, mask=nothing) == 0 and pb.masked.amax(x, mask=nothing) == -np.inf
    assert pb.masked.mean(x, mask=nothing).isnan() and pb.masked.softmax(x, 0, mask=nothing).isnan().all()


def test_what_does_not_fit_is_refused() -> None:
    x = pb.tensor([1.0, 2.0])
    with pytest.raises(pb.errors.DimensionError, match="the mask has more dimensions"):
        pb.masked.sum(x, mask=pb.ones(1, 1, 2))
    with pytest.raises(pb.errors.DTypeError, match="mean"):
        pb.masked.mean(x.long())
    with pytest.raises(pb.errors.DTypeError, match="masked.median"):
        pb.masked.median(x.long())
