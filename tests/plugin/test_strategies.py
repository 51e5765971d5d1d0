"""Strategies of hypothesis: what they draw, and how a failing example reads."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import find, given, settings

import pullback as pb
from pullback.testing import check_gradients
from pullback.testing import strategies as st


class Layer(NamedTuple):
    w: Any
    b: Any


LIKE = {
    "layer": Layer(pb.ArraySpec((3, 2)), pb.TensorSpec((2,), requires_grad=True)),
    "scale": 1.0, "steps": np.zeros(2, np.int8), "name": "a",
}  # fmt: skip


@settings(max_examples=20)
@given(st.parameters(LIKE), st.arrays(dtype=np.complex64), st.arrays((2,), elements=st.numbers(1.0, 2.0)))
def test_they_draw_what_they_promise(params: Any, z: np.ndarray, x: np.ndarray) -> None:
    layer = params["layer"]
    assert isinstance(layer, Layer) and params["name"] == "a" and type(params["scale"]) is float
    assert layer.w.shape == (3, 2) and layer.w.dtype == np.float64 and np.isfinite(layer.w).all()
    assert isinstance(layer.b, pb.Tensor) and layer.b.requires_grad and layer.b.shape == (2,)
    assert params["steps"].dtype == np.int8
    assert z.dtype == np.complex64 and np.isfinite(z).all()
    assert (x >= 1).all() and (x <= 2).all()
    check_gradients(lambda x: (np.log(x) * x).sum(), x)


@settings(max_examples=50)
@given(st.numbers(0.1, 0.3, np.float32), st.tensors((2,), np.int64))
def test_bounds_are_kept_and_integers_have_no_gradient(x: float, n: Any) -> None:
    assert 0.1 <= x <= 0.3 and np.float32(x) == x
    assert not n.requires_grad


def test_special_numbers_are_drawn_where_they_are_asked_for() -> None:
    assert np.isnan(find(st.numbers(allow_nan=True), np.isnan))
    assert find(st.numbers(dtype=np.complex128, allow_infinity=True), np.isinf)
    assert np.isfinite(find(st.numbers(0.0, np.inf), lambda x: x > 1e300))


@pytest.mark.parametrize("given", [(1.0, 0.3), (0.2, 0.8, np.int8), (1e39, 1e40, np.float32)])
def test_bounds_without_number_between_them_are_an_error(given: tuple[Any, ...]) -> None:
    with pytest.raises(pb.errors.ArgumentError, match="lies between"):
        st.numbers(*given)


def test_a_failing_example_is_small_and_reads_as_what_it_is() -> None:
    @settings(database=None)
    @given(st.parameters(LIKE), st.arrays())
    def small(params: Any, x: np.ndarray) -> None:
        assert params["layer"].w.sum() + float(params["layer"].b.detach().sum()) + x.sum() < 5

    with pytest.raises(AssertionError) as caught:
        small()
    shown = "".join("".join(caught.value.__notes__).split())
    assert "Layer(w=array([[" in shown and "b=tensor([" in shown and "'name':'a'" in shown
    assert "x=array(" in shown and "unflatten" not in shown
