"""The gradient of a matrix by Cholesky's factor, as generated code calls it: of real and of complex matrices.

The steps of the factorisation backwards, in blocks of columns: a sixth of the arithmetic of the formula with
a product and two triangles. I. Murray, Differentiation of the Cholesky decomposition (2016).
"""

from __future__ import annotations

import numpy as np

from .blas import gemm, gemm_of_pairs
from .triangles import solve_triangle, solve_triangle_of_pairs

BLOCK = 16
"""Columns that loops go back over before products bring the rest up to date."""


def pull_back_cholesky(factor: np.ndarray, g: np.ndarray, out: np.ndarray) -> None:
    """Into `out`, symmetric, the gradient of the matrix that Cholesky's factor is of.

    Args:
        factor, g: shape (n, n): the factor, and its cotangent, of which lower triangles are read.

    >>> pull_back_cholesky(factor, d_factor, d_a)
    """
    size = factor.shape[0]
    for i in range(size):
        for j in range(i + 1):
            out[i, j] = g[i, j]
    for before in range(0, size, BLOCK):
        stop = size - before
        start = max(stop - BLOCK, 0)
        if before > 0:
            solve_triangle(True, True, False, factor[start:stop, start:stop], out[stop:, start:stop])
            if start > 0:
                gemm(-1.0, out[stop:, start:stop], factor[start:stop, :start], 1.0, out[stop:, :start])
                gemm(-1.0, out[stop:, start:stop].T, factor[stop:, :start], 1.0, out[start:stop, :start])
            gemm(
                -1.0, out[stop:, start:stop].T, factor[stop:, start:stop], 1.0, out[start:stop, start:stop]
            )  # fmt: skip
        for back in range(stop - start):
            k = stop - 1 - back
            pivot = factor[k, k]
            total = 1.0 * out[k, k]
            for i in range(k + 1, stop):
                ratio = out[i, k] / pivot
                out[i, k] = ratio
                total -= ratio * factor[i, k]
                for j in range(start, k):
                    out[i, j] -= ratio * factor[k, j]
                    out[k, j] -= ratio * factor[i, j]
            total = total / pivot
            out[k, k] = total
            for j in range(start, k):
                out[k, j] -= total * factor[k, j]
        for i in range(start, stop):
            for j in range(start, i):
                out[j, i] = out[i, j]
        if start > 0:
            gemm(-1.0, out[start:stop, start:stop], factor[start:stop, :start], 1.0, out[start:stop, :start])
    for i in range(size):
        for j in range(i + 1):
            half = 0.5 * out[i, j]
            out[i, j] = half
            out[j, i] = half


def pull_back_hermitian(factor: np.ndarray, g: np.ndarray, out: np.ndarray) -> None:
    """`pull_back_cholesky` of complex matrices, into `out` as a Hermitian one.

    Args:
        factor, g, out: shape (n, n, 2), with the real and the imaginary part as the last dimension.

    >>> pull_back_hermitian(factor, d_factor, d_a)
    """
    size = factor.shape[0]
    for i in range(size):
        for j in range(i + 1):
            out[i, j, 0] = g[i, j, 0]
            out[i, j, 1] = g[i, j, 1]
    for before in range(0, size, BLOCK):
        stop = size - before
        start = max(stop - BLOCK, 0)
        if before > 0:
            solve_triangle_of_pairs(
                True, False, True, False, factor[start:stop, start:stop], out[stop:, start:stop]
            )
            if start > 0:
                gemm_of_pairs(
                    -1.0, False, False, out[stop:, start:stop], factor[start:stop, :start], 1.0,
                    out[stop:, :start],
                )  # fmt: skip
                gemm_of_pairs(
                    -1.0, True, False, out[stop:, start:stop], factor[stop:, :start], 1.0,
                    out[start:stop, :start],
                )  # fmt: skip
            gemm_of_pairs(
                -1.0, True, False, out[stop:, start:stop], factor[stop:, start:stop], 1.0,
                out[start:stop, start:stop],
            )  # fmt: skip
        for back in range(stop - start):
            k = stop - 1 - back
            pivot = factor[k, k, 0]
            total = 1.0 * out[k, k, 0]
            for i in range(k + 1, stop):
                re = out[i, k, 0] / pivot
                im = out[i, k, 1] / pivot
                out[i, k, 0] = re
                out[i, k, 1] = im
                total -= re * factor[i, k, 0] + im * factor[i, k, 1]
                for j in range(start, k):
                    out[i, j, 0] -= re * factor[k, j, 0] - im * factor[k, j, 1]
                    out[i, j, 1] -= re * factor[k, j, 1] + im * factor[k, j, 0]
                    out[k, j, 0] -= re * factor[i, j, 0] + im * factor[i, j, 1]
                    out[k, j, 1] -= re * factor[i, j, 1] - im * factor[i, j, 0]
            total = total / pivot
            out[k, k, 0] = total
            out[k, k, 1] = 0.0
            for j in range(start, k):
                out[k, j, 0] -= total * factor[k, j, 0]
                out[k, j, 1] -= total * factor[k, j, 1]
        for i in range(start, stop):
            for j in range(start, i):
                out[j, i, 0] = out[i, j, 0]
                out[j, i, 1] = -out[i, j, 1]
        if start > 0:
            gemm_of_pairs(
                -1.0, False, False, out[start:stop, start:stop], factor[start:stop, :start], 1.0,
                out[start:stop, :start],
            )  # fmt: skip
    for i in range(size):
        for j in range(i + 1):
            re = 0.5 * out[i, j, 0]
            im = 0.5 * out[i, j, 1]
            out[i, j, 0] = re
            out[i, j, 1] = im
            out[j, i, 0] = re
            out[j, i, 1] = -im


FUNCTIONS = (pull_back_cholesky, pull_back_hermitian)
"""Those that generated code calls."""
