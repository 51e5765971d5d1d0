"""The libraries in `benchmarks/peers/`: NumPy's names mean what they mean in NumPy; gradients are right."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine import memory
from pullback.tracer.spec import Spec

sys.path.append(str(Path(__file__).parents[2]))  # behind an installed pullback

from eager_library import Eager, results_of

from benchmarks.agreement import differences
from benchmarks.peers import NATIVE, PEERS
from benchmarks.peers.library import LINALG_NAMES, NUMPY_NAMES, SPECIAL_NAMES
from benchmarks.worker import flat
from benchmarks.workload import NotOffered, Workload
from benchmarks.workloads import WORKLOADS


class Arrays(NamedTuple):
    a: Any
    b: Any
    square: Any
    labels: Any


ARRAYS = Arrays(
    a=np.array([[0.3, -0.7, 0.2], [0.9, 0.4, -0.1]]),
    b=np.array([[0.5, 0.1, -0.3], [0.2, 0.8, 0.6]]),
    square=np.array([[2.0, 0.5, 0.1], [0.5, 1.5, 0.2], [0.1, 0.2, 1.0]]),
    labels=np.array([2, 0]),
)

EXAMPLES = {
    **dict.fromkeys(["abs", "sign", "floor", "square", "isfinite"], lambda f, x: f(x.a)),
    **dict.fromkeys(["exp", "expm1", "exp2", "sin", "cos", "tan"], lambda f, x: f(x.a)),
    **dict.fromkeys(["arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"], lambda f, x: f(x.a)),
    **dict.fromkeys(["sqrt", "log", "log1p", "log2"], lambda f, x: f(x.square)),
    **dict.fromkeys(["arctan2", "hypot", "logaddexp"], lambda f, x: f(x.a, x.b)),
    **dict.fromkeys(["maximum", "minimum"], lambda f, x: (f(x.a, x.b), f(x.a, 0.1), f(0.1, x.a))),
    **dict.fromkeys(["real", "imag", "conj"], lambda f, x: f(x.a + 1j * x.b)),
    "power": lambda f, x: f(x.square, 3.0),
    "clip": lambda f, x: f(x.a, -0.2, 0.4),
    "where": lambda f, x: f(x.a > 0.0, x.a, x.b),
    **dict.fromkeys(
        ["sum", "mean", "prod", "max", "min", "var", "std"],
        lambda f, x: (f(x.a), f(x.a, axis=1, keepdims=True)),
    ),
    **dict.fromkeys(["argmax", "argmin", "cumsum"], lambda f, x: f(x.a, axis=1)),
    "reshape": lambda f, x: f(x.a, (3, 2)),
    "ravel": lambda f, x: f(x.a),
    "transpose": lambda f, x: (f(x.a), f(x.a[None], (2, 0, 1))),
    "swapaxes": lambda f, x: f(x.a, 0, 1),
    "moveaxis": lambda f, x: f(x.a[None], 0, 2),
    "expand_dims": lambda f, x: f(x.a, 1),
    "squeeze": lambda f, x: f(x.a[None], axis=0),
    "broadcast_to": lambda f, x: f(x.a, (4, 2, 3)),
    "concatenate": lambda f, x: f([x.a, x.b], axis=1),
    "stack": lambda f, x: f([x.a, x.b], axis=1),
    "pad": lambda f, x: f(x.a, ((1, 0), (2, 3))),
    "roll": lambda f, x: f(x.a, 1, axis=1),
    "flip": lambda f, x: f(x.a, (0,)),
    "tile": lambda f, x: f(x.a, (2, 1)),
    "repeat": lambda f, x: f(x.a, 2, axis=1),
    "take": lambda f, x: f(x.a, x.labels, axis=1),
    "take_along_axis": lambda f, x: f(x.a, x.labels[:, None], axis=1),
    "tril": lambda f, x: f(x.square, -1),
    "triu": lambda f, x: f(x.square, 1),
    "diagonal": lambda f, x: f(x.square),
    "trace": lambda f, x: f(x.square),
    "diff": lambda f, x: f(x.a),
    "matmul": lambda f, x: f(x.a, x.square),
    "dot": lambda f, x: f(x.a, x.square),
    "einsum": lambda f, x: f("ij,kj->ik", x.a, x.b),
    "outer": lambda f, x: f(x.a[0], x.b[0]),
    "tensordot": lambda f, x: f(x.a, x.square, 1),
    **dict.fromkeys(["erf", "gammaln", "digamma", "sigmoid", "softplus", "relu"], lambda f, x: f(x.square)),
    "logsumexp": lambda f, x: (f(x.a, axis=1), f(x.a, axis=0, keepdims=True)),
    **dict.fromkeys(["softmax", "log_softmax"], lambda f, x: f(x.a, axis=1)),
    "cross_entropy": lambda f, x: f(x.a, x.labels),
    **dict.fromkeys(["inv", "det", "slogdet", "cholesky"], lambda f, x: f(x.square)),
    "eigh": lambda f, x: f(x.square)[0],
    "eigvals": lambda f, x: f(x.square).real,
    "solve": lambda f, x: f(x.square, x.a[0]),
    "norm": lambda f, x: f(x.a),
}
"""By the function's name, a call."""

