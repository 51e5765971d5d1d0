"""Variance, standard deviation, norms, logsumexp: combinations with a formula of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....tracer.dims import share
from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.operator import Operator
from ....tracer.ops import composite as c
from ....tracer.ops import elementwise as e
from ....tracer.ops import reduction as r
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..common import (
    Dims,
    all_dims,
    array_dtype,
    as_dtype,
    conjugate,
    elementwise,
    fail,
    floating,
    numpy_dtype,
    numpy_names,
    one_dim,
    promoted,
    require_broadcast,
    require_float,
    require_real,
    tensor,
    with_short_way,
)  # fmt: skip
from ..conventions import Function, reduced_directly, require_elements
from ..declared import amax, amin, sum
from ..elements.complex_numbers import real as real_part
from ..matrices.contraction import contracted
from ..matrices.decompositions import svdvals
from ..shapes.movement import expand_to, moved_to_end
from .reduction import mean

__all__ = [
    "corrcoef", "cosine_similarity", "cov", "dist", "linalg_norm", "logsumexp", "matrix_norm", "norm",
    "normalize", "std", "std_mean", "var", "var_mean", "vector_norm",
]  # fmt: skip


def _spread(
    operator: Operator, input: Tensor, dim: Any, unbiased: bool | None, keepdim: bool,
    correction: float | None, function: str,
) -> Tensor:  # fmt: skip
    """var and std, whose second argument may be `unbiased` in PyTorch's older form."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        fail(ArgumentError, f"{function}(): 'unbiased' and 'correction' exclude each other; give one.")
    if isinstance(correction, Tensor):
        fail(
            ArgumentError,
            f"{function}(): argument 'correction' must be a number, not Tensor: it has no gradient. Give "
            "correction.item().",
        )
    if correction is None:
        correction = 0 if unbiased is False else 1
    x = tensor(input, function)
    require_float(x, f"{function} and mean")
    dims = all_dims(dim, x.ndim, function)
    return apply(operator, x, dims=dims, keepdim=bool(keepdim), correction=correction)


@numpy_names
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The variance over all dimensions, or some: squared deviations from the mean over n - correction.

    Args:
        input: a floating tensor.
        dim, keepdim: see `sum`.
        unbiased: False for correction 0, an older form of PyTorch's.
        correction: taken off the number of elements; 1 unless given.

    Raises:
        DTypeError: the tensor is not floating.
        ArgumentError: both unbiased and correction are given.

    Example:
        >>> var(tensor([1.0, 2.0, 3.0]))
        tensor(1.)
    """
    return _spread(c.var, input, dim, unbiased, keepdim, correction, "var")


@numpy_names
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation, the root of `var`; the derivative where it is 0 is taken as 0.

    Example:
        >>> std(tensor([1.0, 2.0, 3.0]))
        tensor(1.)
    """
    return _spread(c.std, input, dim, unbiased, keepdim, correction, "std")


def _spread_directly(operator: Operator, correction: float) -> Function:
    return reduced_directly(operator, f"{operator.grad_fn}Backward0", correction=correction)


var_directly, std_directly = _spread_directly(c.var, 0), _spread_directly(c.std, 0)
"""The short ways of NumPy's."""
for _function, _operator in ((var, c.var), (std, c.std)):
    _short = _spread_directly(_operator, 1)
    with_short_way(_function, lambda x=None, *more, short=_short: NotImplemented if more else short(x))


