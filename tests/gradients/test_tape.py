"""Recording: what the tape saves, modes, and the same tape on graph nodes while a function is traced."""

import threading
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.tape.apply import apply, unwrap, wrap
from pullback.runtime.values.modes import is_recording
from pullback.runtime.values.operator_nodes import OperatorNode
from pullback.runtime.values.tensor import make
from pullback.tracer.errors import (
    GradientError,
    LeakedTraceError,
    MutationError,
    PullbackError,
    ShapeError,
    TraceError,
)
from pullback.tracer.graph import Graph, Node, make_input
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.reduction import sum_to_shape
from pullback.tracer.spec import Spec
from pullback.tracer.trace import Trace, tracing
from pullback.tracer.verify import verify

FLOAT64 = np.dtype("float64")


def node_of(tensor: pb.Tensor) -> OperatorNode:
    assert isinstance(tensor.grad_fn, OperatorNode)
    return tensor.grad_fn


# --- recording ----------------------------------------------------------------------------------------------


def test_only_what_the_rules_need_is_saved() -> None:
    x, w = pb.ones(2, requires_grad=True), pb.ones(2)
    assert node_of(x + w).operands is None
    product = node_of(x * w)
    assert product.operands is not None
    assert [one is None for one in product.operands] == [True, False], "x needs w, w needs no gradient"
    y = x.tanh()
    assert node_of(y).operands is None and node_of(y).result is y._value


def test_results_that_need_no_gradient_are_not_recorded() -> None:
    x = pb.ones(2)
    assert (x * 2).grad_fn is None
    with pb.no_grad():
        assert (x.requires_grad_() * 2).grad_fn is None


def test_wrap_and_unwrap() -> None:
    array = np.ones(2)
    assert wrap(array)._value is array and unwrap(wrap(array)) is array
    tensor = wrap(array)
    assert wrap(tensor) is tensor and wrap(np.float64(2)).shape == ()
    assert unwrap(3.0) == 3.0


def test_operators_called_on_tensors_are_recorded() -> None:
    x = pb.ones(2, requires_grad=True)
    assert e.sin(x).grad_fn.name() == "SinBackward0"


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3)])
def test_sum_to_shape_sums_what_was_repeated(shape: tuple[int, ...]) -> None:
    cotangent = np.arange(12.0).reshape(2, 2, 3)[0]
    found = sum_to_shape(cotangent, shape)
    padded = (1,) * (2 - len(shape)) + shape
    expected = cotangent.sum(axis=tuple(axis for axis in range(2) if padded[axis] == 1), keepdims=True)
    np.testing.assert_array_equal(found, expected.reshape(shape))
    assert sum_to_shape(pb.from_numpy(cotangent), shape).shape == shape


def test_mistakes_are_explained_by_the_shape_rule() -> None:
    with pytest.raises(ShapeError, match=r"\(2,\), \(3,\) do not broadcast"):
        apply(e.add, pb.ones(2), pb.ones(3))
    with pytest.raises(ShapeError, match=r"shape '\[3\]' is invalid for input of size 2"):
        apply(m.reshape, pb.ones(2), shape=(3,))


def test_no_floating_point_warnings() -> None:
    x = pb.tensor([0.0, -1.0, 1e38], requires_grad=True)
    with np.errstate(all="raise"):
        assert str((x.log() * x * 1e38).tolist()) == "[nan, nan, inf]"
        (1 / x).sum().backward()
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))


# --- modes --------------------------------------------------------------------------------------------------


def test_modes_nest_and_decorate() -> None:
    @pb.no_grad()
    def inner() -> bool:
        with pb.enable_grad():
            assert is_recording()
        return pb.is_grad_enabled()

    assert inner() is False and pb.is_grad_enabled()
    with pb.set_grad_enabled(False):
        assert not pb.is_grad_enabled()
    pb.set_grad_enabled(False)
    assert not pb.is_grad_enabled()
    pb.set_grad_enabled(True)
    with pb.inference_mode():
        assert not pb.is_grad_enabled()


def test_a_mode_ends_with_an_error() -> None:
    with pytest.raises(KeyError), pb.no_grad():
        raise KeyError
    assert pb.is_grad_enabled()


def test_a_decorated_generator_is_in_the_mode_only_while_it_runs() -> None:
    @pb.no_grad()
    def steps():  # type: ignore[no-untyped-def]
        received = yield pb.is_grad_enabled()
        yield (pb.is_grad_enabled(), received)

    generator = steps()
    assert next(generator) is False and pb.is_grad_enabled()
    assert generator.send("hello") == (False, "hello")


