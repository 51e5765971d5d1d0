"""SciPy's distributions, for values that are differentiated: `stats.norm.logpdf(x)`.

Each is a module as well, as `import pullback.compat.autograd.scipy.stats.norm`.
"""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

import scipy.stats as _scipy

from pullback.runtime.scipy_api.distributions import NAMES as _NAMES
from pullback.runtime.tracing.stand_ins import namespace as _namespace


def _as_module(name: str, distribution: _Any) -> _ModuleType:
    """The methods of a distribution as functions of a module, which is called as the distribution is."""
    module = _ModuleType(f"{__name__}.{name}", f"The methods of `scipy.stats.{name}`.")
    module.__dict__["__getattr__"] = lambda method: getattr(distribution, method)
    _sys.modules[module.__name__] = module
    return module


globals().update(_namespace(_scipy))
globals().update({name: _as_module(name, globals()[name]) for name in _NAMES})


def __getattr__(name: str) -> _Any:
    return getattr(_scipy, name)