def _mean_like(input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    return mean(input, None if isinstance(dim, bool) else dim, keepdim)


@numpy_names
def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(`var`, `mean`).

    Example:
        >>> var_mean(tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    return var(input, dim, unbiased, keepdim, correction=correction), _mean_like(input, dim, keepdim)


@numpy_names
def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(`std`, `mean`).

    Example:
        >>> std_mean(tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    return std(input, dim, unbiased, keepdim, correction=correction), _mean_like(input, dim, keepdim)


@numpy_names
def logsumexp(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over dimensions, without overflow.

    Example:
        >>> logsumexp(tensor([0.0, 0.0]), dim=0)
        tensor(0.6931)
    """
    x = floating(input, "logsumexp")
    if not x.numel():  # exp(x) of nothing adds up to 0
        return apply(e.subtract, sum(x, dim, keepdim), math.inf, grad_name="LogsumexpBackward0")
    return apply(c.logsumexp, x, dims=all_dims(dim, x.ndim, "logsumexp"), keepdim=bool(keepdim))


# --- norms --------------------------------------------------------------------------------------------

NORM = "LinalgVectorNormBackward0"
ORDERS = (1, -1, 2, -2, math.inf, -math.inf)
"""Of norms of matrices those that are numbers."""


@numpy_names
def vector_norm(
    x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """`(sum |x| ** ord) ** (1 / ord)` over dimensions; the largest `|x|` for inf, the smallest for -inf,
    for 0 the number of elements that are not 0.

    The derivative at 0 is taken as 0.

    Raises:
        DTypeError: the tensor is not floating. ShapeError: no elements, which have no norm of order inf, nor
            of a negative one. ArgumentError: `ord` is no number.

    Example:
        >>> vector_norm(tensor([3.0, 4.0]))
        tensor(5.)
    """
    values = tensor(x, "linalg.vector_norm")
    if dtype is not None:
        values = as_dtype(values, numpy_dtype(dtype))
    require_float(values, "linalg.vector_norm")
    order = order_of_vectors(ord, "linalg.vector_norm")
    dims = all_dims(dim, values.ndim, "linalg.vector_norm")
    if order < 0 or order == math.inf:
        require_elements(values, dims, "linalg.vector_norm")
    return norm_of_vectors(values, order, dims, keepdim)


def order_of_vectors(ord: Any, function: str) -> float:
    try:
        return float(ord)
    except (TypeError, ValueError):
        fail(ArgumentError, f"{function}: ord={ord!r} is no order of vectors' norms; expected a number.")


def norm_of_vectors(values: Tensor, order: float, dims: Sequence[int], keepdim: bool) -> Tensor:
    """`vector_norm` as NumPy has it: of nothing 0, or inf of a negative order, and none of -inf."""
    if order == math.inf and any(not values._value.shape[dim] for dim in dims):
        order = 1.0
    if math.isinf(order):
        require_elements(values, dims, "linalg.vector_norm")
        extreme = r.amax if order > 0 else r.amin
        return apply(extreme, apply(e.absolute, values), dims=dims, keepdim=bool(keepdim), grad_name=NORM)
    if order == 0:
        signs = apply(e.sign, apply(e.absolute, values))
        counted = apply(e.where, apply(e.equal, values, 0.0), signs, 1.0)  # of nan as well
        return apply(r.sum_, counted, dims=dims, keepdim=bool(keepdim), grad_name=NORM)
    return apply(c.norm, values, dims=dims, keepdim=bool(keepdim), order=order, grad_name=NORM)


_norm_directly = reduced_directly(c.norm, NORM, order=2.0)


def norm_directly(
    x: Any = None, ord: Any = None, axis: Any = None, keepdims: bool = False, *more: Any
) -> Any:
    """The short way of the 2-norm of all elements, or along one dimension; NotImplemented for others."""
    return NotImplemented if more or ord is not None else _norm_directly(x, axis, keepdims)


@numpy_names
def matrix_norm(
    A: Tensor, ord: float | str = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of the matrices in two dimensions: Frobenius ("fro"), or the largest (smallest) sum of `|x|`
    over a column for 1 (-1), over a row for inf (-inf); the largest singular value for 2, the smallest for
    -2, their sum for "nuc".

    Of an empty matrix it is 0.

    Raises:
        ArgumentError: another order, or not two dimensions. ShapeError: the smallest of no sums or values.

    Example:
        >>> matrix_norm(tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
    """
    x = tensor(A, "linalg.matrix_norm")
    if len(dim) != 2 or x.ndim < 2:
        fail(
            ShapeError,
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions, and dim name two of "
            f"them; found shape {tuple(x.shape)} and dim {dim}.",
        )
    rows, columns = (one_dim(int(one), x.ndim, "linalg.matrix_norm") for one in dim)
    if rows == columns:
        fail(ArgumentError, f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return vector_norm(x, 2, (rows, columns), keepdim, dtype=dtype)
    if ord in ("nuc", 2, -2):
        return _of_singular_values(
            x if dtype is None else as_dtype(x, numpy_dtype(dtype)), ord, (rows, columns), keepdim
        )
    if ord not in ORDERS:
        fail(
            ArgumentError,
            f"linalg.matrix_norm: Order {ord!r} not supported; expected 'fro', 'nuc', 1, -1, 2, -2, inf or "
            "-inf.",
        )
    summed, kept = (rows, columns) if abs(float(ord)) == 1 else (columns, rows)
    totals = vector_norm(x, 1, summed, True, dtype=dtype)
    extreme = (largest_of if float(ord) > 0 else amin)(totals, kept, True)
    return extreme if keepdim else extreme.squeeze((rows, columns))


def largest_of(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The largest of what is not negative, and 0 of nothing."""
    return (amax if x._value.shape[dim] else sum)(x, dim, keepdim)


def _of_singular_values(x: Tensor, ord: float | str, dims: tuple[int, int], keepdim: bool) -> Tensor:
    values = svdvals(moved_to_end(x, dims))
    found = sum(values, -1) if ord == "nuc" else (largest_of if ord == 2 else amin)(values, -1)
    for place in sorted(dims) if keepdim else ():
        found = found.unsqueeze(place)
    return found


@numpy_names
def norm(
    input: Tensor, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm of all elements, or over some dimensions, as vectors; see `vector_norm`.

    Raises:
        ArgumentError: a word other than "fro" and "nuc". ShapeError: "nuc" of other than matrices.

    Example:
        >>> norm(tensor([3.0, 4.0]))
        tensor(5.)
    """
    if p == "nuc":
        if dim is None and (rank := tensor(input, "norm").ndim) != 2:
            fail(ShapeError, f"norm(): p='nuc' without dim takes two dimensions, found {rank}. Give dim.")
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        fail(ArgumentError, f"norm(): p must be a number or 'fro', found {p!r}.")
    return vector_norm(input, 2 if p in ("fro", None) else float(p or 0), dim, keepdim, dtype=dtype)


@numpy_names
def linalg_norm(
    A: Tensor, ord: float | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """torch.linalg.norm: without `ord` the 2-norm of all elements; with it that of vectors (one dimension)
    or of matrices (two), see `vector_norm` and `matrix_norm`.

    Raises:
        ShapeError: `ord` without `dim`, and neither one nor two dimensions; or see `vector_norm`.

    Example:
        >>> norm(tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
        tensor(6.)
    """
    x = tensor(A, "linalg.norm")
    if ord is not None and dim is None and x.ndim not in (1, 2):
        fail(
            ShapeError,
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{x.ndim}D, of shape {tuple(x.shape)}. Give dim, or flatten it.",
        )
    two = dim is not None and not isinstance(dim, int | np.integer) and len(dim) == 2
    if ord is not None and (two or (dim is None and x.ndim == 2)):
        return matrix_norm(x, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        fail(ArgumentError, f"linalg.norm: ord={ord!r} is a norm of matrices; found shape {tuple(x.shape)}.")
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


with_short_way(linalg_norm, norm_directly)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other.

    Example:
        >>> dist(tensor([1.0, 2.0]), tensor([4.0, 6.0]))
        tensor(5.)
    """
    return vector_norm(elementwise(e.subtract, input, other, function="dist"), p)


@numpy_names
def normalize(input: Tensor, p: float = 2.0, dim: Dims = 1, eps: float = 1e-12) -> Tensor:
    """input over its p-norm along dimensions, the norm being at least eps.

    Example:
        >>> normalize(tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    x = tensor(input, "normalize")
    length = apply(e.clamp, vector_norm(x, p, dim, True), float(eps), math.inf)
    return apply(e.divide, x, as_dtype(length, array_dtype(x)))


@numpy_names
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between the vectors along a dimension; norms count as at least eps.

    Example:
        >>> cosine_similarity(tensor([[1.0, 0.0]]), tensor([[1.0, 0.0]]))
        tensor([1.])
    """
    x1, x2 = tensor(x1, "cosine_similarity", "x1"), tensor(x2, "cosine_similarity", "x2")
    x1, x2 = promoted("cosine_similarity", x1, x2)
    require_float(require_real(x1, "cosine_similarity"), "cosine_similarity")
    if x1.shape != x2.shape:
        require_broadcast("cosine_similarity", [x1, x2])
        shape = np.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
        x1, x2 = expand_to(x1, shape), expand_to(x2, shape)
    unit1, unit2 = normalize(x1, 2.0, dim, eps), normalize(x2, 2.0, dim, eps)
    return sum(elementwise(e.multiply, unit1, unit2, function="cosine_similarity"), dim)


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of variables in rows, observed in columns; of complex ones the second conjugated.

    Args:
        fweights: how often each observation was made, integers.
        aweights: how much each observation counts.

    Raises:
        ShapeError: more than two dimensions, or not a weight for each observation. ArgumentError: a weight
            is negative, or all are 0.

    Example:
        >>> cov(tensor([[1.0, 2.0, 3.0]]))
        tensor(1.)
    """
    x = floating(input, "cov")
    if x.ndim > 2:
        fail(ShapeError, f"cov(): expected input to have two or fewer dimensions but got {x.ndim} dimensions")
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    if fweights is not None or aweights is not None:
        return weighted_cov(rows, correction, fweights, aweights)
    centred = apply(e.subtract, rows, mean(rows, 1, True))
    freedom = max(rows.shape[1] - correction, 0)
    total = contracted(centred, conjugate(centred), "ax,bx->ab")
    result = apply(e.multiply, total, share(freedom) if freedom else math.inf)
    return result.squeeze() if rows.shape[0] == 1 else result


def weighted_cov(rows: Tensor, correction: float, fweights: Tensor | None, aweights: Tensor | None) -> Tensor:
    """`cov` with weights. Whether they are right is, in a trace, a question with a guard."""
    for name, one, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if one is not None and (tuple(one.shape) != (rows.shape[1],) or array_dtype(one).kind not in kinds):
            fail(
                ShapeError,
                f"cov(): {name} must be {rows.shape[1]} {'integers' if kinds == 'iu' else 'floats'}, "
                f"found {tuple(one.shape)} of {one.dtype}.",
            )
        if one is not None and bool((one._detached() < 0).any()):
            fail(ArgumentError, f"cov(): {name} cannot be negative. Clamp them at 0, or leave them out.")
    dtype = array_dtype(rows)
    if aweights is not None:
        dtype = np.result_type(dtype, array_dtype(aweights))
        rows = as_dtype(rows, dtype)
    given = [as_dtype(one, dtype) for one in (fweights, aweights) if one is not None]
    weights = given[0] if len(given) == 1 else apply(e.multiply, *given)
    total = sum(weights)
    if not bool(total._detached()):
        fail(ArgumentError, "cov(): the weights sum to zero, so no mean can be taken with them.")
    weighted = apply(e.multiply, rows, weights)
    centred = apply(e.subtract, rows, apply(e.divide, sum(weighted, 1, True), total))
    if aweights is None or correction == 0:
        freedom = apply(e.subtract, total, float(correction))
    else:
        share = apply(e.divide, sum(apply(e.multiply, weights, given[-1])), total)
        freedom = apply(e.subtract, total, apply(e.multiply, share, float(correction)))
    products = contracted(apply(e.multiply, centred, weights), conjugate(centred), "ax,bx->ab")
    result = apply(e.divide, products, as_dtype(apply(e.maximum, real_part(freedom), 0.0), dtype))
    return result.squeeze() if rows.shape[0] == 1 else result


def corrcoef(input: Tensor) -> Tensor:
    """The matrix of correlation coefficients of variables in rows, observed in columns.

    Example:
        >>> corrcoef(tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
        tensor([[1., 1.],
                [1., 1.]])
    """
    matrix = cov(input)
    return correlations(matrix) if matrix.ndim else apply(e.divide, matrix, matrix)


def correlations(matrix: Tensor) -> Tensor:
    """Covariances over deviations, held between -1 and 1, which rounding may leave; complex ones by parts."""
    deviations = as_dtype(apply(e.sqrt, real_part(matrix.diagonal())), array_dtype(matrix))
    scaled = apply(e.divide, apply(e.divide, matrix, deviations.unsqueeze(1)), deviations)
    if scaled.is_complex():
        parts = (apply(one, scaled) for one in (e.real, e.imag))
        return apply(e.complex_of, *(apply(e.clamp, one, -1.0, 1.0) for one in parts))
    return apply(e.clamp, scaled, -1.0, 1.0)
