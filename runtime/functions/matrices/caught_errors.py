"""Matrices without a result, where the user's code catches the error: they decide the way of a trace.

Compiled code raises where it finds such a matrix, when no handler of the function's is there any more. So
where an `except` is around the call the trace asks beforehand, as an `if` does, and raises itself.
"""

from __future__ import annotations

import sys
from types import FrameType

from ....tracer.errors import LinearAlgebraError
from ....tracer.graph import Node
from ....tracer.origin import is_users_code
from ....tracer.trace import current_trace, is_tracing
from ...bytecode.liveness import catches
from ...values.tensor import Tensor

ERRORS = {
    "cholesky": "linalg.cholesky: The matrix is not positive definite.",
    "inv": "linalg.inv: The matrix is singular.",
    "solve": "linalg.solve: The matrix is singular.",
}


def checked(a: Tensor, function: str) -> Tensor:
    """Square matrices of which a function has results, if user's code may catch its error, else as given.

    They are others where code computes with them before it knows that another way is right.

    Raises:
        LinearAlgebraError: one has no result, and the error may be caught.
    """
    if not is_tracing() or not isinstance(a._value, Node) or current_trace().is_in_loop or not _is_caught():
        return a
    from .elimination import places_without_result, regular  # which is made of functions that ask here

    info = places_without_result(a, function)
    if bool(info.ne(0).any()):
        raise LinearAlgebraError(ERRORS[function])
    return regular(a, info)


def _is_caught() -> bool:
    """Whether an `except` in the code that is traced is around what runs."""
    frame: FrameType | None = sys._getframe(2)
    root = current_trace().lost_numbers.root
    while frame is not None and frame.f_code is not root:
        if is_users_code(frame.f_code) and catches(frame.f_code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False
