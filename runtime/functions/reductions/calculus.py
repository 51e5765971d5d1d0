"""Sampled curves: areas under them and slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....tracer.errors import ArgumentError, DimensionError, ShapeError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..common import Scalar, all_dims, fail, floating, is_scalar, numpy_names, one_dim, own_dim, tensor
from ..declared import cumsum
from ..declared import sum as sum_of
from ..shapes.joining import cat
from ..shapes.movement import reshape_to
from ..shapes.parts import part

__all__ = ["cumulative_trapezoid", "gradient", "trapezoid", "trapz"]


def _areas(y: Tensor, x: Tensor | None, dx: Scalar | None, dim: int, function: str) -> Tensor:
    """Of each strip between neighbours, twice the area."""
    count = y.shape[dim]
    heights = part(y, dim, 0, count - 1) + part(y, dim, 1, count)
    if x is None:
        return heights if dx is None else heights * dx
    if dx is not None:
        fail(ArgumentError, f"{function}(): received both x and dx; give one.")
    places = tensor(x, function, "x")
    if places.ndim == 1 and places.shape[0] == count:
        places = reshape_to(places, tuple(count if axis == dim else 1 for axis in range(y.ndim)))
    if places.ndim != y.ndim:
        extra = y.ndim - places.ndim
        places = reshape_to(places, (1,) * extra + tuple(places.shape)) if extra > 0 else places
    along = dim - y.ndim + places.ndim
    if places.shape[along] != count:
        fail(
            ShapeError,
            f"{function}(): There must be one `x` value for each sample point: found {tuple(x.shape)} for y "
            f"of shape {tuple(y.shape)} along dimension {dim}.",
        )
    return heights * (part(places, along, 1, count) - part(places, along, 0, count - 1))


@numpy_names
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar | None = None, dim: int = -1) -> Tensor:
    """The area under samples of a curve, by the trapezoid rule.

    Args:
        y: the samples.
        x: where they are: a vector, or a tensor that broadcasts with y.
        dx: the distance of neighbours, if not 1.

    Example:
        >>> trapezoid(tensor([1.0, 2.0, 3.0]))
        tensor(4.)
    """
    samples = tensor(y, "trapezoid")
    dim = own_dim(dim, samples, "trapezoid")
    if not samples.shape[dim]:
        return sum_of(floating(samples, "trapezoid"), dim)
    return _halved(sum_of(_areas(samples, x, dx, dim, "trapezoid"), dim))


@numpy_names
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Scalar | None = None, dim: int = -1
) -> Tensor:
    """The areas under a curve up to each sample but the first; see `trapezoid`.

    Example:
        >>> cumulative_trapezoid(tensor([1.0, 2.0, 3.0]))
        tensor([1.5000, 4.0000])
    """
    samples = tensor(y, "cumulative_trapezoid")
    dim = own_dim(dim, samples, "cumulative_trapezoid")
    return _halved(cumsum(_areas(samples, x, dx, dim, "cumulative_trapezoid"), dim))


def _halved(areas: Tensor) -> Tensor:
    return apply(e.divide, floating(areas, "trapezoid"), 2.0)


trapz = trapezoid


def gradient(
    input: Tensor, *, spacing: Any = None, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slopes along each dimension: central differences inside, one-sided ones at both ends.

    Args:
        spacing: the distance of neighbours, 1 by default; a number for each dimension, or a vector of
            places for each.
        edge_order: 1 or 2, of the differences at the ends.

    Returns:
        A tuple with one tensor of the shape of `input` for each dimension.

    Raises:
        ArgumentError: too few elements, or not one spacing for each dimension.

    Example:
        >>> gradient(tensor([1.0, 4.0, 9.0]))
        (tensor([3., 4., 5.]),)
    """
    x = floating(input, "gradient")
    dims = (
        [one_dim(one, x.ndim, "gradient") for one in dim]
        if isinstance(dim, Sequence)
        else list(all_dims(dim, x.ndim, "gradient"))
    )
    if len(set(dims)) < len(dims):
        fail(DimensionError, f"gradient(): dim {tuple(dims)} names a dimension more than once.")
    spacing = 1 if spacing is None else spacing
    steps = [spacing] * len(dims) if is_scalar(spacing) else list(spacing)
    if len(steps) != len(dims) or edge_order not in (1, 2):
        fail(
            ArgumentError,
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of {len(dims)}, and "
            f"edge_order 1 or 2: found {len(steps)} spacings, edge_order {edge_order}.",
        )
    return tuple(_slopes(x, step, axis, edge_order) for step, axis in zip(steps, dims))


def _slopes(x: Tensor, spacing: Any, dim: int, edge_order: int) -> Tensor:
    count = x.shape[dim]
    if count < edge_order + 1:
        fail(
            ArgumentError,
            f"torch.gradient expected each dimension size to be at least edge_order + 1 = {edge_order + 1}, "
            f"found {count}.",
        )
    if is_scalar(spacing) or not spacing.ndim:
        widths = None
    else:
        places = reshape_to(spacing, tuple(count if axis == dim else 1 for axis in range(x.ndim)))
        widths = part(places, dim, 1, count) - part(places, dim, 0, count - 1)
    near_first, near_last = (_end(x, widths, dim, edge_order, spacing, last) for last in (False, True))
    before, here, behind = (part(x, dim, start, count - 2 + start) for start in range(3))
    if widths is None:
        inside = apply(e.divide, behind - before, 2.0) / spacing
    else:
        one, two = part(widths, dim, 0, count - 2), part(widths, dim, 1, count - 1)
        inside = -two / (one * (one + two)) * before + (two - one) / (one * two) * here
        inside = inside + one / (two * (one + two)) * behind
    return cat([near_first, inside, near_last], dim)


def _end(x: Tensor, widths: Tensor | None, dim: int, edge_order: int, spacing: Any, last: bool) -> Tensor:
    """The slope at the first or the last place."""
    count = x.shape[dim]

    def at(values: Tensor, place: int) -> Tensor:
        place = values.shape[dim] - 1 - place if last else place
        return part(values, dim, place, place + 1)

    sign = -1.0 if last else 1.0
    near = spacing if widths is None else at(widths, 0)
    if edge_order == 1:
        return sign * (at(x, 1) - at(x, 0)) / near
    far = spacing if widths is None else at(widths, min(1, count - 2))
    slope = (
        -(2.0 * near + far) / (near * (near + far)) * at(x, 0)
        + (near + far) / (near * far) * at(x, 1)
        - near / (far * (near + far)) * at(x, 2)
    )
    return sign * slope
