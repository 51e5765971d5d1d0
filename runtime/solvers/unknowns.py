"""What solvers look for: nested values as one vector, and functions of such values as those of vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import DTypeError, OutputError
from ...tracer.trace import current_trace, is_tracing
from ..functions.common import common_dtype, fail, filled
from ..functions.elements.complex_numbers import complex as complex_of
from ..functions.shapes.joining import cat
from ..functions.shapes.movement import reshape_to, transpose
from ..functions.structures import Structured, as_dtype, structured
from ..tape.apply import of_kind
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import Auxiliary, NumpyScalar, NumpyTensor, PythonNumber, plain

Function = Callable[..., Any]
FLOAT64 = np.dtype("float64")


def floating_dtype(given: Structured, function: str) -> np.dtype:
    """The dtype that all values of a structure take together: double precision for integers.

    Raises:
        DTypeError: some are complex.
    """
    if not given.tensors:
        return FLOAT64
    found = common_dtype(*given.tensors) if len(given.tensors) > 1 else given.tensors[0]._value.dtype
    if found.kind == "c":
        fail(
            DTypeError,
            f"{function}: the unknowns are complex. Solve for their real and imaginary parts.",
        )
    return found if found.kind == "f" else FLOAT64


def number(value: Tensor) -> Any:
    """A Tensor of one as the number of NumPy's that a user's function is given."""
    return plain(of_kind(value, NumpyScalar))


def _pair(values: Tensor) -> Tensor:
    """The real and the imaginary parts, one behind the other."""
    flat = of_kind(values, Auxiliary).reshape(-1)
    return cat([flat.real, flat.imag] if flat.is_complex() else [flat, 0.0 * flat])


def vector_of_values(value: Any, dtype: np.dtype) -> Tensor:
    """All values of nested containers, one behind the other."""
    return vector_of(structured(value, "vector", "value"), dtype)


def vector_of(given: Structured, dtype: np.dtype) -> Tensor:
    """All values of a structure, one behind the other."""
    parts = [
        reshape_to(as_dtype(of_kind(one, Auxiliary), dtype), (math.prod(one._value.shape),))
        for one in given.tensors
    ] or [filled((0,), 0, dtype)]
    return parts[0] if len(parts) == 1 else cat(parts)


def _of_trace(one: Tensor) -> Tensor:
    """An array in a trace as its node: rules that outlive the user's function keep no hold of the array."""
    if is_tracing() and isinstance(one._value, np.ndarray) and one._value.ndim:
        return make(current_trace().capture(one._value), type(one))
    return one


