"""Integrals of samples: SciPy's formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError
from ..functions.common import fail, one_dim
from ..functions.shapes.joining import cat, stack
from ..functions.shapes.movement import movedim
from ..functions.shapes.parts import flip
from ..tape.apply import of_kind, standing_for
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary, kind_of_result, plain, settled


def simpson(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by Simpson's rule: SciPy's `simpson`.

    With an even number of samples the last interval is that of the parabola through the last three
    (K. V. Cartwright, 2017).

    Args:
        y: the samples; x: where they are, a vector or an array of the shape of y; dx: else their distance.

    Raises:
        ShapeError: x does not fit y. ArgumentError: there are no samples.

    Example:
        >>> simpson(np.array([0.0, 1.0, 4.0]))
        np.float64(2.6666666666666665)
    """
    given = _Samples("simpson", y, x, dx, axis)
    return given.restored(_by_parabolas(given.values, given.widths, given.count))


class _Samples:
    """Samples along the last dimension, and how far they are apart."""

    def __init__(self, name: str, y: Any, x: Any, dx: Any, axis: int) -> None:
        samples = _tensor(y)
        samples = samples if samples.is_floating_point() else samples.double()
        self._given = y
        self.axis = one_dim(axis, samples.ndim, name)
        self.values = movedim(samples, self.axis, -1)
        self.count = int(self.values.shape[-1])
        if not self.count:
            fail(ArgumentError, f"{name}: there are no samples along this axis.")
        none = self.values[..., 1:] * 0.0
        if x is None:
            self.widths = none + _tensor(dx).to(samples._value.dtype)
            return
        places = _tensor(x)
        places = movedim(places, axis, -1) if places.ndim > 1 else places
        if places.shape[-1] != self.count:
            fail(ShapeError, f"{name}: x has {places.shape[-1]} values for {self.count} samples.")
        self.widths = none + (places[..., 1:] - places[..., :-1])

    def restored(self, found: Tensor) -> Any:
        """A result of the kind of the samples."""
        kind = kind_of_result(type(standing_for(self._given)), found.shape, False)
        return plain(settled(of_kind(found, kind), (self._given,)))

    def accumulated(self, parts: Tensor, initial: Any) -> Any:
        """The sums of the integrals of intervals, from the first on, of as many values as samples if that is
        given."""
        sums = parts.cumsum(-1)
        if initial is not None:
            first = _tensor(initial).to(sums._value.dtype)
            first = self.values[..., :1] * 0.0 + (movedim(first, self.axis, -1) if first.ndim else first)
            sums = cat([first, sums + first], -1)
        return self.restored(movedim(sums, -1, self.axis))


def _tensor(value: Any) -> Tensor:
    return of_kind(standing_for(np.asarray(value) if isinstance(value, list | tuple) else value), Auxiliary)


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The integrals of samples up to each of them by the trapezoidal rule: SciPy's `cumulative_trapezoid`.

    Args:
        y, x, dx: as of `simpson`.
        initial: 0, to have the first integral, which is 0, as well.

    Example:
        >>> cumulative_trapezoid(np.array([0.0, 1.0, 4.0]), initial=0)
        array([0. , 0.5, 3. ])
    """
    if initial is not None and not isinstance(initial, Tensor) and initial != 0:
        fail(ArgumentError, "cumulative_trapezoid: `initial` must be `None` or `0`.")
    given = _Samples("cumulative_trapezoid", y, x, dx, axis)
    values = given.values
    return given.accumulated(given.widths * (values[..., 1:] + values[..., :-1]) / 2.0, initial)


def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The same by parabolas through three neighbours each: SciPy's `cumulative_simpson`.

    Example:
        >>> cumulative_simpson(np.array([0.0, 1.0, 4.0])).round(6)
        array([0.333333, 2.666667])
    """
    given = _Samples("cumulative_simpson", y, x, dx, axis)
    values, widths = given.values, given.widths
    if given.count < 3:
        return given.accumulated(widths * (values[..., 1:] + values[..., :-1]) / 2.0, initial)
    firsts = _first_of_two(values, widths)
    seconds = flip(_first_of_two(flip(values, -1), flip(widths, -1)), -1)
    in_turn = [
        (firsts if place % 2 == 0 else seconds)[..., place - place % 2] for place in range(given.count - 2)
    ]
    return given.accumulated(stack([*in_turn, seconds[..., -1]], -1), initial)


def _first_of_two(y: Tensor, h: Tensor) -> Tensor:
    """The integrals over the first of two intervals each, of the parabola through their three ends."""
    first, second = h[..., :-1], h[..., 1:]
    share = first / (first + second)
    bend = share * first / second
    return (
        first / 6.0
        * ((3.0 - share) * y[..., :-2] + (3.0 + bend + share) * y[..., 1:-1] - bend * y[..., 2:])
    )  # fmt: skip


def romb(y: Any, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of 2 ** k + 1 samples at equal distances by Romberg's method: SciPy's `romb`.

    Raises:
        ArgumentError: another number of samples.

    Example:
        >>> romb(np.array([0.0, 1.0, 4.0])).round(6)
        np.float64(2.666667)
    """
    from scipy import integrate  # not at start

    given = _Samples("romb", y, None, dx, axis)
    intervals = given.count - 1
    if intervals < 1 or intervals & (intervals - 1):
        fail(ArgumentError, f"romb: there are {given.count} samples; expected 2 ** k + 1. Take simpson.")
    weights = _tensor(integrate.romb(np.eye(given.count), axis=0).astype(given.values._value.dtype))
    return given.restored((given.values * weights).sum(-1) * given.widths[..., 0])


def _by_parabolas(y: Tensor, h: Tensor, count: int) -> Tensor:
    if count == 1:
        return y[..., 0] * 0.0
    if count == 2:
        return 0.5 * h[..., 0] * (y[..., 0] + y[..., 1])
    last = count - 1 - (count + 1) % 2
    first, second = h[..., 0:last:2], h[..., 1:last:2]
    whole, share = first + second, first / second
    total = (
        whole / 6.0
        * (
            y[..., 0 : last - 1 : 2] * (2.0 - 1.0 / share)
            + y[..., 1:last:2] * (whole * whole / (first * second))
            + y[..., 2 : last + 1 : 2] * (2.0 - share)
        )
    ).sum(-1)  # fmt: skip
    if count % 2:
        return total
    near, far = h[..., -1], h[..., -2]
    own = (2.0 * near**2 + 3.0 * near * far) / (6.0 * (far + near))
    before = (near**2 + 3.0 * near * far) / (6.0 * far)
    two_before = near**3 / (6.0 * far * (far + near))
    return total + own * y[..., -1] + before * y[..., -2] - two_before * y[..., -3]
