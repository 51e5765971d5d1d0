"""What `out=` of a public function does: the result is written into a tensor that is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tracer.errors import ArgumentError, DTypeError, ShapeError
from ...tracer.origin import fail
from ..tensors.conversion import array_dtype
from ..values.dtypes import can_cast
from ..values.tensor import Tensor
from .selections.assignment import copy_


def written(out: Any, result: Any, function: str) -> Any:
    """`out` with the elements of `result`; of several results a tuple of so many, with their names.

    Gradients flow as through `out.copy_(result)`.

    Raises:
        ArgumentError: `out` is no Tensor, or not as many as there are results.
        ShapeError: its shape is not the result's.
        DTypeError: its dtype is of a lower category than the result's, as integers for floats.
    """
    if isinstance(result, tuple):
        if not isinstance(out, Sequence) or len(out) != len(result):
            found = f"{len(out)} of them" if isinstance(out, Sequence) else type(out).__name__
            fail(
                ArgumentError,
                f"{function}(): out must be a tuple of {len(result)} Tensors, one for each result; "
                f"found {found}.",
            )
        parts = [written(one, value, function) for one, value in zip(out, result, strict=True)]
        return result._make(parts) if hasattr(result, "_make") else tuple(parts)
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        fail(
            ArgumentError,
            f"{function}(): argument 'out' must be Tensor, not {type(out).__name__}. Leave it out, and "
            "copy the result.",
        )
    if tuple(out.shape) != tuple(result.shape):
        fail(
            ShapeError,
            f"{function}(): out has shape {list(out.shape)}, and the result {list(result.shape)}: tensors "
            "are not resized here. Give one of that shape, or leave it out.",
        )
    if not can_cast(array_dtype(result), array_dtype(out)):
        fail(
            DTypeError,
            f"{function}(): result type {result.dtype} can't be cast to the desired output type "
            f"{out.dtype}.",
        )
    return copy_(out, result)
