"""The tensor: a payload (an ndarray, or a graph node while a function is traced) and its place on the tape.

This file holds the state and what only reads it. Arithmetic and the other methods are functions elsewhere,
bound to the classes in `methods.py`. A tensor's class is its kind, which says what its methods mean: see
`value_kinds.py`.
"""

from __future__ import annotations

import itertools
import linecache
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, GradientError, MutationError, ShapeError
from ...tracer.lost_numbers import note_size_asked
from ...tracer.operator import Operator
from ...tracer.ops.elementwise import stop_gradient
from ...tracer.origin import at_caller, file_name, user_frame
from ...tracer.records import record
from ...tracer.spec import CONTINUOUS, normalised_dim
from ...tracer.trace import innermost
from . import dtypes
from .asked import Asked
from .memory_order import asked_strides_of, is_in_order
from .printing import format_scalar, format_tensor

if TYPE_CHECKING:
    from .nodes import GradNode

ndarray = np.ndarray


class Size(tuple[int, ...]):
    """A shape: a tuple that prints as `torch.Size([2, 3])` and counts its elements.

    Example:
        >>> Size((2, 3)).numel()
        6
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of an array of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))


class Device:
    """Where tensors live: in the memory of this computer.

    Example:
        >>> tensor(1.0).device
        device(type='cpu')
    """

    type = "cpu"
    index = None

    def __init__(self, device: Any = "cpu") -> None:
        if str(device).split(":")[0] != "cpu":
            raise ArgumentError(f"device: {device!r} does not exist; tensors live on 'cpu' only.")

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) or (isinstance(other, str) and other.split(":")[0] == "cpu")

    def __hash__(self) -> int:
        return hash("cpu")


CPU = Device()
_handle_ids = itertools.count()


class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook away, as does leaving a `with` block."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.id = next(_handle_ids)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


@record(frozen=True)
class PartAt:
    """Where in a trace the part is that positions show of which the values are not known."""

    positions: tuple[Any, ...]
    """As the code has them."""
    indices: tuple[Tensor, ...] = field(compare=False)
    """From 0 on."""


@record(frozen=True)
class Rearranged:
    """Elements that operators copy, and that plain code shows where they lie: windows, `as_strided`."""

    name: str
    """With all that decides which they are."""
    of: Callable[[Tensor], Tensor] = field(compare=False)

    def __repr__(self) -> str:
        return self.name


Step = tuple[Operator, Mapping[str, Any] | PartAt | Rearranged]


class View:
    """How a tensor shows part of another: the tensor that owns the memory, and the operators in between.

    A write through any of them changes all; each looks at `seen`, the version it knows, before it is used.
    """

    __slots__ = ("base", "of_several", "seen", "steps", "tracks")

    def __init__(
        self, base: Tensor, steps: tuple[Step, ...], seen: int, tracks: bool
    ) -> None:
        self.base = base
        self.steps = steps
        self.seen = seen
        self.tracks = tracks  # made while operations were recorded
        self.of_several = ""
        """The function, if it is one of several views that PyTorch's function gives at once."""

    @property
    def is_detached(self) -> bool:
        """Whether it shows, in a trace, a tensor that was detached: writes change the values alone."""
        return any(operator is stop_gradient for operator, _ in self.steps)

    def copy(self) -> View:
        """The same for another tensor, which looks for itself."""
        copied = View(self.base, self.steps, self.seen, self.tracks)
        copied.of_several = self.of_several
        return copied


