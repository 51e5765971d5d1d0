"""The decorator: `compile` makes a `CompiledFunction`, which traces, generates, caches and runs."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np

from ...tracer.collection import paused_collection
from ...tracer.errors import ArgumentError, EagerOnlyError, PullbackError, TraceError
from ...tracer.forks import before_forks, new_reentrant_lock
from ...tracer.origin import user_frame
from ...tracer.trace import ConstantNeeded, innermost
from ...tracer.uninterrupted import uninterrupted
from ..tracing.signature import (
    ALL,
    EXACT,
    LARGEST,
    VARYING,
    Call,
    Conformed,
    Signature,
    positional_count,
    tensor_key,
)
from ..tracing.tracing import Traced, trace_call
from ..values import dtypes
from ..values.modes import is_recording
from ..values.tensor import Tensor, TorchTensor
from .entry import Entry
from .front import plain_call
from .inspection import Inspection, Known
from .paths import Paths
from .shared import shared_programs
from .uncompiled import Uncompiled
from .variant import STALE, Counters, Variant

if TYPE_CHECKING:
    from ...codegen.pipeline import Options

ndarray = np.ndarray
MAX_PATHS = 64
Latest = tuple[Callable[..., bool], Any, "Entry | None", Callable[..., Any] | None]
NO_CALL: Latest = (lambda *arguments: False, None, None, None)
"""There is none to compare with."""


class CacheInfo(NamedTuple):
    """What a compiled function found in its caches, and what it had to make."""

    hits: int
    """Calls that ran existing code."""
    misses: int
    """Calls that did not."""
    traces: int
    """How often the Python function was run to get its graph."""
    compilations: int
    """How often machine code was made."""
    source_hits: int
    """How often the machine code of the same source existed in this process."""
    disk_hits: int
    """How often another process had left it on disk."""
    size: int
    """Variants held now: each path counts."""


@functools.cache
@uninterrupted
def _import_code_generator() -> None:
    """Where no signal handler raises, which may leave the lock of a module taken that is being imported."""
    from ...codegen import pipeline  # noqa: F401
    from ...codegen.machine import small_calls  # noqa: F401
    from ...codegen.targets.python import emit  # noqa: F401


class CompiledFunction(Inspection):
    """A function that runs as generated machine code; what `compile` returns.

    It takes and returns what the Python function does: Tensors in give Tensors out, with a `backward` where
    an argument requires grad; ndarrays in give ndarrays out. Each new combination of shapes, dtypes, static
    values and gradient requests is traced once, and once for each path where values decide; machine code is
    shared between shapes.

    Attributes:
        __wrapped__: the Python function.
    """

    maxsize = 256
    """Keys held at most; then one that has not been used lately goes."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        static_argnums: Iterable[int] | int = (),
        static_argnames: Iterable[str] | str = (),
        name: str = "",
        options: Options | None = None,
        dynamic: Iterable[int | str] = (),
        max_paths: int = MAX_PATHS,
    ) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self.name = name or function_name(function)
        self.options = options
        self.max_paths = max_paths
        self.static_argnums, self.static_argnames = static_argnums, static_argnames
        self.signature = Signature(function, self.name, static_argnums, static_argnames, dynamic)
        self._plain_count = self.signature.plain_count
        self._entries: dict[Any, Entry] = {}
        self._latest: Latest = NO_CALL
        """Of the last call: what tells whether arguments are like its, the default dtype, the entry, and what
        puts arrays in the places of Python's numbers."""
        self._newest: Variant | Paths | None = None
        self._written: dict[int, Any] = {}
        """The containers that traces have changed, by identity."""
        self._lock = new_reentrant_lock()
        self._counters = Counters()
        self._misses = self._later_misses = self._traces = self._evicted_hits = 0
        self._warned = False

    # --- calls ------------------------------------------------------------------------------------------

    def __new__(cls, function: Callable[..., Any], *args: Any, **options: Any) -> CompiledFunction:
        """An instance of the sub-class whose `__call__` is written out for the number of parameters."""
        base: Any = cls
        return super().__new__(_class_for(base, positional_count(function)))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call_mixed(args, kwargs)

    def _call_mixed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with Tensors or numbers among positional arguments, the last defaults perhaps left out."""
        count = self._plain_count
        if kwargs or innermost() is not None or len(args) > count:
            return self._call_in_general(args, kwargs)
        if len(args) < count:
            defaults = getattr(self.__wrapped__, "__defaults__", None) or ()
            args += defaults[len(args) - count :]
            if len(args) < count:
                return self._call_in_general(args, kwargs)
        key: list[Any] = [dtypes._default]
        leaves: list[Any] = []
        fits = are_arrays = True
        add = key.append
        constants = self.signature.constants
        for argument in args:
            kind = type(argument)
            if kind is TorchTensor or issubclass(kind, Tensor):
                if argument._view is not None:
                    argument.refresh()
                value, are_arrays = argument._value, False
                asked = argument._requires_grad and is_recording()
                add(asked if kind is TorchTensor else tensor_key(kind, asked))
            elif kind is ndarray:
                value = argument
                fits = fits and argument.flags.carray
            elif kind in VARYING and not constants and (kind is float or -LARGEST <= argument <= LARGEST):
                add(VARYING[kind])
                leaves.append(np.asarray(argument))
                continue
            elif kind in EXACT and kind is not int:
                add(kind)
                add(argument)
                continue
            else:
                return self._call_in_general(args, kwargs)
            add(value.dtype)
            add(value.shape)
            leaves.append(argument)
        entry = self._entries.get(tuple(key))
        if entry is not None:
            entry.hits += 1
            result = entry.run(leaves if fits else Conformed.of(leaves))
            if result is not STALE:
                if are_arrays and fits and len(leaves) == count:
                    kinds = tuple(map(type, args))
                    self._latest = entry.matching(leaves), key[0], entry, _numbers_as_arrays(kinds)
                return result
            entry.hits -= 1
        return self._call_in_general(args, kwargs)

    def _call_in_general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call: in a trace the Python function itself, else bound, taken apart, traced if it is new."""
        if innermost() is not None:
            return self.__wrapped__(*args, **kwargs)
        call = self.signature.call(args, kwargs)
        entry = self._entries.get(call.key)
        if entry is not None:
            result = entry.run(call.arrays)
            if result is not STALE:
                entry.hits += 1
                return result
        return self._call_anew(call)

    def _call_anew(self, call: Call) -> Any:
        """Trace; enter the variant in the cache only when it has run."""
        with before_forks(), self._lock, paused_collection:
            _import_code_generator()
            entry = self._entries.get(call.key)
            if entry is not None:  # another thread may have been quicker
                result = entry.run(call.arrays)
                if result is not STALE:
                    entry.hits += 1
                    return result
            call, shared = self._find_shared(call)
            if shared is not None:
                result = shared.run(call.arrays)
                if result is not STALE:
                    self._keep(call, shared).hits += 1
                    return result
            missing: ConstantNeeded | None = None
            for _ in range(2):  # the first time it may have filled caches that it reaches
                try:
                    traced = self._trace(call)
                except EagerOnlyError as error:
                    return self._enter_uncompiled(call, error).run(call.arrays)
                except ConstantNeeded as needed:
                    missing = needed
                    break
                variant = self._variant(traced)
                result = variant.run_traced(call.arrays)
                if result is not STALE:
                    break
            if missing is not None:  # not in the handler: an error has no context
                return self.call_with_constants(call, missing)
            if result is STALE:
                raise TraceError(
                    f"{self.name} changes, while it runs, a value that it reaches from outside, so that no "
                    "trace of it stays valid. Pass the value as an argument."
                )
            self._share(call, self._enter(call, variant, calls=1))
            self._misses += 1
            return result

    def _find_shared(self, call: Call) -> tuple[Call, Variant | Paths | None]:
        """What another function object has left, and the call in its form: with the constants of that one."""
        if self._written:
            return call, None
        found = shared_programs.find(self, call)
        known, signature = self.signature.constants, self.signature
        constants = known | shared_programs.constants_of(self)
        if found is not None or constants == known:
            return call, found
        signature.constants = constants
        args, kwargs = call.rebuild(call.leaves)
        again = signature.call(args, kwargs)
        found = shared_programs.find(self, again)
        if found is None:
            signature.constants = known
            return call, None
        self._latest = NO_CALL
        return again, found

    def call_with_constants(self, call: Call, needed: ConstantNeeded) -> Any:
        """A call in which some of the numbers are constants from now on: structure needs them."""
        signature, self._latest = self.signature, NO_CALL
        known, signature.constants = signature.constants, signature.constants | needed.names
        args, kwargs = call.rebuild(call.leaves)
        try:
            return self._call_in_general(args, kwargs)
        except Exception as error:  # it fails all the same
            signature.constants = known
            is_explained = isinstance(error, PullbackError) and error.__cause__ is None
            if isinstance(needed.error, PullbackError) and not is_explained:
                raise needed.error from None
            raise

    def _enter_uncompiled(self, call: Call, error: EagerOnlyError) -> Uncompiled:
        """Remember that calls like this one cannot be compiled; the first of them warns."""
        self.warn_uncompiled(error)
        uncompiled = Uncompiled(self.__wrapped__, call, self.name)
        entry = self._entries.setdefault(call.key, Entry())
        entry.add(uncompiled)
        self._latest = NO_CALL
        self._misses += 1
        self._traces += 1
        return uncompiled

    def warn_uncompiled(self, error: EagerOnlyError) -> None:
        """Say once why calls run uncompiled."""
        if not self._warned:
            self._warned = True
            frame = user_frame()
            place = ("", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
            warnings.warn_explicit(f"{self.name} runs uncompiled: {error}", UserWarning, *place)

    def _trace(self, call: Call, answers: Sequence[ndarray] = ()) -> Traced:
        """The graph of a call, whose first questions have these answers.

        Raises:
            ConstantNeeded: structure needs numbers of the call; all of them, where the function fails on what
                stands for them, which one of NumPy's may not take.
        """
        known = len(self._written)
        try:
            traced = trace_call(self.__wrapped__, call, self.name, answers, self._written)
        except EagerOnlyError:
            raise
        except Exception as error:
            if self.signature.has_numbers(call):
                raise ConstantNeeded({ALL}, error) from None
            raise
        self._traces += 1
        if len(self._written) > known:  # which other traces may have read
            self._latest = NO_CALL
            for entry in self._entries.values():
                entry.clear()
        return traced

    def _trace_only(self, call: Call) -> Traced:
        """The same for a look at it: no random number counts as drawn."""
        traced = self._trace(call)
        for stream, state in traced.streams.items():
            stream.set_state(state)
        for draw in traced.drawn:
            draw.forget()
        return traced

    def _variant(self, traced: Traced) -> Variant:
        from ...codegen.pipeline import Options

        return Variant(traced, self.options or Options(), self._counters)

    def _enter(self, call: Call, variant: Variant, calls: int) -> Variant | Paths:
        """Keep a variant that has run so many times; where values decide, as the first of its paths."""
        made = Paths(self, call, variant, calls) if variant.traced.guards else variant
        self._keep(call, made)
        return made

    def _keep(self, call: Call, made: Variant | Paths) -> Entry:
        entry = self._entries.get(call.key)
        if entry is None:
            entry = Entry()
            while len(self._entries) >= self.maxsize:
                self._evict()
        entry.add(made)
        self._newest = made
        self._entries[call.key] = entry
        self._latest = NO_CALL
        return entry

    def holds(self, call: Call, made: Paths) -> bool:
        """Whether calls like this one still find it."""
        entry = self._entries.get(call.key)
        return entry is not None and made in entry.variants

    def _share(self, call: Call, made: Variant | Paths) -> None:
        """Let other functions that are made of the same code find it."""
        shared_programs.keep(self, call, made)

    def _evict(self) -> None:
        """The clock algorithm: the oldest goes, unless it was used since it was last looked at."""
        while True:
            key = next(iter(self._entries))
            entry = self._entries.pop(key)
            if entry.hits == entry.former:
                self._evicted_hits += entry.hits
                return
            entry.former = entry.hits
            self._entries[key] = entry

    # --- caches -----------------------------------------------------------------------------------------

    def cache_info(self) -> CacheInfo:
        """Hits, misses, traces, compilations, source hits, disk hits, size: of this function.

        Example:
            >>> loss.cache_info()
            CacheInfo(hits=1, misses=1, traces=1, compilations=1, source_hits=0, disk_hits=0, size=1)
        """
        with self._lock:
            counters = self._counters
            return CacheInfo(
                hits=self._evicted_hits
                + sum(entry.hits for entry in self._entries.values())
                - self._later_misses,
                misses=self._misses + self._later_misses,
                traces=self._traces,
                compilations=counters.compilations,
                source_hits=counters.source_hits,
                disk_hits=counters.disk_hits,
                size=sum(one.size for entry in self._entries.values() for one in entry.variants),
            )

    def cache_clear(self) -> None:
        """Forget all traces and counts. Machine code stays, for whatever has the same source."""
        shared_programs.forget(self)
        with self._lock:
            self._entries.clear()
            self._latest = NO_CALL
            self._newest = None
            self._counters = Counters()
            self._misses = self._later_misses = self._traces = self._evicted_hits = 0
            self._warned = False

    # --- inspection ---------------------------------------------------------------------------------------

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known:
        """What a call would run, traced if need be; it does not run.

        Without arguments, where the function takes some, the latest that was traced.
        """
        if not args and not kwargs and (newest := self._newest_known(0)) is not None:
            return newest
        call = self.signature.call(args, kwargs)
        with before_forks(), self._lock, paused_collection:
            _import_code_generator()
            entry = self._entries.get(call.key)
            for known in entry.variants if entry is not None else ():
                if not isinstance(known, Uncompiled) and known.is_valid():
                    if isinstance(known, Paths):
                        return Known.of_path(known, known.path_of(call.arrays))
                    return Known.of_variant(known)
            try:
                traced = self._trace_only(call)
            except ConstantNeeded as needed:
                self.signature.constants |= needed.names
                return self._known_for(args, kwargs)
            made = self._enter(call, self._variant(traced), calls=0)
            return Known.of_path(made, made.paths[0]) if isinstance(made, Paths) else Known.of_variant(made)

    def _newest_known(self, given: int) -> Known | None:
        """What was traced latest; None where that is nothing, and the function needs no arguments.

        Args:
            given: how many of the arguments are known.

        Raises:
            ArgumentError: nothing was traced yet, and there are arguments to choose.
        """
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        parameters, known = self.signature.parameters[given:], self._newest
        if not parameters:
            return None
        if isinstance(known, Paths):
            return Known.of_path(known, known.paths[-1])
        if known is not None:
            return Known.of_variant(known)
        if any(one.default is one.empty and one.kind not in variadic for one in parameters):
            raise ArgumentError(
                f"{self.name} has not been called yet, so there is no code to show. Call it before, or pass "
                f"arguments like those of a call: {self.name}.source(...)."
            )
        return None

    # --- methods ------------------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else CompiledMethod(self, instance)

    def transformed(
        self, function: Callable[..., Any], name: str, dynamic: Iterable[int | str]
    ) -> CompiledFunction:
        """A function made of this one's, compiled under the same options."""
        return CompiledFunction(
            function,
            static_argnums=self.static_argnums,
            static_argnames=self.static_argnames,
            name=name,
            options=self.options,
            dynamic=dynamic,
            max_paths=self.max_paths,
        )

    def __repr__(self) -> str:
        return f"<compiled function {self.name}>"

    def __reduce__(self) -> str:
        return getattr(self, "__qualname__", self.name)  # by name, as Python pickles functions


def _numbers_as_arrays(kinds: tuple[type, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    from ...codegen.machine.small_calls import numbers_as_arrays

    return numbers_as_arrays(kinds, LARGEST)


@functools.cache
def _class_for(base: Any, count: int) -> Any:
    call = plain_call(count)
    if call is None:
        return base
    fields = {"__call__": call, "__module__": base.__module__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), fields)


class CompiledMethod(Inspection):
    """A compiled function with its first argument: what `instance.method` gives."""

    def __init__(self, function: CompiledFunction, instance: Any) -> None:
        self.__func__ = function
        self.__self__ = instance
        self.__wrapped__ = MethodType(function.__wrapped__, instance)
        self.__name__ = function.name
        self.__doc__ = function.__doc__
        self.cache_info = function.cache_info
        self.cache_clear = function.cache_clear

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known:
        if not args and not kwargs and (newest := self.__func__._newest_known(1)) is not None:
            return newest
        return self.__func__._known_for((self.__self__, *args), kwargs)

    def transformed(
        self, function: Callable[..., Any], name: str, dynamic: Iterable[int | str]
    ) -> CompiledFunction:
        inner = self.__func__
        return CompiledFunction(
            function, name=name, options=inner.options, dynamic=dynamic, max_paths=inner.max_paths
        )

    def __repr__(self) -> str:
        return f"<compiled method {self.__name__} of {self.__self__!r}>"


def function_name(function: Callable[..., Any]) -> str:
    """A name that can stand in generated code: lambdas and partial functions get one too."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "function"


@overload
def compile(function: Callable[..., Any], /) -> CompiledFunction: ...
@overload
def compile(
    function: None = None,
    *,
    static_argnums: Iterable[int] | int = ...,
    static_argnames: Iterable[str] | str = ...,
    fastmath: bool = ...,
    parallel: bool | None = ...,
    max_paths: int = ...,
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...
def compile(
    function: Any = None,
    *,
    static_argnums: Iterable[int] | int = (),
    static_argnames: Iterable[str] | str = (),
    fastmath: bool = True,
    parallel: bool | None = None,
    max_paths: int = MAX_PATHS,
) -> Any:
    """Compile a function of arrays or Tensors, and its gradient: trace, differentiate, generate, cache.

    Use it bare (`@compile`), with options (`@compile(parallel=False)`), on a method, a lambda, a
    `functools.partial`, or as `compile(function, fastmath=False)`. Arguments may be nested in lists, tuples,
    dicts, namedtuples and dataclasses. Arguments that are no arrays are static: another value is traced anew,
    so pass varying numbers as `np.float64(x)` or as 0-d arrays. Arrays that the function reaches through
    closures, globals and attributes are read in every call. What the function writes into its arguments
    (`x[1:-1] = ...`, `x += 1`, `np.add(a, b, out=x)`) the caller's arrays hold after the call, as of a plain
    NumPy function; an argument that a gradient is asked for cannot be written.

    Where Python asks for a value (`if x.sum() > 0`, `while`, `assert`, `float(t)`, `t.item()`, `x[:int(n)]`),
    the answer is a guard, and each way through the function is a path with code of its own: traced when a
    call first takes it, then found again by the guards. Numbers that the function reaches and changes
    (`self.nfev += 1`) are read and written by each call; Python's other side effects (printing,
    `log.append(n)`) happen once for each trace, and the function must not read what it writes so. `bool()`
    has two answers; `float()`, `item()`, `tolist()` and `numpy()` put the exact value into the path, so that
    each new value is a new path: compare tensors instead of numbers.

    Args:
        function: what to compile; its Python code runs once for each kind of arguments and each path.
        static_argnums: positions of arguments that are static even if they are arrays-like; must be hashable.
        static_argnames: the same by name.
        fastmath: let sums be reordered and products be fused into sums; nan and inf stay what they are.
        parallel: run loops in threads: always, never, or (None) above a measured size.
        max_paths: how many paths are compiled for one kind of arguments; calls that take another one then run
            uncompiled, and the first of them warns.

    Returns:
        A CompiledFunction; without `function` a decorator that makes one.

    Raises:
        ArgumentError: `function` is not callable, it has no such static argument, or `max_paths` is below 1.

    Example:
        >>> @compile
        ... def loss(w, x):
        ...     return (w * x).sum()
        >>> loss(np.ones(3), np.arange(3.0))
        np.float64(3.0)
    """
    if function is None:
        return functools.partial(
            cast(Any, compile),
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            fastmath=fastmath,
            parallel=parallel,
            max_paths=max_paths,
        )
    if isinstance(function, classmethod | staticmethod):
        compiled = cast(Any, compile)(
            function.__func__,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            fastmath=fastmath,
            parallel=parallel,
            max_paths=max_paths,
        )
        return type(function)(compiled)
    if not callable(function):
        raise ArgumentError(
            f"compile: expected a function, found {function!r} of type {type(function).__name__}. "
            f"Write @compile above the function, or compile(function, option=...)."
        )
    if isinstance(function, CompiledFunction):
        function = function.__wrapped__
    if type(max_paths) is not int or max_paths < 1:
        raise ArgumentError(f"compile: max_paths must be an integer from 1 on, found {max_paths!r}.")
    options = None
    if not fastmath or parallel is not None:
        from ...codegen.pipeline import Options

        options = Options(fastmath=fastmath, parallel=parallel)
    return CompiledFunction(
        function,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        options=options,
        dynamic=getattr(function, "differentiated", ()),
        max_paths=max_paths,
    )
