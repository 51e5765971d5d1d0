"""Calls of compiled functions in anomaly mode (`pullback.autograd.detect_anomaly`).

They go to a table of their own. Its programs are the same; each call looks at what they give, and where that
is not finite, asks `diagnosis` why. Calls outside of the mode find no trace of it: whoever turns it on
exchanges what a call runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..diagnosis.anomalies import are_finite, diagnose, diagnose_failure
from ..tracing.guards import Deviated
from ..tracing.signature import Call
from .dispatcher import Dispatcher
from .paths import Paths
from .prefixes import Prefixes
from .siblings import Path
from .variant import Kernel, Variant


class WatchedVariant(Variant):
    """A variant whose results are looked at."""

    def _checked_forward(self) -> Kernel:
        from ...codegen.drawn_once import streams_of  # not at start
        from ...codegen.rolling.roll import roll

        run, traced = super()._checked_forward(), self.traced
        streams = streams_of(traced.graph)
        results = slice(traced.first_guard)

        def run_watched(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
            states = {one: one.get_state() for one in streams}
            try:
                produced = run(arrays)
            except Deviated:
                raise
            except Exception:
                graph = roll(traced.graph).graph
                diagnose_failure(traced.name, graph, arrays, graph.inputs[: traced.given], states)
                raise
            if not are_finite(produced[results]):
                graph = roll(traced.graph).graph
                diagnose(traced.name, graph, arrays, results, graph.inputs[: traced.given], states)
            return produced

        return run_watched


class WholePaths(Prefixes):
    """Paths that share no prefixes: what these hand on may be infinite where no result is."""

    def _merge(self, path: Path) -> None:
        return None


class WatchedDispatcher(Dispatcher):
    """A function with its table of programs that are watched, which it shares with no other."""

    variants, plans = WatchedVariant, WholePaths

    def _find_shared(self, call: Call) -> tuple[Call, None]:
        return call, None

    def share(self, call: Call, made: Variant | Paths) -> None:
        pass
