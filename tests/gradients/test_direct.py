"""The short ways of eager code: they give what the general ways do, kinds, gradients and errors among it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.functions.selections.indexing import view_at
from pullback.runtime.numpy_api.protocols import DIRECT, DIRECT_FUNCTIONS, FUNCTIONS
from pullback.runtime.tape.apply import apply
from pullback.runtime.tape.direct import direct
from pullback.runtime.transforms.transforms import grad_of_sum
from pullback.runtime.values.tensor import Tensor, TorchTensor, make
from pullback.runtime.values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber
from pullback.tracer import errors
from pullback.tracer.operator import Operator, operators
from pullback.tracer.ops.linalg import lower_part, upper_part

OPERATORS = {
    name: one
    for one in operators("elementwise")
    for name in (*one.numpy, *one.scipy)
    if name in DIRECT and len(one.operands) < 3 and one.rules and one.name != "power"
}
SHAPES = {1: (((3,),), ((),)), 2: (((3,), (3,)), ((2, 3), (3,)), ((), (3,)), ((), ()))}


def drawn(operator: Operator, shape: tuple[int, ...], kind: type[Tensor], dtype: str, seed: int) -> Tensor:
    low, high = operator.domain
    array = np.random.default_rng(seed).uniform(low, high, shape)
    return make(np.asarray(array, dtype), kind).requires_grad_()


def described(result: Tensor) -> Any:
    name = None if result.grad_fn is None else result.grad_fn.name()
    return type(result), result._value.dtype, result.shape, name


def gradients(result: Tensor, operands: list[Tensor]) -> list[Any]:
    """First derivatives of a sum, and derivatives of the sum of their squares."""
    first = pb.autograd.grad(result.sum(), operands, create_graph=True)
    squares = sum((one * one).sum() for one in first)
    second = [None] * len(operands)
    if squares.requires_grad:
        second = pb.autograd.grad(squares, operands, allow_unused=True)
    return [None if one is None else one.detach().numpy() for one in (*first, *second)]


def require_equal(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype and one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-12 if one.dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("kind", [TorchTensor, NumpyTensor])
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_an_operator_gives_by_its_short_way_what_apply_gives(name: str, kind: type[Tensor]) -> None:
    operator = OPERATORS[name]
    for shapes in SHAPES[len(operator.operands)]:
        for dtype in ("float64", "float32"):
            operands = [drawn(operator, shape, kind, dtype, seed) for seed, shape in enumerate(shapes)]
            found, expected = DIRECT[name](*operands), apply(operator, *operands)
            assert described(found) == described(expected)
            np.testing.assert_array_equal(found.detach()._value, expected.detach()._value)
            require_equal(gradients(found, operands), gradients(expected, operands))


OF_THREE: dict[str, Callable[..., Any]] = {
    "a condition that is an array": lambda x, y: np.where(np.arange(3) > 0, x, y),
    "a condition that is computed": lambda x, y: np.where(x > y, x, 0.5),
    "a condition of two dimensions": lambda x, y: np.where(np.eye(3) > 0, x, y),
    "an array beside a tensor": lambda x, y: np.where(x > 0.0, np.arange(3.0), y * y),
    "numbers for bounds": lambda x, y: np.clip(x, -0.5, 0.25),
    "one bound": lambda x, y: np.clip(y, 0.0, None),
}


@pytest.mark.parametrize("kind", [TorchTensor, NumpyTensor])
@pytest.mark.parametrize("name", OF_THREE)
def test_an_operator_of_three_operands_gives_by_its_short_way_what_it_gives_generally(
    name: str, kind: type[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> Any:
        x, y = (make(array, kind).requires_grad_() for array in (np.array([-1.0, 0.2, 2.0]), np.ones(3)))
        result = OF_THREE[name](x, y)
        return described(result), result.detach()._value, gradients(result * result + x * y, [x, y])

    (shown, value, slopes) = found()
    with monkeypatch.context() as patch:
        for function in (np.where, np.clip):
            patch.delitem(DIRECT_FUNCTIONS, function)
        general, expected, of_general = found()
    assert shown == general
    np.testing.assert_array_equal(value, expected)
    require_equal(slopes, of_general)


def test_operands_of_two_dtypes_take_the_general_way() -> None:
    single, double = (make(np.ones(2, dtype), NumpyTensor) for dtype in ("float32", "float64"))
    assert DIRECT["multiply"](single, double) is NotImplemented
    assert DIRECT["multiply"](single, np.float64(2.0)) is NotImplemented
    assert DIRECT["multiply"](single, 2**60) is NotImplemented
    assert (single * np.float64(2.0)).dtype == np.float64
    assert (single * 2.0).dtype == np.float32
    assert DIRECT["multiply"](single, np.arange(2)) is NotImplemented
    assert (single * np.arange(2)).dtype == np.float64


@pytest.mark.parametrize("other", [np.array([2, 3]), np.array([True, False]), np.int64(2), np.bool_(True)])
def test_integers_and_bools_beside_doubles_are_doubles(other: Any) -> None:
    x = make(np.array([0.5, 2.0]), NumpyTensor).requires_grad_()
    for found in (DIRECT["multiply"](x, other), DIRECT["multiply"](other, x)):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found.detach()._value, x.detach()._value * other)
        np.testing.assert_array_equal(gradients(found, [x])[0], np.ones(2) * other)


BESIDE_NUMBERS = {
    "number": lambda: make(np.array(0.5), PythonNumber).requires_grad_(),
    "float": lambda: 0.5,
    "int": lambda: 2,
    "NumPy's float": lambda: np.float64(0.5),
    "NumPy's int": lambda: np.int64(2),
    "NumPy's bool": lambda: np.bool_(True),
    "array": lambda: np.array([0.5, 2.0]),
    "integers": lambda: np.array([3, 2]),
    "differentiated array": lambda: make(np.array([0.5, 2.0]), NumpyTensor).requires_grad_(),
    "differentiated number of NumPy's": lambda: make(np.array(2.0), NumpyScalar).requires_grad_(),
}
SHORT = {name: direct(OPERATORS[name]) for name in ("add", "subtract", "multiply", "divide")}


@pytest.mark.parametrize("beside", sorted(BESIDE_NUMBERS))
@pytest.mark.parametrize("name", sorted(SHORT))
def test_a_number_of_pythons_takes_the_short_way_to_what_the_general_way_gives(
    name: str, beside: str
) -> None:
    number, other = make(np.array(1.5), PythonNumber).requires_grad_(), BESIDE_NUMBERS[beside]()
    method = {"subtract": "sub", "multiply": "mul", "divide": "truediv"}.get(name, name)
    for reflected in (False, True):
        short = SHORT[name](*((other, number) if reflected else (number, other)))
        general = getattr(NumpyTensor, f"__{'r' if reflected else ''}{method}__").__wrapped__(number, other)
        assert short is not NotImplemented
        assert type(short) is type(general) and short.shape == general.shape
        assert short._value.dtype == general._value.dtype
        np.testing.assert_array_equal(short.detach()._value, general.detach()._value)
        inputs = [one for one in (number, other) if isinstance(one, Tensor)]
        require_equal(gradients(short, inputs), gradients(general, inputs))


def test_a_number_of_pythons_beside_single_precision_takes_the_general_way() -> None:
    number, single = make(np.array(1.5), PythonNumber), np.ones(2, "float32")
    assert SHORT["multiply"](number, single) is NotImplemented
    assert SHORT["multiply"](number, make(single, NumpyTensor)) is NotImplemented
    assert (number * single).dtype == (number * make(single, NumpyTensor)).dtype == np.float32


def test_what_was_saved_and_written_to_is_an_error_by_the_short_way_too() -> None:
    x = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    y = x * 1.0
    total = (y * y).sum()
    y[0] = 3.0
    with pytest.raises(pb.errors.GradientError, match=r"modified by an inplace operation.*y\[0\] = 3.0"):
        total.backward()


def test_a_graph_that_was_freed_is_an_error_by_the_short_way_too() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    total = (x * x).sum()
    total.backward()
    with pytest.raises(pb.errors.GradientError, match="second time"):
        total.backward()


# --- parts --------------------------------------------------------------------------------------------


def reads(x: Any) -> Any:
    return x[1] * x[-1] + (x[1:] * x[:-1] ** 2).sum() + x[:].sum() + x[5:].sum() + x[-2:0].sum()


def rows(x: Any) -> Any:
    x = x.reshape(2, 3)
    return (x[0] * x[1] ** 2).sum() + x[1][2] + x[0:1].sum() ** 3


def writes(x: Any) -> Any:
    y = x * 1.0
    y[0] = x[1] * x[2]
    y[1:3] = y[0] * 2.0
    y[-1] = 5.0
    y[3:5] = x[:2] * x[:2]
    return (y * y * x).sum()


def views(x: Any) -> Any:
    y = x * 1.0
    part = y[2:5]
    y[3] = x[0] * 2.0
    part[0] = x[1] * 3.0
    return (part * part).sum() + y.sum()


def parts_of_parts(x: Any) -> Any:
    y = x * 1.0
    part = y[1:][2:5]
    part[0] = x[0] * 3.0
    y[4] = x[5] * 2.0
    return (part * part).sum() + part[1:][0] * y[1:][1] * y.sum()


def elements_beside_the_whole(x: Any) -> Any:
    return x[0] * x[1] + x.sum() + x[0] ** 2 + (x * x).sum() * x[-1] + x[2:4].sum() * x[3]


@pytest.fixture
def generally() -> Iterator[Any]:
    """Inside, what is recorded is observed, and so takes the general way."""
    yield lambda: pb.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


PROGRAMS = [reads, rows, writes, views, parts_of_parts, elements_beside_the_whole]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_parts_have_the_gradients_of_the_general_way(program: Callable[..., Any], generally: Any) -> None:
    array = np.array([0.5, -1.0, 2.0, 0.3, 1.5, -0.7])
    x = pb.from_numpy(array).requires_grad_()
    found = program(x)
    with generally():
        expected = program(x)
    np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-14)
    wanted = gradients(expected, [x])
    require_equal(gradients(found, [x]), wanted)
    value, slope = pb.value_and_grad(program)(array)
    np.testing.assert_allclose(value, expected.item(), rtol=1e-14)
    np.testing.assert_allclose(slope, wanted[0], rtol=1e-12)


def test_leaves_that_are_not_asked_for_get_nothing() -> None:
    rng = np.random.default_rng(0)
    x, w = (pb.from_numpy(rng.normal(size=size)).requires_grad_() for size in (5, ()))
    seen: list[Any] = []
    w.register_hook(seen.append)
    y = x * 1.0
    y[1] = w  # whose gradient CopySlices gives, asked or not
    total = (x * w + y * y[1]).sum()
    (slope,) = pb.autograd.grad(total, [x], retain_graph=True)
    assert not seen
    expected, _ = pb.autograd.grad(total, [x, w])
    np.testing.assert_allclose(slope, expected, rtol=1e-14)
    assert len(seen) == 1 and w.grad is None


@pytest.mark.parametrize("index", [3, -4])
def test_an_element_that_is_not_there_is_the_general_error(index: int) -> None:
    x = pb.ones(3, requires_grad=True)
    with pytest.raises(pb.errors.DimensionError):
        x[index]
    y = x * 1.0
    with pytest.raises(pb.errors.DimensionError):
        y[index] = 1.0


def test_a_leaf_is_not_written_to() -> None:
    x = pb.ones(3, requires_grad=True)
    with pytest.raises(pb.errors.GradientError, match="leaf"):
        x[0] = 1.0


def test_an_element_of_an_array_is_a_number_and_a_row_a_view() -> None:
    def program(x: Any) -> Any:
        y = x * 1.0
        first, row = y[0, 0], y[1]
        number = row[1]
        y[1] = x[0] * 2.0
        return first * number + row.sum()

    array = np.array([[1.0, 2.0], [3.0, 4.0]])
    value, slope = pb.value_and_grad(program)(array)
    assert value == program(array) == 10.0
    np.testing.assert_allclose(slope, [[6.0, 2.0], [0.0, 1.0]])


# --- what is found out about a NumPy program, once ------------------------------------------------------


def doubled(x: Any) -> Any:
    return 2.0 * x


def doubled_in_place(x: Any) -> Any:
    y = np.zeros(x.shape)
    for place in range(len(x)):
        y[place] = 2.0 * x[place]
    return y


def test_a_helper_that_is_replaced_is_looked_at_anew() -> None:
    variables = {"helper": doubled, "np": np, "__name__": "users_module"}
    exec("def program(x):\n    return np.sum(helper(x) * x)", variables)
    evaluate = pb.value_and_grad(variables["program"])
    for helper in (doubled, doubled_in_place, doubled):
        variables["helper"] = helper
        np.testing.assert_allclose(evaluate(np.array([1.0, 3.0]))[1], [4.0, 12.0])


def test_functions_of_one_code_with_other_helpers_are_told_apart() -> None:
    def program_with(helper: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, scale=1.0: np.sum(helper(x) * x) * scale

    for helper in (doubled, doubled_in_place, doubled):
        found = pb.value_and_grad(program_with(helper))(np.array([1.0, 3.0]))
        np.testing.assert_allclose(found[1], [4.0, 12.0])


def test_values_in_closures_may_change_between_calls() -> None:
    scale, held = 1.0, np.ones(2)

    def program(x: Any) -> Any:
        y = np.zeros(2)
        y[0] = scale * x[0]
        y[1] = x[1]
        return np.sum(y * held)

    evaluate = pb.value_and_grad(program)
    np.testing.assert_allclose(evaluate(np.ones(2))[1], [1.0, 1.0])
    scale, held = 3.0, np.array([1.0, 5.0])
    np.testing.assert_allclose(evaluate(np.ones(2))[1], [3.0, 5.0])


def test_a_default_that_is_replaced_is_looked_at_anew() -> None:
    def program(x: Any, helper: Callable[..., Any] = doubled) -> Any:
        return np.sum(helper(x) * x)

    evaluate = pb.value_and_grad(program)
    for helper in (doubled, doubled_in_place):
        program.__defaults__ = (helper,)
        np.testing.assert_allclose(evaluate(np.array([1.0, 3.0]))[1], [4.0, 12.0])


SCALES: list[Any] = [2.0]
BY_NAME: dict[str, Any] = {"scale": 2.0}


def test_containers_of_numbers_may_come_to_hold_functions() -> None:
    def program(x: Any) -> Any:
        scale, other = SCALES[0], BY_NAME["scale"]
        y = scale(x) if callable(scale) else scale * x
        return np.sum(other(y) * x if callable(other) else other * y * x)

    evaluate, x = pb.value_and_grad(program), np.array([1.0, 3.0])
    try:
        for SCALES[0], BY_NAME["scale"] in ((2.0, 2.0), (3.0, 2.0), (doubled_in_place, 2.0), (2.0, doubled)):
            factor = 6.0 if SCALES[0] == 3.0 else 4.0
            np.testing.assert_allclose(evaluate(x)[1], 2.0 * factor * x)
    finally:
        SCALES[0], BY_NAME["scale"] = 2.0, 2.0


ALL = slice(None)
INDICES: list[tuple[Any, str]] = [
    ((1, 2), "Select"), ((ALL, -1), "Select"), ((None, slice(1, 3), 0), "Select"), ((..., 1), "Select"),
    ((slice(5, 1), 0), "Select"), ((slice(None, None, -1), slice(1, 9)), "Slice"),
    (slice(None, None, -2), "Slice"), ((slice(None, None, 2), slice(-1, None, -2)), "Slice"),
    ((..., None), "Unsqueeze"), (None, "Unsqueeze"), ((0, None, ...), "Unsqueeze"), (..., "Alias"),
]  # fmt: skip

ARRAYS = [
    (np.array([2, 0, -1, 2]), "Index"), (np.array([[0], [1]], np.int32), "Index"),
    (np.array([], int), "Index"), (np.array([True, False, True]), "Index"),
    (np.arange(12).reshape(3, 4) % 5 == 0, "Index"),
]  # fmt: skip
"""Their parts are copies."""


@pytest.mark.parametrize("kind", [TorchTensor, NumpyTensor])
@pytest.mark.parametrize(("index", "name"), INDICES + ARRAYS, ids=repr)
def test_a_part_is_by_its_short_way_what_it_is_by_operators(
    index: Any, name: str, kind: type[Tensor]
) -> None:
    x = make(np.random.default_rng(0).normal(size=(3, 4)), kind).requires_grad_()
    found, expected = x[index], view_at(x, index)
    np.testing.assert_array_equal(found.detach()._value, expected.detach()._value)
    assert found.grad_fn.name() == f"{name}Backward0"
    assert found.grad_fn.next_functions[0][0].name() == "AccumulateGrad"
    require_equal(gradients(found * found * found, [x]), gradients(expected * expected * expected, [x]))


@pytest.mark.parametrize("index", [one for one, _ in INDICES if one != (slice(5, 1), 0)], ids=repr)
def test_what_is_written_through_a_part_reaches_the_whole_and_its_other_parts(index: Any) -> None:
    x = make(np.random.default_rng(0).normal(size=(3, 4))).requires_grad_()
    whole = x * 1.0
    part, other = whole[index], whole[index][..., None]
    part *= 3.0
    np.testing.assert_array_equal(other.detach().numpy(), 3.0 * x.detach().numpy()[index][..., None])
    (gradient,) = pb.autograd.grad((whole * whole).sum() + other.sum(), [x])
    factor, count = np.ones((3, 4)), np.zeros((3, 4))
    factor[index], count[index] = 3.0, 3.0
    np.testing.assert_allclose(gradient.numpy(), 2.0 * factor**2 * x.detach().numpy() + count)


MOVED: dict[str, tuple[Any, Any]] = {
    "reshape": (np.reshape, ((2, -1),)), "reshape to one": (np.reshape, (-1,)),
    "transpose": (np.transpose, ()), "transpose by axes": (np.transpose, ((-1, 0),)),
    "ravel": (np.ravel, ()), "tile": (np.tile, (3,)), "tile in rows": (np.tile, ((2, 1, 3),)),
    "cumsum": (np.cumsum, (-1,)), "cumprod": (np.cumprod, (0,)), "sort": (np.sort, ()),
    "clip": (np.clip, (-0.5, 0.5)), "clip below": (np.clip, (0.25, None)),
    "clip above": (np.clip, (None, 0.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", [TorchTensor, NumpyTensor])
@pytest.mark.parametrize("name", MOVED)
def test_a_view_is_by_its_short_way_what_it_is_by_the_general_one(name: str, kind: type[Tensor]) -> None:
    function, arguments = MOVED[name]
    x = make(np.random.default_rng(0).normal(size=(3, 4)), kind).requires_grad_()
    for operand in (x, x[:, ::2], x.T):
        found, expected = (table[function](operand, *arguments) for table in (DIRECT_FUNCTIONS, FUNCTIONS))
        if found is NotImplemented:
            assert function is np.ravel and operand is not x  # where it copies
            continue
        assert described(found) == described(expected) and found._is_view() == expected._is_view()
        np.testing.assert_array_equal(found.detach()._value, expected.detach()._value)
        require_equal(gradients(found * found * found, [x]), gradients(expected * expected * expected, [x]))


def test_arrays_are_joined_with_tensors_by_the_short_way() -> None:
    x, ones = make(np.array([[1.0, 2.0]]), NumpyTensor).requires_grad_(), np.ones((2, 2))
    found = DIRECT_FUNCTIONS[np.concatenate]([x, ones, x])
    assert type(found) is NumpyTensor and found.grad_fn.name() == "CatBackward0"
    np.testing.assert_array_equal(gradients(found * found, [x])[0], [[4.0, 8.0]])
    for others in ([x, ones.astype("float32")], [x, np.ones(2)], [x, np.ones((1, 3))], [ones]):
        assert DIRECT_FUNCTIONS[np.concatenate](others) is NotImplemented


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (np.where, lambda x: (np.array([True, False]), x, 0.5)),
        (np.where, lambda x: (np.array([True, False]), x * x, x)),
        (np.outer, lambda x: (x, np.array([3.0, 4.0, 5.0]))),
        (np.outer, lambda x: (x, x)),
        (np.cumsum, lambda x: (x,)),
        (np.einsum, lambda x: ("i,j->ji", x, x * 2.0)),
        (np.einsum, lambda x: ("i,i", x, x)),
        (np.linalg.cholesky, lambda x: (np.outer(x, x) + np.diag(x),)),
        (np.einsum, lambda x: ("bij, bj", np.outer(x, x)[None], x[None])),
        (np.hstack, lambda x: ([x, np.ones(1)],)),
        (np.hstack, lambda x: ([np.outer(x, x), np.ones((2, 1))],)),
        (np.diff, lambda x: (np.outer(x, x), 1, 0)),
        (np.diff, lambda x: (x,)),
    ],
)
def test_arrays_beside_tensors_take_the_short_way(function: Any, arguments: Any) -> None:
    x = make(np.array([0.5, 2.0]), NumpyTensor).requires_grad_()
    found, expected = DIRECT_FUNCTIONS[function](*arguments(x)), FUNCTIONS[function](*arguments(x))
    assert found is not NotImplemented and found.grad_fn.name() == expected.grad_fn.name()
    np.testing.assert_array_equal(found.detach()._value, expected.detach()._value)
    require_equal(gradients(found * found, [x]), gradients(expected * expected, [x]))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (np.einsum, lambda x: ("ii,i->i", np.outer(x, x), x)),
        (np.einsum, lambda x: ("i,j->i", x, x)),
        (np.einsum, lambda x: ("...i,i", x, x)),
        (np.einsum, lambda x: ("i,i", x, x[:1])),
        (np.einsum, lambda x: ("ij,i", x, x)),
        (np.clip, lambda x: (x, 0, 1)),
        (np.clip, lambda x: (x,)),
        (np.tile, lambda x: (x, 1)),
        (np.tile, lambda x: (x, (2, 0))),
        (np.sort, lambda x: (np.outer(x, x), 0)),
        (np.cumsum, lambda x: (np.outer(x, x),)),
        (np.diff, lambda x: (x, 2)),
        (np.hstack, lambda x: ([x[0], x],)),
    ],
)
def test_what_a_short_way_is_not_for_is_left_to_the_general_one(function: Any, arguments: Any) -> None:
    x = make(np.array([0.5, 2.0]), NumpyTensor).requires_grad_()
    assert DIRECT_FUNCTIONS[function](*arguments(x)) is NotImplemented


class Chooser:
    """Code in methods has arrays of NumPy's."""

    def __init__(self) -> None:
        self.mask = np.array([True, False])

    def loss(self, x: Any) -> Any:
        chosen = np.where(self.mask, x, 0.0)
        self.mask[:] = False
        return (chosen * chosen).sum()


