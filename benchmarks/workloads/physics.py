"""The potential energy of many bodies, and heat that spreads over a plate."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

BODIES = 1_000
PLATE, STEPS = 256, 100

# --- bodies -------------------------------------------------------------------------------------------------

SOFTENING = 0.01
"""Added to squared distances, so that a body does not attract itself without bound (H. C. Plummer, 1911)."""


def potential_energy(xp, masses, positions):
    """By Newton, with a gravitational constant of one: n masses at n x 3 positions."""
    apart = positions[:, None, :] - positions
    distance = xp.sqrt(xp.sum(apart**2, axis=2) + SOFTENING)
    return -0.5 * xp.sum(masses[:, None] * masses / distance)


def _bodies(rng: np.random.Generator, n: int = BODIES) -> Inputs:
    return rng.uniform(0.5, 1.5, n), rng.standard_normal((n, 3))


# --- heat ---------------------------------------------------------------------------------------------------


def spread_heat(xp, temperature, rate):
    """One step: forward Euler in time, the five-point stencil in space, zero beyond the rim."""
    framed = xp.pad(temperature, ((1, 1), (1, 1)), "constant")
    neighbours = framed[:-2, 1:-1] + framed[2:, 1:-1] + framed[1:-1, :-2] + framed[1:-1, 2:]
    return temperature + rate * (neighbours - 4.0 * temperature)


def misfit(xp, temperature, conductivity, intervals, measured):
    """The squared difference from what is measured after a step for each interval, by a Python loop."""
    for t in range(len(intervals)):
        temperature = spread_heat(xp, temperature, conductivity * intervals[t])
    return xp.sum((temperature - measured) ** 2)


def misfit_with_scan(xp, temperature, conductivity, intervals, measured):
    """The same with JAX's loop. Unrolled, JAX would compile a hundred steps."""
    from jax import lax

    def body(temperature, interval):
        return spread_heat(xp, temperature, conductivity * interval), None

    temperature, _ = lax.scan(body, temperature, intervals)
    return xp.sum((temperature - measured) ** 2)


def misfit_with_scan_of_pytensor(xp, temperature, conductivity, intervals, measured):
    from pytensor import scan

    def body(interval, temperature):
        return spread_heat(xp, temperature, conductivity * interval)

    temperatures = scan(body, [intervals], [temperature], return_updates=False)
    return xp.sum((temperatures[-1] - measured) ** 2)


def _plate(rng: np.random.Generator, size: int = PLATE, steps: int = STEPS) -> Inputs:
    """Random patches of heat, and a measurement that differs."""
    patches = np.kron(rng.random((size // 8, size // 8)), np.ones((8, 8)))
    measured = 0.5 * patches + 0.1 * rng.standard_normal((size, size))
    return patches, np.array(0.2), np.ones(steps), measured


WORKLOADS = (
    Workload(
        f"n-body-{BODIES}",
        _bodies,
        potential_energy,
        (0, 1),
        flops=40.0 * BODIES**2,  # a square root, a division and their derivatives counted as ten each
        make_small=partial(_bodies, n=20),
    ),
    Workload(
        f"heat-{PLATE}x{PLATE}x{STEPS}",
        _plate,
        misfit,
        (0, 1),
        variants={
            "jax": misfit_with_scan,
            "pytensor": misfit_with_scan_of_pytensor,
            # It copies its body for each step, and compiles that for minutes.
            **dict.fromkeys(("torch-compile", "torch-compile-func"), None),
        },
        # Each step reads a plate and writes one, and so does its derivative, which also reads the step's.
        bytes=8.0 * PLATE**2 * STEPS * (2 + 3),
        make_small=partial(_plate, size=8, steps=3),
    ),
)
