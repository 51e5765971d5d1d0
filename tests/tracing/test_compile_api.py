"""The decorator: what goes in and comes out, closures, caches, methods, inspection."""

import collections
import dataclasses
import functools
import inspect
import pickle
import threading
import types
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.dispatch.compiled import CompiledFunction
from pullback.runtime.dispatch.table import Table
from pullback.tracer.errors import ArgumentError, GradientError
from pullback.tracer.graph import Graph
from pullback.tracer.verify import verify

pytestmark = pytest.mark.usefixtures("partly_compiled")

RNG = np.random.default_rng(0)
X, W, Y = RNG.uniform(0.2, 1.5, 5), RNG.uniform(0.2, 1.5, 5), RNG.uniform(0.2, 1.5, 5)


@pb.compile
def loss(w: Any, x: Any, y: Any) -> Any:
    """The mean squared error."""
    return ((pb.tanh(w * x) - y) ** 2).mean()


def eager_loss(w: Any, x: Any, y: Any) -> Any:
    return ((pb.tanh(w * x) - y) ** 2).mean()


# --- what goes in and comes out -------------------------------------------------------------------------


def test_arrays_give_arrays_and_scalars_numpy_scalars() -> None:
    value = loss(W, X, Y)
    assert type(value) is np.float64
    assert value == pytest.approx(np.mean((np.tanh(W * X) - Y) ** 2), rel=1e-14)
    doubled = pb.compile(lambda x: x * 2)(X)
    assert type(doubled) is np.ndarray
    np.testing.assert_array_equal(doubled, X * 2)


def test_tensors_give_tensors_and_backward_runs_the_generated_pair() -> None:
    w = pb.tensor(W, requires_grad=True)
    value = loss(w, X, pb.tensor(Y))
    assert value.requires_grad and value.grad_fn.name() == "CompiledLossBackward"
    value.backward()
    other = pb.tensor(W, requires_grad=True)
    eager_loss(other, X, Y).backward()
    np.testing.assert_allclose(w.grad.numpy(), other.grad.numpy(), rtol=1e-13)
    assert not loss(pb.tensor(W), X, Y).requires_grad


def test_a_compiled_call_inside_a_larger_eager_graph() -> None:
    w = pb.tensor(W, requires_grad=True)
    (loss(w * 2, pb.tensor(X), Y).exp() * w.sum()).backward()
    other = pb.tensor(W, requires_grad=True)
    (eager_loss(other * 2, pb.tensor(X), Y).exp() * other.sum()).backward()
    np.testing.assert_allclose(w.grad.numpy(), other.grad.numpy(), rtol=1e-12)


@pytest.mark.drawn(4)
def test_create_graph_through_a_compiled_call_is_exact_to_third_order() -> None:
    @pb.compile
    def cubic(x: Any) -> Any:
        return (x**3 * pb.sin(x)).sum()

    def derivatives(function: Any) -> list[np.ndarray]:
        x = pb.tensor(X, requires_grad=True)
        found, value = [], function(x)
        for _ in range(3):
            (slope,) = pb.autograd.grad(value, x, create_graph=True)
            found.append(slope.detach().numpy())
            value = slope.sum()
        return found

    for compiled, eager in zip(derivatives(cubic), derivatives(cubic.__wrapped__)):
        np.testing.assert_allclose(compiled, eager, rtol=1e-11)