def test_a_condition_is_copied_where_the_program_writes() -> None:
    def loss(x: Any) -> Any:
        return Chooser().loss(x)

    np.testing.assert_array_equal(pb.grad(loss)(np.array([1.0, 2.0])), [2.0, 0.0])


@pytest.mark.parametrize("dtype", [float, int])
def test_an_array_beside_a_tensor_is_copied_where_the_program_writes(dtype: type) -> None:
    def loss(x: Any) -> Any:
        buffer = np.array(FACTORS, dtype)
        products = x * buffer
        buffer[:] = 0.0
        return products.sum()

    for count in (2, 2000):  # copied at once, and compared with a copy
        FACTORS[:] = [3.0] * count
        np.testing.assert_array_equal(pb.grad(loss)(np.ones(count)), FACTORS)


FACTORS: list[float] = []


@pytest.mark.parametrize("before", [(), (slice(None),)])
def test_an_index_array_is_copied_where_the_program_writes(before: Any) -> None:
    def loss(x: Any) -> Any:
        index = np.array([0, 1, 1])
        chosen = x[(*before, index)]
        index[:] = 0
        return (chosen * chosen).sum()

    x = np.array([1.0, 2.0]).reshape(*(1,) * len(before), 2)
    np.testing.assert_array_equal(pb.grad(loss)(x).ravel(), [2.0, 8.0])


