"""Compiled kernels compute what their source computes, take exactly their arguments, and come from disk."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest

from pullback.codegen.machine import loading, store
from pullback.codegen.machine.arguments import READ
from pullback.codegen.machine.compile import compile_function
from pullback.codegen.machine.kernel_types import ArrayType, CompileOptions, ScalarType
from pullback.tracer.errors import CompilationError

Layout = Literal["C", "F", "A"]


def array(dtype: str = "float64", ndim: int = 1, layout: Layout = "C") -> ArrayType:
    return ArrayType(np.dtype(dtype), ndim, layout)


def scalar(dtype: str) -> ScalarType:
    return ScalarType(np.dtype(dtype))


def load(source: str) -> ModuleType:
    return store.load_module(store.write_module(source, "test"))


def compiled(source: str, name: str, *types: ArrayType | ScalarType) -> Callable[..., Any]:
    return compile_function(load(source), name, types)


# --- What kernels may contain -----------------------------------------------------------------------------

CHAIN = """
from pullback.codegen.vector_math import exp, sqrt

HALF = 0.5

def squared(x):
    return x * x

def chain(x, y, out):
    total = 0.0
    for i in range(x.shape[0]):
        value = sqrt(squared(x[i]) + 1.0) * exp(-HALF * y[i])
        out[i] = value
        total += value
    return total
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_and_uncompiled_agree(dtype: str) -> None:
    module = load(CHAIN)
    function = compile_function(module, "chain", (array(dtype),) * 3)
    x, y = np.linspace(-2, 2, 101, dtype=dtype), np.linspace(0, 3, 101, dtype=dtype)
    out, expected = np.empty_like(x), np.empty_like(x)
    np.testing.assert_allclose(function(x, y, out), module.chain(x, y, expected), rtol=1e-5)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_the_uncompiled_module_is_untouched() -> None:
    module = load(CHAIN)
    before = dict(module.__dict__)
    compile_function(module, "chain", (array(),) * 3)
    assert module.__dict__ == before


def test_rank_zero_and_rank_three() -> None:
    source = """
def scale(x, factor, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = factor[()] * x[i, j, k]
    factor[()] = 0.0
"""
    function = compiled(source, "scale", array(ndim=3, layout="A"), array(ndim=0), array(ndim=3))
    x, factor, out = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1), np.array(2.0), np.empty((4, 2, 3))
    function(x, factor, out)
    np.testing.assert_array_equal(out, 2 * x)
    assert factor == 0.0


@pytest.mark.parametrize("layout", ["C", "F", "A"])
def test_layouts(layout: Layout) -> None:
    source = """
def copy(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
"""
    function = compiled(source, "copy", array(ndim=2, layout=layout), array(ndim=2))
    x = np.arange(12.0).reshape(3, 4)
    x = {"C": x, "F": np.asfortranarray(x), "A": np.repeat(x, 2, axis=1)[:, ::2]}[layout]
    out = np.empty((3, 4))
    function(x, out)
    np.testing.assert_array_equal(out, x)


def test_views_slices_and_tuples_of_indices() -> None:
    source = """
def row_sums(x, out):
    for i in range(x.shape[0]):
        row = x[i]
        total = 0.0
        for j in range(row.shape[0]):
            total += row[j]
        out[i] = total
    tail = out[1:]
    tail[0] += 100.0
"""
    function = compiled(source, "row_sums", array(ndim=2), array())
    out = np.empty(3)
    function(np.arange(6.0).reshape(3, 2), out)
    np.testing.assert_array_equal(out, [1, 105, 9])


