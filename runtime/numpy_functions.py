"""NumPy's functions on Tensors, with NumPy's names, defaults and dtypes; see `numpy_front`.

`out` is dealt with before a function here is called. An option that is not in a signature is not supported.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ..tracer.errors import ArgumentError, UnsupportedError
from .functions import PUBLIC, contraction, joining, movement, parts, reduction, selection, statistics
from .functions.common import array_dtype, as_dtype, fail, filled, scalar_of
from .functions.einsum import einsum
from .functions.padding import padded
from .numpy_front import FUNCTIONS, converted
from .tape import wrap
from .tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def implements(*functions: Any) -> Callable[[F], F]:
    """Enter a function in the table; options that it does not have raise UnsupportedError."""

    def enter(implementation: F) -> F:
        names = set(inspect.signature(implementation).parameters)
        variadic = "options" in names

        @functools.wraps(implementation)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if keywords and not variadic and not names.issuperset(keywords):
                unknown = set(keywords) - names
                fail(
                    UnsupportedError,
                    f"numpy.{functions[0].__name__}: {', '.join(sorted(unknown))} is not supported on a "
                    f"Tensor; supported: {', '.join(inspect.signature(implementation).parameters)}.",
                )
            return implementation(*arguments, **keywords)

        for function in functions:
            FUNCTIONS[function] = call
        return implementation

    return enter


def tensor_of(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(np.asarray(value))


def promoted(values: Sequence[Any]) -> list[Tensor]:
    """The values as Tensors of NumPy's common dtype."""
    weak = [
        one if isinstance(one, int | float) and not isinstance(one, np.generic) else None for one in values
    ]
    tensors = [tensor_of(one) for one in values]
    kinds: list[Any] = [array_dtype(x) if one is None else one for x, one in zip(tensors, weak)]
    dtype = np.result_type(*kinds)
    return [as_dtype(x, dtype) for x in tensors]


def averaged(value: Any) -> Tensor:
    """In the dtype in which NumPy averages: integers and bools as float64."""
    x = tensor_of(value)
    return x if array_dtype(x).kind == "f" else as_dtype(x, np.dtype("float64"))


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


# --- reductions ---------------------------------------------------------------------------------------


def _summed(x: Tensor, dtype: Any, ufunc: np.ufunc) -> Tensor:
    """x in the dtype that NumPy adds or multiplies in: small integers become the platform's."""
    if dtype is None:
        kind = array_dtype(x)
        dtype = kind if kind.kind == "f" else ufunc.reduce(np.zeros(0, kind)).dtype
    return as_dtype(x, np.dtype(getattr(dtype, "numpy", dtype)))


def _chosen(x: Tensor, where: Any, otherwise: Any) -> Tensor:
    """x, and something else where the mask does not hold."""
    return x if where is True else PUBLIC["where"](tensor_of(where), x, filled((), otherwise, array_dtype(x)))


def _begun(total: Tensor, initial: Any, function: Callable[..., Tensor]) -> Tensor:
    """What is reduced, begun with a number if one is given."""
    return total if initial is None else function(total, scalar_of(initial, array_dtype(total)))