class Unknowns:
    """The structure of what is looked for.

    Args:
        start: tensors, arrays and numbers, in any nested structure.
        function, argument: who was given it, and under which name, for messages.
        may_be_complex: whether complex arrays stand for their real and their imaginary parts, one behind the
            other in the vector.
    """

    def __init__(self, start: Any, function: str, argument: str, may_be_complex: bool = False) -> None:
        given = structured(start, function, argument)
        given = given.with_tensors(map(_of_trace, given.tensors))
        self.function = function
        self._are_complex = [may_be_complex and one._value.dtype.kind == "c" for one in given.tensors]
        self.dtype = floating_dtype(given.with_tensors(self._parts(given.tensors)), function)
        self.start = self._vector(given)._detached()
        kinds = [NumpyScalar if type(one) is PythonNumber else type(one) for one in given.tensors]
        self._given = given.with_tensors([
            of_kind(one if is_complex else as_dtype(one, self.dtype), kind)
            for one, kind, is_complex in zip(given.tensors, kinds, self._are_complex)
        ])  # fmt: skip
        self._shapes = [tuple(one._value.shape) for one in given.tensors]
        sizes = [math.prod(shape) << one for shape, one in zip(self._shapes, self._are_complex)]
        self._ends = list(itertools.accumulate(sizes))

    @property
    def size(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def has_complex(self) -> bool:
        return any(self._are_complex)

    def vector(self, value: Any) -> Tensor:
        """The vector that stands for values of this structure."""
        return self._vector(structured(value, self.function, "value"))

    def _vector(self, given: Structured) -> Tensor:
        return vector_of(given.with_tensors(self._parts(given.tensors)), self.dtype)

    def _parts(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Real tensors in the place of all, where there are as many as unknowns."""
        if not self.has_complex or len(values) != len(self._are_complex):
            return list(values)
        return [_pair(one) if is_complex else one for one, is_complex in zip(values, self._are_complex)]

    def _joined(self, part: Tensor, is_complex: bool) -> Tensor:
        """What a part of the vector, along the first dimension, stands for."""
        half = part._value.shape[0] // 2
        return complex_of(part[:half], part[half:]) if is_complex else part

    def restored(self, vector: Tensor) -> Any:
        """The values that a vector stands for, of the kinds that the first ones were of."""
        starts = [0, *self._ends]
        pieces = [vector[start:stop] for start, stop in zip(starts, self._ends)]
        pieces = [vector] if len(self._ends) == 1 else pieces
        parts = [
            reshape_to(self._joined(one, is_complex), shape)
            for one, shape, is_complex in zip(pieces, self._shapes, self._are_complex)
        ]
        return self._given.restored([of_kind(one, Auxiliary) for one in parts])

    @property
    def kind(self) -> type[Tensor]:
        """What an array beside the unknowns is: a Tensor, if one of them is."""
        kinds = [type(one) for one in self._given.tensors]
        return NumpyTensor if all(issubclass(one, NumpyTensor) for one in kinds) else TorchTensor

    def restored_rows(self, rows: Tensor, counts_last: bool = True) -> Any:
        """Many vectors, one a row, as arrays whose last dimension counts them, or whose first one does."""
        starts, count = [0, *self._ends], rows.shape[0]
        columns = [
            self._joined(transpose(rows[:, start:stop], 0, 1), is_complex)
            for start, stop, is_complex in zip(starts, self._ends, self._are_complex)
        ]
        if not counts_last:
            columns = [transpose(one, 0, 1) for one in columns]
        parts = [
            reshape_to(one, (*shape, count) if counts_last else (count, *shape))
            for shape, one in zip(self._shapes, columns)
        ]
        return self._given.restored([of_kind(one, self.kind) for one in parts])

    def of_vector(self, function: Function, args: tuple[Any, ...]) -> Callable[[Tensor], Any]:
        """The user's function of these values as one of a vector."""

        def of_vector(vector: Tensor) -> Any:
            return function(self.restored(vector), *args)

        return of_vector

    def residual(self, function: Function, args: tuple[Any, ...], count: int | None = None) -> Function:
        """The same, its results as a vector too, of `count` elements if that is given.

        Raises:
            OutputError: it returns another number of values.
        """
        evaluate = self.of_vector(function, args)

        def residual(vector: Tensor) -> Tensor:
            found = self._vector(self._result(evaluate(vector), True))
            if count is not None and found._value.shape != (count,):
                fail(
                    OutputError,
                    f"{self.function}: the function returns {found._value.shape[0]} values for {count} "
                    "unknowns. There must be as many equations as unknowns.",
                )
            return found

        return residual

    def _result(self, value: Any, may_be_complex: bool) -> Structured:
        found = structured(value, self.function, "the result")
        is_like = may_be_complex and len(found.tensors) == len(self._are_complex)
        may_be = self._are_complex if is_like else [False] * len(found.tensors)
        if any(one._value.dtype.kind == "c" and not may for one, may in zip(found.tensors, may_be)):
            fail(
                DTypeError,
                f"{self.function}: the function returns complex numbers for real unknowns. Return their real "
                "and imaginary parts.",
            )
        return found

    def scalar(self, function: Function, args: tuple[Any, ...]) -> Function:
        """The same, whose result is one number.

        Raises:
            OutputError: it returns something else.
        """
        evaluate = self.of_vector(function, args)

        def scalar(vector: Tensor) -> Tensor:
            found = self._result(evaluate(vector), False)
            if [math.prod(one._value.shape) for one in found.tensors] != [1]:
                fail(
                    OutputError,
                    f"{self.function}: the function returns {', '.join(map(str, found.specs)) or 'None'}; "
                    "expected one number.",
                )
            return reshape_to(as_dtype(of_kind(found.tensors[0], Auxiliary), self.dtype), ())

        return scalar
