"""The ends of a call in machine code: what matches the last one, and the arrays made for a kernel."""

import gc
import sys

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine import store
from pullback.codegen.machine.compile import compile_function
from pullback.codegen.machine.kernel_types import ArrayType, ScalarType
from pullback.codegen.machine.small_calls import caller, matcher, numbers_as_arrays
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


def test_arrays_like_the_first_ones_match() -> None:
    matches = matcher([np.ones((2, 3)), np.ones((), "int64")])
    assert matches(np.zeros((2, 3)), np.array(4)) is True
    assert matcher([])() is True


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (np.ones((2, 3)),),
        (np.ones((2, 3)), np.ones((), "int64"), np.ones(())),
        (np.ones((2, 4)), np.ones((), "int64")),
        (np.ones((3, 2)).T, np.ones((), "int64")),
        (np.ones((2, 3, 1)), np.ones((), "int64")),
        (np.ones(6), np.ones((), "int64")),
        (np.ones((2, 3), "float32"), np.ones((), "int64")),
        (np.ones((2, 3), ">f8"), np.ones((), "int64")),
        (readonly(np.ones((2, 3))), np.ones((), "int64")),
        (np.ones((2, 3)).view(Other), np.ones((), "int64")),
        (np.ones((2, 3)), 1),
        (np.ones((2, 3)), None),
    ],
    ids=str,
)
def test_others_do_not(arguments) -> None:
    assert matcher([np.ones((2, 3)), np.ones((), "int64")])(*arguments) is False


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
    x = np.ones(3)
    convert = numbers_as_arrays((np.ndarray, float, int), 2**53)
    before = sys.getrefcount(x)
    for number, integer in ((2.5, -3), (-0.0, 2**53), (float("inf"), -(2**53)), (1e-320, 0)):
        given, first, second = convert((x, number, integer))
        assert given is x and type(first) is np.ndarray and type(second) is np.ndarray
        assert (first.dtype, first.shape, second.dtype, second.shape) == (FLOAT64, (), INTEGER, ())
        assert repr(first.item()) == repr(number) and second.item() == integer
        assert first.flags.carray and first.flags.owndata and second.flags.carray
    assert np.isnan(convert((x, float("nan"), 1))[1])
    del given
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize(
    "arguments",
    [
        (1.0,), (1.0, 2, 3), (1, 2), (1.0, 2.0), (True, 2), (1.0, True), (np.float64(1.0), 2), (None, 2),
        (1.0, 2**53 + 1), (1.0, -(2**53) - 1), (1.0, 2**80), (),
    ],
)  # fmt: skip
def test_other_arguments_than_those_numbers(arguments) -> None:
    convert = numbers_as_arrays((float, int), 2**53)
    nothing = convert(arguments)
    assert nothing == () and convert((1.0, 2)) == (1.0, 2)


def test_dtypes_of_numbers_are_kept() -> None:
    convert = numbers_as_arrays((float, float), 2**53)
    count = sys.getrefcount(FLOAT64)
    for _ in range(1000):
        convert((1.0, 2.0))
        convert((1.0, 2))
    assert abs(sys.getrefcount(FLOAT64) - count) < 100
