"""Functions of complex numbers: special values and branch cuts as NumPy's; no overflow on the way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.codegen import vector_math
from pullback.codegen.vector_math.accuracy import CASES, FORMATS, errors
from pullback.codegen.vector_math.complex_numbers import PARTS
from pullback.codegen.vector_math.measure import results
from pullback.tracer.ops.complex_parts import PARTS_OF
from pullback.tracer.ops.elementwise import sigmoid

pytestmark = pytest.mark.part(8)

DTYPES = ("float32", "float64")
NUMPYS: dict[str, Callable[..., Any]] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sigmoid": sigmoid.evaluate,
}  # fmt: skip
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-30, -1e-30, 20.0, -20.0, np.inf, -np.inf, np.nan)
OPERANDS = {name: len(real.operands) for name, (real, _) in PARTS_OF.items()}
each_function = pytest.mark.parametrize("name", PARTS_OF)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def function(name: str, part: str, how: str) -> Callable[..., np.ndarray]:
    name = f"{name}_{part}"
    return vector_math.FUNCTIONS[name] if how == "uncompiled" else lambda *operands: results(name, operands)


def of_numpy(name: str, *parts: np.ndarray) -> np.ndarray:
    operands = []
    for re, im in zip(parts[::2], parts[1::2]):
        z = np.empty(re.shape, np.result_type(re, np.complex64))
        z.real, z.imag = re, im
        operands.append(z)
    with np.errstate(all="ignore"):
        return np.asarray((NUMPYS.get(name) or getattr(np, name))(*operands))


def grid(name: str, dtype: str, numbers: tuple[float, ...]) -> list[np.ndarray]:
    if OPERANDS[name] == 4:
        numbers = numbers[::2]
    axes = np.meshgrid(*[np.array(numbers, dtype)] * OPERANDS[name])
    return [axis.ravel() for axis in axes]


def has_a_value(name: str, operands: list[np.ndarray]) -> np.ndarray:
    """Of powers with operands that are not finite each library says something else."""
    return np.isfinite(operands).all(0) | (name != "power")


@each_dtype
@each_function
@pytest.mark.parametrize("how", ["compiled", "uncompiled"])
def test_special_values(name: str, dtype: str, how: str) -> None:
    operands = grid(name, dtype, SPECIAL)
    wanted = of_numpy(name, *operands)
    size = np.abs(np.where(np.isfinite(wanted), wanted, 1.0))
    eps = float(np.finfo(dtype).eps)
    for part in PARTS:
        found, expected = function(name, part, how)(*operands), getattr(wanted, part)
        with np.errstate(invalid="ignore"):
            is_close = np.abs(found - expected) <= (200 if name == "power" else 40) * eps * size
        same = (np.isnan(found) & np.isnan(expected)) | (found == expected) | is_close
        if name == "log1p":  # NumPy's forgets what is small beside 1
            same |= np.abs(operands[0]) < 1e-7
        wrong = ~same & has_a_value(name, operands)
        assert not wrong.any(), [one[wrong][:5] for one in (*operands, found, expected)]


@each_dtype
@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "atan", "asinh", "acosh", "atanh", "log1p"])
def test_zeros_say_on_which_side_of_a_cut_a_number_is(name: str, dtype: str) -> None:
    across = np.array([-3.0, -1.5, 1.5, 3.0], dtype)
    for zero in (np.zeros(4, dtype), -np.zeros(4, dtype)):
        for operands in ([across, zero], [zero, across]):
            wanted = of_numpy(name, *operands)
            for part in PARTS:
                found, expected = function(name, part, "compiled")(*operands), getattr(wanted, part)
                np.testing.assert_allclose(found, expected, rtol=20 * float(np.finfo(dtype).eps), atol=0)
                np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@each_dtype
@pytest.mark.parametrize("name", ["divide", "reciprocal", "sqrt", "log", "asin", "atanh", "asinh", "acosh"])
def test_neither_large_nor_small_numbers_are_lost(name: str, dtype: str) -> None:
    limits = np.finfo(dtype)
    largest, least = float(limits.max), float(limits.smallest_subnormal)
    operands = grid(name, dtype, (least * 1e3, 0.7 * largest, -1.0, -(largest**0.7), 0.99 * largest))
    for part in PARTS:
        found, case = function(name, part, "compiled")(*operands), CASES[f"{name}_{part}"]
        assert errors(case, operands, found, FORMATS[dtype]).max() <= case.bound


@pytest.mark.parametrize("name", ["exp", "sinh", "cosh", "sin", "cos"])
def test_products_of_what_overflows_with_what_is_small_are_finite(name: str) -> None:
    along, across = np.array([710.0, 730.0, 1400.0]), np.array([1e-3, 1e-12, 1e-300])
    operands = [across, along] if name in ("sin", "cos") else [along, across]
    found = function(name, "real" if name == "sin" else "imag", "compiled")(*operands)
    if name == "exp":
        wanted = np.exp(np.array([10.0, 30.0])) * np.sin(across[:2]) * np.exp(700.0)
        np.testing.assert_allclose(found[:2], wanted, rtol=1e-13)
    assert np.isfinite(found).all() and (found != 0).all()
