"""Filters of `scipy.signal` on Tensors: `lfilter`, `sosfilt`, `filtfilt`, `savgol_filter`, `hilbert`, ...

A rational filter is a convolution, and a recurrence by the denominator alone. Traced, that is a `scan`; on
the tape SciPy runs it, and its reverse is the same recurrence backwards in time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ...tracer.trace import is_tracing
from ..autograd.custom_rules import custom_vjp
from ..functions import PUBLIC, declared
from ..functions.common import array_dtype, as_dtype, fail, filled, require_real
from ..functions.loops.control_flow import scan
from ..functions.shapes import joining, movement, parts
from ..functions.signals import fourier
from ..numpy_api.pad_modes import pad
from ..numpy_api.values import averaged, promoted
from ..tape.apply import of_kind
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor
from .convolutions import directly

# --- along the last axis ------------------------------------------------------------------------------------


def _arrays(*values: Any) -> list[Tensor]:
    """The values as arrays of one floating dtype; Python's numbers are arrays, too."""
    return [averaged(one) for one in promoted(values, as_arrays=True)]


def _is_one(coefficients: Any) -> bool:
    return _arrays(coefficients)[0].numel() == 1


def _last(x: Any, axis: int, function: str) -> Tensor:
    """x with the axis as its last dimension."""
    found = tensor_of(x)
    if not -found.ndim <= axis < found.ndim:
        fail(
            ShapeError,
            f"scipy.signal.{function}: x of shape {tuple(found.shape)} has no axis {axis}.",
        )
    return movement.movedim(found, axis, -1)


def _back(x: Tensor, axis: int) -> Tensor:
    return movement.movedim(x, -1, axis)


def _convolved(x: Tensor, kernel: Tensor) -> Tensor:
    """The full convolution of a vector with each row of x."""
    kernel = kernel.reshape((*(1,) * (x.ndim - 1), -1))
    return directly(x, kernel, [(0, n + m - 1) for n, m in zip(x.shape, kernel.shape)])


def _until(x: Tensor, count: int) -> Tensor:
    return parts.part(x, x.ndim - 1, 0, count)


def _from(x: Tensor, start: int) -> Tensor:
    return parts.part(x, x.ndim - 1, start, x.shape[-1])


# --- the recurrence -----------------------------------------------------------------------------------------


def _recurrence(driven: Tensor, poles: Tensor) -> Tensor:
    """The y with y[n] = driven[n] - sum_k poles[k - 1] y[n - k], along the last dimension."""
    if not is_tracing():
        return tensor_of(_by_scipy(of_kind(driven, NumpyTensor), of_kind(poles, NumpyTensor)))
    count, batch = poles.shape[0], tuple(driven.shape[:-1])
    factors = poles.reshape((count, *(1,) * len(batch)))
    none = filled((1, *batch), 0, array_dtype(driven))

    def step(state: Any, now: Any) -> tuple[Any, Any]:
        """What is to be added to the next `count` values, the first of them in front."""
        y = now + state[0]
        return joining.cat([state[1:], none], 0) - factors * y, y

    start = filled((count, *batch), 0, array_dtype(driven))
    return movement.movedim(scan(step, start, movement.movedim(driven, -1, 0))[1], 0, -1)


def _evaluated(driven: Any, poles: Any) -> Any:
    from scipy.signal import lfilter as filtered  # not at start

    return filtered(np.ones(1, poles.dtype), np.concatenate([np.ones(1, poles.dtype), poles]), driven)


def _with_residuals(driven: Any, poles: Any) -> tuple[Any, Any]:
    y = _by_scipy(driven, poles)
    return y, (poles, y)


def _pulled(residuals: Any, cotangent: Any) -> tuple[Any, Any]:
    poles, y = residuals
    of_driven = np.flip(_by_scipy(np.flip(cotangent, -1), np.conj(poles)), -1)
    shares = [
        -np.sum(of_driven[..., lag:] * np.conj(y[..., : max(y.shape[-1] - lag, 0)]))
        for lag in range(1, poles.shape[0] + 1)
    ]
    return of_driven, np.stack(shares)


