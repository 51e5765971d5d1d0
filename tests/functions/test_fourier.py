"""Fourier transforms: PyTorch's, NumPy's and SciPy's names, values, exact adjoints, second derivatives."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import pullback as pb
from pullback import errors
from pullback.tracer.ops import fourier
from pullback.tracer.ops.lazy import pocketfft

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

RNG = np.random.default_rng(3)
SIGNAL = RNG.standard_normal((3, 4, 5))
WAVES = SIGNAL + 1j * RNG.standard_normal((3, 4, 5))
NORMS = (None, "backward", "ortho", "forward")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_REAL = ("rfft", "ihfft")
SEVERAL = tuple(f"{name}{count}" for name in ONE for count in "2n")


def given(name: str) -> np.ndarray:
    return SIGNAL if name.rstrip("2n") in OF_REAL else WAVES


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("name", ONE)
def test_one_dimension_is_numpys(name: str, n: int | None, norm: str | None) -> None:
    x = given(name)
    for axis in (-1, 0):
        wanted = getattr(np.fft, name)(x, n, axis, norm)
        np.testing.assert_allclose(getattr(pb.fft, name)(x, n, axis, norm), wanted, atol=1e-12)
        front = getattr(np.fft, name)(pb.tensor(x), n=n, axis=axis, norm=norm)
        assert isinstance(front, pb.Tensor) and front._value.dtype == wanted.dtype
        np.testing.assert_allclose(front.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("s", "axes"), [(None, None), ((2, 6), None), ((5, 3), (0, 1)), (None, (1, 0))])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_dimensions_are_scipys(name: str, s: Any, axes: Any, norm: str | None) -> None:
    if axes is None and name.endswith("2"):
        axes = (-2, -1)
    x = given(name)
    wanted = getattr(scipy.fft, name)(x, s, axes, norm)
    found = getattr(pb.fft, name)(pb.tensor(x), s=s, dim=axes, norm=norm)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_the_rule_is_the_adjoint(name: str) -> None:
    """<F x, g> is <x, F' g>, in products of real vectors, for odd and even sizes."""
    for norm in NORMS:
        for size in (None, 3, 6):
            sized = {"n": size} if name in ONE else {"s": (size or -1, 4), "dim": (0, 1)}
            x = given(name)

            def transform(z: Any, sized: Any = sized, norm: Any = norm) -> Any:
                return getattr(pb.fft, name)(z, **sized, norm=norm)

            value, pull = pb.vjp(transform, x)
            g = RNG.standard_normal(value.shape)
            if value.dtype.kind == "c":
                g = g + 1j * RNG.standard_normal(value.shape)
            (pulled,) = pull(g)
            assert pulled.dtype == x.dtype
            direction = given(name)[::-1].copy()
            _, pushed = pb.jvp(transform, (x,), (direction,))
            np.testing.assert_allclose(pushed, transform(direction), atol=1e-12)
            right = np.sum(np.conj(pulled) * direction).real
            assert np.sum(np.conj(g) * pushed).real == pytest.approx(right, rel=1e-10, abs=1e-10)


def test_single_precision_stays() -> None:
    x = SIGNAL.astype(np.float32)
    assert pb.fft.rfft(pb.tensor(x)).dtype == pb.complex64
    assert pb.fft.irfft(pb.fft.rfft(pb.tensor(x))).dtype == pb.float32
    assert pb.fft.fft(pb.tensor([1, 2])).dtype == pb.complex64
    assert np.fft.fft(pb.tensor([1, 2])).dtype == pb.complex128


def test_what_takes_no_values_makes_tensors() -> None:
    for made in (pb.fft.fftfreq(4), pb.fft.rfftfreq(4), pb.tril_indices(2, 2), pb.triu_indices(2, 2)):
        assert type(made) is pb.Tensor


