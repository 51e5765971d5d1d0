"""Functions with rules of their own: `custom_vjp`, `custom_jvp`, `primitive`; and `check_rules`."""

import ctypes
import ctypes.util

import numpy as np
import pytest
from scipy import signal, special

import pullback as pb
from pullback.errors import ArgumentError, GradientError
from pullback.runtime.autograd import direct_calls
from pullback.runtime.autograd.traced_rules import TracedCall
from pullback.runtime.tape import engine
from pullback.testing import check_rules

pytestmark = pytest.mark.usefixtures("partly_compiled")

POINT = np.array([0.3, -0.7, 1.9])


@pb.custom_vjp
def clipped(x):
    """The identity, whose cotangents are clipped."""
    return x


clipped.defvjp(lambda x: (x, None), lambda residuals, g: (np.clip(g, -1.0, 1.0),))


@pb.custom_vjp
def parts(x, w):
    return {"scaled": np.exp(x) * w, "waves": np.sin(x)}


def _parts_forward(x, w):
    power = np.exp(x)
    scaled = power * w
    return {"scaled": scaled, "waves": np.sin(x)}, (power, x, scaled)


def _parts_backward(residuals, g):
    power, x, scaled = residuals
    return g["scaled"] * scaled + g["waves"] * np.cos(x), (g["scaled"] * power).sum()


parts.defvjp(_parts_forward, _parts_backward)


@pb.custom_jvp
def log1pexp(x):
    return np.log1p(np.exp(x))


log1pexp.defjvps(lambda t, y, x: (1 - 1 / (1 + np.exp(x))) * t)


@pb.primitive
def erfinv(x):
    return special.erfinv(x)


pb.defvjp(erfinv, lambda y, x: lambda g: g * np.sqrt(np.pi) / 2 * np.exp(y**2))


def loss_of_parts(x, w):
    found = parts(x, w)
    return (found["scaled"] ** 2).sum() + (found["waves"] * found["scaled"]).sum()


def plain_loss(x, w):
    return ((np.exp(x) * w) ** 2).sum() + (np.sin(x) * np.exp(x) * w).sum()


