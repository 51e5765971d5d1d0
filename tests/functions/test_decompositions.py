"""Eigenvalues, singular values, QR, LU and what is made of them: as PyTorch's, with two derivatives."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from derivatives import Function, first_and_second
from extent import machine_code

import pullback as pb
from pullback.codegen.whole_calls import BY_NAME, function_of
from pullback.errors import GradientError, LinearAlgebraError
from pullback.tracer.graph import make_input, make_node
from pullback.tracer.lapack import SMALL
from pullback.tracer.operator import OPERATORS, operators
from pullback.tracer.ops.complex_parts import BY_CALLS
from pullback.tracer.ops.movement import pairs_of
from pullback.tracer.spec import Spec, spec_of

pytestmark = pytest.mark.part(8)

OPERATORS_HERE = [one.name for one in operators("decomposition") if one.operands == ("a",)]


def matrices(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def projected(vectors: Any) -> Any:
    """What does not depend on the sign of the columns."""
    return (vectors[..., :1] @ vectors[..., :1].mT)[..., :2]


FUNCTIONS: dict[str, Function] = {
    "eigvalsh": lambda lib, a, b: lib.linalg.eigvalsh(a + a.mT),
    "eigenvectors": lambda lib, a, b: projected(lib.linalg.eigh(a + a.mT)[1]),
    "upper eigh": lambda lib, a, b: lib.linalg.eigh(a + a.mT, UPLO="U")[0],
    "svdvals": lambda lib, a, b: lib.linalg.svdvals(b),
    "svd tall": lambda lib, a, b: projected(lib.linalg.svd(b, full_matrices=False)[0]),
    "svd wide": lambda lib, a, b: projected(lib.linalg.svd(b.mT, full_matrices=False).Vh.mT),
    "svd again": lambda lib, a, b: (lambda u, s, v: (u * s.unsqueeze(-2)) @ v.mT)(*lib.svd(b)),
    "nuclear norm": lambda lib, a, b: lib.linalg.matrix_norm(b, "nuc") + lib.linalg.matrix_norm(b, 2),
    "cond": lambda lib, a, b: lib.linalg.cond(a) - lib.linalg.cond(a, -2),
    "qr": lambda lib, a, b: lib.linalg.qr(b)[0] @ lib.linalg.qr(b)[1].square(),
    "qr wide": lambda lib, a, b: lib.linalg.qr(b.mT).R.square() + lib.linalg.qr(b.mT).Q.sum() ** 2,
    "svd without values": lambda lib, a, b: lib.linalg.svd(b, False).Vh.mT[..., :1] ** 2,
    "qr without R": lambda lib, a, b: lib.linalg.qr(b)[0],
    "qr without Q": lambda lib, a, b: lib.linalg.qr(b)[1],
    "lu": lambda lib, a, b: lib.linalg.lu(a).L @ lib.linalg.lu(a).U.square(),
    "lu tall": lambda lib, a, b: lib.linalg.lu(b).L @ lib.linalg.lu(b).U.square(),
    "lu wide": lambda lib, a, b: lib.linalg.lu(b.mT)[1] @ lib.linalg.lu(b.mT)[2].square(),
    "lu_solve": lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b),
    "lu_solve adjoint": lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b, adjoint=True),
    "lu_solve right": lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b.mT, left=False),
    "matrix_exp": lambda lib, a, b: lib.matrix_exp(0.3 * a),
    "pinv tall": lambda lib, a, b: lib.linalg.pinv(b),
    "pinv wide": lambda lib, a, b: lib.linalg.pinv(b.mT),
    "pinv above": lambda lib, a, b: lib.linalg.pinv(b, atol=b.detach()[:, 0, 0].abs()),
    "lstsq": lambda lib, a, b: lib.linalg.lstsq(b, a)[0],
    "tensorinv": lambda lib, a, b: lib.linalg.tensorinv(a[0].reshape(2, 2, 4), ind=2),
    "tensorsolve": lambda lib, a, b: lib.linalg.tensorsolve(a[0].reshape(2, 2, 4), b[0, :2, :2]),
    "vecdot": lambda lib, a, b: lib.linalg.vecdot(a, a * b[..., :1], dim=-2),
    "householder": lambda lib, a, b: lib.linalg.householder_product(b, b[:, 0, :2]),
    "orgqr": lambda lib, a, b: lib.orgqr(b, b[:, 0, :2]),
    "ormqr": lambda lib, a, b: lib.ormqr(b, b[:, 0], a) + lib.ormqr(b, b[:, 0], a, False, True),
    "ormqr adjoint": lambda lib, a, b: lib.ormqr(b, b[:, 0], a, True, True),
    "ormqr right": lambda lib, a, b: lib.ormqr(b, b[:, 1], a, False),
    "cholesky_ex": lambda lib, a, b: lib.linalg.cholesky_ex(a @ a.mT).L,
    "triangular": lambda lib, a, b: lib.triangular_solve(b, a, upper=False, transpose=True).solution,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    arrays = [matrices(2, 4, 4) + 2 * np.eye(4), matrices(2, 4, 3)]
    found, wanted = (first_and_second(lib, FUNCTIONS[name], arrays) for lib in (pb, torch))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize(
    ("function", "products"),
    [
        (pb.linalg.eigvalsh, 1),
        (pb.linalg.svdvals, 1),
        (lambda a: pb.linalg.qr(a).Q, 2),
        (lambda a: pb.linalg.qr(a).R, 2),
        (lambda a: pb.linalg.svd(a).Vh, 3),
    ],
)
def test_a_gradient_has_no_products_of_what_was_not_used(function: Any, products: int) -> None:
    a = matrices(20, 20)
    compiled = pb.value_and_grad(pb.compile(lambda x: (abs(function(x + x.mT)) ** 3).sum()))
    assert compiled.source(a).count("gemm(") == products
    assert compiled.source(a + 1j * a.T).count("gemm(") <= 5 * products


@pytest.mark.drawn(6)
def test_the_gradient_of_an_exponential_with_nan_is_nan() -> None:
    gradient = pb.grad(lambda a: pb.linalg.matrix_exp(a).sum())
    a = np.stack([np.eye(2), np.array([[1.0, np.nan], [0.0, 1.0]])])
    for function in (gradient, pb.compile(gradient)):
        assert np.isnan(function(a)).all(axis=(1, 2)).tolist() == [False, True]


@pytest.mark.parametrize(("name", "products"), [("svd", 4), ("pinv", 8), ("lstsq", 0)])
@pytest.mark.parametrize("shape", [(30, 20), (20, 30)])
def test_a_gradient_shares_its_products(name: str, products: int, shape: tuple[int, int]) -> None:
    """Those of parts that several terms have, and all of the smaller extent; none of sides of one column."""
    functions: dict[str, Any] = {
        "svd": lambda a: sum((one**3).sum() for one in pb.linalg.svd(a, full_matrices=False)),
        "pinv": lambda a: (pb.linalg.pinv(a) ** 3).sum(),
        "lstsq": lambda a: (pb.linalg.lstsq(a, a[:, :1]).solution ** 3).sum(),
    }
    source = pb.value_and_grad(pb.compile(functions[name])).source(matrices(*shape))
    assert source.count("gemm(") == products


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_they_are_as_eager(name: str) -> None:
    arrays = [matrices(2, 4, 4) + 2 * np.eye(4), matrices(2, 4, 3)]

    def loss(a: Any, b: Any) -> Any:
        return (FUNCTIONS[name](pb, a, b) ** 2).sum()

    expected = pb.value_and_grad(loss, (0, 1))(*arrays)
    with warnings.catch_warnings(), machine_code(name):
        warnings.simplefilter("error")
        found = pb.value_and_grad(pb.compile(loss), (0, 1))(*arrays)
    for one, other in zip((found[0], *found[1]), (expected[0], *expected[1])):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(other).max()))


SQUARE = ("eigh", "eigvalsh", "exponentials", "eig", "eigvals", "eig_of_real", "eigvals_of_real")
OF_REAL = [name for name in OPERATORS_HERE if OPERATORS[name].call.functions]
OPTIONS: dict[str, dict[str, bool]] = {
    "eigh": {"lower": True}, "eigvalsh": {"lower": True}, "svd": {"adjoint": False}
}  # fmt: skip
SIZES = (0, 1, 2, 3, 4, 5, 17, 64)
SHAPES = [*((n, n) for n in SIZES), *((n + 2, n) for n in SIZES[1:]), (2, 9, 9), (3, 2, 40, 8), (0, 7, 7)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OF_REAL)
def test_functions_of_generated_code_compute_what_eager_code_does(
    name: str, shape: tuple[int, ...], dtype: str
) -> None:
    """Signs of vectors included where both call LAPACK; those of small matrices are anybody's."""
    operator, a = OPERATORS[name], matrices(*shape).astype(dtype)
    if name in SQUARE:
        a = a[..., : a.shape[-1], :]
    if name == "exponentials":
        a = a / (1 + a.shape[-1])
    planes = np.zeros(operator.infer(spec_of(a)).shape, a.dtype)
    for place in np.ndindex(a.shape[:-2]):
        function_for(name)(a[place], planes[place])
    wanted = operator.evaluate(a, **OPTIONS.get(name, {}))
    for one, other in zip(parts_of(name, planes), parts_of(name, wanted)):
        if name in ("eigh", "svd") and a.shape[-1] <= SMALL:
            one, other = abs(one), abs(other)
        np.testing.assert_allclose(one, other, atol=1e-10 if dtype == "float64" else 5e-4)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [one for one in BY_CALLS if one in OPERATORS_HERE])
