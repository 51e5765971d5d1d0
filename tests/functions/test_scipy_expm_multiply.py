"""scipy.sparse.linalg.expm_multiply of traced vectors, matrices, times and values."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse.linalg import LinearOperator, expm_multiply
from scipy_tables.exponentials import DENSE, RNG, A, X

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.part(8)


def test_steps_are_counted_where_the_program_runs() -> None:
    """One program serves times of any length, as accurately as SciPy."""
    function = pb.compile(lambda t, x: expm_multiply(A * t, x))
    for time in (0.0, 1e-3, 1.0, 30.0):
        found, wanted = function(np.array(time), X), expm(A.toarray() * time) @ X
        np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.drawn(4)
def test_derivatives_are_those_of_frechet() -> None:
    """By the matrix: the exponential of a block matrix holds it (Higham, Functions of Matrices, 3.2)."""
    block = np.block([[DENSE.T, np.outer(np.ones(4), X)], [np.zeros((4, 4)), DENSE.T]])
    wanted = expm(block)[:4, 4:]
    for transform in (lambda one: one, pb.compile):
        found = pb.grad(transform(lambda a: expm_multiply(a, X).sum()))(DENSE)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_in_batches_and_of_plain_arrays() -> None:
    batch = RNG.standard_normal((3, 4))
    found = pb.compile(pb.vmap(lambda x: expm_multiply(A, x)))(batch)
    np.testing.assert_allclose(found, expm_multiply(A, batch.T).T, rtol=1e-10)
    plain = pb.grad(lambda x: (x * expm_multiply(A, X)).sum())(X)
    np.testing.assert_allclose(plain, expm_multiply(A, X))


def test_wrong_uses() -> None:
    operator: Any = LinearOperator((4, 4), matvec=lambda x: x)
    for wrong, error, text in (
        (lambda x: expm_multiply(A, x[1:]), ShapeError, r"found the shapes \(4, 4\) and \(3,\)"),
        (lambda x: expm_multiply(A[:2], x), ShapeError, r"found the shapes \(2, 4\)"),
        (lambda x: expm_multiply(operator, x), UnsupportedError, "expm_multiply: A is a .*LinearOperator"),
        (lambda x: expm_multiply(A, x, 0.0, 1.0, 1), ArgumentError, "at least two points of time"),
    ):
        for transform in (lambda one: one, pb.compile):
            with pytest.raises(error, match=text):
                pb.grad(transform(lambda x, wrong=wrong: wrong(x).sum()))(X)
