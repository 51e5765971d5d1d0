"""Programs that are loops: an initial value problem, a recurrent network, factorisations, a relaxation.

The common text is a Python loop, with writes into arrays where a NumPy program has them. JAX has no such
writes, and would compile every step of a long loop: it gets a scan, or the same without the writes.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

import numpy as np

from ..workload import Inputs, Workload

# --- an initial value problem -----------------------------------------------------------------------------

INTERVAL = 0.01


def _slope(xp, position, velocity, stiffness):
    """Of a ring of masses between springs that harden."""
    stretch = position - xp.roll(position, 1, 0)
    force = stiffness * (stretch + 0.1 * stretch**3)
    return velocity, xp.roll(force, -1, 0) - force


def _runge_kutta(xp, position, velocity, stiffness):
    """One step of the classical method of fourth order (E. Hairer et al., Solving ODEs I, II.1)."""
    p1, v1 = _slope(xp, position, velocity, stiffness)
    p2, v2 = _slope(xp, position + 0.5 * INTERVAL * p1, velocity + 0.5 * INTERVAL * v1, stiffness)
    p3, v3 = _slope(xp, position + 0.5 * INTERVAL * p2, velocity + 0.5 * INTERVAL * v2, stiffness)
    p4, v4 = _slope(xp, position + INTERVAL * p3, velocity + INTERVAL * v3, stiffness)
    position = position + INTERVAL / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4)
    velocity = velocity + INTERVAL / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
    return position, velocity


def final_energy(steps, xp, position, velocity, stiffness):
    for _ in range(steps):
        position, velocity = _runge_kutta(xp, position, velocity, stiffness)
    return xp.sum(position**2) + xp.sum(velocity**2)


def final_energy_with_scan(steps, xp, position, velocity, stiffness):
    from jax import lax

    def body(state, _):
        return _runge_kutta(xp, *state, stiffness), None

    (position, velocity), _ = lax.scan(body, (position, velocity), None, length=steps)
    return xp.sum(position**2) + xp.sum(velocity**2)


def _springs(rng: np.random.Generator, masses: int = 50) -> Inputs:
    return rng.standard_normal(masses), rng.standard_normal(masses), rng.uniform(0.5, 1.5, masses)


# --- a recurrent network ----------------------------------------------------------------------------------


def all_states(xp, inputs, state, into, onward, bias):
    """inputs: steps x batch x features; state: batch x hidden."""
    total = 0.0
    for step in range(inputs.shape[0]):
        state = xp.tanh(inputs[step] @ into + state @ onward + bias)
        total = total + xp.mean(state**2)
    return total


def all_states_with_scan(xp, inputs, state, into, onward, bias):
    from jax import lax

    def body(state, row):
        state = xp.tanh(row @ into + state @ onward + bias)
        return state, xp.mean(state**2)

    _, terms = lax.scan(body, state, inputs)
    return xp.sum(terms)


def _network(rng: np.random.Generator, steps: int = 512, batch: int = 16, hidden: int = 64) -> Inputs:
    features = hidden // 2
    return (
        rng.standard_normal((steps, batch, features)).astype("float32"),
        np.zeros((batch, hidden), "float32"),
        (rng.standard_normal((features, hidden)) / features**0.5).astype("float32"),
        (rng.standard_normal((hidden, hidden)) / hidden**0.5).astype("float32"),
        np.zeros(hidden, "float32"),
    )


# --- factorisations ---------------------------------------------------------------------------------------


def log_determinant_by_cholesky(xp, matrix):
    """Column by column, each taken off the matrix that is left."""
    left = 0.5 * (matrix + matrix.T)  # of which the upper half has a gradient as well
    for k in range(matrix.shape[0]):
        left[k, k] = xp.sqrt(left[k, k])
        left[k + 1 :, k] /= left[k, k]
        left[k + 1 :, k + 1 :] -= left[k + 1 :, k][:, None] * left[k + 1 :, k][None, :]
    return 2.0 * sum(xp.log(left[k, k]) for k in range(matrix.shape[0]))


def log_determinant_by_elimination(xp, matrix):
    """LU without pivots."""
    left = 0.5 * (matrix + matrix.T)
    for k in range(matrix.shape[0]):
        left[k + 1 :, k] /= left[k, k]
        left[k + 1 :, k + 1 :] -= left[k + 1 :, k][:, None] * left[k, k + 1 :][None, :]
    return sum(xp.log(left[k, k]) for k in range(matrix.shape[0]))


def log_determinant_without_writes(xp, matrix):
    """Both of them, where arrays cannot be written."""
    total, matrix = 0.0, 0.5 * (matrix + matrix.T)
    while matrix.shape[0] > 1:
        total = total + xp.log(matrix[0, 0])
        matrix = matrix[1:, 1:] - matrix[1:, 0][:, None] * (matrix[0, 1:] / matrix[0, 0])[None, :]
    return total + xp.log(matrix[0, 0])


def _positive(rng: np.random.Generator, size: int = 16) -> Inputs:
    root = rng.standard_normal((size, size))
    return (root @ root.T + size * np.eye(size),)


# --- relaxation -------------------------------------------------------------------------------------------


def relaxed(steps, xp, grid):
    """Laplace's equation by Jacobi: the inside becomes the mean of its neighbours, the rim stays."""
    now, then = grid * 1.0, grid * 1.0
    for _ in range(steps // 2):
        then[1:-1, 1:-1] = 0.25 * (now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1])
        now[1:-1, 1:-1] = 0.25 * (then[1:-1, :-2] + then[1:-1, 2:] + then[:-2, 1:-1] + then[2:, 1:-1])
    return xp.sum(now**2)


