"""Solvers: values against SciPy's, derivatives of two orders against differences, in every way of running."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from extent import machine_code
from scipy import optimize, sparse

import pullback as pb
from pullback.errors import (
    ArgumentError,
    ConvergenceError,
    GradientError,
    LinearAlgebraError,
    OutputError,
    ShapeError,
)

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

PARAMETERS = np.array([2.0, 3.0, 5.0])
MATRIX = np.array([[4.0, 1.0, 0.5], [0.0, 3.0, -1.0], [1.0, 0.2, 5.0]])
TIMES = np.linspace(0.0, 1.0, 8)
SAMPLES = 2.0 * np.exp(-1.3 * TIMES) + 0.1 * np.cos(9.0 * TIMES)


def equations(x: Any, a: Any) -> Any:
    return x**2 - a + 0.1 * np.sin(x[::-1])


def valley(x: Any, a: Any) -> Any:
    return (10 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x) ** 2 * a).sum() + 0.1 * (a * x).sum()


def misfit(p: Any, a: Any) -> Any:
    return p[0] * np.exp(-p[1] * TIMES) * a[0] - SAMPLES * a[1] + a[2] * 0.1 * TIMES


def contraction(x: Any, a: Any) -> Any:
    return np.cos(x) * a / 6


def cubic(x: Any, a: Any) -> Any:
    return x**3 - a[0] * x - a[1]


symmetric = MATRIX @ MATRIX.T
by_scipy = pb.implicit(
    lambda a: optimize.root(lambda x: equations(x, np.asarray(a)), np.ones(3), tol=1e-14).x, equations
)
SOLUTIONS: dict[str, Callable[[Any], Any]] = {
    "root": lambda a: pb.root(equations, np.ones(3), (a,)),
    "root without the matrix": lambda a: pb.root(equations, np.ones(3), (a,), adjoint="gmres"),
    "fixed point": lambda a: pb.fixed_point(contraction, np.ones(3), (a,)),
    "fixed point by iteration": lambda a: pb.fixed_point(
        contraction, np.ones(3), (a,), method="iteration", xtol=1e-14
    ),
    "brentq": lambda a: pb.brentq(cubic, 0.0, 10.0, (a,)),
    "bisect": lambda a: pb.bisect(cubic, 0.0, 10.0, (a,), xtol=1e-15),
    "newton": lambda a: pb.root_scalar(cubic, (a,), x0=3.0),
    "BFGS": lambda a: pb.minimize(valley, np.zeros(3), (a,)),
    "Newton's minimum": lambda a: pb.minimize(valley, np.zeros(3), (a,), "Newton"),
    "least squares": lambda a: pb.least_squares(misfit, np.ones(2), (a,)),
    "implicit of SciPy": by_scipy,
    "cg": lambda a: pb.linear_solve(lambda x: symmetric @ x + a**2 * x, np.sin(a), "cg"),
    "bicgstab": lambda a: pb.linear_solve(lambda x: MATRIX @ x + a**2 * x, np.sin(a), "bicgstab"),
    "gmres": lambda a: pb.linear_solve(lambda x: MATRIX @ x + a**2 * x, np.sin(a), "gmres"),
    "gmres with an approximate inverse": lambda a: pb.linear_solve(
        lambda x: MATRIX @ x + a**2 * x, np.sin(a), "gmres", M=lambda x: x / a**2
    ),
}
REFERENCES: dict[str, Callable[[Any], Any]] = {
    "root": lambda a: optimize.root(equations, np.ones(3), (a,), tol=1e-14).x,
    "fixed point": lambda a: optimize.fixed_point(contraction, np.ones(3), (a,), xtol=1e-13),
    "brentq": lambda a: optimize.brentq(cubic, 0.0, 10.0, (a,)),
    "bisect": lambda a: optimize.bisect(cubic, 0.0, 10.0, (a,), xtol=1e-15),
    "BFGS": lambda a: optimize.minimize(valley, np.zeros(3), (a,), "trust-constr", tol=1e-12).x,
    "least squares": lambda a: (
        optimize.least_squares(misfit, np.ones(2), args=(a,), xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    ),
    "gmres": lambda a: np.linalg.solve(MATRIX + np.diag(a**2), np.sin(a)),
    "cg": lambda a: np.linalg.solve(symmetric + np.diag(a**2), np.sin(a)),
}
solutions = pytest.mark.parametrize("name", SOLUTIONS)


def differences(function: Callable[[Any], Any], a: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Central differences of fourth order."""

    def slope(direction: np.ndarray) -> Any:
        near, far = (
            (np.asarray(function(a + k * direction)) - np.asarray(function(a - k * direction)))
            / (2 * k * step)
            for k in (1, 2)
        )
        return (4 * near - far) / 3

    return np.stack([slope(step * one) for one in np.eye(a.size)], -1)


