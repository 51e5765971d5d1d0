"""Generated source becomes functions that Python can call: from the disk cache, else through Numba.

A cache hit loads object code with llvmlite alone. Numba, whose import and start-up take longer than most
compilations, is imported (by `numba_backend`) only when something has to be compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
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
_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}
_entries: dict[Callable[..., Any], str] = {}


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
    digest = entry_hash(
        module.__name__,
        name,
        argument_types,
        sorted(options.fastmath),
        options.vector_width,
        sorted(options.brief_loops),
        options.sharing,
    )
    symbol = f"pullback_{name}_{digest}"
    entry = f"{Path(module.__file__ or '').stem}.{name}.{digest}"
    code = exchange.find(entry)
    if code is None:
        refuse_recompilation(lambda: f"{name}() of {module.__file__} has no machine code yet")
        with store.turn(entry):
            code = exchange.find(entry)  # another process may have been quicker
            if code is None:
                code = _compile(module, name, argument_types, options, symbol)
                store.write(entry, code)
                statistics.compilations += 1
    else:
        statistics.disk_hits += 1
    function = _load(code, symbol, name, given_arguments(argument_types, options.sharing))
    _entries[function] = entry
    return function


def entry_of(function: Callable[..., Any]) -> str:
    """The name under which `store` keeps the machine code of what `compile_function` gave."""
    return _entries[function]


def _compile(
    module: ModuleType,
    name: str,
    argument_types: tuple[ArrayType | ScalarType, ...],
    options: CompileOptions,
    symbol: str,
) -> bytes:
    """What `_load` reads."""
    from . import numba_backend  # Numba, which code from disk does not need

    try:
        kernel = getattr(module, name)
        return numba_backend.compile_kernel(kernel, argument_types, options, symbol).packed()
    except Exception as error:  # whatever Numba raises: the source is generated, so no class means "expected"
        types = ", ".join(map(str, argument_types))
        raise CompilationError(
            f"Numba could not compile {name}() in {module.__file__} for {types}. "
            f"The file holds the generated source; it also runs uncompiled."
        ) from error


def _load(
    code: bytes, symbol: str, name: str, argument_types: tuple[ArrayType | ScalarType, ...]
) -> Callable[..., Any]:
    """The function `symbol` in `code`, as Python calls it."""
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
