"""LLVM's part: from the text of a module to object code, of several modules at once.

llvmlite holds one lock over every call of LLVM, though modules of different contexts have nothing in common.
So each module has a context and a target machine of its own, and the long calls pass that lock by: while LLVM
is at work in one thread, it is in others, and Python goes on with the next module. Between two calls a thread
waits for the interpreter's lock, so there are few.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from llvmlite.binding import ffi

from ...vector_math import rare
from ..loading import create_target_machine, target_machine
from .assembly import assembly

LAST_KNOWN_LLVM = 22
"""An option that a later version does not know would end the process."""
SPARED = {
    "enable-constraint-elimination": False,
    "enable-mem-access-versioning": False,
    "enable-load-pre": False,
    "disable-lsr": True,
    "disable-post-ra": True,
    "funcspec-for-literal-constant": False,
}
"""LLVM's options, as they spare it passes that generated code gains nothing from.

Constraint elimination takes a quarter of the time, for comparisons that are not there. The elimination of
partly redundant loads carries what neighbours read from one iteration into the next, and where something is
stored in between a stencil has no vectors; recurrences are carried in any case, behind the vectoriser. Loop
strength reduction takes minutes where a loop walks dozens of arrays; to add an index to an address costs
nothing. The scheduler behind the allocation of registers takes the square of a block's length, half of all
where arguments are many, and processors put instructions in another order by themselves.
"""


@contextlib.contextmanager
def spared_passes() -> Iterator[None]:
    """Options are for the process; Numba's lock is to be held meanwhile, so nobody else compiles."""
    known = SPARED if llvm.llvm_version_info[0] <= LAST_KNOWN_LLVM else {}
    for option, value in known.items():
        llvm.set_option("", f"-{option}={str(value).lower()}")
    try:
        yield
    finally:
        for option, value in known.items():
            llvm.set_option("", f"-{option}={str(not value).lower()}")


def empty_module(name: str) -> ir.Module:
    """A module of code for this processor."""
    module = ir.Module(name)
    module.triple, module.data_layout = llvm.get_process_triple(), _data_layout()
    return module


@functools.cache
def _data_layout() -> str:
    return str(target_machine().target_data)


def text_of(module: ir.Module, symbol: str) -> str:
    """A module in LLVM's assembly. LLVM drops or inlines whatever is not `symbol` or needed by it."""
    kept = (symbol, "llvm.")  # `llvm.compiler.used` holds what only the vectoriser will call
    for name, value in module.globals.items():
        is_defined = value.blocks if isinstance(value, ir.Function) else value.initializer is not None
        if is_defined and not name.startswith(kept):
            value.linkage = "internal"
    return assembly(module)


def expected_by(module: ir.Module) -> list[str]:
    """The names of the functions that a module expects to find."""
    return [one.name for one in module.functions if not one.blocks and not one.name.startswith("llvm.")]


def make_object(text: str) -> bytes:
    """The machine code of a module in LLVM's assembly; within `spared_passes`, in any thread."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    with _machine() as machine:
        optimise(module, machine, has_variants=rare.KEPT in text)
        return _emit(module, machine)


_machines: list[llvm.TargetMachine] = []  # that no thread uses


@contextlib.contextmanager
def _machine() -> Iterator[llvm.TargetMachine]:
    """A target machine that no other thread uses meanwhile."""
    try:
        machine = _machines.pop()
    except IndexError:
        machine = create_target_machine()
    yield machine
    _machines.append(machine)


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, has_variants: bool = True) -> None:
    """LLVM's standard pipeline at level 2, in place."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = False  # loops are what kernels consist of
    builder = llvm.create_pass_builder(machine, tuning)
    _unlocked("LLVMPY_RunNewModulePassManager")(builder.getModulePassManager(), module, builder)
    if has_variants:
        rare.inline_variants(module, builder)


def _emit(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
    """As `machine.emit_object(module)`, which holds llvmlite's lock."""
    with ffi.OutputString() as error:
        code = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, True, error)
        if not code:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(code), ffi.lib.LLVMPY_GetBufferSize(code))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(code)


def _unlocked(name: str) -> Callable[..., Any]:
    """A function of LLVM's without llvmlite's lock, or with it, if a later version knows no other."""
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)