CONSTANTS = {"zeros", "ones", "full", "zeros_like", "ones_like", "arange", "eye", "asarray"}
CONSTANTS |= {"float32", "float64", "int64", "pi"}


UNSUPPORTED = {"pullback": {"inv", "det", "slogdet", "cholesky", "solve", "eigh", "eigvals"}}


def library_of(peer, arrays=ARRAYS, workload=None):
    if not PEERS[peer].installed():
        pytest.skip(f"{peer} is not installed")
    library = PEERS[peer]()
    library.configure(workload, arrays)
    return library


def values(peer, names):
    """What the examples give, all in one function that the library compiles."""
    library = library_of(peer)

    def function(*arrays):
        return [_results(library.xp, name, Arrays(*arrays)) for name in names]

    if peer == "pullback":  # the tape has the same front and takes less time
        found = function(*map(pb.from_numpy, ARRAYS))
        return [[np.asarray(one) for one in results] for results in found]
    found = library.compile(function)(*map(library.asarray, ARRAYS))
    return [[library.to_numpy(one) for one in results] for results in found]


def _results(xp, name, arrays):
    found = EXAMPLES[name](getattr(xp.linalg if name in LINALG_NAMES else xp, name), arrays)
    return [*found] if isinstance(found, tuple) else [found]


def test_every_name_has_an_example():
    assert set(EXAMPLES) | CONSTANTS == {*NUMPY_NAMES, *SPECIAL_NAMES, *LINALG_NAMES}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("peer", ["pullback", "jax", "torch", "pytensor", "autograd"])
def test_names_mean_what_they_mean_in_numpy(peer):
    names = [name for name in EXAMPLES if name not in UNSUPPORTED.get(peer, ())]
    for name, found, expected in zip(names, values(peer, names), values("numpy-forward", names)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14, err_msg=name)


# --- transforms ---------------------------------------------------------------------------------------------


def quartic(x, y):
    return (x * x * x * x).sum() * y.sum()


@pytest.mark.drawn(4)
@pytest.mark.parametrize("peer", [name for name in PEERS if PEERS[name].counts])
def test_gradients_and_products_with_hessians(peer):
    x, y, vector = np.array([1.0, 2.0]), np.array([0.5, 0.25]), np.array([1.0, -1.0])
    library = library_of(peer, (x, y))
    if peer.startswith("torch-compile"):
        library.compile = lambda function: function  # it takes long, and the transforms are the same

    def computed(function, *arrays):
        return [library.to_numpy(one) for one in flat(function(*map(library.asarray, arrays)))]

    value, gradient, product = np.array(12.75), 3.0 * x**3, 9.0 * x**2 * vector
    expected = {
        "value_and_grad": ([value, gradient], computed(library.value_and_grad(quartic), x, y)),
        "argnums": (
            [value, gradient, np.full(2, 17.0)],
            computed(library.value_and_grad(quartic, (0, 1)), x, y),
        ),
        "grad": ([gradient], computed(library.grad(quartic), x, y)),
        "hvp": ([value, gradient, product], computed(library.value_grad_and_hvp(quartic), x, y, vector)),
    }
    for name, (wanted, found) in expected.items():
        assert len(found) == len(wanted), name
        for one, other in zip(found, wanted):
            np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)


# --- C ------------------------------------------------------------------------------------------------------


def _with_c():
    from benchmarks.peers.native import SOURCES

    for workload in WORKLOADS:
        if workload.make_small is not None and workload.name.startswith(tuple(SOURCES)):
            yield workload


@pytest.mark.drawn(4)
@pytest.mark.parametrize("workload", [pytest.param(one, id=one.name) for one in _with_c()])
def test_hand_written_gradients_agree(workload):
    if not PEERS[NATIVE].installed():
        pytest.skip("there is no gcc")
    results = {"eager": results_of(Eager(), workload), NATIVE: results_of(PEERS[NATIVE](), workload)}
    assert not differences(workload, workload.dtype(workload.small_inputs()), results)
    assert np.float64(5e-324) * 1.0 > 0, "subnormal numbers are numbers still"


def test_what_nobody_wrote_in_c_is_not_offered():
    with pytest.raises(NotOffered, match="in C"):
        library_of(NATIVE, ARRAYS, Workload("no-such", lambda rng: (), lambda xp: 0.0, (0,)))


# --- memory -------------------------------------------------------------------------------------------------


def test_release_gives_back_what_is_kept_for_the_next_call():
    memory.allocator(Spec((1 << 18,), np.dtype("float64")))()
    assert memory.kept_bytes() > 0
    library = PEERS["pullback"]()
    library.configure(None, ARRAYS)
    library.release()
    assert memory.kept_bytes() == 0
