"""The workloads, a module for each kind: `WORKLOADS` run by default, `ON_REQUEST` by their whole names."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from ..workload import Workload

NAMES = (
    "basic",
    "options",
    "normalisation",
    "regression",
    "mixture",
    "clustering",
    "bundle",
    "hands",
    "recurrent",
    "physics",
    "convolution",
    "attention",
    "training",
    "minimise",
    "filtering",
    "loops",
    "waves",
    "solvers",
)

_MODULES: list[ModuleType] = [
    importlib.import_module(f"{__name__}.{name}")
    for name in NAMES
    if importlib.util.find_spec(f"{__name__}.{name}")
]

WORKLOADS: tuple[Workload, ...] = tuple(one for module in _MODULES for one in module.WORKLOADS)
ON_REQUEST: tuple[Workload, ...] = tuple(
    one for module in _MODULES for one in getattr(module, "ON_REQUEST", ())
)


def workload_named(name: str) -> Workload:
    """Raises KeyError where there is none."""
    return {workload.name: workload for workload in (*WORKLOADS, *ON_REQUEST)}[name]
