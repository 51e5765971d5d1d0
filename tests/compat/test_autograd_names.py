"""HIPS autograd's names: its conventions, its modules, its rules of one's own."""

import collections
import functools
import sys
from typing import Any

import numpy
import pytest
import scipy.signal

import pullback as pb
import pullback.compat.autograd.numpy as np
import pullback.compat.autograd.numpy.random as npr
from pullback.compat import autograd
from pullback.compat.autograd import (
    checkpoint,
    conventions,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    misc,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
)  # fmt: skip
from pullback.compat.autograd.builtins import DictBox, SequenceBox
from pullback.compat.autograd.builtins import type as type_of
from pullback.compat.autograd.core import make_vjp as make_unary_vjp
from pullback.compat.autograd.core import primitive_vjps
from pullback.compat.autograd.differential_operators import make_jvp_reversemode
from pullback.compat.autograd.extend import (
    VJPNode,
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    register_notrace,
    vspace,
)  # fmt: skip
from pullback.compat.autograd.misc import const_graph, flatten
from pullback.compat.autograd.misc.fixed_points import fixed_point
from pullback.compat.autograd.misc.flatten import flatten_func
from pullback.compat.autograd.misc.optimizers import adam, rmsprop, sgd
from pullback.compat.autograd.numpy import numpy_jvps, numpy_vjps
from pullback.compat.autograd.numpy.linalg import norm as norm_of
from pullback.compat.autograd.numpy.numpy_boxes import ArrayBox
from pullback.compat.autograd.numpy.numpy_vjps import unbroadcast_f
from pullback.compat.autograd.scipy import integrate, linalg, optimize, special, stats
from pullback.compat.autograd.scipy.signal import convolve
from pullback.compat.autograd.test_util import check_grads, combo_check
from pullback.compat.autograd.tracer import getval, isbox
from pullback.compat.autograd.util import quick_grad_check
from pullback.errors import ArgumentError, GradientError, UnsupportedError

X = numpy.array([1.0, 2.0, 3.0])
A = numpy.arange(9.0).reshape(3, 3) / 7


def quadratic(x: Any) -> Any:
    return np.dot(np.dot(x, A), x)


