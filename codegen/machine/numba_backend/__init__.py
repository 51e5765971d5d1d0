"""From a Python kernel to object code: Numba types and lowers it, LLVM optimises it, once.

`njit` does more than generated code needs, and its time is what a person waits for. Here

- the text of a kernel goes straight into Numba's representation (`translate`); Numba's rules say what types
  its operations have (`inference`), in contexts that know only what kernels consist of (`contexts`), and
  Numba's implementations of these operations become instructions (`lowering`);
- the functions that kernels call write their own instructions (`callees`): those of vector_math become small
  LLVM functions, which are inlined, so that loops vectorise; a product of matrices calls BLAS;
- nothing is optimised until the whole kernel is linked, then once, instead of three times in part;
- the way in from Python reads the fields of the arrays itself: see `entry`.

Only this package imports Numba. It is imported when a kernel is not in the cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

from llvmlite import binding as llvm
from numba.core import types as numba_types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np import numpy_support

from ....tracer.forks import hold_in_forks
from ...vector_math import rare
from .. import kernel_types
from ..entry import Entry, Result
from ..loading import target_machine
from ..sharing import SharedEntry
from .lowering import lower
from .outline import VARIANT, drop_unused_variants

types: Any = numba_types  # their annotations lack attributes that the classes have
NumbaType = Any
hold_in_forks(global_compiler_lock._lock)  # as Numba's own, with a limit for waiting


def optimise(module: llvm.ModuleRef) -> None:
    """LLVM's standard pipeline at level 2, in place."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = False  # loops are what kernels consist of
    builder = llvm.create_pass_builder(target_machine(), tuning)
    with _set("enable-constraint-elimination", False):
        builder.getModulePassManager().run(module, builder)
    rare.inline_variants(module, builder)
    drop_unused_variants(module, builder)


LAST_KNOWN_LLVM = 22
"""An option that a later version does not know would end the process."""


def emit(module: llvm.ModuleRef) -> bytes:
    """The machine code of an optimised module."""
    with _set("disable-lsr", True):
        return target_machine().emit_object(module)


@contextlib.contextmanager
def _set(option: str, value: bool) -> Iterator[None]:
    """Spare LLVM a pass that generated code gains nothing from.

    Constraint elimination takes a quarter of the time, for comparisons that are not there. Loop strength
    reduction takes minutes where a loop walks dozens of arrays; to add an index to an address costs nothing.

    Options are for the process; Numba's lock is held meanwhile, so nobody else compiles.
    """
    is_known = llvm.llvm_version_info[0] <= LAST_KNOWN_LLVM
    if is_known:
        llvm.set_option("", f"-{option}={str(value).lower()}")
    try:
        yield
    finally:
        if is_known:
            llvm.set_option("", f"-{option}={str(not value).lower()}")


def _keep_only(module: llvm.ModuleRef, symbol: str) -> None:
    """Let LLVM drop or inline whatever is not `symbol` or needed by it."""
    # What only the vectoriser will call stays: `llvm.compiler.used`, and variants.
    kept = (symbol, "llvm.", VARIANT)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and not value.name.startswith(kept):
            value.linkage = "internal"


def compile_kernel(
    function: FunctionType,
    argument_types: Sequence[kernel_types.ArrayType | kernel_types.ScalarType],
    options: kernel_types.CompileOptions,
    symbol: str,
) -> tuple[bytes, list[str]]:
    """Object code with the entry `symbol`, and the names of the functions it expects to find."""
    with global_compiler_lock:
        lowered = lower(function, tuple(map(_numba_type, argument_types)), options)
        context = lowered.contexts.target
        parts = (context, lowered, argument_types, _result(lowered.return_type), symbol)
        entry = Entry(*parts) if options.sharing is None else SharedEntry(*parts, options.sharing)
        lowered.library.add_ir_module(entry.module)
        module = lowered.library.link()
        _keep_only(module, symbol)
        # Inlined into the entry, the arguments would lose `noalias` as attributes.
        module.get_function(lowered.descriptor.llvm_func_name).add_function_attribute("noinline")
        module.verify()
        optimise(module)
        needed = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
        return emit(module), needed


def _numba_type(argument: kernel_types.ArrayType | kernel_types.ScalarType) -> NumbaType:
    element = numpy_support.from_dtype(argument.dtype)
    if isinstance(argument, kernel_types.ScalarType):
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
    """Make Numba's C functions ready (allocation), and tell LLVM where they are: for code from the cache."""
    cpu_target.target_context.refresh()
