"""`copy.copy`, `copy.deepcopy` and pickle in a function that is differentiated or traced."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from uncompiled import counts

import pullback as pb
from pullback.errors import GradientError, TraceError

X = np.array([1.0, 2.0])


class Holder:
    def __init__(self, q: Any) -> None:
        self.q = q


@dataclasses.dataclass
class State:
    q: Any
    rest: Any = None


WEIGHTS = Holder(np.array([2.0, 3.0]))


def object_and_its_copy(x: Any) -> Any:
    o = Holder(x)
    old = copy.deepcopy(o)
    o.q = o.q * 2
    return (old.q * o.q).sum()


def object_written_in_place(x: Any) -> Any:
    o = Holder(x * 1)
    old, shown = copy.deepcopy(o), copy.copy(o)
    o.q *= 2
    return (old.q * shown.q).sum()


def reached(x: Any) -> Any:
    old, other = copy.deepcopy(WEIGHTS), copy.copy(WEIGHTS)
    other.q = other.q * 2
    return (old.q * other.q * WEIGHTS.q * x).sum()


def lists(x: Any) -> Any:
    y = x * 1
    both = [y, y]
    shown, apart = copy.copy(both), copy.deepcopy(both)
    y[0] = 7.0
    assert apart[0] is apart[1]
    return (shown[0] * apart[1]).sum()


def dataclass(x: Any) -> Any:
    state = State(x * 1, {"x": x})
    parts = dataclasses.asdict(state)
    state.q[0] = 5.0
    return (parts["q"] * state.q * parts["rest"]["x"]).sum()


def copied(how: Callable[[Any], Any]) -> list[Callable[[Any], Any]]:
    def of_a_result(x: Any) -> Any:
        y = x * 1
        z = how(y)
        y[0] = 5.0
        return (y * z).sum()

    def of_the_argument(x: Any) -> Any:
        z = how(x)
        z[0] = 5.0
        return (x * z).sum()

    return [of_a_result, of_the_argument]


COPIES = [copy.copy, copy.deepcopy, np.copy, lambda x: x.copy(), lambda x: x.__copy__()]
PROGRAMS = [object_and_its_copy, object_written_in_place, reached, lists, dataclass]
PROGRAMS += [program for how in COPIES for program in copied(how)]


def slope(program: Callable[[Any], Any]) -> np.ndarray:
    steps = 1e-6 * np.eye(2)
    return np.array([(program(X + step) - program(X - step)) / 2e-6 for step in steps])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_copies_are_values_as_numpys(program: Callable[[Any], Any]) -> None:
    expected = program(X.copy())
    assert pb.compile(program)(X.copy()) == expected
    for both in (pb.value_and_grad(program), pb.compile(pb.value_and_grad(program))):
        value, found = both(X.copy())
        assert value == expected
        np.testing.assert_allclose(found, slope(program), rtol=1e-7)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies_of_tensors_share_memory_as_pytorchs(how: Callable[[Any], Any]) -> None:
    program = copied(how)[0]
    x = pb.tensor([1.0, 2.0])
    shares = how is copy.copy
    expected = 29.0 if shares else 9.0
    assert program(x).item() == pb.compile(program)(x).item() == expected
    for both in (pb.value_and_grad(program), pb.compile(pb.value_and_grad(program))):
        value, found = both(x)
        assert value.item() == expected
        assert found.tolist() == ([0.0, 4.0] if shares else [5.0, 4.0])


def test_pickle_keeps_no_gradient() -> None:
    def program(x: Any) -> Any:
        return (pickle.loads(pickle.dumps(x)) * x).sum()

    for gradient in (pb.grad(program), pb.compile(pb.grad(program))):
        with pytest.raises(GradientError, match="pickle keeps no gradient"):
            gradient(X)
    with pytest.raises(TraceError, match="pickle"):
        pb.compile(program)(X)
    stopped = pb.grad(lambda x: (pickle.loads(pickle.dumps(pb.stop_gradient(x))) * x).sum())
    np.testing.assert_array_equal(stopped(X), X)


def test_on_the_tape_a_copy_is_a_leaf_of_its_own() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    assert copy.deepcopy(x) is not x and copy.deepcopy(x).grad_fn is None
    with pytest.raises(TraceError, match="deepcopy"):  # its gradient would belong to nobody
        pb.compile(lambda x: (copy.deepcopy(x) * x).sum())(x)
    for how in (copy.copy, copy.deepcopy):
        with pytest.raises(GradientError, match="leaf|leaves"):
            how(x * 2)


def test_an_uncompiled_run_copies_as_numpy_does() -> None:
    def program(x: Any) -> Any:
        doubled = pb.compile(lambda z: counts((z > 9).astype(int))[0] * 0 + 2 * z)(
            x
        )  # which is not compiled
        copies = copy.copy(doubled), copy.deepcopy(doubled), pickle.loads(pickle.dumps(doubled))
        for one in copies:
            one[0] = 9.0
        return doubled, *copies

    with pytest.warns(UserWarning, match="runs uncompiled"):
        doubled, *copies = pb.compile(program)(X)
    np.testing.assert_array_equal(doubled, 2 * X)
    for one in copies:
        assert type(one) is np.ndarray
        np.testing.assert_array_equal(one, [9.0, *2 * X[1:]])
