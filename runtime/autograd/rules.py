"""A call of a function with a rule of its own for its derivative, and what its rule must return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.records import record
from ...tracer.spec import CONTINUOUS, Spec
from ..tape.apply import standing_for
from ..values.flatten import flatten, leaf_paths, path_text
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, PythonNumber

Function = Callable[..., Any]
_PLAIN = frozenset((np.ndarray, np.float64, np.float32, float, int))


def are_plain(arguments: Sequence[Any]) -> bool:
    """Whether it is plain at a glance that nobody traces or records a call; there are other such calls."""
    return _PLAIN.issuperset(map(type, arguments))


@record(frozen=True, eq=False)
class RuledCall:
    """One call of a function with a rule.

    Attributes:
        owner: the function with the rule.
        name: what it is called.
        arguments: those that have a gradient, each perhaps nested.
        run: from them to the result.
        forward: from them to the result and residuals.
        backward: from residuals, and a cotangent of the structure of the result, to one for each argument.
        outside: the same call of the functions as they are outside of traces.
        fixed: what else the functions are given, arguments without gradient and options.
        missing: the positions of the arguments that the rule does not speak of.
        vectorized: whether the functions take arrays with one more dimension in front for those of one call.
    """

    owner: Any
    name: str
    arguments: tuple[Any, ...]
    run: Function
    forward: Callable[..., tuple[Any, Any]]
    backward: Callable[[Any, Any], Sequence[Any]]
    outside: Callable[[], RuledCall]
    fixed: tuple[Any, ...] = ()
    missing: frozenset[int] = frozenset()
    vectorized: bool = False

    def missing_leaves(self, structure: Any) -> set[int]:
        """The leaves of those arguments."""
        owners = [number for number, one in enumerate(structure.children()) for _ in range(one.num_leaves)]
        return {place for place, owner in enumerate(owners) if owner in self.missing}


def refuse_outside(call: RuledCall) -> None:
    """Raise, where a function with a rule takes what has a gradient from outside of its arguments."""
    raise GradientError(
        f"{call.name} has a rule of its own for its derivative, and uses a tensor from outside of its "
        "arguments that requires a gradient; the rule says nothing of that one. Pass it as an argument, or "
        "detach() it."
    )


def kind_in_rule(tensor: Tensor) -> type[Tensor]:
    """As what a rule gets a value: Python's numbers as NumPy's, whose arithmetic does not raise."""
    return NumpyScalar if isinstance(tensor, PythonNumber) else type(tensor)


def is_continuous(tensor: Tensor) -> bool:
    """Whether a value may have a gradient."""
    return tensor._value.dtype.kind in CONTINUOUS


def values_of(returned: Any) -> list[Any]:
    """The leaves of a result that are values."""
    return [leaf for leaf in flatten(returned)[0] if leaf is not None]


def fitted(
    call: RuledCall, returned: Any, structure: Any, specs: Sequence[Spec | None]
) -> list[Tensor | None]:
    """The cotangents that a rule has returned, one for each leaf of the arguments.

    Raises:
        GradientError: it returned something else than a cotangent, or None, for each argument, or of other
            shapes.
    """
    count = structure.num_children
    if not isinstance(returned, tuple | list) or len(returned) != count:
        found = f"{len(returned)} values" if isinstance(returned, tuple | list) else type(returned).__name__
        raise GradientError(
            f"The rule of {call.name} must return a tuple with the cotangent of each of its {count} "
            f"arguments, or None; it returned {found}."
        )
    found_leaves: list[Tensor | None] = []
    for number, (one, inner) in enumerate(zip(returned, structure.children())):
        found_leaves += _fitted_argument(call, one, inner, number)
    paths = leaf_paths(structure)
    for position, (one, spec) in enumerate(zip(found_leaves, specs)):
        if one is None or spec is None:
            continue
        if tuple(one._value.shape) != tuple(spec.shape):
            raise GradientError(
                f"The rule of {call.name} returned a cotangent of shape {tuple(one._value.shape)} for "
                f"argument {paths[position][0]}{path_text(paths[position][1:])}, which has shape "
                f"{tuple(spec.shape)}."
            )
        found_leaves[position] = one.to(spec.dtype)
    return found_leaves


def _fitted_argument(call: RuledCall, given: Any, structure: Any, number: int) -> list[Tensor | None]:
    if given is None:
        return [None] * structure.num_leaves
    leaves, found = flatten(given)
    if found.num_leaves != structure.num_leaves:
        raise GradientError(
            f"The rule of {call.name} returned a cotangent with {found.num_leaves} leaves for argument "
            f"{number}, which has {structure.num_leaves}. It must have the structure of the argument."
        )
    return [None if leaf is None else _as_cotangent(call, leaf, number) for leaf in leaves]


def _as_cotangent(call: RuledCall, leaf: Any, number: int) -> Tensor:
    if not isinstance(leaf, Tensor | np.ndarray | np.generic | float | complex | int):
        raise GradientError(
            f"The rule of {call.name} returned a {type(leaf).__name__} as cotangent of argument {number}; "
            "expected a tensor, an array, a number or None."
        )
    return standing_for(leaf)
