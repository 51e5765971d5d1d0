"""Code of turns that choose: what both branches compute stands behind the choice, and no name is unread."""

import re

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.usefixtures("uncompiled")


def integrated(y, rate, tolerance):
    t, step, rejected = 0.0, 0.1, 0
    while t < 1.0:
        if t + step > 1.0:
            step = 1.0 - t
        slope = -rate * y
        error = np.sin(step * rate * slope) ** 2
        factor = np.exp(-error / tolerance) + 0.5
        if error < tolerance:
            t = t + step
            y = y + step * slope
        else:
            rejected += 1
        step = step * factor
    return y + 0.001 * rejected


def code_of(compiled, *arguments):
    """Without comments."""
    path, *_ = compiled.source(*arguments).split("# Another path")
    return re.sub(r"#.*", "", path)


@pytest.mark.drawn(6)
def test_what_both_branches_compute_is_computed_behind_the_choice():
    compiled = pb.compile(integrated)
    calls = [(1.0, 2.0, 1e-2), (2.0, 9.0, 1e-2), (0.5, 0.3, 1e-3)]
    for call in calls:
        assert compiled(*call) == pytest.approx(integrated(*call), rel=1e-12)
        gradient = pb.grad(compiled)(*call)
        assert gradient == pytest.approx(pb.grad(integrated)(*call), rel=1e-9)
    code = code_of(compiled, *calls[0])
    assert code.count(" exp(") == code.count(" sin(") == 1


@pytest.mark.drawn(4)
def test_variables_are_read():
    compiled = pb.compile(integrated)
    compiled(1.0, 2.0, 1e-2)
    code = code_of(compiled, 1.0, 2.0, 1e-2)
    names = set(re.findall(r"^ +(\w+) = ", code, re.MULTILINE))
    assert names
    assert [name for name in names if len(re.findall(rf"\b{name}\b", code)) < 2] == []


def keeps_products_in_branches(a, b):
    while a < 100.0:
        if a > b:
            a = a * b
        else:
            a = (b + 1.0) * (a + 2.0)
        b = b + 0.5
    return a + b


def raises_in_one_branch(a, b):
    while a < 100.0:
        if a > b:
            a = a + np.linalg.solve(np.array([[a, 1.0], [1.0, b]]), np.array([a, b])).sum()
        else:
            a = a + 1.0 + np.linalg.solve(np.eye(2) * (a - b + 1.0), np.array([a, b]))[0]
        a = a * 1.5 + 1.0
    return a + b


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [keeps_products_in_branches, raises_in_one_branch])
def test_values_and_gradients_of_branches_that_differ(function):
    compiled = pb.value_and_grad(pb.compile(function), argnums=(0, 1))
    for call in [(2.0, 1.5), (1.0, 3.0), (7.0, 0.5)]:
        value, gradients = compiled(*call)
        assert value == pytest.approx(function(*call), rel=1e-12)
        assert gradients == pytest.approx(pb.grad(function, argnums=(0, 1))(*call), rel=1e-9)
