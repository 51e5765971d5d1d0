"""What `solve_ivp` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ...tracer.errors import EagerOnlyError
from ...tracer.records import record
from ..values.tensor import Tensor
from .unknowns import Unknowns


@record(frozen=True)
class Trajectory:
    """What `solve_ivp` returns.

    Attributes:
        t: the times.
        y: the values at these times, the last dimension of each array that `y0` has.
        steps: the number of steps, those that had to be repeated included.
        nfev: the number of evaluations, where each step takes as many. Neither is known under a continuous
            adjoint.
        t_events, y_events: of each event the times at which it has happened, and the values then, the first
            dimension of each array, as SciPy has it.
        sol: the solution as a function of time, where `dense_output` asks for it.
        status: 1 if an event has ended the solution, else 0.
    """

    t: Any
    y: Any
    steps: Any
    nfev: Any
    t_events: Any = None
    y_events: Any = None
    sol: Any = None
    status: Any = 0


class DenseOutput:
    """The solution as a function of time, between the ends.

    Args:
        rows_at: from a vector of times to the values, one a row.
        time: from what a user gives to a Tensor.
    """

    def __init__(
        self, rows_at: Callable[[Tensor], Tensor], unknowns: Unknowns, time: Callable[[Any], Tensor]
    ) -> None:
        self._rows_at = rows_at
        self._unknowns = unknowns
        self._time = time

    def __call__(self, t: Any) -> Any:
        """The values at a time, or at a vector of times, the last dimension of each array."""
        times = self._time(t)
        if times.ndim:
            return self._unknowns.restored_rows(self._rows_at(times))
        return self._unknowns.restored(self._rows_at(times[None])[0])


class OfUnknownLength:
    """In a trace, an array whose last dimension is as long as values say; at most its last element is known.

    Whatever else is asked of it raises, so that the function runs uncompiled.

    Args:
        why: what is not known, and what to do.
        last: what `[..., -1]` is.
    """

    def __init__(self, why: str, last: Any = None) -> None:
        self._why = why
        self._last = last

    def __getitem__(self, index: Any) -> Any:
        places = index if isinstance(index, tuple) else (index,)
        is_whole = any(one is ... for one in places) or len(places) == getattr(self._last, "ndim", 0) + 1
        if self._last is None or not is_whole or type(places[-1]) is not int or places[-1] != -1:
            self._refuse()
        return self._last[places[:-1]] if len(places) > 1 else self._last

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def _refuse(self, *_: Any) -> NoReturn:
        raise EagerOnlyError(self._why)

    __array__ = __array_ufunc__ = __array_function__ = __iter__ = __len__ = __repr__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __matmul__ = __rmatmul__ = __neg__ = __abs__ = _refuse
