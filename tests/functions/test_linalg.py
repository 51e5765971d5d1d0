"""Linear equations, inverses, determinants and Cholesky's factor: as PyTorch's, and compiled as eager."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from derivatives import Function, first_and_second
from extent import machine_code
from uncompiled import run_uncompiled

import pullback as pb
from pullback.codegen.pipeline import build_forward
from pullback.errors import LinearAlgebraError, UnsupportedError
from pullback.runtime.functions.matrices.linalg import FACTORED_TWICE
from pullback.tracer.graph import Graph, make_input, make_node
from pullback.tracer.operator import OPERATORS
from pullback.tracer.ops import matrices as of_matrices
from pullback.tracer.ops.matrices import solve_triangular as solve_one_triangular
from pullback.tracer.spec import spec_of
from pullback.tracer.verify import verify

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 1), (0,))


def matrices(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def definite(x: Any) -> Any:
    """A symmetric positive definite matrix for each."""
    return x @ x.swapaxes(-1, -2) + 0.5 * np.eye(x.shape[-1])


FUNCTIONS: dict[str, Function] = {
    "solve": lambda lib, a, b: lib.linalg.solve(a, b),
    "solve from the right": lambda lib, a, b: lib.linalg.solve(a, b.mT, left=False),
    "solve for a vector": lambda lib, a, b: lib.linalg.solve(a, b[..., 0]),
    "inv": lambda lib, a, b: lib.linalg.inv(a) @ b,
    "det": lambda lib, a, b: lib.linalg.det(a),
    "slogdet": lambda lib, a, b: lib.linalg.slogdet(a)[1] * lib.linalg.slogdet(a)[0],
    "logdet": lambda lib, a, b: lib.logdet(a @ a.mT),
    "cholesky": lambda lib, a, b: lib.linalg.cholesky(a @ a.mT),
    "upper cholesky": lambda lib, a, b: lib.linalg.cholesky(a @ a.mT, upper=True),
    "cholesky_solve": lambda lib, a, b: lib.cholesky_solve(b, lib.linalg.cholesky(a @ a.mT)),
    "cholesky_inverse": lambda lib, a, b: lib.cholesky_inverse(lib.linalg.cholesky(a @ a.mT)),
    "lower": lambda lib, a, b: lib.linalg.solve_triangular(a, b, upper=False),
    "upper": lambda lib, a, b: lib.linalg.solve_triangular(a, b, upper=True, unitriangular=True),
    "power": lambda lib, a, b: lib.linalg.matrix_power(a, 3),
    "power of the inverse": lambda lib, a, b: lib.linalg.matrix_power(a, -2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    arrays = [matrices(2, 4, 4) + 2 * np.eye(4), matrices(2, 4, 3)]
    found, wanted = (first_and_second(lib, FUNCTIONS[name], arrays) for lib in (pb, torch))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_they_are_as_eager(name: str) -> None:
    arrays = [matrices(2, 4, 4) + 2 * np.eye(4), matrices(2, 4, 3)]
    arrays[0][0, :2] = arrays[0][0, 1::-1]  # rows have to be exchanged

    def loss(a: Any, b: Any) -> Any:
        return (FUNCTIONS[name](pb, a, b) ** 2).sum()

    expected = pb.value_and_grad(loss, (0, 1))(*arrays)
    ways = {
        "a pair": pb.value_and_grad(pb.compile(loss), (0, 1)),
        "one": pb.compile(pb.value_and_grad(loss, (0, 1))),
    }
    for way, function in ways.items():
        with machine_code(f"{name}, {way}"):
            value, gradients = function(*arrays)
        np.testing.assert_allclose(value, expected[0], rtol=1e-9)
        for one, other in zip(gradients, expected[1]):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        *((name, {}) for name in ("solve", "det", "logabsdet", "sign_of_det", "cholesky", "eliminated")),
        *((name, {}) for name in ("unit_like", "lower_half", "reciprocal_condition")),
        *(("symmetric", {"sign": sign}) for sign in (1.0, -1.0)),
        *(("triangle", {"lower": lower}) for lower in (True, False)),
        *(
            ("triangular_solve", {"lower": lower, "transposed": transposed, "right": right})
            for lower in (True, False)
            for transposed in (True, False)
            for right in (True, False)
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 35])
def test_generated_code_computes_what_lapack_does(
    name: str, attributes: dict[str, bool], batch: tuple[int, ...], size: int
) -> None:
    operator, a = OPERATORS[name], matrices(*batch, size, size) + (size > 3) * 5 * np.eye(size)
    sides = matrices(*batch, size, 20)
    sides = np.swapaxes(sides, -1, -2).copy() if attributes.get("right") else sides
    arrays = [definite(a) if name == "cholesky" else a, sides][: len(operator.operands)]
    inputs = tuple(make_input(spec_of(one), f"x_{place}") for place, one in enumerate(arrays))
    program = build_forward(verify(Graph("program", inputs, (make_node(operator, inputs, attributes),))))
    (found,) = run_uncompiled(program, arrays)
    np.testing.assert_allclose(found, operator.evaluate(*arrays, **attributes), rtol=1e-9, atol=1e-11)


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("size", "bands"), [(33, 33), (130, 130), (70, 2)])
def test_large_matrices_in_blocks(size: int, bands: int) -> None:
    """Of several blocks, of rows that are exchanged, and of what threads share beside the calls."""

    def loss(a: Any, b: Any) -> Any:
        factor = np.linalg.cholesky(a @ a.T + np.eye(size))
        inner = np.linalg.solve(factor.T, np.linalg.solve(factor, b))
        total = (inner * np.linalg.solve(a, b)).sum() + (np.linalg.solve(a.T, b) ** 2).sum()
        return total + np.sin(factor).sum()

    a, b = np.tril(np.triu(matrices(size, size), -bands), bands) / np.sqrt(bands), matrices(size, 2)
    wanted = pb.grad(loss, (0, 1))(a, b)
    compiled = pb.compile(pb.grad(loss, (0, 1)))
    for found, expected in zip(compiled(a, b), wanted):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    source = compiled.source()
    assert source.count("eliminate(") == 1  # for equations and gradients, of the matrix and its transposed
    assert "solve_lower(" in source  # with a factor of Cholesky's, whose gradient is one call as well
    assert "pull_back_cholesky(" in source


@pytest.mark.parametrize(
    "solved",
    [
        lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b),
        lambda a, b: scipy.linalg.cho_solve((np.linalg.cholesky(a), True), b),
        lambda a, b: (lambda f: np.linalg.solve(f.T, np.linalg.solve(f, b)))(np.linalg.cholesky(a)),
    ],
)
def test_equations_solved_with_both_triangles_of_a_factor_have_the_gradient_of_the_matrix(
    solved: Function,
) -> None:
    """It takes two more solutions and a product, where that of the factor takes four and three."""
    a, b = definite(matrices(40, 40)), matrices(40, 20)

    def loss(a: Any, b: Any) -> Any:
        return (solved((a + a.T) / 2, b) ** 2).sum()

    compiled = pb.value_and_grad(pb.compile(loss), (0, 1))
    value, slopes = compiled(a, b)
    wanted, others = pb.value_and_grad(loss, (0, 1))(a, b)
    np.testing.assert_allclose(value, wanted, rtol=1e-9)
    for found, other in zip(slopes, others):
        np.testing.assert_allclose(found, other, rtol=1e-7, atol=1e-9 * np.abs(other).max())
    source = compiled.source(a, b)
    assert source.count("solve_lower(") + source.count("solve_upper(") == 4 and source.count("gemm(") == 1
    second = pb.grad(lambda a, b: sum((one**2).sum() for one in pb.grad(loss, (0, 1))(a, b)), (0, 1))
    for found, other in zip(pb.compile(second)(a, b), second(a, b)):
        np.testing.assert_allclose(found, other, rtol=1e-6, atol=1e-8 * np.abs(other).max())


def test_a_singular_matrix_has_determinant_0() -> None:
    assert pb.compile(np.linalg.det)(np.zeros((4, 4))) == 0


def test_in_a_gaussian_process() -> None:
    """NumPy's names, in a function that is compiled, beside other things."""

    def likelihood(theta: Any, x: Any, y: Any) -> Any:
        distance = (x[:, None] - x[None]) ** 2
        kernel = np.exp(theta[0]) * np.exp(-distance / np.exp(theta[1])) + 0.1 * np.eye(len(x))
        factor = np.linalg.cholesky(kernel)
        return 0.5 * y @ np.linalg.solve(kernel, y) + np.log(np.diag(factor)).sum()

    theta, x, y = np.array([0.1, -0.3]), matrices(6), matrices(6, seed=1)
    steps = 1e-6 * np.eye(2)
    wanted = [(likelihood(theta + s, x, y) - likelihood(theta - s, x, y)) / 2e-6 for s in steps]
    for function in (likelihood, pb.compile(likelihood)):
        value, slope = pb.value_and_grad(function)(theta, x, y)
        assert value == pytest.approx(likelihood(theta, x, y))
        np.testing.assert_allclose(slope, wanted, rtol=1e-6)


