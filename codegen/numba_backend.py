"""From a Python kernel to object code: Numba types and lowers it, LLVM optimises it, once.

`njit` does more than generated code needs, and its time is what a person waits for. Here

- the pass list leaves out rewrites of features that kernels do not use (closures, `with`, array
  expressions, object mode);
- nothing is optimised until the whole kernel is linked, then once, instead of three times in part;
- the vector_math functions are compiled to small LLVM functions without Numba's error protocol, which
  LLVM inlines into the kernel's loop, so that the loop vectorises;
- the way in from Python reads the fields of the arrays itself: see `entry`.

Only this module imports Numba. It is imported when a kernel is not in the cache.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import operator
import types as python_types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils, compiler, lowering, typed_passes, untyped_passes
from numba.core import types as numba_types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.cpu import FastMathOptions
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.typing import signature as numba_signature
from numba.extending import intrinsic
from numba.np import arrayobj, linalg, numpy_support

from . import compile as kernels
from .entry import Entry, Result
from .vector_math import staged

VECTOR_MATH = "pullback.codegen.vector_math"

types: Any = numba_types  # their annotations lack attributes that the classes have
NumbaType = Any


def _import_array_functions() -> None:
    """Import what Numba knows about NumPy without `scipy.linalg`, which takes longer than all the rest.

    Numba imports it only to see whether it can, and imports it again when a kernel calls `np.dot`.
    """
    ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = ensure_blas


_import_array_functions()

# --- Numba: from Python to LLVM's intermediate representation ---------------------------------------------


class KernelLibrary(JITCodeLibrary):
    """The LLVM module of one function, unoptimised, until `link` joins it with what it calls."""

    def __init__(self, name: str, vector_width: int) -> None:
        super().__init__(cpu_target.target_context.codegen(), name)
        self.vector_width = vector_width

    def add_ir_module(self, ir_module: ir.Module) -> None:
        for function in ir_module.functions:
            if not function.is_declaration and self.vector_width:
                # llvmlite knows no attributes with a value, but writes what the set holds
                set.add(function.attributes, f'"prefer-vector-width"="{self.vector_width}"')
        self._final_module.link_in(llvm.parse_assembly(cgutils.normalize_ir_text(str(ir_module))))

    def add_linking_library(self, library: Any) -> None:
        if library not in self._linking_libraries:
            self._linking_libraries.append(library)

    def finalize(self) -> None:
        self._finalized = True

    def link(self) -> llvm.ModuleRef:
        """A module with this function and, once each, all that it calls, directly or not."""
        module = self._final_module.clone()
        linked: list[Any] = []
        pending = list(self._linking_libraries)
        while pending:
            library = pending.pop(0)
            if library in linked or library is rtsys.library:
                continue
            linked.append(library)
            if isinstance(library, KernelLibrary):
                pending += library._linking_libraries
                module.link_in(library._final_module, preserve=True)
            else:
                module.link_in(library._get_module_for_linking(), preserve=True)
        if any(function.name.startswith("NRT_") for function in module.functions):
            module.link_in(rtsys.library._get_module_for_linking(), preserve=True)
        return module


@contextlib.contextmanager
def _plain_indices() -> Iterator[None]:
    """Within, Numba takes an index as it is: generated code never counts from the end of an array.

    Numba adds the size to a negative index. Where it cannot see that an index is none, as in `x[i - 1]` or
    in a loop from `start` to `stop`, that hides from LLVM that neighbours are neighbours, and the loop does
    not vectorise. Numba's lock is held meanwhile, so nobody else compiles; functions of Numba that a kernel
    calls are lowered outside.
    """
    fix = arrayobj.fix_integer_index
    arrayobj.fix_integer_index = lambda context, builder, kind, index, size: context.cast(
        builder, index, kind, types.intp
    )
    try:
        yield
    finally:
        arrayobj.fix_integer_index = fix


class KernelLower(lowering.Lower):
    """Numba's lowering, where `+=` alone may be reordered, so that sums vectorise.

    With `reassoc` on all arithmetic LLVM also folds `(a + b) - a` to `b`, and a nan is lost. With `nsz` next
    to it, it does so through a `+=` even where the subtraction itself is exact.
    """

    def lower_expr(self, resty: NumbaType, expr: Any) -> Any:
        value = super().lower_expr(resty, expr)
        if expr.op == "inplace_binop" and getattr(value, "opname", None) == "fadd":
            value.flags = ["contract", "reassoc"]
        return value

    def lower_getitem(self, *arguments: Any) -> Any:
        with _plain_indices():
            return super().lower_getitem(*arguments)

    def lower_setitem(self, *arguments: Any) -> Any:
        with _plain_indices():
            return super().lower_setitem(*arguments)

    def lower_binop(self, resty: NumbaType, expr: Any, op: Callable[..., Any]) -> Any:
        """As Numba's, which looks for a version for constant operands first; only a power has one."""
        if op is operator.pow or op is operator.ipow:
            return super().lower_binop(resty, expr, op)
        context, typing_context = self.context, self.context.typing_context
        function = typing_context.resolve_value_type(op)
        signature = typing_context.resolve_function_type(function, self.fndesc.calltypes[expr].args, {})
        operands = [
            context.cast(self.builder, self.loadvar(operand.name), self.typeof(operand.name), kind)
            for operand, kind in zip((expr.lhs, expr.rhs), signature.args)
        ]
        value = context.get_function(function, signature)(self.builder, operands)
        return context.cast(self.builder, value, signature.return_type, resty)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(typed_passes.NativeLowering):
    """The pass that runs KernelLower."""

    _name = "pullback_kernel_lowering"

    @property
    def lowering_class(self) -> type[KernelLower]:
        return KernelLower


