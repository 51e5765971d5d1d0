"""`check_gradients` finds wrong entries of derivatives, and says whose rule is to blame."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.testing import check_gradients

RANDOM = np.random.default_rng(0)


@pb.custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, g: (2 * g * x**2,))


def failure(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(pb.errors.GradientError) as caught:
        check_gradients(function, *args, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: np.sin(x) * x, (RANDOM.normal(size=(3, 2)),)),
        (lambda x, n: x[:n].sum() * x[0], (RANDOM.normal(size=5), 3)),
        (lambda z: abs(z * z) ** 2, (np.array([1.0 + 2j, 2.0]),)),
        (lambda x: (x**2).sum(), (pb.tensor([1.0, 2.0], dtype=pb.float64),)),
        (lambda params: params["w"][0] * params["b"], ({"w": [np.ones(3)], "b": 2.0},)),
        (lambda x: {"square": x * x, "which": x > 0}, (RANDOM.normal(size=4),)),
        (lambda x: (x * x).sum(), (RANDOM.normal(size=2000),)),
        (pb.compile(lambda x: np.exp(-x).sum()), (np.ones(3),)),
        (lambda x: 2.0, (np.ones(3),)),
    ],
)
def test_right_derivatives_pass(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check_gradients(function, *args)


@pytest.mark.parametrize("way", [pb.compile, lambda function: function])
def test_the_rule_is_found_among_others(way: Callable[..., Any]) -> None:
    def loss(w: Any, x: Any) -> Any:
        hidden = np.tanh(x @ w)
        return (cube(hidden) * x[:, 0]).sum()

    message = failure(way(loss), RANDOM.normal(size=3), RANDOM.normal(size=(4, 3)))
    assert "15 of 15 entries" in message
    assert "and 10 more" in message
    assert "the rule of cube" in message
    assert "return (cube(hidden) * x[:, 0]).sum()" in message


def test_the_result_is_named_that_differs_most() -> None:
    message = failure(lambda x: [x * x, {"c": cube(x)}], np.array([1.0, 3.0]))
    assert "d value[1]['c'][1] / d x[1]: 18 by the rules, 27" in message


def test_one_wrong_entry_among_many_is_found() -> None:
    message = failure(lambda x: cube(x[1234]) + (x * x).sum(), np.ones(3000))
    assert "1 of 3000 entries" in message
    assert "d value / d x[1234]: 4 by the rules, " in message


def test_a_rule_inside_of_a_loop() -> None:
    message = failure(lambda x: pb.scan(lambda c, e: (c * e, cube(c)), x[0], x)[1], np.array([1.0, 2.0, 0.5]))
    assert "the rule of the loop" in message


def test_parts_of_complex_numbers_are_entries() -> None:
    @pb.custom_vjp
    def twice(z: Any) -> Any:
        return 2 * z

    twice.defvjp(lambda z: (2 * z, None), lambda _, g: (2 * g.real + 0j,))
    message = failure(lambda z: abs(twice(z)).sum(), np.array([3.0 + 4j]), order=1)
    assert "d z[0].imag" in message.replace("value / ", "")
    assert "z[0].real" not in message
    assert "the rule of twice" in message


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: abs(x - 1).sum(), "has a kink or a jump at this point"),
        (lambda x: np.maximum(x, 1.0).sum(), "Numbers that are compared are equal"),
        (lambda x: np.sqrt(x - 1).sum(), "sqrt is not finite beside this point"),
        (lambda x: (pb.stop_gradient(x) * x).sum(), "A gradient is stopped at test_check_gradients.py"),
    ],
)
def test_what_is_no_rules_fault_is_said(function: Callable[..., Any], text: str) -> None:
    assert text in failure(function, np.array([1.0, 2.0]))


def test_what_another_call_changes_is_no_function() -> None:
    noise = np.random.default_rng(0)
    message = failure(lambda x: {"a": x * noise.normal()}, 2.0)
    assert "called again with the same arguments it returns something else (value['a'] is 0.25" in message


@pytest.mark.filterwarnings("error")
def test_beside_the_point_nobody_is_warned() -> None:
    message = failure(lambda x: np.sqrt(x), 0.0)
    assert "inf by the rules, nan by differences" in message


def test_errors_of_the_users_show_none_of_pullbacks_frames() -> None:
    def broken(x: Any) -> Any:
        if x != 1.0:
            raise ValueError("no")
        return x

    with pytest.raises(ValueError, match="no") as caught:
        check_gradients(broken, 1.0)
    shown = [entry.name for entry in caught.traceback if not entry.ishidden(caught)]
    assert shown == ["test_errors_of_the_users_show_none_of_pullbacks_frames", "broken"]


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        (lambda x: x.astype(np.float32).sum(), (np.ones(3),), "value is float32"),
        (lambda x: x.sum(), (np.ones(3, np.float32),), "x is float32"),
        (lambda n: n, (3,), "no argument of function is floating"),
        (lambda x: None, (1.0,), "nothing that function returns is floating"),
        (1.0, (np.sin,), "expected a function and then its arguments, found float"),
    ],
)
def test_what_differences_cannot_tell_is_refused(
    function: Callable[..., Any], args: tuple[Any, ...], text: str
) -> None:
    with pytest.raises(pb.errors.ArgumentError, match=text):
        check_gradients(function, *args)


def test_order_is_1_or_2() -> None:
    with pytest.raises(pb.errors.ArgumentError, match="order may be 1 or 2, found 3"):
        check_gradients(np.sin, 1.0, order=3)


def test_arguments_stay_what_they_are() -> None:
    def doubled(x: Any) -> Any:
        x *= 2.0
        return x.sum()

    x = np.ones(3)
    with pytest.raises(pb.errors.MutationError, match="doubled writes into its argument"):
        check_gradients(doubled, x)
    assert (x == 1.0).all()
