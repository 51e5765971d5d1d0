"""The functions on tensors, under PyTorch's names: arguments, promotion and messages are dealt with here, the
computing is done by the operators of `tracer.ops`.

`METHODS` tells which of them are methods of Tensor, and what Python's operators on tensors do.
"""

from collections.abc import Callable
from typing import Any

from ...tracer.operator import Operator
from . import declared
from .conventions import FUNCTIONS
from .matrices import distances, einsum, low_rank
from .methods import METHODS, WITH_METHODS
from .networks import (
    attention,
    classification,
    ctc,
    embedding,
    fractional_pooling,
    losses,
    margins,
    noise,
    normalisations,
    pooling,
    recurrent,
    resampling,
)
from .reductions import segments
from .selections import indexing
from .shapes import padding

MODULES = (
    declared, *WITH_METHODS, indexing, padding, einsum, losses, classification, normalisations, margins, ctc,
    pooling, fractional_pooling, resampling, embedding, distances, noise, attention, low_rank, recurrent,
    segments,
)  # fmt: skip
"""Every module; the names in their `__all__` are public."""

PUBLIC = {name: getattr(module, name) for module in MODULES for name in module.__all__}
"""All public functions by name."""


def offered(operator: Operator) -> Callable[..., Any]:
    """The public function of an operator that has one, be it written out or not."""
    namespace, _, name = operator.torch[0].rpartition(".")
    return FUNCTIONS[namespace or "pullback"].get(name) or PUBLIC[name]


__all__ = ["METHODS", "MODULES", "PUBLIC", "offered"]
