"""Loops, choices and rules of one's own on complex values: compiled, with the values of plain code."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb

RNG = np.random.default_rng(17)
Z = RNG.uniform(-0.8, 0.8, (5, 3)) + 1j * RNG.uniform(-0.8, 0.8, (5, 3))
X = RNG.uniform(0.3, 1.2, (5, 3))


pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    """No function is left to Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def scanned(z: Any, x: Any) -> Any:
    last, rows = pb.scan(lambda c, r: (c * r[0] + 1j * r[1], np.sin(c)), z[0], (z, x))
    return last, rows


def scanned_back(z: Any, x: Any) -> Any:
    return pb.scan(lambda c, r: (c * r, (c + r).imag), z[0], z, reverse=True)


def with_several_carries(z: Any, x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        state = carry["state"] * np.exp(0.2j * row)
        return {"state": state, "size": carry["size"] + np.abs(state) ** 2}, state[0]

    return pb.scan(step, {"state": z[1], "size": x[1]}, x)


def from_a_real_start(z: Any, x: Any) -> Any:
    return pb.scan(lambda c, r: (c * r, None), x[0] + 0j, z)[0]


def stacks_of_one_part(z: Any, x: Any) -> Any:
    return pb.scan(lambda c, r: (c + r, (r * 1j, c.imag + 0j)), z[0], x)


def counted(z: Any, x: Any) -> Any:
    return pb.fori_loop(1, 6, lambda i, c: c * z + i * x, z)


def counted_by_data(z: Any, x: Any) -> Any:
    steps = pb.as_tensor((x.sum() > 0) * 1 + 3)
    return pb.fori_loop(0, steps, lambda i, c: c * z + 0.5j, z)


def while_it_is_small(z: Any, x: Any) -> Any:
    return pb.while_loop(lambda c: np.abs(c).sum() < 40, lambda c: c * (1.3 + 0.2j) + z, z)


def mapped(z: Any, x: Any) -> Any:
    return pb.map(lambda r: r[0] * r[0].conj() + r[1] * 1j, (z, x))


def chosen(z: Any, x: Any) -> Any:
    return pb.cond(x.sum() > 3, lambda q, r: q * r + 1j, lambda q, r: np.exp(q), z, x)


def switched(z: Any, x: Any) -> Any:
    which = pb.as_tensor((x.sum() > 3) * 2)
    return pb.switch(which, [lambda q: q, lambda q: q * 1j, lambda q: np.cos(q) * q], z)


def loops_in_loops(z: Any, x: Any) -> Any:
    def outer(c: Any, row: Any) -> Any:
        inner = pb.fori_loop(0, 3, lambda i, q: q * row + 0.1j, c)
        return pb.cond(np.abs(inner).sum() > 2, lambda q: q / 2, lambda q: q * 1j, inner), inner

    return pb.scan(outer, z[0], z)


def checkpointed(z: Any, x: Any) -> Any:
    return pb.scan(lambda c, r: (np.sin(c) * r, c), z[0], z, checkpoint=True)


def checkpointed_in_blocks(z: Any, x: Any) -> Any:
    return pb.scan(lambda c, r: (np.sin(c) * r, c), z[0], z, checkpoint_every=2)


def rolled(z: Any, x: Any) -> Any:
    state = z[0]
    for _ in range(40):
        state = state * np.exp(-0.1j * (x[0] + np.abs(state) ** 2))
        state = state + 0.05j * (np.roll(state, 1) - 2 * state + np.roll(state, -1))
    return state


def rolled_in_rows(z: Any, x: Any) -> Any:
    rows = np.zeros((40, 3), complex)
    rows[0] = z[0]
    for t in range(1, 40):
        rows[t] = rows[t - 1] * z[1] + x[0]
    return rows


def rolled_in_elements(z: Any, x: Any) -> Any:
    found = np.zeros(30, dtype=complex)
    found[0], found[1] = z[0, 0], z[1, 1]
    for t in range(2, 30):
        found[t] = found[t - 1] * z[0, 1] + found[t - 2] * 0.3j + x[0, 0]
    return found


def rolled_in_a_list(z: Any, x: Any) -> Any:
    found, state = [], z[0]
    for _ in range(30):
        state = np.tanh(state) + x[1] * 1j
        found.append(state.sum())
    return np.stack(found)


def of_matrices(z: Any, x: Any) -> Any:
    step = z[:3] * 0.3
    return pb.scan(lambda c, r: (step @ c + r, (c.conj() * r).sum()), z[0], z)


def a_derivative_in_each_step(z: Any, x: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        slope = pb.grad(lambda q: (np.abs(q * q + r) ** 2).sum())(c)
        return c - 0.01 * slope, slope[0]

    return pb.scan(step, z[0], z)


def a_holomorphic_derivative_in_each_step(z: Any, x: Any) -> Any:
    def newton(_: Any, q: Any) -> Any:
        slope = pb.grad(lambda w: w**3 - 1, holomorphic=True)(q)
        return q - (q**3 - 1) / slope

    return pb.map(lambda one: pb.fori_loop(0, 4, newton, one), z[:, 0] + 1.2)


def along_directions_in_each_step(z: Any, x: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        return pb.jvp(lambda q: np.sin(q) * r, (c,), (r,))[1], c

    return pb.scan(step, z[0], z)


def vmapped(z: Any, x: Any) -> Any:
    return pb.vmap(lambda q, r: np.sin(q) * r.sum() + (q**2).sum())(z, x)


def vmapped_gradients(z: Any, x: Any) -> Any:
    return pb.vmap(pb.grad(lambda q, r: (np.abs(np.sin(q) * r) ** 2).sum(), argnums=(0, 1)))(z, x)


def vmapped_loops(z: Any, x: Any) -> Any:
    return pb.vmap(lambda q: pb.scan(lambda c, r: (c * r + 1j, c), q[0], q))(z)


def split_steps(z: Any, x: Any) -> Any:
    """A nonlinear Schroedinger equation: a step in space, a step among frequencies."""
    wave, along = z[0], np.exp(-0.05j * np.arange(3.0) ** 2)
    for _ in range(25):
        wave = wave * np.exp(-0.05j * (x[0] + np.abs(wave) ** 2))
        wave = np.fft.ifft(along * np.fft.fft(wave))
    return wave


def transforms_in_a_scan(z: Any, x: Any) -> Any:
    return pb.scan(lambda c, r: (np.fft.ifft(r * np.fft.fft(c)), np.fft.rfft(c.imag)), z[0], x)


def systems_in_a_scan(z: Any, x: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        table = np.outer(c, c.conj()) + np.eye(3).astype(c.dtype)
        return np.linalg.solve(table, c * r), np.linalg.det(table)

    return pb.scan(step, z[0], x)


@pb.custom_vjp
def doubled(z: Any, x: Any) -> Any:
    return z * x, z.real


doubled.defvjp(
    lambda z, x: ((z * x, z.real), (z, x, z * z)),
    lambda saved, given: (
        given[0] * saved[1] + given[1] + 0 * saved[2],
        (given[0] * saved[0].conj()).real,
    ),
)


@pb.custom_jvp
def cubed(z: Any) -> Any:
    return z**3


cubed.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))


def with_a_rule(z: Any, x: Any) -> Any:
    return doubled(z, x)


def with_a_rule_in_a_loop(z: Any, x: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        after, size = doubled(c, r)
        return after + 0.1j, size

    return pb.scan(step, z[0], x)


def with_a_rule_of_tangents(z: Any, x: Any) -> Any:
    return cubed(z) * 1j, cubed(x[0] + 0j)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    function.__name__.replace("_", " "): function
    for function in (
        scanned, scanned_back, with_several_carries, from_a_real_start, stacks_of_one_part, counted,
        counted_by_data, while_it_is_small, mapped, chosen, switched, loops_in_loops, checkpointed,
        checkpointed_in_blocks, rolled, rolled_in_rows, rolled_in_elements, rolled_in_a_list, of_matrices,
        a_derivative_in_each_step, a_holomorphic_derivative_in_each_step, along_directions_in_each_step,
        split_steps, transforms_in_a_scan, systems_in_a_scan,
        vmapped, vmapped_gradients, vmapped_loops, with_a_rule, with_a_rule_in_a_loop,
        with_a_rule_of_tangents,
    )
}  # fmt: skip


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for one in value for leaf in leaves(one)] if isinstance(value, tuple | list) else [value]


def same(found: Any, wanted: Any, **tolerance: float) -> None:
    found, wanted = leaves(found), leaves(wanted)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        if other is None:
            assert one is None
            continue
        assert type(one) is type(other) and one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, **tolerance)


