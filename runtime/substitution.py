"""The function as it is traced: what it reaches copied, with a traced Tensor in the place of each array.

So `weights[0] * x`, `np.exp(weights)` and `float(weights.sum())` on an array of the closure behave as on an
argument: they become part of the graph, or raise where they need a value, and never bake a value into code.
Only what leads to arrays is copied, or to NumPy's functions that make arrays for the function to fill: these
make traced Tensors. A function that reaches neither is traced itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from ..tracer.errors import LeakedTraceError, MutationError
from ..tracer.graph import Node
from .closure import Holder, Key, Place, Reading, Source, StandIn, attributes_of, code_names
from .tensor import Tensor

_ABSENT = object()


class Substitution:
    """Copies of the places of a `Reading`, made once each; `replacement` says what stands for an array."""

    def __init__(self, reading: Reading, replacement: Callable[[Source], Any]) -> None:
        self._reading = reading
        self._replacement = replacement
        self._copies: dict[int, Any] = {}
        self._watched: list[tuple[str, Any, dict[Any, Any], bool]] = []
        """Label, object, its content before the trace, and whether nothing may be added to it."""
        for namespace, name in reading.stored_globals:
            self._watch_global(name, namespace)
        for holder in reading.holders:
            if not holder.is_copied():
                self._watch(holder, holder.value)

    def root(self, position: int, value: Any) -> Any:
        """What to call or to pass in the place of the root."""
        place = self._reading.roots[position]
        return value if place is None else self._rebuild(place)

    def check(self, function: str) -> None:
        """Raise where the traced function wrote to what it reaches, or stored a traced value there.

        Raises:
            MutationError: a list, dict, attribute or global variable was changed.
            LeakedTraceError: a traced value was stored in one.
        """
        for label, watched, before, complete in self._watched:
            now = _content(watched)
            if (complete and len(now) != len(before)) or any(
                now.get(key, _ABSENT) is not before[key] for key in before
            ):
                raise MutationError(
                    f"{function} changes {label} while it is traced. A compiled function runs its Python "
                    "code only when it is traced, so the change would not happen in later calls. Return the "
                    "new value instead."
                )
        for namespace, name in self._reading.stored_globals:
            _refuse_traced(function, f"the global variable {name}", namespace.get(name))
        for holder in self._reading.holders:
            if holder.kind in ("items", "instance"):
                for key, value in _content(holder.value).items():
                    _refuse_traced(function, f"{holder.label}, at {key!r},", value)
            elif holder.kind == "function":
                for name, cell in zip(holder.value.__code__.co_freevars, holder.value.__closure__ or ()):
                    where = f"the variable {name} of an enclosing function"
                    _refuse_traced(function, where, _content(cell).get(0))

    def _rebuild(self, place: Place) -> Any:
        if isinstance(place, Source):
            return self._replacement(place)
        if isinstance(place, StandIn):
            return place.value
        if not place.is_copied():
            return place.value
        if id(place) not in self._copies:
            getattr(self, f"_copy_{place.kind}")(place)
        return self._copies[id(place)]

    def _children(self, place: Holder) -> list[tuple[Any, Any]]:
        return [(key, self._rebuild(child)) for key, child in place.children]

    def _enter(self, place: Holder, copied: Any) -> Any:
        """Known before its children are copied, so that cycles close."""
        self._copies[id(place)] = copied
        return copied

    def _watch_global(self, name: str, namespace: dict[str, Any]) -> None:
        if name in namespace:
            self._watched.append((f"the global variable {name}", namespace, {name: namespace[name]}, False))

    def _watch(self, place: Holder, value: Any) -> None:
        """Notice changes to a holder or its copy. Instances may get new attributes: caches do that."""
        if place.kind in ("items", "instance", "namespace"):
            self._watched.append((place.label, value, _content(value), place.kind == "items"))
        elif place.kind == "function":
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                label = f"the variable {name} of an enclosing function"
                self._watched.append((label, cell, _content(cell), False))

    # --- one for each kind of holder --------------------------------------------------------------------

    def _copy_function(self, place: Holder) -> None:
        original: FunctionType = place.value
        cells = {name: CellType() for name in original.__code__.co_freevars}
        variables = dict(original.__globals__)
        for key, child in place.children:
            if key == ("global", "__builtins__"):  # which a function looks up when it is made
                variables["__builtins__"] = self._rebuild(child)
        copied = self._enter(
            place,
            FunctionType(
                original.__code__, variables, original.__name__, original.__defaults__, tuple(cells.values())
            ),
        )
        keywords = dict(original.__kwdefaults__ or {})
        copied.__dict__.update(original.__dict__)
        for name, cell in zip(cells, original.__closure__ or ()):
            content = _content(cell)
            if content:
                cells[name].cell_contents = content[0]
        defaults = list(original.__defaults__ or ())
        for (kind, key), value in self._children(place):
            if kind == "cell":
                cells[key].cell_contents = value
            elif kind == "global":
                variables[key] = value
            elif kind == "keyword":
                keywords[key] = value
            else:
                defaults[key] = value
        copied.__defaults__ = tuple(defaults) or None
        copied.__kwdefaults__ = keywords or None
        for name in code_names(original.__code__)[2]:
            self._watch_global(name, variables)
        self._watch(place, copied)

    def _copy_method(self, place: Holder) -> None:
        parts = dict(self._children(place))
        function = parts.get("__func__", place.value.__func__)
        self._enter(place, MethodType(function, parts.get("__self__", place.value.__self__)))

    def _copy_partial(self, place: Holder) -> None:
        original = place.value
        parts = {"func": original.func, "args": original.args, "keywords": original.keywords}
        parts.update(self._children(place))
        self._enter(place, functools.partial(parts["func"], *parts["args"], **parts["keywords"]))

    def _copy_wrapper(self, place: Holder) -> None:
        """A compiled function inside a trace is its Python function."""
        self._enter(place, dict(self._children(place))["__wrapped__"])

    def _copy_namespace(self, place: Holder) -> None:
        if isinstance(place.value, ModuleType):
            copied: Any = self._enter(place, ModuleType(place.value.__name__))
            vars(copied).update(vars(place.value))
        else:
            copied = self._enter(place, type(place.value)(place.value.__name__, (place.value,), {}))
        for name, value in self._children(place):
            setattr(copied, name, value)
        self._watch(place, copied)

    def _copy_items(self, place: Holder) -> None:
        original = place.value
        if isinstance(original, tuple):
            items = list(original)
            for index, value in self._children(place):
                items[index] = value
            self._enter(place, type(original)._make(items) if hasattr(original, "_make") else tuple(items))
            return
        if isinstance(original, set | frozenset):
            keys = self._copied_keys(place)
            self._enter(place, type(original)(keys.get(id(one), one) for one in original))
            return
        copied = self._enter(place, original.copy())
        if keys := self._copied_keys(place):
            copied.clear()
            copied.update((keys.get(id(key), key), value) for key, value in original.items())
        for key, value in self._children(place):
            if not isinstance(key, Key):
                copied[keys.get(id(key), key)] = value
        self._watch(place, copied)

    def _copied_keys(self, place: Holder) -> dict[int, Any]:
        """By the id of each key of a dict, or element of a set, its copy."""
        found = [(key.value, child) for key, child in place.children if isinstance(key, Key)]
        return {id(key): self._rebuild(child) for key, child in found}

    def _copy_instance(self, place: Holder) -> None:
        original = place.value
        copied = self._enter(place, object.__new__(type(original)))
        for name, value in _content(original).items():
            object.__setattr__(copied, name, value)
        for key, value in self._children(place):
            if not isinstance(key, tuple):
                object.__setattr__(copied, key, value)
            elif hasattr(copied, "__dict__") and isinstance(value, FunctionType):
                copied.__dict__[key[1]] = _bound(type(original), key[1], value, copied)
        self._watch(place, copied)


def _bound(kind: type, name: str, function: FunctionType, instance: Any) -> Any:
    """The copied function as the class would give it out: a method, a classmethod's, or the function."""
    static = next(vars(base)[name] for base in kind.__mro__ if name in vars(base))
    if isinstance(static, staticmethod):
        return function
    return MethodType(function, kind if isinstance(static, classmethod) else instance)


def _content(value: Any) -> dict[Any, Any]:
    """What is stored in a list, dict, cell, module or instance, by key."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if isinstance(value, CellType):
        try:
            return {0: value.cell_contents}
        except ValueError:  # assigned only later, or never
            return {}
    return dict(vars(value)) if isinstance(value, type | ModuleType) else attributes_of(value)


def _refuse_traced(function: str, where: str, value: Any) -> None:
    if isinstance(value, Tensor) and isinstance(value._value, Node):
        raise LeakedTraceError(
            f"{function} stores a traced value in {where} while it is traced. The value has no numbers, and "
            f"later calls do not run the Python code that stores it. Return it instead."
        )
