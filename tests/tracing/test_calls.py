"""The ends of a call in machine code: which row serves it, and the arrays made for a kernel."""

import ctypes
import gc
import re
import sys
import threading
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine import store
from pullback.codegen.machine.compile import compile_function
from pullback.codegen.machine.kernel_types import ArrayType, ScalarType
from pullback.codegen.machine.small_calls import Argument, Row, Surroundings, caller, dispatcher
from pullback.tracer.spec import Spec

FLOAT64, INT64, INTEGER = np.dtype("float64"), np.dtype("int64"), np.asarray(0).dtype
SOURCE = """
def shifted(x, out, scratch, number):
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            raise ValueError("negative")
        scratch[i] = x[i]
        out[i] = scratch[i] + number
"""


class Other(np.ndarray):
    pass


def readonly(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


class Triple(NamedTuple):
    first: Any
    second: Any
    third: Any


class Carrier:
    """As a Tensor: an array, perhaps a view, and whether a gradient is asked of it."""

    __slots__ = ("asked", "value", "view")

    def __init__(self, value: Any, asked: bool = False, view: Any = None) -> None:
        self.value, self.asked, self.view = value, asked, view


DEFAULT = np.dtype("float32")
UNKNOWN, LOST = object(), object()
RECORDING = ContextVar("recording", default=True)
MATRIX, SCALAR = Argument.array(FLOAT64, (2, 3)), Argument.array(INT64, ())


def refresh(carrier: Carrier) -> None:
    if carrier.view is LOST:
        raise LookupError("lost")
    carrier.value = carrier.view


def table(*rows: tuple[tuple[Argument, ...], Any], default: np.dtype = DEFAULT) -> Any:
    """The function of arguments that gives what the row that fits is called with."""
    slots = (vars(Carrier)[name] for name in ("value", "view", "asked"))
    around = Surroundings(UNKNOWN, list, refresh, RECORDING, *slots, 2**53)
    run = dispatcher([Row(default, row, given, ctypes.c_int64()) for row, given in rows], around)
    return lambda *arguments: run(arguments, DEFAULT)


def given(leaves: Any) -> Any:
    return leaves


def test_arrays_of_the_same_kind_are_handed_on() -> None:
    find = table(((MATRIX, SCALAR), given))
    matrix, scalar = np.zeros((2, 3)), np.array(4)
    found = find(matrix, scalar)
    assert type(found) is tuple and found[0] is matrix and found[1] is scalar
    assert table(((), given))() == ()
    assert table()() is UNKNOWN
    assert table(((), given), default=FLOAT64)() is UNKNOWN


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (np.ones((2, 3)),),
        (np.ones((2, 3)), np.ones((), "int64"), np.ones(())),
        (np.ones((2, 4)), np.ones((), "int64")),
        (np.ones((2, 3, 1)), np.ones((), "int64")),
        (np.ones(6), np.ones((), "int64")),
        (np.ones((2, 3), "float32"), np.ones((), "int64")),
        (np.ones((2, 3), ">f8"), np.ones((), "int64")),
        (np.ones((2, 3)).view(Other), np.ones((), "int64")),
        (np.ones((2, 3)), 1),
        (np.ones((2, 3)), None),
    ],
    ids=str,
)
def test_others_are_not(arguments) -> None:
    find = table(((MATRIX, SCALAR), given))
    assert find(*arguments) is UNKNOWN


def test_arrays_of_another_layout_are_conformed() -> None:
    find = table(((MATRIX, SCALAR), given))
    for matrix in (np.ones((3, 2)).T, readonly(np.ones((2, 3)))):
        found = find(matrix, np.array(4))
        assert type(found) is list and found[0] is matrix


def test_the_first_row_that_fits_runs() -> None:
    rows = [((Argument.array(FLOAT64, (size,)),), lambda leaves, size=size: size) for size in (3, 4, 5, 4)]
    find = table(*rows, ((MATRIX,), lambda leaves: UNKNOWN))
    assert [find(np.ones(size)) for size in (5, 4, 3)] == [5, 4, 3]
    assert find(np.ones(6)) is UNKNOWN and find(np.ones((2, 3))) is UNKNOWN


