"""Containers that programs reach, and partial functions: what they hold, and copies with other elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

CONTAINERS = (tuple, list, dict, set, frozenset, functools.partial)


LARGEST = 100
"""Elements of a container that is looked into."""


PLAIN = (bool, int, float, complex, str, bytes, type(None))


def parts_within(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """A value, and what it consists of if it is a container or a partial function."""
    yield value
    if type(value) not in CONTAINERS:
        return
    seen = set() if seen is None else seen
    if id(value) not in seen:
        seen.add(id(value))
        for one in elements_of(value):
            if type(one) not in PLAIN:
                yield from parts_within(one, seen)


def elements_of(value: Any) -> list[Any]:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if len(value) > LARGEST:
        return []
    return [*value, *value.values()] if isinstance(value, dict) else [*value]


def _rebuilt_container(value: Any, change: Callable[[Any], Any]) -> Any:
    """A container, or a partial function, with changed elements; itself if none has changed."""
    elements = elements_of(value)
    changed = [change(one) for one in elements]
    if all(one is other for one, other in zip(elements, changed)):
        return value
    if isinstance(value, functools.partial):
        count = 1 + len(value.args)
        keywords = dict(zip(value.keywords, changed[count:]))
        return functools.partial(changed[0], *changed[1:count], **keywords)
    if isinstance(value, dict):
        return dict(zip(changed[: len(value)], changed[len(value) :]))
    return type(value)(changed)


class ContainerCopies:
    """Copies of containers with other elements; `store` gives the containers what was written into these."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any, Any]] = {}
        """By id: the container, its copy, and a copy of that as it was at first."""
        self._originals: dict[int, Any] = {}
        """What elements of the copies stand for, by the id of these."""

    def of(self, value: Any, replace: Callable[[Any], Any]) -> Any:
        """The copy, one for each container; itself where no element is replaced."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        self._made[id(value)] = (value, value, None)  # what leads back to it finds the original

        def noted(element: Any) -> Any:
            replacement = replace(element)
            self._originals[id(replacement)] = element
            return replacement

        copied = _rebuilt_container(value, noted)
        before = copied.copy() if isinstance(copied, list | dict | set) else None
        self._made[id(value)] = (value, copied, before)
        return copied

    def store(self) -> None:
        for original, copied, before in self._made.values():
            if copied is original or before is None or _same(copied, before):
                continue
            restored = [self._originals.get(id(element), element) for element in elements_of(copied)]
            original.clear()
            if isinstance(original, dict):
                original.update(zip(restored[: len(copied)], restored[len(copied) :]))
            elif isinstance(original, list):
                original.extend(restored)
            else:
                original.update(restored)


def _same(one: Any, other: Any) -> bool:
    mine, others = elements_of(one), elements_of(other)
    return len(mine) == len(others) and all(a is b for a, b in zip(mine, others))
