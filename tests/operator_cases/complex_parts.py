"""Rows of the parts of functions of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.tracer.ops.complex_parts import PARTS_OF
from pullback.tracer.spec import complex_dtype

from .rows import Case, Row, Shape

PLANE_SHAPES: tuple[tuple[Shape, ...], ...] = (
    ((67,), (67,)), ((), ()), ((3, 1), (1, 4)), ((0, 3), (1, 3)), ((1,), (5,)),
)  # fmt: skip


def _of_plane(name: str, place: int) -> Callable[..., Any]:
    """A part of NumPy's function of complex numbers."""
    function = NAMES_OF_COMPLEX.get(name) or getattr(np, name)

    def apply(*parts: np.ndarray) -> Any:
        found = function(*(_complex(re, im) for re, im in zip(parts[::2], parts[1::2])))
        return found.imag if place else found.real

    return apply


def _complex(re: np.ndarray, im: np.ndarray) -> Any:
    return re + im * np.asarray(1j, complex_dtype(re.dtype))


NAMES_OF_COMPLEX: dict[str, Callable[..., Any]] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "log1p": lambda z: np.log(1 + z),
}  # fmt: skip
PLANE = tuple(
    Row(
        operator.name, _of_plane(name, place),
        tuple(Case(shapes * (len(operator.operands) // 2)) for shapes in PLANE_SHAPES),
        ulps=16.0, because="of a part the size of the complex number counts", special=False,
    )
    for name, parts in PARTS_OF.items() for place, operator in enumerate(parts)
)  # fmt: skip
