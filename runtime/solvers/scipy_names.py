"""SciPy's names of solvers, in code that is traced or differentiated: whoever imports this enters them."""

from . import scipy_integrate, scipy_optimize, scipy_sparse

__all__ = ["scipy_integrate", "scipy_optimize", "scipy_sparse"]
