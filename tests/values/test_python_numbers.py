"""Python's numbers as arguments of compiled functions: operands where they meet arrays, else themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

X = np.arange(1.0, 6.0)
X32 = X.astype(np.float32)


def check(function: Any, calls: Any) -> Any:
    """Calls agree with plain ones in values, dtypes and errors; what the cache has to say."""
    compiled = pb.compile(function)
    for arguments in calls:
        try:
            expected = function(*arguments)
        except ArithmeticError as error:
            with pytest.raises(type(error)):
                compiled(*arguments)
            continue
        found = compiled(*arguments)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    return compiled.cache_info()


def test_values_of_a_float_compile_once() -> None:
    info = check(lambda x, a: x * a, [(X32, 0.1 * step) for step in range(80)])
    assert (info.traces, info.misses) == (1, 1)


def test_values_of_an_integer_compile_once() -> None:
    info = check(lambda x, k: x * k + k, [(X32, step) for step in range(20)])
    assert (info.traces, info.misses) == (1, 1)


def test_floats_in_containers_and_defaults() -> None:
    def function(x: Any, rates: Any, decay: float = 0.5) -> Any:
        return x * rates["rate"] * decay

    info = check(function, [(X, {"rate": 0.1 * step}) for step in range(9)])
    assert info.traces == 1


def test_a_comparison_is_a_guard() -> None:
    info = check(lambda x, a: x * a if a > 2 else x - a, [(X, 0.3 * step) for step in range(20)])
    assert info.traces == 2


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x, k: np.stack([x, x]).sum(axis=k), (0, 1, -1)),
        (lambda x, k: sum(x * i for i in range(k)), (1, 2, 3)),
        (lambda x, a: x[: int(a)], (1.0, 2.0)),
        (lambda x, a: x * {0.5: 1, 0.25: 2}[a], (0.5, 0.25)),
        (lambda x, a: x * math.floor(a), (0.5, 1.5)),
        (lambda x, a: x * len(f"{a:.3f}"), (4.0, 20.0)),
        (lambda x, a: np.quantile(x, a), (0.1, 0.3)),
        (lambda x, k: x[: k // 2] * (k % 3), (2, 3, 4)),
        (lambda x, a: x * a.is_integer(), (2.0, 2.5)),
    ],
)
def test_what_structure_needs_is_a_constant(function: Any, values: Any) -> None:
    check(function, [(X, value) for value in values])


@pytest.mark.drawn(6)
def test_many_lengths_compile_once() -> None:
    info = check(lambda x, k: (x[:k] * 2).sum(), [(np.arange(300.0), step) for step in range(200)])
    assert info.compilations + info.disk_hits <= 3


def test_plain_exponents_are_constants() -> None:
    info = check(lambda x, a: x**a, [(X, a) for a in (0.5, 2.0, 2.5, 3.7, -0.5, 3.3)])
    assert info.traces == 4
    assert "sqrt" in pb.compile(lambda x, a: x**a).forward_source(X, 0.5)


def test_the_kind_of_a_number_is_pythons() -> None:
    def function(x: Any, a: Any) -> Any:
        return x * (1 + isinstance(a, float) + 2 * isinstance(a, bool))

    check(function, [(X, 0.5), (X, 2), (X, True)])


@pytest.mark.parametrize("function", [
    lambda x: (x * np.float64(-1.0)) ** 0.5, lambda x: 1.0 / (x - np.float64(2.0)),
    lambda x: x < np.float64(3.0), lambda x: divmod(x, np.float64(0.3)), lambda x: np.float64(2.0) + x,
])  # fmt: skip
def test_beside_a_number_of_numpys_the_result_is_numpys(function: Any) -> None:
    with np.errstate(all="ignore"):
        expected, inside = function(2.0), []
        pb.grad(lambda x: inside.append(function(x)) or x * 1.0)(2.0)
        found = pb.compile(function)(2.0)
    np.testing.assert_array_equal(found, expected)
    for one in (found, inside[0]):
        assert all(isinstance(part, np.generic) for part in (one if isinstance(one, tuple) else [one]))


def test_arithmetic_of_numbers_raises_as_pythons_does() -> None:
    check(lambda x, a, b: x * (a * b + a / b - a**b), [(X, 1.5, 2.5), (X, 0.5, 0.0), (X, 1e200, 3.0)])
    check(lambda x, a: x * (1 / a + 7 % a), [(X, 0.5), (X, 0.0), (X, 2.0)])
    np.testing.assert_allclose(pb.compile(lambda x, a: x * a**0.5)(X, -4.0), X * (-4.0) ** 0.5)
    slope = pb.grad(lambda a: abs((a**0.5) ** 3))(-4.0)
    assert slope == pytest.approx(-3.0)


def test_an_integer_does_not_wrap() -> None:
    small = np.arange(5, dtype=np.uint8)
    compiled = pb.compile(lambda x, k: x + k)
    np.testing.assert_array_equal(compiled(small, 200), small + 200)
    with pytest.raises((OverflowError, pb.errors.PullbackError)):
        compiled(small, 300)
    assert pb.compile(lambda x, k: x * k)(X, 2**60) == pytest.approx(X * 2**60)
    assert pb.compile(lambda k: k * k)(2**40) == 2**80


def test_a_differentiated_float_is_weak_and_keeps_its_gradient() -> None:
    loss = lambda a: (a * X32).sum()  # noqa: E731
    for function in (pb.value_and_grad(loss), pb.compile(pb.value_and_grad(loss))):
        value, gradient = function(2.0)
        assert value.dtype == np.float32
        assert gradient == pytest.approx(15.0)
    powers = pb.grad(lambda p: (X**p).sum())
    for function in (powers, pb.compile(powers)):
        assert function(2.0) == pytest.approx((X**2 * np.log(X)).sum())


def test_an_integer_exponent_is_an_integer() -> None:
    check(lambda x, k: (pb.arange(4) ** k).numpy() + np.arange(4) ** k, [(X, k) for k in (2, 3, 5)])


def test_what_numpy_makes_of_a_number_is_not_weak() -> None:
    check(lambda x, a: x * np.exp(a) + np.maximum(a, 1), [(X32, 0.5), (X32, 2.0)])
    check(lambda x, a: x * math.exp(a), [(X32, 0.5)])
    check(lambda x, a: x * np.clip(a, 0, 1), [(X32, 0.5), (X32, 2)])
    check(lambda x, a: x * np.sum(a) + np.mean(a), [(X32, 0.5), (X32, 2)])
    check(lambda x, a: x * np.real(a), [(X32, 0.5), (X32, 2)])
    check(lambda x, a: [x * np.conj(a), x * np.divmod(a, 2)[1]], [(X32, 0.5)])
    check(lambda x, a: (pb.tensor(a) * 2).numpy(), [(X, 0.5), (X, 2)])


def test_a_number_of_numpys_is_a_dimension() -> None:
    table = pb.tensor(np.arange(6.0).reshape(2, 3))
    check(lambda k: pb.max(table, k)[0].detach().numpy().sum(), [(np.int64(0),), (np.int64(1),)])
    compiled = pb.compile(lambda t, k: pb.min(t, k)[0])
    np.testing.assert_array_equal(compiled(table, np.int64(1)).numpy(), [0.0, 3.0])


def test_the_text_of_a_differentiated_number_is_a_guard() -> None:
    slope = pb.compile(pb.grad(lambda p: p * len(f"{p:.3f}")))
    assert [slope(2.0), slope(20.0), slope(2.0)] == [5.0, 6.0, 5.0]


NUMPYS_INTEGERS: dict[str, Any] = {
    "size": lambda x, n: np.zeros((n, 2)) + x[0],
    "slice": lambda x, n: x[n : n + 2] * 2,
    "step": lambda x, n: x[::n] * 2,
    "part": lambda x, n: x[: len(x) // n],
    "axis": lambda x, n: x.reshape(3, 4).sum(n - 2),
    "axes": lambda x, n: np.moveaxis(x.reshape(3, 4), 0, n - 2),
    "shape": lambda x, n: x.reshape(n, -1),
    "range": lambda x, n: sum(x[i] for i in range(n)),
    "index": lambda x, n: x[n] * x[-n],
    "repeats": lambda x, n: np.tile(x, n),
    "shift": lambda x, n: np.roll(x, n),
    "diagonal": lambda x, n: np.triu(x.reshape(3, 4), n),
    "repeated list": lambda x, n: np.array([1.0] * n) * x[0],
    "repeated tuple": lambda x, n: np.array(n * (1.0, 2.0)) * x[0],
    "item of a list": lambda x, n: [x, x * 2, x * 3, x * 4][n],
    "key": lambda x, n: {2: x, 3: x * 2}[n],
    "text": lambda x, n: {"k2": x, "k3": x * 2}[f"k{n}"],
    "factor": lambda x, n: x * n,
    "power": lambda x, n: x**n,
    "type": lambda x, n: x * 2 if isinstance(n, int) else x,
}


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.int16])
@pytest.mark.parametrize("use", NUMPYS_INTEGERS)
def test_an_integer_of_numpys_is_used_as_pythons_is(use: str, kind: Any) -> None:
    function = NUMPYS_INTEGERS[use]
    compiled = pb.compile(function)
    x = np.arange(1.0, 13.0)
    for n in map(kind, (3, 2, 3)):
        found, expected = compiled(x, n), function(x, n)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert compiled.cache_info().traces <= 2


@pytest.mark.parametrize("compiles", [False, True])
def test_a_sequence_times_an_integer_is_repeated(compiles: bool) -> None:
    def repeated(n: Any, x: Any) -> Any:
        return np.array([2.0, 3.0] * n + n * [x])

    def total(x: Any, n: Any) -> Any:
        return repeated(n, x).sum()

    function = pb.compile(total) if compiles else total
    for n in (2, np.int64(2)):
        assert function(1.5, n) == 13.0 and pb.grad(function)(1.5, n) == 2.0
    with pytest.raises(TypeError, match="multiply sequence by non-int"):
        pb.compile(lambda x, n: np.array([1.0] * n) * x)(np.ones(2), 2.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.where(x > 0, x, -1e9),
        lambda x: np.where(np.isclose(x, 0.3), x, 2),
        lambda x: np.append(x, -1.5),
        lambda x: np.array([1.5, x[0], -0.5]),
        lambda x: np.select([x > 0, x > 1], [x, x * 2], default=0.3),
    ],
)
def test_numbers_in_code_are_constants_of_it(function: Any) -> None:
    x = np.array([-1.0, 0.3, 2.0])
    compiled = pb.compile(function)
    assert "captured" not in compiled.source(x)
    np.testing.assert_array_equal(compiled.programs(x)[0].run_uncompiled((x,))[0], function(x))
