"""Padding by a constant, or by what is inside the tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import movement as m
from ...tape.apply import apart_from, apply
from ...values.tensor import Tensor
from ..common import array_dtype, fail, scalar_of, tensor
from .movement import expand_to
from .parts import part

__all__ = ["constant_pad_nd", "pad"]

Widths = Sequence[tuple[int, int]]


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """More, or with negative numbers less, at the ends of dimensions.

    Args:
        input: a tensor.
        pad: how many before and after in the last dimension, then in the last but one, and so on.
        mode: "constant"; or "reflect", "replicate", "circular", which repeat what is inside.
        value: what to put there in mode "constant"; 0 unless given.

    Raises:
        ArgumentError: another mode, an odd number of widths, or too many. ShapeError: a reflection that is
            wider than the tensor.

    Example:
        >>> pad(tensor([1, 2]), (1, 2))
        tensor([0, 1, 2, 0, 0])
    """
    x = tensor(input, "pad")
    if len(pad) % 2 or len(pad) // 2 > x.ndim:
        fail(
            ArgumentError,
            "Padding length must be divisible by 2 and at most twice the number of dimensions of the "
            f"input. Got padding of length {len(pad)} with input of dimension {x.ndim}",
        )
    pairs = [(int(pad[place]), int(pad[place + 1])) for place in range(0, len(pad), 2)]
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    return apart_from(x, padded(x, widths, mode, value))


def padded(x: Tensor, widths: Widths, mode: str, value: float | None) -> Tensor:
    """x with (before, after) more on every dimension; negative widths take away."""
    if mode == "constant":
        return _constant(_cropped(x, widths), widths, value)
    if value is not None:
        fail(ArgumentError, f'pad: Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        fail(
            ArgumentError,
            f"pad: Unrecognised padding mode {mode!r}; expected constant, reflect, replicate or circular",
        )
    for dim, (before, after) in enumerate(widths):
        if before or after:
            kept = _cropped(x, [(0, 0)] * dim + [(before, after)])
            # what is kept goes round; the other modes continue what there was
            source = kept if mode == "circular" else x
            x = _continued(source, kept, dim, max(before, 0), max(after, 0), mode)
    return x


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """`pad` with a constant.

    Example:
        >>> constant_pad_nd(tensor([1.0]), (1, 0), 2.0)
        tensor([2., 1.])
    """
    return _pad_of_any_mode(input, pad, "constant", value)


def _cropped(x: Tensor, widths: Widths) -> Tensor:
    for dim, (before, after) in enumerate(widths):
        extent = x._value.shape[dim]
        if before < 0 or after < 0:
            start, stop = max(-before, 0), extent + min(after, 0)
            if stop < start:
                fail(
                    ShapeError,
                    f"pad: widths ({before}, {after}) take more than dimension {dim} of shape "
                    f"{tuple(x.shape)} has",
                )
            x = part(x, dim, start, stop)
    return x


def _constant(x: Tensor, widths: Widths, value: float | None) -> Tensor:
    added = tuple((max(before, 0), max(after, 0)) for before, after in widths)
    if not any(any(pair) for pair in added):
        return x
    filler = scalar_of(0 if value is None else value, array_dtype(x))
    return apply(m.pad, x, widths=added, value=filler)


def _continued(x: Tensor, kept: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """What is kept of x, with what is inside of x repeated at both ends of a dimension."""
    extent = x._value.shape[dim]
    most = extent - 1 if mode == "reflect" else extent if mode == "circular" else max(before, after)
    if before > most or after > most or not extent:
        fail(
            ShapeError,
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {list(x.shape)} in mode {mode!r}",
        )
    pieces = [_edge(x, dim, before, True, mode), kept, _edge(x, dim, after, False, mode)]
    names = {
        "reflect": "ReflectionPad1DBackward0",
        "replicate": "ReplicationPad1DBackward0",
        "circular": "CopySlices",
    }
    return apply(m.concatenate, *(one for one in pieces if one is not None), dim=dim, grad_name=names[mode])


def _edge(x: Tensor, dim: int, width: int, is_start: bool, mode: str) -> Tensor | None:
    """What is put before (or after) x along a dimension."""
    extent = x._value.shape[dim]
    if not width:
        return None
    if mode == "replicate":
        place = 0 if is_start else extent - 1
        shape = tuple(width if axis == dim else one for axis, one in enumerate(x._value.shape))
        return expand_to(part(x, dim, place, place + 1), shape)
    if mode == "circular":
        return part(x, dim, extent - width, extent) if is_start else part(x, dim, 0, width)
    inner = part(x, dim, 1, width + 1) if is_start else part(x, dim, extent - 1 - width, extent - 1)
    return apply(m.flip, inner, dims=(dim,))


_pad_of_any_mode = pad
