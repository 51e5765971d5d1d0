"""What members of classes read: methods, properties, operators, of classes with bases and of copies."""

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TraceError

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.arange(1.0, 4.0)


class Weighted:
    """A class whose every kind of member reads an array or a number of the module."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale * FACTOR["of all"]

    @property
    def weights(self) -> Any:
        return WEIGHTS * 2

    def __neg__(self) -> Any:
        return WEIGHTS * 3

    @staticmethod
    def shifted(x: Any) -> Any:
        return x + WEIGHTS * 2

    @classmethod
    def made(cls, scale: float) -> "Weighted":
        return cls(scale)

    def applied(self, x: Any, factor: float = 1.0) -> Any:
        return x * WEIGHTS * self.scale * factor

    @functools.cached_property
    def table(self) -> Any:
        table = np.zeros(3)
        table[:2] = WEIGHTS[1:]
        return table

    @functools.singledispatchmethod
    def chosen(self, x: Any) -> Any:
        return x * WEIGHTS

    halved = functools.partialmethod(applied, factor=0.5)


@functools.singledispatch
def chosen(x: Any) -> Any:
    return x * WEIGHTS


@chosen.register(list)
def _(x: Any) -> Any:
    return len(x) * WEIGHTS * FACTOR["of all"]


class Derived(Weighted):
    def applied(self, x: Any, factor: float = 1.0) -> Any:
        return super().applied(x) + FACTOR["of all"]


class Rows(list):  # type: ignore[type-arg]
    def total(self) -> Any:
        return sum(self) * WEIGHTS * 2


class Table(dict):  # type: ignore[type-arg]
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self["made"] = self.get("made", 0.0) + 1.0

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) * WEIGHTS * 2


class Named(typing.NamedTuple):
    scale: float

    def applied(self, x: Any) -> Any:
        return x * (WEIGHTS + self.scale)


class Generic(typing.Generic[typing.TypeVar("Kind")]):  # type: ignore[misc]
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def applied(self) -> Any:
        return self.scale * WEIGHTS


WEIGHTS, FACTOR = np.ones(3), {"of all": 1.0}


DERIVED, ROWS, NAMED, TABLE = Derived(), Rows([1.0, 2.0]), Named(2.0), Table(a=3.0)


OF_CLASSES: dict[str, Callable[[Any], Any]] = {
    "property": lambda x: x * DERIVED.weights,
    "operator": lambda x: x * (-DERIVED),
    "static": lambda x: DERIVED.shifted(x) + Derived.shifted(x),
    "class method": lambda x: Derived.made(2.0).applied(x),
    "super": lambda x: DERIVED.applied(x),
    "made": lambda x: Derived(2.0).applied(x) * Weighted(3.0).scale,
    "cached": lambda x: x * Derived().table,
    "dispatched": lambda x: chosen(x) * chosen([1.0]) * DERIVED.chosen(x),
    "partial": lambda x: DERIVED.halved(x),
    "list": lambda x: x * ROWS.total() + Rows([3.0]).total(),
    "table": lambda x: x * TABLE["a"] + Table(b=2.0)["b"] + Table(b=2.0)["made"],
    "named tuple": lambda x: NAMED.applied(x) + NAMED._replace(scale=1.0).applied(x),
    "asked": lambda x: (
        x * WEIGHTS * (isinstance(DERIVED, Weighted) + 2 * (type(DERIVED) is Derived))
        + DERIVED.applied(x) * (type(Derived()) is Derived) * issubclass(Derived, Weighted)
    ),
    "key": lambda x: DERIVED.applied(x) * {Derived: 2.0, Weighted: 3.0}[type(DERIVED)],
}  # fmt: skip


@pytest.mark.parametrize("name", OF_CLASSES)
def test_what_members_of_classes_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = OF_CLASSES[name]
    compiled, differentiated = pb.compile(function), pb.value_and_grad(lambda x: function(x).sum())
    monkeypatch.setitem(globals(), "WEIGHTS", np.ones(3))
    monkeypatch.setitem(FACTOR, "of all", 1.0)
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), function(X))
        np.testing.assert_allclose(compiled(X), function(X))
        if name != "cached":  # a method that makes an array, which is for compiled functions
            np.testing.assert_allclose(differentiated(X)[0], function(X).sum())
        WEIGHTS[1] = 5.0
    FACTOR["of all"] = 3.0
    np.testing.assert_allclose(compiled(X), function(X))
    monkeypatch.setitem(globals(), "WEIGHTS", X)
    np.testing.assert_allclose(compiled(X), function(X))


@dataclasses.dataclass(frozen=True)
class Scaled:
    scale: Any

    def applied(self, x: Any) -> Any:
        return x * self.scale * WEIGHTS

    def __add__(self, other: Any) -> Any:
        return Scaled(self.scale + other.scale * WEIGHTS)


@pytest.mark.parametrize("make", [Scaled, Named, lambda scale: {"all": [Scaled(scale)]}])
def test_methods_of_arguments(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(one: Any, x: Any) -> Any:
        one = one["all"][0] if isinstance(one, dict) else one
        return one.applied(x) * isinstance(one, (Scaled, Named))

    compiled = pb.compile(function)
    monkeypatch.setitem(globals(), "WEIGHTS", np.ones(3))
    for _ in range(2):
        np.testing.assert_allclose(compiled(make(2.0), X), function(make(2.0), X))
        np.testing.assert_allclose(compiled(make(X), X), function(make(X), X))
        WEIGHTS[1] = 5.0
    monkeypatch.setitem(globals(), "WEIGHTS", X)
    np.testing.assert_allclose(compiled(make(2.0), X), function(make(2.0), X))
    total = pb.compile(lambda one: one + one)(Scaled(X))
    assert type(total) is Scaled
    np.testing.assert_allclose(total.scale, X + X * X)


def test_a_class_with_a_parameter_is_made_anew_in_each_trace() -> None:
    one = types.SimpleNamespace(scale=2.0)
    compiled = pb.compile(lambda x: (x * one.scale * WEIGHTS).sum() + Generic[int](3.0).applied()[0])
    for one.scale in (2.0, 1.0):
        assert compiled(X) == pytest.approx((X * one.scale * WEIGHTS).sum() + 3.0)


class Activation(enum.Enum):
    LINEAR = 1
    SHIFTED = 2

    def applied(self, x: Any) -> Any:
        return x * self.value

    def weighted(self, x: Any) -> Any:
        return x * WEIGHTS


def test_methods_of_enumerations() -> None:
    compiled = pb.compile(lambda x: Activation.SHIFTED.applied(x) + len(Activation))
    np.testing.assert_allclose(compiled(X), 2 * X + 2)
    with pytest.raises(TraceError, match="enumeration Activation read arrays"):
        pb.compile(lambda x: Activation.LINEAR.weighted(x))(X)


def test_copies_of_classes_stay_in_the_trace() -> None:
    made: list[type] = []

    class Registered:
        def __init_subclass__(cls) -> None:
            made.append(cls)

    class Option(Registered):
        def applied(self, x: Any) -> Any:
            return x * WEIGHTS

    option = Option()
    np.testing.assert_allclose(pb.compile(lambda x: option.applied(x) * len(made))(X), X)
    assert made == [Option]


def test_a_named_tuple_with_methods_is_returned_as_such() -> None:
    found = pb.compile(lambda x: Named(NAMED.applied(x).sum()))(X)
    assert type(found) is Named


class Patched:
    def scaled(self, x: Any) -> Any:
        return x * self.factor

    @property
    def factor(self) -> float:
        return 2.0


def test_methods_and_properties_that_are_replaced_in_their_class(monkeypatch: pytest.MonkeyPatch) -> None:
    patched = Patched()
    compiled = pb.compile(lambda x: patched.scaled(x))
    np.testing.assert_allclose(compiled(X), 2 * X)
    monkeypatch.setattr(Patched, "factor", property(lambda self: 3.0))
    np.testing.assert_allclose(compiled(X), 3 * X)
    monkeypatch.setattr(Patched, "scaled", lambda self, x: x + 1)
    np.testing.assert_allclose(compiled(X), X + 1)


class Tagged:
    kinds: typing.ClassVar = {"a": 2.0, "b": 3.0}

    def __init__(self, **options: Any) -> None:
        self.calls = 0
        self.__dict__.update(options)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x * self.kinds[self.tag] * self.calls  # type: ignore[attr-defined]


def test_objects_that_are_filled_by_their_dict() -> None:
    def total(x: Any) -> Any:
        return sum(Tagged(tag=tag)(x).sum() for tag in Tagged.kinds)

    compiled = pb.compile(total)
    for _ in range(2):
        assert compiled(X) == total(X)
    assert compiled.cache_info().traces == 1


@pytest.mark.parametrize(
    "read",
    [lambda kind: vars(kind)["kinds"]["a"], lambda kind: kind.__dict__["kinds"]["a"]],
    ids=["vars", "dict"],
)
def test_what_is_read_of_the_dict_of_a_class(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pb.compile(lambda x: x.sum() * read(Tagged))
    assert compiled(X) == 12.0
    monkeypatch.setitem(Tagged.kinds, "a", 5.0)
    assert compiled(X) == 30.0


def test_the_order_of_attributes_that_are_read_by_no_name() -> None:
    reached = types.SimpleNamespace(b=np.ones(2), a=np.full(2, 5.0))

    def weighted(x: Any) -> Any:
        return x * sum(place * value.sum() for place, value in enumerate(vars(reached).values(), 1))

    compiled = pb.compile(weighted)
    assert compiled(1.0) == 22.0
    vars(reached)["b"] = vars(reached).pop("b")
    assert compiled(1.0) == 14.0
