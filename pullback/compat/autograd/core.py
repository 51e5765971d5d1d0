"""`make_vjp` and `make_jvp` of functions of one argument: of which the others are made."""

from __future__ import annotations

from typing import Any

import pullback
from pullback.errors import DTypeError
from pullback.runtime.tracing.explored_programs import remembered_by, remembering
from pullback.runtime.values.flatten import flatten

from .conventions import Function, conjugated, holds_complex
from .insides import missing_of
from .rules import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
)  # fmt: skip
from .tracer import Box, getval, isbox
from .vspaces import VSpace, vspace

__all__ = [
    "Box", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum",
    "defvjp_argnums", "getval", "isbox", "make_jvp", "make_vjp", "primitive", "vspace",
]  # fmt: skip


def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """(pull, value): `pull(g)` is the cotangent of x, given that of the value.

    Of complex numbers it is HIPS autograd's: the cotangent times the complex derivative. Of a truth value,
    and of integers, it is zero.

    Raises:
        DTypeError: x holds a Python integer.

    Example:
        >>> pull, value = make_vjp(lambda x: x * x, 3.0)
        >>> pull(1.0), value
        (np.float64(6.0), np.float64(9.0))
    """
    try:
        value, pull = pullback.vjp(fun, x)
    except DTypeError:
        value = fun(x)
        if not all(dtype.kind in "iub" for dtype in flatten(vspace(value).dtype)[0]):
            raise
        return lambda g: vspace(x).zeros(), value
    has_complex = holds_complex(x) or holds_complex(value)

    def vjp(g: Any) -> Any:
        if not has_complex:
            return pull(g)[0]
        return conjugated(pull(conjugated(g))[0])

    return vjp, value


def make_jvp(fun: Function, x: Any) -> Function:
    """The function of a tangent of x that gives the value, and the tangent of the value.

    Example:
        >>> make_jvp(lambda x: x * x, 3.0)(1.0)
        (np.float64(9.0), np.float64(6.0))
    """
    memory = remembering.get()

    def jvp(g: Any) -> tuple[Any, ...]:
        with remembered_by(memory):
            return pullback.jvp(fun, (x,), (g,))

    return jvp


__getattr__ = missing_of(__name__)
