"""ADBench's LSTM: the mean log-probability of a sequence under a network with gates that act on each element.

F. Srajer, Z. Kukelova, A. Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some
problems in computer vision and machine learning, Optimization Methods and Software 33 (2018); the network
is the one that its repository added in 2019. It has no matrix products: each gate weighs each element alone.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

WIDTH = 14
"""Of the vector that stands for a character."""
LENGTH = 1_024


def negative_log_likelihood(xp, main, extra, state, sequence):
    """Of each vector of a sequence after those before it, by a Python loop.

    Args:
        main: 2l x 4 width: for each of l layers the weights, then the biases, of its four gates.
        extra: 3 x width: weight of the input, weight and bias of the output.
        state: 2l x width: for each layer hidden values, then the cell, before the first step.
        sequence: length x width.
    """
    rows, total = [state[i] for i in range(len(state))], 0.0
    for t in range(len(sequence) - 1):
        rows, prediction = predict(xp, main, extra, rows, sequence[t])
        total = total + log_probability(xp, prediction, sequence[t + 1])
    return -total / ((len(sequence) - 1) * WIDTH)


def with_scan(xp, main, extra, state, sequence):
    """The same with JAX's loop. Unrolled, JAX would compile a thousand steps."""
    from jax import lax

    def body(rows, pair):
        rows, prediction = predict(xp, main, extra, rows, pair[0])
        return rows, log_probability(xp, prediction, pair[1])

    _, terms = lax.scan(body, [*state], (sequence[:-1], sequence[1:]))
    return -xp.sum(terms) / sequence[1:].size


def with_scan_of_pytensor(xp, main, extra, state, sequence):
    from pytensor import scan

    def body(x, actual, *rows):
        rows, prediction = predict(xp, main, extra, rows, x)
        return *rows, log_probability(xp, prediction, actual)

    first = [state[i] for i in range(len(state))]
    *_, terms = scan(body, [sequence[:-1], sequence[1:]], [*first, None], return_updates=False)
    return -xp.sum(terms) / ((len(sequence) - 1) * WIDTH)


def predict(xp, main, extra, rows, x):
    """One step through all layers: the new state and the prediction of the next vector."""
    rows, x = [*rows], x * extra[0]
    for i in range(0, len(rows), 2):
        rows[i], rows[i + 1] = layer(xp, main[i], main[i + 1], rows[i], rows[i + 1], x)
        x = rows[i]
    return rows, x * extra[1] + extra[2]


def layer(xp, weight, bias, hidden, cell, x):
    gates = xp.concatenate([x, hidden, x, hidden]) * weight + bias
    width = len(hidden)
    forget = xp.sigmoid(gates[:width])
    ingate = xp.sigmoid(gates[width : 2 * width])
    outgate = xp.sigmoid(gates[2 * width : 3 * width])
    change = xp.tanh(gates[3 * width :])
    cell = cell * forget + ingate * change
    return outgate * xp.tanh(cell), cell


def log_probability(xp, prediction, actual):
    return xp.sum(actual * (prediction - xp.log(2.0 + xp.sum(xp.exp(prediction)))))


VARIANTS = {
    "jax": with_scan,
    "pytensor": with_scan_of_pytensor,
    # It copies its body for each step, and takes three seconds to compile one.
    **dict.fromkeys(("torch-compile", "torch-compile-func"), None),
}


def lstm_workload(layers: int, length: int = LENGTH) -> Workload:
    def make(rng: np.random.Generator, length: int = length) -> Inputs:
        """Of a random text, each character as its bits."""
        main = rng.uniform(-1.0, 1.0, (2 * layers, 4 * WIDTH))
        extra = rng.uniform(-1.0, 1.0, (3, WIDTH))
        state = rng.uniform(-1.0, 1.0, (2 * layers, WIDTH))
        characters = rng.integers(32, 127, length)
        sequence = (characters[:, None] >> np.arange(WIDTH)) & 1
        return main, extra, state, sequence.astype("float64")

    return Workload(
        f"lstm-l{layers}-c{length}",
        make,
        negative_log_likelihood,
        (0, 1),
        variants=VARIANTS,
        small_calls=True,
        make_small=partial(make, length=4),
    )


WORKLOADS = (lstm_workload(2), lstm_workload(4))
