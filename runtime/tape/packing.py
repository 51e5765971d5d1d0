"""What the tape saves, in the user's hands: `saved_tensors_hooks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, GradientError
from ..values.nodes import observers
from ..values.operator_nodes import OperatorNode
from ..values.tensor import Tensor, make

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]
_hooks: list[tuple[Pack, Unpack]] = []
_refusals: list[str] = []
_classes: dict[type[OperatorNode], type[OperatorNode]] = {}


class saved_tensors_hooks:
    """In a `with` block every tensor that is saved for a backward pass is replaced by what `pack_hook` makes
    of it; `unpack_hook` makes a tensor of that when it is needed. The innermost pair counts.

    Example:
        >>> with saved_tensors_hooks(lambda x: x.numpy(), lambda array: tensor(array)):
        ...     y = exp(tensor([0.0], requires_grad=True))
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pair = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _refusals:
            raise GradientError(_refusals[-1])
        if not _hooks:
            observers.append(_pack)
        _hooks.append(self.pair)

    def __exit__(self, *error: Any) -> None:
        _hooks.pop()
        if not _hooks:
            observers.remove(_pack)


class save_on_cpu(saved_tensors_hooks):
    """Where saved tensors are anyway: nothing changes.

    Example:
        >>> with save_on_cpu():
        ...     y = exp(tensor([0.0], requires_grad=True))
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        super().__init__(lambda x: x, lambda x: x)


class disable_saved_tensors_hooks:
    """In a `with` block `saved_tensors_hooks` raises GradientError with this message.

    Example:
        >>> with pb.autograd.graph.disable_saved_tensors_hooks("none here"):
        ...     y = tensor(1.0, requires_grad=True) ** 2
    """

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        if _hooks:
            raise GradientError(self.message)
        _refusals.append(self.message)

    def __exit__(self, *error: Any) -> None:
        _refusals.pop()


class _Packed:
    """What stands for a saved array."""

    def __init__(self, value: np.ndarray, pack: Pack, unpack: Unpack) -> None:
        self.packed, self.unpack = pack(make(value)), unpack

    def array(self) -> np.ndarray:
        found = self.unpack(self.packed)
        if not isinstance(found, Tensor):
            raise ArgumentError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(found).__name__}."
            )
        return np.asarray(found._value)


def _pack(node: OperatorNode) -> None:
    """Replace what a node has saved by what the hooks make of it."""
    pack_hook, unpack_hook = _hooks[-1]
    versions = []
    for position, cell, version in node.each_version():
        saved = node.result if position < 0 else (node.operands or ())[position]
        if not isinstance(saved, np.ndarray):
            versions.append((position, cell, version))
            continue
        packed = _Packed(saved, pack_hook, unpack_hook)
        if position < 0:
            node.result = packed
        elif node.operands is not None:
            node.operands[position] = packed
        versions.append((position, [0, None], 0))
    node.replace_versions(versions)
    node.__class__ = _packed_class(type(node.given_out()))


def _packed_class(kind: type[OperatorNode]) -> type[OperatorNode]:
    found = _classes.get(kind)
    if found is None:
        found = _classes[kind] = type(kind.__name__, (_Unpacking, kind), {"__slots__": ()})
    return found


class _Unpacking(OperatorNode):
    __slots__ = ()
    runs_rules = False

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        operands, result = self.operands, self.result
        if not self.is_freed:
            self.operands = None if operands is None else list(map(_unpacked, operands))
            self.result = _unpacked(result)
        try:
            return super().pull(cotangents, wanted, create_graph)
        finally:
            self.operands, self.result = operands, result


def _unpacked(value: Any) -> Any:
    return value.array() if isinstance(value, _Packed) else value