def test_what_cannot_be_solved() -> None:
    with pytest.raises(pb.errors.ShapeError, match="must be batches of square matrices"):
        pb.linalg.inv(pb.ones(2, 3))
    with pytest.raises(pb.errors.ShapeError, match="Incompatible shapes of A and B"):
        pb.linalg.solve(pb.eye(2), pb.ones(3, 1))
    with pytest.raises(np.linalg.LinAlgError):
        pb.linalg.inv(pb.zeros(2, 2))


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile])
def test_a_triangle_with_a_zero_on_the_diagonal_has_a_solution_with_inf(transform: Any) -> None:
    a, b = np.array([[1.0, 0], [1, 0]]), np.array([[1.0], [2]])
    found = transform(lambda a, b: pb.linalg.solve_triangular(a, b, upper=False))(pb.tensor(a), pb.tensor(b))
    np.testing.assert_array_equal(found.numpy(), [[1], [np.inf]])


# --- matrices of which one triangle is read -----------------------------------------------------------------

WEIGHTS = np.random.default_rng(5).normal(size=(3, 3))
OF_ONE_TRIANGLE: dict[str, Any] = {
    "eigvalsh": lambda a: np.linalg.eigvalsh(a) @ WEIGHTS[0],
    "eigvalsh of U": lambda a: np.linalg.eigvalsh(a, UPLO="U") @ WEIGHTS[0],
    "eigh": lambda a: (np.linalg.eigh(a)[1] ** 2 * WEIGHTS).sum() + np.linalg.eigh(a)[0] @ WEIGHTS[0],
    "eigh of U": lambda a: (np.linalg.eigh(a, "U")[1] ** 2 * WEIGHTS).sum(),
    "cholesky": lambda a: (np.linalg.cholesky(a) * WEIGHTS).sum(),
    "cholesky, upper": lambda a: (np.linalg.cholesky(a, upper=True) * WEIGHTS).sum(),
    "pinv": lambda a: (np.linalg.pinv(a, hermitian=True) * WEIGHTS).sum(),
    "scipy eigh": lambda a: scipy.linalg.eigh(a, lower=False)[0] @ WEIGHTS[0],
    "scipy solve": lambda a: scipy.linalg.solve(a, WEIGHTS, assume_a="pos").sum(),
}


