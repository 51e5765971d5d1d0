"""Short ways of eager code give what the general ones do: values, kinds, gradients, memory, nodes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.functions.matrices import contraction
from pullback.runtime.functions.reductions import statistics
from pullback.runtime.functions.shapes import parts
from pullback.runtime.tape import direct
from pullback.runtime.transforms.transforms import grad_of_sum
from pullback.runtime.values.operator_nodes import OperatorNode
from pullback.tracer.ops.contraction import product_of

RNG = np.random.default_rng(3)
X, A, B = RNG.uniform(0.2, 0.8, 4), RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))
STACK = RNG.normal(size=(2, 3, 3))
PLACES = np.array([2, -1, 2])

FUNCTIONS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "masked": (lambda x: (x > 0.4) * x + x * (x < 0.6), X),
    "with counts": (lambda x: np.arange(4) * x - x / np.arange(1, 5), X),
    "where with an integer": (lambda x: np.where(x > 0.4, x * x, 0), X),
    "std": (np.std, A),
    "var along": (lambda a: np.var(a, axis=1), A),
    "norm": (np.linalg.norm, A),
    "norm along": (lambda a: np.linalg.norm(a, axis=0), A),
    "tril": (np.tril, A),
    "triu from": (lambda a: np.triu(a, 1), STACK),
    "trace": (np.trace, A),
    "trace of a wide matrix": (np.trace, B.T),
    "diag": (np.diag, X),
    "tensordot": (lambda a: np.tensordot(a, B, 1), A),
    "tensordot of stacks": (lambda a: np.tensordot(a, STACK.T, 1), STACK),
    "dot of stacks": (lambda a: np.dot(a, STACK), STACK),
    "product of stacks": (lambda a: a @ STACK @ a, STACK),
    "product of a stack and a matrix": (lambda a: a @ B, STACK),
    "hstack": (lambda a: np.hstack((a, B)), A),
    "hstack of vectors": (lambda x: np.hstack([x, x]), X),
    "vstack": (lambda x: np.vstack([x, 2.0 * x]), X),
    "append": (lambda x: np.append(x, x * x), X),
    "concatenate": (lambda a: np.concatenate([a, a, B], axis=1), A),
    "stack of elements": (lambda x: np.stack([x[0] * x[1], x[2]]), X),
    "swapaxes": (lambda a: np.swapaxes(a, 0, -1), STACK),
    "expand_dims": (lambda x: np.expand_dims(x, -1) * X, X),
    "squeeze": (lambda a: np.squeeze(a[:, None]), A),
    "squeeze to nothing": (lambda x: np.squeeze(x[:1]), X),
    "elements": (lambda a: a[PLACES, np.array([0, 1, 0])], A),
    "elements of a list": (lambda a: a[[0, 1], [1, 1]], A),
    "places": (lambda a: a[PLACES], A),
    "columns": (lambda a: a[:, [2, 0]], A),
    "columns that follow each other": (lambda a: a[:, (-2, -1)], A),
    "the same of stacks": (lambda a: a[:, :, [0, 1]] * a[:, :, [1, 2]], STACK),
}


def _derivative(function: Callable[..., Any], x: np.ndarray, direction: np.ndarray, g: Any) -> float:
    step = 1e-6
    return float(np.sum(g * (function(x + step * direction) - function(x - step * direction))) / (2 * step))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_functions(name: str) -> None:
    function, x = FUNCTIONS[name]
    plain = function(x)
    found, pull = pb.vjp(function, x)
    np.testing.assert_allclose(found, plain, rtol=1e-13)
    assert type(found) is type(plain) and np.asarray(found).dtype == plain.dtype
    g, direction = RNG.normal(size=np.shape(plain)), RNG.normal(size=x.shape)
    (pulled,) = pull(g if np.ndim(plain) else float(g))
    np.testing.assert_allclose(np.sum(pulled * direction), _derivative(function, x, direction, g), rtol=1e-6)


def test_short_ways_are_taken() -> None:
    matrix, vector, stack = (pb.tensor(one, requires_grad=True) for one in (A, A[0], STACK))
    for function in (contraction.trace, parts.tril, statistics.std, statistics.linalg_norm):
        found = function.short(matrix)  # type: ignore[attr-defined]
        assert found.grad_fn.name() == function(matrix).grad_fn.name()
    assert (stack @ stack).grad_fn.name() == "BmmBackward0"
    assert pb.std(vector).item() == pytest.approx(np.std(A[0], ddof=1))
    assert np.std(A[0]) == pytest.approx(pb.std(vector, correction=0).item())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_promotion_beside_truth_values_and_integers(dtype: str) -> None:
    values = np.array([0.5, 1.5], dtype)
    for other in (np.array([True, False]), np.array([2, 3])):
        plain = values * other
        found = pb.vjp(lambda x, other=other: x * (x > -1) * other, values)[0]
        assert found.dtype == plain.dtype
        np.testing.assert_array_equal(found, plain)
        x = pb.tensor(values, requires_grad=True)
        product = pb.tensor(other) * x
        assert product.dtype == x.dtype  # PyTorch's: integers take the floats' dtype
        product.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), other.astype(dtype))


def test_nodes_have_the_names_of_their_operators() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x)[0]
    node = y.grad_fn
    assert type(node).__name__ == "SelectBackward0" and y.grad_fn is node
    (behind, _), *_ = node.next_functions
    assert type(behind).__name__ == "MulBackward0" and isinstance(behind, OperatorNode)
    behind.metadata["seen"] = 1
    assert node.next_functions[0][0].metadata == {"seen": 1}
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 0.0])
    with pytest.raises(pb.errors.GradientError, match="second time"):
        y.backward()


def test_gradients_of_a_result_in_between_and_of_what_is_behind_it() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    z = (y * y * x).sum()
    of_y, of_x = pb.autograd.grad(z, (y, x))
    np.testing.assert_allclose(of_y.numpy(), (2 * y * x).detach().numpy())
    expected = (2 * y * x * x.cos() + y * y).detach().numpy()
    np.testing.assert_allclose(of_x.numpy(), expected)


def test_columns_that_follow_each_other_are_one_node_and_lie_as_numpys() -> None:
    x = pb.tensor(A, requires_grad=True)
    for places in ([0, 1], (-1,), [1, 2, 0]):
        shown = x[:, places]
        assert shown.detach().numpy().strides == A[:, places].strides
        assert shown.grad_fn.name() == "IndexBackward0"
    ((leaf, _),) = x[:, (0,)].grad_fn.next_functions
    assert leaf.variable is x
    copied = x.detach()[:, [0]]
    copied += 1.0
    np.testing.assert_array_equal(x.detach().numpy(), A)


def test_recorded_rules_take_the_short_ways_of_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pb.Tensor, "apply", lambda *given: pytest.fail("the general way"))
    slopes = grad_of_sum(lambda a: a[PLACES] ** 3 + a[:, [1]] + a[[0]])
    taken = np.array([[0.0], [0.0], [3.0]])  # how often each row is, of which all are in three rows
    found = pb.grad(lambda a: np.sum(a * slopes(a)))(A)
    np.testing.assert_allclose(found, 6 * A**2 * taken + slopes(A))


def test_a_recorded_gradient_of_what_broadcasts_is_summed_by_one_node() -> None:
    x, y = (pb.tensor(one, requires_grad=True) for one in (A[:1], A))
    (slope,) = pb.autograd.grad((x * y * y).sum(), x, create_graph=True)
    ((behind, _),) = slope.grad_fn.next_functions
    assert slope.grad_fn.name() == "SumBackward0" and behind.name() == "MulBackward0"
    (again,) = pb.autograd.grad(slope.sum(), y)
    np.testing.assert_allclose(again.numpy(), 2 * A)


def test_views_show_the_memory_of_what_they_are_made_of() -> None:
    x = pb.zeros(2, 1)
    for view in (pb.squeeze(x), pb.unsqueeze(x, 0), x.swapaxes(0, 1)):
        view += 1.0
    np.testing.assert_array_equal(x.numpy(), [[3.0], [3.0]])


def test_inside_of_another_call_the_general_way_computes() -> None:
    x = pb.tensor([1.0, 0.0], requires_grad=True)
    quotient = direct.run(lambda: 1.0 / x)  # as if another thread computed at this moment
    np.testing.assert_array_equal(quotient.detach().numpy(), [1.0, np.inf])
    assert quotient.grad_fn.name() == (1.0 / x).grad_fn.name()


def test_a_write_to_what_a_freed_node_had_saved_leaves_it_freed() -> None:
    def function(x: np.ndarray) -> Any:
        y = np.exp(x) * 1.0
        inner = pb.grad(lambda z: np.sum(np.exp(z) * y))(x)
        y[0] = 3.0
        return np.sum(y * inner)

    found = pb.grad(function)(np.array([0.1, 0.2]))
    y = np.exp([0.1, 0.2])
    np.testing.assert_allclose(found[1], 3 * y[1] ** 2 * y[1], rtol=1e-12)


def test_products_of_stacks_turn_matrices() -> None:
    for subscripts in ("axy,ayz->axz", "axy,azy->axz", "ayx,ayz->axz", "axy,ayz->azx"):
        found = product_of(subscripts)(STACK, STACK)  # type: ignore[misc]
        np.testing.assert_allclose(found, np.einsum(subscripts, STACK, STACK), rtol=1e-13)
    assert product_of("axy,axy->ax") is None
