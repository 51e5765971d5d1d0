"""Programs of others that import HIPS autograd: run with it, and with pullback in its place."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def both_ways(tmp_path: Path) -> Callable[..., tuple[Any, Any]]:
    """Runs a program, which prints JSON, with pullback and with HIPS autograd; gives what both print."""
    pytest.importorskip("autograd")

    def run(program: str, *options: str) -> tuple[Any, Any]:
        script = tmp_path / "program.py"
        script.write_text(program, encoding="utf-8")
        found = []
        for form in (["-m", "pullback.compat.autograd", *options], []):
            command = [sys.executable, "-W", "ignore", *form, str(script)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            found.append(json.loads(done.stdout.splitlines()[-1]))
        return found[0], found[1]

    return run
