"""What generated code says about where a statement comes from, and how that, and long lines, stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pullback.tracer.origin import Origin

from .. import ir

LINE_LENGTH = 110
COMMENT_COLUMN = 60


def in_lines(parts: Sequence[str], width: int) -> list[str]:
    """Parts with commas between them, in lines of at most so many characters, which end without one."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(", ") + len(part) <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def comment_of(origins: Sequence[Origin]) -> str:
    """`model.py:5  h = pb.tanh(x)`, or `backward of model.py:5 (tanh, multiply), :4 (exp)`."""
    forward = [origin for origin in origins if origin.line and not origin.is_backward]
    backward = [origin for origin in origins if origin.line and origin.is_backward]
    if forward and not (origins and origins[0].is_backward):
        return forward[0].place_and_text
    places: dict[tuple[str, int], list[str]] = {}
    for origin in backward:
        rules = places.setdefault((origin.filename, origin.line), [])
        if origin.rule not in rules:
            rules.append(origin.rule)
    texts: list[str] = []
    for (filename, line), rules in places.items():
        first = next(one for one in backward if (one.filename, one.line) == (filename, line))
        place = first.place if not texts else f":{line}"
        texts.append(f"{place} ({', '.join(rules)})")
    return f"backward of {', '.join(texts)}" if texts else ""


def said_once(body: ir.Body, said: str = "") -> ir.Body:
    """The statements, a comment being for all of them up to the next one, in whatever loops they are."""
    return _said_once(body, said)[0]


def _said_once(body: ir.Body, said: str) -> tuple[ir.Body, str]:
    """The same where `said` is the comment in front, and the last one."""
    result: list[ir.Stmt] = []
    for one in body:
        if isinstance(one, ir.For | ir.While | ir.Shared):
            inner, said = _said_once(one.body, said)
            one = replace(one, body=inner)
        elif isinstance(one, ir.If):
            last = {_said_once(side, said)[1] for side in ir.bodies(one)}
            one = ir.with_bodies(one, partial(said_once, said=said))
            said = said if last == {said} else ""
        elif comment := comment_of(ir.origins_of(one)):
            if comment == said:
                one = replace(one, origins=())  # type: ignore[arg-type]
            said = "" if _is_indented(one) else comment
        result.append(one)
    return tuple(result), said


def _is_indented(one: ir.Stmt) -> bool:
    """Whether the comment of a statement stands in a block of its own."""
    return isinstance(one, ir.Library) and one.failure is not None


def indented(line: str, one: ir.Stmt, depth: int) -> str:
    return "    " * depth + line


def commented(line: str, one: ir.Stmt, depth: int, sign: str = "#") -> str:
    """The line with its comment in a column behind it, or above it where the line would be too long."""
    code = indented(line, one, depth)
    said = comment_of(ir.origins_of(one)).rstrip("\\")  # which would continue a comment of C's
    if not said:
        return code
    comment = f"{sign} {said}"
    beside = f"{code:<{COMMENT_COLUMN - 2}}  {comment}"
    if len(beside) <= LINE_LENGTH:
        return beside
    indent = "    " * depth
    return f"{indent}{shortened(comment, LINE_LENGTH - len(indent))}\n{code}"


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 4]} ..."
