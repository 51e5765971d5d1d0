"""Generated source becomes functions that Python can call: from the disk cache, else through Numba.

A cache hit loads object code with llvmlite alone. Numba, whose import and start-up take longer than most
compilations, is imported (by `numba_backend`) only when something has to be compiled.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from llvmlite import binding as llvm

from ...tracer.errors import CompilationError
from ...tracer.uninterrupted import uninterrupted
from .. import blas
from . import store

# --- What to compile --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayType:
    """An array argument of a kernel.

    The compiled function accepts exactly what this says, of type `numpy.ndarray` itself. `layout` "C" and
    "F" promise contiguity, "A" promises nothing. `readonly` documents an argument that the kernel does not
    write; the code is the same, so it takes no part in comparisons. `extents` may fix some dimensions (0: any
    size): strides are then constants, from which LLVM sees that neighbours do not overlap.

    >>> ArrayType(np.dtype("float64"), 2, "C", (0, 3))
    ArrayType(dtype=dtype('float64'), ndim=2, layout='C', extents=(0, 3), readonly=False)
    """

    dtype: np.dtype
    ndim: int
    layout: Literal["C", "F", "A"]
    extents: tuple[int, ...] = ()
    readonly: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        order = {"C": "C-contiguous ", "F": "Fortran-contiguous ", "A": ""}[self.layout]
        shape = f" {self.extents} (0: any extent)" if any(self.extents) else ""
        return f"{order}{self.dtype} array of rank {self.ndim}{shape}"

    @property
    def required_flags(self) -> int:
        """The bits that must be set in `array.flags.num`: alignment, and contiguity if promised."""
        return 0x100 | {"C": 0x1, "F": 0x2, "A": 0}[self.layout]

    def accepts(self, argument: object) -> bool:
        """Whether compiled code takes `argument`; it makes the same checks itself."""
        return (
            type(argument) is np.ndarray
            and argument.dtype == self.dtype
            and argument.ndim == self.ndim
            and all(one in (0, found) for one, found in zip(self.extents, argument.shape))
            and argument.flags.num & self.required_flags == self.required_flags
        )


@dataclass(frozen=True)
class ScalarType:
    """A scalar argument of a kernel: int64, float64, float32 or bool; Python's numbers convert to it."""

    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.dtype} scalar"


COMBINED = frozenset({"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"})
"""Operators with which totals of parts can be combined: `sharing.py` has their instructions."""


@dataclass(frozen=True)
class Sharing:
    """How threads share a kernel over `range(start, stop)`: which arrays, by position, each has for itself.

    What is in `totals` is combined as the operators say ("add", "maximum", ...), in the order of the parts.
    """

    private: tuple[int, ...] = ()
    totals: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class CompileOptions:
    """How a kernel is compiled.

    `fastmath` names the LLVM flags that arithmetic gets: a product and a sum may be fused, the sign of zero
    may be lost, a division may become a multiplication. The flags that assume away nan and inf are left out
    on purpose. `+=` may be reordered besides ("reassoc"), so that sums vectorise; elsewhere that flag would
    fold `(a + b) - a`, which can be nan, to `b`. `vector_width` is the preferred width of vectors in bits,
    where the processor has such vectors; 0 leaves the choice to LLVM, which prefers 256. `brief_loops` are
    the positions, among the loops of the function, of those that are not worth vectors. With `sharing` the
    last two parameters of the kernel are the bounds of a loop; callers give instead its extent, a number of
    parts and the number of threads that share the parts.
    """

    fastmath: frozenset[str] = frozenset({"arcp", "contract", "nsz"})
    vector_width: int = 512
    brief_loops: frozenset[int] = frozenset()
    sharing: Sharing | None = None


DEFAULT_OPTIONS = CompileOptions()


@dataclass
class Statistics:
    """What this process has compiled so far."""

    compilations: int = 0
    """Functions that Numba compiled."""
    disk_hits: int = 0
    """Functions whose machine code was on disk."""
    source_hits: int = 0
    """Functions asked for again, with the same source and types."""


statistics = Statistics()
_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}


