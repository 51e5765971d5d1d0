"""What kernels call: vector_math, `gemm`, functions of the module and of whole matrices, `min`, `max`.

A `Call` says what kinds its operands become, and writes the instructions of the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Protocol

import numpy as np
from llvmlite import ir

from pullback.tracer.lapack import Routine
from pullback.tracer.spec import BOOL, INT64, complex_dtype

from ....tracer.records import record
from ... import blas, host, lapack, sorting, triangles
from ...ir.expressions import OF_INTEGERS
from ...vector_math import staged
from .. import host_entry
from ..loading import OBJECT_PREFIX, WHOLES
from . import kinds, operations
from .kinds import FLOAT32, FLOAT64, NONE, SLICE, Array, ArrayValue, Kind, Tuple
from .translate import choose

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
VECTOR_MATH = "pullback.codegen.vector_math"
OF_WHOLES = tuple(f"pullback.codegen.{module}" for module in WHOLES)

Emit = Callable[["Writer", Sequence[Any]], Any]


class Writer(Protocol):
    """The function that is being written."""

    builder: ir.IRBuilder

    def call(self, function: ir.Function, result: Kind, arguments: Sequence[ir.Value]) -> Any: ...

    def slot(self, kind: ir.Type) -> ir.Value: ...

    def leave_if(self, condition: ir.Value, error: ir.Value) -> None: ...


@record(frozen=True)
class Call:
    """A function for operands of some kinds."""

    result: Kind
    operands: tuple[Kind, ...]
    """The kinds that the operands are given in."""
    emit: Emit


Define = Callable[[FunctionType, tuple[Kind, ...]], tuple[ir.Function, Kind]]


def call_of(function: Any, given: tuple[Kind, ...], module: str, define: Define) -> Call:
    """The call of a function in a function of a module; `define` defines those that are compiled with it.

    Raises TypeError where it cannot be called, or not with operands of these kinds.
    """
    if isinstance(function, type) and function in _CONVERSIONS:
        return _conversion(np.dtype(function), *given)
    if symbol := host.symbol_of(function):
        return _host_call(symbol, getattr(function, "pairs", ()), *given)
    if isinstance(function, Routine):
        return _lapack(function, *given)
    own = _OWN.get(function)
    if own is not None:
        return own(*given)
    if function.__module__.startswith(VECTOR_MATH):
        return _vector_math(function, *given)
    if not isinstance(function, FunctionType) or function.__module__ not in (module, *OF_WHOLES):
        raise TypeError(f"a kernel cannot call {function}")
    defined, result = define(function, given)

    def emit(writer: Writer, values: Sequence[Any]) -> Any:
        parts = [part for kind, value in zip(given, values) for part in kinds.fields(kind, value)]
        return writer.call(defined, result, parts)

    return Call(result, given, emit)


def _vector_math(function: FunctionType, *given: Kind) -> Call:
    """A function of vector_math. It writes its own instructions; LLVM inlines them wherever it is called."""
    both = kinds.common(*given)
    combine = _EXACT.get(function.__name__)
    if combine is not None and (both.kind in "iu" or (both == BOOL and function.__name__ in _EXTREMES)):
        return Call(both, (both, both), lambda writer, values: combine(writer.builder, both, *values))
    kind = FLOAT32 if set(given) == {FLOAT32} else FLOAT64

    def emit(writer: Writer, values: Sequence[ir.Value]) -> ir.Value:
        value_types = tuple(value.type for value in values)
        return writer.builder.call(staged.define(writer.builder.module, function, value_types), values)

    return Call(kind, (kind,) * len(given), emit)


_EXTREMES = {"maximum": operations.extreme(">"), "minimum": operations.extreme("<")}
_EXACT = {
    **_EXTREMES, "floor_divide": operations.quotient, "remainder": operations.remainder,
    "power": operations.power,
}  # fmt: skip
"""Functions that are exact for integers, which are not rounded to floats."""


def _gemm(*given: Kind) -> Call:
    """`blas.gemm` of matrices of one dtype."""
    _, a, b, _, out = given
    if not all(isinstance(one, Array) and one.ndim == 2 and one.dtype == a.dtype for one in (a, b, out)):  # type: ignore[union-attr]
        raise TypeError(f"gemm is of matrices of one dtype, not of {a}, {b} and {out}")
    if out.layout == "F":  # type: ignore[union-attr]
        raise TypeError(f"gemm writes by row, not into {out}")
    dtype = a.dtype  # type: ignore[union-attr]

    def emit(writer: Writer, values: Sequence[Any]) -> None:
        parts: list[ir.Value] = []
        for value in values:
            is_matrix = isinstance(value, ArrayValue)
            parts += [value.data, *value.shape, *value.strides] if is_matrix else [value]
        writer.builder.call(blas.define(writer.builder.module, dtype.name), parts)

    return Call(NONE, (dtype, a, b, dtype, out), emit)


def _gemm_of_pairs(*given: Kind) -> Call:
    """`blas.gemm_of_pairs` of matrices of one dtype."""
    *_, a, b, _, out = given
    if not all(isinstance(one, Array) and one.ndim == 3 and one.dtype == a.dtype for one in (a, b, out)):  # type: ignore[union-attr]
        raise TypeError(f"gemm_of_pairs is of pairs of one dtype, not of {a}, {b} and {out}")
    dtype = a.dtype  # type: ignore[union-attr]

    def emit(writer: Writer, values: Sequence[Any]) -> None:
        *numbers, a, b, beta, out = values
        parts: list[ir.Value] = [*numbers, beta]
        for one in (a, b, out):
            parts += [one.data, *one.shape[:2], one.strides[0]]
        writer.builder.call(blas.define_of_pairs(writer.builder.module, dtype.name), parts)

    return Call(NONE, (dtype, BOOL, BOOL, a, b, dtype, out), emit)


def _solve_triangle(*given: Kind) -> Call:
    """`triangles.solve_triangle` of matrices of one dtype, or `solve_triangle_of_pairs`, with a flag more."""
    *flags, a, out = given
    rank, name = len(flags) - 1, "solve_triangle" if len(flags) == 3 else "solve_triangle_of_pairs"
    if not (isinstance(a, Array) and isinstance(out, Array) and a.ndim == out.ndim == rank):
        raise TypeError(f"{name} is of matrices, not of {a} and {out}")
    if a.dtype != out.dtype:
        raise TypeError(f"{name} is of matrices of one dtype, not of {a} and {out}")
    if out.layout == "F":
        raise TypeError(f"{name} writes by row, not into {out}")
    dtype = a.dtype

    def emit(writer: Writer, values: Sequence[Any]) -> None:
        *parts, first, second = values
        for one in (first, second):
            strides = one.strides if rank == 2 else one.strides[:1]
            parts += [one.data, *one.shape[:2], *strides]
        define = triangles.define if rank == 2 else triangles.define_of_pairs
        writer.builder.call(define(writer.builder.module, dtype.name), parts)

    return Call(NONE, (*[BOOL] * len(flags), a, out), emit)


def _lapack(routine: Routine, *given: Kind) -> Call:
    """A routine of LAPACK, for extents and for the memory of arrays of one dtype."""
    dtypes = {one.dtype for one in given if isinstance(one, Array)}
    if len(dtypes) != 1 or not all(isinstance(one, Array) or kinds.is_integer(one) for one in given):
        raise TypeError(f"{routine.name} is of extents and arrays of one dtype, not of {given}")
    (dtype,) = dtypes

    def emit(writer: Writer, values: Sequence[Any]) -> None:
        parts = [one.data if isinstance(one, ArrayValue) else one for one in values]
        writer.builder.call(lapack.define(writer.builder.module, routine, dtype.name), parts)

    return Call(NONE, tuple(one if isinstance(one, Array) else INT64 for one in given), emit)


def _sorting(function: str, *given: Kind) -> Call:
    """`sorting.sort` or `sorting.order` of contiguous arrays."""
    first = given[0]
    if not isinstance(first, Array) or not all(isinstance(one, Array) and one.layout == "C" for one in given):
        raise TypeError(f"{function} is of contiguous arrays, not of {given}")
    dtype = first.dtype

    def emit(writer: Writer, values: Sequence[ArrayValue]) -> None:
        (count,) = values[0].shape
        sorting.call(writer.builder, function, dtype.name, [one.data for one in values], count)

    return Call(NONE, given, emit)


def _host_call(symbol: str, pairs: tuple[int, ...], *given: Kind) -> Call:
    """A function of arrays that Python runs. If it raises, the kernel ends, with Python's error set.

    Those at the places `pairs` have a last dimension of 2, and are shown as complex numbers.
    """
    arrays = [one for one in given if isinstance(one, Array)]
    if len(arrays) < len(given):
        raise TypeError(f"{symbol} is a function of arrays")

    def emit(writer: Writer, values: Sequence[ArrayValue]) -> None:
        builder, module = writer.builder, writer.builder.module
        words: list[ir.Value] = []
        for place, (kind, array) in enumerate(zip(arrays, values)):
            shown, ndim = kind.dtype, kind.ndim
            if place in pairs:
                shown, ndim = complex_dtype(shown), ndim - 1
            dtype = _external(module, f"{OBJECT_PREFIX}{shown.name}")
            sizes = [_in_memory(writer, one[:ndim]) for one in (array.shape, array.strides)]
            words += [dtype, _WORD(ndim), array.data, *sizes]
        table = _in_memory(
            writer, [one if one.type == _WORD else builder.ptrtoint(one, _WORD) for one in words]
        )
        called = _external(module, symbol, ir.FunctionType(ir.VoidType(), []))
        kind = ir.FunctionType(ir.IntType(32), [_BYTE.as_pointer(), _WORD, _BYTE.as_pointer()])
        place, words_at = (builder.bitcast(one, _BYTE.as_pointer()) for one in (called, table))
        status = builder.call(_external(module, host_entry.CALL, kind), [place, _WORD(len(arrays)), words_at])
        writer.leave_if(builder.icmp_signed("!=", status, status.type(0)), called)

    return Call(NONE, given, emit)


def _external(module: ir.Module, symbol: str, kind: ir.Type | None = None) -> ir.Value:
    """What is found under a symbol when the code is loaded: a function, or an object of Python's."""
    if symbol not in module.globals:
        if isinstance(kind, ir.FunctionType):
            ir.Function(module, kind, symbol)
        else:
            ir.GlobalVariable(module, _BYTE, symbol).linkage = "external"
    return module.globals[symbol]


