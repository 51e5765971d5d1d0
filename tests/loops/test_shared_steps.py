"""Loops over steps in each of which threads share the work on whole arrays."""

import linecache
import multiprocessing
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from extent import machine_code, some_of
from random_steps import draw_steps

import pullback as pb
from pullback.tracer.errors import DimensionError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = pb.get_num_threads()
    pb.set_num_threads(2)
    yield
    pb.set_num_threads(before)


def spread(x: Any, rate: Any = 0.2) -> Any:
    for _ in range(12):
        x = x + rate * (np.roll(x, 1, 0) + np.roll(x, -1, 0) - 2.0 * x)
    return x


def conjugate_gradients(b: Any) -> Any:
    """Of a symmetric matrix that is a stencil: three nests in a step, of which two add up."""

    def product(p: Any) -> Any:
        return 2.1 * p - np.roll(p, 1, 0) - np.roll(p, -1, 0)

    x, r, p = np.zeros_like(b), b, b
    before = np.sum(r * r)
    for _ in range(12):
        image = product(p)
        length = before / np.sum(p * image)
        x, r = x + length * p, r - length * image
        now = np.sum(r * r)
        p, before = r + now / before * p, now
    return x


def test_threads_share_a_step_where_that_pays() -> None:
    large, small = np.ones((256, 256)), np.ones((16, 16))
    assert pb.compile(spread).forward_source(large).count("in parts_of(n, threads, 4):") == 1
    assert "loop over 256, shared between threads" in pb.compile(spread).explain(large)
    assert pb.compile(conjugate_gradients).forward_source(large).count("in parts_of(") == 3
    for function, x in ((pb.compile(spread), small), (pb.compile(spread, parallel=False), large)):
        assert "parts_of" not in function.source(x)


def test_the_number_of_threads_changes_no_element() -> None:
    x = RNG.standard_normal((37, 11))
    plain = pb.grad(lambda x: np.sum(spread(x) ** 2))
    value, slope = pb.compile(spread, parallel=True), pb.compile(plain, parallel=True)
    for number in (1, 2, 5):
        pb.set_num_threads(number)
        np.testing.assert_array_equal(value(x), pb.compile(spread, parallel=False)(x))
        np.testing.assert_allclose(slope(x), plain(x), rtol=1e-10, atol=1e-12)


def test_totals_of_parts_are_combined_in_each_step() -> None:
    b = RNG.standard_normal((40, 9))
    compiled = pb.compile(conjugate_gradients, parallel=True)
    found = [compiled(b) for _ in range(5)]
    np.testing.assert_allclose(found[0], conjugate_gradients(b), rtol=1e-9)
    for one in found:
        np.testing.assert_array_equal(one, found[0])


def moved(x: Any, order: Any) -> Any:
    for _ in range(12):
        x = 0.5 * x[order] + np.sin(x)
    return x


def test_a_position_out_of_range_ends_all_parts() -> None:
    x, order = RNG.standard_normal((40, 5)), RNG.integers(0, 40, 40)
    compiled = pb.compile(moved, parallel=True)
    np.testing.assert_allclose(compiled(x, order), moved(x, order), rtol=1e-12)
    with pytest.raises(DimensionError, match="out of range of"):
        compiled(x, np.where(order == order[7], 40, order))
    np.testing.assert_allclose(compiled(x, order), moved(x, order), rtol=1e-12)


def test_python_may_run_between_what_threads_share() -> None:
    """A transform, whose rows they share as well."""

    def smoothed(x: Any, kernel: Any) -> Any:
        for _ in range(12):
            x = np.real(np.fft.ifft2(kernel * np.fft.fft2(np.sin(x))))
        return x

    x, kernel = RNG.standard_normal((64, 64)), RNG.uniform(0.0, 1.0, (64, 64))
    found = pb.compile(smoothed, parallel=True)(x, kernel)
    np.testing.assert_allclose(found, smoothed(x, kernel), rtol=1e-9, atol=1e-12)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    x = RNG.standard_normal((40, 5))
    compiled, context = pb.compile(spread, parallel=True), multiprocessing.get_context("fork")
    wanted = compiled(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        with context.Pool(1) as pool:
            found = pool.apply_async(_run, (compiled, x)).get(timeout=120)
    np.testing.assert_array_equal(found, wanted)


def _run(function: Any, x: np.ndarray) -> np.ndarray:
    result: np.ndarray = function(x)
    return result


@pytest.mark.drawn(4)
@pytest.mark.parametrize("seed", some_of(range(300), "random steps", 6))
def test_drawn_steps_are_those_of_plain_python(seed: int) -> None:
    text, name = draw_steps(seed), f"<steps {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    program = namespace["program"]
    rng = np.random.default_rng(seed)
    u, v, w, order = *rng.standard_normal((2, 10, 6)), rng.standard_normal((6, 6)), rng.integers(0, 10, 10)

    def both(u: Any, v: Any, w: Any) -> Any:
        return pb.value_and_grad(lambda *given: program(*given, order)[0], argnums=(0, 1, 2))(u, v, w)

    with machine_code(f"steps {seed}"):
        found = pb.compile(program, parallel=True)(u, v, w, order)
        value, slopes = pb.compile(both, parallel=True)(u, v, w)
    for one, other in zip(found, program(u, v, w, order), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    wanted, plain = both(u, v, w)
    for one, other in zip((value, *slopes), (wanted, *plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
