"""Those of the declared functions that torch.special has."""

from .conventions import FUNCTIONS

globals().update(FUNCTIONS["special"])
__all__ = sorted(FUNCTIONS["special"])