def flat(value):
    return np.concatenate([np.ravel(one) for one in (value if isinstance(value, tuple) else (value,))])


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile], ids=["eager", "compiled"])
class TestRule:
    def test_is_used_in_the_place_of_the_derivative(self, transform):
        weights = np.array([0.5, 7.0, -3.0])
        slope = transform(pb.grad(lambda x: (clipped(x) * weights).sum()))
        np.testing.assert_array_equal(slope(POINT), [0.5, 1.0, -1.0])

    def test_of_nested_arguments_and_results(self, transform):
        slope = transform(pb.grad(loss_of_parts, (0, 1)))
        np.testing.assert_allclose(flat(slope(POINT, 1.3)), flat(pb.grad(plain_loss, (0, 1))(POINT, 1.3)))

    def test_is_differentiated_again_and_so_are_its_residuals(self, transform):
        def squared(loss):
            return lambda x, w: (pb.grad(loss)(x, w) ** 2).sum() + pb.grad(loss, 1)(x, w) ** 2

        slope = transform(pb.grad(squared(loss_of_parts), (0, 1)))
        np.testing.assert_allclose(
            flat(slope(POINT, 1.3)), flat(pb.grad(squared(plain_loss), (0, 1))(POINT, 1.3))
        )

    def test_in_loops(self, transform):
        def steps(x):
            for _ in range(20):
                x = clipped(x) * 1.1
            return (x**2).sum()

        def scanned(x):
            return (pb.scan(lambda c, _: (clipped(c) * 1.1, None), x, None, 20)[0] ** 2).sum()

        expected = np.where(np.abs(POINT) > 0, np.sign(POINT), 0.0)
        for loss in (steps, scanned):
            np.testing.assert_allclose(transform(pb.grad(loss))(POINT), expected)

    def test_in_choices(self, transform):
        slope = transform(
            pb.grad(lambda x: pb.cond(x.sum() > 0, lambda x: clipped(x) * 5.0, lambda x: x, x).sum())
        )
        np.testing.assert_array_equal(slope(POINT), np.ones(3))
        np.testing.assert_array_equal(slope(-POINT), np.ones(3))

    def test_under_vmap(self, transform):
        slopes = transform(pb.vmap(pb.grad(lambda x: (clipped(x) * 5.0).sum())))
        np.testing.assert_array_equal(slopes(np.ones((2, 3))), np.ones((2, 3)))

    def test_of_tangents_gives_both_modes(self, transform):
        assert transform(pb.grad(log1pexp))(100.0) == 1.0
        _, tangent = transform(lambda x: pb.jvp(log1pexp, (x,), (np.ones(3),)))(POINT)
        np.testing.assert_allclose(tangent, special.expit(POINT))
        second = transform(pb.grad(pb.grad(log1pexp)))(1.0)
        np.testing.assert_allclose(second, special.expit(1.0) * special.expit(-1.0))

    def test_that_is_not_linear_in_tangents_raises(self, transform):
        @pb.custom_jvp
        def double(x):
            return 2.0 * x

        double.defjvp(lambda primals, tangents: (2.0 * primals[0], tangents[0] ** 2 + tangents[0]))
        with pytest.raises(GradientError, match="double is not linear"):
            transform(pb.grad(double))(1.0)

    def test_of_some_arguments_raises_for_the_others(self, transform):
        @pb.primitive
        def product(x, y):
            return x * y

        product.defvjp(lambda z, x, y: lambda g: g * y)
        assert transform(pb.grad(product))(2.0, 3.0) == 3.0
        with pytest.raises(GradientError, match="no rule for argument 1"):
            transform(pb.grad(product, 1))(2.0, 3.0)

    def test_raises_for_a_gradient_of_what_is_no_argument(self, transform):
        def loss(x):
            @pb.custom_vjp
            def scaled(y):
                return y * x

            scaled.defvjp(lambda y: (y * x, None), lambda residuals, g: (g,))
            return scaled(2.0 * x)

        with pytest.raises(GradientError, match="from outside of its arguments"):
            transform(pb.grad(loss))(2.0)

    @pytest.mark.parametrize(
        "returned, message",
        [
            (lambda g: (g.sum(),), r"shape \(\) for argument 0, which has shape \(3,\)"),
            (lambda g: (g, g), "each of its 1 arguments, or None; it returned 2 values"),
            (lambda g: ([g, g],), "2 leaves for argument 0"),
            (lambda g: ("g",), "a str as cotangent of argument 0"),
            (lambda g: g, "must return a tuple"),
        ],
    )
    def test_of_another_form_raises(self, transform, returned, message):
        @pb.custom_vjp
        def same(x):
            return 1.0 * x

        same.defvjp(lambda x: (1.0 * x, None), lambda residuals, g: returned(g))
        with pytest.raises(GradientError, match=message):
            transform(pb.grad(lambda x: same(x).sum()))(POINT)

    def test_of_arguments_without_gradient(self, transform):
        @pb.custom_vjp
        def power(x, n):
            return x**n

        numbered = pb.custom_vjp(lambda n, x: x**n, nondiff_argnums=0)
        power.defvjp(lambda x, n: (x**n, (x, n)), lambda residuals, g: (2 * residuals[0] * g, None))
        numbered.defvjp(lambda n, x: (x**n, x), lambda n, x, g: (n * x ** (n - 1) * g,))
        np.testing.assert_allclose(transform(pb.grad(lambda x: power(x, 2).sum()))(POINT), 2 * POINT)
        np.testing.assert_allclose(transform(pb.grad(lambda x: numbered(3, x).sum()))(POINT), 3 * POINT**2)


def test_a_function_without_a_rule_raises():
    for decorate in (pb.custom_vjp, pb.custom_jvp):
        with pytest.raises(ArgumentError, match="it has no rule"):
            decorate(np.sin)(1.0)
        with pytest.raises(ArgumentError, match="expected a function"):
            decorate(3)
    with pytest.raises(ArgumentError, match="decorated with primitive"):
        pb.defvjp(np.sin, lambda y, x: lambda g: g)


def test_results_are_of_the_kind_of_the_arguments():
    assert type(clipped(POINT)) is np.ndarray
    assert type(pb.grad(lambda x: clipped(x).sum())(POINT)) is np.ndarray
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    result = clipped(x)
    assert result.grad_fn.name() == "clippedBackward"
    (5.0 * result).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_keywords_are_put_in_their_places():
    assert pb.grad(lambda x: parts(w=2.0, x=x)["scaled"].sum())(0.0) == 2.0
    with pytest.raises(ArgumentError, match="missing a required argument"):
        parts(x=POINT)


def test_the_function_gets_arrays_where_the_call_was_given_arrays():
    seen = []

    @pb.primitive
    def double(x):
        seen.append(type(x))
        return 2.0 * x

    double.defvjp(lambda y, x: lambda g: (seen.append(type(g)), 2.0 * g)[1])
    pb.grad(lambda x: double(x).sum())(POINT)
    assert seen == [np.ndarray, np.ndarray]


