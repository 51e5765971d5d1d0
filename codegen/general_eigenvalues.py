"""Eigenvalues of matrices that need not be symmetric, and their vectors, by LAPACK: complex ones, as the real
and the imaginary parts apart. Planes are as in `decompositions.py`.
"""

from __future__ import annotations

import numpy as np

from ..tracer.lapack import ROUTINES
from .decompositions import clear_rows, copy_by_column, transpose
from .matrices import is_finite

general_eigenvectors = ROUTINES["general_eigenvectors"]
general_eigenvalues = ROUTINES["general_eigenvalues"]


def eigen_general(matrix: np.ndarray, out: np.ndarray) -> bool:
    """The real parts of eigenvectors in the columns of `out[0]`, of eigenvalues in the first row of `out[1]`,
    the imaginary parts in `out[3]` and `out[4]`. False where LAPACK's iteration does not converge.

    Args:
        matrix: shape (n, n).
        out: shape (6, n, n); the other planes are scratch.

    >>> eigen_general(a[i], parts[i])
    """
    size = matrix.shape[0]
    copy_by_column(matrix, out[2, :, :])
    clear_rows(out[1, :, :], 0)
    clear_rows(out[4, :, :], 0)
    clear_rows(out[5, :, :], 0)
    is_found = is_finite(matrix)
    if is_found and size > 0:
        general_eigenvectors(size, out[2, :, :], out[1, 0, :], out[4, 0, :], out[0, :, :])
        is_found = out[1, 0, 0] == out[1, 0, 0]
        transpose(out[0, :, :])
        for row in range(size):
            for column in range(size):  # of a conjugate pair: two columns are the parts of a vector
                if out[4, 0, column] > 0.0:
                    imaginary = 1.0 * out[0, row, column + 1]
                    out[3, row, column] = imaginary
                    out[3, row, column + 1] = -imaginary
                    out[0, row, column + 1] = out[0, row, column]
                elif out[4, 0, column] == 0.0:
                    out[3, row, column] = 0.0
    else:
        clear_rows(out[0, :, :], 0)
        clear_rows(out[3, :, :], 0)
    return is_found


def eigenvalues_general(matrix: np.ndarray, out: np.ndarray) -> bool:
    """The parts of eigenvalues in the last two rows of `out`. False where there are none found.

    Args:
        matrix: shape (n, n).
        out: shape (n + 2, n), the first rows to compute in.

    >>> eigenvalues_general(a[i], values[i])
    """
    size = matrix.shape[0]
    copy_by_column(matrix, out[:size])
    is_found = is_finite(matrix)
    if is_found and size > 0:
        general_eigenvalues(size, out[:size], out[size, :], out[size + 1, :])
        is_found = out[size, 0] == out[size, 0]
    return is_found


FUNCTIONS = (eigen_general, eigenvalues_general)
"""Those that generated code calls."""
