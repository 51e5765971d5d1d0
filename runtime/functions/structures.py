"""Nested structures of tensors as loops carry them: taken apart, compared, put together again."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, PullbackError, ShapeError
from ...tracer.graph import Node, constant
from ...tracer.ops.elementwise import convert
from ...tracer.records import record
from ...tracer.spec import Spec, require_supported
from ...tracer.trace import is_tracing
from ..tape.apply import apply, of_kind, standing_for
from ..tape.bodies import BodyInput
from ..values.flatten import flatten, leaf_paths, path_text, unflatten
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import Auxiliary, NumpyTensor, PythonNumber, kind_of_result, plain
from .common import fail

MOST_CONVERSIONS = 4
"""How often the dtype of a number may be found to be another, as one number waits for that of the next."""


@record(frozen=True, eq=False)
class Structured:
    """The tensors of a nested structure, without those of its leaves that are None."""

    tensors: list[Tensor]
    labels: list[str]
    """Of each tensor the way to it: `carry['h'][0]`."""
    structure: Any
    present: list[bool]
    conversions: int = 0

    @property
    def specs(self) -> list[Spec]:
        return [spec_of_tensor(one) for one in self.tensors]

    @property
    def weak(self) -> list[bool]:
        """Of each tensor, whether it is a Python number, which takes the dtype of what it is used with."""
        return [type(one) is PythonNumber for one in self.tensors]

    def inputs(self, specs: Sequence[Spec] | None = None) -> list[BodyInput]:
        """What a body is given for these values, or for their parts, of other specs."""
        given = self.specs if specs is None else specs
        return [
            BodyInput(spec, name_of(label), _kind_of_part(one, spec.shape))
            for spec, label, one in zip(given, self.labels, self.tensors)
        ]

    def restored(self, tensors: Sequence[Tensor]) -> Any:
        """Other values in the same structure, known ones as what they stand for.

        Those of no kind of their own, as the results of a loop, are of the kinds that these are of.
        """
        waiting = iter(
            plain(of_kind(one, _kind_of_part(own, one._value.shape)) if type(one) is Auxiliary else one)
            for one, own in zip(tensors, self.tensors)
        )
        return unflatten(self.structure, [next(waiting) if here else None for here in self.present])

    def differs(self, after: Structured) -> bool:
        """Whether numbers must be converted, or values be of another kind, to be like those after a step."""
        if len(after.tensors) != len(self.tensors) or self.conversions == MOST_CONVERSIONS:
            return False
        pairs = zip(self.tensors, after.tensors)
        return any(_is_other_number(one, after) or _becomes_torch(one, after) for one, after in pairs)

    def converted(self, after: Structured, only_numbers: bool = False) -> Structured:
        """Python numbers in the dtypes of the values after a step, and arrays as Tensors where these are."""
        tensors = []
        for one, other in zip(self.tensors, after.tensors):
            if _is_other_number(one, other):
                one = of_kind(as_dtype(one, other.payload.dtype), type(other))
            elif _becomes_torch(one, other) and not only_numbers:
                one = of_kind(one, type(other))
            tensors.append(one)
        return Structured(tensors, self.labels, self.structure, self.present, self.conversions + 1)

    def with_tensors(self, tensors: Iterable[Tensor]) -> Structured:
        return Structured(list(tensors), self.labels, self.structure, self.present)


def _kind_of_part(whole: Tensor, shape: tuple[int, ...]) -> type[Tensor]:
    """The kind of a part of a value, or of a stack of its likes."""
    own = type(whole)
    return own if whole._value.shape == shape else kind_of_result(own, shape, False)


def _is_other_number(one: Tensor, after: Tensor) -> bool:
    """Whether a Python number takes another dtype, or becomes another kind of number."""
    is_other = type(after) is not PythonNumber or one.payload.dtype != after.payload.dtype
    return type(one) is PythonNumber and is_other


def _becomes_torch(one: Tensor, after: Tensor) -> bool:
    return isinstance(one, NumpyTensor) and isinstance(after, TorchTensor) and type(after) is not Auxiliary


def common_of(results: Sequence[Structured]) -> Structured:
    """What results of branches or rows are like: where some give Python numbers, as those of others."""
    first = results[0]
    tensors = list(first.tensors)
    for other in results[1:]:
        for place, one in enumerate(other.tensors[: len(tensors)]):
            if first.weak[place] and type(one) is not PythonNumber:
                tensors[place] = one
    return first.with_tensors(tensors)


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
    if issubclass(type(value), Tensor):
        return Structured([value], [argument], _lone(), [True])
    leaves, structure = flatten(value)
    labels = [f"{argument}{path_text(path)}" for path in leaf_paths(structure)]
    present = [leaf is not None for leaf in leaves]
    given = [(leaf, label) for leaf, label in zip(leaves, labels) if leaf is not None]
    tensors = [_tensor(leaf, function, label) for leaf, label in given]
    return Structured(tensors, [label for _, label in given], structure, present)


@functools.cache
def _lone() -> Any:
    """The structure of a value that is no container."""
    return flatten(None)[1]


def _tensor(leaf: Any, function: str, label: str) -> Tensor:
    if isinstance(leaf, Tensor):
        return leaf
    if isinstance(leaf, np.ndarray | np.generic):
        require_supported(leaf.dtype, function, label)
        return standing_for(leaf)
    if isinstance(leaf, bool | int | float | complex):
        made = standing_for(leaf)
        if not is_tracing():
            return made
        return make(constant(cast(float, leaf), Spec((), made.payload.dtype)), PythonNumber)
    if isinstance(leaf, Node):
        return make(leaf, Auxiliary)
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
    _require_same_kinds(function, found, expected, what)
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


def _require_same_kinds(function: str, found: Structured, expected: Structured, what: str) -> None:
    for mine, theirs, label in zip(found.tensors, expected.tensors, found.labels):
        if Auxiliary in (type(mine), type(theirs)):
            continue
        if isinstance(mine, NumpyTensor) is not isinstance(theirs, NumpyTensor):
            kinds = ("an array", "a Tensor")
            kind, other = kinds if isinstance(mine, NumpyTensor) else kinds[::-1]
            fail(
                ArgumentError,
                f"{function}: {label} is {kind}, but {other} in {what}. Make both one or the other, e.g. "
                "with pullback.as_tensor(...) or numpy.asarray(...).",
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
    return {"init": "carry"}.get(label.split("[")[0], "x")
