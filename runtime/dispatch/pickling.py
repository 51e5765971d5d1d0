"""How compiled functions travel: by name, or by what they are made of, and with their machine code.

Plain pickle takes functions by their name. So does cloudpickle, but for those of `__main__`, of modules that
are registered to go by value, and of no module's; there a compiled function goes with its Python function.
The machine code of what it has run goes along: `exchange.keep` drops it where processor or versions differ.
"""

from __future__ import annotations

import copyreg
import importlib
import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ...tracer.errors import CacheFileError
from ...tracer.version import __version__

Codes = dict[str, bytes]
Settings = dict[str, Any]
Reduced = tuple[Any, ...]
OLDER = "0.0"
"""Of pickles that say no version."""


def reduced(function: Any, settings: Settings) -> Reduced:
    """What `__reduce_ex__` of a compiled function gives to pickle; `settings` are what it was made with."""
    codes = _machine_code(function)
    name = getattr(function, "__qualname__", "")
    if function.derived is not None:
        return _derived, (*function.derived, codes, __version__)
    if _is_found(function, name) and not _goes_by_value(function.__module__, sys._getframe(2)):
        return _by_name, (function.__module__, name, codes, __version__)
    return copyreg.__newobj__, (type(function),), (settings, codes, __version__)  # type: ignore[attr-defined]


def settings_of(settings: Settings, codes: Codes, version: str = OLDER) -> Settings:
    """What a compiled function that has come was made with; its machine code is kept."""
    require_version(version, str(settings.get("name") or "a function"))
    keep(codes)
    return settings


def require_version(version: str, name: str) -> None:
    """CacheFileError unless the pickle of a compiled function is of this version of pullback."""
    if version != __version__:
        raise CacheFileError(
            f"This pickle holds the compiled function {name} of pullback {version}; here is {__version__}. "
            "What a pickle holds changes from version to version: pickle the function anew, or the plain "
            "Python function, and compile it where it is loaded."
        )


def keep(codes: Codes) -> None:
    """Keep machine code that has come with a function."""
    if codes:
        from ...codegen.machine import exchange  # not at start

        exchange.keep(codes)


def _machine_code(function: Any) -> Codes:
    names = entries_of(function)
    if not names:
        return {}
    from ...codegen.machine import exchange  # not at start

    return exchange.carried(sorted(names))


def entries_of(function: Any) -> set[str]:
    """The names of the machine code that its calls have run."""
    own = function._dispatcher
    inner = [one for entry in own.table.entries.values() for runs in entry.variants for one in runs.inner]
    return own.counters.entries.union(*map(entries_of, inner))


# --- by name ----------------------------------------------------------------------------------------------


def _is_found(function: Any, name: str) -> bool:
    """Whether it is what its module has under its name."""
    try:
        return operator.attrgetter(name)(sys.modules[function.__module__]) is function
    except (AttributeError, KeyError):
        return False


def _goes_by_value(module: str, caller: FrameType) -> bool:
    """Whether cloudpickle, perhaps a copy that a library ships, is the caller, and takes this module so."""
    bases = type(caller.f_locals.get("self")).__mro__
    name = next((one.__module__ for one in bases if one.__module__.endswith("cloudpickle.cloudpickle")), None)
    if name is None:
        return False
    parts = module.split(".")
    above = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return module == "__main__" or not above.isdisjoint(sys.modules[name].list_registry_pickle_by_value())


def _by_name(module: str, name: str, codes: Codes, version: str = OLDER) -> Any:
    require_version(version, name)
    keep(codes)
    return operator.attrgetter(name)(importlib.import_module(module))


# --- by value ---------------------------------------------------------------------------------------------


def _derived(derivation: Callable[[Any], Any], function: Any, codes: Codes, version: str = OLDER) -> Any:
    require_version(version, str(getattr(function, "__name__", function)))
    keep(codes)
    return derivation(function)
