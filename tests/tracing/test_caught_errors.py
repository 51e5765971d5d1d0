"""Errors of matrices that the traced function catches: its handler runs as in plain Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pullback as pb
from pullback.errors import LinearAlgebraError

pytestmark = pytest.mark.usefixtures("partly_compiled")
GOOD, BAD, SINGULAR = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[1.0, 2.5], [2.5, 1.0]]), np.ones((2, 2))


def jittered(a: Any) -> Any:
    shift = 0.0
    for exponent in range(4):
        try:
            factor = np.linalg.cholesky(a + shift * np.eye(2))
            break
        except np.linalg.LinAlgError:
            shift = 10.0 ** (exponent - 1)
    else:
        raise ValueError("no factor")
    return np.log(np.diag(factor)).sum()


def solved_by_a_helper(a: Any) -> Any:
    def solved(right: Any) -> Any:
        return np.linalg.solve(a, right)

    try:
        return solved(np.ones(2)).sum()
    except Exception:
        return a.sum()


def inverted(a: Any) -> Any:
    try:
        return np.linalg.inv(a)[0, 1]
    except (KeyError, np.linalg.LinAlgError):
        return 2.0 * a[0, 1]


def of_scipy(a: Any) -> Any:
    try:
        factor = scipy.linalg.cho_factor(a)
    except scipy.linalg.LinAlgError:
        return a.sum()
    return scipy.linalg.cho_solve(factor, np.ones(2)).sum()


@pytest.mark.parametrize(
    ("function", "without"),
    [(jittered, BAD), (solved_by_a_helper, SINGULAR), (inverted, SINGULAR), (of_scipy, BAD)],
)
def test_the_handler_runs(function: Callable[[Any], Any], without: np.ndarray) -> None:
    compiled = pb.compile(pb.value_and_grad(function))
    for a in (GOOD, without, GOOD, without):
        value, gradient = compiled(a)
        expected, slope = pb.value_and_grad(function)(a)
        np.testing.assert_allclose(value, function(a), rtol=1e-12)
        np.testing.assert_allclose([value, *gradient.ravel()], [expected, *slope.ravel()], rtol=1e-10)


def test_where_nothing_catches_it_nothing_is_asked() -> None:
    def finished(a: Any) -> Any:
        try:
            return np.linalg.cholesky(a).sum()
        finally:
            str(a.shape)

    compiled = pb.compile(finished)
    compiled(GOOD), compiled(2 * GOOD)
    with pytest.raises(LinearAlgebraError, match="not positive definite"):
        compiled(BAD)
    assert compiled.cache_info().traces == 1
    assert "definite" not in compiled.source()
