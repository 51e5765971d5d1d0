"""Gradients: values and orders, PyTorch's messages, in-place writes and views, custom functions, checks."""

import gc
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pullback as pb
from pullback.autograd import Function, Variable, gradcheck, gradgradcheck, once_differentiable
from pullback.tracer.errors import GradientError, PullbackError


def leaf(*values: float) -> pb.Tensor:
    return pb.tensor(list(values), dtype=pb.float64, requires_grad=True)


def assert_values(tensor: pb.Tensor, expected: object) -> None:
    np.testing.assert_allclose(np.asarray(tensor.tolist()), np.asarray(expected), rtol=1e-12)


# --- backward and grad ----------------------------------------------------------------------------------


def test_gradients_accumulate_in_the_same_tensor() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert_values(x.grad, [4.0, 8.0])


def test_operands_of_a_sum_do_not_share_their_gradient() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (a + b).sum().backward()
    a.grad.zero_()
    assert_values(b.grad, [1.0, 1.0])


def test_a_tensor_used_many_times_gets_every_contribution() -> None:
    x = leaf(2.0)
    y = x * x
    (y * x + y + x).sum().backward()
    assert_values(x.grad, [3 * 4 + 2 * 2 + 1])


def test_broadcast_operands_get_gradients_of_their_own_shape() -> None:
    a = pb.ones(3, 1, requires_grad=True)
    b = pb.ones(4, requires_grad=True)
    (a * b * 2).sum().backward()
    assert a.grad.shape == (3, 1) and b.grad.shape == (4,)
    assert_values(a.grad, [[8.0]] * 3)
    assert_values(b.grad, [6.0] * 4)


def test_create_graph_gives_every_order() -> None:
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    value, found = x**4, []
    for _ in range(5):
        (value,) = pb.autograd.grad(value, x, create_graph=True) if value.requires_grad else (pb.zeros(()),)
        found.append(value.item())
    assert found == [32.0, 48.0, 48.0, 24.0, 0.0]


def test_grad_leaves_the_leaves_alone() -> None:
    x = leaf(3.0)
    (slope,) = pb.autograd.grad((x * x).sum(), x)
    assert x.grad is None and not slope.requires_grad
    assert_values(slope, [6.0])


def test_unused_inputs() -> None:
    x, unused = leaf(3.0), leaf(1.0, 2.0)
    y = (x * x).sum()
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used in the graph"):
        pb.autograd.grad(y, (x, unused), retain_graph=True)
    assert pb.autograd.grad(y, (x, unused), allow_unused=True, retain_graph=True)[1] is None
    assert_values(pb.autograd.grad(y, (x, unused), materialize_grads=True)[1], [0.0, 0.0])


def test_backward_of_chosen_inputs_only() -> None:
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    y.retain_grad()
    (y * y).sum().backward(inputs=[x])
    assert w.grad is None
    assert_values(x.grad, [2 * 6 * 3])


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: (leaf(1.0, 2.0) * 2).backward(), r"only for scalar outputs; this one has shape \(2,\)"),
        (
            lambda: pb.ones(1).backward(),
            "element 0 of tensors does not require grad and does not have a grad_fn. Nothing that it is",
        ),
        (lambda: leaf(1.0, 2.0).backward(pb.ones(3)), r"grad_output\[0\] has a shape of torch.Size\(\[3\]\)"),
        (lambda: leaf(1.0).backward(pb.ones(1) * 1j), "are required to have the same dtype"),
        (lambda: pb.tensor([1], requires_grad=True), "Only Tensors of floating point and complex dtype"),
        (lambda: (leaf(1.0) * 2).requires_grad_(False), "only change requires_grad flags of leaf variables"),
        (lambda: leaf(1.0).numpy(), r"Can't call numpy\(\) on Tensor that requires grad"),
        (lambda: np.asarray(leaf(1.0)), r"tensor.detach\(\).numpy\(\)"),
        (lambda: leaf(1.0).add_(1), "a leaf Variable that requires grad is being used in an in-place"),
        (lambda: leaf(1.0, 2.0)[1:].add_(1), "a view of a leaf Variable that requires grad"),
        (lambda: pb.ones(1).register_hook(print), "cannot register a hook on a tensor that doesn't"),
        (lambda: pb.ones(1).retain_grad(), "can't retain_grad on Tensor that has requires_grad=False"),
    ],
)
def test_messages_are_pytorchs(program, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RuntimeError, match=message) as error:
        program()
    assert isinstance(error.value, PullbackError)


