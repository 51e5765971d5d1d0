"""Containers: arguments and results taken apart into leaves, and put together again.

Arguments go through optree, which is quick and knows what users registered with it; it is imported when the
first container arrives. Results are taken apart here once, when a function is traced, and put together in
each call by a generated function, with an expression such as `(o0, {'w': o1})`.
"""

from __future__ import annotations

import dataclasses
import os
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from ...tracer.dims import plain, python_type
from ...tracer.errors import OutputError
from ...tracer.records import duplicate
from ..captures.classes import copied_from
from .foreign import how_to_return
from .tensor import Size, Tensor, TorchTensor

NAMESPACE = "pullback"
CONTAINERS = frozenset((list, tuple, dict, OrderedDict, defaultdict, deque))
NO_CONTAINERS = frozenset((np.ndarray, TorchTensor, bool, int, float, str, type(None)))
"""Of leaves, the classes that are known to be none."""
Path = tuple[Any, ...]


def is_container(value: Any) -> bool:
    """Whether a value is taken apart: lists, tuples, dicts, namedtuples, dataclasses, not classes."""
    kind: Any = type(value)
    return kind in CONTAINERS or _is_structured(kind)


@lru_cache(maxsize=1024)
def _is_structured(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


@lru_cache(maxsize=1024)
def _register(kind: Any) -> None:
    """Let optree know a dataclass."""
    import optree  # not at start

    names = tuple(field.name for field in dataclasses.fields(kind))

    def take_apart(value: Any) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[str, ...]]:
        return tuple(getattr(value, name) for name in names), names, names

    def restore(names: Any, children: Any) -> Any:
        return restore_dataclass(kind, names, tuple(children))

    optree.register_pytree_node(kind, take_apart, restore, namespace=NAMESPACE)


def structured_parts(value: Any) -> Iterator[Any]:
    """The dataclasses and namedtuples in nested containers."""
    kind: Any = type(value)
    inner: Iterable[Any] = ()
    if _is_structured(kind):
        yield value
        inner = value if issubclass(kind, tuple) else _fields_of(value)
    elif kind in CONTAINERS:
        inner = value.values() if isinstance(value, dict) else value
    for one in inner:
        yield from structured_parts(one)


def with_classes(value: Any, classes: Mapping[type, Any]) -> Any:
    """Nested containers, which are written into, with other classes of dataclasses and namedtuples."""
    kind: Any = type(value)
    if _is_structured(kind) and not issubclass(kind, tuple):
        names = tuple(field.name for field in dataclasses.fields(kind))
        inner = [with_classes(one, classes) for one in _fields_of(value)]
        return restore_dataclass(classes.get(kind, kind), names, inner)
    if kind is tuple or _is_structured(kind):
        items = (with_classes(one, classes) for one in value)
        return tuple(items) if kind is tuple else classes.get(kind, kind)._make(items)
    if kind in CONTAINERS:
        for key, one in [*(value.items() if isinstance(value, dict) else enumerate(value))]:
            value[key] = with_classes(one, classes)
    return value


def _fields_of(value: Any) -> list[Any]:
    """What the fields of a dataclass hold."""
    return [getattr(value, field.name) for field in dataclasses.fields(value)]


def restore_dataclass(kind: type, names: Sequence[str], values: Sequence[Any]) -> Any:
    """An instance with these fields. No constructor runs, so that neither defaults nor checks interfere."""
    instance: Any = object.__new__(kind)
    for name, value in zip(names, values):
        object.__setattr__(instance, name, value)
    return instance


def flatten(value: Any) -> tuple[list[Any], Any]:
    """The leaves of nested containers, None among them, and their structure, which is hashable."""
    import optree  # not at start

    while True:
        leaves, structure = optree.tree_flatten(value, none_is_leaf=True, namespace=NAMESPACE)
        kinds: set[Any] = set(map(type, leaves)) - NO_CONTAINERS
        if not kinds:  # found sooner
            return leaves, structure
        unknown: set[Any] = {
            kind
            for kind in kinds
            if not issubclass(kind, Tensor) and _is_structured(kind) and dataclasses.is_dataclass(kind)
        }
        if not unknown:
            return leaves, structure
        for kind in unknown:
            _register(kind)


def key_orders(value: Any) -> list[tuple[Any, ...]]:
    """The keys of the dicts in nested containers as they stand; structures are equal whatever the order."""
    is_dict = isinstance(value, dict)
    found = [tuple(value)] if is_dict else []
    for one in value.values() if is_dict else value if isinstance(value, Iterable) else _fields_of(value):
        if is_container(one):
            found += key_orders(one)
    return found


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    import optree  # not at start

    return optree.tree_unflatten(structure, leaves)


def leaf_paths(structure: Any) -> list[Path]:
    """Of each leaf the keys, indices and names that lead to it."""
    return [tuple(path) for path in structure.paths()]


def path_text(path: Path) -> str:
    """`['layers'][0]`, as Python would write the way to a leaf."""
    return "".join(f"[{key!r}]" for key in path)


# --- results ------------------------------------------------------------------------------------------


