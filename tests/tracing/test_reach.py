"""What a compiled function depends on besides its arguments: read anew, guarded, or refused."""

import array
import collections
import contextvars
import ctypes
import dataclasses
import functools
import io
import itertools
import math
import multiprocessing
import operator
import os
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse

import pullback as pb
from pullback.errors import TraceError
from pullback.runtime.captures.contents import Content

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.arange(1.0, 4.0)
Case = tuple[Callable[[Any], Any], Callable[[], Any]]
CASES: dict[str, Callable[[], Case]] = {}
"""A function of something mutable, and what changes that."""


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


@case
def a_set() -> Case:
    numbers = {1.0, 2.0}
    return lambda x: x * sum(numbers), lambda: numbers.add(5.0)


@case
def a_set_of_objects() -> Case:
    one = types.SimpleNamespace(factor=2.0)
    factors = {functools.partial(lambda: one.factor)}
    return lambda x: x * sum(factor() for factor in factors), lambda: factors.add(functools.partial(float, 3))


@case
def a_deque() -> Case:
    rows = collections.deque([np.ones(3), np.ones(3)])
    return lambda x: sum(x * row for row in rows), lambda: rows.append(X)


@case
def an_ordered_dict() -> Case:
    options = collections.OrderedDict(factor=1.0)
    return lambda x: x * options["factor"], lambda: options.update(factor=4.0)


@case
def a_default_dict() -> Case:
    options: dict[str, float] = collections.defaultdict(float, factor=1.0)
    return lambda x: x * options["factor"], lambda: options.update(factor=4.0)


@case
def a_counter() -> Case:
    counts = collections.Counter("aab")
    return lambda x: x * counts["a"], lambda: counts.update("a")


@case
def a_chain_of_dicts() -> Case:
    inner = {"factor": 1.0}
    chain = collections.ChainMap({}, inner)
    return lambda x: x * chain["factor"], lambda: inner.update(factor=4.0)


@case
def a_view_of_a_dict() -> Case:
    inner = {"factor": 1.0}
    values, shown = inner.values(), types.MappingProxyType(inner)
    return lambda x: x * sum(values) + shown["factor"], lambda: inner.update(factor=4.0)


@case
def a_subclass_of_list() -> Case:
    class Row(list[float]):
        pass

    row = Row([1.0, 2.0])
    return lambda x: x * row[0], lambda: row.__setitem__(0, 5.0)


@case
def a_long_list() -> Case:
    row = [1.0] * 20
    return lambda x: x * sum(row), lambda: row.__setitem__(3, 5.0)


@case
def a_long_list_with_a_zero() -> Case:
    row = [0.0] * 20
    return lambda x: x * (2.0 + math.copysign(1.0, row[3])), lambda: row.__setitem__(3, -0.0)


@case
def a_long_dict() -> Case:
    table = dict.fromkeys(range(20), 1.0)
    return lambda x: x * sum(table.values()), lambda: table.update({3: 5.0})


class PrivateSlot:
    __slots__ = ("__weights",)

    def __init__(self, weights: Any) -> None:
        self.set(weights)

    def set(self, weights: Any) -> None:
        self.__weights = weights

    def __call__(self, x: Any) -> Any:
        return x * self.__weights


@case
def an_array_in_a_private_slot() -> Case:
    scale = PrivateSlot(np.ones(3))
    return lambda x: scale(x), lambda: scale.set(np.full(3, 5.0))


@case
def a_number_in_a_private_slot() -> Case:
    scale = PrivateSlot(1.0)
    return lambda x: scale(x), lambda: scale.set(5.0)


@case
def an_array_of_the_standard_library() -> Case:
    row = array.array("d", [1.0, 2.0])
    return lambda x: x * row[0], lambda: row.__setitem__(0, 5.0)


@case
def a_bytearray() -> Case:
    row = bytearray(b"ab")
    return lambda x: x * row[0], lambda: row.__setitem__(0, 5)


@case
def a_memoryview() -> Case:
    memory = np.ones(3)
    row = memoryview(memory)
    return lambda x: x * row[0], lambda: memory.__setitem__(0, 5.0)


