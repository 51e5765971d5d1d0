"""The elementary functions: errors in ulp against mpmath, special values, and loops that vectorise."""

import math
import platform
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm
from llvmlite import ir
from scipy import special

from pullback.codegen import compile as kernels
from pullback.codegen import store, vector_math
from pullback.codegen.vector_math import staged
from pullback.codegen.vector_math.accuracy import CASES, FORMATS, error, errors, points
from pullback.codegen.vector_math.primitives import (
    FLOAT32,
    FLOAT64,
    Symbol,
    exact_product,
    fused_multiply_add,
    split,
)

mpmath = pytest.importorskip("mpmath")

DTYPES = ("float32", "float64")
TWO_OPERANDS = ("atan2", "floor_divide", "hypot", "maximum", "minimum", "power", "remainder")
NUMPY_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "round_half_even": "rint",
}  # fmt: skip
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
    "trigamma": lambda x: special.polygamma(1, x),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, np.inf, -np.inf, np.nan)


def loop_source(name: str) -> str:
    operands = ["x", "y"] if name in TWO_OPERANDS else ["x"]
    return (
        f"from pullback.codegen.vector_math import {name}\n\n\n"
        f"def apply({', '.join(operands)}, out):\n"
        f"    for i in range(out.shape[0]):\n"
        f"        out[i] = {name}({', '.join(f'{operand}[i]' for operand in operands)})\n"
    )


def array_types(name: str, dtype: str) -> tuple[kernels.ArrayType, ...]:
    return (kernels.ArrayType(np.dtype(dtype), 1, "C"),) * (3 if name in TWO_OPERANDS else 2)


def compiled(name: str, dtype: str) -> Callable[..., np.ndarray]:
    module = store.load_module(store.write_module(loop_source(name), f"vector_math_{name}"))
    kernel = kernels.compile_function(module, "apply", array_types(name, dtype))

    def call(*operands: np.ndarray) -> np.ndarray:
        out = np.empty_like(operands[0])
        kernel(*operands, out)
        return out

    return call


def function(name: str, dtype: str, how: str) -> Callable[..., np.ndarray]:
    return compiled(name, dtype) if how == "compiled" else vector_math.FUNCTIONS[name]


def reference(name: str) -> Callable[..., Any]:
    return OTHERS.get(name) or getattr(np, NUMPY_NAMES.get(name, name))


# --- Values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_errors_are_within_the_limit(name: str, dtype: str) -> None:
    case, number_format = CASES[name], FORMATS[dtype]
    operands = points(case, number_format, 200)
    found = errors(case, operands, compiled(name, dtype)(*operands), number_format)
    worst = found.argmax()
    assert found[worst] <= case.limit, [operand[worst] for operand in operands]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_errors_are_within_the_limit_uncompiled(name: str, dtype: str) -> None:
    case, number_format = CASES[name], FORMATS[dtype]
    operands = points(case, number_format, 25)
    results = vector_math.FUNCTIONS[name](*operands)
    assert results.dtype == dtype
    found = errors(case, operands, results, number_format)
    worst = found.argmax()
    # without fused multiply-add there are a few more roundings
    assert found[worst] <= case.limit + 0.5, [operand[worst] for operand in operands]


