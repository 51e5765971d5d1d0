"""What stands for objects of SciPy's whose methods Tensors reach: distributions, interpolants."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...tracer.errors import UnsupportedError
from ..functions.common import fail
from ..numpy_api.values import of_arrays
from ..tensors.conversion import holds_tensor


def any_tensor(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    return any(map(holds_tensor, (*arguments, *options.values())))


def for_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method where a Tensor is among its arguments, with results of NumPy's kind; else SciPy's own."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        if any_tensor(arguments, options):
            return of_arrays(method(self, *arguments, **options))
        return getattr(self._real, method.__name__)(*arguments, **options)

    return call


class Refusing:
    """What stands for one of SciPy's objects: what it does not have is SciPy's, on plain arrays."""

    _name: str
    """With its module: `scipy.stats.norm`."""
    _real: Any

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._refusing(name, found) if callable(found) and name[0] != "_" else found

    def _refusing(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            if self._is_refused(arguments, options):
                self._refuse(name)
            return method(*arguments, **options)

        return call

    def _is_refused(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        """Whether arguments of a method of SciPy's are more than it can take."""
        return any_tensor(arguments, options)

    def _refuse(self, method: str) -> Any:
        fail(
            UnsupportedError,
            f"{self._name}.{method} is not supported on a Tensor. Write it with supported functions, or, "
            "where no gradient is needed, call it on plain arrays.",
        )
