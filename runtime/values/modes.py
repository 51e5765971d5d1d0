"""Whether operations are recorded for a backward pass: context managers that also decorate functions.

The state belongs to the thread (and, in asynchronous code, to the task).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar

recording: ContextVar[bool] = ContextVar("grad_enabled", default=True)
is_recording = recording.get  # what the tape asks before every operation

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded now.

    Example:
        >>> with no_grad():
        ...     is_grad_enabled()
        False
    """
    return recording.get()


class _GradMode:
    """A context manager that sets the mode, restores it, and decorates functions and generators."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._former: list[bool] = []

    def _again(self) -> _GradMode:
        """A fresh one for each call of a decorated function."""
        return _GradMode(self.mode)

    def __enter__(self) -> None:
        self._former.append(recording.get())
        recording.set(self.mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recording.set(self._former.pop())

    def __call__(self, function: Decorated) -> Decorated:
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return in_mode  # type: ignore[return-value]

    def _decorate_generator(self, function: Callable[..., Any]) -> Any:
        """The mode holds while the generator's own code runs, not between its steps."""

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            send, value = generator.send, None
            while True:
                try:
                    with self._again():
                        produced = send(value)
                except StopIteration as end:
                    return end.value
                try:
                    value = yield produced
                    send = generator.send
                except GeneratorExit:
                    with self._again():
                        generator.close()
                    raise
                except BaseException as error:  # whatever the consumer throws in belongs to the generator
                    send, value = generator.throw, error

        return in_mode


class no_grad(_GradMode):
    """Record nothing inside: `with no_grad(): ...`, or as a decorator, with or without parentheses.

    Example:
        >>> x = ones(2, requires_grad=True)
        >>> with no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Record inside, also within `no_grad`.

    Example:
        >>> with no_grad(), enable_grad():
        ...     is_grad_enabled()
        True
    """

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Record or not, by a flag: at once as a function, or for the length of a `with` block.

    Example:
        >>> with set_grad_enabled(False):
        ...     is_grad_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before = recording.get()
        recording.set(self.mode)

    def __enter__(self) -> None:
        self._former.append(self._before)
        recording.set(self.mode)

    def __call__(self, function: Decorated) -> Decorated:
        recording.set(self._before)  # as a decorator it acts inside the function only
        return super().__call__(function)


class inference_mode(_GradMode):
    """`no_grad` under the name that PyTorch gives its stricter form; here the two are the same.

    Example:
        >>> with inference_mode():
        ...     is_grad_enabled()
        False
    """

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


def is_inference_mode_enabled() -> bool:
    """Whether nothing is recorded.

    Example:
        >>> with inference_mode():
        ...     print(is_inference_mode_enabled())
        True
    """
    return not recording.get()
