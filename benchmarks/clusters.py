"""Gradients on a cluster of this machine's processes: `python -m benchmarks.clusters`, with `pullback[dask]`.

It says: the efficiency of two workers on a gradient of about a second, what a call on small parts costs, a
logistic regression beside dask-glm's (its algorithm, and, where it is installed, its fit as a whole), and how
far a tree goes for a thousand workers.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.optimize
from distributed import Client, LocalCluster

import pullback as pb
from pullback.runtime.distributed.clusters import idle, tree_of

ROWS, COLUMNS, PARTS = 4_000_000, 24, 16
REPEATS = 5


def logistic(w, x, y):
    z = x @ w
    return (np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z).mean() + 0.001 * (w**2).sum()


def dear(w, x, y):
    """Enough arithmetic for a row that memory does not matter."""
    z = x @ w
    total = 0.0 * z
    for k in range(1, 97):
        total = total + np.sin(k * z) * np.exp(-0.1 * z**2 / k)
    return ((total - y) ** 2).mean()


def as_dask_glm(w: np.ndarray, x: Any, y: Any) -> tuple[float, np.ndarray]:
    """Value and gradient as dask_glm.families.Logistic and its lbfgs have them: one graph, evaluated."""
    z = x.dot(w)
    value = (da.log1p(da.exp(z))).sum() - da.dot(y, z)
    gradient = da.dot(x.T, 1.0 / (1.0 + da.exp(-z)) - y)
    found, slope = dask.compute(value, gradient)
    return found / len(y) + 0.001 * (w**2).sum(), slope / len(y) + 0.002 * w


def best(run: Callable[[], Any]) -> float:
    """The shortest of some times, in seconds."""
    run()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def data(client: Client, rows: int, parts: int) -> tuple[Any, Any]:
    x = da.random.default_rng(0).normal(size=(rows, COLUMNS), chunks=(rows // parts, -1))
    y = (da.random.default_rng(1).random(rows, chunks=rows // parts) > 0.5).astype(float)
    return tuple(client.persist([x, y]))  # type: ignore[return-value]


def measure(workers: int) -> dict[str, float]:
    """Seconds of calls with so many workers of one thread each."""
    options: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    w = np.full(COLUMNS, 0.01)
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        x, y = data(client, ROWS, PARTS)
        evaluate = pb.dask.value_and_grad(dear)
        found = {"1 s gradient": best(lambda: evaluate(w, x, y))}
        fit = pb.dask.value_and_grad(logistic)
        found["logistic"] = best(lambda: fit(w, x, y))
        found["as dask-glm"] = best(lambda: as_dask_glm(w, x, y))
        np.testing.assert_allclose(fit(w, x, y)[1], as_dask_glm(w, x, y)[1], rtol=1e-9)
        x, y = data(client, 64 * PARTS, PARTS)
        found["small parts"] = best(lambda: fit(w, x, y))
        print(fit.explain(w, x, y))
    return found


def compare_fits(client: Client, rows: int, parts: int) -> None:
    """A whole logistic regression with a ridge, by L-BFGS to the same tolerance, beside dask-glm's."""
    from dask_glm.algorithms import lbfgs

    x, y = data(client, rows, parts)
    total = pb.dask.value_and_grad(lambda w, x, y: rows * logistic(w, x, y))
    settings: dict[str, Any] = {"method": "L-BFGS-B", "options": {"gtol": 1e-4}}

    def ours() -> np.ndarray:
        return scipy.optimize.minimize(total, np.zeros(COLUMNS), (x, y), jac=True, **settings).x

    def theirs() -> np.ndarray:
        return lbfgs(x, y, regularizer="l2", lamduh=0.002 * rows, tol=1e-4)

    np.testing.assert_allclose(ours(), theirs(), atol=1e-5)
    alone, peer = best(ours), best(theirs)
    print(f"{rows} rows in {parts} parts, a fit: {1e3 * alone:.0f} ms,", end=" ")
    print(f"dask-glm {1e3 * peer:.0f} ms, {peer / alone:.1f} times")


def simulate(workers: int = 1_000, parts: int = 8_000, parameters: int = 1_000) -> None:
    """What a call costs the scheduler with so many workers: measured per task here, counted for them."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        seconds = [best(lambda count=count: idle(count)) for count in (500, 2_500)]  # type: ignore[misc]
    per_task = (seconds[1] - seconds[0]) / 2_000
    widths = tree_of(parts)
    tasks = sum(widths)
    sent = 8 * parameters * (workers + tasks)
    print(
        f"{workers} workers, {parts} parts, {parameters} parameters: {tasks} tasks of "
        f"{1e6 * per_task:.0f} us at the scheduler, {per_task * tasks:.2f} s a call;",
        f"{sent / 1e6:.0f} MB sent; a tree of depth {len(widths) - 1}",
    )


def main() -> None:
    one, two = measure(1), measure(2)
    for name, alone in one.items():
        print(f"{name:14} {1e3 * alone:9.1f} ms, two workers {1e3 * two[name]:9.1f} ms", end="")
        print(f", efficiency {alone / two[name] / 2:.0%}")
    print(f"over dask-glm's: {two['as dask-glm'] / two['logistic']:.1f} times as fast")
    if importlib.util.find_spec("dask_glm") is not None:
        options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
            for rows in (40_000, 400_000, ROWS):
                compare_fits(client, rows, PARTS)
    simulate()


if __name__ == "__main__":
    main()