@case
def a_buffer_of_text() -> Case:
    text = io.StringIO("2")
    return lambda x: x * float(text.getvalue()), lambda: (text.seek(0), text.write("5"))


@case
def a_sparse_matrix() -> Case:
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    return lambda x: matrix @ x, lambda: matrix.data.__setitem__(0, 5.0)


@case
def the_data_of_a_sparse_matrix() -> Case:
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    return lambda x: matrix.data * x, lambda: matrix.data.__setitem__(0, 5.0)


@case
def a_spline() -> Case:
    spline = scipy.interpolate.CubicSpline([0.0, 1, 2, 3], [0.0, 1, 4, 9])
    return lambda x: x * float(spline(1.5)), lambda: spline.c.__setitem__(..., 5.0)


@case
def a_polynomial() -> Case:
    polynomial = np.polynomial.Polynomial([1.0, 2.0])
    return lambda x: polynomial(x), lambda: polynomial.coef.__setitem__(0, 5.0)


@case
def a_record_array() -> Case:
    records = np.rec.array([(1.0, 2.0)] * 3, dtype=[("a", float), ("b", float)])
    return lambda x: x * records.a, lambda: records.a.__setitem__(0, 5.0)


@case
def a_structured_array() -> Case:
    records = np.array([(1.0, 2.0)] * 3, dtype=[("a", float), ("b", float)])
    return lambda x: x * records["a"], lambda: records["a"].__setitem__(0, 5.0)


@case
def a_complex_array() -> Case:
    phases = np.array([1j, 2j, 3j])
    return lambda x: x * np.abs(phases), lambda: phases.__setitem__(0, 5.0)


@case
def a_method_that_indexes() -> Case:
    class Row:
        def __init__(self) -> None:
            self.items = [1.0]

        def __getitem__(self, index: int) -> float:
            return self.items[index]

        def __len__(self) -> int:
            return len(self.items)

    row = Row()
    return lambda x: x * row[0] + len(row), lambda: row.items.append(5.0)


@case
def a_method_that_makes_attributes() -> Case:
    class Options:
        def __init__(self) -> None:
            self.inner = {"factor": 1.0}

        def __getattr__(self, name: str) -> Any:
            return self.inner[name]

    options = Options()
    return lambda x: x * options.factor, lambda: options.inner.update(factor=4.0)


@case
def an_operator_of_an_object() -> Case:
    class Scale:
        factor = 1.0

        def __matmul__(self, x: Any) -> Any:
            return self.factor * x

    scale = Scale()
    return lambda x: scale @ x, lambda: setattr(scale, "factor", 4.0)


@case
def a_descriptor() -> Case:
    class Option:
        value = 1.0

        def __get__(self, instance: Any, owner: Any) -> float:
            return self.value

    option = Option()

    class Options:
        factor = option

    options = Options()
    return lambda x: x * options.factor, lambda: setattr(option, "value", 4.0)


@case
def a_cached_property() -> Case:
    class Model:
        weight = 2.0

        @functools.cached_property
        def factor(self) -> float:
            return self.weight * 2

    model = Model()

    def change() -> None:
        model.weight = 5.0
        del model.factor

    return lambda x: x * model.factor, change


@case
def a_method_that_an_object_gets() -> Case:
    class Model:
        def scaled(self, x: Any) -> Any:
            return x

    model = Model()
    return lambda x: model.scaled(x), lambda: setattr(model, "scaled", lambda x: 4 * x)


@case
def another_descriptor_in_a_class() -> Case:
    class Option:
        def __get__(self, instance: Any, owner: Any) -> float:
            return 1.0

    class Options:
        factor: Any = Option()

    options = Options()
    return lambda x: x * options.factor, lambda: setattr(Options, "factor", 4.0)


@case
def an_attribute_of_a_base_class() -> Case:
    class Base:
        factor = 1.0

    class Derived(Base):
        pass

    return lambda x: x * Derived.factor, lambda: setattr(Base, "factor", 4.0)