class Results:
    """What a function returned: its leaves, and the expression that puts others into the same structure.

    Args:
        value: the result of a traced function.
        function: its name, for messages.

    Raises:
        OutputError: a leaf is neither a tensor, an array, a Python number nor None.
    """

    def __init__(self, value: Any, function: str) -> None:
        self.leaves: list[Any] = []
        self._function = function
        self._positions: dict[int, int] = {}
        self._namespace: dict[str, Any] = {}
        self._makers: dict[Any, Callable[[Any], Callable[[Any], Any]]] = {}
        """What makes the functions of `builder`, by what it makes of each leaf."""
        self.expression = self._take_apart(value, ())

    @property
    def held(self) -> tuple[Any, ...]:
        """What is in the structure besides leaves."""
        return tuple(self._namespace.values())

    def builder(
        self, produce: Callable[[Any], Sequence[Any]], form: Callable[[int], str] = "o{}".format, **names: Any
    ) -> Callable[[Any], Any]:
        """A function that puts what `produce(its argument)` gives, one value a leaf, into the structure.

        `form(i)` is the expression of leaf i, from the variable `o<i>` and `names`.
        """
        forms = tuple(map(form, range(len(self.leaves))))
        key = forms, *names.values()
        make = self._makers.get(key)
        if make is None:
            text = self.expression
            for position, one in enumerate(forms):
                text = text.replace(f"\0{position}\0", one)
            values = "".join(f"o{position}, " for position in range(len(forms)))
            unpacked = f"{values}= produce(argument)" if values else "produce(argument)"
            build = f"  def build(argument):\n    {unpacked}\n    return {text}\n"
            namespace = {**self._namespace, **names}
            exec(_compiled(f"def maker(produce):\n{build}  return build\n"), namespace)
            make = self._makers[key] = namespace["maker"]
        return make(produce)

    def shorten(self, length_of: Callable[[Any], tuple[Any, Any] | None]) -> None:
        """Let arrays whose lengths are values be two leaves each: rows, and how many of them there are."""
        for position, leaf in enumerate([*self.leaves]):
            found = length_of(leaf)
            if found is not None:
                self.leaves[position], length = found
                text = f"\0{position}\0"
                self.expression = self.expression.replace(text, f"{text}[:{self._leaf(length)}]")

    def without_leaves(self) -> Results:
        """The structure alone, which keeps nothing of a trace alive."""
        other: Results = duplicate(self)
        other.leaves = [None] * len(self.leaves)
        return other

    def _constant(self, value: Any) -> str:
        name = f"k{len(self._namespace)}"
        self._namespace[name] = value
        return name

    def _leaf(self, value: Any) -> str:
        position = self._positions.setdefault(id(value), len(self.leaves))
        if position == len(self.leaves):
            self.leaves.append(value)
        return f"\0{position}\0"

    def _take_apart(self, value: Any, path: Path) -> str:
        if isinstance(value, Tensor | np.ndarray | np.generic):
            return self._leaf(value)
        if value is None or python_type(value) in (bool, int, float, complex):
            return self._constant(plain(value))
        kind = type(value)
        if kind in (list, tuple, deque, Size):
            items = [self._take_apart(item, (*path, index)) for index, item in enumerate(value)]
            return self._sequence(value, kind, items)
        if kind in (dict, OrderedDict, defaultdict):
            items = [
                f"{repr(key) if type(key) in (int, str) else self._constant(key)}: "
                f"{self._take_apart(item, (*path, key))}"
                for key, item in value.items()
            ]
            return self._mapping(value, kind, f"{{{', '.join(items)}}}")
        kind = copied_from(kind)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            items = [self._take_apart(item, (*path, name)) for name, item in zip(value._fields, value)]
            return f"{self._constant(kind)}({', '.join(items)})"
        if is_container(value):
            names = tuple(field.name for field in dataclasses.fields(value))
            items = [self._take_apart(getattr(value, name), (*path, name)) for name in names]
            restore = self._constant(restore_dataclass)
            arguments = f"{self._constant(kind)}, {self._constant(names)}"
            return f"{restore}({arguments}, ({''.join(f'{item}, ' for item in items)}))"
        raise OutputError(self._message(value, path))

    def _sequence(self, value: Any, kind: type, items: list[str]) -> str:
        if kind is tuple:
            return f"({''.join(f'{item}, ' for item in items)})"
        listed = f"[{', '.join(items)}]"
        if kind is Size:
            return f"{self._constant(Size)}({listed})"
        return listed if kind is list else f"{self._constant(deque)}({listed}, {value.maxlen!r})"

    def _mapping(self, value: Any, kind: type, items: str) -> str:
        if kind is dict:
            return items
        if kind is defaultdict:
            return f"{self._constant(defaultdict)}({self._constant(value.default_factory)}, {items})"
        return f"{self._constant(OrderedDict)}({items})"

    def _message(self, value: Any, path: Path) -> str:
        place = f"at result{path_text(path)}" if path else "as its result"
        text = repr(value)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        return (
            f"{self._function} returns {shown}, of type {type(value).__name__}, {place}. Expected tensors, "
            "arrays, Python numbers, None, or tuples, lists, dicts, namedtuples and dataclasses of these. "
            "Return only those, and compute the rest outside of the compiled function."
            f"{how_to_return(value)}"
        )


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    return compile(text, os.path.join(os.path.dirname(__file__), "<results of a compiled function>"), "exec")