def _in_memory(writer: Writer, words: Sequence[ir.Value]) -> ir.Value:
    """The address of a table of words."""
    table = writer.slot(ir.ArrayType(_WORD, len(words)))
    for place, word in enumerate(words):
        writer.builder.store(word, writer.builder.gep(table, [_WORD(0), _WORD(place)]))
    return table


# --- small functions --------------------------------------------------------------------------------------


def _conversion(dtype: np.dtype, given: Kind) -> Call:
    if not isinstance(given, np.dtype):
        raise TypeError(f"{given} is no number")
    return Call(dtype, (dtype,), lambda writer, values: values[0])


def _of_integers(sign: str, *given: Kind) -> Call:
    if len(given) < 2 or not all(map(kinds.is_integer, given)):
        raise TypeError("min and max are of two integers or more")
    combine = operations.extreme(sign)

    def emit(writer: Writer, values: Sequence[ir.Value]) -> ir.Value:
        return functools.reduce(functools.partial(combine, writer.builder, INT64), values)

    return Call(INT64, (INT64,) * len(given), emit)


def _ufunc_of_integers(combine: operations.Combine, *given: Kind) -> Call:
    """A function of NumPy's of two integers of one kind."""
    kind, *others = given
    if not isinstance(kind, np.dtype) or not kinds.is_integer(kind) or others != [kind]:
        raise TypeError(f"it is of two integers of one kind, not of {given}")
    return Call(kind, given, lambda writer, values: combine(writer.builder, kind, *values))


