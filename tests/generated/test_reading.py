"""What who reads generated text would strike out or call otherwise."""

import numpy as np
import pytest

import pullback as pb
from pullback.codegen import ir
from pullback.codegen.ir.formulas import fill
from pullback.codegen.targets.python.spelling import spell

RANDOM = np.random.default_rng(0)


def gradient_source(function, *arguments) -> str:
    compiled = pb.compile(pb.value_and_grad(function))
    value, gradient = compiled(*arguments)
    expected, slope = pb.value_and_grad(function)(*arguments)
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-12)
    return compiled.source(*arguments)


def header(source: str) -> list[str]:
    return [line.removeprefix("#   ") for line in source.splitlines() if line.startswith("#   ")]


# --- expressions --------------------------------------------------------------------------------------------

X, Y = (ir.Variable(name, ir.FLOAT64) for name in "xy")
NUMBER = ir.Const(-0.5, ir.FLOAT64)


@pytest.mark.parametrize("formula, operands, expected", [
    ("{a} + {b}", (X, ir.apply("negative", Y)), "x - y"),
    ("{a} - {b}", (X, ir.apply("negative", Y)), "x + y"),
    ("{a} + {b}", (ir.apply("negative", X), Y), "y - x"),
    ("{a} - {b}", (X, NUMBER), "x + 0.5"),
    ("{a} + {b}", (X, NUMBER), "x - 0.5"),
    ("-{a}", (NUMBER, Y), "0.5"),
    ("-{a}", (ir.apply("negative", X), Y), "x"),
    ("{a} * {b}", (ir.Const(1.0, ir.FLOAT64), Y), "y"),
    ("{a} / {b}", (X, ir.Const(1.0, ir.FLOAT64)), "x"),
    ("{a} + {b}", (NUMBER, Y), "-0.5 + y"),
    ("{a} - {b}", (X, ir.Const(-0.0, ir.FLOAT64)), "x - -0.0"),
])  # fmt: skip
def test_signs_and_ones_that_change_nothing_are_left_out(formula, operands, expected):
    assert spell(fill(formula, dict(zip("ab", operands)), ir.FLOAT64)) == expected


def test_what_bits_are_taken_of_stands_in_brackets():
    place = ir.apply("add", ir.Variable("i"), ir.number(1))
    last = ir.apply("bit_and", place, ir.number(1))
    assert spell(last) == "(i + 1) & 1"
    assert spell(ir.apply("bit_and", last, ir.Variable("j"))) == "(i + 1) & 1 & j"


# --- headers ------------------------------------------------------------------------------------------------


def test_a_dimension_that_is_written_out_has_its_number_in_the_header():
    def loss(X, w, y):
        return ((X @ w - y) ** 2).mean()

    source = gradient_source(loss, RANDOM.random((64, 5)), RANDOM.random(5), RANDOM.random(64))
    assert header(source) == [
        "X: float64[n, 5], w: float64[5], y: float64[n]", "-> value: float64[], d_X: float64[n, 5]",
    ]  # fmt: skip


def test_a_size_is_not_called_as_a_variable_of_the_user():
    def weighted(q, k):
        p = np.exp(q @ k.T)
        return ((p / p.sum(axis=1, keepdims=True)) ** 2).sum()

    source = gradient_source(weighted, RANDOM.random((16, 20)), RANDOM.random((30, 20)))
    assert header(source)[0] == "q: float64[n, m], k: float64[r, m]"


# --- what the user did not write ----------------------------------------------------------------------------


@pytest.mark.drawn(4)
def test_zeros_that_each_step_makes_are_no_inputs():
    def moved(x, v):
        for _ in range(20):
            d = x[1:] - x[:-1]
            a = np.zeros_like(x)
            a[:-1] += d
            a[1:] -= d
            v = v + 0.01 * a
            x = x + 0.01 * v
        return (x**2).sum()

    source = gradient_source(moved, RANDOM.random((30, 2)), RANDOM.random((30, 2)))
    assert header(source)[0] == "x: float64[n, 2], v: float64[n, 2]" and "concatenate" not in source


def test_twenty_steps_of_numbers_are_a_loop():
    def pendulum(s, g):
        theta, omega = s[0], s[1]
        for _ in range(20):
            omega = omega - 0.05 * g * np.sin(theta)
            theta = theta + 0.05 * omega
        return theta**2 + omega**2

    source = gradient_source(pendulum, np.array([1.0, 0.5]), 0.7)
    assert source.count("    for i in range(m):") == 2 and len(source.splitlines()) < 40
