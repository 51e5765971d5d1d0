"""Modules of NumPy and SciPy for values that are differentiated, under HIPS autograd's names."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pullback.runtime.tracing.stand_ins import namespace


def module_of(name: str, owner: Any) -> ModuleType:
    """A module of this full name with an owner's attributes, which `import` finds.

    Functions of a library take Tensors in it.

    Example:
        >>> module_of("anp.fft", np.fft).rfftfreq(2)
        array([0. , 0.5])
    """
    module = ModuleType(name, f"What `{name.rpartition('.')[2]}` has, for values that are differentiated.")

    def missing(attribute: str) -> Any:
        return getattr(owner, attribute)

    vars(module).update(namespace(owner) if isinstance(owner, ModuleType) else {}, __getattr__=missing)
    sys.modules[name] = module
    return module
