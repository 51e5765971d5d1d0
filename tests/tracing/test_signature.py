"""Keys of calls, containers, what a function reaches, and the interpreter of graphs."""

import collections
import dataclasses
import dis
import functools
import inspect
from typing import Any

import numpy as np
import pytest
from uncompiled import uncompiled

import pullback as pb
from pullback.runtime.bytecode.code_names import names_of
from pullback.runtime.bytecode.write_instructions import has_operation
from pullback.runtime.captures.closure import explore
from pullback.runtime.tracing.signature import ALL, Signature, conform
from pullback.runtime.values.flatten import Results, flatten, leaf_paths, path_text, unflatten
from pullback.tracer.errors import ArgumentError, OutputError
from pullback.tracer.graph import Graph, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.ops import elementwise as e
from pullback.tracer.spec import Spec

X = np.ones(3)


def function(a: Any, b: Any = 2, *, c: Any = None) -> None:
    pass


def simple(a: Any, b: Any = 2.5) -> None:
    pass


def key(signature: Signature, *args: Any, **kwargs: Any) -> Any:
    return signature.call(args, kwargs).key


# --- keys -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("callee", [function, simple])
def test_the_same_call_written_differently_has_one_key(callee: Any) -> None:
    signature = Signature(callee, "f")
    default = 2 if callee is function else 2.5
    expected = key(signature, X, default)
    assert key(signature, X) == key(signature, a=X) == key(signature, b=default, a=X) == expected
    assert key(signature, np.zeros(3), default) == expected


@pytest.mark.parametrize(
    "other",
    [
        (np.ones(4), 2),
        (np.ones((3, 1)), 2),
        (X.astype(np.float32), 2),
        (pb.tensor(X), 2),
        (pb.tensor(X, requires_grad=True), 2),
        ([X], 2),
        ((X,), 2),
        (X, 2.0),
        (X, True),
        (X, "2"),
        (X, None),
    ],
)
def test_what_differs_has_another_key(other: tuple[Any, ...]) -> None:
    assert key(Signature(function, "f"), *other) != key(Signature(function, "f"), X, 2)


def test_numbers_count_with_their_type() -> None:
    signature = Signature(simple, "f")
    assert key(signature, X, 2.0) == key(signature, X, 3.0) != key(signature, X, 2)
    assert len({key(signature, X, number) for number in (2.0, 2, True, np.float64(2), np.array(2.0))}) == 5


def test_constant_numbers_are_told_apart_exactly() -> None:
    signature = Signature(simple, "f")
    signature.constants = {ALL}
    numbers = [0.0, -0.0, float("nan"), 1.0, 1, True]
    assert len({key(signature, X, number) for number in numbers}) == len(numbers)
    assert key(signature, X, float("nan")) == key(signature, X, -float("nan") * -1)


def test_gradient_requests_count_only_where_operations_are_recorded() -> None:
    signature = Signature(simple, "f")
    asking = key(signature, pb.tensor(X, requires_grad=True))
    with pb.no_grad():
        assert key(signature, pb.tensor(X, requires_grad=True)) == key(signature, pb.tensor(X)) != asking


def test_leaves_are_named_as_the_user_would() -> None:
    def nested(params: Any, *rest: Any, flag: Any = None) -> None:
        pass

    call = Signature(nested, "nested").call(({"w": [X, X], "b": 1}, X, X), {"flag": "on"})
    assert [(leaf.name, leaf.is_array) for leaf in call.described()] == [
        ("params['b']", True),
        ("params['w'][0]", True),
        ("params['w'][1]", True),
        ("rest[0]", True),
        ("rest[1]", True),
        ("flag", False),
    ]
    args, kwargs = call.rebuild(["b", "w0", "w1", "r0", "r1", "f"])
    assert args == ({"w": ["w0", "w1"], "b": "b"}, "r0", "r1") and kwargs == {"flag": "f"}


