"""stft and istft: PyTorch's values and gradients, what they undo, wrong uses."""

import warnings
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import errors

RNG = np.random.default_rng(8)
SIGNALS = RNG.standard_normal((2, 37))
WAVES = SIGNALS + 1j * RNG.standard_normal((2, 37))
OPTIONS: list[dict[str, Any]] = [
    {"n_fft": 8}, {"n_fft": 9, "hop_length": 3}, {"n_fft": 8, "win_length": 6, "window": np.hanning(8)[1:7]},
    {"n_fft": 8, "hop_length": 4, "normalized": True, "window": np.hamming(8)},
    {"n_fft": 8, "hop_length": 5, "center": False}, {"n_fft": 8, "onesided": False},
    {"n_fft": 8, "pad_mode": "constant", "window": np.hanning(9)[:8]},
]  # fmt: skip


def called(lib: Any, name: str, x: np.ndarray, options: dict[str, Any]) -> list[np.ndarray]:
    """The value, and its gradient."""
    given = {key: lib.tensor(one) if key == "window" else one for key, one in options.items()}
    leaf = lib.tensor(x, requires_grad=True)
    value = getattr(leaf, name)(**given)
    weights = lib.arange(value.shape[-1]) + 1
    ((abs(value) ** 2) * weights).sum().backward()
    return [value.detach().numpy(), leaf.grad.numpy()]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("x", [SIGNALS, SIGNALS[0], WAVES], ids=["signals", "a signal", "waves"])
def test_values_and_gradients_are_pytorchs(x: np.ndarray, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    options = {**options, "return_complex": True}
    for one, other in zip(*(called(lib, "stft", x, options) for lib in (pb, torch))):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=1e-11)
    back = {key: one for key, one in options.items() if key not in ("pad_mode", "return_complex")}
    given = {key: pb.tensor(one) if key == "window" else one for key, one in options.items()}
    spectrum = pb.stft(pb.tensor(x), **given).numpy()
    is_complex = x.dtype.kind == "c"
    for length in (None, 25, 37):
        arguments = {**back, "length": length, "return_complex": is_complex}
        if not back.get("center", True) and (length is None or length > 33):
            arguments["length"] = 33
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pairs = zip(*(called(lib, "istft", spectrum, arguments) for lib in (pb, torch)))
        for one, other in pairs:
            np.testing.assert_allclose(one, other, atol=1e-11)


def test_parts_in_a_last_dimension() -> None:
    pairs = pb.stft(pb.tensor(SIGNALS), 8, return_complex=False)
    whole = pb.stft(pb.tensor(SIGNALS), 8, return_complex=True)
    assert pairs.dtype == pb.float64
    np.testing.assert_array_equal(pb.view_as_complex(pairs.contiguous()).numpy(), whole.numpy())


def test_the_inverse_gives_the_signal() -> None:
    def there_and_back(x: Any) -> Any:
        window = pb.hann_window(8, dtype=pb.float64)
        found = pb.stft(x, 8, 2, window=window, return_complex=True)
        return pb.istft(found, 8, 2, window=window, length=37)

    np.testing.assert_allclose(there_and_back(pb.tensor(SIGNALS)).numpy(), SIGNALS, atol=1e-12)
    matrix = pb.jacobian(there_and_back)(pb.tensor(SIGNALS[0]))
    np.testing.assert_allclose(matrix.numpy(), np.eye(37), atol=1e-12)


@pytest.mark.drawn(6)
def test_compiled_they_are_as_eager() -> None:
    def loss(x: Any) -> Any:
        found = pb.stft(x, 8, 3, window=pb.hann_window(8, dtype=pb.float64), return_complex=True)
        return (abs(found) ** 2).sum() + pb.istft(found[..., ::2] * found[..., ::2], 8, 4).square().sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in (pb.compile(pb.grad(loss)), pb.grad(pb.compile(loss))):
            np.testing.assert_allclose(found(SIGNALS), pb.grad(loss)(SIGNALS), atol=1e-9)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: pb.stft(x, 8), errors.ArgumentError, "return_complex parameter be given"),
        (lambda x: pb.stft(x, 80, return_complex=True, center=False), errors.ShapeError, "0 < n_fft <= 37"),
        (lambda x: pb.stft(x, 8, 0, return_complex=True), errors.ArgumentError, "hop_length > 0"),
        (lambda x: pb.stft(x + 0j, 8, win_length=9), errors.ArgumentError, "win_length <= n_fft"),
        (lambda x: pb.stft(x, 8, window=pb.ones(5), return_complex=True), errors.ShapeError, r"size \(5,\)"),
        (lambda x: pb.stft(x[None], 8, return_complex=True), errors.ShapeError, "1D or 2D"),
        (lambda x: pb.stft(x + 0j, 8, onesided=True), errors.DTypeError, "onesided output"),
        (lambda x: pb.istft(x, 8), errors.DTypeError, "complex-valued"),
        (lambda x: pb.istft(x + 0j, 8), errors.ShapeError, "5 frequencies, windows"),
        (lambda x: pb.istft(x[:, :5] + 0j, 2, 3, center=False), errors.ArgumentError, "places are in no"),
    ],
)  # fmt: skip
def test_wrong_uses(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(pb.tensor(SIGNALS))
