"""What steps of loops write at computed positions: in place, as are the cotangents of it."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from uncompiled import run_uncompiled, uncompiled

import pullback as pb

Function = Callable[..., Any]
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((7, 2))
HERE, THERE = RNG.integers(-7, 7, 9), RNG.integers(0, 7, 9)


def learned(table: Any, states: Any, actions: Any, rewards: Any) -> Any:
    table = table.copy()
    for t in range(len(rewards)):
        target = rewards[t] + 0.9 * table[states[t + 1], 0]
        table[states[t], actions[t]] += 0.3 * (target - table[states[t], actions[t]])
    return table


def followed(x: Any, places: Any) -> Any:
    x = x.copy()
    for t in range(len(places)):
        row = x[places[t]]
        row += 0.1 * (t - row)
    return x


def counted(x: Any, places: Any) -> Any:
    counts = np.zeros(7)
    for t in range(len(places)):
        counts[places[t]] += x[t % 7, 0]
    return counts


def exchanged(x: Any, here: Any, there: Any) -> Any:
    x = x.copy()
    for t in range(len(here)):
        one, other = x[here[t]].copy(), x[there[t]].copy()
        x[here[t]] = other * 1.5
        x[there[t]] = one
    return x


def repeated(x: Any, places: Any) -> Any:
    """Rows of positions, some of which are equal: the last write wins, and each reads what was there."""
    x = x.copy()
    for t in range(len(places)):
        x[places[t]] = x[places[t]] * 2.0 + x[0]
    return x


def by_itself(x: Any) -> Any:
    """Where a step writes is read from the array that it writes."""
    x = x.copy()
    for _ in range(20):
        k = np.argmax(x[:, 0])
        x[k] = 0.5 * x[k] + 0.25 * x[0]
    return x


def read_late(x: Any, places: Any) -> Any:
    x, found = x.copy(), np.zeros(len(places))
    for t in range(len(places)):
        before = x[places[t]] * 1.0
        x[places[t]] = np.sin(before) + 1.0
        found[t] = before.sum() * x.sum()
    return np.outer(found, x[:, 0])


def through_a_row(x: Any, places: Any) -> Any:
    """PyTorch's way: the row is a view."""
    x = x.clone()
    for t in range(len(places)):
        row = x[places[t]]
        row += 0.5 * x[0] - row / 3.0
    return x


