"""From functions of the loop IR to a file of Python: the templates of `templates/`, and how lines break."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ... import ir
from ..comments import LINE_LENGTH, commented, indented, said_once
from ..templates import Environment, environment
from .lines import bounds, call, negated, statement
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
    template = _environment().get_template("module.py.j2")
    written = commented if comments else indented
    return template.render(header=header, imports=imports, functions=functions, written=written)


@functools.cache
def _environment() -> Environment:
    filters = (spell, statement, call, negated, bounds, signature)
    return environment(__package__, {one.__name__: one for one in filters})


def signature(function: ir.Function) -> str:
    """The `def` of a function, on several lines if it is long."""
    parameters = [one.name for one in function.parameters]
    one_line = f"def {function.name}({', '.join(parameters)}):"
    if len(one_line) <= LINE_LENGTH:
        return one_line
    lines, current = [], ""
    for parameter in parameters:
        if len(current) + len(parameter) > LINE_LENGTH - 8:
            lines.append(current.rstrip())
            current = ""
        current += f"{parameter}, "
    lines.append(current.rstrip())
    return f"def {function.name}(\n    " + "\n    ".join(lines) + "\n):"
