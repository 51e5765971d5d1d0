"""Where in the user's program a value came from: file, line, text, and the variable it was assigned to."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import field, replace
from functools import lru_cache
from opcode import opname
from types import CodeType, FrameType
from typing import Any, NoReturn

import numpy as np

from .errors import PullbackError
from .records import record

# The folders of this distribution: frames in them are not the user's. In a checkout they are the top-level
# folders, installed they are sub-packages; examples are user code.
_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_HERE)
_INSTALLED = os.path.exists(os.path.join(_ROOT, "__init__.py"))
_FACE = _ROOT if _INSTALLED else os.path.join(_ROOT, "pullback")
_OWN_TREES = (
    *(os.path.join(_ROOT, folder, "") for folder in ("tracer", "codegen", "runtime")),
    os.path.join(_FACE, "compat", ""),
)
_PLUGIN = os.path.join(os.path.dirname(_ROOT) if _INSTALLED else _ROOT, "pytest_pullback.py")
_OPERATORS = os.path.join(os.path.dirname(np.__file__), "lib", "mixins.py")
"""What calls our ufuncs for `a + b` of arrays that grow."""
_OTHERS = ("<frozen", "<calls of Python from machine code>", "<what a compiled function reaches>")
"""What Python is made with, and code of ours that has no file."""
_OWN = (*_OWN_TREES, *_OTHERS, _OPERATORS, _PLUGIN)
_STANDARD_LIBRARY = os.path.join(sysconfig.get_path("stdlib"), "")
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@record(frozen=True, slots=True)
class Origin:
    """A place in the user's source; `rule` names the operator whose vjp rule made a backward value."""

    filename: str
    line: int
    text: str
    target: str = ""
    rule: str = ""
    instruction: int = field(default=0, compare=False)
    """Which one of its function: tells in which order a line computes."""

    @property
    def place(self) -> str:
        """`model.py:5`"""
        return f"{file_name(self.filename)}:{self.line}" if self.line else self.filename

    @property
    def place_and_text(self) -> str:
        """`model.py:5  x += 1`; the place alone where nobody has the text."""
        return f"{self.place}  {self.text}".rstrip()

    @property
    def is_backward(self) -> bool:
        return bool(self.rule)


UNKNOWN = Origin("", 0, "")
_override: ContextVar[Origin | None] = ContextVar("origin", default=None)


class located_at:
    """Values made inside come from `origin`, whatever line is being executed.

    A class, and no generator: passes enter it for each node.
    """

    __slots__ = ("_origin", "_token")

    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    def __enter__(self) -> None:
        origin = self._origin
        self._token = _override.set(_without_target(origin) if origin.target else origin)

    def __exit__(self, *error: object) -> None:
        _override.reset(self._token)


@lru_cache(maxsize=4096)
def _without_target(origin: Origin) -> Origin:
    return replace(origin, target="")


@contextmanager
def unlocated() -> Iterator[None]:
    """Values made inside come from no line, unless they are located: that which is run is a caller's."""
    with located_at(UNKNOWN):
        yield


def named_at_line(name: str) -> AbstractContextManager[None]:
    """Values made inside come from the current line, and have a name; without one if they are located."""
    return nullcontext() if _override.get() is not None else _named(replace(current_origin(), target=name))


@contextmanager
def _named(origin: Origin) -> Iterator[None]:
    token = _override.set(origin)
    try:
        yield
    finally:
        _override.reset(token)


def kept_at(origin: Origin) -> AbstractContextManager[None]:
    """Values made inside come from `origin`, if that is known, and unless they are located already."""
    is_located = _override.get() not in (None, UNKNOWN)
    return nullcontext() if is_located or not origin.line else located_at(origin)


def backward_of(origin: Origin, rule: str) -> AbstractContextManager[None]:
    """Values made inside come from the vjp rule of an operator that ran at `origin`."""
    return located_at(replace(origin, rule=rule))


def current_origin(inside: int = 0) -> Origin:
    """The innermost place outside of pullback that is being executed.

    Args:
        inside: how many of the frames around the call are known to be pullback's: each that is looked at is
            made an object, which takes longer than asking it.
    """
    override = _override.get()
    if override is not None:
        return override
    frame: FrameType | None = sys._getframe(1 + inside)
    while frame is not None:
        code = frame.f_code
        if not _own_files[code.co_filename]:
            place = id(code), frame.f_lasti
            found = _origins.get(place)
            if found is None:
                found = _origins[place] = code, _origin_at(code, frame.f_lasti)
            return found[1]
        frame = frame.f_back
    return UNKNOWN


