"""Special functions against PyTorch, and what of them compiled code has."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback as pb

ROWS = [
    "entr(u)",
    "erf(u)",
    "erfc(u)",
    "erfcx(u)",
    "erfinv(u)",
    "exp2(u)",
    "expit(u)",
    "expm1(u)",
    "gammainc(c,u)",
    "gammaincc(c,u)",
    "gammaln(u)",
    "i0(u)",
    "i0e(u)",
    "i1(u)",
    "i1e(u)",
    "log1p(u)",
    "log_ndtr(u-1)",
    "logit(u)",
    "multigammaln(1+u,2)",
    "ndtr(u)",
    "ndtri(u)",
    "polygamma(1,u)",
    "polygamma(4,u)",
    "psi(u)",
    "sinc(u)",
    "xlog1py(c,u)",
    "xlogy(c,u)",
    "zeta(c+1,u)",
]
GIVEN = {"c": np.array([0.5, 1.0, 1.7]), "u": np.array([[0.1, 0.35, 0.9], [0.8, 0.5, 0.25]])}


def first_and_second(lib: Any, expression: str) -> list[np.ndarray]:
    c, u = lib.tensor(GIVEN["c"]), lib.tensor(GIVEN["u"], requires_grad=True)
    value = eval(expression, dict(vars(lib.special)), {"c": c, "u": u})
    (first,) = lib.autograd.grad(value.sum(), u, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), u)
    return [one.detach().numpy() for one in (value, first, second)]


@pytest.mark.parametrize("expression", ROWS)
def test_values_and_gradients_are_pytorchs(expression: str) -> None:
    torch = pytest.importorskip("torch")
    found, wanted = (first_and_second(lib, expression) for lib in (pb, torch))
    for one, other in zip(found, wanted):  # PyTorch's polygamma has single precision
        np.testing.assert_allclose(one, other, rtol=1e-4 if "gamma" in expression else 1e-9)


def test_at_the_ends() -> None:
    inf = np.inf
    np.testing.assert_array_equal(pb.special.entr(pb.tensor([0.0, -1.0, 1.0])), [0, -inf, 0])
    np.testing.assert_array_equal(pb.special.ndtri(pb.tensor([0.0, 1.0])), [-inf, inf])
    np.testing.assert_array_equal(pb.erfinv(pb.tensor([-1.0, 0.0, 1.0])), [-inf, 0, inf])
    assert pb.special.xlog1py(pb.tensor(0.0), pb.tensor(-1.0)) == 0


def test_polygamma_is_compiled() -> None:
    x = np.array([-11.5, -2.3, 0.2, 3.0, 40.0])
    for n in (2, 3):
        found = pb.compile(lambda x, n=n: pb.polygamma(n, x))(x)
        np.testing.assert_allclose(found, pb.polygamma(n, pb.tensor(x)), rtol=1e-11)


@pytest.mark.parametrize("mode", [lambda function: function, pb.compile])
def test_logsumexp_of_infinities(mode: Any) -> None:
    """The derivative is exp(x - logsumexp(x)), and 0 where there is nothing."""
    slope = pb.grad(mode(lambda x: pb.logsumexp(x, 0)))
    np.testing.assert_array_equal(slope(np.array([1.0, np.inf])), [0, np.nan])
    np.testing.assert_array_equal(slope(np.array([-np.inf, 1.0])), [0, 1])
    np.testing.assert_array_equal(slope(np.array([-np.inf, -np.inf])), [0, 0])


POLYNOMIALS = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
]  # fmt: skip
DEGREES = np.array([[0, 1, 2], [3, 7, -1]])


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_degrees_that_are_data(name: str) -> None:
    x, polynomial = GIVEN["u"] * 2 - 0.8, getattr(pb.special, name)
    torch = pytest.importorskip("torch")
    wanted = getattr(torch.special, name)(torch.tensor(x), torch.tensor(DEGREES))
    np.testing.assert_allclose(polynomial(pb.tensor(x), pb.tensor(DEGREES)), wanted, rtol=1e-12)
    np.testing.assert_allclose(pb.compile(polynomial)(x, DEGREES), wanted, rtol=1e-12)
    leaf = pb.tensor(x, requires_grad=True)
    assert pb.autograd.gradcheck(lambda x: polynomial(x, pb.tensor(DEGREES)), (leaf,))
    assert pb.autograd.gradgradcheck(lambda x: polynomial(x, 4), (leaf,))


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_degrees_count_without_their_fractions(name: str) -> None:
    polynomial, x = getattr(pb.special, name), np.array([0.3, 0.7, 1.7, 0.4, 0.6])
    degrees = np.array([-0.5, 0.5, 1.5, 2.9, -1.5])
    torch = pytest.importorskip("torch")
    wanted = getattr(torch.special, name)(torch.tensor(x), torch.tensor(degrees))
    np.testing.assert_allclose(polynomial(x, degrees), wanted, rtol=1e-12)
    slope = pb.grad(lambda x, n: polynomial(x, n).sum())
    np.testing.assert_array_equal(slope(x, degrees), slope(x, np.trunc(degrees)))


OF_SCIPY = {
    "airy_ai": lambda x: scipy.special.airy(x)[0],
    "spherical_bessel_j0": lambda x: scipy.special.spherical_jn(0, np.abs(x)),
    "modified_bessel_i0": scipy.special.i0,
    "modified_bessel_i1": scipy.special.i1,
}


@pytest.mark.parametrize("name", OF_SCIPY)
def test_functions_of_which_pytorch_has_values_alone(name: str) -> None:
    x, function = np.array([-2.5, -0.3, 0.0, 1.7]), getattr(pb.special, name)
    np.testing.assert_allclose(function(x), OF_SCIPY[name](x), rtol=1e-13)
    np.testing.assert_allclose(pb.compile(function)(x), function(x), rtol=1e-13)
    leaf = pb.tensor(x, requires_grad=True)
    assert pb.autograd.gradcheck(function, (leaf,)) and pb.autograd.gradgradcheck(function, (leaf,))


def test_a_degree_has_no_gradient() -> None:
    n = pb.tensor([2.0], requires_grad=True)
    with pytest.raises(pb.errors.GradientError, match="legendre_polynomial_p with respect to its degree"):
        pb.special.legendre_polynomial_p(pb.tensor([0.5]), n).sum().backward()
