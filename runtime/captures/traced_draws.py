"""Draws with traced arguments, as formulas of draws without: `rng.normal(mu, sigma)` is mu + sigma * z.

NumPy and Python compute these as written here (numpy/random/src/distributions, Lib/random.py), so a stream
gives what it gives plain code, and what is drawn has derivatives by the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..values.tensor import Tensor

Draw = Callable[..., Any]
"""(name of a method, *arguments, **options): what the stream draws, without traced arguments."""
Form = Callable[..., Any]
"""(draw, *arguments, **options) of a method -> what it gives."""


def _shape(size: Any, *arguments: Any) -> tuple[int, ...] | None:
    """How many numbers are drawn; None for one that is no array."""
    if size is not None:
        return (int(size),) if isinstance(size, int | np.integer) else tuple(size)
    return np.broadcast_shapes(*(tuple(np.shape(one)) for one in arguments)) or None


def _require(holds: Any, message: str) -> None:
    """Raise as NumPy does, unless something holds of all elements of an argument."""
    if not bool(np.all(holds)):
        raise ValueError(message)


def _of_location(standard: str, *options: float) -> Form:
    """loc + scale * z, where z is a standard draw."""

    def form(draw: Draw, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        _require(np.greater_equal(scale, 0), "scale < 0")
        return loc + scale * draw(standard, *options, size=_shape(size, loc, scale))

    return form


def _of_scale(standard: str, *options: float) -> Form:
    def form(draw: Draw, scale: Any = 1.0, size: Any = None) -> Any:
        _require(np.greater_equal(scale, 0), "scale < 0")
        return scale * draw(standard, *options, size=_shape(size, scale))

    return form


def _lognormal(draw: Draw, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    _require(np.greater_equal(sigma, 0), "sigma < 0")
    return np.exp(mean + sigma * draw("standard_normal", size=_shape(size, mean, sigma)))


def _uniform(draw: Draw, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    width = high - low
    _require(np.isfinite(width), "high - low range exceeds valid bounds")
    _require(np.greater_equal(width, 0), "low > high")
    return low + width * draw("random", size=_shape(size, low, high))


def _gamma(draw: Draw, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
    _require(np.greater_equal(scale, 0), "scale < 0")
    return scale * draw("standard_gamma", shape, size=_shape(size, shape, scale))


def _permutation(draw: Draw, x: Any, axis: int = 0) -> Any:
    if not np.ndim(x):
        return draw("permutation", x)
    return np.take(x, draw("permutation", x.shape[axis]), axis)


def _shuffle(draw: Draw, x: Any, axis: int = 0) -> None:
    x[...] = _permutation(draw, x, axis)


def _choice(draw: Draw, a: Any, size: Any = None, *arguments: Any, axis: int = 0, **options: Any) -> Any:
    if not np.ndim(a):
        return draw("choice", a, size, *arguments, **options)
    return np.take(a, draw("choice", a.shape[axis], size, *arguments, **options), axis)


def _permuted(draw: Draw, x: Any, *, axis: int | None = None) -> Any:
    places = draw("permuted", np.arange(np.size(x)).reshape(np.shape(x)), axis=axis)
    return x.reshape(-1)[places]


OF_NUMPY: Mapping[str, Form] = {
    "normal": _of_location("standard_normal"), "laplace": _of_location("laplace", 0.0, 1.0),
    "logistic": _of_location("logistic", 0.0, 1.0), "gumbel": _of_location("gumbel", 0.0, 1.0),
    "exponential": _of_scale("standard_exponential"), "rayleigh": _of_scale("rayleigh", 1.0),
    "lognormal": _lognormal, "uniform": _uniform, "gamma": _gamma, "permutation": _permutation,
    "permuted": _permuted, "shuffle": _shuffle, "choice": _choice,
}  # fmt: skip
"""By names of methods of Generator and RandomState."""


def _gauss(name: str) -> Form:
    return lambda draw, mu=0.0, sigma=1.0: mu + draw(name, 0.0, 1.0) * sigma


OF_PYTHON: Mapping[str, Form] = {
    "gauss": _gauss("gauss"), "normalvariate": _gauss("normalvariate"),
    "lognormvariate": lambda draw, mu=0.0, sigma=1.0: np.exp(mu + draw("normalvariate", 0.0, 1.0) * sigma),
    "uniform": lambda draw, a, b: a + (b - a) * draw("random"),
    "expovariate": lambda draw, lambd=1.0: draw("expovariate", 1.0) / lambd,
    "choice": lambda draw, seq: seq[draw("randrange", len(seq))],
}  # fmt: skip
"""By names of methods of random.Random."""


def form_of(method: Callable[..., Any]) -> Form | None:
    """How a method of a stream follows from draws without traced arguments; None if it does not."""
    stream, name = getattr(method, "__self__", None), method.__name__
    is_numpys = isinstance(stream, np.random.Generator | np.random.RandomState)
    return (OF_NUMPY if is_numpys else OF_PYTHON).get(name)


# --- into arrays ------------------------------------------------------------------------------------------

_PARAMETERS = {
    "random": ("size", "dtype", "out"), "standard_normal": ("size", "dtype", "out"),
    "standard_exponential": ("size", "dtype", "method", "out"),
    "standard_gamma": ("shape", "size", "dtype", "out"), "permuted": ("x",),
}  # fmt: skip
"""Of the methods that write into an array, by name: what is given by position."""


def array_to_fill(method: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The array that a draw writes into, its `out`; None if it writes into none."""
    names = _PARAMETERS.get(getattr(method, "__name__", ""))
    return None if names is None else dict(zip(names, arguments)).get("out", options.get("out"))


def fill(
    out: Tensor, draw: Draw, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> Tensor:
    """Draw as many numbers as a Tensor has, and write them into it, as a method with `out` does."""
    given: dict[str, Any] = {**dict(zip(_PARAMETERS[name], arguments)), **options}
    given.pop("out")
    if name == "permuted":
        out[...] = draw(given.pop("x"), **given)
        return out
    wanted = np.dtype(given.get("dtype", np.float64))
    if wanted != out.dtype:
        raise TypeError(
            f"Supplied output array has the wrong type. Expected {wanted}, got {np.dtype(out.dtype)}"
        )
    if given.get("size") is not None and _shape(given["size"]) != tuple(out.shape):
        raise ValueError("size must match out.shape when used together")
    first = [given.pop("shape")] if "shape" in given else []
    out[...] = draw(*first, **{**given, "size": tuple(out.shape)})
    return out
