"""The log-likelihood of a Gaussian mixture, with a Wishart prior, by ADBench's formula.

F. Srajer, Z. Kukelova, A. Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some
problems in computer vision and machine learning, Optimization Methods and Software 33 (2018), section 3.2.
"""

from __future__ import annotations

import math

import numpy as np

from ..workload import Inputs, Workload

PRIOR_SCALE, PRIOR_FREEDOM = 1.0, 0.0  # of the Wishart prior: gamma and m
ALL_SIZES = [(d, k, n) for d in (2, 10, 64) for k in (5, 25, 200) for n in (1_000, 10_000)]
DEFAULT_SIZES = [
    *((2, 5, 1_000), (2, 200, 10_000)),
    *((10, 25, 1_000), (10, 25, 10_000)),
    *((64, 5, 1_000), (64, 25, 1_000)),
]
"""Small, large and between; the others take long with libraries that run operator by operator."""


def log_likelihood(xp, weights, means, factors, x, positions):
    """Of points `x`, n x d, under K components.

    Args:
        weights: K unnormalised logarithms (alpha).
        means: K x d.
        factors: K x (d + d (d - 1) / 2). A row makes a lower-triangular matrix Q, a factor of the inverse
            covariance: first the logarithms of its diagonal, then what is below the diagonal, by columns.
        positions: d x d; where in a row the elements below Q's diagonal stand, anything elsewhere.
    """
    n, d = x.shape
    log_diagonal = factors[:, :d]
    diagonal = xp.exp(log_diagonal)
    log_determinant = xp.sum(log_diagonal, axis=1)
    below_diagonal = xp.tril(factors[:, positions], -1)

    centred = x[:, None, :] - means
    whitened = diagonal * centred + xp.einsum("kij,nkj->nki", below_diagonal, centred)
    exponents = weights + log_determinant - 0.5 * xp.sum(whitened**2, axis=2)
    likelihood = xp.sum(xp.logsumexp(exponents, axis=1)) - n * xp.logsumexp(weights, axis=0)

    squares = xp.sum(diagonal**2) + xp.sum(factors[:, d:] ** 2)
    prior = 0.5 * PRIOR_SCALE**2 * squares - PRIOR_FREEDOM * xp.sum(log_determinant)
    return likelihood + prior - _constants(n, d, len(means))


def _constants(n: int, d: int, components: int) -> float:
    """What the normalisations of the Gaussians and of the prior add; it depends on sizes alone."""
    freedom = d + PRIOR_FREEDOM + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    log_gamma += sum(math.lgamma(0.5 * (freedom - i)) for i in range(d))
    prior = freedom * d * (math.log(PRIOR_SCALE) - 0.5 * math.log(2.0)) - log_gamma
    return 0.5 * n * d * math.log(2.0 * math.pi) + components * prior


def positions_below_diagonal(d: int) -> np.ndarray:
    positions = np.zeros((d, d), "int64")
    columns, rows = np.triu_indices(d, 1)  # row by row of the transpose: column by column
    positions[rows, columns] = d + np.arange(len(rows))
    return positions


def mixture_workload(d: int, components: int, n: int) -> Workload:
    def make(rng: np.random.Generator, n: int = n) -> Inputs:
        weights, means = rng.standard_normal(components), rng.random((components, d))
        factors = rng.standard_normal((components, d + d * (d - 1) // 2)) / math.sqrt(d)
        return weights, means, factors, rng.standard_normal((n, d)), positions_below_diagonal(d)

    # The product of Q and each point, and two as large in the gradient.
    return Workload(
        f"mixture-d{d}-k{components}-n{n}",
        make,
        log_likelihood,
        (0, 1, 2),
        flops=6.0 * n * components * d * d,
        make_small=lambda rng: make(rng, 20),
    )


WORKLOADS = tuple(mixture_workload(*sizes) for sizes in DEFAULT_SIZES)
ON_REQUEST = tuple(mixture_workload(*sizes) for sizes in ALL_SIZES if sizes not in DEFAULT_SIZES)
