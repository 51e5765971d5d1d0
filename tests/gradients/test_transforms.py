"""grad, value_and_grad, vjp, jvp, jacobian, hessian: of plain and of compiled functions, any order."""

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.tape import engine
from pullback.runtime.transforms import inputs
from pullback.runtime.transforms.transforms import (
    grad,
    grad_of_sum,
    hessian,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
)
from pullback.runtime.values.operator_nodes import OperatorNode
from pullback.tracer.errors import ArgumentError, DTypeError, OutputError, ShapeError

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

RNG = np.random.default_rng(1)
X, W = RNG.uniform(0.2, 1.5, 4), RNG.uniform(0.2, 1.5, 4)


def energy(w: Any, x: Any) -> Any:
    return (pb.tanh(w * x) * pb.exp(-x * x)).sum()


def energy_gradient() -> tuple[np.ndarray, np.ndarray]:
    t, e = np.tanh(W * X), np.exp(-X * X)
    return (1 - t * t) * X * e, (1 - t * t) * W * e - 2 * X * t * e


@pytest.fixture(params=["plain", "compiled"])
def form(request: pytest.FixtureRequest) -> Any:
    """What is done to the function first."""
    return pb.compile if request.param == "compiled" else lambda function: function


def test_grad_and_value_and_grad(form: Any) -> None:
    d_w, d_x = energy_gradient()
    function = form(energy)
    value, gradient = value_and_grad(function)(W, X)
    assert type(value) is np.float64 and value == pytest.approx(np.sum(np.tanh(W * X) * np.exp(-X * X)))
    np.testing.assert_allclose(gradient, d_w, rtol=1e-12)
    np.testing.assert_allclose(grad(function, 1)(W, X), d_x, rtol=1e-12)
    np.testing.assert_allclose(grad(function, "x")(W, x=X), d_x, rtol=1e-12)
    both = grad(function, (0, 1))(W, X)
    assert type(both) is tuple
    np.testing.assert_allclose(both[0], d_w, rtol=1e-12)
    np.testing.assert_allclose(both[1], d_x, rtol=1e-12)
    assert type(grad(function, (0,))(W, X)) is tuple


def test_a_negative_position_counts_what_the_call_gives(form: Any) -> None:
    def scaled(w: Any, x: Any, times: float = 2.0, *, more: float = 1.0) -> Any:
        return energy(w, x) * times * more

    d_w, d_x = energy_gradient()
    for made in (grad(form(scaled), (-1, 0)), form(grad(scaled, (-1, 0)))):
        for gradients, expected in (
            (made(W, X), (2 * d_x, 2 * d_w)), (made(W, X, more=3.0), (6 * d_x, 6 * d_w)),
            (made(W, X, 0.5), (energy(W, X), 0.5 * d_w)), (made(W, x=X), (2 * d_w, 2 * d_w)),
        ):  # fmt: skip
            for one, other in zip(gradients, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


def test_grad_of_compiled_is_compiled_grad() -> None:
    one, other = grad(pb.compile(energy)), pb.compile(grad(energy))
    assert one.source(W, X) == other.source(W, X)
    assert one.source(W, X).count("\ndef ") == 1


def test_tensors_in_tensors_out_and_nothing_in_grad(form: Any) -> None:
    w = pb.tensor(W, requires_grad=True)
    gradient = grad(form(energy))(w, pb.tensor(X))
    assert isinstance(gradient, pb.Tensor) and w.grad is None
    np.testing.assert_allclose(gradient.detach().numpy(), energy_gradient()[0], rtol=1e-12)
    assert gradient.requires_grad
    (second,) = pb.autograd.grad(gradient.sum(), w)
    t, e = np.tanh(W * X), np.exp(-X * X)
    np.testing.assert_allclose(second.numpy(), -2 * t * (1 - t * t) * X * X * e, rtol=1e-10)
    assert not grad(form(energy))(pb.tensor(W), pb.tensor(X)).requires_grad


def test_higher_orders(form: Any) -> None:
    function = form(lambda x: x**4)
    for expected in (4 * 1.5**3, 12 * 1.5**2, 24 * 1.5, 24.0, 0.0):
        function = grad(function)
        assert function(np.float64(1.5)) == pytest.approx(expected)


def test_no_perturbation_confusion(form: Any) -> None:
    """d/dx [x * d/dy (x + y)] = 1, not 2 (Siskind and Pearlmutter, 2005)."""

    def outer(x: Any) -> Any:
        return x * grad(form(lambda y: x + y))(x)

    assert grad(form(outer))(np.float64(3.0)) == pytest.approx(1.0)


def test_gradient_inside_a_compiled_loss(form: Any) -> None:
    def penalised(x: Any) -> Any:
        return (grad(lambda y: (y**3).sum())(x) ** 2).sum()

    np.testing.assert_allclose(grad(form(penalised))(X), 36 * X**3, rtol=1e-12)
    x = pb.tensor(X, requires_grad=True)
    form(penalised)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), 36 * X**3, rtol=1e-12)