def loss_of(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A real number that depends on both parts of all results."""

    def loss(z: Any, x: Any) -> Any:
        found = [one * (1.5 - 0.7j) for one in leaves(function(z, x)) if one is not None]
        return sum((one.real**2 + 0.3 * one.imag * one.real + one.imag).sum() for one in found)

    return loss


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_plain_code(name: str) -> None:
    function = FUNCTIONS[name]
    wanted = function(Z, X)
    same(pb.compile(function)(Z, X), wanted, rtol=1e-10, atol=1e-12)
    small = pb.compile(function)(Z.astype(np.complex64), X.astype(np.float32))
    same(small, function(Z.astype(np.complex64), X.astype(np.float32)), rtol=2e-3, atol=1e-4)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_plain_code(name: str) -> None:
    slopes = pb.value_and_grad(loss_of(FUNCTIONS[name]), argnums=(0, 1))
    wanted = slopes(Z, X)
    same(pb.compile(slopes)(Z, X), wanted, rtol=1e-8, atol=1e-10)
    pair = pb.value_and_grad(pb.compile(loss_of(FUNCTIONS[name])), argnums=(0, 1))
    same(pair(Z, X), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.part(8)
def test_second_derivatives_are_those_of_plain_code(name: str) -> None:
    def curvature(z: Any, x: Any) -> Any:
        first = pb.grad(loss_of(FUNCTIONS[name]), argnums=(0, 1))(z, x)
        return (first[0] * (0.4 + 1j)).real.sum() + (first[1] ** 2).sum()

    slopes = pb.grad(curvature, argnums=(0, 1))
    same(pb.compile(slopes)(Z, X), slopes(Z, X), rtol=1e-7, atol=1e-9)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_along_directions_are_those_of_plain_code(name: str) -> None:
    def along(z: Any, x: Any) -> Any:
        return pb.jvp(loss_of(FUNCTIONS[name]), (z, x), (z * 1j + x, x * 0.5))

    wanted = along(Z, X)
    same(pb.compile(along)(Z, X), wanted, rtol=1e-8, atol=1e-10)
    slopes = pb.grad(loss_of(FUNCTIONS[name]), argnums=(0, 1))(Z, X)
    expected = (slopes[0].conj() * (Z * 1j + X)).real.sum() + (slopes[1] * X * 0.5).sum()
    np.testing.assert_allclose(wanted[1], expected, rtol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_is_the_function_of_each(name: str) -> None:
    function = FUNCTIONS[name]
    batch = [np.stack([one, one[::-1] * 0.9]) for one in (Z, X)]
    each = [leaves(function(z, x)) for z, x in zip(*batch)]
    for way in (pb.vmap(function), pb.compile(pb.vmap(function))):
        found = leaves(way(*batch))
        for position, one in enumerate(found):
            if one is not None:
                every = [row[position] for row in each]
                np.testing.assert_allclose(one, np.stack(every), rtol=1e-9, atol=1e-11)
