"""Functions of vector_math that a kernel calls at many places: compiled once, not anew at each of them.

LLVM's inliner copies such a function to each place, and all later passes work on every copy; the one that
vectorises loops takes the square of their length. From some number of calls on, functions stay functions.
LLVM is told of their variants for vectors (its VFABI), so the loops that call them vectorise all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import binding as llvm
from llvmlite import ir

from ...blas import CALL as BLAS_CALL
from ...vector_math import FUNCTIONS, rare
from ...vector_math.staged import Staged

MANY = 16
"""Calls of one function from which it is not inlined."""
MANY_PRODUCTS = 4
"""Calls of BLAS in the same form from which what prepares one is not inlined: it takes no time beside it."""
VARIANT = "pullback.variant."
PURE = ("noinline", "nounwind", "readnone", "willreturn")


def outline(module: ir.Module, vector_bits: int) -> None:
    """Let the calls of functions that are called often go to one that is not inlined."""
    calls: dict[str, list[ir.CallInstr]] = {}
    for call in _calls(module):
        if "alwaysinline" in call.callee.attributes or call.callee.name.startswith(BLAS_CALL):
            calls.setdefault(call.callee.name, []).append(call)
    for symbol, found in calls.items():
        if symbol.startswith(BLAS_CALL):
            if len(found) >= MANY_PRODUCTS:
                module.globals[symbol].attributes.add("noinline")
        elif len(found) >= MANY:
            function = _outlined(module, module.globals[symbol], vector_bits)
            for call in found:
                call.replace_callee(function)


def _calls(module: ir.Module) -> Iterator[ir.CallInstr]:
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if isinstance(instruction, ir.CallInstr) and isinstance(instruction.callee, ir.Function):
                    yield instruction


def _outlined(module: ir.Module, function: ir.Function, vector_bits: int) -> ir.Function:
    """A function that calls `function`, which is inlined there, and its variants for vectors."""
    outlined = _function(module, f"{function.name}.once", function.function_type)
    builder = ir.IRBuilder(outlined.append_basic_block("entry"))
    builder.ret(builder.call(function, outlined.args))
    lengths = rare.lengths(function.function_type.return_type, vector_bits)
    rare.offer(outlined, {lanes: _variant(module, function, lanes) for lanes in lengths})
    return outlined


def _variant(module: ir.Module, function: ir.Function, lanes: int) -> ir.Function:
    """The function for vectors."""
    python_function = FUNCTIONS[function.name.split(".")[1]]
    vector = ir.VectorType(function.function_type.return_type, lanes)
    kind = ir.FunctionType(vector, [vector] * len(function.args))
    variant = _function(module, f"{VARIANT}{function.name}.{lanes}", kind)
    builder = ir.IRBuilder(variant.append_basic_block("entry"))
    builder.ret(python_function(*(Staged(builder, argument) for argument in variant.args)).value)
    return variant


def _function(module: ir.Module, symbol: str, kind: ir.FunctionType) -> ir.Function:
    function = ir.Function(module, kind, symbol)
    function.linkage = "internal"
    for attribute in PURE:  # llvmlite refuses attributes that it does not know, but writes what the set holds
        set.add(function.attributes, attribute)
    return function


def vector_bits(wanted: int) -> int:
    """The length of this processor's vectors, if they may be as long as `wanted`; 0: as LLVM likes them."""
    features = llvm.get_host_cpu_features()
    widest = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    return min(wanted or 256, widest)
