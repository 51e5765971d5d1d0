"""Derivatives of functions of complex numbers: PyTorch's convention, holomorphic functions, wrong uses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import errors

RNG = np.random.default_rng(11)
Z = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
A = RNG.standard_normal((4, 4)) + 1j * RNG.standard_normal((4, 4)) + 3 * np.eye(4)
HERMITIAN = A @ A.conj().T

REAL_LOSSES: dict[str, Callable[[Any], Any]] = {
    "energy": lambda z: (abs(z) ** 2).sum(),
    "a product with its conjugate": lambda z: (z * np.conj(z)).real.sum(),
    "parts": lambda z: (z.real**2 * z.imag).sum() + np.sin(z.imag).sum(),
    "angles": lambda z: (np.angle(z) * np.abs(z)).sum(),
    "elementary functions": lambda z: np.abs(np.exp(z) + np.log(z) * np.sqrt(z) - np.sin(z) ** 3).sum(),
    "powers": lambda z: (z ** (1.5 - 0.5j) + z**3).real.sum(),
    "inverse functions": lambda z: (np.arcsin(z) + np.arctan(z) + np.arccosh(z) + np.log1p(z)).real.sum(),
    "a quotient": lambda z: (1j / (z + 2) + z / (1 + abs(z))).imag.sum(),
    "a running product": lambda z: np.abs(np.cumprod(z)).sum() + np.abs(np.prod(z)),
    "statistics": lambda z: np.std(z) + np.var(z) + np.linalg.norm(z) + np.abs(np.mean(z)),
    "a choice": lambda z: np.where(z.real > 0, z**2, 1j * z).imag.sum(),
    "parts that are joined": lambda z: np.abs(np.concatenate([z[::2], np.conj(z[1:3])]) ** 2).sum(),
    "inner products": lambda z: np.vdot(z, z**2).real + np.abs(np.einsum("i,i->", z, z)),
    "reals that turn complex": lambda z: np.abs(np.exp(1j * z.real) * z).sum(),
}  # fmt: skip
MATRIX_LOSSES: dict[str, Callable[[Any], Any]] = {
    "a solution": lambda a: np.abs(np.linalg.solve(a, a[:, :2] ** 2)).sum(),
    "an inverse": lambda a: np.abs(np.linalg.inv(a)).sum(),
    "a determinant": lambda a: np.abs(np.linalg.det(a)) + np.linalg.slogdet(a)[1],
    "the sign of a determinant": lambda a: np.angle(np.linalg.slogdet(a)[0]),
    "products": lambda a: np.abs(a @ a.conj().T @ a).sum(),
    "eigenvalues": lambda a: (np.abs(np.linalg.eigvals(a)) ** 2).sum(),
    "eigenvectors": lambda a: (np.abs(np.linalg.eig(a)[1]) ** 4).sum(),
    "singular values": lambda a: (np.linalg.svd(a, compute_uv=False) ** 3).sum(),
    "singular vectors": lambda a: (np.abs(np.linalg.svd(a)[0][:, 0]) ** 4).sum(),
    "orthogonal factors": lambda a: np.abs(np.linalg.qr(a)[0]).sum() + np.abs(np.linalg.qr(a)[1]).sum(),
    "a pseudo-inverse": lambda a: np.abs(np.linalg.pinv(a[:, :3])).sum(),
}  # fmt: skip
HERMITIAN_LOSSES: dict[str, Callable[[Any], Any]] = {
    "a Cholesky factor": lambda a: np.abs(np.linalg.cholesky(a)).sum(),
    "eigenvalues": lambda a: (np.linalg.eigvalsh(a) ** 2).sum(),
    "eigenvectors": lambda a: (np.abs(np.linalg.eigh(a)[1]) ** 4).sum(),
}  # fmt: skip


def inner(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sum((np.conj(a) * b).real))


def slope_along(function: Callable[[Any], Any], x: np.ndarray, direction: np.ndarray) -> float:
    step = 1e-5
    forward, back = function(x + step * direction), function(x - step * direction)
    return float(forward - back) / (2 * step)


def check_second(loss: Callable[[Any], Any], x: np.ndarray, direction: np.ndarray) -> None:
    """The gradient's derivative along a direction is what differences of gradients are."""
    gradient = pb.grad(loss)
    change = (gradient(x + 1e-5 * direction) - gradient(x - 1e-5 * direction)) / 2e-5
    _, second = pb.jvp(gradient, (x,), (direction,))
    np.testing.assert_allclose(second, change, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(change).max()))
    _, pull = pb.vjp(gradient, x)
    cotangent = RNG.standard_normal(x.shape) + 1j * RNG.standard_normal(x.shape)
    assert inner(pull(cotangent)[0], direction) == pytest.approx(inner(cotangent, second), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", REAL_LOSSES)
def test_gradients_of_real_losses_in_complex_directions(name: str) -> None:
    loss = REAL_LOSSES[name]
    value, slope = pb.value_and_grad(loss)(Z)
    assert slope.dtype == np.complex128
    np.testing.assert_allclose(value, loss(Z))
    for _ in range(3):
        direction = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
        assert inner(slope, direction) == pytest.approx(slope_along(loss, Z, direction), rel=1e-6, abs=1e-8)
        check_second(loss, Z, direction)


@pytest.mark.parametrize("name", MATRIX_LOSSES)
def test_gradients_through_linear_algebra(name: str) -> None:
    loss = MATRIX_LOSSES[name]
    slope = pb.grad(loss)(A)
    for _ in range(3):
        direction = RNG.standard_normal((4, 4)) + 1j * RNG.standard_normal((4, 4))
        assert inner(slope, direction) == pytest.approx(slope_along(loss, A, direction), rel=1e-5, abs=1e-7)
        check_second(loss, A, direction)


@pytest.mark.parametrize("name", HERMITIAN_LOSSES)
def test_gradients_of_hermitian_matrices(name: str) -> None:
    loss = HERMITIAN_LOSSES[name]
    slope = pb.grad(loss)(HERMITIAN)
    for _ in range(3):
        direction = RNG.standard_normal((4, 4)) + 1j * RNG.standard_normal((4, 4))
        direction = direction + direction.conj().T
        assert inner(slope, direction) == pytest.approx(slope_along(loss, HERMITIAN, direction), rel=1e-5)
        check_second(loss, HERMITIAN, direction)


def test_a_step_against_the_gradient_descends() -> None:
    z = pb.tensor(Z, requires_grad=True)
    loss = (abs(z - (1 + 2j)) ** 2).sum()
    loss.backward()
    assert z.grad is not None and z.grad.dtype == pb.complex128
    np.testing.assert_allclose(z.grad.numpy(), 2 * (Z - (1 + 2j)))
    np.testing.assert_allclose(Z - 0.5 * z.grad.numpy(), 1 + 2j)


def test_logistic_functions_of_large_numbers_do_not_overflow() -> None:
    z = np.array([-1e4 + 1j, 1e4 - 1j, -1e4 + 2j])
    np.testing.assert_allclose(pb.sigmoid(z), [0.0, 1.0, 0.0], atol=1e-300)
    slope = pb.grad(lambda z: pb.logcumsumexp(z, 0).real.sum())(z)
    np.testing.assert_allclose(slope, [1.0, 2.0, 0.0], atol=1e-12)


def test_real_arguments_get_real_gradients() -> None:
    x = RNG.standard_normal(4)
    slope = pb.grad(lambda x: abs((x + 2j) * np.exp(1j * x)).sum())(x)
    assert slope.dtype == np.float64
    np.testing.assert_allclose(slope, x / np.abs(x + 2j))


def test_holomorphic_functions_have_complex_derivatives() -> None:
    for function, derivative in (
        (np.exp, np.exp), (np.sin, np.cos), (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
        (np.log, lambda z: 1 / z), (lambda z: z**3, lambda z: 3 * z**2),
        (np.arccosh, lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))),
    ):  # fmt: skip
        for one in Z:
            found = pb.grad(lambda z, function=function: function(z), holomorphic=True)(one)
            assert found == pytest.approx(derivative(one))
        matrix = pb.jacobian(lambda z, function=function: function(z), holomorphic=True)(Z)
        np.testing.assert_allclose(matrix, np.diag(derivative(Z)), atol=1e-12)