def compile_function(
    module: ModuleType,
    name: str,
    argument_types: tuple[ArrayType | ScalarType, ...],
    options: CompileOptions = DEFAULT_OPTIONS,
) -> Callable[..., Any]:
    """Machine code of `module.<name>` for arguments of exactly `argument_types`.

    `module` comes from `store.load_module`. Compiled once in a process, and once on a machine as long as the
    cache on disk keeps it. The result is a built-in function that takes positional arguments only, reads
    the arrays in place and raises TypeError for an argument of another type, dtype, rank or layout. It lets
    other Python threads run while it works on large arrays.

    Raises CompilationError, with Numba's message as its cause, if the source is not what Numba can compile.

    >>> square = compile_function(module, "square", (ArrayType(np.dtype("f8"), 1, "C"),) * 2)
    >>> square(x, out)
    """
    found = _compiled.get((module.__name__, name, argument_types, options))
    if found is not None:
        statistics.source_hits += 1
        return found
    return _compile_once(module, name, argument_types, options)


@uninterrupted
def _compile_once(
    module: ModuleType, name: str, argument_types: tuple[ArrayType | ScalarType, ...], options: CompileOptions
) -> Callable[..., Any]:
    key = (module.__name__, name, argument_types, options)
    if key in _compiled:  # another thread was quicker, or goes on with what has been interrupted
        statistics.source_hits += 1
    else:
        _compiled[key] = _load_or_compile(module, name, argument_types, options)
    return _compiled[key]


def _load_or_compile(
    module: ModuleType, name: str, argument_types: tuple[ArrayType | ScalarType, ...], options: CompileOptions
) -> Callable[..., Any]:
    digest = _digest(
        module.__name__,
        name,
        argument_types,
        sorted(options.fastmath),
        options.vector_width,
        sorted(options.brief_loops),
        options.sharing,
        _environment(),
    )
    symbol = f"pullback_{name}_{digest}"
    entry = f"{Path(module.__file__ or '').stem}.{name}.{digest}"
    code = store.read(entry)
    if code is None:
        code = _compile(module, name, argument_types, options, symbol)
        store.write(entry, code)
        statistics.compilations += 1
    else:
        statistics.disk_hits += 1
    return _load(code, symbol, name, given_arguments(argument_types, options.sharing))


def _compile(
    module: ModuleType,
    name: str,
    argument_types: tuple[ArrayType | ScalarType, ...],
    options: CompileOptions,
    symbol: str,
) -> bytes:
    """What `_load` reads: the names of the symbols the code needs, a line feed, the object code."""
    from . import numba_backend

    try:
        code, needed = numba_backend.compile_kernel(getattr(module, name), argument_types, options, symbol)
    except Exception as error:  # whatever Numba raises: the source is generated, so no class means "expected"
        types = ", ".join(map(str, argument_types))
        raise CompilationError(
            f"Numba could not compile {name}() in {module.__file__} for {types}. "
            f"The file holds the generated source; it also runs uncompiled."
        ) from error
    return json.dumps(needed).encode() + b"\n" + code


def _digest(*parts: Any) -> str:
    """All that the machine code depends on, hashed; of the source, the module's name holds the hash."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@functools.cache
def _environment() -> tuple[str, ...]:
    """Versions, processor, the code that turns source into machine code, and what that source calls."""
    return (
        *store.versions(),
        *(f"{package} {metadata.version(package)}" for package in ("numba", "llvmlite")),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        *(hashlib.sha256(path.read_bytes()).hexdigest() for path in _code_behind()),
    )


def _code_behind() -> list[Path]:
    """The files whose contents become part of the machine code, or decide what it is."""
    folder = Path(__file__).parents[1]
    called = ("blas", "ordering", "matrices", "decompositions")
    names = (*called, *(f"machine/{name}" for name in ("compile", "entry", "sharing")))
    packages = (*folder.glob("machine/numba_backend/*.py"), *folder.glob("vector_math/*.py"))
    return [*(folder / f"{name}.py" for name in names), *sorted(packages)]


# --- From object code to a function -----------------------------------------------------------------------

OBJECT_PREFIX = "pullback_object_"  # symbols of Python objects that the code refers to
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
    """Raise what a kernel raised; the code calls it with what Numba pickled: class, arguments, location."""
    exception_class, arguments, *_ = pickle.loads(pickled)
    raise exception_class(*arguments)


@uninterrupted
def host_cpu_name() -> str:
    return llvm.get_host_cpu_name()


@functools.cache
def target_machine() -> llvm.TargetMachine:
    """LLVM's description of this processor, for code that is loaded as Numba loads its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    is_x86 = llvm.get_process_triple().startswith(("x86", "i386", "i686"))
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="static" if is_x86 else "default",
        codemodel="jitdefault",
        jit=True,
    )


