"""Products that sum over shared indices: matmul in all its forms, dot, outer, tensordot, linear layers.

All are the one operator `contract`, told by the indices of its two operands and of the result.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import reduction as r
from ....tracer.ops.contraction import contract, contraction_title, product_of
from ....tracer.ops.diagonals import diagonal as diagonal_of
from ....tracer.spec import BOOL, CONTINUOUS, INT64
from ....tracer.trace import is_tracing
from ...tape.apply import apply
from ...tape.direct import direct, direct_view, unsupported
from ...values.tensor import Tensor
from ..common import (
    Scalar,
    array_dtype,
    as_dtype,
    conjugate,
    elementwise,
    fail,
    one_dim,
    own_dim,
    promoted,
    require_broadcast,
    scalar_of,
    shape_list,
    tensor,
    torch_name,
    with_short_way,
)  # fmt: skip
from ..declared import sum as sum_of
from ..shapes.movement import permuted, reshape_to
from ..shapes.parts import diagonal, roll

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "cross", "dot", "ger",
    "inner", "kron", "linear", "matmul", "mm", "mv", "outer", "tensordot", "trace", "vdot",
]  # fmt: skip

LETTERS = string.ascii_lowercase
_PRODUCTS = {
    (1, 1): "b,b->", (1, 2): "b,bc->c", (2, 1): "ab,b->a", (2, 2): "ab,bc->ac",
}  # fmt: skip
"""By the ranks of the operands the products of vectors and matrices."""


def _of_ranks(general: Callable[..., Any] = unsupported) -> dict[tuple[int, int], Callable[..., Any]]:
    """By the ranks of the operands the short ways of their products, and what is done of others."""
    return {
        ranks: direct(
            contract, general, f"{contraction_title(one)}Backward0",
            fixed={"subscripts": one}, evaluate=product_of(one),
        )
        for ranks, one in _PRODUCTS.items()
    }  # fmt: skip


_DIRECT = _of_ranks()


@functools.cache
def _of_stacks(rank: int) -> Callable[..., Any]:
    """The short way of products of stacks of matrices, of this rank and of as many matrices."""
    batch = LETTERS[: rank - 2]
    subscripts = f"{batch}xy,{batch}yz->{batch}xz"
    fixed = {"subscripts": subscripts}
    return direct(contract, grad_name=_title(rank, rank), fixed=fixed, evaluate=product_of(subscripts))


def contracted(a: Tensor, b: Tensor, subscripts: str, grad_name: str | None = None) -> Tensor:
    if is_tracing() and array_dtype(a) == BOOL == array_dtype(b):  # any of them, of which code has no product
        counts = apply(contract, as_dtype(a, INT64), as_dtype(b, INT64), subscripts=subscripts)
        return apply(e.not_equal, counts, 0)
    return apply(
        contract,
        a,
        b,
        subscripts=subscripts,
        grad_name=grad_name or f"{contraction_title(subscripts)}Backward0",
    )


def _pair(
    input: Any, other: Any, function: str, names: tuple[str, str] = ("input", "other")
) -> tuple[Tensor, Tensor]:
    """Two tensors of one dtype; PyTorch's products do not promote."""
    return _same_dtype(function, tensor(input, function, names[0]), tensor(other, function, names[1]))


