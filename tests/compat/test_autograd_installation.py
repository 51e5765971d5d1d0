"""pullback in the place of HIPS autograd: `install`, `installed`, and programs that are run with it."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.compat import autograd as ours
from pullback.compat.autograd.installation import InstallationError, options
from pullback.errors import GradientError


def parts() -> dict[str, ModuleType]:
    return {name: one for name, one in sys.modules.items() if name.partition(".")[0] == "autograd"}


@pytest.fixture(autouse=True)
def without_autograd() -> Iterator[None]:
    """HIPS autograd, which other tests may have imported, is not imported meanwhile."""
    before = parts()
    for name in before:
        del sys.modules[name]
    yield
    ours.uninstall()
    sys.modules.update(before)


def test_inside_imports_give_our_modules_and_after_it_all_is_as_before() -> None:
    finders = list(sys.meta_path)
    with ours.installed():
        import autograd.numpy as anp
        import autograd.scipy.stats.norm as norm
        from autograd import grad
        from autograd.scipy.special import gammaln

        assert sys.modules["autograd"] is ours and anp.__name__ == "pullback.compat.autograd.numpy"
        assert anp.__spec__.name == anp.__name__
        assert grad(lambda x: norm.logpdf(x) + gammaln(x))(1.0) == pytest.approx(-1 - np.euler_gamma)
    assert not parts() and sys.meta_path == finders


def named(x: Any) -> Any:
    return x._value if str(type(x)) == "<class 'autograd.numpy.numpy_boxes.ArrayBox'>" else x


def test_the_class_of_what_is_differentiated_is_that_of_a_box() -> None:
    def of_parts(x: Any) -> Any:
        known = float(named(x[0] * 2.0))
        return known * x[1]

    with ours.installed():
        assert ours.grad(of_parts)(np.array([1.0, 2.0])).tolist() == [0.0, 2.0]
        assert type(named(np.ones(2))) is np.ndarray
    with pytest.raises(GradientError, match=r"float\(\)"):
        ours.grad(of_parts)(np.array([1.0, 2.0]))


def test_a_function_keeps_its_name_beside_a_module_of_this_name() -> None:
    with ours.installed():
        import autograd.misc
        from autograd.misc.flatten import flatten_func

        assert autograd.misc.flatten is ours.misc.flatten and callable(autograd.misc.flatten)
        assert sys.modules["autograd.misc.flatten"].flatten_func is flatten_func
    assert not parts()


def test_it_can_be_installed_in_another_one() -> None:
    with ours.installed():
        with ours.installed(compiled=True):
            assert options.compiled
        assert not options.compiled
        assert importlib.import_module("autograd") is ours


def test_modules_that_do_not_exist_are_not_found() -> None:
    with ours.installed(), pytest.raises(ModuleNotFoundError, match="autograd.nothing"):
        importlib.import_module("autograd.nothing")


@pytest.mark.drawn(4)
def test_it_is_refused_where_the_other_one_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("autograd")
    real.__file__ = "/somewhere/autograd/__init__.py"
    monkeypatch.setitem(sys.modules, "autograd", real)
    user: Any = ModuleType("model")
    user.autograd = real
    for name in ("model", "package.fits", "package.losses"):
        monkeypatch.setitem(sys.modules, name, user)
    importers = r"/somewhere/autograd.*imported by (.*, )?model, package(, .*)?\. Call"
    with pytest.raises(InstallationError, match=importers):
        ours.install()
    with pytest.raises(ImportError), ours.installed():
        pass


def test_what_is_differentiated_is_compiled_if_that_is_asked_for() -> None:
    def slope_and_curvature(data: np.ndarray) -> Any:
        def loss(x: Any) -> Any:
            return ((x - data) ** 2).sum()

        return ours.grad(loss)(np.ones(2) * 3), ours.hessian(loss)(np.ones(2))

    with ours.installed(compiled=True):
        slope_and_curvature(np.zeros(2))
        with pullback.fail_on_recompile():
            slope, curvature = slope_and_curvature(np.ones(2))
    np.testing.assert_allclose(slope, [4.0, 4.0])
    np.testing.assert_allclose(curvature, 2 * np.eye(2))


PROGRAM = """
import sys
from autograd import grad
if __name__ == "__main__":
    print(sys.argv[1:], grad(lambda x: x ** 2)(3.0), __file__[-8:])
"""


@pytest.mark.drawn(4)
@pytest.mark.parametrize("form", [["model.py"], ["--compiled", "model.py"], ["-m", "model"]])
def test_programs_run_with_it(form: list[str], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "pullback.compat.autograd", *form, "--option", "7"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "['--option', '7'] 6.0 model.py\n"


@pytest.mark.drawn(4)
def test_errors_of_programs_are_shown_as_python_shows_them(tmp_path: Path) -> None:
    def run(*form: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pullback.compat.autograd", *form]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    program = "import sys, autograd\nsys.exit(7) if sys.argv[1:] else 1 / 0\n"
    (tmp_path / "model.py").write_text(program, encoding="utf-8")
    failed = run("model.py")
    assert failed.returncode == 1 and "ZeroDivisionError" in failed.stderr
    assert failed.stderr.splitlines()[1].endswith('model.py", line 2, in <module>')
    assert run("model.py", "argument").returncode == 7
    code = "import autograd, sys; print(autograd.grad(abs)(-2.0), sys.argv[1:], __name__)"
    assert run("-c", code, "--option").stdout == "-1.0 ['--option'] __main__\n"
    missing = run("nothing.py")
    assert missing.returncode == 2 and "can't open file 'nothing.py'" in missing.stderr