def test_calls_are_counted_unless_they_are_not_served() -> None:
    calls, answer = ctypes.c_int64(), [1, UNKNOWN, 2]
    around = Surroundings(UNKNOWN, list, refresh, RECORDING, *map(vars(Carrier).get, Carrier.__slots__), 1)
    run = dispatcher([Row(DEFAULT, (), lambda leaves: answer.pop(), calls)], around)
    assert [run((), DEFAULT) for _ in range(3)] == [2, UNKNOWN, 1] and calls.value == 2
    with pytest.raises(IndexError):
        run((), DEFAULT)
    assert calls.value == 3


def test_what_is_static_is_the_same_object_and_not_handed_on() -> None:
    wanted, x = object(), np.ones((2, 3))
    find = table(((Argument.same(None), MATRIX, Argument.same(wanted)), given))
    (found,) = find(None, x, wanted)
    assert found is x
    assert find(None, x, object()) is UNKNOWN and find(x, x, wanted) is UNKNOWN


def test_tuples_are_taken_apart() -> None:
    of = Argument.tuple_of
    nested = (MATRIX, of(3), Argument.same(None), of(0), of(2), Argument.number(float), SCALAR, MATRIX)
    find = table((nested, given), ((MATRIX,), lambda leaves: "alone"))
    x, one = np.ones((2, 3)), np.array(4)
    before = sys.getrefcount(x)
    found = find(x, (None, (), (2.5, one)), x)
    assert [type(leaf) for leaf in found] == [np.ndarray] * 4
    assert found[0] is x and found[1] == 2.5 and found[2] is one and found[3] is x
    assert find(x) == "alone" and type(find(x, (None, (), (2.5, one)), np.ones((3, 2)).T)) is list
    others = [
        (x, (None, (), (2.5,)), one, x), (x, (None, (), (2.5, one, x)),), (x, [None, (), (2.5, one)], x),
        (x, None, (), 2.5, one, x), (x, (None, (None,), (2.5, one)), x), (x, ((), None, (2.5, one)), x),
        (x, Triple(None, (), (2.5, one)), x), (x, (None, (), (2.5, one)), x, x), ((),) * 20, ((x,),),
    ]  # fmt: skip
    assert all(find(*arguments) is UNKNOWN for arguments in others)
    del found, others
    assert sys.getrefcount(x) == before


def test_nested_arguments_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    @pb.compile
    def total(pair: Any, more: Any) -> Any:
        (x, mode), (y, (z,)) = pair, more
        return x.sum() + y * z if mode is None else x.sum()

    x, y = np.arange(3.0), np.arange(2.0)
    wanted = [total((x, None), (y, (2.0,))), total((x, True), (y, (2.0,)))]
    monkeypatch.setattr(type(total._dispatcher), "call", None)
    np.testing.assert_array_equal(total((x, None), (y, (2.0,))), wanted[0])
    assert total((x, True), (y, (2.0,))) == wanted[1] == 3.0
    monkeypatch.undo()
    assert isinstance(total([x, None], (y, (2.0,))), np.ndarray) and total.cache_info().traces == 3


def test_tensors_count_with_whether_a_gradient_is_asked() -> None:
    x = np.ones((2, 3))
    plain, asking = (Argument.tensor(Carrier, asked, FLOAT64, (2, 3)) for asked in (False, True))
    find = table(((plain,), lambda leaves: "plain"), ((asking,), lambda leaves: "asking"))
    assert find(Carrier(x)) == "plain" and find(Carrier(x, asked=True)) == "asking"
    token = RECORDING.set(False)
    assert find(Carrier(x, asked=True)) == "plain"
    RECORDING.reset(token)
    assert find(Carrier(x.T)) is UNKNOWN and find(Carrier(1.0)) is UNKNOWN and find(x) is UNKNOWN
    unset = Carrier(x)
    del unset.value
    assert find(unset) is UNKNOWN


