"""NumPy's functions on Tensors, with NumPy's names, defaults and dtypes; see `front`.

`out` is dealt with before a function here is called. An option that is not in a signature is not supported.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any, TypeVar

import numpy as np

from ...tracer.errors import ArgumentError, UnsupportedError
from ..bytecode.library_calls import public_name
from ..functions import PUBLIC, contraction, declared, joining, movement, parts, selection
from ..functions.common import INTEGERS, array_dtype, as_dtype, fail, filled, scalar_of
from ..functions.einsum import einsum
from ..tape.apply import copied_in_order
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .protocols import FUNCTIONS, converted
from .values import averaged, known, promoted

F = TypeVar("F", bound=Callable[..., Any])


def implements(*functions: Any) -> Callable[[F], F]:
    """Enter a function in the table; options that it does not have raise UnsupportedError."""

    def enter(implementation: F) -> F:
        @functools.wraps(implementation)
        def call(*arguments: Any, **keywords: Any) -> Any:
            names, count, variadic = _accepted(implementation)
            if len(arguments) > count:
                keywords |= _named(functions[0], arguments, count)
                arguments = arguments[:count]
            if keywords and not variadic and not names.issuperset(keywords):
                unknown = set(keywords) - names
                fail(
                    UnsupportedError,
                    f"{public_name(functions[0])}: {', '.join(sorted(unknown))} is not supported on a "
                    f"Tensor; supported: {', '.join(inspect.signature(implementation).parameters)}.",
                )
            return implementation(*arguments, **keywords)

        for function in functions:
            FUNCTIONS[function] = call
        return implementation

    return enter


@functools.cache
def _accepted(implementation: Callable[..., Any]) -> tuple[frozenset[str], int, bool]:
    """The names of its parameters, how many are positional, and whether it takes any others by name."""
    parameters = inspect.signature(implementation).parameters.values()
    kinds = [one.kind for one in parameters]
    count = sum(kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
    return (
        frozenset(one.name for one in parameters),
        sys.maxsize if Parameter.VAR_POSITIONAL in kinds else count,
        Parameter.VAR_KEYWORD in kinds,
    )


def _named(function: Any, arguments: Sequence[Any], start: int) -> dict[str, Any]:
    """The positional arguments from `start` on by the names that NumPy gives them, those left open apart."""
    found = dict(list(zip(inspect.signature(function).parameters, arguments))[start:])
    return {
        name: value
        for name, value in found.items()
        if value is not np._NoValue and not (name == "out" and value is None)
    }


# --- shapes -------------------------------------------------------------------------------------------


@implements(np.reshape)
def _reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if order == "F":
        return _transpose(movement.reshape(_transpose(a), extents[::-1]))
    if order not in ("C", "A", "K"):
        fail(ArgumentError, f"numpy.reshape: order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if order != "C" and tensor_of(a).ndim > 1:
        fail(
            UnsupportedError,
            f"numpy.reshape: order={order!r} is not supported on a Tensor, only 'C' and 'F': it depends on "
            "how the elements lie in memory.",
        )
    return movement.reshape(tensor_of(a), extents)


@implements(np.ravel)
def _ravel(a: Any, order: str = "C") -> Tensor:
    flat = _reshape(a, -1, order)
    return flat if flat.is_contiguous() else copied_in_order(flat)  # NumPy copies what has gaps


@implements(np.transpose, np.permute_dims)
def _transpose(a: Any, axes: Any = None) -> Tensor:
    x = tensor_of(a)
    return movement.permute(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


@implements(np.matrix_transpose)
def _matrix_transpose(x: Any) -> Tensor:
    return movement.transpose(tensor_of(x), -2, -1)


@implements(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Tensor:
    x = tensor_of(a)
    axes = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    rank = x.ndim + len(axes)
    for one in sorted(place % rank for place in axes):
        x = movement.unsqueeze(x, one)
    return x


@implements(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Tensor:
    x = tensor_of(a)
    for one in () if axis is None else (axis,) if isinstance(axis, INTEGERS) else axis:
        if x.shape[one] != 1:
            fail(
                ArgumentError,
                f"cannot select an axis to squeeze out which has size not equal to one: axis {one} of "
                f"{tuple(x.shape)}",
            )
    return movement.squeeze(x, tuple(axis) if isinstance(axis, list) else axis)


implements(np.swapaxes)(lambda a, axis1, axis2: movement.transpose(tensor_of(a), axis1, axis2))
implements(np.moveaxis)(lambda a, source, destination: movement.movedim(tensor_of(a), source, destination))
implements(np.broadcast_to)(
    lambda array, shape: movement.broadcast_to(
        tensor_of(array), (shape,) if isinstance(shape, INTEGERS) else shape
    )
)
implements(np.broadcast_arrays)(lambda *args: movement.broadcast_tensors(*map(tensor_of, args)))
implements(np.tile)(
    lambda A, reps: movement.tile(tensor_of(A), (reps,) if isinstance(reps, INTEGERS) else tuple(reps))
)
implements(np.repeat)(
    lambda a, repeats, axis=None: movement.repeat_interleave(
        tensor_of(a), known("repeat", repeats)[0] if isinstance(repeats, Tensor) else repeats, axis
    )
)
implements(np.rot90)(lambda m, k=1, axes=(0, 1): parts.rot90(tensor_of(m), k, axes))
implements(np.fliplr)(lambda m: parts.fliplr(tensor_of(m)))
implements(np.flipud)(lambda m: parts.flipud(tensor_of(m)))
implements(np.tril)(lambda m, k=0: parts.tril(tensor_of(m), k))
implements(np.triu)(lambda m, k=0: parts.triu(tensor_of(m), k))
implements(np.diag)(lambda v, k=0: parts.diag(tensor_of(v), k))
implements(np.diagonal)(
    lambda a, offset=0, axis1=0, axis2=1: parts.diagonal(tensor_of(a), offset, axis1, axis2)
)
implements(np.trace)(
    lambda a, offset=0, axis1=0, axis2=1: declared.sum(
        parts.diagonal(tensor_of(a), offset, axis1, axis2), -1
    )
)
implements(np.atleast_1d)(lambda *arys: _one_or_all(movement.atleast_1d, arys))
implements(np.atleast_2d)(lambda *arys: _one_or_all(movement.atleast_2d, arys))


def _one_or_all(function: Callable[[Tensor], Tensor], arrays: Sequence[Any]) -> Any:
    results = tuple(function(tensor_of(one)) for one in arrays)
    return results[0] if len(results) == 1 else results


@implements(np.flip)
def _flip(m: Any, axis: Any = None) -> Tensor:
    x = tensor_of(m)
    return parts.flip(
        x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, INTEGERS) else tuple(axis)
    )


@implements(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    if isinstance(axis, Sequence) and isinstance(shift, INTEGERS):
        shift = (shift,) * len(axis)
    return parts.roll(tensor_of(a), shift, axis)


# --- joining and splitting ----------------------------------------------------------------------------


def _in_dtype(arrays: Any, dtype: Any) -> list[Tensor]:
    values = promoted(list(arrays), as_arrays=True)
    return values if dtype is None else [as_dtype(one, np.dtype(dtype)) for one in values]


@implements(np.concatenate)
def _concatenate(
    arrays: Sequence[Any], axis: int | None = 0, *, dtype: Any = None, casting: Any = None
) -> Tensor:
    values = _in_dtype(arrays, dtype)
    if axis is None:
        return joining.cat([one.reshape(-1) for one in values], 0)
    return joining.cat(values, axis)


implements(np.stack)(
    lambda arrays, axis=0, *, dtype=None, casting=None: joining.stack(_in_dtype(arrays, dtype), axis)
)
implements(np.hstack)(lambda tup, *, dtype=None, casting=None: joining.hstack(_in_dtype(tup, dtype)))
implements(np.vstack)(lambda tup, *, dtype=None, casting=None: joining.vstack(_in_dtype(tup, dtype)))
implements(np.dstack)(lambda tup: joining.dstack(_in_dtype(tup, None)))
implements(np.column_stack)(lambda tup: joining.column_stack(_in_dtype(tup, None)))
implements(np.append)(lambda arr, values, axis=None: _concatenate([arr, values], axis))
implements(np.array_split)(
    lambda ary, indices_or_sections, axis=0: list(
        joining.tensor_split(tensor_of(ary), indices_or_sections, axis)
    )
)
implements(np.unstack)(lambda x, axis=0: joining.unbind(tensor_of(x), axis))


@implements(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x = tensor_of(ary)
    if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
        fail(
            ArgumentError,
            f"array split does not result in an equal division: {x.shape[axis]} by {indices_or_sections}",
        )
    return list(joining.tensor_split(x, indices_or_sections, axis))


implements(np.hsplit)(
    lambda ary, indices_or_sections: _split(ary, indices_or_sections, 1 if tensor_of(ary).ndim > 1 else 0)
)
implements(np.vsplit)(lambda ary, indices_or_sections: _split(ary, indices_or_sections, 0))


@implements(np.meshgrid)
def _meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[Tensor, ...]:
    given = [tensor_of(one).reshape(-1) for one in xi]
    if not sparse:
        return joining.meshgrid(*given, indexing=indexing)
    places = list(range(len(given)))
    places[:2] = places[:2][::-1] if indexing == "xy" else places[:2]
    return tuple(
        one.reshape([-1 if dim == place else 1 for dim in range(len(given))])
        for one, place in zip(given, places)
    )


# --- products -----------------------------------------------------------------------------------------


@implements(np.dot)
def _dot(a: Any, b: Any) -> Tensor:
    x, y = promoted([a, b])
    if not x.ndim or not y.ndim:
        return x * y
    if y.ndim <= 2:
        return contraction.matmul(x, y)
    return contraction.tensordot(x, y, ([x.ndim - 1], [y.ndim - 2]))


implements(np.vdot)(lambda a, b: contraction.dot(*(one.reshape(-1) for one in promoted([a, b]))))
implements(np.inner)(lambda a, b: contraction.inner(*promoted([a, b])))
implements(np.outer)(lambda a, b: contraction.outer(*(one.reshape(-1) for one in promoted([a, b]))))
implements(np.kron)(lambda a, b: contraction.kron(*promoted([a, b])))
implements(np.linalg.multi_dot)(lambda arrays: contraction.multi_dot(promoted(list(arrays))))


@implements(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    x, y = promoted([a, b])
    return contraction.tensordot(x, y, axes)


@implements(np.cross)
def _cross(a: Any, b: Any, axis: int = -1) -> Tensor:
    x, y = (one[(None,) * (max(np.ndim(a), np.ndim(b)) - one.ndim)] for one in promoted([a, b]))
    return contraction.cross(x, y, axis)


@implements(np.einsum)
def _einsum(*operands: Any, optimize: Any = False) -> Tensor:
    if isinstance(operands[0], str):
        return einsum(operands[0], *promoted(operands[1:]))
    arrays = operands[0 : len(operands) // 2 * 2 : 2]
    rest = list(operands)
    rest[0 : len(arrays) * 2 : 2] = promoted(arrays)
    return einsum(*rest)


# --- elements -----------------------------------------------------------------------------------------


@implements(np.where)
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    mask = tensor_of(condition)
    mask = mask if array_dtype(mask).kind == "b" else PUBLIC["ne"](mask, 0)
    if x is None and y is None:
        return selection.nonzero(mask, as_tuple=True)
    if all(isinstance(one, bool | int | float) and not isinstance(one, Tensor) for one in (x, y)):
        dtype = np.result_type(type(x), type(y))
        return PUBLIC["where"](mask, *(filled((), scalar_of(one, dtype), dtype) for one in (x, y)))
    return PUBLIC["where"](mask, *promoted([x, y]))


@implements(np.clip)
def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None, dtype: Any = None
) -> Tensor:
    low, high = a_min if min is None else min, a_max if max is None else max
    x = tensor_of(a) if dtype is None else as_dtype(tensor_of(a), np.dtype(dtype))
    if low is None and high is None:
        return x
    given = [one for one in (low, high) if one is not None]
    operands, _ = converted(np.maximum, (x, given[0]))
    if len(given) == 2:
        operands = [*converted(np.maximum, (operands[0], given[1]))[0], operands[1]]
        return PUBLIC["clamp"](operands[0], operands[2], operands[1])
    return PUBLIC["clamp"](operands[0], **{"min" if high is None else "max": operands[1]})


@implements(np.round, np.around)
def _round(a: Any, decimals: int = 0) -> Tensor:
    x = tensor_of(a)
    if array_dtype(x).kind == "f":
        return PUBLIC["round"](x, decimals=decimals)
    if decimals >= 0 or array_dtype(x).kind == "b":
        return x
    tens = as_dtype(x, np.dtype("float64")) / 10.0**-decimals
    return as_dtype(PUBLIC["round"](tens) * 10.0**-decimals, array_dtype(x))


@implements(np.take)
def _take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    x, index = tensor_of(a), tensor_of(indices if np.size(indices) else np.zeros(np.shape(indices), int))
    extent = x.numel() if axis is None else x.shape[axis]
    if mode == "wrap":
        index = PUBLIC["remainder"](index, extent)
    elif mode == "clip":
        index = PUBLIC["clamp"](index, 0, extent - 1)
    if axis is None:
        return selection.take(x, index)
    return x[(*(slice(None) for _ in range(axis % x.ndim)), index)]


@implements(np.nan_to_num)
def _nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    return PUBLIC["nan_to_num"](tensor_of(x), nan, posinf, neginf)


implements(np.take_along_axis)(
    lambda arr, indices, axis=-1: selection.take_along_dim(tensor_of(arr), tensor_of(indices), axis)
)
implements(np.sinc)(lambda x: PUBLIC["sinc"](averaged(x)))
implements(np.real)(lambda val: tensor_of(val))
implements(np.copy)(lambda a: PUBLIC["clone"](tensor_of(a)))
implements(np.isclose)(
    lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: PUBLIC["isclose"](
        *promoted([a, b]), rtol, atol, equal_nan
    )
)
implements(np.allclose)(
    lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: PUBLIC["allclose"](
        *promoted([a, b]), rtol, atol, equal_nan
    )
)
implements(np.array_equal)(lambda a1, a2: PUBLIC["equal"](*promoted([a1, a2])))
implements(np.isposinf)(lambda x: PUBLIC["isposinf"](tensor_of(x)))
implements(np.isneginf)(lambda x: PUBLIC["isneginf"](tensor_of(x)))
implements(np.nonzero)(lambda a: selection.nonzero(tensor_of(a), as_tuple=True))
implements(np.argwhere)(lambda a: selection.nonzero(tensor_of(a)))
implements(np.flatnonzero)(lambda a: selection.nonzero(tensor_of(a).reshape(-1), as_tuple=True)[0])
implements(np.shape)(lambda a: tuple(tensor_of(a).shape))
implements(np.ndim)(lambda a: tensor_of(a).ndim)
implements(np.iscomplexobj)(lambda x: False)
implements(np.isrealobj)(lambda x: True)


@implements(np.size)
def _size(a: Any, axis: int | None = None) -> int:
    x = tensor_of(a)
    return x.numel() if axis is None else int(x.shape[axis])
