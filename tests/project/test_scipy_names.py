"""Every name of SciPy's in the documentation is in a row of a table, or in a program, of a test."""

import ast
import re
from pathlib import Path

from scipy_rows import POLYNOMIALS, SPECIAL
from scipy_solver_rows import SOLVERS

from pullback.runtime.scipy_api.distributions import NAMES

ROOT = Path(__file__).parents[2]
FOLDERS = ("functions", "values", "scipy_tables")
TESTS = sorted(one for folder in FOLDERS for one in (ROOT / "tests" / folder).glob("*.py"))
SECTION = re.compile(r"^## ", re.MULTILINE)
NAME = re.compile(r"`(?:[\w.]+\.)?([A-Za-z_]\w*)(?:\(.*?\))?`")
SOLVERS_OF = ("scipy.optimize", "scipy.integrate", "scipy.sparse.linalg")


def named_in(text: str) -> set[str]:
    return set(NAME.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)))


def names_in_tests() -> set[str]:
    """Names and strings in the code of tests, but not in their texts, and those of rows."""
    found = {*NAMES, *POLYNOMIALS, *(re.split(r"\W", row)[0] for row in (*SPECIAL, *SOLVERS))}
    for file in TESTS:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Name | ast.Attribute):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                found.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg:
                found.add(node.arg)
    return found


def test_every_documented_name_is_tested() -> None:
    missing = {}
    known = names_in_tests()
    for section in SECTION.split((ROOT / "docs" / "scipy.md").read_text())[1:]:
        title = section.split("\n")[0]
        missing[title] = sorted(named_in(section.removeprefix(title)) - known)
    assert not any(missing.values()), missing


def test_every_documented_solver_has_a_row() -> None:
    """Of closed forms; integrals over three variables, which take long, have tests of their own."""
    names = set()
    for line in (ROOT / "docs" / "solvers.md").read_text().splitlines():
        if line.startswith(tuple(f"| `{one}` |" for one in SOLVERS_OF)):
            names |= named_in(line.split("|", 2)[2])
    assert len(names) > 30
    assert names - {re.split(r"\W", row)[0] for row in SOLVERS} == {"tplquad", "nquad"}
