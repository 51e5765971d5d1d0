"""The first lines of a compiled call, written out for each number of arguments.

A call of a small function costs a microsecond. Machine code compares the arguments with those of the last
call; where they differ, a loop over three of them would be slow. So for each arity there is one generated
`__call__`; read `TEMPLATE`, which is all of it. Where there are Python's numbers among the arguments, machine
code puts arrays in their places first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...tracer import trace
from ..tracing.signature import Conformed
from ..values import dtypes
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
