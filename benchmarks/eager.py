"""Eager value and gradient of small programs: `python -m benchmarks.eager [--quick] [--only NAME,...]`.

Nothing is compiled. Each program is the same text for PyTorch, HIPS autograd, pullback on Tensors and on
NumPy's arrays: the names `np` and `special` in it are those of the library. Libraries take turns in one
process, with one thread each. What is told are medians of processor time, in microseconds, which other
processes disturb least.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from rich.table import Table
from scipy import special

from .agreement import TOLERANCE, difference
from .peers.autograd import Autograd
from .peers.library import Argnums, Call, Function, Library
from .peers.ours import Pullback
from .peers.torch import Torch, torch_namespace
from .report import new_console
from .workload import SEED, Inputs, Workload

# --- programs -----------------------------------------------------------------------------------------------


def thirty_operators(x):
    y = np.sin(x) * np.cos(x) + np.exp(-x) / (1.0 + x * x)
    y = np.tanh(y) + np.sqrt(x + 2.0) - np.log(x + 3.0) * y
    y = np.log1p(x * x) - np.arctan(y) + np.sinh(0.1 * y) / np.cosh(x)
    return np.sum(np.square(y) + np.abs(y - x) * 0.5 + np.maximum(x, y))


def scalars(x):
    total = 0.0
    for i in range(10):
        total = total + x[i] * x[i] - np.sin(x[i])
    return total


def perceptron(w, b, v, c, x, y):
    hidden = np.tanh(x @ w + b)
    return np.mean((hidden @ v + c - y) ** 2)


def logistic(w, x, y):
    scores = x @ w
    return np.mean(np.log1p(np.exp(scores)) - y * scores) + 0.01 * np.sum(w**2)


def recurrent(w, u, b, x):
    state = np.zeros(8, dtype=np.float64)
    for row in x:
        state = np.tanh(w @ state + u @ row + b)
    return np.sum(state * state)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1.0 - x[:-1]) ** 2.0)


def likelihood(theta, counts):
    mean, shape = np.exp(theta[0]), np.exp(theta[1])
    terms = special.gammaln(counts + shape) - special.gammaln(shape) - special.gammaln(counts + 1.0)
    return -np.sum(terms + shape * np.log(shape / (shape + mean)) + counts * np.log(mean / (shape + mean)))


def filled(x):
    y = np.zeros(20, dtype=np.float64)
    y[0] = x[0]
    for i in range(1, 20):
        y[i] = 0.9 * y[i - 1] + x[i]
    return np.sum(y * y)


def filled_by_stacking(x):
    y = [x[0]]
    for i in range(1, 20):
        y.append(0.9 * y[i - 1] + x[i])
    y = np.stack(y)
    return np.sum(y * y)


def predator_and_prey(theta, start):
    def slope(state):
        prey, predators = state
        births, kills = theta[0] * prey, theta[1] * prey * predators
        return np.stack([births - kills, kills - theta[2] * predators])

    state, step = start, 0.1
    for _ in range(5):
        first = slope(state)
        second = slope(state + 0.5 * step * first)
        third = slope(state + 0.5 * step * second)
        fourth = slope(state + step * third)
        state = state + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return np.sum(state)


def gaussian_process(theta, distances, y):
    covariance = np.exp(theta[0] - distances * np.exp(theta[1])) + 0.1 * np.eye(5, dtype=np.float64)
    solved = np.linalg.solve(covariance, y)
    return 0.5 * np.sum(y * solved) + 0.5 * np.linalg.slogdet(covariance)[1]


@dataclass(frozen=True)
class Program:
    """What is timed: value and gradient of a loss by the inputs at `argnums`."""

    name: str
    loss: FunctionType
    make: Callable[[np.random.Generator], Inputs]
    argnums: tuple[int, ...] = (0,)
    variants: dict[str, FunctionType] = field(default_factory=dict)
    """By a library's name, the form that it can run."""

    def inputs(self) -> Inputs:
        return self.make(np.random.default_rng(SEED))


def drawn(rng: np.random.Generator, *shapes: Any) -> list[np.ndarray]:
    return [rng.normal(size=shape) * 0.3 for shape in shapes]


