"""What tests of SciPy's names ask of a program of arrays: SciPy's values, and derivatives."""

import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from extent import machine_code, some_of

import pullback as pb

Program = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


def drawn(name: str) -> np.random.Generator:
    """Random numbers that depend on a name alone: the same ones in whatever order tests run."""
    return np.random.default_rng(zlib.crc32(name.encode()))


@contextmanager
def nothing_uncompiled() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*runs uncompiled")
        yield


def assert_values(name: str, program: Program, tolerance: float = 1e-9) -> None:
    """The plain call's values, dtypes and kinds, traced and on the tape, in double or single precision."""
    function, arrays = program
    with nothing_uncompiled(), machine_code(name):
        for dtype in some_of((None, np.float32), name):
            given = [one if dtype is None or one.dtype.kind != "f" else one.astype(dtype) for one in arrays]
            wanted = function(*given)
            for found in (pb.compile(function)(*given), pb.vjp(function, *given)[0]):
                assert type(found) is type(wanted) and np.asarray(found).dtype == np.asarray(wanted).dtype
                size = max(np.abs(wanted).max(), 1.0) if np.size(wanted) else 1.0
                rough = tolerance if dtype is None else 2e-4
                np.testing.assert_allclose(found, wanted, rtol=rough, atol=rough * size)


def assert_derivatives(name: str, program: Program, tolerance: float = 1e-6) -> None:
    """The first and the second derivative along random directions; eager ones are the compiled ones."""
    function, arrays = program
    rng, places = drawn(name), tuple(range(len(arrays)))

    def like(array: np.ndarray) -> np.ndarray:
        found = rng.standard_normal((2, *array.shape))
        return found[0] + 1j * found[1] if array.dtype.kind == "c" else found[0]

    value = np.asarray(function(*arrays))
    weights, directions = like(value), list(map(like, arrays))

    def loss(*given: Any) -> Any:
        found = function(*given) * weights
        other = found.imag if value.dtype.kind == "c" else found
        return (found.real + 0.1 * other**2).sum()

    def inner(slopes: Any) -> Any:
        return sum((slope * one.conj()).real.sum() for slope, one in zip(slopes, directions))

    def along(*given: Any) -> Any:
        return inner(pb.grad(loss, places)(*given))

    def difference(function: Callable[..., Any]) -> Any:
        def at(step: float) -> Any:
            return function(*[one + step * other for one, other in zip(arrays, directions)])

        return (8 * (at(5e-4) - at(-5e-4)) - at(1e-3) + at(-1e-3)) / 6e-3

    with nothing_uncompiled(), machine_code((name, "derivatives"), one_in=8):
        for one in (loss, along):
            wanted = difference(one)
            eager, compiled = pb.grad(one, places)(*arrays), pb.grad(pb.compile(one), places)(*arrays)
            size = max(1.0, *(np.abs(slope).max() for slope in eager))
            np.testing.assert_allclose(inner(eager), wanted, rtol=tolerance, atol=tolerance * size)
            for first, second in zip(eager, compiled):
                np.testing.assert_allclose(second, first, rtol=1e-8, atol=1e-9 * size)
