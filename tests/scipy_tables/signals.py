"""Filters and convolutions: `scipy.signal`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as signal
from scipy_programs import Program, drawn

RNG = drawn("signal")
X, LONG = RNG.standard_normal(23), RNG.standard_normal(90)
ROWS = RNG.standard_normal((3, 19))
IMAGE, KERNEL = RNG.standard_normal((9, 8)), RNG.standard_normal((4, 3))
CUBES = RNG.standard_normal((4, 5, 3)), RNG.standard_normal((2, 3, 2))
WAVES = RNG.standard_normal(13) + 1j * RNG.standard_normal(13), RNG.standard_normal(4) + 0.3j
B, A = np.array([0.2, 0.5, -0.1]), np.array([1.3, -0.4, 0.25, 0.1])
ZI, ZI_ROWS = np.array([0.3, -0.2, 0.7]), RNG.standard_normal((3, 3))
SOS = signal.butter(5, 0.3, output="sos")
PARTS = SOS[:, [0, 1, 2, 4, 5]]


def sections(parts: Any) -> Any:
    """Denominators that begin with 1, as SciPy has them."""
    return np.concatenate([parts[:, :3], np.ones((len(SOS), 1), parts.dtype), parts[:, 3:]], 1).copy()


def _modes(name: str, function: Any, given: tuple[np.ndarray, ...], **options: Any) -> dict[str, Program]:
    return {
        f"{name} {mode}": (lambda *arrays, mode=mode: function(*arrays, mode=mode, **options), given)
        for mode in ("full", "same", "valid")
    }


PROGRAMS: dict[str, Program] = {
    **_modes("convolve", signal.convolve, (X, B)),
    **_modes("convolve with a longer one", signal.convolve, (B, X)),
    **_modes("convolve directly", signal.convolve, (LONG, RNG.standard_normal(40)), method="direct"),
    **_modes("convolve by transforms", signal.convolve, (X, A), method="fft"),
    **_modes("convolve images", signal.convolve, (IMAGE, KERNEL)),
    **_modes("convolve images directly", signal.convolve, (IMAGE, IMAGE[:6, :7].copy()), method="direct"),
    **_modes("convolve cubes", signal.convolve, CUBES),
    **_modes("convolve complex", signal.convolve, WAVES),
    **_modes("correlate", signal.correlate, (X, A)),
    **_modes("correlate with a longer one", signal.correlate, (A, X)),
    **_modes("correlate images", signal.correlate, (IMAGE, KERNEL)),
    **_modes("correlate complex", signal.correlate, WAVES),
    **_modes("fftconvolve", signal.fftconvolve, (IMAGE, KERNEL)),
    **_modes("fftconvolve complex", signal.fftconvolve, WAVES),
    **_modes("fftconvolve along an axis", signal.fftconvolve, (ROWS, ROWS[:1, :4].copy()), axes=1),
    **_modes("oaconvolve", signal.oaconvolve, (LONG, X)),
    **_modes("convolve2d", signal.convolve2d, (IMAGE, KERNEL)),
    **_modes("convolve2d wrapped", signal.convolve2d, (IMAGE, KERNEL), boundary="wrap"),
    **_modes("convolve2d mirrored", signal.convolve2d, (IMAGE, KERNEL), boundary="symm"),
    **_modes("convolve2d filled", signal.convolve2d, (IMAGE, KERNEL), fillvalue=1.5),
    **_modes("correlate2d", signal.correlate2d, (IMAGE, KERNEL)),
    **_modes("correlate2d wrapped", signal.correlate2d, (IMAGE, KERNEL), boundary="wrap"),
    **_modes("correlate2d with a larger one", signal.correlate2d, (KERNEL, IMAGE), boundary="symm"),
    **_modes("convolve2d with a larger one", signal.convolve2d, (KERNEL, IMAGE)),
    "lfilter": (signal.lfilter, (B, A, X)),
    "lfilter along the first axis": (lambda b, a, x: signal.lfilter(b, a, x, axis=0), (B, A, ROWS)),
    "lfilter of a longer numerator": (signal.lfilter, (A, A[:2], X)),
    "lfilter finite": (lambda b, x: signal.lfilter(b, [2.0], x), (B, ROWS)),
    "lfilter of constants": (lambda x: signal.lfilter(*signal.butter(3, 0.2), x), (ROWS,)),
    "lfilter from a state": (lambda b, a, x, z: signal.lfilter(b, a, x, zi=z)[0], (B, A, X, ZI)),
    "lfilter states": (lambda b, a, x, z: signal.lfilter(b, a, x, -1, z)[1], (B, A, ROWS, ZI_ROWS)),
    "lfilter states of few values": (lambda b, a, x, z: signal.lfilter(b, a, x, zi=z)[1], (B, A, X[:2], ZI)),
    "lfilter states, finite": (lambda b, x, z: signal.lfilter(b, 1.0, x, zi=z)[1], (B, X, ZI[:2])),
    "lfilter complex": (lambda x: signal.lfilter(B, A * (1 + 0.2j), x), (WAVES[0],)),
    "lfilter_zi": (signal.lfilter_zi, (B, A)),
    "sosfilt": (lambda parts, x: signal.sosfilt(sections(parts), x), (PARTS, ROWS)),
    "sosfilt along the first axis": (lambda parts, x: signal.sosfilt(sections(parts), x, 0), (PARTS, ROWS)),
    "sosfilt states": (
        lambda parts, x, z: signal.sosfilt(sections(parts), x, zi=z)[1],
        (PARTS, ROWS, RNG.standard_normal((3, 3, 2))),
    ),
    "sosfilt_zi": (signal.sosfilt_zi, (SOS,)),
    "filtfilt": (signal.filtfilt, (B, A, X)),
    "filtfilt even": (lambda b, a, x: signal.filtfilt(b, a, x, 0, "even", 1), (B, A, ROWS)),
    "filtfilt constant": (lambda b, a, x: signal.filtfilt(b, a, x, padtype="constant"), (B, A, ROWS)),
    "filtfilt without ends": (lambda b, a, x: signal.filtfilt(b, a, x, padtype=None), (B, A, ROWS)),
    "sosfiltfilt": (lambda x: signal.sosfiltfilt(SOS, x), (LONG,)),
    **{
        f"savgol_filter {mode}": (lambda x, mode=mode: signal.savgol_filter(x, 7, 3, mode=mode), (ROWS,))
        for mode in ("interp", "mirror", "nearest", "wrap")
    },
    "savgol_filter of a slope": (lambda x: signal.savgol_filter(x, 5, 2, 1, 0.1, 0), (ROWS.T.copy(),)),
    "savgol_filter of an even window": (lambda x: signal.savgol_filter(x, 6, 2), (X,)),
    "savgol_filter constant": (lambda x: signal.savgol_filter(x, 5, 2, mode="constant", cval=2.0), (X,)),
    "detrend": (signal.detrend, (ROWS,)),
    "detrend constant": (lambda x: signal.detrend(x, 0, "constant"), (ROWS,)),
    "detrend of pieces": (lambda x: signal.detrend(x, bp=[5, 12]), (ROWS,)),
    "hilbert": (lambda x: abs(signal.hilbert(x)), (X,)),
    "hilbert of even length": (lambda x: abs(signal.hilbert(x, 24, axis=0)), (ROWS.T.copy(),)),
    "windows": (lambda x: x * signal.windows.hann(23), (X,)),
    "names": (lambda x: signal.convolve(in1=[1.0, 2.0], in2=x), (X,)),
}  # fmt: skip
