"""Compiled functions with complex arguments and results: their parts are what programs take and give."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.special

import pullback as pb

pytestmark = pytest.mark.usefixtures("partly_compiled")

RNG = np.random.default_rng(9)
Z = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    """Nothing runs uncompiled, unless a test says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda z: np.exp(z) * np.conj(z) + 2,
    "products": lambda z: z @ z.conj().T,
    "numbers": lambda z: z.sum(),
    "real results": lambda z: np.abs(z) ** 2,
    "several results": lambda z: (z[0], {"size": np.abs(z).sum(), "parts": [z.real, z.imag * 1j]}),
    "the argument itself": lambda z: z,
    "transposes": lambda z: z.T,
    "a choice of Python's": lambda z: z * 2 if z.real.sum() > 0 else z.sum(0).real,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_the_plain_function(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = pb.compile(function)
    for z in (Z, -Z, Z.T, Z.astype(np.complex64), Z[:, ::-1], Z[:2]):
        if name == "products" and z.shape != (3, 3):
            continue
        found, wanted = compiled(z), function(z)
        same = partial(np.testing.assert_allclose, rtol=1e-5 if z.itemsize == 8 else 1e-12)
        if name == "several results":
            same(found[0], wanted[0])
            same(found[1]["size"], wanted[1]["size"])
            same(found[1]["parts"][1], wanted[1]["parts"][1])
            continue
        same(found, wanted)
        assert type(found) is type(wanted) and found.dtype == wanted.dtype
    if name == "elements":
        assert not np.shares_memory(compiled(Z), Z)


@pytest.mark.drawn(4)
def test_gradients_of_complex_arguments() -> None:
    def loss(z: Any, x: Any) -> Any:
        return (np.abs(np.sin(z) * x + z**2) ** 2).sum()

    x = RNG.standard_normal(3)
    wanted = pb.value_and_grad(loss, argnums=(0, 1))(Z, x)
    both = (0, 1)
    for function in (pb.compile(pb.value_and_grad(loss, both)), pb.value_and_grad(pb.compile(loss), both)):
        value, slopes = function(Z, x)
        np.testing.assert_allclose(value, wanted[0])
        for found, expected in zip(slopes, wanted[1]):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.drawn(4)
def test_tensors_have_histories() -> None:
    z = pb.tensor(Z, requires_grad=True)
    compiled = pb.compile(lambda z: pb.exp(z) * z)
    out = compiled(z)
    assert isinstance(out, pb.Tensor) and out.dtype == pb.complex128
    abs(out).sum().backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), pb.grad(lambda z: abs(np.exp(z) * z).sum())(Z))


@pytest.mark.drawn(4)
def test_complex_results_of_real_arguments() -> None:
    x = np.arange(3.0)
    np.testing.assert_allclose(pb.compile(lambda x: np.exp(1j * x))(x), np.exp(1j * x))
    found = pb.compile(pb.jacobian(lambda x: np.exp(1j * x)))(x)
    np.testing.assert_allclose(found, np.diag(1j * np.exp(1j * x)), atol=1e-15)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [scipy.fft.fft, scipy.linalg.eigvals, scipy.special.lambertw])
def test_functions_of_scipys_with_complex_results(function: Any) -> None:
    """Compiled by themselves: the function of parts around one has its name, and is not it."""
    x = np.array([[2.0, 1.0], [-1.0, 3.0]])
    for one in (pb.compile(function), pb.compile(lambda x: function(x))):
        np.testing.assert_allclose(one(x), function(x), rtol=1e-12)


def test_writes_into_complex_arguments() -> None:
    @pb.compile
    def write(z: Any) -> Any:
        z[0] = z[1] * 1j
        return z.sum()

    for z in (Z.copy(), Z.copy().T, Z.repeat(2, axis=1)[:, ::2].copy()):
        wanted = z.copy()
        wanted[0] = wanted[1] * 1j
        assert write(z) == pytest.approx(wanted.sum())
        np.testing.assert_allclose(z, wanted)


def test_arrays_that_a_function_reaches() -> None:
    phases = np.exp(1j * np.arange(3.0))
    function = pb.compile(lambda z: z * phases)
    np.testing.assert_allclose(function(Z), Z * phases)
    phases[0] = 5j
    np.testing.assert_allclose(function(Z), Z * phases)


@pytest.mark.drawn(4)
def test_a_split_step_solver() -> None:
    """A Schroedinger equation in a matrix basis, with a loop in the code."""

    def last(psi: Any, potential: Any) -> Any:
        for _ in range(20):
            psi = psi * np.exp(-0.05j * (potential + np.abs(psi) ** 2))
            psi = psi + 0.05j * (np.roll(psi, 1) - 2 * psi + np.roll(psi, -1))
        return psi

    psi, potential = Z.reshape(-1), RNG.standard_normal(9)
    np.testing.assert_allclose(pb.compile(last)(psi, potential), last(psi, potential), rtol=1e-11)

    def loss(psi: Any, potential: Any) -> Any:
        return (np.abs(last(psi, potential)) ** 2 * np.arange(9)).sum()

    found = pb.compile(pb.grad(loss, argnums=(0, 1)))(psi, potential)
    wanted = pb.grad(loss, argnums=(0, 1))(psi, potential)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_the_source_of_a_complex_call() -> None:
    @pb.compile
    def energy(z: Any) -> Any:
        return np.abs(np.exp(z)) ** 2

    source = energy.source(Z)
    assert "exp_real(z[i, j, 0], z[i, j, 1])" in source and "exp_imag(" in source
    np.testing.assert_allclose(energy(Z), np.abs(np.exp(Z)) ** 2)
    assert energy.source(Z) == source