@case
def an_attribute_of_a_function() -> Case:
    def scaled(x: Any) -> Any:
        return x * scaled.factor  # type: ignore[attr-defined]

    scaled.factor = 1.0  # type: ignore[attr-defined]
    return scaled, lambda: setattr(scaled, "factor", 4.0)


@case
def attributes_by_computed_names() -> Case:
    options = types.SimpleNamespace(factor=1.0)
    parts = ["fac", "tor"]
    return (
        lambda x: x * getattr(options, "".join(parts)) + sum(vars(options).values()),
        lambda: setattr(options, "factor", 4.0),
    )


@case
def an_attribute_that_an_object_gets() -> Case:
    options, getter = types.SimpleNamespace(factor=1.0), operator.attrgetter("factor")
    return lambda x: x * getter(options), lambda: setattr(options, "factor", 4.0)


@case
def a_default_of_a_keyword() -> Case:
    def scaled(x: Any, *, factors: Any = [1.0]) -> Any:  # noqa: B006
        return x * factors[0]

    return lambda x: scaled(x), lambda: scaled.__kwdefaults__["factors"].__setitem__(0, 4.0)


@case
def a_dataclass() -> Case:
    @dataclasses.dataclass
    class Options:
        factor: float
        row: Any

    options = Options(1.0, np.ones(3))
    return lambda x: x * options.row * options.factor, lambda: setattr(options, "factor", 4.0)


@case
def what_a_thread_has() -> Case:
    own = threading.local()
    own.factor = 1.0
    return lambda x: x * own.factor, lambda: setattr(own, "factor", 4.0)


@case
def a_number_of_c() -> Case:
    factor = ctypes.c_double(1.0)
    return lambda x: x * factor.value, lambda: setattr(factor, "value", 4.0)


@case
def a_number_that_processes_share() -> Case:
    factor = multiprocessing.Value("d", 1.0)
    return lambda x: x * factor.value, lambda: setattr(factor, "value", 4.0)


@case
def an_event() -> Case:
    event = threading.Event()
    return lambda x: x * (2.0 if event.is_set() else 3.0), event.set


@case
def a_variable_of_a_context() -> Case:
    variable = contextvars.ContextVar("variable", default=1.0)
    return lambda x: x * variable.get(), lambda: variable.set(4.0)


@case
def the_environment() -> Case:
    os.environ["PULLBACK_TEST_FACTOR"] = "1"
    return (
        lambda x: (
            x * float(os.environ["PULLBACK_TEST_FACTOR"]) + float(os.getenv("PULLBACK_TEST_FACTOR", ""))
        ),
        lambda: os.environ.update(PULLBACK_TEST_FACTOR="4"),
    )


@case
def the_dictionary_of_globals() -> Case:
    globals()["a_factor"] = 1.0
    return lambda x: x * globals()["a_factor"], lambda: globals().update(a_factor=4.0)


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen(name: str) -> None:
    function, change = CASES[name]()
    compiled = pb.compile(function)
    before = np.asarray(function(X))
    np.testing.assert_allclose(compiled(X), before)
    np.testing.assert_allclose(compiled(X), before)
    assert compiled.cache_info().size == 1, "what stays the same is found again"
    change()
    assert not np.allclose(function(X), before)
    np.testing.assert_allclose(compiled(X), function(X))


class Equal:
    """Objects that are equal and can't be hashed."""

    def __init__(self, factor: float, row: Any) -> None:
        self.factor, self.row = factor, row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)


@pytest.mark.parametrize("kind", [Equal, types.SimpleNamespace])
def test_objects_that_cannot_be_hashed_may_be_arguments(kind: Any) -> None:
    compiled = pb.compile(lambda x, options: x * options.row * options.factor)
    one, other = kind(factor=1.0, row=np.ones(3)), kind(factor=4.0, row=X)
    np.testing.assert_allclose(compiled(X, one), X)
    np.testing.assert_allclose(compiled(X, other), 4 * X * X)
    one.row = 2 * X
    np.testing.assert_allclose(compiled(X, one), 2 * X * X)
    assert compiled.cache_info().traces == 2
    one.factor = 3.0
    np.testing.assert_allclose(compiled(X, one), 6 * X * X)
    np.testing.assert_allclose(compiled(X, other), 4 * X * X)


