"""Where code writes into arrays, read off its instructions: `x[i] = y`, `x += y`, `np.add(x, y, out=x)`.

A guess on the safe side: what is found here decides only whether arrays are made as Tensors beforehand.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType

from ...tracer.records import record
from .code_names import MOST_CODES

WRITING_FUNCTIONS = frozenset(("at", "copyto", "fill", "fill_diagonal", "place", "put", "putmask"))
"""NumPy's functions and methods that write into their array."""
SIGNS = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>")
ITEM_STORES = tuple(name for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap)


@record(frozen=True, slots=True)
class Writes:
    """Whether some array is written to, and which parameters of the function may be."""

    any: bool
    parameters: frozenset[str]
    perhaps_more: bool
    """Whether any parameter may be: inner functions and NumPy's write into what they are given."""
    names: frozenset[str] = frozenset()
    """The variables and attributes by whose names arrays are written into."""


@lru_cache(maxsize=MOST_CODES)
def writes_of(code: CodeType) -> Writes:
    """What a code object and those nested in it write to."""
    parameters = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    targets = _written_names(code, parameters)
    is_given = bool(WRITING_FUNCTIONS.intersection(code.co_names)) or _names_out(code)
    found = targets is not None or is_given
    names = targets = targets or set()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = writes_of(constant)
            found |= inner.any
            is_given |= inner.perhaps_more or bool(inner.parameters)
            targets = targets | set(constant.co_freevars if inner.any else ())
            names = names | inner.names
    return Writes(found, parameters & targets, is_given, frozenset(names))


def instructions_of(code: CodeType) -> list[dis.Instruction]:
    """The instructions, one after the other: without those that only carry a part of a large argument."""
    return [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]


def has_operation(code: CodeType, name: str) -> bool:
    """Whether some instruction is of this operation; `dis`, which says more, takes a hundred times longer."""
    return dis.opmap[name] in code.co_code[::2]  # each is two bytes, and what it has cached are zeros


LISTING = frozenset((
    "list", "tuple", "sorted", "deque", "values", "split", "array_split", "hsplit", "vsplit", "dsplit",
    "combinations", "combinations_with_replacement", "permutations", "product", "pairwise", "batched",
))  # fmt: skip
"""Names of what gives a list, a tuple or the like."""


@lru_cache(maxsize=MOST_CODES)
def makes_lists(code: CodeType) -> bool:
    """Whether a code object, or one nested in it, makes a list or a tuple that is not an index."""
    if code.co_flags & inspect.CO_VARARGS or not LISTING.isdisjoint(code.co_names):
        return True
    if any(has_operation(code, name) for name in ("BUILD_LIST", "LIST_APPEND", "UNPACK_EX")):
        return True
    instructions = instructions_of(code) if has_operation(code, "BUILD_TUPLE") else ()
    for one, following in itertools.pairwise(instructions):
        if one.opname == "BUILD_TUPLE" and following.opname not in (
            "BINARY_SUBSCR",
            "STORE_SUBSCR",
            "RETURN_VALUE",
        ):
            return True
    return any(makes_lists(one) for one in code.co_consts if isinstance(one, CodeType))


@lru_cache(maxsize=MOST_CODES)
def imports(code: CodeType) -> frozenset[str]:
    """The modules that a code object, or one nested in it, imports when it runs, and their packages."""
    instructions = instructions_of(code) if has_operation(code, "IMPORT_NAME") else ()
    modules = [one.argval.split(".") for one in instructions if one.opname == "IMPORT_NAME"]
    found = {".".join(parts[: count + 1]) for parts in modules for count in range(len(parts))}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= imports(constant)
    return frozenset(found)


@lru_cache(maxsize=MOST_CODES)
def defines_classes(code: CodeType) -> bool:
    """Whether a code object, or one nested in it, defines a class."""
    if has_operation(code, "LOAD_BUILD_CLASS"):
        return True
    return any(defines_classes(one) for one in code.co_consts if isinstance(one, CodeType))


TAKING_METHODS = frozenset(("choose", "dot", "searchsorted"))
"""Methods of ndarrays that take another array, and do not ask what it is."""


def calls_taking_methods(function: FunctionType) -> bool:
    """Whether it calls methods by which NumPy's arrays take others; `np.dot` is none."""
    owners = _method_owners(function.__code__)
    return any(type(function.__globals__.get(name)) is not ModuleType for name in owners)


@lru_cache(maxsize=MOST_CODES)
def _method_owners(code: CodeType) -> frozenset[str]:
    """The global variables whose attributes such methods may be; the empty name for all else."""
    found = set()
    instructions = () if TAKING_METHODS.isdisjoint(code.co_names) else instructions_of(code)
    for one, following in itertools.pairwise(instructions):
        if following.opname in ("LOAD_ATTR", "LOAD_METHOD") and following.argval in TAKING_METHODS:
            found.add(one.argval if one.opname in ("LOAD_GLOBAL", "LOAD_NAME") else "")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _method_owners(constant)
    return frozenset(found)


def _names_out(code: CodeType) -> bool:
    """Whether some call has an argument `out=`."""
    return any(isinstance(one, tuple) and "out" in one for one in code.co_consts)


def _written_names(code: CodeType, parameters: frozenset[str]) -> set[str] | None:
    """The variables that are written into; None if nothing is, not even what has no name."""
    if not (any(has_operation(code, name) for name in ITEM_STORES) or _may_compute_in_place(code)):
        return None
    instructions = list(dis.get_instructions(code))
    numbers = _always_constant(instructions)
    names_at = {
        one.positions[:3:2]: one.argval
        for one in instructions
        if one.opname.startswith("LOAD_") and isinstance(one.argval, str) and one.positions is not None
    }
    found: set[str] = set()
    is_found = False
    for one in instructions:
        in_place = one.opname == "BINARY_OP" and one.argrepr.endswith("=")
        if not in_place and one.opname not in ITEM_STORES:
            continue
        name = None if one.positions is None else names_at.get(one.positions[:3:2])
        if in_place and name in numbers:
            continue
        is_found = True
        found |= parameters if name is None else {name}  # read together with others, or no positions are kept
    return found if is_found else None


def _may_compute_in_place(code: CodeType) -> bool:
    """Whether some instruction may be `x += y`, or like it: found sooner than by `dis`."""
    return any(one in code.co_code for one in _in_place())


@functools.cache
def _in_place() -> list[bytes]:
    """The instructions of `x += y` and its kin."""
    codes = [compile(f"x {sign}= y", "", "exec").co_code for sign in SIGNS]
    starts = [code[::2].index(dis.opmap["BINARY_OP"]) * 2 for code in codes]
    return [code[start : start + 2] for code, start in zip(codes, starts)]


def _always_constant(instructions: Sequence[dis.Instruction]) -> set[str]:
    """The variables that are assigned constants only, but for `x += y`: totals and counters."""
    constant: set[str] = set()
    other: set[str] = set()
    for before, one in itertools.pairwise(instructions):
        if one.opname.startswith("STORE_") and isinstance(one.argval, str):
            if before.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
                constant.add(one.argval)
            elif not (before.opname == "BINARY_OP" and before.argrepr.endswith("=")):
                other.add(one.argval)
    return constant - other
