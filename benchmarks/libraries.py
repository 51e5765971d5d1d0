"""Functions of matrices and sorting, compiled, over calls of libraries: `python -m benchmarks.libraries`.

Times are of the calling thread's processor, which other programs disturb little: run it with
OPENBLAS_NUM_THREADS=1 and NUMBA_NUM_THREADS=1, so that this thread does all the work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import pullback as pb

SECONDS = 0.5
SORTED = 1_000_000
EDGES = np.linspace(-3, 3, 1000)
MATRICES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "eigh": (np.linalg.eigh, lambda a: pb.linalg.eigh(a)[1]),
    "eigvalsh": (np.linalg.eigvalsh, lambda a: pb.linalg.eigvalsh(a)),
    "svd": (lambda a: np.linalg.svd(a, full_matrices=False), lambda a: pb.linalg.svd(a, False)[0]),
    "svdvals": (lambda a: np.linalg.svd(a, compute_uv=False), lambda a: pb.linalg.svdvals(a)),
    "qr": (np.linalg.qr, lambda a: pb.linalg.qr(a)[0]),
    "cholesky": (np.linalg.cholesky, lambda a: pb.linalg.cholesky(a)),
    "inv": (np.linalg.inv, lambda a: pb.linalg.inv(a)),
    "pinv": (np.linalg.pinv, lambda a: pb.linalg.pinv(a)),
    "lstsq": (lambda a: np.linalg.lstsq(a, a[:, :1])[0], lambda a: np.linalg.lstsq(a, a[:, :1])[0]),
    "expm": (scipy.linalg.expm, lambda a: scipy.linalg.expm(a)),
    "sqrtm": (lambda a: scipy.linalg.sqrtm(a @ a), lambda a: scipy.linalg.sqrtm(a @ a)),
}
ROWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sort": (np.sort, lambda x: np.sort(x)),
    "argsort": (np.argsort, lambda x: np.argsort(x)),
    "stable argsort": (
        lambda x: np.argsort(x, kind="stable"), lambda x: np.argsort(x, kind="stable")
    ),
    "searchsorted": (lambda x: np.searchsorted(EDGES, x), lambda x: np.searchsorted(EDGES, x)),
    "median": (np.median, lambda x: np.median(x)),
    "quantile": (lambda x: np.quantile(x, 0.3), lambda x: np.quantile(x, 0.3)),
}  # fmt: skip


def microseconds(function: Callable[[Any], Any], given: np.ndarray) -> float:
    """The least of the times of calls."""
    function(given)
    best, end = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end or best == np.inf:
        begin = time.thread_time_ns()
        function(given)
        best = min(best, (time.thread_time_ns() - begin) / 1e3)
    return best


def report(name: str, of_numpy: Callable[[Any], Any], own: Callable[[Any], Any], given: np.ndarray) -> None:
    """A line: the library's time, and over it those of the value, and of value and gradient."""
    library, value = microseconds(of_numpy, given), microseconds(pb.compile(own), given)
    line = f"{name:28} {library:11.1f} us   value {value / library:5.2f}"
    if "argsort" not in name and "searchsorted" not in name:
        gradient = pb.value_and_grad(pb.compile(lambda x: (own(x) ** 3).sum()))
        line += f"   value and gradient {microseconds(gradient, given) / library:5.2f}"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of functions; all without any")
    parser.add_argument("--size", type=int, default=200, help="rows and columns of the matrices")
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    options = parser.parse_args()
    rng, size = np.random.default_rng(0), options.size
    a = rng.standard_normal((size, size)).astype(options.dtype)
    definite = (a @ a.T + size * np.eye(size)).astype(options.dtype)
    for table in (MATRICES, ROWS):
        for name, (of_numpy, own) in table.items():
            if options.names and name not in options.names:
                continue
            if table is ROWS:
                report(
                    f"{name} of {SORTED}", of_numpy, own, rng.standard_normal(SORTED).astype(options.dtype)
                )
            else:
                symmetric = a + a.T if name.startswith("eig") else a
                given = definite if name in ("cholesky", "sqrtm") else symmetric
                report(f"{name} {size} x {size}", of_numpy, own, given)
    product = microseconds(lambda a: a @ a, a)
    print(f"{'a @ a':28} {product:11.1f} us")


if __name__ == "__main__":
    main()
