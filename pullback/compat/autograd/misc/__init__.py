"""HIPS autograd's `misc`: containers as vectors, optimisers, fixed points."""

from pullback.compat.autograd.insides import missing_of as _missing_of

from .flatten import flatten
from .tracers import const_graph

__all__ = ["const_graph", "flatten"]

__getattr__ = _missing_of(__name__)
