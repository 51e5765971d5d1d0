"""Linear algebra under the names of torch.linalg."""

from pullback.runtime.functions.contraction import linalg_cross as cross
from pullback.runtime.functions.contraction import matmul, multi_dot, outer, vdot
from pullback.runtime.functions.linalg import cholesky, det, matrix_power, slogdet, solve, solve_triangular
from pullback.runtime.functions.linalg import inverse as inv
from pullback.runtime.functions.parts import diagonal
from pullback.runtime.functions.statistics import linalg_norm as norm
from pullback.runtime.functions.statistics import matrix_norm, vector_norm

__all__ = [
    "cholesky", "cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_power", "multi_dot",
    "norm", "outer", "slogdet", "solve", "solve_triangular", "vdot", "vector_norm",
]  # fmt: skip