def user_frame() -> FrameType | None:
    """The innermost frame of code that is not part of pullback."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _own_files[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def warn_at_user(message: str) -> None:
    """A UserWarning at the innermost line outside of pullback, as Python shows it: once for each line."""
    caller = user_frame()
    if caller is not None:
        registry = caller.f_globals.setdefault("__warningregistry__", {})
        place = caller.f_code.co_filename, caller.f_lineno
        warnings.warn_explicit(message, UserWarning, *place, registry=registry)


def frames_within(root: CodeType | None) -> Iterator[FrameType]:
    """What runs inside of a function with this code, the innermost first, from the caller's caller on."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not root:
        yield frame
        frame = frame.f_back


def calling_frame() -> FrameType | None:
    """The innermost frame of the user's program; of a library if there is no other."""
    innermost = frame = user_frame()
    while frame is not None:
        if is_users_code(frame.f_code):
            return frame
        frame = frame.f_back
    return innermost


def is_own(code: CodeType) -> bool:
    """Whether code is pullback's."""
    return _own_files[code.co_filename]


def is_users_code(code: CodeType) -> bool:
    """Whether code is neither pullback's nor a library's."""
    return is_users_file(code.co_filename)


@lru_cache(maxsize=4096)
def is_users_file(filename: str) -> bool:
    """Whether a file is neither pullback's nor a library's; of Cython's only tracebacks know."""
    return not (
        _own_files[filename]
        or filename.endswith((".pyx", ".pxd", "<stringsource>"))
        or filename.startswith(_STANDARD_LIBRARY)
        or any(folder in filename for folder in _PACKAGES)
    )


def expression_at(code: CodeType, instruction: int) -> str:
    """The text of the expression that an instruction is part of, as `np.exp(x)`; empty without source."""
    start, end, column, end_column = list(code.co_positions())[instruction // 2]
    if start is None or end is None:
        return ""
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(start, end + 1)]
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column or 0 :]
    return b"".join(lines).decode(errors="replace")


class _OwnFiles(dict[str, bool]):
    """By file name whether it is pullback's; asked of many frames for each traced operation."""

    def __missing__(self, filename: str) -> bool:
        own = os.path.dirname(filename) == _FACE or filename.startswith(_OWN)
        if len(self) < 4096:
            self[filename] = own
        return own


_own_files = _OwnFiles()


class _Origins(dict[tuple[int, int], tuple[CodeType, Origin]]):
    """By the id of code and the instruction the code, which keeps its id, and the place: its hash is slow."""

    def __setitem__(self, place: tuple[int, int], found: tuple[CodeType, Origin]) -> None:
        if len(self) >= 16384:
            self.clear()
        super().__setitem__(place, found)


_origins = _Origins()


def array_changed() -> str:
    """The array of a statement `x[k] += v` that is being executed; empty for any other."""
    frame = user_frame()
    return "" if frame is None else _changed_at(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=16384)