def test_a_second_backward_needs_the_graph() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_values(x.grad, [8.0])
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_what_saves_nothing_can_be_run_twice() -> None:
    x = leaf(2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert_values(x.grad, [2.0])


def test_integer_results_require_no_grad() -> None:
    x = leaf(1.0, 2.0)
    assert not (x > 1).requires_grad
    assert not x.argmax().requires_grad
    assert not x.long().requires_grad


# --- overwritten values -----------------------------------------------------------------------------------


def test_an_overwritten_operand_raises_and_names_the_line() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y.add_(1)  # the culprit
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
        z.sum().backward()
    text = str(error.value)
    assert (
        "[torch.DoubleTensor [2]], which is output 0 of MulBackward0, is at version 1; expected version 0"
        in text
    )
    assert "y.add_(1)  # the culprit" in text and "test_autograd.py:" in text


def test_an_overwritten_result_raises() -> None:
    y = leaf(1.0).exp()
    y += 1
    with pytest.raises(GradientError, match=r"output 0 of ExpBackward0.*y \+= 1"):
        y.backward()


def test_writes_through_a_view_or_detached_are_noticed() -> None:
    for write in (lambda y: y[0:1].zero_(), lambda y: y.detach().zero_(), lambda y: y.view(-1).zero_()):
        y = leaf(1.0, 2.0) * 1
        z = y.exp()
        write(z)
        with pytest.raises(GradientError, match="modified by an inplace operation"):
            z.sum().backward()


def test_what_a_rule_does_not_need_may_be_overwritten() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    y += 1
    y.sum().backward()
    assert_values(x.grad, [3.0, 3.0])


# --- in-place and views -------------------------------------------------------------------------------------


def test_assignment_into_a_computed_tensor() -> None:
    x, v = leaf(1.0, 2.0, 3.0), leaf(10.0)
    y = x * 2
    y[1] = v[0] * 5
    assert y.grad_fn.name() == "CopySlices"
    (y * y).sum().backward()
    assert_values(x.grad, [8.0, 0.0, 24.0])
    assert_values(v.grad, [2 * 50 * 5])


def test_augmented_assignment_to_a_slice() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y[1:3] *= 3.0
    (y * y).sum().backward()
    assert_values(x.grad, [8.0, 2 * 36 * 2.0, 2 * 36 * 3.0])


def test_assignment_by_index_array_and_mask() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    y[pb.tensor([0, 2])] = leaf(5.0, 6.0)
    y[y == 4] = 0.0
    (y * y).sum().backward()
    assert_values(x.grad, [0.0, 4.0, 0.0, 0.0])


def test_a_write_into_a_view_changes_the_history_of_its_base() -> None:
    x = pb.ones(2, 3, dtype=pb.float64, requires_grad=True)
    y = x * 2
    column = y.t()[1]
    column.mul_(5)
    assert_values(y, [[2.0, 10.0, 2.0]] * 2)
    (y * y).sum().backward()
    assert_values(x.grad, [[8.0, 200.0, 8.0]] * 2)


def test_a_write_into_the_base_changes_the_history_of_its_views() -> None:
    x = pb.ones(2, 2, dtype=pb.float64, requires_grad=True)
    y = x * 2
    flat = y.view(-1)
    y.mul_(x)
    assert flat.grad_fn.name() == "AsStridedBackward0"
    (flat * pb.arange(4, dtype=pb.float64)).sum().backward()
    assert_values(x.grad, [[0.0, 4.0], [8.0, 12.0]])


def test_a_constant_tensor_starts_requiring_grad_when_written_to() -> None:
    w = leaf(3.0)
    y = pb.zeros(3, dtype=pb.float64)
    y[1] = w[0]
    assert y.requires_grad and not y.is_leaf
    (y * y).sum().backward()
    assert_values(w.grad, [6.0])


def test_overwriting_cuts_the_gradient() -> None:
    for write in (lambda y: y.zero_(), lambda y: y.fill_(7), lambda y: y.copy_(pb.ones(2))):
        x = leaf(1.0, 2.0)
        y = x * 2
        write(y)
        assert y.requires_grad
        y.sum().backward()
        assert_values(x.grad, [0.0, 0.0])


def test_under_no_grad_leaves_may_be_written_to() -> None:
    x = leaf(1.0, 2.0)
    with pb.no_grad():
        x -= 0.5
        x[0] = 9.0
    assert x.is_leaf and x.requires_grad
    assert_values(x, [9.0, 1.5])


def test_a_multiplication_by_itself_in_place() -> None:
    x = leaf(3.0)
    y = x * 1
    y.mul_(y)
    y.backward()
    assert_values(x.grad, [6.0])


# --- hooks ------------------------------------------------------------------------------------------------


def test_hooks_of_leaves_and_others() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    handle = x.register_hook(lambda gradient: gradient * 2)
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y.retain_grad()
    (y * y).sum().backward()
    assert seen == [[6.0, 12.0]]
    assert_values(y.grad, [6.0, 12.0])
    assert_values(x.grad, [36.0, 72.0])
    handle.remove()
    x.grad = None
    x.sum().backward()
    assert_values(x.grad, [1.0, 1.0])


def test_hooks_of_nodes() -> None:
    x = leaf(1.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + outputs[0], None))
    y.backward()
    assert_values(x.grad, [30.0 + 10.0])


