"""Generated code as HTML beside the user's lines, which it is linked to, with a picture of loops and arrays.

Colours are those of JupyterLab or VS Code where these say them, else for light or dark as the system asks.
Without scripts: lines that belong together are marked by the style sheet, with `:has`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...tracer.origin import UNKNOWN, Origin, file_name
from ...tracer.records import record
from .picture import picture

if TYPE_CHECKING:
    from ...codegen.program import Program
    from ...codegen.targets.templates import Environment

Place = tuple[str, int]
"""A file and a line."""
_numbers = itertools.count(1)


@record(frozen=True)
class Line:
    """A line of a page."""

    text: str
    """Highlighted, as HTML."""
    number: int
    """In its file, of the user's lines; in the text, of generated ones."""
    marks: str
    """The classes of the places that it belongs to."""
    links: tuple[tuple[str, int, bool], ...] = ()
    """Of a generated line: the mark of each place, its line, and whether a derivative of that is computed."""


@record(frozen=True)
class Excerpt:
    """Lines of one of the user's files."""

    title: str
    """Its name; empty behind another excerpt of it."""
    lines: tuple[Line, ...]


@record(frozen=True)
class Section:
    """A program."""

    title: str
    lines: tuple[Line, ...]
    picture: str


def page(name: str, programs: Sequence[Program], origin: Origin | None = None, note: str = "") -> str:
    """HTML of programs, beside the functions of the user's that they come from.

    Args:
        name: the title.
        programs: in their order.
        origin: of the user's function, which is first.
        note: what to say under the title.
    """
    located = [program.located_source for program in programs]
    origins = [one for lines in located for _, found in lines for one in found if one.line]
    places = list(dict.fromkeys((one.filename, one.line) for one in origins))
    marks = {place: f"pb-o{number}" for number, place in enumerate(places)}
    first = [(origin.filename, origin.line)] if origin is not None and origin.line else []
    return environment().get_template("page.html.j2").render(
        identity=f"pb-{next(_numbers)}-{_digest(programs)}",
        name=name,
        note=note,
        marks=list(marks.values()),
        excerpts=list(_excerpts([*first, *places], marks)),
        sections=[
            Section(program.title, tuple(_generated(lines, marks)), picture(program.account))
            for program, lines in zip(programs, located)
        ],
    )  # fmt: skip


def _digest(programs: Sequence[Program]) -> str:
    """What tells a page from those of the same number that a notebook has of former sessions."""
    return f"{zlib.crc32(''.join(one.source for one in programs).encode()):08x}"


def place_of(function: Any) -> Origin:
    """Where a function of Python stands."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return UNKNOWN if code is None else Origin(code.co_filename, code.co_firstlineno, "")


@functools.cache
def environment() -> Environment:
    """The templates of pages."""
    from ...codegen.targets.templates import environment  # which takes Jinja2

    return environment(__package__, {}, is_html=True)


def highlighted(source: str) -> list[str]:
    """The lines of Python source as HTML, with Pygments' classes."""
    from pygments import highlight  # not at start
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    html = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return html.rstrip("\n").split("\n")


def _generated(lines: Sequence[tuple[str, tuple[Origin, ...]]], marks: dict[Place, str]) -> Iterator[Line]:
    texts = highlighted("\n".join(text for text, _ in lines))
    for number, (text, (_, origins)) in enumerate(zip(texts, lines), 1):
        found = {
            (one.filename, one.line): (marks[one.filename, one.line], one.line, one.is_backward)
            for one in reversed(origins) if one.line
        }  # fmt: skip
        links = tuple(reversed(found.values()))
        yield Line(text, number, " ".join(mark for mark, _, _ in links), links)


# --- the user's lines ---------------------------------------------------------------------------------------


def _excerpts(places: Sequence[Place], marks: dict[Place, str]) -> Iterator[Excerpt]:
    """The functions that hold the places, those of the first file first."""
    for filename in dict.fromkeys(filename for filename, _ in places):
        linecache.checkcache(filename)
        source = linecache.getlines(filename)
        if not source:
            continue
        texts = highlighted("".join(source))
        wanted = [line for name, line in places if name == filename]
        title = file_name(filename)
        for start, end in _ranges("".join(source), wanted):
            lines = tuple(
                Line(texts[number - 1], number, marks.get((filename, number), ""))
                for number in range(start, min(end, len(texts)) + 1)
            )
            yield Excerpt(title, lines)
            title = ""


def _ranges(source: str, lines: Iterable[int]) -> list[tuple[int, int]]:
    """From which to which line the functions go that hold the lines; outside of functions, the statements."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a notebook's magic
        return [(line, line) for line in dict.fromkeys(lines)]
    found: dict[tuple[int, int], None] = {}
    for line in lines:
        statement = next((one for one in tree.body if _first(one) <= line <= _last(one)), None)
        found[(line, line) if statement is None else (_first(statement), _last(statement))] = None
    return list(found)


def _first(node: ast.stmt) -> int:
    return min((node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))))


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
