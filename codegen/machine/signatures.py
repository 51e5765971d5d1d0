"""From a kernel of the loop IR to what its machine code takes."""

from __future__ import annotations

from .. import ir
from .kernel_types import ArrayType, ScalarType, Sharing


def argument_types(kernel: ir.Kernel) -> tuple[ArrayType | ScalarType, ...]:
    """The types of its parameters."""
    return tuple(map(_argument_type, kernel.function.parameters))


def _argument_type(parameter: ir.Buffer | ir.Variable) -> ArrayType | ScalarType:
    if isinstance(parameter, ir.Variable):
        return ScalarType(parameter.dtype)
    return ArrayType(parameter.dtype, len(parameter.dims), "C", parameter.extents)


def sharing_of(kernel: ir.Kernel) -> Sharing | None:
    """Which of its arguments each part has for itself, if threads share it."""
    if kernel.sharing is None:
        return None
    place = kernel.function.parameters.index
    totals = tuple((place(buffer), monoid.fold.name) for buffer, monoid in kernel.sharing.totals)
    return Sharing(tuple(map(place, kernel.sharing.private)), totals)