class TestTransforms:
    def test_gradients_are_of_one_argument_or_of_several(self) -> None:
        def scaled(x: Any, y: Any) -> Any:
            return np.sum(x) * y

        numpy.testing.assert_equal(grad(scaled)(X, 2.0), numpy.full(3, 2.0))
        assert grad(scaled, 1)(X, 2.0) == 6.0 and grad_named(scaled, "y")(X, 2.0) == 6.0
        both = grad(scaled, argnum=[0, 1])(X, 2.0)
        assert isinstance(both, tuple) and both[1] == 6.0
        assert value_and_grad(scaled, 1)(X, 2.0) == (12.0, 6.0)

    def test_arrays_of_integers_have_gradients(self) -> None:
        numpy.testing.assert_equal(grad(lambda x: np.sum(x**2))(numpy.array([1, 2])), [2.0, 4.0])

    def test_a_gradient_of_several_elements_is_a_type_error(self) -> None:
        for transform in (grad, value_and_grad):
            with pytest.raises(TypeError, match=r"shape \(3,\)"):
                transform(np.sin)(X)

    def test_positions_are_integers(self) -> None:
        with pytest.raises(ArgumentError, match="argnum"):
            grad(np.sum, "x")
        with pytest.raises(ArgumentError, match="1 positional"):
            grad(np.sum, 1)(X)

    def test_names_are_as_those_of_hips_autograd(self) -> None:
        assert grad(quadratic, 0).__name__ == "grad_of_quadratic_wrt_argnum_0"
        assert hessian(quadratic).__name__ == "hessian_of_quadratic_wrt_argnum_0"

    def test_sums_of_columns_of_the_jacobian(self) -> None:
        numpy.testing.assert_allclose(elementwise_grad(np.sin)(X), numpy.cos(X))
        numpy.testing.assert_allclose(elementwise_grad(elementwise_grad(np.sin))(X), -numpy.sin(X))
        with pytest.raises(TypeError):
            elementwise_grad(lambda x: x * 1j)(X)

    def test_second_derivatives(self) -> None:
        expected = A + A.T
        numpy.testing.assert_allclose(hessian(quadratic)(X), expected)
        numpy.testing.assert_allclose(jacobian(grad(quadratic))(X), expected)
        numpy.testing.assert_allclose(hessian_tensor_product(quadratic)(X, X), expected @ X)
        product, slope = make_hvp(quadratic)(X)
        numpy.testing.assert_allclose(product(X), expected @ X)
        numpy.testing.assert_allclose(slope, expected @ X)

    def test_a_jacobian_has_the_shapes_of_result_and_argument(self) -> None:
        found = jacobian(lambda x: np.outer(x, x))(X)
        assert found.shape == (3, 3, 3)
        product = tensor_jacobian_product(lambda x: np.outer(x, x))(X, A)
        numpy.testing.assert_allclose(product, numpy.tensordot(A, found, 2))

    def test_products_with_derivatives(self) -> None:
        pull, value = make_vjp(np.sin)(X)
        numpy.testing.assert_allclose(pull(X), X * numpy.cos(X))
        numpy.testing.assert_allclose(value, numpy.sin(X))
        value, tangent = make_jvp(np.sin)(X)(X)
        numpy.testing.assert_allclose(tangent, X * numpy.cos(X))
        numpy.testing.assert_allclose(make_jvp_reversemode(np.sin)(X)(X), tangent)
        numpy.testing.assert_allclose(make_ggnvp(lambda x: A @ x)(X)(X), A.T @ (A @ X))
        assert deriv(lambda x: x**3)(2.0) == 12.0
        assert make_unary_vjp(lambda x: x**3, 2.0)[0](1.0) == 12.0

    @pytest.mark.parametrize("compare", ["equal", "less", "greater_equal"])
    def test_cotangents_of_truth_values_are_zero(self, compare: str) -> None:
        pull, value = make_unary_vjp(lambda p: getattr(numpy, compare)(p["x"], 2.0), {"x": X})
        numpy.testing.assert_array_equal(value, getattr(numpy, compare)(X, 2.0))
        numpy.testing.assert_array_equal(pull(X)["x"], numpy.zeros(3))
        with pytest.raises(TypeError, match="bool"):
            make_unary_vjp(lambda x: (x > 2.0, x), X)

    def test_what_is_beside_a_value(self) -> None:
        slope, aux = grad_and_aux(lambda x: (np.sum(x**2), {"last": x[-1]}))(X)
        numpy.testing.assert_equal(slope, 2 * X)
        assert aux == {"last": 3.0}

    def test_gradients_by_name(self) -> None:
        def f(a: Any, b: Any = 2.0, *rest: Any, **named: Any) -> Any:
            return a * b + sum(rest) * named["c"]

        found = multigrad_dict(f)(3.0, 2.0, 1.0, 5.0, c=7.0)
        assert isinstance(found, collections.OrderedDict)
        assert found == {"a": 2.0, "b": 3.0, "rest": (7.0, 7.0), "named": {"c": 6.0}}

    def test_checkpoints(self) -> None:
        numpy.testing.assert_allclose(grad(lambda x: np.sum(checkpoint(np.tanh)(x)))(X), 1 - np.tanh(X) ** 2)


class TestComplexNumbers:
    def test_gradients_are_the_conjugates_of_pullbacks(self) -> None:
        def f(z: Any) -> Any:
            return np.real(z) ** 2 + 3 * np.imag(z)

        assert pb.grad(f)(1 + 2j) == 2 + 3j
        assert grad(f)(1 + 2j) == 2 - 3j
        assert value_and_grad(f)(1 + 2j) == (7.0, 2 - 3j)
        assert grad(lambda p: f(p["z"]) * p["r"])({"z": 1 + 2j, "r": 2.0}) == {"z": 4 - 6j, "r": 7.0}

    def test_derivatives_of_holomorphic_functions(self) -> None:
        assert holomorphic_grad(lambda z: z**3)(1 + 2j) == pytest.approx(3 * (1 + 2j) ** 2)
        pull, _ = make_vjp(lambda z: z * (2 + 1j))(1j)
        assert pull(1j) == 1j * (2 + 1j)

    def test_rules_get_and_give_conjugates(self) -> None:
        @primitive
        def turned(z: Any) -> Any:
            return z * (2 + 1j)

        defvjp(turned, lambda ans, z: lambda g: g * (2 + 1j))
        loss = lambda of: lambda z: np.real(of(z) * (3 - 1j))  # noqa: E731
        assert grad(loss(turned))(1j) == grad(loss(lambda z: z * (2 + 1j)))(1j)
        check_grads(turned, order=1)(0.3 + 0.4j)


