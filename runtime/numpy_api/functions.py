"""NumPy's functions on Tensors, with NumPy's names, defaults and dtypes; see `front`.

`out` is dealt with before a function here is called. An option that is not in a signature is not supported.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ...tracer.lost_numbers import sizes_are_asked
from ...tracer.ops.movement import flip
from ..bytecode.library_calls import public_name
from ..functions import PUBLIC, declared
from ..functions.common import (
    INTEGERS,
    NUMBERS,
    array_dtype,
    as_dtype,
    fail,
    filled,
    is_traced,
    one_dim,
    scalar_of,
)
from ..functions.matrices import contraction
from ..functions.matrices.einsum import einsum_in_their_dtype, multi_dot
from ..functions.selections import selection
from ..functions.selections.assignment import copy_
from ..functions.shapes import joining, movement, parts
from ..tape.apply import (
    apart_from,
    apply,
    copied_in_order,
    dims_from_outside,
    laid_out,
    lay_in_order,
    lies_in,
)
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from ..values.value_kinds import PythonNumber, as_array, tensors_among
from .plain_calls import Call
from .protocols import FUNCTIONS, called, converted, fresh, put_into
from .values import averaged, axes_of, axis_of, each_once, places, promoted, require_castable, require_choice

F = TypeVar("F", bound=Callable[..., Any])


def implements(*functions: Any, shares: bool = False, in_order: bool | str = True) -> Callable[[F], F]:
    """Enter a function in the table; options that it does not have raise UnsupportedError.

    Args:
        functions: NumPy's.
        shares: whether what they give may be their argument, or a view of it; else it has its own memory.
        in_order: whether what they give of arrays in C's order lies so as well; "K" if it lies as the first
            one, whatever its order is; "asked" if NumPy is asked, of arrays in other orders.
    """

    def enter(implementation: F) -> F:
        @functools.wraps(implementation)
        def call(*arguments: Any, **keywords: Any) -> Any:
            names, count, variadic = _accepted(functions[0], implementation)
            given = count
            for place, one in enumerate(arguments[:count]):
                if one is np._NoValue:  # left open
                    given = place
                    break
            if len(arguments) > given:
                keywords |= _named(functions[0], arguments, given)
                arguments = arguments[:given]
            if keywords.get("out") is not None:
                return put_into(keywords.pop("out"), functions[0], arguments, keywords)
            if keywords and any(value is np._NoValue for value in keywords.values()):
                keywords = {name: value for name, value in keywords.items() if value is not np._NoValue}
            if keywords and not variadic and not names.issuperset(keywords):
                keywords = _asked_for(functions[0], keywords, names)
                if unknown := set(keywords) - names:
                    fail(
                        UnsupportedError,
                        f"{public_name(functions[0])}: {', '.join(sorted(unknown))} is not supported on a "
                        f"Tensor; supported: {', '.join(inspect.signature(implementation).parameters)}.",
                    )
            result = implementation(*arguments, **keywords)
            if shares:
                return result
            asked = Call(functions[0], arguments, keywords) if in_order == "asked" else None
            return fresh(result, (*arguments, *keywords.values()), in_order, asked)

        call.shares = shares  # type: ignore[attr-defined]
        for function in functions:
            FUNCTIONS[function] = call
        return implementation

    return enter


@functools.cache
def _accepted(function: Any, implementation: Any) -> tuple[frozenset[str], int, bool]:
    """The names of its parameters, how many are positional, and whether it takes any others by name.

    Not looked up before it is called: signatures of all functions take longer than most imports.
    """
    parameters = inspect.signature(implementation).parameters.values()
    kinds = {one.kind for one in parameters}
    takes_any = inspect.Parameter.VAR_POSITIONAL in kinds
    count = sys.maxsize if takes_any else _count_positional(function, implementation)
    return frozenset(one.name for one in parameters), count, inspect.Parameter.VAR_KEYWORD in kinds


def _count_positional(function: Any, implementation: Any) -> int:
    """How many arguments the implementation takes by the positions that they have in NumPy."""
    try:
        places = {name: place for place, name in enumerate(inspect.signature(function).parameters)}
    except ValueError:  # written in C, without a signature
        places = {}
    count = 0
    for one in inspect.signature(implementation).parameters.values():
        by_position = one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        if not by_position or places.get(one.name, count) != count:
            break
        count += 1
    return count


def _asked_for(function: Any, keywords: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Without the options that an implementation does not know, and that have NumPy's own defaults."""
    parameters = inspect.signature(function).parameters
    return {
        name: value
        for name, value in keywords.items()
        if name in names or name not in parameters or value is not parameters[name].default
    }


