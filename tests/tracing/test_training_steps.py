"""What programs write where nothing is recorded: PyTorch's, with the import changed, plain and compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

Compile = Callable[[Any], Any]
PROGRAMS: dict[str, Callable[[Any, Compile], Any]] = {}


def program(function: Callable[[Any, Compile], Any]) -> Callable[[Any, Compile], Any]:
    """A program of a library with PyTorch's names, and of what is done to its functions."""
    PROGRAMS[function.__name__] = function
    return function


def data(m: Any) -> Any:
    rng = np.random.default_rng(0)
    x, y, w = rng.standard_normal((8, 3)), rng.standard_normal(8), rng.standard_normal(3)
    return m.tensor(x), m.tensor(y), m.tensor(w, requires_grad=True)


def shown(*tensors: Any) -> list[Any]:
    return [(one.tolist(), one.requires_grad, one.is_leaf, one._version) for one in tensors]


# --- training steps ---------------------------------------------------------------------------------------


@program
def gradient_descent(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)
    b = m.tensor(0.5, dtype=m.float64, requires_grad=True)

    @compiled
    def step(w: Any, b: Any, x: Any, y: Any) -> Any:
        loss = ((x @ w + b - y) ** 2).mean()
        slopes = m.autograd.grad(loss, [w, b])
        with m.no_grad():
            w -= 0.1 * slopes[0]
            b.sub_(slopes[1], alpha=0.1)
        return loss

    return [step(w, b, x, y).item() for _ in range(5)], shown(w, b)


@program
def gradient_descent_on_what_is_reached(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)
    held = {"weights": [w]}

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = ((x @ held["weights"][0] - y) ** 2).mean()
        (slope,) = m.autograd.grad(loss, held["weights"])
        with m.no_grad():
            for one in held["weights"]:
                one[:2].sub_(0.1 * slope[:2])
                one[2:].sub_(0.2 * slope[2:])
        return loss.detach()

    return [step(x, y).item() for _ in range(5)], shown(w)


@program
def momentum(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)
    velocity = m.zeros(3, dtype=m.float64)

    @compiled
    def step(w: Any, velocity: Any, x: Any, y: Any) -> Any:
        loss = ((x @ w - y) ** 2).mean()
        (slope,) = m.autograd.grad(loss, [w])
        with m.no_grad():
            velocity.mul_(0.9).add_(slope)
            w.add_(velocity, alpha=-0.1)
        return loss.detach()

    return [step(w, velocity, x, y).item() for _ in range(5)], shown(w, velocity)


class Adam:
    def __init__(self, m: Any, parameters: list[Any]) -> None:
        self.m = m
        self.parameters = parameters
        self.means = [m.zeros_like(one) for one in parameters]
        self.squares = [m.zeros_like(one) for one in parameters]
        self.steps = m.zeros((), dtype=m.float64)

    def step(self, slopes: Any) -> None:
        with self.m.no_grad():
            self.steps += 1
            for one, slope, mean, square in zip(self.parameters, slopes, self.means, self.squares):
                mean.mul_(0.9).add_(slope, alpha=0.1)
                square.mul_(0.99).addcmul_(slope, slope, value=0.01)
                spread = (square / (1 - 0.99**self.steps)).sqrt() + 1e-8
                one.sub_(0.1 * mean / (1 - 0.9**self.steps) / spread)


@program
def adam(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)
    optimizer = Adam(m, [w])

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = ((x @ w - y) ** 2).mean()
        optimizer.step(m.autograd.grad(loss, [w]))
        return loss.detach()

    losses = [step(x, y).item() for _ in range(5)]
    return losses, shown(w, optimizer.steps, *optimizer.means, *optimizer.squares)


@program
def steps_in_a_loop(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)

    @compiled
    def train(w: Any, x: Any, y: Any) -> Any:
        for _ in range(5):
            loss = ((x @ w - y) ** 2).mean()
            (slope,) = m.autograd.grad(loss, [w])
            with m.no_grad():
                w -= 0.1 * slope
        return loss.detach()

    return train(w, x, y).item(), train(w, x, y).item(), shown(w)


@program
def backward_and_gradients_set_to_none(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)
    unused = m.ones(2, requires_grad=True)
    parameters = [w, unused]

    @compiled
    def step(x: Any, y: Any) -> Any:
        for one in parameters:
            one.grad = None
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with m.no_grad():
            for one in parameters:
                if one.grad is not None:
                    one -= 0.1 * one.grad
        return loss

    losses = [step(x, y) for _ in range(5)]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        losses[-1].backward()
    return [one.item() for one in losses], shown(w), w.grad.tolist(), unused.grad


