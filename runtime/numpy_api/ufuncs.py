"""NumPy's ufuncs that are made of other functions, and the methods of ufuncs: `np.maximum.accumulate(x)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ...tracer.operator import operators
from ...tracer.ops.reduction import running_largest, running_smallest
from ...tracer.spec import CONTINUOUS
from ..bytecode.library_calls import public_name
from ..functions import PUBLIC, declared
from ..functions.common import array_dtype, as_dtype, conjugate, fail
from ..functions.reductions.running import logcumsumexp, running
from ..functions.shapes import joining, movement, parts
from ..tape.apply import apply, wrap
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .protocols import FUNCTIONS, METHODS, OF_OTHERS, OPTIONS, called, converted, unknown, without_rule
from .values import averaged, axes_of, axis_of, known, promoted
from .written_arrays import COMBINED, combine_at

FLOAT64 = np.dtype("float64")

# --- of other functions -------------------------------------------------------------------------------------


def _both(ufunc: np.ufunc, x: Any, y: Any) -> tuple[list[Tensor], np.dtype]:
    """Both operands as Tensors in the dtype that the ufunc computes in, and the dtype of its result."""
    operands, dtype = converted(ufunc, (x, y))
    return [one if isinstance(one, Tensor) else wrap(np.asarray(one, dtype)) for one in operands], dtype


def heaviside(x: Any, at_zero: Any) -> Tensor:
    (x, at_zero), dtype = _both(np.heaviside, x, at_zero)
    step = PUBLIC["where"](PUBLIC["lt"](x, 0), 0.0, 1.0)
    step = PUBLIC["where"](PUBLIC["eq"](x, 0), at_zero, as_dtype(step, dtype))
    return PUBLIC["where"](PUBLIC["isnan"](x), x, step)


def copysign(x: Any, sign: Any) -> Tensor:
    (x, sign), dtype = _both(np.copysign, x, sign)
    return as_dtype(PUBLIC["where"](PUBLIC["signbit"](sign), -PUBLIC["abs"](x), PUBLIC["abs"](x)), dtype)


def modf(x: Any) -> tuple[Tensor, Tensor]:
    whole = called(np.trunc, (x,))
    return called(np.subtract, (x, whole)), whole


def frexp(x: Any) -> tuple[Tensor, Tensor]:
    """The mantissa, from 0.5 to 1, and the exponent."""
    (value,), _ = converted(np.sqrt, (x,))
    mantissa, exponent = PUBLIC["frexp"](value)
    return mantissa, exponent


def ldexp(x: Any, exponent: Any) -> Tensor:
    (value,), dtype = converted(np.sqrt, (x,))
    return value * PUBLIC["exp2"](as_dtype(tensor_of(exponent), dtype))


def vecdot(a: Any, b: Any, axis: int = -1) -> Tensor:
    x, y = promoted([a, b])
    lengths = [one.shape[axis_of(axis, one, "vecdot")] for one in (x, y)]
    if lengths[0] != lengths[1]:
        fail(ShapeError, f"numpy.vecdot: vectors of one length are expected, found {lengths}.")
    return declared.sum(conjugate(movement.movedim(x, axis, -1)) * movement.movedim(y, axis, -1), -1)


def _bitwise_count(x: Any) -> Tensor:
    """NumPy's, of which there is no gradient."""
    return without_rule(np.bitwise_count, (x,), {})


OF_OTHERS |= {
    "heaviside": heaviside, "copysign": copysign, "modf": modf, "frexp": frexp, "ldexp": ldexp,
    "vecdot": vecdot, "bitwise_count": _bitwise_count,
    "divmod": lambda a, b: (called(np.floor_divide, (a, b)), called(np.remainder, (a, b))),
    "matvec": lambda a, b: FUNCTIONS[np.einsum]("...ij,...j->...i", a, b),
    "vecmat": lambda a, b: FUNCTIONS[np.einsum]("...i,...ij->...j", PUBLIC["conj_physical"](tensor_of(a)), b),
}  # fmt: skip
OPTIONS["vecdot"] = {"axis"}

# --- methods ------------------------------------------------------------------------------------------------


def _by_fold(family: str) -> dict[str, Any]:
    """By the ufunc that combines two elements the function of NumPy's that combines many."""
    return {
        ufunc: getattr(np, one.numpy[0])
        for one in operators(family)
        if one.monoid is not None and one.numpy
        for ufunc in one.monoid.fold.numpy
    }


REDUCTIONS, ACCUMULATIONS = _by_fold("reduction"), _by_fold("scan")
ASSOCIATIVE = {"fmax", "fmin", "logaddexp2"} | {
    name for one in operators() if one.is_associative for name in one.numpy
}
"""Ufuncs that may combine what they have combined, so that a row takes a few steps of whole arrays."""
CONTINUED = {
    "maximum": lambda x, axis: apply(running_largest, x, dim=axis),
    "minimum": lambda x, axis: apply(running_smallest, x, dim=axis),
    "logaddexp": logcumsumexp,
}
"""Ufuncs with an operator, or a function, that continues a row from place to place."""