def test_a_hook_after_accumulation() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad.item()))
    (x * 2).backward()
    assert seen == [2.0]


def test_next_functions() -> None:
    x = leaf(1.0)
    node = (x * 3 + 2).grad_fn
    assert node.name() == "AddBackward0" and repr(node).startswith("<AddBackward0 object at 0x")
    (multiplication, number), none = node.next_functions
    assert (multiplication.name(), number, none) == ("MulBackward0", 0, (None, 0))
    accumulate = multiplication.next_functions[0][0]
    assert accumulate.name() == "AccumulateGrad" and accumulate.variable is x
    node.metadata["note"] = 1
    assert node.metadata == {"note": 1}


# --- functions with a backward of their own -----------------------------------------------------------------


class Cube(Function):
    @staticmethod
    def forward(ctx, x, factor):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x)
        ctx.factor = factor
        return factor * x**3

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        assert ctx.needs_input_grad == (True, False)
        (x,) = ctx.saved_tensors
        return 3 * ctx.factor * x**2 * g, None


class Exponential(Function):
    """Saves its own result."""

    @staticmethod
    def forward(x):  # type: ignore[no-untyped-def]
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        (y,) = ctx.saved_tensors
        return g * y


def test_a_function_is_differentiable_again() -> None:
    x = leaf(2.0)
    y = Cube.apply(x, 2.0)
    assert y.grad_fn.name() == "CubeBackward"
    (slope,) = pb.autograd.grad(y, x, create_graph=True)
    (curvature,) = pb.autograd.grad(slope, x)
    assert_values(slope, [24.0])
    assert_values(curvature, [24.0])


def test_a_saved_result_has_its_history() -> None:
    x = leaf(0.5)
    assert gradcheck(Exponential.apply, x) and gradgradcheck(Exponential.apply, x)


