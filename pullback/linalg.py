"""Linear algebra under the names of torch.linalg."""

from pullback.runtime.functions.matrices.contraction import linalg_cross as cross
from pullback.runtime.functions.matrices.contraction import matmul, outer, vdot
from pullback.runtime.functions.matrices.decompositions import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
    householder_product,
    svdvals,
)  # fmt: skip
from pullback.runtime.functions.matrices.decompositions import linalg_qr as qr
from pullback.runtime.functions.matrices.decompositions import linalg_svd as svd
from pullback.runtime.functions.matrices.einsum import multi_dot
from pullback.runtime.functions.matrices.elimination import (
    cholesky_ex,
    inv_ex,
    lu_factor,
    lu_factor_ex,
    solve_ex,
)
from pullback.runtime.functions.matrices.elimination import linalg_lu as lu
from pullback.runtime.functions.matrices.elimination import linalg_lu_solve as lu_solve
from pullback.runtime.functions.matrices.lapack_factors import ldl_factor, ldl_factor_ex, ldl_solve
from pullback.runtime.functions.matrices.least_squares import linalg_cond as cond
from pullback.runtime.functions.matrices.least_squares import lstsq, matrix_rank, pinv
from pullback.runtime.functions.matrices.linalg import (
    cholesky,
    det,
    matrix_power,
    slogdet,
    solve,
    solve_triangular,
)
from pullback.runtime.functions.matrices.linalg import inverse as inv
from pullback.runtime.functions.matrices.tensor_equations import linalg_vander as vander
from pullback.runtime.functions.matrices.tensor_equations import matrix_exp, tensorinv, tensorsolve, vecdot
from pullback.runtime.functions.reductions.statistics import linalg_norm as norm
from pullback.runtime.functions.reductions.statistics import matrix_norm, vector_norm
from pullback.runtime.functions.shapes.parts import linalg_diagonal as diagonal
from pullback.runtime.methods.public import publish as _publish
from pullback.tracer.errors import LinearAlgebraError as LinAlgError

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh",
    "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex",
    "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd",
    "svdvals", "tensorinv", "tensorsolve", "vander", "vdot", "vecdot", "vector_norm",
]  # fmt: skip

_publish(globals(), __name__)