def _named(function: Any, arguments: Sequence[Any], start: int) -> dict[str, Any]:
    """The positional arguments from `start` on by the names that NumPy gives them, those left open apart."""
    found = dict(list(zip(inspect.signature(function).parameters, arguments))[start:])
    return {
        name: value
        for name, value in found.items()
        if value is not np._NoValue and not (name == "out" and value is None)
    }


# --- shapes -------------------------------------------------------------------------------------------


@implements(np.reshape, shares=True)
def _reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    x = tensor_of(a)
    extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if order == "A":
        order = "F" if lies_in(x, "F", asked=True) and not lies_in(x, "C") else "C"
    if order not in ("C", "F"):
        fail(ArgumentError, f"numpy.reshape: order must be one of 'C', 'F', or 'A' (got {order!r})")
    if order == "F":
        shown = _transpose(movement.reshape(_transpose(x), extents[::-1]))
    else:
        shown = movement.reshape(x, extents)
    if copy:
        return apart_from(x, shown)
    if copy is False and shown._cell is not x._cell:
        fail(ArgumentError, "numpy.reshape: the array cannot be shown in that shape without a copy")
    return shown


@implements(np.ravel, shares=True)
def _ravel(a: Any, order: str = "C") -> Tensor:
    if order == "K":  # as the elements lie in memory
        a, order = movement.permute(x := tensor_of(a), dims_from_outside(x)), "C"
    flat = _reshape(a, -1, order)
    return flat if flat.is_contiguous() else copied_in_order(flat)  # NumPy copies what has gaps


@implements(np.transpose, np.permute_dims, shares=True)
def _transpose(a: Any, axes: Any = None) -> Tensor:
    x = tensor_of(a)
    order = tuple(reversed(range(x.ndim))) if axes is None else axes_of(axes, x, "transpose")
    return movement.permute(x, order)


@implements(np.matrix_transpose, shares=True)
def _matrix_transpose(x: Any) -> Tensor:
    return movement.transpose(tensor_of(x), -2, -1)


@implements(np.expand_dims, shares=True)
def _expand_dims(a: Any, axis: Any) -> Tensor:
    x = tensor_of(a)
    axes = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    places = [one_dim(one, x.ndim + len(axes), "numpy.expand_dims") for one in axes]
    for one in sorted(each_once(places, "expand_dims")):
        x = movement.unsqueeze(x, one)
    return x


@implements(np.squeeze, shares=True)
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


implements(np.swapaxes, shares=True)(lambda a, axis1, axis2: movement.transpose(tensor_of(a), axis1, axis2))


@implements(np.moveaxis, shares=True)
def _moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    return movement.movedim(tensor_of(a), source, destination)


implements(np.broadcast_to, shares=True)(
    lambda array, shape: as_array(
        movement.broadcast_to(tensor_of(array), (shape,) if isinstance(shape, INTEGERS) else shape)
    )
)
implements(np.broadcast_arrays, shares=True)(lambda *args: movement.broadcast_tensors(*map(tensor_of, args)))
implements(np.tile)(
    lambda A, reps: movement.tile(tensor_of(A), (reps,) if isinstance(reps, INTEGERS) else tuple(reps))
)
implements(np.repeat)(lambda a, repeats, axis=None: selection.repeat_interleave(tensor_of(a), repeats, axis))
implements(np.tril)(lambda m, k=0: parts.tril(tensor_of(m), k))
implements(np.triu)(lambda m, k=0: parts.triu(tensor_of(m), k))
implements(np.diagonal, shares=True)(
    lambda a, offset=0, axis1=0, axis2=1: parts.diagonal(tensor_of(a), offset, axis1, axis2)
)
implements(np.trace)(
    lambda a, offset=0, axis1=0, axis2=1: declared.sum(parts.diagonal(tensor_of(a), offset, axis1, axis2), -1)
)
implements(np.atleast_1d, shares=True)(lambda *arys: _one_or_all(movement.atleast_1d, arys))
implements(np.atleast_2d, shares=True)(lambda *arys: _one_or_all(movement.atleast_2d, arys))


