"""How generated text is laid out."""

import ast

from pullback.codegen.program import _import_lines
from pullback.codegen.writing.emit import emit
from pullback.codegen.writing.layout import ForLoop, Kernel, Line, Module


def test_a_comment_is_for_all_lines_up_to_the_next_one():
    inside = (Line("a = 1", "here"), Line("b = 2", "here"), Line("c = 3", "there"), Line("d = 4", "here"))
    body = (*inside, ForLoop("i", "0", "n", (Line("e = 5", "here"),)), Line("f = 6", "here"))
    text = emit(Module((), (), (Kernel("kernel", ("n",), (), body),)))
    lines = [line.split("#")[0].strip() for line in text.splitlines() if "# " in line]
    assert lines == ["a = 1", "c = 3", "d = 4", "e = 5", "f = 6"]
    assert all(f"{name} = " in text for name in "abcdef")


def test_long_imports_are_wrapped():
    names = [f"function_of_a_long_name_{number}" for number in range(6)]
    lines = _import_lines("pullback.codegen.matrices", names)
    assert len(lines) == 4 and max(map(len, lines)) <= 110
    assert ast.parse("\n".join(lines)).body[0].names[5].name == names[5]
    assert _import_lines("math", ["inf"]) == ["from math import inf"]
