"""Products of matrices by BLAS: `gemm` as generated code calls it, its LLVM, and where SciPy has it.

The functions of `scipy.linalg.cython_blas` are called directly. They take matrices by column; a matrix by
row is the transpose of one by column, so `out = a b` is computed as `out' = b' a'`. Which operand is a
transposed view is read off its strides, and nothing is copied.

A small matrix that sums up many rows is computed some rows at a time: up to a size OpenBLAS multiplies
matrices where they lie, above it copies them into its own layout first, which for few columns takes as long
as the product.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir

from ..tracer.forks import new_lock, run_after_fork
from ..tracer.lapack import address_of, cython_module
from ..tracer.ops.complex_matrices import product_of_pairs

SYMBOL_PREFIX = "pullback_blas_"
CALL = "pullback_gemm"
"""What functions that call a routine begin with."""
ROUTINES = {"float32": "sgemm", "float64": "dgemm"}
OF_PAIRS = {"float32": "cgemm", "float64": "zgemm"}
SMALL_RESULT = 2**13
"""Elements up to which a result is computed some rows at a time ..."""
MULTIPLIED_WHERE_IT_LIES = 2**19
"""... so many that this is the number of multiplications: OpenBLAS copies matrices for more of them."""
LARGEST_EXTENT = 2**31 - 1
"""BLAS counts in int32."""

_INT8, _INT32, _INT64 = (ir.IntType(bits) for bits in (8, 32, 64))
ELEMENTS = {"float32": ir.FloatType(), "float64": ir.DoubleType()}


def gemm(alpha: float, a: np.ndarray, b: np.ndarray, beta: float, out: np.ndarray) -> None:
    """out = alpha * a @ b + beta * out; with beta 0 it does not matter what `out` holds.

    Args:
        a, b: shapes (n, k) and (k, m), both float32 or both float64. In compiled code one of their two
            dimensions is contiguous, and no extent is 0.
        out: shape (n, m), of the same dtype; rows are contiguous.

    >>> gemm(1.0, x, w.T, 0.0, out)
    """
    product = alpha * (a @ b)
    out[...] = product if beta == 0 else product + beta * out


def gemm_of_pairs(
    alpha: float, adjoint_a: bool, adjoint_b: bool, a: np.ndarray, b: np.ndarray, beta: float, out: np.ndarray
) -> None:
    """out = alpha * a @ b + beta * out of complex matrices, of the adjoint of those that are said to be it.

    Their last dimension has the real and the imaginary part; with beta 0 it does not matter what `out` holds.

    Args:
        a, b: shapes (n, k, 2) and (k, m, 2), adjoints (k, n, 2) and (m, k, 2); rows are contiguous.
        out: shape (n, m, 2).

    >>> gemm_of_pairs(1.0, False, True, x, w, 0.0, out)
    """
    product = alpha * product_of_pairs(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    out[...] = product if beta == 0 else product + beta * out


# --- LLVM -------------------------------------------------------------------------------------------------


def define(module: ir.Module, dtype: str) -> ir.Function:
    """The function `gemm` of a dtype in an LLVM module.

    Its arguments: alpha, the fields of a and b, beta, the fields of out. Fields are the address of the data,
    two extents, two strides in bytes.
    """
    name = f"{CALL}_{dtype}"
    if name in module.globals:
        return module.globals[name]
    element = ELEMENTS[dtype]
    matrix = [element.as_pointer(), *[_INT64] * 4]
    kind = ir.FunctionType(ir.VoidType(), [element, *matrix, *matrix, element, *matrix])
    function = ir.Function(module, kind, name)
    function.linkage = "linkonce_odr"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    alpha, beta = function.args[0], function.args[11]
    a, b, out = (function.args[first : first + 5] for first in (1, 6, 12))
    size = _INT64(8 if dtype == "float64" else 4)
    (trans_a, step_a), (trans_b, step_b), (_, step_out) = (layout(builder, one, size) for one in (a, b, out))
    rows, columns = (builder.trunc(one, _INT32) for one in out[1:3])
    trans_a, trans_b, rows, columns, alpha, step_a, step_b, step_out, kept = (
        address(builder, one)
        for one in (trans_a, trans_b, rows, columns, alpha, step_a, step_b, step_out, beta)
    )
    summed = builder.alloca(_INT32)
    at_once = _summed_at_once(builder, a[2], builder.mul(out[1], out[2]))
    before, loop, done = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    start = builder.phi(_INT64)
    stop = builder.add(start, at_once)
    start.add_incoming(_INT64(0), before)
    start.add_incoming(stop, loop)
    is_last = builder.icmp_signed(">=", stop, a[2])
    builder.store(builder.trunc(builder.sub(builder.select(is_last, a[2], stop), start), _INT32), summed)
    first, second = (
        builder.gep(one[0], [builder.sdiv(builder.mul(start, stride), size)])
        for one, stride in ((a, a[4]), (b, b[3]))
    )
    arguments = [
        trans_b, trans_a, columns, rows, summed, alpha, second, step_b, first, step_a, kept, out[0], step_out,
    ]  # fmt: skip
    routine_type = ir.FunctionType(ir.VoidType(), [one.type for one in arguments])
    routine = ir.Function(module, routine_type, f"{SYMBOL_PREFIX}{ROUTINES[dtype]}")
    builder.call(routine, arguments)
    builder.store(element(1.0), kept)
    builder.cbranch(is_last, done, loop)
    builder.position_at_end(done)
    builder.ret_void()
    return function


def define_of_pairs(module: ir.Module, dtype: str) -> ir.Function:
    """The function `gemm_of_pairs` of a dtype in an LLVM module.

    Its arguments: alpha, whether a and b are adjoints, beta, and of a, b and out the address of the data, the
    numbers of rows and columns, and the bytes from row to row.
    """
    name = f"{CALL}_of_pairs_{dtype}"
    if name in module.globals:
        return module.globals[name]
    element, flag = ELEMENTS[dtype], ir.IntType(1)
    matrix = [element.as_pointer(), *[_INT64] * 3]
    kind = ir.FunctionType(ir.VoidType(), [element, flag, flag, element, *matrix, *matrix, *matrix])
    function = ir.Function(module, kind, name)
    function.linkage = "linkonce_odr"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    alpha, *are_adjoint, beta = function.args[:4]
    a, b, out = (function.args[first : first + 4] for first in (4, 8, 12))
    summed = builder.select(are_adjoint[0], a[1], a[2])
    letters = [builder.select(one, _INT8(ord("C")), _INT8(ord("N"))) for one in are_adjoint]
    first, second, rows, columns, count, *steps = (
        address(builder, one)
        for one in (
            *letters,
            *(builder.trunc(one, _INT32) for one in (*out[1:3], summed)),
            *(pairs_between_rows(builder, one, 16 if dtype == "float64" else 8) for one in (a, b, out)),
        )
    )
    scale, kept = (complex_number(builder, one) for one in (alpha, beta))
    arguments = [
        second, first, columns, rows, count, scale, b[0], steps[1], a[0], steps[0], kept, out[0], steps[2],
    ]  # fmt: skip
    routine_type = ir.FunctionType(ir.VoidType(), [one.type for one in arguments])
    routine = ir.Function(module, routine_type, f"{SYMBOL_PREFIX}{OF_PAIRS[dtype]}")
    builder.call(routine, arguments)
    builder.ret_void()
    return function


def pairs_between_rows(builder: ir.IRBuilder, matrix: list[ir.Value], size: int) -> ir.Value:
    _, _, columns, stride = matrix
    step = builder.sdiv(stride, _INT64(size))
    least = builder.select(builder.icmp_signed(">", columns, _INT64(1)), columns, _INT64(1))
    return builder.trunc(builder.select(builder.icmp_signed("<", step, least), least, step), _INT32)


def complex_number(builder: ir.IRBuilder, real: ir.Value) -> ir.Value:
    slot = builder.alloca(real.type, 2)
    builder.store(real, slot)
    builder.store(real.type(0.0), builder.gep(slot, [_INT32(1)]))
    return slot


def _summed_at_once(builder: ir.IRBuilder, extent: ir.Value, elements: ir.Value) -> ir.Value:
    """How many of the products that make an element are summed in one call."""
    divisor = builder.select(builder.icmp_signed(">", elements, _INT64(0)), elements, _INT64(1))
    some = builder.sdiv(_INT64(MULTIPLIED_WHERE_IT_LIES), divisor)
    is_small = builder.icmp_signed("<=", elements, _INT64(SMALL_RESULT))
    has_more = builder.icmp_signed(">", extent, builder.mul(some, _INT64(2)))
    return builder.select(builder.and_(is_small, has_more), some, extent)


def layout(builder: ir.IRBuilder, matrix: list[ir.Value], size: ir.Value) -> tuple[ir.Value, ir.Value]:
    """("N", elements from row to row), or ("T", elements from column to column) of a transposed view."""
    _, rows, columns, row_stride, column_stride = matrix
    by_row = builder.icmp_signed("==", column_stride, size)
    step = builder.sdiv(builder.select(by_row, row_stride, column_stride), size)
    least = builder.select(by_row, columns, rows)  # BLAS asks for it even where there is one row
    step = builder.select(builder.icmp_signed("<", step, least), least, step)
    letter = builder.select(by_row, _INT8(ord("N")), _INT8(ord("T")))
    return letter, builder.trunc(step, _INT32)


def address(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Fortran takes all arguments by their address."""
    slot = builder.alloca(value.type)
    builder.store(value, slot)
    return slot


