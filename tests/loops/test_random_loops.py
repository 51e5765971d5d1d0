"""Drawn functions with `while` loops that values steer, in each other and beside all else that Python has."""

import linecache
import warnings
from typing import Any

import numpy as np
import pytest
from extent import some_of
from random_loops import draw_loops

import pullback as pb

pytestmark = pytest.mark.usefixtures("partly_compiled")

CALLS = [(0.3, 0.2), (1.7, -0.4), (5.3, 0.9), (-3.1, 2.2), (0.05, -7.7), (12.1, 3.3), (2.9, 2.8)]


def drawn(seed: int) -> Any:
    text, name = draw_loops(seed), f"<loops {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    return namespace["program"]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("seed", some_of(range(200), "random loops", 8))
def test_values_and_gradients_are_those_of_plain_python(seed: int) -> None:
    program = drawn(seed)
    plain = pb.value_and_grad(program)
    value, both = pb.compile(program, max_paths=16), pb.compile(plain, max_paths=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in CALLS:
            x, y = map(np.array, call)
            assert value(x, y) == pytest.approx(program(x, y), rel=1e-9, abs=1e-12)
            np.testing.assert_allclose(both(x, y), plain(x, y), rtol=1e-6, atol=1e-9)