@pytest.mark.parametrize("name", OF_ONE_TRIANGLE)
def test_gradients_are_of_the_triangle_that_numpy_reads(name: str) -> None:
    function = OF_ONE_TRIANGLE[name]
    a = WEIGHTS @ WEIGHTS.T + np.diag([1.0, 3.0, 6.0])
    numeric = np.zeros((3, 3))
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        numeric[place] = (function(a + step) - function(a - step)) / 2e-6
    np.testing.assert_allclose(pb.grad(function)(a), numeric, atol=1e-7)
    skewed = a + np.triu(np.ones((3, 3)), 1)
    np.testing.assert_allclose(pb.value_and_grad(function)(skewed)[0], function(skewed), rtol=1e-12)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh"])
def test_gradients_in_loops_are_of_the_triangle_that_numpy_reads(name: str) -> None:
    """Before the last derivative is taken the mirror image stays."""

    def loss(a: Any) -> Any:
        x = a
        for _ in range(12):
            found = OF_ONE_TRIANGLE[name](x)
            x = 0.9 * x + 0.1 * np.sin(found) * WEIGHTS @ WEIGHTS.T
        return (np.sin(x) * WEIGHTS).sum()

    a = WEIGHTS @ WEIGHTS.T + np.diag([1.0, 3.0, 6.0])
    np.testing.assert_allclose(pb.compile(pb.grad(loss))(a), pb.grad(loss)(a), rtol=1e-9, atol=1e-12)


