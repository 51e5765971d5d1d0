"""Compiled functions in other processes: pickles, process pools, joblib, exported caches."""

from __future__ import annotations

import copy
import functools
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine import exchange
from pullback.errors import CacheFileError
from pullback.runtime.dispatch import pickling

cloudpickle = pytest.importorskip("cloudpickle")


@pb.compile
def loss(weights, x):
    return ((x @ weights) ** 2).sum() * len(x)


@pb.compile
def repeated(x, count):
    return x if count == 0 else repeated(x * 2.0, count - 1)


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @pb.compile
    def predict(self, x):
        return self.scale * x


@pb.compile
def with_count(weights, x):
    return loss(weights, x), len(x)


slope = pb.value_and_grad(loss)
WEIGHTS, X = np.arange(3.0), np.ones((4, 3))
PICKLERS = [pickle, cloudpickle]
both = pytest.mark.parametrize("pickler", PICKLERS, ids=["pickle", "cloudpickle"])


def again(value: Any, pickler: Any) -> Any:
    return pickle.loads(pickler.dumps(value))


@both
def test_a_pickle_of_another_version_is_refused(pickler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, by value, and of what is derived."""
    pickled = [pickler.dumps(loss), pickler.dumps(slope)]
    if pickler is cloudpickle:
        pickled.append(pickler.dumps(pb.compile(lambda x: x * 2.0)))
    monkeypatch.setattr(pickling, "__version__", "99.0")
    for one in pickled:
        with pytest.raises(CacheFileError, match=r"of pullback [\d.]+; here is 99.0"):
            pickle.loads(one)


# --- copies and pickles in one process --------------------------------------------------------------------


@both
def test_what_has_a_name_comes_back_as_it_is(pickler: Any) -> None:
    assert again(loss, pickler) is loss
    assert again({"f": [loss, loss]}, pickler)["f"][1] is loss
    assert copy.copy(loss) is loss and copy.deepcopy(loss) is loss


@both
@pytest.mark.parametrize("transform", [pb.grad, pb.value_and_grad, pb.jacobian, pb.hessian])
def test_derivatives_of_it_are_made_again(pickler: Any, transform: Callable[..., Any]) -> None:
    made = transform(loss)
    found = again(made, pickler)
    for one, other in zip(_leaves(made(WEIGHTS, X)), _leaves(found(WEIGHTS, X)), strict=True):
        np.testing.assert_array_equal(one, other)


def _leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@both
def test_options_of_derivatives_come_along(pickler: Any) -> None:
    value, gradients = again(pb.value_and_grad(with_count, argnums=(0, 1), has_aux=True), pickler)(WEIGHTS, X)
    assert value == (loss(WEIGHTS, X), 4)
    np.testing.assert_array_equal(gradients[0], slope(WEIGHTS, X)[1])
    assert gradients[1].shape == X.shape


@both
def test_batches_of_it(pickler: Any) -> None:
    batched = pb.vmap(loss, in_dims=(None, 0))
    inputs = np.stack([X, 2.0 * X])
    np.testing.assert_array_equal(again(batched, pickler)(WEIGHTS, inputs), batched(WEIGHTS, inputs))


@both
def test_bound_methods_take_their_object_along(pickler: Any) -> None:
    predict = again(Model(3.0).predict, pickler)
    np.testing.assert_array_equal(predict(np.ones(2)), np.full(2, 3.0))


def test_lambdas_closures_and_recursive_functions_go_by_value_under_cloudpickle() -> None:
    factor = np.full(3, 5.0)

    @pb.compile(static_argnames="offset", fastmath=False)
    def scaled(x, offset=1.0):
        return x * factor + offset

    for function in (scaled, pb.compile(lambda x: x * factor + 1.0)):
        found = again(function, cloudpickle)
        assert found is not function
        np.testing.assert_array_equal(found(np.ones(3)), np.full(3, 6.0))
    assert again(scaled, cloudpickle).static_argnames == "offset"
    assert again(scaled, cloudpickle).options == scaled.options


def test_pickle_says_that_a_lambda_has_no_name() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(pb.compile(lambda x: x))


def test_a_partial_of_a_compiled_function() -> None:
    found = again(functools.partial(loss, WEIGHTS), pickle)
    assert found(X) == loss(WEIGHTS, X)


# --- other processes --------------------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import pullback as pb

@pb.compile
def loss(w, x):
    return ((x @ w) ** 2).sum() * len(x)

@pb.compile
def halved(x, count):
    return x if count == 0 else halved(x / 2.0, count - 1)

gradient = pb.value_and_grad(loss)
shifted = pb.compile(lambda x: x + 0.125)
"""
MAKE = """
import cloudpickle, sys
w, x = np.arange(3.0), np.ones((4, 3))
gradient(w, x), loss(w, x), halved(w, 2), shifted(w)
t = pb.tensor([1.0, 2.0], requires_grad=True)
loss(t, np.ones((2, 2))).backward()
functions = {"loss": loss, "gradient": gradient, "halved": halved, "shifted": shifted}
cloudpickle.dump(functions, open(sys.argv[1], "wb"))
"""
USE = """
import json, pickle, sys
import numpy as np
import pullback as pb
from pullback.codegen.machine.compile import statistics
functions = pickle.load(open(sys.argv[1], "rb"))
w, x = np.arange(3.0), np.ones((4, 3))
value, gradient = functions["gradient"](w, x)
t = pb.tensor([1.0, 2.0], requires_grad=True)
functions["loss"](t, np.ones((2, 2))).backward()
found = [float(value), gradient.tolist(), float(functions["loss"](w, x)), functions["halved"](w, 2).tolist(),
         functions["shifted"](w).tolist(), t.grad.tolist()]
print(json.dumps({"found": found, "compilations": statistics.compilations}))
"""


def run(text: str, cache: Path, *arguments: object) -> str:
    """What a new process prints that runs this program with this cache folder."""
    environment = os.environ | {"PULLBACK_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", text, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with functions of a `__main__`, pickled, and the cache of the process that made them."""
    folder = tmp_path_factory.mktemp("made")
    run(PROGRAM + MAKE, folder / "cache", folder / "functions")
    return folder


@pytest.mark.drawn(6)
def test_a_second_process_compiles_nothing(made: Path, tmp_path: Path) -> None:
    """With a cache of its own, which is empty: the machine code has come with the pickle."""
    found = json.loads(run(USE, tmp_path / "cache", made / "functions"))
    assert found["compilations"] == 0
    np.testing.assert_allclose(np.hstack([np.ravel(one) for one in found["found"]]), _flat_expected())


def _flat_expected() -> np.ndarray:
    w, x = np.arange(3.0), np.ones((4, 3))
    product = x @ w
    value = (product**2).sum() * 4
    gradient = 2.0 * 4 * x.T @ product
    tensor_gradient = 2.0 * 2 * np.ones((2, 2)).T @ (np.ones((2, 2)) @ np.array([1.0, 2.0]))
    return np.hstack([value, gradient, value, w / 4.0, w + 0.125, tensor_gradient])


@pytest.mark.drawn(6)
def test_an_exported_cache_warms_another_machine(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "warm.zip"
    export = "import pullback, sys; print(pullback.cache.export(sys.argv[1]))"
    count = int(run(export, made / "cache", file))
    assert count > 4
    load = "import pullback, sys; print(pullback.cache.load(sys.argv[1]))"
    assert int(run(load, tmp_path / "cache", file)) == count
    stripped = PROGRAM + (
        "from pullback.codegen.machine.compile import statistics\n"
        "w, x = np.arange(3.0), np.ones((4, 3))\n"
        "gradient(w, x), loss(w, x), halved(w, 2), shifted(w)\n"
        "print(statistics.compilations)\n"
    )
    assert int(run(stripped, tmp_path / "cache")) == 0
    if os.name == "posix":
        kept = [one.stat() for one in (tmp_path / "cache" / "generated").glob("*.bin")]
        assert kept and all(one.st_uid == os.getuid() and one.st_mode & 0o077 == 0 for one in kept)


def _start(method: str) -> Any:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    return multiprocessing.get_context(method)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_process_pools_run_it(importable: None, method: str) -> None:
    value, gradient = slope(WEIGHTS, X)
    with ProcessPoolExecutor(1, mp_context=_start(method)) as pool:
        found = pool.submit(slope, WEIGHTS, X).result(timeout=300)
        predicted = pool.submit(Model(2.0).predict, WEIGHTS).result(timeout=300)
        tensor = pool.submit(pb.exp, pb.zeros(2)).result(timeout=300)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], gradient)
    np.testing.assert_array_equal(predicted, 2.0 * WEIGHTS)
    np.testing.assert_array_equal(tensor, np.ones(2))


def test_joblib_runs_functions_without_a_name(importable: None) -> None:
    joblib = pytest.importorskip("joblib")
    factor = np.full(3, 4.0)
    made = pb.grad(pb.compile(lambda x: (factor * x**2).sum()))
    made(np.ones(3))
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(made)(np.full(3, float(k))) for k in range(4))
    np.testing.assert_array_equal(found, [np.full(3, 8.0 * k) for k in range(4)])


# --- files of other machines, and damaged ones ------------------------------------------------------------


def _exported(path: Path) -> Path:
    loss(WEIGHTS, X)
    assert pb.cache.export(path) > 0
    return path


@pytest.mark.drawn(6)
def test_a_truncated_file_is_refused_whole(tmp_path: Path) -> None:
    file = _exported(tmp_path / "warm.zip")
    content = file.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(CacheFileError, match="not a whole file"):
            pb.cache.load(file)


@pytest.mark.drawn(6)
def test_each_part_is_checked(tmp_path: Path) -> None:
    file = _exported(tmp_path / "warm.zip")
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    changed = next(name for name in parts if name != "manifest.json")
    parts[changed] = parts[changed][:-1] + b"!"
    _write(file, parts)
    with pytest.raises(CacheFileError, match=f"checksum of {changed}"):
        pb.cache.load(file)


@pytest.mark.drawn(6)
def test_names_lead_nowhere_else(tmp_path: Path) -> None:
    file = _exported(tmp_path / "warm.zip")
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    name, total = next(iter(manifest["files"].items()))
    stem = name.rpartition(".")[2]
    manifest["files"] = {f"../../evil.{stem}": total}
    _write(file, {"manifest.json": json.dumps(manifest).encode(), f"../../evil.{stem}": b""})
    with pytest.raises(CacheFileError, match="whose name is none"):
        pb.cache.load(file)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("place, aspect", [(0, "version of pullback"), (4, "processor"), (-1, "build")])
def test_what_differs_is_named(tmp_path: Path, place: int, aspect: str) -> None:
    file = _exported(tmp_path / "warm.zip")
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    manifest["environment"][place] = "another"
    _write(file, {"manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(CacheFileError, match=aspect):
        pb.cache.load(file)


def _write(path: Path, parts: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pb.cache.load(tmp_path / "none.zip")


def test_machine_code_of_other_versions_is_left_where_it_came_from() -> None:
    """A pickle of another machine works; what it carries is not used."""
    name = "kernel_0.forward.0123456789abcdef0123456789abcdef01234567"
    exchange.keep({name: b"code of another processor"})
    assert exchange.find(name) is None


@pytest.mark.drawn(6)
def test_without_a_folder_what_came_along_stays_in_memory(made: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    text = "import warnings; warnings.simplefilter('ignore')\n" + USE
    assert json.loads(run(text, tmp_path / "file", made / "functions"))["compilations"] == 0
