"""Rows and columns at computed positions are views, in NumPy and in PyTorch: compiled ones as well."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

C, X = np.arange(6.0).reshape(3, 2), np.array([2.2, 3.1])


def nearest_moved(c: Any, x: Any) -> Any:
    row = c[np.argmin(((c - x) ** 2).sum(1))]
    row += 0.5 * (x - row)
    return c


def nearest_moved_at_once(c: Any, x: Any) -> Any:
    k = np.argmin(((c - x) ** 2).sum(1))
    c[k] += 0.5 * (x - c[k])
    return c


def row_seen_later(c: Any, x: Any) -> Any:
    made = np.zeros((3, 2))
    row = made[np.argmin(x)]
    row[:] = x
    made[0] += 1
    return made * 1.0, row * 2


def column(c: Any, x: Any) -> Any:
    shown = c[:, np.argmin(x)]
    shown *= x.sum()
    c[0, 0] = 7.0
    return c * 1.0, shown.sum()


def number(c: Any, x: Any) -> Any:
    taken = c[1, np.argmin(x)]
    taken += 100.0
    return c * 1.0, taken


def part_of_row(c: Any, x: Any) -> Any:
    row = c[np.argmin(x)]
    part = row[0:1]
    part += x[1]
    return c * 1.0, row * 1.0


def in_turns(c: Any, x: Any) -> Any:
    for turn in range(4):
        row = c[np.argmin(((c - x) ** 2).sum(1))]
        row += 0.5 * (x * (turn + 1) - row)
    return c


def counts(c: Any, x: Any) -> Any:
    found = np.zeros(3)
    for turn in range(3):
        found[np.argmin(x * c[turn])] += x[0]
    return found


def at_an_array(c: Any, x: Any) -> Any:
    copied = c[np.array(np.argmin(x))]
    copied += 1.0
    return c * 1.0, copied


PROGRAMS = [
    nearest_moved, nearest_moved_at_once, row_seen_later, column, number, part_of_row, in_turns, counts,
    at_an_array,
]  # fmt: skip


def total(program: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(c: Any, x: Any) -> Any:
        results = program(c * 1.0, x)
        parts = results if isinstance(results, tuple) else (results,)
        return sum(np.sum(np.sin(one)) for one in parts)

    return function


@pytest.mark.drawn(4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_numpy_programs(program: Callable[[Any, Any], Any]) -> None:
    mine, given = C.copy(), C.copy()
    found, plain = pb.compile(program)(mine, X), program(given, X)
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, plain)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    np.testing.assert_allclose(mine, given, rtol=1e-14)
    f = total(program)
    eager, compiled = (make(pb.grad(f, argnums=(0, 1)))(C, X) for make in (lambda one: one, pb.compile))
    for number, (one, other) in enumerate(zip(eager, compiled, strict=True)):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        direction = np.random.default_rng(number).normal(size=one.shape)
        ends = []
        for sign in (-1, 1):
            moved = [C, X]
            moved[number] = moved[number] + sign * 1e-6 * direction
            ends.append(f(*moved))
        np.testing.assert_allclose(np.sum(one * direction), (ends[1] - ends[0]) / 2e-6, rtol=1e-6, atol=1e-8)


def moved_element(z: Any) -> Any:
    y = z * 1.0
    shown = y[y.argmax()]
    shown += z.sum()
    y[0] = 5.0
    return y, shown * 2.0, y[y.argmin()]


@pytest.mark.parametrize("values", [[1.0, 3.0, 2.0], [4.0, 3.0, 2.0]])
def test_tensors_show_elements(values: list[float]) -> None:
    z = pb.tensor(values, requires_grad=True)
    results = moved_element(z), pb.compile(moved_element)(z)
    gradients = []
    for found in results:
        (gradient,) = pb.autograd.grad(sum((one**2).sum() for one in found), z)
        gradients.append(gradient.tolist())
    for one, other in zip(*results, strict=True):
        assert one.tolist() == other.tolist()
    assert gradients[0] == gradients[1]


def test_elements_for_a_mask_take_one_path() -> None:
    @pb.compile
    def function(x: Any) -> Any:
        x = x.clone()
        x[x > 0] = x[x.argmin()]
        return x

    for values in ([1.0, -3.0, 2.0], [-1.0, -3.0, 2.0], [-1.0, -3.0, -2.0]):
        x = pb.tensor(values)
        lowest = min(values)
        assert function(x).tolist() == [lowest if one > 0 else one for one in values]
    assert function.cache_info().traces == 1


@pytest.mark.drawn(6)
def test_what_is_written_is_the_callers() -> None:
    def function(z: Any) -> Any:
        shown = z[z.argmax()]
        shown += z.sum()
        return shown

    z = pb.tensor([1.0, 3.0, 2.0])
    pb.compile(function)(z)
    assert z.tolist() == [1.0, 9.0, 2.0]