def test_scalars_of_every_kind() -> None:
    source = """
def mix(i, x, y, flag, out):
    out[0] = i
    out[1] = x
    out[2] = y
    out[3] = flag
    return i + 1, x, y, not flag
"""
    types = tuple(map(scalar, ("int64", "float64", "float32", "bool")))
    function = compiled(source, "mix", *types, array())
    out = np.empty(4)
    assert function(-(2**62), 0.1, 0.1, True, out) == (-(2**62) + 1, 0.1, float(np.float32(0.1)), False)
    np.testing.assert_array_equal(out, [-(2.0**62), 0.1, np.float32(0.1), 1])
    assert function(np.int64(3), np.float64(-1), np.float32(2), np.False_, out) == (4, -1.0, 2.0, True)
    assert function(-1, -1.0, -1, 0, out)[:3] == (0, -1.0, -1.0)


def test_none_is_returned_without_leaking_references() -> None:
    function = compiled("def nothing(x):\n    x[0] = 1.0\n", "nothing", array())
    x = np.zeros(1)
    before = sys.getrefcount(x)
    assert all(function(x) is None for _ in range(1000))
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "uint8"])
def test_arrays_of_other_dtypes(dtype: str) -> None:
    source = "def copy(x, out):\n    for i in range(x.shape[0]):\n        out[i] = x[i]\n"
    function = compiled(source, "copy", array(dtype), array())
    x, out = np.array([0, 1, 1], dtype), np.empty(3)
    function(x, out)
    np.testing.assert_array_equal(out, x)


def test_read_only_arrays_are_accepted() -> None:
    assert ArrayType(np.dtype("f8"), 1, "C", readonly=True) == array()
    function = compiled(CHAIN, "chain", *(array(),) * 3)
    x, out = np.ones(3), np.empty(3)
    x.flags.writeable = False
    function(x, x, out)
    assert (out > 0).all()


def test_nan_inf_and_division_by_zero_are_honest() -> None:
    source = """
def ratio(x, y, out):
    total = 0.0
    for i in range(x.shape[0]):
        out[i] = x[i] / y[i]
        total += x[i] - x[i]
    return total, (x[3] + y[0]) - x[3], (x[4] + y[0]) - x[4]
"""
    function = compiled(source, "ratio", *(array(),) * 3)
    x, y, out = np.array([1.0, -1, 0, np.nan, np.inf]), np.array([0.0, 0, 0, 1, 1]), np.empty(5)
    assert np.isnan(function(x, y, out)).all()
    np.testing.assert_array_equal(out, [np.inf, -np.inf, np.nan, np.nan, np.inf])


def test_sums_and_vector_math_vectorise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimised code of a loop holds vectors, also of the exponential function, and no calls."""
    from pullback.codegen.machine import numba_backend
    from pullback.codegen.machine.numba_backend import objects

    source = """
