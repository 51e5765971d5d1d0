"""The vectors like arrays: HIPS autograd's classes of them, which are refused; `extend.vspace` has them."""

from pullback.compat.autograd.insides import missing_of

__getattr__ = missing_of(__name__)