@solutions
class TestSolution:
    @pytest.mark.drawn(4)
    def test_derivatives_are_those_of_differences(self, name: str) -> None:
        def loss(a: Any) -> Any:
            return (SOLUTIONS[name](a) ** 3).sum()

        slope, curvature = pb.grad(loss), pb.hessian(loss)
        np.testing.assert_allclose(slope(PARAMETERS), differences(loss, PARAMETERS), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(
            curvature(PARAMETERS), differences(slope, PARAMETERS), rtol=1e-6, atol=1e-7
        )

    @pytest.mark.drawn(6)
    @pytest.mark.part(8)
    def test_compiled_is_as_eager(self, name: str) -> None:
        def loss(a: Any) -> Any:
            return (SOLUTIONS[name](a) ** 3).sum()

        for function in (SOLUTIONS[name], pb.grad(loss), pb.hessian(loss)):
            found = pb.compile(function)(PARAMETERS)
            np.testing.assert_allclose(found, function(PARAMETERS), rtol=1e-8, atol=1e-12)

    @pytest.mark.drawn(6)
    @pytest.mark.part(10)
    def test_of_a_batch(self, name: str) -> None:
        batch = np.stack([PARAMETERS, 1.5 * PARAMETERS])
        slope = pb.grad(lambda a: (SOLUTIONS[name](a) ** 3).sum())
        expected = np.stack([slope(one) for one in batch])
        for vmap in (pb.vmap(slope), pb.compile(pb.vmap(slope))):
            np.testing.assert_allclose(vmap(batch), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", REFERENCES)
def test_values_are_those_of_scipy(name: str) -> None:
    np.testing.assert_allclose(
        SOLUTIONS[name](PARAMETERS), REFERENCES[name](PARAMETERS), rtol=2e-7, atol=1e-9
    )


@pytest.mark.parametrize("name", ["brentq", "bisect"])
def test_bracketing_takes_the_steps_of_scipy(name: str) -> None:
    def count(solve: Callable[..., Any]) -> tuple[float, int]:
        calls = []

        def f(x: Any) -> Any:
            calls.append(x)
            return np.exp(x) - 5 * x**2

        return float(solve(f, 0.0, 1.5)), len(calls)

    value, calls = count(getattr(pb, name))
    expected, calls_of_scipy = count(getattr(optimize, name))
    assert value == expected
    assert calls <= calls_of_scipy + 2


def test_tracing_a_solver_of_scipys_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    np.testing.assert_allclose(pb.compile(by_scipy)(PARAMETERS), by_scipy(PARAMETERS))
    assert capfd.readouterr().err == ""


def test_spsolve() -> None:
    matrix = sparse.csr_matrix(MATRIX)
    b = np.array([1.0, -2.0, 0.5])
    value = lambda data, b: (pb.spsolve(data, matrix.indices, matrix.indptr, b) ** 3).sum()  # noqa: E731
    np.testing.assert_allclose(value(matrix.data, b), (np.linalg.solve(MATRIX, b) ** 3).sum())
    slope = pb.grad(value, (0, 1))
    by_data, by_b = slope(matrix.data, b)
    np.testing.assert_allclose(by_data, differences(lambda data: value(data, b), matrix.data), rtol=1e-7)
    np.testing.assert_allclose(by_b, differences(lambda b: value(matrix.data, b), b), rtol=1e-7)
    for found, expected in zip(pb.compile(slope)(matrix.data, b), (by_data, by_b)):
        np.testing.assert_allclose(found, expected)
    curvature = pb.hessian(value)(matrix.data, b)
    expected = differences(lambda data: pb.grad(value)(data, b), matrix.data)
    np.testing.assert_allclose(curvature, expected, rtol=1e-6, atol=1e-8)


def test_splu_serves_many_right_hand_sides() -> None:
    factors = pb.splu(sparse.csr_matrix(MATRIX))
    slope = pb.grad(lambda b: (factors.solve(b) ** 2).sum())
    batch = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 0.0]])
    inverse = np.linalg.inv(MATRIX)
    for function in (pb.vmap(slope), pb.compile(pb.vmap(slope))):
        np.testing.assert_allclose(function(batch), 2 * batch @ inverse.T @ inverse)
    np.testing.assert_allclose(factors.solve(batch[0], "T"), np.linalg.solve(MATRIX.T, batch[0]))


def test_singular_sparse_matrices_are_refused() -> None:
    with pytest.raises(LinearAlgebraError, match="splu: the sparse matrix of shape .* is singular"):
        pb.splu(sparse.csr_matrix(np.diag([1.0, 0.0])))
    with pytest.raises(ShapeError, match=r"spsolve: b has shape \(3,\) for 1 equations"):
        pb.spsolve(np.ones(1), [0], [0, 1], np.ones(3))


