"""Decompositions of a complex matrix as generated code calls them: by LAPACK, of pairs of real numbers.

Each fills planes as in `decompositions.py`. The last dimension has the real and the imaginary part, so an
array has the memory of complex numbers. Values that are real are written side by side by LAPACK.
"""

from __future__ import annotations

import numpy as np

from ..tracer.lapack import ROUTINES
from .complex_matrices import copy_pairs

complex_eigenvectors = ROUTINES["complex_eigenvectors"]
complex_eigenvectors_of_upper = ROUTINES["complex_eigenvectors_of_upper"]
complex_eigenvalues = ROUTINES["complex_eigenvalues"]
complex_eigenvalues_of_upper = ROUTINES["complex_eigenvalues_of_upper"]
complex_general_eigenvectors = ROUTINES["complex_general_eigenvectors"]
complex_general_eigenvalues = ROUTINES["complex_general_eigenvalues"]
complex_singular_vectors = ROUTINES["complex_singular_vectors"]
complex_singular_vectors_of_wide = ROUTINES["complex_singular_vectors_of_wide"]
complex_singular_vectors_in_place = ROUTINES["complex_singular_vectors_in_place"]
complex_singular_values = ROUTINES["complex_singular_values"]
complex_reflections = ROUTINES["complex_reflections"]
complex_orthonormal_rows = ROUTINES["complex_orthonormal_rows"]


def copy_pairs_by_column(matrix: np.ndarray, out: np.ndarray) -> None:
    """A matrix into the first rows of memory with as many columns, column after column."""
    rows = matrix.shape[0]
    columns = matrix.shape[1]
    i = 0
    j = 0
    for column in range(columns):
        for row in range(rows):
            out[i, j, 0] = matrix[row, column, 0]
            out[i, j, 1] = matrix[row, column, 1]
            j += 1
            if j == columns:
                j = 0
                i += 1


def copy_pairs_by_row(by_column: np.ndarray, out: np.ndarray) -> None:
    """A matrix that lies in memory of its shape column after column."""
    rows = out.shape[0]
    columns = out.shape[1]
    i = 0
    j = 0
    for column in range(columns):
        for row in range(rows):
            out[row, column, 0] = by_column[i, j, 0]
            out[row, column, 1] = by_column[i, j, 1]
            j += 1
            if j == columns:
                j = 0
                i += 1


def transpose_pairs(out: np.ndarray) -> None:
    """A square matrix in place."""
    for row in range(out.shape[0]):
        for column in range(row):
            for part in range(2):
                kept = out[row, column, part]
                out[row, column, part] = out[column, row, part]
                out[column, row, part] = kept


def conjugate_pairs(out: np.ndarray, rows: int) -> None:
    """The first rows of a matrix in place."""
    for row in range(rows):
        for column in range(out.shape[1]):
            out[row, column, 1] = -out[row, column, 1]


def are_finite_pairs(matrix: np.ndarray) -> bool:
    """Whether no part of a number is nan or inf."""
    others = 0  # as in `is_finite`
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            for part in range(2):
                others += 0 if matrix[row, column, part] - matrix[row, column, part] == 0.0 else 1
    return others == 0


def is_finite_triangle(matrix: np.ndarray, lower: bool) -> bool:
    """`are_finite_pairs` of one triangle."""
    nothing = 0.0
    for row in range(matrix.shape[0]):
        for column in range(row + 1):
            for part in range(2):
                nothing += 0.0 * (matrix[row, column, part] if lower else matrix[column, row, part])
    return nothing == 0.0


def set_zero(out: np.ndarray, start: int) -> None:
    """The rows of a matrix from one on."""
    for row in range(start, out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column, 0] = 0.0
            out[row, column, 1] = 0.0


