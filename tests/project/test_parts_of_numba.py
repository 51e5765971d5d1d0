"""Which parts of Numba the compiler leans on: a version of Numba that changes them has to be looked at."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_layering import MODULES, imports_of

PARTS = "pullback.codegen.machine.numba_backend.parts"
"""The one file that imports Numba; others take what they need from there."""
USED = """
numba.core.compiler_lock.global_compiler_lock
numba.core.compiler_lock.global_compiler_lock._lock
numba.core.cpu_options.FastMathOptions
numba.core.fastmathpass.rewrite_module
numba.core.ir.Arg
numba.core.ir.Assign
numba.core.ir.Block
numba.core.ir.Branch
numba.core.ir.Const
numba.core.ir.Expr.binop
numba.core.ir.Expr.build_tuple
numba.core.ir.Expr.call
numba.core.ir.Expr.cast
numba.core.ir.Expr.exhaust_iter
numba.core.ir.Expr.getattr
numba.core.ir.Expr.getitem
numba.core.ir.Expr.inplace_binop
numba.core.ir.Expr.static_getitem
numba.core.ir.Expr.unary
numba.core.ir.Expr
numba.core.ir.Global
numba.core.ir.Jump
numba.core.ir.Loc
numba.core.ir.Return
numba.core.ir.Scope
numba.core.ir.SetItem
numba.core.ir.StaticRaise
numba.core.ir.Var
"""
PRIVATE = {
    "pullback.codegen.machine.small_calls": {"_core"},
    "pullback.codegen.sorting": {"_ARRAY_API"},  # NumPy's table for C, which has this name
}
"""Underscored names of other libraries in files that import llvmlite."""


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def offered() -> dict[str, str]:
    """The names of Numba that `parts` has, dotted."""
    found = {}
    for node in tree(PARTS).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
            found.update({alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def dotted(node: ast.expr) -> str:
    """`ir.Expr.binop`; empty for what begins with no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def names_used(module: str) -> Iterator[str]:
    """The names of Numba that a file uses."""
    known, whole = offered(), tree(module)
    mine = {
        alias.name
        for node in ast.walk(whole)
        if isinstance(node, ast.ImportFrom) and node.module == "parts"
        for alias in node.names
    }
    mine = set(known) if module == PARTS else mine
    for node in ast.walk(whole):
        first, _, rest = dotted(node).partition(".") if isinstance(node, ast.Attribute) else ("", "", "")
        if first in mine:
            yield f"{known[first]}.{rest}"
        elif isinstance(node, ast.Name) and node.id in mine and node.id[0].isupper():
            yield known[node.id]
        elif isinstance(node, ast.With):
            yield from (known[name] for one in node.items if (name := dotted(one.context_expr)) in mine)
        elif isinstance(node, ast.ClassDef):
            yield from underscored(node, [known[base] for one in node.bases if (base := dotted(one)) in mine])


def underscored(made: ast.ClassDef, bases: list[str]) -> Iterator[str]:
    """Private names that a class takes from its bases."""
    for node in ast.walk(made) if bases else ():
        name = node.name if isinstance(node, ast.FunctionDef) else getattr(node, "attr", "")
        if name.startswith("_") and not name.startswith("__"):
            yield f"{bases[0]}.{name}"


def test_the_names_of_numba_that_are_used() -> None:
    backend = [name for name in MODULES if name.startswith(PARTS.rpartition(".")[0])]
    assert {name for module in backend for name in names_used(module)} == set(USED.split())


def test_one_file_imports_numba() -> None:
    importing = {
        module
        for module in MODULES
        for _, name in imports_of(module)
        if name.split(".")[0] == "numba"
    }
    assert importing == {PARTS}


def test_nothing_private_of_llvmlite_is_used() -> None:
    """Attributes with an underscore, but for those of the object itself and of the file's own classes."""
    for module in MODULES:
        reads = imports_of(module)
        if not any(name.startswith("llvmlite") for _, name in reads) or module == PARTS:
            continue
        own = {node.name for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef)}
        found = {
            node.attr
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr not in own
            if not node.attr.startswith("__") and dotted(node.value) not in ("self", "cls")
        }
        assert found <= PRIVATE.get(module, set()), module


NUMBA = """
import numba
from numba import njit, prange
print(njit(lambda n: n + 1)(2), numba.__version__ == numba._version.get_versions()["version"])
print(hasattr(numba, "no_such_name"))
"""
KERNEL = """
import numpy as np, pullback as pb
print(pb.compile(lambda x: x * 2.0)(np.ones(3)).sum())
"""
LOADED = """
import sys
names = "numba.core.ir", "numba.core.dispatcher", "numba.core.types.abstract"
print(*(name in sys.modules for name in names))
"""
LATER = """
from numba.core.types import int64
import numba.core.typing
print(int64, numba.core.typing.signature.__name__)
"""
OPTIONS = """
import importlib.util, sys
print("yaml.reader" in sys.modules)
if importlib.util.find_spec("yaml"):
    import yaml
    assert yaml.safe_load("n: 3") == {"n": 3}
"""


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (KERNEL + LOADED + NUMBA, "6.0\nTrue False False\n3 True\nFalse\n"),
        (NUMBA + LOADED + KERNEL, "3 True\nFalse\nTrue True True\n6.0\n"),
        (KERNEL + LATER + OPTIONS, "6.0\nint64 signature\nFalse\n"),
    ],
)
def test_numba_is_whole_for_whoever_imports_it(
    program: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel loads parts of it, whether it comes before or after."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout == printed, result.stderr
