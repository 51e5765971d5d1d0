"""The elementary functions' errors in ulp, against mpmath, are within the bounds of `accuracy.CASES`."""

import math
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
from extent import WHOLE, examples

from pullback.codegen import vector_math
from pullback.codegen.vector_math import measure, samples
from pullback.codegen.vector_math.accuracy import CASES, FORMATS, error, errors, errors_of_float32
from pullback.codegen.vector_math.primitives import FLOAT32, FLOAT64

pytestmark = pytest.mark.part(8)

DTYPES = ("float32", "float64")
each_function = pytest.mark.parametrize("name", CASES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


@pytest.mark.drawn(4)
@each_dtype
@each_function
def test_errors_are_within_the_bound(name: str, dtype: str) -> None:
    found = measure.measure(name, dtype, everywhere=200, each_range=80)
    assert found.error <= CASES[name].bound, found.arguments


@each_dtype
@each_function
def test_errors_are_within_the_bound_uncompiled(name: str, dtype: str) -> None:
    case, number_format = CASES[name], FORMATS[dtype]
    operands = [operand[:150] for operand in samples.operands(case, number_format, 50, 50)]
    results = vector_math.FUNCTIONS[name](*operands)
    assert results.dtype == dtype
    found = errors(case, operands, results, number_format)
    # without fused multiply-add there are a few more roundings
    assert found.max() <= case.bound + 0.5, [operand[found.argmax()] for operand in operands]


def _affordable(name: str, count: int) -> int:
    """mpmath takes milliseconds for a complex value, for a sum of many terms, and for an inverse."""
    is_dear = CASES[name].whole or name in ("igamma", "igammac", "zeta", "ndtri", "erfinv")
    return count if WHOLE else examples(count) // (25 if is_dear else 1)


@pytest.mark.drawn(4)
@pytest.mark.slow
@each_function
def test_errors_of_many_float64(name: str) -> None:
    everywhere, each_range = (_affordable(name, count) for count in (10_000, 5_000))
    found = measure.measure(name, "float64", everywhere=everywhere, each_range=each_range)
    assert found.error <= CASES[name].bound, found.arguments


@pytest.mark.drawn(6)
@pytest.mark.slow
@each_function
@pytest.mark.part(8)
def test_errors_of_a_million_float32(name: str) -> None:
    found = measure.measure_float32(name, every=1021 if WHOLE else 4093)
    assert found.error <= CASES[name].bound, found.arguments


def test_no_bound_is_above_what_the_documentation_says() -> None:
    of_parts = {"expm1": 5, "tanh": 5, "sigmoid": 6}
    assert all(case.bound == of_parts.get(case.whole, 4) for case in CASES.values() if case.whole)
    above = {name for name, case in CASES.items() if case.bound > 2 and not case.whole}
    of_two_numbers = {"igamma", "igammac", "zeta"}
    of_scipy = {"i0", "i0e", "i1", "i1e", "erfinv", "ndtri", "erfcx", "log_ndtr"}
    assert above == {"erfc", "lgamma", "power", "acosh", "atanh", "trigamma"} | of_scipy | of_two_numbers
    assert max(CASES[name].bound for name in above - of_scipy - of_two_numbers) == CASES["lgamma"].bound == 4
    assert max(CASES[name].bound for name in of_scipy) == CASES["log_ndtr"].bound == 6
    assert max(CASES[name].bound for name in of_two_numbers) == CASES["igammac"].bound == 14


def test_the_table_in_the_documentation_is_of_these_functions() -> None:
    path = Path(__file__).parents[2] / "docs" / "vector_math.md"
    rows = re.findall(
        r"^\| (\w+) \| (float\d\d) \|.*\| ([\d.]+) \| ([\d.]+) \| [^|]+ \|$", path.read_text(), re.MULTILINE
    )
    assert {(name, dtype) for name, dtype, _, _ in rows} == {
        (name, dtype) for name in CASES for dtype in DTYPES
    }
    for name, _, bound, found in rows:
        assert float(bound) == CASES[name].bound
        assert float(found) <= CASES[name].bound


# --- How errors are measured ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "exact", "expected"),
    [
        (1.0, "1", 0.0),
        (1.0 + 2**-52, "1", 1.0),
        (2.0, "inf", math.inf),
        (math.inf, "1.7976931348623157e308", 1.0),
        (math.nan, "1", math.inf),
        (math.inf, "nan", 0.0),
    ],
)
def test_error_in_ulp(result: float, exact: str, expected: float) -> None:
    found = error(result, mpmath.mpf(exact), FLOAT64)
    assert found == pytest.approx(expected, rel=1e-3) if math.isfinite(expected) else found > 1e15


def test_errors_of_float32() -> None:
    results = np.array([1.0, 1 + 2.0**-23, 2.0**-149, math.inf, math.nan, math.nan], np.float32)
    exact = np.array([1.0, 1.0, 1.5 * 2.0**-149, 3.5e38, math.nan, 1.0])
    np.testing.assert_array_equal(errors_of_float32(results, exact), [0.0, 1.0, 0.5, 0.0, 0.0, math.inf])


def test_the_whole_domain_is_sampled_by_the_bits() -> None:
    x = samples.whole_domain((-1.0, np.inf), FLOAT32, 20_000, np.random.default_rng(0))
    assert np.isfinite(x).all() and x.min() >= -1.0
    counts, _ = np.histogram(np.log2(x[x > 0]), bins=15, range=(-120, 120))
    assert counts.min() > 0.8 * counts.mean()
    pieces = np.concatenate(list(samples.every(65_537, (0.0, np.inf), FLOAT32)))
    assert (np.diff(pieces.view(np.uint32)) == 65_537).all()


def test_hard_places_are_surrounded() -> None:
    x = samples.near(CASES["sin"], FLOAT64)
    assert {np.pi / 2, np.nextafter(np.pi, 0), np.nextafter(np.pi, 4)} <= set(x)
    assert np.abs(samples.near(CASES["lgamma"], FLOAT64) + 2.4570247382208006).min() == 0
