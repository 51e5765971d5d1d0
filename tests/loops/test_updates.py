"""Arrays that are written part by part: code that agrees with NumPy and is no longer than the program."""

from typing import Any

import numpy as np
import pytest
from extent import examples, machine_code
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from uncompiled import run_uncompiled

import pullback as pb
from pullback.codegen.nests import stored as storing
from pullback.tracer.graph import Graph, make_input
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.spec import Spec

pytestmark = pytest.mark.usefixtures("partly_compiled")

Array = np.ndarray


def compared(program: Any, x: Array) -> str:
    """The source of value and gradient, compared with finite differences; the value with plain NumPy."""
    weights = np.cos(np.arange(1.0 * x.size)).reshape(x.shape)

    def loss(x: Any, weights: Any) -> Any:
        return np.sum(program(x * 1.0) * weights)

    result = pb.compile(lambda x: program(x * 1.0))(x)
    np.testing.assert_allclose(result, program(x * 1.0), rtol=1e-12)
    both = pb.value_and_grad(pb.compile(loss))
    value, gradient = both(x, weights)
    assert value == pytest.approx(loss(x, weights))
    direction, step = np.random.default_rng(1).standard_normal(x.shape), 1e-6
    ahead, behind = (loss(x + sign * step * direction, weights) for sign in (1, -1))
    assert np.sum(gradient * direction) == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-7)
    code = both.programs(x, weights)[0]
    for found, wanted in zip(run_uncompiled(code, (x, weights)), (value, gradient), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    return code.source


def borders(x: Any) -> Any:
    """Each side is copied from the row beside it, corners twice."""
    x[1:-1, 1:-1] = x[:-2, 1:-1] * x[2:, 1:-1]
    x[:, -1] = x[:, -2]
    x[0, :] = x[1, :]
    x[:, 0] = x[:, 1]
    x[-1, :] = 0.0
    return x


def sweep(x: Any) -> Any:
    """Each element from the one before, which was just written."""
    for i in range(1, 6):
        for j in range(1, 5):
            x[i, j] += x[i - 1, j] * x[i, j - 1] * 0.3
            x[i, j] /= 2.0
    return x


def recurrence(x: Any) -> Any:
    y = x * 1.0
    for k in range(1, 8):
        y[:k] += 0.2 * y[:k][::-1] * x[k]
        y[k] = np.sum(y[:k])
    return y


def gaps(x: Any) -> Any:
    x[::2] = x[1::2] * 2.0
    x[::4] += x[1::4]
    x[3:6] = x[2:5] - x[4:7]
    x[::-1][:3] *= 3.0
    return x * x


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("program", "shape"), [(borders, (6, 7)), (sweep, (6, 5)), (recurrence, (8,)), (gaps, (12,))]
)
def test_programs(program: Any, shape: tuple[int, ...]) -> None:
    compared(program, np.random.default_rng(0).standard_normal(shape))


def test_parts_are_written_where_they_belong() -> None:
    source = pb.compile(lambda x: borders(x * 1.0)).forward_source(np.ones((30, 40)))
    assert "states[i + 1, j + 1] = products[i, j]" in source
    assert "states[0, i] = " in source


def test_a_reversed_view_is_the_memory_of_its_base() -> None:
    expected = gaps(np.arange(12.0)).sum()
    assert pb.compile(lambda x: gaps(x * 1.0))(pb.arange(12.0, dtype=pb.float64)).sum().item() == expected
    assert gaps(pb.arange(12.0, dtype=pb.float64)).sum().item() == expected
    x = pb.arange(3.0)
    x.flip(0).mul_(5.0)
    assert x.tolist() == [0, 1, 2]


@pytest.mark.drawn(6)
def test_many_writes_stay_a_line_each() -> None:
    def program(x: Any) -> Any:
        for k in range(100):
            x[k] = x[k - 1] * 0.5 + x[(7 * k) % 100]
        return x

    source = compared(program, np.random.default_rng(0).standard_normal(100))
    assert len(source) < 60_000


regions = st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(1, 2))


STRETCH_OF_NOTHING: Any = [
    ((7, 3, 1), (7, 1, 2), "+"), ((8, 1, 2), (4, 2, 1), "+"), ((8, 1, 1), (3, 2, 1), "*"),
    ((8, 2, 2), (0, 4, 1), "+"), ((4, 1, 2), (1, 4, 1), "+"), ((3, 1, 2), (0, 1, 2), "="),
    ((0, 3, 2), (8, 1, 1), "+"), ((3, 2, 1), (1, 2, 2), "+"), ((7, 1, 1), (4, 2, 2), "+"),
]  # fmt: skip
"""Behind the interior of a loop all values are where they belong."""


@pytest.mark.drawn(6)
@settings(max_examples=examples(80), phases=[Phase.explicit, Phase.generate])
@example(STRETCH_OF_NOTHING)
@given(st.lists(st.tuples(regions, regions, st.sampled_from("=+*")), min_size=1, max_size=9))
def test_random_writes(steps: list[Any]) -> None:
    def program(x: Any) -> Any:
        for (start, count, gap), (origin, _, other_gap), kind in steps:
            to = slice(start, start + count * gap, gap)
            value = np.sin(x[origin : origin + count * other_gap : other_gap])
            if kind == "=":
                x[to] = value
            elif kind == "+":
                x[to] += value
            else:
                x[to] *= 0.5 * value
        return x

    with machine_code(steps, one_in=8):
        compared(program, np.random.default_rng(0).standard_normal(16))


def test_no_question_is_asked_within_too_many_others() -> None:
    """Python's parser takes a hundred levels of indentation."""
    node = x = make_input(Spec((4,), np.dtype("float64")), "x")
    for _ in range(40):
        part = m.slice_(node, starts=(1,), stops=(4,), steps=(1,))
        node = m.slice_update(x, e.sin(part), starts=(0,), stops=(3,), steps=(1,))
    stored = {x}
    storing._store_deep_choices(Graph("function", (x,), (node,)), stored)
    assert len(stored - {x}) == 40 // (storing.MOST_NESTED + 1)
