"""Complex values inside of compiled functions: kernels compute their parts, with the values of eager code."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from extent import drawn

import pullback as pb
from pullback.tracer.errors import GradientError

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

RNG = np.random.default_rng(5)
X = RNG.uniform(0.2, 1.5, (3, 4))
TABLE = RNG.standard_normal((4, 4)) + 1j * RNG.standard_normal((4, 4))


def wave(x: Any) -> Any:
    return np.exp(1j * x) * (x + 0.5j) - TABLE[:3]


INSIDE: dict[str, Callable[[Any], Any]] = {
    "products and quotients": lambda x: (np.abs(wave(x) / (2 + 1j * x)) ** 2).sum(),
    "sizes and angles": lambda x: (np.abs(wave(x)) * np.angle(wave(x))).sum(),
    "sizes that are zero": lambda x: np.abs((x - x) * 1j + (x > 1) * wave(x)).sum(),
    "parts": lambda x: (wave(x).real ** 2 - wave(x).imag).sum() + np.conj(wave(x)).imag.sum(),
    "roots": lambda x: np.sqrt(wave(x)).real.sum() + (np.sqrt(wave(x)).imag ** 3).sum(),
    "logarithms": lambda x: np.log(wave(x)).imag.sum() + (np.log2(wave(x)) * np.log10(wave(x))).real.sum(),
    "circular functions": lambda x: np.abs(np.sin(wave(x)) + np.cos(wave(x)) * 1j).sum(),
    "hyperbolic functions": lambda x: np.abs(np.sinh(wave(x)) - np.cosh(wave(x)) + np.tanh(wave(x))).sum(),
    "powers": lambda x: (wave(x) ** 3).imag.sum() + (wave(x) ** -2).real.sum() + (wave(x) ** 0.7).real.sum(),
    "reciprocals": lambda x: np.reciprocal(wave(x)).real.sum() + (1 / wave(x)).imag.sum(),
    "sums and means": lambda x: np.abs(wave(x).sum(0)).sum() + np.abs(np.mean(wave(x))),
    "running sums": lambda x: np.abs(wave(x).cumsum(1)).sum(),
    "norms": lambda x: np.linalg.norm(wave(x)) + np.linalg.norm(wave(x), axis=1).sum(),
    "spreads": lambda x: np.var(wave(x)) + np.var(wave(x), axis=0).sum(),
    "contractions": lambda x: np.abs(wave(x) @ TABLE @ wave(x).conj().T).sum() + np.abs(x @ TABLE).sum(),
    "inner products": lambda x: np.vdot(wave(x), TABLE[:3]).real + np.abs(np.vdot(1j * x, x)),
    "sums of products": lambda x: np.abs(np.einsum("ij,kj->", 1j * x, TABLE)),
    "movement": lambda x: np.abs(np.roll(wave(x).T, 1, 0)[::2].reshape(-1) * np.arange(6)).sum(),
    "joining": lambda x: np.abs(np.concatenate([wave(x), TABLE]) @ TABLE).sum(),
    "choices": lambda x: np.abs(np.where(x > 0.7, wave(x), 2j)).sum() + (wave(x) == wave(x)).sum(),
    "gathers": lambda x: np.abs(wave(x)[np.array([0, 2, 2])] * 1j).sum(),
    "writes": lambda x: filled(x),
    "integers and reals": lambda x: np.abs(np.arange(4) * 1j * x + TABLE[0].real).sum(),
    "a loop": lambda x: evolved(x),
}  # fmt: skip


def filled(x: Any) -> Any:
    waves = np.zeros((3, 4), complex)
    waves[0] = x[0] * 1j
    waves[1:, 2] = np.exp(1j * x[1:, 2])
    return (np.abs(waves + 1) ** 2).sum()


def evolved(x: Any) -> Any:
    state = x[0] + 0j
    for _ in range(30):
        state = state * np.exp(-0.1j * (np.abs(state) ** 2 + x[1]))
        state = state + 0.01j * (np.roll(state, 1) - 2 * state + np.roll(state, -1))
    return (np.abs(state) ** 2 * np.arange(4)).sum()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", INSIDE)
def test_values_and_gradients_are_those_of_eager_code(name: str) -> None:
    function = INSIDE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = pb.compile(pb.value_and_grad(function))(X)
        np.testing.assert_allclose(pb.compile(function)(X), function(X), rtol=1e-12)
    wanted = pb.value_and_grad(function)(X)
    np.testing.assert_allclose(value, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(slope, wanted[1], rtol=1e-9, atol=1e-11)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", ["products and quotients", "roots", "contractions"])
def test_second_derivatives(name: str) -> None:
    function = INSIDE[name]
    found = pb.compile(pb.hessian(function))(X)
    np.testing.assert_allclose(found, pb.hessian(function)(X), rtol=1e-8, atol=1e-9)


def test_roots_on_the_cut() -> None:
    """The sign of zero decides, as in NumPy."""
    re, im = np.array([-4.0, -4.0, 4.0, 0.0, 0.0, -0.0]), np.array([0.0, -0.0, -0.0, 0.0, 9.0, -9.0])

    def parts(a: Any, b: Any) -> Any:
        root = pb.sqrt(pb.complex(a, b))
        return root.real, root.imag

    found = pb.compile(parts)(pb.tensor(re), pb.tensor(im))
    wanted = np.sqrt([complex(*one) for one in zip(re, im)])
    np.testing.assert_allclose(found[0].numpy(), wanted.real, atol=1e-15)
    np.testing.assert_allclose(found[1].numpy(), wanted.imag, atol=1e-15)


def test_the_source_computes_parts() -> None:
    @pb.compile
    def energy(x: Any) -> Any:
        z = np.exp(1j * x) * x
        return (np.abs(z) ** 2).sum()

    source = energy.source(np.ones(5))
    assert "hypot" not in source and "cos(x[i])" in source and "sin(x[i])" in source


MATRIX = TABLE[:3, :3] + 2 * np.eye(3)
MATRICES: dict[str, Callable[[Any], Any]] = {
    "solutions": lambda a: np.abs(np.linalg.solve(a, a.conj().T[:, :2])),
    "inverses": lambda a: np.abs(np.linalg.inv(a)),
    "determinants": lambda a: [np.linalg.det(a).imag, np.linalg.slogdet(a)[0].real, np.linalg.slogdet(a)[1]],
    "triangles": lambda a: np.abs(pb.linalg.solve_triangular(a, a @ a, upper=True)),
    "Cholesky's factors": lambda a: np.linalg.cholesky(a @ a.conj().T + np.eye(3)).imag,
    "Hermitian matrices": lambda a: [
        np.linalg.eigvalsh(a + a.conj().T) ** 3, np.abs(np.linalg.eigh(a + a.conj().T)[1]) ** 4
    ],
    "eigenvalues": lambda a: [np.abs(np.linalg.eigvals(a)), np.abs(np.linalg.eig(a)[1]) ** 4],
    "eigenvalues of real matrices": lambda a: np.abs(np.linalg.eigvals(a.real)) ** 3,
    "singular values": lambda a: [
        np.linalg.svd(a, compute_uv=False) ** 3, np.abs(np.linalg.svd(a, full_matrices=False)[0]) ** 4
    ],
    "tall matrices": lambda a: [np.abs(one) ** 3 for one in np.linalg.qr(a[:, :2])],
    "pseudo-inverses": lambda a: np.abs(np.linalg.pinv(a[:2])),
    "powers": lambda a: np.abs(np.linalg.matrix_power(a, -2)),
    "exponentials": lambda a: np.abs(pb.linalg.matrix_exp(a / 4)),
    "products": lambda a: [np.abs(np.prod(a, axis=0)), np.abs(np.cumprod(a, axis=1))],
    "products with zeros": lambda a: np.abs(np.prod(a * np.array([0.0, 1.0, 2.0]), axis=1) + 1),
    "deviations": lambda a: [np.std(a), np.std(a, axis=0, ddof=1)],
    "sums of exponentials": lambda a: np.abs(scipy.special.logsumexp(a, axis=1)),
    "logarithms of sums": lambda a: np.abs(pb.logaddexp(a, a.T)),
}  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", drawn(MATRICES, one_in=3))
def test_what_library_functions_compute(name: str) -> None:
    """Values, gradients, and derivatives of these."""

    def total(a: Any) -> Any:
        found = MATRICES[name](a)
        return sum((one * (1.0 + np.arange(one.size)).reshape(one.shape)).sum() for one in _listed(found))

    def of_gradient(a: Any) -> Any:
        return (np.abs(pb.grad(total)(a)) ** 2 * np.arange(9.0).reshape(3, 3)).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [pb.compile(one)(MATRIX) for one in (total, pb.grad(total), pb.grad(of_gradient))]
    wanted = [one(MATRIX) for one in (total, pb.grad(total), pb.grad(of_gradient))]
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9 * np.abs(other).max())


def _listed(found: Any) -> Any:
    return found if isinstance(found, list) else [found]


@pytest.mark.drawn(3)
def test_batches_of_matrices() -> None:
    batch = np.stack([MATRIX, MATRIX.T * 1j, 2 * MATRIX])

    def function(a: Any) -> Any:
        symmetric = a + np.conj(np.swapaxes(a, 1, 2))
        return np.linalg.solve(a, a @ a), np.linalg.eigh(symmetric)[0], np.linalg.det(a)

    for found, wanted in zip(pb.compile(function)(batch), function(batch)):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "vectors"),
    [
        ("eigh", lambda a: np.linalg.eigh(a + a.conj().T)[1]), ("eig", lambda a: np.linalg.eig(a)[1]),
        ("svd", lambda a: np.linalg.svd(a, full_matrices=False)[0]),
    ],
)  # fmt: skip
def test_a_gradient_that_depends_on_the_phase_of_vectors_is_refused(name: str, vectors: Any) -> None:
    slope = pb.compile(pb.grad(lambda a: (vectors(a).real * np.arange(9.0).reshape(3, 3)).sum()))
    with pytest.raises(GradientError, match=rf"linalg\.{name}: complex vectors are given up to a factor"):
        slope(MATRIX)


def size(z: Any) -> Any:
    return (np.abs(z**2 + np.exp(1j * z)) ** 2).sum()


def turned(z: Any) -> Any:
    return z**2 * np.exp(z)


def pulled(x: Any) -> list[Any]:
    value, pull = pb.vjp(turned, x + 1j * x)
    return [np.abs(one) for one in pull(value * (1 - 1j))]


DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "of sizes": lambda x: np.abs(pb.grad(size)(x * np.exp(1j * x))).sum(),
    "of derivatives": pb.grad(lambda x: np.abs(pb.grad(size)(x * np.exp(1j * x))).sum()),
    "by values whose imaginary part is zero": lambda x: np.abs(pb.grad(size)(x + 0j)),
    "by complex values and real ones": lambda x: [
        np.abs(one) for one in pb.grad(lambda z, y: (np.abs(z) * y).sum(), (0, 1))(x * 1j + x, x)
    ],
    "along directions": lambda x: [
        np.abs(one) for one in pb.jvp(turned, (x + 1j * x,), (x * (2 - 1j),))
    ],
    "of real values along complex directions": lambda x: pb.jvp(size, (x + 1j * x,), (x * (2 - 1j),)),
    "along real directions": lambda x: [np.abs(one) for one in pb.jvp(lambda y: np.exp(1j * y), (x,), (x,))],
    "of complex values": pulled,
    "of complex values, differentiated": pb.grad(lambda x: pulled(x)[0].sum()),
    "that decide": lambda x: x if np.abs(pb.grad(size)(x * 1j + x)).sum() > 1 else 2 * x,
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_in_a_trace(name: str) -> None:
    function = DERIVATIVES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pb.compile(function)(X[0])
    np.testing.assert_allclose(found, function(X[0]), rtol=1e-9)


def on_the_tape(x: Any, create_graph: bool) -> Any:
    z = pb.complex(x, x * x)
    (slope,) = pb.autograd.grad((z.abs() ** 2 * z.real).sum(), z, create_graph=create_graph)
    return (slope.abs() ** 2).sum()


def by_its_parts(x: Any) -> Any:
    z = pb.complex(x, x * x)
    part = z.real
    return pb.autograd.grad((z.abs() * part).sum(), part)[0]


def from_a_leaf(x: Any) -> Any:
    leaf = x.detach().clone().requires_grad_()
    z = pb.complex(leaf, leaf * leaf)
    (z * z).abs().sum().backward()
    return leaf.grad


def without_history(x: Any) -> Any:
    z = x * 1j
    with pb.no_grad():
        other = z * z + 1
    return pb.autograd.grad((other * z).abs().sum(), x)[0]


TAPED: dict[str, Callable[[Any], Any]] = {
    "of a value whose parts depend on each other": lambda x: on_the_tape(x, False),
    "of a derivative": lambda x: pb.autograd.grad(on_the_tape(x, True), x)[0],
    "by a part alone": by_its_parts,
    "of a leaf": from_a_leaf,
    "without what is not recorded": without_history,
}


@pytest.mark.parametrize("name", TAPED)
def test_derivatives_on_the_tape_of_a_trace(name: str) -> None:
    x = pb.tensor(X[0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pb.compile(TAPED[name])(x)
    np.testing.assert_allclose(found.detach().numpy(), TAPED[name](x).detach().numpy(), rtol=1e-9)


def test_parts_that_are_arguments_keep_their_names() -> None:
    def function(x: Any, y: Any) -> Any:
        z = pb.complex(x, y)
        along = z.real
        return (along * z.abs()).sum()

    x, y = pb.tensor(X[0]), pb.tensor(X[1])
    np.testing.assert_allclose(pb.compile(function)(x, y).item(), function(x, y).item())


def transposed(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


def adjoint(a: Any) -> Any:
    return np.conj(transposed(a))


PRODUCTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "plain": ("multiply_pairs(a, b,", lambda a, b: a @ b),
    "adjoint on the left": ("multiply_adjoint(a, b,", lambda a, b: adjoint(a) @ b),
    "adjoint on the right": ("multiply_by_adjoint(a, b,", lambda a, b: a @ np.conj(transposed(b))),
    "two adjoints": ("multiply_adjoints(a, b,", lambda a, b: transposed(np.conj(a)) @ adjoint(b)),
    "adjoint of the opposite": ("multiply_", lambda a, b: adjoint(-a) @ (1j * b)),
    "adjoint twice": ("multiply_pairs(a, b,", lambda a, b: adjoint(adjoint(a)) @ b),
    "transposed": ("multiply_pairs(", lambda a, b: transposed(a) @ b),
    "conjugated": ("multiply_", lambda a, b: np.conj(a) @ b),
    "transposed result": ("multiply_pairs(a, b,", lambda a, b: np.einsum("...ij,...jk->...ki", a, b)),
    "a real side": ("gemm(", lambda a, b: a @ b.real),
}


@pytest.mark.parametrize("shape", [(20, 20), (3, 12, 12)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_complex_matrices_are_one_call_of_blas(name: str, shape: tuple[int, ...]) -> None:
    """Adjoints without a copy; of each product the derivatives are such products."""
    rng, (call, function) = np.random.default_rng(1), PRODUCTS[name]
    a, b = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape) for _ in range(2))
    compiled = pb.compile(function)
    np.testing.assert_allclose(compiled(a, b), function(a, b), rtol=1e-10, atol=1e-12)
    single = [one.astype(np.complex64) for one in (a, b)]
    np.testing.assert_allclose(compiled(*single), function(*single), rtol=1e-3, atol=1e-4)
    assert call in compiled.source(a, b).replace("[i]", "")

    def loss(a: Any, b: Any) -> Any:
        return (np.abs(function(a, b)) ** 2).sum()

    for found, wanted in zip(pb.grad(pb.compile(loss), (0, 1))(a, b), pb.grad(loss, (0, 1))(a, b)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.drawn(4)
def test_products_of_complex_matrices_of_several_extents() -> None:
    rng, compiled = np.random.default_rng(2), pb.compile(lambda a, b: a @ adjoint(b))
    extents = [(9, 30, 17), (30, 9, 8), (16, 16, 1), (0, 16, 16), (16, 0, 16), (16, 16, 0)]
    for rows, summed, columns in extents:
        a, b = (
            rng.standard_normal((2, one, summed)) + 1j * rng.standard_normal((2, one, summed))
            for one in (rows, columns)
        )
        np.testing.assert_allclose(compiled(a, b), a @ adjoint(b), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(compiled(a[0], b[0, ::-1]), a[0] @ adjoint(b[0, ::-1]), atol=1e-12)


EQUATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "solve": ("solve_eliminated_pairs(", lambda a, b: pb.linalg.solve(a, b)),
    "of an adjoint": ("solve_eliminated_adjoint(", lambda a, b: pb.linalg.solve(a.mH, b)),
    "inverse": ("eliminate_pairs(", lambda a, b: pb.linalg.inv(a) * b[..., :1]),
    "lower": ("solve_lower_pairs(", lambda a, b: pb.linalg.solve_triangular(a, b, upper=False)),
    "upper": ("solve_upper_pairs(", lambda a, b: pb.linalg.solve_triangular(a, b, upper=True)),
    "adjoint of lower": (
        "solve_adjoint_of_lower(", lambda a, b: pb.linalg.solve_triangular(a.mH, b, upper=True)
    ),
    "adjoint of upper": (
        "solve_adjoint_of_upper(", lambda a, b: pb.linalg.solve_triangular(a.mH, b, upper=False)
    ),
    "conjugate": ("solve_adjoint", lambda a, b: pb.linalg.solve_triangular(a.conj(), b, upper=False)),
    "transposed": ("solve_lower_pairs(", lambda a, b: pb.linalg.solve_triangular(a.mT, b, upper=False)),
    "lower from the right": (
        "solve_lower_pairs_from_right(",
        lambda a, b: pb.linalg.solve_triangular(a, b.mT, upper=False, left=False),
    ),
    "upper from the right": (
        "solve_adjoint_of_lower_from_right(",
        lambda a, b: pb.linalg.solve_triangular(a.mH, b.mT, upper=True, left=False),
    ),
    "determinant": ("cofactors_of_pairs(", lambda a, b: pb.linalg.det(a) / 2.0 ** a.shape[-1]),
    "logarithm of a determinant": ("determine_pairs(", lambda a, b: pb.linalg.slogdet(a)[1]),
    "Cholesky": ("pull_back_hermitian(", lambda a, b: pb.linalg.cholesky(a @ a.mH + pb.eye(a.shape[-1]))),
    "a real matrix": ("eliminate(", lambda a, b: pb.linalg.solve(a.real, b)),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 3, 3), (70, 70), (0, 0), (0, 4, 4)])
@pytest.mark.parametrize("name", EQUATIONS)
def test_equations_of_complex_matrices_take_no_call_of_python(name: str, shape: tuple[int, ...]) -> None:
    """In blocks, too; with the derivatives of eager code."""
    rng, (call, function) = np.random.default_rng(3), EQUATIONS[name]
    a = 0.1 * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) + 2 * np.eye(shape[-1])
    b = rng.standard_normal((*shape[:-1], 3)) + 1j * rng.standard_normal((*shape[:-1], 3))

    def loss(a: Any, b: Any) -> Any:
        return (abs(function(a, b)) ** 2).sum()

    compiled = pb.compile(pb.value_and_grad(loss, (0, 1)))
    value, slopes = compiled(pb.tensor(a), pb.tensor(b))
    wanted, directions = pb.value_and_grad(loss, (0, 1))(pb.tensor(a), pb.tensor(b))
    np.testing.assert_allclose(value, wanted, rtol=1e-9)
    for found, other in zip(slopes, directions):
        np.testing.assert_allclose(found, other, rtol=1e-8, atol=1e-9)
    source = compiled.source(pb.tensor(a), pb.tensor(b))
    assert not a.size or (call in source and "ComplexCall" not in source)


@pytest.mark.drawn(3)
def test_complex_matrices_without_a_result_are_refused() -> None:
    for function, text in ((pb.linalg.inv, "it is singular"), (pb.linalg.cholesky, "not positive definite")):
        for matrix in (np.zeros((2, 2), complex), np.array([[[1j, 1], [1, -1j]]] * 2)):
            with pytest.raises(pb.linalg.LinAlgError, match=text):
                pb.compile(lambda a, function=function: function(a))(pb.tensor(matrix))


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "product",
    [
        np.prod,
        np.cumprod,
        lambda z: np.prod(z, axis=(0, 2), keepdims=True),
        lambda z: np.prod(z, axis=1) + np.cumprod(z, axis=1)[:, 0],
    ],
)
def test_products_are_loops_of_code(product: Any) -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((3, 4, 2)) + 1j * rng.standard_normal((3, 4, 2))
    z[0, 0, 0] = 0

    def loss(z: Any) -> Any:
        return (np.abs(product(z) * (1 + 2j) + 1) ** 2).sum()

    with np.errstate(all="ignore"):
        for given in (z, z[:1], np.array([[[np.inf + 1j, 2.0]]])):
            np.testing.assert_allclose(pb.compile(product)(given), product(given), rtol=1e-12)
    gradient = pb.grad(loss)(z)
    for found in (pb.compile(pb.grad(loss))(z), pb.grad(pb.compile(loss))(z)):
        np.testing.assert_allclose(found, gradient, rtol=1e-10, atol=1e-11)
    assert pb.compile(product).explain(z, as_data=True).forward[0].host_calls == ()
