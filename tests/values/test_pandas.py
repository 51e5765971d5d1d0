"""pandas' and xarray's objects with Tensors: operands and indices by their arrays, or a clear error."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import errors

pd = pytest.importorskip("pandas")

X = np.array([0.6, 1.3, 2.1])
W = np.array([1.5, -0.5, 2.0])
TABLE = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.1]])
SERIES = pd.Series(W, index=list("abc"))
FRAME = pd.DataFrame(TABLE, index=list("abc"), columns=list("uvw"))
ORDER = pd.Series([2, 0, 1])
CHOSEN = pd.Series([True, False, True])

PROGRAMS: list[Callable[[Any], Any]] = [
    lambda x: (x * SERIES).sum(),
    lambda x: (SERIES * x).sum(),
    lambda x: ((SERIES - x[0]) ** 2).sum(),
    lambda x: np.sum((x[0] - SERIES) ** 2),
    lambda x: (x / SERIES + SERIES / x + x**SERIES + abs(SERIES) ** x).sum(),
    lambda x: ((x > SERIES) * x + (x < SERIES) * x**2).sum(),
    lambda x: np.exp(-((SERIES - x) ** 2)).sum(),
    lambda x: (np.multiply(SERIES, x) + np.maximum(SERIES, x) + np.add(x, SERIES)).sum(),
    lambda x: np.where(SERIES > 0, x, x * x).sum() + np.dot(SERIES, x) + (x @ SERIES),
    lambda x: (np.dot(FRAME, x) + (x @ FRAME)).sum() + np.linalg.solve(FRAME, x).sum(),
    lambda x: (x * FRAME + FRAME / x[0]).sum().sum(),
    lambda x: (FRAME["u"] * x).sum() + np.concatenate([x, SERIES]).prod(),
    lambda x: (x[ORDER] * W).sum() + x[CHOSEN].prod() + x[SERIES > 0].sum() + x[pd.Index([0, 2])].prod(),
    lambda x: sum(weight * x[0] for weight in SERIES) + SERIES.iloc[0] * x[1] + SERIES["c"] * x[2],
]


def central(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    steps = np.eye(x.size) * 1e-6
    return np.array([(function(x + step) - function(x - step)) / 2e-6 for step in steps])


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs_with_pandas_objects(function: Callable[[Any], Any]) -> None:
    value, gradient = pb.value_and_grad(function)(X)
    np.testing.assert_allclose(value, function(X))
    np.testing.assert_allclose(gradient, central(function, X), rtol=1e-6, atol=1e-6)
    x = pb.tensor(X).requires_grad_()
    function(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), gradient)


def test_compiled_programs_with_pandas_objects() -> None:
    named = {"series": SERIES, "order": ORDER, "frame": FRAME}.get

    def loss(x: Any) -> Any:
        return ((named("series") - x[named("order")]) ** 2 + x * named("frame")["u"]).sum()

    value, gradient = pb.compile(pb.value_and_grad(loss))(X)
    np.testing.assert_allclose(value, loss(X))
    np.testing.assert_allclose(gradient, central(loss, X), rtol=1e-6)


def test_writing_at_pandas_indices() -> None:
    def written(x: Any) -> Any:
        y = np.zeros(3)
        y[ORDER] = x * SERIES
        y[CHOSEN] *= 2.0
        return (y * W).sum()

    np.testing.assert_allclose(pb.grad(written)(X), central(written, X), rtol=1e-6)


MISUSES: list[tuple[Callable[[Any], Any], type[errors.PullbackError]]] = [
    (lambda given: pb.grad(lambda x: (x * x).sum())(given), errors.ArgumentError),
    (lambda given: pb.jvp(lambda x: x, (given,), (given,)), errors.ArgumentError),
    (lambda given: pb.compile(lambda x: x * 2)(given), errors.OutputError),
    (lambda given: pb.compile(pb.grad(lambda x: (x * x).sum()))(given), errors.ArgumentError),
    (lambda given: pb.vmap(lambda x: x * 2)(given), errors.ArgumentError),
    (lambda given: pb.exp(given), errors.ArgumentError),
    (lambda given: pb.stack([pb.ones(3), given]), errors.ArgumentError),
    (lambda given: pb.nn.functional.relu(given), errors.ArgumentError),
    (lambda given: pb.compile(lambda x: given)(X), errors.OutputError),
    (lambda given: pb.grad(lambda x: given)(X), errors.OutputError),
]


@pytest.mark.parametrize(("misuse", "kind"), MISUSES)
def test_what_takes_no_pandas_object_says_to_numpy(
    misuse: Callable[[Any], Any], kind: type[errors.PullbackError]
) -> None:
    for given in (SERIES, FRAME):
        with pytest.raises(kind, match=r"\.to_numpy\(\)"):
            misuse(given)


def test_what_pandas_does_itself_with_a_tensor_is_refused() -> None:
    for function in (
        lambda x: pd.DataFrame({"a": x}).sum().sum(),
        lambda x: (FRAME @ x).sum(),
        lambda x: SERIES.dot(x),
        lambda x: SERIES.clip(upper=x[0]).sum(),
    ):
        with pytest.raises(errors.GradientError, match=r"(?s)pandas\..*test_pandas.py:\d+.*\.to_numpy\(\)"):
            pb.grad(function)(X)


def test_xarray_objects_hold_tensors() -> None:
    xarray = pytest.importorskip("xarray")
    given = xarray.DataArray(W, dims="t")
    np.testing.assert_allclose(pb.grad(lambda x: (given * x).data.sum())(X), W)
    for misuse in (
        lambda: pb.grad(lambda x: x * given)(X),
        lambda: pb.compile(lambda x: x * given)(X),
    ):
        with pytest.raises(errors.OutputError, match=r"Return its \.data\."):
            misuse()
    for misuse in (
        lambda: pb.grad(lambda x: x.sum())(given),
        lambda: pb.sum(given),
        lambda: pb.compile(lambda x: x)(given),
    ):
        with pytest.raises(errors.ArgumentError, match=r"\.to_numpy\(\)"):
            misuse()
    with pytest.raises(
        errors.DimensionError, match=r"\(got DataArray\)\. Pass its array, its \.to_numpy\(\)"
    ):
        pb.tensor(X)[given > 0]