def test_functions_of_complex_matrices_are_what_eager_code_calls(
    name: str, shape: tuple[int, ...], dtype: str
) -> None:
    operator = OPERATORS[name]
    a = (matrices(*shape) + 1j * matrices(*shape, seed=1)).astype(dtype)
    if name in SQUARE:
        a = a[..., : a.shape[-1], :].copy()
    options = OPTIONS.get(name, {})
    made = operator.result_spec(a, **options)
    planes = np.zeros(made.shape, made.dtype)
    with_parts = pairs_of.evaluate(planes) if made.dtype.kind == "c" else planes
    for place in np.ndindex(a.shape[:-2]):
        BY_NAME[operator.call.of_pairs[0]](pairs_of.evaluate(a[place]), with_parts[place])
    wanted = operator.evaluate(a, **options)
    for one, other in zip(parts_of(name, planes), parts_of(name, wanted)):
        np.testing.assert_allclose(one, other, atol=1e-10 if dtype == "complex128" else 5e-4)


COMPLEX: dict[str, Function] = {
    "eigh": lambda a: tuple(pb.linalg.eigh(a.mH @ a)),
    "upper eigh": lambda a: tuple(pb.linalg.eigh(a.mH @ a, "U")),
    "eigvalsh": lambda a: pb.linalg.eigvalsh(a.mH @ a),
    "svd": lambda a: tuple(pb.linalg.svd(a, full_matrices=False)),
    "wide svd": lambda a: tuple(pb.linalg.svd(a.mH, full_matrices=False)),
    "svdvals": lambda a: pb.linalg.svdvals(a),
    "qr": lambda a: tuple(pb.linalg.qr(a)),
    "eig": lambda a: tuple(pb.linalg.eig(a.mH @ a.flip(-2))),
    "eigvals": lambda a: pb.linalg.eigvals(a.mH @ a.flip(-2)),
    "real eig": lambda a: tuple(pb.linalg.eig(a.real.mT @ a.imag)),
    "real eigvals": lambda a: pb.linalg.eigvals(a.real.mT @ a.imag),
    "pinv": lambda a: pb.linalg.pinv(a),
    "wide pinv": lambda a: pb.linalg.pinv(a.mH),
    "pinv above": lambda a: pb.linalg.pinv(a, atol=0.5),
    "Hermitian pinv": lambda a: pb.linalg.pinv(a.mH @ a, hermitian=True),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_matrices_are_compiled_as_they_are_decomposed(name: str, dtype: str) -> None:
    """Without a call of Python; of batches, views, and matrices without elements."""
    compiled = pb.compile(COMPLEX[name])
    for shape in [(6, 4), (2, 3, 7, 3), (2, 9, 9), (1, 1), (0, 3, 3), (0, 0)]:
        wide = (matrices(*shape[:-1], 2 * shape[-1]) + 1j * matrices(*shape[:-1], 2 * shape[-1], seed=1))
        a = pb.tensor(wide.astype(dtype))[..., ::2]
        with machine_code((name, dtype, shape), one_in=3):
            found, wanted = compiled(a), COMPLEX[name](a)
        for one, other in zip(as_tuple(found), as_tuple(wanted), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, atol=1e-10 if dtype == "complex128" else 1e-3)
    assert "ComplexCall" not in compiled.source(a)


SHORT: dict[str, Function] = {
    "eigh": lambda lib, a: lib.eigh(a),
    "upper eigh": lambda lib, a: lib.eigh(a, "U"),
    "eigvalsh": lambda lib, a: lib.eigvalsh(a, UPLO="U"),
    "eig": lambda lib, a: lib.eig(a),
    "eigvals": lambda lib, a: lib.eigvals(a),
    "svd": lambda lib, a: lib.svd(a),
    "tall svd": lambda lib, a: lib.svd(a[..., :3], full_matrices=False),
    "wide svd": lambda lib, a: lib.svd(a[..., :3, :], full_matrices=False),
    "wide svdvals": lambda lib, a: lib.svdvals(a[..., :3, :]),
    "qr": lambda lib, a: lib.qr(a),
    "complete qr": lambda lib, a: lib.qr(a, "complete"),
    "inv": lambda lib, a: lib.inv(a),
    "det": lambda lib, a: lib.det(a),
    "slogdet": lambda lib, a: lib.slogdet(a),
    "cholesky": lambda lib, a: lib.cholesky(a @ a.mH),
    "solve": lambda lib, a: lib.solve(a, a[..., :2]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("name", SHORT)
def test_what_is_not_recorded_is_computed_as_what_is(name: str, dtype: str) -> None:
    """Bit for bit, signs included, with the same dtypes, and memory of its own; of NumPy's names too."""
    function = SHORT[name]
    for shape in [(5, 5), (2, 4, 4)]:
        a = matrices(*shape) + (1j * matrices(*shape, seed=1) if dtype.startswith("c") else 0)
        a = a.astype(dtype)
        for one in (a, np.asfortranarray(a)):
            found = as_tuple(function(pb.linalg, pb.tensor(one)))
            wanted = as_tuple(function(pb.linalg, pb.tensor(one, requires_grad=True)))
            numpy_name = as_tuple(function(np.linalg, pb.tensor(one)))
            exactly = 0.0 if name != "eigvals" and "vals" not in name else 30.0
            for part, recorded, other in zip(found, wanted, numpy_name, strict=True):
                assert part.dtype == recorded.dtype and part.shape == recorded.shape
                assert part.is_contiguous() and not part.requires_grad
                size = abs(recorded.detach().numpy()).max()
                limit = exactly * np.finfo(dtype).eps * size
                np.testing.assert_allclose(part.numpy(), recorded.detach().numpy(), rtol=0, atol=limit)
                np.testing.assert_allclose(part.numpy(), other.numpy(), rtol=0, atol=limit)
                part.zero_()
        np.testing.assert_array_equal(one, a)


@pytest.mark.drawn(6)
def test_least_squares_find_one_decomposition() -> None:
    """For the solution, its gradient, the rank and the singular values."""

    def loss(a: Any) -> Any:
        found, _, rank, values = np.linalg.lstsq(a, a[:, 0] * 2.0 + a[:, 1] ** 2)
        return (abs(found) ** 2).sum() * rank + values[0]

    a = matrices(12, 8)
    for given in (a, a + 1j * matrices(12, 8, seed=1)):
        compiled = pb.value_and_grad(pb.compile(loss))
        found, wanted = compiled(given), pb.value_and_grad(loss)(given)
        for one, other in zip(found, wanted):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
        assert compiled.source(given).count("not singular") == 1


@pytest.mark.drawn(4)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5, 5), (30, 30), (0, 0), (2, 0, 0)])
def test_determinants_of_complex_matrices_are_compiled(shape: tuple[int, ...]) -> None:
    """One elimination for all of them, without a call of Python; of a singular matrix they are NumPy's."""

    def determinants(a: Any) -> Any:
        return np.linalg.det(a), *np.linalg.slogdet(a)

    def loss(a: Any) -> Any:
        det, sign, logarithm = determinants(a)
        return (np.abs(det - 0.3j) + np.abs(sign - 1j) ** 2 + logarithm).sum()

    a = matrices(*shape) + 1j * matrices(*shape, seed=1)
    compiled = pb.compile(determinants)
    with machine_code(shape, one_in=2):
        for given in (a, np.zeros_like(a)):
            for one, other in zip(compiled(given), determinants(given), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-10)
        np.testing.assert_allclose(pb.grad(pb.compile(loss))(a), pb.grad(loss)(a), rtol=1e-8)
    assert not a.size or compiled.source(a).count("determine_pairs(") == 1


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", ["eigvalsh", "svdvals"])
def test_gradients_of_values_of_complex_matrices(name: str) -> None:
    a = matrices(2, 4, 4) + 1j * matrices(2, 4, 4, seed=1)
    direction = matrices(2, 4, 4, seed=2) + 1j * matrices(2, 4, 4, seed=3)

    def loss(a: Any) -> Any:
        return (COMPLEX[name](a) ** 3).sum()

    change = (loss(pb.tensor(a + 1e-6 * direction)) - loss(pb.tensor(a - 1e-6 * direction))) / 2e-6
    for one in (loss, pb.compile(loss)):
        slope = pb.grad(one)(a)
        assert np.sum((np.conj(slope) * direction).real) == pytest.approx(float(change), rel=1e-5)