def test_python_numbers_are_differentiated_as_float64(form: Any) -> None:
    function = grad(form(lambda x: x * x))
    assert function(3.0) == 6.0 and function(4.0) == 8.0
    if hasattr(function, "cache_info"):
        assert function.cache_info().traces == 1


def test_auxiliary_results(form: Any) -> None:
    def with_aux(w: Any) -> Any:
        return (w * w).sum(), {"doubled": w * 2, "name": None}

    (value, aux), gradient = value_and_grad(form(with_aux), has_aux=True)(W)
    assert value == pytest.approx(np.sum(W * W))
    np.testing.assert_allclose(aux["doubled"], 2 * W)
    assert type(aux["doubled"]) is np.ndarray
    np.testing.assert_allclose(gradient, 2 * W)
    gradient, aux = grad(form(with_aux), has_aux=True)(W)
    np.testing.assert_allclose(gradient, 2 * W)


def test_unused_and_constant_arguments_have_zero_gradients(form: Any) -> None:
    gradient = grad(form(lambda w, x: (x * 2).sum()), (0, 1))(W, X)
    np.testing.assert_array_equal(gradient[0], np.zeros(4))
    np.testing.assert_array_equal(gradient[1], np.full(4, 2.0))
    np.testing.assert_array_equal(grad(form(lambda w: 3.0))(W), np.zeros(4))


def test_nested_structures(form: Any) -> None:
    params = {"layers": [(W, X), (X, W)], "bias": np.float64(0.5), "none": None}

    def total(params: Any) -> Any:
        return sum((a * a * b).sum() for a, b in params["layers"]) + params["bias"] ** 2

    gradient = grad(form(total))(params)
    np.testing.assert_allclose(gradient["layers"][0][0], 2 * W * X)
    np.testing.assert_allclose(gradient["layers"][1][1], X * X)
    assert gradient["bias"] == pytest.approx(1.0) and gradient["none"] is None


def test_closure_tensors_make_the_gradient_differentiable(form: Any) -> None:
    scale = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    gradient = grad(form(lambda x: (scale * x * x).sum()))(pb.tensor(X))
    gradient.sum().backward()
    assert scale.grad.item() == pytest.approx(np.sum(2 * X))


