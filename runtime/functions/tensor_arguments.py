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


def takes_tensors(function: Callable[..., Any]) -> bool:
    """Whether a parameter is a Tensor."""
    annotations = inspect.get_annotations(function)
    return any(_read_of(one) for name, one in annotations.items() if name != "return")


def _read_of(annotation: object) -> Read | None:
    return _READS.get(" ".join(str(annotation).split()))


class TensorArguments:
    """What a function's parameters are given, by their annotations, which a first call reads."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = function.__name__
        self._positional: list[tuple[str, Read | None]] | None = None

    def _look(self) -> list[tuple[str, Read | None]]:
        parameters = inspect.signature(self._function).parameters.values()
        found = [(one, _read_of(one.annotation)) for one in parameters]
        self._more = next(((one.name, read) for one, read in found if one.kind is one.VAR_POSITIONAL), None)
        self._named = {one.name: read for one, read in found if read is not None and one.kind in _NAMED}
        self._positional = [(one.name, read) for one, read in found if one.kind in _POSITIONAL]
        return self._positional

    def __call__(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Arguments:
        """The arguments as the function takes them; those that are Tensors already cost next to nothing."""
        positional = self._look() if self._positional is None else self._positional
        for value, (_, read) in zip(arguments, positional):
            if type(value) is not TorchTensor and read is not None:
                arguments = self._read(arguments, positional)
                break
        else:
            if self._more is not None and len(arguments) > len(positional):
                arguments = self._read(arguments, positional)
        if options:
            named, function = self._named, self._name
            options = {
                name: named[name](value, function, name) if name in named else value
                for name, value in options.items()
            }
        return arguments, options

    def _read(
        self, arguments: tuple[Any, ...], positional: list[tuple[str, Read | None]]
    ) -> tuple[Any, ...]:
        function, count = self._name, len(positional)
        found = [
            value if read is None else read(value, function, name)
            for value, (name, read) in zip(arguments, positional)
        ]
        name, more = self._more or ("", None)
        rest = arguments[count:]
        if more is not None:
            rest = tuple(more(value, function, f"{name}[{place}]") for place, value in enumerate(rest))
        return (*found, *rest)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
