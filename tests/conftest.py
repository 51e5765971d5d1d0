"""What every test shares: the folder of compiled code, golden files, hypothesis' settings."""

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

GOLDEN_FOLDER = Path(__file__).parent / "golden"

# Compiling takes longer than hypothesis' deadline, and does so once per structure.
hypothesis.settings.register_profile(
    "pullback", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("pullback")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing with them"
    )
    parser.addoption(
        "--poison", action="store_true", help="fill new memory of kernels with nan, or -1 in integers"
    )
    parser.addoption(
        "--whole", action="store_true", help="all examples of random tests, and all programs as machine code"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled code between runs, apart from the user's own; the workers of xdist inherit it.

    Every graph that a pass makes, and every program of the loop IR, is verified.
    """
    os.environ.setdefault("PULLBACK_CHECK", "1")  # before `settings` is imported
    os.environ["PULLBACK_MACHINE"] = "reference"  # generated text is the same wherever tests run
    if config.getoption("--poison"):
        os.environ["PULLBACK_POISON_MEMORY"] = "1"  # before `memory` is imported
    if config.getoption("--whole"):
        os.environ["PULLBACK_TEST_WHOLE"] = "1"  # before `extent` is imported
    for package in os.environ.get("PULLBACK_TEST_WITH", "").split():
        if find_spec(package) is None:
            raise pytest.UsageError(f"{package} is not installed, and no test that needs it may be skipped.")
    cache = getattr(config, "cache", None)  # absent under -p no:cacheprovider
    if cache is not None:
        folder = cache.mkdir("pullback-compiled")
        folder.chmod(0o700)  # which others can write it would not be used
        os.environ.setdefault("PULLBACK_CACHE_DIR", str(folder))


@pytest.fixture(autouse=True)
def own_programs() -> None:
    """Let no test find what another one has traced for functions that are made of the same code."""
    shared = sys.modules.get("pullback.runtime.dispatch.shared")
    if shared is not None:
        shared.shared_programs.clear()


@pytest.fixture(scope="module")
def importable() -> Iterator[None]:
    """Let other processes import a test's module by its name, as pickles have it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        yield


@pytest.fixture
def uncompiled() -> Iterator[None]:
    """Generated code is run by interpreters, which takes less time than compiling it."""
    from uncompiled import uncompiled

    with uncompiled():
        yield


@pytest.fixture
def partly_compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of the cases of a test a part runs as machine code, and most of them by interpreters (`extent.py`)."""
    from extent import machine_code

    has_cases = hasattr(request.node, "callspec")
    with machine_code(request.node.name) if has_cases else nullcontext():
        yield


def normalised(text: str) -> str:
    """`text` without what changes from version to version: the version and the hashes in names."""
    text = re.sub(r"pullback \d+(\.\w+)+", "pullback VERSION", text)
    return re.sub(r"_[0-9a-f]{6,64}\b", "_HASH", text)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function that compares a text with the golden file of the running test.

    `golden(text)` compares with tests/golden/MODULE.TEST.txt, `golden(text, "backward.py")` with
    tests/golden/MODULE.TEST.backward.py.txt, and fails with a diff. `pytest --update-golden` writes the
    file; read its change as any other before committing it.
    """
    module = request.path.stem.removeprefix("test_")
    test = re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-")
    update = request.config.getoption("--update-golden")

    def compare(text: str, name: str = "") -> None:
        path = GOLDEN_FOLDER / ".".join(part for part in (module, test, name, "txt") if part)
        actual = normalised(text).rstrip("\n") + "\n"
        if update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(actual, encoding="utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(f"There is no {path.name} yet: `pytest --update-golden` writes it.", pytrace=False)
        expected = path.read_text(encoding="utf-8")
        if actual != expected:
            diff = difflib.unified_diff(
                expected.splitlines(), actual.splitlines(), path.name, "now", lineterm=""
            )
            pytest.fail(
                "\n".join(diff) + "\nIf the change is meant: `pytest --update-golden`.", pytrace=False
            )

    return compare