class Tenfold(pb.autograd.Function):
    """Multiplies by 2, and its gradient by 10."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * 10


def test_functions_with_a_backward_of_their_own() -> None:
    function = pb.compile(lambda x, y: (Tenfold.apply(x) * y).sum())
    x, y = pb.tensor(X, requires_grad=True), pb.tensor(Y, requires_grad=True)
    value = function(x, y)
    assert value.item() == pytest.approx(np.sum(2 * X * Y))
    d_x, d_y = pb.autograd.grad(value, (x, y), create_graph=True)
    np.testing.assert_allclose(d_x.detach().numpy(), 10 * X * Y)
    np.testing.assert_allclose(d_y.detach().numpy(), 2 * X)
    (second,) = pb.autograd.grad(d_x.sum(), x)
    np.testing.assert_allclose(second.numpy(), 10 * Y)
    np.testing.assert_allclose(pb.grad(function)(X, Y), 10 * X * Y)
    assert "a backward of its own" not in function.explain(x, y)  # its graph has it


def cut_by_detach(x: Any) -> Any:
    return (x * x.detach()).sum()


def cut_by_no_grad(x: Any) -> Any:
    with pb.no_grad():
        y = x * x
    return (y * x).sum()


def cut_by_a_gradient(x: Any) -> Any:
    (g,) = pb.autograd.grad((x**3).sum(), x)
    return (g * x).sum()


def not_cut(x: Any) -> Any:
    (g,) = pb.autograd.grad((x**3).sum(), x, create_graph=True)
    return (g * x).sum()


@pytest.mark.parametrize("function", [cut_by_detach, cut_by_no_grad, cut_by_a_gradient, not_cut])
def test_gradients_are_cut_where_eager_ones_are(function: Any) -> None:
    compiled, eager = pb.tensor(X, requires_grad=True), pb.tensor(X, requires_grad=True)
    pb.compile(function)(compiled).backward()
    function(eager).backward()
    np.testing.assert_allclose(compiled.grad.numpy(), eager.grad.numpy(), rtol=1e-13)


def test_no_grad_computes_forward_only() -> None:
    w = pb.tensor(W, requires_grad=True)
    with pb.no_grad():
        assert not loss(w, X, Y).requires_grad
    assert loss(w, X, Y).requires_grad


def test_second_backward_and_overwritten_values_raise_as_in_eager() -> None:
    w = pb.tensor(W, requires_grad=True)
    x = pb.tensor(X)
    value = loss(w, x, Y)
    value.backward(retain_graph=True)
    value.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        value.backward()
    value = loss(w, x, Y)
    x.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_several_results_with_and_without_gradient() -> None:
    @pb.compile
    def parts(x: Any) -> Any:
        return {"square": x * x, "sign": x > 0.5, "none": None, "count": 3, "pair": (x.sum(), [x])}

    arrays = parts(X)
    assert arrays["none"] is None and arrays["count"] == 3
    np.testing.assert_array_equal(arrays["sign"], X > 0.5)
    np.testing.assert_array_equal(arrays["pair"][1][0], X)
    assert arrays["pair"][1][0] is not X
    x = pb.tensor(X, requires_grad=True)
    tensors = parts(x)
    assert not tensors["sign"].requires_grad
    tensors["square"].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X)


@dataclasses.dataclass
class Params:
    w: Any
    b: Any
    scale: float = 2.0


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "make",
    [
        lambda w, b: {"w": w, "b": b},
        lambda w, b: [w, {"b": (b,)}],
        lambda w, b: Point(w, b),
        lambda w, b: Params(w, b),
        lambda w, b: collections.OrderedDict(b=b, w=w),
    ],
    ids=["dict", "list", "namedtuple", "dataclass", "ordered dict"],
)
def test_nested_arguments_and_gradients(make: Any) -> None:
    def affine(params: Any, x: Any) -> Any:
        if isinstance(params, Params):
            return (params.w * x * params.scale + params.b).sum()
        if isinstance(params, dict):
            return (params["w"] * x * 2 + params["b"]).sum()
        w, b = params[0], params[1]["b"][0] if isinstance(params[1], dict) else params[1]
        return (w * x * 2 + b).sum()

    value, gradient = pb.value_and_grad(pb.compile(affine))(make(W, Y), X)
    assert value == pytest.approx(np.sum(W * X * 2 + Y))
    expected = make(2 * X, np.ones(5))
    assert type(gradient) is type(expected)
    flat = [leaf for leaf in _leaves(gradient) if isinstance(leaf, np.ndarray)]
    for found, wanted in zip(flat, [leaf for leaf in _leaves(expected) if isinstance(leaf, np.ndarray)]):
        np.testing.assert_allclose(found, wanted)


def _leaves(value: Any) -> list[Any]:
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list | tuple) else [value]


def test_keywords_defaults_and_variadic_arguments() -> None:
    @pb.compile
    def combine(x: Any, *rest: Any, scale: float = 1.0, **named: Any) -> Any:
        total = x * scale
        for one in rest:
            total = total + one
        return total + sum(named.values())

    np.testing.assert_allclose(combine(X, W, Y, scale=3.0, z=W), X * 3 + W + Y + W)
    np.testing.assert_allclose(combine(X), X)

    @pb.compile
    def shifted(x: Any, by: Any = 1.0, mode: str = "plus") -> Any:
        return x + by if mode == "plus" else x - by

    np.testing.assert_allclose(shifted(X), X + 1)
    np.testing.assert_allclose(shifted(X, 2.0), X + 2)
    np.testing.assert_allclose(shifted(X, mode="minus"), X - 1)
    np.testing.assert_allclose(shifted(x=X, by=W), X + W)


def test_numbers_are_operands_of_their_own_type() -> None:
    @pb.compile
    def scaled(x: Any, factor: Any) -> Any:
        return x * factor

    for factor in (1, 1.0, True, 2, 0.0, -0.0, float("nan"), float("nan")):
        np.testing.assert_array_equal(scaled(X, factor), X * factor)
    assert scaled.cache_info().traces == 3
    assert np.signbit(scaled(X, -0.0)).all() and not np.signbit(scaled(X, 0.0)).any()
    scaled.cache_clear()
    for number in (0.5, 0.7, 0.9):
        np.testing.assert_allclose(scaled(X, np.float64(number)), X * number)
    assert scaled.cache_info().traces == 1


def test_static_arguments_by_position_and_name() -> None:
    @functools.partial(pb.compile, static_argnums=1, static_argnames="activation")
    def layer(x: Any, dims: Any, activation: Any) -> Any:
        return activation(x).sum(dim=dims)

    matrix = np.outer(X, W)
    np.testing.assert_allclose(layer(matrix, (0,), pb.tanh), np.tanh(matrix).sum(0))
    np.testing.assert_allclose(layer(matrix, (1,), activation=pb.exp), np.exp(matrix).sum(1))
    layer(matrix, (0,), pb.tanh)
    assert layer.cache_info().traces == 2


def test_all_layouts_and_byte_orders_give_the_same() -> None:
    matrix = np.outer(X, W)
    double = pb.compile(lambda x: x * 2 + x.sum(0))
    expected = matrix * 2 + matrix.sum(0)
    read_only = matrix.copy()
    read_only.flags.writeable = False
    for form in (
        matrix,
        np.asfortranarray(matrix),
        np.repeat(matrix, 2, 0)[::2],
        matrix.astype(">f8"),
        read_only,
    ):
        np.testing.assert_allclose(double(form), expected)
    np.testing.assert_allclose(double(matrix.T), matrix.T * 2 + matrix.T.sum(0))
    assert double.cache_info().traces == 1


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 3, 4)])
def test_every_rank_and_empty_arrays(shape: tuple[int, ...]) -> None:
    x = np.ones(shape) * 0.5
    np.testing.assert_allclose(pb.compile(lambda x: x * x + 1)(x), x * x + 1)
    np.testing.assert_allclose(pb.compile(lambda x: (x * x).sum())(x), (x * x).sum())


# --- kinds of functions -----------------------------------------------------------------------------------


def test_the_decorated_function_keeps_its_identity() -> None:
    assert isinstance(loss, CompiledFunction)
    assert loss.__name__ == "loss" and loss.__doc__ == "The mean squared error."
    assert list(inspect.signature(loss).parameters) == ["w", "x", "y"]
    assert loss.__wrapped__(W, X, pb.tensor(Y)).item() == pytest.approx(loss(W, X, Y))
    assert pickle.loads(pickle.dumps(loss)) is loss


class Model:
    """A model in plain Python."""

    bias = 1.0

    def __init__(self, weight: Any) -> None:
        self.weight = weight
        self.layers = {"first": [weight * 2]}

    @pb.compile
    def predict(self, x: Any) -> Any:
        """The prediction."""
        return self.transformed(x) + self.bias

    def transformed(self, x: Any) -> Any:
        return self.weight * x + self.layers["first"][0]

    @pb.compile
    @classmethod
    def doubled(cls, x: Any) -> Any:
        return x * 2 * cls.bias

    @pb.compile
    @staticmethod
    def tripled(x: Any) -> Any:
        return x * 3


def test_methods_see_changed_attributes_without_a_new_trace() -> None:
    model = Model(W)
    np.testing.assert_allclose(model.predict(X), W * X + 2 * W + 1)
    model.weight = Y
    np.testing.assert_allclose(model.predict(X), Y * X + 2 * W + 1)
    model.weight[:] = 0.0 * W + 1.0
    model.layers["first"][0] = X
    np.testing.assert_allclose(model.predict(X), X + X + 1)
    assert Model.predict.cache_info().traces == 1
    model.bias = 5.0
    np.testing.assert_allclose(model.predict(X), X + X + 5)
    assert Model.predict.cache_info().traces == 2
    np.testing.assert_allclose(Model(W).predict(X), W * X + 2 * W + 1)
    assert model.predict.__doc__ == "The prediction." and "self.weight" in model.predict.explain(X)
    np.testing.assert_allclose(Model.doubled(X), X * 2)
    np.testing.assert_allclose(Model(W).tripled(X), X * 3)


def test_methods_give_gradients_to_tensors_in_attributes() -> None:
    model = Model(pb.tensor(W, requires_grad=True))
    model.predict(pb.tensor(X)).sum().backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), X + 2)


def test_partial_functions_and_lambdas() -> None:
    bound = functools.partial(lambda scale, x: scale * x, W)
    np.testing.assert_allclose(pb.compile(bound)(X), W * X)
    np.testing.assert_allclose(pb.compile(lambda x: x + 1)(X), X + 1)


def test_a_compiled_function_inside_another_is_inlined() -> None:
    inner = pb.compile(lambda x: pb.sin(x) * 2)

    @pb.compile
    def outer(x: Any) -> Any:
        return inner(x).sum()

    assert outer(X) == pytest.approx(np.sum(np.sin(X) * 2))
    assert inner.cache_info().traces == 0


# --- what a function reaches ------------------------------------------------------------------------------

factor = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
exponent = 2
settings = {"shift": np.ones(5), "power": 3}
namespace = types.ModuleType("namespace")
namespace.array = np.full(5, 7.0)  # type: ignore[attr-defined]


def helper(x: Any) -> Any:
    return x * factor + settings["shift"]


def test_globals_are_read_in_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    @pb.compile
    def uses_globals(x: Any) -> Any:
        return helper(x) ** exponent + namespace.array

    def expected() -> Any:
        return (X * factor + settings["shift"]) ** exponent + namespace.array

    np.testing.assert_allclose(uses_globals(X), expected())
    monkeypatch.setitem(globals(), "factor", factor * 3)
    monkeypatch.setitem(settings, "shift", np.full(5, 9.0))
    monkeypatch.setattr(namespace, "array", np.zeros(5))
    np.testing.assert_allclose(uses_globals(X), expected())
    assert uses_globals.cache_info().traces == 1
    monkeypatch.setitem(globals(), "exponent", 3)
    np.testing.assert_allclose(uses_globals(X), expected())
    monkeypatch.setitem(globals(), "factor", np.full((2, 5), 2.0))
    np.testing.assert_allclose(uses_globals(X), expected())
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    np.testing.assert_allclose(uses_globals(X), X**exponent)
    assert uses_globals.cache_info().traces == 4
    assert "captured array" in uses_globals.explain(X)


def test_what_is_computed_from_a_closure_is_never_stale() -> None:
    """Elements, views and NumPy functions of a closure's array become part of the graph."""
    table = np.arange(1.0, 6.0)

    @pb.compile
    def polynomial(x: Any) -> Any:
        return table[0] + table[1:2] * x + pb.exp(table).sum() + (table * 2).max()

    for _ in range(2):
        expected = table[0] + table[1:2] * X + np.exp(table).sum() + (table * 2).max()
        np.testing.assert_allclose(polynomial(X), expected)
        table[:] = table[::-1] / 3
    table = table * 5
    np.testing.assert_allclose(
        polynomial(X), table[0] + table[1:2] * X + np.exp(table).sum() + (table * 2).max()
    )
    assert polynomial.cache_info().traces == 1