def as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def function_for(name: str) -> Function:
    a = make_input(Spec((2, 2), np.dtype("float64")), "a")
    return function_of(make_node(OPERATORS[name], (a,), OPTIONS.get(name, {})))


def parts_of(name: str, planes: np.ndarray) -> list[np.ndarray]:
    """What counts of a result; the rest is room."""
    size = planes.shape[-1]
    if name in ("eigvalsh", "svdvals", "eigvals"):
        return [planes[..., -1, :]]
    if name == "eigvals_of_real":
        return [planes[..., -2:, :]]
    if name in ("eig", "eig_of_real"):
        firsts = range(0, planes.shape[-3], 3)
        rows = [planes[..., first + 1, 0, :] for first in firsts if planes.shape[-2]]
        return [*(planes[..., first, :, :] for first in firsts), *rows]
    if name in ("eigh", "svd"):
        rows = [planes[..., 1, 0, :]] if planes.shape[-2] else []
        return [planes[..., 0, :, :], *rows, *([planes[..., 2, :size, :]] if name == "svd" else [])]
    return [planes[..., 0, :, :]] if name == "exponentials" else [planes]


COMPARED: dict[str, Function] = {
    "eigh": lambda a: np.linalg.eigh(a[..., :10, :]),
    "eigh of the upper triangle": lambda a: np.linalg.eigh(a[..., :10, :], "U"),
    "svd": lambda a: np.linalg.svd(a, full_matrices=False),
    "whole svd": lambda a: np.linalg.svd(a[..., :11, :]),
    "wide svd": lambda a: np.linalg.svd(np.swapaxes(a, -1, -2), full_matrices=False),
    "whole wide svd": lambda a: np.linalg.svd(np.swapaxes(a[..., :11, :], -1, -2)),
    "square svd": lambda a: np.linalg.svd(a[..., :10, :]),
    "qr": lambda a: np.linalg.qr(a),
    "eig": lambda a: np.linalg.eig(a[..., :10, :]),
}


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("name", COMPARED)
def test_signs_are_numpys_where_a_gap_permits(name: str, is_complex: bool) -> None:
    """Of matrices in double precision that LAPACK decomposes, whose values lie apart: eager and compiled."""
    function = COMPARED[name]
    a = matrices(2, 30, 10) + (1j * matrices(2, 30, 10, seed=1) if is_complex else 0)
    with machine_code((name, is_complex)):
        compiled = pb.compile(lambda a: tuple(function(a)))(np.swapaxes(a, -1, -2).copy().swapaxes(-1, -2))
    for found in (function(pb.tensor(a)), compiled):
        for one, other in zip(found, function(a), strict=True):
            np.testing.assert_allclose(np.asarray(one), other, atol=1e-10)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("size", [3, 9])