def test_the_source_of_the_latest_call_is_shown_without_arguments() -> None:
    compiled = pb.compile(lambda z: np.exp(z))
    compiled(Z)
    assert compiled.source() == compiled.source(Z)
    assert "exp_real(" in compiled.source()


@pytest.mark.drawn(4)
def test_python_asks_for_complex_numbers() -> None:
    """The answer is a guard of its path, as a real one is."""
    for function in (
        lambda z: z * complex(z[0, 0]),
        lambda z: z * z.tolist()[0][1],
        lambda z: z.sum().item(),
    ):
        compiled = pb.compile(function)
        for z in (Z, 2 * Z, Z):
            found, wanted = compiled(z), function(z)
            assert type(found) is type(wanted)
            np.testing.assert_allclose(found, wanted)


def test_numbers_of_numpy_are_arguments() -> None:
    compiled = pb.compile(lambda z, x: z * np.exp(z) + x)
    for number in (np.complex128(2 + 1j), np.complex64(1j)):
        found, wanted = compiled(number, np.float32(2)), number * np.exp(number) + np.float32(2)
        assert type(found) is type(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_complex_numbers_beside_numbers_of_sizes() -> None:
    """A number that Python has computed has a formula where a size was asked for; a complex one has none."""

    def function(z: Any) -> Any:
        total = 0.0
        for place in range(z.shape[0]):
            total = total + z[place, 0] * (0.5 - 0.3j) / z.shape[0] + 1j / (place + 2)
        return total

    compiled = pb.compile(function)
    for z in (Z, Z[:2]):
        np.testing.assert_allclose(compiled(z), function(z))


@pb.primitive
def spectrum(z: Any) -> Any:
    return np.fft.fft(np.array(z))  # which no Tensor can take the place of


spectrum.defvjp(lambda y, z: lambda g: np.conj(spectrum(np.conj(g))))


@pytest.mark.drawn(4)
def test_foreign_functions_of_complex_numbers() -> None:
    def loss(z: Any) -> Any:
        return (np.abs(spectrum(z * 1j)) * np.arange(3)).sum()

    warnings.simplefilter("ignore")
    wanted = pb.grad(lambda z: (np.abs(np.fft.fft(z * 1j)) * np.arange(3)).sum())(Z[0])
    for gradient in (pb.grad(loss), pb.compile(pb.grad(loss)), pb.grad(pb.compile(loss))):
        found = gradient(Z[0])
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, wanted)
    assert type(pb.compile(lambda z: pb.grad(loss)(z)[0])(Z[0])) is np.complex128


@pytest.mark.drawn(6)
def test_statistics_divide_by_numbers_that_follow_from_sizes() -> None:
    functions: tuple[Callable[[Any], Any], ...] = (
        lambda z: np.cov(z), lambda z: np.corrcoef(z), lambda z: np.var(z), lambda z: np.mean(z, 0),
        lambda z: pb.cov(z),
    )  # fmt: skip
    for function in functions:
        compiled = pb.compile(function)
        for z in (Z, Z[:, :2]):
            np.testing.assert_allclose(compiled(z), function(z), atol=1e-12)


class Filter:
    def __init__(self, response: Any) -> None:
        self.response = response

    def __call__(self, x: Any) -> Any:
        return (self.response * x).sum() * self.response


@pytest.mark.parametrize("make", [pb.tensor, np.array])
def test_complex_values_that_a_function_reaches_are_read_in_each_call(make: Any) -> None:
    plain, x = Filter(make(Z)), np.arange(3.0)
    compiled = pb.compile(lambda x: plain(x))
    for response in (Z, 2 * Z, Z.T):
        plain.response = make(response)
        for given in (x, pb.tensor(x), x + 1j):
            if isinstance(given, pb.Tensor) and make is np.array:
                continue
            found, expected = compiled(given), plain(given)
            assert type(found) is type(expected) and found.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-13)
    assert compiled.cache_info().traces <= 3


def test_gradients_of_complex_tensors_that_a_function_reaches() -> None:
    weight = pb.tensor(Z, requires_grad=True)

    def loss(x: Any) -> Any:
        return ((weight @ x).abs() ** 2).sum()

    gradients = []
    for function in (loss, pb.compile(loss)):
        weight.grad = None
        for factor in (1.0, 2.0):
            function(pb.tensor(factor * Z)).backward()
        gradients.append(weight.grad.numpy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-12)