@pytest.mark.parametrize("how", ["compiled", "uncompiled"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(vector_math.FUNCTIONS))
def test_special_values(name: str, dtype: str, how: str) -> None:
    """Zeros with their sign, infinities, nan, the ends of domains, as NumPy and SciPy have them."""
    smallest = float(np.finfo(dtype).smallest_subnormal)
    values = [np.array([*SPECIAL, smallest, -3 * smallest], dtype)]
    if name in TWO_OPERANDS:
        values = [grid.ravel() for grid in np.meshgrid(*[np.array(SPECIAL, dtype)] * 2)]
    result = function(name, dtype, how)(*values)
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(name)(*values)).astype(dtype)
    np.testing.assert_allclose(result, expected, rtol=4 * float(np.finfo(dtype).eps), atol=0)
    zero = (expected == 0) & (name not in ("maximum", "minimum"))  # of 0 and -0 either may be larger
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "maximum", "minimum"])
def test_arithmetic_is_numpys(name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    a, b = ((random.standard_normal(2000) * 10.0 ** random.integers(-2, 3, 2000)).astype(dtype) for _ in "ab")
    a[:500] = np.round(random.uniform(-9, 9, 500)) * b[:500]  # quotients that are integers, or nearly
    np.testing.assert_array_equal(compiled(name, dtype)(a, b), reference(name)(a, b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["lgamma", "digamma", "trigamma"])
def test_gamma_functions_of_negative_numbers(name: str, dtype: str) -> None:
    """To a few roundings of the larger of value and 1: near their roots the relative error is larger."""
    x = -np.random.default_rng(0).uniform(0, 30, 300).astype(dtype)
    result = compiled(name, dtype)(x)
    for number, value in zip(x.tolist(), result.tolist()):
        exact = float(CASES[name].reference(mpmath.mpf(number)))
        assert abs(value - exact) <= 8 * float(np.finfo(dtype).eps) * max(1.0, abs(exact)), number


def test_exact_results() -> None:
    integers = np.arange(-1022.0, 1024.0)
    np.testing.assert_array_equal(compiled("exp2", "float64")(integers), np.ldexp(1.0, integers.astype(int)))
    np.testing.assert_array_equal(compiled("log2", "float64")(np.ldexp(1.0, integers.astype(int))), integers)
    bases, exponents = np.meshgrid(np.arange(-9.0, 10.0), np.arange(0.0, 10.0))
    result = compiled("power", "float64")(bases.ravel(), exponents.ravel())
    np.testing.assert_array_equal(result, bases.ravel() ** exponents.ravel())


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 64, 101])
def test_large_angles_in_any_lane(name: str, dtype: str, size: int) -> None:
    """The few large numbers among many small ones take the other path, the rest does not change."""
    x = np.linspace(-9, 9, size, dtype=dtype)
    small = compiled(name, dtype)(x)
    for position in {0, size // 2, size - 1}:
        mixed = x.copy()
        mixed[position] = 1e22
        expected = small.copy()
        expected[position] = getattr(math, name)(float(mixed[position]))
        np.testing.assert_array_equal(compiled(name, dtype)(mixed), expected)


@pytest.mark.parametrize("name", sorted(vector_math.FUNCTIONS))
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
        np.testing.assert_allclose(result, expected, rtol=4 * float(np.finfo(dtype).eps), equal_nan=True)


# --- Machine code -----------------------------------------------------------------------------------------


def optimised(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """The optimised LLVM code of a loop, and the C functions that it calls."""
    from pullback.codegen import numba_backend

    texts = []
    optimise = numba_backend.optimise

    def recorded(module: Any) -> None:
        optimise(module)
        texts.append(str(module))

    monkeypatch.setattr(numba_backend, "optimise", recorded)
    apply = store.load_module(store.write_module(loop_source(name), f"vector_math_{name}")).apply
    _, needed = numba_backend.compile_kernel(
        apply, array_types(name, dtype), kernels.CompileOptions(), "pullback_entry"
    )
    return texts[0], [symbol for symbol in needed if not symbol.startswith("Py")]


def assert_vectorised(name: str, dtype: str, text: str, needed: list[str]) -> None:
    kind = {"float32": "float", "float64": "double"}[dtype]
    assert re.search(rf"store <\d+ x {kind}>", text), "the loop stores one number at a time"
    if name in ("sin", "cos", "tan"):
        assert re.search(rf"call .*<\d+ x {kind}> @pullback.large.{name}", text)
        assert needed == [name]
    else:
        assert needed == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(vector_math.FUNCTIONS))
def test_loops_vectorise(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_vectorised(name, dtype, *optimised(name, dtype, monkeypatch))


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="AVX2 is x86-64's")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "power", "lgamma", "cbrt", "floor"])
def test_loops_vectorise_for_avx2(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    haswell = target.create_target_machine(cpu="haswell", features="", opt=2)
    monkeypatch.setattr(kernels, "target_machine", lambda: haswell)
    assert_vectorised(name, dtype, *optimised(name, dtype, monkeypatch))


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


def test_no_kernel_flags_reach_the_instructions() -> None:
    """Reassociation would turn x - k * log(2) in parts, and rounding by adding, into something else."""
    from numba.core import fastmathpass
    from numba.core.cpu import FastMathOptions

    module = ir.Module()
    staged.define(module, vector_math.power, (ir.DoubleType(),) * 2)
    before = str(module)
    fastmathpass.rewrite_module(module, FastMathOptions({"reassoc", "nsz", "contract", "arcp"}))
    assert str(module) == before


# --- Primitives -------------------------------------------------------------------------------------------


def test_split_is_exact_and_short() -> None:
    from fractions import Fraction

    value = Fraction(1, 3)
    parts = split(value, FLOAT64, 20, 20)
    assert all(int(Fraction(part) * 2**80) % 2**38 == 0 for part in parts[:1])
    assert abs(sum(map(Fraction, parts)) - value) < Fraction(1, 2**94)
    for part in parts[:2]:
        numerator = Fraction(part).numerator
        assert numerator.bit_length() <= 20


def test_exact_product_uncompiled() -> None:
    from fractions import Fraction

    for a, b in np.random.default_rng(0).standard_normal((50, 2)):
        product, low = exact_product(a, b)
        assert Fraction(float(product)) + Fraction(float(low)) == Fraction(float(a)) * Fraction(float(b))
    with np.errstate(all="ignore"):
        assert fused_multiply_add(np.float64(1e308), np.float64(10.0), np.float64(0.0)) == np.inf


@pytest.mark.parametrize(
    ("result", "exact", "expected"),
    [
        (1.0, "1", 0.0),
        (1.0 + 2**-52, "1", 1.0),
        (2.0, "inf", math.inf),
        (math.inf, "1.7976931348623157e308", 1.0),
    ],
)
def test_error_in_ulp(result: float, exact: str, expected: float) -> None:
    found = error(result, mpmath.mpf(exact), FLOAT64)
    assert found == pytest.approx(expected, rel=1e-3) if math.isfinite(expected) else found > 1e15
    assert error(math.nan, mpmath.mpf(exact), FLOAT32) == math.inf
