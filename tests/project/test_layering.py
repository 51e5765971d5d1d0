"""Imports go one way, heavy ones stay in one place, and the package list is the folders'."""

import ast
import functools
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "pullback.tracer": ROOT / "tracer",
    "pullback.codegen": ROOT / "codegen",
    "pullback.runtime": ROOT / "runtime",
    "pullback.examples": ROOT / "examples",
    "pullback": ROOT / "pullback",
}
# What each layer may import from, besides the outside world. The examples are users: the face only.
ALLOWED = {
    "pullback.tracer": {"pullback.tracer"},
    "pullback.codegen": {"pullback.tracer", "pullback.codegen"},
    "pullback.runtime": {"pullback.tracer", "pullback.codegen", "pullback.runtime"},
    "pullback.examples": {"pullback", "pullback.examples"},
    "pullback": set(FOLDERS),
}
ONLY_IMPORTER = {
    "numba": {"pullback.codegen.machine.numba_backend.parts"},
    "llvmlite": {
        "pullback.codegen.blas",
        "pullback.codegen.lapack",
        "pullback.codegen.machine.butterflies",
        "pullback.codegen.machine.compile",
        "pullback.codegen.machine.entry",
        "pullback.codegen.machine.llvm_loops",
        "pullback.codegen.machine.loading",
        "pullback.codegen.machine.numba_backend",
        "pullback.codegen.machine.sharing",
        "pullback.codegen.machine.transform_code",
        "pullback.codegen.machine.transforms",
        "pullback.codegen.machine.waking",
        "pullback.codegen.machine.workers",
        "pullback.codegen.sorting",
        "pullback.codegen.triangles",
        "pullback.codegen.vector_math.rare",
        "pullback.codegen.vector_math.staged",
    },
    "jinja2": {"pullback.codegen.targets.templates"},
}

# Folders of codegen on the way from a graph to text: each imports those before it only.
LOWERING = [f"pullback.codegen.{folder}" for folder in ("cost", "ir", "nests", "writing", "targets")]