from pullback.codegen.vector_math import exp
def total_exponential(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += exp(x[i])
    return total
"""
    texts = []
    optimise = objects.optimise

    def recorded(module: Any, *how: Any, **options: Any) -> None:
        optimise(module, *how, **options)
        texts.append(str(module))

    monkeypatch.setattr(objects, "optimise", recorded)
    function = load(source).total_exponential
    with numba_backend.compilation() as compilation:
        bundle = compilation.begin(function, (array(),), CompileOptions(), "entry")()
    assert re.search(r"= fmul .*<\d+ x double>", texts[0])
    assert re.search(r"call .*vector.reduce.fadd", texts[0])
    assert not [name for name in bundle.expected if not name.startswith(("Py", READ))]


SCRATCH = """
import numpy as np
def reverse(x):
    scratch = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        scratch[i] = x[x.shape[0] - 1 - i]
    for i in range(x.shape[0]):
        x[i] = scratch[i]
"""


@pytest.mark.parametrize("source", [SCRATCH, SCRATCH.replace("np.empty(x.shape[0])", "np.sqrt(x)")])
def test_what_kernels_do_not_consist_of_is_refused(source: str) -> None:
    """Here arrays of their own."""
    with pytest.raises(CompilationError, match="could not compile reverse") as raised:
        compiled(source, "reverse", array())
    assert "a kernel cannot call" in str(raised.value.__cause__)


def test_functions_that_share_a_function() -> None:
    source = """
def base(x, out, i):
    out[i] = x[i] + 1.0
    return out[i]

def left(x, out, i):
    return base(x, out, i) * 2.0, 1

def right(x, out, i):
    return base(x, out, i) * 3.0

def both(x, out):
    total = 0.0
    for i in range(x.shape[0]):
        value, count = left(x, out, i)
        total += value + count + right(x, out, i)
    return total

def one(x, out):
    return left(x, out, 0)
"""
    x, out = np.arange(3.0), np.empty(3)
    assert compiled(source, "both", array(), array())(x, out) == 33.0
    np.testing.assert_array_equal(out, x + 1)
    assert compiled(source, "one", array(), array())(x, out) == (2.0, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vector_math_compiled_and_uncompiled(dtype: str) -> None:
    source = """
from pullback.codegen.vector_math import exp, tanh
def apply(x, out):
    for i in range(x.shape[0]):
        out[i] = exp(tanh(x[i])) + exp(-x[i])
"""
    module = load(source)
    x = np.linspace(-4, 4, 33, dtype=dtype)
    out, expected = np.empty_like(x), np.empty_like(x)
    compile_function(module, "apply", (array(dtype),) * 2)(x, out)
    module.apply(x, expected)
    np.testing.assert_allclose(out, expected, rtol=4 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(out, np.exp(np.tanh(x)) + np.exp(-x), rtol=8 * float(np.finfo(dtype).eps))


# --- Matrix products --------------------------------------------------------------------------------------

GEMM = """
from pullback.codegen.blas import gemm

def product(a, b, out):
    gemm(1.0, a, b, 0.0, out)

def accumulated(a, b, out):
    gemm(-2.0, a, b, 0.5, out)

def batched(a, b, out):
    for i in range(out.shape[1]):
        gemm(1.0, a[:, i], b[i].T, 0.0, out[:, i])
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("left", ["C", "F"])
@pytest.mark.parametrize("right", ["C", "F"])
def test_gemm_of_matrices(dtype: str, left: Literal["C", "F"], right: Literal["C", "F"]) -> None:
    types = array(dtype, 2, left), array(dtype, 2, right), array(dtype, 2)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 4)).astype(dtype, order=left)
    b = rng.standard_normal((4, 5)).astype(dtype, order=right)
    out = np.full((3, 5), np.nan, dtype)
    compiled(GEMM, "product", *types)(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-6)
    compiled(GEMM, "accumulated", *types)(a, b, out)
    np.testing.assert_allclose(out, -1.5 * (a @ b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1)])
def test_gemm_of_parts_of_arrays(shape: tuple[int, int, int]) -> None:
    """Each matrix in place: none is copied, whatever its strides, and nothing else is written."""
    rows, summed, columns = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, 2, summed)), rng.standard_normal((2, columns, summed))
    out = np.zeros((rows, 2, columns))
    compiled(GEMM, "batched", *(array(ndim=3),) * 3)(a, b, out)
    np.testing.assert_allclose(out, np.einsum("aik,ick->aic", a, b), rtol=1e-12, atol=1e-13)


def test_gemm_writes_into_no_transposed_view() -> None:
    """Of one BLAS would take the columns for rows, and write past its end."""
    types = array(ndim=2), array(ndim=2), array(ndim=2, layout="F")
    with pytest.raises(CompilationError) as raised:
        compiled(GEMM, "product", *types)
    assert "gemm writes by row" in str(raised.value.__cause__)


def test_gemm_uncompiled() -> None:
    a, b, out = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.ones((2, 4), "f4")
    module = load(GEMM)
    module.accumulated(a.astype("f4"), b.astype("f4"), out)
    np.testing.assert_array_equal(out, 0.5 - 2.0 * (a @ b))
    module.product(a, b, out := np.full((2, 4), np.nan))
    np.testing.assert_array_equal(out, a @ b)


