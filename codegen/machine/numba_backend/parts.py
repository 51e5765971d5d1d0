"""The modules of Numba that a kernel needs, without what `import numba` loads besides.

`numba/__init__.py` imports all of Numba, parallel loops, classes, NumPy's functions: a tenth of a second,
more than most kernels take. So the package gets its place in `sys.modules` first, and `__init__.py` runs when
somebody asks it for a name that is not there yet (PEP 562): whoever imports numba finds what is always there.
So does the package of Numba's types, for which kernels have no use, and PyYAML, which compiles a
long pattern when it is imported, and which Numba asks where there is a file `.numba_config.yaml`.
"""

from __future__ import annotations

import importlib
import sys
import threading
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from ....tracer.forks import hold_in_forks

PACKAGE = "numba"
TYPES = f"{PACKAGE}.core.types"
"""The types that Numba infers, which kernels do without, and whose import takes most of Numba's."""
CONFIGURATION = "yaml"
"""The library that reads Numba's file of options."""
_completing = threading.RLock()


def _without_init(name: str) -> ModuleType | None:
    """The package, whose `__init__.py` runs when it is asked for a name; None if it is loaded or missing."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return None
    package, loader = module_from_spec(spec), spec.loader
    state = vars(package)
    begun: list[str] = []

    def complete(attribute: str) -> Any:
        with _completing:
            if not begun:
                begun.append(attribute)
                loader.exec_module(package)
                if state.get("__getattr__") is complete:
                    del state["__getattr__"]
            if state.get("__getattr__") is not complete:
                return getattr(package, attribute)
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=package)

    state["__getattr__"] = complete
    sys.modules[name] = package
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, package)
    return package


def _import() -> None:
    """Numba, of which what kernels do without is not loaded yet."""
    _without_init(CONFIGURATION)
    package = _without_init(PACKAGE)
    if package is not None:
        versions = importlib.import_module(f"{PACKAGE}._version")
        vars(package)["__version__"] = versions.get_versions()["version"]
    try:
        importlib.import_module(f"{PACKAGE}.core")
        _without_init(TYPES)
    except ImportError:  # in another version of Numba they may need all of it
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.")]:
            del sys.modules[name]
        importlib.import_module(PACKAGE)


_import()

from numba.core import fastmathpass, ir  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.cpu_options import FastMathOptions  # noqa: E402

hold_in_forks(global_compiler_lock._lock)  # as Numba's own, with a limit for waiting
__all__ = [
    "FastMathOptions",
    "fastmathpass",
    "global_compiler_lock",
    "ir",
]
