"""SciPy's names, with those of solvers entered: what `late_rules` imports when code first reaches SciPy."""

from ..scipy_api import special_ufuncs
from ..tracing.scipy_stand_ins import module_stand_in, stand_in
from . import scipy_integrate, scipy_optimize, scipy_sparse

__all__ = [
    "module_stand_in", "scipy_integrate", "scipy_optimize", "scipy_sparse", "special_ufuncs", "stand_in",
]  # fmt: skip
