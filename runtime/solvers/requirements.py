"""What must hold where a program runs, compiled or not, else it raises: that a solver has converged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import ConvergenceError, PullbackError
from ...tracer.ops import elementwise
from ...tracer.origin import place_of_caller
from ...tracer.records import record
from ...tracer.trace import is_tracing
from ..autograd.foreign_calls import call_python
from ..functions.loops.choices import replaced_if
from ..functions.stopping import stop_gradient
from ..functions.structures import spec_of_tensor
from ..tape.apply import apply, standing_for
from ..values.tensor import Tensor


@record(frozen=True)
class Failure:
    """What is raised; the text may name what is known of the failure by position: "{0} steps".

    Attributes:
        place: the user's line.
    """

    text: str
    error: type[PullbackError] = ConvergenceError
    place: str = ""

    def __call__(self, *known: Any) -> PullbackError:
        text = self.text.format(*known)
        return self.error(f"{text}\n  at {self.place}" if self.place else text)


def require(value: Tensor, holds: Any, failure: Failure, *known: Any) -> Tensor:
    """`value`, where `holds`; else the failure is raised. The result has no gradient.

    Args:
        known: what the text of the failure names.
    """
    failure = Failure(failure.text, failure.error, place_of_caller() or "")
    operands = [standing_for(stop_gradient(one)) for one in (value, holds, *known)]

    def run(array: np.ndarray, truth: np.ndarray, *numbers: np.ndarray) -> list[np.ndarray]:
        if not np.all(truth):
            raise failure(*(np.asarray(one).item() for one in numbers))
        return [array]

    if not is_tracing():
        run(*(one.payload for one in operands))
        return value

    def raised() -> Tensor:
        return call_python(require, failure, "require", run, operands, [spec_of_tensor(value)])[0]

    return replaced_if(apply(elementwise.logical_not, operands[1].all()), operands[0], raised)
