"""Calls with complex arguments or results: compiled as functions of their parts, which share their memory.

Programs take and give real arrays. So a function around the user's takes complex arguments as views with a
last dimension of 2, and gives complex results so; graphs have no other form for what lies between anyway.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...tracer.ops.movement import of_pairs
from ...tracer.trace import itself
from ..tape.apply import apply, parts_of
from ..tracing.signature import Call, given_as
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, as_kind
from .inspection import Known
from .table import Runs

Compile = Callable[[Callable[..., Any]], Any]
Places = tuple[tuple[int, bool], ...]
"""Which of the leaves of the arguments are complex, and whether they are numbers of NumPy's."""


def has_complex_arrays(call: Call) -> bool:
    """Whether complex arrays, or complex numbers of NumPy's, are among the arguments."""
    found = [_payload(one) for one in getattr(call.arrays, "given", call.arrays)]
    return any(one.dtype.kind == "c" for one in found if isinstance(one, np.ndarray | np.generic))


def _payload(value: Any) -> Any:
    return value._value if isinstance(value, Tensor) else value


class Paired(Runs):
    """What runs in the place of code for such calls: a compiled function of parts."""

    def __init__(self, function: Callable[..., Any], call: Call, compile: Compile) -> None:
        self.call = call.with_arrays([None] * len(call.arrays))
        args, kwargs = call.rebuild(call.leaves)
        leaves, _ = flatten((args, kwargs))
        places = tuple((place, _is_number(leaf)) for place, leaf in enumerate(leaves) if _is_complex(leaf))
        self.are_complex = tuple(map(_is_complex, call.leaves))
        self.function = compile(_of_parts(function, places))
        has_containers = bool(call.keywords) or any(one is not None for one in call.structures)
        is_plain = all(call.is_array) and not has_containers
        self.readers = list(map(_reader, call.kinds, self.are_complex)) if is_plain else None
        """Where all arguments are arrays, what makes of each the one of the function of parts."""

    @property
    def inner(self) -> list[Any]:
        return [self.function]

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call."""
        if self.readers is None:
            args, kwargs = self.arguments(leaves)
            return _with_whole_results(self.function(*args, **kwargs))
        given = getattr(leaves, "given", leaves)
        return _with_whole_results(self.function(*[read(one) for read, one in zip(self.readers, given)]))

    def known(self, leaves: Sequence[Any]) -> Known:
        """What such a call would run."""
        return self.function._known_for(*self.arguments(leaves))

    def newest(self) -> Known | None:
        """What the latest call has run."""
        return self.function._newest_known(0)

    def arguments(self, leaves: Sequence[Any]) -> Any:
        given = zip(self.are_complex, self.call.leaves_with(leaves))
        return self.call.rebuild([parts_of(leaf) if is_complex else leaf for is_complex, leaf in given])


def _is_complex(leaf: Any) -> bool:
    return isinstance(leaf, Tensor | np.ndarray | np.generic) and _payload(leaf).dtype.kind == "c"


def _reader(kind: type[Tensor], is_complex: bool) -> Callable[[Any], Any]:
    if is_complex:
        return parts_of
    return partial(given_as, kind) if issubclass(kind, NumpyScalar) else itself


def _whole(leaf: Any, is_number: bool) -> Any:
    if isinstance(leaf, Tensor):
        return as_kind(apply(of_pairs, leaf), NumpyScalar) if is_number else apply(of_pairs, leaf)
    found = of_pairs.evaluate(leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf))
    return found[()] if is_number else found


def of_parts(function: Callable[..., Any], leaves: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A function of such leaves as one of the parts of the complex ones, and these parts."""
    places = tuple((place, _is_number(leaf)) for place, leaf in enumerate(leaves) if _is_complex(leaf))
    given = [parts_of(leaf) if _is_complex(leaf) else leaf for leaf in leaves]
    return _of_parts(function, places), given


def _of_parts(function: Callable[..., Any], places: Places) -> Callable[..., Any]:
    """The function of parts that a function of complex numbers is."""

    @functools.wraps(function)
    def of_parts(*args: Any, **kwargs: Any) -> Any:
        given, keywords = _with_whole(args, kwargs, places)
        return _with_parts(function(*given, **keywords))

    of_parts.__module__ = __name__  # else it would be taken for the function of SciPy's that it calls
    return of_parts


def _with_whole(args: Any, kwargs: Any, places: Places) -> Any:
    leaves, structure = flatten((args, kwargs))
    for place, is_number in places:
        leaves[place] = _whole(leaves[place], is_number)
    return unflatten(structure, leaves)


REAL, COMPLEX, NUMBER = "real", "complex", "number"
"""What the leaves of a result are; `NUMBER`: a complex one of NumPy's, `REAL`: also all of them."""


def _with_parts(value: Any) -> dict[str, Any]:
    """A result with the parts of its complex leaves, by a key that says what its leaves are."""
    leaves, structure = flatten(value)
    kinds = [REAL if not _is_complex(leaf) else NUMBER if _is_number(leaf) else COMPLEX for leaf in leaves]
    parts = [leaf if kind == REAL else parts_of(leaf) for leaf, kind in zip(leaves, kinds)]
    described = REAL if set(kinds) <= {REAL} else " ".join(kinds)
    return {described: unflatten(structure, parts)}


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, NumpyScalar | np.generic)


def _with_whole_results(found: dict[str, Any]) -> Any:
    """The result that `_with_parts` was given."""
    ((kinds, value),) = found.items()
    if kinds == REAL:
        return value
    if type(value) is np.ndarray:  # of one leaf, without looking for containers
        whole = of_pairs.evaluate(value)
        return whole[()] if kinds == NUMBER else whole
    return _with_whole_leaves(value, iter(_split(kinds)))


_split = functools.lru_cache(maxsize=1024)(str.split)


def _with_whole_leaves(value: Any, kinds: Iterator[str]) -> Any:
    """A part of a result, of whose leaves these are the next kinds; tuples without looking any further."""
    if type(value) is tuple:
        return tuple([_with_whole_leaves(one, kinds) for one in value])
    if isinstance(value, np.ndarray | np.generic | Tensor):
        kind = next(kinds)
        return value if kind == REAL else _whole(value, kind == NUMBER)
    leaves, structure = flatten(value)
    found = [leaf if kind == REAL else _whole(leaf, kind == NUMBER) for leaf, kind in zip(leaves, kinds)]
    return unflatten(structure, found)
