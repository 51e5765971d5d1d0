"""Strategies of hypothesis for arrays, Tensors and parameters; they take hypothesis."""

from pullback.runtime.testing.strategies import arrays, numbers, parameters, shapes, tensors

__all__ = ["arrays", "numbers", "parameters", "shapes", "tensors"]
