"""The decorator: `compile` makes a `CompiledFunction`, which traces, generates, caches and runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import MethodType
from typing import Any, NamedTuple, TypeVar, cast, overload

from ...codegen.options import DEFAULT_OPTIONS, Options
from ...tracer.errors import ArgumentError, GradientError
from ...tracer.forks import made_once
from ...tracer.trace import innermost
from ...tracer.users_frames import show_users_frames
from ..tape.anomaly import listeners
from ..tracing.signature import Signature
from ..values import dtypes
from ..values.modes import enable_grad
from ..values.nodes import GradNode
from . import ahead, pickling
from .compiled_nodes import CompiledNode
from .dispatcher import Dispatcher
from .inspection import Inspection, Known, asking_for_gradients
from .paired import Paired
from .paths import Paths
from .table import STALE, Table
from .traced_function import Newest
from .variant import Variant
from .watched import WatchedDispatcher

MAX_PATHS = 64
AnyDispatcher = TypeVar("AnyDispatcher", bound=Dispatcher)


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


class CompiledFunction(Inspection):
    """A function that runs as generated machine code; what `compile` returns.

    It takes and returns what the Python function does: Tensors in give Tensors out, with a `backward` where
    an argument requires grad; ndarrays in give ndarrays out. Each new combination of shapes, dtypes, static
    values and gradient requests is traced once, and once for each path where values decide; machine code is
    shared between shapes.

    Attributes:
        __wrapped__: the Python function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        static_argnums: Iterable[int] | int = (),
        static_argnames: Iterable[str] | str = (),
        name: str = "",
        options: Options = DEFAULT_OPTIONS,
        dynamic: Iterable[int | str] = (),
        max_paths: int = MAX_PATHS,
        derived: tuple[Callable[[Any], Any], Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self.name = name or function_name(function)
        self.options = options
        self.max_paths = max_paths
        self.static_argnums, self.static_argnames = static_argnums, static_argnames
        self.dynamic, self.derived = tuple(dynamic), derived
        of: Any = derived[1] if derived is not None else None
        of = of.__func__ if isinstance(of, CompiledMethod) else of
        self._newest: Newest = Newest(of._newest if of is not None else None)
        if static_argnums != () or static_argnames != ():
            self._dispatcher  # noqa: B018  it refuses those that the function does not have

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and innermost() is None:
            result = self._table.run(args, dtypes._default)
            if result is not STALE:
                return result
        try:
            return self._dispatcher.call(args, kwargs)
        except BaseException as error:
            show_users_frames(error)
            raise

    @made_once
    def _dispatcher(self) -> Dispatcher:
        """What runs calls; a function that transforms are made of alone may need none."""
        made = self._dispatcher_of(Dispatcher)
        made.newest = self._newest
        return made

    @made_once
    def _table(self) -> Table:
        return self._dispatcher.table

    def _dispatcher_of(self, kind: type[AnyDispatcher]) -> AnyDispatcher:
        function, name = self.__wrapped__, self.name
        signature = Signature(function, name, self.static_argnums, self.static_argnames, self.dynamic)
        return kind(function, name, signature, self.options, self.max_paths, CompiledFunction)

    @made_once
    def _watched(self) -> WatchedDispatcher:
        """What runs calls in anomaly mode."""
        return self._dispatcher_of(WatchedDispatcher)

    def _call_watched(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._watched.call(args, kwargs)

    def warmup(self, /, *args: Any, **kwargs: Any) -> None:
        """Compile for calls with such arguments, without running anything but a trace.

        Of Tensors that require grad the backward function is compiled as well. A later call of this kind
        traces and compiles nothing (`fail_on_recompile` says so).

        Args:
            args, kwargs: as of a call, also nested; arrays and Tensors, or an `ArraySpec` or `TensorSpec` in
                the place of each.

        Raises:
            ArgumentError: there are specs, and values decide which way the function takes.
            EagerOnlyError: the function cannot be compiled for them.

        Example:
            >>> loss.warmup(ArraySpec((3,)), ArraySpec((100, 3), "float32"))
        """
        (given, keywords), has_specs = ahead.examples((args, kwargs))
        ahead.warm(self.name, self._dispatcher.known_for(tuple(given), keywords), has_specs)

    # --- caches -----------------------------------------------------------------------------------------

    def cache_info(self) -> CacheInfo:
        """Hits, misses, traces, compilations, source hits, disk hits, size: of this function.

        Example:
            >>> loss.cache_info()
            CacheInfo(hits=1, misses=1, traces=1, compilations=1, source_hits=0, disk_hits=0, size=1)
        """
        own, table = self._dispatcher, self._table
        with own.lock:
            counters = own.counters
            return CacheInfo(
                hits=table.calls - own.later_misses,
                misses=own.misses + own.later_misses,
                traces=own.traces,
                compilations=counters.compilations,
                source_hits=counters.source_hits,
                disk_hits=counters.disk_hits,
                size=table.size,
            )

    def cache_clear(self) -> None:
        """Forget all traces and counts. Machine code stays, for whatever has the same source."""
        self._dispatcher.forget()
        self.__dict__.pop("_watched", None)

    # --- inspection ---------------------------------------------------------------------------------------

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known:
        """What a call would run, traced if need be; it does not run.

        Without arguments, where the function takes some, the latest that was traced, of the function itself
        or else of what transforms have made of it.
        """
        if not args and not kwargs and (newest := self._newest_known(0)) is not None:
            return newest
        return self._dispatcher.known_for(args, kwargs)

    def variant_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Variant, Sequence[Any]]:
        own = self._dispatcher
        known, call = own.known_for(args, kwargs), own.signature.call(args, kwargs)
        entry = self._table.entries.get(call.key)
        for paired in entry.variants if entry is not None else ():
            if isinstance(paired, Paired):
                return paired.function.variant_for(*paired.arguments(call.arrays))
        if not known.is_gradient and not any(one.wrt for one in known.programs):
            with enable_grad(), suppress(GradientError):  # it may write into an argument that would need one
                given = asking_for_gradients(args, kwargs)
                known, call = own.known_for(*given), own.signature.call(*given)
        is_whole = known.paths is None
        return known.programs[0] if is_whole else own.variant(known.traced), call.arrays

    def _newest_known(self, given: int) -> Known | None:
        """What was traced latest; None where that is nothing, and the function needs no arguments.

        Args:
            given: how many of the arguments are known.

        Raises:
            ArgumentError: nothing was traced yet, and there are arguments to choose.
        """
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        parameters = self._dispatcher.signature.parameters[given:]
        if not parameters:
            return None
        known = self._latest()
        if known is not None:
            return known
        if any(one.default is one.empty and one.kind not in variadic for one in parameters):
            raise ArgumentError(
                f"{self.name} has not been called yet, so there is no code to show. Call it before, or what "
                "grad and its kin make of it, or pass arguments like those of a call: "
                f"{self.name}.source(...)."
            )
        return None

    def _latest(self) -> Known | None:
        known = self._newest.own or self._newest.of_transforms
        if isinstance(known, Paths):
            return Known.of_path(known, known.paths[-1])
        if isinstance(known, Paired):
            return known.newest()
        return None if known is None else Known.of_variant(known)

    # --- methods ------------------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else CompiledMethod(self, instance)

    def transformed(
        self, function: Callable[..., Any], again: Callable[[Any], Any], dynamic: Iterable[int | str]
    ) -> CompiledFunction:
        """A function made of this one's, compiled under the same options; `again` makes it of this one."""
        return CompiledFunction(
            function,
            static_argnums=self.static_argnums,
            static_argnames=self.static_argnames,
            options=self.options,
            dynamic=dynamic,
            max_paths=self.max_paths,
            derived=(again, self),
        )

    def __repr__(self) -> str:
        return f"<compiled function {self.name}>"

    # --- copies and pickles -------------------------------------------------------------------------------

    @property
    def _settings(self) -> dict[str, Any]:
        return {
            "function": self.__wrapped__, "static_argnums": self.static_argnums,
            "static_argnames": self.static_argnames, "name": self.name, "options": self.options,
            "dynamic": self.dynamic, "max_paths": self.max_paths,
        }  # fmt: skip

    def made_anew(self) -> CompiledFunction:
        """The same function, without what was traced and compiled for this one."""
        return CompiledFunction(**self._settings, derived=self.derived)

    def __copy__(self) -> CompiledFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """By name or by what it is made of, with its machine code: see `pickling.py`."""
        return pickling.reduced(self, self._settings)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(**pickling.settings_of(*state))  # type: ignore[misc]


_call, _backward_to_leaves = CompiledFunction.__call__, CompiledNode.backward_to_leaves


def _watch_calls(wanted: bool) -> None:
    """Let calls and backward passes go the way that looks at what they give, or again the direct one."""
    CompiledFunction.__call__ = CompiledFunction._call_watched if wanted else _call  # type: ignore[method-assign]
    CompiledNode.backward_to_leaves = GradNode.backward_to_leaves if wanted else _backward_to_leaves  # type: ignore


listeners.append(_watch_calls)


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

    def warmup(self, /, *args: Any, **kwargs: Any) -> None:
        """As `CompiledFunction.warmup`."""
        self.__func__.warmup(self.__self__, *args, **kwargs)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known:
        if not args and not kwargs and (newest := self.__func__._newest_known(1)) is not None:
            return newest
        return self.__func__._known_for((self.__self__, *args), kwargs)

    def variant_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Variant, Sequence[Any]]:
        return self.__func__.variant_for((self.__self__, *args), kwargs)

    def _latest(self) -> Known | None:
        return self.__func__._latest()

    def transformed(
        self, function: Callable[..., Any], again: Callable[[Any], Any], dynamic: Iterable[int | str]
    ) -> CompiledFunction:
        inner = self.__func__
        return CompiledFunction(
            function,
            options=inner.options,
            dynamic=dynamic,
            max_paths=inner.max_paths,
            derived=(again, self),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledMethod, (self.__func__, self.__self__)

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
    signatures: Iterable[tuple[Any, ...]] = ...,
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...
def compile(
    function: Any = None,
    *,
    static_argnums: Iterable[int] | int = (),
    static_argnames: Iterable[str] | str = (),
    fastmath: bool = True,
    parallel: bool | None = None,
    max_paths: int = MAX_PATHS,
    signatures: Iterable[tuple[Any, ...]] = (),
) -> Any:
    """Compile a function of arrays or Tensors, and its gradient: trace, differentiate, generate, cache.

    Use it bare (`@compile`), with options (`@compile(parallel=False)`), on a method, a lambda, a
    `functools.partial`, or as `compile(function, fastmath=False)`. Arguments may be nested in lists, tuples,
    dicts, namedtuples and dataclasses. Numbers are operands like arrays, unless structure needs one (an
    axis, a size); what is neither is static, and another value is traced anew. Arrays that the function
    reaches through closures, globals and attributes are read in every call. What the function writes into its
    arguments, or into arrays that it reaches (`x[1:-1] = ...`, `x += 1`, `np.add(a, b, out=x)`), these hold
    after the call, as of a plain NumPy function; an argument that requires grad can be written under
    `no_grad`, one that a transform takes the gradient of cannot.

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
        signatures: what to compile for at once, each a tuple of arguments as `CompiledFunction.warmup` takes
            them.

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
    given: dict[str, Any] = {
        "static_argnums": static_argnums, "static_argnames": static_argnames, "fastmath": fastmath,
        "parallel": parallel, "max_paths": max_paths, "signatures": signatures,
    }  # fmt: skip
    if function is None:
        return functools.partial(cast(Any, compile), **given)
    if isinstance(function, classmethod | staticmethod):
        return type(function)(cast(Any, compile)(function.__func__, **given))
    if not callable(function):
        raise ArgumentError(
            f"compile: expected a function, found {function!r} of type {type(function).__name__}. "
            f"Write @compile above the function, or compile(function, option=...)."
        )
    if isinstance(function, CompiledFunction):
        function = function.__wrapped__
    if type(max_paths) is not int or max_paths < 1:
        raise ArgumentError(f"compile: max_paths must be an integer from 1 on, found {max_paths!r}.")
    made = CompiledFunction(
        function,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        options=Options(fastmath, parallel),
        dynamic=getattr(function, "differentiated", ()),
        max_paths=max_paths,
    )
    for signature in signatures:
        made.warmup(*signature)
    return made
