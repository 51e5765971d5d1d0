"""Values, gradients and products of second derivatives of sums over rows that lie on a cluster of Dask's.

One task for each part of the data, where it lies; parameters and code go out once; results are added up along
a tree that depends on the parts alone, so that neither the number of workers nor the order in which they
answer changes a bit. Code of a part is serial: workers share the processors among themselves.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...codegen.options import Options
from ...tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ...tracer.records import record
from ..dispatch.compiled import CompiledFunction, function_name
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor
from . import row_parts
from .proof import Proof
from .row_parts import Form

Function = Callable[..., Any]
Key = str | tuple[Any, ...]
Graph = dict[Key, Any]
"""Tasks of Dask's by their keys."""
Partial = tuple[tuple[Any, ...], list[Any], tuple[Any, ...], int]
"""Sums, gradients, what they are divided by, and the number of rows."""
FAN_IN = 8
"""How many results one task of the tree adds."""
SERIAL = Options(parallel=False)


def _dask() -> Any:
    try:
        import dask.array  # the extra `pullback[dask]`
        import dask.base
        import dask.core
    except ImportError as error:
        raise UnsupportedError(
            "pullback.dask needs Dask, which is not installed. Install it with: pip install 'pullback[dask]'."
        ) from error
    return dask


# --- the public functions ---------------------------------------------------------------------------------


def value_and_grad(function: Function) -> ClusterFunction:
    """The value of a sum over rows and its gradient by the first argument, of data that lie on a cluster.

    Args:
        function: of parameters, nested as one likes, and data. It returns a scalar: a sum over rows, a mean,
            a mean with weights, and terms without data, which count once. That it is, is proven on its graph.

    Returns:
        A function of parameters and data: Dask arrays, dataframes or series, all with the same rows in the
        same parts; arrays of NumPy among the data are the same for all parts. It gives (value, gradient) with
        NumPy numbers and arrays, so that `scipy.optimize.minimize(..., jac=True, args=(X, y))` takes it.

    Raises:
        SeparationError: the function is no sum over rows; it names the line.
        ShapeError: data with other rows, or of unknown length. ArgumentError: no data are Dask's.
        UnsupportedError: Dask is not installed.

    What the function raises for a part of the data has a note that names the part.

    Example:
        >>> evaluate = value_and_grad(lambda w, X, y: ((X @ w - y) ** 2).mean())
        >>> value, gradient = evaluate(np.zeros(3), X, y)
    """
    return ClusterFunction(function, row_parts.sums_and_gradients, "value_and_grad")


def grad(function: Function) -> Function:
    """The gradient alone: see `value_and_grad`.

    Example:
        >>> gradient = grad(lambda w, X, y: ((X @ w - y) ** 2).mean())(np.zeros(3), X, y)
    """
    both = value_and_grad(function)
    return lambda parameters, *data: both(parameters, *data)[1]


def hvp(function: Function) -> Function:
    """The product of the second derivatives with a vector that is nested as the parameters are.

    Example:
        >>> product = hvp(loss)(parameters, vector, X, y)
    """
    evaluate = ClusterFunction(function, row_parts.sums_and_products, "hvp", directions=1)
    return lambda parameters, vector, *data: evaluate(parameters, vector, *data)[1]


def gauss_newton_product(residuals: Function) -> Function:
    """J'J times a vector, for residuals of parameters and data that depend on a row each.

    Example:
        >>> product = gauss_newton_product(lambda w, X, y: X @ w - y)(parameters, vector, X, y)
    """
    evaluate = ClusterFunction(
        functools.partial(row_parts.squares, residuals),
        row_parts.sums_and_gauss_newton,
        "gauss_newton_product",
        directions=1,
        of_part=residuals,
        require=row_parts.require_gauss_newton,
    )
    return lambda parameters, vector, *data: evaluate(parameters, vector, *data)[1]


