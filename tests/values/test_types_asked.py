"""What `type(x)` answers under transforms without compiling: wherever the code is, as in the plain call."""

import copy
import functools
import math
import operator
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typed_library
from typed_library import Base, Layer, doubled

import pullback as pb

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

X = np.array([1.0, 2.0, 4.0])
ROWS = np.arange(1.0, 7.0).reshape(2, 3)


def kind(x: Any) -> float:
    return {np.ndarray: 2.0, float: 3.0, np.float64: 5.0}.get(type(x), 100.0)


class Model(Base):
    """A model whose methods ask their arguments' types; each is homogeneous in them."""

    table = {"kind": kind}

    def __init__(self, layers: Any = ()) -> None:
        self.layers = list(layers)
        self.act = kind
        self.count = 0
        self.seen: Any = None

    def helped(self, x: Any) -> Any:
        return np.sum(self.help(x))

    def help(self, x: Any) -> Any:
        return x * (2.0 if type(x) is np.ndarray else 100.0)

    def of_base(self, x: Any) -> Any:
        return np.sum(self.inherited(x))

    def overridden(self, x: Any) -> Any:
        return super().overridden(x) * (3.0 if type(x[0]) is np.float64 else 100.0)

    def by_super(self, x: Any) -> Any:
        return np.sum(self.overridden(x))

    @property
    def scale(self) -> Any:
        return 2.0 if type(self.seen) is np.ndarray else 100.0

    def by_property(self, x: Any) -> Any:
        self.seen = x
        try:
            return np.sum(x) * self.scale
        finally:
            self.seen = None

    @staticmethod
    def static(x: Any) -> Any:
        return x * (2.0 if type(x) is np.ndarray else 100.0)

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return cls.static(x) * (1.0 if type(x) is np.ndarray else 100.0)

    @doubled
    def decorated(self: Any) -> Any:
        return np.sum(self)

    def __call__(self, x: Any) -> Any:
        return np.sum(self.help(x))

    def __matmul__(self, x: Any) -> Any:
        return np.sum(self.help(x))

    def in_attribute(self, x: Any) -> Any:
        return np.sum(x) * self.act(x) * self.table["kind"](x)

    def through_layers(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return np.sum(x)

    def by_name(self, x: Any) -> Any:
        return np.sum(getattr(self, "he" + "lp")(x))

    def counted(self, x: Any) -> Any:
        self.count += 1
        return np.sum(self.help(x))

    class Nested:
        def scaled(self, x: Any) -> Any:
            return np.sum(x) * kind(x)

    def nested(self, x: Any) -> Any:
        return Model.Nested().scaled(x)


@dataclass
class Held:
    function: Callable[..., Any]

    def __call__(self, x: Any) -> Any:
        return np.sum(x) * self.function(x)


class Slotted:
    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


MODEL = Model()
DEEP = Model([Layer(Layer()), Layer()])
FUNCTIONS = {"kind": kind, "all": [kind]}
SPACE = SimpleNamespace(layer=Layer())
SLOTTED = Slotted(kind)
CACHED = functools.lru_cache(maxsize=None)(lambda flag: kind)
DYNAMIC: dict[str, Any] = {"np": np, "__name__": "made_by_exec"}
exec("def scaled(x): return np.sum(x) * (2.0 if type(x) is np.ndarray else 100.0)", DYNAMIC)


def enclosed(value: Any) -> Callable[..., Any]:
    return lambda x: value(x)


def local_class(x: Any) -> Any:
    class Local:
        def scaled(self, x: Any) -> Any:
            return np.sum(x) * (2.0 if type(x) is np.ndarray else 100.0)

    return Local().scaled(x)


def local_metaclass(x: Any) -> Any:
    class Meta(type):
        def __call__(cls, *arguments: Any) -> Any:
            return type.__call__(cls, *arguments)

    class Made(metaclass=Meta):
        def __init__(self, x: Any) -> None:
            self.factor = 2.0 if type(x) is np.ndarray and type(Meta) is type else 100.0

    def kept(one: type[Any]) -> type | None:
        return one

    assert issubclass(Meta, type) and type(Made) is Meta and kept(Made) is Made and "type" in str(type)
    return np.sum(x) * Made(x).factor * type("Other", (Made,), {})(x).factor


def imported_here(x: Any) -> Any:
    from typed_library import Base as Found

    return np.sum(Found().inherited(x))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "a method that a method calls": MODEL.helped,
    "a method that a function calls": lambda x: MODEL.helped(x),
    "a method of an object in a closure": enclosed(MODEL.helped),
    "an object in a closure": enclosed(MODEL),
    "an object that is called": MODEL,
    "an object that is called, by partial": functools.partial(MODEL),
    "an operator of the user's": lambda x: MODEL @ x,
    "an inherited method": MODEL.of_base,
    "super": MODEL.by_super,
    "a property": MODEL.by_property,
    "a static method": lambda x: np.sum(Model.static(x)),
    "a class method": lambda x: np.sum(MODEL.of_class(x)),
    "a decorated function": lambda x: Model.decorated(x),
    "a function in an attribute": MODEL.in_attribute,
    "objects in a list of an object": DEEP.through_layers,
    "a method whose name is computed": MODEL.by_name,
    "a nested class": MODEL.nested,
    "a local class": local_class,
    "a local metaclass": local_metaclass,
    "a dataclass with a function": Held(kind),
    "an object with slots": lambda x: np.sum(x) * SLOTTED.function(x),
    "a function in a dict": lambda x: np.sum(x) * FUNCTIONS["kind"](x) * FUNCTIONS["all"][0](x),
    "an object in a namespace": lambda x: np.sum(SPACE.layer(x)),
    "a function with a cache": lambda x: np.sum(x) * CACHED(True)(x),
    "a function of exec": DYNAMIC["scaled"],
    "a module": lambda x: np.sum(typed_library.Layer()(x)),
    "a module that is imported when it runs": imported_here,
    "a key of sorted": lambda x: np.sum(x) * len(sorted([x], key=kind)) * max(map(kind, [x, x[0]])),
    "a type in isinstance": lambda x: np.sum(x) * (2.0 if isinstance(x, type(X)) else 100.0),
    "a type of another": lambda x: np.sum(x) * (2.0 if isinstance(X, type(x)) else 100.0),
    "a union of types": lambda x: np.sum(x) * (2.0 if isinstance(x, type(x) | type(None)) else 100.0),
    "a type that is called": lambda x: np.sum(x * type(X[0])(2.0)) * len(type(x)(3)),
    "__class__": lambda x: np.sum(x) * (2.0 if x.__class__ is np.ndarray else 100.0),
    "type of an element": lambda x: np.sum(x) * kind(x[1]) * kind(np.sum(x) / np.sum(x)),
    "type as a value": lambda x: np.sum(x) * kind(x) * len(set(map(type, [x, x]))),
    "a name of type": lambda x, ask=type: np.sum(x) * (2.0 if ask(x) is np.ndarray else 100.0),
}  # fmt: skip


