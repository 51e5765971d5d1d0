"""Linear algebra under the names of torch.linalg."""

from pullback.runtime.functions.contraction import cross, matmul, multi_dot, outer, vdot
from pullback.runtime.functions.parts import diagonal
from pullback.runtime.functions.statistics import linalg_norm as norm
from pullback.runtime.functions.statistics import matrix_norm, vector_norm

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "multi_dot", "norm", "outer", "vdot", "vector_norm"]
