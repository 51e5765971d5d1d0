"""Rules for libraries that most programs do without: imported when code first reaches the library."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType

_imports: dict[str, Callable[[], ModuleType]] = {}


def import_rules_by(library: str, load: Callable[[], ModuleType]) -> None:
    """`load` imports the rules for a library. It comes from above, whence this layer imports nothing."""
    _imports[library] = load


@functools.cache
def rules_for(library: str) -> ModuleType:
    """The module of what stands for a library's functions, classes and modules."""
    return _imports[library]()
