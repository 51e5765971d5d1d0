"""Arguments of public functions as their annotations say: arrays and numbers where these say Tensor.

A program in NumPy gives arrays and numbers to `pb.poisson`, `pb.cross` and their kin. What stands for them is
made here, once, before a function of tensors runs; so no function asks what it is given, and what can't be a
tensor is refused with the names of the function and of the argument.

| annotation | what is given to the function |
|---|---|
| `Tensor` | a Tensor: of an array or a number what stands for it; all else raises ArgumentError |
| `Operand` | the same, but Python's numbers as they are |
| `Sequence[Tensor]`, `Iterable[Tensor]`, `*tensors: Tensor` | such tensors |
| any of these `| None` | None as well |
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..values.tensor import TorchTensor
from .common import NUMBERS, tensor, tensors

Read = Callable[[Any, str, str], Any]
Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]


def _operand(value: Any, function: str, argument: str) -> Any:
    return value if isinstance(value, NUMBERS) else tensor(value, function, argument)


def _several(value: Any, function: str, argument: str) -> Any:
    if type(value) in (list, tuple) and all(type(one) is TorchTensor for one in value):
        return value
    return tensors(value, function, argument)


def _or_none(read: Read) -> Read:
    return lambda value, function, argument: None if value is None else read(value, function, argument)


_READS: dict[str, Read] = {
    "Tensor": tensor, "Operand": _operand, "Sequence[Tensor]": _several, "Iterable[Tensor]": _several,
}  # fmt: skip
_READS |= {f"{annotation} | None": _or_none(read) for annotation, read in _READS.items()}


class Reader:
    """What a function's parameters are given, by their annotations.

    Attributes:
        takes_tensors: whether a parameter is a Tensor.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        parameters = inspect.signature(function).parameters.values()
        found = [(one, _READS.get(re.sub(r"\s+", " ", str(one.annotation)))) for one in parameters]
        self._function = name
        self._positional = [(one.name, read) for one, read in found if one.kind in _POSITIONAL]
        self._more = next(((one.name, read) for one, read in found if one.kind is one.VAR_POSITIONAL), None)
        self._named = {one.name: read for one, read in found if read is not None and one.kind in _NAMED}
        self.takes_tensors = any(read is not None for _, read in found)

    def __call__(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Arguments:
        """The arguments as the function takes them; those that are Tensors already cost next to nothing."""
        for value, (_, read) in zip(arguments, self._positional):
            if type(value) is not TorchTensor and read is not None:
                arguments = self._read(arguments)
                break
        else:
            if self._more is not None and len(arguments) > len(self._positional):
                arguments = self._read(arguments)
        if options:
            named, function = self._named, self._function
            options = {
                name: named[name](value, function, name) if name in named else value
                for name, value in options.items()
            }
        return arguments, options

    def _read(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        function, count = self._function, len(self._positional)
        found = [
            value if read is None else read(value, function, name)
            for value, (name, read) in zip(arguments, self._positional)
        ]
        name, more = self._more or ("", None)
        rest = arguments[count:]
        if more is not None:
            rest = tuple(more(value, function, f"{name}[{place}]") for place, value in enumerate(rest))
        return (*found, *rest)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
