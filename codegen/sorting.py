"""NumPy's sort of numbers as generated code calls it: `sort`, `order`, their LLVM, and where NumPy has them;
and `pack`, which makes of floats and their places integers to be sorted.

The functions that NumPy keeps for each dtype (`PyArray_ArrFuncs`) take memory and a count, and an array that
those of numbers never look at. They touch no Python object, so they need no interpreter's lock: NumPy itself
lets go of it around them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir

from ..tracer.ops.ordering import NAN_KEYS, packed
from .blas import ELEMENTS

SYMBOL_PREFIX = "pullback_numpy_"
DESCRIPTION, FUNCTIONS_OF = 45, 365
"""Places in NumPy's table for C: PyArray_DescrFromType, _PyDataType_GetArrFuncs."""
PLACES = {"sort": 33, "order": 36}
"""Of the first kind of sort, and of indirect sort, among a dtype's functions."""
_INT32, _INT64, _BYTES = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()


def sort(out: np.ndarray) -> None:
    """Numbers in place in ascending order, nan last.

    >>> sort(values)
    """
    out.sort()


def order(keys: np.ndarray, out: np.ndarray) -> None:
    """The positions that sort the keys, of 0, 1, ... in `out`; equal keys in any order, nan last.

    >>> order(keys, positions)
    """
    out[...] = np.argsort(keys)


def pack(keys: np.ndarray, out: np.ndarray) -> None:
    """Integers in the order of floats, whose last bits are their places: see `packed`.

    >>> pack(keys, positions)
    """
    out[...] = packed(keys)


FUNCTIONS = (sort, order, pack)


def call(
    builder: ir.IRBuilder, function: str, dtype: str, arrays: Sequence[ir.Value], count: ir.Value
) -> None:
    """Call NumPy's function, or `pack`, with the addresses of arrays of so many elements."""
    if function == pack.__name__:
        builder.call(_packing(builder.module, dtype), [*arrays, count])
        return
    arguments = [*(builder.bitcast(one, _BYTES) for one in arrays), count, _BYTES(None)]
    kind = ir.FunctionType(_INT32, [one.type for one in arguments])
    name = f"{SYMBOL_PREFIX}{function}_{dtype}"
    builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), arguments)


def _packing(module: ir.Module, dtype: str) -> ir.Function:
    """`pack` in an LLVM module."""
    name = f"pullback_pack_{dtype}"
    if name in module.globals:
        return module.globals[name]
    element, bits = ELEMENTS[dtype], ir.IntType(np.dtype(dtype).itemsize * 8)
    kind = ir.FunctionType(ir.VoidType(), [element.as_pointer(), _INT64.as_pointer(), _INT64])
    function = ir.Function(module, kind, name)
    function.linkage = "linkonce_odr"
    keys, out, count = function.args
    out.add_attribute("noalias")
    entry, loop, end = map(function.append_basic_block, ("entry", "loop", "end"))
    builder = ir.IRBuilder(entry)
    last = builder.sub(count, _INT64(1))
    zeros = builder.ctlz(last, ir.IntType(1)(0))
    has_one = builder.icmp_signed("<=", last, _INT64(0))
    places = builder.shl(_INT64(1), builder.sub(_INT64(64), builder.select(has_one, _INT64(64), zeros)))
    first_bits = builder.neg(places)
    builder.cbranch(builder.icmp_signed(">", count, _INT64(0)), loop, end)
    builder.position_at_end(loop)
    place = builder.phi(_INT64)
    number = builder.load(builder.gep(keys, [place]))
    given, largest = builder.bitcast(number, bits), bits(2 ** (bits.width - 1) - 1)
    plain = builder.select(builder.icmp_unsigned("==", given, bits(1 << bits.width - 1)), bits(0), given)
    sign = builder.ashr(plain, bits(bits.width - 1))
    ordered = builder.xor(plain, builder.and_(sign, largest))
    infinite = bits(np.array(np.inf, dtype).view(f"u{bits.width // 8}").item())
    is_nan = builder.icmp_unsigned(">", builder.and_(given, largest), infinite)
    ordered = builder.select(is_nan, bits(NAN_KEYS[dtype]), ordered)
    if bits.width < 64:
        ordered = builder.shl(builder.sext(ordered, _INT64), _INT64(64 - bits.width))
    builder.store(builder.or_(builder.and_(ordered, first_bits), place), builder.gep(out, [place]))
    following = builder.add(place, _INT64(1))
    place.add_incoming(_INT64(0), entry)
    place.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, end)
    builder.position_at_end(end)
    builder.ret_void()
    return function


def register_symbols(needed: Iterable[str]) -> None:
    """Tell LLVM where those of the needed functions are that NumPy has."""
    for symbol in needed:
        if symbol.startswith(SYMBOL_PREFIX):
            function, _, dtype = symbol.removeprefix(SYMBOL_PREFIX).partition("_")
            llvm.add_symbol(symbol, _functions_of(np.dtype(dtype).num)[PLACES[function]])


@functools.cache
def _functions_of(number: int) -> Any:
    """The addresses of NumPy's functions for a dtype."""
    table_of_numpy = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get_pointer(table_of_numpy, None), ctypes.POINTER(ctypes.c_void_p))
    describe = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(table[DESCRIPTION])
    functions_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(table[FUNCTIONS_OF])
    return ctypes.cast(functions_of(describe(number)), ctypes.POINTER(ctypes.c_void_p))
