"""For tests of one's own functions: gradients against finite differences."""

from pullback.runtime.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = ["gradcheck", "gradgradcheck"]
