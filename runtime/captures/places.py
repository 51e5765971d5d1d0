"""The places that a function reaches: what a walk over its variables finds, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ...tracer.records import record
from ..values.tensor import Tensor
from .queries import Queries
from .reader import Read, Reader

ABSENT: Any = object()
"""The value of an attribute that the function makes."""


@record(frozen=True)
class Changed:
    """What a function changes of what it reaches."""

    numbers: frozenset[tuple[int, Any]] = frozenset()
    """Plain values, by the identity of what holds them, and key."""
    containers: Mapping[int, Any] = field(default_factory=dict)
    """Lists, dicts and sets, by identity."""

    def __or__(self, other: Changed) -> Changed:
        return Changed(self.numbers | other.numbers, {**self.containers, **other.containers})


NOTHING = Changed()


@record(frozen=True, eq=False, slots=True)
class Source:
    """An array or Tensor that the function reaches, with the path to it as the user would write it."""

    value: np.ndarray | Tensor
    label: str
    is_complex: bool = False
    """Whether it is given to programs as pairs of real numbers."""


@record(frozen=True, eq=False, slots=True)
class Table:
    """A table of another library: in a trace what is asked of it is followed."""

    value: Any
    queries: Queries
    place: int
    """Which one it is there."""


@record(frozen=True, eq=False, slots=True)
class StandIn:
    """NumPy, or a function of it, with what takes its place in a trace."""

    value: Any


@record(frozen=True, eq=False, slots=True)
class Drawing(StandIn):
    """A stream of random numbers, or a method of one, with what takes its place in a trace alone."""

    real: Any


@record(eq=False, slots=True)
class Holder:
    """An object on the way to others. `kind` says what, and how a child is put in its place."""

    kind: str
    value: Any
    label: str
    variable: str
    children: list[tuple[Any, Place]] = field(default_factory=list)

    def is_copied(self, seen: set[int] | None = None) -> bool:
        """Whether what a trace replaces is reached through this object; cycles end the search."""
        seen = set() if seen is None else seen
        if id(self) in seen:
            return False
        if self.kind in ("written", "cached"):
            return True
        seen.add(id(self))
        return any(not isinstance(child, Holder) or child.is_copied(seen) for _, child in self.children)


@record(frozen=True, eq=False, slots=True)
class Number:
    """A plain value that the function changes: where it is, and what it is now."""

    value: Any
    label: str
    owner: Any
    """What holds it, and at which key."""
    key: Any
    suffix: str
    """How Python writes the way from there: `.calls`, `['calls']`."""


@record(frozen=True, eq=False, slots=True)
class Key:
    """Where a child is the key of a dict, or an element of a set."""

    value: Any


Place = Holder | Source | StandIn | Number | Table


@record(frozen=True, eq=False)
class Reading:
    """The result of an exploration: the places, the arrays, and a function that reads them again.

    `read()` gives the values of `sources` in order, what tables answer, then for each of `numbers` its owner
    and its value; or None where a guard does not hold. It is None itself if there is nothing to read.
    """

    roots: tuple[Place | None, ...]
    sources: tuple[Source, ...]
    numbers: tuple[Number, ...]
    holders: tuple[Holder, ...]
    stored_globals: tuple[tuple[dict[str, Any], str], ...]
    streams: tuple[tuple[Any, str], ...]
    """Generators of random numbers, with what to call them."""
    reader: Reader
    read: Read | None
    asks_identity: bool = False
    """Whether the code asks if two values are one object."""
    compared: tuple[np.ndarray, ...] = ()
    """The arrays of objects whose content is guarded."""
    queries: Queries | None = None
    """What is asked of the tables in reach; None where there are none. When the trace is over, the answers
    that are its inputs are the last of `sources`."""
