"""`scipy.spatial.distance` on Tensors: measures of two vectors, and of all pairs of rows.

A measure is one function of arrays whose last dimension is that of vectors. Where a norm is not
differentiable, at vectors that coincide, its derivative is taken as 0, as PyTorch's of `cdist`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..functions import PUBLIC, declared
from ..functions.common import as_dtype, fail
from ..functions.stopping import stop_gradient
from ..numpy_api.protocols import FUNCTIONS, OF_OTHERS
from ..numpy_api.values import as_python_number, floats, known, of_arrays
from ..tensors.conversion import array_dtype, tensor_of
from ..values.tensor import Tensor
from .interpolation.points import demanded

DOUBLE = np.dtype("float64")
where, vector_norm, absolute = PUBLIC["where"], PUBLIC["vector_norm"], PUBLIC["abs"]
Measure = Callable[..., Tensor]
"""(u, v, w, *parameters) -> the distance along the last dimension; w is None, or has that dimension."""


def _root(x: Any) -> Any:
    """The square root, whose derivative at 0 is taken as 0."""
    is_zero = PUBLIC["eq"](x, 0)
    return where(is_zero, 0.0, PUBLIC["sqrt"](where(is_zero, 1.0, x)))


def _times(w: Any, x: Any) -> Any:
    return x if w is None else w * x


def _summed(x: Any) -> Any:
    return declared.sum(x, -1)


# --- measures -----------------------------------------------------------------------------------------------


def _minkowski(u: Any, v: Any, w: Any, p: Any = 2.0) -> Any:
    """(sum w |u - v|**p)**(1 / p), the largest |u - v| of positive weight for an infinite p."""
    if not isinstance(p, Tensor):
        if p == math.inf:
            return _chebyshev(u, v, w)
        return vector_norm(u - v if w is None else w ** (1.0 / p) * (u - v), p, -1)
    apart = absolute(u - v)
    is_zero = PUBLIC["eq"](apart, 0)
    total = _summed(where(is_zero, 0.0, _times(w, where(is_zero, 1.0, apart) ** p)))
    is_nothing = PUBLIC["eq"](total, 0)
    return where(is_nothing, 0.0, where(is_nothing, 1.0, total) ** (1.0 / p))


def _euclidean(u: Any, v: Any, w: Any) -> Any:
    return vector_norm(u - v, 2, -1) if w is None else _root(_sqeuclidean(u, v, w))


def _sqeuclidean(u: Any, v: Any, w: Any) -> Any:
    return _summed(_times(w, (u - v) ** 2))


def _cityblock(u: Any, v: Any, w: Any) -> Any:
    return _summed(_times(w, absolute(u - v)))


def _chebyshev(u: Any, v: Any, w: Any) -> Any:
    apart = absolute(u - v)
    return PUBLIC["amax"](apart if w is None else where(w > 0, apart, 0.0), -1)


def _cosine(u: Any, v: Any, w: Any) -> Any:
    product, *squares = (_summed(_times(w, one * other)) for one, other in ((u, v), (u, u), (v, v)))
    found = 1.0 - product / PUBLIC["sqrt"](squares[0] * squares[1])
    exact = stop_gradient(found)
    return found + (PUBLIC["clamp"](exact, 0.0, 2.0) - exact)  # what is cut off is rounding


def _correlation(u: Any, v: Any, w: Any) -> Any:
    shares = 1.0 / u.shape[-1] if w is None else w / _summed(w)
    first, second = (one - declared.sum(shares * one, -1, True) for one in (u, v))
    return _cosine(first, second, w)


def _canberra(u: Any, v: Any, w: Any) -> Any:
    """The sum of |u - v| / (|u| + |v|), where both are 0 of nothing."""
    size = absolute(u) + absolute(v)
    is_zero = PUBLIC["eq"](size, 0)
    return _summed(_times(w, where(is_zero, 0.0, absolute(u - v) / where(is_zero, 1.0, size))))


def _braycurtis(u: Any, v: Any, w: Any) -> Any:
    return _summed(_times(w, absolute(u - v))) / _summed(_times(w, absolute(u + v)))


def _mahalanobis(u: Any, v: Any, w: Any, VI: Any) -> Any:
    apart = u - v
    return _root(_summed(PUBLIC["matmul"](apart, VI) * apart))


def _seuclidean(u: Any, v: Any, w: Any, V: Any) -> Any:
    return _euclidean(u, v, 1.0 / V)


def _jensenshannon(u: Any, v: Any, w: Any) -> Any:
    p, q = (one / declared.sum(one, -1, True) for one in (u, v))
    return _divergence_root(p, q, -1)


def _divergence_root(p: Any, q: Any, axis: int, base: Any = None, keepdims: bool = False) -> Any:
    """The root of the mean of both entropies relative to the mean of p and q, which sum up to 1."""
    middle = 0.5 * (p + q)
    terms = OF_OTHERS["rel_entr"](p, middle) + OF_OTHERS["rel_entr"](q, middle)
    total = declared.sum(terms, axis, keepdims)
    if base is not None:
        total = total if total.ndim else as_dtype(total, DOUBLE)  # as NumPy's scalars, where arrays stay
        total = total / PUBLIC["log"](as_dtype(tensor_of(base), array_dtype(total)))
    return _root(PUBLIC["clamp"](0.5 * total, 0.0))


MEASURES: dict[str, Measure] = {
    "minkowski": _minkowski, "euclidean": _euclidean, "sqeuclidean": _sqeuclidean, "cityblock": _cityblock,
    "chebyshev": _chebyshev, "cosine": _cosine, "correlation": _correlation, "canberra": _canberra,
    "braycurtis": _braycurtis, "mahalanobis": _mahalanobis, "seuclidean": _seuclidean,
    "jensenshannon": _jensenshannon,
}  # fmt: skip
WITHOUT_WEIGHTS = frozenset(("mahalanobis", "seuclidean", "jensenshannon"))
PARAMETERS = {"minkowski": ("p",), "mahalanobis": ("VI",), "seuclidean": ("V",)}

# --- what they are given ------------------------------------------------------------------------------------


def _refused_in(function: str, value: Tensor) -> Tensor:
    if value.is_complex():
        fail(DTypeError, f"scipy.spatial.distance.{function}: real numbers expected, found complex ones.")
    return value


def _vectors(function: str, *given: Any, dtype: Any = None) -> list[Tensor]:
    """Two vectors of one size, in NumPy's common dtype."""
    found = floats(*given) if dtype is None else [as_dtype(tensor_of(one), dtype) for one in given]
    shapes = [tuple(one.shape) for one in found]
    if any(one.ndim != 1 for one in found) or shapes[0] != shapes[1]:
        fail(
            ShapeError,
            f"scipy.spatial.distance.{function}: two vectors of one size expected, found the shapes "
            f"{shapes[0]} and {shapes[1]}.",
        )
    return [_refused_in(function, one) for one in found]