@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals"])
def test_what_does_not_converge_raises(name: str, size: int) -> None:
    function = getattr(pb.linalg, name)
    compiled = pb.compile(lambda a: function(a)[0])
    for number in (np.nan, np.inf):
        a = np.eye(size) + np.zeros((2, 1, 1))
        a[1, 0, 0] = number
        for one in (function, compiled):
            with pytest.raises(pb.linalg.LinAlgError, match="converges, as with nan or inf"):
                one(a)
        compiled(a[:1])
        with pytest.raises(pb.linalg.LinAlgError, match="converges, as with nan or inf"):
            function(a * (1 + 1j))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("scale", [1e-180, 1e180])
@pytest.mark.parametrize("size", [3, 9])
def test_extreme_numbers_are_decomposed(size: int, scale: float) -> None:
    a = matrices(size, size)
    symmetric = a + a.T
    for function, given in (
        (pb.linalg.eigvalsh, symmetric), (lambda a: pb.linalg.eigh(a)[0], symmetric),
        (lambda a: pb.linalg.svd(a).S, a), (lambda a: pb.linalg.qr(a)[1], a),
    ):  # fmt: skip
        np.testing.assert_allclose(pb.compile(function)(scale * given) / scale, function(given), atol=1e-12)


def test_singular_vectors_of_a_singular_matrix_are_orthonormal() -> None:
    for a in (np.outer(np.arange(5.0), np.ones(3)), np.zeros((4, 2)), np.eye(3)):
        planes = np.zeros((3, *a.shape))
        function_for("svd")(a, planes)
        left, values, right = planes[0], planes[1, 0], planes[2, : a.shape[1]]
        np.testing.assert_allclose(left * values @ right.T, a, atol=1e-12)
        np.testing.assert_allclose(left.T @ left, np.eye(a.shape[1]), atol=1e-12)