# --- SciPy's BLAS -----------------------------------------------------------------------------------------


def register_symbols(needed: Iterable[str]) -> None:
    """Tell LLVM where those of the needed functions are that BLAS has."""
    for symbol in needed:
        if symbol.startswith(SYMBOL_PREFIX):
            llvm.add_symbol(symbol, address_of("cython_blas", symbol.removeprefix(SYMBOL_PREFIX)))


class OneThread:
    """While a program runs that calls BLAS: BLAS uses one thread, and large calls are shared between ours.

    OpenBLAS's own threads spin while they wait for each other, which on a busy machine takes a hundred times
    as long as the product. Another BLAS than OpenBLAS is left as it is.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._users = 0
        self._before = 1
        run_after_fork(self._forget)

    def __enter__(self) -> None:
        get_number, set_number = _thread_functions()
        with self._lock:
            if self._users == 0 and (before := get_number()) > 1:
                self._before = before
                set_number(1)
            self._users += 1

    def __exit__(self, *error: object) -> None:
        _, set_number = _thread_functions()
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._before > 1:
                set_number(self._before)
                self._before = 1

    def _forget(self) -> None:
        """A forked process has none of the threads that were inside."""
        if self._users:
            self._users = 1
            self.__exit__()


@functools.cache
def _thread_functions() -> tuple[Callable[[], int], Callable[[int], object]]:
    """How OpenBLAS, as SciPy links it, tells and sets its number of threads."""
    try:
        library: Any = ctypes.CDLL(str(cython_module("cython_blas").__file__))
    except OSError:
        library = None
    for prefix in ("scipy_openblas_", "openblas_"):
        for suffix in ("", "64_"):
            get_number = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            set_number = getattr(library, f"{prefix}set_num_threads{suffix}", None)
            if get_number is not None and set_number is not None:
                return get_number, set_number
    return _one, _ignored


def _one() -> int:
    return 1


def _ignored(number: int) -> None:
    pass
