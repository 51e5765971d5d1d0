"""The statements of five tutorials written for PyTorch: each cell runs with only the import changed.

What they print is compared with the form that PyTorch 2 prints today, random numbers aside. Where PyTorch is
installed, the expectation itself is checked by running the original.
"""

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

import pullback

MARKER = re.compile(r"^In \[\d+\]:\n", re.MULTILINE)
SEEDS = {path.name[:3]: path for path in sorted((Path(__file__).parents[1] / "seeds").glob("*.txt"))}
IMPORTS = {
    "import torch": "import pullback as torch",
    "from torch.autograd import Variable": "from pullback.autograd import Variable",
}

ONES = "tensor([[1., 1.],\n        [1., 1.]], requires_grad=True)"
THREES = "tensor([[3., 3.],\n        [3., 3.]], grad_fn=<AddBackward0>)"
TWENTY_SEVENS = "tensor([[27., 27.],\n        [27., 27.]], grad_fn=<MulBackward0>)"
TWENTY_SEVEN = "tensor(27., grad_fn=<MeanBackward0>)"
GRADIENT = "tensor([[4.5000, 4.5000],\n        [4.5000, 4.5000]])"
ADD, MUL, SUM, MEAN = (f"<{name}Backward0 object at 0xADDRESS>" for name in ("Add", "Mul", "Sum", "Mean"))
RECORDING = "True\nTrue\nFalse"
DETACHED = "True\nFalse\ntensor(True)"
A_VECTOR = re.compile(r"tensor\(\[[-\d., e+]+\](,\s+(requires_grad=True|grad_fn=<MulBackward0>))?\)")
A_MATRIX = re.compile(r"tensor\(\[\[[-\d., e+]+\],\n +\[[-\d., e+]+\]\]\)")
A_NUMBER = re.compile(r"tensor\(\d+\.\d+\)")

# What each cell shows, in order; cells that show nothing are left out.
EXPECTED = {
    "000": [
        ONES, THREES, ADD, f"{TWENTY_SEVENS} {TWENTY_SEVEN}", f"False\nTrue\n{SUM}", A_VECTOR, A_VECTOR,
        RECORDING, DETACHED,
    ],
    "001": [
        ONES, f"{THREES}\n{ADD}", f"{TWENTY_SEVENS} \n {TWENTY_SEVEN}", f"False\nTrue\n{SUM}", GRADIENT,
        re.compile(f"{A_VECTOR.pattern}\n{A_VECTOR.pattern}"), RECORDING, DETACHED,
    ],
    "002": [
        ONES, THREES, ADD, f"{TWENTY_SEVENS} {TWENTY_SEVEN}", f"False\nTrue\n{SUM}", GRADIENT, A_VECTOR,
        A_VECTOR, RECORDING,
    ],
    "003": [f"{GRADIENT}\nFalse None\nFalse", re.compile(f"False\nTrue\n{A_MATRIX.pattern}")],
    "004": [
        ONES, "None", THREES, ADD, TWENTY_SEVENS, MUL, TWENTY_SEVEN, MEAN, "None", GRADIENT, A_VECTOR,
        A_VECTOR,
        A_NUMBER, A_VECTOR, A_VECTOR,
    ],
}  # fmt: skip


def cells(text: str) -> list[str]:
    """The code cells, in order."""
    return MARKER.split(text)[1:]


def run(code: str, namespace: dict) -> str:
    """What a notebook shows for a cell: what it prints, and the value of an expression at its end."""
    tree = ast.parse(code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
            if value is not None:
                print(repr(value))
    return re.sub(r"0x[0-9a-f]+", "0xADDRESS", printed.getvalue()).rstrip("\n")


def shown(seed: str, imports: dict[str, str]) -> list[str]:
    """What the cells of a seed show, the empty ones left out."""
    namespace: dict = {}
    outputs = []
    for cell in cells(SEEDS[seed].read_text(encoding="utf-8")):
        outputs.append(run(changed(cell, imports), namespace))
    return [output for output in outputs if output]


def changed(cell: str, imports: dict[str, str]) -> str:
    for original, replacement in imports.items():
        cell = re.sub(f"^{original}$", replacement, cell, flags=re.MULTILINE)
    return cell


def check(seed: str, outputs: list[str]) -> None:
    assert len(outputs) == len(EXPECTED[seed]), outputs
    for output, expected in zip(outputs, EXPECTED[seed]):
        if isinstance(expected, str):
            assert output == expected
        else:
            assert expected.fullmatch(output), output


def test_all_five_seeds_are_here() -> None:
    assert set(SEEDS) == set(EXPECTED)


@pytest.mark.parametrize("seed", EXPECTED)
def test_seed_runs_with_only_the_import_changed(seed: str) -> None:
    pullback.manual_seed(3)
    check(seed, shown(seed, IMPORTS))


@pytest.mark.parametrize("seed", EXPECTED)
def test_the_expected_forms_are_those_of_pytorch(seed: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    check(seed, shown(seed, {}))


@pytest.mark.parametrize("seed", ["000", "001", "002", "004"])
def test_the_gradient_of_the_doubling_loop_is_the_cotangent_times_a_power_of_two(seed: str) -> None:
    pullback.manual_seed(5)
    namespace: dict = {}
    for cell in cells(SEEDS[seed].read_text(encoding="utf-8")):
        run(changed(cell, IMPORTS), namespace)
        if re.search(r"y\.backward\(", cell):
            break
    x, y = namespace["x"], namespace["y"]
    cotangent = namespace.get("v", namespace.get("gradients"))
    factor = 2 ** (y / x).detach().log2().mean().round()
    assert 1000 <= y.data.norm() < 2000
    assert pullback.equal(x.grad, cotangent * factor)


def test_cells_are_found() -> None:
    counts = {seed: len(list(cells(path.read_text(encoding="utf-8")))) for seed, path in SEEDS.items()}
    assert counts == {"000": 10, "001": 9, "002": 11, "003": 3, "004": 17}