def test_one_code_for_all_sizes() -> None:
    function = pb.compile(pb.linalg.eigvalsh)
    for size in (9, 10, 12):
        a = matrices(size, size)
        np.testing.assert_allclose(function(a + a.T), np.linalg.eigvalsh(a + a.T), atol=1e-12)
    assert function.cache_info().compilations + function.cache_info().disk_hits <= 1


def test_equal_eigenvalues_have_gradients() -> None:
    a = pb.eye(3, dtype=pb.float64).requires_grad_()
    (slope,) = pb.autograd.grad(pb.linalg.eigvalsh(a).sum() + pb.linalg.svdvals(a).sum(), a)
    np.testing.assert_allclose(slope, 2 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_pushed_forward_is_what_is_pulled_back(name: str) -> None:
    arrays = tuple(pb.tensor(one) for one in (matrices(2, 4, 4) + 2 * np.eye(4), matrices(2, 4, 3)))
    directions = tuple(pb.tensor(one) for one in (matrices(2, 4, 4, seed=1), matrices(2, 4, 3, seed=1)))
    value, pushed = pb.jvp(lambda a, b: FUNCTIONS[name](pb, a, b), arrays, directions)
    pulled = pb.vjp(lambda a, b: FUNCTIONS[name](pb, a, b), *arrays)[1](pb.ones_like(value))
    expected = sum((one * direction).sum().item() for one, direction in zip(pulled, directions))
    np.testing.assert_allclose(pushed.sum().item(), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.drawn(6)
def test_ranks_and_reports() -> None:
    low = pb.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert pb.linalg.matrix_rank(low) == 1 and pb.linalg.matrix_rank(low, hermitian=True) == 1
    assert pb.linalg.matrix_rank(pb.zeros(0, 3)) == 0
    cut = pb.tensor([0.5], dtype=pb.float32)
    for rank in (pb.linalg.matrix_rank, pb.compile(lambda a, tol: pb.linalg.matrix_rank(a, tol=tol))):
        assert rank(low.double(), tol=cut).tolist() == [1]
    factor, info = pb.linalg.cholesky_ex(pb.tensor([[[4.0]], [[-1.0]]]))
    assert info.tolist() == [0, 1] and factor[0] == 2 and bool(factor[1].isnan())
    assert pb.linalg.lu_factor_ex(low).info == 2
    with pytest.raises(pb.linalg.LinAlgError):
        pb.linalg.cholesky_ex(pb.tensor([[-1.0]]), check_errors=True)


def test_what_lstsq_returns_of_complex_matrices() -> None:
    a, b = (pb.tensor(matrices(4, 2, seed=one) + 1j * matrices(4, 2, seed=one + 2)) for one in range(2))
    for driver, rank in ((None, 2), ("gelsd", 2), ("gels", None)):
        found = pb.linalg.lstsq(a, b, driver=driver)
        wanted, residuals, _, values = np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)
        np.testing.assert_allclose(found.solution.numpy(), wanted)
        assert found.residuals.dtype == found.singular_values.dtype == pb.float64
        assert found.rank.tolist() == ([] if rank is None else rank)
        if driver == "gelsd":
            np.testing.assert_allclose(found.residuals.numpy(), residuals)
            np.testing.assert_allclose(found.singular_values.numpy(), values)
    assert "least_squares" in pb.compile(lambda a, b: pb.linalg.lstsq(a, b).solution).source(a, b)


def test_what_lstsq_returns() -> None:
    a, b = matrices(5, 2), matrices(5)
    found = pb.linalg.lstsq(pb.tensor(a), pb.tensor(b[:, None]), driver="gelsd")
    solution, residuals, rank, values = np.linalg.lstsq(a, b[:, None], rcond=None)
    for one, other in zip(found, (solution, residuals, rank, values)):
        np.testing.assert_allclose(one, other)


def test_what_matrices_without_elements_give_has_gradients() -> None:
    tall, number = pb.zeros(3, 0, requires_grad=True), pb.zeros(3, 2, requires_grad=True)
    left = pb.linalg.svd(tall).U
    product = pb.linalg.householder_product(number, pb.zeros(0))
    for found in (left, product):
        assert found.tolist() == pb.eye(*found.shape).tolist()
    (left.sum() + product.sum()).backward()
    assert tall.grad is not None and tall.grad.shape == (3, 0)
    assert number.grad is not None and not number.grad.any()
    empty = pb.linalg.lu_factor(pb.zeros(2, 0, 0))
    assert pb.linalg.lu_solve(*empty, pb.zeros(2, 0, 4)).shape == (2, 0, 4)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5), (2, 2, 3, 3), (1, 1), (0, 3), (3, 0)])
