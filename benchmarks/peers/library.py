"""What a workload may ask of a library, and the names that its array namespace has."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..workload import NotOffered, Workload

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]
Call = Callable[[], Any]

_NUMPY_NAMES = """
    abs sign floor square sqrt exp expm1 exp2 log log1p log2 sin cos tan arcsin arccos arctan arctan2
    sinh cosh tanh hypot power maximum minimum clip where logaddexp isfinite real imag conj
    sum mean prod max min var std cumsum argmax argmin
    reshape ravel transpose swapaxes moveaxis expand_dims squeeze broadcast_to
    concatenate stack pad roll flip tile repeat take take_along_axis tril triu diagonal trace diff
    zeros ones full zeros_like ones_like arange eye asarray
    matmul dot einsum outer tensordot
    float32 float64 int64 pi
"""
NUMPY_NAMES = tuple(_NUMPY_NAMES.split())
"""Functions of NumPy that `xp` has, with NumPy's arguments."""

LINALG_NAMES = ("solve", "inv", "det", "slogdet", "cholesky", "norm", "eigh", "eigvals")
"""Functions of `xp.linalg`."""

FFT_NAMES = ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2")
"""Functions of `xp.fft`, with one argument: the last axis, or the last two."""

_SPECIAL_NAMES = "erf gammaln digamma sigmoid softplus relu logsumexp softmax log_softmax cross_entropy"
SPECIAL_NAMES = tuple(_SPECIAL_NAMES.split())
"""Functions of `xp` that NumPy lacks: `logsumexp(x, axis, keepdims)`, `softmax(x, axis)`,
`log_softmax(x, axis)`, `cross_entropy(logits, labels)`, which is the mean over rows of minus the
log-probability of an integer label; the others have one argument."""


class Library:
    """One library, in a process of its own. `xp` is its array namespace."""

    package: str
    gradient = True
    """False for those that only compute the value."""
    counts = True
    """Whether it can be the best peer."""
    xp: Any

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        """Settings that depend on the workload, before anything else is asked."""

    @classmethod
    def installed(cls) -> bool:
        return importlib.util.find_spec(cls.package) is not None

    # --- what programs are made of ----------------------------------------------------------------------

    def asarray(self, array: np.ndarray) -> Any:
        """The library's own array."""
        return array

    def to_numpy(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def compile(self, function: Function) -> Function:
        """The function, as fast as the library makes it; libraries without a compiler leave it as it is."""
        return function

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        """The compiled function that gives (value, gradient), or a tuple of gradients for one of argnums."""
        raise NotOffered(f"{self.package} computes no gradients.")

    def grad(self, function: Function, argnums: Argnums = 0) -> Function:
        """The compiled function that gives the gradient."""
        both = self.value_and_grad(function, argnums)
        return lambda *arguments: both(*arguments)[1]

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        """The compiled function of the arguments and a vector: (value, gradient, Hessian times vector).

        The Hessian is with respect to the argument at `argnum`. Where it is diagonal, its product with ones
        is the diagonal.
        """
        raise NotOffered(f"{self.package} computes no products with Hessians.")

    # --- what the harness asks --------------------------------------------------------------------------

    def arguments(self, workload: Workload, inputs: Sequence[np.ndarray]) -> list[Any]:
        """The inputs as the library's arrays, ready to be called with."""
        return [self.asarray(one) for one in inputs]

    def bind(self, function: Function, arguments: Sequence[Any]) -> Call:
        """What is timed: it returns when the results are there."""
        return partial(function, *arguments)

    def prepare(self, workload: Workload, arguments: Sequence[Any]) -> Call:
        return self.bind(workload.program_for(self.name())(self), arguments)

    def release(self) -> None:
        """Give memory back that the library keeps for the next call."""

    @classmethod
    def name(cls) -> str:
        """As in PEERS."""
        from . import PEERS

        return next(name for name, library in PEERS.items() if library is cls)


def namespace_of(module: Any, **functions: Any) -> SimpleNamespace:
    """An `xp` of a module that has NumPy's names, and functions that it lacks."""
    found = {name: getattr(module, name) for name in NUMPY_NAMES if hasattr(module, name)}
    linalg = {name: getattr(module.linalg, name) for name in LINALG_NAMES if hasattr(module.linalg, name)}
    fft = {name: getattr(module.fft, name) for name in FFT_NAMES} if hasattr(module, "fft") else {}
    spaces = {"linalg": SimpleNamespace(**linalg), "fft": SimpleNamespace(**fft)}
    return SimpleNamespace(**{**found, **spaces, **functions})


def positions(argnums: Argnums) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else argnums


def as_asked(gradients: Iterable[Any], argnums: Argnums) -> Any:
    """One gradient for one position, a tuple for a tuple."""
    gradients = tuple(gradients)
    return gradients[0] if isinstance(argnums, int) else gradients