def test_of_one_triangle_no_mirror_image_is_made() -> None:
    for function in (np.linalg.eigvalsh, lambda a: np.linalg.eigh(a)[0]):
        source = pb.compile(lambda a, function=function: function(a)).source(np.eye(9))
        assert " if " not in source.partition("def ")[2].partition("if not eigen")[0]


def test_the_gradient_of_eigenvectors_is_symmetric_and_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    a = WEIGHTS @ WEIGHTS.T + np.diag([1.0, 3.0, 6.0])
    slopes = []
    for lib in (torch, pb):
        x = lib.tensor(a, requires_grad=True)
        values, vectors = lib.linalg.eigh(x)
        ((vectors**2 * lib.tensor(WEIGHTS)).sum() + (values**2).sum()).backward()
        slopes.append(x.grad.numpy())
    np.testing.assert_allclose(slopes[1], slopes[0], atol=1e-12)
    np.testing.assert_allclose(slopes[1], slopes[1].T, atol=1e-14)
    skewed = np.array([[4.0, 1], [2, 5]])
    upper = pb.linalg.cholesky(pb.tensor(skewed), upper=True).numpy()
    np.testing.assert_allclose(upper, torch.linalg.cholesky(torch.tensor(skewed), upper=True).numpy())


def test_what_solve_is_told_about_a_matrix_is_heeded_or_refused() -> None:
    with pytest.raises(UnsupportedError, match="assume_a='circulant'"):
        pb.grad(lambda a: scipy.linalg.solve(a, np.ones(2), assume_a="circulant").sum())(np.eye(2))


# --- matrices without a result ------------------------------------------------------------------------------

SINGULAR: dict[str, tuple[Any, str]] = {
    "inv": (np.linalg.inv, "linalg.solve"),
    "solve": (lambda a: np.linalg.solve(a, np.ones(2)), "linalg.solve"),
    "cholesky": (lambda a: np.linalg.cholesky(a - 0.1 * np.eye(2)), "linalg.cholesky"),
    "gradient of inv": (pb.grad(lambda a: np.linalg.inv(a).sum()), "linalg.solve"),
    "batch": (lambda a: np.linalg.inv(np.stack([np.eye(2), a])), "linalg.solve"),
    "vmap": (lambda a: pb.vmap(pb.linalg.inv)(a.reshape(1, 2, 2)), "linalg.solve"),
    "branch": (lambda a: pb.cond(a[0, 0] < 3, pb.linalg.inv, lambda a: 2 * a, a), "linalg.solve"),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_compiled_functions_raise_where_a_matrix_has_no_result(name: str) -> None:
    function, wanted = SINGULAR[name]
    compiled, good, bad = pb.compile(function), np.array([[2.0, 1], [1, 3]]), np.array([[1.0, 2], [2, 4]])
    expected = function(good)
    np.testing.assert_allclose(compiled(good), expected, rtol=1e-13)
    for one in (compiled, function):
        with pytest.raises(np.linalg.LinAlgError):
            one(bad)
    with pytest.raises(LinearAlgebraError, match=rf"{wanted}: .*(singular|definite)[^$]*test_linalg.py:\d+"):
        compiled(bad)
    np.testing.assert_allclose(compiled(good), expected, rtol=1e-13)


def test_a_branch_that_is_not_taken_may_be_without_result() -> None:
    function = pb.compile(lambda a: pb.cond(a[0, 0] < 0, pb.linalg.inv, lambda a: 2 * a, a))
    assert function(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]


def test_determinants_of_singular_matrices_compile() -> None:
    bad = np.array([[1.0, 2], [2, 4]])
    assert pb.compile(np.linalg.det)(bad) == 0
    assert pb.compile(lambda a: np.linalg.slogdet(a)[1])(bad) == -np.inf


@pytest.mark.parametrize("function", [
    lambda a: pb.linalg.slogdet(a)[1], lambda a: pb.linalg.lu(a)[2].sum(),
    lambda a: (pb.grad(pb.linalg.det)(a) ** 2).sum(),
])  # fmt: skip
def test_gradients_that_a_singular_matrix_has_not_raise(function: Any) -> None:
    """The value is there; the error of its gradient is pullback's, with the line that asks for it."""
    bad = pb.tensor([[1.0, 2], [2, 4]], requires_grad=True)
    value = function(bad)
    for find in (value.backward, lambda: pb.grad(function)(bad.detach())):
        with pytest.raises(LinearAlgebraError, match=r"gradient .*ingular[^$]*test_linalg.py:\d+"):
            find()


def _minors(a: np.ndarray) -> np.ndarray:
    """Cofactors by their definition."""
    found = np.empty_like(a)
    for i, j in np.ndindex(a.shape[-2:]):
        found[..., i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, -2), j, -1))
    return found