CASES: dict[str, tuple[Function, tuple[np.ndarray, ...]]] = {
    "learned": (learned, (ROWS, HERE, THERE % 2, RNG.standard_normal(8))),
    "followed": (followed, (ROWS, HERE)),
    "counted": (counted, (ROWS, HERE)),
    "exchanged": (exchanged, (ROWS, HERE, THERE)),
    "repeated": (repeated, (ROWS, RNG.integers(0, 7, (9, 4)))),
    "by itself": (by_itself, (ROWS,)),
    "read late": (read_late, (ROWS, HERE)),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    function, (x, *others) = CASES[name]
    weights = np.cos(np.arange(function(x, *others).size)).reshape(function(x, *others).shape)

    def loss(x: Any, *others: Any) -> Any:
        return np.sum(function(x, *others) ** 2 * weights)

    def twice(x: Any, *others: Any) -> Any:
        return np.sum(pb.grad(loss)(x, *others) * np.sin(1.0 + x))

    program = pb.compile(function)._known_for((x, *others), {}).programs[0].forward
    (found,) = run_uncompiled(program, (x, *others))
    np.testing.assert_allclose(found, function(x, *others), rtol=1e-12)
    with uncompiled():
        for one in (loss, twice):
            found, wanted = pb.compile(pb.grad(one))(x, *others), pb.grad(one)(x, *others)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


def test_a_batch() -> None:
    function, (x, *others) = CASES["exchanged"]
    batch = np.stack([x, x[::-1]])
    with uncompiled():
        found = pb.compile(pb.vmap(function, (0, None, None)))(batch, *others)
    np.testing.assert_allclose(found, [function(one, *others) for one in batch], rtol=1e-12)


@pytest.mark.parametrize("name", ["learned", "followed", "counted"])
def test_steps_write_one_position(name: str) -> None:
    """Loops over the array are before and after the steps alone, backward as well."""
    function, (x, *others) = CASES[name]
    loss = pb.value_and_grad(lambda x, *others: np.sum(function(x, *others) ** 2))
    for source in (pb.compile(function).source(x, *others), pb.compile(loss).source(x, *others)):
        deepest = [line for line in source.splitlines() if line.startswith(" " * 8)]
        steps = [line for line in deepest if "for" in line.split("#")[0]]
        assert all("range(2)" in line for line in steps), source
        assert "equal_values" not in source


def test_pytorchs_way() -> None:
    x, places = pb.tensor(ROWS, requires_grad=True), pb.tensor(HERE)
    plain = through_a_row(x, places)
    (wanted,) = pb.autograd.grad((plain**2).sum(), x)
    with uncompiled():
        found = pb.compile(through_a_row)(x, places)
        (gradient,) = pb.autograd.grad((found**2).sum(), x)
    np.testing.assert_allclose(found.detach().numpy(), plain.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient.numpy(), wanted.numpy(), rtol=1e-12)


def test_a_view_that_is_written_does_not_name_its_base() -> None:
    def moved(centers: Any, k: Any) -> Any:
        centers = centers * 2.0
        row = centers[k]
        row += 1.0
        return centers

    names = [node.name for node in pb.compile(moved).graph(ROWS, np.array(3)).nodes]
    assert names.count("row") <= 1 and names[-1] == "centers"

    def added(x: Any, k: Any) -> Any:
        grid = np.zeros((7, 2))
        for t in range(7):
            grid[k[t]] += x[t]
        return grid

    assert "-> grid: float64[" in pb.compile(added).source(ROWS, HERE[:7])


def test_positions_are_checked_unless_they_were_searched_for() -> None:
    def at(x: Any, k: Any) -> Any:
        return x[k] + x[np.argmax(x[:, 0])]

    source = pb.compile(at).forward_source(ROWS, np.array(3))
    assert source.count("raise IndexError") == 1
    with pytest.raises(IndexError):
        pb.compile(at)(ROWS, np.array(7))


def test_positions_beside_others_may_be_negative() -> None:
    """What is asked of positions along a dimension does not hold for what they are joined with."""
    compiled = pb.compile(lambda y: pb.cat([pb.arange(3), y]) < 0)
    with uncompiled():
        assert compiled(pb.tensor([-1, 2])).tolist() == [False, False, False, True, False]


def test_names_and_numbers_of_both_functions() -> None:
    """What forward saves has one name; headers have lines that can be read; sums of numbers are numbers."""
    (x, *others) = CASES["learned"][1]
    compiled = pb.compile(lambda x, *others: np.sum(np.tanh(learned(x, *others)) * np.sin(x[:, :1])))
    source = compiled.source(x, *others)
    assert max(map(len, source.splitlines())) <= 120
    forward, backward = source.split("# Generated")[1:]
    saved = set(re.findall(r"saved_\w+(?=:)", forward))
    assert saved == set(re.findall(r"saved_\w+(?=:)", backward))


def test_extents_in_bounds_are_numbers() -> None:
    def filtered(x: Any) -> Any:
        for _ in range(20):
            x = np.fft.irfft(np.fft.rfft(x) * 0.5, n=16)
        return (x**2).sum()

    assert re.search(r"\d \+ 1\b", pb.compile(filtered).backward_source(np.ones(16))) is None


def test_rows_that_choices_write_and_later_turns_read() -> None:
    """The centres of two clusters: their history is kept for the gradient, so no step writes in place."""

    def spread(x: Any) -> Any:
        centres = x[[0, -1]].copy()
        for _ in range(2):
            distances = ((x[:, None] - centres) ** 2).sum(-1)
            nearest = distances.argmin(1)
            for one in range(2):
                if (nearest == one).any():
                    centres[one] = x[nearest == one].mean(0)
        return distances.min(1).sum() + centres.prod()

    x = np.array([[0.0, 0.1], [0.2, 0.0], [3.0, 3.1], [2.9, 3.3]])
    value, slope = pb.compile(pb.value_and_grad(spread))(x)
    expected = pb.value_and_grad(spread)(x)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-12)
