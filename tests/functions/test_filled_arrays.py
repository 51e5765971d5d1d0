"""Programs written in NumPy that make arrays, empty or of others, and fill them in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_checks import check, random, slope
from uncompiled import counts

import pullback as pb

# --- arrays that the function makes and fills ---------------------------------------------------------


def prefix_products(x: np.ndarray, y: np.ndarray) -> Any:
    found = np.empty((x.shape[0],))
    for i in range(x.shape[0]):
        found[i] = x[: i + 1] @ y[: i + 1]
    return (found * found).sum()


def test_an_empty_array_is_filled_with_numbers() -> None:
    check(prefix_products, random(4), random(4))


def heat(start: np.ndarray, rate: np.ndarray) -> Any:
    steps = np.zeros((4, *start.shape), dtype=start.dtype)
    steps[0] = start
    for t in range(1, 4):
        steps[t] = steps[t - 1]
        steps[t, 1:-1] += rate * (steps[t - 1, 2:] - 2 * steps[t - 1, 1:-1] + steps[t - 1, :-2])
    return (steps[-1] ** 2).sum() + steps[2, 1]


@pytest.mark.drawn(4)
def test_rows_of_an_array_are_made_of_rows_before() -> None:
    check(heat, random(6), random(4))


def test_a_helper_fills_the_array_of_its_caller() -> None:
    def fill(out: np.ndarray, x: np.ndarray) -> None:
        for i in range(3):
            out[i, i:] = np.sin(x[: 3 - i])

    def function(x: np.ndarray) -> Any:
        table = np.ones((3, 3))
        fill(table, x)
        return (table @ x).sum()

    check(function, random(3))


def made_like(x: np.ndarray, y: np.ndarray) -> Any:
    total = np.zeros_like(x)
    weights = np.full(3, y[0])
    corners = np.eye(3, k=1)
    corners[0, 0] = x[1]
    again = np.full_like(y, x[2])
    again[1:] *= 2.0
    pair = np.array([x[0] * y[1], 1.0])
    total[:2] += pair
    return (weights * total * again).sum() + (corners @ y) @ x


def test_each_function_that_makes_arrays() -> None:
    check(made_like, random(3), random(3))


def made_of_several(x: np.ndarray) -> Any:
    rows = np.stack([1.0, 2.0, 3.0]) * 1.0
    longer = np.concatenate([np.zeros(2), [1.0, 2.0]])
    twice, same, flat = np.tile([1.0, 2.0], 2), np.repeat(1.5, 4), np.hstack([1.0, [2.0, 3.0]])
    rows[1] = x[0]
    longer[:3] *= x[0]
    twice[::2] += x[1:]
    same[0] = x.sum()
    flat[-1] -= x[0] ** 2
    table = np.column_stack([rows, flat])
    table[0, 1] *= x[1]
    return table.sum() * 2 + (longer * longer).sum() + (twice * same).sum() + flat.prod()


def test_each_function_that_makes_one_array_of_several() -> None:
    check(made_of_several, random(3))


def test_numbers_become_an_array_without_writes() -> None:
    check(lambda x: (np.array([[x[0], 2.0], [x[1] * x[0], x[1]]]) ** 2).sum(), random(2))


def test_a_value_fills_an_array_like_a_plain_one() -> None:
    like = np.ones((2, 3))
    check(lambda x: (np.full_like(like, x) * np.array([1.0, 2.0, 4.0])).sum(), random(3))


def test_functions_of_numpy_imported_by_name() -> None:
    from numpy import ones
    from numpy import zeros_like as like

    def function(x: np.ndarray) -> Any:
        y, z = like(x), ones(2, dtype=float)
        y[1] = x[0] ** 2
        z[0] = y[1]
        return (y * x).sum() * z[0]

    check(function, random(2))


def test_a_function_written_in_place_that_is_given_the_place() -> None:
    def fill(out: np.ndarray, x: np.ndarray) -> Any:
        out[0] = x[0] * x[1]
        out[1:] = np.exp(x)
        return (out * out).sum()

    out, x = np.zeros(3), random(2)
    value, gradient = pb.value_and_grad(fill, 1)(out, x)
    expected = np.zeros(3)
    assert np.isclose(value, fill(expected, x))
    assert np.allclose(out, expected)
    assert np.isclose(gradient @ x, slope(lambda x: fill(np.zeros(3), x), [x], [x]))


def test_arguments_in_the_same_memory_are_an_error() -> None:
    def fill(out: np.ndarray, x: np.ndarray) -> Any:
        out[0] = x[0] * x[1]
        return (out * x).sum()

    x = random(2)
    with pytest.raises(pb.errors.GradientError, match="shares its memory"):
        pb.grad(fill, 1)(x, x)
    table = random(2, 2)
    assert pb.grad(fill, 1)(table[:, 0], table[:, 1]).shape == (2,)

    def through_helper(target: np.ndarray, x: np.ndarray, write: bool) -> Any:
        def note(place: np.ndarray) -> None:
            place[0] = 2.0

        if write:
            note(target)
        return (target * x).sum()

    assert np.allclose(pb.grad(through_helper, 1)(x, x, False), x)
    with pytest.raises(ValueError, match="read-only"):
        pb.grad(through_helper, 1)(x, x, True)


def test_values_that_take_turns_at_the_places_of_a_mask() -> None:
    def program(x: Any, y: Any) -> Any:
        one, table = x.copy(), np.outer(x, x)
        np.place(one, x > 0.4, 7)
        np.place(table, table > 0.12, y)
        return (one * np.arange(5)).sum() + (table**2).sum()

    x, y = np.array([0.3, 0.5, 0.2, 0.7, 0.9]), np.array([1.0, -2.0, 3.0])
    check(program, x, y)


def test_integers_and_masks_that_are_written_in_place() -> None:
    def function(x: np.ndarray) -> Any:
        order = np.zeros(3, dtype=np.int64)
        order[0], order[2] = 2, 1
        y = x[order]
        order[:] = 0
        return (y * x).sum() + x[order[1]]

    check(function, random(3))


def test_results_are_arrays_where_arrays_were_given() -> None:
    def function(x: np.ndarray) -> tuple[Any, Any]:
        kept = np.zeros(2)
        kept[0] = x[0]
        return kept.sum(), kept

    (value, kept), _ = pb.value_and_grad(function, has_aux=True)(np.ones(2))
    assert isinstance(value, np.floating)
    assert type(kept) is np.ndarray
    assert type(pb.compile(function)(np.ones(2))[1]) is np.ndarray


counter = 0


def counting(x: np.ndarray) -> Any:
    global counter
    counter += 1
    made = np.zeros(1)
    made[0] = x[0] * counter
    return made.sum()


def test_global_variables_are_assigned_as_ever() -> None:
    before = counter
    assert pb.grad(counting)(np.ones(1))[0] == before + 1
    assert pb.grad(counting)(np.ones(1))[0] == before + 2
    assert counter == before + 2


def test_functions_that_outlive_the_transform_make_plain_arrays() -> None:
    kept = []

    def function(x: np.ndarray) -> Any:
        made = np.zeros(1)
        made[0] = x[0]
        kept.append(lambda: np.zeros(2))
        return made.sum()

    pb.grad(function)(np.ones(1))
    assert type(kept[0]()) is np.ndarray


class Model:
    def loss(self, x: np.ndarray) -> Any:
        made = np.zeros(2)
        made[0] = x[0] ** 2
        return made.sum()


def test_a_bound_method_is_differentiated() -> None:
    assert np.allclose(pb.grad(Model().loss)(np.ones(2)), [2.0, 0.0])
    assert np.allclose(pb.grad(pb.compile(Model().loss))(np.ones(2)), [2.0, 0.0])


def test_where_an_array_can_not_be_replaced_a_lost_gradient_is_an_error() -> None:
    place = np.zeros(2)

    def store(x: Any) -> Any:
        place[0] = x[0]
        return x.sum()

    def fill(x: Any) -> Any:
        place.fill(x[0])
        return x.sum()

    def numbers(x: Any) -> Any:
        place[0], place[1] = pb.stop_gradient(x[0]), float(pb.stop_gradient(x[1]))
        return x.sum()

    for function in (store, fill):
        with pytest.raises(pb.errors.GradientError, match="element of a NumPy array"):
            pb.grad(function)(np.ones(2))
        with pytest.raises(pb.errors.MutationError, match="value with a gradient into place"):
            pb.grad(pb.compile(function))(np.ones(2))
        assert pb.compile(function)(np.ones(2)) == 2.0
    assert np.array_equal(place, [1.0, 1.0])
    pb.grad(numbers)(np.array([3.0, 4.0]))
    assert np.array_equal(place, [3.0, 4.0])


def test_training_loops_note_their_losses_in_arrays() -> None:
    losses = np.zeros(2)
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="requires grad"):
        losses[0] = (x * x).sum()
    assert losses[0] == 5.0


# --- what a traced function makes without its arguments -----------------------------------------------


def test_a_table_of_constants_is_computed_in_the_trace() -> None:
    def function(x: np.ndarray) -> Any:
        table = np.zeros((4, 4))
        for i in range(4):
            for j in range(4):
                table[i, j] = np.cos(i * j)
        if table[0, 0] > 0.5:
            table *= 2.0
        large = table[table > 1.0]
        return (table @ x).sum() + large.sum() * x[0]

    check(function, random(4))
    compiled = pb.compile(function)
    assert "np.cos" not in str(compiled.source(random(4)))


def test_a_constant_array_is_read_before_and_after_it_gets_a_traced_value() -> None:
    def function(x: np.ndarray) -> Any:
        weights = np.ones(3)
        middle = weights[1:]
        y = x * x * weights
        weights[0] = 3.0
        y = y + x * weights
        middle[0] = x[0]
        return (y * weights).sum() + (middle * middle).sum()

    check(function, random(3))


def test_a_traced_loop_fills_an_array_that_was_read_before() -> None:
    def function(a: np.ndarray, b: np.ndarray) -> Any:
        x = np.zeros_like(b)
        for i in range(2, -1, -1):
            x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
        return (x * x).sum()

    check(function, random(3, 3), random(3))


def test_a_sum_into_an_array_where_the_function_runs_uncompiled() -> None:
    def total(x: Any) -> Any:
        sums = np.empty(2)
        x.sum(axis=1, out=sums)
        return sums.sum() + 0 * counts((x[0] > 9).astype(int))[0]  # which is not compiled

    with pytest.warns(UserWarning, match="runs uncompiled"):
        assert pb.compile(total)(np.ones((2, 3))) == 6.0


SIZE = 3


def with_a_local_class(x: np.ndarray) -> Any:
    import math

    class Local:
        size = SIZE
        sum = staticmethod(sum)

        def times(self, y: np.ndarray) -> np.ndarray:
            return self.size * y

    filled = np.zeros(SIZE)
    for i in range(Local.size):
        filled[i] = Local.sum([x[i], x[0]]) * math.cos(0.0)
    return Local().times(filled).sum()


def test_a_class_in_a_function_that_fills_arrays() -> None:
    x = np.array([1.0, 2.0, 4.0])
    value, slope = pb.value_and_grad(with_a_local_class)(x)
    assert value == with_a_local_class(x)
    np.testing.assert_array_equal(slope, [12.0, 3.0, 3.0])


def of_objects(x: np.ndarray) -> Any:
    parts = np.array([x[0], 2.0, (x[1] * x[2]).astype(object)], dtype=object).ravel()
    return (np.array(parts, dtype=float) ** 2).sum() + parts[2] * np.asarray([x, x * x], dtype=object)[1, 0]


def test_floats_that_are_put_into_an_array_of_objects() -> None:
    check(of_objects, random(3))