def _one_or_all(function: Callable[[Tensor], Tensor], arrays: Sequence[Any]) -> Any:
    results = tuple(function(tensor_of(one)) for one in arrays)
    return results[0] if len(results) == 1 else results


@implements(np.diag, shares=True)
def _diag(v: Any, k: int = 0) -> Tensor:
    found = parts.diag(tensor_of(v), k)
    if found.ndim == 1:
        found._frozen = "numpy.diag gives a view that is not to be written to; write into a copy of it"
    return found


@implements(np.flip, shares=True)
def _flip(m: Any, axis: Any = None) -> Tensor:
    """A view, where PyTorch's is a copy."""
    x = tensor_of(m)
    return apply(flip, x, dims=axes_of(axis, x, "flip"))


@implements(np.rot90, shares=True)
def _rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    x = tensor_of(m)
    first, second = axes_of(axes, x, "rot90")
    turns = k % 4
    if turns % 2:
        return movement.transpose(_flip(x, second if turns == 1 else first), first, second)
    return _flip(x, (first, second)) if turns else x[...]


implements(np.flipud, shares=True)(lambda m: _flip(m, 0))
implements(np.fliplr, shares=True)(lambda m: _flip(m, 1))


@implements(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    if type(shift) is not int and any(isinstance(one, float) for one in np.ravel(shift).tolist()):
        fail(ArgumentError, f"numpy.roll: shift must be integers, found {shift}.")
    if isinstance(axis, Sequence) and isinstance(shift, INTEGERS):
        shift = (shift,) * len(axis)
    return parts.roll(tensor_of(a), shift, axis)


# --- joining and splitting ----------------------------------------------------------------------------


def _in_dtype(arrays: Any, dtype: Any, casting: Any = "same_kind") -> list[Tensor]:
    """The arrays in one dtype, if this `casting` allows it."""
    given = list(arrays)
    values = promoted(given, as_arrays=True)
    if dtype is None and casting == "same_kind":
        return values
    wanted = array_dtype(values[0]) if dtype is None else np.dtype(dtype)
    for one in given:
        require_castable(array_dtype(tensor_of(one)), wanted, casting, "numpy.concatenate")
    return [as_dtype(one, wanted) for one in values]


@implements(np.concatenate)
def _concatenate(
    arrays: Sequence[Any], axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    values = _in_dtype(arrays, dtype, casting)
    if axis is None:
        return joining.cat([one.reshape(-1) for one in values], 0)
    return joining.cat(values, axis)


implements(np.stack)(
    lambda arrays, axis=0, *, dtype=None, casting="same_kind": joining.stack(
        _in_dtype(arrays, dtype, casting), axis
    )
)
implements(np.hstack)(
    lambda tup, *, dtype=None, casting="same_kind": joining.hstack(_in_dtype(tup, dtype, casting))
)
implements(np.vstack)(
    lambda tup, *, dtype=None, casting="same_kind": joining.vstack(_in_dtype(tup, dtype, casting))
)
implements(np.dstack)(lambda tup: joining.dstack(_in_dtype(tup, None)))
implements(np.column_stack)(lambda tup: joining.column_stack(_in_dtype(tup, None)))
implements(np.append)(lambda arr, values, axis=None: _concatenate([arr, values], axis))
implements(np.array_split, shares=True)(
    lambda ary, indices_or_sections, axis=0: list(
        joining.tensor_split(tensor_of(ary), _cuts(indices_or_sections), axis)
    )
)
implements(np.unstack, shares=True)(lambda x, axis=0: tuple(_moveaxis(x, axis, 0)))


def _cuts(indices_or_sections: Any) -> Any:
    cuts = places("split", indices_or_sections)
    if np.size(cuts) and np.asarray(cuts).dtype.kind == "f":
        fail(ArgumentError, "numpy.split: positions or a number of sections must be integers.")
    return cuts


@implements(np.split, shares=True)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x, cuts = tensor_of(ary), _cuts(indices_or_sections)
    if isinstance(cuts, INTEGERS) and x.shape[axis] % cuts:
        fail(ArgumentError, f"array split does not result in an equal division: {x.shape[axis]} by {cuts}")
    return list(joining.tensor_split(x, cuts, axis))


implements(np.hsplit, shares=True)(
    lambda ary, indices_or_sections: _split(ary, indices_or_sections, 1 if tensor_of(ary).ndim > 1 else 0)
)


@implements(np.vsplit, shares=True)
def _vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    if tensor_of(ary).ndim < 2:
        fail(ShapeError, "numpy.vsplit: at least two dimensions are expected.")
    return _split(ary, indices_or_sections, 0)


@implements(np.meshgrid, shares=True)
def _meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[Tensor, ...]:
    require_choice(indexing, ("xy", "ij"), "meshgrid", "indexing")
    given = [tensor_of(one).reshape(-1) for one in xi]
    if sparse:
        places = list(range(len(given)))
        places[:2] = places[:2][::-1] if indexing == "xy" else places[:2]
        grids = tuple(
            one.reshape([-1 if dim == place else 1 for dim in range(len(given))])
            for one, place in zip(given, places)
        )
    else:
        grids = joining.meshgrid(*given, indexing=indexing)
    return tuple(map(copied_in_order, grids)) if copy else grids


# --- products -----------------------------------------------------------------------------------------


@implements(np.dot)
def _dot(a: Any, b: Any) -> Tensor:
    x, y = promoted([a, b], as_arrays=True)
    if not x.ndim or not y.ndim:
        return x * y
    if y.ndim <= 2:
        return contraction.matmul(x, y)
    return contraction.tensordot_of_equal_sizes(x, y, ([x.ndim - 1], [y.ndim - 2]))


def _flat(operands: list[Any]) -> Iterator[Tensor]:
    return (one.reshape(-1) for one in promoted(operands, as_arrays=True))


implements(np.vdot)(lambda a, b: contraction.vdot(*_flat([a, b])))
implements(np.inner)(lambda a, b: contraction.inner(*promoted([a, b], as_arrays=True)))
implements(np.outer)(lambda a, b: contraction.outer(*_flat([a, b])))
implements(np.kron)(lambda a, b: contraction.kron(*promoted([a, b], as_arrays=True)))
implements(np.linalg.multi_dot)(lambda arrays: multi_dot(promoted(list(arrays), as_arrays=True)))


@implements(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    x, y = promoted([a, b], as_arrays=True)
    return as_array(contraction.tensordot_of_equal_sizes(x, y, axes))


@implements(np.cross, in_order="asked")
def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    if axis is not None:
        axisa = axisb = axisc = axis
    given = zip(promoted([a, b], as_arrays=True), (axisa, axisb))
    x, y = (movement.movedim(one, place, -1) for one, place in given)
    rank = max(x.ndim, y.ndim)
    x, y = (one[(None,) * (rank - one.ndim)] for one in (x, y))
    return movement.movedim(contraction.linalg_cross(x, y), -1, axisc)


@implements(np.einsum, shares=True)
def _einsum(*operands: Any, optimize: Any = False) -> Tensor:
    rest = list(operands)
    if isinstance(operands[0], str):
        rest[1:] = promoted(operands[1:])
    else:
        arrays = operands[0 : len(operands) // 2 * 2 : 2]
        rest[0 : len(arrays) * 2 : 2] = promoted(arrays)
    given = list(tensors_among(rest))
    result = einsum_in_their_dtype(*rest)
    if len(given) > 1 and is_traced(result):  # of one operand it may be a view
        lay_in_order(result, [one._value for one in given], Call(np.einsum, rest, {"optimize": optimize}))
    return result


# --- elements -----------------------------------------------------------------------------------------


@implements(np.where)
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    mask = tensor_of(condition)
    mask = mask if array_dtype(mask).kind == "b" else PUBLIC["ne"](mask, 0)
    if x is None and y is None:
        return selection.nonzero(mask, as_tuple=True)
    if all(isinstance(one, NUMBERS) and not isinstance(one, Tensor) for one in (x, y)):
        dtype = np.result_type(type(x), type(y))
        choices = [filled((), scalar_of(one, dtype), dtype) for one in (x, y)]
    else:
        choices, _ = converted(np.maximum, (x, y))  # which promotes alike, and leaves numbers what they are
    return as_array(PUBLIC["where"](mask, *choices))


@implements(np.clip)
def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None, dtype: Any = None
) -> Tensor:
    if (a_min is not None or a_max is not None) and (min is not None or max is not None):
        fail(ArgumentError, "numpy.clip: give a_min and a_max, or min and max, not both.")
    low, high, x = a_min if min is None else min, a_max if max is None else max, tensor_of(a)
    low, high = _bound_of(x, low, is_upper=False), _bound_of(x, high, is_upper=True)
    if low is None and high is None:
        return x if dtype is None else called(np.positive, (x,), {"dtype": dtype})
    given = [one for one in (low, high) if one is not None]
    operands, _ = converted(np.maximum, (x, given[0]), dtype)
    if len(given) == 2:
        operands = [*converted(np.maximum, (operands[0], given[1]), dtype)[0], operands[1]]
        return PUBLIC["clamp"](operands[0], operands[2], operands[1])
    return PUBLIC["clamp"](operands[0], **{"min" if high is None else "max": operands[1]})


def _bound_of(x: Tensor, bound: Any, is_upper: bool) -> Any:
    """A bound; None of a Python integer past the ends of the array's integers, which bounds nothing."""
    dtype = array_dtype(x)
    if type(bound) is int and dtype.kind in "iu" and type(x) is not PythonNumber:
        ends = np.iinfo(dtype)
        if bound >= ends.max if is_upper else bound <= ends.min:
            return None
    return bound


@implements(np.round, np.around)
def _round(a: Any, decimals: int = 0) -> Tensor:
    x = tensor_of(a)
    if x.is_complex():
        return PUBLIC["complex"](*(PUBLIC["round"](one, decimals=decimals) for one in (x.real, x.imag)))
    if array_dtype(x).kind == "f":
        return PUBLIC["round"](x, decimals=decimals)
    if decimals >= 0 or array_dtype(x).kind == "b":
        return x
    tens = as_dtype(x, np.dtype("float64")) / 10.0**-decimals
    return as_dtype(PUBLIC["round"](tens) * 10.0**-decimals, array_dtype(x))


@implements(np.take)
def _take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    x, index = tensor_of(a), tensor_of(indices if np.size(indices) else np.zeros(np.shape(indices), int))
    require_choice(mode, ("raise", "wrap", "clip"), "take", "mode")
    axis = None if axis is None else axis_of(axis, x, "take")
    extent = x.numel() if axis is None else x.shape[axis]
    if mode == "wrap":
        index = PUBLIC["remainder"](index, extent)
    elif mode == "clip":
        index = PUBLIC["clamp"](index, 0, extent - 1)
    if axis is None:
        return selection.take(x, index)
    return laid_out(x[(*(slice(None) for _ in range(axis)), index)], "C")  # unlike what x[:, index] gives


@implements(np.nan_to_num, shares=True)
def _nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    given = tensor_of(x)
    found = PUBLIC["nan_to_num"](given, nan, posinf, neginf)
    return found if copy or not given.ndim else copy_(given, found)


implements(np.take_along_axis, in_order="asked")(
    lambda arr, indices, axis=-1: selection.take_along_dim(tensor_of(arr), tensor_of(indices), axis)
)
implements(np.sinc)(lambda x: PUBLIC["sinc"](averaged(x)))
implements(np.real, shares=True)(lambda val: PUBLIC["real"](tensor_of(val)))


@implements(np.imag, shares=True)
def _imag(val: Any) -> Tensor:
    x = tensor_of(val)
    return x.imag if x.is_complex() else filled(tuple(x.shape), 0, array_dtype(x))


implements(np.isreal)(lambda x: PUBLIC["isreal"](tensor_of(x)))
implements(np.iscomplex)(lambda x: PUBLIC["logical_not"](PUBLIC["isreal"](tensor_of(x))))
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
implements(np.argwhere)(lambda a: selection.nonzero(tensor_of(a)))
implements(np.flatnonzero)(lambda a: selection.nonzero(tensor_of(a).reshape(-1), as_tuple=True)[0])


@implements(np.nonzero)
def _nonzero(a: Any) -> tuple[Tensor, ...]:
    x = tensor_of(a)
    if not x.ndim:
        fail(ShapeError, "numpy.nonzero: a number has no positions. Use numpy.atleast_1d(x).nonzero().")
    return selection.nonzero(x, as_tuple=True)


@implements(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    sizes_are_asked()
    return tuple(tensor_of(a).shape)


implements(np.ndim)(lambda a: tensor_of(a).ndim)
implements(np.iscomplexobj)(lambda x: tensor_of(x).is_complex())
implements(np.isrealobj)(lambda x: not tensor_of(x).is_complex())


@implements(np.size)
def _size(a: Any, axis: int | None = None) -> int:
    x = tensor_of(a)
    sizes_are_asked()
    return math.prod(x.shape[one] for one in axes_of(axis, x, "size"))
