"""NumPy's ufuncs that are made of other functions, and the methods of ufuncs: `np.maximum.accumulate(x)`.

SciPy's special functions are ufuncs as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ShapeError, UnsupportedError
from ...tracer.operator import operators
from ...tracer.spec import CONTINUOUS
from ..bytecode.library_calls import public_name
from ..functions import PUBLIC, declared, joining, movement, parts
from ..functions.common import INTEGERS, array_dtype, as_dtype, conjugate, fail
from ..functions.running import running
from ..tape.apply import wrap
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .protocols import FUNCTIONS, METHODS, OF_OTHERS, OPTIONS, called, converted, unknown
from .values import averaged, axis_of, known, promoted
from .written_arrays import add_at

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
    size = PUBLIC["abs"](value._detached())
    is_plain = PUBLIC["isfinite"](size) & (size > 0)
    exponent = PUBLIC["where"](is_plain, PUBLIC["floor"](PUBLIC["log2"](size)) + 1, 0.0)
    share = size / PUBLIC["exp2"](exponent)  # log2 may be rounded over a power of two
    exponent = exponent + PUBLIC["where"](is_plain & (share >= 1), 1.0, 0.0)
    exponent = exponent - PUBLIC["where"](is_plain & (share < 0.5), 1.0, 0.0)
    return value / PUBLIC["exp2"](exponent), as_dtype(exponent, np.dtype("int32"))


def ldexp(x: Any, exponent: Any) -> Tensor:
    (value,), dtype = converted(np.sqrt, (x,))
    return value * PUBLIC["exp2"](as_dtype(tensor_of(exponent), dtype))


def left_shift(x: Any, count: Any) -> Tensor:
    (x, count), _ = _both(np.left_shift, x, count)
    return x * PUBLIC["pow"](2, count)


def right_shift(x: Any, count: Any) -> Tensor:
    (x, count), dtype = _both(np.right_shift, x, count)
    last = dtype.itemsize * 8 - 2
    shifted = PUBLIC["floor_divide"](x, PUBLIC["pow"](2, PUBLIC["clamp"](count, 0, last)))
    return (
        PUBLIC["where"](count > last, PUBLIC["where"](x < 0, -1, 0), shifted)
        if dtype.kind == "i"
        else shifted
    )


def vecdot(a: Any, b: Any, axis: int = -1) -> Tensor:
    x, y = promoted([a, b])
    lengths = [one.shape[axis_of(axis, one, "vecdot")] for one in (x, y)]
    if lengths[0] != lengths[1]:
        fail(ShapeError, f"numpy.vecdot: vectors of one length are expected, found {lengths}.")
    return declared.sum(conjugate(movement.movedim(x, axis, -1)) * movement.movedim(y, axis, -1), -1)


def _of_integers(ufunc: np.ufunc) -> Callable[..., Tensor]:
    """Computed by NumPy from values, of which there is no gradient."""
    return lambda *inputs: wrap(np.asarray(ufunc(*known(ufunc.__name__, *inputs))))


OF_OTHERS |= {
    "heaviside": heaviside, "copysign": copysign, "modf": modf, "frexp": frexp, "ldexp": ldexp,
    "left_shift": left_shift, "right_shift": right_shift, "vecdot": vecdot,
    "divmod": lambda a, b: (called(np.floor_divide, (a, b)), called(np.remainder, (a, b))),
    "matvec": lambda a, b: FUNCTIONS[np.einsum]("...ij,...j->...i", a, b),
    "vecmat": lambda a, b: FUNCTIONS[np.einsum]("...i,...ij->...j", PUBLIC["conj_physical"](tensor_of(a)), b),
    **{name: _of_integers(getattr(np, name)) for name in ("gcd", "lcm", "bitwise_count")},
}  # fmt: skip
OPTIONS["vecdot"] = {"axis"}

# --- SciPy's ------------------------------------------------------------------------------------------------


def _floats(*values: Any) -> list[Tensor]:
    return [averaged(one) for one in promoted(values)]


def _ndtr(x: Any) -> Tensor:
    return 0.5 * PUBLIC["erfc"](averaged(x) * -math.sqrt(0.5))


def _log_ndtr(x: Any) -> Tensor:
    """Far below 0 by the continued fraction of the tail, where `erfc` underflows (Abramowitz and
    Stegun 26.2.14)."""
    (value,) = _floats(x)
    near = PUBLIC["maximum"](value, -5.0)
    far = PUBLIC["minimum"](value, -5.0)
    fraction = far * 0.0
    for place in range(40, 0, -1):
        fraction = place / (fraction - far)
    tail = -0.5 * far * far - 0.5 * math.log(2 * math.pi) - PUBLIC["log"](fraction - far)
    return PUBLIC["where"](value < -5.0, tail, PUBLIC["log"](_ndtr(near)))


def _rel_entr(x: Any, y: Any) -> Tensor:
    p, q = _floats(x, y)
    return PUBLIC["xlogy"](p, p) - PUBLIC["xlogy"](p, q)


def _xlog1py(x: Any, y: Any) -> Tensor:
    factor, value = _floats(x, y)
    is_zero = PUBLIC["eq"](factor, 0) & ~PUBLIC["isnan"](value)
    return PUBLIC["where"](is_zero, 0.0, factor * PUBLIC["log1p"](PUBLIC["where"](is_zero, 0.0, value)))


def _gamma(x: Any) -> Tensor:
    """exp(lgamma(x)) with the sign that it has between negative integers."""
    (value,) = _floats(x)
    is_odd = PUBLIC["eq"](PUBLIC["remainder"](PUBLIC["floor"](value), 2), 1)
    sign = PUBLIC["where"](is_odd & (value < 0), -1.0, 1.0)
    return sign * PUBLIC["exp"](PUBLIC["lgamma"](value))


def _betaln(a: Any, b: Any) -> Tensor:
    a, b = _floats(a, b)
    return PUBLIC["lgamma"](a) + PUBLIC["lgamma"](b) - PUBLIC["lgamma"](a + b)


def _boxcox(x: Any, power: Any) -> Tensor:
    x, power = _floats(x, power)
    is_zero = PUBLIC["eq"](power, 0)
    logarithm = PUBLIC["log"](x)
    safe = PUBLIC["where"](is_zero, 1.0, power)
    return PUBLIC["where"](is_zero, logarithm, PUBLIC["expm1"](safe * logarithm) / safe)


def _huber(delta: Any, x: Any) -> Tensor:
    delta, x = _floats(delta, x)
    size = PUBLIC["abs"](x)
    return PUBLIC["where"](size <= delta, 0.5 * x * x, delta * (size - 0.5 * delta))


OF_OTHERS |= {
    "ndtr": _ndtr, "log_ndtr": _log_ndtr, "xlog1py": _xlog1py, "rel_entr": _rel_entr, "gamma": _gamma,
    "betaln": _betaln, "beta": lambda a, b: PUBLIC["exp"](_betaln(a, b)), "boxcox": _boxcox, "huber": _huber,
    "entr": lambda x: -PUBLIC["xlogy"](averaged(x), averaged(x)),
    "kl_div": lambda x, y: _rel_entr(x, y) - tensor_of(x) + tensor_of(y),
}  # fmt: skip

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
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, INTEGERS) else axis
    chosen = sorted(one % max(x.ndim, 1) for one in axes)
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
    known_as = ACCUMULATIONS.get(ufunc.__name__)
    if known_as is not None:
        return FUNCTIONS[known_as](array, axis=axis, **({} if dtype is None else {"dtype": dtype}))
    x = movement.movedim(_prepared(ufunc, array, dtype), axis, 0)
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
    if ufunc not in (np.add, np.subtract):
        unknown(f"{public_name(ufunc)}.at")
    (added,) = map(tensor_of, values)
    add_at(array, index, added if ufunc is np.add else -added)


def _prepared(ufunc: np.ufunc, array: Any, dtype: Any) -> Tensor:
    x = tensor_of(array) if dtype is None else as_dtype(tensor_of(array), np.dtype(dtype))
    is_float = ufunc.__name__ in ("logaddexp", "logaddexp2", "hypot", "true_divide", "divide")
    return averaged(x) if is_float and array_dtype(x).kind not in CONTINUOUS else x


def _refuse(ufunc: np.ufunc, method: str, options: dict[str, Any]) -> None:
    given: Sequence[str] = [name for name, value in options.items() if value is not None]
    if given:
        name = f"{public_name(ufunc)}.{method}"
        fail(UnsupportedError, f"{name}: {', '.join(given)} is not supported on a Tensor.")


METHODS |= {"reduce": reduce, "accumulate": accumulate, "reduceat": reduceat, "outer": outer, "at": at}
