"""The kind of a value, NumPy's or PyTorch's, is that of a plain call: in traces and under transforms."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg, special, stats

import pullback as pb

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

X = np.array([1.0, 2.0, 4.0])
X32 = X.astype(np.float32)
TABLE = np.arange(6.0).reshape(2, 3) ** 2
W = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64)
W32 = W.float()


class Level(enum.IntEnum):
    TWO = 2


class Length(float):
    pass


def add_one(number: Any) -> Any:
    number += 1
    return number


def filled(x: Any) -> Any:
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * 2
    return y.std()


def written(x: Any) -> Any:
    y = x.copy()
    y += 1
    y[...] = y * W.numpy()
    return y.max(axis=0)


def written_like(x: Any) -> Any:
    y = np.copy(x)
    y[0] = 3.0
    return y, np.empty_like(x) * 0, np.zeros_like(x, dtype=np.float32), np.full_like(x, 2.0).std()


def by_type(x: Any) -> Any:
    return x.sum() if isinstance(x, np.ndarray) else x.sum() * 2


def an_element_is_a_number(x: Any) -> Any:
    first = x[0]
    second = first
    first += 1
    return second * x + isinstance(first, float)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a method of an array": (lambda x: x.std(), (X,)),
    "a method of a Tensor": (lambda x: x.std(), (W,)),
    "beside a mention of pullback": (lambda x: pb.tanh(x).std(), (X,)),
    "extremes": (lambda x: np.sum(x.max(axis=0)) + pb.sin(x).sum(), (TABLE,)),
    "a global Tensor": (lambda x: (x * W).std(), (X,)),
    "a Tensor on the left": (lambda x: (W * x).std(), (X,)),
    "a constant Tensor": (lambda x: x.sum() * pb.tensor([1.0, 2.0]), (X,)),
    "a Python float": (lambda x, a: a * x, (X32, 2.0)),
    "a class of ints": (lambda x: [Level.TWO * x, x[0] + Level.TWO, np.maximum(x, Level.TWO)], (X32,)),
    "a class of floats": (lambda x: [x - Length(2), np.where(x > 1, x, Length(0.5)), -x], (X32,)),
    "a size": (lambda x: [x * x.size, x.mean() + x.size], (X32,)),
    "a number beside a Tensor's size": (lambda x: np.float32(2) * x.size * x, (W,)),
    "a number of NumPy's": (lambda x, a: a * x, (X32, np.float64(2.0))),
    "an array of no dimensions": (lambda x, a: a * x, (X32, np.array(2.0))),
    "a sum beside an array": (lambda x, y: x.sum() * y, (X, X32)),
    "math": (lambda x, y: math.sqrt(x.sum()) * y, (X, X32)),
    "an element": (an_element_is_a_number, (X,)),
    "pullback's function of a number": (lambda x: pb.tanh(x), (0.5,)),
    "pullback's std": (lambda x: pb.std(x), (X,)),
    "NumPy's std of a Tensor": (lambda x: np.std(x), (W,)),
    "zeros": (lambda x: np.zeros_like(x) + np.zeros(3) + x, (X,)),
    "pullback's zeros": (lambda x: pb.zeros(3) + x, (X,)),
    "an array of a Tensor's elements": (lambda x: np.array([x[0], x[1]]) * x[:2], (X,)),
    "a tensor of an array": (lambda x: pb.tensor(x).std(), (X,)),
    "filled": (filled, (X,)),
    "written": (written, (X,)),
    "a type is asked for": (by_type, (X,)),
    "shapes and dtypes": (lambda x: x * len(x.shape) * (x.dtype == np.float32), (X32,)),
    "vmap": (lambda x: pb.vmap(lambda row: row.std())(x), (TABLE,)),
    "map": (lambda x: pb.map(lambda row: row.max(0), x), (TABLE,)),
    "cond": (lambda x: pb.cond(x.sum() > 1, lambda x: x.std(), lambda x: x.sum(), x), (X,)),
    "switch": (lambda x: pb.switch(1, [lambda x: x.sum(), lambda x: x.var()], x), (X,)),
    "scan": (lambda x: pb.scan(lambda c, r: (c + r.std(), c * r), 0.0, x)[1], (TABLE,)),
    "a Python number is carried": (lambda x: pb.scan(lambda c, r: (c + r, c * r), 0.0, x)[0], (X32,)),
    "a Tensor is carried on": (lambda x: pb.scan(lambda h, w: (h * w, h.sum()), x, W)[0], (X,)),
    "a loop's position": (lambda x: pb.fori_loop(0, 3, lambda i, v: v * x[i] * i, 1.0), (X32,)),
    "while": (lambda x: pb.while_loop(lambda v: v.std() < 50, lambda v: v * 2, x), (X,)),
    "a compiled function inside": (lambda x: pb.compile(lambda y: y.std())(x) * x.var(), (X,)),
    "a gradient inside": (lambda x: pb.grad(lambda y: (y**3).sum())(x).std(), (X,)),
    "a part of a complex number": (lambda x: x.sum() + (np.array([x[0], 2.0]) * 1j)[0].imag, (W32,)),
    "what a compiled function returns": (lambda x: pb.compile(lambda y: y * 2)(x).std(), (X,)),
    "round": (lambda x: x * round(x[1]) + x * round(x[1] + 0.7) - round(-2.6 * x[1]) + round(x[1], 1), (X,)),
    "arrays like a Tensor": (lambda x: [written_like(one) for one in (x, [x[0]])], (W,)),
    "arrays of Tensors": (lambda x: (np.r_[x, x[0]], np.c_[x, x], np.vectorize(lambda z: 2 * z)(x)), (W,)),
    "SciPy makes arrays": (lambda x: (special.softmax(x), linalg.norm(x), stats.norm.pdf(x)), (W,)),
    "math.prod multiplies": (lambda x: (math.prod([x[0], x[1]]), math.prod(x, start=2)), (W,)),
    "math.prod of numbers": (lambda x, a: x * math.prod([x[1], a]) * math.prod([a, 2]), (X32, 3.0)),
    "add to a number": (lambda x: add_one(x.sum()) * x, (X,)),
}


def described(value: Any) -> tuple[Any, ...]:
    """The kind, the dtype, the shape and the elements of a result."""
    if isinstance(value, pb.Tensor):
        return "PyTorch", value.dtype, tuple(value.shape), value.detach().numpy()
    assert isinstance(value, np.ndarray | np.generic | float | int), type(value)
    array = np.asarray(value)
    return "NumPy", array.dtype, array.shape, array


def like_ones(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(like_ones, value))
    return pb.ones_like(value) if isinstance(value, pb.Tensor) else np.ones_like(value)


def require_same(found: Any, expected: Any) -> None:
    if isinstance(expected, list | tuple):
        assert type(found) is type(expected)
        for one, other in zip(found, expected, strict=True):
            require_same(one, other)
        return
    *one, elements = described(found)
    *other, wanted = described(expected)
    assert one == other
    np.testing.assert_allclose(elements, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_function_gives_what_the_plain_call_does(name: str) -> None:
    function, arguments = PROGRAMS[name]
    require_same(pb.compile(function)(*arguments), function(*arguments))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_transform_gives_what_the_plain_call_does(name: str) -> None:
    function, arguments = PROGRAMS[name]
    expected = function(*arguments)
    value, pull = pb.vjp(function, *arguments)
    require_same(value, expected)
    ones = like_ones(value)
    for gradient, argument in zip(pull(ones), arguments):
        assert isinstance(gradient, pb.Tensor) is isinstance(argument, pb.Tensor)


@pytest.mark.parametrize("number", [Level.TWO, Length(0.5)])
def test_a_number_of_a_class_is_an_argument_like_others(number: Any) -> None:
    require_same(pb.compile(lambda x, number: x * number)(X32, number), X32 * number)
    value, slope = pb.compile(pb.value_and_grad(lambda x: x * Length(3)))(Length(0.5))
    assert (value, slope) == (1.5, 3)


def test_public_functions_take_arrays_and_numbers() -> None:
    for one, kind in ((X, np.ndarray), (np.float32(0.5), np.float32), (0.5, float)):
        assert type(pb.tanh(one)) is kind
        np.testing.assert_allclose(pb.tanh(one), np.tanh(one))
    assert type(pb.maximum(X, 2.0)) is np.ndarray
    assert type(pb.mul(2, 3)) is int
    values, places = pb.max(TABLE, 1)
    assert type(values) is np.ndarray and type(places) is np.ndarray
    assert type(pb.linalg.norm(X)) is np.float64
    assert type(pb.nn.functional.softmax(X, 0)) is np.ndarray
    for one in (
        pb.roll(TABLE, 1, 0), pb.diff(TABLE), pb.matrix_power(TABLE @ TABLE.T, 1),
        pb.nn.functional.normalize(TABLE), pb.nn.functional.cosine_similarity(TABLE, TABLE),
        *pb.broadcast_tensors(TABLE, TABLE[:1]),
    ):  # fmt: skip
        assert type(one) is np.ndarray
    assert isinstance(pb.tanh(pb.tensor(0.5)), pb.Tensor)
    assert isinstance(pb.where(X > 1, W, X), pb.Tensor)


def test_what_stands_for_an_array_is_no_tensor_for_the_program() -> None:
    def function(x: Any) -> Any:
        assert isinstance(x, np.ndarray) and not isinstance(x, pb.Tensor)
        assert type(x.shape) is tuple and x.dtype is np.dtype("float64")
        assert isinstance(x[0], np.float64) and isinstance(x[0], float)
        return x.sum()

    for transformed in (pb.compile(function), pb.grad(function)):
        transformed(X)


def test_a_branch_of_another_kind_is_refused() -> None:
    function = pb.compile(lambda x: pb.cond(x.sum() > 1, lambda x: x * W, lambda x: x, x))
    with pytest.raises(pb.errors.ArgumentError, match="Make both one or the other"):
        function(X)


def kind_by_type(x: Any, a: Any) -> Any:
    kinds = {float: 2, int: 3, np.float64: 4, np.ndarray: 5}
    is_array = type(x) is np.ndarray and x.__class__ is np.ndarray
    return (x * kinds[type(a)] * kinds[type(x[0])]).sum() if is_array and type(Box) is type else x.sum()


class Box:
    """A class, for `type` to be asked of."""


@pytest.mark.parametrize("a", [0.5, 2, np.float64(2.0), X])
def test_type_is_that_of_the_plain_call(a: Any) -> None:
    expected = kind_by_type(X, a)
    assert pb.compile(kind_by_type)(X, a) == expected
    assert pb.value_and_grad(kind_by_type)(X, a)[0] == expected


def test_type_of_a_differentiated_number() -> None:
    assert pb.grad(lambda a: (X * a * (2 if type(a) is float else 3)).sum())(0.5) == 14


OF_ALL = {
    "median": np.median, "quantile": lambda x: np.quantile(x, 0.3),
    "nearest quantile": lambda x: np.quantile(x, 0.3, method="nearest"),
    "percentile": lambda x: np.percentile(x, 30), "nanquantile": lambda x: np.nanquantile(x, 0.3),
    "nanpercentile": lambda x: np.nanpercentile(x, 30), "nanmedian": np.nanmedian,
    "tensordot": lambda x: np.tensordot(x, x, 1), "dot": lambda x: np.dot(x, x), "cov": np.cov,
    "where": lambda x: np.where(x[0] > 0, x[0], 1.0), "select": lambda x: np.select([x[0] > 0], [x[0]]),
    "array": lambda x: np.array(x[0]), "copy": lambda x: np.copy(x[0]),
    "squeeze": lambda x: np.squeeze(x[:1]), "reshape": lambda x: x[:1].reshape(()),
    "element": lambda x: x[1], "sum": np.sum,
    "average": lambda x: np.average(x, axis=()), "searchsorted": lambda x: np.searchsorted(x, 2.5),
    "real of a number": lambda x: (x[0] * 1j).imag, "transposed number": lambda x: x[0].T,
    "reshaped number": lambda x: x[0].reshape(()), "squeezed number": lambda x: np.squeeze(x[0]),
    "view of a number": lambda x: x[0][...], "broadcast number": lambda x: np.broadcast_to(x[0], ()),
    "along an axis": lambda x: np.apply_along_axis(np.sum, 0, x),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ALL)
def test_what_has_no_dimensions_is_an_array_where_numpy_gives_one(name: str) -> None:
    function = OF_ALL[name]
    expected = function(X)

    def weighed(x: Any) -> Any:
        return (2.0 if isinstance(function(x), np.ndarray) else 3.0) * np.sum(x)

    assert type(pb.compile(function)(X)) is type(expected)
    assert pb.compile(weighed)(X) == weighed(X)
    assert pb.grad(weighed)(X)[0] == (2.0 if isinstance(expected, np.ndarray) else 3.0)


TENSORS = (
    pb.tensor([[1.0, 2.0], [3.0, 5.0]]), pb.tensor([1.0, 2.0, 2.0]), pb.tensor([1, 2, 2]), pb.tensor(1.5),
    pb.tensor([True, False]),
)  # fmt: skip
CALLS = (
    *((one,) for one in TENSORS), *((one, one) for one in TENSORS), *((one, 0) for one in TENSORS),
    *((one, 1) for one in TENSORS), *((one, 0.5) for one in TENSORS),
    (TENSORS[0], 0, 1), (TENSORS[0], 0, pb.tensor([1, 0])), (TENSORS[0], 0, pb.tensor([[1, 0]])),
)  # fmt: skip


def kinds_given(call: Callable[..., Any], arguments: tuple[Any, ...]) -> set[str]:
    """The classes of the tensors that a call gives, if it works."""
    try:
        found = call(*(one.clone() if isinstance(one, pb.Tensor) else one for one in arguments))
    except Exception:
        return set()
    flat = found if isinstance(found, list | tuple) else [found]
    return {type(one).__qualname__ for one in flat if isinstance(one, pb.Tensor)}


def test_what_is_made_of_tensors_alone_is_a_tensor() -> None:
    """Positions, counts, bins and the like are of the kind of what they belong to."""
    spaces = (pb, pb.linalg, pb.special, pb.nn.functional)
    functions = {
        f"{space.__name__}.{name}": value
        for space in spaces for name, value in vars(space).items()
        if getattr(value, "__module__", "") == space.__name__ and not isinstance(value, type)
    }  # fmt: skip
    methods = {
        f"Tensor.{name}": getattr(pb.Tensor, name) for name in dir(pb.Tensor) if not name.startswith("_")
    }
    given = {
        name: set().union(*(kinds_given(call, one) for one in CALLS))
        for name, call in (functions | methods).items()
        if callable(call)
    }
    assert sum(map(bool, given.values())) > 400
    assert {name: kinds for name, kinds in given.items() if not kinds <= {"Tensor", "Parameter"}} == {}


@pytest.mark.parametrize("given", [X32, pb.tensor(X32)], ids=["array", "Tensor"])
def test_coefficients_in_a_list_are_an_array_of_float64(given: Any) -> None:
    for function in (lambda x: np.polyval([1.0, 2.0], x), lambda x: np.polyval([1, x[0], 2.0], x)):
        require_same(pb.compile(function)(given), function(given))


def test_equal_factors_keep_the_shape_of_the_larger() -> None:
    def weighted(x: Any) -> Any:
        return (np.full(2, 1.5) * x.mean()).sum() + (x.sum() * 0.5 * np.full((2, 3), 3.0)).max(axis=0).sum()

    require_same(pb.compile(weighted)(X), weighted(X))
    np.testing.assert_allclose(pb.grad(pb.compile(weighted))(X), 1.0 + 4.5)


@pytest.mark.parametrize("number", [np.float64(1.5), np.arange(3.0)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, number: number + x.max(axis=0),
        lambda x, number: x.max(axis=0) - number,
        lambda x, number: np.maximum(number, [x[0], x[1]]),
        lambda x, number: number + np.add(number, (x[0], x[1])),
    ],
)
def test_a_list_beside_an_array_is_an_array_whatever_it_holds(function, number):
    x = pb.tensor(np.arange(6.0).reshape(2, 3))
    wanted = function(x, number)
    for found in (pb.compile(function)(x, number), pb.compile(lambda x: function(x, number))(x)):
        assert type(found) is type(wanted) is np.ndarray
        np.testing.assert_array_equal(found, wanted)


def test_a_number_of_pythons_takes_no_tuple():
    x = pb.tensor(np.arange(6.0).reshape(2, 3))
    for function in (lambda x, number: number + x.max(axis=0), pb.compile(lambda x, n: n + x.max(axis=0))):
        with pytest.raises((TypeError, pb.errors.PullbackError)):
            function(x, 1.5)


@pytest.mark.parametrize("copied", [lambda x: x.copy(), lambda x: x.astype(np.float32).astype(float)])
def test_a_copy_of_an_array_without_dimensions_is_an_array(copied: Callable[[Any], Any]) -> None:
    def halved(x: Any) -> Any:
        x = copied(x)
        y = x
        x *= 0.5
        return x + y

    x = np.array(9.0)
    assert halved(x) == 9.0 and pb.compile(halved)(x) == 9.0 and pb.value_and_grad(halved)(x)[0] == 9.0