def of_grad(function: Callable[..., Any]) -> float:
    return float(pb.grad(function)(X) @ X)  # of a function that is homogeneous


def of_vmap(function: Callable[..., Any]) -> float:
    return float(np.sum(pb.vmap(function)(ROWS)))


TRANSFORMS: dict[str, tuple[Callable[..., float], Callable[..., float]]] = {
    "grad": (of_grad, lambda f: f(X)),
    "value_and_grad": (lambda f: pb.value_and_grad(f)(X)[0], lambda f: f(X)),
    "jacobian": (lambda f: float(pb.jacobian(f)(X) @ X), lambda f: f(X)),
    "a transform in a function": (
        lambda f: pb.value_and_grad(lambda x: pb.value_and_grad(f)(x)[0])(X)[0], lambda f: f(X)
    ),
    "vjp": (lambda f: pb.vjp(f, X)[0], lambda f: f(X)),
    "jvp": (lambda f: pb.jvp(f, (X,), (X,))[1], lambda f: f(X)),
    "vmap": (of_vmap, lambda f: sum(map(f, ROWS))),
    "map": (lambda f: np.sum(pb.map(f, ROWS)), lambda f: sum(map(f, ROWS))),
    "scan": (lambda f: pb.scan(lambda c, r: (c + f(r), None), 0.0, ROWS)[0], lambda f: sum(map(f, ROWS))),
    "while_loop": (
        lambda f: np.sum(pb.while_loop(lambda x: np.sum(x) < 100, lambda x: x * 0 + f(x), X)),
        lambda f: 3 * f(X) if f(X) * 3 > 100 else 3 * f(np.full(3, f(X))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_type_answers_as_in_the_plain_call(name: str, transform: str) -> None:
    transformed, plain = TRANSFORMS[transform]
    expected = plain(PROGRAMS[name])
    assert np.isclose(transformed(PROGRAMS[name]), expected, rtol=1e-12)


def test_an_object_among_the_arguments() -> None:
    function = lambda x, models: models["one"].helped(x) + models["more"][0](x)  # noqa: E731
    models = {"one": MODEL, "more": (Held(kind),)}
    assert pb.value_and_grad(function)(X, models)[0] == function(X, models)
    assert pb.value_and_grad(lambda x, one: one.through_layers(x))(X, one=DEEP)[0] == DEEP.through_layers(X)


def test_the_object_is_the_users() -> None:
    model = Model()
    found: list[Any] = []

    def function(x: Any) -> Any:
        found.append((model, hash(model), type(model), pickle.dumps(model.layers), copy.copy(model)))
        return model.counted(x)

    pb.grad(function)(X)
    assert model.count == 1
    assert found[0][0] is model and found[0][1] == hash(model) and found[0][2] is Model


def test_nothing_is_left_in_the_module() -> None:
    def failing(x: Any) -> Any:
        raise ValueError(str(type(x)))

    with pytest.raises(ValueError, match="ndarray"):
        pb.grad(failing)(X)
    assert "type" not in globals() and "type" not in vars(typed_library)


def test_a_variable_of_that_name_is_the_users() -> None:
    names: dict[str, Any] = {"type": lambda x: 7.0, "__name__": "with_a_type"}
    exec("def f(x): return x.sum() * type(x)", names)
    assert pb.value_and_grad(names["f"])(X)[0] == 49.0
    assert names["type"](X) == 7.0


def test_several_threads_ask() -> None:
    inside, outside = threading.Event(), threading.Event()

    def waiting(x: Any) -> Any:
        inside.set()
        assert outside.wait(10)
        return np.sum(x) * kind(x)

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(pb.value_and_grad(waiting)(X)[0]))
    thread.start()
    assert inside.wait(10)
    assert pb.value_and_grad(MODEL.helped)(X)[0] == 14.0  # and ends before the other
    assert type(X) is np.ndarray and type(Model) is type
    outside.set()
    thread.join()
    assert found == [14.0]
    assert "type" not in globals()


def test_a_compiled_function_inside_serves_both() -> None:
    compiled = pb.compile(lambda x: np.sum(x) * kind(x))
    assert compiled(X) == 14.0
    assert pb.value_and_grad(lambda x: compiled(X) + compiled(x))(X)[0] == 28.0
    assert compiled(X) == 14.0
    assert compiled.cache_info().traces == 2  # with a gradient, and without


class Filling:
    """Methods that fill arrays, and functions of numbers that an object holds."""

    def __init__(self) -> None:
        self.exp = math.exp
        self.maker = np.zeros
        self.functions = {"sin": math.sin, "sum": math.fsum, "add": operator.add}

    def fill(self, x: Any) -> Any:
        y = np.zeros(3)
        for place in range(3):
            y[place] = self.square(x[place])
        return y

    def square(self, number: Any) -> Any:
        return math.pow(number, 2) + math.sin(number)

    @property
    def empty(self) -> Any:
        return np.zeros(3)

    def by_property(self, x: Any) -> Any:
        y = self.empty
        y[:] = x * x
        return y.sum()

    def by_attribute(self, x: Any) -> Any:
        y = self.maker(3)
        y[:] = x * x
        return y.sum()

    def total(self, x: Any) -> Any:
        return self.fill(x).sum()

    def held(self, x: Any) -> Any:
        return self.exp(x[0]) * self.functions["sin"](x[1]) * self.functions["sum"]([x[2], x[0]])


FILLING: dict[str, Callable[..., Any]] = {
    "a method that fills": Filling().total,
    "a method that a function calls": lambda x: Filling().total(x),
    "an array of a property": Filling().by_property,
    "np.zeros in an attribute": Filling().by_attribute,
    "functions of math in attributes": Filling().held,
}


@pytest.mark.parametrize("transform", [pb.grad, lambda f: pb.compile(pb.grad(f)), pb.vmap])
@pytest.mark.parametrize("name", FILLING)
def test_methods_that_fill_arrays_are_right_or_raise(name: str, transform: Callable[..., Any]) -> None:
    function, step = FILLING[name], 1e-6
    expected: Any = [(function(X + one) - function(X - one)) / (2 * step) for one in np.eye(3) * step]
    if transform is pb.vmap:
        expected = list(map(function, ROWS))
    try:
        found = transform(function)(ROWS if transform is pb.vmap else X)
    except pb.errors.GradientError as error:
        assert "test_types_asked.py:" in str(error) and "stop_gradient" in str(error)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pb.compile
def compiled_and_asking(x: Any) -> Any:
    return np.sum(x * x) if hasattr(x, "shape") and type(x) is np.ndarray else x


def test_a_compiled_function_asks_inside_of_one_that_is_not() -> None:
    def twice(x: Any) -> Any:
        return compiled_and_asking(x) * (2.0 if hasattr(x, "ndim") else 100.0)

    for _ in range(2):
        assert compiled_and_asking(X) == 21.0
        np.testing.assert_array_equal(pb.grad(twice)(X), 4 * X)
    assert compiled_and_asking.cache_info().traces <= 2


def test_an_array_may_have_the_name_of_a_question() -> None:
    variables: dict[str, Any] = {"np": np, "type": np.array([1.0, 2.0, 4.0]), "hasattr": np.ones(3)}
    exec("def weighed(x):\n    return np.sum(x * type * hasattr)", variables)
    weighed = variables["weighed"]
    for gradient in (pb.grad(weighed), pb.compile(pb.grad(weighed)), pb.grad(pb.compile(weighed))):
        np.testing.assert_array_equal(gradient(X), variables["type"])
