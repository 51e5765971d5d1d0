"""Anomaly mode of compiled functions: nan and inf are named by the line that makes them."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import AnomalyError

X = np.array([0.5, 1.0, 2.0])


def anomaly(function: Callable[..., Any], *args: Any) -> AnomalyError:
    """What a call raises in anomaly mode."""
    with pb.detect_anomaly(), pytest.raises(AnomalyError) as raised:
        function(*args)
    return raised.value


def line_with(function: Callable[..., Any], mark: str) -> str:
    """The text of the line that holds a mark."""
    return next(line.strip() for line in inspect.getsource(function).splitlines() if mark in line)


@pb.compile
def entropy(p: Any) -> Any:
    logs = np.log(p)
    return -(p * logs).sum()


@pb.compile
def distance(x: Any) -> Any:
    squares = x * x
    r = np.sqrt(squares)
    return (r * x).sum()


@pb.compile
def softmax(x: Any) -> Any:
    e = np.exp(x)
    return (e / e.sum()).max()


def test_the_first_value_is_named_with_what_it_is_made_of() -> None:
    error = anomaly(entropy, np.array([0.5, 0.0, 0.5]))
    assert (error.operator, error.rule, error.index, error.value) == ("log", "", (1,), -np.inf)
    assert error.operands == {"p[1]": 0.0}
    assert error.line == "logs = np.log(p)"
    assert str(error).startswith("entropy: log gives -inf at [1].\n  at test_anomalies.py:")
    assert np.isfinite(entropy(X))


def test_nan_in_a_gradient_alone_is_named() -> None:
    both = pb.value_and_grad(distance)
    error = anomaly(both, np.array([1.0, 0.0, 2.0]))
    assert (error.rule, error.index, error.line) == ("sqrt", (1,), "r = np.sqrt(squares)")
    assert "the gradient of sqrt gives" in str(error)
    assert np.isfinite(distance(np.array([1.0, 0.0, 2.0])))


def test_of_what_follows_from_it_nothing_is_named() -> None:
    error = anomaly(softmax, np.array([1.0, 800.0, 2.0]))
    assert (error.operator, error.index, error.line) == ("exp", (1,), "e = np.exp(x)")
    assert error.operands == {"x[1]": 800.0}


def test_what_no_result_shows_is_no_anomaly() -> None:
    @pb.compile
    def guarded(x: Any) -> Any:
        return np.where(x > 0, np.log(x), 0.0).sum()

    x = np.array([0.0, 1.0, 2.0])
    with pb.detect_anomaly():
        assert guarded(x) == np.log(2.0)
    error = anomaly(pb.grad(guarded), x)
    assert error.rule == "log" and error.index == (0,) and "np.where" in error.line


def test_of_several_infinite_values_the_one_that_matters_is_named() -> None:
    @pb.compile
    def mixed(x: Any) -> Any:
        masked = np.where(x > 1, 0.0, np.log(x - x))
        kept = np.where(x > 1, masked, 1.0)
        return (kept + 1.0 / (x - 1.0)).sum()

    error = anomaly(mixed, X)
    assert (error.operator, error.index) == ("divide", (1,)) and "1.0 / (x - 1.0)" in error.line


def test_infinity_that_is_written_down_is_no_anomaly() -> None:
    @pb.compile
    def density(x: Any) -> Any:
        return np.where(x > 0, -x, -np.inf)

    with pb.detect_anomaly():
        assert density(np.array([-1.0, 1.0])).tolist() == [-np.inf, -1.0]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_input_that_is_broken_already_is_named_as_such(value: float) -> None:
    error = anomaly(distance, np.array([1.0, 2.0, value]))
    assert str(error) == f"distance: the input x[2] is {value} already."


def test_an_array_that_the_function_reaches_is_named_as_such() -> None:
    weights = np.array([1.0, np.nan, 1.0])

    @pb.compile
    def weighted(x: Any) -> Any:
        return (weights * x).sum()

    assert str(anomaly(weighted, X)) == "weighted: the input weights[1] is nan already."


@pytest.mark.drawn(4)
@pytest.mark.parametrize("transform", [lambda f: f, pb.value_and_grad])
def test_in_a_loop_the_step_is_named(transform: Any) -> None:
    @pb.compile
    def rolled(x: Any) -> Any:
        for _ in range(40):
            x = x - 0.05
            x = x + 0.0 * np.log(x)
        return x.sum()

    error = anomaly(transform(rolled), np.array([3.0, 1.02]))
    assert error.operator == "log" and error.index == (1,) and error.run == 20
    assert error.line == "x = x + 0.0 * np.log(x)"


def test_in_a_scan_the_step_is_named_forward_and_backward() -> None:
    @pb.compile
    def scanned(xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            root = pb.sqrt(x)
            return total + root, root

        return pb.scan(step, xs[0] * 0, xs)[0]

    xs = np.array([1.0, 4.0, 0.0, 9.0])
    error = anomaly(pb.grad(scanned), xs)
    assert (error.rule, error.steps, error.line) == ("sqrt", (2,), "root = pb.sqrt(x)")
    error = anomaly(scanned, np.array([1.0, 4.0, -1.0, 9.0]))
    assert (error.operator, error.steps, error.operands) == ("sqrt", (2,), {"x": -1.0})


def test_in_a_while_loop_the_step_is_named() -> None:
    @pb.compile
    def iterated(x: Any) -> Any:
        def step(state: Any) -> Any:
            count, y = state
            return count + 1, y - 1.0 / (5.0 - count)

        return pb.while_loop(lambda state: state[0] < 8, step, (np.zeros(()), x))[1]

    error = anomaly(iterated, np.array(1.0))
    assert (error.operator, error.steps, error.run) == ("reciprocal", (5,), 5)
    assert error.line == "return count + 1, y - 1.0 / (5.0 - count)"


def test_a_loop_that_would_not_end_without_the_nan_is_not_run_for_ever() -> None:
    @pb.compile
    def converged(x: Any) -> Any:
        def step(state: Any) -> Any:
            y, _ = state
            return y - np.sqrt(y), y

        return pb.while_loop(lambda state: state[0] > -1.0, step, (x, x))[0]

    assert anomaly(converged, np.array(0.3)).operator == "sqrt"


def test_backward_of_tensors_is_looked_at() -> None:
    x = pb.tensor([1.0, 0.0], requires_grad=True)
    with pb.detect_anomaly():
        value = distance(x)
        with pytest.raises(AnomalyError, match=r"the gradient of sqrt") as raised:
            value.backward()
    assert raised.value.line == "r = np.sqrt(squares)"
    value = distance(x)  # made outside of the mode, and differentiated in it
    error = anomaly(value.backward)
    assert error.rule == "sqrt" and error.index == (1,)


def test_a_broken_cotangent_is_named_as_such() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.compile(lambda x: x * 2)(x)
    error = anomaly(y.backward, pb.tensor([1.0, float("nan")]))
    assert "the input d_value[1] is nan already" in str(error)


def test_functions_with_paths_are_looked_at_as_a_whole() -> None:
    @pb.compile
    def branched(x: Any) -> Any:
        roots = np.sqrt(x)
        if x.min() < 0:
            return x.sum()
        if x.max() > 10:
            return roots.sum() / (x[0] - x[0])
        return roots.sum()

    with pb.detect_anomaly():
        assert branched(X) == np.sqrt(X).sum()
        assert branched(-X) == -X.sum()
        for _ in range(3):
            with pytest.raises(AnomalyError) as raised:
                branched(20 * X)
            assert raised.value.operator == "divide"
        assert branched(X) == np.sqrt(X).sum()


def test_what_is_written_into_arguments_is_looked_at() -> None:
    @pb.compile
    def filled(x: Any, out: Any) -> None:
        out[1:] = 1.0 / x[1:]

    error = anomaly(filled, np.array([1.0, 0.0]), np.zeros(2))
    assert error.operator in ("divide", "reciprocal") and error.line == "out[1:] = 1.0 / x[1:]"


def test_host_calls_and_foreign_functions_are_looked_at() -> None:
    from scipy import special

    @pb.compile
    def bessel(x: Any) -> Any:
        return special.yv(1.5, x).sum()

    error = anomaly(bessel, np.array([1.0, 0.0]))
    assert error.operator == "yv" and error.index == (1,)

    @pb.custom_vjp
    def foreign(x: Any) -> Any:
        return np.asarray([float(one) ** 0.5 if one > 0 else float("nan") for one in np.asarray(x)])

    foreign.defvjp(lambda x: (foreign(x), x), lambda x, g: (g / x,))
    error = anomaly(pb.compile(lambda x: foreign(x).sum()), np.array([1.0, -1.0]))
    assert error.index == (1,) and "foreign(x).sum()" in error.line


def test_rules_of_ones_own_are_looked_at() -> None:
    @pb.custom_vjp
    def root(x: Any) -> Any:
        return pb.sqrt(x)

    def pull(x: Any, g: Any) -> Any:
        slope = 0.5 / pb.sqrt(x)
        return (g * slope,)

    root.defvjp(lambda x: (pb.sqrt(x), x), pull)
    error = anomaly(pb.grad(pb.compile(lambda x: (3.0 * root(x)).sum())), np.array([1.0, 0.0]))
    assert error.line == "slope = 0.5 / pb.sqrt(x)" and error.index == (1,)


def test_random_numbers_are_those_of_the_call() -> None:
    rng = np.random.default_rng(0)

    @pb.compile
    def noisy(x: Any) -> Any:
        noise = rng.normal(size=3)
        return np.log(x + noise).sum()

    wanted = np.random.default_rng(0)
    expected = X - 1.0 + wanted.normal(size=3)
    error = anomaly(noisy, X - 1.0)
    (number,) = error.operands.values()
    assert number == expected[error.index] and number < 0
    assert rng.normal() == wanted.normal()


def test_random_numbers_that_code_draws_are_those_of_the_call() -> None:
    rng, plain = np.random.default_rng(0), np.random.default_rng(0)

    @pb.compile
    def counted(rate: Any) -> Any:
        count = rng.poisson(rate)
        return np.log(count - 3.0).sum()

    rate = np.full(8, 3.0)
    expected = plain.poisson(rate) - 3.0
    error = anomaly(counted, rate)
    assert list(error.operands.values()) == [expected[error.index]] and expected[error.index] <= 0
    assert rng.normal() == plain.normal()


def test_complex_functions_are_looked_at() -> None:
    @pb.compile
    def inverted(z: Any) -> Any:
        w = 1.0 / z
        return (w * w).sum()

    assert anomaly(inverted, np.array([1 + 1j, 0j])).line == "w = 1.0 / z"


def test_single_precision_overflows_at_its_own_limit() -> None:
    error = anomaly(softmax, np.array([1.0, 89.0, 2.0], np.float32))
    assert error.operator == "exp" and error.index == (1,)


def test_outside_of_the_mode_calls_go_the_direct_way() -> None:
    function = type(entropy)
    direct, shortcut = function.__call__, pb.runtime.dispatch.compiled_nodes.CompiledNode.backward_to_leaves
    source = entropy.source(X)
    with pb.detect_anomaly():
        assert function.__call__ is not direct
        with pb.detect_anomaly(check_nan=False):
            assert function.__call__ is direct
        entropy(X)
    assert function.__call__ is direct
    assert pb.runtime.dispatch.compiled_nodes.CompiledNode.backward_to_leaves is shortcut
    assert entropy.source(X) == source
    assert "_watched" not in vars(softmax) or softmax._watched.table is not softmax._table


def test_the_mode_leaves_the_counts_of_a_function_alone() -> None:
    function = pb.compile(lambda x: (x * x).sum())
    function(X)
    before = function.cache_info()
    with pb.detect_anomaly():
        function(X)
        function(X)
    assert function.cache_info() == before


def test_it_is_one_mode_under_two_names() -> None:
    assert pb.detect_anomaly is pb.autograd.detect_anomaly


def test_eager_tensors_raise_the_same_class() -> None:
    x = pb.tensor([0.0], requires_grad=True)
    with pb.detect_anomaly():
        y = (pb.sqrt(x) * 0).sum()
        with pytest.raises(AnomalyError, match="returned nan values"):
            y.backward()


@pytest.mark.drawn(6)
def test_what_a_solver_or_a_factorisation_refuses_is_traced_back() -> None:
    @pb.compile
    def factor(a: Any) -> Any:
        b = np.log(a)
        return np.linalg.cholesky(b @ b.T + np.eye(2)).sum()

    assert anomaly(factor, np.array([[1.0, 2.0], [0.0, 1.0]])).line == "b = np.log(a)"

    @pb.compile
    def solved(x: Any) -> Any:
        y = 1.0 / x
        return pb.root(lambda z: z**3 - y, np.ones(2)).sum()

    assert anomaly(solved, np.array([1.0, 0.0])).line == "y = 1.0 / x"
    with pb.detect_anomaly(), pytest.raises(pb.errors.LinearAlgebraError):
        pb.compile(np.linalg.cholesky)(-np.eye(2))


def test_a_sum_that_only_fused_code_overflows_in_is_an_anomaly() -> None:
    from pullback.runtime.diagnosis.anomalies import diagnose

    graph = pb.compile(lambda x: x * 2).graph(X)
    with pytest.raises(AnomalyError, match="value by value with NumPy it is"):
        diagnose("doubled", graph, [X], slice(None), graph.inputs)
