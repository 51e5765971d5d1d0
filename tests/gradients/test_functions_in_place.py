"""Functions that write into their inputs do what PyTorch's do, or raise where these do."""

from collections.abc import Callable
from typing import Any

import pytest
from as_pytorch import Log, leaf, run, slope_of

import pullback as pb

torch = pytest.importorskip("torch")


def tripling(T: Any, returns_clone: bool = False, through_data: bool = False) -> Any:
    """A Function that writes into its input."""

    class Tripled(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            (x.data if through_data else x).mul_(3)
            ctx.mark_dirty(x)
            return x.clone() if returns_clone else x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    return Tripled


def dirty_view(T: Any, log: Log) -> Any:
    D = tripling(T)
    x = leaf(T, 1, 2)
    y = x * 2
    v = y[:1]
    r = D.apply(v)
    log("v", v)
    log("y", y)
    (y * y).sum().backward()
    return slope_of(x), r is v


def dirty_base(T: Any, log: Log) -> Any:
    D = tripling(T)
    x = leaf(T, 1, 2)
    y = x * 2
    v = y[:1]
    r = D.apply(y)
    (v * v).sum().backward()
    return slope_of(x), r is y, v.tolist()


def dirty_view_used(T: Any, log: Log) -> Any:
    D = tripling(T)
    x = leaf(T, 1, 2)
    y = x * 2
    v = y[:1]
    r = D.apply(v)
    (v * v).sum().backward()
    return slope_of(x), r is v, v._version


def dirty_view_without_grad(T: Any, log: Log) -> Any:
    class D(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            x.mul_(w)
            ctx.mark_dirty(x)
            ctx.w = w
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3, g

    w = leaf(T, 2)
    b = leaf(T, 1, 2, requires_grad=False)
    v = b[:1]
    D.apply(v, w)
    (b * b).sum().backward()
    return slope_of(w), b.tolist(), b.requires_grad


def dirty_save(T: Any, log: Log) -> Any:
    class D(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(T, 0, 0)
    y = x * 2
    D.apply(y)
    y.sum().backward()
    return slope_of(x), y._version


def dirty_without_recording(T: Any, log: Log) -> Any:
    D = tripling(T)
    y = leaf(T, 1, 2, requires_grad=False)
    r = D.apply(y)
    x = leaf(T, 1, 2)
    y2 = x * 1
    with T.no_grad():
        D.apply(y2)
    y2.sum().backward()
    return y._version, r is y, y2._version, slope_of(x)


def dirty_retain(T: Any, log: Log) -> Any:
    D = tripling(T)
    x = leaf(T, 1, 2)
    y = x * 2
    y.retain_grad()
    D.apply(y)
    (y * y).sum().backward()
    return slope_of(x), slope_of(y)


def dirty_view_of_a_leaf(T: Any, log: Log) -> Any:
    D = tripling(T)
    x = leaf(T, 1, 2)
    v = x[:1]
    D.apply(v)
    (v * v).sum().backward()
    return slope_of(x)


def dirty_leaf(T: Any, log: Log) -> Any:
    D = tripling(T)
    x = leaf(T, 1, 2)
    r = D.apply(x)
    r.sum().backward()
    return slope_of(x)


def dirty_not_returned(T: Any, log: Log) -> Any:
    D = tripling(T, returns_clone=True)
    x = leaf(T, 1, 2)
    y = x * 2
    r = D.apply(y)
    r.sum().backward()
    return slope_of(x)


def dirty_not_returned_nor_recorded(T: Any, log: Log) -> Any:
    D = tripling(T, returns_clone=True)
    y = leaf(T, 1, 2, requires_grad=False)
    D.apply(y)
    return y._version


def dirty_view_among_results(T: Any, log: Log) -> Any:
    class D(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, z):
            x.mul_(3)
            ctx.mark_dirty(x)
            return x, z * 2

        @staticmethod
        def backward(ctx, g, h):
            return g * 3, h * 2

    x = leaf(T, 1, 2)
    y = x * 2
    v = y[:1]
    a, b = D.apply(v, x)
    (y.sum() + b.sum()).backward()
    return slope_of(x), a is v


def dirty_overwrites_saved(T: Any, log: Log) -> Any:
    D = tripling(T)
    x = leaf(T, 1, 2)
    y = x * 2
    z = y * y
    D.apply(y)
    z.sum().backward()
    return slope_of(x)


def dirty_by_data_overwrites_saved(T: Any, log: Log) -> Any:
    D = tripling(T, through_data=True)
    x = leaf(T, 1, 2)
    y = x * 2
    z = y * y
    D.apply(y)
    z.sum().backward()
    return slope_of(x)


AGREEING = [
    dirty_view,
    dirty_base,
    dirty_view_used,
    dirty_view_without_grad,
    dirty_save,
    dirty_without_recording,
    dirty_retain,
]
RAISING = [
    dirty_view_of_a_leaf,
    dirty_leaf,
    dirty_not_returned,
    dirty_not_returned_nor_recorded,
    dirty_view_among_results,
    dirty_overwrites_saved,
    dirty_by_data_overwrites_saved,
]


@pytest.mark.filterwarnings("ignore:.*non-leaf|.*not a leaf")
@pytest.mark.parametrize("program", AGREEING, ids=lambda one: one.__name__)
def test_as_pytorch(program: Callable[..., Any]) -> None:
    assert run(program, pb) == run(program, torch)


@pytest.mark.parametrize("program", RAISING, ids=lambda one: one.__name__)
def test_an_error_as_in_pytorch(program: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError):
        run(program, torch)
    with pytest.raises(pb.errors.GradientError):
        run(program, pb)


def test_what_a_function_returns_of_its_input_has_memory_of_its_own() -> None:
    """PyTorch refuses what follows; a gradient that took no notice of it would be wrong."""

    class First(pb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

        @staticmethod
        def backward(ctx, g):
            return pb.cat([g, g * 0])

    x = leaf(pb, 1, 2)
    y = x * 2
    first = First.apply(y)
    y.mul_(5)
    assert first.tolist() == [2.0]
    (first * y[:1]).sum().backward()
    assert x.grad.tolist() == [40.0, 0.0]