@pytest.mark.drawn(6)
def test_unknowns_may_be_nested() -> None:
    def fun(p: Any, scale: Any) -> Any:
        return {"first": p["v"] ** 2 - scale["a"], "second": p["w"] * p["v"].sum() - scale["b"]}

    def loss(scale: Any) -> Any:
        found = pb.root(fun, {"v": np.ones(2), "w": 1.0}, (scale,))
        return found["v"].sum() * found["w"]

    scale = {"a": np.array([4.0, 9.0]), "b": 10.0}
    for one in (pb.grad(loss), pb.compile(pb.grad(loss))):
        found = one(scale)
        np.testing.assert_allclose(found["a"], 0.0, atol=1e-12)  # b alone is the product
        np.testing.assert_allclose(found["b"], 1.0)


def test_of_tensors_they_are_tensors_with_gradients() -> None:
    a = pb.tensor([4.0, 9.0], dtype=pb.float64, requires_grad=True)
    found = pb.root(lambda x: x * x - a, pb.ones(2, dtype=pb.float64))
    assert isinstance(found, pb.Tensor)
    found.sum().backward()
    np.testing.assert_allclose(a.grad, [0.25, 1.0 / 6.0])


def test_equations_may_make_arrays_of_numbers() -> None:
    """Also where backward runs them once more."""

    def equations_in_rows(x: Any, a: Any) -> Any:
        return np.array([x[0] ** 2 - a, x[0] * x[1] - 1.0])

    slope = pb.grad(lambda a: pb.root(equations_in_rows, np.ones(2), (a,)).sum())
    assert slope(4.0) == pytest.approx(0.25 - 0.5 * 4.0**-1.5)


@pytest.mark.drawn(6)
def test_a_solution_inside_of_a_solution() -> None:
    def inner(y: Any, a: Any) -> Any:
        return pb.minimize(lambda x: ((x - a * y) ** 2).sum() + (x**4).sum(), np.zeros(2), method="Newton")

    def loss(a: Any) -> Any:
        return pb.root(lambda y: y + inner(y, a) - 1.0, np.zeros(2)).sum()

    point = np.array([0.7, 1.3])
    expected = differences(loss, point)
    with machine_code("a solution inside of a solution"):
        for function in (pb.grad(loss), pb.compile(pb.grad(loss))):
            np.testing.assert_allclose(function(point), expected, rtol=1e-6)


def test_a_closure_that_changes_later_keeps_its_derivative() -> None:
    found = []
    for factor in (1.0, 2.0):
        a = pb.tensor([4.0], dtype=pb.float64, requires_grad=True)
        scaled = factor * a
        found.append((a, pb.root(lambda x: x * x - scaled, np.ones(1))))  # noqa: B023
    for _, x in found:
        x.sum().backward()
    np.testing.assert_allclose([a.grad.item() for a, _ in found], [0.25, 2 * 0.5 / np.sqrt(8.0)])


RUNS = pytest.mark.parametrize("run", [lambda f: f, pb.compile], ids=["eager", "compiled"])


