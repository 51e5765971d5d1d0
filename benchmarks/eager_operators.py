"""What an operator costs eagerly: `python -m benchmarks.eager_operators [--quick] [--only NAME,...]`.

Of the commonest operators, on small arrays, in microseconds. "NumPy" is the plain call, "rules" what the
calls of NumPy in the operator's rules take. "forward" is the rest of a call that records, "backward" the rest
of what its node costs in a pass through many such nodes: for Tensors with the functions of pullback, and for
arrays with NumPy's functions, as inside of `value_and_grad`. Minima over rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table
from scipy import special

import pullback as pb
from pullback.runtime.tape.engine import Pass
from pullback.runtime.values.operator_nodes import OperatorNode
from pullback.runtime.values.saved import keeping_saved_values
from pullback.runtime.values.tensor import Tensor, make
from pullback.runtime.values.value_kinds import NumpyScalar, NumpyTensor

from .report import new_console

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.2, 0.8, 10), RNG.uniform(0.2, 0.8, 10)
A, B = RNG.normal(size=(5, 5)), RNG.normal(size=(5, 5))
SPREAD = A @ A.T + 5.0 * np.eye(5)
"""A symmetric positive definite matrix."""
IS_FIRST = X < Y
PLACES = np.array([3, 1, 4])

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """An operator, of arrays; `np` is NumPy, or pullback with PyTorch's names."""

    name: str
    of_arrays: Function
    operands: tuple[np.ndarray, ...]
    of_tensors: Function | None = None
    """The same under PyTorch's names; None: `of_arrays`, which has Python's operators or methods only."""


def unary(names: str) -> list[Case]:
    return [Case(name, getattr(np, name), (X,), getattr(pb, name)) for name in names.split()]


def of_matrix(names: str, operand: np.ndarray) -> list[Case]:
    return [
        Case(name, getattr(np.linalg, name), (operand,), getattr(pb.linalg, name)) for name in names.split()
    ]


