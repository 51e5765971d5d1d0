"""A step of training: a network of two hidden layers, cross-entropy, and gradient descent with momentum.

D. E. Rumelhart, G. E. Hinton, R. J. Williams, Learning internal representations by error propagation, 1986,
equation 16. The step takes weights and velocities and returns new ones.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

RATE, MOMENTUM = 0.1, 0.9
PARAMETERS = 6
"""Weights and biases of three layers."""


def network_loss(xp, weight_1, bias_1, weight_2, bias_2, weight_3, bias_3, x, labels):
    hidden = xp.relu(x @ weight_1 + bias_1)
    hidden = xp.relu(hidden @ weight_2 + bias_2)
    return xp.cross_entropy(hidden @ weight_3 + bias_3, labels)


def training_step(library):
    """A function of parameters, velocities, images and labels: the loss, new parameters and velocities."""
    loss_of = partial(network_loss, library.xp)
    value_and_grad = library.value_and_grad(loss_of, argnums=tuple(range(PARAMETERS)))

    def step(*arguments):
        parameters, velocities = arguments[:PARAMETERS], arguments[PARAMETERS : 2 * PARAMETERS]
        loss, gradients = value_and_grad(*parameters, *arguments[2 * PARAMETERS :])
        velocities = [MOMENTUM * one - RATE * slope for one, slope in zip(velocities, gradients)]
        return loss, [one + velocity for one, velocity in zip(parameters, velocities)], velocities

    return library.compile(step)


def training_workload(batch: int, width: int, hidden: int, classes: int) -> Workload:
    layers = [(width, hidden), (hidden, hidden), (hidden, classes)]

    def make(rng: np.random.Generator, batch: int = batch, layers: list[tuple[int, int]] = layers) -> Inputs:
        parameters = []
        for inward, outward in layers:
            parameters.append(rng.standard_normal((inward, outward)) * np.sqrt(2.0 / inward))
            parameters.append(np.zeros(outward))
        velocities = [0.01 * rng.standard_normal(one.shape) for one in parameters]
        floats = (*parameters, *velocities, rng.standard_normal((batch, layers[0][0])))
        return *(one.astype("float32") for one in floats), rng.integers(0, layers[-1][1], batch)

    # Forward and the gradient of each weight, and behind the first layer those of the layers' inputs.
    flops = 2.0 * batch * (2 * width * hidden + 3 * hidden * hidden + 3 * hidden * classes)
    return Workload(
        f"training-step-{batch}x{width}x{hidden}x{classes}",
        make,
        program=training_step,
        flops=flops,
        blas_bound=width > 100,
        make_small=partial(make, batch=5, layers=[(4, 6), (6, 6), (6, 3)]),
    )


WORKLOADS = (training_workload(64, 64, 64, 10), training_workload(256, 784, 256, 10))
