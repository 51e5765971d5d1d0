"""PyTorch: operator by operator, and through `torch.compile` in two ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..workload import Workload
from .library import Argnums, Function, Library, as_asked, positions


class Torch(Library):
    """PyTorch as it comes."""

    package = "torch"

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        import torch

        self.torch = torch
        self.xp = torch_namespace(torch)

    def asarray(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(array)

    def to_numpy(self, array: Any) -> np.ndarray:
        return array.detach().numpy() if isinstance(array, self.torch.Tensor) else np.asarray(array)

    def arguments(self, workload: Workload, inputs: Sequence[np.ndarray]) -> list[Any]:
        tensors = super().arguments(workload, inputs)
        if workload.program is None:
            for position in workload.argnums:
                tensors[position].requires_grad_()
        return tensors

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        """`torch.autograd.grad` of the compiled function."""
        grad, forward, wanted = self.torch.autograd.grad, self.compile(function), positions(argnums)

        def value_and_gradient(*arguments: Any) -> Any:
            tensors = [*arguments]
            for position in wanted:
                if not tensors[position].requires_grad:
                    tensors[position] = tensors[position].detach().requires_grad_()
            value = forward(*tensors)
            gradients = grad(value, [tensors[position] for position in wanted])
            return value.detach(), as_asked(gradients, argnums)

        return value_and_gradient

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        grad, forward = self.torch.autograd.grad, self.compile(function)

        def all_three(*arguments: Any) -> Any:
            *tensors, vector = arguments
            tensors[argnum] = tensors[argnum].detach().requires_grad_()
            value = forward(*tensors)
            (gradient,) = grad(value, tensors[argnum], create_graph=True)
            (product,) = grad(gradient, tensors[argnum], vector)
            return value.detach(), gradient.detach(), product

        return all_three


class TorchCompile(Torch):
    """`torch.compile` of the loss, then `torch.autograd.grad`."""

    def compile(self, function: Function) -> Function:
        return self.torch.compile(function, dynamic=False)

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        """Compiled by way of `torch.func`: what is compiled alone cannot be differentiated twice."""
        return functional_hvp(self, function, argnum)


class TorchCompileFunctional(TorchCompile):
    """`torch.compile` of `torch.func.grad_and_value` of the loss: one graph for both."""

    def arguments(self, workload: Workload, inputs: Sequence[np.ndarray]) -> list[Any]:
        return [self.asarray(one) for one in inputs]

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        both = self.compile(self.torch.func.grad_and_value(function, argnums=argnums))

        def value_and_gradient(*arguments: Any) -> Any:
            gradient, value = both(*arguments)
            return value, gradient

        return value_and_gradient


def functional_hvp(library: Torch, function: Function, argnum: int) -> Function:
    func = library.torch.func

    def all_three(*arguments: Any) -> Any:
        *others, vector = arguments

        def at(argument: Any) -> Any:
            moved = [*others[:argnum], argument, *others[argnum + 1 :]]
            return func.grad_and_value(function, argnums=argnum)(*moved)

        (gradient, value), (product, _) = func.jvp(at, (others[argnum],), (vector,))
        return value, gradient, product

    return library.compile(all_three)


# --- NumPy's names ------------------------------------------------------------------------------------------

_SAME = """
    abs sign floor square sqrt exp expm1 exp2 log log1p log2 sin cos tan arcsin arccos arctan arctan2
    sinh cosh tanh hypot clip where logaddexp isfinite real imag
    sum mean prod cumsum argmax argmin
    reshape ravel swapaxes moveaxis broadcast_to concatenate stack flip
    tile tril triu trace diff zeros ones full zeros_like ones_like arange eye
    matmul outer tensordot pi float32 float64 int64
"""
SAME = tuple(_SAME.split())
"""What PyTorch has under NumPy's name and with its arguments."""


def torch_namespace(torch: Any) -> SimpleNamespace:
    """`xp` of PyTorch, or of a module with its names."""
    functional = torch.nn.functional
    return SimpleNamespace(
        **{name: getattr(torch, name) for name in SAME},
        **_renamed(torch),
        linalg=torch.linalg,
        fft=torch.fft,
        erf=torch.erf,
        gammaln=torch.lgamma,
        digamma=torch.digamma,
        sigmoid=torch.sigmoid,
        softplus=functional.softplus,
        relu=functional.relu,
        logsumexp=torch.logsumexp,
        softmax=torch.softmax,
        log_softmax=torch.log_softmax,
        cross_entropy=functional.cross_entropy,
    )


def _renamed(torch: Any) -> dict[str, Callable[..., Any]]:
    """NumPy's functions that PyTorch calls otherwise, or that take other arguments."""

    def extreme(of_all: Function, of_axis: Function) -> Function:
        def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
            return of_all(x) if axis is None else of_axis(x, dim=axis, keepdim=keepdims)

        return reduce

    def spread(of: Function) -> Function:
        def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
            return of(x, dim=axis, correction=0, keepdim=keepdims)

        return reduce

    def maximum(a: Any, b: Any) -> Any:
        if isinstance(a, int | float):
            a, b = b, a
        return torch.clamp_min(a, b) if isinstance(b, int | float) else torch.maximum(a, b)

    def minimum(a: Any, b: Any) -> Any:
        if isinstance(a, int | float):
            a, b = b, a
        return torch.clamp_max(a, b) if isinstance(b, int | float) else torch.minimum(a, b)

    def transpose(x: Any, axes: Any = None) -> Any:
        return x.permute(tuple(reversed(range(x.ndim))) if axes is None else axes)

    def pad(x: Any, width: Any, mode: str = "constant", constant_values: float = 0.0) -> Any:
        pairs = [(width, width)] * x.ndim if isinstance(width, int) else [*width]
        flat = [size for pair in reversed(pairs) for size in pair]
        return torch.nn.functional.pad(x, flat, value=constant_values)

    def einsum(subscripts: str, *operands: Any, optimize: Any = None) -> Any:
        return torch.einsum(subscripts, *operands)

    return {
        "max": extreme(torch.max, torch.amax),
        "min": extreme(torch.min, torch.amin),
        "var": spread(torch.var),
        "std": spread(torch.std),
        "maximum": maximum,
        "minimum": minimum,
        "power": torch.pow,
        "conj": torch.conj_physical,
        "dot": torch.matmul,
        "einsum": einsum,
        "transpose": transpose,
        "pad": pad,
        "roll": lambda x, shift, axis=None: x.roll(shift, axis),
        "expand_dims": lambda x, axis: x.unsqueeze(axis),
        "squeeze": lambda x, axis=None: x.squeeze() if axis is None else x.squeeze(axis),
        "repeat": lambda x, repeats, axis=None: x.repeat_interleave(repeats, axis),
        "take": lambda x, indices, axis: x.index_select(axis, indices),
        "take_along_axis": lambda x, indices, axis: x.take_along_dim(indices, axis),
        "diagonal": lambda x, offset=0, axis1=0, axis2=1: x.diagonal(offset, axis1, axis2),
        "asarray": torch.as_tensor,
    }