def test_a_gradient_inside_of_another_takes_short_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pass knows what is behind the value and goes no further, and nodes run their rules at once."""

    def unused(*arguments: Any) -> Any:
        raise AssertionError

    def slopes(x: Any) -> Any:
        scale = np.exp(x) * x
        return (grad(lambda t: np.sum(scale * t**3 / x))(W) + grad_of_sum(lambda t: scale * t**2)(W)).sum()

    monkeypatch.setattr(engine, "targets_behind", unused)
    monkeypatch.setattr(OperatorNode, "_run_rules", unused)
    by_scale = 2 * W * (X + 1) * np.exp(X)
    np.testing.assert_allclose(grad(slopes)(X), 3 * W**2 * np.exp(X) + by_scale)


@pytest.mark.parametrize(
    "transform", [grad, lambda f: value_and_grad(f), lambda f: grad(lambda x: grad(f)(x).sum())]
)
def test_a_changed_closure_is_seen_through_a_transform(transform: Any) -> None:
    scale = np.ones(4)
    function = transform(pb.compile(lambda x: (scale * x**3).sum()))
    before = function(X)
    scale = scale * 2
    after = function(X)
    np.testing.assert_allclose(np.asarray(after[-1]), 2 * np.asarray(before[-1]))


def test_works_under_no_grad(form: Any) -> None:
    with pb.no_grad():
        np.testing.assert_allclose(grad(form(energy))(W, X), energy_gradient()[0])
        assert not grad(form(energy))(pb.tensor(W, requires_grad=True), X).requires_grad


def test_vjp(form: Any) -> None:
    value, pull = vjp(form(lambda w, x: {"sum": w + x, "product": w * x}), W, X)
    np.testing.assert_allclose(value["product"], W * X)
    for _ in range(2):
        d_w, d_x = pull({"sum": np.ones(4), "product": X})
        np.testing.assert_allclose(d_w, 1 + X * X)
        np.testing.assert_allclose(d_x, 1 + W * X)
    with pytest.raises(ShapeError, match=r"shape \(4,\) expected, found \(3,\)"):
        pull({"sum": np.ones(3), "product": X})
    with pytest.raises(ArgumentError, match="structure of the value expected"):
        pull(np.ones(4))


def test_vjp_has_aux() -> None:
    _, pull, aux = vjp(lambda x: (x * x, "done"), X, has_aux=True)
    assert aux == "done"
    np.testing.assert_allclose(pull(np.ones(4))[0], 2 * X)


def test_jvp(form: Any) -> None:
    value, slope = jvp(form(lambda w, x: pb.sin(w) * x), (W, X), (X, W))
    np.testing.assert_allclose(value, np.sin(W) * X)
    np.testing.assert_allclose(slope, np.cos(W) * X * X + np.sin(W) * W, rtol=1e-12)
    _, constant = jvp(form(lambda w: w * 0 + 1), (W,), (X,))
    np.testing.assert_array_equal(constant, np.zeros(4))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: np.tanh(W[:, None] @ x[None]) * 2.0,
        lambda x: x + np.ones((2, 4)),
        lambda x: x[1:] * x[:-1] - x[0] ** 2,
        lambda x: np.concatenate((x[[2, 0]], W, np.cumsum(x)[::-1])),
        lambda x: np.array([np.sum(x**3), np.mean(np.maximum(x, W))]),
        lambda x: np.where(x > 0.5, np.exp(x), 2.0)[None],
        lambda x: W,
    ],
)
def test_tangents_walk_the_tape_forwards(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = jacobian(function)(X) @ W
    monkeypatch.delattr(inputs, "pull_back")
    value, slope = jvp(function, (X,), (W,))
    np.testing.assert_array_equal(value, function(X))
    np.testing.assert_allclose(slope, wanted, rtol=1e-12)
    assert type(slope) is np.ndarray and not np.shares_memory(slope, W)


def test_tangents_are_pulled_back_where_hooks_may_change_them() -> None:
    def hooked(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda g: 2.0 * g)
        return np.sum(y)

    np.testing.assert_allclose(jvp(hooked, (X,), (W,))[1], 2.0 * grad(lambda x: np.sum(x * x))(X) @ W)


def test_jacobian_and_hessian(form: Any) -> None:
    matrix = RNG.normal(size=(3, 4))
    function = form(lambda x: matrix @ (x * x))
    np.testing.assert_allclose(jacobian(function)(X), matrix * 2 * X, rtol=1e-12)
    np.testing.assert_allclose(hessian(form(lambda x: (x**3).sum()))(X), np.diag(6 * X), rtol=1e-12)
    nested = jacobian(form(lambda w, x: (w * x, w.sum())), (0, 1))(W, X)
    np.testing.assert_allclose(nested[0][1], np.diag(W))
    np.testing.assert_allclose(nested[1][0], np.ones(4))


def test_compiled_hessian() -> None:
    compiled = pb.compile(hessian(lambda x: (x**3).sum()))
    np.testing.assert_allclose(compiled(X), np.diag(6 * X), rtol=1e-12)


def test_errors_name_the_function_and_the_argument(form: Any) -> None:
    def named(w: Any, n: Any) -> Any:
        return (w * n).sum()

    function = form(named)
    with pytest.raises(DTypeError, match="named: argument 'n' has dtype int64, and only floating"):
        grad(function, 1)(W, np.arange(4))
    with pytest.raises(DTypeError, match="named: argument 'n' has dtype int64"):
        grad(function, "n")(W, 3)
    with pytest.raises(ArgumentError, match=r"named: argnums has 5, but the call has 2 positional arguments"):
        grad(function, 5)(W, X)
    with pytest.raises(ArgumentError, match="argnums has 'z'"):
        grad(function, "z")(W, X)
    with pytest.raises(OutputError, match=r"of shape \(4,\); expected a scalar"):
        grad(form(lambda w: w * 2))(W)
    with pytest.raises(DTypeError, match="of dtype int64, which has none"):
        grad(form(lambda w: w.argmax()))(W)
    with pytest.raises(OutputError, match="has_aux=True expects"):
        grad(form(lambda w: w.sum()), has_aux=True)(W)
    with pytest.raises(ArgumentError, match="expected a function, found int"):
        grad(3)  # type: ignore[arg-type]


def test_integers_among_results_have_the_tangent_zero(form: Any) -> None:
    """As of PyTorch's `jvp`."""
    x, direction = pb.tensor(X.reshape(2, 2)), pb.tensor(W.reshape(2, 2))
    function = form(lambda x: (x.argmax(0), x.amax(0)))
    (place, value), (still, slope) = jvp(function, (x,), (direction,))
    wanted = np.take_along_axis(direction.numpy(), place.numpy()[None], 0)[0]
    np.testing.assert_array_equal(slope.numpy(), wanted)
    assert still.dtype == place.dtype == pb.int64 and not still.numpy().any()
    np.testing.assert_array_equal(value.numpy(), x.numpy().max(0))


