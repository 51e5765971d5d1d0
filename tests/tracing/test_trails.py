"""What is remembered of the code that a function reaches: when it holds for later calls, and when not."""

import builtins
import gc
import re
import weakref
from collections.abc import Callable
from contextvars import Context
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.captures import versions
from pullback.runtime.captures.reached import Reached
from pullback.runtime.captures.same_calls import SameCall
from pullback.runtime.captures.standing_names import Standing, Variables, standing
from pullback.runtime.captures.trails import Trail
from pullback.runtime.captures.versions import Versions
from pullback.runtime.tracing import explored_programs

PROGRAM = """
import math
from functools import wraps

import numpy as np

unread = None
SCALE = 2.0
LINKS = [abs, 1.0]


def kept(function):
    @wraps(function)
    def call(*args):
        return function(*args)

    return call


def scaled(x):
    return SCALE * x


class Part:
    def __init__(self, power):
        self.power = power
        self.link = None

    @kept
    def value(self, x):
        return scaled(x) ** self.power


SHARED = Part(1.0)


class Model:
    def __init__(self, power):
        self.part = Part(power)
        self.parts = {"first": Part(1.0)}

    def loss(self, x, *rest):
        total = self.part.value(x) + self.parts["first"].value(x)
        for link in LINKS[:1]:
            total = link(total)
        return (self.part.link or SHARED.link or abs)(total).sum()


def objective(model, factor):
    return lambda x: factor * model.loss(x)
"""
X = np.array([1.0, 2.0])


@pytest.fixture
def module() -> ModuleType:
    made = ModuleType("reached_program")
    exec(compile(PROGRAM, "reached_program.py", "exec"), vars(made))
    return made


def roots_of(module: Any, power: float = 2.0, factor: Any = 1.0) -> tuple[Any, ...]:
    return module.objective(module.Model(power), factor), X


def test_it_holds_for_other_objects_of_the_same_code(module: Any) -> None:
    roots = roots_of(module)
    trail = Trail(roots, Reached(roots))
    assert trail.fits(roots) and trail.fits(roots_of(module, 3.0, 5.0)) and trail.fits((roots[0], X[:1]))
    module.SCALE, module.LINKS[1] = 3.0, 7
    assert trail.fits(roots)
    module.Part.unread = other
    assert trail.fits(roots)


def other(x: Any, *rest: Any) -> Any:
    return x


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "a function of the module": lambda module, model: setattr(module, "scaled", other),
    "a number of it": lambda module, model: setattr(module, "SCALE", other),
    "what a function of the module runs": lambda module, model: setattr(
        module.scaled, "__code__", (lambda x: x).__code__
    ),
    "an element of a list of it": lambda module, model: module.LINKS.__setitem__(0, other),
    "one more element": lambda module, model: module.LINKS.append(other),
    "a method": lambda module, model: setattr(module.Part, "value", other),
    "a new special method": lambda module, model: setattr(module.Part, "__getattr__", other),
    "an attribute of the object": lambda module, model: setattr(model.part, "link", other),
    "an attribute in the place of a method": lambda module, model: setattr(model, "loss", other),
    "the class of an object": lambda module, model: setattr(model, "part", model),
    "an element of the object": lambda module, model: model.parts.__setitem__("first", other),
    "what a decorator has wrapped": lambda module, model: setattr(
        module.Part.value.__closure__[0], "cell_contents", other
    ),
    "another name in the place of one": lambda module, model: (
        vars(module).pop("unread"), vars(module).update(abs=other)
    ),
    "another name before the last": lambda module, model: (
        vars(module).pop("unread"), last := vars(module).popitem(),
        vars(module).update(abs=other, **dict([last])),
    ),
    "the attributes of an object of the module": lambda module, model: setattr(
        module.SHARED, "__dict__", {"link": other}
    ),
    "a default": lambda module, model: setattr(module.scaled, "__defaults__", (other,)),
    "an attribute of a function": lambda module, model: setattr(module.scaled, "__wrapped__", other),
}


