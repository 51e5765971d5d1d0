"""Where libraries meet a Tensor: errors with the function, the user's line, the cause and a remedy."""

import array
import decimal
import io
import json
import random
import statistics
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
from scipy.integrate import quad, quad_vec
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation as SpatialRotation
from scipy.spatial.transform import Slerp

import pullback as pb
from pullback import errors

ONES = np.ones(3)
X = np.array([0.6, 1.3, 2.1])
RNG = np.random.default_rng(0)

POINTS = RNG.standard_normal((6, 3))
TURN = SpatialRotation.from_rotvec(ONES)
BETWEEN = Slerp([0.0, 1.0], SpatialRotation.from_rotvec(POINTS[:2]))
SURFACE = scipy.interpolate.RBFInterpolator(POINTS, POINTS[:, 0])
PATCHES = scipy.interpolate.RectBivariateSpline(np.arange(5.0), np.arange(5.0), np.eye(5))

LOST: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda x: scipy.integrate.quad_vec(lambda t: x[0] * t, 0, 1)[0], "scipy.integrate.quad_vec", "quad"),
    (lambda x: scipy.interpolate.KroghInterpolator(ONES.cumsum(), x)(0.5), "Krogh", "CubicSpline"),
    (lambda x: scipy.signal.resample_poly(x, 2, 1)[-1], "scipy.signal.resample_poly", "convolve"),
    (lambda x: scipy.linalg.hessenberg(np.outer(x, x)).sum(), "scipy.linalg.hessenberg", "schur"),
    (lambda x: scipy.linalg.ldl(np.outer(x, x))[0].sum(), "scipy.linalg.ldl", "assume_a='sym'"),
    (lambda x: scipy.linalg.eigvals_banded(x[None]).sum(), "scipy.linalg.eigvals_banded", "eigh"),
    (lambda x: SpatialRotation.from_rotvec(x).as_matrix().sum(), "Rotation.from_rotvec", "quaternions"),
    (lambda x: TURN.apply(x).sum(), "scipy.spatial.transform.Rotation.apply", "quaternions"),
    (lambda x: BETWEEN(x[0]).as_rotvec().sum(), "scipy.spatial.transform.Slerp", "scipy.spatial"),
    (lambda x: SURFACE(x[None])[0], "scipy.interpolate.RBFInterpolator", "CubicSpline"),
    (lambda x: PATCHES(x[0], x[1]).sum(), "scipy.interpolate.RectBivariateSpline", "CubicSpline"),
    (lambda x: sum(array.array("d", x)), "array.array", "numpy.array"),
    (lambda x: struct.unpack("d", struct.pack("d", x[0]))[0], "struct.pack", "functions of numpy"),
    (lambda x: RNG.poisson(x).sum() * x[0], "numpy.random.Generator.poisson", "standard_normal"),
    (lambda x: np.random.default_rng(0).choice(3, p=x / x.sum()) * x[0], "choice", "standard_normal"),
    (lambda x: statistics.geometric_mean(x), "statistics.geometric_mean", "numpy.mean"),
    (lambda x: np.ma.masked_greater(x, 1.0).sum(), "numpy.ma.masked_greater", "functions of numpy"),
]
"""Functions that lose a gradient, the call that does it, and words of the remedy."""


@pytest.mark.parametrize(("function", "call", "remedy"), LOST)
def test_a_lost_gradient_is_an_error(function: Callable[[Any], Any], call: str, remedy: str) -> None:
    assert np.isfinite(function(X))
    for transformed in (
        pb.grad(function),
        lambda x: pb.jvp(function, (x,), (ONES,)),
        pb.compile(pb.grad(function)),
    ):
        with pytest.raises(errors.GradientError) as caught:
            transformed(X)
        message = str(caught.value)
        assert "no gradient" in message and "test_library_errors.py:" in message, message
        assert call in message and remedy in message and "stop_gradient" in message, message


def test_functions_written_in_cython_run_uncompiled_where_no_gradient_is_lost() -> None:
    """Some ask for memory that they may write into, which a traced value has not."""

    def turned(x: Any) -> Any:
        return TURN.apply(np.asarray(pb.stop_gradient(x))).sum() * x.sum()

    text = r"Rotation.apply asks for memory that it may write into, .*test_library_errors.py:\d+  return TURN"
    with pytest.warns(UserWarning, match=text):
        found = pb.compile(turned)(X)
    np.testing.assert_allclose(found, TURN.apply(X).sum() * X.sum())
    np.testing.assert_allclose(pb.grad(turned)(X), np.full(3, TURN.apply(X).sum()))


def in_the_middle(x: Any) -> Any:
    values = x * 2
    return statistics.fmean(values) + x[0]


def test_the_line_is_the_users_not_the_librarys() -> None:
    with pytest.raises(errors.GradientError, match=r"test_library_errors.py:\d+  return statistics.fmean"):
        pb.grad(in_the_middle)(X)


def test_code_without_source_has_names() -> None:
    namespace: dict[str, Any] = {"quad_vec": quad_vec}
    exec("def area(x):\n    return quad_vec(lambda t: x[0] * t, 0, 1)[0]", namespace)
    with pytest.raises(errors.GradientError, match=r"scipy\.integrate\.\S+ computes .* at <string>:2\."):
        pb.grad(namespace["area"])(X)


