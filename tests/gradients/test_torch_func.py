"""torch.func, torch.autograd.graph, forward_ad and anomaly mode: small programs, run on PyTorch as well."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

Program = Callable[[Any], Any]
X = np.random.default_rng(0).normal(size=(4, 3))
W = np.random.default_rng(1).normal(size=3)


def saved(lib: Any) -> Any:
    """Hooks see what is saved, and what they give back is used."""
    seen = []
    x = lib.tensor(X, requires_grad=True)

    def pack(one: Any) -> Any:
        seen.append(tuple(one.shape))
        return one.detach().numpy()

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda array: 2 * lib.tensor(array)):
        y = (x * x).sum()
    y.backward()
    return x.grad, lib.tensor(float(len(seen)))


def nan_found(lib: Any) -> Any:
    x = lib.tensor([0.0], requires_grad=True)
    with lib.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values in its 0th"):
        (lib.sqrt(x) * 0).sum().backward()
    return lib.tensor(1.0)


def dual(lib: Any) -> Any:
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(lib.tensor(W), lib.tensor(X[0]))
        y = lib.sin(x) * 2
        plain = fw.unpack_dual(lib.tensor(W)).tangent
        return fw.unpack_dual(y).primal, fw.unpack_dual(y).tangent, lib.tensor(float(plain is None))


def batched_cotangents(lib: Any) -> Any:
    x = lib.tensor(W, requires_grad=True)
    return lib.autograd.grad(x**3, x, lib.eye(3, dtype=lib.float64), is_grads_batched=True)


def cube(x: Any) -> Any:
    return (x**3).sum()


PROGRAMS: dict[str, Program] = {
    "vmap": lambda lib: lib.func.vmap(lambda a, b: a @ b, in_dims=(0, None))(lib.tensor(X), lib.tensor(W)),
    "vmap over columns": lambda lib: lib.func.vmap(lambda a: (a.sum(), a * 2), 1, (0, 1))(lib.tensor(X)),
    "vmap of a dict": lambda lib: lib.func.vmap(lambda d: d["x"] * d["w"], ({"x": 0, "w": None},))(
        {"x": lib.tensor(X), "w": lib.tensor(W)}
    ),
    "vmap of vmap": lambda lib: lib.vmap(lib.vmap(lambda a: a**2), out_dims=1)(lib.tensor(X)),
    "gradients of samples": lambda lib: lib.vmap(
        lib.func.grad(lambda w, x: lib.tanh(x @ w)), in_dims=(None, 0)
    )(lib.tensor(W), lib.tensor(X)),
    "grad_and_value": lambda lib: lib.func.grad_and_value(cube)(lib.tensor(W)),
    "grad_and_value, aux": lambda lib: lib.func.grad_and_value(lambda x: (cube(x), x), has_aux=True)(
        lib.tensor(W)
    ),
    "grad, aux": lambda lib: lib.func.grad(lambda x: (cube(x), x * 2), has_aux=True)(lib.tensor(W)),
    "jacrev": lambda lib: lib.func.jacrev(lambda x: x**2, chunk_size=2)(lib.tensor(W)),
    "jacfwd": lambda lib: lib.func.jacfwd(lambda x: x**2, randomness="same")(lib.tensor(W)),
    "hessian": lambda lib: lib.func.hessian(cube)(lib.tensor(W)),
    "hessians": lambda lib: lib.vmap(lib.func.hessian(cube))(lib.tensor(X)),
    "vjp": lambda lib: lib.func.vjp(lambda x: x**2, lib.tensor(W))[1](lib.tensor(X[0])),
    "jvp": lambda lib: lib.func.jvp(lambda x: x**2, (lib.tensor(W),), (lib.tensor(X[0]),)),
    "linearize": lambda lib: lib.func.linearize(lambda x: x**2, lib.tensor(W))[1](lib.tensor(X[0])),
    "saved_tensors_hooks": saved,
    "detect_anomaly": nan_found,
    "forward_ad": dual,
    "is_grads_batched": batched_cotangents,
}


def flat(value: Any) -> list[Any]:
    return [leaf for one in value for leaf in flat(one)] if isinstance(value, tuple | list) else [value]


@pytest.mark.drawn(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_what_pytorch_does(name: str) -> None:
    torch = pytest.importorskip("torch")
    found, wanted = (flat(PROGRAMS[name](lib)) for lib in (pb, torch))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-10)


def test_vmap_is_a_loop_in_compiled_code() -> None:
    def loss(w: Any, x: Any) -> Any:
        return pb.vmap(lambda row: pb.tanh(row @ w))(x).sum()

    wanted = pb.value_and_grad(loss)(W, X)
    for one, other in zip(pb.value_and_grad(pb.compile(loss))(W, X), wanted):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("in_dims", [0, (0,)])
def test_vmap_leaves_defaults_as_they_are(in_dims: Any) -> None:
    """Compiled too: an array among them is no batch, though it is as long as one."""
    weights = np.arange(3.0)

    def weighed(x: Any, w: Any = weights, *, power: int = 1) -> Any:
        return x * w**power

    rows = np.arange(9.0).reshape(3, 3)
    mapped = pb.vmap(weighed, in_dims)
    for one in (mapped, pb.compile(mapped), pb.vmap(pb.compile(weighed), in_dims)):
        np.testing.assert_array_equal(one(rows), rows * weights)
        np.testing.assert_array_equal(one(rows, power=2), rows * weights**2)
        np.testing.assert_array_equal(one(rows, w=rows), rows * rows)  # what is named is a batch


def test_what_vmap_says() -> None:
    with pytest.raises(pb.errors.ArgumentError, match="no argument is mapped over"):
        pb.vmap(lambda x: x, in_dims=None)(pb.ones(2))
    with pytest.raises(pb.errors.ShapeError, match=r"same size in the mapped dimension, got sizes \[2, 3\]"):
        pb.vmap(lambda x, y: x)(pb.ones(2), pb.ones(3))
    with pytest.raises(pb.errors.ArgumentError, match="one for each of the 2 arguments"):
        pb.vmap(lambda x, y: x, in_dims=(0,))(pb.ones(2), pb.ones(2))


def test_anomaly_mode_names_the_line_and_ends() -> None:
    x = pb.tensor([0.0], requires_grad=True)
    with pb.autograd.detect_anomaly():
        assert pb.is_anomaly_enabled()
        y = pb.sqrt(x) * 0
        with pytest.raises(pb.errors.GradientError, match=r"SqrtBackward0.*y = pb.sqrt\(x\)"):
            y.sum().backward()
    assert not pb.is_anomaly_enabled()
    pb.sqrt(x).sum().backward()


def test_saved_tensors_can_be_refused() -> None:
    graph = pb.autograd.graph
    refused = pytest.raises(pb.errors.GradientError, match="not here")
    with graph.disable_saved_tensors_hooks("not here"), refused, graph.save_on_cpu():
        pass


def test_second_gradients_through_packed_values() -> None:
    x = pb.tensor([2.0], requires_grad=True)
    with pb.autograd.graph.save_on_cpu():
        y = x**3
    (first,) = pb.autograd.grad(y, x, create_graph=True)
    assert pb.autograd.grad(first, x)[0].item() == 12


def test_second_derivatives_of_several_results_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")

    def cubes(parts: dict[str, Any]) -> dict[str, Any]:
        return {"each": parts["u"] ** 3, "sum": (parts["u"].sum() * parts["v"]).sum() ** 2}

    given = {"u": [1.0, 2.0], "v": [0.5]}
    expected = torch.func.hessian(cubes)({name: torch.tensor(one) for name, one in given.items()})
    tensors = {name: pb.tensor(one) for name, one in given.items()}
    for function in (pb.func.hessian(cubes), pb.compile(pb.func.hessian(cubes))):
        found = function(tensors)
        for result, one, other in itertools.product(("each", "sum"), "uv", "uv"):
            np.testing.assert_allclose(
                found[result][one][other].numpy(), expected[result][one][other].numpy(), rtol=1e-6
            )
