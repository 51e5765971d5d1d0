"""Generated source that is the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch.compiled import CompiledFunction, CompiledMethod
from ..dispatch.compiled import compile as compiled


def reference_source(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> str:
    """What `function.source(*args, **kwargs)` is on the reference machine, whichever machine this is.

    Args:
        function: a compiled function, or one to compile.

    Example:
        >>> "for i in range(n)" in reference_source(lambda x: 2 * x, np.ones(3))
        True
    """
    from ...codegen.cost.machine import REFERENCE, assuming  # not at start

    with assuming(REFERENCE):
        return _made_anew(function).source(*args, **kwargs)


def _made_anew(function: Any) -> CompiledFunction | CompiledMethod:
    """The same function without programs: what it has was made for this machine."""
    if isinstance(function, CompiledMethod):
        inner = _made_anew(function.__func__)
        assert isinstance(inner, CompiledFunction)
        return CompiledMethod(inner, function.__self__)
    return function.made_anew() if isinstance(function, CompiledFunction) else compiled(function)