def _same_dtype(function: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if array_dtype(a) != array_dtype(b):
        fail(
            DTypeError,
            f"{function}: expected m1 and m2 to have the same dtype, but got: {torch_name(a)} of shape "
            f"{tuple(a.shape)} and {torch_name(b)} of shape {tuple(b.shape)}. Convert one, e.g. with "
            ".to(x.dtype).",
        )
    return a, b


def _require_dims(x: Tensor, ndim: int, function: str, argument: str) -> None:
    if x.ndim != ndim:
        kind = {1: "a vector", 2: "a matrix", 3: "a 3D tensor"}[ndim]
        fail(
            ShapeError,
            f"{function}: Expected {ndim}-D argument {argument}, {kind}, but got {x.ndim}-D of shape "
            f"{tuple(x.shape)}",
        )


# --- matmul -------------------------------------------------------------------------------------------


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; a vector counts as a row on the left, a column on the right; the rest is batches.

    Args:
        input: shape (n,), (m, n) or (..., m, n).
        other: shape (n,), (n, k) or (..., n, k), of the same dtype; batch dimensions broadcast.

    Returns:
        Shape () of two vectors, (m,) or (k,) with one, else (..., m, k).

    Raises:
        ShapeError: the sizes of the summed dimension differ, an operand is 0-d, or batches do not broadcast.
        DTypeError: the dtypes differ.

    Example:
        >>> matmul(tensor([[1.0, 2.0]]), tensor([[3.0], [4.0]]))
        tensor([[11.]])
    """
    if (short := matmul_directly(input, other)) is not NotImplemented:
        return short
    a, b = _pair(input, other, "matmul", ("tensor1", "tensor2"))
    return product(a, b)


def dot_directly(input: Any = None, other: Any = None, *more: Any) -> Any:
    """The product of vectors or matrices by its short way; NotImplemented for all others."""
    return NotImplemented if more else matmul_directly(input, other, of_stacks=False)


def matmul_directly(input: Any = None, other: Any = None, *more: Any, of_stacks: bool = True) -> Any:
    """The same, also of stacks of matrices of one shape."""
    a = input._value if isinstance(input, Tensor) else input
    b = other._value if isinstance(other, Tensor) else other
    if type(a) is not np.ndarray or type(b) is not np.ndarray or more:
        return NotImplemented
    short = _DIRECT.get((a.ndim, b.ndim))
    if short is None and of_stacks and 2 < a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2]:
        short = _of_stacks(a.ndim)
    return NotImplemented if short is None else short(input, other)


def product_operator(general: Callable[..., Any]) -> Callable[..., Any]:
    """`__matmul__` of a kind of tensors, whose `general` way takes what has no short one."""
    of_ranks = _of_ranks(general).get

    @functools.wraps(general)
    def __matmul__(self: Tensor, other: Any) -> Any:
        a = self._value
        b = other._value if isinstance(other, Tensor) else other
        if type(a) is not np.ndarray or type(b) is not np.ndarray:
            return general(self, other)
        if (short := of_ranks((a.ndim, b.ndim))) is not None:
            return short(self, other)
        found = matmul_directly(self, other)
        return general(self, other) if found is NotImplemented else found

    return __matmul__


with_short_way(matmul, matmul_directly)


def product(a: Tensor, b: Tensor) -> Tensor:
    """matmul of two tensors of one dtype."""
    _require_matmul(a, b)
    rank_a, rank_b = a.ndim, b.ndim
    if rank_a <= 2 and rank_b <= 2:
        return contracted(a, b, _PRODUCTS[rank_a, rank_b])
    return _batched(a, b)


def _require_matmul(a: Tensor, b: Tensor) -> None:
    left, right = tuple(a._value.shape), tuple(b._value.shape)
    if not left or not right:
        fail(
            ShapeError,
            f"both arguments to matmul need to be at least 1D, but they are {len(left)}D and {len(right)}D. "
            "Multiply by a 0-d tensor with `*`.",
        )
    summed_left, summed_right = left[-1], right[-2:][0]
    if summed_left == summed_right:
        return
    place = -2 if len(right) > 1 else -1
    hint = f"matmul sums over the last dimension of shape {left} and dimension {place} of {right}"
    if len(left) == len(right) == 1:
        fail(
            ShapeError,
            f"inconsistent tensor size, expected tensor [{left[0]}] and src [{right[0]}] to have the same "
            f"number of elements, but got {left[0]} and {right[0]} elements respectively. {hint}.",
        )
    if len(right) == 1:
        rows = int(np.prod(left[:-1]))
        fail(
            ShapeError,
            f"size mismatch, got input ({rows}), mat ({rows}x{left[-1]}), vec ({right[0]}). {hint}.",
        )
    rows = int(np.prod(left[:-1]))
    fail(
        ShapeError,
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{left[-1]} and {right[-2]}x{right[-1]}). {hint}.",
    )


def _batched(a: Tensor, b: Tensor) -> Tensor:
    """matmul with batches: dimensions of size 1 that broadcast are left out of the operand that has them."""
    require_batches(a, b)
    left, right = tuple(a._value.shape), tuple(b._value.shape)
    batch = LETTERS[: max(len(left), len(right)) - 2]
    row, summed, column = "x" if len(left) > 1 else "", "y", "z" if len(right) > 1 else ""
    result = batch + row + column
    batch_left = batch[len(batch) - max(len(left) - 2, 0) :]
    batch_right = batch[len(batch) - max(len(right) - 2, 0) :]
    a, kept_left = _without_ones(a, batch_left, batch_right, right)
    b, kept_right = _without_ones(b, batch_right, batch_left, left)
    present = "".join(letter for letter in result if letter in kept_left + row + kept_right + column)
    subscripts = f"{kept_left}{row}{summed},{kept_right}{summed}{column}->{present}"
    return contracted(a, b, subscripts, _title(len(left), len(right)))


def _title(rank_a: int, rank_b: int) -> str:
    return "BmmBackward0" if rank_a == rank_b == 3 else "UnsafeViewBackward0"


def _without_ones(x: Tensor, own: str, others: str, other_shape: tuple[int, ...]) -> tuple[Tensor, str]:
    """x without batch dimensions of size 1 that the other operand has larger, and the letters of those
    kept."""
    shape = tuple(x._value.shape)
    sizes = dict(zip(others, other_shape))
    kept = [
        axis for axis in range(len(shape))
        if axis >= len(own) or shape[axis] != 1 or sizes.get(own[axis], 1) == 1
    ]  # fmt: skip
    letters = "".join(own[axis] for axis in kept if axis < len(own))
    return reshape_to(x, tuple(shape[axis] for axis in kept)), letters


def require_batches(a: Tensor, b: Tensor) -> None:
    left, right = tuple(a._value.shape[:-2]), tuple(b._value.shape[:-2])
    for dim, (x, y) in enumerate(zip(reversed(left), reversed(right)), 3):
        if x != y and 1 not in (x, y):
            fail(
                ShapeError,
                f"matmul: The size of tensor a ({x}) must match the size of tensor b ({y}) at dimension "
                f"-{dim}: batch shapes {left} and {right} do not broadcast.",
            )


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, of one dtype.

    Raises:
        ShapeError: one is no matrix, or the sizes do not fit.

    Example:
        >>> mm(tensor([[1.0, 2.0]]), tensor([[3.0], [4.0]]))
        tensor([[11.]])
    """
    a, b = _pair(input, mat2, "mm", ("self", "mat2"))
    _require_dims(a, 2, "mm", "self")
    _require_dims(b, 2, "mm", "mat2")
    return product(a, b)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector.

    Example:
        >>> mv(tensor([[1.0, 2.0]]), tensor([3.0, 4.0]))
        tensor([11.])
    """
    a, b = _pair(input, vec, "mv", ("self", "vec"))
    _require_dims(a, 2, "mv", "self")
    _require_dims(b, 1, "mv", "vec")
    return product(a, b)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors.

    Raises:
        ShapeError: one is no vector, or the sizes differ.

    Example:
        >>> dot(tensor([1.0, 2.0]), tensor([3.0, 4.0]))
        tensor(11.)
    """
    a, b = _pair(input, tensor, "dot", ("self", "tensor"))
    if a.ndim != 1 or b.ndim != 1:
        fail(
            ShapeError,
            f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors: shapes {tuple(a.shape)} and "
            f"{tuple(b.shape)}",
        )
    return product(a, b)


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors, the first of them conjugated; for real numbers `dot`.

    Example:
        >>> vdot(tensor([1j, 2.0]), tensor([1j, 4.0]))
        tensor(9.+0.j)
    """
    return dot(conjugate(tensor(input, "vdot", "self")), other)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The matrix products of two batches of matrices, (b, m, n) and (b, n, k).

    Raises:
        ShapeError: a batch is not 3-d, or the sizes do not fit.

    Example:
        >>> bmm(ones(2, 1, 3), ones(2, 3, 1)).shape
        torch.Size([2, 1, 1])
    """
    a, b = _pair(input, mat2, "bmm", ("batch1", "batch2"))
    for x, name in ((a, "batch1"), (b, "batch2")):
        if x.ndim != 3:
            fail(ShapeError, f"{name} must be a 3D tensor, found shape {tuple(x.shape)}")
    (batch, _, inner), found = a._value.shape, tuple(b._value.shape[:2])
    if found != (batch, inner):
        fail(
            ShapeError,
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {inner}] but got: "
            f"{list(found)}.",
        )
    return contracted(a, b, "abc,acd->abd")


