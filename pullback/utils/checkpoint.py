"""Checkpoints under the conventions of torch.utils.checkpoint."""

from pullback.runtime.functions.loops.checkpointed_calls import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
