"""What a compiled kernel takes, and how it is to be compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

import numpy as np

from ...tracer.records import record


@record(frozen=True)
class ArrayType:
    """An array argument of a kernel.

    The compiled function accepts exactly what this says, of type `numpy.ndarray` itself. `layout` "C" and
    "F" promise contiguity, "A" promises nothing. `readonly` documents an argument that the kernel does not
    write; the code is the same, so it takes no part in comparisons. `extents` may fix some dimensions (0: any
    size): strides are then constants, from which LLVM sees that neighbours do not overlap.

    >>> ArrayType(np.dtype("float64"), 2, "C", (0, 3))
    ArrayType(dtype=dtype('float64'), ndim=2, layout='C', extents=(0, 3), readonly=False)
    """

    dtype: np.dtype
    ndim: int
    layout: Literal["C", "F", "A"]
    extents: tuple[int, ...] = ()
    readonly: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        order = {"C": "C-contiguous ", "F": "Fortran-contiguous ", "A": ""}[self.layout]
        shape = f" {self.extents} (0: any extent)" if any(self.extents) else ""
        return f"{order}{self.dtype} array of rank {self.ndim}{shape}"

    @property
    def required_flags(self) -> int:
        """The bits that must be set in `array.flags.num`: alignment, and contiguity if promised."""
        return 0x100 | {"C": 0x1, "F": 0x2, "A": 0}[self.layout]

    def accepts(self, argument: object) -> bool:
        """Whether compiled code takes `argument`; it makes the same checks itself."""
        return (
            type(argument) is np.ndarray
            and argument.dtype == self.dtype
            and argument.ndim == self.ndim
            and all(one in (0, found) for one, found in zip(self.extents, argument.shape))
            and argument.flags.num & self.required_flags == self.required_flags
        )


@record(frozen=True)
class ScalarType:
    """A scalar argument of a kernel: int64, float64, float32 or bool; Python's numbers convert to it."""

    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.dtype} scalar"


COMBINED = frozenset({"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"})
"""Operators with which totals of parts can be combined: `sharing.py` has their instructions."""


@record(frozen=True)
class Sharing:
    """How threads share a kernel over `range(start, stop)`: which arrays, by position, each has for itself.

    What is in `totals` is combined as the operators say ("add", "maximum", ...), in the order of the parts.
    """

    private: tuple[int, ...] = ()
    totals: tuple[tuple[int, str], ...] = ()


@record(frozen=True)
class CompileOptions:
    """How a kernel is compiled.

    `fastmath` names the LLVM flags that arithmetic gets: a product and a sum may be fused, the sign of zero
    may be lost, a division may become a multiplication. The flags that assume away nan and inf are left out
    on purpose. `+=` may be reordered besides ("reassoc"), so that sums vectorise; elsewhere that flag would
    fold `(a + b) - a`, which can be nan, to `b`. `vector_width` is the preferred width of vectors in bits,
    where the processor has such vectors; 0 leaves the choice to LLVM, which prefers 256. `brief_loops` are
    the positions, among the loops of the function, of those that are not worth vectors. With `sharing` the
    last two parameters of the kernel are the bounds of a loop; callers give instead its extent, a number of
    parts and the number of threads that share the parts.
    """

    fastmath: frozenset[str] = frozenset({"arcp", "contract", "nsz"})
    vector_width: int = 512
    brief_loops: frozenset[int] = frozenset()
    sharing: Sharing | None = None


DEFAULT_OPTIONS = CompileOptions()


def given_arguments(
    kernel: Sequence[ArrayType | ScalarType], sharing: Sharing | None
) -> tuple[ArrayType | ScalarType, ...]:
    """What Python gives a kernel with these arguments: for bounds, it gives extent, parts and threads."""
    return tuple(kernel) if sharing is None else (*kernel, kernel[-1])
