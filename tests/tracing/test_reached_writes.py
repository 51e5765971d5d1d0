"""What a compiled function writes, where nothing is recorded, into memory that it reaches or is given."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import GradientError, MutationError


def test_the_overwritten_values_line_is_named() -> None:
    @pb.compile
    def function(w: Any) -> Any:
        loss = (w * w).sum()
        with pb.no_grad():
            w.mul_(2.0)
        return loss

    loss = function(pb.ones(2, requires_grad=True))
    with pytest.raises(GradientError, match=r"overwritten at test_reached_writes.py:\d+  w.mul_\(2.0\)"):
        loss.backward()


def test_a_transform_keeps_what_is_overwritten() -> None:
    def loss(w: Any, scale: Any) -> Any:
        result = (w * scale).sum()
        with pb.no_grad():
            scale.mul_(3.0)
        return result

    for function in (loss, pb.compile(loss)):
        scale = pb.ones(2)
        assert pb.grad(function)(pb.ones(2), scale).tolist() == [1.0, 1.0]
        assert scale.tolist() == [3.0, 3.0]
        compiled_after = function(pb.ones(2, requires_grad=True), scale)
        with pytest.raises(GradientError, match="modified by an inplace"):
            compiled_after.backward()


def test_an_argument_of_a_transform_is_not_written() -> None:
    @pb.compile
    def loss(w: Any) -> Any:
        with pb.no_grad():
            w.mul_(3.0)
        return w.sum()

    w = pb.ones(2)
    with pytest.raises(MutationError, match="of which a gradient is taken"):
        pb.grad(loss)(w)
    assert w.tolist() == [1.0, 1.0]


class Model:
    def __init__(self) -> None:
        self.calls = np.zeros(())
        self.mean = pb.zeros(2)
        self.table = np.zeros((3, 2))
        self.count = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.count += 1
        self.mean += 0.5 * (x - self.mean)
        self.table.T[0, 1:] = x
        np.add(self.table[0], 1.0, out=self.table[0])
        return x * self.mean

    compiled = pb.compile(forward)


def test_what_an_object_holds_is_written() -> None:
    plain, compiled = Model(), Model()
    for value in (1.0, 2.0, 3.0):
        x = pb.tensor([value, 2 * value])
        assert plain.forward(x).tolist() == compiled.compiled(x).tolist()
    assert (compiled.count, compiled.calls.tolist(), compiled.mean.tolist()) == (3, 3.0, plain.mean.tolist())
    np.testing.assert_array_equal(compiled.table, plain.table)
    assert Model.compiled.cache_info().traces == 1


@pytest.mark.parametrize("made", [lambda a: a[:, 1], lambda a: a[::-1, 0], lambda a: a.T[2]])
@pytest.mark.parametrize("of_tensors", [False, True])
def test_views_that_are_reached_are_written_where_they_lie(made: Any, of_tensors: bool) -> None:
    whole = np.arange(12.0).reshape(4, 3)
    held = made(pb.from_numpy(whole)) if of_tensors and made(whole).strides[0] > 0 else made(whole)
    compiled = pb.compile(lambda x: held.__setitem__(slice(1, None), held[:-1] * x))
    expected = np.arange(12.0).reshape(4, 3)
    for _ in range(2):
        compiled(np.array(2.0))
        made(expected)[1:] = made(expected)[:-1] * 2.0
    np.testing.assert_array_equal(whole, expected)


def test_functions_made_alike_write_into_their_own() -> None:
    def counting(total: Any) -> Any:
        @pb.compile
        def count(x: Any) -> Any:
            total[:] += x
            return total.sum()

        return count

    totals = np.zeros(2), np.zeros(2)
    assert [counting(one)(np.full(2, value)) for one, value in zip(totals, (1.0, 2.0))] == [2.0, 4.0]
    assert [one.tolist() for one in totals] == [[1, 1], [2, 2]]


def test_each_path_writes_what_it_reaches() -> None:
    out = np.zeros(2)

    @pb.compile
    def clipped(x: Any) -> Any:
        out[:] = x if x.sum() > 0 else -1.0
        return out.sum()

    assert [clipped(np.full(2, value)) for value in (1.0, -2.0, 3.0)] == [2.0, -2.0, 6.0]


def test_memory_that_is_read_by_two_names_is_refused() -> None:
    whole = pb.ones(3)
    part = whole[1:]

    @pb.compile
    def function(x: Any) -> Any:
        whole.add_(x)
        return part.sum()

    with pytest.raises(MutationError, match="writes into whole, whose memory part shows as well"):
        function(pb.ones(3))
    assert whole.tolist() == [1.0, 1.0, 1.0]


def test_read_only_arrays_that_are_reached() -> None:
    held = np.zeros(2)
    held.flags.writeable = False
    with pytest.raises(MutationError, match="writes into held, which is a read-only array"):
        pb.compile(lambda x: held.__setitem__(0, x[0]))(np.ones(2))


def test_values_with_a_gradient_are_not_written_where_they_are_reached() -> None:
    held = np.zeros(2)

    def function(x: Any) -> Any:
        held[0] = x[0]
        return x.sum()

    with pytest.raises(MutationError, match="value with a gradient into held"):
        pb.grad(pb.compile(function))(np.ones(2))
    detached = pb.zeros(2)
    with pytest.raises(MutationError, match="value with a gradient into a detached tensor"):
        pb.compile(lambda x: detached.detach().copy_(x))(pb.ones(2, requires_grad=True))


def test_a_backward_pass_that_would_go_on_outside_is_refused() -> None:
    @pb.compile
    def function(y: Any) -> None:
        (y * y).sum().backward()

    w = pb.ones(2, requires_grad=True)
    with pytest.raises(MutationError, match=r"argument 'y' is computed from others.*test_reached_writes.py"):
        function(w * 2)
    function(w)
    with pytest.raises(MutationError, match="is computed from others"):
        function(w * 2)
    w.register_hook(lambda slope: slope * 2)
    with pytest.raises(MutationError, match="its argument 'y' has hooks"):
        function(w)
    assert w.grad.tolist() == [2.0, 2.0]


def test_gradients_that_nobody_looks_at_are_no_matter_of_a_program() -> None:
    compiled = pb.compile(lambda w: (w * w).sum())
    w = pb.ones(2, requires_grad=True)
    for _ in range(3):
        compiled(w).backward()
    assert compiled.cache_info().traces == 1
    assert w.grad.tolist() == [6.0, 6.0]


def test_what_is_given_back_shares_no_memory_with_gradients() -> None:
    @pb.compile
    def function(w: Any) -> Any:
        (w * w).sum().backward()
        return w.grad, w.grad.reshape(2, 1)

    w = pb.ones(2, requires_grad=True)
    found = function(w)
    w.grad.zero_()
    assert [one.sum().item() for one in found] == [4.0, 4.0]


def test_data_of_another_shape_is_refused() -> None:
    def function(x: Any) -> None:
        x.data = x[:1] * 2.0

    with pytest.raises(MutationError, match=r"sets the \.data of a view, or to another shape"):
        pb.compile(function)(pb.ones(2))
