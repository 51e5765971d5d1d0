"""Arrays of other classes that functions reach: those that NumPy is given, and masked arrays and matrices."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.arange(1.0, 4.0)


# --- masked arrays and matrices -----------------------------------------------------------------------------

MASKED = np.ma.array(X, mask=[0, 1, 0])
with pytest.warns(PendingDeprecationWarning):
    MATRIX = np.asmatrix(X)


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


FORBIDDEN = {"masked array": MASKED, "np.matrix": MATRIX}


@pytest.mark.parametrize("name", FORBIDDEN)
@pytest.mark.parametrize(
    "use",
    [
        lambda value: pb.compile(lambda x: (x * value).sum())(X),
        lambda value: pb.compile(lambda x: x.sum())(value),
        lambda value: pb.grad(lambda x: (x * value).sum())(X),
        lambda value: pb.grad(lambda x: x.sum())(value),
        lambda value: pb.grad(lambda x: np.multiply(value, x).sum())(X),
        lambda value: pb.compile(lambda x, box: x * box.value)(X, Box(value)),
        lambda value: pb.tensor(X) * value,
        lambda value: pb.tensor(value),
        lambda value: pb.from_numpy(value),
        lambda value: np.where(value > 1, pb.tensor(X), 0.0),
        lambda value: pb.stack([pb.tensor(X), value]),
    ],
)
def test_masked_arrays_and_matrices_are_refused(name: str, use: Any) -> None:
    with pytest.raises(ArgumentError, match=name):
        use(FORBIDDEN[name])


def test_a_masked_array_that_is_made_inside() -> None:
    with pytest.raises(ArgumentError, match="masked array"):
        pb.compile(lambda x: (x * np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])).sum())(X)
    with pytest.raises(ArgumentError, match="a masked array is made of a tensor"):
        pb.compile(lambda x: np.ma.masked_greater(x, 2.0))(X)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    "make", [np.asmatrix, np.matrix, lambda x: np.bmat([[x, x]]), lambda x: x.view(np.matrix)]
)
@pytest.mark.parametrize("transform", [pb.compile, pb.grad])
def test_a_matrix_that_is_made_inside(make: Any, transform: Any) -> None:
    with pytest.raises(ArgumentError, match=r"(a tensor|an array) cannot be numpy.matrix. Use .* write @"):
        transform(lambda x: (make(x) * x.T).sum())(np.ones((2, 2)))


MEASURED = np.array([1.0, 2.0, 3.0])


class Measured:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return MEASURED * 2.0


@pytest.mark.parametrize(
    "read",
    [
        lambda one, x: np.asarray(one) * x,
        lambda one, x: np.array(one, np.float32) * np.zeros_like(x),  # which has NumPy make arrays of ours
        lambda one, x: np.add(one, x),
        lambda one, x: np.dot(x, one),
    ],
)
def test_objects_that_give_numpy_an_array(read: Any) -> None:
    given, x = Measured(), np.array([0.5, -1.0, 2.0])
    compiled = pb.compile(lambda x: (read(given, x), read(Measured(), x)))
    for _ in range(2):
        for found, wanted in zip(compiled(x), (read(given, x),) * 2):
            np.testing.assert_array_equal(found, wanted)
        MEASURED[0] += 1.0
