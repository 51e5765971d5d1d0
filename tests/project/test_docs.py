"""The programs of the pages in `docs/` run, and print what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = [
    pytest.param(program, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, program in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    )
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_print_what_they_say(program: str) -> None:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    expected = re.findall(r"print\(.*\)  # (.*)", program)
    for line, said in zip(run.stdout.splitlines(), expected, strict=True):
        assert line.startswith(said.removesuffix("...")), run.stdout
