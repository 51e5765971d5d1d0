"""scipy.linalg's functions of matrices on Tensors: factors, functions of a whole matrix, equations of
Sylvester and Lyapunov, matrices of a structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import UnsupportedError
from ...tracer.ops.lazy import scipy_linalg
from ...tracer.spec import complex_dtype
from ..autograd.custom_rules import primitive
from ..functions import PUBLIC, decompositions, elimination, least_squares, linalg
from ..functions.common import array_dtype, as_dtype, fail, filled
from ..numpy_api.protocols import FUNCTIONS
from ..numpy_api.values import averaged, promoted
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor

Pair = tuple[Tensor, Tensor]


def _refuse(function: str, **options: Any) -> None:
    """UnsupportedError for an option that is set."""
    for name, value in options.items():
        if value:
            fail(UnsupportedError, f"scipy.linalg.{function}: {name}={value!r} is not supported on a Tensor.")


def _zeros_like(x: Tensor) -> Tensor:
    return filled(tuple(x.shape), 0, array_dtype(x))


# --- factors ------------------------------------------------------------------------------------------------


def _complex(x: Tensor) -> Tensor:
    return as_dtype(x, complex_dtype(array_dtype(x)))


def eig(a: Any, b: Any = None, left: bool = False, right: bool = True) -> Any:
    """Complex eigenvalues, and eigenvectors, real ones where a real matrix has no others."""
    _refuse("eig", b=b is not None, left=left)
    values, vectors = FUNCTIONS[np.linalg.eig](averaged(a))
    return (_complex(values), vectors) if right else _complex(values)


def qr(a: Any, lwork: Any = None, mode: str = "full", pivoting: bool = False) -> tuple[Tensor, ...]:
    """Q and R: "full" with a square Q, "economic"; or R alone with "r"."""
    _refuse("qr", pivoting=pivoting)
    if mode not in ("full", "economic", "r"):
        fail(UnsupportedError, f"scipy.linalg.qr: mode={mode!r} is not supported on a Tensor.")
    q, r = decompositions.linalg_qr(averaged(a), "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> tuple[Tensor, ...]:
    """P, L and U with a = P L U; or P L and U."""
    _refuse("lu", p_indices=p_indices)
    exchanges, lower, upper = elimination.linalg_lu(averaged(a))
    return (PUBLIC["matmul"](exchanges, lower), upper) if permute_l else (exchanges, lower, upper)


def lu_factor(a: Any) -> Pair:
    """Both triangles in one matrix, and the rows that were exchanged, counted from 0."""
    both, pivots = elimination.lu_factor(averaged(a))
    return both, pivots - 1


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Tensor:
    """The x with a x = b, a' x = b (`trans` 1) or a^H x = b (2), given what `lu_factor` returns for a."""
    factors, pivots = lu_and_piv
    both, sides = (averaged(one) for one in promoted([factors, b]))
    table = sides[:, None] if sides.ndim == 1 else sides
    table = PUBLIC["conj_physical"](table) if trans == 1 else table
    found = elimination.linalg_lu_solve(both, tensor_of(pivots) + 1, table, adjoint=trans in (1, 2))
    found = PUBLIC["conj_physical"](found) if trans == 1 else found
    return found[:, 0] if sides.ndim == 1 else found


def polar(a: Any, side: str = "right") -> Pair:
    """The orthonormal u and the positive p with a = u p, or a = p u."""
    left, values, right = decompositions.linalg_svd(averaged(a), False)
    unit = PUBLIC["matmul"](left, right)
    factor = PUBLIC["adjoint"](right) if side == "right" else left
    return unit, PUBLIC["matmul"](factor * values, PUBLIC["adjoint"](factor))


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol * largest) count as 0."""
    _refuse("pinv", return_rank=return_rank)
    return least_squares.pinv(averaged(a), atol=atol, rtol=rtol)


def pinvh(
    a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False
) -> Tensor:
    """The pseudo-inverse of a symmetric or Hermitian matrix, of which one triangle is read."""
    _refuse("pinvh", return_rank=return_rank)
    return least_squares.pinv(linalg.symmetric(averaged(a), lower), hermitian=True, atol=atol, rtol=rtol)


def lstsq(a: Any, b: Any, cond: float | None = None) -> tuple[Any, ...]:
    """The least squares solution, its squared distances, the rank of a and its singular values."""
    cut = float(np.finfo(array_dtype(averaged(a))).eps) if cond is None else cond
    found, distances, rank, values = FUNCTIONS[np.linalg.lstsq](a, b, cut)
    is_one = found.ndim == 1 and distances.numel()
    return found, distances[0] if is_one else distances, rank, values


# --- functions of a matrix ----------------------------------------------------------------------------------


def expm(a: Any) -> Tensor:
    return PUBLIC["matrix_exp"](averaged(a))


def cosm(a: Any) -> Tensor:
    return _of_turns(a)[0]


def sinm(a: Any) -> Tensor:
    return _of_turns(a)[1]


def tanm(a: Any) -> Tensor:
    cosine, sine = _of_turns(a)
    return linalg.solve(cosine, sine)


def _of_turns(a: Any) -> Pair:
    """The cosine and the sine: parts of exp(i a)."""
    x = averaged(a)
    forth = PUBLIC["matrix_exp"](1j * x)
    if not x.is_complex():
        return forth.real, forth.imag
    back = PUBLIC["matrix_exp"](-1j * x)
    return 0.5 * (forth + back), -0.5j * (forth - back)


def coshm(a: Any) -> Tensor:
    return 0.5 * (expm(a) + expm(-averaged(a)))


def sinhm(a: Any) -> Tensor:
    return 0.5 * (expm(a) - expm(-averaged(a)))


def tanhm(a: Any) -> Tensor:
    return linalg.solve(coshm(a), sinhm(a))


def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True) -> Any:
    """exp(A), and its derivative along E: blocks of the exponential of a larger matrix."""
    x, direction = (averaged(one) for one in promoted([A, E]))
    size = x.shape[0]
    above, below = PUBLIC["cat"]([x, direction], 1), PUBLIC["cat"]([_zeros_like(x), x], 1)
    found = PUBLIC["matrix_exp"](PUBLIC["cat"]([above, below], 0))
    derivative = found[:size, size:]
    return (found[:size, :size], derivative) if compute_expm else derivative


# --- equations of matrices ----------------------------------------------------------------------------------


@primitive
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The x with a x + x b = q."""
    return scipy_linalg().solve_sylvester(a, b, q)


