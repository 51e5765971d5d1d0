"""Declared operators: `pytest --update-golden tests/functions/test_declared.py` writes it."""

from ..values.tensor import Tensor
from .common import Operand

__all__ = [
    "sigmoid",
    "tanh",
]

def sigmoid(input: Operand) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""

def tanh(input: Operand) -> Tensor:
    """The hyperbolic tangent, element by element."""
