"""The reference in `docs/reference/` has every public name once, and the examples of docstrings are right."""

import builtins
import collections
import contextlib
import doctest
import importlib
import tempfile
from pathlib import Path

import listing
import public_names
import pytest
from public_names import seen_by

PAGES = Path(__file__).parents[2] / "docs" / "reference"
COMPAT = "pullback.compat.autograd"
APART = ["pullback.testing.strategies", COMPAT, f"{COMPAT}.extend", f"{COMPAT}.misc"]
"""Public modules that `import pullback` does not name."""
MODULES = public_names.MODULES | {name: importlib.import_module(name) for name in APART}
NAMES = public_names.NAMES | {
    f"{module}.{name}": getattr(MODULES[module], name)
    for module in APART
    for name in MODULES[module].__all__
    if not hasattr(builtins, name)
}
EXAMPLES = {
    (id(value), value.__doc__): full
    for full, value in reversed(NAMES.items())
    if ">>>" in (value.__doc__ or "")
    and not full.startswith("pullback.dask.")  # which need a cluster
    and not full.startswith((f"{COMPAT}.install", f"{COMPAT}.uninstall"))  # which are of other programs
}.values()


def test_the_reference_has_every_public_name_once() -> None:
    listed = listing.listed(PAGES)
    twice = [name for name, times in collections.Counter(listed).items() if times > 1]
    assert (set(NAMES) - set(listed), set(listed) - set(NAMES), twice) == (set(), set(), [])


def test_every_page_of_the_reference_is_in_its_index() -> None:
    index = (PAGES / "index.rst").read_text(encoding="utf-8").split()
    assert {page.stem for page in PAGES.glob("*.rst")} - {"index"} <= set(index)


WITHOUT_EXAMPLE = {
    "pullback.autograd.graph.Node",  # the base class of tape nodes
    "pullback.cache.clear",  # which would empty the cache of whoever runs it
}


def test_every_function_and_class_has_an_example() -> None:
    """But errors, and those in place, which say what they do in the place of."""
    shown = {id(value) for full, value in NAMES.items() if full in EXAMPLES or ">>>" in (value.__doc__ or "")}
    missing = {
        full
        for full, value in NAMES.items()
        if callable(value) and id(value) not in shown and not full.endswith("_")
        if not isinstance(value, public_names.pb.dtype)
        if not (isinstance(value, type) and issubclass(value, BaseException))
    }
    assert missing == WITHOUT_EXAMPLE


class Checker(doctest.OutputChecker):
    """An example that shows no result may have any: it is run."""

    def check_output(self, want: str, got: str, flags: int) -> bool:
        return not want or super().check_output(want, got, flags)


LONG = {"pullback.tplquad"}  # integrals in integrals in integrals, one number at a time


@pytest.mark.parametrize(
    "full", [pytest.param(full, marks=[pytest.mark.slow] * (full in LONG)) for full in sorted(EXAMPLES)]
)
def test_examples_give_what_they_say(full: str) -> None:
    place, _, name = full.rpartition(".")
    example = doctest.DocTestParser().get_doctest(
        NAMES[full].__doc__, seen_by(MODULES[place], name), full, None, None
    )
    said: list[str] = []
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # sooner made than `tmp_path`
        assert not runner.run(example, out=said.append).failed, "".join(said)