@implements(np.sum)
def _sum(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> Tensor:  # fmt: skip
    x = _chosen(_summed(tensor_of(a), dtype, np.add), where, 0)
    return _begun(as_dtype(reduction.sum(x, _axes(axis), keepdims), array_dtype(x)), initial, PUBLIC["add"])


@implements(np.nansum)
def _nansum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    x = _summed(tensor_of(a), dtype, np.add)
    return as_dtype(reduction.nansum(x, _axes(axis), keepdims), array_dtype(x))


@implements(np.prod)
def _prod(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> Tensor:  # fmt: skip
    x = _chosen(_summed(tensor_of(a), dtype, np.multiply), where, 1)
    return _begun(as_dtype(reduction.prod(x, _axes(axis), keepdims), array_dtype(x)), initial, PUBLIC["mul"])


@implements(np.cumsum)
def _cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    x = _summed(tensor_of(a), dtype, np.add)
    return _running(reduction.cumsum, x, axis)


@implements(np.cumprod)
def _cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    x = _summed(tensor_of(a), dtype, np.multiply)
    return _running(reduction.cumprod, x, axis)


def _running(function: Callable[..., Tensor], x: Tensor, axis: int | None) -> Tensor:
    result = function(x.reshape(-1), 0) if axis is None else function(x, axis)
    return as_dtype(result, array_dtype(x))


@implements(np.mean)
def _mean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Tensor:
    x = averaged(a) if dtype is None else as_dtype(tensor_of(a), np.dtype(getattr(dtype, "numpy", dtype)))
    if where is not True:
        mask = movement.broadcast_to(tensor_of(where), x.shape)
        total = reduction.sum(_chosen(x, mask, 0), _axes(axis), keepdims)
        return total / as_dtype(reduction.sum(mask, _axes(axis), keepdims), array_dtype(x))
    return reduction.mean(x, _axes(axis), keepdims)


@implements(np.nanmean)
def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.nanmean(averaged(a), _axes(axis), keepdims)


@implements(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Tensor:
    x = averaged(a)
    if weights is None:
        return reduction.mean(x, _axes(axis), keepdims)
    x, w = promoted([x, weights])
    if w.ndim < x.ndim:
        w = w.reshape([-1 if dim == axis % x.ndim else 1 for dim in range(x.ndim)])
    total = reduction.sum(movement.broadcast_to(w, x.shape), _axes(axis), keepdims)
    return reduction.sum(x * w, _axes(axis), keepdims) / total


@implements(np.var)
def _var(
    a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Tensor:
    return statistics.var(
        averaged(a), _axes(axis), None, keepdims, correction=ddof if correction is None else correction
    )


@implements(np.std)
def _std(
    a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Tensor:
    return statistics.std(
        averaged(a), _axes(axis), None, keepdims, correction=ddof if correction is None else correction
    )


def _extreme(name: str) -> Callable[..., Tensor]:
    of_two = PUBLIC[{"amax": "maximum", "amin": "minimum"}.get(name, name)]

    def function(
        a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Tensor:
        x = _chosen(tensor_of(a), where, initial)
        return _begun(PUBLIC[name](x, _axes(axis), keepdims), initial, of_two)

    return function


def _place(name: str) -> Callable[..., Tensor]:
    return lambda a, axis=None, *, keepdims=False: PUBLIC[name](tensor_of(a), axis, keepdims)


implements(np.max, np.amax)(_extreme("amax"))
implements(np.min, np.amin)(_extreme("amin"))
implements(np.argmax)(_place("argmax"))
implements(np.argmin)(_place("argmin"))


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.amax(tensor_of(a), _axes(axis), keepdims) - reduction.amin(
        tensor_of(a), _axes(axis), keepdims
    )


def _truth(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return as_dtype(PUBLIC[name](tensor_of(a), _axes(axis), keepdims), np.dtype("bool"))

    return function


implements(np.all)(_truth("all"))
implements(np.any)(_truth("any"))


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None) -> Tensor:
    return reduction.count_nonzero(tensor_of(a), _axes(axis))


@implements(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    ends = [None if one is None else tensor_of(one) for one in (prepend, append)]
    return reduction.diff(tensor_of(a), n, axis, *ends)


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    values = averaged(x)
    axis = _axes(axis)
    is_matrix = (isinstance(axis, tuple) and len(axis) == 2) or (
        axis is None and values.ndim == 2 and ord is not None
    )
    if is_matrix and ord is not None:
        return statistics.matrix_norm(values, ord, axis or (-2, -1), keepdims)
    return statistics.vector_norm(values, 2 if ord is None else ord, axis, keepdims)


@implements(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    values = averaged(y)
    width: Any = dx
    if x is not None:
        width = reduction.diff(tensor_of(x), 1, -1 if tensor_of(x).ndim == 1 else axis)
        if width.ndim == 1 and values.ndim > 1:
            width = width.reshape([-1 if dim == axis % values.ndim else 1 for dim in range(values.ndim)])
    count = max(values.shape[axis] - 1, 0)
    if not count:
        return reduction.sum(values, axis) * 0.0
    later, earlier = parts.narrow(values, axis, 1, count), parts.narrow(values, axis, 0, count)
    return reduction.sum((later + earlier) * width * 0.5, axis)


# --- shapes -------------------------------------------------------------------------------------------


@implements(np.reshape)
def _reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    if order != "C":
        fail(
            UnsupportedError,
            f"numpy.reshape: order={order!r} is not supported on a Tensor, only 'C'. Transpose first.",
        )
    return movement.reshape(tensor_of(a), (shape,) if isinstance(shape, int | np.integer) else tuple(shape))


@implements(np.ravel)
def _ravel(a: Any, order: str = "C") -> Tensor:
    return _reshape(a, -1, order)


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
    for one in () if axis is None else (axis,) if isinstance(axis, int) else axis:
        if x.shape[one] != 1:
            fail(
                ArgumentError,
                f"cannot select an axis to squeeze out which has size not equal to one: axis {one} of "
                f"{tuple(x.shape)}",
            )
    return movement.squeeze(x, _axes(axis))


implements(np.swapaxes)(lambda a, axis1, axis2: movement.transpose(tensor_of(a), axis1, axis2))
implements(np.moveaxis)(lambda a, source, destination: movement.movedim(tensor_of(a), source, destination))
implements(np.broadcast_to)(
    lambda array, shape: movement.broadcast_to(
        tensor_of(array), (shape,) if isinstance(shape, int) else shape
    )
)
implements(np.broadcast_arrays)(lambda *args: movement.broadcast_tensors(*map(tensor_of, args)))
implements(np.tile)(
    lambda A, reps: movement.tile(tensor_of(A), (reps,) if isinstance(reps, int) else tuple(reps))
)
implements(np.repeat)(lambda a, repeats, axis=None: movement.repeat_interleave(tensor_of(a), repeats, axis))
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
    lambda a, offset=0, axis1=0, axis2=1: reduction.sum(
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
        x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    )


@implements(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    if isinstance(axis, Sequence) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return parts.roll(tensor_of(a), shift, axis)


PAD_MODES = {
    "constant": "constant",
    "edge": "replicate",
    "reflect": "reflect",
    "wrap": "circular",
    "symmetric": "symmetric",
}


@implements(np.pad)
def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    x = tensor_of(array)
    if mode not in PAD_MODES:
        fail(
            UnsupportedError,
            f"numpy.pad: mode={mode!r} is not supported on a Tensor, only {', '.join(PAD_MODES)}.",
        )
    widths = [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))]
    if mode == "constant" and np.ndim(constant_values):
        for dim, pair in enumerate(np.broadcast_to(np.asarray(constant_values), (x.ndim, 2))):
            for side in range(2):
                one = [widths[dim] if axis == dim else (0, 0) for axis in range(x.ndim)]
                one[dim] = (one[dim][0], 0) if side == 0 else (0, one[dim][1])
                x = padded(x, one, "constant", pair[side].item())
        return x
    further = mode in ("reflect", "wrap") and any(
        max(pair) > extent - (mode == "reflect") for pair, extent in zip(widths, x.shape)
    )
    if further or mode == "symmetric":
        for dim, pair in enumerate(widths):
            places = np.pad(np.arange(x.shape[dim]), [pair], cast(Any, mode))
            x = selection.index_select(x, dim, tensor_of(places)) if any(pair) else x
        return x
    return padded(x, widths, PAD_MODES[mode], constant_values if mode == "constant" else None)


# --- joining and splitting ----------------------------------------------------------------------------


@implements(np.concatenate)
def _concatenate(arrays: Sequence[Any], axis: int | None = 0, *, dtype: Any = None) -> Tensor:
    values = promoted(list(arrays))
    if dtype is not None:
        values = [as_dtype(one, np.dtype(dtype)) for one in values]
    if axis is None:
        return joining.cat([one.reshape(-1) for one in values], 0)
    return joining.cat(values, axis)


implements(np.stack)(lambda arrays, axis=0: joining.stack(promoted(list(arrays)), axis))
implements(np.hstack)(lambda tup: joining.hstack(promoted(list(tup))))
implements(np.vstack)(lambda tup: joining.vstack(promoted(list(tup))))
implements(np.dstack)(lambda tup: joining.dstack(promoted(list(tup))))
implements(np.column_stack)(lambda tup: joining.column_stack(promoted(list(tup))))
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
def _meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    return joining.meshgrid(*(tensor_of(one).reshape(-1) for one in xi), indexing=indexing)


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
    x, y = promoted([a, b])
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
    if all(isinstance(one, bool | int | float) for one in (x, y)):
        dtype = np.result_type(type(x), type(y))
        return PUBLIC["where"](mask, *(filled((), scalar_of(one, dtype), dtype) for one in (x, y)))
    return PUBLIC["where"](mask, *promoted([x, y]))


@implements(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    low, high = a_min if min is None else min, a_max if max is None else max
    x = tensor_of(a)
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
    return PUBLIC["round"](tensor_of(a), decimals=decimals)


@implements(np.take)
def _take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    x, index = tensor_of(a), tensor_of(indices if np.size(indices) else np.zeros(np.shape(indices), int))
    if axis is None:
        return selection.take(x, index)
    return x[(*(slice(None) for _ in range(axis % x.ndim)), index)]


@implements(np.nan_to_num)
def _nan_to_num(
    x: Any, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
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
