"""Compiled functions that need what generated code does not have: they warn once, and run uncompiled."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special
from uncompiled import counts

import pullback as pb


def test_it_warns_once_and_computes_the_same() -> None:
    def spread(x: Any) -> Any:
        return (counts((x @ x.T > 0).long().reshape(-1)).sum() * pb.arange(3.0)).sum()

    x = np.random.default_rng(0).normal(size=(3, 3))
    compiled = pb.compile(spread)
    with pytest.warns(UserWarning, match=r"spread runs uncompiled: counts\(\) has") as noted:
        found = compiled(x)
    assert len(noted) == 1 and noted[0].filename == __file__
    assert isinstance(found, pb.Tensor) and found.item() == pytest.approx(spread(pb.tensor(x)).item())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(2 * x).item() == pytest.approx(spread(pb.tensor(2 * x)).item())
        assert compiled(x[:, :2]) > 0
    assert compiled.cache_info().traces == 2  # one for each kind of arguments
    with pytest.raises(pb.errors.EagerOnlyError):
        compiled.source(x)


def test_gradients_through_it() -> None:
    def loss(x: Any) -> Any:
        return (pb.i0(x) ** 2).sum() + 0 * counts((x.detach() > 0).long().reshape(-1))[0]

    x = np.random.default_rng(0).normal(size=(4, 3))
    expected = 2 * scipy.special.i0(x) * scipy.special.i1(x)
    leaf = pb.tensor(x, requires_grad=True)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        pb.compile(loss)(leaf).backward()
        _, gradient = pb.value_and_grad(pb.compile(loss))(x)
        again = pb.compile(pb.grad(loss))(x)
    for one in (leaf.grad.numpy(), gradient, again):
        np.testing.assert_allclose(one, expected)


def test_shapes_that_depend_on_values() -> None:
    with pytest.warns(UserWarning, match=r"counts\(\) has no form"):
        np.testing.assert_array_equal(pb.compile(lambda x: counts(x))(np.array([2, 1, 2])), [0, 1, 2])


def test_on_one_of_several_paths() -> None:
    @pb.compile
    def either(x: Any) -> Any:
        return counts((x > 0).long())[1] / 6 if x.sum() > 1 else x.sum()

    small, large = np.full(3, 0.1), np.full(3, 0.5)
    assert either(small) == pytest.approx(0.3)
    with pytest.warns(UserWarning, match=r"either runs uncompiled: counts\(\)"):
        assert either(large) == pytest.approx(0.5)
    assert either(small) == pytest.approx(0.3)


def test_writes_into_arguments_arrive() -> None:
    def fill(x: Any) -> None:
        x[:2] = pb.i0(x[:2]) * counts(x[:1].astype(int))[1]

    x = np.ones(3)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        pb.compile(fill)(x)
    np.testing.assert_allclose(x, [1.2660658777520082] * 2 + [1.0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_bytes_of_an_array_are_numpys(order: Any) -> None:
    def read(x: Any) -> Any:
        return np.frombuffer(x.tobytes(order)) * x.size

    def noisy(x: Any) -> Any:
        return read(x) + np.random.default_rng(0).normal(size=x.size)

    for function in (read, noisy):
        for x in (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2).T):
            np.testing.assert_array_equal(pb.compile(function)(x), function(x))


def test_what_an_array_has_and_a_tensor_lacks_is_explained() -> None:
    refused = pytest.raises(pb.errors.UnsupportedError, match="x.byteswap cannot take the tensor")
    with pytest.warns(UserWarning, match="runs uncompiled"), refused:
        pb.compile(lambda x: (counts(x), x.byteswap()))(np.ones(2, int))


@pytest.mark.parametrize("way", [pb.compile, pb.grad, lambda function: pb.grad(pb.compile(function))])
@pytest.mark.parametrize(
    ("misspelt", "says"),
    [
        (lambda x: x.smu(), "'numpy.ndarray' object has no attribute 'smu'"),
        (lambda x: x[0].smu(), "'numpy.float64' object has no attribute 'smu'"),
    ],
)
def test_an_attribute_that_an_array_lacks_is_lacking(way: Any, misspelt: Any, says: str) -> None:
    for function in (misspelt, way(misspelt)):
        with pytest.raises(AttributeError, match=f"^{says}$"):
            function(np.ones(2))
