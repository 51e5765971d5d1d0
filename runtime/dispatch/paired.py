"""Calls with complex arguments or results: compiled as functions of their parts, which share their memory.

Programs take and give real arrays. So a function around the user's takes complex arguments as views with a
last dimension of 2, and gives complex results so; graphs have no other form for what lies between anyway.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.ops.movement import of_pairs, pairs_of
from ...tracer.spec import real_dtype
from ..tape.apply import apply
from ..tracing.signature import Call
from ..values.flatten import flatten, is_container, unflatten
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, as_kind
from .inspection import Known
from .table import Runs

Compile = Callable[[Callable[..., Any]], Any]


def has_complex_arrays(call: Call) -> bool:
    """Whether complex arrays are among the arguments."""
    found = [_payload(one) for one in getattr(call.arrays, "given", call.arrays)]
    return any(one.dtype.kind == "c" for one in found if isinstance(one, np.ndarray))


def _payload(value: Any) -> Any:
    return value._value if isinstance(value, Tensor) else value


class _Structures:
    """How the results of a function are nested, by number: keys of what it gives say which."""

    def __init__(self) -> None:
        self.known: list[Any] = []

    def number(self, structure: Any) -> int:
        for number, one in enumerate(self.known):
            if one == structure:
                return number
        self.known.append(structure)
        return len(self.known) - 1


_structures: dict[int, _Structures] = {}
"""By the number of the call that a function is for."""


class Paired(Runs):
    """What runs in the place of code for such calls: a compiled function of parts."""

    def __init__(self, function: Callable[..., Any], call: Call, compile: Compile) -> None:
        self.call = call.with_arrays([None] * len(call.arrays))
        self.number = len(_structures)
        self.structures = _structures[self.number] = _Structures()
        args, kwargs = call.rebuild(call.leaves)
        leaves, _ = flatten((args, kwargs))
        places = tuple(place for place, leaf in enumerate(leaves) if _is_complex(leaf))
        self.places = places
        self.function = compile(_of_parts(function, places, self.number))

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call."""
        args, kwargs = self._arguments(leaves)
        return self._whole(self.function(*args, **kwargs))

    def known(self, leaves: Sequence[Any]) -> Known:
        """What such a call would run."""
        return self.function._known_for(*self._arguments(leaves))

    def newest(self) -> Known | None:
        """What the latest call has run."""
        return self.function._newest_known(0)

    def _arguments(self, leaves: Sequence[Any]) -> Any:
        call = self.call.with_arrays(leaves)
        given, structure = flatten(call.rebuild(call.leaves))
        parts = [_parts(leaf) if place in self.places else leaf for place, leaf in enumerate(given)]
        return unflatten(structure, parts)

    def _whole(self, found: dict[str, Any]) -> Any:
        leaves = []
        for key, leaf in found.items():
            kind = key.split()[-1]
            leaves.append(leaf if kind == "real" else _whole(leaf, kind == "number"))
        structure = self.structures.known[int(next(iter(found)).split()[0])]
        return leaves[0] if structure is None else unflatten(structure, leaves)


def _is_complex(leaf: Any) -> bool:
    return isinstance(leaf, Tensor | np.ndarray | np.generic) and _payload(leaf).dtype.kind == "c"


def _parts(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return apply(pairs_of, leaf)
    array = np.asarray(leaf)
    return array[..., None].view(real_dtype(array.dtype))


def _whole(leaf: Any, is_number: bool) -> Any:
    if isinstance(leaf, Tensor):
        return as_kind(apply(of_pairs, leaf), NumpyScalar) if is_number else apply(of_pairs, leaf)
    found = of_pairs.evaluate(np.asarray(leaf))
    return found[()] if is_number else found


def _of_parts(function: Callable[..., Any], places: tuple[int, ...], number: int) -> Callable[..., Any]:
    """The function of parts that a function of complex numbers is."""

    @functools.wraps(function)
    def of_parts(*args: Any, **kwargs: Any) -> Any:
        given, keywords = _with_whole(args, kwargs, places)
        return _with_parts(function(*given, **keywords), number)

    return of_parts


def _with_whole(args: Any, kwargs: Any, places: tuple[int, ...]) -> Any:
    leaves, structure = flatten((args, kwargs))
    for place in places:
        leaves[place] = apply(of_pairs, leaves[place])
    return unflatten(structure, leaves)


def _with_parts(value: Any, number: int) -> dict[str, Any]:
    """The leaves of a result by keys that say which structure they have, and of which kind they are."""
    leaves, structure = flatten(value) if is_container(value) else ([value], None)
    which = _structures[number].number(structure)
    found = {}
    for place, leaf in enumerate(leaves):
        kind = "real"
        if _is_complex(leaf):
            kind = "number" if isinstance(leaf, NumpyScalar | np.generic) else "complex"
            leaf = _parts(leaf)
        found[f"{which} {place} {kind}"] = leaf
    return found
