"""Numbers of Python's inside of what a variable holds: in lists, tuples, dicts and objects of users' classes.

A number's way is the keys that lead to it: `state.steps["accepted"]` is the variable `state` with
`("steps", "accepted")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..captures.objects import is_instance
from ..values.tensor import Tensor

Way = tuple[Any, ...]
MOST_PARTS = 64
"""Of what a variable holds that are looked at: this is done at each question of a trace."""


def numbers_within(
    value: Any, is_number: Callable[[Any], bool], is_outside: Callable[[Any], bool]
) -> Iterator[tuple[Way, Any]]:
    """The numbers inside of a value, or what else is sought, that may be replaced, with the ways to them.

    Args:
        is_outside: whether something was there before the function began, so that nothing in it is replaced.
    """
    seen: set[int] = set()
    pending: list[tuple[Way, Any]] = [((), value)]
    count = 0
    while pending:
        way, holder = pending.pop()
        parts = _parts(holder)
        if not parts or id(holder) in seen or is_outside(holder):
            continue
        seen.add(id(holder))
        for key, part in parts.items():
            count += 1
            if count > MOST_PARTS:
                return
            if is_number(part):
                yield (*way, key), part
            else:
                pending.append(((*way, key), part))


def replaced(value: Any, way: Way, new: Any, note: Callable[..., None]) -> Any:
    """A value with another one at the end of a way: the same, written into; tuples are made anew.

    Args:
        note: is given what was written into, the key, what was there, and what is there now.
    """
    if not way:
        return new
    key, *rest = way
    part = _parts(value)[key]
    made = replaced(part, tuple(rest), new, note)
    if made is part:
        return value
    if isinstance(value, tuple):
        return tuple.__new__(type(value), (*value[:key], made, *value[key + 1 :]))
    held = value if type(value) in (list, dict) else vars(value)
    note(held, key, part, made)
    held[key] = made
    return value


def _parts(value: Any) -> Mapping[Any, Any]:
    kind = type(value)  # not isinstance: a tensor is one of what it stands for
    if kind in (list, tuple) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return dict(enumerate(value))
    if kind is dict:
        return {key: one for key, one in value.items() if type(key) in (str, int)}
    if issubclass(kind, Tensor | tuple) or not is_instance(value):
        return {}
    return getattr(value, "__dict__", {})


__all__ = ["Way", "numbers_within", "replaced"]
