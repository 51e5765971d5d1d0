"""What solvers look for: nested values as one vector, and functions of such values as those of vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import DTypeError, OutputError
from ...tracer.trace import current_trace, is_tracing
from ..functions.common import common_dtype, fail, filled
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
    """

    def __init__(self, start: Any, function: str, argument: str) -> None:
        given = structured(start, function, argument)
        given = given.with_tensors(map(_of_trace, given.tensors))
        self.function = function
        self.dtype = floating_dtype(given, function)
        self.start = vector_of(given, self.dtype)._detached()
        kinds = [NumpyScalar if type(one) is PythonNumber else type(one) for one in given.tensors]
        self._given = given.with_tensors(
            [of_kind(as_dtype(one, self.dtype), kind) for one, kind in zip(given.tensors, kinds)]
        )
        self._shapes = [tuple(one._value.shape) for one in given.tensors]
        self._ends = list(itertools.accumulate(map(math.prod, self._shapes)))

    @property
    def size(self) -> int:
        return self._ends[-1] if self._ends else 0

    def restored(self, vector: Tensor) -> Any:
        """The values that a vector stands for, of the kinds that the first ones were of."""
        starts = [0, *self._ends]
        parts = [
            reshape_to(vector if len(self._ends) == 1 else vector[start:stop], shape)
            for shape, start, stop in zip(self._shapes, starts, self._ends)
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
        parts = [
            reshape_to(transpose(rows[:, start:stop], 0, 1), (*shape, count))
            if counts_last
            else reshape_to(rows[:, start:stop], (count, *shape))
            for shape, start, stop in zip(self._shapes, starts, self._ends)
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
            found = vector_of(self._result(evaluate(vector)), self.dtype)
            if count is not None and found._value.shape != (count,):
                fail(
                    OutputError,
                    f"{self.function}: the function returns {found._value.shape[0]} values for {count} "
                    "unknowns. There must be as many equations as unknowns.",
                )
            return found

        return residual

    def _result(self, value: Any) -> Structured:
        found = structured(value, self.function, "the result")
        if any(one._value.dtype.kind == "c" for one in found.tensors):
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
            found = self._result(evaluate(vector))
            if [math.prod(one._value.shape) for one in found.tensors] != [1]:
                fail(
                    OutputError,
                    f"{self.function}: the function returns {', '.join(map(str, found.specs)) or 'None'}; "
                    "expected one number.",
                )
            return reshape_to(as_dtype(of_kind(found.tensors[0], Auxiliary), self.dtype), ())

        return scalar
