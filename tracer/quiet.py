"""NumPy's floating-point warnings, off."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class Quiet(threading.local):
    """Calls a function with NumPy's floating-point warnings off; a fifth of the price of np.errstate."""

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run: Callable[..., Any] = context.run
