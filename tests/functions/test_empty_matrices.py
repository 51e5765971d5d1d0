"""Norms and condition numbers of arrays without elements: PyTorch's, and under NumPy's names NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.part(8)

SHAPES = [(0,), (0, 0), (0, 3), (3, 0), (2, 0, 0), (0, 2, 2), (2, 0, 3), (2, 3, 0)]
ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, 0, 3]
REDUCED = [(None, False), ((-2, -1), False), ((-1, -2), True), (-1, False), (0, True)]
OF_PYTORCH: dict[str, Callable[..., Any]] = {
    "norm": lambda lib, x, ord, dim, keep: lib.linalg.norm(x, ord, dim, keep),
    "matrix_norm": lambda lib, x, ord, dim, keep: lib.linalg.matrix_norm(
        x, "fro" if ord is None else ord, dim if isinstance(dim, tuple) else (-2, -1), keep
    ),
    "vector_norm": lambda lib, x, ord, dim, keep: lib.linalg.vector_norm(
        x, 2 if ord is None or isinstance(ord, str) else ord, dim, keep
    ),
    "old norm": lambda lib, x, ord, dim, keep: lib.norm(x, ord, dim, keep),
    "cond": lambda lib, x, ord, dim, keep: lib.linalg.cond(x, ord),
}
OF_NUMPY: dict[str, Callable[..., Any]] = {
    "norm": lambda x, ord, axis, keep: np.linalg.norm(x, ord, axis, keep),
    "matrix_norm": lambda x, ord, axis, keep: np.linalg.matrix_norm(x, ord="fro" if ord is None else ord),
    "vector_norm": lambda x, ord, axis, keep: np.linalg.vector_norm(
        x, ord=2 if ord is None or isinstance(ord, str) else ord, axis=axis, keepdims=keep
    ),
    "cond": lambda x, ord, axis, keep: np.linalg.cond(x, ord),
}


def _outcome(function: Callable[..., Any], *given: Any) -> Any:
    """The value, with shape and dtype, or that there is none."""
    try:
        with np.errstate(divide="ignore"):
            found = np.asarray(function(*given))
    except (ValueError, RuntimeError, IndexError):
        return "error"
    return found.shape, found.dtype, found.tolist()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OF_PYTORCH)
@pytest.mark.parametrize("ord", ORDERS)
def test_pytorchs_names_are_as_pytorchs(name: str, shape: tuple[int, ...], ord: Any) -> None:
    torch = pytest.importorskip("torch")
    for dim, keep in REDUCED:
        if name == "old norm" and ord == "nuc" and dim != (-2, -1):
            continue  # PyTorch's older function wants one order of dimensions
        wanted = _outcome(OF_PYTORCH[name], torch, torch.zeros(shape), ord, dim, keep)
        assert _outcome(OF_PYTORCH[name], pb, pb.zeros(shape), ord, dim, keep) == wanted


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OF_NUMPY)
@pytest.mark.parametrize("ord", ORDERS)
def test_numpys_names_are_as_numpys(name: str, shape: tuple[int, ...], ord: Any) -> None:
    for axis, keep in REDUCED:
        wanted = _outcome(OF_NUMPY[name], np.zeros(shape), ord, axis, keep)
        assert _outcome(OF_NUMPY[name], pb.zeros(shape, dtype=pb.float64), ord, axis, keep) == wanted


@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0)])
@pytest.mark.parametrize("ord", [1, 2, np.inf, "nuc", "fro"])
def test_compiled_they_are_as_eager_and_have_gradients_of_no_elements(
    shape: tuple[int, ...], ord: Any
) -> None:
    def of_torch(x: Any) -> Any:
        return (pb.linalg.matrix_norm(x, ord) + pb.linalg.matrix_norm(x, ord, (-1, -2))).sum()

    def of_numpy(x: Any) -> Any:
        return np.linalg.norm(x, ord, (-2, -1)).sum() + np.linalg.norm(x, np.inf, -1).sum()

    for function, given in ((of_torch, pb.zeros(shape)), (of_numpy, np.zeros(shape))):
        evaluate = pb.value_and_grad(function)
        for one in (evaluate, pb.compile(evaluate)):
            value, gradient = one(given)
            assert float(value) == 0 and gradient.shape == shape
    conditions = pb.compile(pb.linalg.cond)(pb.zeros(shape))
    assert conditions.tolist() == np.zeros(shape[:-2]).tolist()


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: pb.linalg.norm(x, -1), "vector_norm.*to have non-zero size, found shape"),
    (lambda x: pb.linalg.norm(x.reshape(0, 1, 1), 2), "1D or 2D"),
    (lambda x: np.linalg.norm(x.reshape(0, 1, 1), 2), "Improper number of dimensions.*\\(0, 1, 1\\)"),
    (lambda x: np.linalg.norm(x, "fro"), "ord='fro'"),
    (lambda x: pb.linalg.matrix_norm(x), "at least 2 dimensions"),
    (lambda x: pb.linalg.matrix_norm(x.reshape(0, 1), dim=(0, 0)), "different"),
    (lambda x: np.linalg.cond(x.reshape(0, 0)), "not defined on empty arrays, found shape \\(0, 0\\)"),
    (lambda x: pb.linalg.cond(x.reshape(0, 0), 3), "p=3"),
    (lambda x: pb.norm(x, "nuc"), "two dimensions"),
])  # fmt: skip
def test_errors_name_function_and_shape(function: Callable[[Any], Any], message: str) -> None:
    for one in (function, pb.compile(function)):
        with pytest.raises((pb.errors.ShapeError, pb.errors.ArgumentError), match=message):
            one(pb.zeros(0, dtype=pb.float64))