# --- products added to a tensor ---------------------------------------------------------------------------


def _scaled_sum(input: Tensor, product: Tensor, beta: Scalar, alpha: Scalar, function: str) -> Tensor:
    """beta * input + alpha * product."""
    if array_dtype(product).kind not in CONTINUOUS and any(isinstance(one, float) for one in (beta, alpha)):
        fail(
            DTypeError,
            f"{function}(): For integral input tensors, beta and alpha must not be floating point numbers; "
            f"found {beta} and {alpha}. Convert the tensors, e.g. with .float().",
        )
    require_broadcast(function, [input, product])
    promote = promoted if function == "addr" else _same_dtype
    input, product = promote(function, input, product)
    dtype = array_dtype(product)
    if alpha != 1:
        product = apply(e.multiply, product, scalar_of(alpha, dtype))
    if beta != 1:
        input = apply(e.multiply, input, scalar_of(beta, dtype))
    return apply(e.add, input, product, grad_name=f"{function.capitalize()}Backward0")


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2.

    Example:
        >>> addmm(tensor([[1.0]]), tensor([[2.0]]), tensor([[3.0]]), alpha=10)
        tensor([[61.]])
    """
    return _scaled_sum(tensor(input, "addmm"), mm(mat1, mat2), beta, alpha, "addmm")


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * mat @ vec.

    Example:
        >>> addmv(tensor([1.0]), tensor([[2.0]]), tensor([3.0]))
        tensor([7.])
    """
    return _scaled_sum(tensor(input, "addmv"), mv(mat, vec), beta, alpha, "addmv")


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2).

    Example:
        >>> addr(tensor([[1.0]]), tensor([2.0]), tensor([3.0]))
        tensor([[7.]])
    """
    return _scaled_sum(tensor(input, "addr"), outer(vec1, vec2), beta, alpha, "addr")


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * batch1 @ batch2, of batches of matrices.

    Example:
        >>> baddbmm(ones(1), ones(2, 1, 3), ones(2, 3, 1)).flatten()
        tensor([4., 4.])
    """
    return _scaled_sum(tensor(input, "baddbmm"), bmm(batch1, batch2), beta, alpha, "baddbmm")


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * (the sum over the batch of batch1 @ batch2).

    Example:
        >>> addbmm(ones(1, 1), ones(2, 1, 3), ones(2, 3, 1))
        tensor([[7.]])
    """
    products = bmm(batch1, batch2)
    total = products.sum(0, dtype=products.dtype)
    return _scaled_sum(tensor(input, "addbmm"), total, beta, alpha, "addbmm")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias.

    Args:
        input: shape (..., n).
        weight: shape (m, n), or (n,).
        bias: shape (m,), or ().

    Returns:
        Shape (..., m), or (...).

    Raises:
        ShapeError: the sizes do not fit.

    Example:
        >>> linear(tensor([[1.0, 2.0]]), tensor([[3.0, 4.0]]), tensor([5.0]))
        tensor([[16.]])
    """
    x, matrix = _pair(input, weight, "linear", ("input", "weight"))
    if not x.ndim or matrix.ndim not in (1, 2) or x._value.shape[-1] != matrix._value.shape[-1]:
        rows = int(np.prod(x.shape[:-1]))
        transposed = "x".join(str(extent) for extent in reversed(matrix.shape))
        fail(
            ShapeError,
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1] if x.ndim else 1} and "
            f"{transposed}): linear expects input (..., n) and weight (m, n), found {tuple(x.shape)} and "
            f"{tuple(matrix.shape)}.",
        )
    batch = LETTERS[: x.ndim - 1]
    row = "z" if matrix.ndim == 2 else ""
    plain = "MmBackward0" if x.ndim == 2 else "ViewBackward0" if x.ndim > 2 else "SqueezeBackward4"
    result = contracted(x, matrix, f"{batch}y,{row}y->{batch}{row}", plain)
    if bias is None:
        return result
    grad_name = "AddmmBackward0" if x.ndim == 2 else "ViewBackward0" if x.ndim > 2 else "AddBackward0"
    return elementwise(e.add, result, tensor(bias, "linear", "bias"), function="linear", grad_name=grad_name)


