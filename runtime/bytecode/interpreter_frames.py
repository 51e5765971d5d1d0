"""What Python's frame objects do not show: the interpreter's unnamed values, closures, and who has called.

Which iterator a `for` runs through, and whether a function was called by an instruction of another one or
by code in C that holds something as well, CPython knows alone. It is read where CPython keeps it, in versions
whose layout is known, and after it has been found there for frames of which all is known (`is_readable`).
Elsewhere nothing is told: then loops that need it are traced for each number of turns.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from types import CellType, FrameType
from typing import Any

POINTER = ctypes.sizeof(ctypes.c_void_p)
FRAME = object.__basicsize__ + POINTER
"""Where a frame object has the address of the interpreter's frame: behind that of the frame before."""
VALUES = 9 * POINTER
"""Where the interpreter's frame has its variables, behind these its unnamed values."""
PREVIOUS, IS_ENTRY = POINTER, 8 * POINTER + ctypes.sizeof(ctypes.c_int)
"""Where it has the frame that called it, one of its own where C did, or, in Python 3.11, whether C did."""
KNOWN_VERSIONS = ((3, 11), (3, 12), (3, 13))


def unnamed_value(frame: FrameType, place: int) -> Any:
    """What the interpreter holds at a place among the unnamed values of a function; None if nothing tells.

    The function must hold so many of them.
    """
    return _value(frame, _variables(frame) + place) if is_readable() else None


def free_cells(frame: FrameType) -> tuple[CellType, ...] | None:
    """The cells of the variables that a function under way shares with those around it."""
    if not frame.f_code.co_freevars:
        return ()
    if not is_readable():
        return None
    last = _variables(frame)
    return tuple(_value(frame, place) for place in range(last - len(frame.f_code.co_freevars), last))


def is_called_by_python(frame: FrameType) -> bool:
    """Whether a function was called by the instruction at which the one before it stands, and not from C."""
    return is_readable() and _is_called_by_python(frame)


@lru_cache(maxsize=1)
def is_readable() -> bool:
    """Whether what is asked here can be told."""
    is_known = sys.implementation.name == "cpython" and sys.version_info[:2] in KNOWN_VERSIONS
    return is_known and object.__basicsize__ == 2 * POINTER and _finds_what_is_known()


def _finds_what_is_known() -> bool:
    """Whether an iterator, a closure and callers are found that are known."""
    frames = (sys._getframe() for _ in range(2))
    shared = object()

    def of_closure() -> tuple[CellType, ...]:
        frame = sys._getframe()
        return (_value(frame, _variables(frame) - 1),) if shared is not None else ()

    for frame in frames:
        own = sys._getframe()
        is_found = _value(own, _variables(own)) is frames and not _is_called_by_python(frame)
        break
    (cell,) = of_closure()
    is_cell = of_closure.__closure__ is not None and cell is of_closure.__closure__[-1]
    return is_found and is_cell and _calls_by_python() and not next(map(_calls_by_python, (1,)))


def _calls_by_python(_: Any = None) -> bool:
    return _is_called_by_python(sys._getframe())


def _is_called_by_python(frame: FrameType) -> bool:
    own, before = _of_interpreter(frame), frame.f_back
    if sys.version_info < (3, 12):
        return not ctypes.c_bool.from_address(own + IS_ENTRY).value
    return before is not None and _address_at(own + PREVIOUS) == _of_interpreter(before)


def _variables(frame: FrameType) -> int:
    """How many variables a function has, those that it shares with others among them."""
    code = frame.f_code
    own = set(code.co_varnames)
    return len(own) + sum(name not in own for name in code.co_cellvars) + len(code.co_freevars)


def _value(frame: FrameType, place: int) -> Any:
    address = _address_at(_of_interpreter(frame) + VALUES + place * POINTER)
    return ctypes.cast(address, ctypes.py_object).value if address else None


def _of_interpreter(frame: FrameType) -> int:
    return _address_at(id(frame) + FRAME)


def _address_at(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


__all__ = ["free_cells", "is_called_by_python", "is_readable", "unnamed_value"]
