"""Numbers about machines stand in `codegen/cost/machine.py`: passes ask it, and hold none.

In `codegen/` but for `cost/`, `vector_math/` (approximations) and `machine/` (loading, memory and threads of
this process, which decide nothing about programs), three things are looked for:

- a constant of a module that is a number and whose name speaks of bytes, caches, time or bandwidth;
- a comparison of what is called bytes or nanoseconds with a number but 0, or with a constant;
- a power of two from 4096 on: what is none of a machine's sizes is listed below, with what it is.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CODEGEN = Path(__file__).parents[2] / "codegen"
NOT_PASSES = ("cost", "vector_math", "machine")
OF_MACHINES = re.compile(r"BYTE|CACHE|NANO|MICRO|SECOND|TIME|LATENCY|BANDWIDTH|ALIGN|PAGE")
MEASURES = re.compile(r"nbytes|_bytes|bytes_|nanoseconds|seconds")
SMALLEST_SIZE = 1 << 12
NO_SIZES = {
    ("blas.py", 2**13): "elements of a result for which OpenBLAS copies its operands",
    ("blas.py", 2**19): "multiplications from which OpenBLAS copies its operands",
    ("derivatives/partition.py", 2**60): "infinity",
    ("nests/expression.py", 2**60): "infinity",
    ("ordering.py", 4096): "elements of a row in which a search begins near the last one",
    ("nests/totals.py", 4096): "terms of a sum, by the precision of float32",
    ("rolling/periods.py", 4096): "entries of a memo",
    ("rolling/steps.py", 2**53): "integers that float64 represents",
    ("rolling/turns.py", 1 << 30): "work after which a loop that rounding may keep from ending is left",
    ("rolling/turns.py", 1 << 14): "turns that such a loop takes at least",
}


def value_of(node: ast.AST) -> float | None:
    """The value of an expression of numbers alone, e.g. `1 << 20`."""
    if not isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp):
        return None
    known = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    if not all(isinstance(one, known) for one in ast.walk(node)):
        return None
    value = eval(compile(ast.Expression(node), "", "eval"))  # type: ignore[arg-type]
    return value if type(value) in (int, float) else None


def numbers(node: ast.AST) -> Iterator[tuple[int, float]]:
    """The line and the value of each number in a tree, an expression of numbers being one."""
    value = value_of(node)
    if value is not None:
        yield getattr(node, "lineno", 0), value
        return
    for inner in ast.iter_child_nodes(node):
        yield from numbers(inner)


def is_fixed(node: ast.AST) -> bool:
    """Whether an expression is a number, a constant, or made of these alone."""
    return value_of(node) is not None or (
        all(one.id.isupper() for one in ast.walk(node) if isinstance(one, ast.Name))
        and not any(isinstance(one, ast.Call | ast.Attribute) for one in ast.walk(node))
    )


def constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each number that a module gives a name."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
            if all(value_of(one) is not None for one in values):
                yield from ((statement.lineno, name) for name in names)


def findings(path: str, tree: ast.Module) -> list[str]:
    """One line for each number about machines in a file."""
    found = [f"{path}:{line} {name}" for line, name in constants(tree) if OF_MACHINES.search(f"_{name}_")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            texts = [ast.unparse(one) for one in sides if not is_fixed(one)]
            fixed = [one for one in sides if is_fixed(one) and value_of(one) not in (0, 0.0)]
            if fixed and any(map(MEASURES.search, texts)):
                found.append(f"{path}:{node.lineno} {ast.unparse(node)}")
    return found + [
        f"{path}:{line} {value}" for line, value in sizes(tree) if (path, value) not in NO_SIZES
    ]


def sizes(tree: ast.Module) -> Iterator[tuple[int, float]]:
    """Line and value of each power of two that may be the size of a cache."""
    for line, value in numbers(tree):
        if value >= SMALLEST_SIZE and float(value).is_integer() and int(value).bit_count() == 1:
            yield line, value


def passes() -> dict[str, str]:
    """The files that decide about programs, and their sources."""
    paths = {path.relative_to(CODEGEN).as_posix(): path for path in sorted(CODEGEN.rglob("*.py"))}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in paths.items()
        if name.split("/")[0] not in NOT_PASSES
    }


def test_passes_hold_no_numbers_about_machines() -> None:
    """And what is listed above is there."""
    found, seen = list[str](), set[tuple[str, float]]()
    for path, source in passes().items():
        tree = ast.parse(source)
        found += findings(path, tree)
        seen |= {(path, value) for _, value in sizes(tree)}
    assert (found, set(NO_SIZES) - seen) == ([], set())


@pytest.mark.parametrize("source", [
    "CACHED_BYTES = 1000",
    "SMALLEST, ROW_BYTES = 8, 100",
    "NANOSECONDS_PER_COST: float = 0.02",
    "ALIGNMENT = 64",
    "LARGEST = 1 << 15",
    "def f(node):\n    return node.spec.nbytes <= 30_000",
    "def f(node):\n    return LARGEST < node.spec.nbytes",
    "def f(task):\n    return task.nanoseconds > 1e9 * LEAST",
    "def f(x):\n    return x.size > 2**17",
])  # fmt: skip
def test_a_number_about_machines_is_found(source: str) -> None:
    assert findings("nests/stored.py", ast.parse(source)) != []


@pytest.mark.parametrize("source", [
    "MOST_ROUNDS = 20",
    "WORTH = 0.8\ndef f(a, b):\n    return a.nanoseconds < WORTH * b.nanoseconds",
    "def f(node):\n    return this_machine().stays_near(node.spec.nbytes) and node.spec.nbytes > 0",
    "def f(seed):\n    return 1 + 2 * seed.spec.nbytes",
])  # fmt: skip
def test_other_numbers_are_let_through(source: str) -> None:
    assert findings("nests/stored.py", ast.parse(source)) == []
