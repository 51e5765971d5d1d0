"""Functions that ask whether two of their values are one object: they are traced as for plain values."""

import enum
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TraceError

pytestmark = pytest.mark.usefixtures("partly_compiled")

HELD = np.arange(1.0, 4.0)
ASKING: dict[str, Callable[[Any, Any], Any]] = {
    "two arguments": lambda x, y: x * 2 if x is y else x * 3,
    "not": lambda x, y: x * 2 if y is not x else x * 3,
    "an argument and a global": lambda x, y: x * 2 if x is HELD else x * 3,
    "id": lambda x, y: x * 2 if id(x) == id(y) else x * 3,
    "operator": lambda x, y: x * 2 if operator.is_(x, y) else x * 3,
    "among others": lambda x, y: x * 2 if any(one is y for one in (HELD, x)) else x * 3,
    "a branch": lambda x, y: (x * 2 if x is y else x * 3) if x.sum() > 0 else x * 4,
}


@pytest.mark.parametrize("uncompiled", [False, True])
@pytest.mark.parametrize("asked", ASKING)
@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
def test_whether_arrays_are_one_object(asked: str, uncompiled: bool) -> None:
    question = ASKING[asked]

    def function(x: Any, y: Any) -> Any:
        return question(x, y) + (np.unique(x).sum() if uncompiled else 0.0)

    compiled = pb.compile(function)
    other = HELD.copy()
    for _ in range(2):
        for x, y in ((HELD, HELD), (HELD, other), (other, other), (-other, HELD), (other[::-1], other)):
            np.testing.assert_allclose(compiled(x, y), function(x, y))
    if not uncompiled:
        assert compiled.cache_info().traces <= 7


def test_whether_tensors_are_one_object() -> None:
    @pb.compile
    def asking(x: Any, y: Any) -> Any:
        return (x * y).sum() if x is y else (x * 3 + y).sum()

    x, y = pb.tensor(HELD, requires_grad=True), pb.tensor(HELD, requires_grad=True)
    asking(x, x).backward()
    assert x.grad.tolist() == [2, 4, 6]
    asking(x, y).backward()
    assert x.grad.tolist() == [5, 7, 9] and y.grad.tolist() == [1, 1, 1]


def test_one_array_with_a_gradient_and_without() -> None:
    asking = pb.compile(lambda x: (x * 2 if x is HELD else x * 3).sum())
    assert pb.grad(asking)(HELD.copy()).tolist() == [3, 3, 3]
    with pytest.raises(TraceError, match="x and HELD are one array"):
        pb.grad(asking)(HELD)


class Kinds(enum.Enum):
    SUM = 1


@pytest.mark.parametrize("kind", [np.sum, np.ndarray, Kinds.SUM, math])
def test_a_comparison_with_what_is_no_array_asks_for_no_identity(kind: Any) -> None:
    def total(x: Any) -> Any:
        if kind is np.ndarray or kind is Kinds.SUM or kind is math:
            return (x * HELD).sum()
        return (x * HELD).sum() if kind is np.sum else x.mean()

    assert pb.compile(pb.grad(total))(HELD).tolist() == pb.grad(total)(HELD).tolist() == [1, 2, 3]


def test_a_comparison_with_none_asks_for_no_identity() -> None:
    compiled = pb.compile(lambda x, y: x if y is None else x * y)
    assert compiled(HELD, HELD).tolist() == [1, 4, 9] and compiled(HELD, HELD.copy()).tolist() == [1, 4, 9]
    assert compiled.cache_info().traces == 1
