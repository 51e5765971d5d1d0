"""Activations with the argument `inplace`, as torch.nn.functional has them, and `relu_` and its kin."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..functions.networks import activation, noise
from ..functions.selections.assignment import copy_
from ..values.tensor import Tensor

Function = Callable[..., Tensor]


def _with_option(function: Function) -> Function:
    """The function, which writes its result into the input with `inplace=True`."""

    @functools.wraps(function)
    def call(input: Tensor, *arguments: Any, inplace: bool = False, **options: Any) -> Tensor:
        result = function(input, *arguments, **options)
        return copy_(input, result) if inplace else result

    return call


def _always(function: Function) -> Function:
    """The function, which writes its result into the input."""

    @functools.wraps(function)
    def call(input: Tensor, *arguments: Any, **options: Any) -> Tensor:
        return copy_(input, function(input, *arguments, **options))

    call.__name__ = call.__qualname__ = f"{function.__name__}_"
    call.__doc__ = f"`{function.__name__}`, written into the input."
    return call


celu, celu_ = _with_option(activation.celu), _always(activation.celu)
elu, elu_ = _with_option(activation.elu), _always(activation.elu)
hardsigmoid, hardswish = _with_option(activation.hardsigmoid), _with_option(activation.hardswish)
hardtanh, hardtanh_ = _with_option(activation.hardtanh), _always(activation.hardtanh)
leaky_relu, leaky_relu_ = _with_option(activation.leaky_relu), _always(activation.leaky_relu)
mish, silu = _with_option(activation.mish), _with_option(activation.silu)
relu, relu_ = _with_option(activation.relu), _always(activation.relu)
relu6, rrelu_ = _with_option(activation.relu6), _always(noise.rrelu)
selu, selu_ = _with_option(activation.selu), _always(activation.selu)
threshold, threshold_ = _with_option(activation.threshold), _always(activation.threshold)