def test_rules_of_foreign_functions():
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.cbrt.restype = ctypes.c_double
    library.cbrt.argtypes = [ctypes.c_double]
    root = pb.primitive(lambda x: library.cbrt(x))
    root.defvjp(lambda y, x: lambda g: g / (3 * y**2))
    assert pb.grad(root)(8.0) == pytest.approx(1 / 12)
    assert pb.grad(pb.grad(root))(8.0) == pytest.approx(-1 / 144)
    np.testing.assert_allclose(
        pb.hessian(lambda x: erfinv(x).sum())(np.array([0.1, 0.5])).diagonal(),
        pb.hessian(lambda x: pb.erfinv(x).sum())(np.array([0.1, 0.5])).diagonal(),
    )


def test_the_rule_is_used_where_functions_are_copied():
    """NumPy programs are differentiated through copies of their functions; a rule is part of a function."""

    def loss(x):
        y = np.zeros(3)
        y[:] = clipped(x)
        return (y * np.array([0.5, 7.0, -3.0])).sum()

    np.testing.assert_array_equal(pb.grad(loss)(POINT), [0.5, 1.0, -1.0])


def test_arguments_are_found_by_name():
    assert pb.grad(lambda w: parts(0.0, w)["scaled"].sum())(2.0) == 1.0
    np.testing.assert_allclose(pb.grad(log1pexp, "x")(0.0), 0.5)


def test_the_generated_code_shows_the_rule():
    source = pb.compile(pb.grad(lambda x: (clipped(x) ** 2).sum())).source(POINT)
    assert "clip" in source or "minimum" in source


@pytest.mark.parametrize(
    "function, args",
    [
        (parts, (POINT, 1.3)),
        (log1pexp, (POINT,)),
        (log1pexp, (0.5,)),
        (lambda t: (t * t).sum(), (pb.tensor([1.0, 2.0], dtype=pb.float64),)),
        (lambda p: p["a"] * p["b"], ({"a": POINT, "b": 2.0},)),
    ],
    ids=["parts", "log1pexp", "number", "tensor", "nested"],
)
def test_check_rules_accepts_what_is_right(function, args):
    check_rules(function, args)


def _cube(x):
    return x**3, x


def _writing(x):
    x[0] = 7.0
    return x**3, x


def _computing(x):
    return x**3 + 1e-3, x


@pytest.mark.parametrize(
    "forward, backward, message",
    [
        (_cube, lambda x, g: (2 * x**2 * g,), "the cotangents times a direction"),
        (_cube, lambda x, g: (3 * x**2 * g * g / (abs(g) + 1e-300),), "the cotangents"),
        (_cube, lambda x, g: (pb.stop_gradient(3 * x**2) * g,), "the gradient's cotangents"),
        (_writing, lambda x, g: (3 * x**2 * g,), "writes into an argument"),
        (_computing, lambda x, g: (3 * x**2 * g,), "the value inside of vjp"),
    ],
    ids=["value", "not linear", "second order", "written", "another value"],
)
def test_check_rules_finds_what_is_wrong(forward, backward, message):
    cube = pb.custom_vjp(lambda x: x**3)
    cube.defvjp(forward, backward)
    point = POINT.copy()
    with pytest.raises(GradientError, match=message):
        check_rules(cube, (point,))
    np.testing.assert_array_equal(point, POINT)


def test_a_function_may_call_itself_for_its_result_and_residuals():
    @pb.custom_vjp
    def exponential(x):
        return np.exp(x)

    exponential.defvjp(lambda x: (exponential(x), exponential(x)), lambda y, g: (g * y,))
    for transform in (lambda f: f, pb.compile):
        slopes = transform(pb.grad(lambda x: (exponential(x) * x).sum()))(POINT)
        np.testing.assert_allclose(slopes, np.exp(POINT) * (1 + POINT))