def reduce(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    """`np.logaddexp.reduce(x)`: the elements along a dimension combined from the left."""
    known_as = REDUCTIONS.get(ufunc.__name__)
    if known_as is not None:
        options |= {} if dtype is None else {"dtype": dtype}
        return FUNCTIONS[known_as](array, axis=axis, keepdims=keepdims, **options)
    _refuse(ufunc, "reduce", options)
    x = _prepared(ufunc, array, dtype)
    chosen = sorted(axes_of(axis, x, f"{ufunc.__name__}.reduce"))
    if len(chosen) > 1 and ufunc.identity is None and ufunc.__name__ not in ASSOCIATIVE:
        fail(ArgumentError, f"{public_name(ufunc)}.reduce is not reorderable: one axis may be given.")
    if not chosen:
        return x if ufunc.identity is None else called(ufunc, (ufunc.identity, x))
    for place in reversed(chosen):
        x = _reduced(ufunc, movement.movedim(x, place, 0))
    return FUNCTIONS[np.expand_dims](x, chosen) if keepdims else x


def _reduced(ufunc: np.ufunc, x: Tensor) -> Tensor:
    """What the first dimension is combined to."""
    if not x.shape[0]:
        fail(UnsupportedError, f"{public_name(ufunc)}.reduce of no elements is not supported on a Tensor.")
    if ufunc.__name__ not in ASSOCIATIVE:
        total, *rest = joining.unbind(x, 0)
        for one in rest:
            total = called(ufunc, (total, one))
        return total
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        combined = called(ufunc, (parts.part(x, 0, 0, half), parts.part(x, 0, half, 2 * half)))
        x = joining.cat([combined, parts.part(x, 0, 2 * half, x.shape[0])], 0) if x.shape[0] % 2 else combined
    result = x[0]
    return called(np.logical_xor, (result, False)) if ufunc is np.logical_xor else result


def accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, **options: Any) -> Tensor:
    """`np.maximum.accumulate(x)`: each element combined with all before it."""
    _refuse(ufunc, "accumulate", options)
    if isinstance(axis, tuple):
        if len(axis) != 1:
            fail(ArgumentError, f"{public_name(ufunc)}: accumulate does not allow multiple axes.")
        (axis,) = axis
    if axis is None:
        fail(ArgumentError, f"{public_name(ufunc)}: accumulate does not allow multiple axes.")
    known_as = ACCUMULATIONS.get(ufunc.__name__)
    if known_as is not None:
        return FUNCTIONS[known_as](array, axis=axis, **({} if dtype is None else {"dtype": dtype}))
    x = _prepared(ufunc, array, dtype)
    if ufunc.__name__ in CONTINUED and x.ndim:
        return CONTINUED[ufunc.__name__](x, axis_of(axis, x, "accumulate"))
    x = movement.movedim(x, axis, 0)
    if ufunc.__name__ in ASSOCIATIVE:
        x = running(x, 0, lambda later, earlier: called(ufunc, (earlier, later)))
        return movement.movedim(x, 0, axis)
    found = list(joining.unbind(x, 0))
    for place in range(1, len(found)):
        found[place] = called(ufunc, (found[place - 1], found[place]))
    return joining.stack(found, axis)


def reduceat(
    ufunc: np.ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None, **options: Any
) -> Tensor:
    """`np.add.reduceat(x, [0, 2])`: the parts between positions, each combined."""
    _refuse(ufunc, "reduceat", options)
    x = movement.movedim(tensor_of(array), axis, 0)
    starts = known("reduceat", indices)[0].tolist()
    found = [
        reduce(ufunc, parts.part(x, 0, start, stop), 0, dtype, keepdims=True)
        if start < stop
        else x[start][None]
        for start, stop in zip(starts, [*starts[1:], x.shape[0]])
    ]
    return movement.movedim(joining.cat(found, 0), 0, axis)


def outer(ufunc: np.ufunc, a: Any, b: Any, **options: Any) -> Tensor:
    """`np.subtract.outer(a, b)`: each element of a with each of b."""
    x, y = tensor_of(a), tensor_of(b)
    return called(ufunc, (x.reshape((*x.shape, *(1,) * y.ndim)), y), options)


def at(ufunc: np.ufunc, array: Any, index: Any, *values: Any) -> None:
    """`np.add.at(x, index, values)`, in place."""
    if ufunc not in COMBINED or len(values) != 1:
        unknown(f"{public_name(ufunc)}.at")
    combine_at(ufunc, array, index, *values)


def _prepared(ufunc: np.ufunc, array: Any, dtype: Any) -> Tensor:
    x = tensor_of(array)
    if dtype is not None:
        (x, _), _ = converted(ufunc, (x, x), dtype)
    is_float = ufunc.__name__ in ("logaddexp", "logaddexp2", "hypot", "true_divide", "divide")
    return averaged(x) if is_float and array_dtype(x).kind not in CONTINUOUS else x


def _refuse(ufunc: np.ufunc, method: str, options: dict[str, Any]) -> None:
    given: Sequence[str] = [name for name, value in options.items() if value is not None]
    if given:
        name = f"{public_name(ufunc)}.{method}"
        fail(UnsupportedError, f"{name}: {', '.join(given)} is not supported on a Tensor.")


METHODS |= {"reduce": reduce, "accumulate": accumulate, "reduceat": reduceat, "outer": outer, "at": at}