WITHOUT_INVERSE = {
    "one number": np.zeros((1, 1)),
    "rank 1 of 2": np.array([[1.0, 2.0], [2.0, 4.0]]),
    "nilpotent": np.diag([1.0, 2.0], 1),
    "equal rows": np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.0, 1.0, 5.0]]),
    "a column of zeros": np.array([[0.0, 2.0, 3.0], [0.0, 5.0, 6.0], [0.0, 8.0, 7.0]]),
    "rank 1 of 3": np.ones((3, 3)),
    "zeros": np.zeros((4, 4)),
    "some of a batch": np.stack([np.ones((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2))]),
    "large": np.pad(matrices(20, 20) / 4, (0, 1)),
}


@pytest.mark.parametrize("name", WITHOUT_INVERSE)
def test_the_gradient_of_a_determinant_needs_no_inverse(name: str) -> None:
    a = WITHOUT_INVERSE[name]
    wanted = _minors(a)
    find = pb.grad(lambda x: np.linalg.det(x).sum())
    across = pb.grad(lambda x: pb.linalg.det(x.swapaxes(-1, -2)).sum())
    for one in (find, pb.compile(find), across, pb.compile(across)):
        np.testing.assert_allclose(one(a), wanted, rtol=1e-11, atol=1e-12 * max(abs(wanted).max(), 1.0))


def test_the_gradient_of_a_determinant_is_written_in_c() -> None:
    assert "cofactors" in pb.compile(pb.grad(np.linalg.det)).c_source(np.eye(2))


def test_the_gradient_of_a_complex_determinant_needs_no_inverse() -> None:
    a = WITHOUT_INVERSE["equal rows"] * (1.0 + 2.0j)
    given = pb.tensor(a, requires_grad=True)
    pb.linalg.det(given).real.backward()
    np.testing.assert_allclose(given.grad.numpy(), _minors(a).conj(), rtol=1e-12, atol=1e-12)


def test_which_matrix_of_a_batch_has_no_result() -> None:
    batch = np.stack([np.eye(2), np.eye(2), np.zeros((2, 2))])
    for function in (pb.linalg.inv, pb.linalg.cholesky):
        with pytest.raises(LinearAlgebraError, match=r"\(Batch element 2\)"):
            function(pb.tensor(batch))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_one_triangle_is_solved_with_in_any_order_of_memory(
    dtype: type, order: Any, lower: bool, transposed: bool
) -> None:
    rng = np.random.default_rng(0)
    a = np.asarray(rng.normal(size=(3, 3)) + 4.0 * np.eye(3), dtype, order)
    b = np.asarray(rng.normal(size=(3, 2)), dtype, order)
    if dtype is np.complex128:
        a, b = a * (1.0 + 0.5j), b * 1j
    triangle = np.tril(a) if lower else np.triu(a)
    found = solve_one_triangular(a, b, lower, transposed)
    assert found.dtype == dtype
    np.testing.assert_allclose((triangle.T if transposed else triangle) @ found, b, rtol=2e-5, atol=1e-6)


