"""Hooks, kept gradients and modes do what PyTorch's do, call by call."""

from collections.abc import Callable
from typing import Any

import pytest
from as_pytorch import Log, leaf, run, slope_of

import pullback as pb

torch = pytest.importorskip("torch")


def hook_at_leaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    n = y.grad_fn.next_functions[0][0]
    n.register_hook(lambda gi, go: log("h", len(gi), *go))
    y.sum().backward()
    return slope_of(x)


def prehook_at_leaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    n = y.grad_fn.next_functions[0][0]
    n.register_prehook(lambda go: (log("p", *go), (go[0] * 10,))[1])
    y.sum().backward()
    return slope_of(x)


def acc_persisleaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    n = y.grad_fn.next_functions[0][0]
    n.register_prehook(lambda go: (go[0] * 10,))
    (x * 3).sum().backward()
    return slope_of(x)


def prehook_goes_with_the_graph(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.grad_fn.next_functions[0][0].register_prehook(lambda go: (go[0] * 10,))
    del y
    (x * 3).sum().backward()
    return slope_of(x)


def one_node_for_a_leaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    z = x * 3
    return y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]


def no_hooks_at_leaf_for_grad(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    n = y.grad_fn.next_functions[0][0]
    n.register_prehook(lambda go: (log("p", *go), (go[0] * 10,))[1])
    n.register_hook(lambda gi, go: log("h", len(gi)))
    return T.autograd.grad(y.sum(), x)[0]


def order_at_a_leaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    x.register_hook(lambda g: (log("t", g), g * 2)[1])
    y = x * 2
    n = y.grad_fn.next_functions[0][0]
    n.register_prehook(lambda go: (log("p", *go), (go[0] + 1,))[1])
    x.register_post_accumulate_grad_hook(lambda p: log("post", p.grad))
    n.register_hook(lambda gi, go: log("h", len(gi), *go))
    x.register_hook(lambda g: (log("t2", g), g * 2)[1])
    y.sum().backward()
    return slope_of(x)


def node_of_a_leaf_by_a_view(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    acc = x.view_as(x).grad_fn.next_functions[0][0]
    acc.register_hook(lambda gi, go: log("h", *[g for g in gi if g is not None], *go))
    (x * x).sum().backward()
    return slope_of(x)


def retain_then_write(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return slope_of(y), slope_of(x), y.retains_grad


def retain_then_write_an_element(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.retain_grad()
    y[0] = 5.0
    (y * y).sum().backward()
    return slope_of(y), slope_of(x)


def write_then_retain(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.mul_(3)
    y.retain_grad()
    (y * y).sum().backward()
    return slope_of(y), slope_of(x)


def hooks_around_a_write(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.register_hook(lambda g: log("before", g))
    y.mul_(3)
    y.register_hook(lambda g: log("after", g))
    (y * y).sum().backward()
    return slope_of(x)


def retain_of_a_view_then_write_the_base(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    v = y[0]
    v.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return slope_of(v), slope_of(x)


def retain_then_write_a_view(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.retain_grad()
    v = y[:1]
    v.mul_(3)
    (y * y).sum().backward()
    return slope_of(y), slope_of(x)


def prehook_inpuleaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (log("p", *go), (go[0] * 10,))[1])
    z = (y * y).sum()
    return T.autograd.grad(z, y)[0]


def thook_inpuleaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.register_hook(lambda g: (log("t", g), g * 10)[1])
    z = (y * y).sum()
    return T.autograd.grad(z, y)[0]


def posthook_inpuleaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: log("h"))
    z = (y * y).sum()
    return T.autograd.grad(z, y)[0]


def prehook_of_an_input_and_beyond(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (log("p", *go), (go[0] * 10,))[1])
    z = (y * y).sum()
    return [one.tolist() for one in T.autograd.grad(z, (y, x))]


def hook_of_an_input_and_beyond(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.register_hook(lambda g: (log("t", g), g * 10)[1])
    z = (y * y).sum()
    return [one.tolist() for one in T.autograd.grad(z, (y, x))]


def retain_then_hook(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * y).sum().backward()
    return slope_of(y), slope_of(x)


def hooks_around_retain(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda go: (go[0] + 1,))
    (y * y).sum().backward()
    return slope_of(y), slope_of(x)


def prehook_then_hook(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (log("p", *go), (go[0] + 1,))[1])
    y.register_hook(lambda g: (log("t", g), g * 10)[1])
    y.grad_fn.register_prehook(lambda go: (log("p2", *go), (go[0] + 1,))[1])
    (y * y).sum().backward()
    return slope_of(y), slope_of(x)


def retain_grad_inpuleaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.retain_grad()
    z = (y * y).sum()
    g = T.autograd.grad(z, y)[0]
    return slope_of(y), g.tolist()


def backward_into_a_result(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: (log("t", g), g * 3)[1])
    (y * y).sum().backward(inputs=[y])
    return slope_of(y), slope_of(x)


def backward_into_a_leaf(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    x.register_hook(lambda g: (log("t", g), g * 3)[1])
    x.register_post_accumulate_grad_hook(lambda p: log("post"))
    (x * x).sum().backward(inputs=[x])
    return slope_of(x)


def generator_closed_early(T: Any, log: Log) -> Any:
    @T.no_grad()
    def g():
        yield T.is_grad_enabled()
        yield 2

    i = g()
    a = next(i)
    i.close()
    return a, T.is_grad_enabled()


def generator_with_a_block_closed(T: Any, log: Log) -> Any:
    def g():
        with T.no_grad():
            yield 1
            yield 2

    i = g()
    next(i)
    a = T.is_grad_enabled()
    i.close()
    b = T.is_grad_enabled()
    T.set_grad_enabled(True)
    return a, b


def mode_in_finally(T: Any, log: Log) -> Any:
    @T.no_grad()
    def g():
        try:
            yield 1
        finally:
            log("fin", T.is_grad_enabled())

    i = g()
    next(i)
    i.close()
    return T.is_grad_enabled()


def mode_in_except(T: Any, log: Log) -> Any:
    @T.no_grad()
    def g():
        try:
            yield 1
        except ValueError:
            log("ex", T.is_grad_enabled())
            yield 5

    i = g()
    next(i)
    r = i.throw(ValueError())
    return r, T.is_grad_enabled()


def interleaved_generators(T: Any, log: Log) -> Any:
    def g():
        with T.no_grad():
            yield 1

    def h():
        with T.enable_grad():
            yield 1

    a = g()
    b = h()
    next(a)
    log(T.is_grad_enabled())
    next(b)
    log(T.is_grad_enabled())
    next(a, None)
    log(T.is_grad_enabled())
    next(b, None)
    log(T.is_grad_enabled())
    T.set_grad_enabled(True)


def saved_hooks(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    with T.autograd.graph.saved_tensors_hooks(
        lambda v: (log("pack", v), v * 2)[1], lambda v: (log("unpack", v), v)[1]
    ):
        y = x * x
    y.sum().backward()
    return slope_of(x)


def hook_that_is_differentiated(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * x
    y.register_hook(lambda g: g * 2)
    (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
    return T.autograd.grad(g.sum(), x)[0]


def hook_after_a_write_that_records(T: Any, log: Log) -> Any:
    b = leaf(T, 1, 2, requires_grad=False)
    w = leaf(T, 3, 4)
    b.mul_(w)
    b.register_hook(lambda g: log("b", g))
    b.retain_grad()
    (b * b).sum().backward()
    return slope_of(b), slope_of(w)


def hook_that_writes(T: Any, log: Log) -> Any:
    x = leaf(T, 1, 2)
    y = x * 2

    def h(g):
        g.mul_(2)

    y.register_hook(h)
    (y * y).sum().backward()
    return slope_of(x)


AGREEING = [
    hook_at_leaf,
    prehook_at_leaf,
    acc_persisleaf,
    prehook_goes_with_the_graph,
    one_node_for_a_leaf,
    no_hooks_at_leaf_for_grad,
    order_at_a_leaf,
    node_of_a_leaf_by_a_view,
    retain_then_write,
    retain_then_write_an_element,
    write_then_retain,
    hooks_around_a_write,
    retain_of_a_view_then_write_the_base,
    retain_then_write_a_view,
    prehook_inpuleaf,
    thook_inpuleaf,
    posthook_inpuleaf,
    prehook_of_an_input_and_beyond,
    hook_of_an_input_and_beyond,
    retain_then_hook,
    hooks_around_retain,
    prehook_then_hook,
    retain_grad_inpuleaf,
    backward_into_a_result,
    backward_into_a_leaf,
    generator_closed_early,
    generator_with_a_block_closed,
    mode_in_finally,
    mode_in_except,
    interleaved_generators,
    saved_hooks,
    hook_that_is_differentiated,
    hook_after_a_write_that_records,
    hook_that_writes,
]


@pytest.mark.filterwarnings("ignore:.*non-leaf|.*not a leaf")
@pytest.mark.parametrize("program", AGREEING, ids=lambda one: one.__name__)
def test_as_pytorch(program: Callable[..., Any]) -> None:
    assert run(program, pb) == run(program, torch)


# --- in compiled functions --------------------------------------------------------------------------------


def hooked(change: Any, at_node: bool = False) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y = x**3
        (y.grad_fn if at_node else y).register_hook(lambda *given: change(x, *given))
        return y**2, 2 * x

    return function


HOOKS: dict[str, Callable[[Any], Any]] = {
    "twice": hooked(lambda x, g: g * 2),
    "by the argument": hooked(lambda x, g: g * x),
    "squared": hooked(lambda x, g: g * g),
    "detached": hooked(lambda x, g: g.detach() * 2),
    "of a node": hooked(lambda x, inputs, outputs: (inputs[0] * 5,), at_node=True),
}


def derivatives(T: Any, function: Any, order: int) -> list[Any]:
    x = T.tensor([1.0, 2.0, -1.0], requires_grad=True, dtype=T.float64)
    value, other = function(x)
    value, found = value + other, []
    for _ in range(order):
        (value,) = T.autograd.grad(value.sum(), [x], create_graph=True)
        found.append(value.tolist())
    return found


@pytest.mark.parametrize("name", HOOKS)
def test_gradients_through_hooks_are_differentiated(name: str) -> None:
    function = HOOKS[name]
    assert derivatives(pb, pb.compile(function), 3) == derivatives(torch, function, 3)


def test_a_gradient_inside_that_passes_a_hook_is_differentiated() -> None:
    def program(T: Any) -> Any:
        def function(x: Any) -> Any:
            y = x**3
            y.register_hook(lambda g: g * 2)
            return T.autograd.grad((y**2).sum(), [x], create_graph=True)[0], x

        return function

    assert derivatives(pb, pb.compile(program(pb)), 2) == derivatives(torch, program(torch), 2)


def test_a_function_that_counts_is_not_run_for_its_second_derivative() -> None:
    counts = {"calls": 0}

    @pb.compile
    def function(x: Any) -> Any:
        counts["calls"] += 1
        y = x**3
        y.register_hook(lambda g: g * 2)
        return y

    x = pb.ones(2, requires_grad=True)
    for _ in range(2):
        (slope,) = pb.autograd.grad(function(x).sum(), [x], create_graph=True)
        pb.autograd.grad(slope.sum(), [x])
    assert counts == {"calls": 2}


def test_hooks_that_stay_or_store_are_refused() -> None:
    x, seen = pb.ones(2, requires_grad=True), []

    @pb.compile
    def on_its_argument(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        return x.sum()

    @pb.compile
    def on_what_it_reaches() -> Any:
        x.register_hook(lambda g: g * 2)
        return x.sum()

    @pb.compile
    def stores(x: Any) -> Any:
        y = x * 2
        y.register_hook(seen.append)
        return y.sum()

    @pb.compile
    def retains(x: Any) -> Any:
        y = x * 2
        y.retain_grad()
        return y.sum(), y

    @pb.compile
    def removes(x: Any) -> Any:
        x.register_hook(lambda g: g * 2).remove()
        return x.sum()

    with pytest.raises(pb.errors.MutationError, match="registers a hook on its argument 'x'"):
        on_its_argument(x)
    with pytest.raises(pb.errors.MutationError, match="registers a hook on x, which would stay"):
        on_what_it_reaches()
    with pytest.raises(pb.errors.MutationError, match="changes seen while it is traced"):
        stores(x).backward()
    with pytest.raises(pb.errors.OutputError, match=r"calls retain_grad\(\) on a value that it returns"):
        retains(x)
    removes(x).backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_what_draws_behind_a_hook_has_no_second_derivative() -> None:
    @pb.compile
    def function(x: Any) -> Any:
        y = x**3 * pb.randn(2)
        y.register_hook(lambda g: g * 2)
        return y.sum()

    x = pb.ones(2, requires_grad=True)
    with pytest.raises(pb.errors.GradientError, match="draws random numbers, and has hooks"):
        pb.autograd.grad(function(x), [x], create_graph=True)