_by_scipy = custom_vjp(_evaluated)
_by_scipy.defvjp(_with_residuals, _pulled)

# --- rational filters ---------------------------------------------------------------------------------------


def _coefficients(function: str, b: Any, a: Any, *others: Any) -> list[Tensor]:
    """Numerator and denominator, divided by the first of the latter, as vectors of one length; the others."""
    top, bottom, *rest = _arrays(b, a, *others)
    top, bottom = PUBLIC["atleast_1d"](top), PUBLIC["atleast_1d"](bottom)
    if top.ndim != 1 or bottom.ndim != 1 or not top.shape[0] or not bottom.shape[0]:
        fail(
            ShapeError,
            f"scipy.signal.{function}: b and a must be vectors, not empty; found the shapes "
            f"{tuple(top.shape)} and {tuple(bottom.shape)}.",
        )
    order = max(top.shape[0], bottom.shape[0])
    first = bottom[0]
    found = [pad(one / first, [(0, order - one.shape[0])]) for one in (top, bottom)]
    return [*found, *rest]


def _filtered(
    b: Tensor, a: Tensor, x: Tensor, state: Tensor | None, is_finite: bool
) -> tuple[Tensor, Tensor]:
    """The rows of x filtered, and the states behind them: what they add to values that follow."""
    order, length = b.shape[0] - 1, x.shape[-1]
    if not length:
        fail(ShapeError, "scipy.signal.lfilter: x has no elements along the axis.")
    driven = _convolved(x, b)
    if state is not None:
        driven = driven + pad(state, [*[(0, 0)] * (x.ndim - 1), (0, length)])
    y, after = _until(driven, length), _from(driven, length)
    if is_finite:
        return y, after
    y = _recurrence(y, a[1:])
    return y, after - _from(_convolved(y, a), length) if order else after


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The values, and with zi the states at the end."""
    top, bottom, values, *state = _coefficients("lfilter", b, a, x, *([] if zi is None else [zi]))
    rows = _last(values, axis, "lfilter")
    order = top.shape[0] - 1
    start = _state(state[0], axis, (*rows.shape[:-1], order)) if state else None
    y, after = _filtered(top, bottom, rows, start, _is_one(a))
    return (_back(y, axis), _back(after, axis)) if state else _back(y, axis)


def _state(zi: Tensor, axis: int, shape: Sequence[int]) -> Tensor:
    rows = movement.movedim(zi, axis, -1) if zi.ndim == len(shape) else zi
    fits = rows.ndim == len(shape) and rows.shape[-1] == shape[-1]
    if not fits or any(n not in (1, m) for n, m in zip(rows.shape[:-1], shape)):
        fail(
            ShapeError,
            f"scipy.signal.lfilter: zi has the shape {tuple(zi.shape)}; expected {shape[-1]} along the axis "
            "filtered, and the extents of x along the others.",
        )
    return movement.broadcast_to(rows, tuple(shape))


def lfilter_zi(b: Any, a: Any) -> Tensor:
    """The states in which the response to ones is constant."""
    top, bottom = _coefficients("lfilter_zi", b, a)
    missing = top - bottom * (declared.sum(top) / declared.sum(bottom))
    return PUBLIC["cumsum"](parts.flip(missing[1:], (0,)), 0).flip(0)


def _sections(sos: Any, function: str, *others: Any) -> list[Tensor]:
    sections, *rest = _arrays(sos, *others)
    if sections.ndim != 2 or sections.shape[1] != 6:
        fail(
            ShapeError,
            f"scipy.signal.{function}: sos must have the shape (sections, 6), found {tuple(sections.shape)}.",
        )
    return [sections / sections[:, 3:4], *rest]


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    sections, values, *state = _sections(sos, "sosfilt", x, *([] if zi is None else [zi]))
    rows, after = _last(values, axis, "sosfilt"), []
    expected = (sections.shape[0], *rows.shape[:-1], 2)
    start = movement.movedim(state[0], axis % values.ndim + 1, -1) if state else None
    if start is not None and tuple(start.shape) != expected:
        fail(
            ShapeError,
            f"scipy.signal.sosfilt: zi has the shape {tuple(state[0].shape)}; expected (sections, ...) with "
            "2 along the axis filtered.",
        )
    for place in range(sections.shape[0]):
        here = None if start is None else start[place]
        one = sections[place]
        rows, last = _filtered(one[:3], one[3:], rows, here, False)
        after.append(last)
    if start is None:
        return _back(rows, axis)
    return _back(rows, axis), movement.movedim(joining.stack(after, 0), -1, axis % values.ndim + 1)


def sosfilt_zi(sos: Any) -> Tensor:
    (sections,) = _sections(sos, "sosfilt_zi")
    gain: Any = 1.0
    found = []
    for place in range(sections.shape[0]):
        top, bottom = sections[place, :3], sections[place, 3:]
        found.append(gain * lfilter_zi(top, bottom))
        gain = gain * (declared.sum(top) / declared.sum(bottom))
    return joining.stack(found, 0)


# --- forwards and backwards ---------------------------------------------------------------------------------

EXTENSIONS = {
    "odd": {"mode": "reflect", "reflect_type": "odd"}, "even": {"mode": "reflect"},
    "constant": {"mode": "edge"},
}  # fmt: skip
"""SciPy's names of what is put around a signal, and the options of `np.pad`."""


