"""Rules of complex values: what they are given and give, and how they are checked."""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.autograd import gradcheck, gradgradcheck
from pullback.errors import GradientError
from pullback.testing import check_rules

POINT = np.array([0.3, -0.7, 1.9])


def in_python(*values):
    """Copies of values that no trace follows."""
    return [np.array(np.array(one).tolist()) for one in values]


@pb.custom_vjp
def scaled_and_sized(z, x):
    z, x = in_python(z, x)
    return z * z * x, x * np.abs(z)


def _scaled_and_sized_rule(residuals, cotangents):
    (z, x), (g, h) = in_python(*residuals), in_python(*cotangents)
    return 2 * g * np.conj(z) * x + h * x * z / np.abs(z), (g * np.conj(z * z)).real + h * np.abs(z)


scaled_and_sized.defvjp(lambda z, x: (scaled_and_sized(z, x), (z, x)), _scaled_and_sized_rule)


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile], ids=["eager", "compiled"])
class TestForeignOfComplexValues:
    """Python is called with complex arrays, and gives them, in compiled code too."""

    Z = POINT + 1j * POINT[::-1]

    @pytest.fixture(autouse=True)
    def _nothing_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    @staticmethod
    def plain(z, x):
        return z * z * x, x * np.abs(z)

    def test_values(self, transform):
        for function in (scaled_and_sized, pb.vmap(scaled_and_sized)):
            for found, wanted in zip(transform(function)(self.Z, POINT), self.plain(self.Z, POINT)):
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted)

    def test_gradients(self, transform):
        def loss(function):
            def of(z, x):
                scaled, sizes = function(z * 1.5j, x * 2)
                return (np.abs(scaled + z) ** 2).sum() + (sizes**2).sum()

            return pb.grad(of, (0, 1))

        found = transform(loss(scaled_and_sized))(self.Z, POINT)
        for one, wanted in zip(found, loss(self.plain)(self.Z, POINT)):
            np.testing.assert_allclose(one, wanted)

    def test_in_loops(self, transform):
        def loss(function):
            def of(z, x):
                last, sizes = pb.scan(lambda c, row: function(c, row), z[0], x)
                return np.abs(last) ** 2 + sizes.sum()

            return pb.grad(of, (0, 1))

        found = transform(loss(scaled_and_sized))(self.Z, POINT)
        for one, wanted in zip(found, loss(self.plain)(self.Z, POINT)):
            np.testing.assert_allclose(one, wanted)


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile], ids=["eager", "compiled"])
def test_a_function_of_autograd_takes_complex_values(transform):
    class Cubed(pb.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return cubed(z)

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return 2 * z * z.conj() * g + z * z * g.conj()

    slopes = []
    for function in (
        transform(lambda z: (Cubed.apply(z) + z).abs().sum()),
        lambda z: (cubed(z) + z).abs().sum(),
    ):
        z = pb.tensor(POINT * 1j + 2, requires_grad=True)
        function(z).backward()
        slopes.append(z.grad.numpy())
    np.testing.assert_allclose(*slopes)


def twice_conjugated(z, x):
    return {"product": z * z * np.conj(z) * x, "size": np.abs(z) * x}


COMPLEX_CHECKS = {
    "a holomorphic function": (np.sin, (POINT * 1j + 1,)),
    "of complex and real arguments": (twice_conjugated, (POINT + 1j * POINT[::-1], POINT)),
    "a size": (lambda z: np.abs(z) ** 2, (POINT * (1 + 1j),)),
    "complex values of real arguments": (lambda x: np.exp(1j * x), (POINT,)),
    "of numbers": (lambda z, x: z**3 * x, (1 + 2j, 0.5)),
}


@pytest.mark.parametrize("name", COMPLEX_CHECKS)
def test_rules_of_complex_values_are_checked(name):
    check_rules(*COMPLEX_CHECKS[name])


@pytest.mark.parametrize("name", COMPLEX_CHECKS)
def test_gradients_of_complex_values_are_checked(name):
    function, args = COMPLEX_CHECKS[name]

    def of_tensors(*tensors):
        found = function(*tensors)
        return tuple(found.values()) if isinstance(found, dict) else found

    tensors = tuple(pb.tensor(np.asarray(one), requires_grad=True) for one in args)
    assert gradcheck(of_tensors, tensors) and gradgradcheck(of_tensors, tensors)


def test_a_rule_without_the_conjugate_is_found_wrong():
    squared = pb.custom_vjp(lambda z: z * z)
    squared.defvjp(lambda z: (z * z, z), lambda z, g: (2 * g * z,))
    point = POINT + 1j * POINT[::-1]
    with pytest.raises(GradientError, match="the cotangents times a direction"):
        check_rules(squared, (point,))
    with pytest.raises(GradientError, match="Jacobian mismatch for output 0"):
        gradcheck(squared, pb.tensor(point, requires_grad=True))
    assert check_rules(lambda z: z * z, (point,)) is None


def cubed(z):
    return z * z * np.conj(z)


def with_rules() -> dict:
    """`cubed` with each form of a rule."""
    by_vjp, by_jvp = pb.custom_vjp(cubed), pb.custom_jvp(cubed)
    pulled, pushed = pb.primitive(cubed), pb.primitive(cubed)

    def pull(z, g):
        return 2 * z * np.conj(z) * g + z * z * np.conj(g)

    def push(z, t):
        return 2 * z * np.conj(z) * t + z * z * np.conj(t)

    by_vjp.defvjp(lambda z: (cubed(z), z), lambda z, g: (pull(z, g),))
    by_jvp.defjvp(lambda primals, tangents: (cubed(*primals), push(*primals, *tangents)))
    pb.defvjp(pulled, lambda y, z: lambda g: pull(z, g))
    pb.defjvp(pushed, lambda t, y, z: push(z, t))
    return {"custom_vjp": by_vjp, "custom_jvp": by_jvp, "defvjp": pulled, "defjvp": pushed}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("form", ["custom_vjp", "custom_jvp", "defvjp", "defjvp"])
def test_rules_of_complex_values(form):
    """Cotangents are gradients as PyTorch has them, so a rule gives what the tape finds without it."""
    point = POINT + 1j * POINT[::-1] ** 2

    def loss(function):
        return lambda z: (np.abs(function(z) + z) ** 2).sum()

    def of_real(function):
        return lambda x: loss(function)(x * np.exp(1j * x))

    ruled = with_rules()[form]
    np.testing.assert_allclose(pb.grad(loss(ruled))(point), pb.grad(loss(cubed))(point))
    np.testing.assert_allclose(pb.hessian(of_real(ruled))(POINT), pb.hessian(of_real(cubed))(POINT))
    z = pb.tensor(point, requires_grad=True)
    loss(ruled)(z).backward()
    np.testing.assert_allclose(z.grad.numpy(), pb.grad(loss(cubed))(point))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes, found = pb.compile(pb.grad(loss(ruled)))(point), pb.compile(pb.grad(of_real(ruled)))(POINT)
        curvature = pb.compile(pb.hessian(of_real(ruled)))(POINT)
        every = pb.compile(pb.vmap(pb.grad(lambda z: np.abs(ruled(z)) ** 2)))(point)
    np.testing.assert_allclose(slopes, pb.grad(loss(cubed))(point))
    np.testing.assert_allclose(found, pb.grad(of_real(cubed))(POINT))
    np.testing.assert_allclose(curvature, pb.hessian(of_real(cubed))(POINT))
    np.testing.assert_allclose(every, 6 * point * np.abs(point) ** 4)