def _weights(function: str, w: Any, size: int) -> Any:
    """A vector of weights, of which none is negative where the program runs."""
    if w is None:
        return None
    found = _vector_of(function, "w", w, size)
    return demanded(
        f"scipy.spatial.distance.{function}", found, found >= 0, "w, the weights, must not be negative."
    )


def _vector_of(function: str, name: str, given: Any, size: int) -> Tensor:
    found = as_dtype(tensor_of(given), DOUBLE)
    if tuple(found.shape) != (size,):
        fail(
            ShapeError,
            f"scipy.spatial.distance.{function}: {name} must be a vector of the size {size}, as those "
            f"that are compared; found the shape {tuple(found.shape)}.",
        )
    return found


def _order(function: str, p: Any) -> Any:
    """The order of a norm: a number, or a Tensor, which is asked whether it may be one and is finite."""
    if isinstance(p, Tensor):
        is_order, is_infinite = map(bool, known(function, p > 0, PUBLIC["eq"](p, math.inf)))
        p = math.inf if is_infinite else p
    if not (is_order if isinstance(p, Tensor) else p > 0):
        fail(ArgumentError, f"scipy.spatial.distance.{function}: p must be greater than 0, found {p!r}.")
    return p


def _parameters(name: str, size: int, options: dict[str, Any], rows: Callable[[], Tensor]) -> dict[str, Any]:
    """The parameters of a measure of rows, which for a variance or a covariance are those of all rows."""
    if name == "minkowski":
        return {"p": _order(name, options.get("p", 2.0))}
    if name == "seuclidean":
        given = options.get("V")
        if given is None:
            return {"V": PUBLIC["var"](rows(), 0, correction=1)}
        return {"V": _vector_of(name, "V", given, size)}
    if name == "mahalanobis":
        given = options.get("VI")
        if given is not None:
            return {"VI": _inverse(as_dtype(tensor_of(given), DOUBLE), size)}
        observed = rows()
        if observed.shape[0] <= size:
            fail(
                ShapeError,
                f"scipy.spatial.distance.mahalanobis: the covariance of {observed.shape[0]} vectors of the "
                f"size {size} is singular; at least {size + 1} are needed, or VI, its inverse.",
            )
        covariance = FUNCTIONS[np.cov](observed.T).reshape(size, size)
        return {"VI": FUNCTIONS[np.linalg.inv](covariance)}
    return {}


def _inverse(VI: Tensor, size: int) -> Tensor:
    found = VI if VI.ndim == 2 else VI.reshape(1, -1)
    if tuple(found.shape) != (size, size):
        fail(
            ShapeError,
            f"scipy.spatial.distance.mahalanobis: VI must be a matrix of the shape {(size, size)}, found "
            f"{tuple(found.shape)}.",
        )
    return found


