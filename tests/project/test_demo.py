"""The main job, as a user starts it: `python -m pullback demo`."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.examples import digits


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints."""
    result = subprocess.run(
        [sys.executable, "-m", "pullback", "demo"],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.drawn(6)
def test_the_network_learns(demo: str) -> None:
    losses = [float(value) for value in re.findall(r"loss (\d+\.\d+)", demo)]
    assert len(losses) == digits.EPOCHS
    assert losses[-1] < losses[0] / 10
    (accuracy,) = re.findall(r"^Held-out accuracy (\d+\.\d+)%", demo, re.MULTILINE)
    assert 95 < float(accuracy) < 100


def test_the_backward_source_is_shown(demo: str) -> None:
    _, _, shown = demo.partition("The backward function that was generated")
    source, _, timing = shown.partition("\nLoss and gradient of")
    assert re.search(r"^def \w+", source, re.MULTILINE)
    assert "digits.py:" in source, "the user's lines stand beside the statements"
    assert "backward of" in source
    assert re.search(r"compiled \d+ us, eager \d+ us", timing)
    assert "\x1b" not in demo, "no colours in a pipe"


def test_the_data_is_complete_and_held_out_digits_are_apart() -> None:
    training, held_out = digits.load_digits(np.random.default_rng(0))
    assert training[0].shape == (1438, 64)
    assert held_out[0].shape == (359, 64)
    assert set(training[1]) == set(held_out[1]) == set(range(10))
    seen = {image.tobytes() for image in training[0]}
    assert not seen & {image.tobytes() for image in held_out[0]}


@pytest.mark.drawn(4)
def test_the_compiled_gradient_is_the_eager_one() -> None:
    rng = np.random.default_rng(1)
    parameters = digits.initial_parameters(rng)
    images = rng.standard_normal((7, 64)).astype(np.float32)
    labels = rng.integers(0, 10, 7)
    value, gradient = pb.value_and_grad(digits.loss)(parameters, images, labels)

    tensors = {name: pb.tensor(array, requires_grad=True) for name, array in parameters.items()}
    eager = digits.loss.__wrapped__(tensors, pb.from_numpy(images), pb.from_numpy(labels))
    eager.backward()
    np.testing.assert_allclose(value, eager.item(), rtol=1e-5)
    for name, tensor in tensors.items():
        np.testing.assert_allclose(gradient[name], tensor.grad.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_data_names_its_source_and_licence() -> None:
    text = (Path(digits.__file__).parent / "data" / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text and "doi.org" in text