def test_static_names_and_numbers() -> None:
    signature = Signature(function, "f", static_argnums=-1, static_argnames=("c",))
    assert signature.static == {"b", "c"}
    call = signature.call((X,), {"b": (1, 2), "c": (3,)})
    assert len(call.arrays) == 1 and call.arrays[0] is X
    assert call.leaves[1:] == [(1, 2), (3,)]
    with pytest.raises(ArgumentError, match=r"argument 'b' is a list"):
        signature.call((X, [1]), {})


def test_keywords_with_defaults_are_filled_in() -> None:
    def f(x: Any, *, scale: float = 2.0, flag: bool = True) -> Any:
        return x

    signature = Signature(f, "f")
    found = signature.call((X,), {})
    assert found.keywords == ("scale", "flag")
    assert found.leaves[1:] == [2.0, True]
    assert found.key == signature.call((X,), {"flag": True, "scale": 2.0}).key
    assert found.key != signature.call((X,), {"flag": False}).key
    partial = functools.partial(lambda x, y: x, y=3.0)
    assert Signature(partial, "partial").call((X,), {}).leaves[1:] == [3.0]
    with pytest.raises(ArgumentError):
        Signature(f, "f").call((X, X), {})


def test_slices_are_static() -> None:
    signature = Signature(function, "f")
    keys = [signature.call((X, slice(1, end)), {}).key for end in (2, 3, 2)]
    assert keys[0] == keys[2] != keys[1]
    assert len({*keys}) == 2


@pytest.mark.parametrize(
    "array",
    [
        np.ones((4, 3)).T,
        np.ones((4, 3))[::2],
        np.broadcast_to(np.ones(3), (2, 3)),
        np.ones(3, ">f4"),
        np.frombuffer(b"\0" * 25, np.uint8)[1:].view(np.float64),
        np.float64(3.0),
        np.ones(()),
    ],
    ids=["transposed", "strided", "broadcast", "byte order", "unaligned", "scalar", "0-d"],
)
def test_conform(array: Any) -> None:
    found = conform(array)
    assert type(found) is np.ndarray and found.flags.carray and found.dtype.isnative
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)


# --- containers -------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass(frozen=True)
class Frozen:
    left: Any
    right: Any = dataclasses.field(default=None, init=False)

    def __post_init__(self) -> None:
        raise AssertionError("no constructor runs when a dataclass is put together again")


def frozen(left: Any) -> Frozen:
    made = object.__new__(Frozen)
    object.__setattr__(made, "left", left)
    object.__setattr__(made, "right", None)
    return made


def test_flatten_and_unflatten() -> None:
    value = {"b": [1, (2, None)], "a": Pair(3, frozen([4]))}
    leaves, structure = flatten(value)
    assert unflatten(structure, leaves)["a"].right.left == [4]
    assert [path_text(path) for path in leaf_paths(structure)][3] == "['b'][0]"
    assert sorted(leaf for leaf in leaves if leaf is not None) == [1, 2, 3, 4]
    assert hash(structure) == hash(flatten({"b": [0, (0, None)], "a": Pair(0, frozen([0]))})[1])


def test_results_rebuild_every_container() -> None:
    shared = np.zeros(2)
    value = {
        "list": [shared, 1.5],
        "pair": Pair(shared, (np.ones(1),)),
        "ordered": collections.OrderedDict([((1, 2), shared)]),
        "default": collections.defaultdict(list, x=shared),
        "deque": collections.deque([shared], maxlen=3),
        "dataclass": frozen({"x": None}),
        "size": pb.Size((2, 3)),
    }
    results = Results(value, "f")
    assert len(results.leaves) == 2, "one array returned twice is one leaf"
    built = results.builder(lambda argument: argument)(["zeros", "ones"])
    assert built["list"] == ["zeros", 1.5] and built["pair"] == Pair("zeros", ("ones",))
    assert list(built["ordered"]) == [(1, 2)] and built["default"]["new"] == []
    assert built["size"].numel() == 6
    assert built["deque"].maxlen == 3 and built["dataclass"].left == {"x": None}
    assert Results((), "f").builder(lambda argument: argument)(None) == ()
    with pytest.raises(OutputError, match=r"f returns 'x', of type str, at result\['a'\]\[0\]"):
        Results({"a": ["x"]}, "f")