@pytest.mark.usefixtures("uncompiled")
def test_rules_inside_of_rules_are_traced_where_a_derivative_asks_for_them(monkeypatch):
    @pb.custom_vjp
    def sine(x):
        return np.sin(x)

    sine.defvjp(lambda x: (sine(x), x), lambda x, g: (g * (sine(x + np.pi) - 2.0 * sine(x - np.pi / 2)),))
    traced, trace_rule = [], TracedCall._traced_rule
    monkeypatch.setattr(
        TracedCall, "_traced_rule", lambda self, inputs: traced.append(inputs) or trace_rule(self, inputs)
    )
    first = pb.grad(lambda x: sine(x).sum())
    second = pb.grad(lambda x: first(x).sum())
    for slope, rules in ((first, 1), (second, 1 + 3)):  # the second is traced once more, with those inside
        traced.clear()
        np.testing.assert_allclose(pb.compile(slope)(POINT), slope(POINT))
        assert len(traced) == rules
    endless = pb.grad(lambda x: pb.grad(lambda x: second(x).sum())(x).sum())
    with pytest.raises(GradientError, match="so high an order"):
        pb.compile(endless)(POINT)


def test_check_rules_wants_float64():
    with pytest.raises(ArgumentError, match="not float64"):
        check_rules(np.sin, (POINT.astype(np.float32),))
    with pytest.raises(ArgumentError, match="no argument"):
        check_rules(np.sin, (3,))


class Tenfold(pb.autograd.Function):
    """Multiplies by 2; the gradient is 10 times the cotangent and the input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.factor = 10
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * ctx.factor


class Correlation(pb.autograd.Function):
    """Of SciPy, which sees arrays."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return pb.as_tensor(signal.correlate(x.detach().numpy(), w.detach().numpy(), mode="valid"))

    @staticmethod
    def backward(ctx, g):
        x, w = (one.detach().numpy() for one in ctx.saved_tensors)
        g = g.detach().numpy()
        return pb.as_tensor(signal.convolve(g, w)), pb.as_tensor(signal.correlate(x, g, mode="valid"))


class TestFunctionsInTraces:
    def test_to_second_order(self):
        def loss(x):
            return (Tenfold.apply(x) * x).sum()

        for transform in (pb.grad, pb.hessian):
            expected = transform(loss)(POINT)
            np.testing.assert_allclose(pb.compile(transform(loss))(POINT), expected)
            np.testing.assert_allclose(transform(pb.compile(loss))(POINT), expected)

    def test_in_loops_choices_and_batches(self):
        def scanned(x):
            return pb.scan(lambda c, row: (Tenfold.apply(c) + row, None), 0.0 * x[0], x)[0]

        def chosen(x):
            return pb.cond(x.sum() > 0, Tenfold.apply, lambda x: 1.0 * x, x).sum()

        for loss in (scanned, chosen):
            np.testing.assert_allclose(pb.compile(pb.grad(loss))(POINT), pb.grad(loss)(POINT))
        batched = pb.vmap(pb.grad(lambda x: Tenfold.apply(x).sum()))
        np.testing.assert_allclose(pb.compile(batched)(np.stack([POINT, POINT])), 10 * np.stack([POINT] * 2))

    def test_that_calls_foreign_code(self):
        x = pb.tensor(np.linspace(-1.0, 1.0, 8), requires_grad=True)
        w = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64, requires_grad=True)

        def loss(x, w):
            return (Correlation.apply(x, w) ** 2).sum()

        expected = pb.autograd.grad(loss(x, w), (x, w))
        function = pb.compile(loss)
        for one, other in zip(pb.autograd.grad(function(x, w), (x, w)), expected):
            np.testing.assert_allclose(one.numpy(), other.numpy())
        explained = function.explain(x, w, as_data=True)
        assert "Correlation_rule" in [one.operator for one in explained.backward[0].account.host_calls]

    def test_that_writes_into_its_input(self):
        class Doubled(pb.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2.0)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return 2.0 * g

        slope = pb.compile(pb.grad(lambda x: (Doubled.apply(x * 1.0) * POINT).sum()))
        np.testing.assert_allclose(slope(POINT), 2.0 * POINT)


