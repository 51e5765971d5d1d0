"""Fourier transforms by machine code are those of SciPy."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.fft

import pullback as pb
from pullback.codegen.cost.machine import REFERENCE, assuming
from pullback.codegen.fourier import fill_fft, fill_irfft, fill_rfft
from pullback.codegen.machine import transforms, workers

pytestmark = pytest.mark.part(8)

RNG = np.random.default_rng(8)
SIZES = (2, 3, 4, 5, 8, 12, 15, 60, 256, 360, 1000, 1024, 3840)
"""One pass and several, in vectors of neighbours (multiples of 64) and of rows."""


VECTORS = (64, 32)
"""Bytes of a vector, of as many lanes as it has numbers, but 4 at least and 8 at most."""


def numbers(shape: tuple[int, ...], dtype: type = np.complex128) -> np.ndarray:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rows", [8, 13, 16, 21])
def test_rows_side_by_side_and_one_after_the_other(size: int, rows: int, dtype: type) -> None:
    vector = VECTORS[rows % 2]
    tolerance = 4e-7 if dtype is np.complex64 else 1e-15
    for shape, dim in (((rows, size), 1), ((size, rows), 0), ((3, size, rows), 1)):
        x = numbers(shape, dtype)
        for inverse, reference in ((False, scipy.fft.fft), (True, scipy.fft.ifft)):
            expected = reference(x.astype(complex), axis=dim)
            out = np.full_like(x, np.nan)
            with assuming(replace(REFERENCE, vector=vector)):
                transforms.transform(x, out, dim, inverse, 1 / size if inverse else 1.0)
            np.testing.assert_allclose(out, expected, rtol=0, atol=tolerance * abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 4, 6, 8, 10, 24, 30, 128, 1000, 1280])
@pytest.mark.parametrize("rows", [8, 13, 16])
def test_rows_of_real_numbers(size: int, rows: int, dtype: type) -> None:
    vector = VECTORS[rows % 2]
    tolerance = 4e-7 if dtype is np.float32 else 1e-15
    x = RNG.normal(size=(2, rows, size)).astype(dtype)
    spectrum = numbers((2, rows, size // 2 + 1), np.result_type(dtype, np.complex64).type)
    for fill, given, expected in (
        (fill_rfft, x, scipy.fft.rfft(x.astype(float), norm="ortho")),
        (fill_irfft, spectrum, scipy.fft.irfft(spectrum.astype(complex), n=size, norm="forward")),
    ):
        out = np.full(expected.shape, np.nan, spectrum.dtype if fill is fill_rfft else dtype)
        options = {"norm": "ortho"} if fill is fill_rfft else {"norm": "forward"}
        with assuming(replace(REFERENCE, planning=0.0, vector=vector)):
            fill(given, out, dim=2, **options)
        np.testing.assert_allclose(out, expected, rtol=0, atol=tolerance * abs(expected).max())


@pytest.mark.drawn(4)
@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("shape", [(1, 64), (3, 4096)])
def test_few_rows(shape: tuple[int, int], vector: int) -> None:
    x = numbers(shape)
    real, spectrum = x.real.copy(), np.fft.rfft(x.real)
    machine = replace(REFERENCE, planning=0.0, vector=vector)
    with assuming(machine):
        assert transforms.suits((*shape[:1], shape[1] // 2), 1, 16) == (vector == 32 or shape[1] > 64)
    found = [np.full_like(x, np.nan), np.full_like(spectrum, np.nan), np.full_like(real, np.nan)]
    with assuming(machine):
        fill_fft(x, found[0], (1,), True, "ortho")
        fill_rfft(real, found[1], 1, "backward")
        fill_irfft(spectrum, found[2], 1, "backward")
    for one, expected in zip(found, (scipy.fft.ifft(x, norm="ortho"), spectrum, real)):
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-15 * abs(expected).max())


def test_ends_of_a_spectrum_count_as_real() -> None:
    spectrum = numbers((2, 65))
    out = np.empty((2, 128))
    transforms.transform_to_real(spectrum, out, 1 / 128)
    np.testing.assert_allclose(out, scipy.fft.irfft(spectrum), rtol=0, atol=1e-15)


@pytest.mark.parametrize("shape, dim", [((37, 48), 1), ((48, 37), 0), ((3, 48, 19), 1), ((3, 128), 1)])
def test_in_place(shape: tuple[int, ...], dim: int) -> None:
    x = numbers(shape)
    expected = scipy.fft.fft(x, axis=dim)
    transforms.transform(x, x, dim, False, 1.0)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-13)


def test_threads_share_blocks_and_compute_the_same() -> None:
    x = numbers((300, 512))
    before = pb.get_num_threads()
    try:
        found = []
        for threads in (1, 3):
            pb.set_num_threads(threads)
            found.append(np.empty_like(x))
            transforms.transform(x, found[-1], 1, False, 1.0)
        assert workers.number() >= 2
    finally:
        pb.set_num_threads(before)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    "shape, dims",
    [
        ((64, 96), (0, 1)),
        ((4, 64, 32), (1, 2)),
        ((16, 24, 20), (0, 2)),
        ((64, 97), (0, 1)),
        ((1, 40, 60), (0, 2)),
        ((5, 3), (0,)),
        ((1, 4), (0,)),
    ],
)
def test_dimensions_and_norms(
    shape: tuple[int, ...], dims: tuple[int, ...], inverse: bool, norm: str
) -> None:
    x, out = numbers(shape), np.empty(shape, complex)
    fill_fft(x, out, dims, inverse, norm)
    expected = (scipy.fft.ifftn if inverse else scipy.fft.fftn)(x, axes=dims, norm=norm)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14 * abs(expected).max())


def test_what_does_not_lie_in_order_is_transformed_all_the_same() -> None:
    x, out = numbers((64, 128)).T, np.empty((128, 64), complex)
    fill_fft(x, out, (0,), False, "backward")
    np.testing.assert_allclose(out, scipy.fft.fft(x, axis=0), rtol=0, atol=1e-12)


def test_a_number_that_is_nan_stays_in_its_row() -> None:
    x = numbers((16, 64))
    x[3, 5] = np.nan
    out = np.empty_like(x)
    transforms.transform(x, out, 1, False, 1.0)
    assert np.isnan(out[3]).all() and np.isfinite(np.delete(out, 3, 0)).all()


@pytest.mark.drawn(4)
def test_compiled_functions_and_their_gradients() -> None:
    def misfit(re, im):
        spectrum = np.fft.fft2(re + 1j * im)
        return np.sum(np.abs(np.fft.ifft2(spectrum * np.cos(re))) ** 2)

    re, im = RNG.normal(size=(2, 32, 48))
    value, gradients = pb.compile(pb.value_and_grad(misfit, argnums=(0, 1)))(re, im)
    expected, expected_gradients = pb.value_and_grad(misfit, argnums=(0, 1))(re, im)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for one, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
