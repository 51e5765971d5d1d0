"""Gradients of data that lie on a cluster: right whatever the parts, the workers, and what befalls them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback as pb
from pullback.errors import ArgumentError, SeparationError, ShapeError

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(7)
X, Y = RNG.standard_normal((103, 3)), RNG.standard_normal(103)
PARAMETERS = {"w": np.array([0.5, -1.0, 2.0]), "b": np.float64(0.25)}
VECTOR = {"w": np.array([1.0, 2.0, -1.0]), "b": np.float64(3.0)}


def loss(p, x, y):
    """A mean, a sum, a weighted mean, and a term without data."""
    z = x @ p["w"] + p["b"]
    fit = np.log1p(np.exp(-y * z)).mean() + ((z - y) ** 2).sum()
    return fit + np.average(np.sin(z), weights=y**2) + 0.1 * (p["w"] ** 2).sum()


def residuals(p, x, y):
    return np.tanh(x @ p["w"] + p["b"]) - y


def in_parts(array: np.ndarray, *rows: int) -> Any:
    return da.from_array(array, chunks=(rows, *((size,) for size in array.shape[1:])))


def flat(value: Any) -> np.ndarray:
    return np.hstack([value["w"], value["b"]])


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    "rows", [(103,), (50, 53), (25, 25, 25, 28), (1, 100, 2), (0, 103), tuple([1] * 103)]
)
def test_parts_add_up_to_the_whole(rows: tuple[int, ...]) -> None:
    value, gradient = pb.dask.value_and_grad(loss)(PARAMETERS, in_parts(X, *rows), in_parts(Y, *rows))
    expected, slope = pb.value_and_grad(loss)(PARAMETERS, X, Y)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(flat(gradient), flat(slope), rtol=1e-11)
    assert isinstance(value, np.float64) and gradient["w"].shape == (3,)


@pytest.mark.drawn(4)
def test_products_of_second_derivatives() -> None:
    data = in_parts(X, 40, 40, 23), in_parts(Y, 40, 40, 23)
    found = pb.dask.hvp(loss)(PARAMETERS, VECTOR, *data)
    slope = pb.grad(loss)
    _, expected = pb.jvp(lambda p: slope(p, X, Y), (PARAMETERS,), (VECTOR,))
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-11)


def test_gauss_newton_products() -> None:
    data = in_parts(X, 40, 40, 23), in_parts(Y, 40, 40, 23)
    found = pb.dask.gauss_newton_product(residuals)(PARAMETERS, VECTOR, *data)
    jacobian = pb.jacobian(lambda p: residuals(p, X, Y))(PARAMETERS)
    matrix = np.hstack([jacobian["w"], jacobian["b"][:, None]])
    np.testing.assert_allclose(flat(found), matrix.T @ (matrix @ flat(VECTOR)), rtol=1e-11)


@pytest.mark.drawn(4)
def test_minimize_takes_it() -> None:
    def logistic(w, x, y):
        return np.log1p(np.exp(-np.sign(y) * (x @ w))).mean() + 0.01 * (w**2).sum()

    data = in_parts(X, 60, 43), in_parts(Y, 60, 43)
    found = scipy.optimize.minimize(pb.dask.value_and_grad(logistic), np.zeros(3), jac=True, args=data)
    expected = scipy.optimize.minimize(pb.value_and_grad(logistic), np.zeros(3), jac=True, args=(X, Y))
    assert found.success
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)


def test_arrays_that_all_parts_share_and_compiled_functions() -> None:
    @pb.compile
    def scaled(w, x, factors):
        return ((x * factors) @ w).sum()

    factors = np.array([1.0, 2.0, 3.0])
    value, gradient = pb.dask.value_and_grad(scaled)(PARAMETERS["w"], in_parts(X, 50, 53), factors)
    np.testing.assert_allclose(gradient, (X * factors).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(value, (X * factors).sum(axis=0) @ PARAMETERS["w"], rtol=1e-12)


@pytest.mark.drawn(6)
def test_dataframes_are_arrays_of_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = frames.from_pandas(pandas.DataFrame(X, columns=list("abc")), npartitions=3)
    series = frames.from_pandas(pandas.Series(Y), npartitions=3)
    value, gradient = pb.dask.value_and_grad(loss)(PARAMETERS, table, series)
    expected, slope = pb.value_and_grad(loss)(PARAMETERS, X, Y)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(flat(gradient), flat(slope), rtol=1e-11)


def test_other_parts_and_columns_in_parts_are_brought_together() -> None:
    split = da.from_array(X, chunks=((40, 63), (1, 2)))
    value, _ = pb.dask.value_and_grad(loss)(PARAMETERS, split, in_parts(Y, 100, 3))
    np.testing.assert_allclose(value, loss(PARAMETERS, X, Y), rtol=1e-13)


# --- wrong uses -------------------------------------------------------------------------------------------


def test_what_is_no_sum_is_refused_before_anything_runs() -> None:
    with pytest.raises(SeparationError, match="sqrt of a sum over rows"):
        pb.dask.value_and_grad(lambda w, x: np.sqrt((x @ w).sum()))(np.ones(3), in_parts(X, 103))


def test_data_must_be_dasks_and_have_the_same_rows() -> None:
    evaluate = pb.dask.value_and_grad(loss)
    with pytest.raises(ArgumentError, match="Dask arrays or dataframes expected .* found ndarray, ndarray"):
        evaluate(PARAMETERS, X, Y)
    with pytest.raises(ShapeError, match=r"data argument 1 has shape \(102,\); expected 103 rows"):
        evaluate(PARAMETERS, in_parts(X, 103), in_parts(Y[1:], 102))
    unknown = in_parts(X, 103)[in_parts(Y, 103) > 0]
    with pytest.raises(ShapeError, match="compute_chunk_sizes"):
        evaluate(PARAMETERS, unknown, in_parts(Y, 103))
    with pytest.raises(ArgumentError, match="found a Tensor"):
        evaluate(pb.ones(3), in_parts(X, 103), in_parts(Y, 103))
    with pytest.raises(ArgumentError, match="expected a function"):
        pb.dask.value_and_grad(3)


def test_residuals_that_depend_on_no_row_are_refused() -> None:
    product = pb.dask.gauss_newton_product(lambda w, x: np.concatenate([w, (x @ w)]))
    with pytest.raises((ArgumentError, SeparationError), match="row"):
        product(np.ones(3), np.ones(3), in_parts(X, 103))


def test_an_error_names_the_part() -> None:
    indices = np.zeros(103, dtype=int)
    indices[70] = 5

    def picked(w, index):
        return w[index].sum()

    with pytest.raises(IndexError) as raised:
        pb.dask.value_and_grad(picked)(np.ones(3), in_parts(indices, 50, 53))
    assert any("part 1 of 2" in note and "rows 50 to 103" in note for note in raised.value.__notes__)


# --- on a cluster of processes ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(importable: None) -> Iterator[Any]:
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


PROGRAM = """
import numpy as np
import dask.array as da
import distributed
import pullback as pb


