"""For tests of one's own functions: gradients against finite differences, rules proved, source and memory.

`pullback.testing.strategies` has strategies of hypothesis; fixtures of pytest are a plugin, docs/testing.md.
"""

from pullback.runtime.autograd.gradcheck import gradcheck, gradgradcheck
from pullback.runtime.autograd.rule_checks import check_rules
from pullback.runtime.testing.gradients import check_gradients
from pullback.runtime.testing.peak_memory import assert_peak_bytes, limited_to, peak_bytes
from pullback.runtime.testing.reference import reference_source

__all__ = [
    "assert_peak_bytes", "check_gradients", "check_rules", "gradcheck", "gradgradcheck", "limited_to",
    "peak_bytes", "reference_source",
]  # fmt: skip