# --- what a function reaches --------------------------------------------------------------------------------

table = {"w": [np.ones(2)]}
level = 1.5


class Holder:
    def __init__(self) -> None:
        self.array = np.zeros(2)
        self.unused = np.zeros(2)
        self.number = 3

    def method(self, x: Any) -> Any:
        return self.array * x * self.number


holder = Holder()


def reads(x: Any) -> Any:
    return x * table["w"][0] * level + holder.method(x)


def labels(*roots: Any) -> list[str]:
    return [source.label for source in explore([(root, "root") for root in roots]).sources]


def test_exploration_finds_paths_and_only_what_is_named() -> None:
    assert sorted(labels(reads)) == ["holder.array", "table['w'][0]"]


def test_exploration_goes_through_wrappers_partials_methods_and_compiled_functions() -> None:
    local = np.ones(2)

    def helper(x: Any, weight: Any = local + 1) -> Any:
        return x * local

    @functools.wraps(helper)
    def wrapper(*args: Any) -> Any:
        return helper(*args)

    assert sorted(set(labels(wrapper))) == ["helper's default", "local"]
    assert "local" in labels(pb.compile(lambda x: helper(x)))
    assert "local" in labels(pb.no_grad()(helper))
    assert labels(holder.method) == ["self.array"]
    assert "root['weight']" in labels(functools.partial(helper, weight=local + 2))


def test_reading_again_sees_changes_and_guards_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = explore([(reads, "reads")])
    assert reading.read is not None
    first = reading.read()
    assert first is not None and any(one is table["w"][0] for one in first)
    new = np.full(2, 7.0)
    monkeypatch.setitem(table, "w", [new])
    again = reading.read()
    assert again is not None and any(one is new for one in again)
    monkeypatch.setattr(holder, "number", 4)
    assert reading.read() is None
    monkeypatch.setattr(holder, "number", 3)
    assert reading.read() is not None
    monkeypatch.setitem(globals(), "level", "text")
    assert reading.read() is None
    monkeypatch.undo()
    monkeypatch.delitem(table, "w")
    assert reading.read() is None


def test_a_function_that_reaches_nothing_has_nothing_to_read() -> None:
    assert explore([(lambda x: pb.tanh(x) + np.sin(1.0), "f")]).read is None


def test_cycles_end() -> None:
    loop: list[Any] = [np.ones(1)]
    loop.append(loop)
    assert labels(lambda x: x * loop[0]) == ["loop[0]"]


def test_names_in_code() -> None:
    names = names_of(reads.__code__)
    loaded, attributes, stored = names.loaded, names.attributes, names.stored
    assert set(loaded) == {"table", "level", "holder"} and "method" in attributes and stored == ()


@pytest.mark.parametrize("name", ["IMPORT_NAME", "LOAD_BUILD_CLASS", "BUILD_TUPLE", "BUILD_LIST"])
def test_code_has_the_operations_that_dis_shows(name: str) -> None:
    codes = [one.__code__ for one in vars(inspect).values() if inspect.isfunction(one)]
    shown = [any(one.opname == name for one in dis.get_instructions(code)) for code in codes]
    assert [has_operation(code, name) for code in codes] == shown


# --- the interpreter ----------------------------------------------------------------------------------------


