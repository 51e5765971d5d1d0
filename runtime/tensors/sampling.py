"""Random tensors. In a traced function they are inputs that each call draws anew."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...tracer.draw_order import DrawOrder
from ...tracer.errors import ArgumentError, DTypeError
from ...tracer.graph import Node
from ...tracer.ops.elementwise import multiply
from ...tracer.ops.movement import of_pairs
from ...tracer.spec import CONTINUOUS, INT64, broadcast_shapes, real_dtype
from ...tracer.trace import current_trace, is_tracing
from ..tape.apply import apply, refuse_complex
from ..values import dtypes
from ..values.tensor import Tensor, make
from .creation import dtype_or, finished, size_of


class Generator:
    """A stream of random numbers: NumPy's PCG64 under PyTorch's interface.

    Example:
        >>> generator = Generator().manual_seed(7)
        >>> generator.initial_seed()
        7
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`; returns the generator.

        Raises:
            ArgumentError: it is no number.
        """
        try:
            self._seed = int(seed)
        except (TypeError, ValueError):
            raise ArgumentError(f"manual_seed: an integer expected, found {seed!r}.") from None
        self.numpy = np.random.default_rng(self._seed % 2**64)
        return self

    def seed(self) -> int:
        """Start an unpredictable stream, and return its seed."""
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        self.manual_seed(entropy % 2**63)
        return self._seed

    def initial_seed(self) -> int:
        """The seed of the current stream."""
        return self._seed

    def get_state(self) -> dict[str, Any]:
        """The place in the stream, for `set_state`."""
        return {"seed": self._seed, "numpy": self.numpy.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue at a place that `get_state` returned."""
        self._seed = state["seed"]
        self.numpy.bit_generator.state = state["numpy"]


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the stream of the functions below anew: the same seed, the same numbers.

    They are not PyTorch's numbers: the streams differ.

    Example:
        >>> rand(2, generator=manual_seed(0)) == rand(2, generator=manual_seed(0))
        tensor([True, True])
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start an unpredictable stream, and return its seed.

    Example:
        >>> seed() == initial_seed()
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the current stream.

    Example:
        >>> _ = manual_seed(7)
        >>> initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state() -> dict[str, Any]:
    """The place in the stream, for `set_rng_state`.

    Example:
        >>> state = get_rng_state()
        >>> first = rand(2)
        >>> set_rng_state(state)
        >>> bool((rand(2) == first).all())
        True
    """
    return default_generator.get_state()


def set_rng_state(state: dict[str, Any]) -> None:
    """Continue at a place that `get_rng_state` returned.

    Example:
        >>> state = get_rng_state()
        >>> set_rng_state(state)
    """
    default_generator.set_state(state)


def drawn(draw: Callable[..., np.ndarray], generator: Generator | None, *parameters: Tensor) -> Tensor:
    """A tensor of random numbers; in a trace an input that every call draws, or a draw of code's.

    Args:
        draw: from NumPy's generator and the elements of the parameters.
    """
    source = default_generator if generator is None else generator

    def fresh(*arrays: np.ndarray) -> np.ndarray:
        return np.asarray(draw(source.numpy, *arrays))

    given = [one.payload for one in parameters]
    if not is_tracing():
        return make(fresh(*given))
    trace, order = current_trace(), DrawOrder()
    if not order.is_kept and not any(isinstance(one, Node) for one in given):
        return make(trace.capture_drawn(partial(fresh, *given), source))
    operands = [one if isinstance(one, Node) else trace.capture(one) for one in given]
    return make(order.draw(fresh, source, operands)[0])


def _floats(
    method: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype, generator: Generator | None
) -> Tensor:
    """What a method of NumPy's generators draws, which knows float32 and float64; complex numbers by parts.

    Of normal ones the whole has the variance 1.
    """
    if dtype.kind == "c":
        pairs = _floats(method, (*shape, 2), real_dtype(dtype), generator)
        share = math.sqrt(0.5) if method is np.random.Generator.standard_normal else 1.0
        return apply(of_pairs, apply(multiply, pairs, share))
    kind: Any = dtype if dtype.itemsize >= 4 else np.dtype("float32")
    return drawn(lambda rng: np.asarray(method(rng, shape, dtype=kind)).astype(dtype, copy=False), generator)


_uniform = partial(_floats, np.random.Generator.random)
_normal = partial(_floats, np.random.Generator.standard_normal)


def _float_dtype(dtype: Any, otherwise: np.dtype, function: str) -> np.dtype:
    numpy = dtype_or(dtype, otherwise, function)
    if numpy.kind not in CONTINUOUS:
        raise ArgumentError(
            f"{function}(): expected a floating point or complex dtype, found {numpy}. See randint."
        )
    return numpy


def _standard(
    function: str,
    draw: Callable[..., Tensor],
    extents: tuple[Any, ...],
    generator: Generator | None,
    dtype: Any,
) -> Tensor:
    return draw(size_of(extents, function), _float_dtype(dtype, dtypes.default_float(), function), generator)


def rand(
    *extents: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform in [0, 1).

    Example:
        >>> rand(2, 3).shape
        torch.Size([2, 3])
    """
    found = _standard("rand", _uniform, extents if size is None else (size,), generator, dtype)
    return finished(found, requires_grad, device)


def randn(
    *extents: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal with mean 0 and standard deviation 1.

    Example:
        >>> randn(2, 3).shape
        torch.Size([2, 3])
    """
    found = _standard("randn", _normal, extents if size is None else (size,), generator, dtype)
    return finished(found, requires_grad, device)


def randint(
    low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Integers in [low, high): `randint(10, (3,))` or `randint(5, 10, (3,))`.

    Raises:
        ArgumentError: no size, or low is not below high.

    Example:
        >>> randint(3, 4, (2,))
        tensor([3, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise ArgumentError("randint(): a size is missing: randint(high, size) or randint(low, high, size).")
    if low >= high:
        raise ArgumentError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    shape = size_of((size,), "randint")
    numpy = dtype_or(dtype, INT64, "randint")
    made = drawn(lambda rng: np.asarray(rng.integers(low, high, shape)).astype(numpy, copy=False), generator)
    return finished(made, requires_grad, device)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0 ... n - 1 in random order.

    Example:
        >>> randperm(4).sort().values
        tensor([0, 1, 2, 3])
    """
    numpy = dtype_or(dtype, INT64, "randperm")
    return finished(drawn(lambda rng: rng.permutation(n).astype(numpy), generator), requires_grad, device)


def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal with the given means and standard deviations: numbers with a size, or tensors.

    Example:
        >>> normal(5.0, 0.0, (2,))
        tensor([5., 5.])
    """
    given = [one for one in (mean, std) if isinstance(one, Tensor)]
    if size is None and not given:
        raise ArgumentError("normal(): a size is missing where neither mean nor std is a tensor.")
    shape = (
        size_of((size,), "normal") if size is not None else np.broadcast_shapes(*(one.shape for one in given))
    )
    otherwise = given[0]._value.dtype if given else dtypes.default_float()
    noise = _normal(tuple(shape), _float_dtype(dtype, otherwise, "normal"), generator)
    location, scale = (one._detached() if isinstance(one, Tensor) else one for one in (mean, std))
    return finished(noise * scale + location, requires_grad, device)


def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that `input` says, or with probability p, else 0; in its shape and dtype.

    Raises:
        ArgumentError: a probability that is not between 0 and 1, where it is known.
        DTypeError: `input` does not hold floats, and there is no p.

    Example:
        >>> bernoulli(Tensor([0.0, 1.0]))
        tensor([0., 1.])
    """
    chances = _known_chances(_floats_of(input, "bernoulli")) if p is None else np.asarray(p)
    if chances is not None:
        _require_chances(chances, "bernoulli")
    dtype = input._value.dtype if p is None else dtypes.default_float()
    noise = _uniform(tuple(input._value.shape), dtype, generator)
    return (noise < (input._detached() if p is None else p)).to(input.dtype)


def rand_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """Uniform in [0, 1), in the shape and dtype of another tensor; options as of `rand`.

    Example:
        >>> rand_like(zeros(2, 3)).shape
        torch.Size([2, 3])
    """
    return rand(tuple(input._value.shape), dtype=dtype or input.dtype, **options)


def randn_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """Standard normal, in the shape and dtype of another tensor; options as of `randn`.

    Example:
        >>> randn_like(zeros(2, 3)).shape
        torch.Size([2, 3])
    """
    return randn(tuple(input._value.shape), dtype=dtype or input.dtype, **options)


def randint_like(
    input: Tensor, low: int, high: int | None = None, *, dtype: Any = None, **options: Any
) -> Tensor:
    """Integers in [low, high), in the shape and dtype of another tensor; options as of `randint`.

    Example:
        >>> randint_like(zeros(2), 3, 4)
        tensor([3., 3.])
    """
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, tuple(input._value.shape), dtype=dtype or input.dtype, **options)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson random numbers with these rates, in the tensor's dtype.

    Raises:
        ArgumentError: a negative rate. DTypeError: rates that are no floats.

    Example:
        >>> poisson(Tensor([0.0]))
        tensor([0.])
    """
    return drawn(_poisson, generator, _floats_of(input, "poisson"))


def _poisson(rng: np.random.Generator, rates: np.ndarray) -> np.ndarray:
    if not (rates >= 0).all():
        raise ArgumentError("poisson(): invalid Poisson rate, expected rate to be non-negative")
    return np.asarray(rng.poisson(rates)).astype(rates.dtype)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`.

    Args:
        count, prob: floats, whose shapes broadcast; the result is in the dtype of `count`.

    Raises:
        ArgumentError: a negative number of trials, or a probability that is not between 0 and 1.
        DTypeError: operands that are no floats. ShapeError: the shapes do not broadcast.

    Example:
        >>> binomial(Tensor([3.0]), Tensor([1.0]))
        tensor([3.])
    """
    trials, chances = _floats_of(count, "binomial", "count"), _floats_of(prob, "binomial", "prob")
    broadcast_shapes(*(tuple(one._value.shape) for one in (trials, chances)), function="binomial")
    return drawn(_binomial, generator, trials, chances)


def _binomial(rng: np.random.Generator, trials: np.ndarray, chances: np.ndarray) -> np.ndarray:
    if not (trials >= 0).all():
        raise ArgumentError("binomial(): 'count' must not be negative")
    _require_chances(chances, "binomial")
    return np.asarray(rng.binomial(trials.astype(np.int64), chances)).astype(trials.dtype)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Positions drawn from each row with probabilities in the ratio of its elements.

    Args:
        replacement: whether a position may come up again.

    Raises:
        ArgumentError: weights that are negative, infinite or all zero, or fewer positions than samples.
        DTypeError: weights that are no floats.

    Example:
        >>> multinomial(Tensor([0.0, 1.0]), 3, replacement=True)
        tensor([1, 1, 1])
    """
    weights = _floats_of(input, "multinomial")
    return drawn(partial(_positions, num_samples, replacement), generator, weights)