def test_an_aliased_global_that_is_rebound_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    first = second = [W]

    @pb.compile
    def both(x: Any) -> Any:
        return first[0] * x + second[0]

    np.testing.assert_allclose(both(X), W * X + W)
    second = [Y]
    np.testing.assert_allclose(both(X), W * X + Y)


def test_closure_tensors_that_require_grad_get_gradients() -> None:
    weights = {"w": pb.tensor(W, requires_grad=True)}

    @pb.compile
    def predict(x: Any) -> Any:
        return (weights["w"] * x).sum()

    value = predict(X)
    assert isinstance(value, pb.Tensor)
    value.backward()
    np.testing.assert_allclose(weights["w"].grad.numpy(), X)
    with pb.no_grad():
        assert not predict(X).requires_grad
    weights["w"].requires_grad = False
    assert not predict(X).requires_grad


def test_constants_of_a_trace_are_listed() -> None:
    @pb.compile
    def with_constant(x: Any) -> Any:
        return x * pb.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=pb.float64)

    np.testing.assert_allclose(with_constant(X), X * [1, 2, 3, 4, 5])
    assert "constant" in with_constant.explain(X)


def test_random_numbers_are_drawn_in_each_call() -> None:
    @pb.compile
    def noisy(x: Any) -> Any:
        return x + pb.rand(5, dtype=pb.float64)

    pb.manual_seed(1)
    first, second = noisy(X), noisy(X)
    assert not np.allclose(first, second)
    pb.manual_seed(1)
    np.testing.assert_allclose(noisy(X), first)


