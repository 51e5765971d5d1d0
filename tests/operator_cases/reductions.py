"""Rows of reductions, scans and sorting, of what is made of them, and of contractions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.special

from .rows import EVERYTHING, NUMBERS, POSITION, PREDICATE, Case, Row, Shape

REDUCED: tuple[tuple[Shape, Shape, bool], ...] = (
    ((67,), (0,), False), ((3, 4), (0,), False), ((3, 4), (1,), True), ((3, 4), (0, 1), False),
    ((2, 3, 4), (1,), False), ((2, 3, 4), (0, 2), True), ((2, 3, 4), (1, 2), False), ((), (), False),
    ((1, 5), (0,), False), ((3, 1), (1,), True), ((5,), (), False), ((1,), (0,), True),
    ((3, 1, 4), (0, 2), False), ((0, 3), (1,), False),
)  # fmt: skip
EMPTY_REDUCED: tuple[tuple[Shape, Shape, bool], ...] = (
    ((0,), (0,), False), ((0, 3), (0,), True), ((2, 0), (0, 1), False),
)  # fmt: skip
SUM_ULPS = 32.0
SUM_ORDER = "sums are reordered"


def reduces(
    name: str,
    expected: Callable[..., Any],
    *,
    empty: bool = False,
    variants: Sequence[Mapping[str, Any]] = ({},),
    **fields: Any,
) -> Row:
    cases = tuple(
        Case((shape,), {"dims": dims, "keepdim": keepdim, **variant})
        for variant in variants
        for shape, dims, keepdim in (REDUCED + EMPTY_REDUCED if empty else REDUCED)
    )
    return Row(name, expected, cases, **{"ulps": SUM_ULPS, "because": SUM_ORDER, **fields})


def _one_by_one(ufunc: np.ufunc) -> Callable[..., Any]:
    """A reduction one dimension after another, the last first."""

    def reduce(x: np.ndarray, dims: Shape, keepdim: bool) -> Any:
        for dim in reversed(dims):
            x = ufunc.reduce(x, axis=dim, keepdims=keepdim, dtype=x.dtype)
        return x

    return reduce


def _logical(ufunc: np.ufunc) -> Callable[..., Any]:
    reduce = _one_by_one(ufunc)
    return lambda x, dims, keepdim: reduce(x != 0, dims, keepdim)


def _first_of(extreme: np.ufunc) -> Callable[..., Any]:
    """The first position that holds the extreme, or nan where there is one."""

    def find(x: np.ndarray, dims: Shape, keepdim: bool) -> np.ndarray:
        best = extreme.reduce(x, axis=dims[0], keepdims=True)
        found = (x == best) | ((x != x) & (best != best))
        extent = x.shape[dims[0]]
        places = np.moveaxis(
            np.broadcast_to(np.arange(extent), (*_without(x.shape, dims[0]), extent)), -1, dims[0]
        )
        return np.where(found, places, extent).min(axis=dims[0], keepdims=keepdim)

    return find


def _without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def _search(name: str, extreme: np.ufunc) -> Row:
    cases = tuple(
        Case((shape,), {"dims": (dim,), "keepdim": keepdim})
        for shape, dim, keepdim in (
            ((67,), 0, False), ((3, 4), 0, False), ((3, 4), 1, True), ((2, 3, 4), 1, False),
            ((3, 1), 1, False), ((0, 3), 1, False), ((1,), 0, True),
        )
    )  # fmt: skip
    return Row(name, _first_of(extreme), cases, dtypes=EVERYTHING, ulps=0, no_rule=POSITION)


def _sorted_positions(x: np.ndarray, stable: bool = True) -> np.ndarray:
    """By Python's sort, nan as a number above all others."""
    result = np.empty(x.shape, np.int64)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place].tolist()
        result[place] = sorted(
            range(len(row)), key=lambda at: (row[at] != row[at], row[at] if row[at] == row[at] else 0)
        )
    return result


