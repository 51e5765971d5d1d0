"""NumPy: the value alone. A floor for libraries that run operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..workload import NotOffered, Workload
from .library import Argnums, Call, Function, Library, namespace_of


class NumpyForward(Library):
    package = "numpy"
    gradient = False
    counts = False

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        import scipy.special as special

        self.xp = numpy_namespace(np, special)

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        """The value, and no gradients."""
        return lambda *arguments: (function(*arguments), ())

    def prepare(self, workload: Workload, arguments: Sequence[Any]) -> Call:
        if workload.program is not None:
            raise NotOffered("NumPy computes no gradients, which a program may need.")
        return super().prepare(workload, arguments)


def numpy_namespace(np: Any, special: Any) -> SimpleNamespace:
    """`xp` of NumPy and SciPy, or of modules like them."""

    def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        largest = np.max(x, axis=axis, keepdims=True)
        found = np.log(np.sum(np.exp(x - largest), axis=axis, keepdims=True)) + largest
        return found if keepdims else np.squeeze(found, axis=axis)

    def log_softmax(x: Any, axis: int = -1) -> Any:
        return x - logsumexp(x, axis=axis, keepdims=True)

    def softmax(x: Any, axis: int = -1) -> Any:
        weights = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return weights / np.sum(weights, axis=axis, keepdims=True)

    def cross_entropy(logits: Any, labels: Any) -> Any:
        return -np.mean(log_softmax(logits, 1)[np.arange(len(labels)), labels])

    return namespace_of(
        np,
        erf=special.erf,
        gammaln=special.gammaln,
        digamma=special.digamma,
        sigmoid=lambda x: 0.5 * (np.tanh(0.5 * x) + 1.0),
        softplus=lambda x: np.logaddexp(0.0, x),
        relu=lambda x: np.maximum(x, 0.0),
        logsumexp=logsumexp,
        softmax=softmax,
        log_softmax=log_softmax,
        cross_entropy=cross_entropy,
    )
