"""Matrices without a result, where the user's code catches the error: they decide the way of a trace.

Compiled code raises where it finds such a matrix, when no handler of the function's is there any more. So
where an `except` is around the call the trace asks beforehand, as an `if` does, and raises itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from ....tracer.errors import LinearAlgebraError
from ....tracer.graph import Node
from ....tracer.ops import elementwise as e
from ....tracer.ops import linalg as la
from ....tracer.origin import is_users_code
from ....tracer.trace import current_trace, is_tracing
from ...bytecode.liveness import catches
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..shapes.movement import expand_to

ERRORS = {
    "cholesky": "linalg.cholesky: The matrix is not positive definite.",
    "inv": "linalg.inv: The matrix is singular.",
    "solve": "linalg.solve: The matrix is singular.",
}
REPORTS: dict[str, Callable[[Tensor], Tensor]] = {}
"""By name of a function what gives 0 for each matrix of which it has a result (`elimination.py`)."""


def checked(a: Tensor, function: str) -> Tensor:
    """Square matrices of which a function has results, if user's code may catch its error, else as given.

    They are others where code computes with them before it knows that another way is right.

    Raises:
        LinearAlgebraError: one has no result, and the error may be caught.
    """
    if not is_tracing() or not isinstance(a._value, Node) or current_trace().is_in_loop or not _is_caught():
        return a
    info = REPORTS[function](a)
    if bool(info.ne(0).any()):
        raise LinearAlgebraError(ERRORS[function])
    return regular(a, info)


def of_each(info: Tensor, like: Tensor) -> Tensor:
    """Whether there is a result, for each element of matrices."""
    return expand_to(info.ne(0).unsqueeze(-1).unsqueeze(-1), tuple(like.shape))


def regular(a: Tensor, info: Tensor) -> Tensor:
    """Matrices, and unit matrices in the place of those without a result."""
    return apply(e.where, of_each(info, a), apply(la.unit_like, a._detached()), a)


def _is_caught() -> bool:
    """Whether an `except` in the code that is traced is around what runs."""
    frame: FrameType | None = sys._getframe(2)
    root = current_trace().lost_numbers.root
    while frame is not None and frame.f_code is not root:
        if is_users_code(frame.f_code) and catches(frame.f_code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False
