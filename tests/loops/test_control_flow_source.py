"""The source of a loop, of one whose length data decides, and of a choice, with their reverses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

Function = Callable[..., Any]
X = np.arange(12.0).reshape(4, 3)


def recurrent(x: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = pb.tanh(h + row)
        return h, h * h

    h, squares = pb.scan(step, x[0] * 0, x)
    return (h * squares.sum(0)).sum()


def doubling(x: Any) -> Any:
    return pb.while_loop(lambda v: (v * v).sum() < 9, lambda v: v + pb.sin(v) ** 2, x).sum()


def either(x: Any, w: Any) -> Any:
    y = pb.cond(w > 0, lambda x: pb.log(x) * w, lambda x: x * x, x)
    return (y * y).sum()


@pytest.mark.parametrize(
    "function, arrays",
    [(recurrent, (X,)), (doubling, (X[0] + 1,)), (either, (X[0] + 1, np.array(1.0)))],
    ids=["scan", "while", "cond"],
)
def test_source(function: Function, arrays: tuple[np.ndarray, ...], golden: Callable[[str], None]) -> None:
    golden(pb.compile(pb.value_and_grad(function)).source(*arrays))
