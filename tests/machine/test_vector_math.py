"""The elementary functions: special values, exact results, rare arguments, how they are staged."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from scipy import special

from pullback.codegen import vector_math
from pullback.codegen.vector_math import staged
from pullback.codegen.vector_math.accuracy import CASES, FORMATS, errors
from pullback.codegen.vector_math.complex_numbers import PARTS
from pullback.codegen.vector_math.measure import results
from pullback.codegen.vector_math.primitives import (
    FLOAT64,
    Symbol,
    exact_product,
    fused_multiply_add,
    polynomial,
    split,
)

pytestmark = pytest.mark.part(8)

DTYPES = ("float32", "float64")
TWO_OPERANDS = (
    "atan2", "floor_divide", "hypot", "igamma", "igammac", "maximum", "minimum", "nextafter", "power",
    "remainder", "zeta",
)  # fmt: skip
OF_NUMBERS = sorted(name for name in vector_math.FUNCTIONS if not name.endswith(PARTS))
"""Those of complex numbers are in tests/machine/test_vector_math_complex.py."""
NUMPY_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "round_half_even": "rint",
}  # fmt: skip
def _zeta(x: Any, q: Any) -> Any:
    """SciPy's, with its limit for large x, and nan for nan."""
    limit = np.select([q > 1.0, q == 1.0], [0.0, 1.0], np.inf)
    found = np.where(np.isposinf(x) & ~np.isneginf(q), limit, special.zeta(x, q))
    return np.where(np.isnan(x) | np.isnan(q), np.nan, found)


ULPS = {"igamma": 300, "igammac": 300, "zeta": 12}
"""How far results may be from SciPy's, which are that far off; 4 of others."""
OTHERS: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, 0),
    "erf": special.erf,
    "erfc": special.erfc,
    # SciPy has inf for subnormal numbers, and -inf at -inf, where C has inf
    "lgamma": lambda x: np.where(
        np.abs(x) < 1e-30, -np.log(np.abs(x)), np.where(x == -np.inf, np.inf, special.gammaln(x))
    ),
    "digamma": special.digamma,
    **{one: getattr(special, one) for one in ("i0e", "ndtri", "erfcx", "log_ndtr")},
    # SciPy's are infinite from where exp is
    "i0": lambda x: special.i0e(x) * np.exp(abs(x) / 2) * np.exp(abs(x) / 2),
    # in SciPy, -0 loses its sign
    "i1": lambda x: np.where(x == 0, x, special.i1e(x) * np.exp(abs(x) / 2) * np.exp(abs(x) / 2)),
    "i1e": lambda x: np.where(x == 0, x, special.i1e(x)),
    "erfinv": lambda x: np.where(x == 0, x, special.erfinv(x)),
    "trigamma": lambda x: special.polygamma(1, x),
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "zeta": _zeta,
    "mantissa": lambda x: np.frexp(x)[0],
    "exponent": lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(np.asarray(x).dtype),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, np.inf, -np.inf, np.nan)
OVERFLOW = (88.72283, 88.7229, 128.0, 709.78, 709.79, 710.47, 710.48, 1024.0)
UNDERFLOW = (-87.34, -103.97, -104.0, -149.0, -151.0, -708.4, -745.13, -745.2, -1074.0, -1077.0)


def function(name: str, how: str) -> Callable[..., np.ndarray]:
    return vector_math.FUNCTIONS[name] if how == "uncompiled" else lambda *operands: results(name, operands)


def reference(name: str) -> Callable[..., Any]:
    return OTHERS.get(name) or getattr(np, NUMPY_NAMES.get(name, name))


def ends_of_domains(dtype: str) -> np.ndarray:
    """Zeros, infinities, nan, subnormal and largest numbers, next to 1, where results overflow and vanish."""
    limits, one = np.finfo(dtype), np.ones((), dtype)
    numbers = [limits.smallest_subnormal, 3 * limits.smallest_subnormal, limits.tiny, limits.max]
    numbers += [np.nextafter(one, 0 * one), np.nextafter(one, 2 * one)]
    return np.array([*SPECIAL, *numbers, *(-number for number in numbers), *OVERFLOW, *UNDERFLOW], dtype)


