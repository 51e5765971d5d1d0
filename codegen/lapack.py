"""Routines of LAPACK as generated code calls them: their LLVM. What they are, `tracer/lapack.py` says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir

from ..tracer.lapack import CHECKED, ELEMENT, EXTENTS, INTEGERS, Routine, address_of
from .blas import ELEMENTS, address

SYMBOL_PREFIX = "pullback_lapack_"
_INT8, _INT32, _INT64 = (ir.IntType(bits) for bits in (8, 32, 64))
_VOID, _BYTES = ir.VoidType(), _INT8.as_pointer()


def define(module: ir.Module, routine: Routine, dtype: str) -> ir.Function:
    """The function of a routine and a dtype in an LLVM module.

    Its arguments are the extents, in int64, and the addresses of the arrays. Its workspace lives as long as
    a call; how large it is, LAPACK is asked once for matrices of one size.
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
    slots |= {one: address(builder, _INT32(-1)) for one in ("lwork", "lrwork", "liwork")}
    slots |= {one: builder.alloca(element, 2) for one in ("work", "rwork")}
    slots |= {one: address(builder, _INT32(0)) for one in ("iwork", "info")}
    kind = ir.FunctionType(_VOID, [slots[one].type for one in routine.tokens])
    called = _external(module, kind, f"{SYMBOL_PREFIX}{routine.symbol(dtype)}")

    def call() -> None:
        builder.call(called, [slots[one] for one in routine.tokens])

    if "lwork" in routine.tokens:
        memory = _workspace(builder, routine, given, slots, call)
        builder.store(_INT32(1), slots["info"])  # unless it is called
        with builder.if_then(builder.icmp_unsigned("!=", memory, _BYTES(None))):
            call()
        builder.call(_external(module, ir.FunctionType(_VOID, [_BYTES]), "free"), [memory])
    else:
        call()
    with builder.if_then(builder.icmp_signed("!=", builder.load(slots["info"]), _INT32(0))):
        builder.store(element(float("nan")), given[CHECKED])
    builder.ret_void()
    return function


def _workspace(
    builder: ir.IRBuilder, routine: Routine, given: dict[str, Any], slots: dict[str, Any],
    call: Callable[[], None],
) -> ir.Value:  # fmt: skip
    """Memory for work, whose parts the slots then tell, and their sizes."""
    element = slots["work"].type
    size = _size_of_work(builder, routine, given, slots, call)
    integers = builder.mul(given["n"], _INT64(INTEGERS))
    reals = _reals_of(builder, given) if routine.is_complex else _INT64(0)
    for one, length in (("lwork", size), ("lrwork", reals), ("liwork", integers)):
        builder.store(builder.trunc(length, _INT32), slots[one])
    sizes = [builder.mul(one, _INT64(ELEMENT)) for one in (size, reals)]
    in_bytes = builder.add(*sizes)  # integers begin where numbers of any dtype end
    room = builder.add(in_bytes, builder.mul(integers, _INT64(4)))
    allocate = _external(builder.module, ir.FunctionType(_BYTES, [_INT64]), "malloc")
    memory = builder.call(allocate, [room])
    slots["work"] = builder.bitcast(memory, element)
    slots["rwork"] = builder.bitcast(builder.gep(memory, sizes[:1]), element)
    slots["iwork"] = builder.bitcast(builder.gep(memory, [in_bytes]), _INT32.as_pointer())
    return memory


def _size_of_work(
    builder: ir.IRBuilder, routine: Routine, given: dict[str, Any], slots: dict[str, Any],
    call: Callable[[], None],
) -> ir.Value:  # fmt: skip
    """How many elements a call needs, by LAPACK itself; of the last size of matrices it is known.

    What is known are one atomic number's parts: extents below 2**16, and the answer.
    """
    known = ir.GlobalVariable(builder.module, _INT64, f"{builder.function.name}_needs")
    known.linkage, known.initializer = "internal", _INT64(0)
    n, m = given["n"], given.get("m", given["n"])
    sizes = builder.or_(builder.shl(m, _INT64(16)), n)
    last = builder.load_atomic(known, "monotonic", 8)
    large = builder.lshr(builder.or_(m, n), _INT64(16))
    is_known = builder.and_(
        builder.icmp_unsigned("==", builder.lshr(last, _INT64(32)), sizes),
        builder.icmp_unsigned("==", large, _INT64(0)),
    )
    answer = builder.alloca(_INT64)
    builder.store(builder.and_(last, _INT64(2**32 - 1)), answer)
    with builder.if_then(builder.not_(is_known)):
        call()
        asked = builder.fptosi(builder.load(slots["work"]), _INT64)
        more = builder.add(builder.ashr(asked, _INT64(20)), _INT64(1))  # as lapack.enough
        asked = builder.add(asked, more)
        builder.store(asked, answer)
        builder.store_atomic(builder.or_(builder.shl(sizes, _INT64(32)), asked), known, "monotonic", 8)
    return builder.load(answer)


def _reals_of(builder: ir.IRBuilder, given: dict[str, ir.Value]) -> ir.Value:
    """As `reals_of`, of matrices that have no more columns than rows."""
    least, most = given["n"], given.get("m", given["n"])
    factors = builder.add(builder.mul(_INT64(5), least), builder.mul(_INT64(2), most))
    return builder.add(builder.mul(least, builder.add(factors, _INT64(8))), _INT64(1))


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
