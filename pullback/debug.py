"""Looking at values while compiled functions run: `print`, `callback`, `breakpoint`."""

from pullback.runtime.diagnosis.debugging import callback
from pullback.runtime.diagnosis.debugging import debug_breakpoint as breakpoint
from pullback.runtime.diagnosis.debugging import debug_print as print

__all__ = ["breakpoint", "callback", "print"]
