"""`scipy.stats` on Tensors: distributions by SciPy's names, frozen ones among them."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .kernel_density import kernel_density, kernel_density_of
from .multivariate import MULTIVARIATE
from .sampled import Sampled
from .univariate import DECLARATIONS, Distribution, Frozen

NAMES = (*DECLARATIONS, *MULTIVARIATE)
CLASSES = {"gaussian_kde": kernel_density}
"""By SciPy's name of a class (real class, *arguments) -> what stands for its object."""


@functools.cache
def stand_ins() -> dict[str, Any]:
    """What stands for each distribution, by name; SciPy has been imported by who asks."""
    stats = vars(sys.modules["scipy.stats"])
    drawn = {name: one for name, one in stats.items() if hasattr(one, "rvs") and not isinstance(one, type)}
    return {name: Sampled(name, one) for name, one in drawn.items()} | {
        name: MULTIVARIATE[name][0](name, stats[name])
        if name in MULTIVARIATE
        else Distribution(name, stats[name])
        for name in NAMES
    }


def stand_in(value: Any) -> Any:
    """What stands for a distribution, or for one that was frozen elsewhere; None for what is none."""
    if type(value).__module__ == "scipy.stats._distn_infrastructure":
        stand_in = stand_ins().get(value.dist.name)
        declared = isinstance(stand_in, Distribution)
        if declared:
            return Frozen(stand_in, value.args, value.kwds, value)
        return Sampled(value.dist.name or type(value.dist).__name__, value)
    if type(value).__name__ == "gaussian_kde":
        return kernel_density_of(value)
    for name, (_, parameters) in MULTIVARIATE.items():
        if type(value).__name__ == f"{name}_frozen":
            return Frozen(stand_ins()[name], tuple(getattr(value, one) for one in parameters), {}, value)
    return _by_identity().get(id(value))


@functools.cache
def _by_identity() -> dict[int, Any]:
    stats = vars(sys.modules["scipy.stats"])
    return {id(stats[name]): found for name, found in stand_ins().items()}


__all__ = ["CLASSES", "NAMES", "stand_in", "stand_ins"]