CASES: tuple[Case, ...] = (
    Case("x + y", lambda x, y: x + y, (X, Y)),
    Case("x - y", lambda x, y: x - y, (X, Y)),
    Case("x * y", lambda x, y: x * y, (X, Y)),
    Case("x / y", lambda x, y: x / y, (X, Y)),
    Case("x ** 2", lambda x: x**2, (X,)),
    Case("x ** y", lambda x, y: x**y, (X, Y)),
    Case("2.0 * x", lambda x: 2.0 * x, (X,)),
    Case("1 - x", lambda x: 1 - x, (X,)),
    Case("x / 3.0", lambda x: x / 3.0, (X,)),
    Case("-x", lambda x: -x, (X,)),
    Case("A * x (broadcast)", lambda a, x: a * x, (A, X[:5])),
    *unary("exp log sin cos tanh sqrt square abs log1p expm1 sinh arctan"),
    Case("maximum", np.maximum, (X, Y), pb.maximum),
    Case("logaddexp", np.logaddexp, (X, Y), pb.logaddexp),
    Case(
        "where", lambda x, y: np.where(IS_FIRST, x, y), (X, Y),
        lambda x, y: pb.where(pb.from_numpy(IS_FIRST), x, y),
    ),
    Case("clip", lambda x: np.clip(x, 0.3, 0.7), (X,), lambda x: pb.clip(x, 0.3, 0.7)),
    Case("erf", special.erf, (X,), pb.special.erf),
    Case("gammaln", special.gammaln, (X,), pb.special.gammaln),
    Case("expit", special.expit, (X,), pb.sigmoid),
    Case("sum", np.sum, (X,), pb.sum),
    Case("sum, axis", lambda a: np.sum(a, axis=0), (A,), lambda a: pb.sum(a, dim=0)),
    Case("mean", np.mean, (X,), pb.mean),
    Case("max", np.max, (X,), pb.max),
    Case("max, axis", lambda a: np.max(a, axis=1), (A,), lambda a: pb.amax(a, dim=1)),
    Case("prod", np.prod, (X,), pb.prod),
    Case("std", np.std, (X,), pb.std),
    Case("var", np.var, (X,), pb.var),
    Case("cumsum", np.cumsum, (X,), lambda x: pb.cumsum(x, 0)),
    Case("linalg.norm", np.linalg.norm, (X,), pb.linalg.norm),
    Case("A @ B", lambda a, b: a @ b, (A, B)),
    Case("A @ x", lambda a, x: a @ x, (A, X[:5])),
    Case("x @ y", lambda x, y: x @ y, (X, Y)),
    Case("dot", np.dot, (A, B), pb.mm),
    Case("outer", np.outer, (X, Y), pb.outer),
    Case(
        "einsum", lambda a, b: np.einsum("ij,jk->ik", a, b), (A, B),
        lambda a, b: pb.einsum("ij,jk->ik", a, b),
    ),
    Case("tensordot", lambda a, b: np.tensordot(a, b, 1), (A, B), lambda a, b: pb.tensordot(a, b, 1)),
    Case("x[2]", lambda x: x[2], (X,)),
    Case("x[1:5]", lambda x: x[1:5], (X,)),
    Case("A[:, 1]", lambda a: a[:, 1], (A,)),
    Case("x[:, None]", lambda x: x[:, None], (X,)),
    Case("x[places]", lambda x: x[PLACES], (X,), lambda x: x[pb.from_numpy(PLACES)]),
    Case("reshape", lambda x: x.reshape(2, 5), (X,)),
    Case("A.T", lambda a: a.T, (A,)),
    Case("ravel", np.ravel, (A,), pb.ravel),
    Case(
        "concatenate", lambda x, y: np.concatenate((x, y)), (X, Y), lambda x, y: pb.concatenate((x, y))
    ),
    Case("stack", lambda x, y: np.stack((x, y)), (X, Y), lambda x, y: pb.stack((x, y))),
    Case(
        "stack of numbers", lambda x, y: np.stack([x, y]), (X[0], Y[0]), lambda x, y: pb.stack([x, y])
    ),
    Case("diag of matrix", np.diag, (A,), pb.diag),
    Case("diag of vector", np.diag, (X,), pb.diag),
    Case("trace", np.trace, (A,), pb.trace),
    Case("tril", np.tril, (A,), pb.tril),
    Case("sort", np.sort, (X,), lambda x: pb.sort(x)[0]),
    Case("roll", lambda x: np.roll(x, 2), (X,), lambda x: pb.roll(x, 2)),
    Case("tile", lambda x: np.tile(x, 3), (X,), lambda x: pb.tile(x, (3,))),
    *of_matrix("inv det cholesky", SPREAD),
    Case("slogdet", lambda a: np.linalg.slogdet(a)[1], (SPREAD,), lambda a: pb.linalg.slogdet(a)[1]),
    Case("eigh", lambda a: np.linalg.eigh(a)[1], (SPREAD,), lambda a: pb.linalg.eigh(a)[1]),
    Case("solve", np.linalg.solve, (SPREAD, X[:5]), pb.linalg.solve),
)  # fmt: skip

REPEATS = 30


def fastest(calls: dict[str, Callable[[], Any]], seconds: float, rounds: int) -> dict[str, float]:
    """Microseconds a call: the minima over rounds in which each has a turn, a short one."""
    found = dict.fromkeys(calls, float("inf"))
    counts = {name: max(1, int(seconds / _turn(call, 3))) for name, call in calls.items()}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name] = min(found[name], _turn(call, counts[name]) * 1e6)
    return found


