"""The function that reads what a compiled function reaches: written line by line, compiled, and bound.

It is generated, so that reading a dozen places costs a fraction of a microsecond. The same lines have two
forms. `read()` finds again what belongs to one function object: its variables are looked up there, and
helpers must be the same objects. `bind(roots)` asks of another function object whether it reaches the like of
it, and is the `read` of that one: so programs serve all functions that are made of the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

END = "  except (LookupError, AttributeError, TypeError, ValueError):  # a place is gone\n    return None"
PLACE = "<what a compiled function reaches>"
Read = Callable[[], tuple[Any, ...] | None]


@lru_cache(maxsize=256)
def _code(text: str) -> CodeType:
    return compile(text, PLACE, "exec")


class Reader:
    """The lines, while they are written, and what they name.

    Attributes:
        captured: the variables whose values `read` gives.
        is_shareable: whether it keeps nothing of the user's alive, so that others may be bound.
    """

    def __init__(self) -> None:
        self.captured: list[str] = []
        self.is_shareable = True
        self._has_guards = False
        self._constants: dict[str, Any] = {"type": type, "len": len}
        self._bound: dict[str, Any] = {}
        self._lines: list[tuple[str, bool]] = []
        """Each with whether it is for `bind` alone."""
        self._roots: list[str] = []
        self._shared: Any = None
        self._read_code: CodeType | None = None

    @property
    def size(self) -> int:
        return len(self._lines)

    # --- writing ------------------------------------------------------------------------------------------

    def constant(self, value: Any) -> str:
        """A name for a value that is the same for all function objects."""
        name = f"k{len(self._constants)}"
        self._constants[name] = value
        return name

    def root(self, value: Any) -> str:
        name = f"r{len(self._roots)}"
        self._roots.append(name)
        self._bound[name] = value
        return name

    def bound(self, value: Any, expression: str) -> str:
        """A name for an object that `read` need not look up, and another function object has its own of."""
        name = f"b{len(self._bound)}"
        self._bound[name] = value
        self._lines.append((f"    {name} = {expression}", True))
        return name

    def assign(self, expression: str) -> str:
        variable = f"v{len(self._lines)}"
        self._lines.append((f"    {variable} = {expression}", False))
        return variable

    def guard(self, failure: str) -> None:
        """Leave where `failure` holds."""
        self._has_guards = True
        self._lines.append((f"    if {failure}: return None", False))

    def guard_binding(self, failure: str) -> None:
        """The same in `bind` alone: of what cannot change in one function object."""
        self._lines.append((f"    if {failure}: return None", True))

    # --- reading ------------------------------------------------------------------------------------------

    def text(self) -> str:
        given = "".join(f"{one}, " for one in self.captured)
        lines = [line for line, is_binding in self._lines if not is_binding]
        return "\n".join(["def read():", "  try:", *lines, f"    return ({given})", END])

    def read(self) -> Read | None:
        """`read` of the function object that was explored; None if there is nothing to read or to guard."""
        return self._with(self._bound) if self._has_guards or self.captured else None

    def bind(self, roots: Sequence[Any]) -> tuple[Read | None, tuple[Any, ...]] | None:
        """`read` of another function object, and what it gives now; None if that reaches something else."""
        if len(roots) != len(self._roots):  # a library's function, which is not explored
            return None
        if self._shared is None:
            text = "\n".join(
                [
                    f"def bind({', '.join(self._roots)}):",
                    "  try:",
                    *(line for line, _ in self._lines),
                    f"    return {{{', '.join(f'{name!r}: {name}' for name in self._bound)}}}",
                    END,
                ]
            )
            namespace = dict(self._constants)
            exec(_code(text), namespace)
            self._shared, self._read_code = namespace["bind"], _code(self.text())
        bound = self._shared(*roots)
        if bound is None:
            return None
        read = self._with(bound) if self._has_guards or self.captured else None
        values = () if read is None else read()
        return None if values is None else (read, values)

    def without_values(self) -> Reader:
        """A reader that can be bound, and keeps nothing alive."""
        other = Reader()
        other.__dict__.update(self.__dict__)
        other._bound = dict.fromkeys(self._bound)
        return other

    def _with(self, bound: dict[str, Any]) -> Read:
        namespace = self._constants | bound
        exec(self._read_code or _code(self.text()), namespace)
        read: Read = namespace["read"]
        return read
