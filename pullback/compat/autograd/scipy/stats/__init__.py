"""SciPy's distributions, for values that are differentiated: `stats.norm.logpdf(x)`.

Each is a module as well, as `import pullback.compat.autograd.scipy.stats.norm`.
"""

from typing import Any as _Any

import scipy.stats as _scipy

from pullback.compat.autograd.libraries import module_of as _module_of
from pullback.runtime.scipy_api.distributions import NAMES as _NAMES
from pullback.runtime.tracing.stand_ins import namespace as _namespace

globals().update(_namespace(_scipy))
globals().update({name: _module_of(f"{__name__}.{name}", globals()[name]) for name in _NAMES})


def __getattr__(name: str) -> _Any:
    return getattr(_scipy, name)
