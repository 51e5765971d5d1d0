"""PyTensor with its Numba linker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..workload import Workload
from .library import NUMPY_NAMES, Argnums, Function, Library, as_asked, positions


class PyTensor(Library):
    """Graphs are built and compiled by the first call, for its shapes."""

    package = "pytensor"

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        import pytensor
        import pytensor.tensor as pt

        self.pytensor, self.pt = pytensor, pt
        self.xp = pytensor_namespace()

    def compile(self, function: Function) -> Function:
        compiled: Function | None = None

        def call(*arguments: Any) -> Any:
            nonlocal compiled
            if any(isinstance(one, self.pytensor.graph.Variable) for one in arguments):
                return function(*arguments)  # inside of another function
            if compiled is None:
                compiled = self._compiled(function, arguments)
            return compiled(*arguments)

        return call

    def _compiled(self, function: Function, arguments: Sequence[Any]) -> Function:
        arrays = [np.asarray(one) for one in arguments]
        variables = [self.pt.tensor(dtype=one.dtype, shape=one.shape) for one in arrays]
        with shapes_as_numbers():
            results = function(*variables)
        outputs, rebuild = flattened(results)
        run = self.pytensor.function(
            variables, outputs, mode="NUMBA", trust_input=True, on_unused_input="ignore"
        )
        return lambda *arguments: rebuild(iter(run(*arguments)))

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        def value_and_gradient(*arguments: Any) -> Any:
            value = function(*arguments)
            gradients = self.pt.grad(value, [arguments[position] for position in positions(argnums)])
            return value, as_asked(gradients, argnums)

        return self.compile(value_and_gradient)

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        def all_three(*arguments: Any) -> Any:
            *arguments, vector = arguments
            value = function(*arguments)
            gradient = self.pt.grad(value, arguments[argnum])
            return value, gradient, self.pt.grad((gradient * vector).sum(), arguments[argnum])

        return self.compile(all_three)


@contextlib.contextmanager
def shapes_as_numbers() -> Iterator[None]:
    """Within: `x.shape` and `len(x)` are numbers where they are known, for losses that compute with them."""
    from pytensor.tensor.variable import _tensor_py_operators as operators

    symbolic = operators.shape

    def shape(self: Any) -> Any:
        known = self.type.shape
        return symbolic.fget(self) if None in known else known

    operators.shape = property(shape)
    operators.__len__ = lambda self: self.type.shape[0]
    try:
        yield
    finally:
        operators.shape = symbolic
        del operators.__len__


def flattened(results: Any) -> tuple[list[Any], Function]:
    """The variables in nested tuples and lists; a function that puts an iterator's values in their places."""
    if not isinstance(results, tuple | list):
        return [results], next
    parts = [flattened(one) for one in results]
    rebuilders = [rebuild for _, rebuild in parts]
    return [one for found, _ in parts for one in found], lambda values: tuple(
        rebuild(values) for rebuild in rebuilders
    )


def pytensor_namespace() -> SimpleNamespace:
    import pytensor.tensor as pt

    def cross_entropy(logits: Any, labels: Any) -> Any:
        log_probability = pt.special.log_softmax(logits, axis=1)
        return -pt.mean(log_probability[pt.arange(labels.shape[0]), labels])

    others = {
        "hypot": lambda a, b: pt.sqrt(a * a + b * b),
        "ravel": lambda x: x.flatten(),
        "float32": "float32",
        "float64": "float64",
        "int64": "int64",
        "pi": np.pi,
    }
    found = {name: getattr(pt, name) for name in NUMPY_NAMES if hasattr(pt, name)}
    return SimpleNamespace(
        **{**found, **others},
        linalg=pt.linalg,
        erf=pt.erf,
        gammaln=pt.gammaln,
        digamma=pt.digamma,
        sigmoid=pt.sigmoid,
        softplus=pt.softplus,
        relu=lambda x: pt.maximum(x, 0),
        logsumexp=pt.logsumexp,
        softmax=pt.special.softmax,
        log_softmax=pt.special.log_softmax,
        cross_entropy=cross_entropy,
    )
