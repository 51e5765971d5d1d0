"""Functions with a backward of their own, under the names of torch.autograd.function."""

from pullback.runtime.autograd.custom_function import Function, once_differentiable

__all__ = ["Function", "once_differentiable"]