# --- outer, inner, tensordot and others -------------------------------------------------------------------


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of one vector with one of another, as a matrix.

    Example:
        >>> outer(tensor([1, 2]), tensor([3, 4]))
        tensor([[3, 4],
                [6, 8]])
    """
    a, b = promoted("outer", tensor(input, "outer").reshape(-1, 1), tensor(vec2, "outer", "vec2").reshape(-1))
    if input.ndim != 1 or vec2.ndim != 1:
        fail(
            ShapeError,
            f"outer: Expected 1-D arguments, but got shapes {tuple(input.shape)} and {tuple(vec2.shape)}",
        )
    return apply(e.multiply, a, b)


def outer_directly(input: Any = None, other: Any = None, *more: Any) -> Any:
    """The products of the elements of two vectors by its short way; NotImplemented for all others."""
    if not isinstance(input, Tensor) or len(input._value.shape) != 1 or more:
        return NotImplemented
    rank = len(other._value.shape) if isinstance(other, Tensor) else np.ndim(other)
    return _products(input, other, subscripts="a,b->ab") if rank == 1 else NotImplemented


_products = direct(contract, grad_name="MulBackward0")
with_short_way(outer, outer_directly)
ger = outer


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last dimensions; with a 0-d tensor the product.

    Example:
        >>> inner(tensor([1.0, 2.0]), tensor([3.0, 4.0]))
        tensor(11.)
    """
    a, b = tensor(input, "inner"), tensor(other, "inner", "other")
    if not a.ndim or not b.ndim:
        return elementwise(e.multiply, a, b, function="inner")
    a, b = _pair(a, b, "inner")
    if a._value.shape[-1] != b._value.shape[-1]:
        fail(
            ShapeError,
            f"inner() the last dimension must match on both input tensors but got shapes {list(a.shape)} "
            f"and {list(b.shape)}",
        )
    left, right = LETTERS[: a.ndim - 1], LETTERS[a.ndim : a.ndim + b.ndim - 1]
    return contracted(a, b, f"{left}z,{right}z->{left}{right}", "ViewBackward0")