def _both_ways(
    function: str,
    x: Tensor,
    axis: int,
    padtype: str | None,
    edge: int,
    run: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Filtered forwards, then backwards, each from a state that fits the first value.

    Args:
        edge: how many values are put around.
        run: (rows, their first values) -> the rows filtered.
    """
    rows = _last(x, axis, function)
    if padtype not in (*EXTENSIONS, None):
        fail(ArgumentError, f"scipy.signal.{function}: unknown padtype {padtype!r}.")
    edge = edge if padtype is not None else 0
    if rows.shape[-1] <= edge:
        fail(
            ShapeError,
            f"scipy.signal.{function}: x has {rows.shape[-1]} values along the axis, which must be more than "
            f"padlen, {edge}.",
        )
    if edge:
        rows = pad(rows, [*[(0, 0)] * (rows.ndim - 1), (edge, edge)], **EXTENSIONS[str(padtype)])
    for _ in range(2):
        rows = parts.flip(run(rows, _until(rows, 1)), (rows.ndim - 1,))
    return _back(parts.part(rows, rows.ndim - 1, edge, rows.shape[-1] - edge), axis)


def filtfilt(
    b: Any, a: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None,
    method: str = "pad", irlen: Any = None,
) -> Tensor:  # fmt: skip
    if method != "pad":
        fail(
            UnsupportedError,
            f"scipy.signal.filtfilt: method={method!r} is not supported on a Tensor. Use method='pad'.",
        )
    top, bottom, values = _coefficients("filtfilt", b, a, x)
    state, is_finite = lfilter_zi(top, bottom), _is_one(a)
    edge = 3 * top.shape[0] if padlen is None else int(padlen)
    return _both_ways(
        "filtfilt", values, axis, padtype, edge,
        lambda rows, first: _filtered(top, bottom, rows, first * state, is_finite)[0],
    )  # fmt: skip


def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Tensor:
    sections, values = _sections(sos, "sosfiltfilt", x)
    state = sosfilt_zi(sections)
    if padlen is None:
        zeros = declared.sum(PUBLIC["eq"](sections[:, 2::3], 0), 0)
        unused = int(PUBLIC["amin"](zeros, 0))
        padlen = 3 * (2 * sections.shape[0] + 1 - unused)

    def run(rows: Tensor, first: Tensor) -> Tensor:
        start = state.reshape((-1, *(1,) * (rows.ndim - 1), 2)) * first
        return sosfilt(sections, rows, zi=start)[0]

    return _both_ways("sosfiltfilt", values, axis, padtype, int(padlen), run)


# --- linear maps of a signal --------------------------------------------------------------------------------


def _mapped(matrix: np.ndarray, rows: Tensor) -> Tensor:
    """A constant matrix times each row."""
    return PUBLIC["matmul"](rows, tensor_of(np.ascontiguousarray(matrix.T, array_dtype(rows))))


AROUND = {
    "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant", "interp": "constant",
}  # fmt: skip
"""What `savgol_filter` calls the values around a signal, and `np.pad`."""


def savgol_filter(
    x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1,
    mode: str = "interp", cval: float = 0.0,
) -> Tensor:  # fmt: skip
    from scipy import signal  # not at start

    rows = _last(averaged(x), axis, "savgol_filter")
    options = (window_length, polyorder, deriv, delta)
    if mode not in AROUND or (mode == "interp" and window_length > rows.shape[-1]):
        fail(
            ArgumentError,
            f"scipy.signal.savgol_filter: mode={mode!r} for a window of {window_length} and {rows.shape[-1]} "
            f"values; known are {', '.join(AROUND)}, and interp for windows that are not longer.",
        )
    kernel = tensor_of(signal.savgol_coeffs(*options).astype(array_dtype(rows)))
    value: dict[str, Any] = {"constant_values": cval} if mode == "constant" else {}
    before, after = window_length - 1 - window_length // 2, window_length // 2
    widths = [*[(0, 0)] * (rows.ndim - 1), (before, after)]
    size, extended = rows.shape[-1], pad(rows, widths, AROUND[mode], **value)
    found = _until(_from(_convolved(extended, kernel), window_length - 1), size)
    if mode == "interp" and after:  # polynomials of the first and of the last window
        ends = signal.savgol_filter(np.eye(window_length), *options, axis=0)
        found = joining.cat(
            [
                _mapped(ends[:after], _until(rows, window_length)),
                parts.part(found, rows.ndim - 1, after, size - after),
                _mapped(ends[window_length - after :], _from(rows, size - window_length)),
            ],
            -1,
        )
    return _back(found, axis)


def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Tensor:
    rows = _last(averaged(data), axis, "detrend")
    if type in ("constant", "c"):
        return _back(rows - PUBLIC["mean"](rows, -1, True), axis)
    if type not in ("linear", "l"):
        fail(ArgumentError, f"scipy.signal.detrend: type must be 'linear' or 'constant', found {type!r}.")
    size = rows.shape[-1]
    ends = np.unique([0, *np.ravel(bp).astype(int), size])
    if ends[-1] > size:
        fail(ArgumentError, f"scipy.signal.detrend: breakpoints {bp!r} for {size} values.")
    found = []
    for start, stop in itertools.pairwise(ends):
        count = int(stop - start)
        line = np.stack([np.arange(1, count + 1) / count, np.ones(count)], 1)
        part = parts.part(rows, rows.ndim - 1, int(start), int(stop))
        found.append(part - _mapped(line, _mapped(np.linalg.pinv(line), part)))
    return _back(joining.cat(found, -1), axis)


def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Tensor:
    """The analytic signal: the negative frequencies left out, the positive ones twice."""
    rows = _last(averaged(x), axis, "hilbert")
    require_real(rows, "scipy.signal.hilbert")
    count = int(rows.shape[-1] if N is None else N)
    if count <= 0:
        fail(ArgumentError, f"scipy.signal.hilbert: N must be positive, found {count}.")
    factors = np.zeros(count)
    factors[: count // 2 + 1] = 1.0
    factors[1 : (count + 1) // 2] = 2.0
    spectrum = fourier.fft(rows, count)
    weights = as_dtype(tensor_of(factors), array_dtype(spectrum))
    return _back(fourier.ifft(spectrum * weights), axis)


FILTERS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        lfilter, lfilter_zi, sosfilt, sosfilt_zi, filtfilt, sosfiltfilt, savgol_filter, detrend, hilbert,
    )
}  # fmt: skip
"""By name what functions of scipy.signal do on Tensors."""