def _turn(call: Callable[[], Any], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count


@dataclass(frozen=True)
class Cost:
    """Microseconds of an operator."""

    plain: float
    rules: float
    forward: float
    backward: float


def cost(
    of_plain: Function, function: Function, operands: tuple[Any, ...], seconds: float, rounds: int
) -> Cost:
    """What `function` costs, of tensors that require grad, beside `of_plain` of their arrays."""
    arrays = [one._value if one._value.ndim else one._value[()] for one in operands]
    edges = [(one, 0) for one in operands]

    def taped() -> tuple[list[Tensor], list[np.ndarray]]:
        results = [function(*operands) for _ in range(REPEATS)]
        return results, [np.ones(one._value.shape, one._value.dtype) for one in results]

    def passed(results: list[Tensor], cotangents: list[np.ndarray]) -> None:
        one_pass = Pass(False, True, edges)
        one_pass.run([(one._grad_fn, one._output_nr) for one in results], cotangents)

    taped()  # what is called often has other ways: see `runtime/tape/composed.py`
    results, cotangents = taped()
    nodes = _nodes_behind(results[0])
    calls = {
        "plain": lambda: of_plain(*arrays),
        "recorded": lambda: function(*operands),
        "pass": lambda: passed(results, cotangents),
        "empty pass": lambda: passed([], []),
        "rules": _rules_of(nodes, cotangents[0]),
    }
    found = fastest(calls, seconds, rounds)
    backward = (found["pass"] - found["empty pass"]) / REPEATS
    return Cost(found["plain"], found["rules"], found["recorded"] - found["plain"], backward - found["rules"])


def _nodes_behind(result: Tensor) -> list[Any]:
    nodes, seen = [result._grad_fn], set()
    for node in nodes:
        for edge in node.edges:
            if edge is not None and edge[0]._is_node and id(edge[0]) not in seen:
                seen.add(id(edge[0]))
                nodes.append(edge[0])
    return nodes


def _rules_of(nodes: list[Any], g: np.ndarray) -> Callable[[], Any]:
    """The calls of NumPy in the rules of the node of one operator; nothing of several nodes."""
    node = nodes[0]
    if len(nodes) > 1 or not isinstance(node, OperatorNode):
        return lambda: None
    pull = node.plan.pull
    return lambda: pull(g, node)


def as_tensors(operands: Iterable[Any]) -> tuple[Tensor, ...]:
    return tuple(pb.tensor(one).requires_grad_() for one in operands)


def costs(case: Case, seconds: float, rounds: int) -> tuple[Cost, Cost]:
    """On Tensors, and on arrays inside of a transform."""
    tensors = cost(
        case.of_arrays, case.of_tensors or case.of_arrays, as_tensors(case.operands), seconds, rounds
    )
    arrays = [make(np.asarray(one), NumpyTensor if np.ndim(one) else NumpyScalar) for one in case.operands]
    for one in arrays:
        one._requires_grad = True
    with keeping_saved_values():
        return tensors, cost(case.of_arrays, case.of_arrays, tuple(arrays), seconds, rounds)


def main() -> int:
    what = (__doc__ or "").partition(":")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eager_operators", description=what)
    parser.add_argument("--quick", action="store_true", help="few short rounds")
    parser.add_argument("--only", default="", metavar="NAME,...", help="operators whose names begin so")
    chosen = parser.parse_args()
    rounds, seconds = (20, 0.0004) if chosen.quick else (150, 0.0004)
    table = Table(title="Eager operators: microseconds above NumPy's own calls")
    table.add_column("")
    for title in ("NumPy", "rules", "Tensors forward", "backward", "arrays forward", "backward"):
        table.add_column(title, justify="right")
    for case in CASES:
        if case.name.startswith(tuple(chosen.only.split(","))):
            of_tensors, of_arrays = costs(case, seconds, rounds)
            figures = (
                of_arrays.plain, of_arrays.rules, of_tensors.forward, of_tensors.backward,
                of_arrays.forward, of_arrays.backward,
            )  # fmt: skip
            table.add_row(escape(case.name), *(f"{one:.1f}" for one in figures))
    new_console().print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