def test_the_jacobian_of_complex_results_by_real_arguments() -> None:
    x = RNG.standard_normal(3)
    found = pb.jacobian(lambda x: np.exp(1j * x) * x)(x)
    np.testing.assert_allclose(found, np.diag(np.exp(1j * x) * (1 + 1j * x)), atol=1e-12)
    np.testing.assert_allclose(pb.jacobian(lambda x: (1j * x).sum())(x), np.full(3, 1j))


def test_a_derivative_along_a_direction_is_linear_over_the_reals() -> None:
    direction = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
    value, found = pb.jvp(lambda z: np.conj(z) * z**2, (Z,), (direction,))
    np.testing.assert_allclose(value, np.conj(Z) * Z**2)
    np.testing.assert_allclose(found, np.conj(direction) * Z**2 + 2 * np.conj(Z) * Z * direction)


def test_writes_through_parts_have_gradients() -> None:
    z = pb.tensor(Z, requires_grad=True)
    w = z * 1
    w.real = z.imag**2
    w.imag[1:3] *= 2
    pb.view_as_real(w)[4, 0] = 7.0
    wanted = Z.imag**2 + 1j * Z.imag * np.array([1, 2, 2, 1, 1])
    wanted[4] = 7 + 1j * Z.imag[4]
    np.testing.assert_allclose(w.detach().numpy(), wanted)
    (abs(w) ** 2).sum().backward()
    of_real = 4 * Z.imag**3
    of_real[4] = 0
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), 1j * (of_real + 2 * Z.imag * np.array([1, 4, 4, 1, 1])))


