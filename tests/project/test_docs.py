"""The programs of README and of `docs/` run, and print what they say; files that pages name exist."""

import multiprocessing
import re
import subprocess
from multiprocessing.context import BaseContext
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
AS_A_SCRIPT = """
import __main__, sys
sys.stdout, sys.stderr = open(printed, "w", 1, encoding="utf-8"), open(errors, "w", 1, encoding="utf-8")
exec(compile(program, "<string>", "exec"), vars(__main__))
"""


@pytest.fixture(scope="module")
def processes() -> BaseContext:
    """A server whose processes begin with what takes long to import, and nothing that a program did."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pullback", "pullback.codegen.machine.numba_backend"])
    return context


def _printed(program: str, processes: BaseContext, folder: Path) -> str:
    printed, errors = folder / "printed", folder / "errors"
    names = {"program": program, "printed": str(printed), "errors": str(errors)}
    run = processes.Process(target=exec, args=(AS_A_SCRIPT, names))
    run.start()
    run.join()
    assert run.exitcode == 0, errors.read_text(encoding="utf-8")
    return printed.read_text(encoding="utf-8")


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_print_what_they_say(program: str, processes: BaseContext, tmp_path: Path) -> None:
    for library in re.findall(r"^import (dask|pandas)\b", program, re.M):
        pytest.importorskip(library)  # an extra that `test` leaves out
    lines = _printed(program, processes, tmp_path).splitlines()
    expected = re.findall(r"print\(.*\)  # (.*)", program)
    for line, said in zip(lines, expected, strict=True):
        assert line.startswith(said.removesuffix("...")), lines


def test_readme_runs_and_shows_what_is_generated_today(processes: BaseContext, tmp_path: Path) -> None:
    model, shown, *more = re.findall(
        r"```python\n(.*?)```", (CHECKOUT / "README.md").read_text(encoding="utf-8"), re.S
    )
    (tmp_path / "model.py").write_text("\n\n".join((model, *more)), encoding="utf-8")
    program = f"import runpy; runpy.run_path({str(tmp_path / 'model.py')!r})"
    printed = _printed(program, processes, tmp_path)
    hashes = re.compile(r"_[0-9a-f]{6}(?=\()")
    assert hashes.sub("", printed).strip() == hashes.sub("", shown).strip()


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