@functools.cache
def _engine() -> llvm.ExecutionEngine:
    """Where loaded code lives, until the process ends."""
    objects: dict[str, object] = {"None": None, "True": True, "False": False}
    objects |= {"ndarray": np.ndarray, "raise_kernel_error": raise_kernel_error}
    for name, value in objects.items():
        llvm.add_symbol(f"{OBJECT_PREFIX}{name}", id(value))
    machine = target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))  # at exit, a thread may still be inside a kernel
    return engine


def _load(
    code: bytes, symbol: str, name: str, argument_types: tuple[ArrayType | ScalarType, ...]
) -> Callable[..., Any]:
    """The function `symbol` in `code`, as Python calls it."""
    header, _, object_code = code.partition(b"\n")
    needed = json.loads(header)
    blas.register_symbols(needed)
    if any(one.startswith(("numba_", "NRT_")) for one in needed):
        from . import numba_backend

        numba_backend.register_symbols()
    engine = _engine()
    if SHARE in needed:
        from . import workers

        workers.load()
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
    engine.finalize_object()
    return built_in(
        name, engine.get_function_address(symbol), functools.partial(_refuse, name, argument_types)
    )


@uninterrupted
def load_llvm(
    name: str,
    source: str,
    replacements: Mapping[str, object],
    symbols: Mapping[str, int],
    wanted: Sequence[str],
) -> dict[str, int]:
    """The addresses of what LLVM's assembly defines, compiled once on a machine.

    `replacements` are put in for `<KEY>` in the source; `symbols` are addresses of what it declares. The
    functions of other code find what is wanted as well.
    """
    for key, value in replacements.items():
        source = source.replace(f"<{key}>", str(value))
    for symbol, address in symbols.items():
        llvm.add_symbol(symbol, address)
    entry = f"{name}.{_digest(source, _environment())}"
    code = store.read(entry)
    engine = _engine()
    if code is None:
        module = llvm.parse_assembly(source)
        module.triple = llvm.get_process_triple()
        module.verify()
        code = target_machine().emit_object(module)
        store.write(entry, code)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    addresses = {symbol: engine.get_global_value_address(symbol) for symbol in wanted}
    for symbol, address in addresses.items():
        llvm.add_symbol(symbol, address)
    return addresses


def built_in(name: str, address: int, owner: object) -> Callable[..., Any]:
    """A function of Python that takes positional arguments, from machine code; `owner` is its `self`."""
    if address not in _definitions:
        _definitions[address] = _MethodDefinition(name.encode(), address, _METH_FASTCALL, None)
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype = ctypes.py_object
    create.argtypes = [ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.py_object]
    return create(_definitions[address], owner, None)


def given_arguments(
    kernel: Sequence[ArrayType | ScalarType], sharing: Sharing | None
) -> tuple[ArrayType | ScalarType, ...]:
    """What Python gives a kernel with these arguments: for bounds, it gives extent, parts and threads."""
    return tuple(kernel) if sharing is None else (*kernel, kernel[-1])


def _refuse(name: str, expected: tuple[ArrayType | ScalarType, ...], *arguments: Any) -> None:
    """Raise the TypeError for arguments that compiled code does not take; it calls this with them."""
    if len(arguments) != len(expected):
        raise TypeError(f"{name}() takes {len(expected)} arguments, and got {len(arguments)}.")
    for position, (argument, argument_type) in enumerate(zip(arguments, expected), start=1):
        if isinstance(argument_type, ArrayType) and not argument_type.accepts(argument):
            found = type(argument).__name__
            if isinstance(argument, np.ndarray):
                found = f"{argument.dtype.str} {found} of shape {argument.shape}, strides {argument.strides}"
            raise TypeError(f"{name}() argument {position} must be a {argument_type}, and is a {found}.")