def _positions(
    num_samples: int, replacement: bool, rng: np.random.Generator, given: np.ndarray
) -> np.ndarray:
    weights = given.astype(np.float64)
    rows = np.atleast_2d(weights)
    if weights.ndim not in (1, 2) or not (np.isfinite(rows).all() and (rows >= 0).all()):
        raise ArgumentError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    if not (rows.sum(-1) > 0).all() or num_samples < 1:
        raise ArgumentError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > rows.shape[-1]:
        raise ArgumentError(
            "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement: found "
            f"{num_samples} and {rows.shape[-1]}"
        )
    if replacement:
        bounds = np.cumsum(rows, -1)
        places = rng.random((len(rows), num_samples)) * bounds[:, -1:]
        found = np.stack([np.searchsorted(one, at, "right") for one, at in zip(bounds, places)])
    else:  # the largest of log(weight) + Gumbel noise, which is one way to draw without replacement
        with np.errstate(divide="ignore"):
            keys = np.log(rows) + rng.gumbel(size=rows.shape)
        found = np.argsort(-keys, axis=-1, kind="stable")[:, :num_samples]
    return found.reshape(*weights.shape[:-1], num_samples).astype(np.int64)


def _floats_of(x: Tensor, function: str, argument: str = "input") -> Tensor:
    """A parameter of a distribution."""
    x.refresh()
    if x.is_complex():
        refuse_complex(function)
    if not x.is_floating_point():
        raise DTypeError(
            f"{function} only supports floating-point dtypes for {argument}, found {x.dtype}. Convert it, "
            "e.g. with .float()."
        )
    return x


def _known_chances(x: Tensor) -> np.ndarray | None:
    """The probabilities, or None where they are not known yet."""
    return x._value if isinstance(x._value, np.ndarray) else None


def _require_chances(chances: np.ndarray, function: str) -> None:
    if not ((chances >= 0) & (chances <= 1)).all():
        raise ArgumentError(f"{function}(): probabilities must be between 0 and 1")
