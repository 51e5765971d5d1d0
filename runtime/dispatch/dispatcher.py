"""Calls that no row of the table serves: bound, found by their key, or traced; see `table.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...tracer.collection import count_as_old, paused_collection
from ...tracer.errors import ComplexResultError, EagerOnlyError, PullbackError, TraceError
from ...tracer.forks import before_forks
from ...tracer.trace import ConstantNeeded, innermost
from ...tracer.uninterrupted import uninterrupted
from ..tracing.guards import Deviated
from ..tracing.signature import Call
from ..values import dtypes
from .inspection import Known
from .paired import Paired, has_complex_arrays
from .paths import Paths
from .shared import shared_programs
from .table import STALE
from .traced_function import TracedFunction
from .uncompiled import Uncompiled
from .variant import Variant


@functools.cache
@uninterrupted
def _import_code_generator() -> None:
    """Where no signal handler raises, which may leave the lock of a module taken that is being imported."""
    from ...codegen import pipeline  # noqa: F401
    from ...codegen.machine import small_calls  # noqa: F401
    from ...codegen.targets.python import emit  # noqa: F401

    count_as_old()


class Dispatcher(TracedFunction):
    """A function with its table of programs, and what a call does that has none yet."""

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call: in a trace the Python function itself, else bound, taken apart, traced if it is new."""
        if innermost() is not None:
            return self.function(*args, **kwargs)
        bound, keywords = self.signature.bind(args, kwargs)
        if bound is not args and not keywords:
            result = self.table.run(bound, dtypes.default_float())
            if result is not STALE:
                return result
        call = self.signature.call_bound(bound, keywords)
        result = self.table.run_call(call)
        return self._call_anew(call) if result is STALE else result

    def _call_anew(self, call: Call) -> Any:
        """Trace; enter the variant in the table only when it has run."""
        with before_forks(), self.lock, paused_collection:
            _import_code_generator()
            result = self.table.run_call(call)  # another thread may have been quicker
            if result is not STALE:
                return result
            call, shared = self._find_shared(call)
            if shared is not None:
                result = shared.run(call.arrays)
                if result is not STALE:
                    self.keep(call, shared).calls.value += 1
                    return result
            if has_complex_arrays(call):
                return self._enter_paired(call).run(call.arrays)
            missing: ConstantNeeded | None = None
            for _ in range(2):  # the first time it may have filled caches that it reaches
                try:
                    variant = self.variant(self.trace(call))
                except ComplexResultError:
                    return self._enter_paired(call).run(call.arrays)
                except EagerOnlyError as error:
                    return self._enter_uncompiled(call, error).run(call.arrays)
                except ConstantNeeded as needed:
                    missing = needed
                    break
                try:
                    result = variant.run_traced(call.arrays)
                except Deviated:  # code rounds otherwise, so that a loop takes other turns
                    variant = self.variant(self.trace(call, rolls_turns=False))
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
            self.share(call, self._enter(call, variant, calls=1))
            self.misses += 1
            return result

    def _find_shared(self, call: Call) -> tuple[Call, Variant | Paths | None]:
        """What another function object has left, and the call in its form: with the constants of that one."""
        if self.written:
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
        self.table.forget_numbers()
        return again, found

    def call_with_constants(self, call: Call, needed: ConstantNeeded) -> Any:
        signature = self.signature
        known, signature.constants = signature.constants, signature.constants | needed.names
        self.table.forget_numbers()
        args, kwargs = call.rebuild(call.leaves)
        try:
            return self.call(args, kwargs)
        except Exception as error:  # it fails all the same
            signature.constants = known
            is_explained = isinstance(error, PullbackError) and error.__cause__ is None
            if isinstance(needed.error, PullbackError) and not is_explained:
                raise needed.error from None
            raise

    def _enter_uncompiled(self, call: Call, error: EagerOnlyError) -> Uncompiled:
        """Remember that calls like this one cannot be compiled; the first of them warns."""
        self.warn_uncompiled(error)
        uncompiled = Uncompiled(self.function, call, self.name)
        self.table.enter(call, uncompiled)
        self.misses += 1
        self.traces += 1
        return uncompiled

    def _enter_paired(self, call: Call) -> Paired:
        """Complex arguments and results are those of a compiled function of their parts."""
        paired = Paired(self.function, call, self._compiled)
        self.keep(call, paired)
        self.misses += 1
        return paired

    def _compiled(self, function: Callable[..., Any]) -> Any:
        return self.compile(
            function,
            static_argnames=self.signature.static,
            name=self.name,
            options=self.options,
            dynamic=self.signature.dynamic,
            max_paths=self.max_paths,
        )

    def _enter(self, call: Call, variant: Variant, calls: int) -> Variant | Paths:
        """Keep a variant that has run so many times; where values decide, as the first of its paths."""
        made = Paths(self, call, variant, calls) if variant.traced.guards else variant
        self.keep(call, made)
        return made

    def share(self, call: Call, made: Variant | Paths) -> None:
        shared_programs.keep(self, call, made)

    def forget(self) -> None:
        """All traces and counts. Machine code stays, for whatever has the same source."""
        shared_programs.forget(self)
        with self.lock:
            self.table.clear()
            self.newest.forget()
            self.forget_counts()

    def known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known:
        """What a call would run, traced if need be; it does not run."""
        call = self.signature.call(args, kwargs)
        with before_forks(), self.lock, paused_collection:
            _import_code_generator()
            entry = self.table.entries.get(call.key)
            for known in entry.variants if entry is not None else ():
                if isinstance(known, Variant) and known.is_valid():
                    return Known.of_variant(known)
                if isinstance(known, Paths) and known.is_valid():
                    return Known.of_path(known, known.path_of(call.arrays))
                if isinstance(known, Paired):
                    return known.known(call.arrays)
            try:
                if has_complex_arrays(call):
                    raise ComplexResultError("complex arguments are taken by parts")
                traced = self.trace_only(call)
            except ComplexResultError:
                return self._enter_paired(call).known(call.arrays)
            except ConstantNeeded as needed:
                self.signature.constants |= needed.names
                self.table.forget_numbers()
                return self.known_for(args, kwargs)
            made = self._enter(call, self.variant(traced), calls=0)
            return Known.of_path(made, made.paths[0]) if isinstance(made, Paths) else Known.of_variant(made)
