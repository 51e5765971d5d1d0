"""The generated source of a function that calls Python and draws random numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

import pullback as pb


def relaxed_with_noise(x: Any, rng: Any) -> Any:
    """A call of Python and random numbers in a loop."""
    state = x[:3]
    for row in range(1, len(x)):
        state = scipy.special.gammainc(1.5, np.exp(state) + rng.uniform(0.0, 0.1, 3)) * x[row]
    return state.sum()


def test_its_source_reads_well(golden: Callable[[str], None]) -> None:
    rng = np.random.default_rng(0)
    compiled = pb.compile(lambda x: relaxed_with_noise(x, rng))
    golden(compiled.source(np.random.default_rng(3).uniform(0.1, 0.8, 40)))