# --- of two vectors -----------------------------------------------------------------------------------------

IN_DOUBLE = frozenset(("canberra", "braycurtis"))
"""Of which SciPy makes v double."""


def _of_vectors(name: str) -> Callable[..., Tensor]:
    def measure(u: Any, v: Any, w: Any = None, **options: Any) -> Tensor:
        first, second = _vectors(name, u, v, dtype=DOUBLE if name in IN_DOUBLE else None)
        found = MEASURES[name](first, second, _weights(name, w, first.shape[0]), **options)
        return found

    return measure


def euclidean(u: Any, v: Any, w: Any = None) -> Tensor:
    """A number of Python's, which BLAS gives as the norm of floats."""
    found = _of_vectors("euclidean")(u, v, w)
    is_of_floats = w is not None or any(array_dtype(tensor_of(one)).kind == "f" for one in (u, v))
    return as_python_number(found) if is_of_floats else as_dtype(found, DOUBLE)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Tensor:
    if not isinstance(p, Tensor) and p == 2:
        return euclidean(u, v, w)
    return _of_vectors("minkowski")(u, v, w, p=_order("minkowski", p))


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Tensor:
    return _of_vectors("correlation" if centered else "cosine")(u, v, w)


def seuclidean(u: Any, v: Any, V: Any) -> Tensor:
    first, second = _vectors("seuclidean", u, v)
    found = _seuclidean(first, second, None, _vector_of("seuclidean", "V", V, first.shape[0]))
    return as_python_number(found)


def mahalanobis(u: Any, v: Any, VI: Any) -> Tensor:
    first, second, VI = floats(*_vectors("mahalanobis", u, v), VI)
    return _mahalanobis(first, second, None, _inverse(VI, first.shape[0]))


def jensenshannon(p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False) -> Tensor:
    """Of arrays of any dimensions, along an axis."""
    first, second = (_refused_in("jensenshannon", one) for one in floats(p, q))
    first, second = (one / declared.sum(one, axis, True) for one in (first, second))
    return _divergence_root(first, second, axis, base, keepdims)


# --- of all pairs of rows -----------------------------------------------------------------------------------


def _rows(function: str, name: str, given: Any) -> Tensor:
    found = as_dtype(_refused_in(function, tensor_of(given)), DOUBLE)
    if found.ndim != 2:
        fail(
            ShapeError,
            f"scipy.spatial.distance.{function}: {name} must be a matrix, whose rows are compared; found the "
            f"shape {tuple(found.shape)}.",
        )
    return found


def _name_of(metric: Any) -> str | None:
    """The measure that a name, or a function of SciPy's, stands for; None for any other."""
    if isinstance(metric, str):
        return metric.lower() if metric.lower() in MEASURES else None
    module = sys.modules["scipy.spatial.distance"]
    return next((name for name in MEASURES if metric == getattr(module, name)), None)


def _compared(
    function: str, name: str, first: Tensor, second: Tensor, options: dict[str, Any], rows: Callable[[], Any]
) -> Tensor:
    """What a measure says of arrays of rows, which broadcast."""
    allowed = PARAMETERS.get(name, ()) + (() if name in WITHOUT_WEIGHTS else ("w",))
    if unknown := sorted(options.keys() - allowed):
        fail(
            ArgumentError,
            f"scipy.spatial.distance.{function}: the metric {name} takes no {', '.join(unknown)}.",
        )
    size = first.shape[-1]
    weights = _weights(name, options.get("w"), size)
    return MEASURES[name](first, second, weights, **_parameters(name, size, options, rows))


def _require_no_array(function: str, out: Any) -> None:
    if out is not None:
        fail(
            UnsupportedError,
            f"scipy.spatial.distance.{function}: out= takes no Tensors. Write out[...] = {function}(...).",
        )


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """Of all rows of XA and all of XB: shape (rows of XA, rows of XB), in double precision.

    Measures of truth values, which are constant between their steps, are left to SciPy, which takes arrays; a
    function of the user's is called with each pair.
    """
    name = _name_of(metric)
    if name is None and not callable(metric):
        return sys.modules["scipy.spatial.distance"].cdist(XA, XB, metric, out=out, **options)
    _require_no_array("cdist", out)
    a, b = _rows("cdist", "XA", XA), _rows("cdist", "XB", XB)
    if a.shape[1] != b.shape[1]:
        fail(
            ShapeError,
            f"scipy.spatial.distance.cdist: rows of one size expected, found the shapes {tuple(a.shape)} and "
            f"{tuple(b.shape)}.",
        )
    if name is not None:
        return _compared("cdist", name, a[:, None], b[None], options, lambda: PUBLIC["cat"]([a, b]))
    pairs = [(one, other) for one in range(a.shape[0]) for other in range(b.shape[0])]
    return _called(metric, a, b, pairs, options).reshape(a.shape[0], b.shape[0])


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """Of each row and those after it, one after another, in double precision."""
    name = _name_of(metric)
    if name is None and not callable(metric):
        return sys.modules["scipy.spatial.distance"].pdist(X, metric, out=out, **options)
    _require_no_array("pdist", out)
    x = _rows("pdist", "X", X)
    first, second = np.triu_indices(x.shape[0], 1)
    if name is not None:
        return _compared("pdist", name, x[first], x[second], options, lambda: x)
    return _called(metric, x, x, list(zip(first, second)), options)