def loss(w, x):
    return ((x @ w) ** 2).mean() + 0.1 * (w**2).sum()


def compilations():
    from pullback.codegen.machine.compile import statistics

    return statistics.compilations


if __name__ == "__main__":
    rows = (20, 20, 23)
    x = da.from_array(np.linspace(0.0, 1.0, 189).reshape(63, 3), chunks=(rows, (3,)))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            value, _ = pb.dask.value_and_grad(loss)(np.ones(3), x)
            print(float(value).hex(), set(client.run(compilations).values()))
"""


@pytest.mark.drawn(6)
def test_workers_compile_nothing(tmp_path: Path) -> None:
    """The machine code comes with the function; with a cache that is empty at first."""
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = os.environ | {"PULLBACK_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "{0}"


@pytest.mark.drawn(3)
def test_the_number_of_workers_changes_nothing(client: Any) -> None:
    rows = (20, 20, 20, 20, 23)
    data = client.persist([in_parts(X, *rows), in_parts(Y, *rows)])
    evaluate = pb.dask.value_and_grad(loss)
    value, gradient = evaluate(PARAMETERS, *data)
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as alone,
        distributed.Client(alone, set_as_default=False) as other,
        other.as_current(),
    ):
        again, slope = evaluate(PARAMETERS, in_parts(X, *rows), in_parts(Y, *rows))
    assert value == again
    np.testing.assert_array_equal(flat(gradient), flat(slope))
    np.testing.assert_allclose(value, loss(PARAMETERS, X, Y), rtol=1e-13)


@pytest.mark.drawn(4)
def test_compiled_functions_are_mapped(client: Any) -> None:
    compiled = pb.value_and_grad(pb.compile(lambda w, x: ((x @ w) ** 2).sum()))
    scales = [1.0, 2.0, 3.0]
    found = client.gather(client.map(lambda scale: compiled(scale * np.ones(3), X)[0], scales))
    np.testing.assert_allclose(found, [((X @ (scale * np.ones(3))) ** 2).sum() for scale in scales])


@pytest.mark.drawn(4)
def test_what_it_costs_is_explained(client: Any) -> None:
    text = pb.dask.value_and_grad(loss).explain(PARAMETERS, in_parts(X, 50, 53), in_parts(Y, 50, 53))
    assert "103 rows in 2 parts" in text and "break even" in text


@pytest.mark.drawn(6)
def test_what_the_function_reaches_goes_out_anew_where_it_changes(client: Any) -> None:
    scale = [1.0]

    def scaled(w, x):
        return scale[0] * ((x @ w) ** 2).sum()

    evaluate, data = pb.dask.value_and_grad(scaled), in_parts(X, 50, 53)
    value, _ = evaluate(np.ones(3), data)
    scale[0] = 2.0
    twice, _ = evaluate(np.ones(3), data)
    np.testing.assert_allclose(twice, 2.0 * value, rtol=1e-14)


def slowly(block: np.ndarray) -> np.ndarray:
    time.sleep(0.5)
    return block


def process() -> int:
    return os.getpid()


@pytest.mark.drawn(6)
@pytest.mark.skipif(os.name != "posix", reason="a process is killed by a signal")
def test_a_worker_that_dies_is_survived(client: Any) -> None:
    """Its parts are computed again by the other one."""
    rows = (*[10] * 10, 3)
    data = in_parts(X, *rows).map_blocks(slowly), in_parts(Y, *rows)
    evaluate = pb.dask.value_and_grad(loss)
    expected, slope = evaluate(PARAMETERS, in_parts(X, *rows), in_parts(Y, *rows))
    victims = list(client.run(process).values())
    killer = threading.Timer(1.0, os.kill, (victims[0], signal.SIGKILL))
    killer.start()
    value, gradient = evaluate(PARAMETERS, *data)
    killer.join()
    assert value == expected
    np.testing.assert_array_equal(flat(gradient), flat(slope))
