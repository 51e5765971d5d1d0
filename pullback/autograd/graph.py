"""What the tape is made of, and what it saves, under the names of torch.autograd.graph."""

from pullback.runtime.tape.packing import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from pullback.runtime.values.nodes import GradNode as Node

__all__ = ["Node", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]
