"""Dual numbers: values with their derivatives along tangents, under the names of torch.autograd.forward_ad.

The tape records as ever; a tangent is the pull-back's own pull-back (see `transforms.jvp`), computed when it
is asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...tracer.errors import GradientError, ShapeError
from ..tensors.creation import zeros_like
from ..values.modes import enable_grad
from ..values.tensor import Tensor
from .autograd import grad


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, which is None where it depends on no dual number.

    Example:
        >>> from pullback.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     forward_ad.unpack_dual(forward_ad.make_dual(tensor(3.0), tensor(1.0)) ** 2).tangent
        tensor(6.)
    """

    primal: Tensor
    tangent: Tensor | None


_levels: list[list[tuple[Tensor, Tensor]]] = []


class dual_level:
    """A `with` block in which dual numbers exist; they end with it.

    Example:
        >>> with dual_level():
        ...     y = make_dual(tensor([3.0]), tensor([1.0])) ** 2
        ...     unpack_dual(y).tangent
        tensor([6.])
    """

    def __enter__(self) -> int:
        _levels.append([])
        return len(_levels) - 1

    def __exit__(self, *error: Any) -> None:
        _levels.pop()


def enter_dual_level() -> int:
    """Begin a level; see `dual_level`.

    Example:
        >>> from pullback.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.exit_dual_level(level=level)
    """
    return dual_level().__enter__()


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level.

    Example:
        >>> from pullback.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.exit_dual_level()
    """
    _levels.pop()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor as a dual number with this tangent.

    Raises:
        GradientError: outside of a level. ShapeError: the shapes differ.

    Example:
        >>> with dual_level():
        ...     unpack_dual(make_dual(tensor([3.0]), tensor([1.0]))).tangent
        tensor([1.])
    """
    if not _levels:
        raise GradientError("Trying to create a dual Tensor for forward AD but no level exists.")
    if tensor.shape != tangent.shape:
        raise ShapeError(
            f"Expected tangent to have the same size as its tensor, {list(tensor.shape)}, found "
            f"{list(tangent.shape)}"
        )
    with enable_grad():
        variable = tensor.view_as(tensor) if tensor.requires_grad else tensor._detached().requires_grad_()
    _levels[-1].append((variable, tangent))
    return variable


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a dual number.

    Example:
        >>> with dual_level():
        ...     unpack_dual(sin(make_dual(tensor([0.0]), tensor([2.0])))).tangent
        tensor([2.])
    """
    if not _levels or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    given = _levels[-1]
    with enable_grad():
        cotangent = zeros_like(tensor).requires_grad_()
        variables = [variable for variable, _ in given]
        pulled = grad(tensor, variables, cotangent, create_graph=True, allow_unused=True)
        linear = [
            (slope, tangent)
            for slope, (_, tangent) in zip(pulled, given)
            if slope is not None and slope.requires_grad
        ]
        if not linear:
            found = any(slope is not None for slope in pulled)
            return UnpackedDualTensor(tensor._detached(), zeros_like(tensor) if found else None)
        outputs, along = zip(*linear)
        (tangent,) = grad(outputs, cotangent, along, retain_graph=True, allow_unused=True)
    return UnpackedDualTensor(tensor._detached(), zeros_like(tensor) if tangent is None else tangent)
