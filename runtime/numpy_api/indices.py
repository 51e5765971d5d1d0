"""NumPy's functions of places and of what arrays are: `np.unravel_index`, `np.choose`, `np.result_type`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...tracer.dims import plain
from ...tracer.errors import ArgumentError, DTypeError, UnsupportedError
from ...tracer.spec import INT64
from ..functions import PUBLIC
from ..functions.common import INTEGERS, array_dtype, as_dtype, fail, filled, is_traced, sizes
from ..functions.selections import selection
from ..functions.selections.scattering import strided_view
from ..functions.shapes import joining, movement
from ..tensors.conversion import tensor_of
from ..values.asked import Asked
from ..values.tensor import Tensor
from .functions import implements
from .protocols import without_rule
from .values import averaged, axis_of, promoted, require_choice

# --- places -------------------------------------------------------------------------------------------------


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The place in each dimension, of positions in the order of memory."""
    rest = as_dtype(tensor_of(indices), np.dtype("int64"))
    extents = sizes((shape,))
    found = []
    for extent in extents if order == "F" else reversed(extents):
        found.append(PUBLIC["remainder"](rest, extent))
        rest = PUBLIC["floor_divide"](rest, extent)
    return tuple(found) if order == "F" else tuple(reversed(found))


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Tensor:
    """Positions in the order of memory, of places in each dimension."""
    if mode != "raise":
        fail(UnsupportedError, f"numpy.ravel_multi_index: mode={mode!r} is not supported on a Tensor.")
    pairs = list(zip(map(tensor_of, multi_index), dims))
    total = pairs[0][0] * 0
    for place, extent in reversed(pairs) if order == "F" else pairs:
        total = total * int(extent) + place
    return total


@implements(np.ix_, shares=True)
def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Sequences as an open grid of indices; masks are the places where they hold."""
    found = []
    for place, one in enumerate(map(tensor_of, args)):
        index = PUBLIC["nonzero"](one, as_tuple=True)[0] if array_dtype(one).kind == "b" else one
        found.append(index.reshape([-1 if dim == place else 1 for dim in range(len(args))]))
    return tuple(found)


def _of_shape(function: Any) -> None:
    """`np.triu_indices_from(x)` and its kin, which look at the shape alone."""
    implements(function)(lambda arr, k=0: function(np.empty(tuple(arr.shape), bool), k))


_of_shape(np.triu_indices_from)
_of_shape(np.tril_indices_from)
implements(np.diag_indices_from)(lambda arr: np.diag_indices_from(np.empty(tuple(arr.shape), bool)))


@implements(np.choose)
def choose(a: Any, choices: Any, mode: str = "raise") -> Tensor:
    """At each place the element of the choice that an integer there numbers."""
    require_choice(mode, ("raise", "wrap", "clip"), "choose", "mode")
    several = promoted(list(choices))
    which = tensor_of(a)
    if array_dtype(which).kind == "f":
        fail(DTypeError, f"numpy.choose: a must be integers, found {array_dtype(which)}.")
    count = len(several)
    if mode != "raise":
        which = PUBLIC["remainder"](which, count) if mode == "wrap" else PUBLIC["clamp"](which, 0, count - 1)
    elif not is_traced(which):
        values = Asked.numpy(which)
        if values.size and not (values.min() >= 0 and values.max() < count):
            raise ValueError("invalid entry in choice array")
    shape = np.broadcast_shapes(tuple(which.shape), *(tuple(one.shape) for one in several))
    table = joining.stack([movement.broadcast_to(one, shape) for one in several], 0)
    places = as_dtype(movement.broadcast_to(which, shape), np.dtype("int64"))
    return selection.take_along_dim(table, places[None], 0)[0]


@implements(np.lib.stride_tricks.sliding_window_view, shares=True)
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Tensor:
    """All windows of a shape, in new last dimensions."""
    found = tensor_of(x)
    sizes = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    axes = range(found.ndim) if axis is None else axis if isinstance(axis, Sequence) else (axis,)
    if len(tuple(axes)) != len(sizes) or np.asarray(sizes).dtype.kind not in "iu":
        fail(
            ArgumentError,
            f"sliding_window_view: a size for each of {len(tuple(axes))} axes is expected, found {sizes}.",
        )
    dims = [axis_of(one, found, "lib.stride_tricks.sliding_window_view") for one in axes]
    for dim, size in zip(dims, sizes):
        found = PUBLIC["unfold"](found, dim, int(size), 1)
    found._frozen = "numpy's sliding windows are not to be written to; write into a copy of them"
    return found


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Tensor:
    """The element at i, j, ... is that at i * strides[0] + j * strides[1] + ... bytes in memory: a view."""
    array = tensor_of(x)
    size = array_dtype(array).itemsize
    own = tuple(step * size for step in array.stride())
    shape = array.shape if shape is None else shape if np.iterable(shape) else (shape,)
    strides = own if strides is None else strides if np.iterable(strides) else (strides,)
    shape, strides = tuple(map(plain, shape)), tuple(map(plain, strides))
    if len(shape) != len(strides):
        raise ValueError("mismatch in length of strides and shape")
    elements, wanted = _offsets(tuple(map(plain, array.shape)), own), _offsets(shape, strides)
    order = np.argsort(elements, axis=None)
    found = np.searchsorted(elements.reshape(-1), wanted, sorter=order)
    places = order[np.minimum(found, max(order.size - 1, 0))] if order.size else found
    if wanted.size and not (order.size and np.array_equal(elements.reshape(-1)[places], wanted)):
        fail(
            UnsupportedError,
            f"as_strided: shape {shape} with strides {strides} shows memory beyond the elements of the "
            f"array, of shape {tuple(array.shape)} and strides {own}. Take it of an array with them all.",
        )
    shown = strided_view(array, places, [step // size for step in strides])
    if not writeable:
        shown._frozen = "as_strided(writeable=False) is not to be written to; write into a copy of it"
    return shown


def _offsets(shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """Where the elements lie, in bytes behind the first."""
    found = np.zeros(shape, np.int64)
    for dim, (extent, step) in enumerate(zip(shape, strides)):
        found += (np.arange(extent) * step).reshape(-1, *(1,) * (len(shape) - 1 - dim))
    return found


def shifted(x: Any, axes: Any, direction: int) -> Tensor:
    """Each dimension rotated by half of its extent."""
    array = tensor_of(x)
    chosen = range(array.ndim) if axes is None else [axes] if isinstance(axes, INTEGERS) else axes
    for axis in chosen:
        extent = array.shape[axis]
        array = PUBLIC["roll"](array, extent // 2 if direction > 0 else -(extent // 2), axis)
    return array


implements(np.fft.fftshift)(lambda x, axes=None: shifted(x, axes, 1))
implements(np.fft.ifftshift)(lambda x, axes=None: shifted(x, axes, -1))


@implements(np.trim_zeros, shares=True)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    """Without what holds nothing but zeros at the begin and the end of each dimension."""
    x = tensor_of(filt)
    require_choice(trim.lower(), ("f", "b", "fb", "bf"), "trim_zeros", "trim")
    stays = PUBLIC["ne"](x._detached(), 0)
    given = range(x.ndim) if axis is None else [axis] if isinstance(axis, INTEGERS) else axis
    axes = sorted({axis_of(one, x, "trim_zeros") for one in given})
    if not bool(PUBLIC["any"](stays)):
        return x[tuple(slice(0, 0) if dim in axes else slice(None) for dim in range(x.ndim))]
    kept = [slice(None)] * x.ndim
    for dim in axes:
        others = tuple(one for one in range(x.ndim) if one != dim)
        along = as_dtype(PUBLIC["any"](stays, others) if others else stays, INT64)
        start = int(PUBLIC["argmax"](along, 0)) if "f" in trim.lower() else 0
        behind = int(PUBLIC["argmax"](PUBLIC["flip"](along, 0), 0)) if "b" in trim.lower() else 0
        kept[dim] = slice(start, x.shape[dim] - behind)
    return x[tuple(kept)]


# --- what arrays are ----------------------------------------------------------------------------------------


def _kinds(values: Sequence[Any]) -> list[Any]:
    return [array_dtype(one) if isinstance(one, Tensor) else one for one in values]


implements(np.result_type)(lambda *arrays_and_dtypes: np.result_type(*_kinds(arrays_and_dtypes)))
implements(np.common_type)(
    lambda *arrays: np.common_type(*(np.empty(0, array_dtype(tensor_of(one))) for one in arrays))
)
implements(np.can_cast)(
    lambda from_, to, casting="safe": np.can_cast(_kinds([from_])[0], _kinds([to])[0], casting)
)


@implements(np.may_share_memory, np.shares_memory)
def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether some element is one of both; of parts of a traced array nobody knows."""
    x, y = tensor_of(a), tensor_of(b)
    if not (is_traced(x) or is_traced(y)):
        return np.shares_memory(Asked.numpy(x, force=True), Asked.numpy(y, force=True))
    if x is not y and x._cell is y._cell:
        fail(UnsupportedError, "numpy.shares_memory: parts of one array are not compared while it is traced.")
    return x is y