PROGRAMS = (
    Program("30 operators", thirty_operators, lambda r: (r.normal(size=10) * 0.3,)),
    Program("10 scalars", scalars, lambda r: (r.normal(size=10),)),
    Program(
        "perceptron", perceptron,
        lambda r: (*drawn(r, (8, 16), 16, 16), np.zeros(1), *drawn(r, (16, 8), 16)), (0, 1, 2, 3),
    ),
    Program(
        "logistic regression", logistic,
        lambda r: (r.normal(size=5), r.normal(size=(50, 5)), (r.uniform(size=50) < 0.5) * 1.0),
    ),
    Program(
        "recurrent cell", recurrent,
        lambda r: (*drawn(r, (8, 8), (8, 4), 8, (10, 4)),), (0, 1, 2),
    ),
    Program("rosenbrock", rosenbrock, lambda r: (r.normal(size=10),)),
    Program("likelihood", likelihood, lambda r: (np.array([0.5, 0.2]), r.poisson(2.0, 30) * 1.0)),
    Program(
        "writes in place", filled, lambda r: (r.normal(size=20),),
        variants={"autograd": filled_by_stacking},
    ),
    Program(
        "steps of an ODE", predator_and_prey,
        lambda r: (np.array([1.0, 0.5, 0.8]), np.array([1.0, 0.6])), (0, 1),
    ),
    Program(
        "linear algebra", gaussian_process,
        lambda r: (np.array([0.1, -0.2]), np.abs(np.subtract.outer(r.normal(size=5), np.arange(5.0))),
                   r.normal(size=5)),
    ),
)  # fmt: skip

# --- libraries ----------------------------------------------------------------------------------------------


class Tensors(Torch):
    """pullback under PyTorch's names, on Tensors."""

    package = "pullback"

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        import pullback as pb

        self.torch = pb
        self.xp = torch_namespace(pb)


class Arrays(Pullback):
    """pullback's transforms of plain NumPy programs."""

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        super().configure(workload, inputs)
        self.xp = np

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        return self.pb.value_and_grad(function, argnums=argnums)


LIBRARIES: dict[str, type[Library]] = {
    "torch": Torch, "autograd": Autograd, "Tensors": Tensors, "NumPy": Arrays,
}  # fmt: skip


def special_functions(name: str, library: Library) -> Any:
    """What programs call `special`."""
    if name == "NumPy":
        return special
    if name == "autograd":
        import autograd.scipy.special as with_gradients

        return with_gradients
    return SimpleNamespace(gammaln=library.xp.gammaln)


def bound(function: FunctionType, np: Any, special: Any) -> FunctionType:
    """A program whose names `np` and `special` are those of a library."""
    return FunctionType(function.__code__, {**globals(), "np": np, "special": special}, function.__name__)


def prepared(program: Program, name: str) -> tuple[Call, Callable[[], list[np.ndarray]]]:
    """The call that is timed, and what it gives as arrays: the value, then the gradients."""
    library = LIBRARIES[name]()
    library.configure(None, ())  # type: ignore[arg-type]
    loss = bound(program.variants.get(name, program.loss), library.xp, special_functions(name, library))
    evaluate: Function = library.value_and_grad(loss, program.argnums)
    arguments = [library.asarray(one) for one in program.inputs()]
    for position in program.argnums if isinstance(library, Torch) else ():
        arguments[position].requires_grad_()

    def results() -> list[np.ndarray]:
        value, gradients = evaluate(*arguments)
        return [np.asarray(library.to_numpy(one)) for one in (value, *gradients)]

    return lambda: evaluate(*arguments), results


# --- time ---------------------------------------------------------------------------------------------------


def medians(calls: dict[str, Call], rounds: int, seconds: float) -> dict[str, float]:
    """Microseconds of processor time a call: the medians over rounds in which each has a turn."""
    counts = {name: max(1, int(seconds / _once(call))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(_turn(call, counts[name]) / counts[name] * 1e6)
    return {name: statistics.median(found) for name, found in samples.items()}


def _once(call: Call) -> float:
    for _ in range(5):
        call()
    return _turn(call, 5) / 5


def _turn(call: Call, count: int) -> float:
    began = time.thread_time()
    for _ in range(count):
        call()
    return time.thread_time() - began


def require_agreement(program: Program, results: dict[str, list[np.ndarray]]) -> None:
    (reference, expected), *others = results.items()
    for name, found in others:
        for one, other in zip(found, expected, strict=True):
            if not difference(one, other) <= TOLERANCE["float64"]:
                raise ValueError(f"{program.name}: {name} and {reference} differ: {one}, {other}")


def main() -> int:
    what = (__doc__ or "").partition(":")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eager", description=what)
    parser.add_argument("--quick", action="store_true", help="few short rounds")
    parser.add_argument("--only", default="", metavar="NAME,...", help="programs whose names begin so")
    chosen = parser.parse_args()
    rounds, seconds = (5, 0.01) if chosen.quick else (25, 0.02)
    names = [name for name, one in LIBRARIES.items() if one.installed()]
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
    table = Table(title="Value and gradient, not compiled: microseconds of processor time")
    for title in ("", *names):
        table.add_column(title, justify="left" if not title else "right")
    for program in PROGRAMS:
        if not program.name.startswith(tuple(chosen.only.split(","))):
            continue
        pairs = {name: prepared(program, name) for name in names}
        require_agreement(program, {name: results() for name, (_, results) in pairs.items()})
        found = medians({name: call for name, (call, _) in pairs.items()}, rounds, seconds)
        table.add_row(program.name, *(f"{found[name]:,.0f}" for name in names))
        print(program.name, found, file=sys.stderr, flush=True)
    new_console().print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
