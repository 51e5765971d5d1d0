"""Rosenbrock's function, minimised by SciPy: a small function that is called many times.

H. H. Rosenbrock, An automatic method for finding the greatest or least value of a function, The Computer
Journal 3 (1960), equation 11, and its sum over neighbours for more than two dimensions. L-BFGS-B begins
anew until it has asked for value and gradient a thousand times, which makes the work the same for all: how
many calls one minimisation takes depends on the last bits. SciPy's own share of the time is the same for all.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

CALLS = 1_000


def rosenbrock(xp, x):
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


class _Enough(Exception):
    """The function has been called so often as was asked."""


def minimisation(library):
    """A function of a starting point and a number of calls by SciPy: value and gradient there, after them."""
    from scipy.optimize import minimize

    value_and_grad = library.value_and_grad(partial(rosenbrock, library.xp))

    def run(start, calls):
        origin, left = library.to_numpy(start), int(calls)

        def objective(x):
            nonlocal left
            if not left:
                raise _Enough
            left -= 1
            value, gradient = value_and_grad(library.asarray(x))
            return float(value), library.to_numpy(gradient)

        try:
            while True:
                minimize(objective, origin, jac=True, method="L-BFGS-B")
        except _Enough:
            return value_and_grad(start)

    return run


def rosenbrock_workload(dimensions: int) -> Workload:
    def make(rng: np.random.Generator, calls: int = CALLS) -> Inputs:
        start = np.tile([-1.2, 1.0], dimensions // 2) + 0.1 * rng.standard_normal(dimensions)
        return start, np.array(calls)

    return Workload(
        f"rosenbrock-{dimensions}x{CALLS}",
        make,
        program=minimisation,
        small_calls=True,
        make_small=partial(make, calls=5),
    )


WORKLOADS = (rosenbrock_workload(2), rosenbrock_workload(1_000))
