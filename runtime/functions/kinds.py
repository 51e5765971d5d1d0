"""What tensors are asked about themselves, and copies of what is otherwise a view."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...tracer.errors import ArgumentError, ShapeError
from ...tracer.ops import elementwise as e
from ...tracer.spec import BOOL
from ..tape.apply import apply
from ..values.asked import TRUTH_OF_SEVERAL
from ..values.tensor import Tensor
from .common import (
    Scalar,
    array_dtype,
    as_dtype,
    fail,
    filled,
    sizes,
    tensor,
)  # fmt: skip
from .declared import sum as sum_of
from .elements.complex_numbers import resolve_conj, view_as_complex, view_as_real
from .networks.windows import unfold
from .selections.assignment import fill_
from .selections.scattering import as_strided
from .shapes.joining import chunk, split, unbind
from .shapes.movement import expand, permute, reshape_to, squeeze, t, transpose, unsqueeze, view
from .shapes.parts import diagonal, narrow, select

__all__ = [
    "alias_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "fill", "is_complex",
    "is_conj", "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed", "isreal", "narrow_copy",
    "numel", "permute_copy", "select_copy", "split_with_sizes", "split_with_sizes_copy", "squeeze_copy",
    "sum_to_size", "t_copy", "transpose_copy", "type_as", "unbind_copy", "unfold_copy", "unsafe_chunk",
    "unsafe_split", "unsqueeze_copy", "view_as_complex_copy", "view_as_real_copy", "view_copy",
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
        fail(ArgumentError, f"Boolean value of Tensor with {kind} is ambiguous. {TRUTH_OF_SEVERAL}")
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
    return array_dtype(tensor(input, "is_signed")).kind in "fic"


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    Example:
        >>> is_complex(tensor([1.0])), is_complex(tensor([1j]))
        (False, True)
    """
    return array_dtype(tensor(input, "is_complex")).kind == "c"


def isreal(input: Tensor) -> Tensor:
    """Where the imaginary part is 0: everywhere of real numbers.

    Example:
        >>> isreal(tensor([1.0, 1j]))
        tensor([ True, False])
    """
    x = tensor(input, "isreal")
    if array_dtype(x).kind == "c":
        return apply(e.equal, apply(e.imag, x), 0.0)
    return filled(tuple(x.shape), True, BOOL)


def is_conj(input: Tensor) -> bool:
    """False: no tensor here is conjugated or negated later.

    Example:
        >>> is_conj(tensor([1j]).conj())
        False
    """
    tensor(input, "is_conj")
    return False


is_neg = is_inference = is_conj

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
    return reshape_to(sum_of(x, dims) if dims or not wanted else x, wanted)


def fill(input: Tensor, value: Scalar | Tensor) -> Tensor:
    """A tensor of the same shape and dtype with one value everywhere.

    Example:
        >>> fill(tensor([1, 2]), 5)
        tensor([5, 5])
    """
    x = tensor(input, "fill")
    if isinstance(value, Tensor) and value.ndim:
        fail(ShapeError, f"fill only supports 0-dimension value tensor but got {value.ndim} dimensions.")
    return fill_(apply(e.identity, x), value)


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
    example = str(function.__doc__).partition("Example:")[2].replace(f"{function.__name__}(", f"{name}(")
    copied.__doc__ = f"""`{name.removesuffix("_copy")}` with memory of its own.

    Example:{example}"""
    return copied


def _detached(input: Tensor) -> Tensor:
    """The tensor, of which nothing is recorded.

    Example:
        >>> _detached(ones(2, requires_grad=True))
        tensor([1., 1.])
    """
    return input._detached()


alias_copy = _copying("alias_copy", resolve_conj)
detach_copy = _copying("detach_copy", _detached)
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
view_as_real_copy = _copying("view_as_real_copy", view_as_real)
view_as_complex_copy = _copying("view_as_complex_copy", view_as_complex)
