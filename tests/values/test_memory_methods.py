"""Methods about memory, Python called for each element, windows, and draws of whole distributions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb


def test_places_in_memory() -> None:
    x = pb.arange(12.0).reshape(3, 4)
    assert x.storage_offset() == 0 and x[1:, 2:].storage_offset() == 6
    assert x.dim_order() == (0, 1) and x.T.dim_order() == (1, 0)
    assert x.is_cpu and not x.is_pinned() and x.name is None and x.layout == pb.strided
    assert x.set_(y := pb.zeros(2)) is x and x.data_ptr() == y.data_ptr()


def test_a_view_shares_its_memory_or_says_that_it_cannot() -> None:
    x = pb.arange(6.0).view(2, 3)
    x.view(6)[0] = 9
    assert x[0, 0] == 9
    with pytest.raises(pb.errors.ShapeError, match=r"view size is not compatible .* Use .reshape"):
        x.T.view(6)
    assert pb.tensor([1.0]).view(pb.int32).tolist() == [0x3F800000]


def test_resize() -> None:
    x = pb.arange(4.0)
    assert x.resize_(2) is x and x.tolist() == [0, 1]
    assert x.resize_(3, 2).shape == (3, 2) and x[0].tolist() == [0, 1]
    assert x.resize_as_(pb.zeros(1)).tolist() == [0]
    with pytest.raises(pb.errors.UnsupportedError, match="clone"):
        pb.arange(4.0)[:2].resize_(3)


def test_python_for_each_element() -> None:
    assert pb.ones(2).apply_(lambda one: one + 1).tolist() == [2, 2]
    assert pb.ones(2).map_(pb.tensor([3.0, 4.0]), lambda a, b: a * b).tolist() == [3, 4]
    assert reversed(pb.arange(3)).tolist() == [2, 1, 0]
    with pytest.raises(pb.errors.GradientError, match="requires grad"):
        pb.ones(2, requires_grad=True).apply_(lambda one: one)


def test_memory_of_others() -> None:
    array = np.arange(3.0)
    x = pb.from_dlpack(array)
    x[0] = 7
    assert array[0] == 7 and np.from_dlpack(x)[0] == 7


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    for length, periodic in ((0, True), (1, True), (2, False), (7, True), (8, False)):
        found, wanted = (getattr(lib, f"{name}_window")(length, periodic) for lib in (pb, torch))
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        assert found.dtype == pb.float32


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bartlett", {}), ("blackman", {}), ("cosine", {}), ("exponential", {}),
        ("exponential", {"tau": 2.5}), ("exponential", {"center": 1.0, "sym": False}),
        ("gaussian", {"std": 0.7}), ("general_cosine", {"a": [0.4, 0.3, 0.2]}), ("hamming", {}), ("hann", {}),
        ("general_hamming", {"alpha": 0.6}), ("kaiser", {"beta": 3.0}), ("nuttall", {}),
    ],
)  # fmt: skip
def test_symmetric_windows_are_pytorchs(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    for length, sym in ((0, True), (1, True), (1, False), (2, False), (7, True), (8, False)):
        given = {"sym": sym} | options
        found, wanted = (
            getattr(lib.signal.windows, name)(length, **given, dtype=lib.float64, requires_grad=True)
            for lib in (pb, torch)
        )
        np.testing.assert_allclose(found.detach(), wanted.detach(), atol=1e-14)
        assert found.requires_grad and found.dtype == pb.float64


def test_windows_that_there_are_not() -> None:
    windows = pb.signal.windows
    for call in (
        lambda: windows.hann(-1), lambda: windows.gaussian(3, std=0.0), lambda: windows.kaiser(3, beta=-1.0),
        lambda: windows.exponential(3, center=1.0), lambda: windows.general_cosine(3, a=()),
        lambda: windows.general_cosine(3, a=None),
    ):  # fmt: skip
        with pytest.raises(pb.errors.ArgumentError, match="signal.windows"):
            call()
    for call in (lambda: windows.hann(3, dtype=pb.int64), lambda: pb.hann_window(3, dtype=pb.complex64)):
        with pytest.raises(pb.errors.DTypeError, match="expects a floating point dtype"):
            call()


def test_multinomial() -> None:
    pb.manual_seed(0)
    weights = pb.tensor([[0.0, 3.0, 1.0], [1.0, 1.0, 0.0]])
    drawn = pb.multinomial(weights, 4000, replacement=True)
    assert drawn.shape == (2, 4000) and drawn.dtype == pb.int64
    assert (drawn[0] == 1).double().mean().item() == pytest.approx(0.75, abs=0.05)
    assert not (drawn[0] == 0).any() and not (drawn[1] == 2).any()
    with pytest.raises(pb.errors.DTypeError, match="only supports floating-point dtypes for input, found"):
        pb.multinomial(pb.tensor([1, 2]), 1)
    assert pb.multinomial(weights, 2).sort().values.tolist() == [[1, 2], [0, 1]]
    for bad, samples in (([-1.0, 2.0], 1), ([0.0, 0.0], 1), ([1.0, 1.0], 3)):
        with pytest.raises(pb.errors.ArgumentError, match="multinomial"):
            pb.multinomial(pb.tensor(bad), samples)


def test_counts() -> None:
    pb.manual_seed(0)
    assert pb.poisson(pb.full((4000,), 3.0)).mean().item() == pytest.approx(3, abs=0.1)
    assert pb.binomial(pb.full((4000,), 10.0), pb.tensor(0.3)).mean().item() == pytest.approx(3, abs=0.1)


def test_small_things() -> None:
    assert pb.range(1, 4).tolist() == [1, 2, 3, 4] and pb.arange(-0.9, 2.1, 2.0, dtype=pb.int64).tolist() == [
        0
    ]
    assert pb.can_cast(pb.float64, pb.float32) and not pb.can_cast(pb.float32, pb.int64)
    assert pb.empty_strided((2, 3), (3, 1)).shape == (2, 3)
    assert pb.empty_permuted((2, 3), (1, 0), dtype=pb.int32).shape == (2, 3)
    with pytest.raises(pb.errors.ArgumentError, match="an order of 2 dimensions"):
        pb.empty_permuted((2, 3), (1, 1))
    with pytest.raises(RuntimeError, match="linalg.solve: Singular matrix"):
        pb.linalg.inv(pb.zeros(2, 2))


def test_settings_and_files(tmp_path: Path) -> None:
    weights = {"w": pb.tensor([1.0, 2.0], requires_grad=True), "epoch": 3}
    pb.save(weights, tmp_path / "weights")
    found = pb.load(tmp_path / "weights", weights_only=True)
    assert found["epoch"] == 3 and found["w"].tolist() == [1, 2] and found["w"].requires_grad
    assert pb.get_default_device().type == "cpu" and pb.are_deterministic_algorithms_enabled()
    with pytest.raises(pb.errors.ArgumentError, match="cpu"):
        pb.set_default_device("cuda")
    pb.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert pb.tensor(1.0).dtype == pb.float64
    finally:
        pb.set_default_dtype(pb.float32)
    assert pb.typename(pb.ones(1)) == "torch.FloatTensor" and pb.typename(1.5) == "float"
    assert pb.nonzero_static(pb.tensor([0, 1, 2]), size=3).tolist() == [[1], [2], [-1]]
    assert pb.zeros(3).bernoulli(1.0).tolist() == [1, 1, 1]


def test_a_tensor_that_is_set_from_a_view_sees_what_is_written() -> None:
    def function(x: pb.Tensor) -> pb.Tensor:
        base = x * 1
        view = base[:2]
        other = pb.zeros(2, dtype=pb.float64).set_(view)
        base.mul_(3.0)
        total = view.sum()  # which has looked, but not for the other
        other.add_(1.0)
        return total * (other * other).sum() + base.sum()

    x = pb.tensor([1.0, 2.0, 4.0], dtype=pb.float64)
    assert function(x).item() == 9 * (16 + 49) + 23
    assert pb.compile(function)(x).item() == 9 * (16 + 49) + 23


def test_a_tensor_that_is_set_from_another_shares_its_memory() -> None:
    def function(x: pb.Tensor) -> pb.Tensor:
        base = x * 1
        other = pb.zeros(1, dtype=pb.float64).set_(base)
        base.mul_(3.0)
        other.add_(1.0)
        return base.sum() * other.sum()

    x = pb.tensor([1.0, 2.0, 4.0], dtype=pb.float64)
    assert function(x).item() == pb.compile(function)(x).item() == 24**2


def test_a_tensor_is_set_from_none_with_a_gradient() -> None:
    x = pb.ones(2, requires_grad=True)
    with pytest.raises(pb.errors.GradientError, match="detach"):
        pb.zeros(2).set_(x * 1)


def test_a_detached_tensor_sees_what_is_written() -> None:
    def function(x: pb.Tensor) -> pb.Tensor:
        base = x * 1
        detached, part = base.detach(), base[:2].detach()
        base.mul_(3.0)
        return (base * detached).sum() + part.sum()

    x = pb.tensor([1.0, 2.0, 4.0], dtype=pb.float64)
    assert pb.compile(function)(x).item() == function(x).item() == 189 + 9
    assert pb.compile(pb.grad(function))(x).tolist() == pb.grad(function)(x).tolist() == [9.0, 18.0, 36.0]
    x.requires_grad_()
    pb.compile(function)(x).backward()
    assert x.grad.tolist() == [9.0, 18.0, 36.0]


@pytest.mark.parametrize("name", ["cuda", "to_mkldnn", "to_sparse", "to_sparse_csr"])
def test_other_devices_and_layouts_are_refused_by_name(name: str) -> None:
    x = pb.ones(2)
    with pytest.raises(pb.errors.UnsupportedError, match=rf"{name}\(\): tensors (live in|are dense)"):
        getattr(x, name)()
    assert x.to_dense() is x
    assert pb.resize_as_(x, pb.ones(2, 2)).shape == (2, 2)
