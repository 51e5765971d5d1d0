"""`out=`: what a public function gives is written into a tensor that is there."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": pb.sin, "add": lambda x, **options: pb.add(x, x, alpha=2, **options),
    "cumsum": lambda x, **options: pb.cumsum(x, 1, **options),
    "polynomial": lambda x, **options: pb.special.hermite_polynomial_h(x, x.clone(), **options),
    "svd": pb.linalg.svd, "fft": pb.fft.fft, "max": lambda x, **options: pb.max(x, 1, **options),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_lie_in_the_tensors_that_are_given(name: str) -> None:
    x, function = pb.tensor(np.random.default_rng(0).normal(size=(3, 3))), FUNCTIONS[name]
    wanted = function(x)
    if isinstance(wanted, pb.Tensor):
        out = pb.empty(3, 3, dtype=wanted.dtype)
        assert function(x, out=out) is out
        assert (out == wanted).all()
        return
    outs = tuple(pb.empty(one.shape, dtype=one.dtype) for one in wanted)
    found = function(x, out=outs)
    assert type(found) is type(wanted)
    for one, given, value in zip(found, outs, wanted, strict=True):
        assert one is given and (given == value).all()


def test_a_result_may_lie_where_an_operand_does() -> None:
    x = pb.tensor([1.0, 2.0])
    pb.mul(x, x, out=x)
    assert x.tolist() == [1.0, 4.0]
    assert pb.mul(x, x, out=None).tolist() == [1.0, 16.0]


@pytest.mark.parametrize("transform", [pb.grad, lambda f: pb.compile(pb.grad(f))])
def test_gradients_flow_through(transform: Any) -> None:
    def f(x: pb.Tensor) -> pb.Tensor:
        out = pb.zeros(3)
        pb.sin(x, out=out)
        return (out * x).sum()

    x = pb.tensor([0.5, 1.0, 2.0])
    np.testing.assert_allclose(transform(f)(x), pb.cos(x) * x + pb.sin(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pb.sin(x, out=pb.empty(3)), pb.errors.ShapeError, r"sin\(\): out has shape \[3\]"),
        (lambda x: pb.sin(x, out=pb.empty(2, dtype=pb.int64)), pb.errors.DTypeError, "can't be cast"),
        (lambda x: pb.sin(x, out=np.empty(2)), pb.errors.ArgumentError, "must be Tensor, not ndarray"),
        (lambda x: pb.max(x, 0, out=x), pb.errors.ArgumentError, "tuple of 2 Tensors.*found Tensor"),
        (lambda x: pb.max(x, 0, out=(x,)), pb.errors.ArgumentError, "tuple of 2 Tensors.*found 1 of them"),
        (lambda x: pb.sin(pb.empty(2), out=x), pb.errors.GradientError, "leaf Variable"),
        (lambda x: pb.sin(x, where=x > 0), TypeError, r"sin\(\) got an unexpected keyword argument 'where'"),
        (lambda x: pb.hypot(x, x, where=x > 0), TypeError, r"hypot\(\) got an unexpected keyword"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(pb.ones(2, requires_grad=True))
