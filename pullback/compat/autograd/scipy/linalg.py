"""The names of `scipy.linalg`, for values that are differentiated."""

from typing import Any as _Any

import scipy.linalg as _scipy

from pullback.runtime.tracing.stand_ins import namespace as _namespace

globals().update(_namespace(_scipy))


def __getattr__(name: str) -> _Any:
    return getattr(_scipy, name)
