"""Operators that combine the elements along dimensions: sums, products, extremes, searches, running sums.

`dims` is a sorted tuple of non-negative dimensions; `keepdim` leaves them with size 1.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, DTypeError
from ..operator import (
    HOLOMORPHIC,
    TOGETHER,
    Array,
    Monoid,
    Operator,
    Scalar,
    Search,
    declare,
    names_in_numpy,
)
from ..spec import BOOL, INT64, Spec, reduced_shape
from .elementwise import (
    ADDITION,
    CONJUNCTION,
    MULTIPLICATION,
    convert,
    divide,
    equal,
    greater,
    isnan,
    less,
    logical_not,
    logical_or,
    maximum,
    minimum,
    where,
)
from .movement import between, expand, flip, pad, permute, reshape

ARRAYS = (np.ndarray, np.generic)
PLAIN = (np.ndarray, np.float64, np.float32)
"""Classes of what is no Tensor that stands for an array."""
FEW = 4096
"""Elements of an array in the cache: to fill it costs less than a view of a broadcast value."""


def restore_dims(reduced: Array, x_spec: Spec, dims: tuple[int, ...]) -> Array:
    """The result of a reduction with its dims back in place as size 1, to broadcast against the operand."""
    if not reduced.shape and isinstance(reduced, ARRAYS):
        return reduced
    return reshape(reduced, shape=reduced_shape(x_spec.shape, dims, keepdim=True))


def spread(g: Array, x_spec: Spec, dims: tuple[int, ...]) -> Array:
    """The cotangent of a sum over some dimensions at each element of the operand."""
    whole = restore_dims(g, x_spec, dims)
    if type(whole) in PLAIN and math.prod(x_spec.shape) <= FEW:  # sooner filled than shown
        filled = np.empty(x_spec.shape, whole.dtype)
        filled[...] = whole
        return filled
    return expand(whole, shape=x_spec.shape)


def reduction(
    name: str,
    *,
    numpy: Callable[..., Any],
    vjp: Mapping[str, Callable[..., Array]] | None = None,
    dtype: np.dtype | None = None,
    needs_elements: bool = False,
    same_dtype: bool = False,
    also: str = "",
    **fields: Any,
) -> Operator:
    """Declare a reduction; `needs_elements` for those with no value on an empty dimension.

    `same_dtype` where NumPy would combine small integers in larger ones.
    """

    def infer(x: Spec, dims: tuple[int, ...], keepdim: bool) -> Spec:
        if needs_elements and any(x.shape[dim] == 0 for dim in dims):
            raise ArgumentError(
                f"{name}(): Expected reduction dim to have non-zero size, found {x} and dims {dims}. "
                f"An empty dimension has no {name}."
            )
        return Spec(reduced_shape(x.shape, dims, keepdim), dtype or x.dtype)

    fold: Any = fields["monoid"].fold.evaluate if "monoid" in fields else None
    combine = fold.reduce if isinstance(fold, np.ufunc) else numpy  # as NumPy's own functions do

    def evaluate(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> Any:
        return combine(x, dims, keepdims=keepdim)

    def evaluate_in_dtype(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> Any:
        return combine(x, dims, x.dtype.type, keepdims=keepdim)  # of any byte order

    return declare(
        name,
        "reduction",
        "x",
        infer=infer,
        evaluate=evaluate_in_dtype if same_dtype else evaluate,
        vjp=vjp,
        numpy=names_in_numpy(numpy, also),
        **fields,
    )


def _shared_by_extremes(g: Array, x: Array, y: Array, x_spec: Spec, dims: tuple[int, ...]) -> Array:
    """The cotangent, split evenly among the elements that equal the extreme: all nan if there is one."""
    chosen = logical_or(equal(x, restore_dims(y, x_spec, dims)), isnan(x))
    count = sum_(convert(chosen, dtype=x_spec.dtype), dims=dims, keepdim=True)
    return where(chosen, divide(restore_dims(g, x_spec, dims), count), 0.0)


def _shifted(x: Array, x_spec: Spec, dim: int, first: float) -> Array:
    """At each place what lies before it on `dim`, and `first` at the first."""
    shape = x_spec.shape
    distance = min(1, shape[dim])
    widths = tuple((distance, 0) if axis == dim else (0, 0) for axis in range(len(shape)))
    return pad(between(x, dim, 0, shape[dim] - distance), widths=widths, value=first)


def _product_of_others(g: Array, x: Array, x_spec: Spec, dims: tuple[int, ...]) -> Array:
    """d prod / d x_i: what lies before x_i times what lies after. No division, so zeros are exact."""
    rest = tuple(axis for axis in range(x_spec.ndim) if axis not in dims)
    order = rest + dims
    kept = tuple(x_spec.shape[axis] for axis in rest)
    count = int(np.prod([x_spec.shape[axis] for axis in dims]))
    flat = reshape(permute(x, dims=order), shape=(*kept, count))
    flat_spec, last = x_spec.with_shape((*kept, count)), len(kept)
    before = _shifted(cumprod(flat, dim=last), flat_spec, last, 1.0)
    backwards = cumprod(flip(flat, dims=(last,)), dim=last)
    after = flip(_shifted(backwards, flat_spec, last, 1.0), dims=(last,))
    others = reshape(before * after, shape=tuple(x_spec.shape[axis] for axis in order))
    back = tuple(sorted(range(x_spec.ndim), key=order.__getitem__))
    return restore_dims(g, x_spec, dims) * permute(others, dims=back)


def _require_order(dtype: np.dtype) -> None:
    if dtype.kind == "c":
        raise DTypeError("complex numbers have no order, so there is no largest. Take abs(), .real or .imag.")


def lowest(dtype: np.dtype) -> Scalar:
    """What no element is below."""
    _require_order(dtype)
    if dtype.kind == "b":
        return False
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def highest(dtype: np.dtype) -> Scalar:
    """What no element is above."""
    _require_order(dtype)
    if dtype.kind == "b":
        return True
    return np.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


LARGEST, SMALLEST = Monoid(maximum, lowest), Monoid(minimum, highest)


sum_ = reduction(
    "sum", numpy=np.sum, same_dtype=True, monoid=ADDITION, noun="total", of_complex=HOLOMORPHIC,
    linear=TOGETHER,
    vjp={"x": spread},
    torch="sum", arguments="accumulated",
    example=("tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0", "tensor([4., 6.])"), doc="the sum; 0 of nothing",
)  # fmt: skip
prod = reduction(
    "prod", numpy=np.prod, same_dtype=True, monoid=MULTIPLICATION, noun="product",
    vjp={"x": _product_of_others}, of_complex=HOLOMORPHIC,
    torch="prod", arguments="accumulated", example=("tensor([1.0, 2.0, 3.0])", "tensor(6.)"),
    doc="the product; 1 of nothing; the derivative is exact with zeros among the factors",
)  # fmt: skip
amax = reduction(
    "amax", numpy=np.amax, vjp={"x": _shared_by_extremes}, needs_elements=True,
    monoid=LARGEST, noun="largest",
    torch="amax", also="max", arguments="extreme",
    example=("tensor([[1.0, 4.0], [3.0, 2.0]]), dim=0", "tensor([3., 4.])"),
    doc="the largest; elements that share the extreme share the gradient",
)  # fmt: skip
amin = reduction(
    "amin", numpy=np.amin, vjp={"x": _shared_by_extremes}, needs_elements=True,
    monoid=SMALLEST, noun="smallest",
    torch="amin", also="min", arguments="extreme",
    example=("tensor([[1.0, 4.0], [3.0, 2.0]]), dim=0", "tensor([1., 2.])"),
    doc="the smallest; elements that share the extreme share the gradient",
)  # fmt: skip
all_ = reduction(
    "all", numpy=np.all, dtype=BOOL, monoid=CONJUNCTION,
    torch="all", arguments="truth", example=("tensor([True, False])", "tensor(False)"),
    doc="whether all are true, that is, not zero; true of nothing",
)  # fmt: skip
any_ = reduction(
    "any", numpy=np.any, dtype=BOOL, monoid=Monoid(logical_or, lambda dtype: False),
    torch="any", arguments="truth", example=("tensor([True, False])", "tensor(True)"),
    doc="whether any is true, that is, not zero; false of nothing",
)  # fmt: skip


def _search(name: str, find: Callable[..., Any], search: Search, doc: str, result: str) -> Operator:
    """argmax and argmin over one dimension: the first of equals, a nan before all."""
    return reduction(
        name,
        numpy=lambda x, axis, keepdims: np.asarray(find(x, axis=axis[0], keepdims=keepdims)),
        dtype=INT64,
        needs_elements=True,
        search=search,
        torch=name,
        also=name,
        arguments="position",
        example=("tensor([[1.0, 4.0], [3.0, 2.0]]), dim=1", result),
        doc=doc,
    )


argmax = _search("argmax", np.argmax, Search(greater, lowest), "the index of the largest", "tensor([1, 0])")
argmin = _search("argmin", np.argmin, Search(less, highest), "the index of the smallest", "tensor([0, 1])")

# --- running sums and products -------------------------------------------------------------------------


def _reversed_cumsum(g: Array, dim: int) -> Array:
    return flip(cumsum(flip(g, dims=(dim,)), dim=dim), dims=(dim,))


cumsum = declare(
    "cumsum", "scan", "x",
    infer=lambda x, dim: x,
    evaluate=lambda x, dim: np.cumsum(x, axis=dim, dtype=x.dtype.type),
    monoid=ADDITION, noun="running_total", of_complex=HOLOMORPHIC, linear=TOGETHER,
    vjp={"x": _reversed_cumsum},
    torch="cumsum", in_place=True, arguments="running", numpy=("cumsum",),
    example=("tensor([1.0, 2.0, 3.0]), dim=0", "tensor([1., 3., 6.])"), doc="running sums along a dimension",
)  # fmt: skip
cumprod = declare(
    "cumprod", "scan", "x",
    infer=lambda x, dim: x,
    evaluate=lambda x, dim: np.cumprod(x, axis=dim, dtype=x.dtype.type),
    monoid=MULTIPLICATION, of_complex=HOLOMORPHIC,
    vjp={
        "x": lambda g, x, y, x_spec, dim: (
            _shifted(y, x_spec, dim, 1.0) * _reversed_recurrence(g, x, x_spec, dim)
        )
    },
    domain=(0.3, 2.0),
    torch="cumprod", in_place=True, arguments="running", numpy=("cumprod",),
    example=("tensor([1.0, 2.0, 3.0]), dim=0", "tensor([1., 2., 6.])"),
    doc="running products along a dimension; the derivative is exact with zeros among the factors",
)  # fmt: skip


def _evaluate_recurrence(factor: np.ndarray, x: np.ndarray, dim: int) -> np.ndarray:
    if x.size == x.shape[dim]:  # Python's numbers take less than arrays of one element each
        before: complex = 0.0
        numbers: list[complex] = []
        for coefficient, number in zip(factor.ravel().tolist(), x.ravel().tolist()):
            before = number + coefficient * before if numbers else number
            numbers.append(before)
        return np.array(numbers, x.dtype).reshape(x.shape)
    result = np.array(x)
    factors, running = np.moveaxis(factor, dim, 0), np.moveaxis(result, dim, 0)
    for place in range(1, len(running)):
        running[place] += factors[place] * running[place - 1]
    return result


def _reversed_recurrence(g: Array, factor: Array, factor_spec: Spec, dim: int) -> Array:
    """s_i = g_i + factor_{i+1} s_{i+1}: the transpose of the recurrence, which is one from the end."""
    later = _shifted(flip(factor, dims=(dim,)), factor_spec, dim, 0.0)
    return flip(linear_recurrence(later, flip(g, dims=(dim,)), dim=dim), dims=(dim,))


linear_recurrence = declare(
    "linear_recurrence", "scan", "factor x",
    infer=lambda factor, x, dim: x,
    evaluate=_evaluate_recurrence,
    recurrence="{x} + {factor} * {before}", of_complex=HOLOMORPHIC,
    vjp={
        "factor": lambda g, factor, y, factor_spec, dim: (
            _shifted(y, factor_spec, dim, 0.0) * _reversed_recurrence(g, factor, factor_spec, dim)
        ),
        "x": lambda g, factor, factor_spec, dim: _reversed_recurrence(g, factor, factor_spec, dim),
    },
    domain=(-1.5, 1.5),
    doc="y_i = x_i + factor_i y_{i-1} along a dimension, from y_0 = x_0; operands of one shape",
)  # fmt: skip


# --- running extremes ---------------------------------------------------------------------------------------


def _by_last_extreme(g: Array, x: Array, y: Array, x_spec: Spec, dim: int) -> Array:
    """Each place that the extreme moves to, the last of equals, has the gradients up to the next one."""
    is_new = equal(x, y)
    same = convert(logical_not(is_new), dtype=x_spec.dtype)
    return where(is_new, _reversed_recurrence(g, same, x_spec, dim), 0.0)


def _running_extreme(name: str, monoid: Monoid, numpy: np.ufunc, doc: str) -> Operator:
    return declare(
        name, "scan", "x",
        infer=lambda x, dim: x, evaluate=lambda x, dim: numpy.accumulate(x, axis=dim),
        monoid=monoid, noun=name, vjp={"x": _by_last_extreme}, doc=doc,
    )  # fmt: skip


running_largest = _running_extreme("running_largest", LARGEST, np.maximum, "the largest up to each place")
running_smallest = _running_extreme("running_smallest", SMALLEST, np.minimum, "the smallest up to each place")


def sum_to_shape(x: Array, shape: tuple[int, ...]) -> Array:
    """The transpose of broadcasting from `shape`: x summed over the dimensions that broadcasting made."""
    if x.shape == shape:
        return x
    dims = made_by_broadcasting(shape, x.shape)
    total = sum_(x, dims=dims, keepdim=False) if dims else x
    return total if total.shape == shape else reshape(total, shape=shape)


def sum_to_shape_at_once(x: Array, shape: tuple[int, ...]) -> Array:
    """`sum_to_shape` by one operator where the ranks are equal: for the tape, whose nodes are not fused."""
    found = x.shape
    if len(found) != len(shape) or found == shape:
        return sum_to_shape(x, shape)
    return sum_(x, dims=made_by_broadcasting(shape, found), keepdim=True)


def summed_to_shape(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`sum_to_shape` of an array."""
    if x.shape == shape:
        return x
    total = np.add.reduce(x, made_by_broadcasting(shape, x.shape) if shape else None)
    return total if total.shape == shape else total.reshape(shape)


def made_by_broadcasting(shape: tuple[int, ...], found: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions that broadcasting to the shape `found` has made, or enlarged."""
    extra = len(found) - len(shape)
    dims = tuple(range(extra))
    if 1 not in shape:
        return dims
    return dims + tuple(
        [dim for dim in range(extra, len(found)) if found[dim] != 1 and shape[dim - extra] == 1]
    )
