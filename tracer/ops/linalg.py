"""Square matrices, alone or in batches: linear equations, determinants, Cholesky's factor.

NumPy evaluates them, with LAPACK. In generated code each is a loop over the columns: elimination with row
pivots after Gauss and Jordan, or a column of the factor at a time. Where there is no result, LAPACK raises
LinAlgError and generated code gives inf or nan. The rules are in Giles, "An extended collection of matrix
derivative results" (2008).
"""

from __future__ import annotations

import numpy as np

from ..errors import ShapeError
from ..operator import Array, declare
from ..spec import INT64, Spec
from .contraction import contract
from .creation import iota
from .elementwise import (
    absolute,
    convert,
    equal,
    greater,
    greater_equal,
    log,
    multiply,
    sqrt,
    where,
    zeros_like,
)  # fmt: skip
from .elementwise import (
    sign as sign_of,
)
from .movement import expand, permute, reshape
from .reduction import argmax, prod, sum_

BATCH = "abcdefgh"

# --- parts of matrices --------------------------------------------------------------------------------------


def transposed(x: Array) -> Array:
    rank = len(x.shape)
    return permute(x, dims=(*range(rank - 2), rank - 1, rank - 2))


def product(a: Array, b: Array) -> Array:
    """Matrices times matrices, of one batch."""
    batch = BATCH[: len(a.shape) - 2]
    return contract(a, b, subscripts=f"{batch}ij,{batch}jk->{batch}ik")


def _numbers(size: int) -> Array:
    """0, 1, ... in a graph: bodies are made of nodes."""
    from ..graph import make_node

    return make_node(iota, (), {"size": size, "dtype": INT64})


def _rows_and_columns(size: int) -> tuple[Array, Array]:
    """The numbers of rows and of columns, to be compared with each other and with a step."""
    return reshape(_numbers(size), shape=(size, 1)), reshape(_numbers(size), shape=(1, size))


def _unit_like(x: Array) -> Array:
    rows, columns = _rows_and_columns(x.shape[-1])
    return expand(convert(equal(rows, columns), dtype=x.dtype), shape=tuple(x.shape))


def _lower_half(x: Array) -> Array:
    rows, columns = _rows_and_columns(x.shape[-1])
    return where(greater(rows, columns), x, where(equal(rows, columns), 0.5 * x, 0.0))


unit_like = declare(
    "unit_like", "composite", "x", infer=lambda x: x, body=_unit_like,
    evaluate=lambda x: np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape).copy(),
    vjp={"x": lambda g: zeros_like(g)}, doc="the unit matrix for every matrix of x",
)  # fmt: skip
lower_half = declare(
    "lower_half", "composite", "x", infer=lambda x: x, body=_lower_half,
    evaluate=lambda x: np.tril(x, -1) + np.tril(np.triu(x)) * np.asarray(0.5, x.dtype),
    vjp={"x": lambda g: lower_half(g)}, doc="the lower triangle, with half of the diagonal",
)  # fmt: skip


def _chosen(x: Array, mask: Array, dim: int) -> Array:
    """The one row (dim -2) or column (-1) that a mask names; what is not in it does no harm, inf neither."""
    return sum_(where(mask, x, 0.0), dims=(len(x.shape) + dim,), keepdim=True)


# --- elimination --------------------------------------------------------------------------------------------


def _eliminated(a: Array, b: Array) -> tuple[Array, Array]:
    """The solution of a x = b, and the pivots of shape (n, ...), negative where rows were exchanged."""
    from ..graph import Graph, make_input
    from ..loop import make_loop

    size = a.shape[-1]
    left, right = make_input(a.spec, "matrix"), make_input(b.spec, "sides")
    step = make_input(Spec((), INT64), "step")
    rows, columns = _rows_and_columns(size)
    at_row, at_column = equal(rows, step), equal(columns, step)
    column = _chosen(left, at_column, -1)
    sizes = where(greater_equal(rows, step), absolute(column), -1.0)
    place = argmax(sizes, dims=(len(sizes.shape) - 2,), keepdim=True)
    at_pivot = equal(rows, place)
    pivot_row, pivot_side, pivot = (_chosen(one, at_pivot, -2) for one in (left, right, column))

    def exchanged(one: Array, instead: Array) -> Array:
        return where(at_row, instead, where(at_pivot, _chosen(one, at_row, -2), one))

    factor = where(at_row, 0.0, exchanged(column, pivot) / pivot)
    after = [
        where(at_row, row / pivot, exchanged(one, row) - factor * row)
        for one, row in ((left, pivot_row), (right, pivot_side))
    ]
    signed = reshape(where(equal(place, step), pivot, -1.0 * pivot), shape=tuple(a.shape[:-2]))
    body = Graph("elimination", (left, right, step), (*after, signed))
    loop = make_loop(body, [a, b], [_numbers(size)], [], size)
    return loop.result(1), loop.result(2)