def test_modes_belong_to_the_thread() -> None:
    seen = []
    with pb.no_grad():
        thread = threading.Thread(target=lambda: seen.append(pb.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# --- on graph nodes -----------------------------------------------------------------------------------------


def traced(name: str, *shape: int, requires_grad: bool = False) -> pb.Tensor:
    return make(make_input(Spec(shape, FLOAT64), name)).requires_grad_(requires_grad)


def lines(*outputs: pb.Tensor) -> list[str]:
    """The graph of the outputs, one line a node: name = operator(operands)."""
    nodes = [unwrap(output) for output in outputs]
    inputs = tuple(node for node in Graph("f", (), tuple(nodes)).nodes if node.is_input)
    text = str(verify(Graph("f", inputs, tuple(nodes))))
    return [line.split("#")[0].strip() for line in text.splitlines()[1:-1]]


def test_the_same_tape_extends_a_graph() -> None:
    x, w = traced("x", 3), traced("w", 3, requires_grad=True)
    with tracing(Trace("f")) as trace:
        hidden = pb.tanh(x * w)
        (slope,) = pb.autograd.grad(hidden.sum(), w)
        taken = trace.values.plain(slope._value)
    assert isinstance(slope._value, Node) and slope.shape == (3,)
    names = [line.split(":")[0] for line in lines(make(taken))]
    assert "hidden" in names and "d_hidden" in names and names[-1] == "d_w"


def test_nodes_of_a_backward_name_the_rule_and_the_users_line() -> None:
    w = traced("w", 3, requires_grad=True)
    with tracing(Trace("f")) as trace:
        hidden = pb.exp(w)  # this line
        (slope,) = pb.autograd.grad(hidden.sum(), w)
        origin = trace.values.plain(slope._value).origin
    assert origin.rule == "exp" and origin.is_backward
    assert origin.text == "hidden = pb.exp(w)  # this line"


def test_arrays_in_a_trace_are_captured_not_computed_with() -> None:
    constant = np.ones(3)
    trace = Trace("f")
    with tracing(trace):
        doubled = pb.from_numpy(constant) * 2
        total = traced("x", 3) + doubled
    assert [array is constant for array, _ in trace.captured] == [True]
    assert [line.split(" = ")[1].split("(")[0] for line in lines(total)][-1] == "add"


def test_random_numbers_in_a_trace_are_drawn_anew() -> None:
    trace = Trace("f")
    with tracing(trace):
        noise = pb.randn(3)
        total = noise + traced("x", 3).float()
    (drawn,) = trace.drawn
    (first,), (second,), (third,) = drawn[0](), drawn[0](), drawn[0]()
    assert drawn[1] == (noise._value,) and total.shape == (3,)
    assert first.dtype == np.float32 and len({one.tobytes() for one in (first, second, third)}) == 3


def test_constants_and_ranges_in_a_trace_are_operators() -> None:
    with tracing(Trace("f")):
        for made in (pb.zeros(2), pb.ones(2), pb.full((2,), 3.0), pb.tensor(1.5)):
            assert made._value.operator.name == "full"
        assert pb.arange(4)._value.operator.name == "iota"
        assert pb.eye(3).shape == (3, 3)


@pytest.mark.parametrize(
    "use",
    [
        bool, float, int, lambda x: x.item(), lambda x: x.tolist(), lambda x: x.numpy(), np.asarray,
        lambda x: [1][x], lambda x: 1.0 in x,
    ],
)  # fmt: skip
def test_values_of_traced_tensors_do_not_exist(use) -> None:  # type: ignore[no-untyped-def]
    x = traced("x")
    with (
        tracing(Trace("f")),
        pytest.raises(TraceError, match="is being traced and has no values yet") as error,
    ):
        use(x)
    assert "test_tape.py:" in str(error.value) and "pullback.where" in str(error.value)


def test_length_and_rows_of_traced_tensors_are_known() -> None:
    x = traced("x", 3, 2)
    with tracing(Trace("f")):
        assert len(x) == 3 and [row.shape for row in x] == [(2,)] * 3
        assert x.shape == (3, 2) and x.numel() == 6 and x.size(0) == 3 and x.dtype == pb.float64
        assert "x" in repr(x)


def test_in_place_operations_replace_the_payload() -> None:
    x = traced("x", 3)
    with tracing(Trace("f")):
        y = x * 2
        y += 1
        part = y[1:]
        part *= 5
        y[0] = 7.0
    operators = [line.split(" = ")[1].split("(")[0] for line in lines(y)]
    assert [one for one in operators if one not in ("full", "expand", "reshape")] == [
        "multiply", "add", "slice", "multiply", "slice_update", "slice_update",
    ]  # fmt: skip


def test_gradients_of_in_place_operations_in_a_trace() -> None:
    x = traced("x", 3, requires_grad=True)
    with tracing(Trace("f")) as trace:
        y = x * 2
        y[1:] *= y[0]
        (slope,) = pb.autograd.grad(y.sum(), x)
        node = trace.values.plain(slope._value)
    graph = verify(Graph("f", (x._value,), (node,)))
    values = {x._value: np.array([1.0, 2.0, 3.0])}
    for one in graph.nodes:
        if one not in values:
            values[one] = np.asarray(
                one.operator.evaluate(*(values[a] for a in one.operands), **one.attributes)
            )
    np.testing.assert_allclose(values[node], [2 + 2 * (4 + 6), 4.0, 4.0])


def test_arguments_and_tensors_outside_may_not_be_written_to() -> None:
    argument, outside = traced("x", 3), pb.ones(3)
    argument._frozen = "f writes into its argument 'x'"
    with tracing(Trace("f")):
        for write in (lambda: argument.add_(1), lambda: argument[1:].zero_()):
            with pytest.raises(MutationError, match="f writes into its argument 'x', at test_tape.py"):
                write()
        with pytest.raises(MutationError, match="writes into a tensor from outside"):
            outside.add_(1)
        with pytest.raises(MutationError, match="f writes into its argument 'x'"):
            argument.detach().add_(1)
        with pytest.raises(MutationError, match="would write the .grad of a tensor outside"):
            (outside.requires_grad_() * traced("y", 3).float()).sum().backward()


def test_a_traced_tensor_ends_with_its_trace() -> None:
    x = traced("x", 3)
    with pytest.raises(LeakedTraceError, match="after its trace had ended"):
        x * 2


def test_recorded_backward_passes_are_the_same_with_hooks_which_take_the_long_way() -> None:
    def second(is_hooked: bool) -> list[np.ndarray]:
        x, w = (pb.tensor([0.5, 1.5, 2.5], requires_grad=True) for _ in range(2))
        shared = pb.sin(x) * w[0]
        if is_hooked:
            shared.register_hook(lambda g: None)
        loss = (shared * shared + pb.exp(-shared) * pb.cat([x[1:], w[:1]]) / (1.0 + x * x)).sum()
        slopes = pb.autograd.grad(loss, [x, w], create_graph=True)
        again = pb.autograd.grad(sum((one * one).sum() for one in slopes), [x, w], create_graph=True)
        return [one.detach().numpy() for one in (*slopes, *again)]

    for one, other in zip(second(True), second(False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


# --- what hooks return --------------------------------------------------------------------------------------

UNFIT = {
    "has changed the size": lambda g: g.sum(),
    "has changed the type": lambda g: g * 1j,
    "returned ndarray": lambda g: g.numpy(),
}
PLACES = {
    "leaf": lambda x, y, hook: x.register_hook(hook),
    "result": lambda x, y, hook: y.register_hook(hook),
    "before a node": lambda x, y, hook: y.grad_fn.register_prehook(lambda given: (hook(given[0]),)),
    "after a node": lambda x, y, hook: y.grad_fn.register_hook(lambda given, _: (hook(given[0]), None)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("message", UNFIT)
def test_what_a_hook_returns_has_the_shape_and_dtype_of_the_gradient(place: str, message: str) -> None:
    x = pb.ones(2, requires_grad=True)
    y = x * pb.ones(2)
    PLACES[place](x, y, UNFIT[message])
    with pytest.raises(PullbackError, match=message):
        y.sum().backward()
    assert x.grad is None


def test_a_hook_of_a_node_returns_a_gradient_for_each_input() -> None:
    y = pb.ones(2, requires_grad=True) * pb.ones(2)
    y.grad_fn.register_hook(lambda given, _: given[:1])
    with pytest.raises(GradientError, match=r"incorrect number of values \(got 1, expected 2\)"):
        y.sum().backward()


def test_of_nodes_on_the_way_those_are_asked_for_single_gradients_that_lead_elsewhere_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    real = OperatorNode.pull

    def pull(self: OperatorNode, *arguments: Any) -> Any:
        asked.append(self.plan.operator.name)
        return real(self, *arguments)

    monkeypatch.setattr(OperatorNode, "pull", pull)
    x, y = make(np.array([1.0, 2.0])).requires_grad_(), make(np.array([3.0, 4.0])).requires_grad_()
    loss = ((x * x) * (2.0 * x + y) + y.sin()).sum()
    (slope,) = pb.autograd.grad(loss, x, retain_graph=True)
    np.testing.assert_allclose(slope._value, 6.0 * x._value**2 + 2.0 * x._value * y._value)
    assert asked == ["add", "add"]
    (middle,) = pb.autograd.grad(loss, y)
    np.testing.assert_allclose(middle._value, x._value**2 + np.cos(y._value))
