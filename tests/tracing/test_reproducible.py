"""Generated source depends on the program alone, and serves every shape of the same structure."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

PROGRAM = """
import numpy as np
import pullback as pb

def loss(weight, bias, x, labels):
    hidden = pb.tanh(x @ weight + bias)
    spread = hidden.std(dim=0) + (hidden * hidden).mean()
    return pb.cross_entropy(hidden, labels) + spread.sum() + pb.cumsum(bias, dim=0).prod()

arguments = np.ones((7, 5)), np.ones(5), np.ones((30, 7)), np.zeros(30, np.int64)
print(pb.compile(loss).source(*arguments))
print(pb.value_and_grad(pb.compile(loss), argnums=(0, 1)).source(*arguments))
"""


@pytest.mark.drawn(6)
def test_two_processes_write_the_same_source(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    texts = {
        subprocess.run(
            [sys.executable, str(file)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(texts) == 1
    assert "def loss_value_and_grad" in texts.pop()


def normalised(x, gain):
    centred = x - x.mean(-1, keepdim=True)
    return ((centred / pb.sqrt(x.var(-1, keepdim=True) + 0.01) * gain) ** 2).mean()


def least_squares(weight, x, y):
    return ((x @ weight - y) ** 2).sum() / x.shape[0]


def curvature(x):
    return ((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2).mean()


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (normalised, lambda n, m: ((n, m), (m,))),
        (least_squares, lambda n, m: ((m,), (n, m), (n,))),
        (curvature, lambda n, m: ((n,),)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_new_shapes_compile_nothing(function, shapes) -> None:
    rng = np.random.default_rng(0)
    both = pb.value_and_grad(pb.compile(function))
    for n, m in ((20, 31), (43, 13), (17, 52), (25, 100)):
        both(*(rng.standard_normal(shape) for shape in shapes(n, m)))
    info = both.cache_info()
    assert info.traces == 4
    assert info.compilations + info.disk_hits == 1
    assert info.source_hits == 3


def test_the_users_own_constants_stay_as_they_are() -> None:
    x, gain = np.ones((100, 11)), np.ones(11)
    source = pb.compile(normalised).forward_source(x, gain)  # 0.01 is 1 / 100, and not meant so
    assert "+ 0.01" in source
    assert "1.0 / m" in source


def test_explain_says_what_is_saved_and_why() -> None:
    @pb.compile
    def energy(x, weight):
        shifted = x * weight + 1.0
        gate = pb.exp(-shifted * shifted)
        return (shifted * gate).sum()

    text = energy.explain(np.ones(5), np.ones(5))
    assert "loop over 5" in text
    assert "saved gate: float64[5]: 40 bytes, exp costs more than a load" in text
    assert "the input weight: float64[5]" in text
