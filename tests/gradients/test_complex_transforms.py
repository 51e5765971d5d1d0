"""Transforms of functions of complex numbers: plain and compiled, in loops over directions and in batches."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

RNG = np.random.default_rng(23)
SIZE = 11  # more directions than are written out
Z = RNG.standard_normal(SIZE) + 1j * RNG.standard_normal(SIZE)
X = RNG.standard_normal(SIZE)
TABLE = RNG.standard_normal((SIZE, SIZE)) + 1j * RNG.standard_normal((SIZE, SIZE))


def holomorphic(z: Any) -> Any:
    return np.sin(0.3 * z) * z[::-1] + TABLE @ z


def size(z: Any) -> Any:
    return (np.abs(np.sin(0.3 * z) * z) ** 2).sum()


def total(z: Any) -> Any:
    return holomorphic(z).sum()


def of_real(x: Any) -> Any:
    return size(x * np.exp(1j * x))


CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "complex derivatives": (pb.jacobian(holomorphic, holomorphic=True), Z),
    "real values by complex arguments": (pb.jacobian(lambda z: np.abs(holomorphic(z)) ** 2), Z),
    "complex values by real arguments": (pb.jacobian(lambda x: holomorphic(x * 1j)), X),
    "a complex gradient": (pb.grad(total, holomorphic=True), Z),
    "second complex derivatives": (pb.hessian(total, holomorphic=True), Z),
    "second derivatives": (pb.hessian(of_real), X),
    "pulled back": (lambda z: pb.vjp(holomorphic, z)[1](z * 1j), Z),
    "pushed forward": (lambda z: pb.jvp(holomorphic, (z,), (z * 1j,)), Z),
    "gradients pushed forward": (lambda z: pb.jvp(pb.grad(size), (z,), (z * 1j,)), Z),
    "batches of gradients": (pb.vmap(pb.value_and_grad(size)), TABLE),
    "batches of derivatives": (pb.vmap(pb.jacobian(lambda z: np.sin(z) * z.sum(), holomorphic=True)), TABLE),
    "batches of batches": (pb.vmap(pb.vmap(lambda a: a * a + 1j)), TABLE),
    "batches along other dimensions": (
        lambda z: pb.vmap(lambda a, b: a @ b, in_dims=(1, None), out_dims=1)(z, TABLE), TABLE,
    ),
    "a gradient of derivatives": (
        pb.grad(lambda z: (np.abs(pb.jacobian(holomorphic, holomorphic=True)(z)) ** 2).sum()), Z,
    ),
    "descent": (lambda z: pb.fori_loop(0, 3, lambda i, q: q - 0.01 * pb.grad(size)(q), z), Z),
}  # fmt: skip


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    """Nothing runs uncompiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", CALLS)
def test_compiled_transforms_are_the_plain_ones(name: str) -> None:
    function, point = CALLS[name]
    found, wanted = pb.compile(function)(point), function(point)
    pairs = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_complex_derivatives_are_those_of_differences() -> None:
    step = 1e-6
    slopes = [
        (holomorphic(Z + step * one) - holomorphic(Z - step * one)) / (2 * step) for one in np.eye(SIZE)
    ]
    np.testing.assert_allclose(pb.jacobian(holomorphic, holomorphic=True)(Z).T, slopes, atol=1e-7)
    gradient = pb.grad(total, holomorphic=True)
    slopes = [(gradient(Z + step * one) - gradient(Z - step * one)) / (2 * step) for one in np.eye(SIZE)]
    np.testing.assert_allclose(pb.hessian(total, holomorphic=True)(Z), slopes, atol=1e-7)


def test_forward_is_reverse() -> None:
    """The real product of a cotangent with what is pushed forward is that of what is pulled back."""
    along, cotangent = TABLE[0], TABLE[1]
    _, pushed = pb.jvp(holomorphic, (Z,), (along,))
    (pulled,) = pb.vjp(holomorphic, Z)[1](cotangent)
    assert np.vdot(cotangent, pushed).real == pytest.approx(np.vdot(pulled, along).real)


@pytest.mark.parametrize("table", [TABLE, TABLE.real])
def test_batches_of_arrays_lie_along_the_dimension_that_is_asked_for(table: Any) -> None:
    wanted = np.stack([2 * row for row in table], axis=1)
    for way in (lambda f: f, pb.compile):
        np.testing.assert_allclose(way(pb.vmap(lambda a: 2 * a, out_dims=1))(table), wanted)
        one, other = way(pb.vmap(lambda a: (2 * a, a.sum()), out_dims=(1, 0)))(table)
        np.testing.assert_allclose(one, wanted)
        np.testing.assert_allclose(other, table.sum(1))
