"""SciPy's distributions of vectors on Tensors: `scipy.stats.multivariate_normal.logpdf(x, mean, cov)`.

Vectors lie along the last dimension, those of `dirichlet` along the first, as SciPy has them. Formulas: Kotz,
Balakrishnan, Johnson, Continuous Multivariate Distributions (2000).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tracer.errors import ShapeError, UnsupportedError
from ...functions import PUBLIC
from ...functions.common import fail
from ...functions.matrices import linalg
from ...functions.shapes import parts
from ...numpy_api.values import averaged, floats
from ...tensors.conversion import array_dtype, holds_tensor, tensor_of
from ...values.value_kinds import plain
from ..interpolation.points import demanded
from ..refusing import for_tensors
from .elements import LOG_2_PI, exp, floor, isinf, lgamma, log, log1p, where, xlogy
from .sampled import Distributed
from .univariate import Frozen

sum_, cat, atleast_1d, matmul = PUBLIC["sum"], PUBLIC["cat"], PUBLIC["atleast_1d"], PUBLIC["matmul"]


class Multivariate(Distributed):
    """One of SciPy's distributions of vectors, for Tensors as well; called, it is frozen."""

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real = f"scipy.stats.{name}", real

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return Frozen(self, arguments, options)


def _apart(x: Any, middle: Any, matrix: Any, method: str) -> tuple[Any, Any]:
    """(the distances from the middle, whose last dimension is the matrix'; the square matrix)."""
    values, middle = floats(x, middle)
    matrix = averaged(tensor_of(getattr(matrix, "covariance", matrix)))  # of SciPy's class Covariance
    if matrix.ndim:
        size = matrix.shape[-1]
    else:
        size = max(one.shape[-1] if one.ndim else 1 for one in (values, middle))
    if matrix.ndim < 2:
        matrix = tensor_of(np.eye(size)) * matrix
    if matrix.ndim != 2 or matrix.shape[0] != size:
        fail(ShapeError, f"{method}: a square matrix is expected, found the shape {tuple(matrix.shape)}.")
    apart = values - middle
    apart = apart[..., None] if size == 1 and (not apart.ndim or apart.shape[-1] != 1) else apart
    if apart.shape[-1] != size:
        fail(
            ShapeError,
            f"{method}: vectors of {size} elements, as the matrix says, are expected last; "
            f"found the shape {tuple(apart.shape)}.",
        )
    return apart, matrix


def _half_logarithm(factor: Any) -> Any:
    """Half the logarithm of the determinant of the matrix with a Cholesky factor."""
    return sum_(log(parts.diagonal(factor, 0, -2, -1)))


def _distances(x: Any, middle: Any, matrix: Any, method: str) -> tuple[Any, Any, int, tuple[int, ...]]:
    """Squares of Mahalanobis' distances, half the log-determinant, the vectors' size, the batch's shape."""
    apart, matrix = _apart(x, middle, matrix, method)
    size = matrix.shape[-1]
    factor = linalg.cholesky(matrix)
    solved = linalg.solve_triangular(factor, apart.reshape(-1, size).T, upper=False)
    return sum_(solved * solved, 0), _half_logarithm(factor), size, tuple(apart.shape[:-1])


