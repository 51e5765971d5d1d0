"""Those of the declared functions that torch.nn.functional has."""

from .conventions import FUNCTIONS

globals().update(FUNCTIONS["nn.functional"])
__all__ = sorted(FUNCTIONS["nn.functional"])
