"""The first lines of a compiled call, written out for each number of arguments.

A call of a small function costs a microsecond. Machine code compares the arguments with those of the last
call; where they differ, a loop over three of them would be slow. So for each arity there is one generated
`__call__`; read `TEMPLATE`, which is all of it. Where there are Python's numbers among the arguments, another
generated function puts arrays in their places first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..tracer import trace
from . import dtypes
from .signature import LARGEST, Conformed
from .variant import STALE

MOST = 32
"""Functions with more parameters take the general way."""

TEMPLATE = """\
def __call__(self, /, *args, **keywords):
    matches, default, entry, with_arrays = self._latest
    given = args if with_arrays is None else with_arrays(args)
    if matches(*given) and not keywords and default is dtypes._default and current_trace() is None:
        entry.hits += 1
        result = entry.run(given)
        if result is not STALE:
            return result
        entry.hits -= 1
        return self._call_in_general(args, keywords)
    if len(args) == {count} and not keywords and current_trace() is None:
        {names}, = args
        if {all_arrays}:
            entry = self._entries.get((dtypes._default, {key}))
            if entry is not None:
                self._latest = entry.matching(args), dtypes._default, entry, None
                entry.hits += 1
                result = entry.run(args if {all_fit} else Conformed.of(args))
                if result is not STALE:
                    return result
                entry.hits -= 1
            return self._call_in_general(args, keywords)
    return self._call_mixed(args, keywords)
"""


@lru_cache(maxsize=64)
def plain_call(count: int) -> Callable[..., Any] | None:
    """A `__call__` for `count` arrays in order; None where there is nothing to gain."""
    if not 1 <= count <= MOST:
        return None
    names = [f"a{position}" for position in range(count)]
    text = TEMPLATE.format(
        count=count,
        names=", ".join(names),
        all_arrays=" and ".join(f"type({name}) is ndarray" for name in names),
        key=", ".join(f"{name}.dtype, {name}.shape" for name in names),
        all_fit=" and ".join(f"{name}.flags.carray" for name in names),
    )
    namespace: dict[str, Any] = {
        "STALE": STALE, "Conformed": Conformed, "current_trace": trace.innermost, "dtypes": dtypes,
        "ndarray": np.ndarray,
    }  # fmt: skip
    place = os.path.join(os.path.dirname(__file__), f"<call with {count} arguments>")  # no user's code
    exec(compile(text, place, "exec"), namespace)
    return namespace["__call__"]


NO_ARGUMENTS: tuple[()] = ()
"""Which match no call's."""


@lru_cache(maxsize=256)
def numbers_as_arrays(kinds: tuple[type, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """From the arguments of a call to those of a program: arrays in the places of floats and integers.

    Args:
        kinds: the types of the arguments; what has other numbers among them gives NO_ARGUMENTS.
    """
    names = [f"a{position}" for position in range(len(kinds))]
    tests = [f"len(args) == {len(kinds)}"]
    for position, kind in enumerate(kinds):
        if kind in (float, int):
            tests.append(f"type(args[{position}]) is {kind.__name__}")
        if kind is int:
            tests.append(f"-{LARGEST} <= args[{position}] <= {LARGEST}")
    given = [f"asarray({name})" if kind in (float, int) else name for name, kind in zip(names, kinds)]
    text = (
        f"def with_arrays(args):\n    if not ({' and '.join(tests)}): return NO_ARGUMENTS\n"
        f"    {', '.join(names)}, = args\n    return ({', '.join(given)},)\n"
    )
    namespace: dict[str, Any] = {"NO_ARGUMENTS": NO_ARGUMENTS, "asarray": np.asarray}
    exec(compile(text, os.path.join(os.path.dirname(__file__), "<numbers as arrays>"), "exec"), namespace)
    return namespace["with_arrays"]