def test_evaluate_graph_on_arrays_tensors_and_nodes() -> None:
    spec = Spec((3,), np.dtype("float64"))
    a, b = make_input(spec, "a"), make_input(spec, "b")
    graph = Graph("f", (a, b), (e.tanh(a * b) + 1.0, a))
    values = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    expected = np.tanh(values[0] * values[1]) + 1
    result, same = evaluate_graph(graph, values)
    np.testing.assert_allclose(result, expected)
    assert same is values[0]
    x = pb.tensor(values[0], requires_grad=True)
    tensor, _ = evaluate_graph(graph, (x, pb.tensor(values[1])))
    np.testing.assert_allclose(tensor.detach().numpy(), expected)
    tensor.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (1 - np.tanh(values[0] * values[1]) ** 2) * values[1])
    node, _ = evaluate_graph(graph, (b, a))
    assert node.spec == spec
    with pytest.raises(ValueError, match="zip"):
        evaluate_graph(graph, values[:1])


@dataclasses.dataclass
class _Fields:
    by_name: dict[str, Any]


@pytest.mark.parametrize(
    "put",
    [lambda x: x, lambda x: [0.5, (x,)], _Fields, lambda x: {"c": x}, collections.defaultdict(float).__or__],
    ids=["dict", "nested", "dataclass", "in a dict", "defaultdict"],
)
def test_the_order_of_keys_tells_calls_apart(put: Any) -> None:
    def weighted(given: Any) -> Any:
        while not isinstance(given, dict) or "c" in given:
            given = given["c"] if isinstance(given, dict) else getattr(given, "by_name", None) or given[-1]
        return sum(place * value.sum() for place, value in enumerate(given.values(), 1))

    one, other = {"b": np.ones(2), "a": np.full(2, 5.0)}, {"a": np.full(2, 5.0), "b": np.ones(2)}
    compiled, slope = pb.compile(weighted), pb.compile(pb.grad(weighted))
    with uncompiled():
        for given, value, slopes in [(one, 22.0, (1, 2)), (other, 14.0, (2, 1)), (one, 22.0, (1, 2))]:
            assert compiled(put(given)) == value
            if put(given) is given:
                found = slope(given)
                assert list(found) == list(given) and (found["b"][0], found["a"][0]) == slopes
    assert compiled.cache_info().traces == 2


def test_calls_of_one_form_have_one_key_and_others_another() -> None:
    def function(x: Any, parts: Any, flag: Any = True, model: Any = None) -> Any:
        return x

    class Model:
        pass

    made, model = Signature(function, "function"), Model()
    x = np.ones(3)
    given = x, (x, None), True, model
    first, again = made.call(given, {}), made.call((x + 1.0, (x * 2.0, None), True, model), {})
    fresh = Signature(function, "function").call(given, {})
    assert again.key == first.key == fresh.key and again.leaves[1] is again.arrays[1] is again.arrays.given[1]
    assert again.arrays[0][0] == 2.0 and again.is_array == first.is_array
    others: list[Any] = [
        (x[:2], (x, None), True, model), (x, (x, x), True, model), (x, (x, 1.0), True, model),
        (x, [x, None], True, model), (x, (x, None), 1, model), (x, (x, None), False, model),
        (x, (x, None), True, Model()), (x.astype("float32"), (x, None), True, model), (x, x, True, model),
        (2.0, (x, None), True, model), (x, {"a": x, "b": None}, True, model),
    ]  # fmt: skip
    for other in others:
        made.call(given, {})
        found = made.call(other, {})
        assert found.key == Signature(function, "function").call(other, {}).key != first.key
    strided = np.ones(6)[::2]
    found = made.call((strided, (x, None), True, model), {})
    assert found.key == first.key and found.arrays[0].flags.carray


def test_a_signature_is_that_of_the_function_as_it_is_now() -> None:
    def function(x: Any, y: Any = 1.0) -> Any:
        return x * y

    class Model:
        loss = function

    assert Signature(Model().loss, "loss").positional == ("y",)
    read = Signature(function, "function").parameters
    assert [one.name for one in read] == ["x", "y"] and Signature(function, "function").parameters is read
    function.__defaults__ = None
    assert Signature(function, "function").plain_count == 2
    with pytest.raises(ArgumentError):
        Signature(function, "function").call((X,), {})