def test_a_view_of_a_dict_may_be_an_argument() -> None:
    compiled, factors = pb.compile(lambda x, factors: x * sum(factors)), {"a": 1.0}
    np.testing.assert_allclose(compiled(X, factors.values()), X)
    values = factors.values()
    np.testing.assert_allclose(compiled(X, values), X)
    factors["a"] = 4.0
    np.testing.assert_allclose(compiled(X, values), 4 * X)


def test_arrays_in_containers_are_read_without_a_new_trace() -> None:
    rows = collections.deque([np.ones(3), np.ones(3)])
    options = collections.OrderedDict(weight=np.ones(3))
    compiled = pb.compile(lambda x: x * rows[0] + options["weight"])
    compiled(X)
    rows[0][:] = 5.0
    options["weight"] = X
    np.testing.assert_allclose(compiled(X), 6 * X)
    assert compiled.cache_info().traces == 1


def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    series, frame = pandas.Series([1.0, 2.0, 3.0]), pandas.DataFrame({"a": [1.0, 2.0, 3.0]})
    compiled = pb.compile(lambda x: x * series.to_numpy() + frame["a"].to_numpy())
    np.testing.assert_allclose(compiled(X), X * X + X)
    series.iloc[0], frame.loc[1, "a"] = 5.0, 9.0
    np.testing.assert_allclose(compiled(X), X * series.to_numpy() + frame["a"].to_numpy())


@pytest.mark.parametrize("change", [
    lambda table: table.__setitem__("a", [1.0, 3.0]),
    lambda table: table.iloc.__setitem__((0, 0), -0.0),
    lambda table: table._mgr.blocks[0].values.__setitem__((0, 1), 4.0),
    lambda table: setattr(table, "columns", ["a", "b", "other", "d", "e", "f"]),
    lambda table: setattr(table.index, "name", "other"),
    lambda table: setattr(table.index, "name", 1),
    lambda table: table.insert(0, "first", 1.0),
    lambda table: table.__setitem__("a", table["a"].astype("float32")),
    lambda table: table.loc.__setitem__((0, "d"), "z"),
    lambda table: table.loc.__setitem__((0, "e"), "v"),
    lambda table: table.__setitem__("e", table["e"].cat.rename_categories(["u", "w"])),
    lambda table: table.loc.__setitem__((0, "f"), None),
    lambda table: table.attrs.__setitem__("scale", 2.0),
])  # fmt: skip
def test_a_table_that_was_compared_once_is_told_from_one_that_changes(change: Any) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [0.0, 2.0], "b": [3.0, 4.0], "c": [True, False], "d": ["x", "y"]})
    table = table.assign(e=pandas.Categorical(["u", "v"]), f=pandas.array([1, 2]))
    content = Content(table)
    for _ in range(3):
        assert content.is_of(table) and content.is_of(table.copy())
    change(table)
    assert not content.is_of(table)
    texts = pandas.DataFrame({"a": ["x", "y"]})
    content = Content(texts)
    assert content.is_of(texts) and content.is_of(texts)
    texts.loc[0, "a"] = "z"
    assert not content.is_of(texts)


def test_tables_of_pandas_are_compared_whole() -> None:
    pandas = pytest.importorskip("pandas")
    of_parts = pandas.DataFrame({"a": [1.0, 2.0]}, index=pandas.Index(["u", "v"], name="row"))
    of_parts["b"] = [3.0, 4.0]
    series = pandas.Series([1.0, 2.0], index=["items", "columns"])  # which are methods of tables
    for table in (of_parts, of_parts.copy(), of_parts.assign(c=["x", "y"], d=[1, 2]), series):
        content = Content(table)
        assert content.is_of(table)
        assert content.is_of(table.copy())
        other = table.copy()
        other.iloc[1] = other.iloc[0]
        assert not content.is_of(other)
        assert not content.is_of(table.rename(index={table.index[0]: "w"}))
        assert not content.is_of(table.rename_axis("another"))
        assert not content.is_of(table.astype(object))
    content = Content(of_parts)
    of_parts.index.name = "another"
    assert not content.is_of(of_parts)