# --- Values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["compiled", "uncompiled"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_special_values(name: str, dtype: str, how: str) -> None:
    """Zeros and infinities with their signs, nan, as NumPy and SciPy have them; the rest by mpmath."""
    values = [ends_of_domains(dtype)]
    if name in TWO_OPERANDS:
        values = [grid.ravel() for grid in np.meshgrid(*[np.array(SPECIAL, dtype)] * 2)]
    result = function(name, how)(*values)
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(name)(*values)).astype(dtype)
    special_kinds = (np.isnan, np.isposinf, np.isneginf)
    np.testing.assert_array_equal(
        [kind(result) for kind in special_kinds], [kind(expected) for kind in special_kinds]
    )
    if name not in ("maximum", "minimum"):  # of 0 and -0 either may be larger
        zero = (expected == 0) & (result == 0)
        np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))
    finite = np.isfinite(expected)
    if name in CASES and name not in TWO_OPERANDS:
        found = errors(CASES[name], [values[0][finite]], result[finite], FORMATS[dtype])
        assert found.max() <= CASES[name].bound, values[0][finite][found.argmax()]
    else:
        np.testing.assert_allclose(
            result[finite], expected[finite], rtol=ULPS.get(name, 4) * float(np.finfo(dtype).eps), atol=0
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "maximum", "minimum"])
def test_arithmetic_is_numpys(name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    a, b = ((random.standard_normal(2000) * 10.0 ** random.integers(-2, 3, 2000)).astype(dtype) for _ in "ab")
    a[:500] = np.round(random.uniform(-9, 9, 500)) * b[:500]  # quotients that are integers, or nearly
    np.testing.assert_array_equal(results(name, (a, b)), reference(name)(a, b))


def test_exact_results() -> None:
    integers = np.arange(-1022.0, 1024.0)
    powers = np.ldexp(1.0, integers.astype(int))
    np.testing.assert_array_equal(results("exp2", [integers]), powers)
    np.testing.assert_array_equal(results("log2", [powers]), integers)
    np.testing.assert_array_equal(results("rsqrt", [powers[::2].copy()]), 2.0 ** (-integers[::2] / 2))
    bases, exponents = (grid.ravel() for grid in np.meshgrid(np.arange(-9.0, 10.0), np.arange(0.0, 10.0)))
    np.testing.assert_array_equal(results("power", (bases, exponents)), bases**exponents)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "rare"), [("sin", 1e22), ("cos", -3e15), ("tan", 1e22), ("lgamma", -2.5), ("digamma", -0.75)]
)
@pytest.mark.parametrize("size", [1, 7, 64, 101])
def test_rare_arguments_in_any_lane(name: str, rare: float, dtype: str, size: int) -> None:
    """The few of them among many others take the other path; what is at their side does not change."""
    x = np.linspace(0.5, 9, size, dtype=dtype)
    usual = results(name, [x])
    for position in {0, size // 2, size - 1}:
        mixed = x.copy()
        mixed[position] = rare
        result = results(name, [mixed])
        assert (
            errors(
                CASES[name], [mixed[position : position + 1]], result[position : position + 1], FORMATS[dtype]
            )
            < 1
        )
        result[position] = usual[position]
        np.testing.assert_array_equal(result, usual)


def test_rare_arguments_uncompiled() -> None:
    x = np.array([[0.5, 1e22], [-3e15, 2.0]])
    np.testing.assert_allclose(vector_math.sin(x), np.sin(x), rtol=1e-15)
    assert isinstance(vector_math.sin(1e22), float)
    assert vector_math.lgamma(np.float32(-2.5)).dtype == np.float32


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_scalars_uncompiled(name: str) -> None:
    """Python floats, and NumPy scalars of either dtype, which the result keeps."""
    value = 0.75 if name != "acosh" else 1.25
    operands = [value, 2.0] if name in TWO_OPERANDS else [value]
    apply = vector_math.FUNCTIONS[name]
    assert isinstance(apply(*operands), float)
    for dtype in (np.float32, np.float64):
        result = apply(*map(dtype, operands))
        assert type(result) is dtype
        expected = reference(name)(*operands)
        rtol = ULPS.get(name, 4) * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(result, expected, rtol=rtol, equal_nan=True)


# --- Staging ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["floor_divide", "maximum", "minimum", "power", "remainder"])
def test_integers_stay_integers_uncompiled(name: str) -> None:
    large = np.int64(2**60 + 1)
    found = vector_math.FUNCTIONS[name](large, 7)
    assert found == getattr(np, name)(large, 7)
    assert found.dtype == np.int64


def test_a_branch_on_a_staged_number_is_refused() -> None:
    def relu(x: Any) -> Any:
        return x if x > 0.0 else 0.0

    with pytest.raises(TypeError, match="use select"):
        staged.define(ir.Module(), relu, (ir.DoubleType(),))


def test_staged_functions_are_defined_once_in_a_module() -> None:
    module = ir.Module()
    first = staged.define(module, vector_math.exp, (ir.FloatType(),))
    assert staged.define(module, vector_math.exp, (ir.FloatType(),)) is first
    assert staged.define(module, vector_math.exp, (ir.DoubleType(),)) is not first
    assert issubclass(staged.Staged, Symbol)


@pytest.mark.parametrize("name", ["power", "sin", "lgamma"])
def test_no_kernel_flags_reach_the_instructions(name: str) -> None:
    """Reassociation would turn x - k * log(2) in parts, and rounding by adding, into something else."""
    from numba.core import fastmathpass
    from numba.core.cpu import FastMathOptions

    module = ir.Module()
    operands = 2 if name in TWO_OPERANDS else 1
    staged.define(module, vector_math.FUNCTIONS[name], (ir.DoubleType(),) * operands)
    before = str(module)
    fastmathpass.rewrite_module(module, FastMathOptions({"reassoc", "nsz", "contract", "arcp"}))
    assert str(module) == before


# --- Primitives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(1, 14))
def test_polynomial(count: int) -> None:
    coefficients = [float(k * k - 7) for k in range(count)]
    assert polynomial(2.0, coefficients) == sum(c * 2.0**k for k, c in enumerate(coefficients))


def test_split_is_exact_and_short() -> None:
    value = Fraction(1, 3)
    parts = split(value, FLOAT64, 20, 20)
    assert all(int(Fraction(part) * 2**80) % 2**38 == 0 for part in parts[:1])
    assert abs(sum(map(Fraction, parts)) - value) < Fraction(1, 2**94)
    for part in parts[:2]:
        numerator = Fraction(part).numerator
        assert numerator.bit_length() <= 20


def test_exact_product_uncompiled() -> None:
    for a, b in np.random.default_rng(0).standard_normal((50, 2)):
        product, low = exact_product(a, b)
        assert Fraction(float(product)) + Fraction(float(low)) == Fraction(float(a)) * Fraction(float(b))
    with np.errstate(all="ignore"):
        assert fused_multiply_add(np.float64(1e308), np.float64(10.0), np.float64(0.0)) == np.inf