class KernelCompiler(compiler.Compiler):
    """Numba's compiler with the passes that generated code needs."""

    PASSES = (
        untyped_passes.TranslateByteCode,
        untyped_passes.FixupArgs,
        untyped_passes.IRProcessing,
        untyped_passes.GenericRewrites,  # constant indices, `raise`
        untyped_passes.ReconstructSSA,
        typed_passes.NopythonTypeInference,
        typed_passes.PreLowerStripPhis,
        typed_passes.IRLegalization,
        KernelLowering,
        typed_passes.NoPythonBackend,
    )

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("kernel")
        for pass_class in self.PASSES:
            manager.add_pass(pass_class, pass_class.__name__)
        manager.finalize()
        return [manager]


_OPERATORS = frozenset(
    value for value in vars(operator).values() if isinstance(value, python_types.BuiltinFunctionType)
)
_operator_signatures: dict[tuple[Any, Any], Any] = {}


@contextlib.contextmanager
def _remembered_operators() -> Iterator[None]:
    """Within, Numba looks up the result of an operator on given types once, not once for each use.

    The look-up asks all of NumPy's ufuncs, and is half of type inference's time.
    """
    context = cpu_target.typing_context
    resolve = context.resolve_function_type

    def remembered(function: Any, arguments: Any, keywords: Any) -> Any:
        if keywords or getattr(function, "typing_key", function) not in _OPERATORS:
            return resolve(function, arguments, keywords)
        found = _operator_signatures.get((function, arguments))
        if found is None:
            found = _operator_signatures[function, arguments] = resolve(function, arguments, keywords)
        return found

    context.resolve_function_type = remembered  # of this one object, until the kernel is compiled
    try:
        yield
    finally:
        del context.resolve_function_type


@dataclass(frozen=True)
class Lowered:
    """A function in LLVM's intermediate representation, by Numba's calling convention."""

    library: KernelLibrary
    descriptor: Any  # Numba's: mangled names and types
    return_type: NumbaType
    argument_types: tuple[NumbaType, ...]


def lower(
    function: python_types.FunctionType,
    argument_types: Sequence[NumbaType],
    options: kernels.CompileOptions,
) -> Lowered:
    """Numba's front end on `function` and the functions that it calls."""
    try:
        return _lower(function, tuple(argument_types), options, allocates=False)
    except Exception:  # what Numba raises for an allocation without its runtime depends on where it is
        pass  # if the cause is another one, it comes up again
    return _lower(function, tuple(argument_types), options, allocates=True)


def _lower(
    function: python_types.FunctionType,
    argument_types: tuple[NumbaType, ...],
    options: kernels.CompileOptions,
    allocates: bool,
) -> Lowered:
    flags: Any = compiler.Flags()
    flags.nrt = allocates  # without arrays of its own a kernel has no references to count
    flags.noalias = True
    flags.error_model = "numpy"
    flags.fastmath = FastMathOptions(set(options.fastmath))
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    library = KernelLibrary(function.__name__, options.vector_width)
    result = compiler.compile_extra(
        cpu_target.typing_context,
        cpu_target.target_context,
        _with_intrinsics(function, options),
        argument_types,
        return_type=None,
        flags=flags,
        locals={},
        library=library,
        pipeline_class=KernelCompiler,
    )
    return Lowered(library, result.fndesc, result.signature.return_type, argument_types)


# --- Functions that kernels call --------------------------------------------------------------------------


def _with_intrinsics(
    function: python_types.FunctionType, options: kernels.CompileOptions
) -> python_types.FunctionType:
    """A copy of `function` whose global functions are ones that Numba can call; the original is untouched."""
    namespace = dict(function.__globals__)
    for name in function.__code__.co_names:
        used = namespace.get(name)
        if used is np:
            namespace[name] = _numpy
        elif not isinstance(used, python_types.FunctionType):
            continue
        elif used.__module__.startswith(VECTOR_MATH):
            namespace[name] = _vector_math_intrinsic(used)
        elif used.__module__ == function.__module__:
            namespace[name] = _kernel_intrinsic(used, options)
    copy = python_types.FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _intrinsic(function: Callable[..., Any], typing: Callable[..., Any]) -> Any:
    """Numba's handle of `typing(typing_context, *types) -> (signature, emitter)`, called like `function`."""
    context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [
        parameter.replace(kind=inspect.Parameter.POSITIONAL_ONLY)
        for parameter in inspect.signature(function).parameters.values()
    ]
    typing.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    typing.__name__ = function.__name__
    return intrinsic(typing)


