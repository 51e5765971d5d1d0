"""Order: rows of an array sorted, which positions sort them, and where in such a row something belongs."""

import numpy as np

from ..dims import equated_shapes
from ..errors import ShapeError
from ..operator import Array, WholeCall, declare
from ..spec import INT64, Spec
from .creation import iota
from .indexing import scatter_add
from .movement import between, expand, reshape


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
    if isinstance(g, np.ndarray) and isinstance(x, np.ndarray) and x.size:
        found = np.empty_like(g, order="C")
        order = _evaluate_positions(x, True).reshape(-1, x.shape[-1])
        order += np.arange(0, x.size, x.shape[-1])[:, None]
        found.reshape(-1)[order] = g.reshape(order.shape)
        return found
    order = sorted_positions(x, stable=True)
    return scatter_add(g, *rows_of_positions(x, order), order, shape=tuple(x.shape))


def rows_of_positions(x: Array, positions: Array) -> list[Array]:
    """In which row each position is, by all dimensions but the last."""
    shape = tuple(positions.shape)
    rows = []
    for dim, extent in enumerate(shape[:-1]):
        numbers = np.arange(extent) if isinstance(x, np.ndarray) else _numbers(x, extent)
        column = tuple(extent if one == dim else 1 for one in range(len(shape)))
        rows.append(expand(reshape(numbers, shape=column), shape=shape))
    return rows


sorted_values = declare(
    "sorted_values", "ordering", "x", infer=_infer, evaluate=_evaluate_values, vjp={"x": _values_cotangent},
    call=WholeCall(
        ("sort_integers", "sort_floats"), lambda x: int(x.dtype.kind == "f"), dims=1, steps=_steps
    ),
    noun="ordered", grad_fn="Sort",
    doc="each row in order, equal elements as they stood and nan last",
)  # fmt: skip


NAN_KEYS = {"float64": 0x7FF8 << 48, "float32": 0x7FC0 << 16}
"""Behind the bits of all other numbers."""
LONG = 256
"""In rows longer than this integers made of numbers and places are sorted sooner than places by numbers."""
SMALL = 1000
"""Elements that NumPy puts in a stable order as soon as in any."""
FEW = 1000
"""Stretches of numbers with the same first digits that are put in order one by one."""


def packed(x: np.ndarray) -> np.ndarray:
    """Integers in the order of floats: their first bits, with their places in a row as the last ones.

    Zeros of both signs have the same bits before those of their place, and nan has those behind all others.
    """
    bits = np.int64 if x.dtype == np.float64 else np.int32
    keys = (x + x.dtype.type(0)).view(bits)
    keys ^= (keys >> 8 * keys.itemsize - 1) & np.iinfo(bits).max
    is_nan = x != x
    if is_nan.any():
        keys[is_nan] = NAN_KEYS[x.dtype.name]
    wide = keys if bits is np.int64 else keys.astype(np.int64) << 32
    wide &= -places_in(x.shape[-1])
    wide |= np.arange(x.shape[-1])
    return wide


def places_in(count: int) -> int:
    """The least power of two that is not less than so many."""
    return 1 << max(count - 1, 0).bit_length()


def _positions_by_keys(x: np.ndarray) -> np.ndarray:
    """The positions that sort long rows of floats, equal ones in order."""
    keys = packed(x)
    keys.sort(axis=-1)
    count = places_in(x.shape[-1])
    is_near = (keys[..., 1:] ^ keys[..., :-1]).view(np.uint64) < count
    order = keys
    order &= count - 1
    rows, places = x.reshape(-1, x.shape[-1]), order.reshape(-1, x.shape[-1])
    is_near = is_near.reshape(len(rows), x.shape[-1] - 1)
    row, place = np.nonzero(is_near)
    is_late = rows[row, places[row, place]] > rows[row, places[row, place + 1]]
    late = list(zip(row[is_late].tolist(), place[is_late].tolist()))
    if len(late) > FEW:
        return np.argsort(x, axis=-1, kind="stable")
    done = dict.fromkeys(range(len(rows)), -1) if late else {}
    for one, first in late:
        if first < done[one]:
            continue
        start, stop = first, first + 1
        while start > 0 and is_near[one, start - 1]:
            start -= 1
        while stop < x.shape[-1] and is_near[one, stop - 1]:
            stop += 1
        among = places[one, start:stop]
        places[one, start:stop] = among[np.argsort(rows[one, among], kind="stable")]
        done[one] = stop
    return order


