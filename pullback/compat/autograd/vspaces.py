"""The vectors like a value: what HIPS autograd calls its vector space."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from .conventions import LEAVES, conjugated, put_together, taken_apart
from .insides import refuse

__all__ = ["VSpace", "vspace"]


class VSpace:
    """Values of the structure, shapes and dtypes of a given one, as vectors over the real numbers.

    Two are equal where these are. Complex arrays have a real and an imaginary direction for each element.

    Raises:
        TypeError: the value holds what is neither an array nor a number.

    Example:
        >>> space = VSpace([1.0, np.zeros((2, 2))])
        >>> space.size, space.zeros()[1].shape
        (5, (2, 2))
    """

    def __init__(self, value: Any) -> None:
        leaves, self._structure = taken_apart(value)
        for leaf in leaves:
            if not isinstance(leaf, LEAVES):
                raise TypeError(f"vspace: {leaf!r} is neither an array nor a number.")
        self._specs = [(np.shape(leaf), np.result_type(leaf)) for leaf in leaves]

    @staticmethod
    def register(*args: Any) -> NoReturn:
        """Refused: pullback takes containers apart by itself."""
        refuse("VSpace")

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, VSpace):
            return NotImplemented
        return self._structure == other._structure and self._specs == other._specs

    def __hash__(self) -> int:
        return hash((self._structure, tuple(self._specs)))

    def __repr__(self) -> str:
        return f"VSpace({self._of([f'{dtype}{list(shape)}' for shape, dtype in self._specs])})"

    @property
    def size(self) -> int:
        """The number of directions."""
        return sum((1 + (dtype.kind == "c")) * math.prod(shape) for shape, dtype in self._specs)

    @property
    def iscomplex(self) -> bool:
        """Whether an array or a number is complex."""
        return any(dtype.kind == "c" for _, dtype in self._specs)

    @property
    def shape(self) -> Any:
        """The shape of an array; of a container, those of its leaves in such a container."""
        return self._of([shape for shape, _ in self._specs])

    @property
    def dtype(self) -> Any:
        """The dtype of an array; of a container, those of its leaves in such a container."""
        return self._of([dtype for _, dtype in self._specs])

    def zeros(self) -> Any:
        """The vector zero."""
        return self._of([np.zeros(*spec) for spec in self._specs])

    def ones(self) -> Any:
        """The sum of all directions: ones, of complex arrays 1 + i."""
        ones = {True: 1 + 1j, False: 1}
        return self._of([np.full(shape, ones[dtype.kind == "c"], dtype) for shape, dtype in self._specs])

    def randn(self) -> Any:
        """A draw from the normal distribution, from the state that `np.random.seed` sets."""
        return self._of([_drawn(*spec) for spec in self._specs])

    def standard_basis(self) -> Iterator[Any]:
        """One vector for each direction."""
        for place, (shape, dtype) in enumerate(self._specs):
            for element in np.ndindex(*shape):
                for one in (1.0, 1.0j) if dtype.kind == "c" else (1.0,):
                    leaves = [np.zeros(*spec) for spec in self._specs]
                    leaves[place][element] = one
                    yield self._of(leaves)

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors."""
        return self._of([a + b for a, b in zip(taken_apart(x)[0], taken_apart(y)[0])])

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """The vector times a real number."""
        return self._of([leaf * a for leaf in taken_apart(x)[0]])

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The real inner product of two vectors."""
        return sum(_product(a, b) for a, b in zip(taken_apart(x)[0], taken_apart(y)[0]))

    def covector(self, x: Any) -> Any:
        """The conjugate: what HIPS autograd's cotangents are."""
        return conjugated(x)

    def _of(self, leaves: list[Any]) -> Any:
        return put_together(self._structure, leaves)


vspace = VSpace


def _drawn(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    draw = np.random.standard_normal  # the state that programs seed
    found = np.asarray(draw(shape)).astype(dtype)
    return found + 1j * draw(shape) if dtype.kind == "c" else found


def _product(x: Any, y: Any) -> Any:
    product = np.real(np.conj(x) * y) if np.iscomplexobj(x) or np.iscomplexobj(y) else x * y
    return np.sum(product)