@pytest.mark.parametrize("index", [(slice(None), (2, 0, 2)), (slice(None), slice(None), [-1])])
def test_positions_along_a_dimension_are_by_the_short_way_what_they_are_generally(index: Any) -> None:
    x = make(np.arange(24.0).reshape(2, 3, 4), NumpyTensor).requires_grad_()
    found, expected = x[index], view_at(x, index)
    assert described(found) == described(expected)
    np.testing.assert_array_equal(found.detach()._value, expected.detach()._value)
    require_equal(gradients(found * found, [x]), gradients(expected * expected, [x]))


@pytest.mark.parametrize("shift", [-9, -2, 0, 1, 3, 7])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_roll_along_one_dimension_is_one_node(shift: int, axis: int) -> None:
    x = drawn(OPERATORS["sin"], (3, 4), NumpyTensor, "float64", 0)
    found, general = np.roll(x, shift, axis=axis), FUNCTIONS[np.roll](x, (shift,), (axis,))
    np.testing.assert_array_equal(found.detach()._value, np.roll(x.detach()._value, shift, axis))
    assert found.grad_fn.name() == "RollBackward0"
    assert [one for one, _ in found.grad_fn.next_functions] == [x.sum().grad_fn.next_functions[0][0]]
    require_equal(gradients(found * found, [x]), gradients(general * general, [x]))


