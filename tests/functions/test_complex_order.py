"""NumPy's order of complex numbers: by their real parts, of equal ones by their imaginary parts."""

from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(4)]
Z = np.array([[2 + 1j, 0 + 2j, 2 + 2j], [1 - 1j, 1 + 2j, 0 + 0j]])
W = np.array([[2 + 1j, 1 + 0j, 2 + 3j], [1 + 0j, 1 + 1j, 3 + 0j]])
UNDEFINED = np.where(W == 1, complex(1, np.nan), Z)
EXTREMES = {
    "all": lambda f, z: f(z),
    "columns": lambda f, z: f(z, axis=0, keepdims=True),
    "begun": lambda f, z: f(z, axis=(0, 1), initial=1 + 1.5j),
    "chosen": lambda f, z: f(z, axis=1, where=Z.real > 0, initial=1 + 0j),
}


def agree(f: Any, *given: np.ndarray) -> None:
    expected = np.asarray(f(*given))
    for found in (pb.vjp(f, *given)[0], pb.compile(f)(*given)):
        known = ~np.isnan(expected)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.isnan(found), ~known)
        np.testing.assert_array_equal(np.asarray(found)[known], expected[known])


@pytest.mark.parametrize("function", [np.max, np.min], ids=["max", "min"])
@pytest.mark.parametrize("form", EXTREMES)
def test_extremes_along_dimensions(function: Any, form: str) -> None:
    for z in (Z, UNDEFINED, Z.astype(np.complex64)):
        agree(lambda z: EXTREMES[form](function, z), z)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_the_greater_and_the_lesser_of_two(name: str) -> None:
    agree(getattr(np, name), UNDEFINED, W)
    agree(lambda z: getattr(np, name)(z, 1.0) + getattr(np, name)(z, W[0]), Z)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
def test_comparisons_choose(name: str) -> None:
    agree(lambda z, w: np.where(getattr(np, name)(z, w), z, w), UNDEFINED, W)


def test_equal_ones_share_the_gradient() -> None:
    z = np.array([1 + 1j, 2 + 0j, 2 + 3j, 2 + 3j])

    def loss(z: Any) -> Any:
        return np.real(np.max(z) * (1 + 2j))

    for one in (loss, pb.compile(loss)):
        np.testing.assert_array_equal(pb.grad(one)(z), [0, 0, 0.5 - 1j, 0.5 - 1j])


def test_pytorchs_functions_do_not_order_them() -> None:
    with pytest.raises(pb.errors.DTypeError, match="complex"):
        pb.tensor(Z).amax()
