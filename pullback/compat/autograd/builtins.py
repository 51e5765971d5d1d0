"""Python's names for containers and classes, which pullback takes as they are."""

from __future__ import annotations

import builtins
from typing import Any

from pullback.runtime.tracing.asked_types import ASKED
from pullback.runtime.values.flatten import flatten

from .insides import missing_of
from .tracer import AsksForTensors, Box, isbox

__all__ = ["Box", "DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

tuple, list, dict, isinstance = builtins.tuple, builtins.list, builtins.dict, builtins.isinstance
type: Any = ASKED["type"]
"""`type(x)`: of what stands for an array that is differentiated, the array's."""


class AsksForContainers(AsksForTensors):
    """The metaclass of classes whose instances are containers that hold Tensors."""

    kinds: builtins.tuple[builtins.type, ...] = ()

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.kinds) and any(map(isbox, flatten(instance)[0]))


class SequenceBox(Box, metaclass=AsksForContainers):
    """For `isinstance(x, SequenceBox)`: whether x is a list or tuple in which something is differentiated."""

    kinds = (list, tuple)


class DictBox(Box, metaclass=AsksForContainers):
    """For `isinstance(x, DictBox)`: whether x is a dict in which something is differentiated."""

    kinds = (dict,)


__getattr__ = missing_of(__name__)
