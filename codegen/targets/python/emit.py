"""From functions of the loop IR to a file of Python: the templates of `templates/`, and how lines break."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ... import ir
from ..comments import LINE_LENGTH, commented, in_lines, indented, said_once
from ..templates import Environment, environment
from .lines import bounds, call, negated, parts, statement
from .spelling import spell


def emit(
    functions: Sequence[ir.Function],
    imports: Sequence[str],
    header: Sequence[str] = (),
    comments: bool = True,
) -> str:
    """The source of a generated file; without comments, what the machine code depends on."""
    if comments:
        functions = [replace(one, body=said_once(one.body)) for one in functions]
    written = commented if comments else indented
    template = _environment().get_template("module.py.j2")
    return template.render(header=header, imports=imports, functions=functions, written=written)


def emit_located(
    functions: Sequence[ir.Function], imports: Sequence[str], header: Sequence[str] = ()
) -> list[tuple[str, ir.Origins]]:
    """The lines of `emit`, each with the places that its statement comes from."""
    written: list[tuple[str, ir.Origins]] = []
    commented_once = [replace(one, body=said_once(one.body)) for one in functions]
    own = {
        id(with_comment): ir.origins_of(one)
        for before, after in zip(functions, commented_once)
        for one, with_comment in zip(ir.walk(before.statements), ir.walk(after.statements))
    }

    def noted(line: str, one: ir.Stmt, depth: int) -> str:
        text = commented(line, one, depth)
        written.extend((part, own[id(one)]) for part in text.splitlines())
        return text

    template = _environment().get_template("module.py.j2")
    source = template.render(header=header, imports=imports, functions=commented_once, written=noted)
    waiting = iter([*written, ("", ())])  # templates write statements in their order
    found: list[tuple[str, ir.Origins]] = []
    expected, origins = next(waiting)
    for line in source.splitlines():
        is_statement = bool(line) and line == expected
        found.append((line, origins if is_statement else ()))
        if is_statement:
            expected, origins = next(waiting)
    return found


@functools.cache
def _environment() -> Environment:
    filters = (spell, statement, call, negated, bounds, parts, signature)
    return environment(__package__, {one.__name__: one for one in filters})


def signature(function: ir.Function) -> str:
    """The `def` of a function, on several lines if it is long."""
    parameters = [one.name for one in function.parameters]
    one_line = f"def {function.name}({', '.join(parameters)}):"
    if len(one_line) <= LINE_LENGTH:
        return one_line
    lines = in_lines(parameters, LINE_LENGTH - 8)
    return f"def {function.name}(\n    " + ",\n    ".join(lines) + ",\n):"
