"""Generated source becomes functions that Python can call: from the disk cache, else through Numba.

A cache hit loads object code with llvmlite alone. Numba, whose import and start-up take longer than most
compilations, is imported (by `numba_backend`) only when something has to be compiled.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...tracer.errors import CompilationError
from ...tracer.recompilation import refuse_recompilation
from ...tracer.records import record
from ...tracer.uninterrupted import uninterrupted
from .. import blas, lapack, sorting
from . import arguments, exchange, host_entry, store
from .bundles import Bundle
from .kernel_types import DEFAULT_OPTIONS, ArrayType, CompileOptions, ScalarType, given_arguments
from .loading import SHARE, built_in, entry_hash, load_object


@record
class Statistics:
    """What this process has compiled so far."""

    compilations: int = 0
    """Functions that Numba compiled."""
    disk_hits: int = 0
    """Functions whose machine code was on disk."""
    source_hits: int = 0
    """Functions asked for again, with the same source and types."""


statistics = Statistics()
_compiled: dict[tuple[str, Wanted], Callable[..., Any]] = {}
_entries: dict[Callable[..., Any], str] = {}


@record(frozen=True)
class Wanted:
    """A function of a module, the types of its arguments, how it is to be compiled."""

    name: str
    argument_types: tuple[ArrayType | ScalarType, ...]
    options: CompileOptions = DEFAULT_OPTIONS


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
    return compile_functions(module, [Wanted(name, argument_types, options)])[0]


def compile_functions(module: ModuleType, wanted: Sequence[Wanted]) -> list[Callable[..., Any]]:
    """The same of several: LLVM works on one while the next is written.

    >>> square, cube = compile_functions(module, [Wanted("square", types), Wanted("cube", types)])
    """
    keys = [(module.__name__, one) for one in wanted]
    found = [_compiled.get(key) for key in keys]
    missing = [one for one, function in zip(wanted, found) if function is None]
    statistics.source_hits += len(wanted) - len(missing)
    if missing:
        _compile_once(module, missing)
    return [_compiled[key] for key in keys]


@uninterrupted
def _compile_once(module: ModuleType, wanted: Sequence[Wanted]) -> None:
    # another thread may have been quicker, or this one goes on with what has been interrupted
    missing = [_Entry.of(module, one) for one in wanted if (module.__name__, one) not in _compiled]
    statistics.source_hits += len(wanted) - len(missing)
    for one, code in zip(missing, _codes(module, missing) if missing else ()):
        given = given_arguments(one.wanted.argument_types, one.wanted.options.sharing)
        function = _load(code, one.wanted.name, given)
        _entries[function] = one.name
        _compiled[module.__name__, one.wanted] = function


@record(frozen=True)
class _Entry:
    """The machine code that is wanted: its name in the cache, and the symbol that it defines."""

    wanted: Wanted
    name: str
    symbol: str

    @classmethod
    def of(cls, module: ModuleType, wanted: Wanted) -> _Entry:
        options = wanted.options
        digest = entry_hash(
            module.__name__,
            wanted.name,
            wanted.argument_types,
            sorted(options.fastmath),
            options.vector_width,
            sorted(options.brief_loops),
            options.sharing,
        )
        stem = Path(module.__file__ or "").stem
        return cls(wanted, f"{stem}.{wanted.name}.{digest}", f"pullback_{wanted.name}_{digest}")


def _codes(module: ModuleType, entries: Sequence[_Entry]) -> list[bytes]:
    """What `_load` reads, from the cache, else compiled."""
    found = {one.name: exchange.find(one.name) for one in entries}
    absent = [one for one in entries if found[one.name] is None]
    statistics.disk_hits += len(entries) - len(absent)
    if absent:
        refuse_recompilation(
            lambda: f"{absent[0].wanted.name}() of {module.__file__} has no machine code yet"
        )
        with store.turn(*(one.name for one in absent)):
            # other processes may have been quicker
            again = {one.name: exchange.find(one.name) for one in absent}
            still = [one for one in absent if again[one.name] is None]
            found |= again | _compile(module, still)
            statistics.compilations += len(still)
    return [code for one in entries if (code := found[one.name]) is not None]


def _compile(module: ModuleType, entries: Sequence[_Entry]) -> dict[str, bytes]:
    from . import numba_backend  # Numba, which code from disk does not need

    found: dict[str, bytes] = {}
    with numba_backend.compilation() as compilation:
        begun: list[tuple[_Entry, Callable[[], Bundle]]] = []
        for one in entries:
            wanted = one.wanted
            with _explained(module, wanted):
                kernel = getattr(module, wanted.name)
                finish = compilation.begin(kernel, wanted.argument_types, wanted.options, one.symbol)
                begun.append((one, finish))
        for one, finish in begun:
            with _explained(module, one.wanted):
                found[one.name] = finish().packed()
                store.write(one.name, found[one.name])
    return found


@contextlib.contextmanager
def _explained(module: ModuleType, wanted: Wanted) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever Numba raises: the source is generated, so no class means "expected"
        types = ", ".join(map(str, wanted.argument_types))
        raise CompilationError(
            f"Numba could not compile {wanted.name}() in {module.__file__} for {types}. "
            f"The file holds the generated source; it also runs uncompiled."
        ) from error


def entry_of(function: Callable[..., Any]) -> str:
    """The name under which `store` keeps the machine code of what `compile_function` gave."""
    return _entries[function]


def _load(code: bytes, name: str, argument_types: tuple[ArrayType | ScalarType, ...]) -> Callable[..., Any]:
    """The function that the last object in `code` defines, as Python calls it."""
    bundle = Bundle.unpacked(code)
    for library in (blas, lapack, sorting, host_entry, arguments):
        library.register_symbols(bundle.expected)
    if SHARE in bundle.expected:
        from . import workers  # threads, which few programs need

        workers.load()
    addresses = [load_object(*one) for one in bundle.objects.items()]
    return built_in(name, addresses[-1], functools.partial(_refuse, name, argument_types))


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
