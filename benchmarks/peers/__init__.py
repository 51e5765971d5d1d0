"""The libraries that are compared, by name. Each module here says how the users of one would write it."""

from __future__ import annotations

from .autograd import Autograd
from .jax import Jax
from .library import Library
from .native import Native
from .numpy import NumpyForward
from .ours import Pullback
from .pytensor import PyTensor
from .torch import Torch, TorchCompile, TorchCompileFunctional

OURS = "pullback"
NATIVE = "c"
PEERS: dict[str, type[Library]] = {
    OURS: Pullback,
    "jax": Jax,
    "torch": Torch,
    "torch-compile": TorchCompile,
    "torch-compile-func": TorchCompileFunctional,
    "pytensor": PyTensor,
    "autograd": Autograd,
    "numpy-forward": NumpyForward,
    NATIVE: Native,
}

__all__ = ["NATIVE", "OURS", "PEERS", "Library"]