class ClusterFunction:
    """A function of parameters and data on a cluster; what `value_and_grad` returns.

    Args:
        function: the sum over rows, which is proven to be one.
        part: what is computed of a part of the data: of `row_parts`.
        directions: how many arguments stand between the parameters and the data.
        of_part: what `part` is given, if not the function.
        require: of the function's form and name; raises where that is not enough.
    """

    def __init__(
        self, function: Function, part: Function, name: str, directions: int = 0,
        of_part: Function | None = None, require: Callable[[Form, str], None] | None = None,
    ) -> None:  # fmt: skip
        if not callable(function):
            raise ArgumentError(
                f"dask.{name}: expected a function, found {type(function).__name__} {function!r}."
            )
        self.function = function if isinstance(function, CompiledFunction) else CompiledFunction(function)
        self.of_part = of_part or self.function
        self.part, self.require, self.directions = part, require, directions
        self.__name__ = f"{function_name(self.of_part)}_{name}"
        self._known: dict[Any, _Compiled] = {}
        self._sent: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_known": {}, "_sent": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _sent=WeakKeyDictionary())

    def __call__(self, parameters: Any, *arguments: Any) -> tuple[Any, Any]:
        directions, data = arguments[: self.directions], _Data.of(self.__name__, arguments[self.directions :])
        known = self._compiled(parameters, directions, data)
        partial, once = self._computed(parameters, directions, data, known)
        return _finished(known.proof.form, parameters, partial, once, self.directions == 0)

    def explain(self, parameters: Any, *arguments: Any) -> str:
        """What a call costs: of a part of the data, of the cluster's bookkeeping, and where they break even.

        It measures: three runs with the data, three with tasks that do nothing.
        """
        directions, data = arguments[: self.directions], _Data.of(self.__name__, arguments[self.directions :])
        self(parameters, *arguments)
        whole = min(_timed(lambda: self(parameters, *arguments)) for _ in range(3))
        tasks = len(data.rows)
        overhead = min(_timed(lambda: idle(tasks)) for _ in range(3))
        per_task, rows = overhead / tasks, sum(data.rows)
        known = self._compiled(parameters, directions, data)
        sample = data.first_part()
        known.run(parameters, *directions, *sample)
        alone = min(_timed(lambda: known.run(parameters, *directions, *sample)) for _ in range(3))
        per_row = alone / max(data.rows[0], 1)
        return (
            f"{self.__name__}: {rows} rows in {tasks} parts, {len(known.proof.form.by_count)} sums, "
            f"depth of the tree {len(tree_of(tasks)) - 1}.\n"
            f"A call takes {1e3 * whole:.1f} ms; the cluster's bookkeeping {1e3 * per_task:.2f} ms for each "
            f"part; a part of {data.rows[0]} rows {1e3 * alone:.2f} ms here, {1e9 * per_row:.1f} ns a row.\n"
            f"Parts break even from about {int(per_task / per_row) + 1 if per_row else 0} rows on: below "
            "that, bookkeeping takes longer than arithmetic. Merge parts with rechunk()."
        )

    # --- what is compiled ---------------------------------------------------------------------------------

    def _compiled(self, parameters: Any, directions: Sequence[Any], data: _Data) -> _Compiled:
        """What runs for such arguments, proven for the numbers of rows of the whole and of all parts."""
        key = (data.key, *(_spec_key(one) for one in (parameters, *directions)))

        def example(rows: int) -> tuple[Any, ...]:
            return (parameters, *data.example(rows))

        sizes = {max(2, rows) for rows in (sum(data.rows), *data.rows)}
        if key in self._known:
            self._known[key].proof.extend(sizes, example)
            return self._known[key]
        proof = Proof(self.function, example, data.has_rows)
        proof.extend(sizes, example)
        if self.require is not None:
            self.require(proof.form, self.__name__)
        known = self._known[key] = self._made(proof, parameters, directions, data)
        return known

    def _made(self, proof: Proof, parameters: Any, directions: Sequence[Any], data: _Data) -> _Compiled:
        """Compiled here, so that workers like this machine compile nothing."""
        fixed = (self.of_part, data.has_rows, proof.form)
        run = _of_part(self.part, *fixed, name=f"part_of_{self.__name__}")
        run.warmup(parameters, *directions, *data.example(max(2, *data.rows)))
        once = _of_part(_ONCE[self.part], *(self.function, *fixed[1:]), name=f"rest_of_{self.__name__}")
        if proof.form.has_shared:
            once.warmup(parameters, *directions, *data.example(2))
        return _Compiled(proof, run, once)

    # --- tasks --------------------------------------------------------------------------------------------

    def _computed(
        self, parameters: Any, directions: Sequence[Any], data: _Data, known: _Compiled
    ) -> tuple[Partial | None, Any]:
        """What all parts add, and what counts once, which is computed here."""
        given = (parameters, *directions)
        once = known.once(*given, *data.example(2)) if known.proof.form.has_shared else None
        if not known.proof.form.by_count or not sum(data.rows):
            return None, once
        graph, total = self._graph(known.run, given, data)
        return _result(graph, total), once

    def _graph(self, run: CompiledFunction, given: tuple[Any, ...], data: _Data) -> tuple[Graph, Key]:
        """The tasks of a call by their keys, and the key of the sum."""
        token = uuid.uuid4().hex
        names = {kind: f"{self.__name__}_{kind}-{token}" for kind in ("given", "part", "sum")}
        graph, places = data.graph()
        held = given, tuple(None if flag else one for one, flag in zip(data.arguments, data.has_rows))
        graph[names["given"]] = (functools.partial(_unchanged, held),)
        code = self._code(run)
        found: list[Key] = []
        for rows, label, keys in zip(data.rows, data.labels(self.__name__), places, strict=True):
            if rows:
                task = functools.partial(_run_part, rows=rows, label=label)
                found.append((names["part"], len(found)))
                graph[found[-1]] = (task, code, names["given"], *keys)
        while len(found) > 1:
            sums = [found[start : start + FAN_IN] for start in range(0, len(found), FAN_IN)]
            found = [(names["sum"], len(graph) + place) for place in range(len(sums))]
            graph.update({key: (_added, *parts) for key, parts in zip(found, sums)})
        return graph, found[0]

    def _code(self, run: CompiledFunction) -> Any:
        """The code of a part: with a cluster, a result that its workers keep from call to call.

        It goes out anew where it is no longer the same, as where the function has read a global that changed.
        """
        client = _client()
        if client is None:
            return run
        payload = _dumps(run)
        key = f"code-{hashlib.sha256(payload).hexdigest()}"
        sent = self._sent.setdefault(client, {})
        if key not in sent or sent[key].cancelled():
            sent.clear()
            sent[key] = client.submit(pickle.loads, payload, key=key, pure=True)
        return sent[key]


