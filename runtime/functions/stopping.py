"""Values that derivatives take for constants."""

from __future__ import annotations

from typing import Any

from ...tracer.ops import elementwise as e
from ..tape.apply import apply
from ..values.flatten import flatten, is_container, unflatten
from ..values.tensor import Tensor

__all__ = ["stop_gradient"]


def stop_gradient(value: Any) -> Any:
    """The same value, which derivatives take for a constant.

    So `float(stop_gradient(x))` in a function that `grad` differentiates is the number alone.

    Args:
        value: a tensor, an array, a number, or lists, tuples, dicts, namedtuples and dataclasses of these.
            What else is in them stays as it is.

    Returns:
        Of a tensor a copy; of a structure one like it. Arrays and numbers have no gradient: themselves.

    Example:
        >>> grad(lambda x: x * stop_gradient(x))(3.0)
        np.float64(3.0)
    """
    if isinstance(value, Tensor):
        return apply(e.stop_gradient, value)
    if not is_container(value):
        return value
    leaves, structure = flatten(value)
    return unflatten(structure, [stop_gradient(one) if isinstance(one, Tensor) else one for one in leaves])
