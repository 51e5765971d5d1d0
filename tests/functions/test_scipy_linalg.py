"""scipy.linalg on tensors: SciPy's values, and gradients of them, compiled or not, twice."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import (
    cho_solve_banded,
    cholesky_banded,
    lstsq,
    lu_solve,
    schur,
    solve_banded,
    solveh_banded,
    sqrtm,
)

import pullback as pb
from pullback.errors import GradientError, UnsupportedError
from pullback.tracer.ops import matrix_roots

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

RNG = np.random.default_rng(7)
A = RNG.standard_normal((4, 4)) + 4 * np.eye(4)
B = RNG.standard_normal((4, 2))
Q = RNG.standard_normal((4, 4))
BANDS = RNG.standard_normal((4, 5)) + np.array([0.0, 0.0, 5.0, 0.0])[:, None]
SIDES = RNG.standard_normal((5, 2))
LOWER = np.array([[5.0] * 5, [1.0, -1, 2, 1, 9], [0.5, 0.2, 1, 9, 9]])
UPPER = np.array([[9.0, 9, 0.5, 0.2, 1], [9, 1.0, -1, 2, 1], [5.0] * 5])
LONG = np.stack([np.full(20, 7.0), np.sin(np.arange(20.0)), np.ones(20)])  # of two blocks
TALL = RNG.standard_normal((6, 3))
Program = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


def definite(a: Any) -> Any:
    return a @ a.T + 3 * np.eye(4)


def rows_of_lu(rows: Any, lower: Any, upper: Any) -> Any:
    return (lower**2)[rows] @ upper


PROGRAMS: dict[str, Program] = {
    "solve_banded": (lambda ab, b: solve_banded((1, 2), ab, b), (BANDS, SIDES)),
    "solve_banded, wide below": (lambda ab, b: solve_banded((3, 0), ab, b), (BANDS[::-1] + 5, SIDES)),
    "solve_banded of a vector": (lambda ab, b: solve_banded((2, 1), ab, b), (BANDS, SIDES[:, 0])),
    "solveh_banded": (lambda ab, b: solveh_banded(ab, b, lower=True), (LOWER, SIDES)),
    "solveh_banded, upper": (lambda ab, b: solveh_banded(ab, b), (UPPER, SIDES[:, 0])),
    "cholesky_banded": (lambda ab: cholesky_banded(ab, lower=True), (LONG,)),
    "cho_solve_banded": (lambda ab, b: cho_solve_banded((cholesky_banded(ab), False), b), (UPPER, SIDES)),
    "sqrtm": (lambda a: sqrtm(definite(a)), (A,)),
    "sqrtm of a matrix without symmetry": (lambda a: sqrtm(a @ a), (A,)),
    "logm": (lambda a: scipy.linalg.logm(definite(a)), (A,)),
    "expm_frechet": (lambda a, e: scipy.linalg.expm_frechet(0.3 * a, e)[1], (A, Q)),
    "expm_frechet of one element": (lambda a, e: scipy.linalg.expm_frechet(a, e)[1], (A[:1, :1], Q[:1, :1])),
    "cosm": (lambda a: scipy.linalg.cosm(a / 4) + scipy.linalg.sinm(a / 4), (A,)),
    "tanm": (lambda a: scipy.linalg.tanm(a / 9) + scipy.linalg.tanhm(a / 9), (A,)),
    "coshm": (lambda a: scipy.linalg.coshm(a / 4) - scipy.linalg.sinhm(a / 5), (A,)),
    "power": (lambda a: scipy.linalg.fractional_matrix_power(definite(a), 0.3), (A,)),
    "powers": (lambda a: scipy.linalg.fractional_matrix_power(a, -2), (A,)),
    "sylvester": (scipy.linalg.solve_sylvester, (A, B.T @ B + np.eye(2), B)),
    "continuous": (scipy.linalg.solve_continuous_lyapunov, (A, Q)),
    "discrete": (lambda a, q: scipy.linalg.solve_discrete_lyapunov(a / 9, q), (A, Q)),
    "bilinear": (lambda a, q: scipy.linalg.solve_discrete_lyapunov(a / 9, q, "bilinear"), (A, Q)),
    "lu": (lambda a: scipy.linalg.lu(a)[1] @ scipy.linalg.lu(a)[2] ** 2, (A,)),
    "lu permuted": (lambda a: scipy.linalg.lu(a[:, :3], permute_l=True)[0], (Q,)),
    "lu rows": (lambda a: rows_of_lu(*scipy.linalg.lu(a, p_indices=True)), (Q,)),
    "lu_solve": (lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b), (A, B)),
    "lu_solve transposed": (lambda a, b: lu_solve(scipy.linalg.lu_factor(a), b[:, 0], 1), (A, B)),
    "lstsq": (lambda a, b: lstsq(a, b)[0] * lstsq(a, b)[1], (TALL, RNG.standard_normal((6, 2)))),
    "lstsq of a vector": (lambda a, b: lstsq(a, b)[0] * lstsq(a, b)[3], (TALL, RNG.standard_normal(6))),
    "lstsq with a flat matrix": (lambda a, b: lstsq(a, b)[0], (TALL.T.copy(), RNG.standard_normal(3))),
    "pinv": (lambda a: scipy.linalg.pinv(a), (TALL,)),
    "pinvh": (lambda a: scipy.linalg.pinvh(definite(a)), (A,)),
    "qr": (lambda a: scipy.linalg.qr(a)[0] @ scipy.linalg.qr(a, mode="economic")[1] ** 2, (A,)),
    "schur": (lambda a: schur(a)[0] ** 2 @ schur(a)[1] ** 2, (Q,)),
    "schur of a symmetric matrix": (lambda a: schur(a + a.T)[0] ** 2 @ schur(a + a.T)[1] ** 2, (Q,)),
    "complex schur": (lambda a: abs(schur(a, output="complex")[0]) @ abs(schur(a, "complex")[1]), (Q,)),
    "polar": (lambda a: scipy.linalg.polar(a)[0] + scipy.linalg.polar(a, "left")[1] ** 2, (A,)),
    "generalized eigh": (lambda a, q: scipy.linalg.eigh(a + a.T, definite(q))[0], (A, Q)),
    "generalized vectors": (lambda a, q: scipy.linalg.eigh(a + a.T, definite(q))[1] ** 2, (A, Q)),
    "some of eigh": (lambda a: scipy.linalg.eigh(a + a.T, subset_by_index=[1, 2])[0], (A,)),
    "solve triangular": (lambda a, b: scipy.linalg.solve(a, b, assume_a="upper triangular"), (A, B)),
    "solve diagonal": (lambda a, b: scipy.linalg.solve(a, b, assume_a="tridiagonal"), (A, B)),
    "inv symmetric": (lambda a: scipy.linalg.inv(definite(a), assume_a="sym"), (A,)),
    "inv triangular": (lambda a: scipy.linalg.inv(a, assume_a="lower triangular"), (A,)),
    "toeplitz": (lambda a, b: scipy.linalg.toeplitz(a[0], b[:, 0]) @ scipy.linalg.toeplitz(a[1]), (A, B)),
    "hankel": (lambda a, b: scipy.linalg.hankel(a[0], b[:, 0]) @ scipy.linalg.hankel(a[1]), (A, B)),
    "circulant": (lambda a: scipy.linalg.circulant(a[0]) ** 2, (A,)),
    "companion": (lambda a: scipy.linalg.companion(a[0]) ** 2, (A,)),
    "fiedler": (lambda a: scipy.linalg.fiedler(a[0]) ** 2, (A,)),
    "solve_toeplitz": (lambda a, b: scipy.linalg.solve_toeplitz(a[0] + [9, 0, 0, 0], b), (A, B)),
    "solve_toeplitz of a pair": (
        lambda a, b: scipy.linalg.solve_toeplitz((a[0] + [9, 0, 0, 0], a[1]), b[:, 0]), (A, B)
    ),
    "eigh_tridiagonal": (lambda a: scipy.linalg.eigh_tridiagonal(a[0], a[1, :3])[1] ** 2, (A,)),
    "orthogonal_procrustes": (lambda a, q: scipy.linalg.orthogonal_procrustes(a, q)[0], (A, Q)),
    "continuous control": (
        lambda a, b, q: scipy.linalg.solve_continuous_are(a, b, definite(q), b.T @ b + np.eye(2)), (A, B, Q)
    ),
    "discrete control": (
        lambda a, b, q: scipy.linalg.solve_discrete_are(a / 4, b, definite(q), b.T @ b + np.eye(2)), (A, B, Q)
    ),
    "block_diag": (lambda a, b: scipy.linalg.block_diag(a, b) ** 2, (A, B)),
}
programs = pytest.mark.parametrize("name", PROGRAMS)


@pytest.fixture(autouse=True)
def _nothing_runs_uncompiled() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*runs uncompiled")
        yield


@pytest.mark.drawn(4)
@programs
def test_values_are_scipys(name: str) -> None:
    function, arrays = PROGRAMS[name]
    wanted = function(*arrays)
    assert_close(pb.compile(function)(*arrays), wanted)
    assert_close(pb.vjp(function, *arrays)[0], wanted)
    single = [one.astype(np.float32) for one in arrays]
    found = pb.compile(function)(*single)
    assert found.dtype == function(*single).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


def assert_close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.drawn(4)
@programs
def test_gradients_are_those_of_differences_and_so_are_the_second_ones(name: str) -> None:
    function, arrays = PROGRAMS[name]
    places = tuple(range(len(arrays)))
    weights = np.cos(np.arange(np.size(function(*arrays)))).reshape(np.shape(function(*arrays)))

    def loss(*given: Any) -> Any:
        return (function(*given) * weights).sum()

    directions = [RNG.standard_normal(one.shape) for one in arrays]

    def along(*given: Any) -> Any:
        slopes = pb.grad(loss, places)(*given)
        return sum((slope * one).sum() for slope, one in zip(slopes, directions))

    def at(function: Callable[..., Any], step: float) -> Any:
        return function(*[one + step * other for one, other in zip(arrays, directions)])

    for one, tolerance in ((loss, 1e-6), (along, 1e-5)):
        slopes = pb.grad(one, places)(*arrays)
        found = sum((slope * other).sum() for slope, other in zip(slopes, directions))
        wanted = (at(one, 1e-5) - at(one, -1e-5)) / 2e-5
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    for eager, compiled in zip(pb.grad(loss, places)(*arrays), pb.grad(pb.compile(loss), places)(*arrays)):
        np.testing.assert_allclose(compiled, eager, rtol=1e-8, atol=1e-9 * max(1.0, np.abs(eager).max()))


def test_what_has_no_result_or_no_real_one_is_an_error() -> None:
    for transform in (lambda one: one, pb.compile):
        with pytest.raises(np.linalg.LinAlgError, match=r"complex. Make the matrix complex: a.astype"):
            pb.grad(transform(lambda a: sqrtm(a).sum()))(-np.eye(2))
        with pytest.raises(np.linalg.LinAlgError, match="eigenvalue in common"):
            pb.vjp(transform(lambda a: scipy.linalg.solve_sylvester(a, -a, Q)), np.diag([1.0, 2, 3, 4]))
        with pytest.raises(np.linalg.LinAlgError, match="sqrtm: the matrix is singular"):
            pb.grad(transform(lambda a: sqrtm(a).sum()))(np.zeros((2, 2)))
        with pytest.raises(np.linalg.LinAlgError, match="logm: the matrix is singular"):
            pb.grad(transform(lambda a: scipy.linalg.logm(a).sum()))(np.zeros((2, 2)))
        with pytest.raises(np.linalg.LinAlgError):
            pb.grad(transform(lambda a: solveh_banded(a, np.ones(3), lower=True).sum()))(-np.ones((1, 3)))
        with pytest.raises(np.linalg.LinAlgError, match="singular, with a 0 on its diagonal"):
            pb.vjp(transform(lambda a: scipy.linalg.solve_triangular(a, np.ones(3))), np.diag([1.0, 0, 2]))
    root = pb.grad(lambda a: abs(sqrtm(a + 0j)).sum())(-4 * np.eye(2))
    np.testing.assert_allclose(root, [[-0.25, 0], [0, -0.25]], atol=1e-12)


def test_what_a_schur_decomposition_does_not_determine_has_no_gradient() -> None:
    rotation = np.array([[0.0, -1.0], [1.0, 0.0]])
    for transform in (lambda one: one, pb.compile):
        with pytest.raises(np.linalg.LinAlgError, match="schur: eigenvalues are equal"):
            pb.grad(transform(lambda a: schur(a)[0].sum()))(np.eye(3))
        with pytest.raises(GradientError, match="a pair of eigenvalues has a plane"):
            pb.grad(transform(lambda a: schur(a)[1][0, 1]))(rotation)
        with pytest.raises(GradientError, match=r"linalg\.schur: complex vectors"):
            pb.grad(transform(lambda a: (schur(a, "complex")[1] * [1, 1j, 1, 1]).real.sum()))(A)
        slope = pb.grad(transform(lambda a: (lambda t, z: (z @ t @ t @ z.T)[0, 1])(*schur(a))))(rotation)
        np.testing.assert_allclose(slope, -np.eye(2), atol=1e-14)
    with pytest.raises(UnsupportedError, match="sort='lhp' is not supported"):
        pb.grad(lambda a: schur(a, sort="lhp")[0].sum())(A)


@pytest.mark.parametrize("dtype", [float, complex])
def test_the_gradient_of_a_square_root_takes_one_schur_decomposition(dtype: Any, monkeypatch: Any) -> None:
    counted, form = [], matrix_roots.schur_form
    monkeypatch.setattr(matrix_roots, "schur_form", lambda a: counted.append(1) or form(a))
    a = (np.arange(9.0).reshape(3, 3) / 9 + 3 * np.eye(3)).astype(dtype)
    slope = pb.grad(lambda a: sqrtm(a).real.sum())(a)
    x, unit = sqrtm(a), np.eye(3)
    expected = np.linalg.solve(np.kron(x.T, unit) + np.kron(unit, x), np.ones(9)).reshape(3, 3)
    np.testing.assert_allclose(slope, expected, rtol=1e-10)
    assert len(counted) == 1
    pb.compile(lambda a: sqrtm(a))(a)  # without a gradient it is SciPy's
    assert len(counted) == 1


def test_the_gradient_of_a_logarithm_takes_no_further_roots(monkeypatch: Any) -> None:
    counted, root = [], matrix_roots._root_of_triangle
    monkeypatch.setattr(matrix_roots, "_root_of_triangle", lambda a: counted.append(1) or root(a))
    logarithm = matrix_roots.logarithm
    parts = logarithm.parts.evaluate(9 * A)
    of_value = len(counted)
    logarithm.derivative.evaluate(9 * A, Q, parts)
    assert of_value == len(counted) > 0


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [sqrtm, scipy.linalg.logm])
def test_second_derivatives_at_a_cut_are_those_of_the_branch_of_the_value(function: Any) -> None:
    """Of a symmetric matrix with negative eigenvalues: rounding says on which side of the cut each lies."""
    a = np.array([[1.0, 2.0, 0.5], [2.0, -3.0, 1.0], [0.5, 1.0, -2.0]]) + 0j
    one, other, along = np.random.default_rng(3).normal(size=(3, 3, 3)) * (1 + 0.5j)

    def derivative(a: Any) -> Any:
        return pb.jvp(function, (a,), (one,))[1]

    first, second = pb.jvp(derivative, (a,), (other,))

    def slope(a: Any) -> Any:
        return pb.vjp(derivative, a)[1](along)[0]

    for found in (slope(a), pb.compile(slope)(a)):
        np.testing.assert_allclose(np.vdot(found, other).real, np.vdot(along, second).real)
    if function is sqrtm:
        x, across = function(a), pb.jvp(function, (a,), (other,))[1]
        expected = -first @ across - across @ first
        np.testing.assert_allclose(x @ second + second @ x, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
def test_functions_of_matrices_and_their_gradients_share_a_decomposition(name: str) -> None:
    """Of matrices with blocks in the triangle, larger than those whose equations LAPACK solves."""
    function = getattr(scipy.linalg, name)
    a = np.random.default_rng(1).normal(size=(60, 60)) / 8 + 2 * np.eye(60)
    direction = np.random.default_rng(2).normal(size=(60, 60))
    gradient = pb.value_and_grad(pb.compile(lambda a: (function(a) * direction).sum()))
    assert gradient.source(a).count(f"{name}_parts(") == 1
    value, slope = gradient(a)
    np.testing.assert_allclose(value, (function(a) * direction).sum())
    blocks = np.block([[a.T, direction], [np.zeros_like(a), a.T]])
    np.testing.assert_allclose(slope, function(blocks)[:60, 60:], rtol=1e-8, atol=1e-10)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("given", [1e-7, 1e3])
def test_the_derivative_of_a_logarithm_of_matrices_far_from_the_unit_matrix(given: float) -> None:
    a = given * np.array([[2.0, 1.0, 5.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]])  # with one eigenvalue thrice
    direction = np.arange(9.0).reshape(3, 3)
    slope = pb.grad(lambda a: (scipy.linalg.logm(a) * direction).sum())(a)
    back = scipy.linalg.expm_frechet(scipy.linalg.logm(a).T, slope, compute_expm=False)
    np.testing.assert_allclose(back, direction, rtol=1e-9, atol=1e-9)


def test_options_that_are_not_there_are_refused() -> None:
    for call in (
        lambda a: scipy.linalg.qr(a, pivoting=True)[0],
        lambda a: scipy.linalg.eig(a, left=True)[0].real,
        lambda a: scipy.linalg.eigh(a, subset_by_value=[0, 1])[0],
        lambda a: scipy.linalg.pinv(a, atol=1e-3),
    ):
        with pytest.raises(UnsupportedError, match="not supported on a Tensor"):
            pb.grad(lambda a, call=call: call(a).sum())(A)
    with pytest.raises(pb.errors.ShapeError, match="bands of shape"):
        pb.grad(lambda ab: solve_banded((1, 1), ab, SIDES).sum())(BANDS)


def test_least_squares_of_deficient_rank_and_of_batches() -> None:
    a = np.outer(TALL[:, 0], [1.0, 2, 3])
    b = RNG.standard_normal((6, 2))
    for found, wanted in zip(pb.compile(lambda a, b: lstsq(a, b))(a, b), lstsq(a, b)):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    for found, wanted in zip(pb.compile(lambda a, b: np.linalg.lstsq(a, b))(a, b), np.linalg.lstsq(a, b)):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    wide = RNG.standard_normal((2, 9, 8))
    found = pb.compile(lambda a, b: pb.linalg.lstsq(a, b).solution)(wide, b[:1] + np.ones((2, 9, 2)))
    for place in range(2):
        wanted = np.linalg.lstsq(wide[place], b[:1] + np.ones((9, 2)))[0]
        np.testing.assert_allclose(found[place], wanted, atol=1e-10)


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    "name",
    ["solve_banded", "sqrtm", "logm", "sylvester", "lstsq", "lu_solve", "qr", "schur", "generalized eigh"],
)
def test_matrices_that_are_parts_of_others(name: str) -> None:
    function, arrays = PROGRAMS[name]
    apart = [np.repeat(one, 2, axis=-1)[..., ::2] for one in arrays]
    turned = [np.asfortranarray(one) for one in arrays]
    for given in (apart, turned):
        assert_close(pb.compile(function)(*given), function(*arrays))
        assert_close(pb.vjp(function, *given)[0], function(*arrays))


def test_matrices_without_elements() -> None:
    nothing = np.zeros((0, 0))
    for function, arrays in (
        (sqrtm, (nothing,)),
        (lambda a: schur(a)[1], (nothing,)),
        (scipy.linalg.solve_sylvester, (nothing, np.eye(2), np.zeros((0, 2)))),
        (lambda a, b: np.linalg.lstsq(a, b)[0], (np.zeros((3, 0)), np.ones((3, 2)))),
        (lambda a, b: np.linalg.lstsq(a, b)[0], (np.zeros((0, 3)), np.ones((0, 2)))),
        (lambda a, b: np.linalg.lstsq(a, b)[0], (np.ones((8, 7)), np.ones((8, 0)))),
        (lambda a, b: solve_banded((1, 1), a, b), (np.ones((3, 4)) + np.eye(3, 4)[::-1], np.ones((4, 0)))),
    ):
        wanted = function(*arrays)
        for found in (pb.compile(function)(*arrays), pb.vjp(function, *arrays)[0]):
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("function", [sqrtm, scipy.linalg.logm, lambda a: solve_banded((4, 4), a, a)])
def test_what_is_not_finite_is_scipys_or_refused_as_there(function: Any, number: float) -> None:
    a = np.eye(9)
    a[1, 0] = number
    try:
        wanted = function(a)
    except ValueError:
        with pytest.raises(ValueError):
            pb.compile(function)(a)
    else:
        np.testing.assert_array_equal(pb.compile(function)(a), wanted)
    with pytest.raises(ValueError):
        pb.grad(lambda a: function(a).sum())(a)


@pytest.mark.drawn(4)
def test_functions_of_scipy_are_compiled_as_they_are() -> None:
    for function, arrays in (
        (scipy.linalg.solve, (A, B)),
        (scipy.linalg.inv, (A,)),
        (scipy.linalg.det, (A,)),
        (scipy.linalg.expm, (A,)),
        (scipy.linalg.svdvals, (TALL,)),
        (scipy.linalg.solve_sylvester, (A, A.T, Q)),
    ):
        for _ in range(2):
            assert_close(pb.compile(function)(*arrays), function(*arrays))
            assert len(pb.vjp(function, *arrays)[1](np.asarray(function(*arrays)))) == len(arrays)
    assert_close(pb.compile(lambda a: scipy.linalg.svd(a, True, False))(TALL), scipy.linalg.svdvals(TALL))