LOADS_BLAS = """
import sys
from pullback.tracer import lapack
lapack.address_of("cython_blas", "dgemm")
assert "scipy.linalg" not in sys.modules
import numpy, scipy.linalg, scipy.linalg.cython_blas
assert scipy.linalg.cython_blas is lapack.cython_module("cython_blas")
assert scipy.linalg.solve(numpy.eye(2), numpy.ones(2)).sum() == 2
"""


@pytest.mark.drawn(6)
def test_blas_is_found_without_scipy_linalg() -> None:
    """And whoever imports that later finds it whole."""
    subprocess.run([sys.executable, "-c", LOADS_BLAS], check=True)


def test_what_a_kernel_raises_reaches_python() -> None:
    source = "def refuse(x):\n    if x[0] > 0:\n        raise ValueError('positive')\n"
    function = compiled(source, "refuse", array())
    function(-np.ones(1))
    with pytest.raises(ValueError, match="positive"):
        function(np.ones(1))


# --- Arguments that do not fit ----------------------------------------------------------------------------


WRONG = [
    None,
    1.0,
    [1.0, 2.0],
    np.ones(4, np.float32),
    np.ones(4, np.int64),
    np.ones(4, ">f8" if sys.byteorder == "little" else "<f8"),
    np.ones((2, 2)),
    np.ones(8)[::2],
    np.frombuffer(bytes(33), np.int8)[1:].view(np.float64),
    np.ma.ones(4),
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_wrong_array_is_refused(wrong: Any) -> None:
    function = compiled(CHAIN, "chain", *(array(),) * 3)
    right = np.ones(4)
    with pytest.raises(
        TypeError, match=r"chain\(\) argument 2 must be a C-contiguous float64 array of rank 1"
    ):
        function(right, wrong, right.copy())


def test_a_wrong_array_among_many_is_refused() -> None:
    names = [f"x_{number}" for number in range(19)]
    lines = [f"    {name}[0, i] = {name}[1, i] + {name}.shape[1]" for name in names]
    source = f"def many({', '.join(names)}):\n  for i in range(4):\n" + "\n".join(lines) + "\n"
    function = compiled(source, "many", *(array(ndim=2),) * len(names))
    arrays = [np.arange(8.0).reshape(2, 4) + number for number in range(len(names))]
    function(*arrays)
    for number, one in enumerate(arrays):
        np.testing.assert_array_equal(one[0], np.arange(4.0, 8.0) + number + 4)
    for wrong in (*(one for one in WRONG if getattr(one, "ndim", 0) != 2), np.ones((4, 2)).T):
        for place in (0, len(names) - 1):
            with pytest.raises(TypeError, match=rf"many\(\) argument {place + 1} must be"):
                function(*arrays[:place], wrong, *arrays[place + 1 :])


def test_a_wrong_number_of_arguments_or_scalar_is_refused() -> None:
    function = compiled(CHAIN, "chain", *(array(),) * 3)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        function(np.ones(4))
    with pytest.raises(TypeError):
        function(x=np.ones(4))
    source = "def scale(x, factor, count):\n    x[0] *= factor * count\n"
    function = compiled(source, "scale", array(), scalar("float64"), scalar("int64"))
    with pytest.raises(TypeError):
        function(np.ones(1), "two", 1)
    with pytest.raises(TypeError):
        function(np.ones(1), 2.0, 1.5)
    with pytest.raises(OverflowError):
        function(np.ones(1), 2.0, 2**64)


# --- Failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "def broken(x):\n    return undefined_name(x)\n",
        "def broken(x):\n    x[0] = 'text'\n",
        "def broken(x):\n    return x\n",
        "def broken(x):\n    yield x[0]\n",
    ],
)
def test_a_failure_names_the_file_and_keeps_the_cause(source: str) -> None:
    module = load(source)
    with pytest.raises(CompilationError) as caught:
        compile_function(module, "broken", (array(),))
    assert str(module.__file__) in str(caught.value)
    assert "float64 array of rank 1" in str(caught.value)
    assert caught.value.__cause__ is not None


# --- Once in a process, once on a machine -----------------------------------------------------------------


