"""scipy.linalg of complex matrices where it is differentiated: its values, gradients by differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pullback as pb

pytestmark = pytest.mark.part(8)

la = scipy.linalg
RNG = np.random.default_rng(4)
A = RNG.standard_normal((3, 3)) + 3 * np.eye(3) + 1j * RNG.standard_normal((3, 3))
SIDES = RNG.standard_normal((3, 2))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "eigvals": lambda a: np.abs(la.eigvals(a)),
    "eig": lambda a: np.abs(la.eig(a, check_finite=False)[1]),
    "eig alone": lambda a: np.abs(la.eig(a, right=False)),
    "svd": lambda a: la.svd(a)[1],
    "svd without vectors": lambda a: la.svd(a, compute_uv=False),
    "qr": lambda a: np.abs(la.qr(a[:, :2], mode="economic")[0]),
    "qr alone": lambda a: np.abs(la.qr(a, mode="r")[0]),
    "schur": lambda a: np.abs(la.schur(a)[0]) @ np.abs(la.schur(a)[1]),
    "lu": lambda a: la.lu(a)[1] @ la.lu(a)[2],
    "lu permuted": lambda a: la.lu(a, permute_l=True)[0],
    "lu_solve": lambda a: la.lu_solve(la.lu_factor(a), SIDES),
    "lu_solve transposed": lambda a: la.lu_solve(la.lu_factor(a), SIDES[:, 0], trans=1),
    "lu_solve adjoint": lambda a: la.lu_solve(la.lu_factor(a), SIDES, trans=2),
    "polar": lambda a: la.polar(a)[0] + la.polar(a, side="left")[1],
    "pinv": lambda a: la.pinv(a[:, :2]),
    "pinvh": lambda a: la.pinvh(a @ a.conj().T),
    "lstsq": lambda a: la.lstsq(a[:, :2], SIDES)[0],
    "lstsq distances": lambda a: la.lstsq(a[:, :2], SIDES[:, 0])[1],
    "cosm": lambda a: la.cosm(0.3 * a),
    "sinm": lambda a: la.sinm(0.3 * a),
    "tanm": lambda a: la.tanm(0.3 * a),
    "coshm": lambda a: la.coshm(0.3 * a),
    "sinhm": lambda a: la.sinhm(0.3 * a),
    "tanhm": lambda a: la.tanhm(0.3 * a),
    "expm_frechet": lambda a: la.expm_frechet(0.3 * a, a @ a)[1],
    "expm_frechet alone": lambda a: la.expm_frechet(0.3 * a, a, compute_expm=False),
    "sqrtm": lambda a: la.sqrtm(a @ a),
    "solve_sylvester": lambda a: la.solve_sylvester(a, a[:2, :2], SIDES + a[:, :2]),
    "solve_continuous_lyapunov": lambda a: la.solve_continuous_lyapunov(a, a @ a),
    "solve_discrete_lyapunov": lambda a: la.solve_discrete_lyapunov(0.1 * a, a),
    "solveh_banded": lambda a: la.solveh_banded(np.stack([np.abs(a[0]) + 9, a[1]]), SIDES, lower=True),
    "solveh_banded of upper": lambda a: la.solveh_banded(np.stack([a[1], np.abs(a[0]) + 9]), SIDES),
    "solve symmetric": lambda a: la.solve(a + 3 * np.eye(3), SIDES, assume_a="sym"),
    "solve symmetric, lower": lambda a: la.solve(a + 3j * np.eye(3), SIDES, lower=True, assume_a="sym"),
    "toeplitz": lambda a: la.toeplitz(a[0]) + la.toeplitz(a[0], a[1]),
    "circulant": lambda a: la.circulant(a[0]),
    "hankel": lambda a: la.hankel(a[0]) + la.hankel(a[0], a[1]),
    "khatri_rao": lambda a: la.khatri_rao(a, a[:2]),
    "block_diag": lambda a: la.block_diag(a, a[:2], 1.0),
}


def slope_along(function: Callable[[Any], Any], x: np.ndarray, direction: np.ndarray, g: np.ndarray) -> float:
    change = (function(x + 1e-6 * direction) - function(x - 1e-6 * direction)) / 2e-6
    return float(np.sum((np.conj(g) * change).real))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str) -> None:
    function = FUNCTIONS[name]
    wanted = function(A)
    value, pull = pb.vjp(function, A)
    np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-10)
    assert np.asarray(value).dtype == np.asarray(wanted).dtype
    g = RNG.standard_normal(np.shape(wanted)).astype(np.asarray(wanted).dtype)
    direction = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
    (slope,) = pull(g)
    assert slope.dtype == A.dtype
    found = float(np.sum((np.conj(slope) * direction).real))
    assert found == pytest.approx(slope_along(function, A, direction, g), rel=1e-5, abs=1e-6)