def test_a_function_with_two_outputs() -> None:
    class Split(Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            largest = x.argmax()
            ctx.mark_non_differentiable(largest)
            return x * 2, x * 3, largest

        @staticmethod
        def backward(ctx, g, h, nothing):  # type: ignore[no-untyped-def]
            return 2 * g + 3 * h

    x = leaf(1.0, 4.0)
    _, triple, largest = Split.apply(x)
    assert largest.item() == 1 and not largest.requires_grad
    triple.sum().backward()
    assert_values(x.grad, [3.0, 3.0])


def test_unmaterialised_cotangents_are_none() -> None:
    seen = []

    class Pair(Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):  # type: ignore[no-untyped-def]
            seen.append((g, h))
            return g

    Pair.apply(leaf(1.0))[0].backward()
    assert seen[0][0].item() == 1.0 and seen[0][1] is None


def test_once_differentiable() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return 2 * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return 2 * g

    x = leaf(1.0)
    Twice.apply(x).backward()
    assert_values(x.grad, [2.0])
    (slope,) = pb.autograd.grad(Twice.apply(x) * x, x, create_graph=True)
    with pytest.raises(GradientError, match="marked with @once_differentiable"):
        (slope * x).backward()


def test_a_wrong_number_of_gradients() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 1

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g, g

    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        Wrong.apply(leaf(1.0)).backward()


# --- around -------------------------------------------------------------------------------------------------


def test_variable_shares_memory() -> None:
    data = pb.zeros(2)
    x = Variable(data, requires_grad=True)
    data[0] = 5
    assert x.tolist() == [5.0, 0.0] and x.requires_grad and not data.requires_grad


def test_gradcheck_finds_a_wrong_gradient() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x.sin()

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g

    assert gradcheck(lambda x: x.sin(), leaf(0.3, 0.7))
    with pytest.raises(GradientError, match="Jacobian mismatch for output 0"):
        gradcheck(Wrong.apply, leaf(0.3, 0.7))
    assert not gradcheck(Wrong.apply, leaf(0.3, 0.7), raise_exception=False)


def test_functional() -> None:
    x = pb.tensor([1.0, 2.0])
    functional = pb.autograd.functional
    assert_values(functional.jacobian(lambda a: a * a, x), [[2.0, 0.0], [0.0, 4.0]])
    assert_values(functional.hessian(lambda a: (a**3).sum(), x), [[6.0, 0.0], [0.0, 12.0]])
    assert_values(functional.vjp(lambda a: a * a, x, pb.ones(2))[1], [2.0, 4.0])
    assert_values(functional.jvp(lambda a: a * a, x, pb.ones(2))[1], [2.0, 4.0])
    assert_values(functional.hvp(lambda a: (a**3).sum(), x, pb.ones(2))[1], [6.0, 12.0])
    (rows, columns), (more, still) = functional.jacobian(lambda a, b: (a * b, a + b), (x, pb.tensor([3.0])))
    assert_values(rows, [[3.0, 0.0], [0.0, 3.0]])
    assert_values(columns, [[1.0], [2.0]])
    assert_values(still, [[1.0], [1.0]])
    assert more.shape == (2, 2)


@pytest.mark.drawn(6)
def test_a_chain_of_100_000_operations() -> None:
    x = pb.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert x.grad.item() == 1.0


@pytest.mark.drawn(4)
def test_a_step_leaves_no_cycles() -> None:
    def step() -> None:
        w = pb.ones(3, requires_grad=True)
        y = w * 2
        y[0] = 5.0
        part = y[1:]
        part.mul_(3)
        z = Exponential.apply(y)
        z.retain_grad()
        z.register_hook(lambda gradient: gradient)
        (slope,) = pb.autograd.grad((z * z.tanh()).sum(), w, create_graph=True)
        (slope * slope).sum().backward()

    step()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            step()
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.drawn(6)
@pytest.mark.slow
def test_training_steps_hold_their_size_without_the_collector(tmp_path) -> None:  # type: ignore[no-untyped-def]
    program = """
        import gc
        import pullback as pb

        def size():
            return int(open("/proc/self/statm").read().split()[1]) * 4096

        gc.disable()
        w = pb.zeros(3, requires_grad=True)
        x = pb.ones(3)
        for step in range(40_000):
            loss = ((w * x).tanh() - 1).square().mean()
            loss.backward()
            with pb.no_grad():
                w -= 0.01 * w.grad
            w.grad = None
            if step == 5_000:
                before = size()
        print(size() - before)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert int(result.stdout) < 700_000  # a step would leave 20 bytes
