"""`vmap`: a function of one example for a batch of them, as a loop over the batch (`scan`).

Where it is compiled, the loop is machine code; where it is not, Python runs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, OutputError, ShapeError
from ...tracer.trace import is_tracing
from ...tracer.users_frames import show_users_frames
from ..functions.common import tensor
from ..functions.loops.control_flow import scan
from ..functions.shapes.movement import movedim
from ..values.flatten import flatten, unflatten
from ..values.foreign import library_of
from ..values.tensor import Tensor
from .derived import derived

Function = Callable[..., Any]


def vmap(
    func: Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Function:
    """The function that applies `func` to each part of its arguments along a dimension, and stacks.

    Args:
        func: takes and returns tensors, or nested containers of them.
        in_dims: the dimension of each argument that counts the batch; None for one that all share. One value
            for all arguments, or a tuple with one for each, nested as the argument is.
        out_dims: where the batch is counted in each result.
        randomness, chunk_size: accepted; each part draws its own random numbers.

    Raises:
        ArgumentError: no argument has a batch, or `in_dims` has not the structure of the arguments.
        ShapeError: batches of different sizes.

    Example:
        >>> vmap(lambda x, y: x @ y)(ones(2, 3), ones(2, 3))
        tensor([3., 3.])
    """

    again = functools.partial(
        vmap, in_dims=in_dims, out_dims=out_dims, randomness=randomness, chunk_size=chunk_size
    )
    return derived(func, lambda inner: _batched(inner, in_dims, out_dims), again)


def _batched(func: Function, in_dims: Any, out_dims: Any) -> Function:
    def batched(*args: Any, **kwargs: Any) -> Any:
        try:
            return _of_each_row(func, in_dims, out_dims, args, kwargs)
        except BaseException as error:
            show_users_frames(error)
            raise

    batched.__dict__["takes_as_given"] = True  # a default is no batch, and a keyword has dimension 0
    return batched


def _of_each_row(func: Function, in_dims: Any, out_dims: Any, args: Any, kwargs: Any) -> Any:
    leaves, structure = flatten((args, kwargs))
    dims = _dims_of(in_dims, args) + [0] * (len(leaves) - len(flatten(args)[0]))
    mapped = {
        place: (tensor(leaf, "vmap"), dim)
        for place, (leaf, dim) in enumerate(zip(leaves, dims))
        if dim is not None and (isinstance(leaf, Tensor | np.ndarray) or library_of(leaf))
    }
    _require_one_batch(list(mapped.values()))
    rows = [movedim(x, dim, 0) for x, dim in mapped.values()]
    if getattr(func, "vectorized", False) and len(mapped) == len(leaves) and not is_tracing():
        whole = unflatten(structure, rows)
        return _placed(_of_batches(func(*whole[0], **whole[1]), len(rows[0]), func), out_dims)

    def one(parts: Any) -> Any:
        here = dict(zip(mapped, parts))
        given = [here.get(place, leaf) for place, leaf in enumerate(leaves)]
        own_args, own_kwargs = unflatten(structure, given)
        return func(*own_args, **own_kwargs)

    _, results = scan(lambda carry, parts: (None, one(parts)), None, rows)
    return _placed(results, out_dims)


def _of_batches(results: Any, count: int, func: Function) -> Any:
    """What a function has given that takes batches, for one of them.

    Raises:
        OutputError: it is not of a batch.
    """
    shapes = [np.shape(one) for one in flatten(results)[0] if one is not None]
    if any(shape[:1] != (count,) for shape in shapes):
        raise OutputError(
            f"{getattr(func, '__name__', 'the function')} is declared to take batches, and gave results of "
            f"shapes {', '.join(map(str, shapes))} for a batch of {count}. Let it treat the first dimension "
            "of all arrays as that of the batch, or leave `vectorized` out."
        )
    return results


def _dims_of(in_dims: Any, args: tuple[Any, ...]) -> list[int | None]:
    """For each leaf of the arguments the dimension of the batch."""
    if in_dims is None or isinstance(in_dims, int):
        return [in_dims] * len(flatten(args)[0])
    if not isinstance(in_dims, tuple | list) or len(in_dims) != len(args):
        raise ArgumentError(
            f"vmap: in_dims must be an integer or a tuple with one for each of the {len(args)} arguments, "
            f"found {in_dims!r}."
        )
    return [dim for one, argument in zip(in_dims, args) for dim in _spread(one, argument)]


def _spread(dims: Any, value: Any) -> list[int | None]:
    if dims is None or isinstance(dims, int):
        return [dims] * len(flatten(value)[0])
    if isinstance(dims, dict) and isinstance(value, dict):
        keys = sorted(value) if type(value) is dict else list(value)  # as `flatten` orders them
        pairs = [(dims[key], value[key]) for key in keys]
    elif isinstance(dims, tuple | list) and isinstance(value, tuple | list) and len(dims) == len(value):
        pairs = list(zip(dims, value))
    else:
        raise ArgumentError(f"vmap: in_dims {dims!r} has not the structure of its argument.")
    return [dim for one, inner in pairs for dim in _spread(one, inner)]


def _require_one_batch(mapped: list[tuple[Tensor, int]]) -> None:
    if not mapped:
        raise ArgumentError("vmap: no argument is mapped over: give a tensor, and in_dims that is not None.")
    extents = []
    for x, dim in mapped:
        if not -x.ndim <= dim < x.ndim:
            raise ShapeError(f"vmap: in_dim {dim} for an input of shape {tuple(x.shape)}.")
        extents.append(x.shape[dim])
    if len(set(extents)) > 1:
        raise ShapeError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {extents}."
        )


def _placed(results: Any, out_dims: Any) -> Any:
    """The results with the batch, which is their first dimension, where it is wanted."""
    if isinstance(out_dims, tuple | list):
        if isinstance(results, Tensor | np.ndarray):
            return _placed(results, out_dims[0])
        if len(out_dims) != len(results):
            raise ArgumentError(f"vmap: {len(out_dims)} out_dims for {len(results)} results.")
        return tuple(_placed(one, dim) for one, dim in zip(results, out_dims))
    if out_dims == 0:
        return results
    leaves, structure = flatten(results)
    return unflatten(structure, [_moved(leaf, out_dims) for leaf in leaves])


def _moved(leaf: Any, dim: int) -> Any:
    if isinstance(leaf, np.ndarray):
        return np.moveaxis(leaf, 0, dim)
    return movedim(leaf, 0, dim) if isinstance(leaf, Tensor) else leaf