def tensordot_directly(a: Any = None, b: Any = None, axes: Any = 2) -> Any:
    """The short way of `tensordot` over one dimension of vectors and matrices, of which one is a matrix."""
    found = dot_directly(a, b) if type(axes) is int and axes == 1 else NotImplemented
    return found if found is NotImplemented or found._value.ndim else NotImplemented


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over several dimensions at once.

    Args:
        a, b: tensors of one dtype.
        dims: how many last dimensions of a and first ones of b are summed over; or two lists of dimensions.
            A size of 1 goes with any.

    Raises:
        ShapeError: the sizes of the summed dimensions differ.

    Example:
        >>> tensordot(tensor([[1.0, 2.0]]), tensor([[3.0], [4.0]]), dims=1)
        tensor([[11.]])
    """
    x, y = _pair(a, b, "tensordot")
    dims = first, second = _dims_of_tensordot(dims, x, y)
    for dim_x, dim_y in zip(first, second):
        if 1 in (x._value.shape[dim_x], y._value.shape[dim_y]):
            x, y = sum_of(x, dim_x, keepdim=True), sum_of(y, dim_y, keepdim=True)
    return tensordot_of_equal_sizes(x, y, dims)


def tensordot_of_equal_sizes(a: Tensor, b: Tensor, dims: Any) -> Tensor:
    """NumPy's `tensordot`, in which a size of 1 goes with 1 alone."""
    x, y = _pair(a, b, "tensordot")
    first, second = _dims_of_tensordot(dims, x, y)
    names_x, names_y = list(LETTERS[: x.ndim]), list(LETTERS[x.ndim : x.ndim + y.ndim].upper())
    for dim_x, dim_y in zip(first, second):
        if x._value.shape[dim_x] != y._value.shape[dim_y]:
            fail(
                ShapeError,
                f"contracted dimensions need to match, but first has size {x.shape[dim_x]} in dim {dim_x} "
                f"and second has size {y.shape[dim_y]} in dim {dim_y}: shapes {tuple(x.shape)} and "
                f"{tuple(y.shape)}",
            )
        names_y[dim_y] = names_x[dim_x]
    left, right = "".join(names_x), "".join(names_y)
    result = "".join(letter for letter in left + right if (left + right).count(letter) == 1)
    return contracted(x, y, f"{left},{right}->{result}", "ViewBackward0")


def _dims_of_tensordot(dims: Any, x: Tensor, y: Tensor) -> tuple[list[int], list[int]]:
    if isinstance(dims, int | np.integer):
        if dims < 0 or dims > min(x.ndim, y.ndim):
            fail(
                ArgumentError,
                f"tensordot expects dims >= 0 and at most {min(x.ndim, y.ndim)}, but got dims={dims}",
            )
        return list(range(x.ndim - int(dims), x.ndim)), list(range(int(dims)))
    given: list[list[int]] = [[int(one)] if isinstance(one, int | np.integer) else list(one) for one in dims]
    first = [one_dim(dim, x.ndim, "tensordot") for dim in given[0]]
    second = [one_dim(dim, y.ndim, "tensordot") for dim in given[1]]
    if len(first) != len(second):
        fail(
            ArgumentError,
            f"tensordot: both dimension lists should have same length, got {first} and {second}",
        )
    return first, second


