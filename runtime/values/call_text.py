"""Functions that stand between machine code and functions of Python's, as text.

What a trace knows of a call, how many values of which types go where, is written out: no call finds it out
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from functools import lru_cache
from types import CodeType
from typing import Any

Source = tuple[str, int] | None
"""Where a leaf of what was returned is from: an "argument", another "value", or neither."""


def filling(
    readers: Sequence[Callable[[Any], Any]],
    numbers: Sequence[frozenset[type]],
    fits: Sequence[Callable[[Any, Any], bool]],
    run: Callable[..., Sequence[Any]],
    settle: Callable[[Sequence[Any], Any], Sequence[Any]],
    write: Callable[[Any, Sequence[Any]], None] | None,
) -> Callable[..., None]:
    """What computes results of operands in memory, and writes them into the last array.

    Args:
        readers: of each operand, what makes a value of its memory.
        numbers, fits: of each result, the types whose values fit, and what says whether another one does
            (value, memory of the result).
        run: gives the results in an empty context.
        settle: (results, memory) makes results fit, where some do not, or raises.
        write: (memory, results); None where there is one result, which is written as it is.
    """
    given = [f"x{number}" for number in range(len(readers))]
    read = "".join(f", read_{name}({name})" for name in given)
    found = [f"y{number}" for number in range(len(fits))]
    tests = [f"type({name}) in numbers_{name} or fits_{name}({name}, out)" for name in found]
    text = f"""
def call({", ".join((*given, "out"))}):
    {", ".join(found)}, = results = Context().run(run{read})
    if not ({") or not (".join(tests)}):
        {", ".join(found)}, = results = settle(results, out)
    {"write(out, results)" if write else f"out[...] = {found[0]}"}
"""
    names: dict[str, Any] = {f"read_{name}": one for name, one in zip(given, readers)}
    names |= {f"numbers_{name}": one for name, one in zip(found, numbers)}
    names |= {f"fits_{name}": one for name, one in zip(found, fits)}
    return _defined(text, names | {"Context": Context, "run": run, "settle": settle, "write": write})


def repeating(
    forward: Callable[..., tuple[Any, Any]],
    count: int,
    types: Sequence[type],
    sources: Sequence[Source],
    in_tuple: bool,
    otherwise: Callable[..., Sequence[Any]],
) -> Callable[..., Sequence[Any]]:
    """What gives the values that a function returns in the form known from another call of it.

    Args:
        forward: from so many arguments to a result, a leaf, and residuals, a leaf or a tuple of leaves.
        types, sources: of all leaves, in the other call.
        in_tuple: whether residuals are a tuple.
        otherwise: gives the values of (arguments, result, residuals) of any form.
    """
    given = [f"x{place}" for place in range(count)]
    leaves = [f"y{place}" for place in range(len(types))]
    own = [name for place, name in enumerate(leaves) if sources[place] == ("value", place)]
    residuals = leaves[1:]
    tests = [f"type({name}) is type_{name}" for name in leaves]
    for name, source in zip(leaves, sources):
        if source is not None and name not in own:
            tests.append(f"{name} is {(given if source[0] == 'argument' else leaves)[source[1]]}")
    is_alike = f"type(residuals) is tuple and len(residuals) == {len(residuals)}" if in_tuple else "True"
    target = "".join(f"{name}, " for name in residuals) if in_tuple else residuals[0]
    text = f"""
def call({", ".join(given)}):
    y0, residuals = forward({", ".join(given)})
    if {is_alike}:
        {f"{target} = residuals" if residuals else "pass"}
        if {" and ".join(tests)}:
            return ({"".join(f"{name}, " for name in own)})
    return otherwise(({"".join(f"{name}, " for name in given)}), y0, residuals)
"""
    names: dict[str, Any] = {f"type_{name}": one for name, one in zip(leaves, types)}
    return _defined(text, names | {"forward": forward, "otherwise": otherwise})


def pulling(
    pull: Callable[[Any, Any], Any],
    first: int,
    count: int,
    put_residuals: Callable[[Sequence[Any]], Any] | None,
    put_cotangents: Callable[[Sequence[Any]], Any] | None,
    arguments: int | None,
    zeros: Mapping[int, Any],
    settled: Callable[[Any], Sequence[Any]],
) -> Callable[..., Sequence[Any]]:
    """What gives cotangents of some arguments, of values of which the first are residuals.

    Args:
        put_residuals, put_cotangents: from values to what `pull` takes; None where that is the only one.
        arguments: how many there are, if they are no containers.
        zeros: for the arguments that are asked for, what stands for None.
        settled: gives them, whatever else `pull` has returned.
    """
    given = [f"x{number}" for number in range(count)]
    residuals = _put("put_residuals", put_residuals, given[:first])
    cotangents = _put("put_cotangents", put_cotangents, given[first:])
    found = "".join(f"y{place}, " for place in range(arguments or 0))
    chosen = "".join(f"zeros_y{place} if y{place} is None else y{place}, " for place in zeros)
    quick = f"""
    if type(found) is tuple and len(found) == {arguments}:
        {found}= found
        return ({chosen})"""
    text = f"""
def call({", ".join(given)}):
    found = pull({residuals}, {cotangents}){quick if arguments else ""}
    return settled(found)
"""
    names: dict[str, Any] = {f"zeros_y{place}": one for place, one in zeros.items()}
    names |= {"put_residuals": put_residuals, "put_cotangents": put_cotangents}
    return _defined(text, names | {"pull": pull, "settled": settled})


def _put(name: str, put: Callable[[Sequence[Any]], Any] | None, values: Sequence[str]) -> str:
    together = f"({''.join(f'{one}, ' for one in values)})"
    return values[0] if put is None else together if put is tuple else f"{name}({together})"


def drawing_of(
    method: Callable[..., Any], leaves: Sequence[Any], readers: Mapping[int, Callable[[Any], Any]]
) -> Callable[..., Any]:
    """A call of a method with these arguments, those of which there are readers read from memory."""
    given = "".join(f"x{place}, " for place in readers)
    used = "".join(f"read_{n}(x{n}), " if n in readers else f"k{n}, " for n in range(len(leaves)))
    names: dict[str, Any] = {f"k{place}": leaf for place, leaf in enumerate(leaves)}
    names |= {f"read_{place}": one for place, one in readers.items()}
    return _defined(f"def call({given}):\n    return method({used})\n", names | {"method": method})


def _defined(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    exec(_compiled(text), names)
    defined: Callable[..., Any] = names["call"]
    return defined


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    return compile(text, "<calls of Python from machine code>", "exec")
