"""For tests of one's own functions: gradients against finite differences, and rules of one's own proved."""

from pullback.runtime.autograd.gradcheck import gradcheck, gradgradcheck
from pullback.runtime.autograd.rule_checks import check_rules

__all__ = ["check_rules", "gradcheck", "gradgradcheck"]