class TestNames:
    def test_lists_of_values_become_arrays(self) -> None:
        found = grad(lambda x: np.sum(np.array([x, x**2, np.stack([x, x])[0]]) * X))(2.0)
        assert found == 1 + 2 * 2.0 * 2 + 3
        assert grad(lambda x: np.sum([x, x**2]))(2.0) == 5.0
        assert grad(lambda x: np.max(np.vstack([x, 2 * x])))(2.0) == 2.0

    def test_arrays_without_gradients_are_arrays(self) -> None:
        assert type(np.array([1.0])) is numpy.ndarray and np.exp is numpy.exp and np.pi == numpy.pi
        assert np.random.randn is npr.randn and np.linalg.norm is norm_of

    def test_matrices(self) -> None:
        numpy.testing.assert_allclose(grad(np.linalg.norm)(X), X / norm_of(X))
        check_grads(np.linalg.inv)(A + numpy.eye(3))
        check_grads(linalg.solve_triangular)(A + 2 * numpy.eye(3), X)
        check_grads(np.fft.fft)(X)

    def test_special_functions_and_distributions(self) -> None:
        check_grads(special.gammaln)(X)
        check_grads(special.logsumexp)(X)
        check_grads(stats.norm.logcdf, (0, 1, 2))(X, 0.5, 2.0)
        import pullback.compat.autograd.scipy.stats.t as student

        check_grads(student.logpdf)(X, 3.0)
        assert stats.norm.cdf(0.0) == 0.5

    def test_solvers(self) -> None:
        decay = grad(lambda k: integrate.odeint(lambda y, t: -k * y, 1.0, [0.0, 1.0])[-1, 0])(0.5)
        assert decay == pytest.approx(-numpy.exp(-0.5), rel=1e-5)
        assert grad(lambda a: optimize.brentq(lambda x: x**2 - a, 0.0, 9.0))(4.0) == pytest.approx(0.25)

    @pytest.mark.parametrize("mode", ["full", "valid", "same"])
    def test_convolutions(self, mode: str) -> None:
        rng = numpy.random.default_rng(0)
        signal, kernel = rng.standard_normal((6, 5)), rng.standard_normal((3, 2))
        expected = scipy.signal.convolve(signal, kernel, mode)
        numpy.testing.assert_allclose(convolve(signal, kernel, mode=mode), expected)
        check_grads(lambda a, b: convolve(a, b, mode=mode), (0, 1), order=1)(signal, kernel)

    def test_convolutions_along_some_dimensions(self) -> None:
        rng = numpy.random.default_rng(0)
        images, filters = rng.standard_normal((4, 2, 7, 6)), rng.standard_normal((2, 3, 3, 2))
        found = convolve(images, filters, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid")
        expected = sum(
            numpy.array([[scipy.signal.convolve(one[d], other[d], "valid") for other in
            filters.transpose(1, 0, 2, 3)] for one in images])
            for d in range(2)
        )  # fmt: skip
        numpy.testing.assert_allclose(found, expected)
        swapped = convolve(filters, images, axes=([2, 3], [2, 3]), dot_axes=([0], [1]), mode="valid")
        numpy.testing.assert_allclose(swapped, expected.swapaxes(0, 1))

    def test_the_types_of_values(self) -> None:
        def asked(p: Any) -> list[bool]:
            x = p["a"]
            boxes = [isbox(x), isinstance(x, ArrayBox), isinstance(p, DictBox), isinstance(p, SequenceBox)]
            return [*boxes, type_of(x) is type(X)]

        slope, answers = grad_and_aux(lambda p: (np.sum(p["a"] * getval(p["a"])), asked(p)))({"a": X})
        numpy.testing.assert_equal(slope["a"], X)
        assert answers == [True, True, True, False, True]
        assert asked({"a": X}) == [False, False, False, False, True]
        assert getval(X) is X

    def test_insides_are_refused_with_a_remedy(self) -> None:
        with pytest.raises(UnsupportedError, match=r"autograd\.core\.primitive_vjps belongs .* by defvjp"):
            primitive_vjps[numpy.sin]
        with pytest.raises(UnsupportedError, match=r"autograd\.VSpace belongs .*optree"):
            VSpace.register(list)

    def test_modules_have_their_parts(self) -> None:
        for whole, part in ((autograd, "util"), (np, "numpy_vjps"), (misc, "optimizers")):
            vars(whole).pop(part)  # which an import has put there
            assert getattr(whole, part) is sys.modules[f"{whole.__name__}.{part}"]
        with pytest.raises(AttributeError, match=r"no autograd\.nothing"):
            _ = autograd.nothing
        with pytest.raises(AttributeError, match=r"no autograd\.numpy\.nothing"):
            _ = np.nothing

    def test_boxes_are_for_questions_only(self) -> None:
        with pytest.raises(UnsupportedError, match="containers by optree"):
            ArrayBox.register(list)
        assert not hasattr(autograd, "nothing")


class TestRules:
    def test_one_for_each_argument(self) -> None:
        @primitive
        def scaled(x: Any, factor: Any) -> Any:
            assert type(x) is numpy.ndarray
            return x * factor

        defvjp(scaled, lambda ans, x, factor: lambda g: g * factor, None)
        numpy.testing.assert_equal(grad(lambda x: np.sum(scaled(x, 5.0)))(X), numpy.full(3, 5.0))
        assert grad(lambda factor: np.sum(scaled(X, factor)))(5.0) == 0.0
        defjvp(scaled, "same", argnums=(0,))

    def test_one_for_all_arguments(self) -> None:
        asked = []

        def rule(argnum: int, ans: Any, args: Any, kwargs: Any) -> Any:
            asked.append(argnum)
            return lambda g: g * args[1 - argnum] * kwargs["factor"]

        product = primitive(lambda x, y, factor: x * y * factor)
        for define in (defvjp_argnum, lambda f, rule: defvjp_argnums(f, several(rule))):
            define(product, rule)
            asked.clear()
            assert grad(lambda x: product(x, 3.0, factor=2.0))(5.0) == 6.0
            assert asked == [0]
            assert grad(lambda x, y: product(x, y, factor=2.0), (0, 1))(5.0, 3.0) == (6.0, 10.0)

    def test_tangents(self) -> None:
        cubed, doubled, linear = (primitive(f) for f in (lambda x: x**3, lambda x: 2 * x, lambda x: 7 * x))
        defjvp(cubed, lambda g, ans, x: 3 * x**2 * g)
        defjvp_argnum(doubled, lambda argnum, g, ans, args, kwargs: 2 * g)
        def_linear(linear)
        assert grad(cubed)(2.0) == 12.0 and deriv(cubed)(2.0) == 12.0
        assert grad(doubled)(2.0) == 2.0 and grad(linear)(2.0) == 7.0

    def test_only_arguments_that_are_differentiated_are_asked(self) -> None:
        def of_second(ans: Any, x: Any, y: Any) -> Any:
            raise AssertionError

        product = primitive(lambda x, y: x * y)
        defvjp(product, lambda ans, x, y: lambda g: g * y, of_second)
        assert grad(product)(2.0, 3.0) == 3.0

    def test_of_a_missing_one(self) -> None:
        bare = primitive(lambda x: 2 * x)
        for derivative in (grad(bare), deriv(bare)):
            with pytest.raises(NotImplementedError, match="no rule for argument 0"):
                derivative(1.0)
            with pytest.raises(GradientError):
                derivative(1.0)

    def test_old_names_warn(self) -> None:
        @primitive
        def product(x: Any, y: Any, z: Any, unused: Any) -> Any:
            return x * y * z

        with pytest.warns(UserWarning, match="defgrad is deprecated"):
            product.defgrad(lambda ans, x, y, z, unused: lambda g: g * y * z)
        with pytest.warns(UserWarning, match="defvjp is deprecated"):
            product.defvjp(lambda g, ans, vs, gvs, x, y, z, unused: g * x * z * (vs.size == 3), argnum=1)
        with pytest.warns(UserWarning, match="defvjp_is_zero is deprecated"):
            product.defvjp_is_zero([2, 3])
        slopes = grad(lambda *given: np.sum(product(*given)), [0, 1, 2])(X, 2.0 * X, 5.0, 1.0)
        for found, expected in zip(slopes, (10.0 * X, 5.0 * X, 0.0)):
            numpy.testing.assert_array_equal(found, expected)
        with pytest.warns(UserWarning, match="quick_grad_check is deprecated"):
            quick_grad_check(lambda x, y: x**2 + y, 1.0, (2.0,))

    def test_names_that_modules_have_of_each_other(self) -> None:
        from pullback.compat.autograd import differential_operators, extend
        from pullback.compat.autograd.numpy.numpy_vspaces import ArrayVSpace

        assert differential_operators.vspace is extend.vspace
        with pytest.raises(UnsupportedError, match=r"numpy_vspaces.ArrayVSpace.*extend.vspace\(x\)"):
            ArrayVSpace(1.0)

    def test_functions_with_derivatives_keep_them(self) -> None:
        with pytest.warns(UserWarning, match="expit has a derivative of pullback's, and keeps it"):
            defvjp(special.expit, lambda ans, x: lambda g: g)
        with pytest.warns(UserWarning, match="expit has a derivative of pullback's, and keeps it"):
            defjvp(special.expit, lambda g, ans, x: 2.0 * g)
        assert grad(special.expit)(0.0) == 0.25
        for named in (np.sin, np.where, np.concatenate):
            with pytest.warns(UserWarning, match="has a derivative of pullback's, and keeps it"):
                defvjp(named, lambda ans, *args: lambda g: g)
        with pytest.warns(UserWarning, match="quadratic is not decorated .* no effect"):
            defvjp(quadratic, None)
        with pytest.raises(ArgumentError, match="extend.primitive"):
            defvjp("quadratic", None)

    def test_cotangents_have_the_shape_of_the_argument(self) -> None:
        added = primitive(lambda x, y: x + y)
        defvjp(added, *[lambda ans, *args, i=i: unbroadcast_f(args[i], lambda g: g) for i in (0, 1)])
        check_grads(lambda x, y: np.sum(added(x, y) ** 2), (0, 1), order=1)(A, X)

    def test_a_function_that_writes_arrays_is_called_with_arrays(self) -> None:
        @primitive
        def replaced(part: Any, whole: Any) -> Any:
            made = numpy.empty(whole.shape)
            made[:], made[1:] = whole, part
            return made

        defvjp(replaced, lambda ans, *args: lambda g: g[1:], lambda ans, *args: lambda g: replaced(0.0, g))
        check_grads(lambda part: replaced(part, X) ** 2, modes=["fwd", "rev"])(X[1:])

    def test_helpers_of_rules(self) -> None:
        halves = numpy_vjps.balanced_eq(X, numpy.maximum(X, 2.0), 2.0)
        numpy.testing.assert_array_equal(halves, [0.0, 0.5, 1.0])
        numpy.testing.assert_array_equal(numpy_vjps.replace_zero(numpy.array([0.0, 2.0]), 7.0), [7.0, 2.0])
        assert np.metadata(A * 1j) == ((3, 3), 2, numpy.dtype(complex), True)
        for axis, keepdims in ((None, False), (0, True), ((0, -1), False)):
            g = numpy.sum(A, axis=axis, keepdims=keepdims)
            found, count = numpy_vjps.repeat_to_match_shape(g, A.shape, A.dtype, axis, keepdims)
            numpy.testing.assert_array_equal(found, numpy.sum(A, axis, keepdims=True) * numpy.ones((3, 3)))
            assert count == A.size // numpy.size(g)

    def test_functions_without_a_gradient_may_be_said_to_have_none(self) -> None:
        register_notrace(VJPNode, numpy.full_like)
        with pytest.raises(UnsupportedError, match="getval"):
            register_notrace(VJPNode, numpy.exp)

    def test_tangents_are_repeated_to_the_shape_of_a_result(self) -> None:
        assert numpy_jvps.broadcast(X[0], X * 1j).shape == X.shape
        assert numpy.iscomplexobj(numpy_jvps.broadcast(1.0, X * 1j))


def several(rule: Any) -> Any:
    def of_several(argnums: Any, *given: Any) -> Any:
        return lambda g: [rule(argnum, *given)(g) for argnum in argnums]

    return of_several


class TestMisc:
    def test_containers_as_vectors(self) -> None:
        value = {"b": [3.0, (X,)], "a": A}
        vector, unflatten = flatten(value)
        numpy.testing.assert_equal(vector, [*A.ravel(), 3.0, *X])
        again = unflatten(vector * 2)
        assert list(again) == ["b", "a"] and again["b"][0] == 6.0
        numpy.testing.assert_equal(again["b"][1][0], 2 * X)
        assert flatten([])[0].shape == (0,)
        slope = grad(lambda v: np.sum(unflatten(v)["a"] ** 2))(vector)
        numpy.testing.assert_allclose(slope, [*(2 * A.ravel()), *numpy.zeros(4)])
        function, _, start = flatten_func(lambda p: {"a": p["a"] * 2}, {"a": X})
        numpy.testing.assert_equal(function(start), 2 * X)

    @pytest.mark.drawn(4)
    @pytest.mark.parametrize(("optimise", "steps"), [(sgd, 400), (rmsprop, 800), (adam, 800)])
    def test_optimisers(self, optimise: Any, steps: int) -> None:
        seen: list[Any] = []
        slope = lambda p, i: grad(lambda p: np.sum((p["x"] - X) ** 2))(p)  # noqa: E731
        callback = lambda p, i, g: seen.append((p["x"].shape, i, g["x"].shape))  # noqa: E731
        found = optimise(slope, {"x": numpy.zeros(3)}, callback, num_iters=steps, step_size=0.02)
        numpy.testing.assert_allclose(found["x"], X, atol=0.05)
        assert seen[-1] == ((3,), steps - 1, (3,))

    def test_fixed_points(self) -> None:
        def newton(a: Any) -> Any:
            return lambda x: 0.5 * (x + a / x)

        root = lambda a: fixed_point(newton, a, 1.0, lambda x, y: np.abs(x - y), 1e-10)  # noqa: E731
        assert grad(root)(2.0) == pytest.approx(0.5 / 2**0.5)

    def test_second_derivatives_of_fixed_points_that_are_reached_in_many_steps(self) -> None:
        def descent(a: Any) -> Any:
            return lambda x: x - 0.1 * (x**2 - a)

        root = lambda a: fixed_point(descent, a, 1.0, lambda x, y: np.abs(x - y), 1e-12)  # noqa: E731
        assert grad(grad(root))(2.0) == pytest.approx(-0.25 * 2**-1.5)

    def test_graphs_that_are_found_once(self) -> None:
        calls = []

        def f(scale: float, x: Any) -> Any:
            calls.append(1)
            return np.sum(x**2) * scale

        once = const_graph(f, 3.0)
        assert once(X) == 42.0
        count = len(calls)
        assert once(2 * X) == 168.0 and len(calls) == count

    def test_wrong_derivatives_are_found(self) -> None:
        wrong = primitive(lambda x: x**2)
        defvjp(wrong, lambda ans, x: lambda g: g * x)
        with pytest.raises(AssertionError, match=r"Derivative \(VJP\) check of <lambda> failed with arg 2.0"):
            check_grads(wrong, modes=["rev"], order=1)(2.0)
        with pytest.raises(AssertionError):
            check_grads(wrong, modes=["fwd"], order=1)(2.0)
        with pytest.raises(ArgumentError, match="modes"):
            check_grads(wrong, modes=["back"])(2.0)
        combo_check(lambda x, power: x**power, order=1)([1.5, X], power=[2, 3])
        check_grads(lambda p: (p["a"] * p["b"][0], np.sin(p["a"])))({"a": X, "b": [2.0]})


@pytest.mark.parametrize("name", ["column_stack", "concatenate", "dstack", "hstack", "stack", "vstack"])
def test_what_joins_arrays_takes_any_iterable(name: str) -> None:
    join = getattr(np, name)
    x = numpy.array([[0.5, 1.0], [2.0, 3.0]])
    expected = getattr(numpy, name)([x, 2.0 * x])
    for given in ((one * x for one in (1.0, 2.0)), {1: x, 2: 2.0 * x}.values()):
        numpy.testing.assert_array_equal(join(given), expected)
    numpy.testing.assert_array_equal(grad(lambda x: np.sum(join(one * x for one in (1.0, 2.0))))(x), 3.0)


class TestVectorSpaces:
    @pytest.mark.parametrize("value", [A, 0.5, X * 1j, [1.0, A], {"a": (0.5, X), "b": {"c": 1j}}], ids=str)
    def test_their_vectors_add_and_have_products(self, value: Any) -> None:
        space = vspace(value)
        basis = list(space.standard_basis())
        assert len(basis) == space.size
        for one in (space.zeros(), space.ones(), space.randn(), *basis):
            assert vspace(one) == space and hash(vspace(one)) == hash(space)
        products = [[space.inner_prod(one, other) for other in basis] for one in basis]
        numpy.testing.assert_array_equal(products, numpy.eye(space.size))
        total = functools.reduce(space.add, basis)
        x, y = space.randn(), space.randn()
        assert space.inner_prod(total, x) == pytest.approx(space.inner_prod(space.ones(), x))
        check_grads(space.add)(x, y)
        check_grads(space.scalar_mul)(x, 0.7)
        check_grads(space.inner_prod)(x, y)

    def test_they_differ_by_structure_shape_and_dtype(self) -> None:
        spaces = [vspace(one) for one in (X, A, 1j * X, [X], (X,), X.astype(numpy.float32))]
        assert all((one == other) == (one is other) for one in spaces for other in spaces)
        assert spaces[2].iscomplex and not spaces[0].iscomplex and spaces[0] != "float64"
        with pytest.raises(TypeError, match="'a' is neither"):
            vspace(["a", 1.0])
        assert spaces[3].shape == [(3,)] and spaces[1].dtype == float


def test_choices_of_python_values_are_such() -> None:
    assert type(np.where(True, 1, 2)) is int and np.where([True, False], [1.0, 2.0], 3.0) == [1.0, 3.0]
    numpy.testing.assert_array_equal(np.where(X > 1.5, x=X, y=0.0), [0.0, 2.0, 3.0])
    numpy.testing.assert_array_equal(np.where([True, False, True])[0], [0, 2])
    slope = grad(lambda x: np.sum(np.where([True, False, True], x, 0.0)))(X)
    numpy.testing.assert_array_equal(slope, [1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="both"):
        np.where(True, 1.0)


def test_casts_to_integers_have_no_gradient() -> None:
    numpy.testing.assert_array_equal(grad(lambda x: np.sum(x[np.int64(x) - 1]))(X), numpy.ones(3))
    kept = np.int32(3.7)
    assert type(kept) is numpy.int32 and isinstance(kept, np.int32) and not isinstance(kept, np.int64)
    assert numpy.zeros(2, np.int64).dtype == numpy.int64 and numpy.issubdtype(numpy.int64, np.int64)
    assert np.linalg.T(A)[0, 1] == A[1, 0]


def test_checks_of_arrays_and_numbers_load_nothing_for_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optree", None)  # importing it raises
    for x in (np.array([0.5, 2.0]), 0.5):
        check_grads(lambda x: np.sum(np.sin(x) * x), order=1)(x)


def test_real_cotangents_stay_themselves_and_complex_ones_are_conjugated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for one in (numpy.complex128(1 + 2j), numpy.array([1 + 2j, 3.0]), (1.0, {"a": numpy.array([1j])})):
        found = conventions.conjugated(one)
        assert type(found) is type(one)
        for leaf, expected in zip(flatten(found)[0], numpy.conj(flatten(one)[0]), strict=True):
            assert leaf == expected
    monkeypatch.setattr(conventions, "of_leaves", None)
    for one in (numpy.ones(2), numpy.arange(2), numpy.float64(2.0), numpy.array([True]), numpy.array("a")):
        assert conventions.conjugated(one) is one


def test_an_operator_of_ones_own_calls_the_function_plainly_and_a_transform_of_it_knows_its_code() -> None:
    @conventions.unary_to_nary
    def value_of(fun: Any, x: Any) -> Any:
        return fun(x)

    def filling(x: Any, y: Any) -> Any:
        y[:] = x * 2.0
        return y

    found = value_of(filling)(numpy.ones(2), given := numpy.zeros(2))
    assert type(found) is numpy.ndarray and found is given

    def program(x: Any, scale: Any) -> Any:
        y = numpy.zeros(2)
        y[:] = x * scale
        return numpy.sum(y)

    pull, value = make_vjp(program)(numpy.ones(2), 3.0)
    assert value == 6.0 and pull(1.0).tolist() == [3.0, 3.0]
    pull, _ = make_vjp(program, 1)(numpy.ones(2), 3.0)
    assert pull(1.0) == 2.0
