"""Calls with the very objects of the last one, as an optimiser makes them: nothing is walked over again.

A model's fit calls one function hundreds of times, with other numbers. What leads from its arguments to code
is kept meanwhile, and compared as fast as the states of dicts are read (`versions.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import MethodType
from typing import Any

import numpy as np

from .objects import dictionary_of
from .reached import WITHOUT_CODE, is_without_code, way_from
from .trails import FROZEN, Trail, Walk, plain_mark
from .versions import Versions

NOTHING: tuple[list[Any], list[Any]] = [], []


class SameCall:
    """Whether a call has the objects of another one, which hold what they held.

    It keeps the objects that may lead to code, and those that hold numbers and arrays alone not: of these
    others that are alike are as good.

    Args:
        roots: the function and its arguments.
        trail: what was read on the way from them.
    """

    def __init__(self, roots: Sequence[Any], trail: Trail) -> None:
        self._trail = trail
        self._roots = [(type(one), None if is_without_code(one) else one, self._mark(one)) for one in roots]
        walk = Walk([one for _, one, _ in self._roots if one is not None], trail.names)
        kinds: list[Any] = list(map(type, walk.objects))
        ways = list(zip(walk.objects, map(way_from, kinds)))
        functions = [one for one, way in ways if way == "_from_function"]
        self._instances = [one for one, way in ways if way == "_from_instance"]
        dicts = [one for one in walk.objects if type(one) is dict]
        dicts += map(dictionary_of, (*functions, *self._instances))
        cells = [cell for one in functions for cell in one.__closure__ or ()]
        self._versions = Versions(dicts, functions, cells)
        self._state = self._versions.read()
        self._all_versions = Versions.of_both(self._versions, trail.versions)
        self._all_state: np.ndarray | None = None
        """That of the last call for which it held."""
        known = (dict, *FROZEN)
        self._others = [
            (one, way)
            for one, way in ways
            if way not in ("_from_function", "_from_instance") and type(one) not in known
        ]
        self._held = self._now()

    def holds_for(self, roots: Sequence[Any]) -> bool:
        """Whether a walk from these roots would find the same objects and the same code."""
        if len(roots) != len(self._roots):
            return False
        for root, former in zip(roots, self._roots):
            if (root is not former[1] or root is None) and not self._is_root(root, former):
                return False
        if self._all_versions.are(self._all_state):
            return self._holds_the_same() and self._trail.holds_besides_versions()
        if self._versions.are(self._state) and self._holds_the_same() and self._trail.holds():
            self._all_state = self._all_versions.read()
            return True
        return False

    def _holds_the_same(self) -> bool:
        return self._held is NOTHING or _are_identical(self._now(), self._held)

    def _mark(self, root: Any) -> Any:
        """What tells numbers and arrays apart, and containers of them; None for what may lead to code."""
        if type(root) in WITHOUT_CODE:
            return plain_mark(root)
        return Walk([root], self._trail.names).marks if is_without_code(root) else None

    def _is_root(self, root: Any, former: tuple[type, Any, Any]) -> bool:
        kind, known, mark = former
        if known is None:
            return (type(root) in WITHOUT_CODE or is_without_code(root)) and self._mark(root) == mark
        if kind is MethodType and type(root) is MethodType:
            return root.__self__ is known.__self__ and root.__func__ is known.__func__
        return root is known

    def _now(self) -> tuple[list[Any], list[Any]]:
        """What objects hold that is in no dict, function or cell; and what is compared of numbers."""
        if not self._instances and not self._others:
            return NOTHING
        walk = Walk((), self._trail.names)
        held = [*map(type, self._instances), *map(dictionary_of, self._instances)]
        for one, way in self._others:
            held += walk.parts(one, way)
        return held, walk.marks


def _are_identical(found: tuple[list[Any], list[Any]], former: tuple[list[Any], list[Any]]) -> bool:
    (held, marks), (others, their_marks) = found, former
    return len(held) == len(others) and all(map(operator.is_, held, others)) and marks == their_marks
