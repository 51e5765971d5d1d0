"""scipy.sparse.linalg.expm_multiply of traced vectors, matrices, times and values."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.linalg import expm
from scipy.sparse.linalg import LinearOperator, expm_multiply
from scipy_programs import Program, assert_derivatives, assert_values, drawn

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.part(4)

RNG = drawn("expm_multiply")
DENSE = RNG.standard_normal((4, 4))
A, OLD = sparse.csr_array(DENSE * (np.abs(DENSE) > 0.6)), sparse.csc_matrix(np.diag([1.0, -2.0, 0.5, 3.0]))
B, X = RNG.standard_normal((4, 2)), RNG.standard_normal(4)
FAR = 3.0 * A - 20.0 * sparse.eye_array(4)
PLACES = np.array([0, 1, 2, 3, 3]), np.array([1, 1, 0, 2, 2])
TIME = np.array(0.7)

PROGRAMS: dict[str, Program] = {
    "vector": (lambda x: expm_multiply(A, x), (X,)),
    "columns": (lambda x: expm_multiply(OLD, x), (B,)),
    "several steps": (lambda x: expm_multiply(FAR, x) * 1e8, (X,)),
    "array": (lambda x: expm_multiply(DENSE, x), (B,)),
    "traced array": (lambda a, x: expm_multiply(a, x), (DENSE, X)),
    "traced array, plain vector": (lambda a: expm_multiply(a, X), (4.0 * DENSE,)),
    "a time": (lambda t, x: expm_multiply(A * t, x), (TIME, B)),
    "a long time": (lambda t: expm_multiply(t * OLD, X), (TIME * 3,)),
    "an imaginary time": (lambda t, x: expm_multiply(-1j * A * t, x), (TIME, X)),
    "complex vector": (lambda x: expm_multiply(A, x), (X + 0.3j,)),
    "times": (lambda x: expm_multiply(A, x, 0.1, stop=1.3, num=4), (X,)),
    "times without an end": (lambda x: expm_multiply(A, x, 0.1, 1.3, num=3, endpoint=False), (B,)),
    "traced times": (lambda a, b: expm_multiply(A, X, a, b, 3), (TIME, TIME * 3)),
    "values": (lambda v, x: expm_multiply(sparse.csr_array((v, PLACES), (4, 4)), x), (RNG.random(5), X)),
    "nothing": (lambda x: expm_multiply(0.0 * A, x), (X,)),
}  # fmt: skip
programs = pytest.mark.parametrize("name", PROGRAMS)


@programs
def test_values_are_scipys(name: str) -> None:
    assert_values(name, PROGRAMS[name])


@programs
def test_derivatives_are_those_of_differences(name: str) -> None:
    assert_derivatives(name, PROGRAMS[name])


def test_steps_are_counted_where_the_program_runs() -> None:
    """One program serves times of any length, as accurately as SciPy."""
    function = pb.compile(lambda t, x: expm_multiply(A * t, x))
    for time in (0.0, 1e-3, 1.0, 30.0):
        found, wanted = function(np.array(time), X), expm(A.toarray() * time) @ X
        np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(wanted).max())


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
