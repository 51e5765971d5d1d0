"""Checks gradients against finite differences, in double precision, along random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, GradientError
from ...tracer.spec import CONTINUOUS
from ..values.tensor import Tensor, make
from .autograd import grad


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, seed: int = 0, directions: int = 3, **unused: Any,
) -> bool:  # fmt: skip
    """Whether the gradients of `func` agree with central differences.

    Each output is contracted with a random cotangent, and its slope along random directions is compared with
    the gradient's, so that the cost does not grow with the size of the inputs. Of complex numbers both are
    complex, and gradients are PyTorch's: those of the real part of the output times the conjugate cotangent.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad must be float64 or complex128.
        eps: the half width of the differences.
        atol, rtol: the tolerances.

    Raises:
        GradientError: they do not agree (False is returned instead if not `raise_exception`).
        ArgumentError: no input requires grad, or one that does is neither float64 nor complex128.

    Example:
        >>> gradcheck(lambda x: x.sin(), Tensor([0.5]).double().requires_grad_())
        True
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [
        position for position, one in enumerate(given) if isinstance(one, Tensor) and one.requires_grad
    ]
    if not checked:
        raise ArgumentError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have."
        )
    for position in checked:
        if given[position].dtype.name not in ("float64", "complex128"):
            raise ArgumentError(
                f"gradcheck: input {position} has dtype {given[position].dtype}; use float64 or complex128."
            )
    rng = np.random.default_rng(seed)
    for number in range(len(_outputs(func(*given)))):
        for _ in range(directions):
            message = _disagreement(func, given, checked, number, rng, eps, atol, rtol)
            if message and raise_exception:
                raise GradientError(message)
            if message:
                return False
    return True


def _outputs(value: Any) -> tuple[Tensor, ...]:
    found = (value,) if isinstance(value, Tensor) else tuple(value)
    return tuple(one for one in found if isinstance(one, Tensor) and one._value.dtype.kind in CONTINUOUS)


def _random_like(one: Tensor, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the same shape and sort."""
    shape = tuple(one.shape)
    real = rng.standard_normal(shape)
    return np.asarray(real + 1j * rng.standard_normal(shape) if one.is_complex() else real)


def _real_product(one: np.ndarray, other: np.ndarray) -> float:
    """That of all parts: the real part of the product with the conjugate."""
    return float(np.vdot(one, other).real)


def _disagreement(
    func: Callable[..., Any], given: Sequence[Any], checked: Sequence[int], number: int,
    rng: np.random.Generator, eps: float, atol: float, rtol: float,
) -> str:  # fmt: skip
    """What is wrong with one output along one direction; empty if nothing."""
    steps = {position: _random_like(given[position], rng) for position in checked}
    leaves = [
        make(one._value.copy()).requires_grad_() if position in steps else one
        for position, one in enumerate(given)
    ]
    output = _outputs(func(*leaves))[number]
    cotangent = _random_like(output, rng)
    variables = [leaves[position] for position in checked]
    gradients: Sequence[Any] = [None] * len(checked)
    if output.requires_grad:
        weights = make(cotangent).to(output.dtype)
        gradients = grad(output, variables, weights, allow_unused=True)
    analytical = sum(
        _real_product(slope._value, steps[position])
        for slope, position in zip(gradients, checked) if slope is not None
    )  # fmt: skip

    def shifted(distance: float) -> np.ndarray:
        moved = [
            make(np.asarray(one._value + distance * steps[position])).requires_grad_()
            if position in steps
            else one
            for position, one in enumerate(given)
        ]
        return _outputs(func(*moved))[number]._detached()._value

    numerical = _real_product(cotangent, (shifted(eps) - shifted(-eps)) / (2 * eps))
    if abs(analytical - numerical) <= atol + rtol * abs(numerical):
        return ""
    return (
        f"Jacobian mismatch for output {number}: along a random direction the gradient gives {analytical}, "
        f"finite differences {numerical}."
    )


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, seed: int = 0, **unused: Any,
) -> bool:  # fmt: skip
    """`gradcheck` of the gradients of `func`: whether second derivatives are right.

    Example:
        >>> gradgradcheck(lambda x: x.sin(), Tensor([0.5]).double().requires_grad_())
        True
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [
        position for position, one in enumerate(given) if isinstance(one, Tensor) and one.requires_grad
    ]
    rng = np.random.default_rng(seed)
    cotangents = grad_outputs
    if cotangents is None:
        cotangents = [make(_random_like(one, rng)).requires_grad_() for one in _outputs(func(*given))]
    elif isinstance(cotangents, Tensor):
        cotangents = [cotangents]

    def gradients(*arguments: Any) -> tuple[Tensor, ...]:
        originals, weights = arguments[: len(given)], arguments[len(given) :]
        variables = [originals[position] for position in checked]
        found = grad(
            _outputs(func(*originals)), variables, weights, create_graph=True, materialize_grads=True
        )
        return tuple(found)

    return gradcheck(
        gradients,
        (*given, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        seed=seed,
    )