@program
def gradients_that_add_up(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)

    @compiled
    def add(w: Any, x: Any, y: Any) -> Any:
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        return loss.item()

    found = [add(w, x, y)]
    held = w.grad
    found += [add(w, x, y) for _ in range(2)]
    return found, held.tolist(), held is w.grad


@program
def gradients_set_to_zero(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)

    @compiled
    def step(w: Any, x: Any, y: Any) -> Any:
        if w.grad is not None:
            w.grad.zero_()
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        if w.grad.norm() > 1:
            w.grad.div_(w.grad.norm())
        with m.no_grad():
            w.sub_(w.grad)
        return w.grad * 1

    return [step(w, x, y).tolist() for _ in range(4)], shown(w), w.grad.tolist()


@program
def gradients_that_are_read_set_and_deleted(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True)

    @compiled
    def weighted(w: Any) -> Any:
        return (w * w.grad).sum() if w.grad is not None else 100 * w.sum()

    @compiled
    def put(w: Any, slope: Any) -> Any:
        w.grad = slope * 2
        return w.grad.sum()

    @compiled
    def delete(w: Any) -> None:
        del w.grad

    found = [weighted(w).item(), put(w, m.ones(2)).item(), weighted(w).item()]
    found += [put(w, 3 * m.ones(2)).item(), weighted(w).item(), w.grad.tolist()]
    delete(w)
    return found, w.grad, weighted(w).item()


@program
def a_loss_with_its_gradient(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True)

    @compiled
    def function(w: Any) -> Any:
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        return loss + w.grad.sum()

    result = function(w)
    result.backward()
    return result.item(), w.grad.tolist()


@program
def backward_of_a_gradient(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True)

    @compiled
    def function(w: Any) -> Any:
        (slope,) = m.autograd.grad((w**3).sum(), [w], create_graph=True)
        (slope * slope).sum().backward()
        return slope.detach()

    return function(w).tolist(), w.grad.tolist()


@program
def a_step_through_data(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)

    @compiled
    def step(w: Any, x: Any, y: Any) -> Any:
        loss = ((x @ w - y) ** 2).mean()
        (slope,) = m.autograd.grad(loss, [w])
        w.data = w.data - 0.1 * slope
        return loss.detach(), w.detach() * 1

    found = [step(w, x, y)[1].tolist() for _ in range(3)]
    return found, w.tolist(), w.requires_grad


@program
def a_function_under_no_grad(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True)

    @compiled
    @m.no_grad()
    def step(w: Any, slope: Any) -> None:
        w -= slope

    @compiled
    def plain_step(w: Any, slope: Any) -> None:
        w -= slope

    step(w, m.ones(2))
    with m.no_grad():
        plain_step(w, m.ones(2))
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        plain_step(w, m.ones(2))
    return shown(w)


# --- gradients of what is computed before and after ------------------------------------------------------


@program
def a_leaf_stays_one_leaf(m: Any, compiled: Compile) -> Any:
    x, y, w = data(m)

    @compiled
    def losses(w: Any, x: Any, y: Any) -> Any:
        before = (x @ w).sum()
        with m.no_grad():
            w -= 0.1
        return before + ((x @ w - y) ** 2).mean()

    found = []
    for _ in range(2):
        loss = losses(w, x, y)
        loss.backward()
        found += [loss.item(), *w.grad.tolist()]
    return found, shown(w)


@program
def second_derivatives(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True, dtype=m.float64)

    @compiled
    def cubes(w: Any) -> Any:
        before = (w * 2).sum()
        with m.no_grad():
            w.mul_(2.0)
        return before + (w**3).sum()

    (slope,) = m.autograd.grad(cubes(w), [w], create_graph=True)
    return slope.tolist(), m.autograd.grad(slope.sum(), [w])[0].tolist(), shown(w)


@program
def a_computed_value_keeps_its_history(m: Any, compiled: Compile) -> Any:
    x = m.tensor([1.0, 2.0], requires_grad=True)

    @compiled
    def function(x: Any) -> Any:
        y = x * 3
        with m.no_grad():
            y.mul_(5)
            y[0] = 7.0
        return (y * m.tensor([1.0, 10.0])).sum()

    result = function(x)
    result.backward()
    return result.item(), x.grad.tolist()