def test_both_triangles_compiled(shape: tuple[int, ...], is_complex: bool) -> None:
    """Of matrices of all shapes; of square ones solutions by them too."""

    def factors(a: Any) -> Any:
        both, pivots = pb.linalg.lu_factor(a)
        return (*pb.linalg.lu(a), both, pivots, *pb.lu_unpack(both, pivots))

    def loss(a: Any) -> Any:
        found = sum((pb.real(one * one * one)).sum() for one in pb.linalg.lu(a)[1:])
        if shape[-1] == shape[-2]:
            found = found + abs(pb.linalg.lu_solve(*pb.linalg.lu_factor(a), a[..., :1], adjoint=True)).sum()
        return found

    a = pb.tensor(matrices(*shape) + (1j * matrices(*shape, seed=1) if is_complex else 0))
    with machine_code((shape, is_complex), one_in=3):
        for one, other in zip(pb.compile(factors)(a), factors(a), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-12)
        if a.numel():
            found, wanted = (pb.grad(one)(a).numpy() for one in (pb.compile(loss), loss))
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9 * abs(wanted).max())


def test_shapes_of_whole_matrices_and_of_empty_batches() -> None:
    a = pb.tensor(matrices(2, 5, 3))
    u, s, vh = pb.linalg.svd(a)
    assert (u.shape, s.shape, vh.shape) == ((2, 5, 5), (2, 3), (2, 3, 3))
    np.testing.assert_allclose(u @ u.mT, np.broadcast_to(np.eye(5), (2, 5, 5)), atol=1e-12)
    q, r = pb.linalg.qr(a, mode="complete")
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
    assert pb.linalg.qr(a, mode="r").Q.shape == (0,)
    empty = pb.zeros(0, 3, 3)
    for function in (
        pb.linalg.eigvalsh,
        pb.linalg.svdvals,
        pb.linalg.pinv,
        pb.matrix_exp,
        pb.linalg.lu_factor,
    ):
        found = function(empty)
        assert (found if isinstance(found, pb.Tensor) else found[0]).shape[0] == 0


