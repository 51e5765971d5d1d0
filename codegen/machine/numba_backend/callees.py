"""Functions that kernels call: those of vector_math, of the generated module, `gemm`, `min`, `max`, `bool`.

A `Callee` takes the place of such a function in the namespace that Numba sees. It says what the types of a
call give, and writes its own instructions, so nothing of it goes through Numba's front end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba.core import callconv, cgutils
from numba.core import types as numba_types
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate
from numba.np.numpy_support import as_dtype

from pullback.tracer.lapack import Routine

from ... import blas, host, lapack, sorting
from ...vector_math import staged
from .. import host_entry
from ..loading import OBJECT_PREFIX
from .contexts import Contexts
from .translate import choose

VECTOR_MATH = "pullback.codegen.vector_math"
OF_WHOLES = tuple(f"pullback.codegen.{module}" for module in ("ordering", "matrices", "decompositions"))

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)

types: Any = numba_types  # their annotations lack attributes that the classes have
NumbaType = Any
Emitter = Callable[[Any, ir.IRBuilder, Any, Sequence[ir.Value]], ir.Value]
"""(target context, builder, signature, arguments) -> result, as Numba calls implementations."""
Typing = Callable[..., "tuple[Any, Emitter] | None"]
"""(argument types) -> the signature and the emitter; None where the types do not fit."""


class Callee:
    """What stands for a function in the namespace of a kernel: Numba reads `_numba_type_`."""

    def __init__(self, name: str, contexts: Contexts, typing: Typing) -> None:
        fields = {"key": self, "contexts": contexts, "typing": staticmethod(typing)}
        self._numba_type_ = types.Function(type(f"{name}_template", (_Template,), fields))


class _Template(AbstractTemplate):
    """Numba asks it for the signature of a call, and enters the implementation with that."""

    contexts: Contexts
    typing: Typing
    key: Any

    def generic(self, arguments: Sequence[NumbaType], keywords: Any) -> Any:
        found = None if keywords else self.typing(*map(types.unliteral, arguments))
        if found is None:
            return None
        call, emit = found
        implementations = self.contexts.target._defns[self.key]
        if not any(arguments == call.args for arguments, _ in implementations.versions):
            implementations.append(emit, call.args)
        return call


def callees(
    function: FunctionType, contexts: Contexts, lower: Callable[[FunctionType, Sequence[NumbaType]], Any]
) -> dict[str, Any]:
    """The namespace of `function`, with functions that Numba can call; `lower` lowers those of its module."""
    namespace = dict(function.__globals__)
    for name in (*function.__code__.co_names, "choose"):
        used = namespace.get(name, _BUILTINS.get(name))
        if isinstance(used, Routine):
            namespace[name] = _lapack(used, contexts)
        elif symbol := host.symbol_of(used):
            namespace[name] = _host_call(name, symbol, contexts)
        elif callable(used) and used in _TYPINGS:
            namespace[name] = _own(used, contexts)
        elif not isinstance(used, FunctionType):
            continue
        elif used is blas.gemm:
            namespace[name] = _gemm(contexts)
        elif used in sorting.FUNCTIONS:
            namespace[name] = _sorting(name, contexts)
        elif used.__module__.startswith(VECTOR_MATH):
            namespace[name] = _vector_math(used, contexts)
        elif used.__module__ in (function.__module__, *OF_WHOLES):
            namespace[name] = _kernel(used, contexts, lower)
    return namespace


def _kernel(function: FunctionType, contexts: Contexts, lower: Callable[..., Any]) -> Callee:
    """A function of the generated module, or of whole rows or matrices; its exceptions leave the caller."""

    def typing(*arguments: NumbaType) -> tuple[Any, Emitter]:
        lowered = lower(function, arguments)

        def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
            context.add_linking_libs([lowered.library])
            return context.call_internal(builder, lowered.descriptor, call, values)

        return signature(lowered.return_type, *arguments), emit

    return Callee(function.__name__, contexts, functools.cache(typing))


@functools.cache
def _vector_math(function: FunctionType, contexts: Contexts) -> Callee:
    """A function of vector_math. It writes its own instructions; LLVM inlines them wherever it is called."""

    def typing(*arguments: NumbaType) -> tuple[Any, Emitter] | None:
        if not all(isinstance(kind, types.Number | types.Boolean) for kind in arguments):
            return None
        exact = _of_integers(function.__name__, contexts, *arguments)
        if exact is not None:
            return exact
        kind = types.float32 if set(arguments) == {types.float32} else types.float64
        return signature(kind, *[kind] * len(arguments)), emit

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        value_types = tuple(value.type for value in values)
        return builder.call(staged.define(builder.module, function, value_types), values)

    return Callee(function.__name__, contexts, typing)


def _of_integers(name: str, contexts: Contexts, *arguments: NumbaType) -> tuple[Any, Emitter] | None:
    """What `OF_INTEGERS` are for integers."""
    kind = contexts.typing.unify_types(*arguments)
    if name in ("maximum", "minimum") and isinstance(kind, types.Integer | types.Boolean):
        return signature(kind, kind, kind), _extreme(">" if name == "maximum" else "<")
    if name in ("floor_divide", "remainder") and isinstance(kind, types.Integer):
        return signature(kind, kind, kind), functools.partial(_division, gives_quotient=name[0] == "f")
    return None


def _division(
    context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value], gives_quotient: bool
) -> ir.Value:
    """As NumPy's floor_divide and remainder of integers, which are 0 where the divisor is.

    The processor divides neither by 0 nor the least integer by -1: these divisors are 1 for it. A quotient
    by -1 is the negative, which for the least integer is itself.
    """
    dividend, given = values
    zero, one = (given.type(number) for number in (0, 1))
    is_zero = builder.icmp_unsigned("==", given, zero)
    if not call.return_type.signed:
        divisor = builder.select(is_zero, one, given)
        found = (builder.udiv if gives_quotient else builder.urem)(dividend, divisor)
        return builder.select(is_zero, zero, found) if gives_quotient else found
    is_negation = builder.icmp_unsigned("==", given, given.type(-1))
    divisor = builder.select(builder.or_(is_zero, is_negation), one, given)
    rest = builder.srem(dividend, divisor)
    has_rest = builder.icmp_unsigned("!=", rest, zero)
    is_rounded_up = builder.and_(has_rest, builder.icmp_signed("<", builder.xor(rest, divisor), zero))
    if not gives_quotient:
        return builder.select(is_rounded_up, builder.add(rest, divisor), rest)
    quotient = builder.sub(builder.sdiv(dividend, divisor), builder.zext(is_rounded_up, given.type))
    quotient = builder.select(is_negation, builder.sub(zero, dividend), quotient)
    return builder.select(is_zero, zero, quotient)


def _extreme(sign: str) -> Emitter:
    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        signed = getattr(call.return_type, "signed", False)
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        return functools.reduce(
            lambda one, other: builder.select(compare(sign, one, other), one, other), values
        )

    return emit


@functools.cache
def _gemm(contexts: Contexts) -> Callee:
    """`blas.gemm` of matrices of one dtype."""

    def typing(*arguments: NumbaType) -> tuple[Any, Emitter] | None:
        _, a, b, _, out = arguments
        if not all(isinstance(one, types.Array) and one.ndim == 2 for one in (a, b, out)):
            return None
        if not a.dtype == b.dtype == out.dtype:
            return None
        return signature(types.none, out.dtype, a, b, out.dtype, out), emit

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        fields: list[ir.Value] = []
        for kind, value in zip(call.args, values):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                extents = cgutils.unpack_tuple(builder, array.shape, 2)
                strides = cgutils.unpack_tuple(builder, array.strides, 2)
                fields += [array.data, *extents, *strides]
            else:
                fields.append(value)
        builder.call(blas.define(builder.module, str(call.args[1].dtype)), fields)
        return context.get_dummy_value()

    return Callee("gemm", contexts, typing)


@functools.cache
def _lapack(routine: Routine, contexts: Contexts) -> Callee:
    """A routine of LAPACK, for numbers and for the memory of arrays of one dtype."""

    def typing(*arguments: NumbaType) -> tuple[Any, Emitter]:
        return signature(types.none, *arguments), emit

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        arrays = [kind for kind in call.args if isinstance(kind, types.Array)]
        fields = [
            context.make_array(kind)(context, builder, value).data if kind in arrays else value
            for kind, value in zip(call.args, values)
        ]
        builder.call(lapack.define(builder.module, routine, str(arrays[0].dtype)), fields)
        return context.get_dummy_value()

    return Callee(routine.name, contexts, typing)


@functools.cache
def _sorting(name: str, contexts: Contexts) -> Callee:
    """`sorting.sort` or `sorting.order` of contiguous arrays."""

    def typing(*arguments: NumbaType) -> tuple[Any, Emitter]:
        return signature(types.none, *arguments), emit

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        arrays = [context.make_array(kind)(context, builder, one) for kind, one in zip(call.args, values)]
        (count,) = cgutils.unpack_tuple(builder, arrays[0].shape, 1)
        sorting.call(builder, name, str(call.args[0].dtype), [one.data for one in arrays], count)
        return context.get_dummy_value()

    return Callee(name, contexts, typing)


def _host_call(name: str, symbol: str, contexts: Contexts) -> Callee:
    """A function of arrays that Python runs. If it raises, the kernel ends, with Python's error set."""

    def typing(*arguments: NumbaType) -> tuple[Any, Emitter] | None:
        if not all(isinstance(one, types.Array) for one in arguments):
            return None
        return signature(types.none, *arguments), emit

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        arrays = [context.make_array(kind)(context, builder, one) for kind, one in zip(call.args, values)]
        words: list[ir.Value] = []
        for kind, array in zip(call.args, arrays):
            dtype = _external(builder.module, f"{OBJECT_PREFIX}{as_dtype(kind.dtype).name}")
            sizes = [_in_memory(builder, one, kind.ndim) for one in (array.shape, array.strides)]
            words += [dtype, _WORD(kind.ndim), array.data, *sizes]
        table = cgutils.alloca_once(builder, ir.ArrayType(_WORD, len(words)))
        for place, word in enumerate(words):
            value = word if word.type == _WORD else builder.ptrtoint(word, _WORD)
            builder.store(value, builder.gep(table, [_WORD(0), _WORD(place)]))
        pointer = _BYTE.as_pointer()
        called = _external(builder.module, symbol, ir.FunctionType(ir.VoidType(), []))
        kind = ir.FunctionType(ir.IntType(32), [pointer, _WORD, pointer])
        status = builder.call(
            _external(builder.module, host_entry.CALL, kind),
            [builder.bitcast(called, pointer), _WORD(len(arrays)), builder.bitcast(table, pointer)],
        )
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", status, status.type(0))):
            builder.ret(callconv.RETCODE_EXC)
        return context.get_dummy_value()

    return Callee(name, contexts, typing)