def test_values_without_a_gradient_are_let_through() -> None:
    def area(x: Any) -> Any:
        return x * quad(lambda t: t, 0, 1)[0] * statistics.fmean([1.0, 3.0])

    assert pb.grad(area)(3.0) == 1.0

    def rounded(x: Any) -> Any:
        return x * brentq(lambda t: t - int(x), 0, 5)

    assert pb.grad(rounded)(3.0) == 3.0


def test_the_tape_of_backward_is_pytorchs() -> None:
    x = pb.tensor([1.0, 2.0]).requires_grad_()
    with pytest.raises(errors.GradientError, match=r"random.Generator.normal.*tensor\.detach\(\)\.numpy\(\)"):
        RNG.normal(x, 1.0)
    assert quad(lambda t: t * x[0], 0, 1)[0] == pytest.approx(0.5)


def test_an_array_that_cannot_hold_a_gradient_is_named() -> None:
    class Recorder:
        rows = np.zeros((2, 3))

    def recorded(x: Any) -> Any:
        Recorder.rows[0] = x
        return Recorder.rows.sum()

    with pytest.raises(errors.GradientError, match=r"Recorder\.rows\[0\] = \.\.\. makes one.*like=x"):
        pb.grad(recorded)(X)


class Rotation:
    def matrix(self, x: Any, array: Callable[..., Any] = np.array) -> Any:
        return array([[x[0], -x[1]], [x[1], x[0]]])


ROTATION = Rotation()


def test_an_array_made_by_another_name_says_how_it_keeps_the_gradient() -> None:
    def rotated(x: Any) -> Any:
        return ROTATION.matrix(x).sum()

    advice = r"numpy\.array makes one of .*like=x\), or call it by the module's name .*unless the function"
    with pytest.raises(errors.GradientError, match=advice):
        pb.grad(rotated)(np.ones(2))
    np.testing.assert_array_equal(pb.grad(pb.compile(rotated))(np.ones(2)), [2.0, 0.0])


UNFIT: list[tuple[Callable[[Any], Any], str, type[errors.PullbackError]]] = [
    (lambda x: json.loads(json.dumps([x[0]]))[0], "json.dumps", errors.ArgumentError),
    (lambda x: float(decimal.Decimal(x[0]) * 2), "decimal.Decimal", errors.ArgumentError),
    (lambda x: statistics.mean(x), "statistics.mean", errors.ArgumentError),
    (lambda x: np.frombuffer(x).sum(), "numpy.frombuffer", errors.ArgumentError),
    (lambda x: x.ctypes.data + x[0], "ctypes", errors.UnsupportedError),
]


@pytest.mark.parametrize(("function", "words", "kind"), UNFIT)
def test_errors_of_others_about_tensors_are_explained(
    function: Callable[[Any], Any], words: str, kind: type[errors.PullbackError]
) -> None:
    assert np.isfinite(function(X))
    for transformed in (pb.grad(function), pb.compile(pb.grad(function))):
        with pytest.raises(kind, match=r"(?s)stands for an array.*test_library_errors.py:\d+") as caught:
            transformed(X)
        assert words in str(caught.value)
        assert not isinstance(caught.value.__cause__, (errors.PullbackError, type(None)))


def test_errors_of_the_user_are_left_alone() -> None:
    class OwnError(Exception):
        pass

    def refusing(x: Any) -> Any:
        try:
            return scipy.signal.resample_poly(x, 2, 1).sum()
        except errors.GradientError:
            raise OwnError("no Tensor here") from None

    with pytest.raises(OwnError):
        pb.grad(refusing)(X)
    with pytest.raises(OwnError):
        pb.compile(pb.grad(refusing))(X)

    def caught(x: Any) -> Any:
        try:
            return RNG.poisson(x).sum() * x[0]
        except errors.GradientError:
            return (x * x).sum()

    np.testing.assert_allclose(pb.grad(caught)(X), 2 * X)

    def wrong(x: Any) -> Any:
        return x[0] + [][1]

    with pytest.raises(IndexError, match="list index out of range"):
        pb.grad(wrong)(X)


NAMED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: scipy.special.mathieu_a(1, x).sum(), r"scipy\.special\.mathieu_a is not supported"),
    (lambda x: scipy.special.itairy(x)[0].sum(), r"scipy\.special\.itairy is not supported"),
    (
        lambda x: scipy.special.ellip_harm(5, 8, 1, 1, x).sum(),
        r"scipy\.special\._ellip_harm, in scipy\.special\.ellip_harm, is not supported",
    ),
    (lambda x: np.frompyfunc(abs, 1, 1)(x).sum(), r"numpy\.frompyfunc\(abs\) is not supported"),
    (lambda x: np.savetxt(io.StringIO(), x) or x[0], r"numpy\.savetxt is not supported"),
    (lambda x: random.choice(np.spacing(x)), r"numpy\.spacing is not supported"),
]


@pytest.mark.parametrize(("function", "words"), NAMED)
def test_functions_are_called_by_their_own_names(function: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(errors.UnsupportedError, match=words):
        pb.grad(function)(X)
