"""Numba's front end on a kernel: its passes, with a lowering of what kernels are made of.

Numba keeps a variable that is used in more than one block in memory, and takes an array apart anew for each
element. LLVM cleans that up, but to write, read and clean it takes longer than all the rest. So here

- a variable with one assignment, made before all uses, is a value;
- what an array argument consists of is taken apart once, and an element is an address and a load;
- the passes leave out what kernels do not use: closures, `with`, array expressions, object mode, and the
  reconstruction of single assignments, since a variable of generated code has one type.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir as llvm_ir
from numba.core import cgutils, compiler, compiler_machinery, ir, lowering, typed_passes, untyped_passes
from numba.core import types as numba_types
from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.cpu import FastMathOptions
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.np import arrayobj

from .. import kernel_types
from .callees import callees
from .contexts import Contexts, complete_contexts, kernel_contexts
from .inference import Inference
from .outline import outline, vector_bits
from .translate import BriefJump, translate

types: Any = numba_types  # their annotations lack attributes that the classes have
NumbaType = Any


class KernelLibrary(JITCodeLibrary):
    """The LLVM module of one function, unoptimised, until `link` joins it with what it calls."""

    def __init__(self, name: str, vector_width: int) -> None:
        super().__init__(cpu_target.target_context.codegen(), name)
        self.vector_width = vector_width

    def add_ir_module(self, ir_module: llvm_ir.Module) -> None:
        outline(ir_module, vector_bits(self.vector_width))
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
            if library in linked or (rtsys._init and library is rtsys.library):
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


@dataclass(frozen=True)
class _Array:
    """An array in pieces."""

    data: llvm_ir.Value
    shape: Sequence[llvm_ir.Value]
    strides: Sequence[llvm_ir.Value]


class KernelLower(lowering.Lower):
    """Numba's lowering, with variables that are values, elements of arrays, and sums that vectorise."""

    def init(self) -> None:
        super().init()
        self._arrays: dict[str, _Array] = {}
        self._implementations: dict[Any, Any] = {}

    def lower_block(self, block: Any) -> None:
        """As Numba's, without the text of each statement for errors and logs that nobody sees."""
        self._cur_ir_block = block
        for statement in block.body:
            self.loc = statement.loc
            if isinstance(statement, ir.Assign):
                name = statement.target.name
                self.storevar(self.lower_assign(self.typeof(name), statement), name)
            else:
                self.lower_inst(statement)
                if isinstance(statement, BriefJump):
                    self._keep_plain(self.builder.block.terminator)

    def _keep_plain(self, jump: llvm_ir.Instruction) -> None:
        """Tell LLVM to make no vectors of a loop, and not to write it out several times."""
        hints = (["llvm.loop.vectorize.enable", llvm_ir.IntType(1)(0)], ["llvm.loop.unroll.runtime.disable"])
        nodes = [self.module.add_metadata(hint) for hint in hints]
        loop = llvm_ir.MDValue(self.module, nodes, name=str(len(self.module.metadata)))
        loop.operands = (loop, *nodes)  # by which LLVM tells loops apart
        jump.set_metadata("llvm.loop", loop)

    # --- variables ----------------------------------------------------------------------------------------

    def _find_singly_assigned_variable(self) -> None:
        """Those with one assignment, made before all uses; `_blk_local_varmap` holds their values."""
        blocks = self.func_ir.blocks
        assignments = (one for block in blocks.values() for one in block.find_insts(ir.Assign))
        assigned = Counter(one.target.name for one in assignments)
        once = {name for name, count in assigned.items() if count == 1}
        use_defs = compute_use_defs(blocks)
        home = {name: label for label, names in use_defs.defmap.items() for name in names}
        dominators = compute_cfg_from_blocks(blocks).dominators()
        for label, used_first in use_defs.usemap.items():  # before the block assigns them, if it does
            others = dominators[label] - {label}
            once -= {name for name in used_first if home.get(name) not in others}
        self._singly_assigned_vars = once
        self._blk_local_varmap: dict[str, llvm_ir.Value] = {}

    def delvar(self, name: str) -> None:
        if self.context.enable_nrt:
            super().delvar(name)

    def storevar(self, value: llvm_ir.Value, name: str, argidx: int | None = None) -> None:
        if self.context.enable_nrt or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:  # nothing that the variable held has to be released
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))

    # --- elements of arrays -------------------------------------------------------------------------------

    def lower_getitem(self, resty: NumbaType, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        address = self._address(value, index)
        if address is None:
            with _plain_indices():
                return super().lower_getitem(resty, expr, value, index, signature)
        kind = self.typeof(value.name)
        element = self.context.unpack_value(self.builder, kind.dtype, address, _alignment(kind))
        return self.context.cast(self.builder, element, kind.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        address = self._address(target_var, index_var)
        if address is None:
            with _plain_indices():
                return super().lower_setitem(target_var, index_var, value_var, signature)
        kind, value = self.typeof(target_var.name), self.loadvar(value_var.name)
        value = self.context.cast(self.builder, value, self.typeof(value_var.name), kind.dtype)
        return self.context.pack_value(self.builder, kind.dtype, value, address, _alignment(kind))

    def _address(self, array: Any, index: Any) -> llvm_ir.Value | None:
        """Where an element is; None where the index means more than one, or is not made of integers.

        Generated code never counts from the end, so an index is taken as it is.
        """
        kind = self.typeof(array.name)
        indices = self._indices(index)
        if not isinstance(kind, types.Array) or indices is None or len(indices) != kind.ndim:
            return None
        parts = self._array(array.name)
        if not indices:
            return parts.data
        multiply, add = (
            functools.partial(method, flags=["nsw"]) for method in (self.builder.mul, self.builder.add)
        )
        if kind.layout == "C":
            place, *rest = indices
            for position, extent in zip(rest, parts.shape[1:]):
                place = add(multiply(place, extent), position)
            return self.builder.gep(parts.data, [place], inbounds=True)
        steps = [multiply(position, stride) for position, stride in zip(indices, parts.strides)]
        return cgutils.pointer_add(self.builder, parts.data, functools.reduce(add, steps))

    def _indices(self, index: Any) -> list[llvm_ir.Value] | None:
        kind = self.typeof(index.name)
        kinds = list(kind) if isinstance(kind, types.BaseTuple) else [kind]
        if not all(isinstance(one, types.Integer) for one in kinds):
            return None
        value = self.loadvar(index.name)
        is_tuple = isinstance(kind, types.BaseTuple)
        values = cgutils.unpack_tuple(self.builder, value, len(kinds)) if is_tuple else [value]
        return [self.context.cast(self.builder, one, own, types.intp) for one, own in zip(values, kinds)]

    def extract_function_arguments(self) -> Any:
        """As Numba's; array arguments are taken apart, once, where the function begins."""
        arguments = super().extract_function_arguments()
        for name, kind, value in zip(self.func_ir.arg_names, self.fndesc.argtypes, arguments):
            if isinstance(kind, types.Array) and name in self._singly_assigned_vars:
                self._arrays[name] = self._taken_apart(kind, value)
        return arguments

    def _array(self, name: str) -> _Array:
        if name not in self._arrays:
            return self._taken_apart(self.typeof(name), self.loadvar(name))
        return self._arrays[name]

    def _taken_apart(self, kind: NumbaType, value: llvm_ir.Value) -> _Array:
        builder, model = self.builder, self.context.data_model_manager[kind]
        data, shape, strides = (model.get(builder, value, one) for one in ("data", "shape", "strides"))
        return _Array(data, *(cgutils.unpack_tuple(builder, one, kind.ndim) for one in (shape, strides)))

    # --- operators ----------------------------------------------------------------------------------------

    def lower_expr(self, resty: NumbaType, expr: Any) -> Any:
        """`+=` alone may be reordered, so that sums vectorise.

        With `reassoc` on all arithmetic LLVM also folds `(a + b) - a` to `b`, and a nan is lost. With `nsz`
        next to it, it does so through a `+=` even where the subtraction itself is exact.
        """
        value = super().lower_expr(resty, expr)
        if expr.op == "inplace_binop" and getattr(value, "opname", None) == "fadd":
            value.flags = ["contract", "reassoc"]
        return value

    def lower_binop(self, resty: NumbaType, expr: Any, op: Callable[..., Any]) -> Any:
        """As Numba's, which looks for a version for constant operands first; only a power has one."""
        if op is operator.pow or op is operator.ipow:
            return super().lower_binop(resty, expr, op)
        operands = [(self.loadvar(one.name), self.typeof(one.name)) for one in (expr.lhs, expr.rhs)]
        key = (op, self.fndesc.calltypes[expr].args)
        if key not in self._implementations:
            typing = self.context.typing_context
            function = typing.resolve_value_type(op)
            signature = typing.resolve_function_type(function, key[1], {})
            self._implementations[key] = self.context.get_function(function, signature), signature
        implementation, signature = self._implementations[key]
        values = [
            self.context.cast(self.builder, value, kind, wanted)
            for (value, kind), wanted in zip(operands, signature.args)
        ]
        result = implementation(self.builder, values)
        return self.context.cast(self.builder, result, signature.return_type, resty)


def _alignment(kind: NumbaType) -> int | None:
    return None if kind.aligned else 1


@contextlib.contextmanager
def _plain_indices() -> Iterator[None]:
    """Within, Numba takes an index as it is, and does not add the size to a negative one.

    Numba's lock is held meanwhile, so nobody else compiles.
    """
    fix = arrayobj.fix_integer_index
    arrayobj.fix_integer_index = lambda context, builder, kind, index, size: context.cast(
        builder, index, kind, types.intp
    )
    try:
        yield
    finally:
        arrayobj.fix_integer_index = fix


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(typed_passes.NativeLowering):
    """The pass that runs KernelLower."""

    _name = "pullback_kernel_lowering"

    @property
    def lowering_class(self) -> type[KernelLower]:
        return KernelLower


@register_pass(mutates_CFG=False, analysis_only=True)
class KernelInference(compiler_machinery.AnalysisPass):
    """The pass that runs Inference."""

    _name = "pullback_kernel_inference"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        found = Inference(state.typingctx, state.func_ir, state.args)
        state.typemap, state.return_type, state.calltypes = found.variables, found.result, found.signatures
        return False


class KernelCompiler(compiler.Compiler):
    """Numba's compiler with the passes that generated code needs; `translate` has made what they work on."""

    PASSES: tuple[Any, ...] = (
        KernelInference,
        KernelLowering,
        typed_passes.NoPythonBackend,
    )

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("kernel")
        for pass_class in self.PASSES:
            manager.add_pass(pass_class, pass_class.__name__)
        manager.finalize()
        return [manager]


class CompleteCompiler(KernelCompiler):
    """The same for functions in which a variable may change its type, and that count references."""

    PASSES = (
        untyped_passes.IRProcessing,
        untyped_passes.ReconstructSSA,
        typed_passes.NopythonTypeInference,
        typed_passes.PreLowerStripPhis,
        typed_passes.IRLegalization,
        KernelLowering,
        typed_passes.NoPythonBackend,
    )


@dataclass(frozen=True)
class Lowered:
    """A function in LLVM's intermediate representation, by Numba's calling convention."""

    library: KernelLibrary
    descriptor: Any  # Numba's: mangled names and types
    return_type: NumbaType
    argument_types: tuple[NumbaType, ...]
    contexts: Contexts


def lower(
    function: FunctionType, argument_types: Sequence[NumbaType], options: kernel_types.CompileOptions
) -> Lowered:
    """Numba's front end on `function` and the functions that it calls.

    Warns with a RuntimeWarning where that takes all of Numba, which generated code is not meant to need.
    """
    try:
        return _lower(function, tuple(argument_types), options, kernel_contexts())
    except Exception as error:  # what Numba raises for something unknown depends on where it is
        reason = f"{type(error).__name__}: {error}".splitlines()[0]  # another cause comes up again
    lowered = _lower(function, tuple(argument_types), options, complete_contexts())
    warnings.warn(
        f"{function.__name__}() in {function.__code__.co_filename} takes all of Numba to compile and to load "
        f"({reason}). The result is correct; its first call is slower than it should be.",
        RuntimeWarning,
        stacklevel=2,
    )
    return lowered


def _lower(
    function: FunctionType,
    argument_types: tuple[NumbaType, ...],
    options: kernel_types.CompileOptions,
    contexts: Contexts,
) -> Lowered:
    def lower_callee(callee: FunctionType, kinds: Sequence[NumbaType]) -> Lowered:
        return _lower_once(callee, tuple(kinds), replace(options, brief_loops=frozenset()), contexts)

    flags: Any = compiler.Flags()
    flags.nrt = contexts.is_complete  # without arrays of its own a kernel has no references to count
    flags.noalias = True
    flags.error_model = "numpy"
    flags.fastmath = FastMathOptions(set(options.fastmath))
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    library = KernelLibrary(function.__name__, options.vector_width)
    result = compiler.compile_ir(
        contexts.typing,
        contexts.target,
        translate(function, callees(function, contexts, lower_callee), options.brief_loops),
        argument_types,
        return_type=None,
        flags=flags,
        locals={},
        library=library,
        pipeline_class=CompleteCompiler if contexts.is_complete else KernelCompiler,
    )
    return Lowered(library, result.fndesc, result.signature.return_type, argument_types, contexts)


_lower_once = functools.cache(_lower)  # what several functions call