class MultivariateNormal(Multivariate):
    """`scipy.stats.multivariate_normal`; the covariance must be positive definite unless told otherwise."""

    @for_tensors
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density."""
        middle = 0.0 if mean is None else mean
        if allow_singular:
            return self._singular(x, middle, cov)
        squares, logarithm, size, shape = _distances(x, middle, cov, "scipy.stats.multivariate_normal")
        return (-0.5 * squares - logarithm - 0.5 * size * LOG_2_PI).reshape(shape)

    @for_tensors
    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return exp(self.logpdf(x, mean, cov, allow_singular))

    @for_tensors
    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """The differential entropy."""
        apart, matrix = _apart(0.0, 0.0 if mean is None else mean, cov, f"{self._name}.entropy")
        return 0.5 * apart.shape[-1] * (1.0 + LOG_2_PI) + _half_logarithm(linalg.cholesky(matrix))

    def _singular(self, x: Any, middle: Any, cov: Any) -> Any:
        """The logarithm of the density in the space that a singular covariance spans, outside of it -inf."""
        cov = plain(cov)
        if holds_tensor(cov):
            fail(
                UnsupportedError,
                f"{self._name}: with allow_singular the covariance must be a plain array: the density has no "
                "gradient with respect to it, and is not compiled. Leave the option out, or the compiler.",
            )
        apart, matrix = _apart(x, middle, cov, f"{self._name}.logpdf")
        values, vectors = np.linalg.eigh(plain(matrix))
        spread = 1e6 * np.finfo(float).eps * np.max(np.abs(values))  # SciPy's bounds
        if np.min(values) < -spread:
            raise ValueError(f"{self._name}.logpdf: the covariance must be positive semidefinite.")
        spans = values > spread
        white = matmul(apart, tensor_of(vectors[:, spans] / np.sqrt(values[spans])))
        beside = matmul(apart, tensor_of(vectors[:, ~spans]))
        constant = np.sum(LOG_2_PI + np.log(values[spans]))
        logarithm = -0.5 * (sum_(white * white, -1) + constant)
        return where(sum_(beside * beside, -1) < (1e3 * spread) ** 2, logarithm, -math.inf)


class MultivariateStudent(Multivariate):
    """`scipy.stats.multivariate_t`; the matrix must be positive definite."""

    @for_tensors
    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The logarithm of the density."""
        middle, df = 0.0 if loc is None else loc, averaged(df)
        squares, logarithm, size, batch = _distances(x, middle, shape, "scipy.stats.multivariate_t")
        is_normal = isinf(df)
        df = where(is_normal, 1.0, df)
        constant = lgamma(0.5 * (df + size)) - lgamma(0.5 * df) - 0.5 * size * log(df * math.pi)
        of_student = constant - 0.5 * (df + size) * log1p(squares / df)
        of_normal = -0.5 * squares - 0.5 * size * LOG_2_PI
        return (where(is_normal, of_normal, of_student) - logarithm).reshape(batch)

    @for_tensors
    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The density."""
        return exp(self.logpdf(x, loc, shape, df))


class Dirichlet(Multivariate):
    """`scipy.stats.dirichlet`; shares or parameters that there are not raise where the program runs."""

    @for_tensors
    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density; the last share may be left out."""
        shares, powers = floats(x, alpha)
        left_out = powers.shape[0] - shares.shape[0] if powers.ndim == 1 and shares.ndim else None
        if left_out not in (0, 1):
            fail(
                ShapeError,
                "scipy.stats.dirichlet: a vector alpha and as many shares along the first dimension, or one "
                f"less, are expected; found the shapes {tuple(powers.shape)} and {tuple(shares.shape)}.",
            )
        if left_out:
            shares = cat([shares, (1.0 - sum_(shares, 0))[None]], 0)
        name = "scipy.stats.dirichlet"
        powers = demanded(name, powers, powers > 0.0, "all parameters alpha must be greater than 0.")
        is_one = (sum_(shares, 0) - 1.0).abs() <= 1e-9  # SciPy's bound
        is_share = (shares >= 0.0).all() & (shares <= 1.0).all()
        text = "shares must lie between 0 and 1, and sum up to 1 along the first dimension."
        shares = demanded(name, shares, is_one.all() & is_share, text)
        constant = lgamma(sum_(powers)) - sum_(lgamma(powers))
        powers = powers.reshape(-1, *(1,) * (shares.ndim - 1))
        return constant + sum_(xlogy(powers - 1.0, shares), 0)

    @for_tensors
    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return exp(self.logpdf(x, alpha))


class Multinomial(Multivariate):
    """`scipy.stats.multinomial`; where probabilities do not sum up to 1 the last is what the others leave."""

    @for_tensors
    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """The logarithm of the probability."""
        rounding = 10.0 * np.finfo(array_dtype(averaged(p))).eps  # SciPy's bound
        counts, trials, p = floats(x, n, p)
        rest = 1.0 - sum_(p[..., :-1], -1, keepdim=True)
        is_whole = (rest - p[..., -1:]).abs() <= rounding
        p = cat([p[..., :-1], where(is_whole, p[..., -1:], rest)], -1)
        is_count = ((counts >= 0.0) & (floor(counts) == counts)).all(-1) & (sum_(counts, -1) == trials)
        is_valid = ((p >= 0.0) & (p <= 1.0)).all(-1) & (trials >= 0.0)
        safe = where(is_count[..., None], counts, 0.0)
        terms = sum_(xlogy(safe, p) - lgamma(safe + 1.0), -1)
        found = where(is_count, lgamma(where(is_count, trials, 0.0) + 1.0) + terms, -math.inf)
        return where(is_valid, found, math.nan)

    @for_tensors
    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """The probability."""
        return exp(self.logpmf(x, n, p))


def _square(method: str, name: str, given: Any, size: int | None = None) -> Any:
    """A matrix, a multiple of the identity for a number, the diagonal for a vector; of `size` rows."""
    matrix = averaged(given)
    if matrix.ndim < 2:
        count = matrix.shape[0] if matrix.ndim else 1 if size is None else size
        matrix = tensor_of(np.eye(count)) * matrix
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (size or matrix.shape[0]) != matrix.shape[0]:
        expected = "a square matrix" if size is None else f"a matrix of {size} rows and columns"
        fail(ShapeError, f"{method}: {name} must be {expected}, found the shape {tuple(matrix.shape)}.")
    return matrix