def test_views_are_looked_at_first() -> None:
    find = table(((Argument.tensor(Carrier, False, FLOAT64, (3, 2)),), given))
    view = Carrier(np.ones((2, 3)), view=np.ones((2, 3)).T)
    assert find(view)[0] is view and view.value is view.view
    with pytest.raises(LookupError, match="lost"):
        find(Carrier(np.ones((3, 2)), view=LOST))


def shifted():
    array = ArrayType(FLOAT64, 1, "C")
    module = store.load_module(store.write_module(SOURCE, "shifted"))
    kernel = compile_function(module, "shifted", (array, array, array, ScalarType(INT64)))
    return caller(kernel, [Spec((3,), FLOAT64), Spec((3,), FLOAT64)], (12345,), 1)


def test_a_kernel_fills_new_arrays_of_which_some_are_handed_out() -> None:
    call, x = shifted(), np.arange(3.0)
    for arrays in ((x,), [x]):
        (result,) = call(arrays)
        assert sys.getrefcount(result) == 2
        np.testing.assert_array_equal(result, x + 12345)
        assert result.flags.owndata and result.flags.writeable
    assert call((x,))[0] is not call((x,))[0]
    del arrays
    assert sys.getrefcount(x) == 2


@pytest.mark.drawn(6)
def test_results_of_another_shape_take_no_longer_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.codegen.program._staged_runner", None)
    x = np.arange(6.0).reshape(2, 3)
    found = pb.compile(lambda x: (2.0 * x).reshape(-1))(x)
    np.testing.assert_array_equal(found, 2.0 * x.ravel())
    assert found.flags.owndata


def test_errors_leave_nothing_behind() -> None:
    call, wrong = shifted(), np.array([1.0, -1.0, 0.0])
    before = sys.getrefcount(FLOAT64)
    for _ in range(50):
        with pytest.raises(ValueError, match="negative"):
            call((wrong,))
        with pytest.raises(TypeError, match=r"shifted\(\) takes 4 arguments, and got 3"):
            call(())
        with pytest.raises(TypeError):
            call(3)
    gc.collect()
    assert sys.getrefcount(FLOAT64) <= before + 2
    assert sys.getrefcount(wrong) == 2


def test_calls_of_several_kinds_take_turns() -> None:
    f = pb.compile(lambda x, y: x * 2.0 + y)
    kinds = [np.ones(3), np.ones(4), np.ones(3, "float32"), np.ones((3, 2))[:, 0], readonly(np.ones(3))]
    for _ in range(3):
        for x in kinds:
            np.testing.assert_array_equal(f(x, x), 3.0 * x)
            assert f(x, x).dtype == x.dtype
    assert f.cache_info().traces == 3
    with pytest.raises(TypeError):
        f(kinds[0])


def test_arrays_take_the_places_of_numbers() -> None:
    x = np.ones((2, 3))
    convert = table(((MATRIX, Argument.number(float), Argument.number(int)), given))
    before = sys.getrefcount(x)
    for number, integer in ((2.5, -3), (-0.0, 2**53), (float("inf"), -(2**53)), (1e-320, 0)):
        given_array, first, second = convert(x, number, integer)
        assert given_array is x and type(first) is np.ndarray and type(second) is np.ndarray
        assert (first.dtype, first.shape, second.dtype, second.shape) == (FLOAT64, (), INTEGER, ())
        assert repr(first.item()) == repr(number) and second.item() == integer
        assert first.flags.carray and first.flags.owndata and second.flags.carray
    assert np.isnan(convert(x, float("nan"), 1)[1])
    del given_array
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize(
    "arguments",
    [
        (1.0,), (1.0, 2, 3), (1, 2), (1.0, 2.0), (True, 2), (1.0, True), (np.float64(1.0), 2), (None, 2),
        (1.0, 2**53 + 1), (1.0, -(2**53) - 1), (1.0, 2**80), (),
    ],
)  # fmt: skip
def test_other_arguments_than_those_numbers(arguments) -> None:
    convert = table(((Argument.number(float), Argument.number(int)), given))
    assert convert(*arguments) is UNKNOWN and convert(1.0, 2) == (1.0, 2)


