"""From functions of the loop IR to a file of Python: the templates of `templates/`, and how lines break."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import jinja2

from ... import ir
from ..comments import comment_of
from .imports import LINE_LENGTH
from .lines import bounds, call, negated, statement
from .spelling import spell

COMMENT_COLUMN = 60


def emit(
    functions: Sequence[ir.Function],
    imports: Sequence[str],
    header: Sequence[str] = (),
    comments: bool = True,
) -> str:
    """The source of a generated file; without comments, what the machine code depends on."""
    if comments:
        functions = [replace(one, body=_said_once(one.body)) for one in functions]
    template = _environment().get_template("module.py.j2")
    written = _commented if comments else _indented
    return template.render(header=header, imports=imports, functions=functions, written=written)


def _said_once(body: ir.Body) -> ir.Body:
    """The statements, a comment being for all of them up to the next one."""
    result: list[ir.Stmt] = []
    said = ""
    for one in body:
        comment = comment_of(ir.origins_of(one))
        if ir.bodies(one):
            one = ir.with_bodies(one, _said_once)
        elif comment and comment == said:
            one = replace(one, origins=())  # type: ignore[arg-type]
        result.append(one)
        said = "" if _is_indented(one) else comment
    return tuple(result)


def _is_indented(one: ir.Stmt) -> bool:
    """Whether the comment of a statement stands in a block of its own."""
    return isinstance(one, ir.Library) and one.failure is not None


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pullback.codegen.targets.python"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # it is Python, not HTML
    )
    filters = (spell, statement, call, negated, bounds, signature)
    environment.filters |= {one.__name__: one for one in filters}
    for kind in (ir.For, ir.While, ir.If, ir.Check, ir.Library):
        environment.tests[kind.__name__] = _test_of(kind)
    return environment


def _test_of(kind: type) -> Callable[[ir.Stmt], bool]:
    return lambda one: isinstance(one, kind)


def _indented(line: str, one: ir.Stmt, depth: int) -> str:
    return "    " * depth + line


def _commented(line: str, one: ir.Stmt, depth: int) -> str:
    """The line with its comment in a column behind it, or above it where the line would be too long."""
    code = _indented(line, one, depth)
    said = comment_of(ir.origins_of(one))
    if not said:
        return code
    comment = f"# {said}"
    beside = f"{code:<{COMMENT_COLUMN - 2}}  {comment}"
    if len(beside) <= LINE_LENGTH:
        return beside
    indent = "    " * depth
    return f"{indent}{shortened(comment, LINE_LENGTH - len(indent))}\n{code}"


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 4]} ..."


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
