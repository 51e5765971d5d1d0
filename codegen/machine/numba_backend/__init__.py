"""From a Python kernel to object code: Numba's representation of it, LLVM's instructions, optimised once.

`njit` does more than generated code needs, and its time is what a person waits for. Here

- Numba's modules are loaded without all that `import numba` loads (`parts`, the one file that imports it);
- the text of a kernel goes straight into Numba's representation (`translate`), whose statements write their
  instructions one after the other (`lowering`, `operations`): each value knows its kind (`kinds`);
- the functions that kernels call do so as well (`callees`): those of vector_math become small LLVM
  functions, which are inlined, so that loops vectorise; a product of matrices calls BLAS;
- a kernel, what it calls and its entry are one module, which is optimised once;
- the way in from Python reads the fields of the arrays itself: see `entry`.

It is imported when a kernel is not in the cache.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from types import FunctionType

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir

from ....tracer.collection import count_as_old
from ...vector_math import rare
from .. import kernel_types
from ..entry import Entry, Result
from ..loading import target_machine
from ..sharing import SharedEntry
from .kinds import NONE, Array, Kind, Tuple
from .lowering import lower
from .outline import VARIANT, drop_unused_variants
from .parts import global_compiler_lock


def optimise(module: llvm.ModuleRef) -> None:
    """LLVM's standard pipeline at level 2, in place."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = False  # loops are what kernels consist of
    builder = llvm.create_pass_builder(target_machine(), tuning)
    with (
        _set("enable-constraint-elimination", False),
        _set("enable-mem-access-versioning", False),
        _set("enable-load-pre", False),
    ):
        builder.getModulePassManager().run(module, builder)
    rare.inline_variants(module, builder)
    drop_unused_variants(module, builder)


LAST_KNOWN_LLVM = 22
"""An option that a later version does not know would end the process."""


def emit(module: llvm.ModuleRef) -> bytes:
    """The machine code of an optimised module."""
    with _set("disable-lsr", True), _set("disable-post-ra", True):
        return target_machine().emit_object(module)


@contextlib.contextmanager
def _set(option: str, value: bool) -> Iterator[None]:
    """Spare LLVM a pass that generated code gains nothing from.

    Constraint elimination takes a quarter of the time, for comparisons that are not there. The elimination of
    partly redundant loads carries what neighbours read from one iteration into the next, and where something
    is stored in between a stencil has no vectors; recurrences are carried in any case, behind the vectoriser.
    Loop strength reduction takes minutes where a loop walks dozens of arrays; to add an index to an address
    costs nothing. The scheduler behind the allocation of registers takes the square of a block's length, half
    of all where arguments are many, and processors put instructions in another order by themselves.

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
        text = _empty_module(symbol)
        kernel, kind = lower(text, function, tuple(map(_kind, argument_types)), options)
        kernel.attributes.add("noinline")  # inlined, the arguments would lose `noalias` as attributes
        if options.sharing is None:
            Entry(kernel, argument_types, _result(kind), symbol)
        else:
            SharedEntry(kernel, argument_types, symbol, options.sharing)
        _prefer_vectors(text, options.vector_width)
        module = llvm.parse_assembly(str(text))
        module.verify()
        _keep_only(module, symbol)
        optimise(module)
        needed = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
        return emit(module), needed


def _empty_module(name: str) -> ir.Module:
    """A module of code for this processor."""
    module = ir.Module(name)
    module.triple, module.data_layout = llvm.get_process_triple(), _data_layout()
    return module


@functools.cache
def _data_layout() -> str:
    return str(target_machine().target_data)


def _prefer_vectors(module: ir.Module, width: int) -> None:
    for function in module.functions:
        if not function.is_declaration and width:
            # llvmlite knows no attributes with a value, but writes what the set holds
            set.add(function.attributes, f'"prefer-vector-width"="{width}"')


def _kind(argument: kernel_types.ArrayType | kernel_types.ScalarType) -> Kind:
    if isinstance(argument, kernel_types.ScalarType):
        return argument.dtype
    return Array(argument.dtype, argument.ndim, argument.layout, argument.extents)


def _result(kind: Kind) -> Result:
    """The dtype of a scalar result, dtypes of a tuple of them, or None."""
    if kind == NONE:
        return None
    if isinstance(kind, Tuple):
        return tuple(one for one in kind.items if isinstance(one, np.dtype))
    assert isinstance(kind, np.dtype)
    return kind


count_as_old()
