"""What loops and choices promise besides their derivatives: errors, nan, code, memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, DTypeError, MutationError, ShapeError, UnsupportedError

pytestmark = [pytest.mark.part(8), pytest.mark.usefixtures("partly_compiled")]

Function = Callable[..., Any]
X = np.arange(12.0).reshape(4, 3)


def eager(function: Function) -> Function:
    return function


modes = pytest.mark.parametrize("mode", [eager, pb.compile], ids=["eager", "compiled"])


# --- errors -------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[type[Exception], str, Function]] = {
    "shape of a carry": (
        ShapeError,
        r"carry\['a'\] is float64\[\], but float64\[3\]",
        lambda x: pb.scan(lambda c, r: ({"a": (c["a"] + r).sum()}, None), {"a": np.zeros(3)}, x),
    ),
    "dtype of a carry": (
        DTypeError,
        r"carry\[1\] is bool\[3\], but float64\[3\]",
        lambda x: pb.scan(lambda c, r: ((c[0], r > 0), None), (x[0], x[0]), x),
    ),
    "structure of a carry": (
        ArgumentError,
        "structure .* of carry differs",
        lambda x: pb.scan(lambda c, r: ((c, c), None), x[0], x),
    ),
    "no pair": (ArgumentError, "expected a pair", lambda x: pb.scan(lambda c, r: c, x[0], x)),
    "no length": (ArgumentError, "number of steps", lambda x: pb.scan(lambda c, r: (c, r), x[0])),
    "negative length": (ArgumentError, "negative", lambda x: pb.scan(lambda c, r: (c, r), x, None, -1)),
    "rows that differ": (
        ShapeError,
        r"xs\['b'\] is float64\[2, 3\], of 2 rows, but xs\['a'\] says 4",
        lambda x: pb.scan(lambda c, r: (c, None), 0.0, {"a": x, "b": x[:2]}),
    ),
    "length and rows": (ShapeError, "length says 5", lambda x: pb.scan(lambda c, r: (c, None), 0.0, x, 5)),
    "rows without a dimension": (ShapeError, "no leading", lambda x: pb.map(lambda r: r, x.sum())),
    "a string": (
        ArgumentError,
        r"init\['a'\] is a str",
        lambda x: pb.scan(lambda c, r: (c, r), {"a": "b"}, x),
    ),
    "no truth value": (ShapeError, r"pred is bool\[4, 3\]", lambda x: pb.cond(x > 0, lambda: x, lambda: x)),
    "no condition": (
        ShapeError,
        "result of cond_fun",
        lambda x: pb.while_loop(lambda v: v > 0, lambda v: v - 1, x),
    ),
    "shape of a value": (
        ShapeError,
        r"value is float64\[3\], but float64\[4, 3\]",
        lambda x: pb.while_loop(lambda v: v.sum() > 0, lambda v: v[0] - 9, x),
    ),
    "a bound that is no integer": (
        ArgumentError,
        "upper is 2.5",
        lambda x: pb.fori_loop(0, 2.5, lambda i, v: v, x),
    ),
    "a bound of floats": (
        DTypeError,
        r"upper is float64\[\]",
        lambda x: pb.fori_loop(0, pb.asarray(x).sum(), lambda i, v: v, x),
    ),
    "no branches": (ArgumentError, "no branches", lambda x: pb.switch(0, [], x)),
    "no size of blocks": (
        ArgumentError,
        "checkpoint_every",
        lambda x: pb.scan(lambda c, r: (c, None), 0.0, x, checkpoint_every=0),
    ),
}


@modes
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mode: Function, mistake: str) -> None:
    error, text, function = MISTAKES[mistake]
    with pytest.raises(error, match=text):
        mode(function)(X)


BRANCHES: dict[str, tuple[type[Exception], str, Function, Function]] = {
    "shapes": (ShapeError, r"false_fun is float64\[3\], but float64\[4, 3\]", lambda x: x, lambda x: x[0]),
    "dtypes": (DTypeError, r"false_fun\['a'\] is bool", lambda x: {"a": x}, lambda x: {"a": x > 0}),
    "containers": (ArgumentError, "differs from", lambda x: (x, x), lambda x: [x, x]),
    "none": (ArgumentError, "differs from", lambda x: (x, x), lambda x: (x, None)),
}


@pytest.mark.parametrize("case", BRANCHES)
def test_branches_that_differ_are_named(case: str) -> None:
    error, text, first, second = BRANCHES[case]
    with pytest.raises(error, match=text):
        pb.compile(lambda x: pb.cond(x.sum() > 0, first, second, x))(X)


def writes_outside(x: Any) -> Any:
    outside = x * 2

    def step(carry: Any, row: Any) -> Any:
        outside[0] = row
        return carry, None

    return pb.scan(step, x[0], x)


def writes_into_its_carry(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry[0] = 1.0
        return carry, None

    return pb.scan(step, x[0], x)


UNSUPPORTED: dict[str, tuple[type[Exception], str, Function]] = {
    "a tensor from outside": (MutationError, "from outside", writes_outside),
    "a carry": (MutationError, "clone", writes_into_its_carry),
    "float16": (
        UnsupportedError,
        "float16",
        lambda x: pb.scan(lambda c, r: (c.to(pb.float16).to(pb.float64), None), x[0], x)[0],
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_compiled_bodies_lack_is_said(case: str) -> None:
    error, text, function = UNSUPPORTED[case]
    with pytest.raises(error, match=text):
        pb.compile(function)(pb.tensor(X, requires_grad=True))


# --- nan ----------------------------------------------------------------------------------------------------


@modes
def test_what_is_not_chosen_adds_no_nan(mode: Function) -> None:
    def function(x: Any, w: Any) -> Any:
        return pb.cond(x > 0, lambda x: pb.sqrt(x) * w, lambda x: x * w, x) + pb.switch(
            (x > 0).long(), [lambda: w * 1, lambda: pb.log(x) / w], *()
        )

    value, slopes = mode(pb.value_and_grad(function, (0, 1)))(np.array(-2.0), np.array(0.0))
    assert value == 0
    np.testing.assert_array_equal(slopes, [0.0, -2.0 + 1.0])
    again = mode(pb.grad(lambda x, w: pb.grad(function)(x, w) ** 2, 1))(np.array(-2.0), np.array(3.0))
    assert again == 6.0


@modes
def test_a_loop_without_steps_adds_no_nan(mode: Function) -> None:
    def function(x: Any) -> Any:
        body = lambda v: v * pb.log(x * 0)  # noqa: E731
        return pb.while_loop(lambda v: v > 10, body, x) + pb.fori_loop(
            0, x.long() - 5, lambda i, v: body(v), x
        )

    assert mode(pb.grad(function))(np.array(2.0)) == 2.0


def test_an_index_of_what_is_not_chosen_may_be_out_of_range() -> None:
    function = pb.compile(lambda x, i: pb.cond(i < 3, lambda: x[i], lambda: x[0] * 2))
    x = np.arange(1.0, 4.0)
    assert function(x, np.array(2)) == 3
    assert function(x, np.array(7)) == 2


# --- values that decide -------------------------------------------------------------------------------------


@modes
def test_an_index_is_clamped(mode: Function) -> None:
    function = mode(lambda i, x: pb.switch(i, [lambda v: v, lambda v: v * 2, lambda v: v * 3], x))
    assert [float(function(np.array(i), np.array(1.0))) for i in (-3, 0, 1, 2, 9)] == [1, 1, 2, 3, 3]


@modes
@pytest.mark.parametrize("steps", [0, 1, 2, 63, 64, 65, 700])
def test_any_number_of_steps_has_a_gradient(mode: Function, steps: int) -> None:
    function = GROWN[mode is eager]
    value, slope = function(np.array(0.99), np.array(steps))
    np.testing.assert_allclose(value, 0.99**steps * 2, rtol=1e-12)
    np.testing.assert_allclose(slope, steps * 0.99 ** (steps - 1) * 2, rtol=1e-12)


def grown(x: Any, steps: Any) -> Any:
    state = pb.while_loop(lambda s: s[0] < steps, lambda s: (s[0] + 1, s[1] * x), (0, 2.0))
    return state[1]


GROWN = (pb.compile(pb.value_and_grad(grown)), pb.value_and_grad(grown))


@pytest.mark.drawn(4)
@modes
def test_numbers_take_the_dtype_of_what_they_meet(mode: Function) -> None:
    for dtype in (np.float32, np.float64):
        x = X.astype(dtype)
        assert mode(lambda x: pb.scan(lambda c, r: (c + r.sum(), c), 0.0, x)[0])(x).dtype == dtype
        assert mode(lambda x: pb.cond(x.sum() > x.sum() - 1, lambda: x[0, 0], lambda: 0.0))(x).dtype == dtype
        steps = mode(lambda x: pb.scan(lambda c, r: ((c[0] + r.sum(), c[1] + c[0]), None), (0.0, 0), x)[0])
        assert [one.dtype for one in steps(x)] == [dtype, dtype]
    assert mode(lambda x: pb.fori_loop(0, 3, lambda i, c: c + i, 0))(X) == 3


# --- code ---------------------------------------------------------------------------------------------------


@pytest.mark.machine_code
def test_a_body_is_traced_once_whatever_the_number_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    def step(carry: Any, row: Any) -> Any:
        print("a step is traced")
        return pb.sin(carry) * row, carry

    function = pb.compile(pb.value_and_grad(lambda x: pb.scan(step, 1.0, x)[0]))
    for steps in (10, 1000):
        function(np.full(steps, 0.9))
    # Twice each: the first carry is a Python number, whose dtype is found out.
    assert len(capsys.readouterr().out.splitlines()) <= 4
    info = function.cache_info()
    assert info.compilations + info.disk_hits + info.source_hits == 2
    assert info.source_hits == 1  # a thousand steps run the machine code of ten


@pytest.mark.drawn(4)
def test_a_look_up_at_the_step_is_a_row() -> None:
    def function(x: Any) -> Any:
        return pb.fori_loop(1, 4, lambda i, c: pb.sin(c) * x[i - 1] + x[i], x[0]).sum()

    source = pb.compile(pb.value_and_grad(function)).source(X)
    assert "raise" not in source  # no position to compare with the extent
    slope = pb.compile(pb.grad(function))(X)
    np.testing.assert_allclose(slope, pb.grad(function)(X), rtol=1e-12)


def test_a_loop_runs_once_where_its_values_and_its_tape_are_wanted() -> None:
    def function(x: Any) -> Any:
        h, ys = pb.scan(lambda h, row: (pb.sin(h) * row, h), x[0], x)
        h, ys = pb.scan(lambda h, row: (pb.cos(h) * row, h), h, ys)
        h = pb.while_loop(lambda h: (h * h).sum() < 50, lambda h: h + pb.exp(h), h)
        return h.sum() + ys.sum()

    tensor = pb.tensor(X, requires_grad=True)
    compiled = pb.compile(function)
    forward = compiled.forward_source(tensor)
    assert forward.count("while goes_on") == 1
    both = pb.compile(pb.value_and_grad(function)).source(X)
    assert both.count("while goes_on") == 1


def test_explain_says_what_a_loop_tapes() -> None:
    def function(x: Any) -> Any:
        found = pb.while_loop(lambda v: (v * v).sum() < 9, lambda v: v + pb.sin(v) ** 2, x)
        return pb.cond(found.sum() > 0, lambda: found.sum(), lambda: (found * found).sum())

    text = pb.compile(function).explain(pb.tensor([0.5, 0.7], requires_grad=True))
    for part in ("loop while its condition is true", "[steps, 2]): a tape, a row each step", "if that is 1"):
        assert part in text


# --- memory -------------------------------------------------------------------------------------------------


def test_checkpoint_runs_the_function_again_and_keeps_nothing_of_it() -> None:
    calls = []

    def layer(x: Any) -> Any:
        calls.append(1)
        return pb.tanh(x * w) * pb.rand(3)

    w = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = pb.tensor([0.3, 0.1, 0.2], requires_grad=True)
    pb.manual_seed(1)
    y = pb.checkpoint(layer)(x * 2)
    assert y.grad_fn.name() == "CheckpointBackward"
    y.sum().backward()
    assert len(calls) == 2
    found = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    pb.manual_seed(1)
    layer(x * 2).sum().backward()
    np.testing.assert_array_equal(found[0], x.grad)
    np.testing.assert_array_equal(found[1], w.grad)


def test_checkpoints_are_called_as_pytorchs_are() -> None:
    checkpoints = pb.utils.checkpoint
    w = pb.tensor([0.5, 2.0], requires_grad=True)
    layers = [pb.tanh, lambda x: x * w, pb.exp]
    runs = []

    def run(x: Any, scale: float = 1.0) -> Any:
        runs.append(scale)
        return scale * (x * w).sin()

    programs = (
        (
            lambda: run(w * w, scale=3.0),
            lambda: checkpoints.checkpoint(run, w * w, scale=3.0, use_reentrant=False),
        ),
        (lambda: (pb.tanh(w * w) * w).exp(), lambda: checkpoints.checkpoint_sequential(layers, 2, w * w)),
    )
    for plain, checked in programs:
        expected, found = (pb.autograd.grad(compute().sum(), w)[0] for compute in (plain, checked))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    assert runs == [3.0, 3.0, 3.0]
    with pytest.raises(pb.errors.ArgumentError, match="4 segments of 3 functions"):
        checkpoints.checkpoint_sequential(layers, 4, w)


def test_checkpoint_counts_a_shared_origin_once() -> None:
    a = pb.tensor(0.7, requires_grad=True, dtype=pb.float64)
    b = a * a
    y = pb.checkpoint(lambda v: v * b * a)(b * 1)
    (first,) = pb.autograd.grad(y, a, create_graph=True)
    np.testing.assert_allclose(first.detach(), 5 * 0.7**4, rtol=1e-12)
    np.testing.assert_allclose(pb.autograd.grad(first, a)[0], 20 * 0.7**3, rtol=1e-12)


def test_a_checkpointed_scan_of_arrays_gives_arrays() -> None:
    rows = np.linspace(0.1, 0.9, 6).reshape(3, 2)
    plain = pb.scan(lambda c, row: (np.sin(c) * row, c), rows[0], rows)
    for found, wanted in zip(
        pb.scan(lambda c, row: (np.sin(c) * row, c), rows[0], rows, checkpoint=True), plain
    ):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, wanted)


def taped_bytes(**options: Any) -> int:
    def function(x: Any) -> Any:
        last, _ = pb.scan(lambda c, _: (pb.sin(pb.exp(pb.cos(c)) * c), None), x, None, 320, **options)
        return last.sum()

    compiled = pb.compile(pb.value_and_grad(function))
    expected = pb.value_and_grad(function)(X[0])
    found = compiled(X[0])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    (account,) = compiled.explain(X[0], as_data=True).forward
    return account.nbytes


def test_checkpoint_keeps_the_variables_around_it() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    scale = x * 3.0

    def inner(v: Any) -> Any:
        return v * scale

    y = pb.checkpoint(lambda v: inner(v) * scale)(x)
    scale = None
    y.sum().backward()
    assert x.grad.tolist() == [27.0, 108.0]


def test_checkpoint_sees_what_is_written_into_what_it_took_from_outside() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    scale = x * 3.0
    y = pb.checkpoint(lambda v: v * scale)(x)
    scale *= 2.0
    with pytest.raises(pb.errors.GradientError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_loop_of_no_steps_over_what_was_written() -> None:
    def function(x: Any, rows: Any) -> Any:
        y = x * 1.0
        body = lambda c, row: (c * y.sum() + x.sum(), y * x)  # noqa: E731
        last, stacked = pb.scan(body, x[0] * 1.0, rows, checkpoint=True)
        y *= 2.0
        return last + stacked.sum() + y.sum()

    value, slope = pb.value_and_grad(function)(np.ones(2), np.zeros((0, 3)))
    assert value == 5.0
    assert slope.tolist() == [3.0, 2.0]


@pytest.mark.drawn(6)
def test_checkpoints_take_less_memory() -> None:
    everything, carries, some = (
        taped_bytes(),
        taped_bytes(checkpoint=True),
        taped_bytes(checkpoint_every=16),
    )
    assert carries < everything / 1.5
    assert some < carries / 2


# --- arrays that a body fills -------------------------------------------------------------------------------


def filled(x: Any) -> Any:
    table = np.zeros(2)
    table[0], last = 3.0, table[1:]
    last[0] = 5.0
    pair = np.empty(2)
    pair[0], pair[1] = x[0], x.sum()
    pair[1:] *= table[1:]
    return pair.sum() * x / 40 + table[0]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: pb.cond(x.sum() > 0, filled, lambda y: y * 1.0, x),
        lambda x: pb.fori_loop(0, 3, lambda _, carry: filled(carry), x),
        lambda x: pb.map(lambda row: filled(row * x), np.ones((2, 3))),
    ],
)
def test_a_body_fills_arrays_of_its_own(program: Function) -> None:
    x = np.array([0.3, 0.5, 0.2])
    expected = program(x)
    np.testing.assert_allclose(pb.compile(program)(x), expected)
    gradients = [mode(pb.grad(lambda x: pb.sum(program(x))))(x) for mode in (eager, pb.compile)]
    np.testing.assert_allclose(gradients[1], gradients[0])


def test_a_body_does_not_fill_an_array_from_outside() -> None:
    def program(x: Any) -> Any:
        table = np.zeros(2)

        def one(x: Any) -> Any:
            table[0] = 4.0
            return x * table[0]

        return pb.cond(x.sum() > 0, one, lambda x: x, x)

    with pytest.raises(MutationError, match="writes into a tensor from outside"):
        pb.compile(program)(np.ones(2))


@pytest.mark.parametrize(
    "choose",
    [
        lambda f, x: pb.cond(x.sum() > 0, f, f, x),
        lambda f, x: pb.map(f, pb.stack([x, x * 2.0])),
    ],
)
def test_a_body_reads_one_matrix_in_two_other_shapes(choose: Callable[[Function, Any], Any]) -> None:
    def both(x: Any) -> Any:
        return (np.repeat(x, 2) ** 2).sum() + np.cumsum(x).sum()

    x = np.arange(8.0).reshape(2, 4)
    found = pb.compile(lambda x: choose(both, x))(x)
    np.testing.assert_allclose(found, choose(both, x))


@pytest.mark.drawn(6)
def test_a_loop_solves_for_the_same_right_hand_side() -> None:
    systems, side = np.random.default_rng(0).normal(size=(3, 2, 2)), np.ones(2)

    def solved(systems: Any) -> Any:
        return pb.map(lambda m: np.linalg.solve(m, side), systems)

    def total(systems: Any) -> Any:
        return (solved(systems) ** 2).sum()

    np.testing.assert_allclose(pb.compile(solved)(systems), np.linalg.solve(systems, side[:, None])[..., 0])
    np.testing.assert_allclose(pb.compile(pb.grad(total))(systems), pb.grad(total)(systems), rtol=1e-10)


@modes
def test_a_python_integer_counts(mode: Function) -> None:
    def doubled(x: Any) -> Any:
        def step(state: Any) -> Any:
            return state[0] + 1, 2 * state[1]

        return pb.while_loop(lambda state: state[0] < 3, step, (0, x))[1]

    assert mode(doubled)(np.ones(2)).tolist() == [8, 8]
    assert mode(pb.grad(lambda x: doubled(x).sum()))(np.ones(2)).tolist() == [8, 8]


def by_python(x: Any) -> Any:
    y = x
    for _ in range(12):
        y = y + 0.1 * x * pb.stop_gradient(y * y)
    return y


def by_python_until(x: Any) -> Any:
    y = x
    while y < 1.5:
        y = y + 0.1 * x * x * pb.stop_gradient(y * y) + 0.1
    return y


LOOPS: list[Function] = [
    by_python,
    by_python_until,
    lambda x: pb.fori_loop(0, 4, lambda i, y: y + 0.1 * x * x * pb.stop_gradient(y * y), x),
    lambda x: pb.while_loop(lambda y: y < 1.5, lambda y: y + x * pb.stop_gradient(y) + 0.1, x),
    lambda x: pb.scan(lambda y, r: (y * pb.stop_gradient(r * y) + x * x, y), x, np.ones(3))[1].sum(),
]


@pytest.mark.parametrize("function", LOOPS)
@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.part(3)
def test_what_is_a_constant_is_one_for_derivatives_of_every_order(function: Function, where: int) -> None:
    wanted = pb.grad(pb.grad(function))(0.7)
    inside = pb.compile(function) if where == 0 else function
    once = pb.compile(pb.grad(inside)) if where == 1 else pb.grad(inside)
    twice = pb.compile(pb.grad(once)) if where == 2 else pb.grad(once)
    np.testing.assert_allclose(twice(0.7), wanted, rtol=1e-12, atol=1e-12)
