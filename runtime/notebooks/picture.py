"""The account of a program as a picture: loops in loops with what they do, and arrays with their sizes."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...codegen.account import Account, Array, LoopNest, Statement

ROW, PADDING, INDENT, WIDTH = 20, 6, 14, 760
LETTER = 6.7
"""The width of a letter, in a font that has one width."""
NAMES, BARS = 270, 150
"""Where the columns of the arrays are: names, sizes, and the functions that use them."""


def picture(account: Account) -> str:
    """An SVG: loop nests in their order, and under them the arrays that the program fills.

    Of an array the bar says how much of the largest it takes, and the line from which to which of the
    functions it is used. One that lies in another's memory has an outline.
    """
    from ...codegen.writing.explain import cost_line  # not at start

    arrays = {one.name: one for one in account.arrays}
    parts, y = [], 0
    for step in account.steps:
        parts.append(_text(0, y, cost_line(step), "pb-faint"))
        drawn, height = _work(step.work, arrays, 0, y + ROW)
        parts += drawn
        y += ROW + height + PADDING
    parts += _arrays(account, y)
    height = y + ROW * (len(account.arrays) + 1) + PADDING
    return (
        f'<svg class="pb-picture" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="loops and arrays">{"".join(parts)}</svg>'
    )


def _work(work: LoopNest | Statement, arrays: dict[str, Array], x: int, y: int) -> tuple[list[str], int]:
    """The drawing of a loop or a statement, and its height."""
    from ...codegen.account import Statement
    from ...codegen.writing.explain import loop_line, statement_line

    if isinstance(work, Statement):
        return [_text(x + PADDING, y, statement_line(work, arrays), f"pb-{work.kind}")], ROW
    parts, below = [_text(x + PADDING, y, loop_line(work), "pb-loop")], ROW
    for one in work.body:
        drawn, height = _work(one, arrays, x + INDENT, y + below)
        parts += drawn
        below += height
    below += PADDING
    box = _box(x, y, WIDTH - 2 * x, below - 2, "pb-nest")
    return [box, *parts], below


def _arrays(account: Account, y: int) -> Iterator[str]:
    """A row for each array: its name, a bar of its size, and a line along the functions that use it."""
    from ...codegen.writing.explain import in_bytes, spec_of

    if not account.arrays:
        return
    largest = max(one.nbytes for one in account.arrays) or 1
    first = NAMES + BARS + 90
    column = (WIDTH - first) / max(1, len(account.functions))
    has_lives = len(account.functions) > 1
    if has_lives:
        yield _text(NAMES + BARS + 6, y, "in function", "pb-faint")
    for place, function in enumerate(account.functions if has_lives else ()):
        yield _text(round(first + place * column), y, f"{place + 1}", "pb-faint", title=function.name)
    for place, array in enumerate(account.arrays):
        top = y + ROW * (place + 1)
        kind = "pb-lent" if array.lies_in else "pb-output" if array.is_output else "pb-scratch"
        yield _text(0, top, f"{array.name}: {spec_of(array)}", kind, NAMES)
        yield _box(NAMES, top + 4, max(2, round(BARS * array.nbytes / largest)), ROW - 8, f"pb-bar {kind}")
        size = f"in {array.lies_in}" if array.lies_in else in_bytes(array.nbytes)
        yield _text(NAMES + BARS + 6, top, size, "pb-faint", 84)
        if has_lives:
            start, end = _lifetime(array, account)
            left, length = round(first + start * column), round((end - start) * column)
            yield _box(left, top + 8, length - 4, 4, f"pb-bar {kind}")


def _lifetime(array: Array, account: Account) -> tuple[int, int]:
    """The first function that uses an array, and the one behind the last; outputs are read in the end."""
    places = [place for place, one in enumerate(account.functions) if array.name in one.arrays]
    last = len(account.functions) if array.is_output or not places else places[-1] + 1
    return (places[0] if places else 0), max(1, last)


def _box(x: int, y: int, width: int, height: int, kind: str) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{max(1, width)}" height="{height}" rx="3"/>'


def _text(x: int, y: int, text: str, kind: str, room: int = 0, title: str = "") -> str:
    """Text that fits; the whole of it shows where the pointer is."""
    letters = int(((room or WIDTH - x) - PADDING) / LETTER)
    shown = text if len(text) <= letters else f"{text[: letters - 1]}…"
    whole = f"<title>{html.escape(title or text)}</title>" if title or shown != text else ""
    return f'<text class="{kind}" x="{x}" y="{y + 14}">{whole}{html.escape(shown)}</text>'
