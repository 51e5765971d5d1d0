"""The functions of `math`, by whatever reference they are called, have a gradient or say what has one."""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.array([0.1, 0.2, 0.3])
SLOPE = np.array([math.cos(0.1), 0.0, 0.0])
TABLE = {"sin": math.sin}
LIST = [math.sin]
NESTED = {"a": [{"b": (math.sin, 1)}]}
POWER = partial(math.pow, 2)
COUNTS = {math.sin: 0, "calls": [math.sin]}


@dataclasses.dataclass
class Record:
    f: Any


class Static:
    f = staticmethod(math.sin)
    g = math.sin


class Model:
    def __init__(self) -> None:
        self.f = math.sin

    def __call__(self, x: Any) -> Any:
        return self.f(x[0])

    def named(self, x: Any) -> Any:
        return math.sin(x[0])


RECORD, MODEL = Record(math.sin), Model()


def with_default(x: Any, f: Any = math.sin) -> Any:
    return f(x[0])


def with_keyword(x: Any, *, f: Any = math.sin) -> Any:
    return f(x[0])


def closure() -> Callable[..., Any]:
    g = math.sin
    return lambda x: g(x[0])


def imported(x: Any) -> Any:
    from math import sin

    return sin(x[0])


def imported_module(x: Any) -> Any:
    import math as m

    return m.sin(x[0])


def inner_function(x: Any) -> Any:
    def f(value: Any, g: Any = math.sin) -> Any:
        return g(value)

    return f(x[0])


def inner_class(x: Any) -> Any:
    class Inner:
        f = staticmethod(math.sin)

    return Inner.f(x[0])