def _adjoint(x: Any) -> Any:
    return np.conj(x).T


def _returned(cotangent: Any, x: Any) -> Any:
    """The cotangent of what may be real where the result is complex."""
    return cotangent if np.iscomplexobj(x) else np.real(cotangent)


def _pulled(a: Any, b: Any, g: Any) -> Any:
    return solve_sylvester(_adjoint(a), _adjoint(b), g)


solve_sylvester.defvjp(
    lambda y, a, b, q: lambda g: _returned(-_pulled(a, b, g) @ _adjoint(y), a),
    lambda y, a, b, q: lambda g: _returned(-_adjoint(y) @ _pulled(a, b, g), b),
    lambda y, a, b, q: lambda g: _returned(_pulled(a, b, g), q),
)


@primitive
def sqrtm(A: Any) -> Any:
    """The principal square root, real of a real matrix that has such a one."""
    return scipy_linalg().sqrtm(A)


sqrtm.defvjp(lambda y, A: lambda g: _returned(solve_sylvester(_adjoint(y), _adjoint(y), g), A))


def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The x with a x + x a^H = q."""
    x, sides = (averaged(one) for one in promoted([a, q]))
    return solve_sylvester(x, x.mH, sides)


def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """The x with a x a^H - x + q = 0: by a bilinear transformation an equation in continuous time."""
    x, sides = (averaged(one) for one in promoted([a, q]))
    unit = np.eye(x.shape[0], dtype=array_dtype(x))
    inverse = linalg.inverse(x.mH + unit)
    turned = PUBLIC["matmul"](x.mH - unit, inverse)
    scaled = 2.0 * PUBLIC["matmul"](PUBLIC["matmul"](linalg.inverse(x + unit), sides), inverse)
    return solve_sylvester(turned.mH, turned, -scaled)


# --- matrices of a structure --------------------------------------------------------------------------------


def _at_differences(values: Tensor, rows: int, columns: int, start: int, step: int) -> Tensor:
    """The matrix with values[start + i - j] (step -1), or values[start + i + j], at (i, j)."""
    return values[start + np.arange(rows)[:, None] + step * np.arange(columns)]


def toeplitz(c: Any, r: Any = None) -> Tensor:
    """A matrix that is constant along diagonals, by its first column and its first row."""
    column = averaged(c).reshape(-1)
    row = PUBLIC["conj_physical"](column) if r is None else averaged(r).reshape(-1)
    column, row = promoted([column, row])
    values = PUBLIC["cat"]([PUBLIC["flip"](row[1:], 0), column])
    return _at_differences(values, len(column), len(row), len(row) - 1, -1)


def circulant(c: Any) -> Tensor:
    """The matrix whose columns are the first one turned on."""
    column = tensor_of(c)
    size = column.shape[-1]
    return column[..., (np.arange(size)[:, None] - np.arange(size)) % size]


def hankel(c: Any, r: Any = None) -> Tensor:
    """A matrix that is constant along antidiagonals, by its first column and its last row, 0 unless given."""
    column = averaged(c).reshape(-1)
    row = _zeros_like(column) if r is None else averaged(r).reshape(-1)
    column, row = promoted([column, row])
    return _at_differences(PUBLIC["cat"]([column, row[1:]]), len(column), len(row), 0, 1)


def khatri_rao(a: Any, b: Any) -> Tensor:
    """The Kronecker products of the columns of two matrices."""
    x, y = promoted([a, b])
    return (x[:, None] * y[None]).reshape(-1, x.shape[-1])


def block_diag(*arrs: Any) -> Tensor:
    """The matrices along the diagonal of one, zero elsewhere."""
    return PUBLIC["block_diag"](*promoted(list(arrs)))


MATRICES = {
    one.__name__: one
    for one in (
        block_diag, circulant, coshm, cosm, eig, expm, expm_frechet, hankel, khatri_rao, lstsq, lu, lu_factor,
        lu_solve, pinv, pinvh, polar, qr, sinhm, sinm, solve_continuous_lyapunov, solve_discrete_lyapunov,
        tanhm, tanm, toeplitz,
    )
} | {
    "eigvals": lambda a, b=None: eig(a, b, right=False),
    "sqrtm": sqrtm, "solve_sylvester": solve_sylvester,
}  # fmt: skip
"""By their names in scipy.linalg."""
