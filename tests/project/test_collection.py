"""What Python's cyclic garbage collector has to do for an import and a first call."""

import subprocess
import sys
from pathlib import Path

import pytest

WALKED = """
import gc
import numpy as np

walked = []

def note(phase, info):
    if phase == "start":
        walked.append(len(gc.get_objects(generation=0)))

gc.collect()
gc.callbacks.append(note)
"""
"""`walked` is how many young objects each collection has found."""
CALL = "pb.compile(np.sin)(np.ones(3))"


@pytest.mark.drawn(6)
@pytest.mark.parametrize("program", ["import pullback", "import pullback as pb; " + CALL])
def test_what_is_imported_is_no_work_for_the_collector(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    program = (
        f"{WALKED}\n{program}\nothers = [[] for _ in range(5000)]  # start a collection\nprint(max(walked))"
    )
    for _ in range(2):  # compiled, and from disk
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert int(run.stdout) < 8_000, run.stderr


@pytest.mark.drawn(6)
def test_what_a_program_has_frozen_stays_so() -> None:
    program = f"""
import gc
gc.freeze()
frozen = gc.get_freeze_count()
import numpy as np, pullback as pb
{CALL}
assert gc.get_freeze_count() > frozen // 2 > 0, frozen
"""
    subprocess.run([sys.executable, "-c", program], check=True)
