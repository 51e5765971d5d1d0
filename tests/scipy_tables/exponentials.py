"""Products with exponentials of matrices: `scipy.sparse.linalg.expm_multiply`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import expm_multiply
from scipy_programs import Program, drawn

RNG = drawn("expm_multiply")
DENSE = RNG.standard_normal((4, 4))
A, OLD = sparse.csr_array(DENSE * (np.abs(DENSE) > 0.6)), sparse.csc_matrix(np.diag([1.0, -2.0, 0.5, 3.0]))
B, X = RNG.standard_normal((4, 2)), RNG.standard_normal(4)
FAR = 3.0 * A - 20.0 * sparse.eye_array(4)
PLACES = np.array([0, 1, 2, 3, 3]), np.array([1, 1, 0, 2, 2])
TIME = np.array(0.7)

PROGRAMS: dict[str, Program] = {
    "vector": (lambda x: expm_multiply(A, x), (X,)),
    "columns": (lambda x: expm_multiply(OLD, x), (B,)),
    "several steps": (lambda x: expm_multiply(FAR, x) * 1e8, (X,)),
    "array": (lambda x: expm_multiply(DENSE, x), (B,)),
    "traced array": (lambda a, x: expm_multiply(a, x), (DENSE, X)),
    "traced array, plain vector": (lambda a: expm_multiply(a, X), (4.0 * DENSE,)),
    "a time": (lambda t, x: expm_multiply(A * t, x), (TIME, B)),
    "a long time": (lambda t: expm_multiply(t * OLD, X), (TIME * 3,)),
    "an imaginary time": (lambda t, x: expm_multiply(-1j * A * t, x), (TIME, X)),
    "complex vector": (lambda x: expm_multiply(A, x), (X + 0.3j,)),
    "times": (lambda x: expm_multiply(A, x, 0.1, stop=1.3, num=4), (X,)),
    "times without an end": (lambda x: expm_multiply(A, x, 0.1, 1.3, num=3, endpoint=False), (B,)),
    "traced times": (lambda a, b: expm_multiply(A, X, a, b, 3), (TIME, TIME * 3)),
    "values": (lambda v, x: expm_multiply(sparse.csr_array((v, PLACES), (4, 4)), x), (RNG.random(5), X)),
    "nothing": (lambda x: expm_multiply(0.0 * A, x), (X,)),
}  # fmt: skip
