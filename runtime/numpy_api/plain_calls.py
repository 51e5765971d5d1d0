"""Calls of NumPy's functions, made again with plain arrays: how results lie, and whether `out` takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...tracer.graph import Node
from ...tracer.records import record
from ..bytecode.library_calls import public_name
from ..functions.common import array_dtype, fail, is_traced
from ..functions.selections.assignment import copy_
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor

ELEMENTWISE = (np.clip, np.round, np.around, np.fix, np.isposinf, np.isneginf)
"""Functions besides ufuncs whose `out` may have more dimensions than what is put there."""


@record
class Call:
    """A call of a function of NumPy's: what it gives of other values, to see how its results lie."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    keywords: Mapping[str, Any]
    places: tuple[int, ...] = ()
    """Where a result is among all that it gives."""

    def part(self, place: int) -> Call:
        return Call(self.function, self.arguments, self.keywords, (*self.places, place))

    def __call__(self, standing: Callable[[Any], np.ndarray]) -> np.ndarray:
        leaves, structure = flatten((list(self.arguments), dict(self.keywords)))
        plain = [standing(leaf._value) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        arguments, keywords = unflatten(structure, plain)
        with np.errstate(all="ignore"):
            found = self.function(*arguments, **keywords)
        for place in self.places:
            found = found[place]
        return np.asarray(found)


def written(
    result: Any, out: Any, call: Call, compute_in: Callable[..., Any] | None = None
) -> Any:
    """`out` with the result in it, if NumPy would put it there.

    Args:
        out: an array, or a tuple of as many as there are results, some of which may be None.
        call: the call of NumPy's function, without `out`.
        compute_in: the result in a `dtype`, of a function that computes in the dtype of `out`.

    Raises:
        ShapeError: `out` has not the shape of the result. DTypeError: it does not take the result's dtype.
    """
    if out is None:
        return result
    several = isinstance(result, tuple)
    results, places = (result, out) if several else ((result,), out if isinstance(out, tuple) else (out,))
    pairs = [(one, other) for one, other in zip(results, places) if other is not None]
    if any(_differ(one, other) for one, other in pairs):
        if call.function not in ELEMENTWISE and not isinstance(call.function, np.ufunc):
            _require_shapes(call, pairs)
        require_taken(call, out)
        if call.function is np.einsum:
            fail(UnsupportedError, "numpy.einsum: an out of another dtype is not supported on a Tensor.")
        wanted = None if several else _dtype(places[0])
        if compute_in is not None and wanted is not None and wanted != array_dtype(result):
            _require_castable(call, array_dtype(result), wanted)
            return written(compute_in(dtype=wanted), out, call)
    put = [one if other is None else _put(one, other, call) for one, other in zip(results, places)]
    return tuple(put) if several else put[0]


def _dtype(array: Any) -> np.dtype:
    return array_dtype(array) if isinstance(array, Tensor) else array.dtype


def _differ(result: Tensor, out: Any) -> bool:
    if not isinstance(out, Tensor | np.ndarray):
        return True
    return tuple(result.shape) != tuple(out.shape) or array_dtype(result) != _dtype(out)


def require_taken(call: Call, out: Any) -> None:
    """Raises what NumPy says of a call with `out`, made with an array of its shape and dtype."""
    outs = out if isinstance(out, tuple) else (out,)
    empty = [np.empty(tuple(one.shape), _dtype(one)) if _is_array(one) else one for one in outs]
    given = tuple(empty) if isinstance(out, tuple) else empty[0]
    try:
        Call(call.function, call.arguments, {**call.keywords, "out": given})(_plain)
    except (TypeError, ValueError) as error:
        kind = DTypeError if isinstance(error, TypeError) else ShapeError
        fail(kind, f"{public_name(call.function)}: {error}")


def _require_shapes(call: Call, pairs: Sequence[tuple[Any, Any]]) -> None:
    """ShapeError where the shapes differ: NumPy's `cumsum` does not ask, and writes beyond `out`."""
    for result, out in pairs:
        if _is_array(out) and tuple(out.shape) != tuple(result.shape):
            fail(
                ShapeError,
                f"{public_name(call.function)}: output array has the wrong shape: {tuple(out.shape)} instead "
                f"of {tuple(result.shape)}.",
            )


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)


def _plain(value: np.ndarray | Node) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else np.ones(tuple(map(int, value.shape)), value.dtype)


def _require_castable(call: Call, dtype: np.dtype, wanted: np.dtype) -> None:
    if not np.can_cast(dtype, wanted, "same_kind"):
        fail(
            UnsupportedError,
            f"{public_name(call.function)}: NumPy drops parts of {dtype} numbers between the steps, for an "
            f"out of {wanted}: not supported on a Tensor. Call it without out, and convert the result.",
        )


def _put(result: Tensor, out: Any, call: Call) -> Any:
    if isinstance(out, Tensor):
        return copy_(out, result)
    if is_traced(result) or result.requires_grad:
        kept = "a value of a trace" if is_traced(result) else "the gradient of the result"
        fail(
            ArgumentError,
            f"{public_name(call.function)}: `out` is an ndarray, which cannot hold {kept}. Call it without "
            "`out`, or with a Tensor for it; what a library computes of constants, compute before.",
        )
    np.copyto(out, result._value, casting="unsafe")
    return out
