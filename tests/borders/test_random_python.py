"""Python programs drawn at random, of real and of complex numbers: compiled they are what they are eager.

Each is compared with plain NumPy, and its eager gradient with finite differences. Programs without pullback's
own loops are run by NumPy alone for that.
"""

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from extent import drawn
from random_python import draw_program

import pullback as pb

Function = Callable[..., Any]
Arrays = list[np.ndarray]
ALL = (0, 1, 2)
PROGRAMS = 100
COMPLEX_PROGRAMS = 60
AMPLIFIED = 1e-6
"""Gradients of programs magnify the rounding of values."""


def loaded(text: str, seed: int) -> Function:
    file = f"<program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    variables: dict[str, Any] = {"np": np, "pb": pb, "__name__": "drawn"}
    exec(compile(text, file, "exec"), variables)
    return variables["program"]


def is_near(one: Any, other: Any, tolerance: float = 1e-8) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    size = max(1.0, np.abs(other).max(initial=0.0))
    return one.shape == other.shape and np.allclose(one, other, rtol=tolerance, atol=tolerance * size)


def slopes(function: Function, arrays: Arrays, along: Arrays) -> list[float]:
    """Central differences with several steps: they differ where there is a kink."""

    def moved(step: float) -> float:
        return float(function(*(array + step * one for array, one in zip(arrays, along))))

    return [(moved(step) - moved(-step)) / (2 * step) for step in (1e-5, 1e-6, 3e-7)]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    real = rng.uniform(-1.2, 1.2, shape)
    return real + 1j * rng.uniform(-1.2, 1.2, shape) if is_complex else real


def check(seed: int, is_complex: bool = False) -> None:
    """Three calls, so that paths, once known, are found again and left."""
    text, shapes = draw_program(seed, "numpy" if seed % 2 else "mixed", 3 + seed % 5, is_complex)
    program = loaded(text, seed)
    eager, compiled = pb.value_and_grad(program, ALL), pb.compile(program)
    plain = (lambda *arrays: eager(*arrays)[0]) if "pb." in text else program
    both = pb.value_and_grad(compiled, ALL)
    for call in range(3):
        rng = np.random.default_rng(3 * seed + call)
        arrays = [numbers(rng, shape, is_complex) for shape in shapes.values()]
        value, gradient = eager(*arrays)
        nearby, gradient_nearby = eager(*(array * (1.0 + 1e-13) for array in arrays))
        if not all(map(is_near, (nearby, *gradient_nearby), (value, *gradient))):
            pytest.skip(f"chaotic:\n{text}")
        assert is_near(value, plain(*map(np.copy, arrays))), text
        along = [numbers(rng, array.shape, is_complex) for array in arrays]
        found = sum(float(np.vdot(one, other).real) for one, other in zip(gradient, along))
        differences = slopes(plain, arrays, along)
        if all(is_near(one, differences[1], 1e-4) for one in differences):
            assert is_near(found, differences[1], 1e-4), text
        again, gradient_again = both(*arrays)
        assert is_near(again, value), text
        assert all(is_near(one, other, AMPLIFIED) for one, other in zip(gradient_again, gradient)), text
        assert is_near(compiled(*arrays), value), text


@pytest.mark.drawn(4)
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("seed", drawn(range(PROGRAMS), one_in=4))
def test_a_program(seed: int) -> None:
    """Run by interpreters, which take less time than compiling."""
    check(seed)


@pytest.mark.drawn(6)
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("seed", drawn(range(COMPLEX_PROGRAMS), one_in=4))
def test_a_program_of_complex_numbers(seed: int) -> None:
    check(seed, is_complex=True)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("seed", drawn(range(PROGRAMS), one_in=12))
def test_a_program_as_machine_code(seed: int) -> None:
    check(seed)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("seed", drawn(range(COMPLEX_PROGRAMS), one_in=16))
def test_a_program_of_complex_numbers_as_machine_code(seed: int) -> None:
    check(seed, is_complex=True)
