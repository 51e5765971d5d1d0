"""Machine code in memory: the processor that it is for, where it lives, and how Python calls it."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import pickle
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding as llvm

from ...tracer.spec import COMPLEX, SUPPORTED
from ...tracer.uninterrupted import uninterrupted
from . import store

OBJECT_PREFIX = "pullback_object_"  # symbols of Python objects that the code refers to
WHOLES = (
    "ordering", "matrices", "complex_matrices", "cholesky_gradients", "decompositions", "general_eigenvalues",
    "exponentials", "complex_decompositions",
)  # fmt: skip
"""The modules of functions that kernels call with whole rows or matrices."""
SHARE = "pullback_share"
"""The function (function, parts, bytes of a part, number of parts, most helpers) of `workers`."""


class _MethodDefinition(ctypes.Structure):
    """PyMethodDef of Python's C API."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_METH_FASTCALL = 0x80
_definitions: dict[int, _MethodDefinition] = {}  # by address of the code; Python keeps pointers to them


def raise_kernel_error(pickled: bytes) -> None:
    """Raise what a kernel raised; the code calls it with its class and arguments, pickled."""
    exception_class, arguments = pickle.loads(pickled)
    raise exception_class(*arguments)


@uninterrupted
def host_cpu_name() -> str:
    return llvm.get_host_cpu_name()


@functools.cache
def target_machine(level: int = 2) -> llvm.TargetMachine:
    """The one of `create_target_machine` for whoever holds llvmlite's lock."""
    return create_target_machine(level)


def create_target_machine(level: int = 2) -> llvm.TargetMachine:
    """LLVM's description of this processor, for code that is loaded as Numba loads its own.

    At level 0 machine code takes a quarter of the time to make, and some three times as long to run. Threads
    do not share one.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    is_x86 = llvm.get_process_triple().startswith(("x86", "i386", "i686"))
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        reloc="static" if is_x86 else "default",
        codemodel="jitdefault",
        jit=True,
    )


@functools.cache
def engine() -> llvm.ExecutionEngine:
    """Where loaded code lives, until the process ends."""
    objects: dict[str, object] = {"None": None, "True": True, "tuple": tuple}
    objects |= {"ndarray": np.ndarray, "raise_kernel_error": raise_kernel_error}
    objects |= {dtype.name: dtype for dtype in (*SUPPORTED, *COMPLEX)}
    define({f"{OBJECT_PREFIX}{name}": id(value) for name, value in objects.items()})
    memory = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))  # at exit, a thread may still be inside a kernel
    return memory


_loaded: dict[str, int] = {}  # the addresses of symbols


def load_object(symbol: str, code: bytes) -> int:
    """The address of a symbol that object code defines; other code that is loaded finds it as well."""
    if symbol not in _loaded:
        _loaded.update(_addresses_in(code, [symbol]))
    return _loaded[symbol]


def _addresses_in(code: bytes, wanted: Sequence[str]) -> dict[str, int]:
    """Where object code has what it defines, once it is loaded; other code finds it, too."""
    memory = engine()
    memory.add_object_file(llvm.ObjectFileRef.from_data(code))
    memory.finalize_object()
    addresses = {symbol: memory.get_global_value_address(symbol) for symbol in wanted}
    define(addresses)
    return addresses


def define(symbols: Mapping[str, int]) -> None:
    """Let code that is loaded find addresses under these names."""
    for symbol, address in symbols.items():
        llvm.add_symbol(symbol, address)


def entry_hash(*parts: Any) -> str:
    """All that machine code depends on, hashed: first the environment, then what is given."""
    return environment_hash() + hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def environment_hash() -> str:
    """What the names of all entries begin their hash with that are of use here."""
    return _hash_of(environment())


@functools.cache
def _hash_of(environment: tuple[str, ...]) -> str:
    return hashlib.sha256(repr(environment).encode()).hexdigest()[:16]


@functools.cache
def environment() -> tuple[str, ...]:
    """Versions, processor, the code that turns source into machine code, and what that source calls."""
    return (
        *store.versions(),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        *(hashlib.sha256(path.read_bytes()).hexdigest() for path in _code_behind()),
    )


def _code_behind() -> list[Path]:
    """The files whose contents become part of the machine code, or decide what it is."""
    folder = Path(__file__).parents[1]
    called = ("blas", "lapack", "sorting", "host", *WHOLES, "../tracer/lapack")
    own = ("arguments", "bundles", "compile", "entry", "host_entry", "kernel_types", "loading", "sharing")
    names = (*called, *(f"machine/{name}" for name in own))
    packages = (*folder.glob("machine/numba_backend/*.py"), *folder.glob("vector_math/*.py"))
    files = [*(folder / f"{name}.py" for name in names), *sorted(packages)]
    return [*files, *map(_version_of, ("numba", "llvmlite"))]


def _version_of(package: str) -> Path:
    """The file that says a package's version; `importlib.metadata` takes longer than all else here."""
    found = find_spec(package)
    assert found is not None and found.origin is not None
    return Path(found.origin).with_name("_version.py")


@uninterrupted
def load_llvm(
    name: str,
    source: str,
    replacements: Mapping[str, object],
    symbols: Mapping[str, int],
    wanted: Sequence[str],
    level: int = 2,
) -> dict[str, int]:
    """The addresses of what LLVM's assembly defines, compiled once on a machine.

    `replacements` are put in for `<KEY>` in the source; `symbols` are addresses of what it declares. The
    functions of other code find what is wanted as well. `level` is that of `target_machine`.
    """
    for key, value in replacements.items():
        source = source.replace(f"<{key}>", str(value))
    define(symbols)
    entry = f"{name}.{entry_hash(source, level)}"
    code = store.read(entry)
    if code is None:
        module = llvm.parse_assembly(source)
        module.triple = llvm.get_process_triple()
        module.verify()
        code = target_machine(level).emit_object(module)
        store.write(entry, code)
    return _addresses_in(code, wanted)


def built_in(name: str, address: int, owner: object) -> Callable[..., Any]:
    """A function of Python that takes positional arguments, from machine code; `owner` is its `self`."""
    if address not in _definitions:
        definition = _definitions[address] = _MethodDefinition(name.encode(), address, _METH_FASTCALL, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))  # at exit, the function may go later
    return _maker_of_built_ins()(_definitions[address], owner, None)


@functools.cache
def _maker_of_built_ins() -> Callable[..., Any]:
    given = ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.py_object
    return ctypes.PYFUNCTYPE(ctypes.py_object, *given)(("PyCFunction_NewEx", ctypes.pythonapi))