def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: blocks of `other`, each times one element of `input`.

    Example:
        >>> kron(tensor([1, 2]), tensor([1, 1]))
        tensor([1, 1, 2, 2])
    """
    a, b = promoted("kron", tensor(input, "kron"), tensor(other, "kron", "other"), broadcast=False)
    rank = max(a.ndim, b.ndim)
    left = (1,) * (rank - a.ndim) + tuple(a._value.shape)
    right = (1,) * (rank - b.ndim) + tuple(b._value.shape)
    spread_left = tuple(extent for one in left for extent in (one, 1))
    spread_right = tuple(extent for one in right for extent in (1, one))
    product = apply(e.multiply, reshape_to(a, spread_left), reshape_to(b, spread_right))
    return reshape_to(product, tuple(x * y for x, y in zip(left, right)), "UnsafeViewBackward0")


def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal.

    Raises:
        ShapeError: the input is no matrix.

    Example:
        >>> trace(tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(5.)
    """
    x = tensor(input, "trace")
    if x.ndim != 2:
        fail(
            ShapeError,
            f"trace: expected a matrix, but got tensor with dim {x.ndim} of shape {tuple(x.shape)}",
        )
    total = as_dtype(diagonal(x), INT64) if array_dtype(x).kind not in CONTINUOUS else diagonal(x)
    return apply(r.sum_, total, dims=(0,), keepdim=False, grad_name="TraceBackward0")


_diagonal_of = direct_view(diagonal_of)
_traced = direct(r.sum_, grad_name="TraceBackward0")


def trace_directly(input: Any = None, *more: Any) -> Any:
    """The short way of `trace` of a square matrix."""
    if more or not isinstance(input, Tensor):
        return NotImplemented
    shape = input._value.shape
    shown = _diagonal_of(input) if len(shape) == 2 and shape[0] == shape[1] else NotImplemented
    return shown if shown is NotImplemented else _traced(shown, dims=(0,), keepdim=False)


with_short_way(trace, trace_directly)


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of 3-vectors along `dim`; without it, along the first dimension of size 3.

    Raises:
        ShapeError: no dimension has size 3, or the numbers of dimensions differ.

    Example:
        >>> cross(tensor([1.0, 0.0, 0.0]), tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    a, b = _vector_pair(input, other, "cross")
    if dim is None:
        require_broadcast("cross", (a, b))
        shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
        dim = next((place - len(shape) for place, extent in enumerate(shape) if extent == 3), None)
    if dim is None:
        fail(ShapeError, f"cross(): no dimension of size 3 in input, found shapes {shape_list(a, b)}.")
    return linalg_cross(a, b, dim)


def _vector_pair(input: Tensor, other: Tensor, function: str) -> tuple[Tensor, Tensor]:
    """Both as tensors with as many dimensions."""
    a, b = tensor(input, function), tensor(other, function, "other")
    if a.ndim != b.ndim:
        fail(
            ShapeError,
            f"{function}: inputs must have the same number of dimensions, found shapes {shape_list(a, b)}.",
        )
    return a, b


def linalg_cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The vector product of 3-vectors along a dimension; the others broadcast.

    Raises:
        ShapeError: the dimension does not have size 3.

    Example:
        >>> cross(tensor([1.0, 0.0, 0.0]), tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    a, b = promoted("linalg.cross", *_vector_pair(input, other, "linalg.cross"))
    sizes = [x._value.shape[own_dim(dim, x, "linalg.cross")] for x in (a, b)]
    if sizes != [3, 3]:
        fail(
            ShapeError,
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}",
        )
    ahead, behind = (apply(e.multiply, roll(a, -s, dim), roll(b, s, dim)) for s in (1, -1))
    return apply(e.subtract, ahead, behind, grad_name="LinalgCrossBackward0")


def in_order(x: Tensor, letters: str, wanted: str) -> Tensor:
    """x, whose dimensions are called `letters`, with them in the order `wanted`."""
    return x if letters == wanted else permuted(x, [letters.index(letter) for letter in wanted])
