"""Random values in place: `x.normal_()`, `x.uniform_()` and their kin, as NumPy's generators draw them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError
from ...tracer.spec import real_dtype
from ..functions.selections.assignment import copy_
from ..tensors.sampling import Generator, drawn
from ..values.asked import Asked
from ..values.tensor import Tensor

Draw = Callable[..., np.ndarray]
"""(NumPy's generator, shape, parameters ...) -> float64 numbers."""


def _filling(name: str, draw: Draw, doc: str, *, kinds: str = "f") -> Callable[..., Tensor]:
    """The method, of dtypes of these kinds; of complex numbers it draws both parts."""

    def fill(self: Tensor, *parameters: Any, generator: Generator | None = None, **named: Any) -> Tensor:
        dtype = self._value.dtype
        if dtype.kind not in kinds:
            raise DTypeError(f"{name}(): expected a floating point dtype, found {self.dtype}.")
        shape = tuple(self._value.shape)

        def values(rng: Any) -> np.ndarray:
            if dtype.kind == "c":
                pairs = np.asarray(draw(rng, (*shape, 2), dtype, *parameters, **named))
                return pairs.astype(real_dtype(dtype), copy=False).view(dtype)[..., 0]
            return np.asarray(draw(rng, shape, dtype, *parameters, **named)).astype(dtype, copy=False)

        return copy_(self, drawn(values, generator))

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = doc
    return fill


def _require(holds: bool, function: str, expected: str, found: Any) -> None:
    if not holds:
        raise ArgumentError(f"{function} expects {expected}, but found {found}")


def _normal(rng: Any, shape: Any, dtype: Any, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    _require(std >= 0, "normal_", "std >= 0.0", std)
    return rng.normal(mean, std * math.sqrt(0.5) if dtype.kind == "c" else std, shape)


def _uniform(rng: Any, shape: Any, dtype: Any, low: float = 0.0, high: float = 1.0, **named: float) -> Any:
    low, high = named.get("from", low), named.get("to", high)
    _require(low <= high, "uniform_", "from <= to", (low, high))
    return rng.uniform(low, high, shape)


def _exponential(rng: Any, shape: Any, dtype: Any, lambd: float = 1.0) -> np.ndarray:
    _require(lambd > 0, "exponential_", "lambda > 0.0", lambd)
    return rng.exponential(1.0 / lambd, shape)


def _geometric(rng: Any, shape: Any, dtype: Any, p: float) -> np.ndarray:
    _require(0 < p < 1, "geometric_", "p to be in (0, 1)", p)
    return rng.geometric(p, shape)


def _cauchy(rng: Any, shape: Any, dtype: Any, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
    _require(sigma > 0, "cauchy_", "sigma > 0.0", sigma)
    return median + sigma * rng.standard_cauchy(shape)


def _log_normal(rng: Any, shape: Any, dtype: Any, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
    _require(std > 0, "log_normal_", "std > 0.0", std)
    return rng.lognormal(mean, std, shape)


def _bernoulli(rng: Any, shape: Any, dtype: Any, p: Any = 0.5) -> np.ndarray:
    chance = Asked.numpy(p, force=True) if isinstance(p, Tensor) else p
    _require(bool(np.all((chance >= 0) & (chance <= 1))), "bernoulli_", "p to be in [0, 1]", p)
    return rng.random(shape) < chance


def _random(rng: Any, shape: Any, dtype: Any, first: int = 0, to: int | None = None, **named: int) -> Any:
    low, high = named.get("from", first), to
    if high is None and "from" not in named and first:
        low, high = 0, first
    if high is None:
        if dtype.kind == "f":
            high = 2 ** (np.finfo(dtype).nmant + 1) + 1
        else:
            high = 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + (dtype.itemsize < 8)
    _require(low < high, "random_", "'from' to be less than 'to'", (low, high))
    return rng.integers(low, high, shape)


ANY_KIND = "biuf"
"""The kinds of dtypes that hold real numbers."""

FILLS = {
    "normal_": _filling("normal_", _normal, "Fill with normal random numbers: mean, std.", kinds="fc"),
    "uniform_": _filling(
        "uniform_", _uniform, "Fill with random numbers, uniform in [from, to).", kinds="fc"
    ),
    "exponential_": _filling(
        "exponential_", _exponential, "Fill with exponential random numbers of rate lambd."
    ),
    "geometric_": _filling(
        "geometric_",
        _geometric,
        "Fill with the number of trials to a success of probability p.",
        kinds=ANY_KIND,
    ),
    "cauchy_": _filling(
        "cauchy_", _cauchy, "Fill with random numbers of the Cauchy distribution: median, sigma."
    ),
    "log_normal_": _filling(
        "log_normal_", _log_normal, "Fill with the exponentials of normal random numbers."
    ),
    "bernoulli_": _filling(
        "bernoulli_",
        _bernoulli,
        "Fill with 1 with probability p, else 0; p may be a tensor.",
        kinds=ANY_KIND,
    ),
    "random_": _filling("random_", _random, "Fill with random integers in [from, to).", kinds=ANY_KIND),
}
"""By the name of the method."""