def _changed_at(code: CodeType, instruction: int) -> str:
    line, end, column, end_column = list(code.co_positions())[instruction // 2]
    return _statements(code.co_filename).array_changed((line or 0, end, column or 0, end_column))


def _origin_at(code: CodeType, instruction: int) -> Origin:
    _read_anew(code)
    start, end, column, end_column = list(code.co_positions())[instruction // 2]
    line = start or code.co_firstlineno
    is_store = opname[code.co_code[instruction]].startswith("STORE_")
    statement, target = _statements(code.co_filename).lookup((line, end, column or 0, end_column), is_store)
    text = linecache.getline(code.co_filename, statement or line).strip()
    return Origin(code.co_filename, line, text, target, instruction=instruction)


def place_of_caller() -> str:
    """`model.py:5  hidden = pb.tanh(x)`: for error messages; empty where there is no source."""
    frame = calling_frame()
    return "" if frame is None else place_of_line(frame.f_code.co_filename, frame.f_lineno)


def at_place(place: str) -> str:
    """`, at model.py:5  x += 1` for the middle of a sentence; nothing for no place."""
    return f", at {place}" if place else ""


def at_caller() -> str:
    """`at_place` of the user's line that is being executed."""
    return at_place(place_of_caller())


def fail(error: type[PullbackError], message: str) -> NoReturn:
    """Raise `error` with the user's line under the message."""
    place = place_of_caller()
    raise error(f"{message}\n  at {place}" if place else message)


def placed(function: Callable[[], Any]) -> Any:
    """The result of `function`; pullback's errors in it get the user's line."""
    try:
        return function()
    except PullbackError as error:
        fail(type(error), str(error))


def place_of_line(filename: str, line: int) -> str:
    """`model.py:5  x += 1`"""
    text = linecache.getline(filename, line).strip()
    shown = text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} ..."
    return f"{file_name(filename)}:{line}  {shown}".rstrip()


def file_name(path: str) -> str:
    """The last part of a path, as text: where the locale has other letters, Python gives parts of letters.

    Of a cell of IPython it is `In[3]`, as in its tracebacks.
    """
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    cell = shell and shell.compile.format_code_name(path)
    if cell:
        _cells[str(cell[1])] = path
        return str(cell[1])
    return os.path.basename(path).encode(errors="surrogateescape").decode(errors="replace")


_cells: dict[str, str] = {}
"""By the name of a cell that was shown, `In[3]`, what Python calls its code."""
_latest: dict[str, str] = {}
"""By what Python calls the code of a cell, that of the last one in which the same code was found again."""


def note_same_code(before: str, now: str) -> None:
    """A function was found to have the code, and the lines, of a former one: its cell runs again."""
    if before != now or before in _latest:
        _latest[before] = now


def with_latest_cells(text: str) -> str:
    """A text of generated code, with the cells that have run last where code of former ones serves them."""
    return re.sub(r"\bIn\[\d+\]", lambda found: _latest_of(found[0]), text) if _cells else text


def _latest_of(cell: str) -> str:
    path = _cells.get(cell)
    return cell if path is None else file_name(_latest.get(path, path))


LONGEST_LINE = 120
"""Characters of a line that a message shows."""


Position = tuple[int, int | None, int, int | None]
"""First and last line of an expression, first and last column."""


class _Statements:
    """The statements of a file: which one covers a line, and which names its expressions are assigned to.

    Of its functions those are read that are asked for: to walk over a file takes as long as a small trace.
    """

    def __init__(self, tree: ast.Module | None) -> None:
        self.first_line: dict[int, int] = {}
        self.targets: dict[Position, str] = {}
        """Where an expression is: the variable that it is assigned to."""
        self.written: dict[Position, str] = {}
        """Where `x[k]` is that is written: the array."""
        self.changed: dict[Position, str] = {}
        """Where `x[k] += v` is: the array."""
        self._unread = list(tree.body) if tree else []

    def _read(self, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt) and not hasattr(node, "body"):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    self.first_line.setdefault(line, node.lineno)
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._enter(node.targets[0], node.value)
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
                where = node if isinstance(node, ast.AugAssign) else node.value
                self._enter(node.target, where)

    def _enter(self, target: ast.expr, value: ast.expr | ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self.targets[_position(value)] = target.id
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.written[_position(target)] = target.value.id
            if isinstance(value, ast.AugAssign):
                self.changed[_position(value)] = target.value.id
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, expression in zip(target.elts, value.elts):
                self._enter(one, expression)

    def lookup(self, place: Position, is_store: bool) -> tuple[int, str]:
        """The line that a statement begins in, and the variable that an instruction there makes or writes."""
        self._read_around(place[0])
        names = self.written if is_store else self.targets
        return self.first_line.get(place[0], place[0]), names.get(place, "")

    def array_changed(self, place: Position) -> str:
        """The array of a statement `x[k] += v`."""
        self._read_around(place[0])
        return self.changed.get(place, "")

    def _read_around(self, line: int) -> None:
        if found := [one for one in self._unread if _covers(one, line)]:
            for one in found:
                self._read(one)
            self._unread = [one for one in self._unread if one not in found]


def _position(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _covers(statement: ast.stmt, line: int) -> bool:
    """Whether a statement has a line, that of a decorator among them."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(one.lineno for one in decorators)])
    return first <= line <= (statement.end_lineno or statement.lineno)


@lru_cache(maxsize=4096)
def _read_anew(code: CodeType) -> None:
    """Look whether the file of a function has changed, once: new code in it comes from a module reloaded."""
    linecache.checkcache(code.co_filename)


def _statements(filename: str) -> _Statements:
    linecache.getlines(filename)
    return _statements_of(filename, *linecache.cache.get(filename, (0, None))[:2])


@lru_cache(maxsize=256)
def _statements_of(filename: str, size: int, time: float | None) -> _Statements:
    """Those of a file that has this size, and was changed at this time."""
    try:
        return _Statements(ast.parse("".join(linecache.getlines(filename))))
    except (SyntaxError, ValueError):  # no Python source: a notebook magic, a template, a binary file
        return _Statements(None)
