"""Order: rows of an array sorted, which positions sort them, and where in such a row something belongs."""

import numpy as np

from ..dims import equated_shapes
from ..errors import ShapeError
from ..operator import Array, WholeCall, declare
from ..spec import INT64, Spec
from .creation import iota
from .indexing import scatter_add
from .movement import expand, reshape


def _infer(x: Spec) -> Spec:
    if not x.ndim:
        raise ShapeError(f"sorted_positions: a row of elements expected, found {x}.")
    return x


def _steps(extent: int) -> int:
    return max(extent, 2).bit_length()


def _evaluate_values(x: np.ndarray) -> np.ndarray:
    """Zeros of both signs in order: NumPy's own sort takes them for equal."""
    has_signs = x.dtype.kind == "f" and bool((x == 0).any())
    return np.sort(x, axis=-1, kind="stable" if has_signs else None)


def _numbers(x: Array, extent: int) -> Array:
    return type(x).apply(iota, (), {"size": extent, "dtype": INT64})


def _values_cotangent(g: Array, x: Array) -> Array:
    """Each element's is where the element has come to."""
    shape = tuple(x.shape)
    places = []
    for dim, extent in enumerate(shape[:-1]):
        numbers = np.arange(extent) if isinstance(x, np.ndarray) else _numbers(x, extent)
        column = tuple(extent if one == dim else 1 for one in range(len(shape)))
        places.append(expand(reshape(numbers, shape=column), shape=shape))
    return scatter_add(g, *places, sorted_positions(x, stable=True), shape=shape)


sorted_values = declare(
    "sorted_values", "ordering", "x", infer=_infer, evaluate=_evaluate_values, vjp={"x": _values_cotangent},
    call=WholeCall(
        ("sort_integers", "sort_floats"), lambda x: int(x.dtype.kind == "f"), dims=1, steps=_steps
    ),
    noun="ordered", grad_fn="Sort",
    doc="each row in order, equal elements as they stood and nan last",
)  # fmt: skip


def _evaluate_positions(x: np.ndarray, stable: bool) -> np.ndarray:
    """Of elements that all differ there is one order, which NumPy finds sooner if it need not be stable."""
    if not stable or x.dtype.kind != "f":
        return np.argsort(x, axis=-1, kind="stable" if stable else None)
    order = np.argsort(x, axis=-1)
    ordered = np.take_along_axis(x, order, -1)
    differ = bool((ordered[..., :-1] < ordered[..., 1:]).all())
    return order if differ else np.argsort(x, axis=-1, kind="stable")


sorted_positions = declare(
    "sorted_positions", "ordering", "x",
    infer=lambda x, stable: Spec(_infer(x).shape, INT64),
    evaluate=_evaluate_positions,
    call=WholeCall(
        ("order_positions", "sort_positions"), lambda x, stable: int(stable), dims=1, steps=_steps
    ),
    noun="order",
    doc="for each row the positions that sort it, nan last, and equal elements in order if `stable`, else as "
    "NumPy leaves them",
)  # fmt: skip


def _infer_places(ordered: Spec, wanted: Spec, right: bool) -> Spec:
    if not ordered.ndim or ordered.shape[:-1] != wanted.shape[:-1] or ordered.ndim != wanted.ndim:
        raise ShapeError(f"searchsorted: rows for rows expected, found {wanted} for {ordered}.")
    equated_shapes(ordered.shape[:-1], wanted.shape[:-1])
    return Spec(wanted.shape, INT64)


def _evaluate_places(ordered: np.ndarray, wanted: np.ndarray, right: bool) -> np.ndarray:
    places = np.empty(wanted.shape, np.int64)
    for row in np.ndindex(ordered.shape[:-1]):
        places[row] = np.searchsorted(ordered[row], wanted[row], "right" if right else "left")
    return places


searchsorted = declare(
    "searchsorted", "ordering", "ordered wanted", infer=_infer_places, evaluate=_evaluate_places,
    call=WholeCall(
        ("search_left", "search_right"), lambda ordered, right: int(right), dims=1, steps=_steps
    ),
    noun="place",
    doc="how many elements of a row in order are less than each one that is wanted, or equal if `right`",
)  # fmt: skip