def _sorted_values(x: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, _sorted_positions(x), -1)


def _running(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(x: np.ndarray, dim: int) -> np.ndarray:
        result = x.copy()
        lines = np.moveaxis(result, dim, 0)
        for place in range(1, len(lines)):
            lines[place] = operation(lines[place - 1], lines[place])
        return result

    return run


SCANS = tuple(
    Case((shape,), {"dim": dim})
    for shape, dim in (
        ((33,), 0),
        ((3, 4), 0),
        ((3, 4), 1),
        ((2, 3, 4), 1),
        ((1, 3), 0),
        ((0,), 0),
        ((2, 0, 3), 1),
    )
)


def _recurred(factor: np.ndarray, x: np.ndarray, dim: int) -> np.ndarray:
    """As the product with a triangular matrix, whose elements are products of factors."""
    factors, xs = np.moveaxis(factor, dim, -1), np.moveaxis(x, dim, -1)
    result = np.zeros_like(xs)
    for place in range(x.shape[dim]):
        for source in range(place + 1):
            result[..., place] += xs[..., source] * np.prod(factors[..., source + 1 : place + 1], axis=-1)
    return np.moveaxis(result, -1, dim)


ROWS_TO_SORT = tuple(
    Case((shape,)) for shape in ((33,), (3, 4), (2, 3, 5), (3, 1), (1, 4), (1,), (0,), (0, 3), (2, 0))
)
REDUCTIONS = (
    reduces("sum", _one_by_one(np.add), empty=True, dtypes=NUMBERS),
    reduces("prod", _one_by_one(np.multiply), empty=True, dtypes=NUMBERS),
    reduces("amax", _one_by_one(np.maximum), dtypes=EVERYTHING, ulps=0, because="", distinct=True),
    reduces("amin", _one_by_one(np.minimum), dtypes=EVERYTHING, ulps=0, because="", distinct=True),
    reduces(
        "all", _logical(np.logical_and), empty=True, dtypes=("bool",), ulps=0, because="", no_rule=PREDICATE
    ),
    reduces(
        "any", _logical(np.logical_or), empty=True, dtypes=("bool",), ulps=0, because="", no_rule=PREDICATE
    ),
    _search("argmax", np.maximum),
    _search("argmin", np.minimum),
    Row(
        "sorted_positions",
        _sorted_positions,
        tuple(Case(one.shapes, {"stable": True}) for one in ROWS_TO_SORT),
        dtypes=NUMBERS,
        ulps=0,
        no_rule=POSITION,
    ),
    Row("sorted_values", _sorted_values, ROWS_TO_SORT, dtypes=NUMBERS, ulps=0),
    Row("cumsum", _running(lambda a, b: a + b), SCANS, dtypes=NUMBERS, ulps=SUM_ULPS, because=SUM_ORDER),
    Row("cumprod", _running(lambda a, b: a * b), SCANS, dtypes=NUMBERS, ulps=SUM_ULPS, because=SUM_ORDER),
    Row("running_largest", _running(np.maximum), SCANS, dtypes=NUMBERS, ulps=0, distinct=True),
    Row("running_smallest", _running(np.minimum), SCANS, dtypes=NUMBERS, ulps=0, distinct=True),
    Row(
        "linear_recurrence",
        _recurred,
        tuple(Case(case.shapes * 2, case.attributes) for case in SCANS),
        ulps=SUM_ULPS,
        because=SUM_ORDER,
        special=False,
    ),  # a product of factors is nan where 0 times inf is
)


def _over(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dims, keepdim, **rest: function(x, axis=dims, keepdims=keepdim, **rest)


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, correction, **rest: _over(function)(x, ddof=correction, **rest)


def _normed(x: np.ndarray, axis: Shape, keepdims: bool, order: float) -> Any:
    return np.sum(np.abs(x) ** order, axis=axis, keepdims=keepdims) ** (1 / order)


def _stacked(*xs: np.ndarray, dim: int) -> np.ndarray:
    return np.concatenate([np.expand_dims(x, dim) for x in xs], dim)


def _log_softmax(x: np.ndarray, dim: int) -> np.ndarray:
    weights = np.exp(x - x.max(axis=dim, keepdims=True, initial=-np.inf))
    return np.log(weights / weights.sum(axis=dim, keepdims=True))


ALONG = tuple(
    Case((shape,), {"dim": dim})
    for shape, dim in (
        ((5,), 0),
        ((3, 4), 0),
        ((3, 4), 1),
        ((2, 3, 4), 1),
        ((3, 1), 1),
        ((0, 3), 1),
        ((1, 4), 0),
    )
)
CORRECTIONS = ({"correction": 1.0}, {"correction": 0.0})
ORDERS = ({"order": 2.0}, {"order": 1.0}, {"order": 3.0})
COMPOSITES = (
    reduces("mean", _over(np.mean), empty=True),
    reduces("var", _spread(np.var), variants=CORRECTIONS),
    reduces("std", _spread(np.std), variants=CORRECTIONS),
    Row("running_logsumexp", _running(np.logaddexp), SCANS, ulps=SUM_ULPS, because=SUM_ORDER),
    reduces("logsumexp", lambda x, dims, keepdim: np.log(np.sum(np.exp(x), axis=dims, keepdims=keepdim))),
    Row("softmax", lambda x, dim: scipy.special.softmax(x, axis=dim), ALONG, ulps=16),
    Row("log_softmax", _log_softmax, ALONG, ulps=16),
    reduces("norm", _over(_normed), variants=ORDERS),
    Row("stack", _stacked, tuple(
        Case((shape,) * count, {"dim": dim})
        for shape, count, dim in (
            ((3,), 2, 0), ((3, 4), 3, 1), ((3, 4), 2, 2), ((), 2, 0), ((4,), 1, 0), ((0, 2), 2, 1),
        )
    ), ulps=0, dtypes=EVERYTHING),
)  # fmt: skip

CONTRACTIONS = tuple(
    Case(shapes, {"subscripts": subscripts})
    for subscripts, *shapes_of in (
        (
            "ij,jk->ik",
            ((3, 4), (4, 5)),
            ((17, 13), (13, 19)),
            ((1, 4), (4, 1)),
            ((3, 0), (0, 2)),
            ((0, 4), (4, 2)),
        ),
        ("ij,j->i", ((3, 4), (4,)), ((50, 60), (60,))),
        ("i,ij->j", ((3,), (3, 4))),
        ("i,i->", ((5,), (5,)), ((1,), (1,)), ((0,), (0,))),
        ("i,j->ij", ((3,), (4,))),
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5)), ((2, 14, 13), (2, 13, 15)), ((1, 3, 4), (1, 4, 2))),
        ("bij,jk->bik", ((2, 3, 4), (4, 5)), ((3, 14, 13), (13, 15))),
        ("ij,kj->ik", ((3, 4), (5, 4)), ((15, 13), (17, 13))),
        ("ji,jk->ik", ((4, 3), (4, 5)), ((13, 15), (13, 17))),
        ("ij,jk->ki", ((3, 4), (4, 5)), ((15, 13), (13, 17))),
        ("ijk,kjl->il", ((2, 3, 4), (4, 3, 5)), ((12, 5, 6), (6, 5, 14))),
        ("abij,abjk->abik", ((2, 2, 3, 4), (2, 2, 4, 2))),
        ("ij,ij->ij", ((3, 4), (3, 4))),
        ("ij,ij->", ((3, 4), (3, 4))),
        (",->", ((), ())),
        ("bi,bj->bij", ((3, 2), (3, 4))),
    )
    for shapes in shapes_of
)


def summed_products(a: np.ndarray, b: np.ndarray, subscripts: str) -> Any:
    return np.einsum(subscripts, a, b, optimize=False)
