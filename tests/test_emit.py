"""How generated text is laid out."""

from pullback.codegen.writing.emit import emit
from pullback.codegen.writing.layout import ForLoop, Kernel, Line, Module


def test_a_comment_is_for_all_lines_up_to_the_next_one():
    inside = (Line("a = 1", "here"), Line("b = 2", "here"), Line("c = 3", "there"), Line("d = 4", "here"))
    body = (*inside, ForLoop("i", "0", "n", (Line("e = 5", "here"),)), Line("f = 6", "here"))
    text = emit(Module((), (), (Kernel("kernel", ("n",), (), body),)))
    lines = [line.split("#")[0].strip() for line in text.splitlines() if "# " in line]
    assert lines == ["a = 1", "c = 3", "d = 4", "e = 5", "f = 6"]
    assert all(f"{name} = " in text for name in "abcdef")
