"""A Kalman filter: the log-likelihood of a track by its prediction errors.

F. C. Schweppe, Evaluation of likelihood functions for Gaussian signals, IEEE Transactions on Information
Theory 11 (1965). The state is position and velocity in the plane; the position is measured.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..workload import Inputs, Workload

STEPS = 200
INTERVAL = 0.1
INITIAL_VARIANCE = 1.0


def negative_log_likelihood(xp, log_variances, initial, measurements, transition, observation, process_shape):
    """Of T measurements (T x 2), by a Python loop over them.

    Args:
        log_variances: logarithms of the variances of acceleration and of measurement.
        initial: mean of the state before the first step.
        transition, observation: the matrices F, 4 x 4, and H, 2 x 4.
        process_shape: the covariance that unit variance of acceleration gives a step, 4 x 4.
    """
    step = _step(xp, log_variances, transition, observation, process_shape)
    mean, covariance, total = initial, INITIAL_VARIANCE * xp.eye(4, dtype=xp.float64), 0.0
    for t in range(len(measurements)):
        mean, covariance, term = step(mean, covariance, measurements[t])
        total = total + term
    return 0.5 * total + len(measurements) * math.log(2.0 * math.pi)


def with_scan(xp, log_variances, initial, measurements, *model):
    """The same with JAX's loop. Unrolled, JAX would compile two hundred steps."""
    from jax import lax

    step = _step(xp, log_variances, *model)

    def body(state, measurement):
        *state, term = step(*state, measurement)
        return tuple(state), term

    _, terms = lax.scan(body, (initial, INITIAL_VARIANCE * xp.eye(4)), measurements)
    return 0.5 * xp.sum(terms) + len(measurements) * math.log(2.0 * math.pi)


def with_scan_of_pytensor(xp, log_variances, initial, measurements, *model):
    from pytensor import scan

    step = _step(xp, log_variances, *model)

    def body(measurement, *state):
        return step(*state, measurement)

    first = [initial, INITIAL_VARIANCE * xp.eye(4), None]
    *_, terms = scan(body, [measurements], first, return_updates=False)
    return 0.5 * xp.sum(terms) + len(measurements) * math.log(2.0 * math.pi)


def _step(xp, log_variances, transition, observation, process_shape):
    """Prediction and correction: the new mean and covariance, and the measurement's term."""
    variances = xp.exp(log_variances)
    process_noise = variances[0] * process_shape
    identity = xp.eye(2, dtype=xp.float64)
    measurement_noise = variances[1] * identity

    def step(mean, covariance, measurement):
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + process_noise
        error = measurement - observation @ mean
        spread = observation @ covariance @ observation.T + measurement_noise
        determinant = spread[0, 0] * spread[1, 1] - spread[0, 1] * spread[1, 0]
        inverse = ((spread[0, 0] + spread[1, 1]) * identity - spread) / determinant
        gain = covariance @ observation.T @ inverse
        term = xp.log(determinant) + error @ inverse @ error
        return mean + gain @ error, covariance - gain @ observation @ covariance, term

    return step


def _make(rng: np.random.Generator, steps: int = STEPS) -> Inputs:
    identity, zero = np.eye(2), np.zeros((2, 2))
    transition = np.block([[identity, INTERVAL * identity], [zero, identity]])
    observation = np.hstack([identity, zero])
    to_state = np.vstack([0.5 * INTERVAL**2 * identity, INTERVAL * identity])  # of an acceleration
    state, track = np.array([0.0, 0.0, 1.0, -0.5]), []
    for _ in range(steps):
        state = transition @ state + to_state @ rng.normal(0.0, 0.7, 2)
        track.append(observation @ state + rng.normal(0.0, 0.3, 2))
    initial = np.array([0.1, -0.1, 0.8, 0.0])
    return np.log([0.5, 0.1]), initial, np.array(track), transition, observation, to_state @ to_state.T


WORKLOADS = (
    Workload(
        f"kalman-filter-{STEPS}",
        _make,
        negative_log_likelihood,
        (0, 1),
        variants={
            "jax": with_scan,
            "pytensor": with_scan_of_pytensor,
            # It copies its body for each step, and takes many seconds to compile one.
            **dict.fromkeys(("torch-compile", "torch-compile-func"), None),
        },
        small_calls=True,
        make_small=partial(_make, steps=3),
    ),
)