@pytest.fixture
def factorings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of LAPACK's routines that are asked for from now on."""
    asked: list[str] = []

    def noting(routine: Any) -> Any:
        def noted(name: str, dtype: np.dtype) -> Any:
            asked.append(name)
            return routine(name, dtype)

        return noted

    for library in ("routine", "blas_routine"):
        monkeypatch.setattr(of_matrices, library, noting(getattr(of_matrices, library)))
    return asked


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("plain", ["neither", "matrix", "sides"])
def test_eager_a_matrix_is_factored_once_for_its_solution_and_gradients(
    dtype: Any, columns: tuple[int, ...], plain: str, factorings: list[str]
) -> None:
    """Also with a plain array on one side, which NumPy's name takes."""
    torch = pytest.importorskip("torch")
    turned = np.asarray(1.0 + 0.5j if dtype is np.complex128 else 1.0, dtype)
    size = FACTORED_TWICE + 1
    a, b = matrices(size, size) * turned + 30 * np.eye(size), matrices(size, *columns) * turned
    wanted = [torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)]
    (torch.linalg.solve(*wanted).abs() ** 2).sum().backward()
    given = [
        one if name == plain else pb.tensor(one, requires_grad=True)
        for name, one in (("matrix", a), ("sides", b))
    ]
    for function in (pb.linalg.solve, np.linalg.solve) if plain == "neither" else (np.linalg.solve,):
        factorings.clear()
        tensors = [one for one in given if isinstance(one, pb.Tensor)]
        found = pb.autograd.grad((abs(function(*given)) ** 2).sum(), tensors)
        solving = "trsm" if columns else "getrs"
        assert factorings.count("getrf") == 1 and set(factorings) == {"getrf", solving}
        kept = [other for one, other in zip(given, wanted) if isinstance(one, pb.Tensor)]
        for one, other in zip(found, kept):
            np.testing.assert_allclose(one.numpy(), other.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize("columns", [2, 5])
@pytest.mark.parametrize("transposed", [False, True])
def test_small_systems_with_several_sides_ask_for_nothing_that_other_threads_are_given(
    columns: int, transposed: bool, factorings: list[str]
) -> None:
    """LAPACK's getrs and trtrs wake threads for two columns of three rows, and wait for them."""
    a, b = matrices(5, 5), matrices(5, columns)
    across = a.T if transposed else a
    found = of_matrices.eliminated_solution(of_matrices.eliminated(a), b, transposed=transposed)
    np.testing.assert_allclose(across @ found, b, atol=1e-10)
    upper = np.triu(a)
    found = solve_one_triangular(upper, b, lower=False, transposed=transposed)
    np.testing.assert_allclose((upper.T if transposed else upper) @ found, b, atol=1e-10)
    assert set(factorings) == {"getrf", "trsm"}


@pytest.mark.drawn(6)
def test_second_derivatives_of_what_is_factored_once_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    a, b = matrices(3, 3) + 2 * np.eye(3), matrices(3)

    def energy(lib: Any, a: Any, b: Any) -> Any:
        return (lib.linalg.solve(a, b) ** 3).sum() + lib.linalg.slogdet(a)[1] ** 2

    found = pb.hessian(lambda *given: energy(np, *given), (0, 1))(a, b)
    wanted = torch.func.hessian(lambda *given: energy(torch, *given), (0, 1))(*map(torch.tensor, (a, b)))
    for row, other in zip(found, wanted):
        for one, another in zip(row, other):
            np.testing.assert_allclose(one, another.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 4, 4), (2, 0, 0), (33, 33), (2, 1, 40, 40)])
def test_eager_slogdet_factors_large_matrices_once(
    dtype: Any, shape: tuple[int, ...], factorings: list[str]
) -> None:
    torch = pytest.importorskip("torch")
    a = (matrices(*shape) * (1.0 + 0.5j if dtype is np.complex128 else 1.0)).astype(dtype)
    a += (0.5 * shape[-1] * np.eye(shape[-1])).astype(dtype)
    wanted = torch.tensor(a, requires_grad=True)
    sign, size = torch.linalg.slogdet(wanted)
    (sign.real * 3.0 + size).sum().backward()
    for function in (pb.linalg.slogdet, np.linalg.slogdet):
        factorings.clear()
        given = pb.tensor(a, requires_grad=True)
        found = function(given)
        (found[0].real * 3.0 + found[1]).sum().backward()
        assert factorings.count("getrf") == (0 if shape[-1] <= FACTORED_TWICE else a.size // shape[-1] ** 2)
        for one, other in zip((*found, given.grad), (sign, size, wanted.grad)):
            np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-8)