# --- caches -----------------------------------------------------------------------------------------------


@pytest.mark.machine_code
def test_a_new_shape_traces_but_compiles_nothing() -> None:
    @pb.compile
    def squared_error(x: Any, y: Any) -> Any:
        return ((x - y) ** 2).sum() * 0.12345

    squared_error(X, Y)
    info = squared_error.cache_info()
    assert (info.hits, info.misses, info.traces, info.size) == (0, 1, 1, 1)
    assert info.compilations + info.source_hits + info.disk_hits == 1
    squared_error(X, Y)
    squared_error(np.ones(50), np.ones(50))
    later = squared_error.cache_info()
    assert (later.hits, later.misses, later.traces, later.size) == (1, 2, 2, 2)
    assert later.compilations == info.compilations and later.source_hits == info.source_hits + 1
    squared_error.cache_clear()
    assert squared_error.cache_info() == (0, 0, 0, 0, 0, 0, 0)
    assert squared_error(X, Y) == pytest.approx(np.sum((X - Y) ** 2) * 0.12345)


def test_the_cache_is_bounded_and_keeps_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    @pb.compile
    def shifted(x: Any, by: str) -> Any:
        return x + len(by)

    monkeypatch.setattr(Table, "maxsize", 3)
    for by in (0, 1, 2, 0, 3, 0, 4, 0, 5, 0):
        np.testing.assert_allclose(shifted(X, "." * by), X + by)
    assert shifted.cache_info().traces == 6 and shifted.cache_info().size == 3


