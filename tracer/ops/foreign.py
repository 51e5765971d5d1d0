"""Functions that no operator describes: Python calls them, wherever the graph is evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..errors import EagerOnlyError, GradientError
from ..operator import OWN_RULES, Array, declare
from ..origin import at_caller
from ..spec import Spec


class ForeignFunction:
    """A function of arrays that fills one of one shape and dtype; two are equal only if they are one.

    It does not keep what it is given, which may be the memory of a program.

    Attributes:
        label: what its user calls it.
        fill: (*operands, result): writes into the last array.
        name: the label with a number, by which generated code finds it in this process.
        stream: what it draws from, if it draws: something with `get_state` and `set_state`.
        stops: whether it is there to stop in generated code, which Python has to run then.
        batched: the same of batches: of all its operands with one more dimension in front.
        takes_batches: whether it is such a function, of any number of rows.
    """

    def __init__(
        self,
        label: str,
        fill: Callable[..., object],
        stream: Any = None,
        stops: bool = False,
        fill_batch: Callable[..., object] | None = None,
        takes_batches: bool = False,
    ) -> None:
        self.label = label if label.isidentifier() else "function"
        self.fill = fill
        self.stream = stream
        self.stops = stops
        self.takes_batches = takes_batches
        self.batched = ForeignFunction(label, fill_batch, takes_batches=True) if fill_batch else None
        number = _numbers[self.label]
        _numbers[self.label] += 1
        self.name = f"{self.label}_{number}" if number else self.label
        FOREIGN[self.name] = self

    def __repr__(self) -> str:
        return f"<foreign function {self.name}>"


FOREIGN: dict[str, ForeignFunction] = {}
"""By name, for ever, as machine code may call them as long."""
_numbers: Counter[str] = Counter()


def _evaluate(*operands: Array, function: ForeignFunction, spec: Spec) -> np.ndarray:
    out = np.empty(tuple(map(int, spec.shape)), spec.dtype)
    function.fill(*operands, out)
    return out


def _no_rule(function: ForeignFunction) -> NoReturn:
    raise GradientError(
        f"{function.label} runs in Python as it is, so what it computes has no derivative beyond the rules "
        "that it has. Write its rule with functions that have derivatives, and let residuals be arguments or "
        "results."
    )


foreign = declare(
    "foreign",
    "eager",
    "*operands",
    infer=lambda *specs, function, spec: spec,
    evaluate=_evaluate,
    vjp={"operands": lambda function: _no_rule(function)},
    of_complex=OWN_RULES,
    doc="what a function gives that Python calls",
)


def _no_derivative(function: ForeignFunction) -> NoReturn:
    raise GradientError(
        f"What {function.label} draws has no derivative by its parameters. Draw numbers that do not depend "
        "on them, and transform these; or apply pullback.stop_gradient to the parameters."
    )


class NotDrawnError(EagerOnlyError):
    """The value of a draw is asked for that only code makes."""


def _refuse_to_draw(*operands: Array, function: ForeignFunction, spec: Spec) -> NoReturn:
    raise NotDrawnError(
        f"A value is asked for{at_caller()} that depends on what {function.label} draws in a loop."
    )


draw = declare(
    "draw",
    "eager",
    "count *operands",
    infer=lambda *specs, function, spec: spec,
    evaluate=_refuse_to_draw,
    vjp={"operands": lambda function: _no_derivative(function)},
    of_complex=OWN_RULES,
    doc="random numbers that a stream gives at this place, and a 0; or what a function is called for here; "
    "`count` is of those before",
)
