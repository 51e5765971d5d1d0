"""SciPy's names, for values that are differentiated."""

import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.special

from pullback.compat.autograd.libraries import module_of

integrate = module_of(f"{__name__}.integrate", scipy.integrate)
linalg = module_of(f"{__name__}.linalg", scipy.linalg)
optimize = module_of(f"{__name__}.optimize", scipy.optimize)
special = module_of(f"{__name__}.special", scipy.special)

from . import signal, stats  # noqa: E402

__all__ = ["integrate", "linalg", "optimize", "signal", "special", "stats"]