def _evaluate_positions(x: np.ndarray, stable: bool) -> np.ndarray:
    if not stable or x.size <= SMALL or x.dtype.name not in NAN_KEYS:
        return np.argsort(x, axis=-1, kind="stable" if stable else None)
    if x.shape[-1] > LONG:
        return _positions_by_keys(x)
    order = np.argsort(x, axis=-1)  # of elements that all differ there is one order, which this finds sooner
    ordered = np.take_along_axis(x, order, -1)
    differ = bool((ordered[..., :-1] < ordered[..., 1:]).all())
    return order if differ else np.argsort(x, axis=-1, kind="stable")


def _way_to_positions(x: Spec, stable: bool) -> int:
    return int(stable) + int(stable and x.dtype.name in NAN_KEYS)


sorted_positions = declare(
    "sorted_positions", "ordering", "x",
    infer=lambda x, stable: Spec(_infer(x).shape, INT64),
    evaluate=_evaluate_positions,
    call=WholeCall(
        ("order_positions", "sort_positions", "sort_float_positions"), _way_to_positions, dims=1, steps=_steps
    ),
    noun="order",
    doc="for each row the positions that sort it, nan last, and equal elements in order if `stable`, else as "
    "NumPy leaves them",
)  # fmt: skip


# --- few elements of rows in order --------------------------------------------------------------------------

SHORT = 1000
"""Rows up to which a sort takes no longer than what finds some elements alone ..."""
MOST_SELECTED = 8
"""... and how many of these are found one by one."""


def _infer_selected(x: Spec, places: Spec) -> Spec:
    return Spec(_infer_places(x, places, False).shape, x.dtype)


def _infer_selection(x: Spec, places: Spec) -> Spec:
    """With room for each row behind its elements."""
    found = _infer_selected(x, places)
    return found.with_shape((*found.shape[:-1], found.shape[-1] + x.shape[-1]))


def _evaluate_selected(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    wanted = sorted({*places.ravel().tolist()})
    if x.shape[-1] > SHORT and len(wanted) <= MOST_SELECTED:
        found = np.empty(places.shape, x.dtype)
        for place in wanted:  # NumPy's partition by one place alone is quick
            chosen = np.partition(x, place, axis=-1)[..., place : place + 1]
            found = np.where(places == place, chosen, found)
        if found.all():  # of zeros the sign says which of them it is
            return found
    return np.take_along_axis(_evaluate_values(x), places, -1)


def _selected(x: Array, places: Array) -> Array:
    return between(selection(x, places), -1, 0, places.shape[-1])


def _selected_cotangent(g: Array, x: Array, places: Array, y: Array) -> Array:
    found = selected_positions(x, places, y)
    return scatter_add(g, *rows_of_positions(x, found), found, shape=tuple(x.shape))


def _evaluate_selected_positions(x: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.empty(places.shape, np.int64)
    for at in np.ndindex(places.shape):
        row, one = x[at[:-1]], values[at]
        if one == one:
            before, same = np.count_nonzero(row < one), row == one
        else:
            same = row != row
            before = row.size - np.count_nonzero(same)
        found[at] = np.flatnonzero(same)[places[at] - before]
    return found


selection = declare(
    "selection", "ordering", "x places", infer=_infer_selection,
    evaluate=lambda x, places: np.concatenate([_evaluate_selected(x, places), x], -1),
    call=WholeCall(("select_floats",), dims=1), noun="selection",
    doc="the elements that stand at places of each row in order, and room for the row",
)  # fmt: skip
selected_positions = declare(
    "selected_positions", "ordering", "x places values",
    infer=lambda x, places, values: Spec(_infer_selected(x, places).shape, INT64),
    evaluate=_evaluate_selected_positions, call=WholeCall(("find_selected",), dims=1), noun="position",
    doc="where the elements lie that stand at places of each row in order, given these as well; equal ones "
    "stand as they lie",
)  # fmt: skip
selected_values = declare(
    "selected_values", "composite", "x places", infer=_infer_selected, evaluate=_evaluate_selected,
    body=_selected, vjp={"x": _selected_cotangent}, needs_own_rule=True, grad_fn="Sort",
    doc="the elements that stand at places of each row in order: equal elements as they lie and nan last",
)  # fmt: skip

# --- places of what is looked for ---------------------------------------------------------------------------


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
