"""What a call gives to be explored, its arguments with what stands for that, and their containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..captures.closure import explore
from ..captures.contents import PLAIN_TYPES
from ..captures.objects import is_opaque
from ..captures.places import NOTHING, Changed, Reading
from ..values.flatten import CONTAINERS, is_container, structured_parts, with_classes
from .signature import Call
from .substitution import Substitution


def explore_call(
    function: Callable[..., Any],
    call: Call,
    name: str,
    changed: Changed = NOTHING,
    indexes_arrays: bool = False,
    follows_tables: bool = False,
) -> Reading:
    """What a call reaches; see `explore`."""
    return explore(roots_of(function, call, name), changed, indexes_arrays, follows_tables)


def roots_of(function: Callable[..., Any], call: Call, name: str) -> list[tuple[Any, str]]:
    """The function, the static leaves, and the classes of arguments that are dataclasses and the like."""
    statics = explored_leaves(call)
    names = call.leaf_names() if statics else []
    classes = [(kind, kind.__qualname__) for kind in classes_of(call)]
    return [(function, name), *((call.leaves[index], names[index]) for index in statics), *classes]


def classes_of(call: Call) -> list[type]:
    """The classes of the user's that arguments which are taken apart have."""
    if all(map(_is_plain, call.structures)):
        return []
    kinds = dict.fromkeys(type(one) for one in structured_parts(call.rebuild(call.leaves)))
    return [kind for kind in kinds if not is_opaque(kind.__module__)]


def _is_plain(structure: Any) -> bool:
    """Whether an argument is a leaf, or a tuple, list or dict of leaves."""
    is_flat = structure is None or structure.num_nodes == 1 + structure.num_leaves
    return is_flat and (structure is None or structure.type in CONTAINERS)


def substituted_arguments(
    call: Call, leaves: list[Any], substitution: Substitution
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with other leaves, and with what stands for objects and for classes among the roots."""
    roots = explored_leaves(call)
    for position, index in enumerate(roots, 1):
        leaves[index] = substitution.root(position, leaves[index])
    args, kwargs = call.rebuild(leaves)
    classes = enumerate(classes_of(call), 1 + len(roots))
    found = {kind: substitution.root(position, kind) for position, kind in classes}
    changed = {kind: one for kind, one in found.items() if one is not kind}
    return with_classes((args, kwargs), changed) if changed else (args, kwargs)


def explored_leaves(call: Call) -> list[int]:
    """The positions of the static leaves that may hold others: all but numbers, texts and dtypes."""
    return [
        index
        for index, (leaf, is_array) in enumerate(zip(call.leaves, call.is_array))
        if not is_array and type(leaf) not in PLAIN_TYPES and not isinstance(leaf, np.generic | np.dtype)
    ]


def contents_of(value: Any, path: tuple[Any, ...] = ()) -> dict[Any, Any]:
    """The leaves of nested containers by path; containers that optree alone knows count as leaves."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, tuple | list):
        items = enumerate(value)
    elif is_container(value):
        items = vars(value).items() if hasattr(value, "__dict__") else ()
    else:
        return {path: value}
    found: dict[Any, Any] = {}
    for key, item in items:
        found.update(contents_of(item, (*path, key)))
    return found


def argument_text(path: tuple[Any, ...]) -> str:
    where, argument, *rest = path
    start = f"argument {argument}" if where == 0 else f"argument '{argument}'"
    return start + "".join(f"[{key!r}]" for key in rest)
