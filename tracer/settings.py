"""What environment variables ask for."""

import os

from .errors import ArgumentError

CHECKING = bool(os.environ.get("PULLBACK_CHECK"))
"""Whether every graph that a pass makes is verified, and attributes can only be read. Tests ask for it."""
ALL_FRAMES = bool(os.environ.get("PULLBACK_ALL_FRAMES"))
"""Whether tracebacks show pullback's frames as well."""
WAYS_TO_RUN = ("compiled", "uncompiled", "checked")


def way_to_run() -> str:
    """How programs are run, by PULLBACK_RUN: as machine code, by Python, or by the checked interpreter.

    Raises ArgumentError where it asks for something else.
    """
    asked = os.environ.get("PULLBACK_RUN") or "compiled"
    if asked not in WAYS_TO_RUN:
        raise ArgumentError(f"PULLBACK_RUN is {asked!r} in the environment; it may be {WAYS_TO_RUN}.")
    return asked