@pytest.mark.parametrize("is_numbered", [True, False])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_it_ends_where_code_could_be_another(
    change: Any, is_numbered: bool, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_numbered:
        monkeypatch.setattr(versions, "_fields", lambda: None)
    model = module.Model(2.0)
    roots = (module.objective(model, 1.0), X)
    trail = Trail(roots, Reached(roots))
    assert trail.fits(roots)
    change(module, model)
    assert not trail.fits(roots)


def test_it_ends_with_one_more_attribute_of_a_function(module: Any) -> None:
    module.scaled.note = 1
    roots = roots_of(module)
    trail = Trail(roots, Reached(roots))
    module.scaled.note = 2
    assert trail.fits(roots)
    module.scaled.__wrapped__ = other
    assert not trail.fits(roots)


def test_it_ends_with_a_variable_of_another_kind(module: Any) -> None:
    roots = roots_of(module)
    trail = Trail(roots, Reached(roots))
    for factor in (np.sin, X, other, [X], {"a": other}):
        assert not trail.fits(roots_of(module, factor=factor))
    assert not trail.fits((partial(roots[0]), X)) and not trail.fits((roots[0], module.Model(2.0)))


def test_names_that_stand_in_for_a_while_are_no_change(module: Any) -> None:
    roots = roots_of(module)
    names = [Standing(vars(module), "hasattr", hasattr, other, other)]
    names.append(Standing(vars(module), "scaled", module.scaled, other, other))
    with standing(Variables(names)):
        trail = Trail(roots, Reached(roots))
    assert trail.fits(roots) and "hasattr" not in vars(module)
    with standing(Variables(names)):
        assert vars(module)["scaled"] is vars(module)["hasattr"] is other
        assert trail.fits(roots)
    module.Model.loss.__globals__["abs"] = builtins.abs
    assert not trail.fits(roots)


def test_where_a_dict_has_changed_that_alone_is_looked_at(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = roots_of(module)
    trail = Trail(roots, Reached(roots))
    if versions._fields() is not None:
        monkeypatch.setattr(Trail, "_objects", None)
    module.unread, module.SCALE, module.Part.unread = 1, 3.0, other
    assert trail.fits(roots) and trail.fits(roots)
    monkeypatch.undo()
    module.Part.__init__ = other
    assert not trail.fits(roots)


@pytest.mark.parametrize("most", [1 << 16, 1000])
def test_dicts_that_are_restored_are_as_they_were(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "MOST_RESTORED", most)
    dicts = [{"a": one} for one in range(1500)]
    parts = [Versions(dicts[:900]), Versions(dicts[600:])]
    states, whole = [one.read() for one in parts], Versions(dicts)
    state = whole.read()
    for _ in range(2):
        for one, former in zip(parts, states):
            for variables in one._objects[0]:
                variables["a"] += 1
            assert not one.are(former)
            if former is not None:
                one.note_restored(former)
                assert one.are(former) and (one.read() == former).all()
    if state is not None and most > 2000:
        assert whole.are(state) and (whole.read() == state).all()
    dicts[700]["a"] = None
    assert whole.changed(state) == (None if state is None else [*range(600), 700] if most == 1000 else [700])


def test_it_ends_where_what_is_held_moves_to_another_holder(module: Any) -> None:
    exec("FIRST, LAST = [scaled], [kept]\n\ndef held(x):\n    return FIRST, LAST", vars(module))
    trail = Trail((module.held,), Reached((module.held,)))
    assert trail.fits((module.held,))
    for former, later in ((module.LAST, module.FIRST), (module.FIRST, module.LAST)):
        later.append(former.pop())
        assert not trail.fits((module.held,))
        former.append(later.pop())
        assert trail.fits((module.held,))


def test_a_name_that_was_missing_may_stand_in_for_a_while(module: Any) -> None:
    roots = roots_of(module)
    trail = Trail(roots, Reached(roots))
    with standing(Variables([Standing(vars(module), "abs", abs, other, other)])):
        assert trail.fits(roots)
    vars(module)["abs"] = builtins.abs
    assert not trail.fits(roots)


def test_stand_ins_of_former_runs_are_no_change_and_what_a_run_changes_is_one(module: Any) -> None:
    roots = roots_of(module)
    trail, states = Trail(roots, Reached(roots)), Versions([vars(module)])
    names = [Standing(vars(module), "hasattr", hasattr, other, other)]
    names.append(Standing(vars(module), "scaled", module.scaled, other, other))
    variables, before, former = Variables(names), states.read(), dict(vars(module))
    assert before is not None
    for _ in range(3):
        with standing(variables):
            assert vars(module)["scaled"] is vars(module)["hasattr"] is other and not states.are(before)
        assert states.are(before) and trail.fits(roots) and vars(module) == former
    with standing(variables), standing(variables):
        pass
    first, second, elsewhere = standing(variables), standing(Variables(names)), Context()
    first.__enter__()
    elsewhere.run(second.__enter__)
    with standing(Variables(names)):  # which do so already, here
        first.__exit__()
        assert vars(module)["scaled"] is other
    elsewhere.run(second.__exit__)
    assert vars(module) == former and trail.fits(roots)
    for _ in range(2):
        with standing(variables):
            module.LINKS = [other]
        assert not states.are(before) and not trail.fits(roots)
        assert vars(module)["scaled"] is former["scaled"] and "hasattr" not in vars(module)


def test_objects_made_anew_get_their_stand_ins(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exec(ROOM, vars(module))
    walks = []

    def counting(roots: Any) -> Reached:
        walks.append(len(roots))
        return Reached(roots)

    monkeypatch.setattr(explored_programs, "Reached", counting)
    former: list[weakref.ref[Any]] = []
    for factor in (2.0, 3.0, 4.0):
        model = module.Filled(factor)
        np.testing.assert_allclose(pb.grad(lambda x, model=model: model.loss(x))(X), 2.0 * factor**2 * X)
        assert type(model.room) is np.ndarray
        former.append(weakref.ref(model))
    del model
    gc.collect()
    assert len(walks) == 1 and [one() is None for one in former[:2]] == [True, True]


ROOM = """
class Filled:
    def __init__(self, factor):
        self.factor = factor
        self.room = np.zeros(2)

    def loss(self, x):
        self.room[:] = self.factor * x
        return (self.room ** 2).sum()
"""


def test_a_model_made_anew_is_not_explored_again(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    walks = []

    def counting(roots: Any) -> Reached:
        walks.append(roots)
        return Reached(roots)

    monkeypatch.setattr(explored_programs, "Reached", counting)
    for power in (2.0, 3.0, 2.0):
        expected = 2.0**power * power * X ** (power - 1.0) + 2.0
        np.testing.assert_allclose(pb.grad(roots_of(module, power)[0])(X), expected)
        np.testing.assert_allclose(pb.grad(module.Model(power).loss)(X), expected)
    assert len(walks) == 2


FILLING = """
def direct(model):
    return lambda x: (model.part.power * scaled(x)).sum()


def filling(x):
    made = np.zeros(2)
    made[:] = 3.0 * x
    return made
"""


def test_a_function_that_fills_arrays_is_found_when_it_takes_the_place_of_another(module: Any) -> None:
    exec(FILLING, vars(module))
    model = module.Model(2.0)
    for power in (2.0, 3.0):
        np.testing.assert_allclose(pb.grad(module.direct(module.Model(power)))(X), [2.0 * power] * 2)
    function = module.direct(model)
    module.scaled = module.filling
    for _ in range(2):
        np.testing.assert_allclose(pb.grad(function)(X), [6.0, 6.0])


COMPUTING = """
class Chosen:
    how = "scaling"

    def loss(self, x):
        return getattr(self, f"by_{self.how}")(x).sum()

    def by_scaling(self, x):
        return scaled(x) if ELSEWHERE else x


class Elsewhere:
    def apart(self, x):
        return far(x)


def far(x):
    return x


ELSEWHERE = Elsewhere()
KEPT = np.array([1.0, 2.0])


def called_by_name(x):
    products = x * KEPT
    getattr(helpers, "".join(("fi", "ll")))(KEPT)
    return products.sum()
"""


def test_names_that_code_computes_are_those_of_what_it_has_at_hand(module: Any) -> None:
    exec(COMPUTING, vars(module))
    reached = {one.__name__ for one in Reached((module.Chosen().loss, X)).functions}
    assert {"by_scaling", "scaled"} <= reached and reached.isdisjoint(("apart", "far"))


def test_code_that_is_called_by_a_computed_name_may_write_into_what_was_saved(module: Any) -> None:
    exec(COMPUTING, vars(module))
    module.helpers = ModuleType("helpers_of_the_program")
    module.helpers.fill = lambda array: array.fill(7.0)
    np.testing.assert_array_equal(pb.grad(module.called_by_name)(X), [1.0, 2.0])


def test_a_class_may_have_something_else_in_the_place_of_its_modules_name(module: Any) -> None:
    meta = type("Meta", (type,), {"__module__": property(lambda self: "proxies")})
    module.proxy = meta("Proxy", (), {})
    exec("def proxied(x):\n    return proxy and scaled(x).sum()", vars(module))
    np.testing.assert_array_equal(pb.grad(module.proxied)(X), [2.0, 2.0])
    np.testing.assert_array_equal(pb.compile(pb.grad(module.proxied))(X), [2.0, 2.0])


def test_modules_whose_code_asks_for_no_types_are_left_alone(module: Any) -> None:
    found, variables = [], vars(module)
    module.LINKS[0] = lambda total: found.append("type" in variables) or abs(total)
    pb.grad(module.objective(module.Model(2.0), 1.0))(X)
    assert found == [False]


def test_functions_that_hold_nothing_are_told_by_code_and_module(module: Any) -> None:
    roots = (module.scaled,)
    trail = Trail(roots, Reached(roots))
    assert trail.fits(roots)
    module.scaled.__defaults__ = (abs,)
    assert not trail.fits(roots)


def test_the_call_of_an_optimiser_is_not_walked_again(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[Any] = []
    walk_from = Trail.walk_from
    monkeypatch.setattr(Trail, "walk_from", lambda self, roots: walks.append(roots) or walk_from(self, roots))
    model = module.Model(2.0)
    gradient = pb.grad(model.loss)
    for turn in range(6):
        assert gradient(X + turn)[1] == 2.0 * (2.0 * 2.0 * (X[1] + turn)) + 2.0
    assert len(walks) == (1 if versions._fields() else 5)
    model.part.power = 1.0
    assert gradient(X)[1] == 4.0
    monkeypatch.setattr(module.Model, "loss", lambda self, x: x.sum())
    assert pb.grad(model.loss)(X)[1] == 1.0


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_call_is_another_where_code_could_be_another(change: Any, module: Any) -> None:
    model = module.Model(2.0)
    model.listed = [model.part, {"last": model.part}]
    roots = (model.loss, X, {"scale": 2.0}, model.listed)
    trail = Trail(roots, Reached(roots))
    call = SameCall(roots, trail)
    is_told = versions._fields() is not None
    assert call.holds_for((model.loss, X[:1], {"scale": 3.0}, model.listed)) == is_told
    assert not call.holds_for((model.loss, X[:1], {"scale": X}, model.listed))  # an array for a number
    assert not call.holds_for((module.Model(2.0).loss, *roots[1:]))
    model.listed[1]["last"] = other
    assert not call.holds_for(roots)
    call = SameCall(roots, trail)
    model.listed.append(other)
    assert not call.holds_for(roots)
    call = SameCall(roots, trail)
    assert call.holds_for(roots) == call.holds_for(roots) == is_told
    change(module, model)
    assert not call.holds_for(roots)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_call_is_another_where_a_function_has_another_rule(module: Any, is_replaced: bool) -> None:
    exec("def ruled(x):\n    return squared(x)", vars(module))
    module.squared = pb.primitive(lambda x: x * x)
    module.squared.defvjp(lambda y, x: lambda g: 2.0 * g * x)
    roots = (module.ruled, X)
    trail = Trail(roots, Reached(roots))
    call = SameCall(roots, trail)
    is_told = versions._fields() is not None
    assert trail.holds() and call.holds_for(roots) == call.holds_for(roots) == is_told
    if is_replaced:
        module.squared.function = abs
    else:
        module.squared.defvjp(lambda y, x: lambda g: 3.0 * g * x)
    assert not trail.holds() and not call.holds_for(roots)


def test_what_is_remembered_is_no_guard(module: Any) -> None:
    model = module.Model(2.0)
    gradient = pb.grad(model.loss)
    function = pb.compile(lambda x: gradient(x) * 2.0)
    for turn in range(3):
        gradient(X)  # which remembers
        np.testing.assert_array_equal(function(X + turn), 2.0 * gradient(X + turn))
    assert function.cache_info().traces == 1


class Proxy:
    """An object that shows the attributes of another one, as modules that are imported late do."""

    def __init__(self, of: Any) -> None:
        object.__setattr__(self, "of", of)

    def __getattribute__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "of"), name)


def test_an_object_that_shows_another_is_followed_by_what_it_holds() -> None:
    pattern = Proxy(re.compile("a+"))
    square = pb.grad(lambda x: x * x if pattern.match("aa") else x)
    assert [square(3.0), square(4.0)] == [6.0, 8.0]