WIDE, TALL = np.sin(np.arange(60.0)).reshape(5, 12), np.sin(np.arange(240.0)).reshape(20, 12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.tanh(WIDE @ x),
        lambda x: np.tanh(TALL @ x),
        lambda x: (np.tanh(TALL @ x), x.sum(), x * x, x),
        lambda x: np.ones(12) + 0 * x[:1],
        lambda x: (x[0] * x)[:, None] * x,
    ],
)
def test_compiled_jacobians_are_loops(function: Any) -> None:
    x = np.cos(np.arange(12.0))
    compiled = pb.compile(jacobian(function))
    found, wanted = compiled(x), jacobian(function)(x)
    for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, wanted)]):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    assert compiled.source().count("\n") < 80


def test_what_is_behind_several_results_is_found_once_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of results of one tape: some of one element, of none, or without a way to an argument."""
    monkeypatch.setattr(engine, "targets_behind", lambda *given: pytest.fail("it is known"))

    def several(x: Any, w: Any) -> Any:
        inner = np.tanh(np.ones((3, 4)) @ x)
        return inner * w[0], (inner * inner)[:2, None] * np.ones(3), inner.sum(), w * 2.0, inner[:0]

    found = jacobian(several, (0, 1))(X, W)
    monkeypatch.undo()
    for place, (by_x, by_w) in enumerate(found):
        for position, one in enumerate((by_x, by_w)):
            pushed = [
                jvp(lambda *given, place=place: several(*given)[place], (X, W), _unit(position, column))[1]
                for column in range((X, W)[position].size)
            ]
            np.testing.assert_allclose(np.moveaxis(np.asarray(pushed), 0, -1), one, rtol=1e-12, atol=1e-15)


def _unit(position: int, column: int) -> tuple[np.ndarray, ...]:
    """Directions of both arguments: 1 at one element of one of them."""
    found = np.zeros_like(X), np.zeros_like(W)
    found[position][column] = 1
    return found


def test_a_compiled_jacobian_of_what_does_not_depend_on_an_argument() -> None:
    found = pb.compile(jacobian(lambda x, y: x * 2, (0, 1)))(X, W)
    np.testing.assert_array_equal(found[0], 2 * np.eye(len(X)))
    np.testing.assert_array_equal(found[1], np.zeros((len(X), len(W))))


@pytest.mark.parametrize("rows", [2, 30])
def test_a_compiled_jacobian_has_the_dtype_of_the_argument(rows: int) -> None:
    matrix = np.linspace(0, 1, 10 * rows).reshape(rows, 10)

    def function(x: Any) -> Any:
        return matrix @ x.astype(np.float64)

    x = np.ones(10, np.float32)
    found, wanted = pb.compile(jacobian(function))(x), jacobian(function)(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.drawn(4)
def test_a_compiled_jacobian_of_a_long_loop_is_short() -> None:
    def path(p: Any) -> Any:
        y, rows = p[:2] * 1.0, []
        for _ in range(60):
            y = y + 0.01 * np.stack([y[1] * p[2], -y[0] * p[1]])
            rows.append(y)
        return np.stack(rows)

    p = np.array([1.0, 0.5, 2.0])
    compiled = pb.jacobian(pb.compile(path))
    np.testing.assert_allclose(compiled(p), jacobian(path)(p), rtol=1e-12, atol=1e-14)
    assert compiled.source().count("\n") < 150


@pytest.mark.drawn(4)
def test_jacobians_in_gradients() -> None:
    for function in (jacobian(lambda x: np.tanh(TALL @ x)), hessian(lambda x: np.tanh(TALL @ x).sum())):
        loss = grad(lambda x, function=function: (function(x) ** 2).sum())
        x = np.cos(np.arange(12.0))
        np.testing.assert_allclose(pb.compile(loss)(x), loss(x), rtol=1e-10)


@pytest.mark.parametrize(
    "inner",
    [
        lambda w, x: (grad(lambda x: (x * x * x).sum() * w)(x) ** 2).sum(),
        lambda w, x: value_and_grad(lambda x: (x * x).sum() * w * w)(x)[0],
        lambda w, x: vjp(lambda x: x * w, x)[1](x)[0].sum() * w,
        lambda w, x: jvp(lambda x: x * x * w, (x,), (x,))[1].sum() * w,
        lambda w, x: (jacobian(lambda x: x * x * w)(x) ** 2).sum(),
    ],
)
def test_what_a_gradient_inside_takes_from_outside_has_a_gradient(inner: Any) -> None:
    """Its own arguments are arrays, the variable comes through the closure."""
    x, w = np.array([1.0, 2.0]), 1.5
    wanted = (inner(w + 1e-6, x) - inner(w - 1e-6, x)) / 2e-6
    for function in (grad(inner), pb.compile(grad(inner))):
        found = function(w, x)
        assert type(found) is np.float64
        assert found == pytest.approx(wanted, rel=1e-6)


ONE_ELEMENT: list[Callable[[Any], Any]] = [
    lambda x: (x * x).sum(keepdims=True),
    lambda x: x[None] @ x[:, None],
    lambda x: np.array([x[0] * x[1]]),
]


@pytest.mark.parametrize("function", ONE_ELEMENT)
def test_a_result_of_one_element_has_a_gradient_in_any_shape(function: Callable[[Any], Any]) -> None:
    x = np.array([2.0, 3.0])
    expected = pb.grad(lambda x: function(x).sum())(x)
    for transformed in (pb.value_and_grad(function), pb.compile(pb.value_and_grad(function))):
        value, gradient = transformed(x)
        np.testing.assert_array_equal(value, function(x), strict=True)
        np.testing.assert_array_equal(gradient, expected, strict=True)
    np.testing.assert_array_equal(pb.hessian(function)(x), pb.hessian(lambda x: function(x).sum())(x))


def test_a_tensor_of_one_element_has_a_gradient_in_any_shape() -> None:
    weight = pb.tensor([2.0, 3.0]).requires_grad_()
    gradient = pb.grad(lambda x: (x * x * weight).sum(0, keepdim=True))(pb.tensor([1.0, 2.0]))
    assert gradient.tolist() == [4.0, 12.0]
    gradient.sum().backward()
    assert weight.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("base", [0.0, 0j])
def test_powers_of_zero_do_not_change_with_their_exponent(base: complex) -> None:
    def slope(exponent: float) -> float:
        return pb.grad(lambda y: np.power(base, y).real)(exponent)

    assert slope(0.3) == 0.0 and pb.grad(slope)(0.3) == 0.0


def test_the_slope_of_a_power_by_its_base_changes_with_an_exponent_of_zero() -> None:
    mixed = pb.grad(pb.grad(lambda x, y: x**y), argnums=1)
    for one in (mixed, pb.compile(mixed)):
        assert one(4.0, 0.0) == 0.25
    assert pb.grad(lambda x, y: x**y)(0.0, 0.0) == 0.0


MODULE = """
import numpy as np