def test_programs_that_fill_complex_arrays() -> None:
    def loss(x: Any) -> Any:
        waves = np.zeros(4, complex)
        for k in range(4):
            waves[k] = (x * np.exp(-0.5j * np.pi * k * np.arange(4))).sum()
        return (np.abs(waves) ** 2 * np.arange(4)).sum()

    x = RNG.standard_normal(4)
    slope = pb.grad(loss)(x)
    for one, found in zip(np.eye(4), slope):
        assert found == pytest.approx(slope_along(loss, x, one), rel=1e-6)


def test_custom_functions_get_pytorchs_gradients() -> None:
    class Square(pb.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return g * (2 * z).conj()

    z = pb.tensor(Z, requires_grad=True)
    abs(Square.apply(z)).sum().backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), pb.grad(lambda z: abs(z * z).sum())(Z))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: pb.grad(lambda z: z.sum())(Z), errors.OutputError, "complex result.*holomorphic=True"),
        (lambda: pb.grad(np.exp, holomorphic=True)(1.0), errors.DTypeError, "holomorphic=True takes complex"),
        (lambda: pb.jacobian(np.exp)(Z), errors.DTypeError, "no single derivative.*holomorphic"),
        (lambda: pb.tensor([1j], requires_grad=True).backward(), errors.GradientError, "real scalar outputs"),
        (
            lambda: pb.vjp(abs, Z)[1](1j * np.ones(5)),
            errors.DTypeError,
            "cotangent or tangent of dtype float64 expected, found complex128",
        ),
        (
            lambda: pb.grad(lambda a: np.linalg.eigh(a)[1].real.sum())(HERMITIAN),
            errors.GradientError,
            "linalg.eigh: complex vectors are given up to a factor",
        ),
        (
            lambda: pb.grad(lambda a: np.linalg.eig(a)[1].real.sum())(A),
            errors.GradientError,
            "linalg.eig: complex vectors are given up to a factor",
        ),
    ],
)  # fmt: skip
def test_wrong_uses(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_compiled_functions_have_the_same_gradients() -> None:
    def loss(z: Any) -> Any:
        return (abs(np.exp(z)) ** 2).sum()

    for compiled in (pb.compile(pb.value_and_grad(loss)), pb.value_and_grad(pb.compile(loss))):
        value, slope = compiled(Z)
        wanted = pb.value_and_grad(loss)(Z)
        np.testing.assert_allclose(value, wanted[0])
        np.testing.assert_allclose(slope, wanted[1])
