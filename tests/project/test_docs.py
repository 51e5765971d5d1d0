"""The programs of the pages in `docs/` run, and print what they say; files that pages name exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
PROGRAMS = [
    pytest.param(program, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, program in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    )
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_print_what_they_say(program: str) -> None:
    for library in re.findall(r"^import (dask)\b", program, re.M):
        pytest.importorskip(library)  # an extra that `test` leaves out
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    expected = re.findall(r"print\(.*\)  # (.*)", program)
    for line, said in zip(run.stdout.splitlines(), expected, strict=True):
        assert line.startswith(said.removesuffix("...")), run.stdout


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "benchmarks/README.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    files = [Path(one) for one in listed.stdout.split()]
    known = {f"/{one}" for file in files for one in (file, *file.parents)}
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    named = re.findall(r"[\w/.]*\w\.(?:py|pyi|md|toml|c|h)\b|\b[\w/]+/(?=[\s`,;:)])", text)
    found = {one.rstrip("/") for one in named} - {"model.py"}
    assert not [one for one in sorted(found) if not any(path.endswith(f"/{one}") for path in known)]