def _pivots(a: Array) -> Array:
    from ..graph import constant

    return _eliminated(a, constant(0.0, a.spec.with_shape((*a.shape[:-1], 0))))[1]


def _require_square(name: str, a: Spec) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: square matrices expected, found shape {a.shape}.")


def _infer_solve(a: Spec, b: Spec) -> Spec:
    _require_square("solve", a)
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(
            f"solve: sides of shape (..., {a.shape[-1]}, m) expected, found {b.shape} for {a.shape}."
        )
    return b


def _infer_number(a: Spec) -> Spec:
    _require_square("det", a)
    return a.with_shape(a.shape[:-2])


solve = declare(
    "solve", "composite", "a b", infer=_infer_solve, evaluate=np.linalg.solve,
    body=lambda a, b: _eliminated(a, b)[0], grad_fn="LinalgSolveEx",
    vjp={
        "a": lambda g, a, y: -1.0 * product(solve(transposed(a), g), transposed(y)),
        "b": lambda g, a: solve(transposed(a), g),
    },
    doc="the x with a x = b, for matrices a and b",
)  # fmt: skip


def _for_each_matrix(g: Array, a: Array) -> Array:
    return expand(reshape(g, shape=(*g.shape, 1, 1)), shape=tuple(a.shape))


def _inverse_transposed(a: Array) -> Array:
    return solve(transposed(a), unit_like(a))


det = declare(
    "det", "composite", "a", infer=_infer_number, evaluate=np.linalg.det, grad_fn="LinalgDet",
    body=lambda a: prod(_pivots(a), dims=(0,), keepdim=False),
    vjp={"a": lambda g, a, y: multiply(_for_each_matrix(multiply(g, y), a), _inverse_transposed(a))},
    doc="the determinant; the derivative needs an inverse",
)  # fmt: skip
logabsdet = declare(
    "logabsdet", "composite", "a", infer=_infer_number, evaluate=lambda a: np.linalg.slogdet(a)[1],
    body=lambda a: sum_(log(absolute(_pivots(a))), dims=(0,), keepdim=False), grad_fn="LinalgSlogdet",
    vjp={"a": lambda g, a: multiply(_for_each_matrix(g, a), _inverse_transposed(a))},
    doc="the logarithm of the determinant's size, without overflow",
)  # fmt: skip
sign_of_det = declare(
    "sign_of_det", "composite", "a", infer=_infer_number, evaluate=lambda a: np.linalg.slogdet(a)[0],
    body=lambda a: prod(sign_of(_pivots(a)), dims=(0,), keepdim=False), grad_fn="LinalgSlogdet",
    vjp={"a": lambda a: zeros_like(a)},
    doc="the sign of the determinant",
)  # fmt: skip

# --- Cholesky -----------------------------------------------------------------------------------------------


def _infer_cholesky(a: Spec) -> Spec:
    _require_square("cholesky", a)
    return a


def _cholesky(a: Array) -> Array:
    """A column of the factor in each step, whose square is taken from what is left of the matrix."""
    from ..graph import Graph, make_input
    from ..loop import make_loop

    size, rank = a.shape[-1], len(a.shape)
    left, step = make_input(a.spec, "matrix"), make_input(Spec((), INT64), "step")
    rows, columns = _rows_and_columns(size)
    column = _chosen(left, equal(columns, step), -1)
    pivot = _chosen(column, equal(rows, step), -2)
    found = where(greater_equal(rows, step), column / sqrt(pivot), 0.0)
    rest = left - found * transposed(found)
    body = Graph("cholesky", (left, step), (rest, reshape(found, shape=tuple(a.shape[:-1]))))
    factor = make_loop(body, [a], [_numbers(size)], [], size).result(1)
    return permute(factor, dims=(*range(1, rank), 0))


def _cholesky_cotangent(g: Array, y: Array) -> Array:
    """With half of the diagonal of the lower triangle of y' g; symmetric, as a is."""
    middle = lower_half(product(transposed(y), g))
    across = solve(transposed(y), transposed(solve(transposed(y), transposed(middle))))
    return 0.5 * (across + transposed(across))


cholesky = declare(
    "cholesky", "composite", "a", infer=_infer_cholesky, evaluate=np.linalg.cholesky, body=_cholesky,
    vjp={"a": lambda g, y: _cholesky_cotangent(g, y)}, grad_fn="LinalgCholeskyEx",
    doc="the lower triangular L with L L' = a, of whose lower triangle alone it is read",
)  # fmt: skip
MADE_OF_LOOPS = frozenset((solve, det, logabsdet, sign_of_det, cholesky))
"""Those whose bodies are loops."""
