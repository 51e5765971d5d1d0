"""Compiling before the first call: specs in the places of arrays and Tensors."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ..tensors.creation import zeros
from ..values.dtypes import as_numpy_dtype, default_float
from ..values.flatten import flatten, is_container, unflatten
from .inspection import Known


class ArraySpec:
    """Stands for an ndarray of a shape and dtype where a function is compiled ahead: `warmup`.

    Example:
        >>> loss = pb.compile(lambda w, x: ((x @ w) ** 2).mean())
        >>> loss.warmup(ArraySpec((3,)), ArraySpec((100, 3)))
    """

    def __init__(self, shape: Iterable[int], dtype: Any = np.float64) -> None:
        self.shape = tuple(map(operator.index, shape))
        self.dtype = as_numpy_dtype(dtype, "ArraySpec")

    def example(self) -> Any:
        """Such an array, of zeros."""
        return np.zeros(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"ArraySpec({self.shape}, '{self.dtype}')"


class TensorSpec(ArraySpec):
    """Stands for a Tensor in the same way; dtype None is the default one.

    Example:
        >>> loss = pb.compile(lambda w: (w ** 2).sum())
        >>> loss.warmup(TensorSpec((3,), requires_grad=True))
    """

    def __init__(self, shape: Iterable[int], dtype: Any = None, requires_grad: bool = False) -> None:
        super().__init__(shape, default_float() if dtype is None else dtype)
        self.requires_grad = requires_grad

    def example(self) -> Any:
        """Such a Tensor, of zeros."""
        return zeros(self.shape, dtype=self.dtype, requires_grad=self.requires_grad)

    def __repr__(self) -> str:
        return f"TensorSpec({self.shape}, '{self.dtype}', requires_grad={self.requires_grad})"


def examples(value: Any) -> tuple[Any, bool]:
    """The value with arrays and Tensors in the places of specs, and whether there were any."""
    leaves, structure = flatten(value) if is_container(value) else ([value], None)
    are_specs = [isinstance(leaf, ArraySpec) for leaf in leaves]
    filled = [leaf.example() if is_spec else leaf for leaf, is_spec in zip(leaves, are_specs)]
    return (filled[0] if structure is None else unflatten(structure, filled)), any(are_specs)


def warm(name: str, known: Known, has_specs: bool) -> None:
    """Compile what calls that run these programs need.

    Raises:
        ArgumentError: which programs these are depends on values, of which specs say nothing.
    """
    if known.paths is not None and has_specs:
        guard = known.traced.guards.guards[0]
        raise ArgumentError(
            f"{name}.warmup(): which way {name} takes depends on values, at {guard.origin.place}  "
            f"{guard.origin.text}. Give arrays with values as those of calls, not specs."
        )
    for variant in known.programs:
        variant.warm()
