"""Results of what Python evaluates, computed where the steps of a loop keep them."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback as pb


def last_and_all(x: Any, y: Any) -> Any:
    """What Python evaluates is carried and stacked."""

    def step(carry: Any, row: Any) -> Any:
        found = scipy.special.j0(carry + row)
        return found, found

    last, rows = pb.scan(step, y, x)
    return last.sum() + (rows * rows).sum()


def carried_in_another_shape(x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        found = scipy.special.j0(carry.reshape(2, 2) + row.reshape(2, 2))
        return found.reshape(4), found.reshape(4)[0]

    last, firsts = pb.scan(step, y, x)
    return (last * last).sum() + firsts.sum()


def of_the_last_call(x: Any, y: Any) -> Any:
    """Reads what it replaces."""

    def step(carry: Any, row: Any) -> Any:
        found = scipy.special.j0(carry)
        return found, (found * carry * row).sum()

    last, totals = pb.scan(step, y, x)
    return last.sum() + totals.sum()


def of_numbers(x: Any, y: Any) -> Any:
    return pb.scan(lambda carry, row: (scipy.special.j0(carry + row), carry), y[0], x[:, 0])[0]


@pytest.mark.parametrize("function", [last_and_all, carried_in_another_shape, of_the_last_call, of_numbers])
def test_results_of_python_lie_in_rows_of_what_steps_keep(function: Any) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(6, 4)), rng.normal(size=4)
    derive = pb.value_and_grad(function, argnums=(0, 1))
    compiled = pb.compile(derive)
    value, gradients = compiled(x, y)
    expected, expected_gradients = derive(x, y)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for one, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.drawn(4)
def test_nothing_is_copied_between_transforms_and_what_steps_keep() -> None:
    def propagated(phase: Any, re: Any) -> Any:
        wave = re + 0j
        for _ in range(12):
            wave = np.fft.ifft2(np.fft.fft2(wave * np.exp(1j * phase)))
        return np.sum(np.abs(wave * wave + wave) ** 2)

    phase, re = np.random.default_rng(3).normal(size=(2, 8, 6))
    compiled = pb.compile(pb.value_and_grad(propagated))
    np.testing.assert_allclose(compiled(phase, re)[1], pb.grad(propagated)(phase, re), rtol=1e-11, atol=1e-12)
    source = compiled.source()
    assert "[i])" in source and " if " not in source