def test_a_roll_of_nothing_is_nothing() -> None:
    assert np.roll(make(np.zeros((0, 3)), NumpyTensor), 2, axis=0).shape == (0, 3)


# --- rules on tensors ---------------------------------------------------------------------------------


def test_a_rule_that_is_recorded_takes_short_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    x = drawn(OPERATORS["sin"], (3,), NumpyTensor, "float64", 0)
    y = np.sin(x) * x
    general: list[Operator] = []
    whole = Tensor.apply.__func__
    monkeypatch.setattr(
        Tensor, "apply", classmethod(lambda kind, one, *rest: general.append(one) or whole(kind, one, *rest))
    )
    (first,) = pb.autograd.grad(y.sum(), [x], create_graph=True)
    (second,) = pb.autograd.grad(first.sum(), [x])
    assert not {one.name for one in general} & {"cos", "sin", "multiply", "negative", "reshape", "expand"}
    np.testing.assert_allclose(second.numpy(), -np.sin(x._value) * x._value + 2 * np.cos(x._value))


def test_recorded_rules_of_choices_among_arrays_take_short_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    x = make(np.array([0.5, -1.5, 2.0]), NumpyTensor).requires_grad_()
    y = np.minimum(np.ones((2, 3)), x * x) * np.clip(x, -1.0, 1.0) * np.where(np.arange(3) > 0, x, 1.0)
    general: list[Operator] = []
    whole = Tensor.apply.__func__
    monkeypatch.setattr(
        Tensor, "apply", classmethod(lambda kind, one, *rest: general.append(one) or whole(kind, one, *rest))
    )
    (first,) = pb.autograd.grad(y.sum(), [x], create_graph=True)
    (second,) = pb.autograd.grad(first.sum(), [x])
    assert not general
    np.testing.assert_allclose(first.detach().numpy(), [1.5, -2.0, 2.0])
    np.testing.assert_allclose(second.numpy(), [6.0, 0.0, 0.0])


