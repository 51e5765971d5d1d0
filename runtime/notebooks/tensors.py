"""A Tensor as HTML: what it is, and a table of its elements."""

from __future__ import annotations

from typing import Any

from ..values.printing import format_table
from .page import environment

Tensor = Any  # that of `values/tensor.py`, which imports this file

MOST_TABLES = 4
"""Matrices of an array of more dimensions that are shown."""


def table(tensor: Tensor) -> str | None:
    """HTML of a Tensor; None of one that stands for a traced value, which has no elements."""
    tensor.refresh()
    array = tensor._shown_if_known()
    if array is None:
        return None
    shape = tuple(array.shape)
    facts = [array.dtype.name, f"shape {shape}", f"{array.nbytes:,} bytes"]
    if tensor.grad_fn is not None:
        facts.append(f"grad_fn {tensor.grad_fn.name()}")
    elif tensor.requires_grad:
        facts.append("requires grad" + (", has one" if tensor._grad is not None else ""))
    matrices = array.reshape(-1, *shape[-2:]) if array.ndim > 2 and array.size else array[None]
    shown = [format_table(one) for one in matrices[:MOST_TABLES]] if array.size else []
    more = len(matrices) - len(shown) if array.size else 0
    return environment().get_template("tensor.html.j2").render(facts=facts, tables=shown, more=more)
