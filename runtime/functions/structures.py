"""Nested structures of tensors as loops carry them: taken apart, compared, put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, PullbackError, ShapeError
from ...tracer.graph import Node, constant
from ...tracer.ops.elementwise import convert
from ...tracer.spec import Spec, require_supported
from ...tracer.trace import is_tracing
from ..creation import tensor as new_tensor
from ..flatten import flatten, leaf_paths, path_text, unflatten
from ..tape import apply, wrap
from ..tensor import Tensor, make
from .common import fail

MOST_CONVERSIONS = 4
"""How often the dtype of a number may be found to be another, as one number waits for that of the next."""


@dataclass(frozen=True, eq=False)
class Structured:
    """The tensors of a nested structure, without those of its leaves that are None."""

    tensors: list[Tensor]
    labels: list[str]
    """Of each tensor the way to it: `carry['h'][0]`."""
    weak: list[bool]
    """Of each tensor, whether it was a Python number, which takes the dtype of what it is used with."""
    structure: Any
    present: list[bool]
    conversions: int = 0

    @property
    def specs(self) -> list[Spec]:
        return [spec_of_tensor(one) for one in self.tensors]

    def restored(self, tensors: Sequence[Any]) -> Any:
        """Other values in the same structure."""
        waiting = iter(tensors)
        return unflatten(self.structure, [next(waiting) if here else None for here in self.present])

    def converted(self, specs: Sequence[Spec]) -> Structured:
        """Python numbers in the dtypes of these specs; after a few times these are final."""
        tensors = [
            as_dtype(one, spec.dtype) if weak else one
            for one, weak, spec in zip(self.tensors, self.weak, specs)
        ]
        again = self.conversions + 1 < MOST_CONVERSIONS
        weak = self.weak if again else [False] * len(self.weak)
        return Structured(tensors, self.labels, weak, self.structure, self.present, self.conversions + 1)

    def with_tensors(self, tensors: Sequence[Tensor]) -> Structured:
        return Structured(list(tensors), self.labels, self.weak, self.structure, self.present)


def spec_of_tensor(one: Tensor) -> Spec:
    value = one.payload
    return Spec(tuple(value.shape), value.dtype)


def as_dtype(one: Tensor, dtype: np.dtype) -> Tensor:
    return one if one.payload.dtype == dtype else apply(convert, one, dtype=dtype)


def structured(value: Any, function: str, argument: str) -> Structured:
    """The tensors of a structure of tensors, arrays, Python numbers and None.

    Raises:
        ArgumentError: a leaf is something else. DTypeError: an array of objects, strings or complex numbers.
    """
    leaves, structure = flatten(value)
    labels = [f"{argument}{path_text(path)}" for path in leaf_paths(structure)]
    present = [leaf is not None for leaf in leaves]
    given = [(leaf, label) for leaf, label in zip(leaves, labels) if leaf is not None]
    tensors = [_tensor(leaf, function, label) for leaf, label in given]
    weak = [isinstance(leaf, bool | int | float) and not isinstance(leaf, np.generic) for leaf, _ in given]
    return Structured(tensors, [label for _, label in given], weak, structure, present)


def _tensor(leaf: Any, function: str, label: str) -> Tensor:
    if isinstance(leaf, Tensor):
        return leaf
    if isinstance(leaf, np.ndarray | np.generic):
        array = np.asarray(leaf)
        require_supported(array.dtype, function, label)
        return wrap(array)
    if isinstance(leaf, bool | int | float):
        made = new_tensor(leaf)
        return made if not is_tracing() else make(constant(leaf, Spec((), made.payload.dtype)))
    if isinstance(leaf, Node):
        return make(leaf)
    fail(
        ArgumentError,
        f"{function}: {label} is a {type(leaf).__name__}; expected a tensor, an array, a number or None.",
    )


def require_same(
    function: str, found: Structured, expected: Structured, what: str, weak: Sequence[bool] = ()
) -> None:
    """Raise unless two structures and the specs of their tensors agree.

    Args:
        what: what `found` must be like, for the message: "the carry before the step".
        weak: where the dtypes may differ.

    Raises:
        ArgumentError: the containers differ. ShapeError, DTypeError: a tensor does.
    """
    if found.structure != expected.structure or found.present != expected.present:
        fail(
            ArgumentError,
            f"{function}: the structure {_shown(found)} of {_root(found)} differs from {_shown(expected)}, "
            f"that of {what}. Return the same containers, with None in the same places.",
        )
    free = weak or [False] * len(found.tensors)
    for mine, theirs, label, is_free in zip(found.specs, expected.specs, found.labels, free):
        error: type[PullbackError] | None = None
        if mine.shape != theirs.shape:
            error = ShapeError
        elif mine.dtype != theirs.dtype and not is_free:
            error = DTypeError
        if error is not None:
            remedy = "shape" if error is ShapeError else "dtype, e.g. with .to(...)"
            fail(
                error, f"{function}: {label} is {mine}, but {theirs} in {what}. Make it of the same {remedy}."
            )


def _shown(one: Structured) -> str:
    return str(one.structure).removeprefix("PyTreeSpec(").split(", NoneIsLeaf")[0]


def _root(one: Structured) -> str:
    return one.labels[0].split("[")[0] if one.labels else "the result"


def name_of(label: str) -> str:
    """What a leaf is called in generated code: its last key, or what it is part of."""
    key = label.split("[")[-1].strip("]'\"")
    if key.isidentifier():
        return {"init": "carry", "xs": "x", "operands": "x"}.get(key, key)
    return {"init": "carry", "xs": "x", "operands": "x"}[label.split("[")[0]]
