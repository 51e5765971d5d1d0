"""Putting pullback in the place of HIPS autograd, for programs that can't be changed.

While it is installed, `import autograd` and `import autograd.numpy` and so on give the modules of
`pullback.compat.autograd`: a finder in front of Python's own maps the names.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pullback.errors import PullbackError
from pullback.runtime.tracing.asked_types import class_of_differentiated

NAME = "autograd"
OURS = __name__.rpartition(".")[0]


@dataclass
class Options:
    """How HIPS autograd's names work."""

    compiled: bool = False
    """Whether the functions that `grad`, `jacobian` and their kin differentiate are compiled."""


options = Options()
_lock = threading.RLock()


class InstallationError(PullbackError, ImportError):
    """pullback can't take the place of HIPS autograd, which has been imported."""


class _Alias(Loader):
    """Gives a module of ours under another name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which the import has exchanged
        # an import of a part would let its name in the package mean the module
        for name in [name for name in sys.modules if name.startswith(f"{module.__name__}.")]:
            sys.modules.setdefault(NAME + name.removeprefix(OURS), sys.modules[name])


class _Finder(MetaPathFinder):
    """Finds `autograd` and its parts here."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_part(fullname):
            return None
        own = OURS + fullname.removeprefix(NAME)
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            return None
        return ModuleSpec(fullname, _Alias(module), is_package=hasattr(module, "__path__"))


_finder = _Finder()


def install(*, compiled: bool = False) -> None:
    """Let `import autograd` mean `pullback.compat.autograd`, until `uninstall()`.

    Modules that are imported meanwhile keep what they imported.

    Args:
        compiled: compile the functions that `grad`, `value_and_grad`, `jacobian`, `hessian` and their kin
            are given: the first call takes seconds, those after it, also of another function object of the
            same code, run machine code.

    Raises:
        InstallationError: an ImportError; HIPS autograd itself has been imported.

    Example:
        >>> pullback.compat.autograd.install()
        >>> import autograd.numpy as np
    """
    with _lock:
        _require_not_imported()
        options.compiled = compiled
        boxes = importlib.import_module(f"{OURS}.numpy.numpy_boxes")  # which needs the options
        class_of_differentiated[:] = [boxes.ArrayBox]  # which programs ask for by its name
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Let `import autograd` mean HIPS autograd again, or fail where there is none.

    Example:
        >>> pullback.compat.autograd.uninstall()
    """
    with _lock:
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        options.compiled = False
        class_of_differentiated.clear()
        for name in [name for name in sys.modules if _is_part(name)]:
            if _is_own(sys.modules[name]):
                del sys.modules[name]


@contextmanager
def installed(*, compiled: bool = False) -> Iterator[None]:
    """`install` inside of a with block; after it everything is as it was before.

    Example:
        >>> with installed():
        ...     import lifelines
    """
    before = (_finder in sys.meta_path, options.compiled)
    install(compiled=compiled)
    try:
        yield
    finally:
        if before[0]:
            options.compiled = before[1]
        else:
            uninstall()


def _is_part(name: str) -> bool:
    return name == NAME or name.startswith(f"{NAME}.")


def _is_own(module: Any) -> bool:
    return getattr(module, "__name__", "").startswith(OURS)


def _require_not_imported() -> None:
    other = sys.modules.get(NAME)
    if other is None or _is_own(other):
        return
    modules = list(sys.modules.items())  # to which some add when they are asked for an attribute
    importers = sorted({name.partition(".")[0] for name, module in modules if _uses(name, module)})
    by = f" It was imported by {', '.join(importers)}." if importers else ""
    raise InstallationError(
        f"pullback can't take the place of HIPS autograd, which has been imported from {other.__file__}: two "
        f"of them would not know each other's values.{by} Call pullback.compat.autograd.install() before "
        "that, or run the program by `python -m pullback.compat.autograd script.py`."
    )


def _uses(name: str, module: Any) -> bool:
    """Whether a module, no part of HIPS autograd, has a name of it."""
    if _is_part(name) or not isinstance(module, ModuleType):
        return False
    for value in list(vars(module).values()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(home, str) and _is_part(home):
            return True
    return False
