"""A value that depends on a differentiated argument and becomes a plain number is right, or an error."""

import array
import contextlib
import logging
import math
import struct
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from uncompiled import counts

import pullback as pb
from pullback.errors import GradientError

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.array([1.0, 2.0, 3.0])


def both(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Its gradient, plain and compiled."""
    return pb.grad(function), pb.compile(pb.grad(function))


LOSSES: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: (float(x[0]) * x).sum(),
    "map of float": lambda x: sum(map(float, x)) * x.sum(),
    "complex": lambda x: complex(x[0]).real * x.sum(),
    "item": lambda x: x[0].item() * x.sum(),
    "text": lambda x: float(str(x[0])) * x.sum(),
    "rounded text": lambda x: float(f"{x[0]:.3g}") * x.sum(),
    "item at a place": lambda x: x.item(1) * x.sum(),
    "tolist": lambda x: sum(x.tolist()) * x.sum(),
    "tobytes": lambda x: np.frombuffer(x.tobytes()).sum() * x.sum(),
    "array": lambda x: array.array("d", x)[0] * x.sum(),
    "a number of NumPy": lambda x: np.float64(x[0] * 2) * x.sum(),
    "ulp": lambda x: math.ulp(x[0]) * x.sum(),
    "map of ulp": lambda x: sum(map(math.ulp, x)) * x.sum(),
    "chosen": lambda x: (math.ulp if X.size else math.isnan)(x[0]) * x.sum(),
    "helper": lambda x: sum(one.real for one in map(complex, x)) * x.sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_becomes_a_number_is_an_error(name: str) -> None:
    for gradient in both(LOSSES[name]):
        with pytest.raises(GradientError, match="has no gradient"):
            gradient(X)


def test_what_can_not_be_told_apart_from_packing_is_no_silent_loss() -> None:
    for gradient in both(lambda x: struct.unpack("d", struct.pack("d", x[0]))[0] * x.sum()):
        with pytest.raises((GradientError, struct.error)):
            gradient(X)


def test_the_message_has_the_line_the_cause_and_the_remedy() -> None:
    def root(a: Any) -> Any:
        r = a
        while abs(float(r)) > 0.1:
            r = r / 2
        return r

    message = (
        r"float\(\) makes a plain number .* test_lost_gradients\.py:\d+  while abs\(float\(r\)\) > 0\.1:.*"
        r"compare without float\(\).*pullback\.stop_gradient\(x\)"
    )
    for gradient in both(root):
        with pytest.raises(GradientError, match=message):
            gradient(1.0)
    with pytest.raises(GradientError, match=r"array\.array computes with plain numbers"):
        pb.grad(LOSSES["array"])(X)
    with pytest.raises(GradientError, match=r"math\.ulp computes with a plain number"):
        pb.grad(LOSSES["ulp"])(X)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: pb.value_and_grad(f)(X),
        lambda f: pb.vjp(f, X),
        lambda f: pb.jvp(f, (X,), (X,)),
        lambda f: pb.jacobian(f)(X),
        lambda f: pb.hessian(f)(X),
        lambda f: pb.grad(pb.compile(f))(X),
        lambda f: pb.grad(lambda x: pb.compile(f)(x * 1))(X),
        lambda f: pb.grad(lambda x: pb.vmap(lambda row: f(row))(x.reshape(1, 3)).sum())(X),
        lambda f: pb.grad(lambda x: pb.checkpoint(f)(x))(X),
    ],
)
def test_all_transforms(transform: Callable[..., Any]) -> None:
    with pytest.raises(GradientError, match=r"item\(\) makes"):
        transform(lambda x: x.sum() * x[0].item())


FREE: dict[str, Callable[[Any], Any]] = {
    "comparison": lambda x: x.sum() if x[0] < 2 and abs(x[1]) > 1 else 2 * x.sum(),
    "truth": lambda x: x.sum() if x[0] and bool(x[1]) else 2 * x.sum(),
    "int": lambda x: int(x[0]) * x.sum(),
    "index": lambda x: x[int(x[0]) :].sum() + x[0],
    "round": lambda x: round(x[0]) * x.sum(),
    "floor": lambda x: (math.floor(x[1] / 2) + math.ceil(x[0] / 2) + math.trunc(x[2] / 4) - 1) * x.sum(),
    "isnan": lambda x: x.sum() if not (math.isnan(x[0]) or math.isinf(x[1])) else x[0],
    "map of isfinite": lambda x: x.sum() if all(map(math.isfinite, x)) else x[0],
    "isclose": lambda x: x[0] if math.isclose(x[0], x[1]) else x.sum(),
    "allclose": lambda x: x.sum() if np.allclose(x, x + 1e-12) else x[0],
    "format": lambda x: x.sum() * (len(f"{x[0]:.3f}") - 4),
    "percent": lambda x: x.sum() * (len("%.3f %s" % (x[0], 1)) - 6),  # noqa: UP031
    "logged": lambda x: (logging.getLogger("pullback.tests").warning("%.3f", x[0]), x.sum())[1],
    "stopped": lambda x: float(pb.stop_gradient(x[0])) * x.sum(),
    "another value": lambda x: float(np.sum(X)) / 6 * x.sum(),
    "detached": lambda x: pb.stop_gradient(x)[0].item() * x.sum(),
}


@pytest.mark.parametrize("name", FREE)
def test_what_loses_nothing_is_free(name: str) -> None:
    for gradient in both(FREE[name]):
        np.testing.assert_array_equal(gradient(X), np.ones(3))


class Checked:
    def loss(self, x: Any) -> Any:
        if math.isnan(x[0]) or math.floor(x[1]) > 5:
            return x[0]
        return x.sum()


def test_free_functions_are_told_apart_where_no_stand_in_reaches() -> None:
    checked = Checked()
    np.testing.assert_array_equal(pb.grad(lambda x: checked.loss(x))(X), np.ones(3))


@pytest.mark.drawn(4)
def test_what_does_not_depend_on_the_argument_is_free() -> None:
    weight = pb.tensor([2.0, 3.0, 4.0], dtype=pb.float64, requires_grad=True)

    def loss(x: Any) -> Any:
        with pb.no_grad():
            scale = float((x * x).sum())
        return (x * weight.sum().item()).sum() * scale

    np.testing.assert_array_equal(pb.grad(loss)(X), np.full(3, 9.0 * 14.0))
    assert pb.compile(lambda x: float(x[0]) * x.sum())(X) == 6.0


def test_threads_lose_nothing_either() -> None:
    def loss(x: Any) -> Any:
        with ThreadPoolExecutor(1) as others:
            return x.sum() * others.submit(lambda: x[0].item()).result()

    with pytest.raises(GradientError, match=r"item\(\) makes"):
        pb.grad(loss)(X)


def test_a_gradient_inside_of_another_asks_for_both() -> None:
    def outer(a: Any) -> Any:
        return pb.grad(lambda b: b * b * a.item())(a * 2)

    with pytest.raises(GradientError, match=r"item\(\) makes"):
        pb.grad(outer)(np.array(1.0))
    within = pb.grad(lambda a: pb.grad(lambda b: b * b * pb.stop_gradient(a).item())(a * 2))
    assert within(np.array(3.0)) == 12.0


def test_printing_shows_the_value_of_this_call(capsys: pytest.CaptureFixture[str]) -> None:
    def loss(x: Any) -> Any:
        print(f"{x[0]:.2f}", "%.1f" % x[1], x[2])  # noqa: UP031
        return x.sum()

    for function in (pb.grad(loss), pb.compile(pb.grad(loss)), pb.compile(loss)):
        function(X)
        assert capsys.readouterr().out == "1.00 2.0 3.0\n"
    compiled = pb.compile(loss)
    compiled(X), compiled(X + 1)
    assert compiled.cache_info().size == 1  # a text is no guard


def test_on_the_tape_float_warns_once_a_line() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    losses = np.zeros(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            y = x * float(x[1])
            losses[0] = y.sum()
        first = sys._getframe().f_lineno - 2
        assert x[0].item() == 1.0 and x.tolist() == [1.0, 2.0]
        text, found = f"{x[0]:.1f}", math.isnan(x[0])
        with pb.no_grad():
            float(x[0])
    assert [one.lineno for one in caught] == [first, first + 1]
    assert all(one.category is UserWarning and "x.detach()" in str(one.message) for one in caught)
    assert text == "1.0" and not found
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_code_that_was_compiled_for_the_tape_is_no_way_around() -> None:
    scaled = pb.compile(lambda x: x * x[0].item())
    x = pb.tensor([2.0, 3.0], requires_grad=True)
    scaled(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(GradientError, match=r"item\(\) makes"):
        pb.grad(lambda z: scaled(z).sum())(pb.tensor([2.0, 3.0]))
    slope = pb.grad(lambda z: (scaled(pb.stop_gradient(z)) * z).sum())
    assert slope(pb.tensor([2.0, 3.0])).tolist() == [4.0, 6.0]


def test_stop_gradient_of_all_that_it_takes() -> None:
    assert pb.stop_gradient(2.0) == 2.0 and pb.stop_gradient("a") == "a"
    assert pb.stop_gradient(X) is X
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    stopped = pb.stop_gradient({"a": [x, 1], "b": (X, None)})
    assert not stopped["a"][0].requires_grad and stopped["a"][0].tolist() == [1.0, 2.0]
    assert stopped["a"][1] == 1 and stopped["b"][0] is X
    for transform in (lambda f: f, pb.compile):
        slope = pb.grad(transform(lambda x: (x * pb.stop_gradient([x, 1])[0]).sum()))
        np.testing.assert_array_equal(slope(X), X)
        rows = transform(pb.grad(lambda x: pb.vmap(lambda r: r * pb.stop_gradient(r))(x).sum()))
        np.testing.assert_array_equal(rows(X), X)
    _, along = pb.jvp(lambda x: x * pb.stop_gradient(x), (X,), (np.ones(3),))
    np.testing.assert_array_equal(along, X)


# --- functions that took a value for a constant -------------------------------------------------------------

CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "full_like": lambda x: pb.full_like(x, x[0]).sum() + x[0],
    "linspace": lambda x: pb.linspace(x[0], x[1], 5).sum(),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_tensor_without_gradient_is_not_made_unseen(name: str) -> None:
    for gradient in both(CONSTANTS[name]):
        with pytest.raises(GradientError):
            gradient(X)


RIGHT: dict[str, Callable[[Any], Any]] = {
    "quantile": lambda x: np.quantile(x**2, x[0] / 4),
    "tensor": lambda x: (pb.tensor(x) * x).sum(),
    "full": lambda x: pb.full((3,), x[0], dtype=pb.float64).sum() + x[0],
    "Tensor": lambda x: (pb.DoubleTensor(x) * x).sum(),
    "list": lambda x: pb.tensor([x[0], x[1]]).sum() + x[0],
    "quantile of a method": lambda x: np.quantile(x**2, x[0] / 4, method="hazen"),
    "quantile of NaN": lambda x: np.nanquantile(x**2, x[:2] / 5).sum(),
    "percentile": lambda x: np.percentile(x**2, [x[0] * 20, 30.0]).sum(),
    "pullback.quantile": lambda x: pb.quantile(x**2, x[0] / 4),
    "pullback.nanquantile": lambda x: pb.nanquantile(x**2, x[0] / 4),
    "histogramdd": lambda x: np.histogramdd(x[:, None], bins=2, density=True)[0].sum(),
    "weights": lambda x: (np.histogram2d(x, x**2, 2, 2 * [(-9, 20)], weights=x * x)[0] ** 2).sum(),
    "edges": lambda x: (np.histogram_bin_edges(x, "sturges") * np.arange(4)).sum(),
}


@pytest.mark.parametrize("name", RIGHT)
def test_all_arguments_have_a_gradient(name: str) -> None:
    program = RIGHT[name]
    steps = 1e-6 * np.eye(3)
    plain = program if "pullback" not in name else lambda x: program(pb.tensor(x, dtype=pb.float64)).item()
    expected = [(plain(X + step) - plain(X - step)) / 2e-6 for step in steps]
    for gradient in both(program):
        np.testing.assert_allclose(gradient(X), expected, rtol=1e-6, atol=1e-8)


def test_quantile_and_nextafter_are_differentiated_as_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (pb, torch):
        x = library.tensor([1.0, 5.0, 2.0, 9.0], requires_grad=True)
        q = library.tensor([0.3, 0.5], requires_grad=True)
        for name in ("quantile", "nanquantile"):
            for interpolation in ("linear", "lower", "midpoint"):
                value = getattr(library, name)(x, q, interpolation=interpolation).sum()
                slopes = library.autograd.grad(value, (x, q), allow_unused=True)
                found += [None if one is None else one.tolist() for one in slopes]
        library.nextafter(x, x + 1).sum().backward()
        found.append(x.grad.tolist())
    half = len(found) // 2
    for one, other in zip(found[:half], found[half:]):
        np.testing.assert_allclose(np.float64(one or 0), np.float64(other or 0), rtol=1e-5)


def test_an_element_of_a_complex_array_warns_where_it_loses_a_gradient():
    x = pb.tensor([0.1, 0.2], requires_grad=True)
    waves = np.zeros(2, complex)
    with pytest.warns(UserWarning, match=r"complex\(\) of a tensor that requires grad .* Use x.item\(\)"):
        waves[0] = x.sum() * 1j


LOSING = ["float", "tolist", "tobytes", "array", "map of ulp", "helper"]


@pytest.mark.parametrize("name", LOSING)
def test_a_refusal_that_the_function_catches_is_raised(name: str) -> None:
    """What it goes on with is not what the plain function computes."""

    def guarded(x: Any) -> Any:
        try:
            return LOSSES[name](x)
        except Exception:
            return -x.sum()

    def suppressed(x: Any) -> Any:
        found = -x.sum()
        with contextlib.suppress(Exception):
            found = LOSSES[name](x)
        return found

    for function in (guarded, suppressed, lambda x: guarded(x) * 2.0):
        for gradient in both(function):
            with pytest.raises(GradientError, match="has no gradient"):
                gradient(X)


def test_errors_of_the_plain_function_are_caught() -> None:
    def guarded(x: Any) -> Any:
        try:
            return x.reshape(2, 2).sum()
        except ValueError:
            return -x.sum()

    def outer(x: Any) -> Any:
        try:
            return pb.grad(LOSSES["float"])(x).sum()
        except RuntimeError:
            return -x.sum()

    def knowing(x: Any) -> Any:
        try:
            return LOSSES["float"](x)
        except GradientError:
            return -x.sum()

    for gradient in (*both(guarded), *both(knowing)):
        np.testing.assert_array_equal(gradient(X), -np.ones(3))
    for gradient in both(outer):
        with pytest.raises(GradientError, match="has no gradient"):
            gradient(X)


def test_what_has_no_form_in_code_runs_uncompiled_though_the_function_catches_that() -> None:
    def guarded(x: Any) -> Any:
        try:
            return counts(x).sum() * x.sum()
        except Exception:
            return -x.sum()

    with pytest.warns(UserWarning, match="runs uncompiled"):
        assert pb.compile(guarded)(X) == guarded(X) > 0