@program
def one_number_everywhere(m: Any, compiled: Compile) -> Any:
    x = m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    @compiled
    def function(x: Any) -> Any:
        y, z = x * 3, x * 2
        with m.no_grad():
            y.zero_()
            z[1:].fill_(2.0)
        return (1.5 * y).sum() + (z * y).sum() + z.sum()

    result = function(x)
    result.backward()
    return result.item(), x.grad.tolist()


@program
def views_of_what_is_written(m: Any, compiled: Compile) -> Any:
    x = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    @compiled
    def function(x: Any, z: Any) -> Any:
        shown = x[1:]
        y = z * 3
        column = y.T[0]
        with m.no_grad():
            x[:2] = x[1:] * 2
            shown += 1
            column.zero_()
        return (x * m.tensor([1.0, 10.0, 100.0])).sum() + shown.sum() + (y * y.detach()).sum()

    result = function(x, z)
    result.backward()
    return result.item(), x.grad.tolist(), z.grad.tolist(), shown(x)


@program
def what_is_copied_has_no_gradient(m: Any, compiled: Compile) -> Any:
    x = m.tensor([1.0, 2.0], requires_grad=True)

    @compiled
    def function(x: Any) -> Any:
        y = m.zeros(2)
        with m.no_grad():
            y.copy_(x)
        return (y * x).sum()

    function(x).backward()
    return x.grad.tolist()


@program
def detached_tensors_are_written(m: Any, compiled: Compile) -> Any:
    x = m.tensor([1.0, 2.0], requires_grad=True)

    @compiled
    def function(x: Any) -> Any:
        x.detach().mul_(3.0)
        y = x * 3
        y.detach()[0] = 100.0
        y.data[1:] *= 2
        return (y * m.tensor([1.0, 2.0])).sum(), y.detach()

    result, y = function(x)
    result.backward()
    return result.item(), y.tolist(), x.grad.tolist(), shown(x)


@program
def what_backward_needs_is_overwritten(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True, dtype=m.float64)
    b = m.tensor(3.0, requires_grad=True, dtype=m.float64)

    @compiled
    def function(w: Any, b: Any) -> Any:
        first, second = (w * w).sum() + b * b, w.sum()
        with m.no_grad():
            w.mul_(2.0)
        return first, second

    first, second = function(w, b)
    found = [m.autograd.grad(first, [b], retain_graph=True), m.autograd.grad(second, [w], retain_graph=True)]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        m.autograd.grad(first, [w])
    return [one.tolist() for (one,) in found]


@program
def what_a_gradient_inside_needs_is_overwritten(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True, dtype=m.float64)

    @compiled
    def function(w: Any) -> Any:
        loss = (w * w).sum()
        with m.no_grad():
            w.mul_(2.0)
        return m.autograd.grad(loss, [w])

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        function(w)


@program
def a_result_is_overwritten(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True, dtype=m.float64)

    @compiled
    def function(w: Any) -> Any:
        y = w.exp()
        y[0] = 1.0
        return y.sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        function(w).backward()


@program
def modes_in_modes(m: Any, compiled: Compile) -> Any:
    w = m.tensor([1.0, 2.0], requires_grad=True, dtype=m.float64)

    @compiled
    def function(w: Any) -> Any:
        m.set_grad_enabled(False)
        w *= 2
        m.set_grad_enabled(True)
        with m.no_grad():
            with m.enable_grad():
                result = (w * w).sum()
            w.fill_(w.sum())
        return result * 1

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        function(w).backward()
    return shown(w)


@program
def complex_tensors(m: Any, compiled: Compile) -> Any:
    w = m.zeros(2, dtype=m.complex128, requires_grad=True)

    @compiled
    def function(x: Any, z: Any) -> Any:
        with m.no_grad():
            w.add_(1j * z)
            w[1] = 2.0
            z *= 2
        return (x * w).abs().sum()

    z = m.ones(2, dtype=m.complex128)
    result = function(m.ones(2), z)
    result.backward()
    return result.item(), w.grad.tolist(), shown(w, z)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    run = PROGRAMS[name]
    expected = run(torch, lambda function: function)
    for compiled in (lambda function: function, pb.compile):
        assert repr(_rounded(run(pb, compiled))) == repr(_rounded(expected))


def _rounded(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    if isinstance(value, float | complex):
        return complex(round(value.real, 5), round(value.imag, 5))
    return value
