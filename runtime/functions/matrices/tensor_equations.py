"""The matrix exponential, equations of tensors, products of vectors, and their powers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....tracer.errors import ShapeError
from ....tracer.operator import Operator
from ....tracer.ops import exponentials as ex
from ....tracer.trace import is_tracing, itself
from ...tape.apply import apply
from ...tape.direct import unrecorded
from ...values.modes import is_recording
from ...values.tensor import Tensor
from ..common import (
    conjugate,
    fail,
    floating,
    matrix_named_either_way,
    one_dim,
    promoted,
    tensor,
    with_short_way,
)
from ..declared import mul
from ..declared import sum as sum_of
from ..shapes.grids import powers
from ..shapes.movement import movedim, reshape_to
from .linalg import inverse, solved, square

__all__ = ["matrix_exp"]


@matrix_named_either_way
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a square matrix, the sum of A ** k / k!.

    Example:
        >>> matrix_exp(tensor([[0.0]]))
        tensor([[1.]])
    """
    a = square(input, "matrix_exp")
    if is_tracing() and not a.is_complex():  # code shares the steps with those of the gradient
        return apply(ex.matrix_exp, a)
    return by_parts(a, ex.matrix_exp, ex.exponentials, ex.exponential_of_steps, "LinalgMatrixExpBackward0")


with_short_way(matrix_exp, unrecorded(lambda a: (ex.matrix_exp.evaluate(a),), itself))


def by_parts(
    a: Tensor, whole: Operator, parts: Operator, of_parts: Operator, name: str | None = None
) -> Tensor:
    """A function of matrices; where a gradient may follow, of parts that it is made of as well."""
    if not (a.requires_grad and is_recording()):
        return apply(whole, a)
    return apply(of_parts, a, apply(parts, a._detached()), grad_name=name)


@matrix_named_either_way
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse for `tensordot` over the first `ind` dimensions.

    Example:
        >>> tensorinv(tensor([[2.0]]), 1)
        tensor([[0.5000]])
    """
    a = floating(A, "tensorinv")
    first, last = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    if ind < 1 or math.prod(first) != math.prod(last):
        fail(
            ShapeError,
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), ind "
            f"> 0: found {tuple(a.shape)}, ind = {ind}.",
        )
    flat = reshape_to(a, (math.prod(first), math.prod(last)))
    return reshape_to(inverse(flat), (*last, *first))


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B.

    Example:
        >>> tensorsolve(tensor([[2.0]]), tensor([4.0]))
        tensor([2.])
    """
    a, b = promoted(
        "tensorsolve", floating(A, "tensorsolve"), floating(B, "tensorsolve", "B"), broadcast=False
    )
    if dims is not None:
        a = movedim(a, tuple(dims), tuple(range(a.ndim - len(dims), a.ndim)))
    shape = tuple(a.shape[b.ndim :])
    if math.prod(shape) != b.numel() or a.numel() != b.numel() ** 2:
        fail(
            ShapeError,
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), found {tuple(a.shape)} and {tuple(b.shape)}.",
        )
    flat = reshape_to(a, (b.numel(), b.numel()))
    return reshape_to(solved(flat, reshape_to(b, (b.numel(),)), True), shape)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along a dimension, those of x conjugated; the others broadcast.

    Example:
        >>> vecdot(tensor([1.0, 2.0]), tensor([3.0, 4.0]))
        tensor(11.)
    """
    products = mul(conjugate(tensor(x, "vecdot", "x")), y)
    return sum_of(products, one_dim(dim, products.ndim, "vecdot"))


def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers from 0 on of each element, in a new last dimension.

    Example:
        >>> vander(tensor([2, 3]), N=3)
        tensor([[1, 2, 4],
                [1, 3, 9]])
    """
    values = tensor(x, "linalg.vander", "x")
    values = values if values.ndim else values.unsqueeze(0)
    return powers(values, values.shape[-1] if N is None else N, "linalg.vander")
