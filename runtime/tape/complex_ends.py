"""Graphs with complex inputs and results, as loops and rules hold them: in a trace they are graphs of parts.

So that derivatives, and whatever else looks into them, find real numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...tracer.ops.control import Body
from ...tracer.ops.elementwise import complex_of, imag, real, zeros_like
from ..values.tensor import Tensor
from .apply import apply, wrap


def is_of_complex(body: Body) -> bool:
    """Whether an input or a result is complex."""
    return any(one.dtype.kind == "c" for one in (*body.graph.inputs, *body.graph.outputs))


def apart(operands: Sequence[Any]) -> list[Tensor]:
    """The parts of complex operands, one behind the other, and the others as they are."""
    found: list[Tensor] = []
    for one in operands:
        tensor = one if isinstance(one, Tensor) else wrap(one)
        is_complex = tensor._value.dtype.kind == "c"
        found += [apply(real, tensor), apply(imag, tensor)] if is_complex else [tensor]
    return found


def joined(parts: Sequence[Tensor], results: Sequence[Any]) -> list[Tensor]:
    """Results made of their parts again: each given as a `Pair`, of which None is 0, or as a real value."""
    waiting = iter(parts)
    return [_joined(one, waiting) for one in results]


def _joined(result: Any, waiting: Iterator[Tensor]) -> Tensor:
    if not isinstance(result, tuple):
        return next(waiting)
    parts = [None if part is None else next(waiting) for part in result]
    present = next(part for part in parts if part is not None)
    return apply(complex_of, *(apply(zeros_like, present) if part is None else part for part in parts))
