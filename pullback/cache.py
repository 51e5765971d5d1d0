"""The cache of machine code, which processes of one user share: as a file for other machines, its size."""

from pullback.codegen.machine.exchange import export, load
from pullback.codegen.machine.store import clear, folder, size

__all__ = ["clear", "export", "folder", "load", "size"]
