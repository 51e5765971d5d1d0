"""scipy.sparse matrices as constants in products with tensors."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve
from scipy_programs import Program, assert_derivatives, assert_values, drawn

import pullback as pb
from pullback.errors import ShapeError, UnsupportedError

pytestmark = pytest.mark.part(8)

RNG = drawn("sparse")
DENSE = RNG.standard_normal((6, 5)) * (RNG.random((6, 5)) < 0.4)
DENSE[2], DENSE[:, 3] = 0.0, 0.0
X, ROWS, COLUMNS = RNG.standard_normal(5), RNG.standard_normal((3, 6)), RNG.standard_normal((5, 2))
FORMATS = {
    f"{name}_{kind}": getattr(sparse, f"{name}_{kind}")(DENSE)
    for name in ("csr", "csc", "coo", "dia", "lil")
    for kind in ("array", "matrix")
}
LONG_ROW = sparse.csr_array(np.concatenate([np.ones((1, 40)), np.eye(40)[:30]]))
A, OLD, COMPLEX = FORMATS["csr_array"], FORMATS["csr_matrix"], FORMATS["csc_array"] * (1 + 2j)
NOTHING = sparse.csr_array((6, 5))


def products(a: Any, x: Any, y: Any) -> Any:
    return (a @ x) * y[0] + (y @ a)[0, 1] + (a.T @ y.T)[2, 1]


PROGRAMS: dict[str, Program] = {
    **{
        f"{name}: A @ x, x @ A, A.T @ x": (
            lambda x, y, name=name: products(FORMATS[name], x, y), (X, ROWS),
        )
        for name in FORMATS
    },
    "A @ X": (lambda x: A @ x, (COLUMNS,)),
    "A.dot(x)": (lambda x: OLD.dot(x) + (OLD @ COLUMNS)[:, 0], (X,)),
    "A * x of a matrix": (lambda x: OLD * x, (X,)),
    "A * 2": (lambda x: (A * 2) @ x + (3 * A) @ x - A / 4 @ x + -A @ x, (X,)),
    "A * t": (lambda t, x: (t * A) @ x - A @ ((A * t).T @ (A @ x)), (np.array(1.7), X)),
    "A + B": (lambda x: (A + A * 2 - NOTHING) @ x, (X,)),
    "A A": (lambda x: (A.T @ A) @ x, (X,)),
    "long rows": (lambda x: LONG_ROW @ x, (RNG.standard_normal(40),)),
    "long columns": (
        lambda x, y: LONG_ROW.T @ x + (y @ LONG_ROW)[0], (np.cos(np.arange(31.0)), np.ones((1, 31))),
    ),
    "nothing": (lambda x: NOTHING @ x, (X,)),
    "A + t B": (lambda t, x: (A + t * A - A * (2.0 * t)) @ x, (np.array(1.7), X)),
    "made inside": (
        lambda x: sparse.diags([1.0, 2.0], [0, 1], shape=(3, 5)) @ x
        + sparse.hstack([sparse.eye(3), sparse.csr_matrix(DENSE[:3, :2])]) @ x,
        (X,),
    ),
    "traced diagonals": (
        lambda x: sparse.diags([x, -x[:4], [3.0]], [0, 1, -2], shape=(5, 5)).T @ np.cos(x)
        + sparse.diags_array(x**2) @ x,
        (X,),
    ),
    "complex matrix": (lambda x: COMPLEX @ x, (X + 0.3j,)),
    "complex values": (lambda x: A @ x, (X + 1j * X[::-1],)),
}  # fmt: skip
programs = pytest.mark.parametrize("name", PROGRAMS)


@programs
def test_values_are_scipys(name: str) -> None:
    assert_values(name, PROGRAMS[name])


@pytest.mark.drawn(2)
@programs
def test_first_and_second_derivatives(name: str) -> None:
    assert_derivatives(name, PROGRAMS[name])


def test_infinite_values_reach_their_rows_alone() -> None:
    x = np.array([np.inf, 1.0, 2.0, 3.0, np.nan])
    np.testing.assert_array_equal(pb.compile(lambda x: A @ x)(x), A @ x)


def test_a_matrix_that_changes_is_read_anew() -> None:
    matrix = A.copy()
    function = pb.compile(lambda x: matrix @ x)
    np.testing.assert_allclose(function(X), A @ X)
    matrix.data[:] *= 3.0
    np.testing.assert_allclose(function(X), 3.0 * (A @ X))


@pytest.mark.drawn(4)
def test_matrices_as_arguments_and_in_batches() -> None:
    def loss(matrix: Any, x: Any) -> Any:
        return ((matrix @ x) ** 2).sum()

    wanted = 2 * A.T @ (A @ X)
    compiled = pb.grad(pb.compile(loss), argnums=1)
    for found in (pb.grad(loss, argnums=1)(A, X), compiled(A, X), compiled(A.copy(), X), compiled(A, X)):
        np.testing.assert_allclose(found, wanted)
    changed = A.copy()
    compiled(changed, X)
    changed.data *= 2.0
    np.testing.assert_allclose(compiled(changed, X), 4 * wanted)
    np.testing.assert_allclose(pb.compile(pb.vmap(lambda x: A @ x))(COLUMNS.T), (A @ COLUMNS).T)


@pytest.mark.drawn(6)
def test_products_in_what_a_solver_is_given() -> None:
    matrix = sparse.csr_array(3 * np.eye(4) + np.eye(4, k=1))
    wanted = np.linalg.solve(matrix.toarray().T, np.ones(4))
    for transform in (lambda one: one, pb.compile):
        loss = transform(lambda b: pb.linear_solve(lambda v: matrix @ v, b).sum())
        np.testing.assert_allclose(pb.grad(loss)(np.arange(4.0)), wanted, rtol=1e-6)


def test_what_is_asked_of_a_matrix_is_scipys() -> None:
    def function(x: Any) -> Any:
        assert sparse.issparse(A)
        assert isinstance(A, sparse.csr_array)
        return A @ x * A.shape[0] + A.nnz + A.sum() + A.toarray()[0, 1]

    np.testing.assert_allclose(pb.compile(function)(X), function(X))


def test_absolute_values_and_comparisons_are_sparse() -> None:
    matrix, other = A, A.copy()
    other.data[0] += 1.0

    def function(t: Any, x: Any) -> Any:
        assert (matrix != other).nnz == 1
        assert (matrix != matrix).nnz == 0
        assert (matrix > 0).nnz + (matrix < 0).nnz == matrix.nnz
        return (abs(A) + (matrix != other)) @ x + abs(A * t) @ x

    def plain(t: Any, x: Any) -> Any:
        return abs(A) @ x + (matrix != other).astype(float) @ x + np.abs(t) * (abs(A) @ x)

    for one in (lambda *given: pb.vjp(function, *given)[0], pb.compile(function)):
        np.testing.assert_allclose(one(-1.7, X), plain(-1.7, X))
    slope = pb.grad(lambda t: function(t, X).sum())(-1.7)
    np.testing.assert_allclose(slope, -(abs(A) @ X).sum())
    with pytest.raises(UnsupportedError, match=r"csr_array.__ne__: a sparse matrix beside a Tensor"):
        pb.grad(lambda x: (matrix != x).nnz * x.sum())(X)


def test_wrong_uses() -> None:
    for transform in (lambda one: one, pb.compile):
        for call, error, match in (
            (lambda x: A @ x[1:], ShapeError, r"the shapes \(6, 5\) and \(4,\) do not fit"),
            (lambda x: A * x, UnsupportedError, r"csr_array.__mul__: a sparse matrix beside a Tensor"),
            (lambda x: A.multiply(x).sum(), UnsupportedError, r"csr_array.multiply.*toarray"),
            (lambda x: (A + x) @ x, UnsupportedError, r"csr_array.__add__.*toarray"),
            (lambda x: sparse.hstack([A, x[0] * A]) @ x, UnsupportedError, r"hstack of traced values.*added"),
        ):
            with pytest.raises(error, match=match):
                pb.grad(transform(lambda x, call=call: call(x).sum()))(X)


PLACES = np.array([0, 0, 1, 2, 2, 0]), np.array([0, 1, 1, 0, 2, 0])
VALUES = np.array([4.0, 1.0, 3.0, 2.0, 5.0, 0.5])
SQUARE = sparse.csr_array(np.diag([1.0, 2.0, 3.0]))
THREE = np.array([1.0, 2.0, 3.0])
STARTS = [0, 1, 1, 0], [0, 2, 3, 4]


def with_values(make: Any) -> Any:
    def products(v: Any, x: Any) -> Any:
        a = make((v, PLACES), shape=(3, 3))
        return a @ x + x @ a + make((v, PLACES)).T @ x

    return products


def combined(v: Any) -> Any:
    a = sparse.csr_array((v, PLACES))
    return (2.0 * a - SQUARE + -sparse.csr_array((v**2, PLACES))) @ THREE


OF_VALUES: dict[str, Program] = {
    **{
        f"{name}_{kind}": (with_values(getattr(sparse, f"{name}_{kind}")), (VALUES, THREE))
        for name in ("csr", "csc", "coo")
        for kind in ("array", "matrix")
    },
    "starts of rows": (lambda v: sparse.csr_array((v, *STARTS)) @ THREE[:2], (VALUES[:4],)),
    "starts of columns": (lambda v: sparse.csc_array((v, *STARTS)) @ THREE, (VALUES[:4],)),
    "of a matrix": (lambda v: sparse.csr_array((v, PLACES)) @ np.eye(3), (VALUES,)),
    "sums and multiples": (combined, (VALUES,)),
    "toarray": (lambda v: sparse.csr_array((v, PLACES)).toarray(), (VALUES,)),
    "spsolve": (lambda v, b: spsolve(sparse.csr_array((v, PLACES)), b), (VALUES, THREE)),
}  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", OF_VALUES)
def test_matrices_of_traced_values(name: str) -> None:
    if name != "spsolve":  # of float32 SuperLU is rougher
        assert_values(name, OF_VALUES[name])
    assert_derivatives(name, OF_VALUES[name])


def test_what_a_matrix_of_traced_values_does_not_have_is_refused() -> None:
    for function in (
        lambda v: sparse.csr_array((v, PLACES)).sum(axis=0),
        lambda v: sparse.csr_array((v, PLACES)) * THREE,
        lambda v: np.linalg.norm(sparse.csr_array((v, PLACES))),
    ):
        with pytest.raises(UnsupportedError, match=r"whose values are traced is not supported; products"):
            pb.grad(lambda v, function=function: function(v).sum())(VALUES)
    with pytest.raises(ShapeError, match="do not fit"):
        pb.grad(lambda v: (sparse.csr_array((v, PLACES)) @ np.ones(4)).sum())(VALUES)


def test_sums_of_matrices_with_traced_values() -> None:
    x = np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(pb.grad(lambda x: sparse.diags([x], [0]).sum() ** 2)(x), [14.0] * 3)
    with pytest.raises(UnsupportedError, match="a sum along an axis"):
        pb.grad(lambda x: sparse.diags([x], [0]).sum(axis=0)[0])(x)