def test_rules_of_two_operands_that_ask_for_specs_have_derivatives_of_higher_orders() -> None:
    x = pb.tensor([0.5, -1.5, 2.0], dtype=pb.float64, requires_grad=True)
    assert pb.autograd.gradgradcheck(lambda x: pb.cumprod(x, 0), [x])
    (first,) = pb.autograd.grad(pb.cumprod(x, 0).sum(), [x], create_graph=True)
    (second,) = pb.autograd.grad((first * first).sum(), [x], create_graph=True)
    (third,) = pb.autograd.grad(second.sum(), [x])
    expected = pb.compile(pb.grad(lambda x: pb.grad(lambda x: (pb.grad(
        lambda x: pb.cumprod(x, 0).sum())(x) ** 2).sum())(x).sum()))(x.detach())  # fmt: skip
    np.testing.assert_allclose(third.numpy(), expected.numpy())


@pytest.mark.parametrize("other", [NumpyTensor, NumpyScalar, PythonNumber])
def test_a_tensor_beside_what_stands_for_numpys_is_a_tensor(other: type[Tensor]) -> None:
    x = drawn(OPERATORS["sin"], (3,), TorchTensor, "float64", 0)
    y = make(np.asarray(0.5 if other is not NumpyTensor else [0.5, 1.0, 2.0]), other).requires_grad_()
    for found, expected in ((x * y, apply(OPERATORS["multiply"], x, y)), (y - x, y * 1.0 - x)):
        assert type(found) is TorchTensor and found.dtype == pb.float64
        require_equal(gradients(found, [x, y]), gradients(expected, [x, y]))


