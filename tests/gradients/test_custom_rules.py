"""Functions with rules of their own: `custom_vjp`, `custom_jvp`, `primitive`; and `check_rules`."""

import ctypes
import ctypes.util
import functools
import warnings

import numpy as np
import pytest
from scipy import signal, special

import pullback as pb
from pullback.autograd import gradcheck, gradgradcheck
from pullback.errors import ArgumentError, GradientError, OutputError
from pullback.testing import check_rules

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


def _bessel(order, x):
    """Of one number after another, which no trace sees through."""
    return np.asarray(np.frompyfunc(lambda one: special.jv(order, float(one)), 1, 1)(np.asarray(x)), float)


def _jv_forward(x):
    return _bessel(0, x), x


@pb.custom_vjp
def jv(x):
    return _bessel(0, x)


jv.defvjp(_jv_forward, lambda x, g: (-g * _bessel(1, x),))
SCALE = np.array([1.0, 2.0, 3.0])


class TestForeign:
    """In compiled code Python calls what is not traced."""

    @pytest.fixture(autouse=True)
    def _nothing_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def test_value_and_gradient(self):
        loss = pb.compile(pb.value_and_grad(lambda x: (jv(2.0 * x) ** 2 * x).sum()))
        value, slope = loss(POINT)
        np.testing.assert_allclose(value, (special.jv(0, 2 * POINT) ** 2 * POINT).sum())
        outer = special.jv(0, 2 * POINT)
        np.testing.assert_allclose(slope, outer**2 - 4 * outer * special.jv(1, 2 * POINT) * POINT)
        (forward,) = loss.explain(POINT, as_data=True).forward
        assert [one.operator for one in forward.host_calls] == ["jv", "jv_rule"]

    def test_on_the_tape_outside(self):
        x = pb.tensor(POINT, requires_grad=True)
        pb.compile(lambda x: jv(x).sum())(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), -special.jv(1, POINT))

    def test_a_rule_that_is_not_traced_has_no_derivative(self):
        with pytest.raises(GradientError, match="jv_rule runs in Python as it is"):
            pb.compile(pb.grad(lambda x: pb.grad(lambda x: jv(x).sum())(x).sum()))(POINT)

    def test_a_rule_that_is_traced_has_one(self):
        library = ctypes.CDLL(ctypes.util.find_library("m"))
        library.cbrt.restype = ctypes.c_double
        library.cbrt.argtypes = [ctypes.c_double]
        root = pb.primitive(lambda x: library.cbrt(x))
        root.defvjp(lambda y, x: lambda g: g / (3 * y**2))
        assert pb.compile(root)(8.0) == 2.0
        assert pb.compile(pb.grad(root))(8.0) == pytest.approx(1 / 12)
        assert pb.compile(pb.grad(pb.grad(root)))(8.0) == pytest.approx(-1 / 144)

    def test_in_loops_and_batches(self):
        def scanned(x):
            return pb.scan(lambda c, row: (jv(0.5 * c) + row, None), 0.0 * x[0], x)[0]

        def steps(x):
            total = 0.0
            for i in range(20):
                total = total + jv(0.01 * i * x).sum()
            return total

        for loss in (scanned, steps):
            np.testing.assert_allclose(pb.compile(pb.grad(loss))(POINT), pb.grad(loss)(POINT))
        slopes = pb.compile(pb.vmap(pb.grad(lambda x: jv(x).sum())))(np.stack([POINT, 2 * POINT]))
        np.testing.assert_allclose(slopes, -special.jv(1, np.stack([POINT, 2 * POINT])))

    def test_a_function_that_takes_batches_is_called_once_for_all_steps(self):
        calls = []
        given = np.random.default_rng(1).normal(size=(6, 3))

        def noted(kind, array):
            calls.append((kind, memoryview(np.asarray(array)).shape))  # which is refused in a trace
            return np.asarray(array)

        def pair(x, factor):
            x = noted("forward", x)
            return (np.cosh(x * factor), (x * 1j + np.asarray(factor))), (x, factor)

        def rule(residuals, g):
            x, factor = residuals
            real, of_pair = np.asarray(g[0]) * np.sinh(noted("rule", x) * factor), np.asarray(g[1])
            return real * factor + of_pair.imag, real * x + of_pair.real

        function = pb.custom_vjp(lambda x, factor: pair(x, factor)[0], vectorized=True)
        function.defvjp(pair, rule)

        def row(x, shared):
            first, second = function(x * 2.0, shared)
            return (first * shared).sum() + (second.real * second.imag).sum()

        def plain(x, shared):
            return (np.cosh(2.0 * x * shared) * shared).sum() + (2.0 * x * shared).sum()

        shared = np.array([0.5, 1.0, 1.5])
        values = pb.compile(pb.vmap(row, in_dims=(0, None)))
        slopes = pb.compile(pb.vmap(pb.grad(row, argnums=(0, 1)), in_dims=(0, None)))
        mapped = pb.vmap(row, in_dims=(0, None))
        total = pb.compile(pb.grad(lambda rows, shared: mapped(rows, shared).sum(), argnums=(0, 1)))
        carried = pb.compile(lambda xs: pb.scan(lambda c, x: (0.5 * c + row(x, shared), None), 0.0, xs)[0])
        for rows in (given, given[:4]):
            wanted = [pb.grad(plain, argnums=(0, 1))(x, shared) for x in rows]
            expected = [np.stack(one) for one in zip(*wanted)]
            last = functools.reduce(lambda c, x: 0.5 * c + plain(x, shared), rows, 0.0)
            for _ in range(2):
                calls.clear()
                np.testing.assert_allclose(values(rows, shared), [plain(x, shared) for x in rows])
                np.testing.assert_allclose(carried(rows), last)
            assert calls == [("forward", rows.shape)] * 2
            for form, others in ((slopes, expected), (total, [expected[0], expected[1].sum(axis=0)])):
                for _ in range(2):
                    calls.clear()
                    for one, other in zip(form(rows, shared), others):
                        np.testing.assert_allclose(one, other)
                assert sorted(calls) == [("forward", rows.shape), ("rule", rows.shape)]

    def test_uncompiled_a_function_that_takes_batches_is_called_once_for_all_rows(self):
        shapes = []
        rows = np.random.default_rng(2).normal(size=(5, 3))
        square = pb.primitive(lambda x, w: shapes.append(np.shape(x)) or x**2 * w, vectorized=True)
        square.defvjp(
            lambda y, x, w: lambda g: shapes.append(np.shape(g)) or 2.0 * x * w * g,
            lambda y, x, w: lambda g: x**2 * g,
        )
        np.testing.assert_allclose(pb.vmap(square, (1, 0), 1)(rows.T, rows), (rows**3).T)
        assert shapes == [(5, 3)]
        shapes.clear()
        slope = pb.grad(lambda x: pb.vmap(square)(x, rows).sum())(rows)
        np.testing.assert_allclose(slope, 2 * rows**2)
        assert shapes == [(5, 3)] * 2
        np.testing.assert_allclose(pb.vmap(square, (0, None))(rows, rows[0]), rows**2 * rows[0])
        total = pb.primitive(lambda x: x.sum(), vectorized=True)
        with pytest.raises(OutputError, match="declared to take batches"):
            pb.vmap(total)(rows)

    @pytest.mark.parametrize("transform", [pb.grad, lambda f: pb.compile(pb.grad(f))])
    def test_the_error_of_a_rule_is_shown_as_it_is(self, transform):
        def rule(y, x):
            number = np.asarray(x).tolist()[0]  # which is refused in a trace
            return lambda g: g * {}[number]

        function = pb.primitive(lambda x: x**2)
        function.defvjp(rule)
        with pytest.raises(KeyError) as raised:
            transform(lambda x: function(x).sum())(POINT)
        assert any(one.name == "<lambda>" and "{}[number]" in str(one.statement) for one in raised.traceback)

    def test_a_function_that_does_not_take_the_batches_it_says_is_refused(self):
        function = pb.primitive(lambda x: np.array(memoryview(np.asarray(x))).sum(), vectorized=True)
        function.defvjp(lambda y, x: lambda g: g * np.ones_like(x))
        with pytest.raises(OutputError, match="declared to take batches"):
            pb.compile(pb.vmap(function))(np.ones((3, 2)))
        with pytest.raises(OutputError, match="declared to take batches"):
            check_rules(function, (np.ones(2),))
        square = pb.primitive(lambda x: np.array(memoryview(np.asarray(x))) ** 2, vectorized=True)
        square.defvjp(lambda y, x: lambda g: 2.0 * x * g)
        check_rules(square, (np.ones(2),))

    def test_results_of_several_dtypes(self):
        @pb.primitive
        def split(x):
            halves = np.frompyfunc(float, 1, 1)(x).astype(float)
            return {
                "whole": np.floor(halves).astype(np.int64),
                "rest": halves % 1.0,
                "sum": float(halves.sum()),
            }

        split.defvjp(lambda y, x: lambda g: g["rest"] + g["sum"])

        def loss(x):
            found = split(x)
            return (found["rest"] * found["whole"]).sum() + found["sum"] * 2.0

        for one in (pb.grad(loss), pb.compile(pb.grad(loss))):
            np.testing.assert_allclose(one(POINT), np.floor(POINT) + 2.0)
        found, expected = pb.compile(split)(POINT), split(POINT)
        for key, value in expected.items():
            assert type(found[key]) is type(value)
            np.testing.assert_allclose(found[key], value)

    def test_arrays_from_outside_are_those_of_each_call(self):
        global SCALE
        SCALE = np.array([1.0, 2.0, 3.0])

        @pb.primitive
        def scaled(x):
            return SCALE * np.frompyfunc(float, 1, 1)(x).astype(float)

        scaled.defvjp(lambda y, x: lambda g: g * SCALE)
        function = pb.compile(pb.value_and_grad(lambda x: scaled(x).sum()))
        for _ in range(2):
            value, slope = function(POINT)
            np.testing.assert_allclose(value, (SCALE * POINT).sum())
            np.testing.assert_allclose(slope, SCALE)
            SCALE = 2.0 * SCALE

    def test_another_shape_than_in_the_trace_raises(self):
        positive = pb.primitive(lambda x: np.asarray([float(one) for one in x if one > 0]))
        positive.defvjp(lambda y, x: lambda g: g.sum() + 0.0 * x)
        function = pb.compile(lambda x: positive(x).sum())
        np.testing.assert_allclose(function(POINT), 2.2)
        with pytest.raises(OutputError, match=r"gave float64\[1\], and float64\[2\] when it was traced"):
            function(-POINT)

    @pytest.mark.parametrize(
        "residuals",
        [
            lambda x, y: y if x[0] > 0 else (y,),
            lambda x, y: (x, y) if x[0] > 0 else (x.copy(), y),
            lambda x, y: (None if x[0] > 0 else x, y),
        ],
        ids=["a tuple or not", "an argument or not", "None or not"],
    )
    def test_residuals_of_another_form_than_in_the_trace_raise(self, residuals):
        squared = pb.custom_vjp(lambda x: x * x)

        def forward(x):
            if type(x) is not np.ndarray:
                raise TypeError("arrays only")
            y = x * x
            return y, residuals(x, y)

        squared.defvjp(forward, lambda kept, g: (g,))
        function = pb.compile(lambda x: squared(x).sum())
        function(abs(POINT))
        function(abs(POINT) + 1.0)
        with pytest.raises(OutputError, match="results and residuals of another form"):
            function(-abs(POINT))

    def test_a_rule_may_give_none_arrays_of_other_dtypes_and_tensors(self):
        given = [lambda x: x, lambda x: None, lambda x: x.astype(np.float32), pb.tensor, lambda x: x[:1]]
        choice = []
        chosen = pb.custom_vjp(lambda x: special.expit(np.asarray(x)))
        chosen.defvjp(
            lambda x: (special.expit(np.asarray(x)), np.asarray(x)),
            lambda x, g: (given[choice[0]](np.asarray(g) * x),),
        )
        loss = pb.compile(pb.grad(lambda x: chosen(x).sum()))
        choice[:] = [0]
        for number, expected in enumerate((POINT, 0 * POINT, POINT, POINT)):
            choice[:] = [number]
            np.testing.assert_allclose(loss(POINT), expected, rtol=1e-6)
        choice[:] = [4]
        with pytest.raises(GradientError, match="cotangent of shape"):
            loss(POINT)

    def test_calls_that_differ_in_what_has_no_gradient_are_two(self):
        ordered = pb.custom_vjp(lambda n, x: special.jv(n, np.asarray(x)), nondiff_argnums=0)
        ordered.defvjp(
            lambda n, x: (special.jv(n, np.asarray(x)), x),
            lambda n, x, g: (g * special.jvp(n, np.asarray(x)),),
        )
        scaled = pb.primitive(lambda x, scale=1.0: np.asarray(memoryview(x)) * scale)
        scaled.defvjp(lambda y, x, scale=1.0: lambda g: np.asarray(memoryview(g)) * scale)
        weighted = pb.custom_vjp(lambda x, n: special.jv(n, np.asarray(x)))
        weighted.defvjp(
            lambda x, n: (special.jv(n, np.asarray(x)), (x, f"{n}")),
            lambda residuals, g: (g * special.jvp(int(residuals[1]), np.asarray(residuals[0])), None),
        )
        for function in (
            lambda x: (ordered(0, x) + 10 * ordered(1, x)).sum(),
            lambda x: (scaled(x, scale=2.0) + 10 * scaled(x, scale=3.0)).sum(),
            lambda x: (weighted(x, 0) + 10 * weighted(x, 1)).sum(),
        ):
            value, slope = pb.compile(pb.value_and_grad(function))(POINT)
            np.testing.assert_allclose(value, function(POINT))
            np.testing.assert_allclose(slope, pb.grad(function)(POINT))

    def test_an_error_in_it_is_raised_with_the_line(self):
        @pb.primitive
        def refusing(x):
            if float(x) > 1.0:
                raise ValueError("too large")
            return float(x)

        refusing.defvjp(lambda y, x: lambda g: g)
        function = pb.compile(lambda x: refusing(x) * 2.0)
        assert function(0.5) == 1.0
        with pytest.raises(ValueError, match="too large") as raised:
            function(3.0)
        assert any("refusing" in note for note in raised.value.__notes__)

    def test_it_can_not_write_into_its_arguments(self):
        @pb.primitive
        def writing(x):
            np.asarray(memoryview(x))[0] = 1.0
            return x

        writing.defvjp(lambda y, x: lambda g: g)
        with pytest.raises((TypeError, ValueError)):
            pb.compile(lambda x: writing(x).sum())(POINT)

    def test_its_generated_source_names_it(self):
        assert "jv(" in pb.compile(lambda x: jv(x) * 2.0).source(POINT)


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