@functools.cache
def _kernel_intrinsic(function: python_types.FunctionType, options: kernels.CompileOptions) -> Any:
    """A function of the generated module; an exception in it leaves the caller as well."""

    def typing(typing_context: Any, *argument_types: NumbaType) -> tuple[Any, Any]:
        lowered = lower(function, argument_types, options)

        def emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
            context.add_linking_libs([lowered.library])
            return context.call_internal(builder, lowered.descriptor, signature, arguments)

        return numba_signature(lowered.return_type, *argument_types), emit

    return _intrinsic(function, typing)


@functools.cache
def _vector_math_intrinsic(function: python_types.FunctionType) -> Any:
    """A function of vector_math. It writes its own instructions; LLVM inlines them wherever it is called."""

    def typing(typing_context: Any, *argument_types: NumbaType) -> tuple[Any, Any] | None:
        if not all(isinstance(kind, types.Number | types.Boolean) for kind in argument_types):
            return None
        kind = types.float32 if set(argument_types) == {types.float32} else types.float64

        def emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
            value_types = tuple(argument.type for argument in arguments)
            return builder.call(staged.define(builder.module, function, value_types), arguments)

        return numba_signature(kind, *[kind] * len(argument_types)), emit

    return _intrinsic(function, typing)


# NumPy as kernels see it: `dot` without the detour through Numba's overloads, which takes 0.1 s to compile.
_numpy = python_types.ModuleType("numpy")
_numpy.__getattr__ = lambda name: getattr(np, name)  # type: ignore[method-assign]


def _dot_typing(_: Any, a: NumbaType, b: NumbaType, out: NumbaType) -> tuple[Any, Any] | None:
    """np.dot(a, b, out) of matrices, or a matrix and a vector, by BLAS; strided inputs are copied first."""
    if not all(isinstance(kind, types.Array) and kind.dtype == a.dtype for kind in (a, b, out)):
        return None
    matrices, vectors = linalg.dot_3_mm, linalg.dot_3_vm
    multiply = {(2, 2): matrices, (1, 2): vectors, (2, 1): vectors}.get((a.ndim, b.ndim))
    if multiply is None or out.layout != "C":
        return None

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        linalg.ensure_blas()
        with linalg.make_contiguous(context, builder, signature, arguments) as (signature, arguments):
            return multiply(context, builder, signature, arguments)

    return numba_signature(out, a, b, out), emit


_numpy.dot = _intrinsic(lambda a, b, out: None, _dot_typing)  # type: ignore[attr-defined]


# --- LLVM -------------------------------------------------------------------------------------------------


def optimise(module: llvm.ModuleRef) -> None:
    """LLVM's standard pipeline at level 2, in place."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = False  # loops are what kernels consist of
    builder = llvm.create_pass_builder(kernels.target_machine(), tuning)
    builder.getModulePassManager().run(module, builder)


def _keep_only(module: llvm.ModuleRef, symbol: str) -> None:
    """Let LLVM drop or inline whatever is not `symbol` or needed by it."""
    for value in (*module.functions, *module.global_variables):
        # `llvm.compiler.used` stays as it is: it keeps what only the vectoriser will call
        if not value.is_declaration and value.name != symbol and not value.name.startswith("llvm."):
            value.linkage = "internal"


def compile_kernel(
    function: python_types.FunctionType,
    argument_types: Sequence[kernels.ArrayType | kernels.ScalarType],
    options: kernels.CompileOptions,
    symbol: str,
) -> tuple[bytes, list[str]]:
    """Object code with the entry `symbol`, and the names of the functions it expects to find."""
    with global_compiler_lock, _remembered_operators():
        lowered = lower(function, tuple(map(_numba_type, argument_types)), options)
        context = cpu_target.target_context
        entry = Entry(context, lowered, argument_types, _result(lowered.return_type), symbol)
        lowered.library.add_ir_module(entry.module)
        module = lowered.library.link()
        _keep_only(module, symbol)
        # Inlined into the entry, the arguments would lose `noalias` as attributes.
        module.get_function(lowered.descriptor.llvm_func_name).add_function_attribute("noinline")
        module.verify()
        optimise(module)
        needed = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
        return kernels.target_machine().emit_object(module), needed


def _numba_type(argument: kernels.ArrayType | kernels.ScalarType) -> NumbaType:
    element = numpy_support.from_dtype(argument.dtype)
    if isinstance(argument, kernels.ScalarType):
        return element
    return types.Array(element, argument.ndim, argument.layout)


def _result(kind: NumbaType) -> Result:
    """The NumPy dtype of a scalar result, dtypes of a tuple of them, or None."""
    if isinstance(kind, types.NoneType):
        return None
    if isinstance(kind, types.BaseTuple):
        return tuple(map(numpy_support.as_dtype, kind))
    if not isinstance(kind, types.Number | types.Boolean):
        raise TypeError(f"A kernel returns None, a scalar or a tuple of scalars, not {kind}.")
    return numpy_support.as_dtype(kind)


def register_symbols() -> None:
    """Tell LLVM where Numba's C functions are (BLAS, allocation), for code from the cache."""
    _ = cpu_target.target_context
