"""scipy.signal on tensors: SciPy's values, and gradients of them, compiled or not, twice."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as signal
from scipy_tables.signals import IMAGE, ROWS, A, B, X

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.part(8)


@pytest.mark.drawn(4)
def test_integers_stay_integers() -> None:
    x, kernel = np.arange(50), np.arange(40)
    for method in ("auto", "direct", "fft"):
        function = pb.compile(lambda x, method=method: signal.convolve(x, kernel, method=method))
        found, wanted = function(x), signal.convolve(x, kernel, method=method)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    large = 10_000 * x
    for function in (signal.fftconvolve, lambda a, b: signal.convolve(a, b, method="fft")):
        found, wanted = pb.compile(function)(large, large), function(large, large)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.drawn(4)
def test_batches() -> None:
    def loss(b: Any, a: Any, x: Any) -> Any:
        return (signal.lfilter(b, a, signal.convolve(x, B, "same")) ** 2).sum()

    batched = pb.compile(pb.vmap(pb.grad(loss, argnums=2), in_dims=(None, None, 0)))
    wanted = [pb.grad(loss, argnums=2)(B, A, x) for x in ROWS]
    np.testing.assert_allclose(batched(B, A, ROWS), wanted, rtol=1e-10)


def test_wrong_uses() -> None:
    for transform in (lambda one: one, pb.compile):
        for call, error, match in (
            (lambda x: signal.convolve(x, IMAGE), ShapeError, "convolve: both arrays must have one number"),
            (lambda x: signal.convolve(x, B, "half"), ArgumentError, "mode must be 'full', 'same' or"),
            (lambda x: signal.correlate(x, B, method="slow"), ArgumentError, "method must be one of"),
            (lambda x: signal.convolve2d(x, x), ArgumentError, "convolve2d: matrices"),
            (lambda x: signal.lfilter(B, A, x, zi=x[:5]), ShapeError, r"zi has the shape \(5,\); expected 3"),
            (lambda x: signal.filtfilt(B, A, x, method="gust"), UnsupportedError, "filtfilt: method='gust'"),
            (lambda x: signal.filtfilt(B, A, x[:5]), ShapeError, "more than padlen, 12"),
            (lambda x: signal.sosfilt(B, x), ShapeError, r"sos must have the shape \(sections, 6\)"),
            (lambda x: signal.hilbert(x + 0j).real, pb.errors.DTypeError, "complex"),
            (lambda x: signal.medfilt(x), pb.errors.PullbackError, "scipy.signal.medfilt"),
        ):
            with pytest.raises(error, match=match):
                pb.grad(transform(lambda x, call=call: call(x).sum()))(X)