WEIGHTS = np.arange(3.0)


def filled(x):
    y = np.zeros(3)
    y[0] = x
    return y
"""


def test_functions_reach_arrays_and_functions_of_modules() -> None:
    module = ModuleType("weights")
    exec(MODULE, vars(module))
    np.testing.assert_allclose(grad(lambda x: (module.filled(x) * (1.0 + module.WEIGHTS)).sum())(2.0), 1.0)


def test_a_pull_back_depends_on_its_cotangent_also_where_it_was_made_without_recording() -> None:
    with pb.no_grad():
        _, pull = pb.vjp(lambda x: x**2, np.float64(3.0))
        assert pb.grad(lambda w: pull(w)[0])(1.0) == 6.0
        assert pb.vjp(lambda w: pull(w)[0], 1.0)[1](2.0) == (12.0,)
    assert pb.grad(lambda w: pull(w)[0] * w)(2.0) == 24.0
    w = pb.tensor(1.0, dtype=pb.float64, requires_grad=True)
    assert pull(w)[0].requires_grad
    with pb.no_grad():
        assert not pb.as_tensor(pull(w)[0]).requires_grad


def test_a_cotangent_with_a_mask_is_refused() -> None:
    """Its data alone would count."""
    _, pull = vjp(lambda x: x * 2.0, X)
    with pytest.raises(ArgumentError, match="masked array"):
        pull(np.ma.masked_array(np.ones(4), [True, False, False, False]))


def test_a_pull_back_that_is_called_again_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third time by its plan; also where an argument has no part in a result, and beside constants."""

    def function(x: Any, w: Any, unused: Any) -> Any:
        y = np.sin(x) * W + w
        return np.exp(y * y[0]), w * 2.0

    def calls(is_planned: bool) -> list[Any]:
        if not is_planned:
            monkeypatch.setattr(inputs, "repeated", lambda *_: None)
        _, pull = vjp(function, X, W, X)
        given = [(RNG.normal(size=4), RNG.normal(size=4)) for _ in range(4)]
        return [one for cotangents in given for one in pull(cotangents)]

    RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
    found = calls(True)
    RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
    for one, other in zip(found, calls(False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_a_hook_that_is_registered_between_pull_backs_is_called() -> None:
    held: list[Any] = []

    def function(x: Any) -> Any:
        held.append(x * x)
        return held[0] * 2.0

    _, pull = vjp(function, pb.from_numpy(X))
    given = pb.from_numpy(np.ones(4))
    first = [pull(given)[0] for _ in range(3)][-1]
    held[0].register_hook(lambda g: g * 10.0)
    np.testing.assert_allclose(pull(given)[0].numpy(), 10.0 * first.numpy())


def test_a_pull_back_may_be_called_in_another_ones_and_again() -> None:
    _, pull = vjp(lambda x, w: (np.sin(x) * w)[1:], X, W)
    first = pull(np.ones(3))
    assert pb.grad(lambda g: np.sum(pull(g)[0]))(np.zeros(3)).shape == (3,)
    for one, other in zip(first, pull(np.ones(3)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("given", [1.0, np.float64(1.0), np.array(1.0), np.float32(1.0), pb.tensor(1.0)])
def test_a_cotangent_of_a_number_may_be_any_number(given: Any) -> None:
    _, pull = vjp(lambda x: np.sum(x * x), X)
    np.testing.assert_allclose(pull(given)[0], 2.0 * X)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_memory_of_their_own(compiled: bool) -> None:
    """Neither the cotangent's nor each other's, also where a pull-back is called again and again."""

    def total(x: Any, y: Any) -> Any:
        return np.add(x, y).reshape(3)

    x, y, cotangent = np.arange(3.0), np.ones(3), np.full(3, 2.0)
    _, pull = pb.vjp(pb.compile(total) if compiled else total, x, y)
    for _ in range(4):
        of_x, of_y = pull(cotangent)
        of_x += 5.0
        np.testing.assert_array_equal((of_y, cotangent), 2.0)
    for slope in pb.grad(lambda x, y: total(x, y).sum(), argnums=(0, 1))(x, y):
        slope += 1.0
        np.testing.assert_array_equal(slope, 2.0)


class Named:
    def plain(self, x, scale=1.0, *rest, option=None):
        return scale * x

    def collected(*arguments):
        return arguments[1]

    @classmethod
    def of_class(cls, x, y):
        return x * y

    @functools.wraps(np.interp)
    def wrapped(self, x):
        return x

    def signed(self, *arguments):
        return arguments[0]

    signed.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", "point")]
    )


METHODS = [getattr(Named(), name) for name in ("plain", "collected", "of_class", "wrapped", "signed")]


@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.__func__.__code__.co_name)
def test_the_parameters_of_methods_are_those_of_their_signature(method: Any) -> None:
    assert list(inputs._parameters(method)) == list(inputs._inspected(method))


def test_methods_are_not_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_inspected", None)
    model = Named()
    np.testing.assert_array_equal(grad(lambda x: grad(model.plain, "x")(x, 3.0))(2.0), 0.0)
    assert grad(model.of_class, argnums=1)(2.0, 3.0) == 2.0


# --- what a call costs ------------------------------------------------------------------------------------


def frames_of(call: Callable[[], Any]) -> int:
    """How many of Python's functions a call runs, once it is known what code it reaches."""
    entered: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    for _ in range(3):
        call()
    former = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(former)
    return len(entered)


@pytest.mark.parametrize(
    ("transform", "most"), [(grad, 62), (value_and_grad, 64), (grad_of_sum, 72), (jacobian, 72)]
)
def test_a_call_of_a_transform_runs_few_functions(transform: Callable[..., Any], most: int) -> None:
    derive = transform(lambda x: x * x)
    assert frames_of(lambda: derive(3.0)) <= most


def test_a_call_of_a_function_with_a_rule_of_its_own_runs_few_functions() -> None:
    square = pb.primitive(lambda x: x * x)
    pb.defvjp(square, lambda y, x: lambda g: 2.0 * g * x)
    derive = grad(lambda x: square(x)[0])
    assert [derive(np.ones(1))[0] for _ in range(2)] == [2.0, 2.0]
    assert frames_of(lambda: derive(np.ones(1))) <= 104


def test_sums_are_of_all_elements_of_a_result(form: Any) -> None:
    slopes = form(grad_of_sum(lambda x: (x[0], {"a": np.sin(x)}, np.ones(2))))(X)
    np.testing.assert_allclose(slopes, np.cos(X) + np.array([1.0, 0.0, 0.0, 0.0]))
    assert not grad_of_sum(lambda x: 3.0)(X).any()
    given = np.ones(2)
    slopes = grad_of_sum(lambda x: x)(given)
    slopes[0] = 2.0  # memory of its own
    assert grad_of_sum(lambda x: x)(given)[0] == given[0] == 1.0


def test_a_program_that_others_hold_runs_as_it_is_only_while_variables_are_the_same() -> None:
    scale = [np.ones(2)]

    def helper(x: Any, factor: Any = 2.0) -> Any:
        return x * factor

    def program(x: Any) -> Any:
        return np.sum(helper(x)) + scale[0][0]

    derive = grad(program)
    for _ in range(2):
        assert derive(np.ones(2)).tolist() == [2.0, 2.0]
    helper.__defaults__ = (np.array([3.0, 4.0]),)
    assert derive(np.ones(2)).tolist() == [3.0, 4.0]

    def filling(x: Any, factor: Any = 2.0) -> Any:
        y = np.zeros(2)
        y[:] = x * factor
        return y

    helper = filling
    assert derive(np.ones(2)).tolist() == [2.0, 2.0]
