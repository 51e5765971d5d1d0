"""Memory bandwidth and speed of matrix products: `python -m benchmarks.machine` prints JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import numba
import numpy as np
from scipy.linalg import blas

ELEMENTS = 16_000_000  # 128 MB an array, larger than caches are
ORDER = 1024
REPETITIONS = 12


@numba.njit(parallel=True, fastmath=True)
def triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """`a = b + 3 c`, as in J. D. McCalpin's STREAM."""
    for i in numba.prange(a.size):
        a[i] = b[i] + 3.0 * c[i]


def best_seconds(call: Callable[[], object]) -> float:
    """The shortest of some calls, after two that are not timed."""
    call(), call()
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def triad_gigabytes(threads: int) -> float:
    """GB/s of the triad; as in STREAM, the read of a line before it is written is not counted."""
    numba.set_num_threads(threads)
    a, b, c = (np.full(ELEMENTS, value) for value in (0.0, 1.0, 2.0))
    return 3 * a.nbytes / best_seconds(lambda: triad(a, b, c)) / 1e9


def gemm_gigaflops(dtype: str) -> float:
    """GFLOP/s of the BLAS that compiled code calls, SciPy's, on square matrices."""
    gemm = {"float32": blas.sgemm, "float64": blas.dgemm}[dtype]
    a, b, c = (np.ones((ORDER, ORDER), dtype, order="F") for _ in range(3))
    return 2 * ORDER**3 / best_seconds(lambda: gemm(1.0, a, b, c=c, overwrite_c=True)) / 1e9


def main() -> None:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # before there is work of ours
    threads = numba.get_num_threads()
    found: dict[str, float] = {"threads": threads, "load": load}
    found["triad_one_thread"] = triad_gigabytes(1)
    found["triad"] = triad_gigabytes(threads)
    found["gemm_float32"] = gemm_gigaflops("float32")
    found["gemm_float64"] = gemm_gigaflops("float64")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
