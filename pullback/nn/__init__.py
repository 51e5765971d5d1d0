"""The place where programs in PyTorch's style look for the functions of networks."""

from typing import TYPE_CHECKING

from . import functional

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        remedy = ". Write a function of Tensors that require grad, with those of pullback.nn.functional."
        is_module = name[:1].isupper()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{remedy if is_module else ''}")


__all__ = ["functional"]
