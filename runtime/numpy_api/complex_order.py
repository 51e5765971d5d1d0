"""NumPy's order of complex numbers: by their real parts, of equal ones by their imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..functions import PUBLIC, declared
from ..functions.shapes import joining, movement
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .protocols import OF_COMPLEX
from .values import promoted

where, isnan = PUBLIC["where"], PUBLIC["isnan"]


def extreme(x: Tensor, is_largest: bool, axes: Any, keepdims: bool) -> Tensor:
    """The largest or smallest elements along dimensions; equal ones share the gradient.

    It is nan in both parts where one of the elements is in any.
    """
    of, beyond = (declared.amax, -math.inf) if is_largest else (declared.amin, math.inf)
    real, imag = PUBLIC["real"](x), PUBLIC["imag"](x)
    is_first = real == of(real, axes, True)
    is_found = is_first & (imag == of(where(is_first, imag, beyond), axes, True))
    parts = [of(where(is_found, one, beyond), axes, keepdims) for one in (real, imag)]
    is_undefined = declared.any(isnan(x), axes, keepdims)
    return PUBLIC["complex"](*(where(is_undefined, math.nan, one) for one in parts))


def _operands(x: Any, y: Any) -> list[Tensor]:
    return promoted([tensor_of(x), tensor_of(y)])


def _extreme_of_two(is_largest: bool) -> Callable[..., Tensor]:
    def call(x: Any, y: Any) -> Tensor:
        both = joining.stack(movement.broadcast_tensors(*_operands(x, y)))
        return extreme(both, is_largest, 0, False)

    return call


def _other_than_nan(is_largest: bool) -> Callable[..., Tensor]:
    def call(x: Any, y: Any) -> Tensor:
        a, b = _operands(x, y)
        return where(isnan(a), b, where(isnan(b), a, _extreme_of_two(is_largest)(a, b)))

    return call


def _compared(strict: str, last: str) -> Callable[..., Tensor]:
    """Real parts compared by one function, imaginary ones, where these are equal, by another."""

    def call(x: Any, y: Any) -> Tensor:
        a, b = _operands(x, y)
        is_known = ~(isnan(PUBLIC["imag"](a)) | isnan(PUBLIC["imag"](b)))
        real = PUBLIC["real"](a), PUBLIC["real"](b)
        is_last = PUBLIC["eq"](*real) & PUBLIC[last](PUBLIC["imag"](a), PUBLIC["imag"](b))
        return PUBLIC[strict](*real) & is_known | is_last

    return call


OF_COMPLEX |= {
    "maximum": _extreme_of_two(True), "minimum": _extreme_of_two(False),
    "fmax": _other_than_nan(True), "fmin": _other_than_nan(False),
    "less": _compared("lt", "lt"), "less_equal": _compared("lt", "le"),
    "greater": _compared("gt", "gt"), "greater_equal": _compared("gt", "ge"),
}  # fmt: skip