@record(frozen=True)
class _Compiled:
    """What runs for a kind of arguments."""

    proof: Proof
    run: CompiledFunction
    """For each part of the data."""
    once: CompiledFunction
    """For what depends on no row."""


def _client() -> Any:
    """The client of the cluster on which Dask computes now; None for its own schedulers."""
    owner = getattr(_dask().base.get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "submit") else None


def _result(graph: Graph, key: Key) -> Any:
    """What a task gives, computed where Dask computes."""
    from dask.delayed import Delayed

    return _dask().compute(Delayed(key, graph), optimize_graph=False)[0]


def _dumps(value: Any) -> bytes:
    import cloudpickle  # Dask depends on it

    return cloudpickle.dumps(value)


def _of_part(part: Function, *fixed: Any, name: str) -> CompiledFunction:
    function = functools.partial(part, *fixed)
    return CompiledFunction(function, name=name, options=SERIAL)


def gradient_once(
    function: Function, has_rows: tuple[bool, ...], form: Form, parameters: Any, *data: Any
) -> Any:
    """What counts once, and its gradient."""
    from ..transforms.transforms import value_and_grad as both

    return both(functools.partial(row_parts.value_once, function, has_rows, form))(parameters, *data)


def product_once(
    function: Function, has_rows: tuple[bool, ...], form: Form, parameters: Any, vector: Any, *data: Any
) -> Any:
    """The product of its second derivatives with a vector, in the place of the gradient."""
    from ..transforms.transforms import grad, jvp

    slope = grad(functools.partial(row_parts.value_once, function, has_rows, form))
    return 0.0, jvp(lambda at: slope(at, *data), (parameters,), (vector,))[1]


