"""pytest's plugin of pullback: recompilation, gradients, generated source, memory; see docs/testing.md.

Every pytest loads it where pullback is installed. So it stands outside of the package and imports that only
for a test which asks for something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pullback import fail_on_recompile

WAYS = {
    "uncompiled": "Python runs generated source, slowly: breakpoints in it hold",
    "check": "an interpreter runs programs, very slowly: it checks bounds, and poisons scratch",
}
ITEMS = pytest.StashKey[dict[Path, list[str]]]()
"""Of each golden file the tests that may compare with it, without the name they give it."""
MARKS = (
    "assert_no_recompile: the test's call, without its fixtures, may trace and compile nothing",
    "assert_peak_bytes(limit): the test's call, without its fixtures, may hold so many more bytes at once",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pullback")
    group.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing with them"
    )
    for name, what in WAYS.items():
        group.addoption(f"--pullback-{name}", action="store_true", help=what)
    parser.addini("pullback_golden", "folder of the golden files, from pytest's root (golden/ beside a test)")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Ask for another way to run, before a conftest imports pullback; worker processes inherit it."""
    options = early_config.known_args_namespace
    if options.pullback_uncompiled and options.pullback_check:
        raise pytest.UsageError("--pullback-uncompiled and --pullback-check exclude each other.")
    environment = pytest.MonkeyPatch()
    early_config.add_cleanup(environment.undo)
    if options.pullback_uncompiled:
        environment.setenv("PULLBACK_RUN", "uncompiled")
    if options.pullback_check:
        environment.setenv("PULLBACK_RUN", "checked")
        environment.setenv("PULLBACK_CHECK", "1")


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"pullback: {what}" for name, what in WAYS.items() if config.getoption(f"pullback_{name}")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """The marks hold while the test runs, and not for its fixtures."""
    recompile, peak = map(item.get_closest_marker, ("assert_no_recompile", "assert_peak_bytes"))
    if recompile is None and peak is None:
        return (yield)
    from contextlib import nullcontext

    from pullback import fail_on_recompile
    from pullback.runtime.testing.peak_memory import refusal, watched

    limit = None if peak is None else _limit(peak)
    if _is_interpreted(item.config):
        limit = None
    if recompile is not None and (recompile.args or recompile.kwargs):
        pytest.fail("The mark takes no arguments: `@pytest.mark.assert_no_recompile`.", pytrace=False)
    with (
        nullcontext() if limit is None else watched() as found,
        nullcontext() if recompile is None else fail_on_recompile(),
    ):
        result = yield
    if found is not None and found.nbytes > limit:
        pytest.fail(refusal(found.nbytes, limit), pytrace=False)
    return result


def _limit(mark: pytest.Mark) -> int:
    given = (*mark.args, *mark.kwargs.values())
    if len(given) != 1 or not mark.kwargs.keys() <= {"limit"} or type(given[0]) is not int or given[0] < 0:
        pytest.fail("Say how many bytes: `@pytest.mark.assert_peak_bytes(4096)`.", pytrace=False)
    limit: int = given[0]
    return limit


def _is_interpreted(config: pytest.Config) -> bool:
    """Whether memory is that of an interpreter, of which no limit speaks."""
    return any(config.getoption(f"pullback_{name}") for name in WAYS)


# --- fixtures -----------------------------------------------------------------------------------------------


@pytest.fixture
def assert_no_recompile() -> type[fail_on_recompile]:
    """`with assert_no_recompile(): step(x)`: what would trace or compile a function inside raises."""
    from pullback import fail_on_recompile

    return fail_on_recompile


@pytest.fixture
def gradcheck() -> Callable[..., None]:
    """`gradcheck(f, *args, order=2)`: each entry of the derivatives of f is that of finite differences.

    A failure names the entries, both values, and the rule and line that is responsible. Further arguments
    are those of `pullback.testing.check_gradients`.
    """
    from pullback.testing import check_gradients

    return check_gradients


@pytest.fixture
def assert_peak_bytes(pytestconfig: pytest.Config) -> Callable[..., None]:
    """`assert_peak_bytes(limit, f, *args)`: a call of f holds at most so many more bytes at once.

    It is called once before, so that what compiling takes does not count. Where programs are interpreted
    (`--pullback-uncompiled`, `--pullback-check`) it is called, and nothing is compared.
    """
    from pullback.testing import assert_peak_bytes

    if not _is_interpreted(pytestconfig):
        return assert_peak_bytes
    return lambda limit, function, /, *args, **kwargs: function(*args, **kwargs)