@pytest.mark.parametrize("function", [np.sin, np.sqrt, lambda x: np.multiply(x, x), lambda x: np.add(x, 2)])
def test_numpys_functions_make_numbers_of_numpys_of_pythons(function: Callable[[Any], Any]) -> None:
    x = make(np.asarray(0.5), PythonNumber).requires_grad_()
    assert type(function(x)) is NumpyScalar and function(x)._value == function(0.5)
    assert pb.grad(function)(0.5) == pytest.approx(pb.grad(function)(np.float64(0.5)))
    assert type(pb.value_and_grad(function)(0.5)[0]) is np.float64


def filling(x: Any) -> Any:
    y = np.zeros(3)
    y[1] = x * x
    return y


def test_functions_of_transforms_are_run_as_they_are_with_others_inside_looked_at() -> None:
    twice = pb.grad(pb.grad(lambda x: filling(x)[1] * x))
    assert twice(2.0) == pytest.approx(12.0)
    third = grad_of_sum(grad_of_sum(lambda x: filling(x) * x))
    assert third(2.0) == pytest.approx(12.0)
    np.testing.assert_allclose(pb.jacobian(pb.jacobian(filling))(3.0), [0.0, 2.0, 0.0])


def test_a_function_with_the_name_and_notes_of_a_transform_is_looked_at() -> None:
    slope = pb.grad(lambda x: x**3)

    @functools.wraps(slope)
    def wrapped(x: Any) -> Any:
        y = np.zeros(2)
        y[0] = slope(x)
        return y.sum()

    assert pb.grad(wrapped)(2.0) == pytest.approx(12.0)


