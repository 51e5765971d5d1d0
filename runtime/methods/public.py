"""The public functions, for values of every kind: see `value_kinds.py`.

`pb.tanh(x)` computes the same for a Tensor, an array and a number, and gives each in its own kind. So what
the namespaces hold are these functions around those of `runtime.functions`, which know tensors alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, TypeVar

from ...tracer.users_frames import show_users_frames
from ..functions.results import written
from ..functions.shapes.grids import tril_indices, triu_indices
from ..functions.signals.fourier import fftfreq, rfftfreq
from ..functions.tensor_arguments import TensorArguments, takes_tensors
from ..tape.composed import composed
from ..tape.direct import unsupported
from ..values.flatten import flatten, is_container, unflatten
from ..values.tensor import Tensor, TorchTensor
from ..values.value_kinds import Auxiliary, as_kind, plain, settled

F = TypeVar("F", bound=Callable[..., Any])
FUNCTIONS, MAKERS_OF_TENSORS = "pullback.runtime.functions.", "pullback.runtime.tensors."


def of_any_kind(function: F) -> F:
    """The function of Tensors, which gives arrays and numbers of NumPy's for those alone."""
    if hasattr(function, "around"):
        return functools.wraps(function)(function.around(of_any_kind))  # type: ignore[return-value]
    short = getattr(function, "short", unsupported)
    takes_options = getattr(short, "takes_options", False)
    read = TensorArguments(function)

    def checked(*arguments: Any, **options: Any) -> Any:
        taken, named = read(arguments, options)
        return settled(function(*taken, **named), (*arguments, *options.values()))

    replay = composed(checked, fewest=2) if _is_composed(function) else unsupported
    if hasattr(short, "of_several"):
        short, replay = composed(checked, short), unsupported

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            if "out" in options:
                out = options.pop("out")
                result = call(*arguments, **options)
                return result if out is None else written(out, result, function.__name__)
            if not options or takes_options:
                result = short(*arguments, **options)
                if result is not NotImplemented:
                    return result
            result = replay(*arguments, **options)
            if result is not NotImplemented:
                return result
            taken, named = read(arguments, options)
            if arguments and type(arguments[0]) is TorchTensor:
                result = function(*taken, **named)
                if type(result) is TorchTensor:
                    return result
                return settled(result, arguments)
            given = (*arguments, *options.values())
            result = settled(function(*taken, **named), given)
            return result if _holds_tensor(given) else _plain(result)
        except BaseException as error:
            show_users_frames(error)
            raise

    return call  # type: ignore[return-value]


def making_tensors(function: F) -> F:
    """The function, which takes no values, with Tensors for results, as `zeros` has."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        return as_kind(function(*arguments, **options), TorchTensor)

    return call  # type: ignore[return-value]


def of_own_kind(method: F) -> F:
    """The method, with a result of the tensor's kind also where it is made of positions, counts or bins."""
    short = getattr(method, "short", unsupported)
    read = TensorArguments(method)

    @functools.wraps(method)
    def call(self: Tensor, *arguments: Any, **options: Any) -> Any:
        try:
            if not options and (result := short(self, *arguments)) is not NotImplemented:
                return result
            taken, named = read((self, *arguments), options)
            result = method(*taken, **named)
            if type(result) is TorchTensor or type(self) is Auxiliary:
                return result
            return settled(result, (self, *arguments, *options.values()))
        except BaseException as error:
            show_users_frames(error)
            raise

    return call  # type: ignore[return-value]


def _holds_tensor(values: Iterable[Any]) -> bool:
    return any(
        isinstance(one, Tensor)
        or (isinstance(one, list | tuple) and _holds_tensor(one))
        or (isinstance(one, Mapping) and _holds_tensor(one.values()))
        for one in values
    )


def _plain(result: Any) -> Any:
    """The result with arrays and numbers in the place of what stands for them."""
    if not is_container(result):
        return plain(result)
    leaves, structure = flatten(result)
    return unflatten(structure, list(map(plain, leaves)))


def _is_composed(function: Callable[..., Any]) -> bool:
    """Whether what it computes follows from its arguments."""
    family, _, module = (function.__module__ or "").removeprefix(FUNCTIONS).partition(".")
    return family in FAMILIES and module not in DRAWING


def publish(namespace: dict[str, Any], module: str) -> None:
    """Let the functions of tensors in a namespace take values of every kind."""
    for name, value in namespace.items():
        if type(value) is FunctionType and _is_of_tensors(value):
            namespace[name] = public = making_tensors(value) if value in MAKERS else of_any_kind(value)
            public.__module__ = module


def _is_of_tensors(function: FunctionType) -> bool:
    """Whether it is one of the functions of tensors; of those that make tensors, whether it takes any."""
    place = function.__module__ or ""
    if place.startswith(FUNCTIONS):
        return not place.startswith(OF_FUNCTIONS)
    return place.startswith(MAKERS_OF_TENSORS) and takes_tensors(function)


OF_FUNCTIONS = f"{FUNCTIONS}loops."
"""Those of functions that call functions: the kinds of what these take and give are dealt with there."""
FAMILIES = frozenset(("elements", "matrices", "networks", "reductions", "shapes", "signals"))
"""Of functions that call no others of the user's ..."""
DRAWING = frozenset(("attention", "fractional_pooling", "low_rank", "noise", "recurrent"))
"""... and among them the modules that may draw random numbers."""
MAKERS = (fftfreq, rfftfreq, tril_indices, triu_indices)
"""What makes tensors of sizes alone."""