def test_the_default_dtype_is_part_of_the_key() -> None:
    made = pb.compile(lambda x: x + pb.ones(5))
    assert made(X.astype(np.float32)).dtype == np.float32
    pb.set_default_dtype(pb.float64)
    try:
        assert made(X.astype(np.float32)).dtype == np.float64
    finally:
        pb.set_default_dtype(pb.float32)


def test_threads_share_one_trace() -> None:
    @pb.compile
    def slow(x: Any) -> Any:
        return (x * 3).sum()

    results: list[float] = []
    threads = [threading.Thread(target=lambda: results.extend(slow(X) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert slow.cache_info().traces == 1 and len(results) == 200 and np.allclose(results, (X * 3).sum())


# --- inspection -------------------------------------------------------------------------------------------


def test_inspection_traces_and_does_not_run() -> None:
    @pb.compile
    def inspected(w: Any, x: Any) -> Any:
        hidden = pb.tanh(w * x)
        return hidden.sum()

    source = inspected.source(W, X)
    assert "def inspected_forward" in source and "def inspected_backward" in source
    assert inspected.backward_source(W, X) in source
    assert "hidden = pb.tanh(w * x)" in inspected.forward_source(W, X)
    graph = inspected.graph(W, X)
    assert isinstance(graph, Graph) and verify(graph) is graph and "tanh" in str(graph)
    text = inspected.explain(W, X)
    assert "argument w: float64[5]" in text and "the backward function reads" in text
    info = inspected.cache_info()
    assert info.traces == 2 and info.compilations == info.source_hits == info.disk_hits == 0
    inspected(W, X)
    assert inspected.cache_info().traces == 2  # one for arrays, one for what would require grad


def test_source_of_a_gradient_is_one_function() -> None:
    source = pb.value_and_grad(loss).source(W, X, Y)
    assert source.count("\ndef ") == 1 and "d_w" in source


def test_ufuncs_are_compiled_as_they_are() -> None:
    np.testing.assert_allclose(pb.compile(np.exp)(X), np.exp(X))
    np.testing.assert_allclose(pb.compile(np.hypot)(X, W), np.hypot(X, W))
    assert pb.compile(pb.grad(np.sin))(0.5) == pytest.approx(np.cos(0.5))


def test_the_source_for_arrays_is_that_of_arrays_before_a_call_as_well() -> None:
    def spread(x: Any) -> Any:
        return x.std()  # over n for NumPy's arrays, over n - 1 for Tensors

    of_arrays, of_tensors = (pb.compile(spread).source(x) for x in (X, pb.tensor(X)))
    assert "(n - 1)" in of_tensors and "(n - 1)" not in of_arrays
    assert pb.compile(spread)(X) == pytest.approx(X.std())


def test_backward_source_without_a_gradient_says_so() -> None:
    counted = pb.compile(lambda n: n + 1)
    with pytest.raises(GradientError, match="has no gradient"):
        counted.backward_source(np.arange(3))


def test_gradients_of_a_step_do_not_share_memory_and_accumulate() -> None:
    function = pb.compile(lambda a, b, c: ((a + b) ** 2).sum() + (c * 3).sum())
    a, b, c = (pb.tensor(X, requires_grad=True) for _ in range(3))
    for _ in range(3):
        function(a, b, c).backward()
    function(a, a, c).backward()
    np.testing.assert_allclose(a.grad.numpy(), 3 * 4 * X + 8 * X)
    np.testing.assert_allclose(b.grad.numpy(), 3 * 4 * X)
    np.testing.assert_allclose(c.grad.numpy(), np.full(5, 12.0))
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())


def test_hooks_see_the_gradients_of_a_compiled_call() -> None:
    function = pb.compile(lambda a: (a * a).sum())
    x = pb.tensor(X, requires_grad=True)
    x.register_hook(lambda gradient: gradient * 10)
    value = function(x)
    value.register_hook(lambda gradient: gradient * 2)
    value.backward()
    np.testing.assert_allclose(x.grad.numpy(), 40 * X)


def test_numpy_functions_of_a_closure_are_part_of_the_graph() -> None:
    table = np.arange(1.0, 6.0)
    function = pb.compile(lambda x: np.exp(table) * x + np.sum(table))
    for _ in range(2):
        np.testing.assert_allclose(function(X), np.exp(table) * X + table.sum())
        table = table / 2
    assert function.cache_info().traces == 1


def test_without_arguments_the_latest_code_is_shown() -> None:
    @pb.compile
    def total(*parts: Any) -> Any:
        return sum((part * 2.0).sum() for part in parts)

    @pb.compile
    def halved(x: Any, steps: int = 1) -> Any:
        while x.sum() > steps:
            x = x / 2
        return x

    with pytest.raises(ArgumentError, match="halved has not been called yet"):
        halved.source()
    total(np.ones(3))
    assert "parts_0: float64[n]" in total.source()
    total(np.ones((2, 3)), np.ones(3))
    assert total.source() == total.forward_source(np.ones((2, 3)), np.ones(3))
    for start in (1.0, 5.0):
        halved(np.array([start]))
    assert "x.sum() > steps" in halved.explain()
    assert halved.source().count("path") >= 2


def test_a_function_that_transforms_are_made_of_alone_has_nothing_that_runs_calls() -> None:
    square = pb.compile(lambda x: x * x)
    assert pb.grad(square)(3.0) == 6.0
    assert "_dispatcher" not in vars(square)
    assert square(3.0) == 9.0 and square.cache_info().traces == 1


def test_a_function_shows_what_transforms_have_made_of_it() -> None:
    """Before it is called itself: most functions are only called as gradients."""

    @pb.compile
    def loss(w: Any, x: Any) -> Any:
        return np.sum(np.tanh(x @ w))

    with pytest.raises(ArgumentError, match="loss has not been called yet.*or what grad and its kin make"):
        loss.source()
    x, w = np.ones((4, 3)), np.ones(3)
    slope = pb.value_and_grad(loss)
    slope(w, x)
    assert loss.source() == slope.source() and "d_w" in loss.source()
    assert loss.explain() == slope.explain() and loss.graph() is slope.graph()
    assert "d_w" in loss._repr_html_()
    with pytest.raises(ArgumentError, match="in one function with the value"):
        loss.backward_source()
    curvature = pb.hessian(loss)
    curvature(w, x)
    assert loss.source() == curvature.source() != slope.source()
    assert "d_w" in slope.source()
    loss(w, x)
    assert loss.source() == loss.forward_source(w, x)
    loss.cache_clear()
    with pytest.raises(ArgumentError, match="has not been called yet"):
        loss.source()


def model_with_a_compiled_loss() -> Any:
    class Model:
        weight = np.ones(3)

        @pb.compile
        def loss(self, x: Any) -> Any:
            return (self.weight * x).sum()

    return Model()


def test_a_method_shows_what_transforms_have_made_of_it() -> None:
    model = model_with_a_compiled_loss()
    pb.grad(model.loss)(np.ones(3))
    assert "loss_grad" in model.loss.source()


def test_a_method_shows_its_latest_code() -> None:
    model = model_with_a_compiled_loss()
    with pytest.raises(ArgumentError, match="loss has not been called yet"):
        model.loss.source()
    model.loss(np.ones(3))
    assert model.loss.source() == model.loss.forward_source(np.ones(3))


def test_arguments_may_have_the_names_of_functions() -> None:
    def named(exp: Any, sin: Any, maximum: Any, range: Any, float64: Any, min: Any, inf: Any) -> Any:
        waves = np.exp(sin) * np.sin(exp)
        return np.sum(waves + np.maximum(maximum, range) * np.minimum(float64, min[1:]) * inf)

    arrays = [np.linspace(-1.0, 1.0, 3) + shift for shift in range(5)]
    arrays += [np.ones(4), np.ones(3)]
    value, slopes = pb.value_and_grad(named, tuple(range(7)))(*arrays)
    np.testing.assert_allclose(value, named(*arrays))
    wanted = np.exp(arrays[1]) * np.cos(arrays[0])
    np.testing.assert_allclose(slopes[0], wanted)