# --- truth values and triangles -----------------------------------------------------------------------


@pytest.mark.parametrize("ufunc", [np.bitwise_and, np.bitwise_or, np.bitwise_xor])
def test_bits_of_truth_values_take_the_short_way(ufunc: np.ufunc) -> None:
    values = np.array([True, False, True]), np.array([True, True, False])
    tensors = [make(one, NumpyTensor) for one in values]
    for first, second in (tensors, (tensors[0], values[1]), (values[0], tensors[1]), (tensors[0], True)):
        found = ufunc(first, second)
        plain = [one._value if isinstance(one, Tensor) else one for one in (first, second)]
        assert type(found) is NumpyTensor and found.dtype == bool
        np.testing.assert_array_equal(found._value, ufunc(*plain))
    assert DIRECT[ufunc.__name__](*tensors) is not NotImplemented
    number = make(np.asarray(True), NumpyScalar)
    assert type(ufunc(number, number)) is NumpyScalar
    counts = make(np.array([6, 3]), NumpyTensor)
    assert DIRECT[ufunc.__name__](counts, counts) is NotImplemented
    np.testing.assert_array_equal(ufunc(counts, 5)._value, ufunc(counts._value, 5))


@pytest.mark.parametrize("other", [2.0, 3, np.array([1.0, 2.0]), np.array([1, 2]), np.float64(2.0)])
def test_what_is_real_beside_complex_numbers_takes_the_short_way(other: Any) -> None:
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
    found = DIRECT["multiply"](make(z, NumpyTensor), other)
    assert found is not NotImplemented and type(found) is NumpyTensor
    np.testing.assert_array_equal(found._value, z * other)
    slope = pb.grad(lambda z: np.sum(np.abs(other * z)))(z)
    np.testing.assert_allclose(slope, other * z / np.abs(z), rtol=1e-14)
    single = make(z.astype(np.complex64), NumpyTensor)
    assert type(other) in (float, int) or DIRECT["multiply"](single, other) is NotImplemented


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (2, 3, 5), (5, 2), (0, 0), (100, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_triangles_are_numpys(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    if x.size:
        x.flat[0] = np.nan
    for diagonal in (-1, 0, 1):
        for found, expected in (
            (lower_part(x, diagonal), np.tril(x, diagonal)), (upper_part(x, diagonal), np.triu(x, diagonal)),
        ):  # fmt: skip
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_an_array_asks_tensors_whether_they_are_an_index_without_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    positions = make(np.array([1, 0]), NumpyTensor)
    monkeypatch.setattr(errors, "locators", [pytest.fail])
    np.testing.assert_array_equal(np.eye(2)[positions, positions], np.ones(2))
    with pytest.raises(TypeError, match="only integer scalar arrays"):
        operator.index(positions)
