"""The libraries: how each gets value and gradient of a loss, in the way that its users would write it.

A peer is made in a process of its own. `prepare` takes NumPy arrays and gives a function without arguments
that computes value and gradient of native arrays and returns when they are there.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

Loss = Callable[..., Any]
Call = Callable[[], tuple[Any, Sequence[Any]]]


class Peer:
    """One library. `gradient` is false for the floor: the value alone."""

    package: str
    gradient = True

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        """The timed function; it returns (value, gradients) as the library does."""
        raise NotImplementedError

    @classmethod
    def installed(cls) -> bool:
        return importlib.util.find_spec(cls.package) is not None


class Pullback(Peer):
    package = "pullback"

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        import pullback as pb

        return partial(pb.value_and_grad(pb.compile(partial(loss, pb)), argnums=argnums), *inputs)


class Jax(Peer):
    package = "jax"

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        import jax
        import jax.numpy as jnp

        def cross_entropy(logits: Any, labels: Any) -> Any:
            chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
            return -jnp.mean(chosen)

        xp = SimpleNamespace(
            cross_entropy=cross_entropy,
            exp=jnp.exp,
            mean=jnp.mean,
            softplus=jax.nn.softplus,
            sum=jnp.sum,
            tanh=jnp.tanh,
        )
        jax.config.update("jax_enable_x64", any(one.dtype == np.float64 for one in inputs))
        arrays = [jnp.asarray(one) for one in inputs]
        function = jax.jit(jax.value_and_grad(partial(loss, xp), argnums=argnums))
        return lambda: jax.block_until_ready(function(*arrays))


class Torch(Peer):
    """PyTorch as it comes, operator by operator."""

    package = "torch"

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        import torch

        function = self._compiled(partial(loss, torch_namespace()))
        tensors = [torch.from_numpy(one) for one in inputs]
        wanted = [tensors[position].requires_grad_() for position in argnums]

        def value_and_gradient() -> tuple[Any, Sequence[Any]]:
            value = function(*tensors)
            return value.detach(), torch.autograd.grad(value, wanted)

        return value_and_gradient

    def _compiled(self, loss: Loss) -> Loss:
        return loss


class TorchCompile(Torch):
    """`torch.compile` of the loss, then `torch.autograd.grad`."""

    def _compiled(self, loss: Loss) -> Loss:
        import torch

        torch._dynamo.reset()  # else it makes shapes dynamic from the second workload of a function on
        return torch.compile(loss, dynamic=False)


class TorchCompileFunctional(Peer):
    """`torch.compile` of `torch.func.grad_and_value` of the loss: one graph for both."""

    package = "torch"

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        import torch

        torch._dynamo.reset()
        tensors = [torch.from_numpy(one) for one in inputs]
        function = torch.compile(
            torch.func.grad_and_value(partial(loss, torch_namespace()), argnums=argnums), dynamic=False
        )

        def value_and_gradient() -> tuple[Any, Sequence[Any]]:
            gradients, value = function(*tensors)
            return value, gradients

        return value_and_gradient


def torch_namespace() -> SimpleNamespace:
    import torch
    from torch.nn import functional

    return SimpleNamespace(
        cross_entropy=functional.cross_entropy,
        exp=torch.exp,
        mean=torch.mean,
        softplus=functional.softplus,
        sum=torch.sum,
        tanh=torch.tanh,
    )


class PyTensor(Peer):
    package = "pytensor"

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        import pytensor
        import pytensor.tensor as pt

        def cross_entropy(logits: Any, labels: Any) -> Any:
            log_probability = pt.special.log_softmax(logits, axis=1)
            return -pt.mean(log_probability[pt.arange(labels.shape[0]), labels])

        xp = SimpleNamespace(
            cross_entropy=cross_entropy,
            exp=pt.exp,
            mean=pt.mean,
            softplus=pt.softplus,
            sum=pt.sum,
            tanh=pt.tanh,
        )
        variables = [pt.tensor(dtype=one.dtype, shape=one.shape) for one in inputs]
        value = loss(xp, *variables)
        gradients = pt.grad(value, [variables[position] for position in argnums])
        function = pytensor.function(variables, [value, *gradients], mode="NUMBA", trust_input=True)

        def value_and_gradient() -> tuple[Any, Sequence[Any]]:
            value, *gradients = function(*inputs)
            return value, gradients

        return value_and_gradient


class Autograd(Peer):
    """HIPS autograd: NumPy, operator by operator."""

    package = "autograd"

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        import autograd
        import autograd.numpy as anp

        function = autograd.value_and_grad(partial(loss, numpy_namespace(anp)), argnum=argnums)
        return partial(function, *inputs)


class NumpyForward(Peer):
    """The floor: NumPy, and the value alone."""

    package = "numpy"
    gradient = False

    def prepare(self, loss: Loss, inputs: Sequence[np.ndarray], argnums: tuple[int, ...]) -> Call:
        xp = numpy_namespace(np)
        return lambda: (loss(xp, *inputs), ())


def numpy_namespace(np: Any) -> SimpleNamespace:
    def cross_entropy(logits: Any, labels: Any) -> Any:
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        log_probability = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
        return -np.mean(log_probability[np.arange(len(labels)), labels])

    return SimpleNamespace(
        cross_entropy=cross_entropy,
        exp=np.exp,
        mean=np.mean,
        softplus=lambda z: np.logaddexp(0.0, z),
        sum=np.sum,
        tanh=np.tanh,
    )


OURS = "pullback"
PEERS: dict[str, type[Peer]] = {
    OURS: Pullback,
    "jax": Jax,
    "torch": Torch,
    "torch-compile": TorchCompile,
    "torch-compile-func": TorchCompileFunctional,
    "pytensor": PyTensor,
    "autograd": Autograd,
    "numpy-forward": NumpyForward,
}