SINGULAR_OR_NOT = np.array([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 1.0], [1.0, 3.0]], [[0.0, 0.0], [0.0, 1.0]]])
WITH_REPORT: dict[str, Function] = {
    "inv_ex": lambda lib, a: lib.linalg.inv_ex(a),
    "solve_ex": lambda lib, a: lib.linalg.solve_ex(a, a[..., :1] + 1.0),
    "solve_ex of a vector": lambda lib, a: lib.linalg.solve_ex(a, a[..., 0] + 1.0),
    "solve_ex from the right": lambda lib, a: lib.linalg.solve_ex(a, a[..., :1, :] + 1.0, left=False),
    "cholesky_ex": lambda lib, a: lib.linalg.cholesky_ex(a),
    "upper cholesky_ex": lambda lib, a: lib.linalg.cholesky_ex(a, upper=True),
    "lu_factor_ex": lambda lib, a: lib.linalg.lu_factor_ex(a)[::2],
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("place", "dtype"), [
    (0, np.float64), (1, np.float64), (slice(None), np.float64), (slice(None), np.complex128),
])  # fmt: skip
@pytest.mark.parametrize("name", WITH_REPORT)
def test_results_with_a_report_tell_which_matrix_has_none(name: str, place: Any, dtype: Any) -> None:
    """Where there is a result it is PyTorch's, and its gradient; else both are nan."""
    torch = pytest.importorskip("torch")
    a, function = SINGULAR_OR_NOT[place].astype(dtype), WITH_REPORT[name]
    both = [torch.tensor(a, requires_grad=True), pb.tensor(a, requires_grad=True)]
    (wanted, wanted_info), (found, info) = (function(lib, one) for lib, one in zip((torch, pb), both))
    compiled, reported = pb.compile(lambda x: function(pb, x))(pb.tensor(a))
    assert info.dtype == reported.dtype == pb.int32
    np.testing.assert_array_equal(info, wanted_info)
    np.testing.assert_array_equal(reported, wanted_info)
    np.testing.assert_allclose(compiled, found.detach(), rtol=1e-12)
    if name == "lu_factor_ex":
        return
    is_found = np.asarray(info == 0)
    values = found.detach().numpy()
    np.testing.assert_allclose(values[is_found], wanted.detach().resolve_conj().numpy()[is_found], rtol=1e-12)
    assert np.isnan(values[~is_found]).any() == (~is_found).any()
    slope = pb.autograd.grad(abs(found).sum(), both[1])[0].numpy()
    by_code = pb.compile(pb.grad(lambda x: abs(function(pb, x)[0]).sum()))(a)
    np.testing.assert_allclose(by_code, slope, rtol=1e-9)
    assert np.isnan(slope[~is_found]).any() == (~is_found).any()
    if is_found.all():
        wanted.abs().sum().backward()
        np.testing.assert_allclose(slope, both[0].grad, rtol=1e-9)


@pytest.mark.parametrize("function", [
    lambda a: pb.linalg.inv_ex(a, check_errors=True)[0], lambda a: pb.linalg.lu_factor(a)[0],
    lambda a: pb.linalg.solve_ex(a, a, check_errors=True)[0],
    lambda a: pb.linalg.cholesky_ex(a, check_errors=True)[0],
    lambda a: pb.linalg.lu_factor_ex(a, check_errors=True)[0],
])  # fmt: skip
def test_check_errors_raises(function: Any) -> None:
    for one in (function, pb.compile(function)):
        np.testing.assert_array_equal(one(pb.eye(2, dtype=pb.float64)), np.eye(2))
        with pytest.raises(LinearAlgebraError):
            one(pb.tensor(SINGULAR_OR_NOT[0]))


@pytest.mark.parametrize("p", [1, -1, np.inf, "fro"])
def test_a_singular_matrix_has_the_condition_number_inf(p: Any) -> None:
    torch = pytest.importorskip("torch")
    regular_or_rank_1 = SINGULAR_OR_NOT[:2]
    wanted = np.linalg.cond(regular_or_rank_1, p)
    np.testing.assert_allclose(torch.linalg.cond(torch.tensor(regular_or_rank_1), p), wanted, rtol=1e-12)
    for function in (lambda a: np.linalg.cond(a, p), lambda a: pb.linalg.cond(a, p)):
        for one in (function, pb.compile(function)):
            np.testing.assert_allclose(one(pb.tensor(regular_or_rank_1)), wanted, rtol=1e-12)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_pseudo_inverses_of_what_is_not_finite_are_refused(number: float) -> None:
    bad = np.array([[2.0, 1.0], [number, 3.0]])
    for function in (np.linalg.pinv, pb.linalg.pinv, pb.compile(np.linalg.pinv)):
        with pytest.raises(LinearAlgebraError, match="nan or inf"):
            function(pb.tensor(bad))
