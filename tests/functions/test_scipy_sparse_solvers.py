"""SciPy's iterative and sparse linear solvers, in functions that are differentiated or compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
from extent import drawn
from scipy import sparse
from scipy.sparse import linalg
from scipy.sparse.linalg import LinearOperator, cg

import pullback as pb
from pullback.errors import ArgumentError, ConvergenceError, ShapeError, UnsupportedError

pytestmark = pytest.mark.part(8)

SIZE = 12
MATRIX = sparse.diags([-np.ones(SIZE - 1), 2.5 * np.ones(SIZE), -0.7 * np.ones(SIZE - 1)], [-1, 0, 1]).tocsr()
SYMMETRIC = (MATRIX + MATRIX.T).tocsr()
DENSE = SYMMETRIC.toarray()
INVERSE = sparse.diags(1.0 / SYMMETRIC.diagonal())
PLACES = np.arange(SIZE)
EXACT: dict[str, Any] = {"rtol": 1e-13}


def right(a: Any) -> Any:
    return np.sin(PLACES * a) + a**2


def operator(a: Any) -> Any:
    return LinearOperator((SIZE, SIZE), matvec=lambda v: DENSE @ v + a * v, dtype=float)


SOLUTIONS: dict[str, Callable[[Any], Any]] = {
    "cg of an operator whose dtype is found": lambda a: linalg.cg(
        linalg.LinearOperator((SIZE, SIZE), matvec=lambda v: SYMMETRIC @ v + a * v), right(a), **EXACT
    )[0],
    "cg": lambda a: cg(SYMMETRIC, right(a), **EXACT)[0],
    "cg with an approximate inverse": lambda a: linalg.cg(SYMMETRIC, right(a), M=INVERSE, **EXACT)[0],
    "cg of a dense matrix": lambda a: linalg.cg(DENSE * a, right(a), **EXACT)[0],
    "gmres": lambda a: sparse.linalg.gmres(MATRIX, right(a), **EXACT)[0],
    "bicgstab from elsewhere": lambda a: linalg.bicgstab(MATRIX, right(a), np.ones(SIZE), **EXACT)[0],
    "cg of an operator": lambda a: scipy.sparse.linalg.cg(operator(a), right(a), rtol=0.0, atol=1e-12)[0],
    "spsolve of a multiple": lambda a: linalg.spsolve(a * MATRIX, right(a)),
    "spsolve": lambda a: linalg.spsolve(MATRIX, right(a)),
    "splu": lambda a: linalg.splu(MATRIX.tocsc()).solve(right(a), "T"),
    "factorized": lambda a: linalg.factorized(MATRIX.tocsc())(right(a)),
    "norm of traced values": lambda a: linalg.norm(sparse.coo_matrix((right(a), (PLACES, PLACES[::-1])))),
    "norms of rows": lambda a: linalg.norm(sparse.csr_array((right(a), (PLACES, PLACES[::-1]))), axis=1),
    "norm of a multiple": lambda a: linalg.norm(-a * MATRIX, 1),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", drawn(SOLUTIONS, one_in=2))
def test_has_derivatives_and_is_compiled(name: str) -> None:
    def loss(a: Any) -> Any:
        return (SOLUTIONS[name](a) ** 2).sum()

    near, far = ((loss(1.3 + k * 1e-3) - loss(1.3 - k * 1e-3)) / (k * 2e-3) for k in (1, 2))
    slope = pb.grad(loss)
    np.testing.assert_allclose(pb.compile(loss)(1.3), loss(1.3), rtol=1e-9)
    np.testing.assert_allclose(slope(1.3), (4 * near - far) / 3, rtol=1e-7)
    np.testing.assert_allclose(pb.compile(slope)(1.3), slope(1.3), rtol=1e-9)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", ["cg", "gmres", "splu"])
def test_second_derivatives_and_batches(name: str) -> None:
    slope = pb.grad(lambda a: (SOLUTIONS[name](a) ** 2).sum())
    near, far = ((slope(1.3 + k * 1e-3) - slope(1.3 - k * 1e-3)) / (k * 2e-3) for k in (1, 2))
    np.testing.assert_allclose(pb.grad(slope)(1.3), (4 * near - far) / 3, rtol=1e-6)
    batch = np.array([1.3, 0.9])
    np.testing.assert_allclose(pb.vmap(slope)(batch), [slope(one) for one in batch], rtol=1e-9)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("run", [pb.grad, pb.compile], ids=["eager", "compiled"])
def test_refusals(run: Any) -> None:
    with pytest.raises(ShapeError, match=r"scipy\.sparse\.linalg\.cg: A has shape \(12, 12\) and b \(11,\)"):
        run(lambda a: cg(SYMMETRIC, right(a)[1:])[0].sum())(1.3)
    with pytest.raises(UnsupportedError, match=r"scipy\.sparse\.linalg\.cg: callback"):
        run(lambda a: cg(SYMMETRIC, right(a), callback=print)[0].sum())(1.3)
    with pytest.raises(ConvergenceError, match="gmres: after 1 steps"):
        run(lambda a: linalg.gmres(np.roll(np.eye(40), 1, 0), np.arange(40) * a, maxiter=1)[0].sum())(1.3)
    with pytest.raises(ArgumentError, match=r"scipy\.sparse\.linalg\.splu: A is a .*pullback\.spsolve"):
        run(lambda a: linalg.splu(DENSE * a).solve(right(a)).sum())(1.3)


@pytest.mark.parametrize("name", ["cg", "gmres", "bicgstab"])
def test_equations_that_do_not_depend_on_the_argument(name: str) -> None:
    """And those whose derivatives do not: their adjoint equations have none to be solved in turn."""

    def fixed(a: Any) -> Any:
        return getattr(linalg, name)(DENSE, np.ones(SIZE), **EXACT)[0].sum() * a**2

    def linear(a: Any) -> Any:
        return getattr(linalg, name)(SYMMETRIC, a * np.ones(SIZE), **EXACT)[0].sum()

    whole = np.linalg.solve(DENSE, np.ones(SIZE)).sum()
    for function, first, second in ((fixed, 2.6 * whole, 2.0 * whole), (linear, whole, 0.0)):
        np.testing.assert_allclose(pb.grad(function)(1.3), first, rtol=1e-9)
        np.testing.assert_allclose(pb.grad(pb.grad(function))(1.3), second, rtol=1e-9)