_ONCE = {
    row_parts.sums_and_gradients: gradient_once,
    row_parts.sums_and_products: product_once,
    row_parts.sums_and_gauss_newton: product_once,
}


def _unchanged(value: Any) -> Any:
    return value


def _run_part(run: Any, held: tuple[Any, ...], *part: Any, rows: int, label: str) -> Partial:
    """A task: what a part adds. A single row is taken twice and counts half, since sizes of 1 are
    structure.

    Args:
        held: what stands before the data, then the data that all parts share, None in the place of a part's.
    """
    given, shared = held
    arrays = [np.ascontiguousarray(one) for one in part]
    if rows == 1:
        arrays = [np.repeat(one, 2, axis=0) for one in arrays]
    own = iter(arrays)
    try:
        sums, gradients, denominators = run(*given, *(next(own) if one is None else one for one in shared))
    except Exception as error:
        error.add_note(f"In {label}.")
        raise
    found = tuple(sums), list(gradients), tuple(denominators)
    if rows == 1:
        found = _mapped(lambda one: 0.5 * np.asarray(one), found)
    return *found, rows


def _added(*partials: Partial) -> Partial:
    """A task: what several parts add, in this order."""
    sums, gradients, denominators, rows = (list(column) for column in zip(*partials))
    return _total(sums), _total(gradients), _total(denominators), sum(rows)


def _total(values: Sequence[Any]) -> Any:
    """The sum of values that are nested alike."""
    leaves, structure = zip(*map(flatten, values))
    return unflatten(structure[0], [functools.reduce(np.add, column) for column in zip(*leaves)])


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    leaves, structure = flatten(value)
    return unflatten(structure, [change(leaf) for leaf in leaves])


def _divided(value: Any, divisor: Any) -> Any:
    return _mapped(lambda leaf: leaf / divisor, value)


