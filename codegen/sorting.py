"""NumPy's sort of numbers as generated code calls it: `sort`, `order`, their LLVM, and where NumPy has them.

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


FUNCTIONS = (sort, order)


def call(
    builder: ir.IRBuilder, function: str, dtype: str, arrays: Sequence[ir.Value], count: ir.Value
) -> None:
    """Call NumPy's function with the addresses of arrays of so many elements."""
    arguments = [*(builder.bitcast(one, _BYTES) for one in arrays), count, _BYTES(None)]
    kind = ir.FunctionType(_INT32, [one.type for one in arguments])
    name = f"{SYMBOL_PREFIX}{function}_{dtype}"
    builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), arguments)


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
