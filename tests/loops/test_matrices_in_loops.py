"""Linear algebra, order and norms in the bodies of loops and choices: compiled derivatives of any order."""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from derivatives import Function
from extent import machine_code, some_of
from uncompiled import uncompiled

import pullback as pb
from pullback.codegen.derivatives.differentiate import differentiate
from pullback.errors import EagerOnlyError
from pullback.tracer.graph import Node, make_input
from pullback.tracer.ops import matrices
from pullback.tracer.spec import spec_of

pytestmark = [
    pytest.mark.filterwarnings("error"),  # that a function runs uncompiled is a warning
    pytest.mark.part(8),
]

SIZE = 3
OTHER = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.3, 0.4, 1.8]])
SIDE = np.array([[0.5, -1.0], [0.7, 0.2], [-0.4, 0.9]])
STEPS = 3


def symmetric(a: Any) -> Any:
    return a + a.T


def definite(a: Any) -> Any:
    return a @ a.T + 0.5 * np.eye(SIZE)


def by_eigenvectors(a: Any) -> Any:
    values, vectors = pb.linalg.eigh(symmetric(a))
    return (vectors * pb.tanh(values)) @ vectors.T


def by_singular_vectors(a: Any) -> Any:
    left, values, right = pb.linalg.svd(a, full_matrices=False)
    return (left * pb.tanh(values)) @ right


def by_orthonormal_columns(a: Any) -> Any:
    q, r = pb.linalg.qr(a)
    return q * pb.tanh(r)


def with_exchanged_rows(a: Any) -> Any:
    _, lower, upper = pb.linalg.lu(a)
    return lower * pb.tanh(upper)


def size_and_sign(a: Any) -> Any:
    sign, logarithm = pb.linalg.slogdet(a)
    return sign * logarithm


FUNCTIONS: dict[str, Function] = {
    "solve": lambda a: pb.linalg.solve(a, a[:, :2] ** 2),
    "solve, constant matrix": lambda a: pb.linalg.solve(OTHER, a),
    "solve, constant side": lambda a: pb.linalg.solve(a, SIDE),
    "solve, transposed": lambda a: pb.linalg.solve(a.T, a[:, :2] ** 2),
    "solve, for both": lambda a: pb.linalg.solve(a, SIDE) + pb.linalg.solve(a.T, SIDE) ** 2,
    "solve, for a vector": lambda a: pb.linalg.solve(a, a[0]),
    "solve, for a batch": lambda a: pb.linalg.solve(pb.stack([a, a.T, a @ a]), pb.stack([a, a**2, a.T])),
    "solve, by the factor": lambda a: pb.cholesky_solve(a[:, :2], pb.linalg.cholesky(definite(a))),
    "solve, with the factor": lambda a: pb.linalg.solve(pb.linalg.cholesky(definite(a)).T, a),
    "inv": pb.linalg.inv,
    "inv, of a product": lambda a: pb.linalg.inv(a @ OTHER + np.eye(SIZE)),
    "det": pb.linalg.det,
    "det, of a batch": lambda a: pb.linalg.det(pb.stack([a, a.T @ OTHER])),
    "slogdet": size_and_sign,
    "cholesky": lambda a: pb.linalg.cholesky(definite(a)),
    "cholesky, of a batch": lambda a: pb.linalg.cholesky(pb.stack([definite(a), definite(a.T)])),
    "lower triangle": lambda a: pb.linalg.solve_triangular(a, a[:, :2], upper=False),
    "upper triangle, transposed": lambda a: pb.linalg.solve_triangular(a.T, SIDE, upper=True),
    "eigh": by_eigenvectors,
    "eigvalsh": lambda a: pb.linalg.eigvalsh(symmetric(a)),
    "svd": by_singular_vectors,
    "svdvals": lambda a: pb.linalg.svdvals(a),
    "qr": by_orthonormal_columns,
    "lu": with_exchanged_rows,
    "pinv": lambda a: pb.linalg.pinv(a[:, :2]),
    "matrix_exp": lambda a: pb.linalg.matrix_exp(0.5 * a),
    "matrix_power": lambda a: pb.linalg.matrix_power(a, -2),
    "sort": lambda a: pb.sort(a, dim=1)[0] * OTHER,
    "median": lambda a: pb.median(a, dim=0)[0] ** 2,
    "norm": lambda a: pb.linalg.norm(a, dim=1),
    "std": lambda a: pb.std(a, dim=0),
    "logsumexp": lambda a: pb.logsumexp(a, dim=0),
    "softmax": lambda a: pb.softmax(a, dim=1),
    "cumprod": lambda a: pb.cumprod(a, dim=0),
}


