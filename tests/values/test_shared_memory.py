"""Which results of NumPy's functions show the memory of their arguments: however they run, as plainly."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.part(8)

X = np.array([3.0, 1.5, 2.0, 7.0])
COPIES = """
np.meshgrid(y, y)[0] | np.meshgrid(y, y)[1] | np.meshgrid(y, y, sparse=True)[0] | np.meshgrid(y)[0]
np.repeat(y, 1) | y.repeat(1) | np.tile(y, 1) | np.tile(y, (2, 1)) | np.roll(y, 0) | np.roll(y, 1)
np.pad(y, 0) | np.concatenate([y]) | np.stack([y]) | np.hstack([y]) | np.vstack([y]) | np.column_stack([y])
np.dstack([y])
np.block([y]) | np.append(y, []) | np.delete(y, []) | np.insert(y, [], []) | np.take(y, [0, 1, 2, 3])
np.compress([True] * 4, y) | np.sort(y) | np.partition(y, 1) | np.nan_to_num(y) | np.clip(y, None, 1e9)
np.round(y) | y.round(9) | np.array(y) | np.array([y]) | np.copy(y) | y.copy() | y.flatten() | y.astype(float)
np.where(True, y, 0.0) | np.positive(y) | +y | np.conj(y) | y * 1 | y ** 1 | np.maximum(y, y)
np.multiply(y, 1) | np.sum(y, axis=()) | np.max(y, axis=()) | np.mean(y, axis=()) | np.sum(y[None], 0)
np.median(y[None], 0)
np.resize(y, y.shape) | np.select([np.ones(4, bool)], [y]) | np.choose(np.zeros(4, int), [y]) | np.cumsum(y)
np.tril(y.reshape(2, 2)) | np.triu(y.reshape(2, 2), -5) | np.diag(y) | np.unwrap(y * 0.01) | np.unique(y)
y.flat[:] | y.flat[::2]
y[[0, 1, 2, 3]] | y[np.ones(4, bool)] | np.ravel(y[::-1]) | y.reshape(2, 2).T.ravel() | y[::2].reshape(2, 1)
np.ascontiguousarray(y[::2]) | np.fft.fftshift(y) | np.r_[y] | np.require(y[1:], requirements="O")
"""
VIEWS = """
np.flip(y) | np.flip(y.reshape(2, 2), 1) | np.flipud(y) | np.fliplr(y.reshape(2, 2)) | y[::-1] | y[:] | y[...]
np.rot90(y.reshape(2, 2)) | np.rot90(y.reshape(1, -1), 2) | np.rot90(y.reshape(2, 2), 3)
np.rot90(y[None], 0) | np.squeeze(y.reshape(1, 4)) | np.atleast_1d(y) | np.atleast_2d(y) | np.atleast_3d(y)
np.reshape(y, (2, 2))
np.ravel(y) | y.T | np.transpose(y) | np.swapaxes(y.reshape(2, 2), 0, 1) | np.moveaxis(y.reshape(2, 2), 0, 1)
np.rollaxis(y.reshape(2, 2), 1) | np.expand_dims(y, 0) | np.split(y, 2)[0] | np.array_split(y, 1)[0]
np.hsplit(y, 2)[1] | np.real(y) | np.real_if_close(y) | np.nan_to_num(y, copy=False) | np.asarray(y)
np.require(y) | np.asanyarray(y) | np.ascontiguousarray(y) | np.diff(y, n=0) | np.trim_zeros(y) | y.view()
y.conj() | y.real
np.einsum("ij->ji", y.reshape(2, 2)) | np.reshape(y, (2, 2), order="F") | np.meshgrid(y, copy=False)[0]
y.astype(float, copy=False) | y.reshape(2, 2).diagonal() * 1
"""


def _expressions(text: str) -> list[str]:
    return [one.strip() for one in text.replace("\n", "|").split("|") if one.strip()]


EXPRESSIONS = _expressions(COPIES + VIEWS)
WAYS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "compiled": lambda function, x: pb.compile(function)(x.copy()),
    "differentiated": lambda function, x: pb.vjp(function, x.copy())[0],
    "gradient": lambda function, x: pb.compile(lambda x: pb.vjp(function, x)[0])(x.copy()),
}


def program(expression: str, then: str) -> Callable[[Any], Any]:
    variables: dict[str, Any] = {"np": np}
    exec(
        f"def f(x):\n    y = x * 1.0\n    g = {expression}\n    {then}\n    return g * 1.0, y * 1.0",
        variables,
    )
    return variables["f"]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("then", ["y[1] = 99.0", "g[...] = 77.0"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_write_is_seen_where_it_is_plainly(expression: str, then: str) -> None:
    function = program(expression, then)
    expected = function(X.copy())
    for way in WAYS.values():
        for found, wanted in zip(way(function, X), expected, strict=True):
            np.testing.assert_allclose(found, wanted)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("number", ["x.sum()", "x[0]", "np.sin(x[1])", "np.dot(x, x)"])
@pytest.mark.parametrize("array", ["np.atleast_1d(t)", "t.reshape(-1)", "t[None]", "t[...]", "np.asarray(t)"])
def test_no_array_shows_the_memory_of_a_number(number: str, array: str) -> None:
    variables: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    t = {number}\n    w = {array}\n    w += 1.0\n    return t * 1.0, w * x", variables)
    for way in WAYS.values():
        for found, wanted in zip(way(variables["f"], X), variables["f"](X), strict=True):
            np.testing.assert_allclose(found, wanted)


ORDERED = """
y.copy(order="F") | y.T.copy("A") | y.astype(float, order="F") | y.T.astype(np.float32, order="C")
np.copy(y, order="F") | np.copy(y.T, order="C") | np.array(y, order="F") | np.array(y.T, order="C")
np.asarray(y, order="F") | np.zeros((2, 3), order="F") + y | np.full((2, 3), y[0, 0], order="F")
np.ones_like(y, order="F") | np.full_like(y.T, 2.0) | np.full_like(y.T, y[0, 0]) | np.empty_like(y.T) * 0.0
np.eye(3, order="F") | np.take(y, [0, 1], axis=1) | np.meshgrid(y[0], y[1])[0]
"""


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("expression", _expressions(ORDERED))
def test_what_lies_in_an_order_that_is_asked_for_is_shown_flat_or_copied(expression: str) -> None:
    variables: dict[str, Any] = {"np": np}
    writes = f"y = x * 1.0; g = {expression}; flat = g.reshape(-1); flat *= 3.0; g[0] += x[0, 0]"
    exec(f"def f(x):\n    {writes}\n    return g * 1.0, flat * 1.0", variables)
    x = np.arange(1.0, 7.0).reshape(2, 3)
    for way in WAYS.values():
        for found, wanted in zip(way(variables["f"], x), variables["f"](x), strict=True):
            np.testing.assert_allclose(found, wanted)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("expression", ["np.diag(y.reshape(2, 2))", "np.broadcast_to(y, (2, 4))"])
def test_a_view_for_reading_is_not_written_to(expression: str) -> None:
    function = program(expression, "g[...] = 77.0")
    with pytest.raises(ValueError, match="read-only"):
        function(X.copy())
    for way in WAYS.values():
        with pytest.raises(pb.errors.PullbackError):
            way(function, X)


def test_a_number_has_no_elements_to_write() -> None:
    def fill(x: Any) -> Any:
        total = np.sum(x)
        total[...] = 1.0
        return total

    for way in (lambda function, x: function(x), *WAYS.values()):
        with pytest.raises(TypeError, match="does not support item assignment"):
            way(fill, X)


NAMES = (
    "__len__",
    "__iter__",
    "shape",
    "dtype",
    "detach",
    "requires_grad",
    "backward",
    "item",
    "to_numpy",
    "unsqueeze",
)


def test_attributes_are_those_of_the_plain_call() -> None:
    seen: list[Any] = []

    def ask(x: Any, a: float) -> Any:
        for one in (x, x[0], np.sum(x), a, a * 2, x[0] * a, np.array(a)):
            seen.append([name for name in NAMES if hasattr(one, name)])
        return np.sum(x) * a

    ask(X, 0.5)
    expected = list(seen)
    for call in (pb.compile(ask), pb.grad(ask), pb.grad(ask, argnums=(0, 1)), pb.compile(pb.grad(ask))):
        seen.clear()
        call(X, 0.5)
        assert seen[-len(expected) :] == expected


OF_TENSORS = """
x.roll(0) | x.roll(4) | x.repeat(1) | x.tile((1,)) | pb.nn.functional.pad(x, (0, 0))
pb.repeat_interleave(x, 1) | pb.rot90(x.reshape(2, 2), 0) | pb.matrix_power(x.reshape(2, 2), 1)
pb.chain_matmul(x.reshape(2, 2))
pb.diff(x, n=0) | x.flip(0) | pb.cat([x]) | pb.clone(x) | pb.tensor(x) | pb.tril(x.reshape(2, 2), 5)
"""


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("expression", [one.strip() for one in re.split(r"[|\n]", OF_TENSORS) if one.strip()])
def test_what_pytorch_copies_is_a_copy(expression: str) -> None:
    x = pb.tensor([3.0, 1.5, 2.0, 7.0])
    made = eval(expression, {"pb": pb, "x": x})
    before = made.tolist()
    x[1] = 99.0
    assert made.tolist() == before
    made.fill_(77.0)
    assert x.tolist() == [3.0, 99.0, 2.0, 7.0]


RETURNED: dict[str, Any] = {
    "itself": lambda x: x,
    "a slice": lambda x: x[1:],
    "all of it": lambda x: x[...],
    "a row": lambda x: x[0],
    "transposed": lambda x: x.T,
    "reshaped": lambda x: x.reshape(3, 2),
    "flat": lambda x: x.ravel(),
    "twice": lambda x: (x, x)[1],
    "written": lambda x: x.__iadd__(1.0),
}


@pytest.mark.parametrize("requires_grad", [None, False, True])
@pytest.mark.parametrize("name", RETURNED)
def test_what_a_compiled_function_returns_is_a_copy(name: str, requires_grad: bool | None) -> None:
    """A plain function gives its argument, or a view of it: documented in `docs/in_place.md`."""
    function = RETURNED[name]
    array = np.arange(6.0).reshape(2, 3)
    x = array if requires_grad is None else pb.from_numpy(array).requires_grad_(requires_grad)
    with pb.no_grad():
        result = pb.compile(function)(x)
    memory = result if requires_grad is None else result.numpy()
    assert result is not x and not np.shares_memory(memory, array)
    before = array.copy()
    memory[...] = -1.0
    np.testing.assert_array_equal(array, before)
    assert result.shape == function(array.copy()).shape
