"""`record` makes of a class what `dataclasses.dataclass` makes of it."""

import copy
import dataclasses
import inspect
import itertools
import pickle
from dataclasses import FrozenInstanceError, dataclass, field
from types import FunctionType

import pytest

from pullback.tracer.records import record, replaced

OPTIONS = [
    dict(zip(("frozen", "eq", "repr", "slots"), chosen, strict=True))
    for chosen in itertools.product((False, True), repeat=4)
]


def pair_of(decorator, options):
    """A class and one that inherits from it, with fields of all kinds."""

    class Base:
        first: int
        second: list = field(default_factory=list)
        third: str = "three"
        hidden: int = field(default=0, repr=False, compare=False)

    Base.__qualname__ = "Base"
    base = decorator(**options)(Base)

    class Derived(base):
        fourth: float = 4.0
        made: dict = field(default_factory=dict, init=False)
        named: str = field(kw_only=True)

        def __post_init__(self):
            object.__setattr__(self, "fourth", self.fourth * 2)

    Derived.__qualname__ = "Derived"
    return base, decorator(**options)(Derived)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_what_dataclass_makes(options):
    for ours, theirs in zip(pair_of(record, options), pair_of(dataclass, options), strict=True):
        named = {} if theirs.__qualname__ == "Base" else {"named": "n"}
        one, other = ours(1, third="3", **named), theirs(1, third="3", **named)
        assert ours.__match_args__ == theirs.__match_args__
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert [str(f) for f in dataclasses.fields(one)] == [str(f) for f in dataclasses.fields(other)]
        if options["repr"]:
            assert repr(one) == repr(other)
        assert (one == ours(1, third="3", hidden=7, **named)) is options["eq"]
        assert one != ours(2, third="3", **named) and one != other
        assert dataclasses.replace(one, first=9).first == 9
        assert one.second is not ours(1, **named).second
        with pytest.raises(TypeError, match="missing 1 required"):
            ours(**named)
        if options["slots"]:
            assert not hasattr(one, "__dict__") or not hasattr(other, "__slots__")
        assert vars(copy.copy(one)) == vars(one) if hasattr(one, "__dict__") else copy.copy(one).first == 1


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_frozen_ones_refuse_and_equal_ones_hash_alike(options):
    class Point:
        x: int
        y: int = 0

    ours = record(**options)(Point)
    point = ours(1)
    if options["frozen"]:
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
            point.x = 2
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
            del point.x
    else:
        point.x = 1
    if options["eq"] and not options["frozen"]:
        with pytest.raises(TypeError, match="unhashable"):
            hash(point)
    else:
        assert (hash(point) == hash(ours(1))) is options["eq"]


def test_own_methods_stay():
    @record(frozen=True)
    class Own:
        x: int

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 3

    assert repr(Own(1)) == "own" and Own(1) == 5 and hash(Own(1)) == 3


@record(frozen=True, slots=True)
class Kept:
    x: int
    parts: tuple


def test_frozen_ones_with_slots_are_pickled():
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))


def test_one_that_holds_itself_is_printed():
    @record
    class Holder:
        inner: object = None

    holder = Holder()
    holder.inner = [holder]
    assert repr(holder).endswith("Holder(inner=[...])")


def test_init_is_compiled_when_somebody_asks_for_it():
    @record(frozen=True)
    class Late:
        x: int
        y: int = 2

    assert not isinstance(vars(Late)["__init__"], FunctionType)
    assert str(inspect.signature(Late)) == "(x, y=2)"
    assert Late(1).y == 2 and isinstance(vars(Late)["__init__"], FunctionType)


@pytest.mark.parametrize("slots", [False, True])
def test_a_record_with_other_values_is_one_of_its_fields_alone(slots):
    class Pair:
        first: int
        second: list = field(default_factory=list)

    made = record(frozen=True, slots=slots)(Pair)(1, [2])
    other = replaced(made, first=3)
    assert other == dataclasses.replace(made, first=3) and other.second is made.second and made.first == 1
    if not slots:
        vars(made)["found"] = "by a cached property"
        assert vars(replaced(made, second=[])) == {"first": 1, "second": []}
    with pytest.raises(TypeError):
        replaced(made, third=3)
