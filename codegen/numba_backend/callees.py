"""Functions that kernels call: those of vector_math, of the generated module, `gemm`, `min`, `max`, `bool`.

A `Callee` takes the place of such a function in the namespace that Numba sees. It says what the types of a
call give, and writes its own instructions, so nothing of it goes through Numba's front end.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as numba_types
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate

from .. import blas
from ..vector_math import staged
from .contexts import Contexts

VECTOR_MATH = "pullback.codegen.vector_math"

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


def with_callees(
    function: FunctionType, contexts: Contexts, lower: Callable[[FunctionType, Sequence[NumbaType]], Any]
) -> FunctionType:
    """A copy of `function` whose global functions are ones that Numba can call; the original is untouched.

    `lower` lowers functions of the same module.
    """
    namespace = dict(function.__globals__)
    for name in function.__code__.co_names:
        used = namespace.get(name, vars(builtins).get(name))
        if isinstance(used, type | BuiltinFunctionType) and used in _BUILTINS:
            namespace[name] = _builtin(used, contexts)
        elif not isinstance(used, FunctionType):
            continue
        elif used is blas.gemm:
            namespace[name] = _gemm(contexts)
        elif used.__module__.startswith(VECTOR_MATH):
            namespace[name] = _vector_math(used, contexts)
        elif used.__module__ == function.__module__:
            namespace[name] = _kernel(used, contexts, lower)
    copy = FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _kernel(function: FunctionType, contexts: Contexts, lower: Callable[..., Any]) -> Callee:
    """A function of the generated module; an exception in it leaves the caller as well."""

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
        kind = types.float32 if set(arguments) == {types.float32} else types.float64
        return signature(kind, *[kind] * len(arguments)), emit

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        value_types = tuple(value.type for value in values)
        return builder.call(staged.define(builder.module, function, value_types), values)

    return Callee(function.__name__, contexts, typing)


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


# --- builtins, which Numba compiles from Python sources for each combination of types --------------------


def _chooses(sign: str) -> Typing:
    def typing(*arguments: NumbaType) -> tuple[Any, Emitter] | None:
        if len(arguments) != 2 or not all(isinstance(kind, types.Integer) for kind in arguments):
            return None
        return signature(types.int64, types.int64, types.int64), emit

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.select(builder.icmp_signed(sign, *values), *values)

    return typing


def _truth(*arguments: NumbaType) -> tuple[Any, Emitter] | None:
    if len(arguments) != 1 or not isinstance(arguments[0], types.Number | types.Boolean):
        return None

    def emit(context: Any, builder: ir.IRBuilder, call: Any, values: Sequence[ir.Value]) -> ir.Value:
        return context.is_true(builder, *call.args, *values)

    return signature(types.boolean, *arguments), emit


_BUILTINS: dict[Any, Typing] = {min: _chooses("<"), max: _chooses(">"), bool: _truth}


@functools.cache
def _builtin(function: Any, contexts: Contexts) -> Any:
    return function if contexts.is_complete else Callee(function.__name__, contexts, _BUILTINS[function])
