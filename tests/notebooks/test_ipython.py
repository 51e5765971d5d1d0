"""IPython: the magic `%%backward`, the names of cells, and tracebacks."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("IPython")


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    made = InteractiveShell.instance()
    made.run_cell("import numpy as np\nimport pullback as pb\n%load_ext pullback", store_history=True)
    made.user_ns |= {"x": np.linspace(0, 1, 5), "w": np.full(5, 0.3)}
    yield made
    made.set_custom_exc((), None)
    InteractiveShell.clear_instance()


def run(shell: Any, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    shell.run_cell(cell, store_history=True)
    return re.sub(r"\x1b\[[\d;]*m", "", "".join(capsys.readouterr()))


def test_a_cell_without_compiled_functions_is_a_function_itself(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run(shell, "%%backward\nscale = 2.0\nhidden = np.tanh(x * w)\nscale * (hidden**2).sum()", capsys)
    assert "# In[2]:2  hidden = np.tanh(x * w)" in shown
    assert "# backward of In[2]:2 (tanh)" in shown
    assert "-> d_x: float64[n], d_w: float64[n]" in shown
    assert shell.user_ns["scale"] == 2.0  # it runs as well


def test_explanations_are_shown_in_lines(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(shell, "f = pb.compile(lambda x: (x * 2).sum())\nf(x)\nf.explain()", capsys)
    assert "\n    loop over 5\n" in shown and "\\n" not in shown


def test_the_last_assignment_is_a_result(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "d_x" in run(shell, "%%backward\ny = np.exp(x)\nz = (y * y).sum()", capsys)
    assert "d_x" in run(shell, "%%backward\nx = x * 2", capsys)  # what it reads is what was there before


def test_of_compiled_functions_the_cell_shows_both_programs(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "@pb.compile\ndef energy(x, w):\n    return pb.tanh(x * w).sum()", capsys)
    shown = run(shell, "%%backward\nenergy(x, w)", capsys)
    assert "forward of energy, In[2]:1" in shown
    assert "backward of energy" in shown
    assert "backward of energy" in run(shell, "%%backward energy\n1 + 1", capsys)


def test_what_has_no_code_yet_is_said(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "f = pb.compile(lambda x: x)", capsys)
    assert "Of f there is no code yet" in run(shell, "%%backward f\n1 + 1", capsys)


def test_a_cell_without_result_is_an_error(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(shell, "%%backward\nimport math", capsys)
    assert "UsageError: %%backward shows the code of a cell's result" in shown
    assert "ends neither with an expression nor with an assignment" in shown
    assert "magic.py" not in shown
    assert "ends with an expression that is None" in run(shell, "%%backward\nprint(x)", capsys)


def test_an_error_in_the_cell_is_in_its_own_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "In[2], line 1" in run(shell, "%%backward\nenergi(x)", capsys)
    assert "In[3], line 1" in run(shell, "energi(x)", capsys)


@pytest.mark.drawn(4)
def test_tracebacks_show_the_cells_and_not_pullback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cell = "def broken(x):\n    y = x + 1\n    return y @ np.ones(7)\npb.compile(broken)(x)"
    shown = run(shell, cell, capsys)
    assert "return y @ np.ones(7)" in shown
    assert "skipping hidden" in shown
    assert "dispatcher.py" not in shown
    assert "origin.py" not in shown
    assert "at In[2]:3  return y @ np.ones(7)" in shown


@pytest.mark.drawn(4)
def test_errors_of_the_users_go_through_hidden_frames(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(shell, "def mine(x):\n    raise ValueError('no')\npb.grad(mine)(x)", capsys)
    assert "raise ValueError('no')" in shown
    assert "transforms.py" not in shown


@pytest.mark.parametrize("of_kernel", [False, True])
def test_a_cell_that_is_run_again_has_its_new_name(
    shell: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, of_kernel: bool
) -> None:
    """Its program is that of the first time, whatever the file is called that its code is in."""
    if of_kernel:
        compiler = pytest.importorskip("ipykernel.compiler").XCachingCompiler
        monkeypatch.setattr(shell, "compile", compiler())
    cell = "@pb.compile\ndef f(x):\n    return np.sin(x).sum()\nf(x)\nprint(f.source())"
    assert "f, In[2]:1" in (shown := run(shell, cell, capsys)) and "# In[2]:3  return np.sin(x)" in shown
    assert "f, In[3]:1" in (shown := run(shell, cell, capsys)) and "# In[3]:3  return np.sin(x)" in shown
    assert "In[2]" not in shown
    assert "f, In[4]:1" in run(shell, f"{cell}\nf = f", capsys), "another cell with the same function"
    assert "f, In[5]:1" in run(shell, cell, capsys)
    assert "f, In[5]:1" in run(shell, "print(f.source())", capsys)
