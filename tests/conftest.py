"""What every test shares: the folder of compiled code, golden files, hypothesis' settings."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import numpy as np
import pytest

pytest_plugins = ["pytest_pullback", "pytester"]  # the first one also where no installed plugin is loaded

# Compiling takes longer than hypothesis' deadline, and does so once per structure.
hypothesis.settings.register_profile(
    "pullback", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("pullback")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--poison", action="store_true", help="fill new memory of kernels with nan, or -1 in integers"
    )
    parser.addoption(
        "--whole", action="store_true", help="all examples of random tests, and all programs as machine code"
    )
    parser.addoption(
        "--extent-seed", type=int, default=int(os.environ.get("PULLBACK_TEST_SEED", 0)),
        help="draws another part of the cases that are not all taken",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled code between runs, apart from the user's own; the workers of xdist inherit it.

    Every graph that a pass makes, and every program of the loop IR, is verified. Tests start many processes,
    so Python's own code of the modules is kept as well, also where the environment says otherwise: else each
    process compiles all that it imports.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PULLBACK_CHECK", "1")  # before `settings` is imported
    os.environ["PULLBACK_MACHINE"] = "reference"  # generated text is the same wherever tests run
    if config.getoption("--poison"):
        os.environ["PULLBACK_POISON_MEMORY"] = "1"  # before `memory` is imported
    if config.getoption("--whole"):
        os.environ["PULLBACK_TEST_WHOLE"] = "1"  # before `extent` is imported
    os.environ["PULLBACK_TEST_SEED"] = str(config.getoption("--extent-seed"))
    for package in os.environ.get("PULLBACK_TEST_WITH", "").split():
        if find_spec(package) is None:
            raise pytest.UsageError(f"{package} is not installed, and no test that needs it may be skipped.")
    cache = getattr(config, "cache", None)  # absent under -p no:cacheprovider
    if cache is not None:
        folder = cache.mkdir("pullback-compiled")
        folder.chmod(0o700)  # which others can write it would not be used
        os.environ.setdefault("PULLBACK_CACHE_DIR", str(folder))


def pytest_report_header(config: pytest.Config) -> str:
    if config.getoption("--whole"):
        return "extent: all cases"
    return f"extent: a part of like cases, drawn by --extent-seed={config.getoption('--extent-seed')}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of tests that are marked with `part` take a part; but all that somebody names."""
    from extent import part_of

    if any("::" in argument for argument in config.args):
        return
    taken = part_of(items)
    config.hook.pytest_deselected(items=list(set(items).difference(taken)))
    items[:] = taken


def pytest_collection() -> None:
    gc.disable()  # until all is there that stays


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: no collection of garbage need look at them.

    And none need come as often as in a program that holds much: it took a tenth of the time of tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let no test depend on those that ran before; a fixture that each test has would take ten times as long.

    None finds what another one has traced for functions that are made of the same code, and a module's random
    numbers begin anew.
    """
    shared = sys.modules.get("pullback.runtime.dispatch.shared")
    if shared is not None:
        shared.shared_programs.clear()
    module = getattr(item, "module", None)
    if isinstance(random := getattr(module, "RNG", None), np.random.Generator):
        first = vars(module).setdefault("FIRST_STATE", random.bit_generator.state)
        random.bit_generator.state = first


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
    """Of tests and their cases a part runs as machine code, and most by interpreters (`extent.py`).

    Those that are marked with `machine_code` say something of it, and run as such.
    """
    from extent import ONE_IN, machine_code

    of_machine_code = request.node.get_closest_marker("machine_code") is not None
    with machine_code(request.node.name, 1 if of_machine_code else ONE_IN):
        yield


@pytest.fixture
def golden(golden_text: Callable[..., None]) -> Callable[..., None]:
    """`golden(text, name="")`: the text is that of the golden file of the test, in tests/golden."""
    return golden_text