def weighed(y: Any) -> Any:
    weights = np.linspace(0.5, 1.5, max(int(np.prod(y.shape)), 1)).reshape(tuple(y.shape))
    return (weights * y * (1 + y)).sum()


def mapped(function: Function, x: Any) -> Any:
    return weighed(pb.map(function, x))


def scanned(function: Function, x: Any) -> Any:
    def step(total: Any, a: Any) -> tuple[Any, Any]:
        y = function(a + 0.1 * pb.tanh(total) * np.eye(SIZE))
        return total + weighed(y), y

    total, rows = pb.scan(step, x[0, 0, 0], x)
    return pb.sin(0.01 * total) + weighed(rows)


def counted(function: Function, x: Any) -> Any:
    def step(i: Any, total: Any) -> Any:
        return 0.5 * total + pb.sin(1e-3 * weighed(function(x[i] + 0.1 * total * np.eye(SIZE))))

    return pb.fori_loop(0, STEPS, step, x[0, 0, 0])


def going_on(function: Function, x: Any) -> Any:
    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        steps, a = state
        return steps + 1, a + 0.05 * pb.tanh(weighed(function(a))) * x[1]

    _, last = pb.while_loop(lambda state: state[0] < STEPS, step, (0, x[0]))
    return weighed(last)


def chosen(function: Function, x: Any) -> Any:
    taken = pb.cond(x[0, 0, 0] > 0, lambda a: weighed(function(a)), lambda a: a.sum(), x[0])
    other = pb.cond(x[0, 0, 0] < 0, lambda a: weighed(function(a)), lambda a: (a**3).sum(), x[1])
    return taken * other + weighed(x[2])


BODIES: dict[str, Callable[[Function, Any], Any]] = {
    "map": mapped, "scan": scanned, "fori_loop": counted, "while_loop": going_on, "cond": chosen,
}  # fmt: skip


def stack_of_matrices(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(STEPS, SIZE, SIZE)) * 0.4 + np.diag([3.0, 2.0, 1.2])


def derivatives(function: Function, x: Any) -> tuple[Any, ...]:
    """The value, the gradient, and the gradient of a number that is made of the gradient."""
    direction = np.random.default_rng(7).normal(size=x.shape)

    def slope(x: Any) -> Any:
        return (pb.grad(function)(x) * direction).sum()

    return (*pb.value_and_grad(function)(x), pb.grad(slope)(x))


@functools.cache
def eager_derivatives(body: str, name: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] = derivatives(partial(BODIES[body], FUNCTIONS[name]), stack_of_matrices())
    return found


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_eager_derivatives_are_difference_quotients(body: str, name: str) -> None:
    x, step = stack_of_matrices(), 1e-5
    direction = np.random.default_rng(7).normal(size=x.shape)
    value_and_slopes = pb.value_and_grad(partial(BODIES[body], FUNCTIONS[name]))
    ends = [value_and_slopes(x + sign * step * direction) for sign in (1, -1)]
    _, gradient, second = eager_derivatives(body, name)
    for order, found in enumerate((gradient, second)):
        quotient = (ends[0][order] - ends[1][order]) / (2 * step)
        along = (found * direction).sum() if order == 0 else found
        np.testing.assert_allclose(along, quotient, rtol=1e-6, atol=1e-6 * np.abs(quotient).max())


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("name", "body"), [(name, body) for name in FUNCTIONS for body in some_of([*BODIES], name, count=2)]
)
@pytest.mark.part(8)
def test_compiled_derivatives_are_the_eager_ones(name: str, body: str) -> None:
    function = partial(BODIES[body], FUNCTIONS[name])
    x = stack_of_matrices()
    with machine_code(f"{name}, {body}", one_in=6):
        found = pb.compile(partial(derivatives, function))(x)
    for one, other in zip(found, eager_derivatives(body, name)):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9 * np.abs(other).max())


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", ["solve, for both", "slogdet", "cholesky", "norm"])
def test_third_derivatives(name: str) -> None:
    directions = np.random.default_rng(3).normal(size=(2, STEPS, SIZE, SIZE))

    def function(x: Any) -> Any:
        return mapped(FUNCTIONS[name], x)

    def first(x: Any) -> Any:
        return (pb.grad(function)(x) * directions[0]).sum()

    def second(x: Any) -> Any:
        return (pb.grad(first)(x) * directions[1]).sum()

    x, step = stack_of_matrices(), 1e-5
    with machine_code(name):
        found = pb.compile(pb.grad(second))(x)
    np.testing.assert_allclose(found, pb.grad(second)(x), rtol=1e-8, atol=1e-9 * np.abs(found).max())
    quotient = (second(x + step * directions[1]) - second(x - step * directions[1])) / (2 * step)
    np.testing.assert_allclose((found * directions[1]).sum(), quotient, rtol=1e-6)