def test_frequencies_and_shifts() -> None:
    for n in (1, 4, 5):
        np.testing.assert_allclose(pb.fft.fftfreq(n, 0.5, dtype=pb.float64), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(pb.fft.rfftfreq(n, 0.5, dtype=pb.float64), np.fft.rfftfreq(n, 0.5))
    for shift in ("fftshift", "ifftshift"):
        for axes in (None, 1, (0, 2)):
            wanted = getattr(np.fft, shift)(WAVES, axes)
            np.testing.assert_array_equal(getattr(pb.fft, shift)(WAVES, axes), wanted)
            np.testing.assert_array_equal(getattr(np.fft, shift)(pb.tensor(WAVES), axes=axes).numpy(), wanted)


@pytest.mark.parametrize("library", [np.fft, scipy.fft], ids=["numpy", "scipy"])
def test_gradients_of_numpys_programs(library: Any) -> None:
    """The energy of a spectrum is n times that of the signal."""

    def energy(x: Any) -> Any:
        return (np.abs(library.fft(x, axis=0)) ** 2).sum() + (abs(library.rfft2(x, norm="ortho")) ** 2).sum()

    value, slope = pb.value_and_grad(energy)(SIGNAL)
    np.testing.assert_allclose(value, energy(SIGNAL))
    shift = 1e-6 * RNG.standard_normal(SIGNAL.shape)
    change = energy(SIGNAL + shift) - energy(SIGNAL - shift)
    assert change == pytest.approx(2 * np.sum(slope * shift), rel=1e-6)


def test_a_filter_is_fitted_and_differentiated_twice() -> None:
    target = RNG.standard_normal(16)

    def loss(kernel: Any) -> Any:
        return ((np.fft.irfft(np.fft.rfft(target) * np.fft.rfft(kernel), n=16) - target) ** 2).sum()

    x = RNG.standard_normal(16)
    found = pb.hessian(loss)(x)
    columns = [(pb.grad(loss)(x + 1e-5 * one) - pb.grad(loss)(x - 1e-5 * one)) / 2e-5 for one in np.eye(16)]
    np.testing.assert_allclose(found, columns, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: pb.fft.rfft(pb.tensor([1j])), errors.DTypeError, r"fft\.rfft\(\) is not implemented for c"),
        (lambda: pb.fft.fft(pb.tensor(1.0)), errors.DimensionError, "no dimensions"),
        (lambda: pb.fft.fft(pb.ones(2), n=0), errors.ArgumentError, r"Invalid number of data points \(0\)"),
        (lambda: pb.fft.fft(pb.ones(2), norm="unit"), errors.ArgumentError, 'norm must be "backward"'),
        (lambda: pb.fft.fftn(pb.ones(2, 2), dim=(0, 0)), errors.ArgumentError, "dims must be unique"),
        (lambda: pb.fft.fftn(pb.ones(2, 2), s=(2,), dim=(0, 1)), errors.ArgumentError, "one length"),
        (lambda: pb.fft.irfft(pb.ones(1)), errors.ArgumentError, "Invalid number of data points"),
        (lambda: pb.fft.fft(pb.ones(2), dim=3), errors.DimensionError, "out of range"),
    ],
)
def test_wrong_uses(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_compiled_is_as_eager_to_second_order(name: str) -> None:
    norm = NORMS[len(name) % 4]
    sized = {"n": 5, "axis": 1} if name in ONE else {"s": (3, 6), "axes": (0, 2)}

    def loss(x: Any) -> Any:
        return (abs(getattr(scipy.fft, name)(x * np.exp(0.1 * x), **sized, norm=norm)) ** 3).sum()

    def of_gradient(x: Any) -> Any:
        return (abs(pb.grad(loss)(x)) ** 2).sum()

    x = given(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [pb.compile(one)(x) for one in (loss, pb.grad(loss), pb.grad(of_gradient))]
    for one, wanted in zip(found, (loss(x), pb.grad(loss)(x), pb.grad(of_gradient)(x))):
        np.testing.assert_allclose(one, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_in_either_precision_and_where_there_is_nothing(dtype: Any) -> None:
    def both(x: Any) -> Any:
        return np.fft.rfft(x * 2, axis=1), np.fft.irfft(np.fft.fft(x + 1j, axis=1), n=4, axis=1)

    compiled = pb.compile(both)
    for x in (SIGNAL.astype(dtype), SIGNAL[:0].astype(dtype), SIGNAL[:, ::-1, 1:].astype(dtype)):
        for found, wanted in zip(compiled(x), both(x)):
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=2e-5 if dtype == np.float32 else 1e-12, atol=1e-6)


def test_transforms_for_each_part_of_a_batch_are_compiled() -> None:
    def smoothed(x: Any, kernel: Any) -> Any:
        return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(kernel), n=5)

    kernel = RNG.standard_normal(5)
    over_batch = pb.vmap(smoothed, in_dims=(0, None))
    wanted = np.stack([smoothed(one, kernel) for one in SIGNAL[0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(pb.compile(over_batch)(SIGNAL[0], kernel), wanted, atol=1e-12)


def split_steps(psi: Any, potential: Any) -> Any:
    """A Schroedinger equation by Strang's splitting."""
    phase = np.exp(-0.01j * potential)
    kinetic = np.exp(-0.02j * np.fft.fftfreq(16) ** 2)
    for _ in range(100):
        psi = phase * np.fft.ifft(kinetic * np.fft.fft(phase * psi))
    return psi


@pytest.mark.drawn(6)
def test_a_split_step_solver_is_a_loop_with_transforms() -> None:
    psi, potential = RNG.standard_normal(16) + 1j * RNG.standard_normal(16), RNG.standard_normal(16)

    def loss(psi: Any, potential: Any) -> Any:
        return (np.abs(split_steps(psi, potential)) ** 2 * np.arange(16)).sum()

    both, compiled = (0, 1), pb.compile(split_steps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(compiled(psi, potential), split_steps(psi, potential), atol=1e-12)
        found = pb.compile(pb.grad(loss, both))(psi, potential)
    for one, wanted in zip(found, pb.grad(loss, both)(psi, potential)):
        np.testing.assert_allclose(one, wanted, atol=1e-10)
    source = compiled.source(psi, potential)
    assert source.count(" fft(") < 8 and "captured_1" not in source


def test_the_text_of_a_filter(golden: Any) -> None:
    def smoothed(signal: Any, window: Any) -> Any:
        spectrum = np.fft.rfft(signal)
        return np.fft.irfft(spectrum * window, n=16)

    golden(pb.compile(pb.grad(lambda x, w: (smoothed(x, w) ** 2).sum())).source(np.ones(16), np.ones(9)))


def test_scipys_transforms_write_where_results_lie() -> None:
    """Without them there is a copy, and nothing else: this says that they are where they are looked for."""
    assert pocketfft() is not None
    for operator in (fourier.fft, fourier.rfft, fourier.irfft):
        assert operator.into is not None


def test_transforms_without_a_place_for_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "pocketfft", lambda: None)
    out = np.empty((3, 4, 3), complex)
    assert fourier.rfft.into is not None
    fourier.rfft.into(SIGNAL, out, dim=2, norm="ortho")
    np.testing.assert_allclose(out, np.fft.rfft(SIGNAL, norm="ortho"))


@pytest.mark.drawn(6)
def test_against_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for name in (*ONE, *SEVERAL):
        for norm in NORMS:
            x = torch.tensor(given(name), requires_grad=True)
            y = pb.tensor(given(name), requires_grad=True)
            wanted, found = getattr(torch.fft, name)(x, norm=norm), getattr(pb.fft, name)(y, norm=norm)
            values = wanted.detach().resolve_conj().numpy()
            np.testing.assert_allclose(found.detach().numpy(), values, atol=1e-12)
            (abs(wanted) ** 3).sum().backward()
            (abs(found) ** 3).sum().backward()
            assert y.grad is not None
            np.testing.assert_allclose(y.grad.numpy(), x.grad.resolve_conj().numpy(), atol=1e-9)