implements(np.einsum_path)(
    lambda *operands, optimize="greedy": np.einsum_path(
        *[cast(Any, np.empty(tuple(one.shape)) if isinstance(one, Tensor) else one) for one in operands],
        optimize=optimize,
    )
)
implements(np.array_equiv)(
    lambda a1, a2: _broadcasts(a1, a2) and bool(PUBLIC["all"](PUBLIC["eq"](*promoted([a1, a2]))))
)


def _broadcasts(a: Any, b: Any) -> bool:
    try:
        np.broadcast_shapes(*(tuple(tensor_of(one).shape) for one in (a, b)))
    except ValueError:
        return False
    return True


# --- complex numbers ----------------------------------------------------------------------------------------


@implements(np.real_if_close, shares=True)
def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """The real part where every imaginary one is small."""
    x = tensor_of(a)
    if not x.is_complex():
        return x
    bound = tol * float(np.finfo(array_dtype(x)).eps) if tol > 1 else tol
    return x.real if bool((PUBLIC["abs"](x.imag)._detached() < bound).all()) else x


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Tensor:
    """Of real numbers 0 or pi, by sign."""
    x = tensor_of(z)
    if x.is_complex():
        found = PUBLIC["angle"](x)
        return found * (180.0 / np.pi) if deg else found
    half = 180.0 if deg else np.pi
    x = averaged(x)
    found = PUBLIC["where"](PUBLIC["signbit"](x), filled((), half, array_dtype(x)), 0.0)
    return PUBLIC["where"](PUBLIC["isnan"](x), x, found)


def _of_bits(function: Any) -> None:
    """Functions of integers that are called as they are: there is no gradient."""
    implements(function)(lambda a, *given, **options: without_rule(function, (a, *given), options))


_of_bits(np.packbits)
_of_bits(np.unpackbits)
