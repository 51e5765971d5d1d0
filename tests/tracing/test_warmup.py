"""Compiling ahead, and the promise that nothing is compiled."""

import time
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import ArraySpec, TensorSpec
from pullback.errors import ArgumentError, EagerOnlyError, RecompileError


def test_a_call_of_a_warm_function_traces_and_compiles_nothing() -> None:
    @pb.compile
    def loss(weights, x):
        return ((weights["w"] * x) ** 2).sum()

    loss.warmup({"w": ArraySpec((3,))}, ArraySpec((5, 3), "float32"))
    before = loss.cache_info()
    assert before.traces == 1 and before.compilations + before.disk_hits + before.source_hits > 0
    with pb.fail_on_recompile():
        found = loss({"w": np.ones(3)}, np.ones((5, 3), "float32"))
    assert found == 15.0 and loss.cache_info().traces == 1


def test_of_tensors_that_require_grad_the_backward_pass_is_warm_too() -> None:
    @pb.compile
    def loss(x):
        return (x**3).sum()

    loss.warmup(TensorSpec((4,), pb.float64, requires_grad=True))
    x = pb.ones(4, dtype=pb.float64, requires_grad=True)
    with pb.fail_on_recompile():
        loss(x).backward()
    np.testing.assert_array_equal(x.grad, np.full(4, 3.0))


def test_signatures_are_compiled_with_the_decorator() -> None:
    @pb.compile(signatures=[(ArraySpec((3,)), 2.0), (ArraySpec((4, 2)), 2.0)])
    def scaled(x, factor):
        return x * factor

    with pb.fail_on_recompile():
        np.testing.assert_array_equal(scaled(np.ones(3), 3.0), np.full(3, 3.0))
        np.testing.assert_array_equal(scaled(np.ones((4, 2)), 5.0), np.full((4, 2), 5.0))


def test_gradients_and_methods_are_warmed_up() -> None:
    class Model:
        scale = 2.0

        @pb.compile
        def loss(self, x):
            return (self.scale * x**2).sum()

    model = Model()
    slope = pb.grad(model.loss)
    slope.warmup(ArraySpec((3,)))
    model.loss.warmup(ArraySpec((3,)))
    with pb.fail_on_recompile():
        np.testing.assert_array_equal(slope(np.ones(3)), np.full(3, 4.0))
        assert model.loss(np.ones(3)) == 6.0


def test_complex_arguments_are_warmed_up() -> None:
    power = pb.compile(lambda z: (z * z.conj()).real.sum())
    power.warmup(ArraySpec((3,), "complex128"))
    with pb.fail_on_recompile():
        assert power(np.full(3, 1.0 + 1.0j)) == 6.0


def test_specs_do_not_say_which_way_values_go() -> None:
    @pb.compile
    def absolute(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(ArgumentError, match=r"depends on values, at .*test_warmup.py.*Give arrays"):
        absolute.warmup(ArraySpec((3,)))


def test_arrays_say_it_for_their_way_alone() -> None:
    @pb.compile
    def absolute(x):
        return x if x.sum() > 0 else -x

    absolute.warmup(np.ones(3))
    with pb.fail_on_recompile():
        absolute(np.ones(3))
        with pytest.raises(RecompileError, match="the way that values have it take, is new"):
            absolute(-np.ones(3))
    np.testing.assert_array_equal(absolute(-np.ones(3)), np.ones(3))


def test_what_cannot_be_compiled_is_not_warmed_up() -> None:
    @pb.compile
    def timed(x):
        return x * time.perf_counter()

    with pytest.raises(EagerOnlyError, match="perf_counter"):
        timed.warmup(ArraySpec((3,)))


def test_what_is_new_is_named() -> None:
    @pb.compile
    def total(x, flag=True):
        return x.sum() if flag else x

    with pb.fail_on_recompile(), pytest.raises(RecompileError, match="not compiled for anything yet"):
        total(np.ones(3))
    total(np.ones((3, 2)))
    with pb.fail_on_recompile(), pytest.raises(RecompileError) as raised:
        total(np.ones((3, 4)))
    assert "x: float64[3, 4], flag: True, which is new; known are: x: float64[3, 2]" in str(raised.value)
    assert total(np.ones((3, 4))) == 12.0  # as if the refused call had not been


def test_what_an_argument_says_of_itself_is_asked_when_it_is_named() -> None:
    asked = []

    class Scale:
        def __repr__(self):
            asked.append(self)
            return "double"

    @pb.compile
    def scaled(x, by):
        return x * 2.0

    scaled(np.ones(3), Scale())
    assert not asked
    with pb.fail_on_recompile(), pytest.raises(RecompileError, match="known are: x: float64.3., by: double"):
        scaled(np.ones(4), Scale())


def test_a_backward_pass_that_is_new_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    tripled = pb.compile(lambda x: (x**2 * 3.0).sin().sum())
    x = pb.ones(5, dtype=pb.float64, requires_grad=True)
    value = tripled(x)
    with pb.fail_on_recompile(), pytest.raises(RecompileError, match="no machine code yet"):
        value.backward()


def test_it_decorates_functions_and_nests() -> None:
    doubled = pb.compile(lambda x: x * 2.0)

    @pb.fail_on_recompile()
    def step(x):
        return doubled(x)

    with pytest.raises(RecompileError):
        step(np.ones(7))
    doubled(np.ones(7))
    with pb.fail_on_recompile():
        step(np.ones(7))
        with pytest.raises(RecompileError):
            doubled(np.ones(8))
    doubled(np.ones(8))