def tree_of(parts: int) -> list[int]:
    """How many tasks there are for so many parts, and at each level of the tree that adds what they give.

    Example:
        >>> tree_of(100)
        [100, 13, 2, 1]
    """
    widths = [parts]
    while widths[-1] > 1:
        widths.append(-(-widths[-1] // FAN_IN))
    return widths


def idle(tasks: int) -> None:
    """As many tasks that do nothing, and one that takes what they give."""
    token = uuid.uuid4().hex
    parts: Graph = {(f"idle-{token}", place): (_nothing,) for place in range(tasks)}
    total = f"idle_sum-{token}"
    _result({**parts, total: (_nothing, *parts)}, total)


def _nothing(*arguments: Any) -> None:
    pass


def _timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _finished(
    form: Form, parameters: Any, partial: Partial | None, once: Any, has_value: bool
) -> tuple[Any, Any]:
    """Value and gradient of the whole, of what all parts add and what counts once."""
    value, terms = 0.0, []
    if partial is not None:
        sums, gradients, denominators, rows = partial
        by = [
            rows if by_count else 1.0 if place is None else denominators[place]
            for by_count, place in zip(form.by_count, form.denominators)
        ]
        value = sum(one / divisor for one, divisor in zip(sums, by)) if has_value else 0.0
        terms = [_divided(one, divisor) for one, divisor in zip(gradients, by)]
    if once is not None:
        value, terms = value + once[0], [*terms, once[1]]
    if not terms:
        terms = [_mapped(np.zeros_like, parameters)]
    leaves, _ = flatten(_total(terms))
    _, structure = flatten(parameters)
    return np.float64(value), unflatten(structure, leaves)


# --- data -------------------------------------------------------------------------------------------------


@record(frozen=True)
class _Data:
    """Dask's arrays with the same parts, and arrays that all parts share."""

    arguments: tuple[Any, ...]
    has_rows: tuple[bool, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, name: str, arguments: Sequence[Any]) -> _Data:
        """Raises ArgumentError where nothing is Dask's, ShapeError where rows are other or unknown."""
        arrays = [_as_dask_array(name, one) for one in arguments]
        has_rows = tuple(one is not None for one in arrays)
        if not any(has_rows):
            found = ", ".join(type(one).__name__ for one in arguments) or "none"
            raise ArgumentError(
                f"{name}: data in Dask arrays or dataframes expected behind the parameters, found {found}. "
                "Make one with dask.array.from_array(x, chunks=(rows, -1))."
            )
        chunks = next(one.chunks[0] for one in arrays if one is not None)
        settled = [
            given if one is None else _in_parts(name, one, chunks, place)
            for place, (one, given) in enumerate(zip(arrays, arguments))
        ]
        return cls(tuple(settled), has_rows, tuple(map(int, chunks)))

    @property
    def key(self) -> Any:
        """What code for a part depends on, but for the number of rows."""
        return tuple(
            (str(one.dtype), tuple(one.shape[1:])) if flag else _spec_key(one)
            for one, flag in zip(self.arguments, self.has_rows)
        )

    def example(self, rows: int) -> tuple[Any, ...]:
        """Data of so many rows, of zeros."""
        return tuple(
            np.zeros((rows, *map(int, one.shape[1:])), one.dtype) if flag else one
            for one, flag in zip(self.arguments, self.has_rows)
        )

    def graph(self) -> tuple[Graph, list[tuple[Key, ...]]]:
        """The tasks that make the data, and of each part the keys of its arrays."""
        arrays = [one for one, flag in zip(self.arguments, self.has_rows) if flag]
        graph = {key: task for one in arrays for key, task in dict(one.__dask_graph__()).items()}
        keys = [[*_dask().core.flatten(one.__dask_keys__())] for one in arrays]
        return graph, [*zip(*keys, strict=True)]

    def first_part(self) -> tuple[Any, ...]:
        """The data of the first part, here."""
        return tuple(
            np.ascontiguousarray(one[: self.rows[0]].compute()) if flag else one
            for one, flag in zip(self.arguments, self.has_rows)
        )

    def labels(self, name: str) -> list[str]:
        """What errors call the parts."""
        stops = np.cumsum(self.rows)
        return [
            f"part {place} of {len(self.rows)} of {name}, rows {stop - rows} to {stop}"
            for place, (rows, stop) in enumerate(zip(self.rows, stops.tolist()))
        ]


def _as_dask_array(name: str, value: Any) -> Any:
    """A Dask array of an array, dataframe or series of Dask's; None for all else."""
    if hasattr(value, "to_dask_array"):
        value = value.to_dask_array(lengths=True)
    if not isinstance(value, _dask().array.Array):
        return None
    if any(np.isnan(extent) for extent in value.shape):
        raise ShapeError(
            f"{name}: a Dask array of shape {value.shape}, whose number of rows is not known. Call "
            "x.compute_chunk_sizes() on it."
        )
    return value


def _in_parts(name: str, array: Any, chunks: tuple[int, ...], place: int) -> Any:
    """The array in parts of these numbers of rows, each with all columns."""
    if not array.ndim or array.shape[0] != sum(chunks):
        raise ShapeError(
            f"{name}: data argument {place} has shape {array.shape}; expected {sum(chunks)} rows, "
            "as the first has."
        )
    wanted = (chunks, *((extent,) for extent in array.shape[1:]))
    return array if array.chunks == wanted else array.rechunk(wanted)


def _spec_key(value: Any) -> Any:
    """Structure, dtypes and shapes of an argument, of which code depends."""
    leaves, structure = flatten(value)
    return structure, tuple(_leaf_key(leaf) for leaf in leaves)


def _leaf_key(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        raise ArgumentError(
            "dask: parameters are arrays of NumPy and numbers; found a Tensor. Give x.numpy()."
        )
    if isinstance(leaf, np.ndarray | np.generic):
        return str(leaf.dtype), leaf.shape
    return type(leaf), leaf if isinstance(leaf, bool | str) else None
