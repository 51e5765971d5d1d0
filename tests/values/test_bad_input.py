"""Each documented mistake raises its own error, which says what was found, what was expected, what to do."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.tracer.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    LeakedTraceError,
    MutationError,
    OutputError,
    ShapeError,
    TraceError,
)

X = np.linspace(0.1, 1.0, 4)


@pb.compile
def loss(w: Any, x: Any) -> Any:
    return ((w * x) ** 2).sum()


# --- arguments --------------------------------------------------------------------------------------------


def test_shapes_that_do_not_fit_name_the_line_and_leave_no_trace_behind() -> None:
    before = loss.cache_info()
    with pytest.raises(ShapeError, match=r"broadcast together with shapes \(4,\) \(3,\)") as caught:
        loss(X, np.ones(3))
    assert "test_bad_input.py" in str(caught.value) and "((w * x) ** 2).sum()" in str(caught.value)
    assert loss.cache_info() == before
    assert loss(X, X) == pytest.approx(np.sum(X**4))


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array(["a", "b"]), "<U1"),
        (np.array([{}, None], dtype=object), "object"),
        (np.zeros(2, dtype=[("a", float)]), r"\[\('a', '<f8'\)\]"),
        (np.array(["2020-01-01"], "datetime64[D]"), r"datetime64\[D\]"),
    ],
    ids=["string", "object", "structured", "date"],
)
def test_dtypes_that_are_not_supported(array: np.ndarray, dtype: str) -> None:
    with pytest.raises(
        DTypeError, match=rf"loss: argument 'x' has dtype {dtype}; expected a bool, integer, floating or"
    ):
        loss(np.ones(2), array)


def test_masked_arrays() -> None:
    with pytest.raises(ArgumentError, match=r"loss: argument 'w' is a masked array.*\.filled"):
        loss(np.ma.masked_array(X, X > 0.5), X)


def test_arguments_that_are_neither_arrays_nor_hashable() -> None:
    @pb.compile(static_argnames="dims")
    def total(x: Any, dims: Any) -> Any:
        return x.sum(dims)

    with pytest.raises(
        ArgumentError, match="total: argument 'dims' is a list, which is neither an array nor hashable"
    ):
        total(X, [0])
    with pytest.raises(ArgumentError, match="argument 'dims' is a slice"):
        total(X, slice([0], 1))
    with pytest.raises(ArgumentError, match="argument 'w' is a set"):
        loss({1}, X)


def test_arrays_of_other_libraries() -> None:
    class Foreign:
        def __dlpack__(self) -> None: ...

    Foreign.__module__ = "othertorch.arrays"
    for given in ((Foreign(), X), (X, Foreign())):
        with pytest.raises(ArgumentError, match=r"is a othertorch\.Foreign.* Pass numpy\.asarray"):
            loss(*given)
    with pytest.raises(ArgumentError, match=r"'w' is a othertorch\.Foreign; .*Pass numpy\.asarray"):
        pb.grad(lambda w: (w * X).sum())(Foreign())


def test_a_missing_return_and_an_integer_are_named() -> None:
    def nothing(w: Any) -> None:
        (w * w).sum()

    with pytest.raises(OutputError, match="result that is None.* a return is missing"):
        pb.grad(nothing)(X)
    with pytest.raises(DTypeError, match=r"argument 't' has dtype int64.* Pass 3\.0"):
        pb.grad(lambda t: t * t)(3)


def test_arguments_that_do_not_fit_the_signature() -> None:
    with pytest.raises(ArgumentError, match=r"loss\(w.*x.*\).*: missing a required argument: 'x'"):
        loss(X)
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'z'"):
        loss(X, X, z=1)


def test_options_that_do_not_exist() -> None:
    with pytest.raises(ArgumentError, match="static_argnames has 'q', but the parameters are"):
        pb.compile(lambda x: x, static_argnames="q")
    with pytest.raises(ArgumentError, match="static_argnums has 3, but the function has 1 positional"):
        pb.compile(lambda x: x, static_argnums=3)
    with pytest.raises(ArgumentError, match="compile: expected a function, found 3 of type int"):
        pb.compile(3)  # type: ignore[call-overload]


def in_place_on_a_leaf() -> None:
    x = pb.tensor(X, requires_grad=True)
    x += 1.0


def without_a_value(w: Any) -> Any:
    return (X * w).sum()


def written_in_place(w: Any) -> Any:
    w[0] = 2.0
    return w.sum()


class Model:
    weight = X


@pytest.mark.parametrize(
    ("mistake", "error", "says"),
    [
        (lambda: pb.ones(3)[:2.0], TypeError, "slice indices must be integers or None, found 2.0.*int()"),
        (lambda: pb.grad(lambda x, n: x[:n].sum())(X, 2.0), TypeError, "found 2.0.*at test_bad_input.py"),
        (lambda: pb.compile(lambda x, n: x[n:])(X, 2.0), TypeError, "found 2.0.*at test_bad_input.py"),
        (lambda: pb.compile(lambda x: x if x > 0 else -x)(X), ValueError, "at test_bad_input.py.*x.any()"),
        (in_place_on_a_leaf, GradientError, r"operation, at test_bad_input.py:\d+  x \+= 1.0. Wr.*no_grad"),
        (lambda: pb.grad(written_in_place)(X.copy()), MutationError, r"'w'.*write into a copy\(\) of"),
        (lambda: pb.grad(pb.compile(without_a_value))(None), TypeError, "X . w is given None, at test_bad"),
        (lambda: pb.grad(loss)(Model(), X), ArgumentError, "argument 'w' is a Model.*dataclasses"),
        (lambda: np.sin(pb.tensor(X, requires_grad=True), out=X.copy()), TypeError, "Call it without `out`"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_remedy(mistake: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=f"(?s){says}"):
        mistake()


# --- results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: "text", r"returns 'text', of type str, as its result"),
        (lambda x: {"a": (x, {x})}, r"of type set, at result\['a'\]\[1\]"),
        (lambda x: [x, object()], r"of type object, at result\[1\]"),
        (lambda x: (y for y in x), "of type generator, as its result"),
    ],
)
def test_results_that_are_no_tensors(result: Any, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        pb.compile(result)(X)


def test_gradients_through_results_without_one() -> None:
    @pb.compile
    def position(x: Any) -> Any:
        return x.argmax()

    value = position(pb.tensor(X, requires_grad=True))
    assert not value.requires_grad
    with pytest.raises(GradientError, match="does not require grad"):
        value.backward()
    with pytest.raises(DTypeError, match="position: a derivative is taken of a result of dtype int64"):
        pb.grad(position)(X)


def test_integer_arguments_have_no_gradient() -> None:
    with pytest.raises(DTypeError, match="loss: argument 'w' has dtype int64, and only floating or complex"):
        pb.grad(loss)(np.arange(4), X)


# --- what a traced function must not do -------------------------------------------------------------------

kept: Any = None
history: list[Any] = []


def test_a_traced_value_in_a_global() -> None:
    @pb.compile
    def leaks(x: Any) -> Any:
        global kept
        kept = x * 2
        return kept

    with pytest.raises(MutationError, match="leaks changes the global variable kept while it is traced"):
        leaks(X)


def test_a_traced_value_in_a_list_and_an_attribute() -> None:
    class Holder:
        value: Any = None

    holder = Holder()

    @pb.compile
    def appends(x: Any) -> Any:
        history.append(x)
        return x

    @pb.compile
    def assigns(x: Any) -> Any:
        holder.value = x
        return x

    with pytest.raises(MutationError, match="appends changes history while it is traced"):
        appends(X)
    with pytest.raises(LeakedTraceError, match="assigns stores a traced value in holder, at 'value'"):
        assigns(X)


def test_a_leaked_value_says_so_when_it_is_used() -> None:
    leaked: Any = logging.getLogger("of a test")  # nothing is looked for there

    def leaks(x: Any) -> Any:
        leaked.value = x
        return x

    pb.compile(leaks)(X)
    with pytest.raises(LeakedTraceError, match="used after its trace had ended"):
        leaked.value + 1
    with pytest.raises(LeakedTraceError, match="trace that has ended"):
        loss(leaked.value, X)


def test_recursion_without_end() -> None:
    @pb.compile
    def endless(x: Any) -> Any:
        return endless(x) + 1

    with pytest.raises(
        TraceError, match="endless calls itself without end while it is traced.*static argument"
    ):
        endless(X)


def test_containers_that_are_changed() -> None:
    @pb.compile
    def stores(params: Any, x: Any) -> Any:
        params["w"] = x
        return x

    with pytest.raises(
        MutationError, match=r"stores changes a container among its arguments at argument 0\['w'\]"
    ):
        stores({"w": X}, X)


def test_what_is_reached_from_outside_and_overwritten() -> None:
    table = np.ones(4)
    latest: Any = [0]

    @pb.compile
    def writes(x: Any) -> Any:
        table[0] = x[0]
        return x

    @pb.compile
    def replaces(x: Any) -> Any:
        nonlocal latest
        latest = [1]
        return x

    table.flags.writeable = False
    with pytest.raises(MutationError, match="writes writes into table, which is a read-only array"):
        writes(X)
    with pytest.raises(MutationError, match="replaces changes the variable latest of an enclosing function"):
        replaces(X)
    assert latest == [0]


def test_backward_in_a_traced_function() -> None:
    @pb.compile
    def steps(w: Any) -> Any:
        value = (w * w).sum()
        value.backward()
        return value

    with pytest.raises(MutationError, match=r"steps calls backward.*'w' is computed.*autograd\.grad"):
        steps(pb.tensor(X, requires_grad=True) * 2)


def test_an_error_of_the_users_function_passes_through_and_nothing_stays() -> None:
    broken = True

    @pb.compile
    def fails(x: Any) -> Any:
        if broken:
            raise ZeroDivisionError("mine")
        return x * 2

    with pytest.raises(ZeroDivisionError, match="mine"):
        fails(X)
    assert fails.cache_info().size == 0 and fails.cache_info().misses == 0
    broken = False
    np.testing.assert_array_equal(fails(X), X * 2)


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile, pb.grad])
def test_a_value_that_does_not_fit_where_it_is_written(transform: Any) -> None:
    def filled(x):
        y = pb.zeros(3, dtype=pb.float64)
        y[0] = x[0]
        return y.sum()

    with pytest.raises(ShapeError, match=r"shape \[4\] .* shape \[\] .* y\[0\] = x\[0\]"):
        transform(filled)(pb.ones(3, 4, dtype=pb.float64))


def plainly(weights: Any, *, scale: float = 1.0) -> Any:
    return (weights**2).sum() * scale


MISFITS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: pb.grad(plainly)(X, X), ArgumentError, r"takes 1 .* is plainly\(weights, \*, scale=1.0\)"),
    (lambda: pb.vjp(plainly), ArgumentError, r"missing 1 .*\n  at test_bad_input.py:\d+  \(lam"),
    (lambda: pb.grad(lambda x: pb.sum(x, foo=1))(X), ArgumentError, r"'foo'. Its signature is sum\(input"),
    (lambda: pb.compile(lambda x: np.sum(x, dim=0))(X), ArgumentError, r"^numpy.sum: .*'dim'.\n  at te"),
    (lambda: pb.grad(lambda x: x.astype("foo"))(X), ArgumentError, "^ndarray.astype: data type 'foo'"),
    (lambda: pb.grad(lambda x: x + "a")(X), ArgumentError, r"ray' and 'str'. .* float\(text\)"),
    (lambda: pb.grad(lambda x: x - plainly)(X), ArgumentError, "Call it: the function itself is no number"),
    (lambda: pb.grad(lambda x: x(1))(X), TypeError, "^'numpy.ndarray' object is not callable$"),
    (lambda: pb.grad(lambda x: x.reshape(2.0, 2))(X), ArgumentError, "^ndarray.reshape: 'float' object"),
    (lambda: pb.ones(4).reshape(2.0, 2), ArgumentError, "sizes must be integers, found 2.0 of type float"),
    (lambda: pb.grad(plainly(X)), ArgumentError, r"found float64 .* grad\(f\)\(x\)"),
    (lambda: pb.grad(plainly, argnums=1.5)(X), ArgumentError, "a position or a name .*found 1.5"),
    (lambda: pb.jvp(plainly, X, (X,)), ArgumentError, "primals must be a tuple .* found ndarray"),
    (lambda: pb.jvp(plainly, (X,), ("a",)), DTypeError, "dtype float64 expected, found <U1"),
    (lambda: pb.compile(plainly, static_argnums="a"), ArgumentError, "static_argnums has 'a'"),
    (lambda: pb.compile(plainly, static_argnums=0)(X), ArgumentError, "'weights' is an array, and declared"),
    (lambda: pb.cond(True, plainly, X), ArgumentError, "false_fun must be a function, found array"),
    (lambda: pb.autograd.grad(3.0, [pb.ones(2)]), ArgumentError, "tensors expected, found float 3.0"),
    (lambda: pb.manual_seed("a"), ArgumentError, "an integer expected, found 'a'"),
    (lambda: bool(pb.ones(2) > 0), ShapeError, "ambiguous, at test_bad_input"),
]


@pytest.mark.parametrize(("mistake", "error", "says"), MISFITS, ids=[says[:40] for _, _, says in MISFITS])
def test_a_call_that_does_not_fit_is_of_a_class_that_is_documented(
    mistake: Callable[[], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=f"(?s){says}") as caught:
        mistake()
    assert caught.value.__cause__ is None
    assert all(" in run_program" not in one for one in getattr(caught.value, "__notes__", ()))
