"""From layout to text: the templates of `templates/`, and how a line breaks or carries its comment."""

from __future__ import annotations

import functools
from dataclasses import replace

import jinja2

from .layout import LINE_LENGTH, ForLoop, Item, Kernel, Line, Module

COMMENT_COLUMN = 60


def emit(module: Module, comments: bool = True) -> str:
    """The source of a generated file; without comments, what the machine code depends on."""
    kernels = tuple(replace(one, body=_said_once(one.body)) for one in module.kernels)
    return _environment(comments).get_template("module.py.j2").render(module=replace(module, kernels=kernels))


def _said_once(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items, a comment being for all lines up to the next one."""
    result: list[Item] = []
    said = ""
    for item in items:
        if not isinstance(item, Line):
            result.append(replace(item, body=_said_once(item.body)))
            said = ""
        else:
            result.append(Line(item.text) if item.comment == said else item)
            said = item.comment
    return tuple(result)


@functools.cache
def _environment(comments: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pullback.codegen.writing"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # it is Python, not HTML
    )
    environment.filters["statement"] = _statement if comments else _bare_statement
    environment.filters["bounds"] = _bounds
    environment.filters["signature"] = _signature
    return environment


def _bounds(loop: ForLoop) -> str:
    if loop.step:
        return f"{loop.start}, {loop.stop}, {loop.step}"
    return loop.stop if loop.start == "0" else f"{loop.start}, {loop.stop}"


def _bare_statement(line: Line, depth: int) -> str:
    return "    " * depth + line.text


def _statement(line: Line, depth: int) -> str:
    """The statement with its comment in a column behind it, or above it where the line would be too long."""
    code = _bare_statement(line, depth)
    if not line.comment:
        return code
    comment = f"# {line.comment}"
    beside = f"{code:<{COMMENT_COLUMN - 2}}  {comment}"
    if len(beside) <= LINE_LENGTH:
        return beside
    indent = "    " * depth
    return f"{indent}{shortened(comment, LINE_LENGTH - len(indent))}\n{code}"


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 4]} ..."


def _signature(kernel: Kernel) -> str:
    one_line = f"def {kernel.name}({', '.join(kernel.parameters)}):"
    if len(one_line) <= LINE_LENGTH:
        return one_line
    lines, current = [], ""
    for parameter in kernel.parameters:
        if len(current) + len(parameter) > LINE_LENGTH - 8:
            lines.append(current.rstrip())
            current = ""
        current += f"{parameter}, "
    lines.append(current.rstrip())
    return f"def {kernel.name}(\n    " + "\n    ".join(lines) + "\n):"