def test_a_part_of_a_decomposition_is_one_node_of_the_tape() -> None:
    x = pb.tensor(matrices(3, 3), requires_grad=True)
    for name, parts in (("Eigh", pb.linalg.eigh(x)), ("Qr", pb.linalg.qr(x)), ("Svd", pb.linalg.svd(x)[:2])):
        for one in parts:
            (whole, _), *_ = one.grad_fn.next_functions
            assert one.grad_fn.name() == whole.name() == f"Linalg{name}Backward0"
            assert whole.next_functions[0][0].variable is x


def test_reflections_are_multiplied_by_products_of_matrices() -> None:
    a, b = (pb.tensor(matrices(20, 20, seed=seed)) for seed in (0, 1))
    source = pb.compile(lambda a, b: pb.ormqr(a, b[0], b)).source(a, b)
    assert source.split("backward of")[0].count("gemm(") == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_factors_as_lapack_leaves_them(dtype: Any) -> None:
    a = (matrices(2, 4, 4) + 1j * matrices(2, 4, 4, seed=1)).astype(dtype)
    b = (matrices(2, 4, 3, seed=2) + 1j * matrices(2, 4, 3, seed=3)).astype(dtype)
    tolerance = 1e-3 if np.finfo(dtype).precision < 10 else 1e-10
    same = partial(np.testing.assert_allclose, rtol=tolerance, atol=tolerance)
    factors = pb.geqrf(pb.tensor(b))
    q = pb.linalg.householder_product(factors.a, factors.tau).numpy()
    same(q @ np.triu(factors.a.numpy()[:, :3]), b)
    for hermitian in (False, True):
        whole = a + (np.conj(a) if hermitian else a).swapaxes(-1, -2)
        found = pb.linalg.ldl_factor(pb.tensor(np.tril(whole)), hermitian=hermitian)
        assert found.pivots.dtype == pb.int32 and not np.triu(found.LD.numpy(), 1).any()
        same(whole @ pb.linalg.ldl_solve(*found, pb.tensor(b), hermitian=hermitian).numpy(), b)
    assert pb.linalg.ldl_factor_ex(pb.zeros(2, 2)).info.item() == 1
    with pytest.raises(LinearAlgebraError, match="D is singular"):
        pb.linalg.ldl_factor(pb.zeros(2, 2))
    with pytest.raises(GradientError, match="has no derivative; use linalg.qr"):
        pb.geqrf(pb.tensor(b, requires_grad=True))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 4), (0, 3, 3), (3, 0)])
def test_factors_as_lapack_leaves_them_compile(shape: tuple[int, ...], dtype: Any) -> None:
    """As PyTorch's, by calls of Python, with the same reports and errors."""
    torch = pytest.importorskip("torch")

    def factors(lib: Any, a: Any) -> tuple[Any, ...]:
        whole = a.mH @ a + lib.eye(a.shape[-1])
        found = lib.linalg.ldl_factor_ex(whole, hermitian=True)
        return (*lib.geqrf(a), *found, lib.linalg.ldl_solve(*found[:2], whole[..., :2], hermitian=True))

    a = (matrices(*shape) + 1j * matrices(*shape, seed=1)).astype(dtype)
    wanted = factors(torch, torch.tensor(a))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*runs uncompiled")
        compiled = pb.compile(lambda a: factors(pb, a))(pb.tensor(a))
    for one, other, another in zip(factors(pb, pb.tensor(a)), compiled, wanted, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one, another, rtol=1e-9, atol=1e-9)