def test_arrays_of_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    data = xarray.DataArray([1.0, 2.0, 3.0])
    compiled = pb.compile(lambda x: x * data.values)
    np.testing.assert_allclose(compiled(X), X * X)
    data[0] = 5.0
    np.testing.assert_allclose(compiled(X), X * [5, 2, 3])


@pytest.mark.parametrize(
    "make", [iter, itertools.cycle, lambda row: (one for one in row), lambda row: map(float, row)]
)
def test_what_is_used_up_by_reading_is_refused(make: Any) -> None:
    values = make([1.0])

    def scaled(x: Any) -> Any:
        return x * next(values)

    def given(x: Any, values: Any) -> Any:
        return x * sum(values)

    with pytest.raises(TraceError, match=r"scaled reaches values, at .*test_reach.py:\d+: .*Make a list or"):
        pb.compile(scaled)(X)
    with pytest.raises(TraceError, match=r"given reaches values, at .*test_reach.py:\d+: .*Make a list or"):
        pb.compile(given)(X, values)
    assert next(values) == 1.0


def test_an_open_file_is_refused() -> None:
    with open(__file__) as file, pytest.raises(TraceError, match="reaches file"):
        pb.compile(lambda x: x * len(file.readline()))(X)


def test_an_object_that_refuses_to_be_read_is_named() -> None:
    torch = pytest.importorskip("torch")
    held = {"a": torch.ones(2, requires_grad=True)}
    with pytest.raises(TraceError, match=r"reaches held\['a'\].*can't be read as arrays: .*requires grad"):
        pb.compile(lambda x: x * len(held))(X)


# --- what is missing at first -------------------------------------------------------------------------------


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def missing_at_first(read: Any) -> Any:
    box = Box(2.0)
    return lambda x: x * read(box), box


@pytest.mark.parametrize(
    "read",
    [
        lambda box: getattr(box, "other", box.value),
        lambda box: box.other if hasattr(box, "other") else box.value,
        lambda box: vars(box).get("other", box.value),
    ],
)
def test_an_attribute_that_comes_later_is_seen(read: Any) -> None:
    function, box = missing_at_first(read)
    compiled = pb.compile(function)
    np.testing.assert_allclose(compiled(X), 2 * X)
    box.other = 3.0
    np.testing.assert_allclose(compiled(X), 3 * X)
    del box.other
    np.testing.assert_allclose(compiled(X), 2 * X)


SHADOWED: dict[str, tuple[str, Callable[..., Any]]] = {
    "sum": ("def f(x): return sum(x)", lambda x: x * 100),
    "len": ("def f(x): return len([1, 2]) * x", lambda x: 7),
    "max": ("def f(x): return max(x.sum(), 2.0)", lambda *given: given[0] * 0),
    "abs": ("def helper(x): return abs(x)\ndef f(x): return helper(x)", lambda x: x * 0),
    "range": ("def f(x): return [float(i) * x for i in range(3)][-1]", lambda n: [5]),
    "math": ("def f(x):\n  try: return x * math\n  except NameError: return x", 2.0),
}


@pytest.mark.parametrize("name", SHADOWED)
def test_a_global_that_comes_to_hide_a_builtin(name: str) -> None:
    text, instead = SHADOWED[name]
    namespace: dict[str, Any] = {"__name__": "users"}
    exec(text, namespace)
    plain = namespace["f"]
    compiled = pb.compile(plain)
    x = np.arange(1.0, 4.0)
    before = compiled(x)
    namespace[name] = instead
    np.testing.assert_allclose(compiled(x), plain(x))
    assert not np.array_equal(compiled(x), before)
    del namespace[name]
    np.testing.assert_allclose(compiled(x), before)
