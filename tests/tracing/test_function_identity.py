"""A traced function sees copies of what it reaches; they are still the keys and elements that they were."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

WEIGHTS = np.array([0.5, 1.0, 2.0])
X = np.array([0.1, 0.2, 0.3])


def helper(x: Any) -> Any:
    return (WEIGHTS * x).sum()


class Layer:
    def __init__(self) -> None:
        self.weights = WEIGHTS

    def of(self, x: Any) -> Any:
        return (self.weights * x).sum()


LAYER = Layer()
TABLE = {helper: 2.0, LAYER: 3.0, "other": helper}
PAIRS = {(helper, 1): 2.0}
MEMBERS = {helper, LAYER}
FROZEN = frozenset([helper])
FUNCTIONS = [helper, np.sin]
CHOSEN = {np.sin: 2.0, math.cos: 3.0}

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "key": lambda x: TABLE[helper] * helper(x),
    "key of an object": lambda x: TABLE[LAYER] * LAYER.of(x),
    "value": lambda x: helper(x) if TABLE["other"] is helper else x.sum(),
    "tuple as key": lambda x: PAIRS[helper, 1] * helper(x),
    "set": lambda x: helper(x) if helper in MEMBERS and LAYER in MEMBERS else x.sum() + 0 * LAYER.of(x),
    "frozen set": lambda x: helper(x) if helper in FROZEN else x.sum(),
    "list": lambda x: helper(x) if FUNCTIONS.index(helper) == 0 and np.sin in FUNCTIONS else x.sum(),
    "walked through": lambda x: sum(w * f(x) for f, w in TABLE.items() if f is helper),
    "functions of NumPy": lambda x: CHOSEN[np.sin] * np.sin(x[0]) + CHOSEN[math.cos] * math.cos(x[1]),
    "compared": lambda x: helper(x) if FUNCTIONS[1] is np.sin and FUNCTIONS[1] != np.cos else x.sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_are_the_keys_that_they_were(name: str) -> None:
    program = PROGRAMS[name]
    value, slope = pb.value_and_grad(program)(X)
    np.testing.assert_allclose(program(X), value, rtol=1e-12)
    np.testing.assert_allclose(pb.compile(program)(X), value, rtol=1e-12)
    found, compiled = pb.compile(pb.value_and_grad(program))(X)
    np.testing.assert_allclose([found, *compiled], [value, *slope], rtol=1e-12)