def relaxed_with_scan(steps, xp, grid):
    from jax import lax

    def body(now, _):
        inside = 0.25 * (now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1])
        return now.at[1:-1, 1:-1].set(inside), None

    now, _ = lax.scan(body, grid, None, length=steps)
    return xp.sum(now**2)


def _grid(rng: np.random.Generator, size: int = 256) -> Inputs:
    return (rng.standard_normal((size, size)),)


# --- a minimum inside of a function -----------------------------------------------------------------------

RATE, NEAR_ENOUGH, MOST_STEPS = 1.0, 1e-8, 200


def _training_loss(xp, weights, penalty, design, labels):
    """A logistic regression with a penalty."""
    margins = (2.0 * labels - 1.0) * (design @ weights)
    return xp.mean(xp.log(1.0 + xp.exp(-margins))) + 0.5 * penalty * xp.sum(weights**2)


def _slope_by_hand(xp, weights, penalty, design, labels):
    chances = 1.0 / (1.0 + xp.exp(-(design @ weights)))
    return design.T @ (chances - labels) / labels.shape[0] + penalty * weights


def _slope_by(library: str):
    """The slope as the gradient that a library gives, through which its outer gradient goes."""

    def slope(xp, weights, penalty, design, labels):
        grad = import_module(library).grad
        return grad(lambda weights: _training_loss(xp, weights, penalty, design, labels))(weights)

    return slope


def held_out_loss(slope_of, xp, penalty, start, design, labels, others, other_labels):
    """The loss at the minimum that gradient descent finds, as a function of the penalty."""
    weights = start
    slope = slope_of(xp, weights, penalty, design, labels)
    while xp.sum(slope**2) > NEAR_ENOUGH:
        weights = weights - RATE * slope
        slope = slope_of(xp, weights, penalty, design, labels)
    return xp.mean((1.0 / (1.0 + xp.exp(-(others @ weights))) - other_labels) ** 2)


def held_out_loss_with_scan(slope_of, xp, penalty, start, design, labels, others, other_labels):
    """JAX has no gradient of a loop that ends when it is done; this one goes on, and changes nothing more."""
    from jax import lax

    def body(weights, _):
        slope = slope_of(xp, weights, penalty, design, labels)
        return xp.where(xp.sum(slope**2) > NEAR_ENOUGH, weights - RATE * slope, weights), None

    weights, _ = lax.scan(body, start, None, length=MOST_STEPS)
    return xp.mean((1.0 / (1.0 + xp.exp(-(others @ weights))) - other_labels) ** 2)


def _regression(rng: np.random.Generator, rows: int = 200, features: int = 10) -> Inputs:
    def drawn(weights):
        design = rng.standard_normal((rows, features))
        return design, (rng.uniform(size=rows) < 1.0 / (1.0 + np.exp(-design @ weights))).astype("float64")

    weights = rng.standard_normal(features)
    return (np.array(0.1), np.zeros(features), *drawn(weights), *drawn(weights))


# It copies its body for each step, and takes many seconds to compile one.
NOT_COMPILED = dict.fromkeys(("torch-compile", "torch-compile-func"))
WITHOUT_WRITES = dict.fromkeys(
    ("jax", "torch", "torch-compile", "torch-compile-func", "pytensor", "autograd", "numpy-forward"),
    log_determinant_without_writes,
)
"""PyTorch refuses writes over what backward needs."""
NO_WRITES = dict.fromkeys(("pytensor", "autograd"))

WORKLOADS = (
    Workload(
        "ode-rk4-1000",
        _springs,
        partial(final_energy, 1_000),
        (0, 1, 2),
        variants={"jax": partial(final_energy_with_scan, 1_000), **NOT_COMPILED, "pytensor": None},
        small_calls=True,
        make_small=partial(_springs, masses=4),
    ),
    Workload(
        "rnn-512",
        _network,
        all_states,
        (1, 2, 3, 4),
        variants={"jax": all_states_with_scan, **NOT_COMPILED, "pytensor": None},
        make_small=partial(_network, steps=9, batch=2, hidden=4),
    ),
    Workload(
        "cholesky-16",
        _positive,
        log_determinant_by_cholesky,
        (0,),
        variants=WITHOUT_WRITES,
        small_calls=True,
        make_small=partial(_positive, size=4),
    ),
    Workload(
        "lu-16",
        _positive,
        log_determinant_by_elimination,
        (0,),
        variants=WITHOUT_WRITES,
        small_calls=True,
        make_small=partial(_positive, size=4),
    ),
    Workload(
        "descent-200x10",
        _regression,
        partial(held_out_loss, _slope_by("pullback")),
        (0, 1),
        variants={
            "jax": partial(held_out_loss_with_scan, _slope_by("jax")),
            "torch": partial(held_out_loss, _slope_by("torch.func")),
            "autograd": partial(held_out_loss, _slope_by("autograd")),
            "numpy-forward": partial(held_out_loss, _slope_by_hand),
            **NOT_COMPILED,
            "pytensor": None,
        },
        small_calls=True,
        make_small=partial(_regression, rows=12, features=2),
    ),
    Workload(
        "jacobi-256x256x200",
        _grid,
        partial(relaxed, 200),
        (0,),
        variants={"jax": partial(relaxed_with_scan, 200), **NOT_COMPILED, **NO_WRITES},
        make_small=partial(_grid, size=6),
    ),
)
