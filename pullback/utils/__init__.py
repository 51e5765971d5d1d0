"""torch.utils: its checkpoint."""

from . import checkpoint

__all__ = ["checkpoint"]
