"""How much memory a call holds at once, as `tracemalloc` sees it: arrays, and Python's objects."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...codegen.account import Array
from ...tracer.errors import ArgumentError
from ...tracer.records import record
from ..dispatch.inspection import Inspection

MOST_NAMED = 5
"""Arrays that a message names."""


@record
class Peak:
    """What a block has held."""

    nbytes: int = 0
    """At most at once, more than before it began; known when it ends."""


@contextmanager
def watched() -> Iterator[Peak]:
    """Watch the memory of what happens inside."""
    import tracemalloc  # not at start

    found, is_ours = Peak(), not tracemalloc.is_tracing()
    gc.collect()
    if is_ours:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield found
    finally:
        found.nbytes = max(0, tracemalloc.get_traced_memory()[1] - before)
        if is_ours:
            tracemalloc.stop()


@contextmanager
def limited_to(limit: int) -> Iterator[None]:
    """AssertionError where the inside holds more than so many bytes at once, besides those of before.

    Example:
        >>> with limited_to(100_000):
        ...     total = np.ones(1000).sum()
    """
    with watched() as peak:
        yield
    if peak.nbytes > limit:
        raise AssertionError(refusal(peak.nbytes, limit))


def refusal(found: int, limit: int) -> str:
    return f"{found:,} bytes at the peak, and at most {limit:,} are allowed."


def peak_bytes(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
    """How many bytes a call holds at most at once, its results included, besides those of its arguments.

    The function is called once before, so that what compiling takes does not count. Large arrays of generated
    code count while they are in use, and not the memory that is kept for the next ones, nor what BLAS and
    LAPACK take for themselves.

    Example:
        >>> peak_bytes(pb.compile(lambda x: 2 * x), np.ones(1000)) // 1000
        8
    """
    __tracebackhide__ = True
    function(*args, **kwargs)
    with watched() as peak:
        function(*args, **kwargs)
    return peak.nbytes


def assert_peak_bytes(limit: int, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """`peak_bytes` is at most `limit`; else an AssertionError, with the largest arrays of compiled code.

    Example:
        >>> assert_peak_bytes(10_000, pb.compile(lambda x: 2 * x), np.ones(1000))
    """
    __tracebackhide__ = True
    if not isinstance(limit, int) or not callable(function):
        raise ArgumentError(
            "assert_peak_bytes: expected a number of bytes, a function and its arguments, found "
            f"{type(limit).__name__} and {type(function).__name__}."
        )
    found = peak_bytes(function, *args, **kwargs)
    if found <= limit:
        return
    lines = [f"{found:,} bytes at the peak of the call, and at most {limit:,} are allowed."]
    if isinstance(function, Inspection):
        accounts = function.explain(*args, as_data=True, **kwargs).forward
        arrays = [array for account in accounts for array in account.arrays if not array.lies_in]
        largest = sorted(arrays, key=lambda one: -one.nbytes)[:MOST_NAMED]
        lines += ["The largest arrays of its code:", *map(_line, largest)]
    raise AssertionError("\n".join(lines))


def _line(array: Array) -> str:
    what, shape = "an output" if array.is_output else "scratch", ", ".join(map(str, array.shape))
    return f"  {array.name}: {array.dtype}[{shape}], {array.nbytes:,} bytes, {what}"
