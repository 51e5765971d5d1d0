"""Loop nests that a function repeats: each kind becomes a function of its own, which LLVM compiles once.

Layers of a network, or terms of a likelihood, leave loops that differ in what they read and write alone. Of
each LLVM makes vectors, for which it writes a loop out several times, so of a long function it compiles most
again and again. A nest is given what it reads that was defined in front of it, and returns the numbers that
are read behind it, whether it has assigned them or not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from ....tracer.records import record

MANY_NESTS = 8
"""In one function: fewer are compiled in no time, and LLVM may see from one what the next one reads."""
FEWEST = 2
"""Nests of one form that are a function."""

Path = tuple[int, ...]
"""The bodies that a statement is in, outermost first."""


@record(frozen=True, eq=False)
class Nest:
    """A loop with all that is in it.

    Attributes:
        form: what it does, with numbers for variables; equal for nests of one form.
        given: the variables that it reads or returns, defined in front of it.
        results: the variables that it assigns and that are read behind it.
        loops: how many `for` it has.
    """

    tree: ast.For
    form: tuple[object, ...]
    given: tuple[str, ...]
    results: tuple[str, ...]
    loops: int


def repeated_nests(tree: ast.FunctionDef, variables: Collection[str]) -> dict[ast.For, Nest]:
    """The nests in the body of a function, in no other loop, of which there are several of one form."""
    loops = [one for one in tree.body if _is_nest(one)]
    if len(loops) < MANY_NESTS:
        return {}
    accesses = [list(_accesses([one], ())) for one in tree.body]
    results = _read_behind(tree.body, accesses)
    defined = {one.arg for one in tree.args.args}
    groups: dict[tuple[object, ...], list[Nest]] = {}
    for place, (statement, found) in enumerate(zip(tree.body, accesses)):
        if isinstance(statement, ast.For) and _is_nest(statement):
            nest = _nest(statement, found, results[place], defined, variables)
            if nest is not None:
                groups.setdefault(nest.form, []).append(nest)
        defined |= {name for name, is_stored, _ in found if is_stored}
    return {nest.tree: nest for group in groups.values() if len(group) >= FEWEST for nest in group}


def _is_nest(statement: ast.stmt) -> bool:
    """Whether it is a count, and nothing in it leaves the function, or is shared by threads."""
    return isinstance(statement, ast.For) and not any(
        isinstance(one, ast.Return) or (isinstance(one, ast.For) and not isinstance(one.target, ast.Name))
        for one in ast.walk(statement)
    )


def _nest(
    tree: ast.For,
    accesses: Sequence[tuple[str, bool, Path]],
    results: Collection[str],
    defined: Collection[str],
    variables: Collection[str],
) -> Nest | None:
    """The nest; None where it reads what may not have been defined in front of it."""
    read = [one for one in _undominated(accesses) if one in variables]
    if any(one not in defined for one in read):
        return None
    numbers: dict[str, int] = {}
    form = tuple(_form(tree, numbers, variables))
    kept = sorted(results, key=numbers.__getitem__)
    given = [*dict.fromkeys((*read, *(one for one in kept if one in defined)))]  # it may not assign them
    places = tuple(tuple(numbers[name] for name in names) for names in (given, kept))
    loops = sum(isinstance(one, ast.For) for one in ast.walk(tree))
    return Nest(tree, (places, form), tuple(given), tuple(kept), loops)


def _form(node: ast.AST, numbers: dict[str, int], variables: Collection[str]) -> Iterator[object]:
    """What a part of the text says, whatever its variables are called; other names are the module's."""
    if isinstance(node, ast.Name):
        yield numbers.setdefault(node.id, len(numbers)) if node.id in variables else node.id
        return
    yield type(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield from _form(value, numbers, variables)
        elif isinstance(value, list):
            yield len(value)
            for one in value:
                yield from _form(one, numbers, variables)
        elif name != "kind":
            yield type(value), repr(value)  # 0.0 is not -0.0


def _undominated(accesses: Sequence[tuple[str, bool, Path]]) -> Iterator[str]:
    """The variables that are read where nothing before has assigned them in any case."""
    stored: dict[str, list[Path]] = {}
    for name, is_stored, path in accesses:
        if is_stored:
            stored.setdefault(name, []).append(path)
        elif not any(path[: len(one)] == one for one in stored.get(name, ())):
            yield name


def _read_behind(
    statements: Sequence[ast.stmt], accesses: Sequence[Sequence[tuple[str, bool, Path]]]
) -> list[set[str]]:
    """For each statement the variables that it assigns, and that a later one reads of it."""
    found: list[set[str]] = [set() for _ in statements]
    assigning: dict[str, list[int]] = {}
    """By the variable, the statements of which one may have assigned it last."""
    for place, one in enumerate(accesses):
        for name in set(_undominated(one)):
            for other in assigning.get(name, ()):
                found[other].add(name)
        for name, is_stored, path in one:
            if is_stored and not path:
                assigning[name] = [place]
            elif is_stored and place not in assigning.setdefault(name, []):
                assigning[name].append(place)
    return found


def _accesses(statements: Sequence[ast.AST], path: Path) -> Iterator[tuple[str, bool, Path]]:
    """The variables that are read and assigned, in the order in which that happens, and where."""
    for one in statements:
        if isinstance(one, ast.Name):
            yield one.id, isinstance(one.ctx, ast.Store), path
        elif isinstance(one, ast.Assign):
            yield from _accesses([one.value, *one.targets], path)
        elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            yield one.target.id, False, path
            yield from _accesses([one.value, one.target], path)
        elif isinstance(one, ast.For):
            yield from _accesses([one.iter], path)
            yield from _accesses([one.target, *one.body], (*path, id(one)))
        elif isinstance(one, ast.While):
            yield from _accesses([one.test], path)
            yield from _accesses(one.body, (*path, id(one)))
        elif isinstance(one, ast.If):
            yield from _accesses([one.test], path)
            yield from _accesses(one.body, (*path, id(one)))
            yield from _accesses(one.orelse, (*path, -id(one)))
        else:
            yield from _accesses([*ast.iter_child_nodes(one)], path)
