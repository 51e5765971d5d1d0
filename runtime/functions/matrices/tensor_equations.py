"""The matrix exponential, equations of tensors, products of vectors, and their powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....tracer.errors import ShapeError
from ....tracer.ops import exponentials
from ....tracer.trace import is_tracing, itself
from ...tape.apply import apply, unwrap
from ...tape.direct import unrecorded
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
from .linalg import inverse, is_square_outside_of_traces, solved, square

__all__ = ["matrix_exp"]


@matrix_named_either_way
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a square matrix, the sum of A ** k / k!.

    Example:
        >>> matrix_exp(tensor([[0.0]]))
        tensor([[1.]])
    """
    a = square(input, "matrix_exp")
    if not (is_tracing() and a.is_complex()):
        return apply(exponentials.matrix_exp, a)
    steps = apply(exponentials.exponentials, a._detached())  # which Python computes: there is one call
    return apply(exponentials.exponential_of_steps, a, steps, grad_name=EXPONENTIAL)


EXPONENTIAL = "LinalgMatrixExpBackward0"
_exponential_unrecorded = unrecorded(lambda a: (exponentials.matrix_exp.evaluate(a),), itself)


def exponential_directly(input: Any = None, *more: Any) -> Any:
    """Where a gradient follows, it is made of the steps that are taken here."""
    found = _exponential_unrecorded(input, *more)
    if found is not NotImplemented or more or not is_square_outside_of_traces(input):
        return found
    steps = exponentials.exponentials.evaluate(unwrap(input))
    return apply(exponentials.exponential_of_steps, input, steps, grad_name=EXPONENTIAL)


with_short_way(matrix_exp, exponential_directly)


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