def _external(module: ir.Module, symbol: str, kind: ir.Type = _BYTE) -> ir.Value:
    """What is found under a symbol when the code is loaded: a function, or an object of Python's."""
    if symbol not in module.globals:
        if isinstance(kind, ir.FunctionType):
            ir.Function(module, kind, symbol)
        else:
            ir.GlobalVariable(module, kind, symbol).linkage = "external"
    return module.globals[symbol]


def _in_memory(builder: ir.IRBuilder, sizes: ir.Value, rank: int) -> ir.Value:
    """The address of the extents or strides of an array."""
    table = cgutils.alloca_once(builder, ir.ArrayType(_WORD, rank))
    for dim, size in enumerate(cgutils.unpack_tuple(builder, sizes, rank)):
        builder.store(size, builder.gep(table, [_WORD(0), _WORD(dim)]))
    return table


# --- small functions, of which Numba compiles a Python source for each combination of types ----------------


def _smaller_or_larger(sign: str) -> Typing:
    def typing(contexts: Contexts, *arguments: NumbaType) -> tuple[Any, Emitter] | None:
        if len(arguments) < 2 or not all(isinstance(kind, types.Integer) for kind in arguments):
            return None
        return signature(types.int64, *(types.int64 for _ in arguments)), _extreme(sign)

    return typing


def _truth(contexts: Contexts, *arguments: NumbaType) -> tuple[Any, Emitter] | None:
    if len(arguments) != 1 or not isinstance(arguments[0], types.Number | types.Boolean):
        return None

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        return context.is_true(builder, *call.args, *values)

    return signature(types.boolean, *arguments), emit


def _choice(contexts: Contexts, condition: NumbaType, *values: NumbaType) -> tuple[Any, Emitter] | None:
    kind = contexts.typing.unify_types(*values)
    if not isinstance(kind, types.Number | types.Boolean):
        return None

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.select(context.is_true(builder, condition, values[0]), *values[1:])

    return signature(kind, condition, kind, kind), emit


_TYPINGS: dict[Any, Typing] = {
    min: _smaller_or_larger("<"), max: _smaller_or_larger(">"), bool: _truth, choose: _choice,
}  # fmt: skip
_BUILTINS: dict[str, Any] = {"min": min, "max": max, "bool": bool, "choose": choose}


@functools.cache
def _own(function: Any, contexts: Contexts) -> Any:
    if contexts.is_complete and function is not choose:
        return function
    return Callee(function.__name__, contexts, functools.partial(_TYPINGS[function], contexts))