class TestShortWayOfPrimitives:
    """Calls with arrays, outside of traces, are one node that keeps what rules read."""

    def make(self):
        calls = []

        @pb.primitive
        def product(x, w, power=1.0):
            calls.append((type(x), type(w)))
            return x**power * w

        pb.defvjp(
            product,
            lambda y, x, w, power=1.0: lambda g: g * power * x ** (power - 1.0) * w,
            lambda y, x, w, power=1.0: lambda g: g * x**power,
        )
        return product, calls

    def test_first_and_second_derivatives_by_one_call_of_the_function(self):
        product, calls = self.make()
        x, w = np.array([1.0, 2.0]), np.array([3.0, 5.0])
        gradients = pb.grad(lambda x, w: product(x * 1.0, w, power=3.0).sum(), argnums=(0, 1))(x, w)
        assert calls == [(np.ndarray, np.ndarray)]
        np.testing.assert_allclose(gradients, [3.0 * x**2 * w, x**3])
        second = pb.hessian(lambda x: product(x, w, power=3.0).sum())(x)
        np.testing.assert_allclose(second, np.diag(6.0 * x * w))
        slope = pb.grad(lambda x: product(x[0], x[1]) * 2.0)(x)
        assert calls[-1] == (np.float64, np.float64) and list(slope) == [4.0, 2.0]

    def test_a_number_beside_what_is_differentiated_is_constant_in_second_derivatives(self):
        @pb.primitive
        def scaled(x, factor):
            return np.asarray(x) * factor  # which takes no Tensor

        pb.defvjp(scaled, lambda y, x, factor: lambda g: g * factor, None)
        assert pb.jvp(lambda x: scaled(x, 3.0), (2.0,), (1.0,))[1] == 3.0
        assert pb.hessian(lambda x: scaled(x, 3.0) ** 2)(2.0) == 18.0

    def test_what_it_keeps_stays_where_the_program_writes(self):
        product, _ = self.make()

        def loss(x):
            state, factors = x * 1.0, np.array([3.0, 5.0])
            made = product(state, factors)
            state[:] = 0.0
            factors[:] = 0.0
            return (made * made).sum()

        np.testing.assert_allclose(pb.grad(loss)(np.array([1.0, 2.0])), [18.0, 100.0])

    def test_a_result_that_is_no_array_is_not_computed_twice(self):
        calls = []
        parts = pb.primitive(lambda x: calls.append(1) or (np.sin(x), np.cos(x)))
        pb.defvjp(parts, lambda y, x: lambda g: g[0] * y[1] - g[1] * y[0])
        slope = pb.grad(lambda x: sum(one.sum() for one in parts(x)))(POINT)
        np.testing.assert_allclose(slope, np.cos(POINT) - np.sin(POINT))
        assert calls == [1]

    def test_a_cotangent_of_another_shape_is_an_error(self):
        wrong = pb.primitive(lambda x: x * 1.0)
        pb.defvjp(wrong, lambda y, x: lambda g: g[:1])
        with pytest.raises(GradientError, match=r"returned a cotangent of shape \(1,\)"):
            pb.grad(lambda x: wrong(x).sum())(POINT)

    @pytest.mark.parametrize("number", [False, True], ids=["array", "number"])
    def test_the_engine_gives_what_it_gives_in_the_long_way(self, monkeypatch, number):
        product, _ = self.make()
        x, w = np.array([1.0, 2.0]), np.array([3.0, 5.0])
        if number:
            x, w = x[1], w[1]
        visited, visit = [], engine.Pass.visit
        monkeypatch.setattr(
            engine.Pass, "visit", lambda self, node: visited.append(type(node)) or visit(self, node)
        )

        def gradients():
            def loss(x, w):
                return np.sum(product(x, w, power=3.0) * product(w, x) + product(x, 2.0))

            def slope(x):
                return np.sum(pb.grad(loss)(x, w))

            return [*pb.grad(loss, argnums=(0, 1))(x, w), pb.grad(slope)(x), pb.jacobian(loss)(x, w)]

        short = gradients()
        assert direct_calls.PrimitiveBackward not in visited, visited
        monkeypatch.setattr(direct_calls.PrimitiveBackward, "runs_rules", False)
        for one, other in zip(short, gradients(), strict=True):
            assert type(one) is type(other) and one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        assert direct_calls.PrimitiveBackward in visited

    def test_nothing_is_added_to_an_array_that_a_rule_keeps(self):
        kept = np.array([1.0, 2.0])
        held = pb.primitive(lambda x: x.sum())
        pb.defvjp(held, lambda y, x: lambda g: kept)
        x = np.zeros(2)
        for loss in (lambda x: held(x) + (3.0 * x).sum(), lambda x: (3.0 * x).sum() + held(x)):
            np.testing.assert_array_equal(pb.grad(loss)(x), 3.0 + kept)
            np.testing.assert_array_equal(kept, [1.0, 2.0])

    def test_a_rule_whose_cotangent_nobody_wants_is_not_called(self):
        called = []
        product = pb.primitive(lambda x, w: x * w)
        makers = [lambda y, x, w: lambda g: called.append("x") or g * w, lambda y, x, w: called.append("w")]
        pb.defvjp(product, *makers)
        inner = pb.grad(lambda x, w: product(x, w).sum())
        np.testing.assert_array_equal(pb.grad(lambda w: inner(POINT, w).sum())(POINT), np.ones(3))
        assert called == ["x"]
