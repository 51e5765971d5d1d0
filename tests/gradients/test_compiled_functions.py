"""PyTorch's Functions inside compiled functions: values and gradients of several orders are PyTorch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch")
Compile = Callable[[Any], Any]


def saving(m: Any) -> Any:
    """Saves its output."""

    class Exponential(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    return lambda x: Exponential.apply(0.3 * x) ** 2


def dirty(m: Any) -> Any:
    """Writes into its input, and saves that."""

    class Exponential(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    def function(x: Any) -> Any:
        y = x * 2
        z = Exponential.apply(y)
        return z**2 + y

    return function


def dirty_views(m: Any) -> Any:
    class Tripled(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(3)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    def function(x: Any) -> Any:
        y = x * x
        Tripled.apply(y[1:])
        return y**2

    return function


def asking_what_is_needed(m: Any) -> Any:
    class Product(m.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            needs = ctx.needs_input_grad
            return g * b if needs[0] else None, 100 * g * a if needs[1] else None

    return lambda x: Product.apply(x, x.detach()) + Product.apply(x, x) + Product.apply(x.detach(), x)


def writing_inside(m: Any) -> Any:
    """Writes into what it makes itself, forward and backward."""

    class Mixed(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y, kept = x.clone(), m.zeros(3, dtype=m.float64)
            y[0] = 5.0
            y.mul_(2)
            kept[1:] = x[1:]
            ctx.save_for_backward(kept)
            return y + x

        @staticmethod
        def backward(ctx, g):
            (kept,) = ctx.saved_tensors
            found = g.clone()
            found[0] = 7.0
            found *= kept + 1
            return found

    return lambda x: Mixed.apply(x) ** 2


def with_setup(m: Any) -> Any:
    class Square(m.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return lambda x: m.func.vmap(lambda one: Square.apply(one) * one)(x) + Square.apply(x)


def differentiable_once(m: Any) -> Any:
    class Cube(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @m.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g

    return Cube.apply


def point(m: Any) -> Any:
    return m.tensor([1.0, 2.0, -1.0], requires_grad=True, dtype=m.float64)


MADE = [saving, dirty, dirty_views, asking_what_is_needed, writing_inside, with_setup]


@pytest.mark.parametrize("make", MADE)
def test_derivatives_are_pytorchs(make: Callable[[Any], Any]) -> None:
    def derivatives(m: Any, compiled: Compile) -> list[Any]:
        x, function = point(m), compiled(make(m))
        value = function(x)
        found = [value.tolist()]
        for _ in range(2):
            (value,) = m.autograd.grad(value.sum(), [x], create_graph=True)
            found.append(value.tolist())
        return found

    np.testing.assert_allclose(derivatives(pb, pb.compile), derivatives(torch, lambda one: one), rtol=1e-13)


def test_results_that_nobody_asks_for_have_no_cotangent() -> None:
    def slopes(m: Any, compiled: Compile) -> list[Any]:
        class Pair(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                if a is None:
                    return None if b is None else b * 30
                return a * 20 if b is None else a * 2 + b * 3

        x = point(m)
        a, b = compiled(Pair.apply)(x)
        asked = [a.sum(), b.sum(), a.sum() + b.sum()]
        found = [m.autograd.grad(one, [x], retain_graph=True)[0].tolist() for one in asked]
        (slope,) = m.autograd.grad((a**2).sum(), [x], create_graph=True)
        return [*found, slope.tolist(), m.autograd.grad(slope.sum(), [x])[0].tolist()]

    assert slopes(pb, pb.compile) == slopes(torch, lambda one: one)


def test_hooks_of_results_that_nobody_asks_for_do_not_run() -> None:
    def slopes(m: Any, compiled: Compile) -> list[Any]:
        def function(x: Any) -> Any:
            y, z = x**3, x**2
            y.register_hook(lambda g: g + 1)
            return y, z

        x = point(m)
        found = [m.autograd.grad(one.sum(), [x])[0].tolist() for one in compiled(function)(x)[1:]]
        return [*found, m.autograd.grad(compiled(function)(x)[0].sum(), [x])[0].tolist()]

    assert slopes(pb, pb.compile) == slopes(torch, lambda one: one)


def test_what_is_differentiable_once() -> None:
    def inside(m: Any) -> Any:
        def function(x: Any) -> Any:
            return m.autograd.grad(differentiable_once(m)(x).sum(), [x], create_graph=True)[0] + x

        return function

    for make in (differentiable_once, inside):
        values = []
        for m, compiled in ((torch, lambda one: one), (pb, pb.compile)):
            x = point(m)
            value = compiled(make(m))(x)
            values.append((value.tolist(), m.autograd.grad(value.sum(), [x])[0].tolist()))
        assert values[0] == values[1]
    x, weight = point(pb), pb.ones(3, dtype=pb.float64, requires_grad=True)
    value = pb.compile(differentiable_once(pb))(x)
    (slope,) = pb.autograd.grad(value, [x], grad_outputs=[weight], create_graph=True)
    assert slope.tolist() == [3.0, 12.0, 3.0]
    with pytest.raises(pb.errors.GradientError, match="differentiate twice"):
        pb.autograd.grad(slope.sum(), [weight])


def test_an_argument_that_a_function_writes() -> None:
    def written(m: Any, compiled: Compile) -> list[Any]:
        class Tripled(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(3)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return g * 3

        x, w = m.ones(3, dtype=m.float64), point(m)
        result = compiled(lambda x, w: Tripled.apply(x) * w)(x, w)
        result.sum().backward()
        return [x.tolist(), w.grad.tolist(), x._version]

    assert written(pb, pb.compile) == written(torch, lambda one: one)
