"""Derivatives that a compiled function takes, of derivatives too: as without compiling; loops stay loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.tracer.errors import GradientError

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

X, V = np.random.default_rng(0).normal(size=(2, 4))
W = np.random.default_rng(1).normal(size=(4, 4))


def steps(x: Any) -> Any:
    """Vectors in, vectors out, by a loop of Python's."""
    for _ in range(40):
        x = pb.tanh(W @ x)
    return x


def scanned(x: Any) -> Any:
    """The same by a loop of the graph, with a stack of results."""
    last, rows = pb.scan(lambda x, _: (pb.tanh(pb.tensor(W) @ x), x * x), x, None, length=5)
    return last + rows.sum(0)


def loss(x: Any) -> Any:
    return (steps(x) ** 2).sum()


class Doubled(pb.autograd.Function):
    """A square, which claims to have twice its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 4 * x * g


def hooked(x: Any) -> Any:
    slope = pb.grad(lambda a: (scanned(a) ** 2).sum())(x) * x
    slope.register_hook(lambda g: 3 * g)
    return (slope * slope).sum()


def recorded(x: Any) -> Any:
    x = x.detach().requires_grad_()
    slope = pb.grad(lambda a: (scanned(a) ** 2).sum())(x)
    (second,) = pb.autograd.grad((slope * slope).sum(), x, create_graph=True)
    return pb.autograd.grad((second * x).sum(), x)[0]


def gradient_steps(x: Any) -> Any:
    for _ in range(3):
        x = x - 0.1 * pb.grad(loss)(x)
    return loss(x)


def scan_of_gradients(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        return c - pb.grad(lambda b: (b * x).sin().sum())(c), None

    return pb.scan(step, x, None, length=3)[0].sum()


def leaf(x: Any) -> Any:
    return x.detach().clone().requires_grad_()


def training(x: Any) -> Any:
    w = leaf(x)
    for _ in range(3):
        loss(w).backward()
        with pb.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    return w.detach()


def two_leaves_of_one_value(x: Any) -> Any:
    a = leaf(x)
    b = a.detach().requires_grad_()
    of_a, of_b = pb.autograd.grad((a * b * b + 3 * a.detach()).sum(), (a, b))
    return of_a + 10 * of_b


def written_after_it_was_read(x: Any) -> Any:
    w = leaf(x)
    value = (3 * w).sum()
    with pb.no_grad():
        w += 1
    value = value + (w * w).sum()
    value.backward()
    return w.grad


def backward_twice(x: Any) -> Any:
    w = leaf(x)
    value = loss(w)
    value.backward(retain_graph=True)
    value.backward()
    return w.grad


def inside(x: Any) -> Any:
    w = leaf(x)
    h = pb.tanh(w)
    h.retain_grad()
    (slope,) = pb.autograd.grad((h * h).sum(), h, retain_graph=True, create_graph=True)
    (slope * h).sum().backward()
    return h.grad + w.grad


def unrecorded_argument(x: Any) -> Any:
    before = 2 * x
    w = x.detach().requires_grad_()
    return pb.autograd.grad((before * w).sum(), w)[0]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda x: pb.vjp(steps, x)[1](pb.tensor(V))[0],
    "vjp twice": lambda x: [pull := pb.vjp(steps, x)[1], pull(x)[0] + pull(2 * x)[0]][1],
    "vjp of a tuple": lambda x: pb.vjp(lambda a: (steps(a), a.sum()), x)[1]((x, x[0]))[0],
    "vjp of one result twice": lambda x: pb.vjp(lambda a: [b := a * a, (b, b)][1], x)[1]((x, 2 * x))[0],
    "jvp": lambda x: pb.jvp(steps, (x,), (pb.tensor(V),))[1],
    "jvp of several": lambda x: pb.jvp(lambda a, b: (a * b, b), (x, x), (x, 2 * x))[1][0],
    "jvp of a constant": lambda x: pb.jvp(lambda a: pb.tensor(V) + 0 * a.detach(), (x,), (x,))[1],
    "vjp of grad": lambda x: pb.vjp(pb.grad(loss), x)[1](pb.tensor(V))[0],
    "jvp of grad": lambda x: pb.jvp(pb.grad(loss), (x,), (pb.tensor(V),))[1],
    "grad of jvp": lambda x: pb.grad(lambda a: pb.jvp(steps, (a,), (a,))[1].sum())(x),
    "grad of vjp by its cotangent": lambda x: pb.grad(lambda g: (pb.vjp(steps, x)[1](g)[0] ** 2).sum())(x),
    "grad of jvp by its tangent": lambda x: pb.grad(lambda t: (pb.jvp(steps, (x,), (t,))[1] ** 2).sum())(x),
    "grad of jvp by a leaf": lambda x: pb.autograd.grad(
        (pb.jvp(lambda a: pb.sin(a) * (w := leaf(x)) + 0 * w, (x,), (y := leaf(x),))[1] ** 2).sum(), y
    )[0],
    "gradient penalty": lambda x: pb.grad(lambda a: loss(a) + (pb.grad(loss)(a) ** 2).sum())(x),
    "gradient steps": lambda x: pb.grad(gradient_steps)(x),
    "jacobian of jacobian": lambda x: pb.jacobian(pb.jacobian(scanned))(x),
    "third order": lambda x: pb.grad(lambda a: pb.vjp(pb.grad(loss), a)[1](a)[0].sum())(x),
    "over a function's own backward": lambda x: pb.grad(lambda a: Doubled.apply(pb.grad(loss)(a)).sum())(x),
    "a hook on a gradient": lambda x: pb.grad(hooked)(x),
    "second derivatives by autograd": recorded,
    "training": training,
    "two leaves of one value": two_leaves_of_one_value,
    "a leaf written after it was read": written_after_it_was_read,
    "backward twice": backward_twice,
    "by a value inside": inside,
    "what was there before the leaf": unrecorded_argument,
    "in a scan": lambda x: pb.scan(lambda c, _: (c - 0.1 * pb.grad(loss)(c), c), x, None, length=3)[0],
    "grad of a scan of gradients": lambda x: pb.grad(scan_of_gradients)(x),
}  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_in_a_trace_are_those_of_the_plain_function(name: str) -> None:
    program = PROGRAMS[name]
    expected = program(pb.tensor(X)).detach().numpy()
    found = pb.compile(program)(pb.tensor(X))
    assert not found.requires_grad
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-7, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize("name", ["vjp", "jvp", "vjp of grad", "jvp of grad", "gradient penalty"])
def test_loops_between_variables_and_results_are_loops_forward_and_back(name: str) -> None:
    compiled = pb.compile(PROGRAMS[name])
    compiled(pb.tensor(X))
    assert compiled.source().count("tanh(") < 10


@pytest.mark.parametrize("second", ["grad of grad", "jvp of grad", "autograd"])
def test_second_derivatives_of_a_loop_share_its_elimination(second: str) -> None:
    def solved(x: Any) -> Any:
        step = lambda x, _: (pb.linalg.solve(pb.tensor(W) + 9 * pb.diag(pb.tanh(x) + 2), x), None)  # noqa: E731
        return (pb.scan(step, x, None, length=5)[0] ** 2).sum()

    def by_autograd(x: Any) -> Any:
        y = x.detach().requires_grad_()
        (slope,) = pb.autograd.grad(solved(y), y, create_graph=True)
        return pb.autograd.grad((slope * x).sum(), y)[0]

    programs = {
        "grad of grad": lambda x: pb.grad(lambda a: (pb.grad(solved)(a) * x).sum())(x),
        "jvp of grad": lambda x: pb.jvp(pb.grad(solved), (x,), (x,))[1],
        "autograd": by_autograd,
    }
    compiled = pb.compile(programs[second])
    x = pb.tensor(X)
    np.testing.assert_allclose(compiled(x).numpy(), programs[second](x).detach().numpy(), rtol=1e-7)
    assert compiled.source().count("eliminate(") == 1


def test_errors_of_a_backward_in_a_trace_are_those_of_the_plain_function() -> None:
    def freed(x: pb.Tensor) -> None:
        value = loss(w := leaf(x))
        value.backward()
        pb.autograd.grad(value, w)

    def unused(x: pb.Tensor) -> None:
        pb.autograd.grad(loss(leaf(x)), leaf(x))

    def linear(x: pb.Tensor) -> None:
        (slope,) = pb.autograd.grad((2 * (w := leaf(x))).sum(), w, create_graph=True)
        slope.sum().backward()

    for program in (freed, unused, linear):
        messages = []
        for function in (program, pb.compile(program)):
            with pytest.raises(GradientError) as raised:
                function(pb.tensor(X))
            messages.append(str(raised.value).partition("\n")[0])
        assert messages[0] == messages[1]


def test_what_a_derivative_depends_on_requires_grad() -> None:
    def flags(x: pb.Tensor) -> pb.Tensor:
        y = x.detach().requires_grad_()
        of_relu = pb.grad(lambda a: pb.relu(a).sum())(y)
        of_product = pb.grad(lambda a: (a * y).sum())(x)
        of_square = pb.grad(lambda a: (a * a).sum())(y)
        pulled = pb.vjp(lambda a: 2 * a, x)[1](y)[0]
        return pb.tensor([float(one.requires_grad) for one in (of_relu, of_product, of_square, pulled)])

    x = pb.tensor(X)
    assert pb.compile(flags)(x).tolist() == flags(x).tolist() == [0, 1, 1, 1]


def test_a_value_asked_of_a_second_derivative_chooses_the_path() -> None:
    def program(x: pb.Tensor) -> pb.Tensor:
        second = pb.grad(lambda a: pb.grad(lambda b: (b**3).sum())(a).sum())(x)
        return x if second.sum() > 0 else -x

    compiled = pb.compile(program)
    for x in (pb.tensor(X), -pb.tensor(X)):
        assert compiled(x).tolist() == program(x).tolist()
