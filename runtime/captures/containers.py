"""Lists, dicts and sets that outlive a call and that a function changes: `log.append(n)`, `seen.add(k)`.

Such a change is a side effect: it happens once for each path, when that is traced. So code must not depend on
it: in a trace a `Written` stands for the container. It notes what is written, to do it once the trace has
worked, and refuses to be read.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from ...tracer import dims
from ...tracer.errors import MutationError
from ...tracer.graph import Node
from ...tracer.origin import at_caller, at_place, place_of_caller
from ...tracer.trace import innermost
from ..values.value_kinds import NumpyTensor, plain
from .contents import Unreadable, parts_of
from .state import Counted

_IN_PLACE = frozenset(("__iadd__", "__ior__", "__iand__", "__isub__", "__ixor__"))
_WRITES = _IN_PLACE | {
    "__setitem__", "add", "append", "appendleft", "clear", "difference_update", "discard", "extend",
    "extendleft", "insert", "intersection_update", "symmetric_difference_update", "update",
}  # fmt: skip
"""Methods that tell nothing of what a container holds."""


class Written:
    """What stands for a container that the function changes.

    Args:
        container: the user's, which `commit` changes.
        function: the name of the function, and `label` that of the container, for messages.
    """

    def __init__(self, container: Any, function: str, label: str) -> None:
        self.container, self._function, self._label = container, function, label
        self._writes: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = []
        self._refusal: MutationError | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.container)

    def __getattr__(self, name: str) -> Any:
        if name not in _WRITES or not hasattr(type(self.container), name):
            self._refuse_read()

        def write(*arguments: Any, **options: Any) -> None:
            self._write(name, arguments, options)

        return write

    def _write(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        trace = innermost()
        if trace is not None and trace.bodies:
            self._refuse(
                "in the body of a loop or a choice, which is traced once however often it runs",
                "Return the new value instead",
            )
        self._writes.append((name, arguments, options, place_of_caller()))

    def _refuse(self, cause: str, remedy: str, place: str = "") -> Any:
        self._refusal = MutationError(
            f"{self._function} changes {self._label} while it is traced"
            f"{at_place(place or place_of_caller())}: {cause}. {remedy}."
        )
        raise self._refusal

    def _refuse_read(self) -> Any:
        self._refusal = MutationError(
            f"{self._function} reads {self._label}, which it changes as well{at_caller()}. A "
            "compiled function changes such a container once for each path, when that is traced, so what "
            "later calls read would not be there. Return the new value instead, or keep a number, which "
            "counts in each call."
        )
        raise self._refusal

    def check(self) -> None:
        """Raise where it was read, or was given what a trace has made, also where the function went on.

        Raises:
            MutationError: the reason.
        """
        if self._refusal is not None:
            raise self._refusal
        for position, (name, arguments, options, place) in enumerate(self._writes):
            arguments = tuple(map(_known, arguments))
            options = {key: _known(value) for key, value in options.items()}
            self._writes[position] = name, arguments, options, place
            if not all(map(_is_known, (*arguments, *options.values()))):
                self._refuse(
                    "what it stores there is, or may hold, a traced value, which has no numbers",
                    "Return it instead",
                    place,
                )

    def commit(self) -> bool:
        """Write into the user's container; whether there was something to write."""
        for name, arguments, options, _ in self._writes:
            getattr(self.container, name)(*arguments, **options)
        return bool(self._writes)


def _known(value: Any) -> Any:
    """A stored value as the plain function would store it."""
    return value._refuse() if type(value) is Counted else plain(dims.plain(value))


def _is_known(value: Any) -> bool:
    """Whether nothing in a value is of a trace."""
    try:
        return not any(map(_may_be_traced, parts_of(value)))
    except Unreadable:
        return False


def _may_be_traced(part: Any) -> bool:
    if type(part) in (tuple, frozenset):
        return any(map(_may_be_traced, part))
    kind = part if isinstance(part, type) else type(part)
    return issubclass(kind, NumpyTensor | Node | Counted | Written | FunctionType | ModuleType)


def _reading(self: Written, *arguments: Any) -> Any:
    return self._refuse_read()


def _writing(name: str) -> Callable[..., Any]:
    def method(self: Written, *arguments: Any) -> Any:
        if not hasattr(type(self.container), name):
            self._refuse_read()
        self._write(name, arguments, {})
        return self

    return method


for _name in _IN_PLACE:
    setattr(Written, _name, _writing(_name))
setattr(Written, "__setitem__", lambda self, *arguments: self._write("__setitem__", arguments, {}))  # noqa: B010
for _name in [
    "add", "and", "array", "bool", "contains", "copy", "deepcopy", "delitem", "eq", "format", "ge",
    "getitem", "gt", "hash", "iter", "le", "len", "lt", "missing", "mul", "ne", "or", "radd", "rand",
    "reduce", "reduce_ex", "repr", "reversed", "rmul", "ror", "rsub", "rxor", "str", "sub", "xor",
]:  # fmt: skip
    setattr(Written, f"__{_name}__", _reading)
