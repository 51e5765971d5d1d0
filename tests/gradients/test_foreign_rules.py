"""Functions with rules that no trace sees through: in compiled code Python calls them."""

import ctypes
import ctypes.util
import functools
import warnings

import numpy as np
import pytest
from scipy import special

import pullback as pb
from pullback.errors import GradientError, OutputError
from pullback.testing import check_rules

POINT = np.array([0.3, -0.7, 1.9])


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

    @pytest.mark.drawn(4)
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

    @pytest.mark.drawn(6)
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

    @pytest.mark.drawn(4)
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

    @pytest.mark.drawn(4)
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

    @pytest.mark.drawn(4)
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