@pytest.fixture
def golden_source(golden_text: Callable[..., None]) -> Callable[..., None]:
    """`golden_source(f, *args, name="")`: what is generated for such a call is what the golden file says.

    For the same text everywhere it is generated for the reference machine. Where a test compares several
    calls, each has a `name`. See `golden_text`.
    """
    from pullback.testing import reference_source

    def compare(function: Callable[..., Any], /, *args: Any, name: str = "", **kwargs: Any) -> None:
        __tracebackhide__ = True
        golden_text(reference_source(function, *args, **kwargs), name)

    return compare


@pytest.fixture
def golden_text(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function that compares a text with the golden file of the running test.

    `golden_text(text)` compares with MODULE.TEST.txt, of a class's test MODULE.CLASS.TEST.txt, and
    `golden_text(text, "backward")` with MODULE.TEST.backward.txt. It fails with a diff; pullback's version,
    the hashes in names and how lines end do not count. `pytest --update-golden` writes the file; read its
    change as any other before committing it.
    """
    update = request.config.getoption("update_golden")
    texts: dict[Path, str] = {}

    def compare(text: str, name: str = "") -> None:
        __tracebackhide__ = True
        if not (isinstance(text, str) and isinstance(name, str)):
            pytest.fail(f"golden_text: expected a text and perhaps a name, found {text!r:.60} and {name!r}.")
        _require_alone(request.node)
        stem = _golden_file(request.node)
        path = stem.with_name(".".join(part for part in (stem.name, _slug(name), "txt") if part))
        actual = normalised(text).rstrip("\n") + "\n"
        if texts.setdefault(path, actual) != actual:
            pytest.fail(f"This test has another text for {path.name} already: give each a `name=`.")
        try:
            known = path.read_text(encoding="utf-8") if path.exists() else None
            if update and known != actual:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(actual, encoding="utf-8", newline="\n")
        except OSError as error:
            pytest.fail(f"The golden file {path} cannot be used: {error.strerror}.")
        if update:
            return
        if known is None:
            pytest.fail(f"There is no {path.name} yet: `pytest --update-golden` writes it.")
        if known != actual:
            pytest.fail(f"{_difference(known, actual, path)}\nIf it is meant: `pytest --update-golden`.")

    return compare


def _golden_file(item: pytest.Item) -> Path:
    """The file of a test without its ending: `golden/model.source`, or `golden/model.TestLoss.source`."""
    chosen = item.config.getini("pullback_golden")
    folder = item.config.rootpath / chosen if chosen else item.path.parent / "golden"
    classes = [one.name for one in item.listchain() if isinstance(one, pytest.Class)]
    module, test = item.path.stem.removeprefix("test_"), item.name.removeprefix("test_")
    return folder / ".".join((module, *classes, _slug(test)))


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")


def _require_alone(item: pytest.Item) -> None:
    """Fail if another test of the session has the same golden file, which the last one would write."""
    __tracebackhide__ = True
    if (known := item.session.stash.get(ITEMS, None)) is None:
        known = item.session.stash[ITEMS] = {}
        for one in item.session.items:
            if "golden_text" in getattr(one, "fixturenames", ()):
                known.setdefault(_golden_file(one), []).append(one.nodeid)
    others = [one for one in known.get(_golden_file(item), ()) if one != item.nodeid]
    if others:
        pytest.fail(
            f"{_golden_file(item).name}.txt is the golden file of {others[0]} as well: give one of the tests "
            "another name, or its parameters an `id`."
        )


def normalised(text: str) -> str:
    """`text` without the version, the hashes in names, and Windows' ends of lines."""
    text = text.replace("\r\n", "\n")
    text = re.sub(r"pullback \d+(\.\w+)+", "pullback VERSION", text)
    return re.sub(r"_[0-9a-f]{6,64}\b", "_HASH", text)


def _difference(expected: str, actual: str, path: Path) -> str:
    from difflib import unified_diff  # not at start

    lines = unified_diff(expected.splitlines(), actual.splitlines(), path.name, "now", lineterm="")
    return "\n".join(lines)
