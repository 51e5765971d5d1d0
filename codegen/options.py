"""How programs are generated and compiled."""

from __future__ import annotations

from ..tracer.records import record


@record(frozen=True)
class Options:
    """How programs are generated and compiled."""

    fastmath: bool = True
    """Sums may be reordered and products fused into sums; nan and inf stay what they are."""
    parallel: bool | None = None
    """Loops over threads: always, never, or (None) above a measured size."""


DEFAULT_OPTIONS = Options()