def _magnitude(given: Kind) -> Call:
    kind = kinds.of_arithmetic(given)
    return Call(kind, (kind,), lambda writer, values: operations.magnitude(writer.builder, kind, *values))


def _choice(condition: Kind, *given: Kind) -> Call:
    kind = kinds.common(*given)
    return Call(kind, (BOOL, kind, kind), lambda writer, values: writer.builder.select(*values))


def _slice(*given: Kind) -> Call:
    """From a start, which may be None, to a stop, which may be; both inside the array."""
    bounds = tuple(one if one == NONE else INT64 for one in given)
    return Call(SLICE, bounds, lambda writer, values: tuple(values))


def _reshape(array: Kind, shape: Kind) -> Call:
    """A view of the whole memory of an array in C order."""
    is_shape = isinstance(shape, Tuple) and all(map(kinds.is_integer, shape.items))
    if not isinstance(array, Array) or array.layout != "C" or not is_shape:
        raise TypeError("a view is of an array in C order, and its shape a tuple of integers")
    dtype, lengths = array.dtype, (INT64,) * len(shape.items)  # type: ignore[union-attr]

    def emit(writer: Writer, values: Sequence[Any]) -> ArrayValue:
        return kinds.in_order(writer.builder, dtype, values[0].data, values[1])

    return Call(Array(dtype, len(lengths), "C"), (array, Tuple(lengths)), emit)


_OWN: dict[Any, Callable[..., Call]] = {
    min: functools.partial(_of_integers, "<"), max: functools.partial(_of_integers, ">"),
    abs: _magnitude, slice: _slice, choose: _choice, np.reshape: _reshape, blas.gemm: _gemm,
    blas.gemm_of_pairs: _gemm_of_pairs, triangles.solve_triangle: _solve_triangle,
    triangles.solve_triangle_of_pairs: _solve_triangle,
    **{OF_INTEGERS[name]: functools.partial(_ufunc_of_integers, combine) for name, combine in (
        ("gcd", operations.gcd), ("bitwise_left_shift", operations.left_shift),
        ("bitwise_right_shift", operations.right_shift),
    )},
    **{one: functools.partial(_sorting, one.__name__) for one in sorting.FUNCTIONS},
}  # fmt: skip
_CONVERSIONS = frozenset(
    {bool, int, float, np.bool_, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64,
     np.uint8, np.uint16, np.uint32, np.uint64}
)  # fmt: skip
