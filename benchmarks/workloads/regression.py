"""Linear least squares."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

ROWS, COLUMNS = 10_000, 100


def half_square_of_residual(xp, a, x, b):
    return 0.5 * xp.sum((a @ x - b) ** 2)


def _make(rng: np.random.Generator, rows: int = ROWS, columns: int = COLUMNS) -> Inputs:
    a, x = rng.standard_normal((rows, columns)), rng.standard_normal(columns)
    return a, np.zeros(columns), a @ x + 0.1 * rng.standard_normal(rows)


WORKLOADS = (
    Workload(
        f"least-squares-{ROWS}x{COLUMNS}",
        _make,
        half_square_of_residual,
        (1,),
        flops=4.0 * ROWS * COLUMNS,
        make_small=partial(_make, rows=20, columns=3),
    ),
)