PROGRAMS: dict[str, Callable[..., Any]] = {
    "dict": lambda x: TABLE["sin"](x[0]),
    "list": lambda x: LIST[0](x[0]),
    "nested": lambda x: NESTED["a"][0]["b"][0](x[0]),
    "default": lambda x: with_default(x),
    "own default": with_default,
    "keyword": lambda x: with_keyword(x),
    "closure": closure(),
    "import": imported,
    "import of a module": imported_module,
    "inner function": inner_function,
    "inner class": inner_class,
    "bound method": MODEL.named,
    "getattr": lambda x: getattr(math, "sin")(x[0]),  # noqa: B009
    "map": lambda x: sum(map(math.sin, x[:1])),
    "chosen": lambda x: (math.sin if x[0] < 1 else math.cos)(x[0]),
    "walked through": lambda x: sum(f(x[0]) for f in LIST),
    "reduce": lambda x: functools.reduce(lambda a, b: a + math.sin(b), x[:1], 0.0),
    "method caller": lambda x: math.sin(operator.methodcaller("sum")(x[:1])),
    "sum of a list": lambda x: math.fsum([math.sin(x[0]), 1.0]),
    "sum of an array": lambda x: math.fsum(np.sin(x[:1])),
    "distance of arrays": lambda x: math.dist(np.sin(x[:1]), np.zeros(1)),
    "product": lambda x: math.prod([math.sin(x[0]), 1.0]),
    "distance": lambda x: math.dist([math.sin(x[0])], [0.0]),
}
OBJECTS: dict[str, Callable[..., Any]] = {
    "dataclass": lambda x: RECORD.f(x[0]),
    "attribute": MODEL,
    "attribute of a helper": lambda x: MODEL(x),
    "method": lambda x: MODEL.named(x),
}
CLASSES: dict[str, Callable[..., Any]] = {
    "static method": lambda x: Static.f(x[0]),
    "attribute of a class": lambda x: Static.g(x[0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_reference_has_a_gradient(name: str) -> None:
    for gradient in (pb.grad(PROGRAMS[name]), pb.compile(pb.grad(PROGRAMS[name]))):
        np.testing.assert_allclose(gradient(X), SLOPE, rtol=1e-12)


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_reached(name: str) -> None:
    for gradient in (pb.grad(OBJECTS[name]), pb.compile(pb.grad(OBJECTS[name]))):
        np.testing.assert_allclose(gradient(X), SLOPE, rtol=1e-12)
    assert MODEL.named.__globals__["math"] is math


@pytest.mark.parametrize("name", CLASSES)
def test_attributes_of_classes_are_reached_by_compiling_and_else_an_error(name: str) -> None:
    with pytest.raises(pb.errors.GradientError, match=r"numpy\.sin"):
        pb.grad(CLASSES[name])(X)
    np.testing.assert_allclose(pb.compile(pb.grad(CLASSES[name]))(X), SLOPE, rtol=1e-12)


def test_functions_themselves() -> None:
    for transform in (lambda f: f, pb.compile):
        assert np.isclose(transform(pb.grad(math.sin))(1.0), math.cos(1.0))
        assert np.isclose(transform(pb.grad(POWER))(0.5), 2**0.5 * math.log(2))
        slope = transform(pb.grad(lambda x, f: f[0](x[0])))
        np.testing.assert_allclose(slope(X, [math.sin]), SLOPE, rtol=1e-12)
    np.testing.assert_allclose(pb.grad(lambda x: POWER(x[0]))(X), [2**0.1 * math.log(2), 0, 0])


def test_an_import_of_numpy_in_the_function() -> None:
    def filled(x: Any) -> Any:
        import numpy as np

        y = np.zeros(3)
        for i in range(3):
            y[i] = x[i] ** 2
        return y.sum()

    for gradient in (pb.grad(filled), pb.compile(pb.grad(filled))):
        np.testing.assert_allclose(gradient(X), 2 * X)


def test_what_a_program_writes_into_such_containers_is_kept() -> None:
    def counted(x: Any) -> Any:
        COUNTS[math.sin] += 1
        COUNTS["calls"].append(math.cos)
        return COUNTS["calls"][0](x[0])

    for _ in range(2):
        np.testing.assert_allclose(pb.grad(counted)(X), SLOPE)
    assert {math.sin: 2, "calls": [math.sin, math.cos, math.cos]} == COUNTS
    assert [type(key) for key in COUNTS] == [type(math.sin), str]


def test_what_a_program_writes_into_its_arguments_is_kept() -> None:
    def counted(x: Any, functions: Any, calls: Any) -> Any:
        functions.append(len(calls))
        calls["last"] = functions[0]
        return functions[0](x[0])

    functions, calls = [math.sin], {"last": None, "first": math.cos}
    np.testing.assert_allclose(pb.grad(counted)(X, functions, calls), SLOPE)
    assert functions == [math.sin, 2] and functions[0] is math.sin
    assert list(calls) == ["last", "first"] and calls["last"] is math.sin


class Writer:
    def by_operator(self, x: Any) -> Any:
        out = np.zeros(3)
        for i in range(3):
            operator.setitem(out, i, x[i] ** 2)
        return out

    def by_map(self, x: Any) -> Any:
        out = np.zeros(3)
        list(map(lambda i: out.__setitem__(i, x[i] ** 2), range(3)))  # noqa: C417
        return out

    def by_buffer(self, x: Any) -> Any:
        out = memoryview(np.zeros(3))
        out[0] = x[0] ** 2
        return np.asarray(out)


@pytest.mark.parametrize("way", ["by_operator", "by_map", "by_buffer"])
def test_what_fills_an_array_out_of_reach_has_a_gradient_or_is_an_error(way: str) -> None:
    writer = Writer()

    def program(x: Any) -> Any:
        return np.sum(getattr(writer, way)(x)) + x.sum()

    for gradient in (pb.grad(program), pb.compile(pb.grad(program))):
        if way != "by_buffer":
            np.testing.assert_allclose(gradient(X), 2 * X + 1)
        else:
            with pytest.raises(pb.errors.PullbackError):
                gradient(X)


OF_TWO = {
    "gamma": lambda a, b: math.gamma(a) * b,
    "fmod": math.fmod,
    "copysign": math.copysign,
    "ldexp": lambda a, b: math.ldexp(a, 3) * b,
}


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_other_names_or_of_two_numbers(name: str) -> None:
    function, point, step = OF_TWO[name], (2.3, -0.7), 1e-6
    wanted = (
        (function(2.3 + step, -0.7) - function(2.3 - step, -0.7)) / (2 * step),
        (function(2.3, -0.7 + step) - function(2.3, -0.7 - step)) / (2 * step),
    )
    slope = pb.value_and_grad(function, argnums=(0, 1))
    for compiled in (slope, pb.compile(slope)):
        value, slopes = compiled(*point)
        assert value == pytest.approx(function(*point), rel=1e-14)
        assert slopes == pytest.approx(wanted, rel=1e-8)


def test_where_math_raises_there_is_an_error() -> None:
    for function in (pb.grad(lambda x: math.gamma(x)), pb.compile(lambda x: math.gamma(x))):
        for x, error in ((-1.0, ValueError), (200.0, OverflowError)):
            with pytest.raises(error):
                function(x)
