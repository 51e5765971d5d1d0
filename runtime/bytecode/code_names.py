"""The names that code reads and writes, and whether it reads attributes whose names it computes."""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Iterator, Sequence
from types import CodeType

from ...tracer.records import record

MOST_CODES = 1 << 16
"""Code objects that something is remembered of: a call may reach thousands, over and over."""
READING_ALL = frozenset(
    ("vars", "__dict__", "dir", "asdict", "astuple", "fields", "attrgetter", "methodcaller", "__getstate__")
)
"""Names by which code gets at attributes that it does not name."""

IDENTITY = frozenset(("id", "is_", "is_not"))
"""Names of functions that tell whether two values are one object."""


@record(frozen=True)
class CodeNames:
    """Of a code object and those nested in it."""

    loaded: tuple[str, ...]
    """Global variables that are read."""
    attributes: frozenset[str]
    """Attributes that are read; string constants count, for `getattr(self, "weight")`."""
    stored: tuple[str, ...]
    """Global variables that are written."""
    reads_all: bool
    """Whether attributes are read whose names are not known."""
    may_miss: bool
    """Whether it goes on where an attribute that it reads is missing."""
    asks_identity: bool
    """Whether it asks if two values are one object, besides with `compared`."""
    compared: frozenset[tuple[str, ...]]
    """Of what `is` compares with, the global variables and their attributes: `("numpy", "divide")`."""


@functools.lru_cache(maxsize=MOST_CODES)
def names_of(code: CodeType) -> CodeNames:
    loaded: dict[str, None] = {}
    attributes: set[str] = set()
    stored: dict[str, None] = {}
    instructions = list(dis.get_instructions(code))
    reads_all = False
    for position, instruction in enumerate(instructions):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded[instruction.argval] = None
            if instruction.argval == "getattr":
                reads_all |= not _names_constant(instructions[position + 1 :])
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            stored[instruction.argval] = None
        elif "ATTR" in instruction.opname or "METHOD" in instruction.opname:
            attributes.add(instruction.argval)
    reads_all |= not READING_ALL.isdisjoint(loaded.keys() | attributes)
    compared = set(_compared_objects(instructions))
    asks_identity = not IDENTITY.isdisjoint(loaded.keys() | attributes) or () in compared
    may_miss = bool(code.co_exceptiontable) or not loaded.keys().isdisjoint(("hasattr", "getattr"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = names_of(constant)
            loaded.update(dict.fromkeys(inner.loaded))
            stored.update(dict.fromkeys(inner.stored))
            attributes |= inner.attributes
            reads_all |= inner.reads_all
            may_miss |= inner.may_miss
            asks_identity |= inner.asks_identity
            compared |= inner.compared
        elif isinstance(constant, str) and constant.isidentifier():
            attributes.add(constant)
    return CodeNames(
        tuple(loaded),
        frozenset(attributes),
        tuple(stored),
        reads_all,
        may_miss,
        asks_identity,
        frozenset(compared - {()}),
    )


def _compared_objects(instructions: Sequence[dis.Instruction]) -> Iterator[tuple[str, ...]]:
    """What `is` has on its right: a global variable or attributes of one, else nothing that has a name.

    None and other constants but for truth values, which traced ones stand for, and classes that are built in,
    are left out.
    """
    for position, one in enumerate(instructions):
        former = instructions[position - 1]
        is_constant = former.opname == "LOAD_CONST" and type(former.argval) is not bool
        if one.opname != "IS_OP" or is_constant:
            continue
        path = _dotted_name(instructions[:position])
        if not (len(path) == 1 and isinstance(vars(builtins).get(path[0]), type)):
            yield path


def _dotted_name(instructions: Sequence[dis.Instruction]) -> tuple[str, ...]:
    """The global variable, and its attributes, that the last of some instructions load."""
    names: list[str] = []
    for one in reversed(instructions):
        names.append(one.argval)
        if one.opname == "LOAD_GLOBAL":
            return tuple(reversed(names))
        if one.opname != "LOAD_ATTR":
            break
    return ()


def _names_constant(following: Sequence[dis.Instruction]) -> bool:
    """Whether a call of `getattr`, whose arguments these instructions load, names a constant attribute."""
    is_named = False
    for one in following:
        if one.opname == "CALL":
            return is_named and one.arg in (2, 3)
        if not one.opname.startswith(("LOAD_", "PRECALL", "CACHE")):  # something is computed
            return False
        is_named |= one.opname == "LOAD_CONST" and isinstance(one.argval, str) and one.argval.isidentifier()
    return False


def place_of_name(code: CodeType, name: str) -> str:
    """Where code mentions a name: `model.py:5`; the start of the code if it does not."""
    for one in dis.get_instructions(code):
        if one.argval == name and one.positions is not None and one.positions.lineno is not None:
            return f"{code.co_filename}:{one.positions.lineno}"
    return f"{code.co_filename}:{code.co_firstlineno}"
