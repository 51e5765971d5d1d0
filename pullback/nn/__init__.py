"""The place where programs in PyTorch's style look for the functions of networks."""

from . import functional

__all__ = ["functional"]
