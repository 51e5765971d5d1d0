"""For tests of one's own functions: gradients against finite differences."""

from pullback.runtime.gradcheck import gradcheck, gradgradcheck

__all__ = ["gradcheck", "gradgradcheck"]