class Wishart(Multivariate):
    """`scipy.stats.wishart`, of one matrix, or of several along the last dimension."""

    @for_tensors
    def logpdf(self, x: Any, df: Any, scale: Any = None) -> Any:
        """The logarithm of the density (Kotz, Balakrishnan, Johnson)."""
        of_x, of_scale, df, size = self._factors(x, df, scale)
        solved = linalg.solve_triangular(of_scale, of_x, upper=False)
        power = (df - size - 1.0) * _half_logarithm_of_each(of_x) - df * _half_logarithm(of_scale)
        return power - 0.5 * sum_(solved * solved, (-2, -1)) - self._constant(df, size)

    @for_tensors
    def pdf(self, x: Any, df: Any, scale: Any = None) -> Any:
        """The density."""
        return exp(self.logpdf(x, df, scale))

    def _constant(self, df: Any, size: int) -> Any:
        return 0.5 * df * size * math.log(2.0) + PUBLIC["mvlgamma"](0.5 * df, size)

    def _factors(self, x: Any, df: Any, scale: Any) -> tuple[Any, Any, Any, int]:
        """Cholesky factors of the matrices, whose dimensions are last, and of the scale."""
        of_scale, values = _square(self._name, "scale", 1.0 if scale is None else scale), averaged(x)
        size = of_scale.shape[0]
        values = values.reshape(1, 1, -1) if values.ndim < 2 and size == 1 else values
        if values.ndim not in (2, 3) or tuple(values.shape[:2]) != (size, size):
            fail(
                ShapeError,
                f"{self._name}: matrices of {size} rows and columns, as the scale, are expected, several "
                f"along a third dimension; found the shape {tuple(values.shape)}.",
            )
        degrees = averaged(df)
        if degrees.ndim:
            fail(ShapeError, f"{self._name}: df must be a number, found the shape {tuple(degrees.shape)}.")
        text = f"df must be greater than {size - 1}, the number of rows less one."
        degrees = demanded(self._name, degrees, degrees > size - 1, text)
        values = values if values.ndim == 2 else PUBLIC["movedim"](values, -1, 0)
        return linalg.cholesky(values), linalg.cholesky(of_scale), degrees, size


def _half_logarithm_of_each(factors: Any) -> Any:
    """Half the logarithm of the determinant of each matrix."""
    return sum_(log(parts.diagonal(factors, 0, -2, -1)), -1)


class InverseWishart(Wishart):
    """`scipy.stats.invwishart`."""

    @for_tensors
    def logpdf(self, x: Any, df: Any, scale: Any = None) -> Any:
        """The logarithm of the density."""
        of_x, of_scale, df, size = self._factors(x, df, scale)
        solved = linalg.solve_triangular(of_x, of_scale, upper=False)
        power = df * _half_logarithm(of_scale) - (df + size + 1.0) * _half_logarithm_of_each(of_x)
        return power - 0.5 * sum_(solved * solved, (-2, -1)) - self._constant(df, size)


class MatrixNormal(Multivariate):
    """`scipy.stats.matrix_normal`, of matrices in the last two dimensions."""

    @for_tensors
    def logpdf(self, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
        """The logarithm of the density."""
        values, middle = floats(X, 0.0 if mean is None else mean)
        sizes = tuple(middle.shape) if mean is not None else (None, None)
        if len(sizes) != 2:
            fail(ShapeError, f"{self._name}: mean must be a matrix, found the shape {sizes}.")
        rows = linalg.cholesky(_square(self._name, "rowcov", rowcov, sizes[0]))
        columns = linalg.cholesky(_square(self._name, "colcov", colcov, sizes[1]))
        n, m = rows.shape[0], columns.shape[0]
        if values.ndim < 2 or tuple(values.shape[-2:]) != (n, m):
            fail(
                ShapeError,
                f"{self._name}: matrices of the shape {(n, m)} are expected last, as the covariances say; "
                f"found the shape {tuple(values.shape)}.",
            )
        white = linalg.solve_triangular(rows, values - middle, upper=False)
        white = linalg.solve_triangular(columns, white.mT, upper=False)
        constant = 0.5 * n * m * LOG_2_PI + n * _half_logarithm(columns) + m * _half_logarithm(rows)
        return -0.5 * sum_(white * white, (-2, -1)) - constant

    @for_tensors
    def pdf(self, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
        """The density."""
        return exp(self.logpdf(X, mean, rowcov, colcov))


MULTIVARIATE: dict[str, tuple[type[Multivariate], tuple[str, ...]]] = {
    "multivariate_normal": (MultivariateNormal, ("mean", "cov")),
    "multivariate_t": (MultivariateStudent, ("loc", "shape", "df")),
    "dirichlet": (Dirichlet, ("alpha",)),
    "multinomial": (Multinomial, ("n", "p")),
    "wishart": (Wishart, ("df", "scale")),
    "invwishart": (InverseWishart, ("df", "scale")),
    "matrix_normal": (MatrixNormal, ("mean", "rowcov", "colcov")),
}
"""By SciPy's name what stands for it, and the attributes of a frozen one that are its parameters."""