def modules() -> dict[str, Path]:
    """Every module of the distribution by its dotted name; a package is named by its folder."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *(part for part in parts if part != "__init__")))
            found[name] = path
    return found


MODULES = modules()


def layer(name: str) -> str | None:
    """The layer of a dotted name; None for the outside world."""
    fitting = [package for package in FOLDERS if f"{name}.".startswith(f"{package}.")]
    return max(fitting, key=len, default=None)


def imports(module: str, source: str, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of every import in `source`, wherever it stands."""
    enclosing = module.split(".") if is_package else module.split(".")[:-1]
    tree = ast.parse(source)
    may_call = "import_module" in source or "__import__" in source
    for node in ast.walk(tree) if may_call else _statements(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = enclosing[: len(enclosing) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield node.lineno, submodule if submodule in MODULES else base
        elif isinstance(node, ast.Call) and _called(node).endswith(("import_module", "__import__")):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant):
                    yield node.lineno, str(argument.value)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All of a tree, without looking into expressions, which are most of it."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr))


@functools.cache
def imports_of(module: str) -> tuple[tuple[int, str], ...]:
    """The imports of a module of the distribution."""
    path = MODULES[module]
    return tuple(imports(module, path.read_text(encoding="utf-8"), path.name == "__init__.py"))


def _called(node: ast.Call) -> str:
    """What a call names last: `f` of `f(x)` and of `a.f(x)`."""
    function = node.func
    return getattr(function, "attr", getattr(function, "id", ""))


def is_above(name: str, module: str) -> bool:
    """Whether a name is of a folder behind that of a module, on the way from a graph to text."""
    places = [[f"{one}.".startswith(f"{folder}.") for folder in LOWERING] for one in (name, module)]
    return all(map(any, places)) and places[0].index(True) > places[1].index(True)


def violations(module: str, found: Iterable[tuple[int, str]]) -> list[str]:
    """One line for each of a module's imports that the layers forbid."""
    own = layer(module)
    assert own is not None
    forbidden = []
    for line, name in found:
        target = layer(name)
        if target is not None and target not in ALLOWED[own]:
            forbidden.append(f"{module}:{line} imports {name}: {own} may import {sorted(ALLOWED[own])}")
        if is_above(name, module):
            forbidden.append(f"{module}:{line} imports {name}: it goes {' <- '.join(LOWERING)}")
        importers = ONLY_IMPORTER.get(name.split(".")[0])
        if importers is not None and not any(f"{module}.".startswith(f"{one}.") for one in importers):
            forbidden.append(f"{module}:{line} imports {name}: only {', '.join(sorted(importers))} may")
    return forbidden


def test_imports_follow_the_layers() -> None:
    assert [one for module in MODULES for one in violations(module, imports_of(module))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pullback.tracer.graph", "from ..codegen import emit"),
        ("pullback.tracer.graph", "from .. import codegen"),
        ("pullback.tracer.graph", "import pullback"),
        ("pullback.tracer.ops.elementwise", "def lazily():\n    from ...runtime import tensor"),
        ("pullback.codegen.nests.fuse", "import pullback.runtime"),
        ("pullback.codegen.nests.fuse", "from numba import njit"),
        ("pullback.codegen.nests.plan", "from ..writing import functions"),
        ("pullback.codegen.ir.names", "from ..nests.tree import Root"),
        ("pullback.codegen.cost.machine", "from ..nests.expression import Expression"),
        ("pullback.codegen.machine.compile", "import jinja2"),
        ("pullback.runtime.values.tensor", "from pullback import sin"),
        ("pullback.runtime.values.tensor", "import importlib\nimportlib.import_module('numba.core')"),
        ("pullback.examples.digits", "from pullback.codegen.targets.python import emit"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(violations(module, imports(module, source))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pullback.tracer.ops.elementwise", "from ..spec import Spec\nfrom . import families"),
        ("pullback.codegen.machine.numba_backend.parts", "import numba\nfrom .....tracer import graph"),
        ("pullback.codegen.machine.numba_backend.lowering", "from .parts import ir"),
        ("pullback.codegen.targets.templates", "from jinja2 import Environment"),
        ("pullback.codegen.targets.python.emit", "from ... import ir\nfrom ...writing import explain"),
        ("pullback.codegen.writing.write", "from ..nests.tree import Root"),
        ("pullback.runtime.values.tensor", "from .. import tracer, codegen\nimport numpy"),
        ("pullback.examples.digits", "import pullback as pb"),
    ],
)
def test_an_allowed_import_passes(module: str, source: str) -> None:
    assert violations(module, imports(module, source)) == []


def test_few_files_import_each_other() -> None:
    """Imports inside functions count as well."""
    files = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    reached = {name: {target for _, target in imports_of(name) if target in files} for name in files}
    grown = True
    while grown:
        grown = False
        for found in reached.values():
            further = set[str]().union(*(reached[target] for target in found)) - found
            found |= further
            grown = grown or bool(further)
    cycles = [{other for other in found if name in reached[other]} for name, found in reached.items()]
    assert [sorted(cycle) for cycle in cycles if len(cycle) > 3] == []


def test_import_pullback_loads_what_is_needed_at_once(tmp_path: Path) -> None:
    heavy = {"numba", "llvmlite", "jinja2", "rich", "scipy", "platformdirs", "tempfile", "zipfile"}
    program = f"import sys, pullback; print(sorted({heavy} & sys.modules.keys()))"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_package_list_is_the_folders() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders_with_code = {
        ".".join((package, *path.parent.relative_to(folder).parts))
        for package, folder in FOLDERS.items()
        for path in folder.rglob("*.py")
    }
    packages_in_folders = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert folders_with_code == packages_in_folders, "a folder with code lacks its __init__.py"
    assert set(setuptools["packages"]) == packages_in_folders
    assert {name: ROOT / folder for name, folder in setuptools["package-dir"].items()} == FOLDERS