def in_python(*values):
    """Copies of values that no trace follows."""
    return [np.array(np.array(one).tolist()) for one in values]


@pb.custom_vjp
def scaled_and_sized(z, x):
    z, x = in_python(z, x)
    return z * z * x, x * np.abs(z)


def _scaled_and_sized_rule(residuals, cotangents):
    (z, x), (g, h) = in_python(*residuals), in_python(*cotangents)
    return 2 * g * np.conj(z) * x + h * x * z / np.abs(z), (g * np.conj(z * z)).real + h * np.abs(z)


scaled_and_sized.defvjp(lambda z, x: (scaled_and_sized(z, x), (z, x)), _scaled_and_sized_rule)


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile], ids=["eager", "compiled"])
class TestForeignOfComplexValues:
    """Python is called with complex arrays, and gives them, in compiled code too."""

    Z = POINT + 1j * POINT[::-1]

    @pytest.fixture(autouse=True)
    def _nothing_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    @staticmethod
    def plain(z, x):
        return z * z * x, x * np.abs(z)

    def test_values(self, transform):
        for function in (scaled_and_sized, pb.vmap(scaled_and_sized)):
            for found, wanted in zip(transform(function)(self.Z, POINT), self.plain(self.Z, POINT)):
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted)

    def test_gradients(self, transform):
        def loss(function):
            def of(z, x):
                scaled, sizes = function(z * 1.5j, x * 2)
                return (np.abs(scaled + z) ** 2).sum() + (sizes**2).sum()

            return pb.grad(of, (0, 1))

        found = transform(loss(scaled_and_sized))(self.Z, POINT)
        for one, wanted in zip(found, loss(self.plain)(self.Z, POINT)):
            np.testing.assert_allclose(one, wanted)

    def test_in_loops(self, transform):
        def loss(function):
            def of(z, x):
                last, sizes = pb.scan(lambda c, row: function(c, row), z[0], x)
                return np.abs(last) ** 2 + sizes.sum()

            return pb.grad(of, (0, 1))

        found = transform(loss(scaled_and_sized))(self.Z, POINT)
        for one, wanted in zip(found, loss(self.plain)(self.Z, POINT)):
            np.testing.assert_allclose(one, wanted)