def spread(out: np.ndarray) -> None:
    """Real numbers that lie side by side in a row as complex ones."""
    for below in range(out.shape[0]):
        place = out.shape[0] - 1 - below  # from the last one on: each is read before it is written over
        out[place, 0] = out[place // 2, place % 2]
        out[place, 1] = 0.0


def eigen_hermitian(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Eigenvectors in the columns of `out[0]`, eigenvalues in ascending order in the first row of `out[1]`.
    False where LAPACK's iteration does not converge.

    Args:
        matrix: shape (n, n, 2), of which the lower triangle is read.
        out: shape (2, n, n, 2).

    >>> eigen_hermitian(a[i], parts[i])
    """
    return decompose_hermitian(matrix, out, True)


def eigen_hermitian_of_upper(matrix: np.ndarray, out: np.ndarray) -> bool:
    """`eigen_hermitian`, of which the upper triangle is read.

    >>> eigen_hermitian_of_upper(a[i], parts[i])
    """
    return decompose_hermitian(matrix, out, False)


def decompose_hermitian(matrix: np.ndarray, out: np.ndarray, lower: bool) -> bool:
    """`eigen_hermitian`, of one triangle."""
    size = matrix.shape[0]
    is_found = is_finite_triangle(matrix, lower)
    if is_found and size > 0:
        copy_pairs_by_column(matrix, out[0, :, :, :])
        set_zero(out[1, :, :, :], 0)
        if lower:
            complex_eigenvectors(size, out[0, :, :, :], out[1, 0, :, :])
        else:
            complex_eigenvectors_of_upper(size, out[0, :, :, :], out[1, 0, :, :])
        is_found = out[1, 0, 0, 0] == out[1, 0, 0, 0]
        transpose_pairs(out[0, :, :, :])
        spread(out[1, 0, :, :])
    return is_found


def eigenvalues_hermitian(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Eigenvalues in ascending order in the last row of `out`. False where there are none found.

    Args:
        matrix: shape (n, n, 2), of which the lower triangle is read.
        out: shape (2 n + 1, n), real, the first rows to compute in.

    >>> eigenvalues_hermitian(a[i], values[i])
    """
    return find_real_eigenvalues(matrix, out, True)


def eigenvalues_hermitian_of_upper(matrix: np.ndarray, out: np.ndarray) -> bool:
    """`eigenvalues_hermitian`, of which the upper triangle is read.

    >>> eigenvalues_hermitian_of_upper(a[i], values[i])
    """
    return find_real_eigenvalues(matrix, out, False)


def find_real_eigenvalues(matrix: np.ndarray, out: np.ndarray, lower: bool) -> bool:
    """`eigenvalues_hermitian`, of one triangle."""
    size = matrix.shape[0]
    is_found = is_finite_triangle(matrix, lower)
    if is_found and size > 0:
        copy_into_reals(matrix, out)
        if lower:
            complex_eigenvalues(size, out, out[2 * size, :])
        else:
            complex_eigenvalues_of_upper(size, out, out[2 * size, :])
        is_found = out[2 * size, 0] == out[2 * size, 0]
    return is_found


def eigen_general_of_complex(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Eigenvectors in the columns of `out[0]`, eigenvalues in the first row of `out[1]`. False where LAPACK's
    iteration does not converge.

    Args:
        matrix: shape (n, n, 2).
        out: shape (3, n, n, 2); the last plane is scratch.

    >>> eigen_general_of_complex(a[i], parts[i])
    """
    size = matrix.shape[0]
    copy_pairs_by_column(matrix, out[2, :, :, :])
    set_zero(out[0, :, :, :], 0)
    set_zero(out[1, :, :, :], 0)
    is_found = are_finite_pairs(matrix)
    if is_found and size > 0:
        complex_general_eigenvectors(size, out[2, :, :, :], out[1, 0, :, :], out[0, :, :, :])
        is_found = out[1, 0, 0, 0] == out[1, 0, 0, 0]
        transpose_pairs(out[0, :, :, :])
    return is_found


def eigenvalues_general_of_complex(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Eigenvalues in the last row of `out`. False where there are none found.

    Args:
        matrix: shape (n, n, 2).
        out: shape (n + 1, n, 2), the first rows to compute in.

    >>> eigenvalues_general_of_complex(a[i], values[i])
    """
    size = matrix.shape[0]
    copy_pairs_by_column(matrix, out)
    is_found = are_finite_pairs(matrix)
    if is_found and size > 0:
        complex_general_eigenvalues(size, out, out[size, :, :])
        is_found = out[size, 0, 0] == out[size, 0, 0]
    return is_found


def copy_into_reals(matrix: np.ndarray, out: np.ndarray) -> None:
    """A matrix into the first rows of real memory with as many columns, column after column."""
    rows = matrix.shape[0]
    columns = matrix.shape[1]
    i = 0
    j = 0
    for column in range(columns):
        for row in range(rows):
            for part in range(2):
                out[i, j] = matrix[row, column, part]
                j += 1
                if j == columns:
                    j = 0
                    i += 1


def singular_of_complex(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Left singular vectors in the columns of `out[0]`, singular values in descending order in the first row
    of `out[1]`, right singular vectors in the columns of the first n rows of `out[2]`. False where LAPACK's
    iteration does not converge.

    Args:
        matrix: shape (m, n, 2), m >= n.
        out: shape (3, m, n, 2).

    >>> singular_of_complex(a[i], parts[i])
    """
    rows = matrix.shape[0]
    size = matrix.shape[1]
    is_found = are_finite_pairs(matrix)
    if is_found and size > 0:
        copy_pairs_by_column(matrix, out[0, :, :, :])
        if rows == size:
            complex_singular_vectors_in_place(rows, size, out[0, :, :, :], out[1, 0, :, :], out[2, :, :, :])
            transpose_pairs(out[0, :, :, :])
        else:  # the first row that V leaves free is room for the values, until U is out of theirs
            complex_singular_vectors(
                rows, size, out[0, :, :, :], out[2, size, :, :], out[1, :, :, :], out[2, :, :, :]
            )
            copy_pairs_by_row(out[1, :, :, :], out[0, :, :, :])
            for column in range(size):
                out[1, 0, column, 0] = out[2, size, column, 0]
                out[1, 0, column, 1] = out[2, size, column, 1]
        is_found = out[1, 0, 0, 0] == out[1, 0, 0, 0]
        spread(out[1, 0, :, :])
        conjugate_pairs(out[2, :, :, :], size)
        set_zero(out[1, :, :, :], 1)
        set_zero(out[2, :, :, :], size)
    return is_found


def singular_of_complex_adjoint(matrix: np.ndarray, out: np.ndarray) -> bool:
    """`singular_of_complex`, with the signs that LAPACK gives vectors of the adjoint.

    >>> singular_of_complex_adjoint(a[i], parts[i])
    """
    rows = matrix.shape[0]
    size = matrix.shape[1]
    copy_pairs(matrix, out[1, :, :, :])
    is_found = are_finite_pairs(matrix)
    if is_found and size > 0:  # by column the adjoint is the conjugate by row
        conjugate_pairs(out[1, :, :, :], rows)
        complex_singular_vectors_of_wide(
            size, rows, out[1, :, :, :], out[2, size, :, :], out[2, :, :, :], out[0, :, :, :]
        )
        conjugate_pairs(out[0, :, :, :], rows)
        transpose_pairs(out[2, :size, :, :])
        for column in range(size):
            for part in range(2):
                out[1, 0, column, part] = out[2, size, column, part]
        is_found = out[1, 0, 0, 0] == out[1, 0, 0, 0]
        spread(out[1, 0, :, :])
        set_zero(out[1, :, :, :], 1)
        set_zero(out[2, :, :, :], size)
    return is_found


def singular_numbers_of_complex(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Singular values in descending order in the last row of `out`. False where there are none found.

    Args:
        matrix: shape (m, n, 2), m >= n.
        out: shape (2 m + 1, n), real, the first rows to compute in.

    >>> singular_numbers_of_complex(a[i], values[i])
    """
    rows = matrix.shape[0]
    size = matrix.shape[1]
    is_found = are_finite_pairs(matrix)
    if is_found and size > 0:
        copy_into_reals(matrix, out)
        complex_singular_values(rows, size, out, out[2 * rows, :])
        is_found = out[2 * rows, 0] == out[2 * rows, 0]
    return is_found


def unitary_triangular(matrix: np.ndarray, out: np.ndarray) -> None:
    """Q in `out[0]`, R in the first n rows of `out[1]`.

    A matrix by row is the transpose of one by column, so what LAPACK finds is the L and the Q of that.

    Args:
        matrix: shape (m, n, 2), m >= n.
        out: shape (2, m, n, 2).

    >>> unitary_triangular(a[i], parts[i])
    """
    rows = matrix.shape[0]
    size = matrix.shape[1]
    copy_pairs(matrix, out[0, :, :, :])
    set_zero(out[1, :, :, :], 0)
    if size > 0:
        last = size - 1  # of the rows of R, which has one element: room for the factors of the reflections
        complex_reflections(size, rows, out[0, :, :, :], out[1, last, :, :])
        for row in range(last):
            for column in range(row, size):
                for part in range(2):
                    out[1, row, column, part] = out[0, row, column, part]
        re = out[0, last, last, 0]
        im = out[0, last, last, 1]
        complex_orthonormal_rows(size, rows, out[0, :, :, :], out[1, last, :, :])
        for column in range(size):
            out[1, last, column, 0] = re if column == last else 0.0
            out[1, last, column, 1] = im if column == last else 0.0


FUNCTIONS = (
    eigen_hermitian,
    eigen_hermitian_of_upper,
    eigenvalues_hermitian,
    eigenvalues_hermitian_of_upper,
    eigen_general_of_complex,
    eigenvalues_general_of_complex,
    singular_of_complex,
    singular_of_complex_adjoint,
    singular_numbers_of_complex,
    unitary_triangular,
)
"""Those that generated code calls."""
