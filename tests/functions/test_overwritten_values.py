"""Programs written in NumPy that overwrite what was read or saved before: arrays, parts, elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_checks import check, random, slope

import pullback as pb
from pullback.runtime.tape import inplace
from pullback.runtime.tape.apply import apply

# --- writes to what the tape has saved ----------------------------------------------------------------


def triangular_product(a: np.ndarray) -> Any:
    a = a * 1.0
    for i in range(1, a.shape[0]):
        a[i, :i] -= a[i, :i] * a[:i, i]
        a[i, i] = np.sqrt(a[i, i]) * (a[i, :i] @ a[:i, i])
    return (a * a).sum()


@pytest.mark.drawn(4)
def test_elements_that_later_ones_are_computed_from_are_overwritten() -> None:
    check(triangular_product, random(3, 3))


def test_a_result_that_its_own_rule_needs_is_overwritten() -> None:
    def function(x: np.ndarray) -> Any:
        y = np.exp(x)
        z = np.tanh(y)
        y *= z
        z[1:] = y[:-1]
        return (y * z).sum()

    check(function, random(4))


def test_a_mask_selects_what_is_overwritten() -> None:
    def function(x: np.ndarray) -> Any:
        y = x * x
        large = y > 1.0
        y[large] = y[large] ** 3
        return (np.sin(y) * y).sum()

    y = random(6)
    value, gradient = pb.value_and_grad(function)(y)
    assert np.isclose(value, function(y))
    assert np.isclose((gradient * y).sum(), slope(function, [y], [y]))


def test_second_derivatives_of_a_function_that_writes() -> None:
    def function(x: np.ndarray) -> Any:
        y = x * 1.0
        for i in range(1, 3):
            y[i] *= y[i - 1] * y[i]
        return y.sum()

    def without_writes(x: Any) -> Any:
        second = x[0] * x[1] ** 2
        return x[0] + second + second * x[2] ** 2

    x = random(3)
    assert np.allclose(pb.hessian(function)(x), pb.hessian(without_writes)(x))
    tangent = np.ones(3)
    assert np.allclose(pb.jvp(function, (x,), (tangent,))[1], pb.grad(without_writes)(x).sum())


def test_only_functional_transforms_keep_what_is_overwritten() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = y * y
    y[0] = 3.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_is_saved_is_copied_once_and_only_before_a_write() -> None:
    from pullback.runtime.values.saved import SavedValues

    class Saver:
        kept = 0

        @property
        def cells(self) -> list[Any]:
            return [cell]

        def keep(self, cell: Any, copies: Any) -> None:
            Saver.kept += 1
            assert copies.of(array) is copies.of(array) is not array

    array, values, cell = np.ones(2), SavedValues(), [0, None]
    values.note(Saver())
    values.keep([0, None])
    assert Saver.kept == 0
    values.keep(cell)
    values.keep(cell)
    assert Saver.kept == 1


# --- numbers that are taken out of arrays -------------------------------------------------------------


def numbers_of_their_own(x: np.ndarray, y: np.ndarray) -> Any:
    """What NumPy's scalars are: no views, and `+=` gives a new one."""
    a = x * 1.0
    first, before = a[0], a[1]
    a[0] = y[0] * y[1]
    total = before
    total += a[0]
    for element in a:
        element *= 2.0
        total -= first * element
        a[2:] = a[2:] * before
    last = a[-1]
    last **= 2
    return total * before + last + (a * a).sum()


def test_elements_are_numbers_and_no_views() -> None:
    check(numbers_of_their_own, random(4), random(2))


def test_parts_and_elements_of_tensors_are_views() -> None:
    for function in (lambda f: f, pb.compile):
        x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)

        @function
        def written(x: Any) -> Any:
            y = x * 1.0
            element = y[0]
            element += 10.0
            return y

        assert written(x).tolist() == [11.0, 2.0, 3.0]


def test_an_array_of_no_dimensions_shows_its_base() -> None:
    def function(x: np.ndarray) -> Any:
        y = x * 1.0
        shown = y[..., 0]
        shown += x[1]
        return (y * y).sum()

    check(function, random(3))


def test_a_row_is_changed_once() -> None:
    def function(x: np.ndarray) -> Any:
        y = x * 1.0
        y[1] += y[0]
        return y.sum()

    graph = str(pb.compile(function).graph(random(3, 3)))
    assert graph.count("= slice_update(") == 1


def test_an_element_is_written_without_a_copy_of_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []

    def noted(operator: Any, *operands: Any, **options: Any) -> Any:
        computed.append(operator.name)
        return apply(operator, *operands, **options)

    monkeypatch.setattr(inplace, "apply", noted)
    x = pb.ones(3, requires_grad=True)
    y = x * 1.0
    y[1] = x[0] * 2.0
    y[1:][1] *= x[1] * 3.0
    assert computed
    assert "slice_update" not in computed
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


# --- plain arrays that change while a function runs ---------------------------------------------------


def decaying(x: np.ndarray) -> Any:
    weights = np.linspace(0.5, 1.0, 3)
    y = x * x * weights
    weights *= 2.0
    y = np.sin(y) * weights
    weights[0] = 5.0
    return (y * weights).sum()


def test_an_array_without_gradient_changes_between_its_uses() -> None:
    check(decaying, random(3))


class Doubling:
    def __init__(self) -> None:
        self.weights = np.ones(3)

    def step(self, x: np.ndarray) -> Any:
        y = x * x * self.weights
        self.weights *= 2.0
        return np.sin(y) * self.weights


def test_an_attribute_of_an_object_changes_between_its_uses() -> None:
    def function(x: np.ndarray) -> Any:
        doubling = Doubling()
        return (doubling.step(x) * doubling.step(x)).sum()

    check(function, random(3))


def test_positions_change_after_they_were_read() -> None:
    places = pb.tensor([2, 0, 1])
    x = pb.tensor([1.0, 2.0, 4.0], requires_grad=True)
    y = (x[places] * x).sum()
    places[0] = 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