def test_the_same_request_is_compiled_once() -> None:
    module = load(CHAIN)
    function = compile_function(module, "chain", (array(),) * 3)
    assert compile_function(module, "chain", (array(),) * 3) is function
    assert compile_function(module, "chain", (array("float32"),) * 3) is not function
    assert compile_function(module, "chain", (array(),) * 3, CompileOptions(frozenset())) is not function


def test_threads_may_compile_at_once() -> None:
    module = load(CHAIN.replace("HALF = 0.5", "HALF = 0.25"))
    found: list[Callable[..., Any]] = []
    threads = [
        threading.Thread(target=lambda: found.append(compile_function(module, "chain", (array(),) * 3)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(map(id, found))) == 1


def test_other_threads_run_while_a_kernel_works() -> None:
    source = """
from pullback.codegen.vector_math import cos
def iterate(x, rounds):
    for _ in range(rounds):
        for i in range(x.shape[0]):
            x[i] = cos(x[i])
"""
    function = compiled(source, "iterate", array(), scalar("int64"))
    x = np.ones(10_000)
    times: list[float] = []

    def work() -> None:
        times.append(time.monotonic())
        function(x, 5_000)  # half a second, more or less
        times.append(time.monotonic())

    kernel = threading.Thread(target=work)
    kernel.start()
    seen = []
    while kernel.is_alive():
        seen.append(time.monotonic())
        time.sleep(0.001)
    begin, end = times
    assert any(0.75 * begin + 0.25 * end < moment < 0.25 * begin + 0.75 * end for moment in seen)


PROGRAM = f"""
import sys
import numpy as np
from pullback.codegen.machine import store
from pullback.codegen.machine.compile import compile_function
from pullback.codegen.machine.kernel_types import ArrayType

module = store.load_module(store.write_module({CHAIN!r}, "test"))
function = compile_function(module, "chain", (ArrayType(np.dtype("float64"), 1, "C"),) * 3)
x, out = np.ones(5), np.empty(5)
print(function(x, x, out), "numba" in sys.modules)
"""


def run_in_a_new_process(folder: Path, count: int = 1, warning: str = "") -> list[str]:
    """What PROGRAM prints in `count` processes at once, with `folder` as its cache; and the `warning`."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PULLBACK_CACHE_DIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    printed = []
    for process in processes:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        assert warning in errors if warning else errors == ""
        printed.append(output)
    return printed


@pytest.mark.drawn(6)
def test_a_new_process_loads_the_code_without_numba(tmp_path: Path) -> None:
    """Numba absent from sys.modules: neither its type inference nor its lowering can have run."""
    value, compiled_here = run_in_a_new_process(tmp_path)[0].split()
    assert compiled_here == "True"
    assert run_in_a_new_process(tmp_path) == [f"{value} False\n"]


@pytest.mark.drawn(6)
def test_damaged_code_is_made_again(tmp_path: Path) -> None:
    first = run_in_a_new_process(tmp_path)
    (entry,) = tmp_path.glob("**/test*.bin")
    entry.write_bytes(entry.read_bytes()[:-100])
    assert run_in_a_new_process(tmp_path, warning="is damaged") == first
    assert run_in_a_new_process(tmp_path) == [first[0].replace("True", "False")]


@pytest.mark.drawn(6)
def test_processes_may_compile_the_same_kernel_at_once(tmp_path: Path) -> None:
    values = [line.split()[0] for line in run_in_a_new_process(tmp_path, count=3)]
    assert len(set(values)) == 1
    assert len(list(tmp_path.glob("**/test*.bin"))) == 1
    assert not list(tmp_path.glob("**/*.tmp"))


def test_the_compilers_own_text_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = loading.environment()
    read_bytes = Path.read_bytes
    for changed in ("compile.py", "loading.py", "staged.py"):
        loading.environment.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(
                Path,
                "read_bytes",
                lambda path, name=changed: read_bytes(path) + name.encode() * (path.name == name),
            )
            assert loading.environment() != before
    loading.environment.cache_clear()
