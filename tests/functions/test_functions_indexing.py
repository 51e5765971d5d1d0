"""x[...] against NumPy: every kind of index, read and replaced, eager and traced, with gradients."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from uncompiled import uncompiled

import pullback as pb
from pullback.runtime.functions.selections.indexing import getitem, updated
from pullback.runtime.tape.apply import wrap
from pullback.tracer.errors import ArgumentError, DimensionError, DTypeError, ShapeError, TraceError
from pullback.tracer.graph import Graph, Node, make_input
from pullback.tracer.spec import spec_of
from pullback.tracer.trace import Trace, tracing
from pullback.tracer.verify import verify

pytestmark = pytest.mark.part(8)

SHAPE = (3, 4, 5, 2)
at = np.s_
MASK = np.arange(12).reshape(3, 4) % 3 == 0

BASIC = [
    at[0],
    at[-1],
    at[1, 2],
    at[1, -2, 0, 1],
    at[:],
    at[...],
    at[()],
    at[1:],
    at[:-1],
    at[::2],
    at[::-1],
    at[2:0:-1],
    at[:, ::-2],
    at[:, 1:3, ::2],
    at[None],
    at[:, None],
    at[..., None],
    at[0, None],
    at[None, ..., None, 0],
    at[..., 0],
    at[0, ..., 1],
    at[5:],
    at[2:1],
    at[1:1, ::-1],
    at[-100:100],
    at[np.int64(1)],
    at[:, np.int32(-1)],
    at[0, :, ::-1, None],
    at[:, :, 4:1:-2],
]
ARRAYS = [
    at[np.array([0, 2])],
    at[[2, 0, 0]],
    at[np.array([-1, 0])],
    at[:, [1, 3]],
    at[..., [1, 0]],
    at[[0, 1], [2, 3]],
    at[:, [0, 1], [2, 3]],
    at[[0, 1], :, [2, 3]],
    at[:, [0, 1], :, [1, 0]],
    at[[0, 1], :, :, [1, 0]],
    at[[[0, 1], [2, 0]]],
    at[np.array([[0], [2]]), [1, 3]],
    at[:, np.array([[0], [2]]), 1:3],
    at[1:, [0, 2], ::-1],
    at[None, [0, 1]],
    at[[0, 1], None, [1, 2]],
    at[0, [1, 2]],
    at[[1, 2], 0],
    at[:, 0, [1, 2]],
    at[[], :],
    at[np.array(1)],
    at[np.array([2], np.uint16)],
    at[[0, 2], 1:3, None],
    at[:, :, [4, 0], [1, 1]],
    at[..., [[1, 0]], 0],
]
MASKS = [
    at[MASK],
    at[MASK, 0],
    at[:, MASK[0]],
    at[np.array([True, False, True])],
    at[[True, False, True], 1:],
    at[np.zeros(SHAPE, bool)],
    at[True],
    at[False],
    at[..., np.array([False, True])],
    at[np.ones((3, 4, 5, 2), bool)],
]


def array() -> np.ndarray:
    return np.arange(120.0).reshape(SHAPE)


def wrapped(index: Any) -> Any:
    """The index with its arrays as Tensors."""
    if isinstance(index, tuple):
        return tuple(map(wrapped, index))
    return wrap(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", BASIC + ARRAYS + MASKS, ids=str)
def test_reading_is_numpys_and_its_gradient_counts_the_reads(index: Any) -> None:
    expected = array()[index]
    counts = np.zeros(SHAPE)
    np.add.at(counts, index, 1.0)
    for form in (index, wrapped(index)):
        x = wrap(array()).requires_grad_()
        found = getitem(x, form)
        np.testing.assert_array_equal(found.detach().numpy(), expected)
        found.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), counts)


@pytest.mark.parametrize("index", BASIC + ARRAYS + MASKS, ids=str)
def test_replacing_is_numpys(index: Any) -> None:
    expected = array()
    shape = expected[index].shape
    update = np.arange(1000.0, 1000.0 + np.prod(shape)).reshape(shape)
    expected[index] = update
    before = array()
    x = wrap(before).requires_grad_()
    value = wrap(update).requires_grad_()
    found = updated(x, wrapped(index), value)
    np.testing.assert_array_equal(found.detach().numpy(), expected)
    np.testing.assert_array_equal(before, array())
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), expected == array())
    np.testing.assert_array_equal(
        updated(x, index, 7.0).detach().numpy(), np.where(expected == array(), expected, 7.0)
    )


MIXED = [
    at[2, 1:, [1, 3]], at[[0, 1], :, 2], at[1, :, [0, 1], ::2], at[:, 1, :, [0, 1]], at[[0, 1], :, 1, [0, 1]],
    at[1, ..., [1, 0]], at[1, None, [1, 0]], at[-1, 1:, [[0], [2]], :], at[0, :, [True, False] * 2 + [True]],
]  # fmt: skip
"""An integer and an index array with a slice between them."""


@pytest.mark.parametrize("index", MIXED, ids=str)
def test_integers_beside_index_arrays_are_numpys_or_pytorchs(index: Any) -> None:
    torch = pytest.importorskip("torch")
    weight = np.cos(array())

    def read(x: Any) -> Any:
        part = x[index]
        return (part * weight[index]).sum() + (part[..., 0] ** 2).sum(), part

    def written(x: Any, value: Any) -> Any:
        y = x * 2
        y[index] = value
        return (y * weight).sum(), y

    counts = np.zeros(SHAPE)
    part = array()[index]
    value = np.arange(1.0, 1.0 + part.size).reshape(part.shape)
    expected = array() * 2
    expected[index] = value
    slope = weight[index].copy()
    slope[..., 0] += 2 * part[..., 0]
    np.add.at(counts, index, slope)
    gradient, found = pb.grad(read, has_aux=True)(array())
    np.testing.assert_array_equal(found, part)
    np.testing.assert_allclose(gradient, counts)
    (_, of_value), found = pb.grad(written, argnums=(0, 1), has_aux=True)(array(), value)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(of_value, weight[index])

    theirs = torch.from_numpy(array())
    of_torch = tuple(torch.from_numpy(one) if isinstance(one, np.ndarray) else one for one in index)
    ours = wrap(array())
    np.testing.assert_array_equal(ours[index].numpy(), theirs[of_torch].numpy())
    ours[index], theirs[of_torch] = 7.0, 7.0
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("index", MIXED[:1] + MIXED[3:4], ids=str)
def test_compiled_integers_beside_index_arrays_are_numpys(index: Any) -> None:
    def both(x: Any) -> Any:
        y = x * 2
        y[index] = x[index] + 1
        return x[index], y, (y * y).sum()

    for found, expected in zip(pb.compile(both)(array()), both(array())):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", BASIC + ARRAYS, ids=str)
def test_a_traced_index_is_the_eager_one(index: Any) -> None:
    node = make_input(spec_of(array()), "x")
    with tracing(Trace("read")) as trace:
        results = [getitem(wrap(node), wrapped(index)), updated(wrap(node), index, 7.0)]
        known: dict[Node, Any] = {one: value for value, one in trace.captured} | {node: array()}
    graph = verify(Graph("read", tuple(known), tuple(one._value for one in results)))
    for one in graph.nodes:
        if one not in known:
            known[one] = np.asarray(
                one.operator.evaluate(*(known[x] for x in one.operands), **one.attributes)
            )
    expected = array()
    expected[index] = 7.0
    np.testing.assert_array_equal(known[graph.outputs[0]], array()[index])
    np.testing.assert_array_equal(known[graph.outputs[1]], expected)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (3, DimensionError, "index 3 is out of bounds for dimension 0 with size 3"),
        (at[:, -5], DimensionError, "index -5 is out of bounds for dimension 1 with size 4"),
        (at[0, 0, 0, 0, 0], DimensionError, "too many indices for tensor of dimension 4"),
        (at[..., 0, ...], DimensionError, "an index can only have a single ellipsis"),
        (at[[0, 9]], DimensionError, "index 9 is out of bounds for dimension 0 with size 3"),
        (at[1.5], DimensionError, "valid indices (got float)"),
        ("a", DimensionError, "valid indices (got str)"),
        (at[np.array([0.5])], DimensionError, "tensors used as indices must be long, int, byte or bool"),
        (at[::0], ArgumentError, "slice step cannot be zero"),
        (at[[0, 1], [0, 1, 2]], ShapeError, "shapes (2,) and (3,) do not broadcast"),
        (at[np.ones(4, bool)], DimensionError, "does not match the shape of the indexed tensor"),
    ],
)
def test_a_wrong_index_is_explained(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        getitem(wrap(array()), index)
    assert "test_functions_indexing.py:" in str(caught.value), "the message names the user's line"


def test_a_value_that_does_not_fit_is_explained() -> None:
    with pytest.raises(ShapeError, match="The expanded size of the tensor"):
        updated(wrap(array()), 0, np.ones(3))


def test_a_mask_needs_values() -> None:
    node = make_input(spec_of(array()), "x")
    with tracing(Trace("mask")):
        x = wrap(node)
        with pytest.raises(TraceError, match=r"int\(\) needs the value of .* has no values yet"):
            x[x > 0]


def test_negative_positions_that_are_not_known_count_from_the_end() -> None:
    node, places = make_input(spec_of(array()), "x"), make_input(spec_of(np.array([0, 0])), "places")
    with tracing(Trace("negative")):
        result = getitem(wrap(node), wrap(places))
    known: dict[Node, Any] = {node: array(), places: np.array([-1, 1])}
    for one in Graph("negative", (node, places), (result._value,)).nodes:
        if one not in known:
            known[one] = np.asarray(
                one.operator.evaluate(*(known[x] for x in one.operands), **one.attributes)
            )
    np.testing.assert_array_equal(known[result._value], array()[[-1, 1]])


# --- masks of one element, and of bytes ---------------------------------------------------------------------


def written(x: Any, index: Any, value: Any) -> Any:
    x = x.clone() if hasattr(x, "clone") else x.copy()
    x[index] = value
    return x


MASKED: dict[str, Callable[[Any, Any], Any]] = {
    "read": lambda x, mask: x[mask],
    "read_behind": lambda x, mask: x[..., mask],
    "read_between": lambda x, mask: x[:, mask, 1:],
    "read_twice": lambda x, mask: x[mask, mask],
    "read_with_integer": lambda x, mask: x[mask, 0],
    "fill": lambda x, mask: written(x, mask, 7.0),
    "fill_behind": lambda x, mask: written(x, (..., mask), 7.0),
    "fill_with_integer": lambda x, mask: written(x, (mask, 0), 7.0),
    "replace": lambda x, mask: written(x, mask, x * 2.0),
}


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("name", MASKED)
def test_a_mask_of_one_element(name: str, mask: bool) -> None:
    """As NumPy and PyTorch have it, given as bool, as NumPy's, as array and as Tensor, and compiled."""
    torch = pytest.importorskip("torch")
    function, array = MASKED[name], np.arange(6.0).reshape(2, 3)
    for one in (mask, np.bool_(mask), np.array(mask)):
        expected = function(array, one)
        assert np.array_equal(np.asarray(function(pb.tensor(array), one)), expected)
        found = pb.compile(function)(array, one)
        assert type(found) is type(expected) and np.array_equal(found, expected)
    expected = function(torch.tensor(array), torch.tensor(mask))
    for compiled in (function, pb.compile(function)):
        found = compiled(pb.tensor(array), pb.tensor(mask))
        assert tuple(found.shape) == tuple(expected.shape) and found.tolist() == expected.tolist()