def _called(metric: Any, a: Tensor, b: Tensor, pairs: Any, options: dict[str, Any]) -> Any:
    """What a function of the user's says of pairs of rows."""
    found = [metric(of_arrays(a[one]), of_arrays(b[other]), **options) for one, other in pairs]
    if not found:
        return PUBLIC["zeros"]((0,), dtype=DOUBLE)
    return PUBLIC["stack"]([as_dtype(tensor_of(one), DOUBLE) for one in found])


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The matrix of distances that a vector holds the upper triangle of, or this vector of a matrix."""
    given, function = tensor_of(X), "scipy.spatial.distance.squareform"
    expected = {"tomatrix": (1,), "tovector": (2,)}.get(force.lower(), (1, 2))
    if given.ndim not in expected:
        fail(
            ShapeError,
            f"{function}: {' or '.join(map(str, expected))} dimensions expected for force={force!r}, found "
            f"the shape {tuple(given.shape)}.",
        )
    if given.ndim == 1:
        return _matrix_of(given, function)
    size = given.shape[0]
    if given.shape[1] != size:
        fail(ShapeError, f"{function}: the matrix must be square, found the shape {tuple(given.shape)}.")
    if checks:
        is_distance = PUBLIC["eq"](given, given.T).all() & PUBLIC["eq"](PUBLIC["diagonal"](given), 0).all()
        given = demanded(function, given, is_distance, "the matrix must be symmetric, its diagonal zero.")
    return given[np.triu_indices(size, 1)]


def _matrix_of(distances: Tensor, function: str) -> Tensor:
    count = distances.shape[0]
    size = math.ceil(math.sqrt(2 * count)) if count else 1
    if size * (size - 1) != 2 * count:
        fail(
            ShapeError,
            f"{function}: a vector of n (n - 1) / 2 distances expected, found {count}.",
        )
    above = np.triu_indices(size, 1)
    places = np.zeros((size, size), np.int64)
    places[above] = np.arange(count)
    if not count:
        return PUBLIC["zeros"]((1, 1), dtype=distances.dtype)
    return where(tensor_of(np.eye(size, dtype=bool)), 0, distances[places + places.T])


# --- of scipy.spatial ---------------------------------------------------------------------------------------


def minkowski_distance_p(x: Any, y: Any, p: Any = 2.0) -> Any:
    """The sum of |x - y|**p along the last dimension, in double precision; the largest for an infinite p."""
    first, second = (as_dtype(_refused_in("minkowski_distance_p", tensor_of(one)), DOUBLE) for one in (x, y))
    apart, p = absolute(second - first), _order("minkowski_distance_p", p)
    if isinstance(p, float | int) and p in (1, 2, math.inf):
        return PUBLIC["amax"](apart, -1) if p == math.inf else _summed(apart if p == 1 else apart * apart)
    is_zero = PUBLIC["eq"](apart, 0)
    return _summed(where(is_zero, 0.0, where(is_zero, 1.0, apart) ** p))


def minkowski_distance(x: Any, y: Any, p: Any = 2.0) -> Any:
    first, second = (as_dtype(_refused_in("minkowski_distance", tensor_of(one)), DOUBLE) for one in (x, y))
    return _minkowski(first, second, None, _order("minkowski_distance", p))


def distance_matrix(x: Any, y: Any, p: Any = 2.0, threshold: int = 1000000) -> Any:
    """The distances of all rows of x and all of y; `threshold` is of SciPy's memory."""
    return cdist(x, y, "minkowski", p=p)


# --- all ----------------------------------------------------------------------------------------------------

OF_VECTORS = {name: _of_vectors(name) for name in MEASURES.keys() - PARAMETERS.keys() - {"euclidean"}}
OF_NAMES = (
    euclidean, minkowski, correlation, seuclidean, mahalanobis, jensenshannon, cdist, pdist, squareform,
)  # fmt: skip
DISTANCES: dict[str, Callable[..., Any]] = OF_VECTORS | {one.__name__: one for one in OF_NAMES}
"""By name what functions of scipy.spatial.distance do on Tensors."""
OF_SPATIAL: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (minkowski_distance_p, minkowski_distance, distance_matrix)
}
"""The same of scipy.spatial."""
