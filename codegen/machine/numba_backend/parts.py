"""The modules of Numba that a kernel needs, without what `import numba` loads besides.

`numba/__init__.py` imports all of Numba, parallel loops, classes, NumPy's functions: a tenth of a second,
more than most kernels take. So the package gets its place in `sys.modules` first, and `__init__.py` runs when
somebody asks it for a name that is not there yet (PEP 562): whoever imports numba finds what is always there.
"""

from __future__ import annotations

import importlib
import sys
import threading
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from ....tracer.forks import hold_in_forks

PACKAGE = "numba"
_completing = threading.RLock()


def _without_init(spec: ModuleSpec) -> ModuleType:
    """The package, whose `__init__.py` runs later."""
    package = module_from_spec(spec)

    def complete(name: str) -> Any:
        with _completing:
            if vars(package).pop("__getattr__", None) is not None and spec.loader is not None:
                spec.loader.exec_module(package)
        if name not in vars(package):
            raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}", name=name, obj=package)
        return vars(package)[name]

    vars(package)["__getattr__"] = complete
    return package


def _import() -> None:
    """Numba's modules, in an order in which they find each other."""
    spec = find_spec(PACKAGE)
    if spec is not None and PACKAGE not in sys.modules:
        sys.modules[PACKAGE] = package = _without_init(spec)
        versions = importlib.import_module(f"{PACKAGE}._version")
        vars(package)["__version__"] = versions.get_versions()["version"]
    try:
        importlib.import_module("numba.core.types")
    except ImportError:  # in another version of Numba they may need all of it
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.")]:
            del sys.modules[name]
        importlib.import_module(PACKAGE)


_import()

from numba.core import fastmathpass, ir  # noqa: E402
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.cpu_options import FastMathOptions  # noqa: E402

hold_in_forks(global_compiler_lock._lock)  # as Numba's own, with a limit for waiting
__all__ = [
    "FastMathOptions",
    "JITCPUCodegen",
    "JITCodeLibrary",
    "fastmathpass",
    "global_compiler_lock",
    "ir",
]
