"""Equations of triangles by BLAS: `solve_triangle` as generated code calls it, and its LLVM; also of pairs.

As for `gemm`, a matrix by row is the transpose of one by column, so `a x = out` is solved as
`x' a' = out'`, from the other side, and nothing is copied.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from ..tracer.ops.matrices import blas_routine
from ..tracer.ops.movement import of_pairs, pairs_of
from .blas import ELEMENTS, SYMBOL_PREFIX, address, complex_number, layout, pairs_between_rows

ROUTINES = {"float32": "strsm", "float64": "dtrsm"}
OF_PAIRS = {"float32": "ctrsm", "float64": "ztrsm"}
_INT8, _INT32, _INT64 = (ir.IntType(bits) for bits in (8, 32, 64))
_FLAG = ir.IntType(1)


def solve_triangle(lower: bool, right: bool, is_unit: bool, a: np.ndarray, out: np.ndarray) -> None:
    """The x with a x = out, or x a = out if `right`, in the place of `out`, of a triangle of `a`.

    Args:
        lower: whether it is the lower triangle.
        is_unit: whether it has ones on its diagonal, which is then not read.
        a: shape (n, n), float32 or float64. In compiled code one of its two dimensions is contiguous.
        out: shape (n, m), or (m, n), of the same dtype; rows are contiguous.

    >>> solve_triangle(True, False, False, factor, x)
    """
    solve = blas_routine("trsm", out.dtype)
    out[...] = solve(1.0, a, out, side=int(right), lower=int(lower), diag=int(is_unit))


def solve_triangle_of_pairs(
    lower: bool, adjoint: bool, right: bool, is_unit: bool, a: np.ndarray, out: np.ndarray
) -> None:
    """`solve_triangle` of complex matrices, or with the adjoint of a triangle of `a`.

    Their last dimension has the real and the imaginary part.

    Args:
        a: shape (n, n, 2); rows are contiguous.
        out: shape (n, m, 2), or (m, n, 2).

    >>> solve_triangle_of_pairs(True, True, False, False, factor, x)
    """
    matrix, given = of_pairs.evaluate(a), of_pairs.evaluate(out)
    options = {"side": int(right), "lower": int(lower), "trans_a": 2 * adjoint, "diag": int(is_unit)}
    out[...] = pairs_of.evaluate(blas_routine("trsm", given.dtype)(1.0, matrix, given, **options))


def define(module: ir.Module, dtype: str) -> ir.Function:
    """The function `solve_triangle` of a dtype in an LLVM module: flags, and the fields of both matrices."""
    name = f"pullback_solve_triangle_{dtype}"
    if name in module.globals:
        return module.globals[name]
    element = ELEMENTS[dtype]
    function, builder = _begun(module, name, element, flags=3, fields=4)
    lower, right, is_unit = function.args[:3]
    a, out = function.args[3:8], function.args[8:13]
    size = _INT64(8 if dtype == "float64" else 4)
    (turned, step), (_, step_out) = layout(builder, a, size), layout(builder, out, size)
    is_by_column = builder.icmp_signed("==", turned, _INT8(ord("T")))
    flags = (right, builder.xor(lower, is_by_column), turned, is_unit)
    _call(builder, ROUTINES[dtype], flags, element(1.0), (a[0], step), (out[0], step_out), out[1:3])
    return function


def define_of_pairs(module: ir.Module, dtype: str) -> ir.Function:
    """The function `solve_triangle_of_pairs` of a dtype: flags, and of both matrices the address of the data,
    the numbers of rows and columns, and the bytes from row to row.
    """
    name = f"pullback_solve_triangle_of_pairs_{dtype}"
    if name in module.globals:
        return module.globals[name]
    element = ELEMENTS[dtype]
    function, builder = _begun(module, name, element, flags=4, fields=3)
    lower, adjoint, right, is_unit = function.args[:4]
    a, out = function.args[4:8], function.args[8:12]
    step, step_out = (pairs_between_rows(builder, one, 16 if dtype == "float64" else 8) for one in (a, out))
    turned = _letter(builder, adjoint, "CN")
    flags = (right, lower, turned, is_unit)
    _call(builder, OF_PAIRS[dtype], flags, element(1.0), (a[0], step), (out[0], step_out), out[1:3])
    return function


def _begun(
    module: ir.Module, name: str, element: ir.Type, flags: int, fields: int
) -> tuple[ir.Function, ir.IRBuilder]:
    """A function of flags and two matrices, each with so many fields behind the address of its data."""
    matrix = [element.as_pointer(), *[_INT64] * fields]
    kind = ir.FunctionType(ir.VoidType(), [*[_FLAG] * flags, *matrix, *matrix])
    function = ir.Function(module, kind, name)
    function.linkage = "linkonce_odr"
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _call(
    builder: ir.IRBuilder, routine: str, flags: tuple[ir.Value, ...], one: ir.Value,
    a: tuple[ir.Value, ir.Value], out: tuple[ir.Value, ir.Value], extents: list[ir.Value],
) -> None:  # fmt: skip
    """BLAS's call, and the end of the function: of what it sees, the transposed of both matrices."""
    right, lower, turned, is_unit = flags
    side, triangle = _letter(builder, right, "LR"), _letter(builder, lower, "UL")
    letters = (side, triangle, turned, _letter(builder, is_unit, "UN"))
    rows, columns = (builder.trunc(extent, _INT32) for extent in extents)
    scale = complex_number(builder, one) if routine[0] in "cz" else address(builder, one)
    arguments = [
        *(address(builder, letter) for letter in letters), address(builder, columns), address(builder, rows),
        scale, a[0], address(builder, a[1]), out[0], address(builder, out[1]),
    ]  # fmt: skip
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    symbol = f"{SYMBOL_PREFIX}{routine}"
    builder.call(builder.module.globals.get(symbol) or ir.Function(builder.module, kind, symbol), arguments)
    builder.ret_void()


def _letter(builder: ir.IRBuilder, flag: ir.Value, letters: str) -> ir.Value:
    """The first of two letters, if the flag is set."""
    return builder.select(flag, _INT8(ord(letters[0])), _INT8(ord(letters[1])))