def test_a_function_may_call_itself_for_its_result_and_residuals():
    @pb.custom_vjp
    def exponential(x):
        return np.exp(x)

    exponential.defvjp(lambda x: (exponential(x), exponential(x)), lambda y, g: (g * y,))
    for transform in (lambda f: f, pb.compile):
        slopes = transform(pb.grad(lambda x: (exponential(x) * x).sum()))(POINT)
        np.testing.assert_allclose(slopes, np.exp(POINT) * (1 + POINT))


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile], ids=["eager", "compiled"])
def test_a_function_of_autograd_takes_complex_values(transform):
    class Cubed(pb.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return cubed(z)

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return 2 * z * z.conj() * g + z * z * g.conj()

    slopes = []
    for function in (
        transform(lambda z: (Cubed.apply(z) + z).abs().sum()),
        lambda z: (cubed(z) + z).abs().sum(),
    ):
        z = pb.tensor(POINT * 1j + 2, requires_grad=True)
        function(z).backward()
        slopes.append(z.grad.numpy())
    np.testing.assert_allclose(*slopes)


def test_check_rules_wants_float64():
    with pytest.raises(ArgumentError, match="not float64"):
        check_rules(np.sin, (POINT.astype(np.float32),))
    with pytest.raises(ArgumentError, match="no argument"):
        check_rules(np.sin, (3,))


def twice_conjugated(z, x):
    return {"product": z * z * np.conj(z) * x, "size": np.abs(z) * x}


COMPLEX_CHECKS = {
    "a holomorphic function": (np.sin, (POINT * 1j + 1,)),
    "of complex and real arguments": (twice_conjugated, (POINT + 1j * POINT[::-1], POINT)),
    "a size": (lambda z: np.abs(z) ** 2, (POINT * (1 + 1j),)),
    "complex values of real arguments": (lambda x: np.exp(1j * x), (POINT,)),
    "of numbers": (lambda z, x: z**3 * x, (1 + 2j, 0.5)),
}


@pytest.mark.parametrize("name", COMPLEX_CHECKS)
def test_rules_of_complex_values_are_checked(name):
    check_rules(*COMPLEX_CHECKS[name])


@pytest.mark.parametrize("name", COMPLEX_CHECKS)
def test_gradients_of_complex_values_are_checked(name):
    function, args = COMPLEX_CHECKS[name]

    def of_tensors(*tensors):
        found = function(*tensors)
        return tuple(found.values()) if isinstance(found, dict) else found

    tensors = tuple(pb.tensor(np.asarray(one), requires_grad=True) for one in args)
    assert gradcheck(of_tensors, tensors) and gradgradcheck(of_tensors, tensors)


def test_a_rule_without_the_conjugate_is_found_wrong():
    squared = pb.custom_vjp(lambda z: z * z)
    squared.defvjp(lambda z: (z * z, z), lambda z, g: (2 * g * z,))
    point = POINT + 1j * POINT[::-1]
    with pytest.raises(GradientError, match="the cotangents times a direction"):
        check_rules(squared, (point,))
    with pytest.raises(GradientError, match="Jacobian mismatch for output 0"):
        gradcheck(squared, pb.tensor(point, requires_grad=True))
    assert check_rules(lambda z: z * z, (point,)) is None


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


def cubed(z):
    return z * z * np.conj(z)


def with_rules() -> dict:
    """`cubed` with each form of a rule."""
    by_vjp, by_jvp = pb.custom_vjp(cubed), pb.custom_jvp(cubed)
    pulled, pushed = pb.primitive(cubed), pb.primitive(cubed)

    def pull(z, g):
        return 2 * z * np.conj(z) * g + z * z * np.conj(g)

    def push(z, t):
        return 2 * z * np.conj(z) * t + z * z * np.conj(t)

    by_vjp.defvjp(lambda z: (cubed(z), z), lambda z, g: (pull(z, g),))
    by_jvp.defjvp(lambda primals, tangents: (cubed(*primals), push(*primals, *tangents)))
    pb.defvjp(pulled, lambda y, z: lambda g: pull(z, g))
    pb.defjvp(pushed, lambda t, y, z: push(z, t))
    return {"custom_vjp": by_vjp, "custom_jvp": by_jvp, "defvjp": pulled, "defjvp": pushed}


@pytest.mark.parametrize("form", ["custom_vjp", "custom_jvp", "defvjp", "defjvp"])
def test_rules_of_complex_values(form):
    """Cotangents are gradients as PyTorch has them, so a rule gives what the tape finds without it."""
    point = POINT + 1j * POINT[::-1] ** 2

    def loss(function):
        return lambda z: (np.abs(function(z) + z) ** 2).sum()

    def of_real(function):
        return lambda x: loss(function)(x * np.exp(1j * x))

    ruled = with_rules()[form]
    np.testing.assert_allclose(pb.grad(loss(ruled))(point), pb.grad(loss(cubed))(point))
    np.testing.assert_allclose(pb.hessian(of_real(ruled))(POINT), pb.hessian(of_real(cubed))(POINT))
    z = pb.tensor(point, requires_grad=True)
    loss(ruled)(z).backward()
    np.testing.assert_allclose(z.grad.numpy(), pb.grad(loss(cubed))(point))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes, found = pb.compile(pb.grad(loss(ruled)))(point), pb.compile(pb.grad(of_real(ruled)))(POINT)
        curvature = pb.compile(pb.hessian(of_real(ruled)))(POINT)
        every = pb.compile(pb.vmap(pb.grad(lambda z: np.abs(ruled(z)) ** 2)))(point)
    np.testing.assert_allclose(slopes, pb.grad(loss(cubed))(point))
    np.testing.assert_allclose(found, pb.grad(of_real(cubed))(POINT))
    np.testing.assert_allclose(curvature, pb.hessian(of_real(cubed))(POINT))
    np.testing.assert_allclose(every, 6 * point * np.abs(point) ** 4)


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
