"""How generated text is laid out."""

import ast

import numpy as np
import pytest

from pullback.codegen import ir
from pullback.codegen.targets.python import emit as python_emit
from pullback.codegen.targets.python.emit import emit
from pullback.codegen.targets.python.imports import wrapped_import
from pullback.codegen.targets.templates import Environment, environment
from pullback.codegen.writing.local_names import without_unread
from pullback.tracer.origin import Origin
from pullback.tracer.spec import BOOL


def let(name: str, line: int) -> ir.Let:
    return ir.Let(ir.Variable(name), ir.number(1), (Origin("model.py", line, "x = y"),))


def test_a_comment_is_for_all_lines_up_to_the_next_one():
    inside = (let("a", 1), let("b", 1), let("c", 2), let("d", 1))
    loop = ir.For(ir.Variable("i"), ir.number(0), ir.Variable("n"), (let("e", 1),))
    body = (*inside, loop, let("f", 1))
    text = emit([ir.Function("kernel", (ir.Variable("n"),), (), body)], [])
    lines = [line.split("#")[0].strip() for line in text.splitlines() if "# " in line]
    assert lines == ["a = 1", "c = 1", "d = 1"]  # and for those in the loop
    assert all(f"{name} = " in text for name in "abcdef")


def test_loops_and_choices_of_unread_variables_are_left_out():
    """Text has no blocks without a statement."""
    i, n = ir.Variable("i"), ir.Variable("n")
    store = ir.Store(ir.Load(ir.Buffer("x", np.dtype(int), (4,), "output"), (i,)), ir.Variable("read"))

    def loop(*body: ir.Stmt) -> ir.For:
        return ir.For(i, ir.number(0), n, body)

    def choice(*body: ir.Stmt, otherwise: ir.Body = ()) -> ir.If:
        return ir.If(((ir.Variable("is_so", BOOL), body),), otherwise)

    partly = choice(let("a", 1), otherwise=(store,))
    body = (let("read", 1), loop(let("b", 1)), loop(loop(let("c", 1)), choice(let("d", 1)), partly))
    assert without_unread(body) == (let("read", 1), loop(partly))


def test_long_imports_are_wrapped():
    names = [f"function_of_a_long_name_{number}" for number in range(6)]
    lines = wrapped_import("pullback.codegen.matrices", names)
    assert len(lines) == 4 and max(map(len, lines)) <= 110
    assert ast.parse("\n".join(lines)).body[0].names[5].name == names[5]
    assert wrapped_import("math", ["inf"]) == ["from math import inf"]


def test_templates_are_compiled_once_for_all_processes(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    compiled = []
    compile_template = Environment.compile
    monkeypatch.setattr(
        Environment, "compile", lambda *args, **more: compiled.append(args) or compile_template(*args, **more)
    )
    package = "pullback.codegen.targets.python"
    filters = dict.fromkeys(python_emit._environment().filters, str)
    for expected in (1, 1):  # another environment is what another process has
        environment(package, filters).get_template("module.py.j2")
        assert len(compiled) == expected
    (kept,) = tmp_path.rglob("template.*")
    kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.warns(RuntimeWarning, match="damaged"):
        environment(package, filters).get_template("module.py.j2")
    assert len(compiled) == 2
