"""The names of `numpy.fft`."""

from typing import Any as _Any

import numpy as _numpy

from pullback.runtime.tracing.stand_ins import namespace as _namespace

globals().update(_namespace(_numpy.fft))


def __getattr__(name: str) -> _Any:
    return getattr(_numpy.fft, name)
