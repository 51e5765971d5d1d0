"""Functions that are made again find the program of the first: counted, not timed."""

import functools
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pullback as pb
from pullback.codegen import drawn_once
from pullback.codegen.pipeline import statistics
from pullback.runtime.dispatch import shared
from pullback.runtime.dispatch.compiled import CacheInfo
from pullback.runtime.tracing.signature import Description

X = np.arange(1.0, 4.0)
FOUND = CacheInfo(hits=1, misses=0, traces=0, compilations=0, source_hits=0, disk_hits=0, size=1)


def counted() -> tuple[int, int, int]:
    return statistics.compilations, statistics.source_hits, statistics.disk_hits


def objective(data: np.ndarray, power: int = 2) -> Callable[[Any], Any]:
    def residuals(p: Any) -> Any:
        return data - p

    def loss(p: Any) -> Any:
        return (residuals(p) ** power).sum()

    return loss


@pb.primitive
def limited_exp(x: Any) -> Any:
    return np.exp(np.clip(x, -np.inf, 700.0))


pb.defvjp(limited_exp, lambda y, x: lambda g: g * y)


def objective_with_rule(data: np.ndarray) -> Callable[[Any], Any]:
    return lambda p: (data * limited_exp(p)).sum()


def objective_with_arrays_of_its_own(data: np.ndarray) -> Callable[[Any], Any]:
    return lambda p: (np.append(data, [7.0]) * p[[0, 1, 2, 0]]).sum()


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "compile": pb.compile,
    "grad of compiled": lambda f: pb.grad(pb.compile(f)),
    "compiled grad": lambda f: pb.compile(pb.grad(f)),
    "value and grad": lambda f: pb.value_and_grad(pb.compile(f)),
    "lambda": lambda f: pb.compile(lambda p: f(p)),
    "partial": lambda f: pb.compile(functools.partial(lambda scale, p: scale * f(p), X[0])),
    "hessian": lambda f: pb.hessian(pb.compile(f)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_second_fit_traces_and_compiles_nothing(name: str) -> None:
    TRANSFORMS[name](objective(X))(X * 2)
    for factor in (3.0, -1.0):
        data = X * factor
        before = counted()
        function = TRANSFORMS[name](objective(data))
        found = function(X)
        assert counted() == before and function.cache_info() == FOUND
        shared.shared_programs.clear()
        np.testing.assert_equal(found, TRANSFORMS[name](objective(data))(X))


@pytest.mark.parametrize("make", [objective_with_rule, objective_with_arrays_of_its_own])
def test_rules_and_arrays_that_a_trace_makes_are_shared(make: Any) -> None:
    pb.value_and_grad(pb.compile(make(X)))(X * 2)
    before = counted()
    value, gradient = pb.value_and_grad(pb.compile(make(X * 3)))(X)
    assert counted() == before
    expected = pb.value_and_grad(make(X * 3))(X)
    assert value == pytest.approx(expected[0])
    np.testing.assert_allclose(gradient, expected[1])


def test_what_a_solver_has_made_holds_no_array_when_it_is_done() -> None:
    gc.disable()  # so that nothing is found by chance
    try:
        for rate in (1.0, 2.0):
            function = pb.compile(
                lambda rate: solve_ivp(lambda t, y: rate * y, (0, 1), [0.5], "RK23", t_eval=[1.0]).y
            )
            np.testing.assert_allclose(function(rate), [[np.exp(rate) / 2]], rtol=1e-2)
    finally:
        gc.enable()
    assert function.cache_info() == FOUND


def test_paths_are_found_again() -> None:
    def fit(data: np.ndarray) -> Any:
        def loss(p: Any) -> Any:
            r = data - p
            if r.sum() > 0:
                return (r * r).sum()
            return abs(r).sum()

        return pb.value_and_grad(pb.compile(loss))

    first = fit(X)
    for p in (X * 2, X / 2, X * 2):  # the first path again, by the programs of both
        first(p)
    before = counted()
    second = fit(X * 10)
    assert second(X * 20)[0] == pytest.approx(60) and second(X * 9)[0] == pytest.approx(14)
    assert second.cache_info().traces == 0 and counted() == before
    third = fit(X)
    third(X * 2)
    assert third.cache_info().size == 2 and "r.sum() > 0" in third.explain(X * 2)


def test_tensors_have_gradients_of_their_own() -> None:
    def fit(weight: Any) -> Any:
        return pb.compile(lambda x: (weight * x).sum())

    weights = [pb.tensor(X * k, requires_grad=True) for k in (1.0, 2.0)]
    for weight in weights:
        x = pb.tensor(X, requires_grad=True)
        function = fit(weight)
        function(x).backward()
        np.testing.assert_allclose(weight.grad.numpy(), X)
        np.testing.assert_allclose(x.grad.numpy(), weight.detach().numpy())
    assert function.cache_info() == FOUND


def test_methods_of_another_object() -> None:
    pb.compile(Layer(X).loss)(X)
    function = pb.compile(Layer(X * 2).loss)
    assert function(X) == 28 and function.cache_info() == FOUND


class Layer:
    def __init__(self, weight: np.ndarray) -> None:
        self.weight = weight

    def loss(self, x: Any) -> Any:
        return (self.weight * x).sum()

    @pb.compile
    def apply(self, x: Any) -> Any:
        return self.weight * x


def test_a_compiled_method_of_another_object() -> None:
    Layer.apply.cache_clear()
    np.testing.assert_allclose(Layer(X).apply(X), X * X)
    np.testing.assert_allclose(Layer(X * 2).apply(X), 2 * X * X)
    assert Layer.apply.cache_info().traces == 1


class Mode:
    pass


FAST, SLOW = Mode(), Mode()


@pytest.mark.parametrize(
    "make",
    [
        lambda value: lambda x: x * value,  # another plain value
        lambda value: lambda x: x * np.full(int(value), 2.0).sum(),
        lambda value: functools.partial(lambda power, x: x**power, int(value)),
        lambda value: lambda x, scale=value: x * scale,
        lambda value: lambda x, *, scale=value: x * scale,
        lambda value: lambda x: x * (2.0 if (FAST if value == 1.0 else SLOW) is FAST else 3.0),
        lambda value: (lambda mode: lambda x: x * (2.0 if mode is FAST else 3.0))(
            FAST if value == 1.0 else SLOW
        ),
        lambda value: (lambda mode: lambda x: x * {FAST: 2.0, SLOW: 3.0}[mode])(
            FAST if value == 1.0 else SLOW
        ),
        lambda value: (lambda f: lambda x: f(x))(np.sin if value == 1.0 else np.cos),
        lambda value: (lambda f: lambda x: f(x))((lambda x: x + 1) if value == 1.0 else (lambda x: x * 2)),
        lambda value: (lambda row: lambda x: x * row[0])({1.0: 2.0, 2.0: 3.0}[value] * np.ones(int(value))),
        lambda value: (lambda rows: lambda x: x * sum(rows))({value, 7.0}),
        lambda value: (lambda a, b: lambda x: x * (2.0 if a is b else 3.0))(X, X if value == 1.0 else X * 2),
    ],
)
def test_what_differs_is_not_shared(make: Any) -> None:
    for value in (1.0, 2.0, 1.0):
        np.testing.assert_allclose(pb.compile(make(value))(X), make(value)(X))


def test_tables_are_shared_and_kept_by_nobody() -> None:
    pandas = pytest.importorskip("pandas")

    def fit(table: Any) -> Any:
        def loss(p: Any) -> Any:
            chosen = table[table["c"] > 0]  # a table of the trace's own
            return (table[["a", "b"]].to_numpy() @ p[:2]).sum() + (chosen["a"].to_numpy() * p[2]).sum()

        return pb.compile(loss)

    def made(scale: float) -> Any:
        return pandas.DataFrame({"a": X * scale, "b": X + 1, "c": [0, 1, 1], "d": ["x", "y", "z"]})

    def expected(scale: float) -> float:
        return float((X * scale).sum() * X[0] + (X + 1).sum() * X[1] + 5 * scale * X[2])

    table = made(2.0)
    assert fit(table)(X) == pytest.approx(expected(2.0))
    gone = weakref.ref(table)
    del table
    gc.collect()
    assert gone() is None
    again = made(2.0)
    function = fit(again)
    assert function(X) == pytest.approx(expected(2.0)) and function.cache_info() == FOUND
    again.loc[:, "a"] = X * 3.0
    assert function(X) == pytest.approx(expected(3.0)) and function.cache_info().traces == 0
    assert fit(made(4.0))(X) == pytest.approx(expected(4.0))
    again.loc[:, "a"] = X * -0.0
    signs = pb.compile(lambda x: x * np.copysign(1.0, again["a"].to_numpy()))
    assert (signs(X) < 0).all()
    again.loc[:, "a"] = X * 0.0
    assert (signs(X) > 0).all()


def test_views_that_a_library_holds_and_no_guard_compares_are_not_shared() -> None:
    library: dict[str, Any] = {"__name__": "scipy.held", "held": np.array([1.0, 2.0, 3.0, 4.0])}
    exec("def part(): return held[1:]", library)
    part, held = library["part"], library["held"]

    def fit() -> Any:
        return pb.compile(lambda x: x * part())

    np.testing.assert_allclose(fit()(X), X * held[1:])
    held *= 2
    np.testing.assert_allclose(fit()(X), X * held[1:])


def test_what_is_differentiated_is_not_shared() -> None:
    def made() -> Any:
        return pb.compile(lambda x, y: (x * x * y).sum())

    np.testing.assert_allclose(pb.grad(made())(X, X), 2 * X * X)
    np.testing.assert_allclose(pb.grad(made(), argnums=1)(X, X), X * X)
    np.testing.assert_allclose(pb.grad(made(), argnums=(0, 1))(X, X), (2 * X * X, X * X))


@pytest.mark.parametrize("values", [(FAST, SLOW), (Layer, Mode), (repr, ascii)])
def test_static_arguments_are_told_apart(values: Any) -> None:
    @pb.compile
    def chosen(x: Any, mode: Any) -> Any:
        return x * 2 if mode is values[0] else x * 3

    np.testing.assert_allclose([chosen(X, mode)[0] for mode in (*values, *values)], [2, 3, 2, 3])


def test_what_calls_have_alike_is_known_of_functions_of_one_kind() -> None:
    class Model:
        def loss(self, x: Any, pair: Any, *, flag: Any = None) -> Any:
            return (x * pair[0]).sum() if flag is None else x

    call, given = (X, (X, None)), {"flag": True}
    for keywords in ({}, given):
        pb.compile(Model().loss)(*call, **keywords)
        signature = pb.compile(Model().loss)._dispatcher.signature
        found = signature._form.call(signature, *signature.bind(call, keywords))
        assert found.leaves[2] is None and found.signature is signature
        assert str(Description(found)).startswith("x: float64[3], pair[0]: float64[3], pair[1]: None")
    of_static = pb.compile(Model().loss, static_argnames="x")
    with pytest.raises(pb.errors.ArgumentError, match="declared static"):
        of_static(*call, **given)
    assert pb.compile(Model().loss)(1.0, (X, None)) == X.sum()


def test_arrays_that_are_written_are_read_by_their_own_function() -> None:
    tables = [types.SimpleNamespace(row=X * k) for k in (1.0, 2.0)]

    def made(table: Any) -> Any:
        return pb.compile(lambda x: table.row * x)

    functions = [made(table) for table in tables]
    for function, table in zip(functions, tables):
        np.testing.assert_allclose(function(X), table.row * X)
    tables[0].row[:] = 7.0
    tables[1].row = X * 5
    for function, table in zip(functions, tables):
        np.testing.assert_allclose(function(X), table.row * X)


def test_numbers_that_are_counted_belong_to_their_function() -> None:
    def made(box: dict[str, int]) -> Any:
        def function(x: Any) -> Any:
            box["calls"] += 1
            return x * 2

        return pb.compile(function)

    boxes = [{"calls": 0}, {"calls": 10}]
    functions = [made(box) for box in boxes]
    for function in (*functions, functions[1]):
        function(X)
    assert [box["calls"] for box in boxes] == [1, 12]
    assert functions[1].cache_info().traces == 0


def filled(data: np.ndarray) -> Any:
    def function(p: Any) -> Any:
        y = np.zeros(3)
        for i in range(3):
            y[i] = data[i] * p[i]
        return y

    return function


def of_two_paths(data: np.ndarray) -> Any:
    return lambda p: p * 2 if (data * p).sum() > 0 else p * data


def handed_back(data: np.ndarray) -> Any:
    return lambda p: (p * 2, data)


def of_a_partial(data: np.ndarray) -> Any:
    return functools.partial(lambda data, p: data * p, data)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("make", [objective, filled, of_two_paths, handed_back, of_a_partial])
def test_a_function_that_goes_frees_what_it_has_reached(make: Any) -> None:
    data, weight = np.ones(3), np.ones(3)
    references = [weakref.ref(data), weakref.ref(weight)]
    function = pb.compile(make(data))
    function(weight), function(-weight)
    references.append(weakref.ref(function))
    del function, data, weight
    gc.collect()
    assert [one() for one in references] == [None] * 3


def test_as_many_programs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MOST_KEYS", 2)
    sizes = (2, 3, 4)
    for size in sizes:
        pb.compile(objective(np.ones(size)))(np.ones(size))
    for size, traces in ((4, 0), (3, 0), (2, 1)):
        function = pb.compile(objective(np.ones(size)))
        function(np.ones(size))
        assert function.cache_info().traces == traces


@pytest.mark.drawn(4)
def test_functions_of_libraries_are_told_apart_by_what_they_hold() -> None:
    def interpolated(values: np.ndarray) -> Any:
        bound = functools.partial(np.interp, xp=X, fp=values)
        return pb.compile(lambda x: x * bound(1.5))

    for values in (X, 2 * X):
        np.testing.assert_allclose(interpolated(values)(X), X * np.interp(1.5, X, values))


@pytest.mark.parametrize("strided", [X[::-1], np.broadcast_to(2.0, 3), X.astype(">f8")], ids=repr)
def test_arrays_that_are_reached_may_have_any_layout(strided: np.ndarray) -> None:
    for data in (X, strided, X):
        np.testing.assert_allclose(pb.compile(objective(data))(X * 2), objective(data)(X * 2))
    table = types.SimpleNamespace(row=strided)
    function = pb.compile(lambda x: table.row * x)
    for table.row in (strided, X, strided):
        np.testing.assert_allclose(function(X), table.row * X)


def test_what_a_number_turned_out_to_be_is_known_to_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    shared.shared_programs.clear()

    def made(offset: float) -> Any:
        def part(x: Any, n: int, factor: float) -> Any:
            print("traced")
            return x[:n] * factor + offset

        return pb.compile(part)

    for repetition in range(3):
        function, before = made(1.0), counted()
        for n, factor in ((2, 3.0), (1, 4.0), (2, 5.0)):
            np.testing.assert_allclose(function(X, n, factor), X[:n] * factor + 1.0)
        traces = len(capsys.readouterr().out.split())
        assert repetition == 0 or (traces == 0 and counted() == before)


def test_another_function_of_the_same_code_is_not_searched_for_effects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(data: np.ndarray) -> Any:
        return pb.compile(lambda x: x * data if float(x.sum()) > 0 else -x)

    made(X)(X), made(X * 2)(X)
    monkeypatch.setattr(drawn_once, "has_effects", None)
    np.testing.assert_allclose(made(X * 3)(X), 3 * X * X)


def test_constants_of_another_program_are_no_constants_here() -> None:
    def made(takes_part: bool) -> Any:
        return pb.compile(lambda x, n: x[:n] if takes_part else x * n)

    made(True)(X, 2)
    function = made(False)
    for n in range(1, 5):
        np.testing.assert_allclose(function(X, n), X * n)
    assert function.cache_info().traces == 1