class Tensor(Asked):
    """An array with a gradient: the state that tensors of all kinds have."""

    __slots__ = (
        "__weakref__", "_cell", "_frozen", "_grad", "_grad_fn", "_hooks", "_is_closed", "_output_nr",
        "_requires_grad", "_value", "_view",
    )  # fmt: skip
    rank = 2
    _precedence = 0
    """Among operands of several kinds, the highest is the kind of the result."""
    _is_torch = False
    _is_node = False
    """Whether an edge that ends here ends at a node of the tape: it is asked of what may be either."""
    _copying = "copy"
    """The method that a message names for a copy."""
    _is_number = False
    """Whether PyTorch's promotion takes it for a Python number."""
    __array_priority__ = 5000
    __pandas_priority__ = 5000  # above a DataFrame's: `series * tensor` is for the Tensor to say
    __hash__ = object.__hash__

    _value: Any
    _grad: Tensor | None
    _grad_fn: GradNode | None
    _output_nr: int
    _requires_grad: bool
    _cell: list[Any]
    """[version, place of the last write], shared by all that share the memory."""
    _view: View | None
    _hooks: dict[str, dict[int, Callable[..., Any]]] | None
    """Of a leaf; other tensors' hooks live on their node."""
    _frozen: str
    """Why it must not be written to while traced; empty if it may."""
    _is_closed: bool
    """Set where a transform has differentiated with respect to it: see `transforms/inputs.py`."""

    if TYPE_CHECKING:  # what methods.py binds

        def _detached(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

        def __reduce__(self) -> tuple[Any, ...]: ...
        def _refresh_from(self, view: View) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

    # --- what it is -------------------------------------------------------------------------------------

    @property
    def payload(self) -> Any:
        """The ndarray, or the graph node, that carries the value now."""
        self.refresh()
        return self._value

    @property
    def shape(self) -> Size:
        """The sizes of all dimensions."""
        note_size_asked()
        return Size(self._value.shape)

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the elements."""
        return dtypes.of(self._value.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._value.ndim

    @property
    def device(self) -> Device:
        """Where the elements lie: always the CPU."""
        return CPU

    @property
    def is_leaf(self) -> bool:
        """Made by the user, not by a recorded operation: its gradient is kept in `.grad`."""
        return self.grad_fn is None

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.numel() * self._value.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self._value.dtype.itemsize

    @property
    def layout(self) -> str:
        """How the elements lie: always strided."""
        return "torch.strided"

    is_cuda = is_sparse = is_quantized = is_meta = is_nested = False

    def _checked_dim(self, dim: int) -> int:
        return normalised_dim(dim, self.ndim, "size")

    def dim(self) -> int:
        """The number of dimensions."""
        return self._value.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        note_size_asked()
        return math.prod(self._value.shape)

    nelement = numel

    def element_size(self) -> int:
        """The bytes of an element."""
        return self._value.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the elements are floating numbers."""
        return self._value.dtype.kind == "f"

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self._value.dtype.kind == "c"

    def stride(self, dim: int | None = None) -> Any:
        """How many elements lie between neighbours, of each dimension or of one."""
        value = self._value
        if isinstance(value, ndarray):
            strides = tuple(step // value.itemsize for step in value.strides)
        else:
            strides = asked_strides_of(value)
        return strides if dim is None else strides[self._checked_dim(dim)]

    def is_contiguous(self) -> bool:
        """Whether the elements lie in the order of their positions."""
        value = self._value
        if isinstance(value, ndarray):
            return value.flags.c_contiguous
        asked_strides_of(value)
        return is_in_order(value)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array("data_ptr()").ctypes.data

    def get_device(self) -> int:
        """-1: elements lie on the CPU."""
        return -1

    # --- its place on the tape --------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded, so that gradients reach it."""
        self.refresh()
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Record from now on, or no more; returns the tensor.

        Raises:
            GradientError: for integers and bools, and to stop where it was computed from what requires grad.
        """
        if requires_grad and self._value.dtype.kind not in CONTINUOUS:
            raise GradientError("only Tensors of floating point and complex dtype can require gradients")
        if not requires_grad and self.grad_fn is not None:
            raise GradientError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        trace = innermost()
        if requires_grad and trace is not None:  # from now on the graph shows where no gradient passes
            trace.differentiable = True
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def grad_fn(self) -> GradNode | None:
        """The tape node that made it; None for a leaf."""
        self.refresh()
        return None if self._grad_fn is None else self._grad_fn.given_out()

    @property
    def output_nr(self) -> int:
        """Which of the results of its `grad_fn` it is."""
        return self._output_nr

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have accumulated."""
        note_gradient(self)
        if self._grad is None and self._grad_fn is not None and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                "attribute won't be populated during autograd.backward(). Call .retain_grad() on it first "
                "if its gradient is wanted.",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise ArgumentError(
                    f"assigned grad expected to be a Tensor or None but got {type(value).__name__}"
                )
            if value._value.shape != self._value.shape:
                raise ShapeError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                    f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
            if value._value.dtype != self._value.dtype:
                raise DTypeError(
                    f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with dtype "
                    f"'{self.dtype}'. Please ensure that the gradient and the tensor have the same dtype"
                )
        note_gradient(self)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        note_gradient(self)
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` has been asked for."""
        hooks = None if self._grad_fn is None else self._grad_fn.hooks
        if hooks is None:
            return False
        kept = hooks.retained.get(self._output_nr)
        return kept is not None and kept() is self

    @property
    def _version(self) -> int:
        """How often the memory has been written to."""
        return self._cell[0]

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._view is not None

    def refresh(self) -> None:
        """Of a view: notice what was written through its base or another view."""
        view = self._view
        if view is not None and view.seen != self._cell[0]:
            self._refresh_from(view)

    # --- as a sequence, as text -------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self._value.shape:
            raise ArgumentError("len() of a 0-d tensor")
        note_size_asked()
        return self._value.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._value.shape:
            raise ArgumentError("iteration over a 0-d tensor")
        trace = innermost()
        found = None if trace is None else trace.over_elements(self, None, sys._getframe(1))
        if found is not None:
            return found
        return (self[position] for position in range(self._value.shape[0]))

    def __format__(self, format_spec: str) -> str:
        return format_scalar(self._shown() if self.ndim == 0 else self, format_spec)

    def __repr__(self) -> str:
        self.refresh()
        name = None if self._grad_fn is None else self._grad_fn.name()
        shown = self._shown_if_known()
        if shown is None:
            suffix = f", grad_fn=<{name}>" if name else ", requires_grad=True" if self._requires_grad else ""
            return f"tensor({self._value!r}{suffix})"
        return format_tensor(
            shown,
            dtype_name=self._value.dtype.name,
            requires_grad=self._requires_grad,
            grad_fn_name=name,
            default_float=dtypes.default_float().name,
        )


class TorchTensor(Tensor):
    """An array with a gradient: PyTorch's tensor, on NumPy's arrays.

    Make one with `pullback.tensor`, `zeros`, `randn`, ...; calling the class does as `torch.Tensor`: a list
    gives a float tensor, integers give an empty one of that shape.

    Example:
        >>> x = Tensor([1.0, 2.0]).requires_grad_()
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    __slots__ = ()
    _precedence = 3
    _is_torch = True
    _copying = "clone"

    def _repr_html_(self) -> str | None:
        """In notebooks: what it is, and its elements as a table."""
        from ..notebooks.tensors import table  # not at start

        return table(self)


TorchTensor.__name__ = TorchTensor.__qualname__ = "Tensor"  # as the namespace calls it
TorchTensor.__module__ = "pullback"


_new = object.__new__


def make(value: Any, kind: type[Tensor] = TorchTensor) -> Tensor:
    """A tensor around a payload: an ndarray, not copied, or a graph node."""
    tensor: Tensor = _new(kind)
    tensor._value = value
    tensor._grad_fn = tensor._grad = tensor._view = tensor._hooks = None
    tensor._requires_grad = False
    tensor._output_nr = 0
    tensor._cell = [0, None]
    tensor._frozen = ""
    return tensor


def note_gradient(tensor: Tensor, accumulates: bool = False) -> None:
    """Let a trace know that the `.grad` of a tensor is looked at, set, or added to."""
    trace = innermost()
    if trace is not None:
        trace.at_gradient(tensor, accumulates)


# --- versions -----------------------------------------------------------------------------------------


def mark_written(tensor: Tensor) -> None:
    """Count a write, and note the user's line."""
    cell = tensor._cell
    cell[0] += 1
    frame = user_frame()
    cell[1] = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def require_writable(tensor: Tensor) -> None:
    """MutationError for an argument of the function that is being traced."""
    if tensor._frozen:
        raise MutationError(f"{tensor._frozen}{at_caller()}.")
    trace = innermost()
    if trace is not None and trace.bodies and _is_older(tensor, trace.bodies[-1]):
        raise MutationError(
            "The body of a loop or a choice writes into a tensor from outside of it"
            f"{at_caller()}. Make it a carry, write into a {tensor._copying}() of it, and return that."
        )


def _is_older(tensor: Tensor, serial: int) -> bool:
    """Whether what is written was there before the body that begins at `serial`."""
    value = (tensor if tensor._view is None else tensor._view.base)._value
    if type(value) is ndarray:  # of this trace it may be: see local.py
        return getattr(tensor._cell, "body", -1) < serial
    return value.serial < serial


def describe(place: tuple[str, int]) -> str:
    """`model.py:5  x += 1`"""
    filename, line = place
    return f"{file_name(filename)}:{line}  {linecache.getline(filename, line).strip()}".rstrip()


def is_tensor(obj: object) -> bool:
    """Whether an object is a Tensor.

    Example:
        >>> is_tensor(1.0)
        False
    """
    return isinstance(obj, TorchTensor)
