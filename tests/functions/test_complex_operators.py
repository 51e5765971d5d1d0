"""Operators on complex numbers: values as NumPy's, rules against differences in complex directions, twice."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from operator_cases import NOT_IN_THE_TABLE, OF_PARTS, ROWS
from operator_cases.rows import Case, Row

from pullback.runtime.tape.apply import apply, wrap
from pullback.runtime.transforms.transforms import jvp, vjp
from pullback.tracer.errors import DTypeError
from pullback.tracer.operator import HOLOMORPHIC, OPERATORS, OWN_RULES
from pullback.tracer.ops.reduction import sum_to_shape
from pullback.tracer.spec import complex_dtype, spec_of

pytestmark = pytest.mark.part(8)

STEP = 1e-4
WEIGHTS = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
OF_COMPLEX = [row for row in ROWS.values() if row.operator.of_complex]
NO_COMPLEX_ROW = {"convert", "full", "iota"}
"""Their operands, or results, have the dtype that they are told."""
PARTS = {
    "real": (np.real, 1), "imag": (np.imag, 1), "conjugate": (np.conjugate, 1), "angle": (np.angle, 1),
    "sgn": (lambda x: x / np.abs(x), 1), "complex_of": (lambda re, im: re + 1j * im, 2),
    "pairs_of": (lambda x: np.stack([x.real, x.imag], -1), 1),
    "of_pairs": (lambda x: x[..., 0] + 1j * x[..., 1], 1),
}  # fmt: skip

rows = pytest.mark.parametrize(
    "row", [row for row in OF_COMPLEX if row.name not in NO_COMPLEX_ROW], ids=lambda row: row.name
)
parts = pytest.mark.parametrize("name", PARTS)


def drawn(row: Row, case: Case, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """Numbers of the right half plane, or all of it, wherever the operator has real ones."""
    real = row.draw(case, dtype, seed)
    imaginary = row.draw(case, dtype, seed + 1)
    return [
        np.asarray(one + 0.5j * other, complex_dtype(one.dtype)) if one.dtype.kind == "f" else one
        for one, other in zip(real, imaginary)
    ]


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """The product of two arrays as real vectors."""
    return float(np.sum((np.conj(a) * b).real))


def difference(function: Callable[[Any], Any], x: np.ndarray, direction: np.ndarray) -> np.ndarray:
    total: Any = sum(weight / STEP * function(x + step * STEP * direction) for step, weight in WEIGHTS)
    return np.asarray(total)


def of_position(
    function: Callable[..., Any], arrays: list[np.ndarray], position: int
) -> Callable[[Any], Any]:
    return lambda x: function(*arrays[:position], x, *arrays[position + 1 :])


def check_rules(function: Callable[..., Any], arrays: list[np.ndarray], positions: list[int]) -> None:
    """<g, J v> of differences is <J' g, v> of the rule; and so of the derivative along a direction."""
    rng = np.random.default_rng(1)

    def value(*operands: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(function(*map(wrap, operands))._value)

    result = value(*arrays)
    g = np.asarray(rng.standard_normal(result.shape), result.dtype)
    if result.dtype.kind == "c":
        g = g + 1j * rng.standard_normal(result.shape)
    for position in positions:
        x = arrays[position]
        direction = rng.standard_normal(x.shape)
        if x.dtype.kind == "c":
            direction = direction + 1j * rng.standard_normal(x.shape)
        alone = of_position(function, arrays, position)
        along = difference(of_position(value, arrays, position), x, direction)
        cotangent = pulled(alone, g, x)
        assert spec_of(np.asarray(cotangent)) == spec_of(x)
        _, tangent = jvp(alone, (x,), (direction,))
        scale = max(1.0, float(np.abs(along).max(initial=0.0)))
        np.testing.assert_allclose(tangent, along, rtol=1e-6, atol=1e-6 * scale)
        wanted_inner = pytest.approx(inner(g, along), rel=1e-6, abs=1e-6 * scale)
        assert inner(np.asarray(cotangent), direction) == wanted_inner
        gradient = partial(pulled, alone, g)
        _, second = jvp(gradient, (x,), (direction,))
        wanted = difference(gradient, x, direction)
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        np.testing.assert_allclose(second, wanted, rtol=1e-5, atol=1e-5 * scale)


def pulled(function: Callable[[Any], Any], g: np.ndarray, x: Any) -> Any:
    return vjp(function, x)[1](g)[0]


def applied(name: str, attributes: Any, *operands: Any) -> Any:
    return apply(OPERATORS[name], *operands, **attributes)


def some_cases(row: Row) -> list[Case]:
    """Those with elements, at most four: second derivatives by differences take long."""
    with_elements = [case for case in row.cases if all(0 not in shape for shape in case.shapes)]
    return with_elements[:: max(1, len(with_elements) // 4)]


@rows
def test_value_shape_and_dtype(row: Row) -> None:
    for dtype in ("float64", "float32"):
        for case in row.cases:
            arrays = drawn(row, case, dtype)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = np.asarray(row.operator(*arrays, **case.attributes))
                assert spec_of(result) == row.operator.infer(*map(spec_of, arrays), **case.attributes)
                wanted = np.asarray(_expected(row)(*arrays, **case.attributes))
            rtol, atol = (2e-4, 1e-4) if dtype == "float32" else (1e-10, 1e-12)
            np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol)


OTHERWISE: dict[str, Callable[..., Any]] = {
    "absolute": np.abs, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "logaddexp": lambda a, b: np.log(np.exp(a) + np.exp(b)),
    "var": lambda x, dims, keepdim, correction: np.var(x, axis=dims, keepdims=keepdim, ddof=correction),
    "std": lambda x, dims, keepdim, correction: np.std(x, axis=dims, keepdims=keepdim, ddof=correction),
    "logsumexp": lambda x, dims, keepdim: np.log(np.sum(np.exp(x), axis=dims, keepdims=keepdim)),
}  # fmt: skip


def _expected(row: Row) -> Callable[..., Any]:
    """Where what real numbers have for comparison is not of complex ones."""
    return OTHERWISE.get(row.name, row.expected)


@rows
def test_rules_against_differences(row: Row) -> None:
    for case in some_cases(row):
        arrays = drawn(row, case, "float64")
        if row.no_rule or not np.isfinite(np.asarray(row.operator(*arrays, **case.attributes))).all():
            continue
        positions = [
            position for position, array in enumerate(arrays)
            if array.dtype.kind == "c" and row.operator.rule_for(position) is not None
        ]  # fmt: skip
        check_rules(partial(applied, row.name, case.attributes), arrays, positions)


@parts
def test_parts(name: str) -> None:
    expected, count = PARTS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 2)) for _ in range(count)]
    if name not in ("complex_of", "of_pairs"):
        arrays = [arrays[0] + 1j * rng.standard_normal((3, 2))]
    found = OPERATORS[name](*arrays)
    np.testing.assert_allclose(found, expected(*arrays))
    assert spec_of(np.asarray(found)) == OPERATORS[name].infer(*map(spec_of, arrays))
    check_rules(partial(applied, name, {}), arrays, [*range(count)])


def test_every_operator_on_parts_is_here() -> None:
    assert {name for name, reason in NOT_IN_THE_TABLE.items() if reason == OF_PARTS} == PARTS.keys()
    assert {one.of_complex for one in OPERATORS.values()} == {"", HOLOMORPHIC, OWN_RULES}


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS.values() if not row.operator.of_complex and row.name[-5:] not in ("_real", "_imag")],
    ids=lambda row: row.name,
)
def test_operators_of_real_numbers_refuse_others(row: Row) -> None:
    """With an error of pullback's: no number is silently ordered, rounded or cut."""
    for case in row.cases[:1]:
        arrays = [
            np.asarray(one + 1j) if one.dtype.kind == "f" else one for one in row.draw(case, row.dtypes[0])
        ]
        if any(one.dtype.kind == "c" for one in arrays):
            with pytest.raises(DTypeError, match=r"complex|dtype"):
                apply(row.operator, *map(wrap, arrays), **case.attributes)


def test_sums_to_the_shape_of_what_was_broadcast() -> None:
    g = np.ones((3, 2)) * 1j
    np.testing.assert_array_equal(sum_to_shape(g, (2,)), [3j, 3j])