def test_references_are_kept() -> None:
    x, turned, carried = np.ones((2, 3)), np.ones((3, 2)).T, Carrier(np.ones((2, 3)))
    numbers = (Argument.number(float), MATRIX, Argument.tensor(Carrier, False, FLOAT64, (2, 3)))

    def failing(leaves: Any) -> None:
        raise ValueError

    find, fail = table((numbers, given)), table((numbers, failing))
    counted = (FLOAT64, x, turned, carried, None, True, UNKNOWN, find)
    gc.collect()  # what other tests have left refers to None as well
    before = [sys.getrefcount(one) for one in counted]
    for _ in range(1000):
        find(1.0, x, carried)
        find(1.0, turned, carried)
        find(1.0, x, None)
        with pytest.raises(ValueError):
            fail(1.0, x, carried)
    gc.collect()
    more = [sys.getrefcount(one) - count for one, count in zip(counted, before)]
    assert all(abs(count) < 100 for count in more), more


def test_a_call_of_any_form_finds_the_one_program() -> None:
    def scaled(x: np.ndarray, y: np.ndarray, mode: Any = None) -> np.ndarray:
        return x * 2.0 + y

    f, x = pb.compile(scaled), np.arange(3.0)
    calls = [lambda: f(x, x), lambda: f(x, y=x), lambda: f(y=x, x=x, mode=None), lambda: f(x, x, None)]
    for _ in range(3):
        for call in calls:
            np.testing.assert_array_equal(call(), 3.0 * x)
    assert f.cache_info().traces == 1 and f.cache_info().hits == 3 * len(calls) - 1


def test_methods_of_several_instances_take_turns() -> None:
    class Scaling:
        def __init__(self, factor: float) -> None:
            self.factor = np.array(factor)

        @pb.compile
        def apply(self, x: np.ndarray) -> np.ndarray:
            return x * self.factor

    x, scalings = np.arange(3.0), [Scaling(2.0), Scaling(3.0)]
    for factor in (2.0, 5.0):
        scalings[0].factor = np.array(factor)
        for _ in range(3):
            np.testing.assert_array_equal(scalings[0].apply(x), factor * x)
            np.testing.assert_array_equal(scalings[1].apply(x), 3.0 * x)


@pytest.mark.drawn(6)
def test_threads_share_the_table() -> None:
    f = pb.compile(lambda x, y: x * 2.0 + y)
    wrong: list[Any] = []

    def work(first: int) -> None:
        for number in range(200):
            x = np.full((first + number) % 7 + 1, float(number))
            tensor = pb.from_numpy(x)
            found = (f(x, x), f(x, float(number)), f(tensor, x).numpy(), f(x, y=number))
            wrong.extend(one for one in found if not np.array_equal(one, 3.0 * x))
            if number % 90 == 89:
                f.cache_clear()

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.drawn(4)
def test_a_position_outside_is_told_with_its_line_and_the_size() -> None:
    @pb.compile
    def chosen(x: np.ndarray, i: np.ndarray) -> Any:
        y = x * 2.0
        y[i] += 1.0
        return y[i].sum() + x[0]

    for positions, told in (([1, 7], "Position 7 of dimension 0 with size 4"), ([-9], "A position below -4")):
        for call in (chosen, pb.grad(chosen)):
            with pytest.raises(pb.errors.DimensionError, match=told) as caught:
                call(np.ones(4), np.array(positions))
            assert re.search(r"at test_calls.py:\d+  .*y\[i\]", str(caught.value))
    assert chosen(np.ones(4), np.array([1, 3])) == 7.0
