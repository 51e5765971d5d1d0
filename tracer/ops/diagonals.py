"""The diagonal of square matrices, alone or in batches: taken, made a matrix of, and written."""

from __future__ import annotations

import numpy as np

from ..graph import make_node
from ..operator import HOLOMORPHIC, Array, Walk, declare
from ..spec import INT64, Spec
from .creation import iota
from .elementwise import equal, where, zeros_like
from .movement import expand, movement, reshape


def rows_and_columns(size: int) -> tuple[Array, Array]:
    """The numbers of rows and of columns, to be compared with each other and with a step."""
    numbers = make_node(iota, (), {"size": size, "dtype": INT64})  # a node: this is for bodies
    return reshape(numbers, shape=(size, 1)), reshape(numbers, shape=(1, size))


def _view(x: np.ndarray) -> np.ndarray:
    """The diagonal as a view, which may be written where x may: NumPy's own may not."""
    found = np.diagonal(x, 0, -2, -1)
    if x.flags.writeable:
        found.flags.writeable = True
    return found


def _written(x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    _view(x)[...] = diagonal
    return x


def _as_column(x: Array) -> Array:
    """Each element in all columns of its row."""
    shape = tuple(x.shape)
    return expand(reshape(x, shape=(*shape, 1)), shape=(*shape, shape[-1]))


def _with_diagonal(x: Array, diagonal: Array) -> Array:
    is_diagonal = equal(*rows_and_columns(x.shape[-1]))
    return where(is_diagonal, _as_column(diagonal), x)


diagonal = movement(
    "diagonal",
    infer=lambda x: x.with_shape(x.shape[:-1]),
    evaluate=_view,
    vjp={"x": lambda g: diagonal_matrix(g)},
    is_view=True,
    walks=lambda x: (*map(Walk, range(x.ndim - 1)), Walk(x.ndim - 2)),
    doc="the diagonal of each square matrix in the last two dimensions",
)  # fmt: skip
diagonal_matrix = declare(
    "diagonal_matrix", "composite", "x", infer=lambda x: x.with_shape((*x.shape, x.shape[-1])),
    evaluate=lambda x: _written(np.zeros((*x.shape, x.shape[-1]), x.dtype), x),
    body=lambda x: where(equal(*rows_and_columns(x.shape[-1])), _as_column(x), 0.0),
    vjp={"x": lambda g: diagonal(g)}, of_complex=HOLOMORPHIC, grad_fn="DiagEmbed",
    doc="square matrices that have the last dimension of x on their diagonal, and zeros beside it",
)  # fmt: skip


def _infer_update(x: Spec, diagonal: Spec) -> Spec:
    return x


diagonal_update = declare(
    "diagonal_update", "composite", "x diagonal", infer=_infer_update,
    evaluate=lambda x, diagonal: _written(np.array(x), diagonal), body=_with_diagonal,
    vjp={
        "x": lambda g: diagonal_update(g, zeros_like(diagonal(g))),
        "diagonal": lambda g: diagonal(g),
    },
    of_complex=HOLOMORPHIC, grad_fn="CopySlices",
    doc="square matrices x with their diagonal replaced",
)  # fmt: skip
