"""`scipy.interpolate` on Tensors: interpolants by SciPy's names, those among them that were made before."""

from __future__ import annotations

from typing import Any

from .interp1d import UNIVARIATE, univariate_of
from .piecewise import PIECEWISE, piecewise_of
from .points import Interpolant
from .regular_grids import GRIDS, grid_of
from .splines import SPLINES, spline_of

CLASSES: dict[str, Any] = {**PIECEWISE, **SPLINES["classes"], **UNIVARIATE, **GRIDS["classes"]}
"""By SciPy's name of a class (real class, *arguments) -> what stands for its object."""
FUNCTIONS: dict[str, Any] = {**SPLINES["functions"], **GRIDS["functions"]}


def interpolant_of(value: Any) -> Interpolant | None:
    """What stands for an interpolant of SciPy's that was made before; None for what is none."""
    for find in (piecewise_of, spline_of, univariate_of, grid_of):
        if (found := find(value)) is not None:
            return found
    return None