def test_a_gradient_flows_past_a_mask_of_one_element() -> None:
    def loss(x: np.ndarray, bound: float) -> Any:
        return (written(x, x.sum() > bound, x * 3.0) ** 2).sum()

    x = np.arange(3.0)
    for function in (pb.grad(loss), pb.compile(pb.grad(loss))):
        np.testing.assert_allclose(function(x, 1.0), 18.0 * x)
        np.testing.assert_allclose(function(x, 100.0), 2.0 * x)


BYTES: dict[str, Callable[[Any, Any], Any]] = {
    "read": lambda x, index: x[index],
    "read_behind": lambda x, index: x[index][:, index],
    "fill_where": lambda x, index: written(x, index, x[index] * 2.0),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_masks_of_tensors_and_positions_in_arrays(name: str) -> None:
    torch = pytest.importorskip("torch")
    function, array, index = BYTES[name], np.arange(9.0).reshape(3, 3), np.array([1, 0, 2], np.uint8)
    with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
        expected = function(torch.tensor(array), torch.tensor(index))
    for compiled in (function, pb.compile(function)):
        for given in (index, pb.tensor(index)):
            with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
                found = compiled(pb.tensor(array), given)
            assert found.tolist() == expected.tolist()
        assert np.array_equal(compiled(array, index), function(array, index))
    assert pb.tensor(array)[np.uint8(2)].tolist() == array[2].tolist()


def test_bytes_that_are_no_mask_of_the_tensor() -> None:
    with (
        pytest.warns(UserWarning, match="uint8"),
        pytest.raises(DimensionError, match=r"shape of the mask \[2\] at index 0 does not match"),
    ):
        pb.ones(3)[pb.tensor([1, 0], dtype=pb.uint8)]


def test_complex_numbers_are_no_indices() -> None:
    with pytest.raises(DimensionError, match="tensors used as indices must be long, int, byte or bool"):
        pb.ones(3)[pb.tensor([1j])]


# --- numbers of elements that values decide --------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 2, 9])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 3), (3, 0)])
def test_the_first_places_that_are_not_zero(shape: tuple[int, ...], size: int) -> None:
    torch = pytest.importorskip("torch")
    x = np.arange(np.prod(shape)).reshape(shape) % 3
    expected = torch.nonzero_static(torch.tensor(x), size=size, fill_value=-2) if shape else None
    for compiled in (first_places, pb.compile(first_places)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = compiled(pb.tensor(x), size)
        assert found.dtype == pb.int64
        assert expected is None or found.tolist() == expected.tolist()
        assert tuple(found.shape) == (size, len(shape))


def first_places(x: Any, size: int) -> Any:
    return pb.nonzero_static(x, size=size, fill_value=-2)


@pytest.mark.parametrize("given", [None, "sum"])
@pytest.mark.parametrize("repeats", [[1, 0, 2], [0, 0, 0], [2], [3, 1, 1]], ids=str)
def test_elements_repeated_as_often_as_a_traced_number_says(repeats: list[int], given: str | None) -> None:
    torch = pytest.importorskip("torch")
    x, size = np.arange(6.0).reshape(2, 3), None if given is None else sum(repeats) * (3 // len(repeats))
    leaf = torch.tensor(x, requires_grad=True)
    expected = torch.repeat_interleave(leaf, torch.tensor(repeats), 1, output_size=size)
    (expected**2).sum().backward()

    def repeated(x: Any, counts: Any) -> Any:
        return pb.repeat_interleave(x, counts, 1, output_size=size)

    for compiled in (repeated, pb.compile(repeated)):
        mine = pb.tensor(x, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = compiled(mine, pb.tensor(repeats))
        assert found.tolist() == expected.tolist()
        (found**2).sum().backward()
        assert mine.grad.tolist() == leaf.grad.tolist()


def test_repeats_are_counted() -> None:
    compiled = pb.compile(lambda x, counts: pb.repeat_interleave(x, counts, 0, output_size=3))
    x = pb.tensor([1.0, 2.0])
    assert compiled(x, pb.tensor([2, 1])).tolist() == [1.0, 1.0, 2.0]
    for counts in ([1, 1], [2, 2]):
        with pytest.raises(ShapeError, match="allocated size does not match required size"):
            compiled(x, pb.tensor(counts))
    with pytest.raises(ArgumentError, match="repeats can not be negative"):
        pb.repeat_interleave(x, pb.tensor([-1, 1]))
    with pytest.raises(DTypeError, match="repeats must be integers"):
        pb.repeat_interleave(x, pb.tensor([1.0, 1.0]))
    with pytest.raises(ArgumentError, match="'size' must be 0 or more"):
        pb.nonzero_static(x, size=-1)


def _written(x: Any, positions: Any) -> Any:
    y = x.copy()
    y[positions] = 0.0
    return y


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: np.take(x, i),
        lambda x, i: x[i + 1],
        lambda x, i: x.reshape(1, -1)[np.zeros(1, int), i],
        _written,
    ],
    ids=["read", "take", "computed", "matrix", "written"],
)
def test_positions_beyond_an_array_of_one_element(function: Any) -> None:
    with pytest.raises(DimensionError, match="out of range"), uncompiled():
        pb.compile(function)(np.ones(1), np.array([2, 3]))


@pytest.mark.parametrize("position", [0, np.array(2), np.array([2, 3]), np.zeros((1, 2), int)])
def test_positions_in_an_array_without_elements(position: Any) -> None:
    def written(x: Any, positions: Any) -> Any:
        y = np.zeros(len(x))
        y[positions] = x.sum() + 1.0
        return y.sum()

    def handled(x: Any, positions: Any) -> Any:
        try:
            return x[positions].sum()
        except IndexError:
            return -1.0

    with uncompiled():
        for function in (pb.compile(written), pb.compile(pb.grad(written))):
            with pytest.raises(DimensionError, match="out of bounds for (dimension|axis) 0 with size 0"):
                function(np.zeros(0), position)
        assert pb.compile(handled)(np.zeros(0), position) == -1.0
        compiled = pb.compile(written)
        assert compiled(np.zeros(0), np.zeros(0, int)) == 0.0
        with pytest.raises(DimensionError, match="out of bounds for (dimension|axis) 0 with size 0"):
            pb.compile(pb.vmap(written, in_dims=(0, None)))(np.zeros((3, 0)), position)
        assert compiled(np.zeros(5), position) == np.size(np.unique(position))


def test_steps_that_no_turn_takes_have_no_positions() -> None:
    def looped(x: Any) -> Any:
        return pb.fori_loop(0, len(x), lambda i, total: total + x[i], 0.0 * x.sum())

    with uncompiled():
        assert pb.compile(looped)(np.zeros(0)) == 0.0


def test_classes_beyond_those_of_one_hot() -> None:
    def chosen(x: Any, i: Any) -> Any:
        return (pb.one_hot(i, 3) * x).sum()

    x = pb.tensor([1.0, 2.0, 4.0])
    with uncompiled():
        for function in (pb.compile(chosen), pb.compile(pb.grad(chosen)), chosen):
            function(x, pb.tensor([0, 2]))
            for wrong in ([0, 3], [-1, 2]):
                with pytest.raises(ArgumentError, match=f"from 0 to .* = 2, found {wrong[0]} to {wrong[1]}"):
                    function(x, pb.tensor(wrong))
        rows = pb.vmap(chosen, in_dims=(None, 0))
        assert rows(x, pb.tensor([[0, 2], [1, 1]])).tolist() == [5.0, 4.0]
        with pytest.raises(ArgumentError, match="found 0 to 3"):
            rows(x, pb.tensor([[0, 2], [3, 0]]))