def test_factors_as_lapack_leaves_them_refuse_compiled_too() -> None:
    with pytest.raises(LinearAlgebraError, match="D is singular: its diagonal has 0 at 1"):
        pb.compile(pb.linalg.ldl_factor)(pb.zeros(2, 2))
    for function in (lambda a: pb.geqrf(a).a.sum(), lambda a: pb.linalg.ldl_factor(a).LD.sum()):
        with pytest.raises(GradientError, match="has no derivative; use linalg"):
            pb.compile(pb.grad(function))(np.eye(2))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 5, 5)])
def test_matrices_of_low_rank(shape: tuple[int, ...]) -> None:
    def of_rank_two(x: Any) -> Any:
        return x[..., :2] @ x[..., :2].mH @ x

    for a in (matrices(*shape), matrices(*shape) + 1j * matrices(*shape, seed=5)):
        low = of_rank_two(pb.tensor(a))
        u, s, v = pb.svd_lowrank(low, q=2)
        np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mH).numpy(), low.numpy(), atol=1e-9)
        centred = low - low.mean(-2, keepdim=True)
        u, s, v = pb.pca_lowrank(low, q=3)
        np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mH).numpy(), centred.numpy(), atol=1e-9)

        found = pb.grad(lambda x: pb.svd_lowrank(of_rank_two(x), q=2).S.sum())(a)
        wanted = pb.grad(lambda x: pb.linalg.svdvals(of_rank_two(x))[..., :2].sum())(a)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_what_there_is_not() -> None:
    a = pb.tensor(matrices(4, 3), requires_grad=True)
    with pytest.raises(GradientError, match="not differentiable when mode='complete'"):
        pb.linalg.qr(a, mode="complete")
    with pytest.raises(pb.errors.ShapeError, match="square matrices"):
        pb.linalg.eigh(a)


@pytest.mark.drawn(4)
def test_the_pseudo_inverse_of_a_symmetric_matrix_is_compiled() -> None:
    a = matrices(3, 3)
    found = pb.compile(lambda a: pb.linalg.pinv(a, hermitian=True))(a)
    np.testing.assert_allclose(found, np.linalg.pinv(np.tril(a) + np.tril(a, -1).T))


@pytest.mark.parametrize("dtype", [pb.float32, pb.float64, pb.complex64])
def test_eigenvalues_of_nothing_are_complex(dtype: Any) -> None:
    values, vectors = pb.linalg.eig(pb.zeros((2, 0, 0), dtype=dtype))
    expected = pb.complex128 if dtype == pb.float64 else pb.complex64
    assert values.shape == (2, 0) and vectors.shape == (2, 0, 0)
    assert values.dtype == vectors.dtype == pb.linalg.eigvals(pb.zeros((0, 0), dtype=dtype)).dtype == expected


def test_what_is_not_to_be_unpacked_is_empty() -> None:
    both, pivots = pb.linalg.lu_factor(pb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    shapes = [
        [tuple(one.shape) for one in pb.lu_unpack(both, pivots, unpack_data, not unpack_data)]
        for unpack_data in (True, False)
    ]
    assert shapes == [[(0,), (2, 2), (2, 2)], [(2, 2), (0,), (0,)]]


@pytest.mark.parametrize("values", [(3.0, 1.0, 0.3), (2.0, 2.0, 0.1, 0.1), (1.0, 0.2, 0.0)])
def test_singular_values_that_are_left_out_turn_vectors_of_those_that_are_not(values: Any) -> None:
    """To second order, tall and wide, where some are equal; real and complex."""
    size = len(values)
    left, right, along, weights, sides = (matrices(5, size, seed=seed) for seed in range(5))
    for imaginary in (0.0, 1j):
        left, right, along = (one + imaginary * one[::-1] for one in (left, right, along))
        a = np.linalg.qr(left)[0] * values @ np.linalg.qr(right[:size])[0]
        for function in (
            lambda a: (np.linalg.pinv(a.T, rcond=0.4) * weights).sum().real,
            lambda a: (np.linalg.lstsq(a, sides, rcond=0.4)[0] * weights[:size]).sum().real,
        ):

            def slope(a: Any) -> Any:
                return (pb.grad(function)(a) * along.conj()).sum().real  # noqa: B023

            for one, found in ((function, slope(a)), (slope, np.vdot(pb.grad(slope)(a), along).real)):
                wanted = (one(a + 1e-6 * along) - one(a - 1e-6 * along)) / 2e-6
                np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
