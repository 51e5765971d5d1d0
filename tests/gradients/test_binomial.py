"""Loops of which backward holds few carries: how many there are, and how often steps are computed again."""

import weakref
from math import comb
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError
from pullback.runtime.functions.loops.binomial import block_sizes


def repeats_needed(length: int, kept: int) -> int:
    return next(number for number in range(length + 1) if comb(kept + number, kept) >= length)


@pytest.mark.parametrize(
    ("length", "kept"), [(10, 3), (35, 3), (36, 3), (56, 5), (7, 1), (4, 4), (1, 2), (20, 19)]
)
@pytest.mark.parametrize("reverse", [False, True])
def test_few_carries_are_held_and_steps_seldom_computed_again(length: int, kept: int, reverse: bool) -> None:
    rows = np.linspace(0.1, 1.0, length)
    weight = pb.tensor(0.7, dtype=pb.float64, requires_grad=True)
    alive: set[int] = set()
    calls = most = 0

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        nonlocal calls, most
        calls += 1
        result = pb.sin(carry * weight) + row
        memory = result._value
        alive.add(id(memory))
        weakref.finalize(memory, alive.discard, id(memory))
        most = max(most, len(alive))
        return result, None

    start = pb.tensor([0.5], dtype=pb.float64, requires_grad=True)
    last, _ = pb.scan(step, start, rows, reverse=reverse, checkpoints=kept)
    last.sum().backward()
    assert calls <= (repeats_needed(length, kept) + 1) * length
    assert most <= kept + 4, "the carries, and what the step under way makes"

    wanted = start.grad.item(), weight.grad.item()
    start.grad = weight.grad = None
    last, _ = pb.scan(step, start, rows, reverse=reverse)
    last.sum().backward()
    assert np.allclose(wanted, (start.grad.item(), weight.grad.item()))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("reverse", [False, True])
def test_compiled_and_stacked(reverse: bool) -> None:
    def loss(w: Any, rows: Any, **options: Any) -> Any:
        step = lambda c, row: (pb.tanh(w * c) + row, {"y": c * row})  # noqa: E731
        last, ys = pb.scan(step, rows[0], rows, reverse=reverse, **options)
        return (last * pb.fori_loop(0, 9, lambda i, v: v * w, w, **options)).sum() + (ys["y"] ** 2).sum()

    w, rows = np.array([0.3, 0.8]), np.random.default_rng(0).normal(size=(23, 2))
    wanted = pb.value_and_grad(loss, (0, 1))(w, rows)
    for function in (loss, pb.compile(loss)):
        value, slopes = pb.value_and_grad(function, (0, 1))(w, rows, checkpoints=4)
        assert np.isclose(value, wanted[0])
        for one, other in zip(slopes, wanted[1]):
            np.testing.assert_allclose(one, other, rtol=1e-10)


def test_blocks_in_blocks_keep_as_many() -> None:
    assert block_sizes(100, 100) == ()
    assert block_sizes(100, 20) == (10,)
    assert block_sizes(1000, 30) == (100, 10)
    assert block_sizes(1000, 1) == (512, 256, 128, 64, 32, 16, 8, 4, 2)


@pytest.mark.parametrize("options", [{"checkpoints": 0}, {"checkpoints": 2, "checkpoint_every": 3}])
def test_a_wrong_number_is_explained(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="checkpoints must be a positive integer, and alone"):
        pb.scan(lambda c, row: (c, None), 0.0, np.ones(3), **options)
