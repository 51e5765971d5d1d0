"""Routines of LAPACK as generated code calls them: their LLVM. What they are, `tracer/lapack.py` says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir

from ..tracer.lapack import CHECKED, EXTENTS, INTEGERS, LETTERS, ROUTINES, Routine, address_of
from .blas import ELEMENTS, address

SYMBOL_PREFIX = "pullback_lapack_"
_INT8, _INT32, _INT64 = (ir.IntType(bits) for bits in (8, 32, 64))
_VOID, _BYTES = ir.VoidType(), _INT8.as_pointer()

eigenvectors = ROUTINES["eigenvectors"]
eigenvalues = ROUTINES["eigenvalues"]
singular_vectors = ROUTINES["singular_vectors"]
singular_vectors_in_place = ROUTINES["singular_vectors_in_place"]
singular_values = ROUTINES["singular_values"]
reflections = ROUTINES["reflections"]
orthonormal_rows = ROUTINES["orthonormal_rows"]


def define(module: ir.Module, routine: Routine, dtype: str) -> ir.Function:
    """The function of a routine and a dtype in an LLVM module.

    Its arguments are the extents, in int64, and the addresses of the arrays. Its workspace lives as long as
    a call.
    """
    name = f"pullback_{routine.name}_{dtype}"
    if name in module.globals:
        return module.globals[name]
    element = ELEMENTS[dtype]
    kinds = [_INT64 if one in EXTENTS else element.as_pointer() for one in routine.parameters]
    function = ir.Function(module, ir.FunctionType(_VOID, kinds), name)
    function.linkage = "linkonce_odr"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    given = dict(zip(routine.parameters, function.args))
    slots: dict[str, Any] = {one: _slot(builder, one, given) for one in routine.tokens}
    unknown = _INT32(-1)
    slots |= {one: address(builder, unknown) for one in ("lwork", "liwork")}
    slots |= {"work": address(builder, element(0.0)), "iwork": address(builder, _INT32(0))}
    slots["info"] = address(builder, _INT32(0))
    kind = ir.FunctionType(_VOID, [slots[one].type for one in routine.tokens])
    called = _external(module, kind, f"{SYMBOL_PREFIX}{LETTERS[dtype]}{routine.function}")

    def call() -> None:
        builder.call(called, [slots[one] for one in routine.tokens])

    call()  # which says how much workspace it needs
    size = builder.fptosi(builder.load(slots["work"]), _INT64)
    size = builder.add(size, builder.add(builder.ashr(size, _INT64(20)), _INT64(1)))  # as lapack.enough
    least = builder.mul(given["n"], _INT64(INTEGERS))
    integers = builder.sext(builder.load(slots["iwork"]), _INT64)
    integers = builder.select(builder.icmp_signed("<", integers, least), least, integers)
    builder.store(builder.trunc(size, _INT32), slots["lwork"])
    builder.store(builder.trunc(integers, _INT32), slots["liwork"])
    in_bytes = builder.mul(size, _INT64(8))  # enough for either dtype, and integers begin where they may
    room = builder.add(in_bytes, builder.mul(integers, _INT64(4)))
    allocate = _external(module, ir.FunctionType(_BYTES, [_INT64]), "malloc")
    memory = builder.call(allocate, [room])
    slots["work"] = builder.bitcast(memory, element.as_pointer())
    slots["iwork"] = builder.bitcast(builder.gep(memory, [in_bytes]), _INT32.as_pointer())
    builder.store(_INT32(1), slots["info"])  # unless it is called
    with builder.if_then(builder.icmp_unsigned("!=", memory, _BYTES(None))):
        call()
    builder.call(_external(module, ir.FunctionType(_VOID, [_BYTES]), "free"), [memory])
    with builder.if_then(builder.icmp_signed("!=", builder.load(slots["info"]), _INT32(0))):
        builder.store(element(float("nan")), given[CHECKED])
    builder.ret_void()
    return function


def _slot(builder: ir.IRBuilder, token: str, given: dict[str, ir.Value]) -> ir.Value | None:
    """The address that stands for an argument of a call; None for workspace."""
    if token.isupper():
        return address(builder, _INT8(ord(token)))
    value = given.get(token)
    return address(builder, builder.trunc(value, _INT32)) if token in EXTENTS else value


def _external(module: ir.Module, kind: ir.FunctionType, name: str) -> ir.Function:
    return module.globals[name] if name in module.globals else ir.Function(module, kind, name)


def register_symbols(needed: Iterable[str]) -> None:
    """Tell LLVM where those of the needed functions are that LAPACK has."""
    for symbol in needed:
        if symbol.startswith(SYMBOL_PREFIX):
            llvm.add_symbol(symbol, address_of("cython_lapack", symbol.removeprefix(SYMBOL_PREFIX)))