@RUNS
class TestRefusals:
    @pytest.mark.drawn(4)
    def test_no_root(self, run: Any) -> None:
        with pytest.raises(ConvergenceError, match=r"(?s)root: after \d+ evaluations.*test_solvers.py"):
            run(lambda a: pb.root(lambda x: x * x + a, np.ones(2)))(1.0)

    def test_no_minimum(self, run: Any) -> None:
        with pytest.raises(ConvergenceError, match="minimize: after"):
            run(lambda a: pb.minimize(lambda x: (x * a).sum(), np.ones(2)))(1.0)

    def test_no_fixed_point(self, run: Any) -> None:
        with pytest.raises(ConvergenceError, match="fixed_point: after 500 steps"):
            run(lambda a: pb.fixed_point(lambda x: x + a, np.ones(2)))(1.0)

    def test_no_change_of_sign(self, run: Any) -> None:
        with pytest.raises(ArgumentError, match="brentq: f has the same sign at both ends"):
            run(lambda a: pb.brentq(lambda x: x * x + a, 0.0, 1.0))(1.0)

    @pytest.mark.drawn(4)
    def test_linear_equations_without_solution(self, run: Any) -> None:
        singular = np.array([[1.0, 1.0], [1.0, 1.0]])
        with pytest.raises(ConvergenceError, match="bicgstab|gmres"):
            run(lambda a: pb.linear_solve(lambda x: singular @ x, a))(np.array([1.0, 2.0]))

    def test_a_singular_jacobian_has_no_derivative(self, run: Any) -> None:
        def solution(a: Any) -> Any:
            return pb.root(lambda x: np.stack([x.sum() - a, 2 * x.sum() - 2 * a]), np.ones(2)).sum()

        assert run(solution)(3.0) == pytest.approx(3.0)
        with pytest.raises(LinearAlgebraError, match="root: the Jacobian of the equations is singular"):
            run(pb.grad(solution))(3.0)

    @pytest.mark.parametrize("power", [2, 3])
    def test_roots_that_meet_have_no_derivative(self, run: Any, power: int) -> None:
        near = pb.implicit(lambda a: np.asarray(a) + 1e-9, lambda x, a: (x - a) ** power)
        with pytest.raises(LinearAlgebraError, match="implicit: the Jacobian .* is nearly singular"):
            run(pb.grad(near))(1.0)
        beside = pb.implicit(
            lambda a: np.asarray([a + 1e-9, a]), lambda x, a: np.stack([(x[0] - a) ** power, x[1] - a])
        )
        with pytest.raises(LinearAlgebraError, match="implicit: the Jacobian .* is (nearly )?singular"):
            run(pb.grad(lambda a: beside(a).sum()))(1.0)

    def test_small_equations_have_derivatives(self, run: Any) -> None:
        tiny = pb.implicit(lambda a: np.asarray(a) + 1e-9, lambda x, a: 1e-30 * (x - a))
        np.testing.assert_allclose(run(pb.grad(tiny))(1.0), 1.0)

    def test_other_numbers_of_equations(self, run: Any) -> None:
        with pytest.raises(OutputError, match="1 values for 2 unknowns"):
            run(lambda a: pb.root(lambda x: (x * a).sum(), np.ones(2)))(1.0)


@pytest.mark.drawn(6)
def test_code_calls_python_only_where_a_solver_has_failed() -> None:
    def solution(a: Any) -> Any:
        return pb.root(equations, np.ones(3), (a,)).sum()

    source = pb.compile(pb.grad(solution)).source(PARAMETERS)
    calls = re.findall(r"(if .*:\n *)?\b(require\w*)\(\w", source)
    assert len(calls) == 4
    assert all(condition for condition, _ in calls)
    assert source.count(" eliminate(") == 2  # in a step of Newton's method, and at the solution


def test_unknown_methods_are_named() -> None:
    with pytest.raises(ArgumentError, match="minimize: method='Powell' is not known"):
        pb.minimize(lambda x: x.sum(), np.ones(2), method="Powell")
    with pytest.raises(ArgumentError, match="root: adjoint='lu' is not known"):
        pb.root(lambda x: x, np.ones(2), adjoint="lu")


@pytest.mark.drawn(6)
@pytest.mark.parametrize("rule_is_traced", [True, False])
def test_a_rule_in_the_equations_may_read_arrays_from_outside(rule_is_traced: bool) -> None:
    table = np.array([1.0, 2.0, 3.0])

    def cubic(x: Any, table: Any) -> Any:
        if not rule_is_traced and type(x) is not np.ndarray:
            raise TypeError("arrays only")
        return (x + 0.1 * x**3) * table

    def solution(p: Any, table: Any) -> Any:
        @pb.custom_vjp
        def function(x: Any) -> Any:
            return cubic(x, table)

        function.defvjp(
            lambda x: (cubic(x, table), x), lambda x, g: (g * (1.0 + 0.3 * x**2) * table,)
        )
        return pb.root(lambda x: function(x) - p, np.ones(3)).sum()

    p = np.array([1.0, 2.0, 3.0])
    expected = pb.grad(solution)(p, table)
    x = pb.root(lambda x: (x + 0.1 * x**3) * table - p, np.ones(3))
    np.testing.assert_allclose(expected, 1.0 / ((1.0 + 0.3 * x**2) * table))
    for form in (pb.compile(pb.grad(solution)), pb.grad(pb.compile(solution))):
        np.testing.assert_allclose(form(p, table), expected)
    for form in (pb.compile(pb.grad(solution, argnums=1)), pb.grad(pb.compile(solution), argnums=1)):
        with pytest.raises(GradientError, match="from outside of its arguments"):
            form(p, table)


def test_an_equation_of_numbers_inside_of_a_function_with_rules() -> None:
    """It depends on nothing that is differentiated, so what has no derivative in it does no harm."""

    @pb.primitive
    def solved(a: Any) -> Any:
        return optimize.brentq(lambda x: np.asarray(x**2 - a).item(), 0.0, 10.0)

    pb.defvjp(solved, lambda x, a: lambda g: g / (2.0 * x))
    assert pb.grad(lambda a: solved(a) ** 3)(4.0) == pytest.approx(3.0)