EDGES: dict[str, tuple[Function, np.ndarray]] = {
    "norm of nothing but 0": (lambda a: pb.linalg.norm(a, dim=1), np.zeros((SIZE, SIZE))),
    "std of equal numbers": (lambda a: pb.std(a, dim=0), np.ones((SIZE, SIZE))),
    "logsumexp of nothing but -inf": (
        lambda a: pb.exp(pb.logsumexp(a, dim=0)), np.full((SIZE, SIZE), -np.inf)
    ),
    "pinv with equal singular values": (pb.linalg.pinv, np.eye(SIZE)),
    "pinv of a lower rank": (pb.linalg.pinv, np.diag([2.0, 1.0, 0.0])),
}  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", EDGES)
def test_derivatives_are_the_eager_ones_where_a_body_is_not_smooth(name: str) -> None:
    function, edge = EDGES[name]
    x = np.stack([stack_of_matrices()[0], edge, edge])
    both = partial(derivatives, partial(mapped, function))
    for one, other in zip(pb.compile(both)(x), both(x)):
        assert np.isfinite(other).all()
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def factorised(a: Node) -> list[Node]:
    factors = matrices.eliminated(a)
    return [
        factors,
        matrices.cholesky_factor(a),
        matrices.eliminated_solution(factors, a, transposed=False),
        matrices.triangular_solution(a, a, lower=True, transposed=False, right=False),
        matrices.inverse_norm(factors),
    ]


@pytest.mark.parametrize("place", range(5))
def test_a_factorisation_itself_has_no_derivative_but_an_error(place: int) -> None:
    a = make_input(spec_of(np.eye(2)), "a")
    found = factorised(a)[place]
    with pytest.raises(EagerOnlyError, match=f"The derivative of {found.operator.name} has no form"):
        differentiate([a], {found: make_input(found.spec, "g")})


def test_forward_and_reverse_share_an_elimination() -> None:
    def total(x: Any) -> Any:
        return mapped(lambda a: pb.linalg.solve(a, SIDE) * pb.linalg.det(a), x)

    source = pb.compile(pb.grad(total)).source(stack_of_matrices())
    assert source.count(" eliminate(") == 1


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", ["solve", "inverse"])
def test_derivatives_of_gradients_of_loops_that_keep_factors(name: str) -> None:
    """The gradient's loops store what the first has eliminated; derivatives pass it by."""
    solved = {"solve": np.linalg.solve, "inverse": lambda a, b: np.linalg.inv(a) @ b}[name]

    def settled(a: Any, b: Any) -> Any:
        while True:
            b = b * 0.5 - solved(a, b) * 0.1
            if b.sum() < 0.1:
                return b.sum()

    a, b = np.array([[0.8, 0.1], [0.0, 0.9]]), np.array([0.3, 0.4])
    slope = pb.grad(settled, (0, 1))
    _, expected = pb.jvp(slope, (a, b), (a, b))
    with uncompiled():
        _, found = pb.jvp(pb.compile(slope), (a, b), (a, b))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-12)
