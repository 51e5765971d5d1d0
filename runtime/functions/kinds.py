"""What tensors are asked about themselves, and copies of what is otherwise a view.

There are no complex tensors here: conjugates and real parts of real ones are themselves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...tracer.errors import ArgumentError, ShapeError
from ...tracer.ops import elementwise as e
from ..tape.apply import apply
from ..values.tensor import Tensor
from .common import Scalar, array_dtype, as_dtype, fail, filled, floating, sizes, tensor
from .comparison import where
from .declared import isnan
from .declared import sum as sum_of
from .joining import chunk, split, unbind
from .movement import expand, permute, reshape_to, squeeze, t, transpose, unsqueeze, view
from .parts import diagonal, narrow, select
from .scattering import as_strided
from .windows import unfold

__all__ = [
    "alias_copy", "angle", "as_strided_copy", "conj", "conj_physical", "detach_copy", "diagonal_copy",
    "expand_copy", "fill", "is_complex", "is_conj", "is_inference", "is_neg", "is_nonzero",
    "is_same_size", "is_signed", "isreal", "narrow_copy", "numel", "permute_copy", "real", "resolve_conj",
    "resolve_neg", "select_copy", "split_with_sizes", "split_with_sizes_copy", "squeeze_copy",
    "sum_to_size", "t_copy", "transpose_copy", "type_as", "unbind_copy", "unfold_copy", "unsafe_chunk",
    "unsafe_split", "unsqueeze_copy", "view_copy",
]  # fmt: skip

# --- questions ----------------------------------------------------------------------------------------------


def numel(input: Tensor) -> int:
    """The number of elements.

    Example:
        >>> numel(tensor([1, 2]))
        2
    """
    return tensor(input, "numel").numel()


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not zero.

    Raises:
        ArgumentError: it has not one element.

    Example:
        >>> is_nonzero(tensor([0.0]))
        False
    """
    x = tensor(input, "is_nonzero")
    if x.numel() != 1:
        kind = "no values" if not x.numel() else "more than one value"
        fail(ArgumentError, f"Boolean value of Tensor with {kind} is ambiguous")
    return bool(x)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    Example:
        >>> is_same_size(tensor([1]), tensor([1, 2]))
        False
    """
    return tuple(input.shape) == tuple(other.shape)


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    Example:
        >>> is_signed(tensor([True]))
        False
    """
    return array_dtype(tensor(input, "is_signed")).kind in "fi"


def is_complex(input: Tensor) -> bool:
    """False: no tensor here is complex.

    Example:
        >>> is_complex(tensor([1.0]))
        False
    """
    tensor(input, "is_complex")
    return False


def isreal(input: Tensor) -> Tensor:
    """True everywhere: no tensor here is complex.

    Example:
        >>> isreal(tensor([1.0]))
        tensor([True])
    """
    return filled(tuple(tensor(input, "isreal").shape), True, array_dtype(input > 0))


is_conj = is_neg = is_inference = is_complex


def conj(input: Tensor) -> Tensor:
    """The tensor itself, which is real.

    Example:
        >>> conj(tensor([1.0]))
        tensor([1.])
    """
    return tensor(input, "conj")


conj_physical = resolve_conj = resolve_neg = real = conj


def angle(input: Tensor) -> Tensor:
    """The angle of real numbers in the complex plane: pi below zero, 0 otherwise. Its gradient is 0.

    Example:
        >>> angle(tensor([-1.0, 1.0]))
        tensor([3.1416, 0.0000])
    """
    x = floating(input, "angle")
    turned = where(apply(e.less, x, 0.0), apply(e.add, apply(e.zeros_like, x), math.pi), 0.0)
    return apply(e.where, isnan(x), x, as_dtype(turned, array_dtype(x)), grad_name="AngleBackward0")


# --- other tensors ------------------------------------------------------------------------------------------


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another.

    Example:
        >>> type_as(tensor([1]), tensor([1.0]))
        tensor([1.])
    """
    return as_dtype(tensor(input, "type_as"), array_dtype(other))


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Summed to a shape that broadcasts to that of the tensor.

    Raises:
        ShapeError: it does not.

    Example:
        >>> sum_to_size(tensor([[1, 2], [3, 4]]), 1, 2)
        tensor([[4, 6]])
    """
    x, wanted = tensor(input, "sum_to_size"), sizes(size)
    shape = tuple(x.shape)
    extra = len(shape) - len(wanted)
    if extra < 0 or any(one not in (1, own) for one, own in zip(wanted, shape[max(extra, 0) :])):
        fail(ShapeError, f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.")
    dims = [dim for dim, own in enumerate(shape) if dim < extra or (wanted[dim - extra] == 1 != own)]
    return reshape_to(sum_of(x, dims) if dims else x, wanted)


def fill(input: Tensor, value: Scalar | Tensor) -> Tensor:
    """A tensor of the same shape and dtype with one value everywhere.

    Example:
        >>> fill(tensor([1, 2]), 5)
        tensor([5, 5])
    """
    x = tensor(input, "fill")
    if isinstance(value, Tensor):
        if value.ndim:
            fail(ShapeError, f"fill only supports 0-dimension value tensor but got {value.ndim} dimensions.")
        return expand(as_dtype(value, array_dtype(x)), tuple(x.shape)).clone()
    return filled(tuple(x.shape), value, array_dtype(x))


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` into pieces of these sizes.

    Example:
        >>> split_with_sizes(tensor([1, 2, 3]), [1, 2])
        (tensor([1]), tensor([2, 3]))
    """
    return split(input, list(split_sizes), dim)


unsafe_split, unsafe_chunk = split, chunk


def _copying(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with results that have memory of their own."""

    @functools.wraps(function)
    def copied(input: Tensor, *arguments: Any, **options: Any) -> Any:
        found = function(input, *arguments, **options)
        if isinstance(found, Tensor):
            return apply(e.identity, found)
        return tuple(apply(e.identity, one) for one in found)

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = f"""`{name.removesuffix("_copy")}` with memory of its own.

    Example:
        >>> {name}(...)  # as {name.removesuffix("_copy")}(...).clone()
    """
    return copied


alias_copy = _copying("alias_copy", conj)
detach_copy = _copying("detach_copy", lambda input: input._detached())
diagonal_copy = _copying("diagonal_copy", diagonal)
expand_copy = _copying("expand_copy", expand)
narrow_copy = _copying("narrow_copy", narrow)
permute_copy = _copying("permute_copy", permute)
select_copy = _copying("select_copy", select)
split_with_sizes_copy = _copying("split_with_sizes_copy", split_with_sizes)
squeeze_copy = _copying("squeeze_copy", squeeze)
t_copy = _copying("t_copy", t)
transpose_copy = _copying("transpose_copy", transpose)
as_strided_copy = _copying("as_strided_copy", as_strided)
unbind_copy = _copying("unbind_copy", unbind)
unfold_copy = _copying("unfold_copy", unfold)
unsqueeze_copy = _copying("unsqueeze_copy", unsqueeze)
view_copy = _copying("view_copy", view)
