"""Modules of NumPy and SciPy for values that are differentiated, under HIPS autograd's names."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pullback.runtime.tracing.stand_ins import namespace


def module_of(name: str, library: ModuleType) -> ModuleType:
    """A module of this full name with a library's functions, which take Tensors; `import` finds it.

    Example:
        >>> module_of("anp.fft", np.fft).rfftfreq(2)
        array([0. , 0.5])
    """
    module = ModuleType(name, f"The names of `{library.__name__}`, for values that are differentiated.")

    def missing(attribute: str) -> Any:
        return getattr(library, attribute)

    vars(module).update(namespace(library), __getattr__=missing)
    sys.modules[name] = module
    return module
