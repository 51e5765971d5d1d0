"""The plugin of pytest, in sessions of its own."""

import os
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

HEADER = "import numpy as np\nimport pullback as pb\nimport pytest\n"


def run(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    """A session with one file of tests, in a process of its own."""
    pytester.makepyfile(test_model=HEADER + test)
    return pytester.runpytest_subprocess("-p", "pytest_pullback", "-p", "no:cacheprovider", *options)


def run_here(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    """One whose tests do not ask for pullback, in this process, which takes less time."""
    pytester.makepyfile(test_model=f"import pytest\n{test}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # some plugins can be imported but once
        return pytester.runpytest_inprocess("-p", "pytest_pullback", "-p", "no:cacheprovider", *options)


@pytest.mark.drawn(4)
def test_pullback_is_not_imported_where_no_test_asks_for_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins import what they like
    pytester.makepyfile("""
        import sys

        def test_nothing():
            assert not {"pullback", "numpy", "hypothesis"} & set(sys.modules)
    """)
    options = ("-p", "pytest_pullback", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)


# --- recompilation ------------------------------------------------------------------------------------------

DOUBLE = """
@pb.compile
def double(x):
    return x * 2

@pytest.fixture
def warm():
    double(np.ones(3))
"""


@pytest.mark.drawn(6)
def test_what_compiles_inside_of_assert_no_recompile_fails(pytester: pytest.Pytester) -> None:
    found = run(pytester, DOUBLE + """
def test_known(assert_no_recompile, warm):
    with assert_no_recompile():
        double(np.zeros(3))

def test_new(assert_no_recompile, warm):
    with assert_no_recompile():
        double(np.ones((2, 2)))
""")
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["*RecompileError: double is called with*which is new*"])


@pytest.mark.drawn(6)
def test_the_mark_leaves_fixtures_free(pytester: pytest.Pytester) -> None:
    found = run(pytester, DOUBLE + """
@pytest.mark.assert_no_recompile
def test_known(warm):
    double(np.zeros(3))

@pytest.mark.assert_no_recompile
def test_new(warm):
    double(np.ones(3, np.float32))
""", "--strict-markers")
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["*FAILED*::test_new*RecompileError*"])


# --- gradients ----------------------------------------------------------------------------------------------


@pytest.mark.drawn(6)
def test_gradcheck_names_entry_values_and_rule(pytester: pytest.Pytester) -> None:
    found = run(pytester, """
@pb.custom_vjp
def cube(x):
    return x**3

cube.defvjp(lambda x: (x**3, x), lambda x, g: (2 * g * x**2,))

def loss(w, x):
    hidden = cube(w)
    return (hidden * x).sum()

def test_wrong(gradcheck):
    gradcheck(loss, np.array([1.0, 2.0]), np.array([0.0, 1.0]))

def test_right(gradcheck):
    gradcheck(lambda x: np.tanh(x).sum(), np.array([0.1, 2.0]))
""")
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines([
        "*gradcheck of loss: 1 of 4 entries differ from differences:",
        "*d value / d w[[]1]: 8 by the rules, 12* by differences",
        "*rule of cube*at test_model.py:12  hidden = cube(w)",
    ])  # fmt: skip


@pytest.mark.drawn(6)
def test_gradcheck_finds_wrong_second_derivatives(pytester: pytest.Pytester) -> None:
    found = run(pytester, """
@pb.custom_vjp
def slope(x):
    return 3 * x**2

slope.defvjp(lambda x: (3 * x**2, x), lambda x, g: (5 * g * x,))

@pb.custom_vjp
def cube(x):
    return x**3

cube.defvjp(lambda x: (x**3, x), lambda x, g: (g * slope(x),))

@pytest.mark.parametrize("order", [1, 2])
def test(gradcheck, order):
    gradcheck(lambda params: cube(params["a"]), {"a": 2.0}, order=order)
""")
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(
        ["*d² value / d params?'a'? d params?'a'?: 10 by the rules, 12*", "*rule of slope*"]
    )


# --- generated source ---------------------------------------------------------------------------------------

GOLDEN = """
def test_source(golden_text):
    golden_text("tanh")
"""


def test_golden_files_are_written_and_compared(pytester: pytest.Pytester) -> None:
    found = run_here(pytester, GOLDEN)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*There is no model.source.txt yet*--update-golden*"])
    run_here(pytester, GOLDEN, "--update-golden").assert_outcomes(passed=1)
    assert (pytester.path / "golden" / "model.source.txt").read_text() == "tanh\n"
    run_here(pytester, GOLDEN).assert_outcomes(passed=1)
    changed = run_here(pytester, GOLDEN.replace("tanh", "exp"))
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(["*-tanh", "*+exp", "*If it is meant*--update-golden*"])


@pytest.mark.drawn(4)
def test_golden_source_is_that_for_the_reference_machine(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pullback.testing import reference_source

    monkeypatch.delenv("PULLBACK_MACHINE")
    run(pytester, """
def test_source(golden_source):
    golden_source(pb.value_and_grad(lambda x: np.tanh(x).sum()), np.ones(3))
""", "--update-golden").assert_outcomes(passed=1)
    text = (pytester.path / "golden" / "model.source.txt").read_text()
    ours = reference_source(pb.value_and_grad(lambda x: np.tanh(x).sum()), np.ones(3))
    assert [line for line in text.splitlines() if "#" not in line and "def " not in line] == [
        line for line in ours.splitlines() if "#" not in line and "def " not in line
    ]


def test_golden_files_lie_where_the_configuration_says(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\npullback_golden = expected/source")
    run_here(pytester, GOLDEN, "--update-golden").assert_outcomes(passed=1)
    assert [path.name for path in (pytester.path / "expected" / "source").iterdir()] == ["model.source.txt"]


def test_tests_with_one_golden_file_are_named(pytester: pytest.Pytester) -> None:
    folder = pytester.path / "golden"
    folder.joinpath("model.unreadable.txt").mkdir(parents=True)
    folder.joinpath("model.end_of_lines.txt").write_text("one\r\ntwo\r\n", newline="")
    found = run_here(pytester, r"""
@pytest.mark.parametrize("text", ["a b", "a-b"])
def test_parameters(golden_text, text):
    golden_text(text)

class TestOne:
    def test(self, golden_text):
        golden_text("one")

class TestTwo:
    def test(self, golden_text):
        golden_text("two")

def test_twice(golden_text):
    golden_text("one")
    golden_text("one")
    golden_text("two")

def test_names(golden_text):
    golden_text("one", name="first/../line")
    golden_text("two", name="second")

def test_end_of_lines(golden_text):
    golden_text("one\r\ntwo")

def test_unreadable(golden_text):
    golden_text("one")
""", "--update-golden")
    found.assert_outcomes(passed=4, failed=4)
    found.stdout.fnmatch_lines([
        "*model.parameters-a-b.txt is the golden file of test_model.py::test_parameters?a-b? as well*",
        "*This test has another text for model.twice.txt already: give each a `name=`.",
        "*The golden file */golden/model.unreadable.txt cannot be used: *",
    ])  # fmt: skip
    found.stdout.no_fnmatch_line("*pytest_pullback.py*")
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "model.TestOne.test.txt", "model.TestTwo.test.txt", "model.twice.txt", "model.end_of_lines.txt",
        "model.names.first-line.txt", "model.names.second.txt",
    }  # fmt: skip


# --- ways to run --------------------------------------------------------------------------------------------


@pytest.mark.drawn(6)
def test_generated_source_runs_in_python_where_breakpoints_hold(pytester: pytest.Pytester) -> None:
    test = """
import pdb, sys

def test():
    f = pb.compile(lambda x: np.tanh(x).sum())
    f(np.ones(3))
    (program,) = f.programs(np.ones(3))
    line = next(n for n, text in enumerate(program.source.splitlines(), 1) if "tanh(x[i])" in text)
    debugger = pdb.Pdb(nosigint=True)
    assert debugger.set_break(str(program.path), line) is None
    seen = []
    debugger.user_line = lambda frame: (
        seen.append((frame.f_code.co_filename, frame.f_lineno, frame.f_locals["i"]))
        if debugger.break_here(frame) else None, debugger.set_continue())
    debugger.runcall(f, np.ones(3))
    assert seen == [(str(program.path), line, i) for i in range(3)]
    assert f.cache_info().compilations == 0

def test_memory_is_that_of_the_interpreter(assert_peak_bytes):
    assert_peak_bytes(1, np.ones, 9)

@pytest.mark.assert_peak_bytes(1)
def test_memory_is_not_compared():
    np.ones(9)
"""
    found = run(pytester, test, "--pullback-uncompiled", "-s")
    found.assert_outcomes(passed=3)
    found.stdout.fnmatch_lines(["pullback: Python runs generated source*"])


@pytest.mark.drawn(6)
def test_the_checked_way_runs_the_loop_ir(pytester: pytest.Pytester) -> None:
    test = """
def test(monkeypatch):
    from pullback.codegen.ir import interpret as module
    from pullback.tracer.settings import CHECKING

    runs = []
    interpret = module.interpret
    monkeypatch.setattr(module, "interpret", lambda *given: runs.append(1) or interpret(*given))
    f = pb.value_and_grad(pb.compile(lambda x: np.tanh(x).sum()))
    value, slope = f(np.ones(3))
    np.testing.assert_allclose(slope, 1 - np.tanh(np.ones(3)) ** 2)
    assert runs and CHECKING
"""
    run(pytester, test, "--pullback-check").assert_outcomes(passed=1)


def test_only_one_way_can_be_chosen(pytester: pytest.Pytester) -> None:
    found = run_here(pytester, "", "--pullback-check", "--pullback-uncompiled")
    found.stderr.fnmatch_lines(["*exclude each other*"])


def test_a_way_holds_for_its_session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several in one process, as in a notebook."""
    monkeypatch.delenv("PULLBACK_RUN", raising=False)
    run_here(pytester, """
def test_way():
    import os
    assert os.environ["PULLBACK_RUN"] == "uncompiled"
""", "--pullback-uncompiled").assert_outcomes(passed=1)
    assert "PULLBACK_RUN" not in os.environ


def test_an_unknown_way_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_RUN", "fast")
    with pytest.raises(pb.errors.ArgumentError, match="PULLBACK_RUN is 'fast'.*uncompiled"):
        pb.compile(lambda x: x * 2)(1.0)


# --- memory -------------------------------------------------------------------------------------------------


@pytest.mark.drawn(6)
def test_peaks_of_memory(pytester: pytest.Pytester) -> None:
    found = run(pytester, """
@pb.compile
def double(x):
    return x * 2

def test_enough(assert_peak_bytes):
    assert_peak_bytes(900_000, double, np.ones(100_000))

def test_too_much(assert_peak_bytes):
    assert_peak_bytes(700_000, double, np.ones(100_000))

@pytest.mark.assert_peak_bytes(700_000)
def test_marked():
    np.ones(100_000)

@pytest.mark.assert_peak_bytes(900_000)
def test_marked_with_enough():
    for _ in range(3):
        np.ones(100_000)

@pytest.mark.assert_peak_bytes
def test_marked_without_number():
    pass

@pytest.mark.assert_no_recompile(1)
def test_marked_with_what_means_nothing():
    pass

def test_without_limit(assert_peak_bytes):
    assert_peak_bytes(double, np.ones(3))
""", "--strict-markers")
    found.assert_outcomes(passed=2, failed=5)
    found.stdout.no_fnmatch_line("*pytest_pullback.py*")
    found.stdout.fnmatch_lines([
        "*bytes at the peak of the call, and at most 700,000 are allowed.*",
        "*value: float64?100000?, 800,000 bytes, an output*",
        "*bytes at the peak, and at most 700,000 are allowed.*",
        "Say how many bytes: `@pytest.mark.assert_peak_bytes(4096)`.",
        "The mark takes no arguments: `@pytest.mark.assert_no_recompile`.",
        "*expected a number of bytes, a function and its arguments, found CompiledFunction and ndarray.",
    ])  # fmt: skip


def test_the_plugin_is_installed_under_its_own_name() -> None:
    import pytest_pullback

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'{pytest_pullback.__name__} = "{pytest_pullback.__name__}"' in text
